// POST /v1/audio/transcriptions: every form of the answer, and what is refused. What OpenAI's client makes of them: tests/peers/speech_client.test.mjs.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sharedHearth } from './harness.mjs';
import { newApp, newKey, silentWav } from './kit.mjs';
import { changed, formOf, formType, judge, spoken } from './sound.mjs';

const shared = sharedHearth();
const order = 'Please open the window and turn on the light.';
let recording;
const recordingOf = (call) => (recording ??= spoken(call, order));

async function caller(t) {
    const h = await shared(t);
    const { call, key } = await newKey(h);
    const wav = await recordingOf(call);
    const ask = (fields = [], bytes = wav) => call('POST', '/v1/audio/transcriptions', formOf(...fields, ['file', bytes, 'a.wav'], ['model', 'whisper-1']), formType);
    return { h, call, key, wav, ask };
}

test('json and text have the words', async (t) => {
    const { ask, wav } = await caller(t);
    const { status, body, text } = await ask();
    assert.equal(status, 200, text);
    assert.match(body.text, /window/);
    assert.deepEqual([Object.keys(body).sort(), body.usage.type], [['text', 'usage'], 'duration']);
    assert.ok(Math.abs(body.usage.seconds - (wav.length - 44) / 32000) < 0.1);
    const plain = await ask([['response_format', 'text'], ['prompt', 'Windows and lights.'], ['temperature', '0.5']]);
    assert.equal(plain.text, `${body.text}\n`);
    assert.match(plain.headers['content-type'], /^text\/plain/);
    assert.equal(plain.headers['x-hearth-ignored'], 'prompt, temperature');
    assert.equal((await ask([], silentWav)).body.text, '');
});

test('verbose_json has segments, words or both', async (t) => {
    const { ask } = await caller(t);
    const verbose = async (...granularities) => (await ask([['response_format', 'verbose_json'], ...granularities.map((value) => ['timestamp_granularities[]', value])])).body;
    const [usual, words, both] = await Promise.all([verbose(), verbose('word'), verbose('word', 'segment')]);
    assert.deepEqual([usual.task, usual.language, usual.words, words.segments], ['transcribe', 'english', undefined, undefined]);
    assert.equal(usual.segments.map(({ text }) => text).join(' '), usual.text);
    const [{ id, seek, start, end, avg_logprob: certainty }] = usual.segments;
    assert.deepEqual([id, seek], [0, Math.floor(start * 100)]);
    assert.ok(end > start && end <= usual.duration + 0.1 && certainty <= 0);
    assert.equal(words.words.map(({ word }) => word).join(' '), words.text);
    assert.deepEqual([both.segments.length, both.words.length], [usual.segments.length, words.words.length]);
});

test('ffmpeg reads the subtitles, whose cues are short and follow each other', async (t) => {
    const { call, ask, wav } = await caller(t);
    const long = Buffer.concat([wav, (await spoken(call, 'The children are playing in the garden, and my brother works in a large hospital near the river.')).subarray(44)]);
    long.writeUInt32LE(long.length - 44, 40);
    for (const [format, type, start] of [['srt', 'application/x-subrip; charset=utf-8', /^1\n00:00:0\d,\d{3} --> 00:00:0\d,\d{3}\n/], ['vtt', 'text/vtt; charset=utf-8', /^WEBVTT\n\n00:00:0\d\.\d{3} --> 00:00:0\d\.\d{3}\n/]]) {
        const { text, headers } = await ask([['response_format', format]], long);
        assert.equal(headers['content-type'], type);
        assert.match(text, start);
        const cues = JSON.parse(judge(text, `a.${format}`, 'ffprobe', (path) => ['-v', 'error', '-of', 'json', '-show_packets', '-show_data', path]).stdout).packets;
        assert.ok(cues.length > 1, text);
        let last = 0;
        for (const { pts_time: at, duration_time: seconds, size } of cues) {
            assert.ok(Number(at) >= last && Number(size) <= 60, text);
            last = Number(at) + Number(seconds) - 0.002;
        }
    }
});

test('a stream has a delta for each segment, and the whole text', async (t) => {
    const { h, key, wav, ask } = await caller(t);
    const two = changed(wav, 'two.wav', [], ['pad', '0', '2', 'repeat', '1']);
    const stream = await h.sse('/v1/audio/transcriptions', { method: 'POST', headers: { 'x-api-key': key, ...formType }, body: formOf(['file', two, 'a.wav'], ['stream', 'true']) });
    await stream.ended;
    const events = stream.events.map(({ json }) => json);
    assert.deepEqual(events.map(({ type }) => type), ['transcript.text.delta', 'transcript.text.delta', 'transcript.text.done']);
    assert.equal(events[0].delta + events[1].delta, events[2].text);
    assert.match(events[1].delta, /^ .*window/);
    const { body } = await ask([['stream', 'true'], ['response_format', 'srt']]);
    assert.equal(body.error.param, 'response_format');
});

test('what cannot be transcribed is refused in the form of OpenAI', async (t) => {
    const { h, call, ask } = await caller(t);
    for (const [fields, param] of [[[['response_format', 'diarized_json']], 'response_format'], [[['temperature', '2']], 'temperature'], [[['language', 'de']], 'language'],
        [[['timestamp_granularities[]', 'page']], 'timestamp_granularities'], [[['phrases', 'xyzzy']], 'phrases']]) {
        const { status, body } = await ask(fields);
        assert.deepEqual([status, body.error.type, body.error.param], [400, 'invalid_request_error', param]);
    }
    assert.equal((await ask([], 'no audio')).body.error.hearth_code, 'AUDIO_UNREADABLE');
    assert.equal((await call('POST', '/v1/audio/transcriptions', { model: 'whisper-1' })).body.error.hearth_code, 'BAD_FORM');
    assert.equal((await call('POST', '/v1/audio/transcriptions', formOf(['model', 'whisper-1']), formType)).body.error.param, 'file');
    assert.equal((await h.asApp(await newApp(h))('POST', '/v1/audio/transcriptions', formOf(['file', silentWav, 'a.wav']), formType)).status, 403);
    const { status, body } = await call('POST', '/v1/audio/translations', formOf(['file', silentWav, 'a.wav']), formType);
    assert.deepEqual([status, body.error.hearth_code], [501, 'NOT_IMPLEMENTED']);
    assert.match(body.error.message, /transcriptions/);
});

test('the model may be a provider, with or without its model', async (t) => {
    const { call } = await caller(t);
    const ask = (model) => call('POST', '/v1/audio/transcriptions', formOf(['file', silentWav, 'a.wav'], ['model', model]), formType);
    for (const model of ['pocketsphinx_local', 'pocketsphinx_local/en-us', 'gpt-4o-transcribe', 'default'])
        assert.equal((await ask(model)).status, 200, model);
    assert.equal((await ask('pocketsphinx_local/large')).body.error.param, 'model');
});
