// The official `openai` package and the Vercel AI SDK against the speech of Hearth, unchanged but for their base URL.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { createOpenAI } from '@ai-sdk/openai';
import { experimental_generateSpeech as generateSpeech, experimental_transcribe as transcribe } from 'ai';
import OpenAI, { toFile } from 'openai';
import { startHearth } from '../api/harness.mjs';
import { newKey } from '../api/kit.mjs';

let h, key, client;

before(async () => {
    h = await startHearth();
    ({ key } = await newKey(h));
    client = new OpenAI({ apiKey: key, baseURL: `${h.url}/v1`, maxRetries: 0 });
});
after(() => h?.stop());

const input = 'Please open the window. It is a fine day in the north of the country.';
const asked = { model: 'gpt-4o-mini-tts', voice: 'alloy', input };

// Seconds of audio, as sox reads it; args: what sox must be told of raw samples.
function seconds(bytes, type, args = []) {
    const dir = mkdtempSync(join(tmpdir(), 'speech '));
    const path = join(dir, `a.${type}`);
    writeFileSync(path, bytes);
    const said = spawnSync('sox', [...args, path, '-n', 'stat'], { encoding: 'utf8' });
    rmSync(dir, { recursive: true });
    assert.equal(said.status, 0, said.stderr);
    return Number(/Length \(seconds\):\s+([\d.]+)/.exec(said.stderr)[1]);
}
const isUsual = (n) => n > 3 && n < 9;

test('openai: every format that is there', async () => {
    for (const [response_format, args] of [['mp3'], ['wav'], ['pcm', ['-t', 'raw', '-r', '24000', '-e', 'signed', '-b', '16', '-c', '1']]]) {
        const reply = await client.audio.speech.create({ ...asked, response_format });
        assert.ok(isUsual(seconds(Buffer.from(await reply.arrayBuffer()), response_format, args)), response_format);
    }
});

test('openai: a stream of audio, and one of events', async () => {
    const reply = await client.audio.speech.create({ ...asked, stream_format: 'audio' });
    const pieces = [];
    for await (const piece of reply.body)
        pieces.push(piece);
    assert.ok(isUsual(seconds(Buffer.concat(pieces), 'mp3')));
    const events = (await (await client.audio.speech.create({ ...asked, stream_format: 'sse' })).text())
        .split('\n\n').filter(Boolean).map((event) => JSON.parse(event.replace(/^data: /, '')));
    assert.deepEqual(events.map(({ type }) => type), ['speech.audio.delta', 'speech.audio.delta', 'speech.audio.done']);
});

test('openai: errors are of the right class', async () => {
    await assert.rejects(client.audio.speech.create({ ...asked, voice: 'nobody' }), (e) => e instanceof OpenAI.BadRequestError && e.param === 'voice');
    const stranger = new OpenAI({ apiKey: 'wrong', baseURL: `${h.url}/v1`, maxRetries: 0 });
    await assert.rejects(stranger.audio.speech.create(asked), OpenAI.AuthenticationError);
});

let wav;
async function recording() {
    wav ??= Buffer.from(await (await client.audio.speech.create({ ...asked, voice: 'rms', response_format: 'wav' })).arrayBuffer());
    return toFile(wav, 'a.wav');
}

test('openai: a transcription in every form', async () => {
    const { audio: { transcriptions } } = client, model = 'whisper-1';
    const { text, usage } = await transcriptions.create({ file: await recording(), model });
    assert.match(text, /window/);
    assert.ok(isUsual(usage.seconds));
    const verbose = await transcriptions.create({ file: await recording(), model, response_format: 'verbose_json', timestamp_granularities: ['word', 'segment'], language: 'en' });
    assert.deepEqual([verbose.text, verbose.words.map(({ word }) => word).join(' ')], [text, text]);
    assert.ok(verbose.segments[0].end > verbose.segments[0].start && isUsual(verbose.duration));
    assert.equal((await transcriptions.create({ file: await recording(), model, response_format: 'text' })).trim(), text);
    assert.match(await transcriptions.create({ file: await recording(), model, response_format: 'srt' }), /^1\n00:00:0/);
    assert.match(await transcriptions.create({ file: await recording(), model, response_format: 'vtt' }), /^WEBVTT\n\n00:00:0/);
});

test('openai: a transcription as events', async () => {
    const events = [];
    for await (const event of await client.audio.transcriptions.create({ file: await recording(), model: 'gpt-4o-transcribe', stream: true }))
        events.push(event);
    const done = events.pop();
    assert.equal(done.type, 'transcript.text.done');
    assert.equal(events.map(({ type, delta }) => (assert.equal(type, 'transcript.text.delta'), delta)).join(''), done.text);
    assert.match(done.text, /window/);
});

test('openai: what is no recording, and a translation, are errors of the right class', async () => {
    await assert.rejects(client.audio.transcriptions.create({ file: await toFile(Buffer.from('hello'), 'a.wav'), model: 'whisper-1' }), OpenAI.BadRequestError);
    await assert.rejects(client.audio.translations.create({ file: await recording(), model: 'whisper-1' }), (e) => e instanceof OpenAI.InternalServerError && e.status === 501);
});

test('ai: transcribe', async () => {
    await recording();
    const { transcription } = createOpenAI({ apiKey: key, baseURL: `${h.url}/v1` });
    const heard = await transcribe({ model: transcription('whisper-1'), audio: wav, providerOptions: { openai: { language: 'en' } } });
    assert.match(heard.text, /window/);
    assert.ok(isUsual(heard.durationInSeconds) && heard.segments.length > 0 && heard.language === 'en');
});

test('ai: generateSpeech', async () => {
    const { speech } = createOpenAI({ apiKey: key, baseURL: `${h.url}/v1` });
    const { audio } = await generateSpeech({ model: speech('tts-1'), text: input, voice: 'nova', outputFormat: 'wav', speed: 1.25 });
    assert.ok(isUsual(seconds(Buffer.from(audio.uint8Array), 'wav')));
});
