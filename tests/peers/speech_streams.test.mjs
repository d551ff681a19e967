// A provider's sound is heard while the provider still sends: doubles that hold their second half until the test has heard the first, before the official client
// of OpenAI and before plain requests; judged by ffmpeg (EBU R128).
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { after, before, test } from 'node:test';
import OpenAI from 'openai';
import { startHearth, until } from '../api/harness.mjs';
import { newKey, residentKib, speechWorkers } from '../api/kit.mjs';
import { judge } from '../api/sound.mjs';
import { addSpeech, rate, speechDouble, tone, wav } from './speech_double.mjs';

const sentence = 'This one sentence is long enough that its first half has more than a second.';     // of a tone: 40 ms a character
const nSamples = Math.round(sentence.length * 0.04 * rate);
let h, key, client;

before(async () => {
    h = await startHearth({ settings: { 'speech.timeout_s': 30 } });
    ({ key } = await newKey(h));
    client = new OpenAI({ apiKey: key, baseURL: `${h.url}/v1`, maxRetries: 0 });
});
after(() => h?.stop());

function deferred() {
    let resolve;
    const promise = new Promise((done) => { resolve = done; });
    return { promise, resolve };
}

const speech = (body, more = {}) => fetch(`${h.url}/v1/audio/speech`, { method: 'POST', headers: { 'content-type': 'application/json', 'x-api-key': key },
    body: JSON.stringify({ input: sentence, response_format: 'pcm', ...body }), ...more });
// The rest of a body, read piece by piece.
async function restOf(reader, pieces = []) {
    for (let piece; !(piece = await reader.read()).done;)
        pieces.push(Buffer.from(piece.value));
    return Buffer.concat(pieces);
}
const deltas = (text) => text.split('\n\n').filter(Boolean).map((event) => JSON.parse(event.replace(/^data: /, '')));
const ebur128 = (bytes) => judge(bytes, 'a.wav', 'ffmpeg', (path) => ['-nostats', '-i', path, '-af', 'ebur128=peak=true', '-f', 'null', '-']).stderr;
const loudness = (bytes) => Number(/I:\s+(-?[\d.]+) LUFS\s+Threshold/.exec(ebur128(bytes))[1]);
const truePeak = (bytes) => Number(/Peak:\s+(-?[\d.]+) dBFS/.exec(ebur128(bytes))[1]);
const seconds = (bytes, type) => Number(judge(bytes, `a.${type}`, 'soxi', (path) => ['-D', path]).stdout);

const kinds = [['openai-own', 'gpt-4o-mini-tts', 'nova'], ['openai-own', 'tts-1', 'nova'], ['elevenlabs', '', '21m00Tcm4TlvDq8ikWAM'],
    ['openai', '', 'nova'], ['deepgram', '', 'aura-2-thalia-en']];

for (const [i, [kind, model, voice]] of kinds.entries())
    test(`${kind} ${model}: the first half is heard before the second one is sent, in every format`, { timeout: 60_000 }, async (t) => {
        let heard;
        const double = await speechDouble(t, kind, { pace: (n) => n === 1 && heard.promise });
        const name = `first-${i}`;
        await addSpeech(h, double, name, model ? { model } : {});
        for (const response_format of ['pcm', 'wav', 'mp3']) {
            heard = deferred();
            const reply = await speech({ voice: `${name}/${voice}`, input: `${sentence} ${response_format}`, response_format, stream_format: 'audio' });
            assert.equal(reply.status, 200);
            const reader = reply.body.getReader(), first = await reader.read();
            assert.ok(first.value.length > 0 && !double.asked.at(-1).outgoing.writableEnded, 'the provider has not ended');
            heard.resolve();
            const bytes = await restOf(reader, [Buffer.from(first.value)]);
            const said = response_format === 'pcm' ? bytes.length / 2 / rate : seconds(response_format === 'wav' ? wav(bytes.subarray(44)) : bytes, response_format);
            assert.ok(Math.abs(said - 0.04 * (sentence.length + 4)) < (response_format === 'mp3' ? 0.15 : 0.001), `${response_format}: ${said} s`);
        }
        heard = deferred();
        const reply = await speech({ voice: `${name}/${voice}`, stream_format: 'sse' });
        const reader = reply.body.getReader(), first = await reader.read();
        heard.resolve();
        const events = deltas(String(await restOf(reader, [Buffer.from(first.value)]))), done = events.pop();
        assert.equal(done.type, 'speech.audio.done');
        assert.ok(events.length >= 2 && events.every(({ type }) => type === 'speech.audio.delta'));
        assert.equal(Buffer.concat(events.map(({ audio }) => Buffer.from(audio, 'base64'))).length, 2 * nSamples);
        const asked = JSON.parse(double.asked.at(-1).bytes);
        assert.equal(asked.stream_format, model === 'gpt-4o-mini-tts' ? 'sse' : undefined);
    });

test('openai: the official client plays the first half before the second one is sent', { timeout: 60_000 }, async (t) => {
    let heard = deferred();
    const double = await speechDouble(t, 'openai-own', { pace: (n) => n === 1 && heard.promise });
    await addSpeech(h, double, 'official');
    const asked = { model: 'official', voice: 'nova', input: sentence };
    const reply = await client.audio.speech.create({ ...asked, response_format: 'pcm' });
    assert.equal(reply.headers.get('x-hearth-voice'), 'official/nova');
    const pieces = [];
    for await (const piece of reply.body) {
        pieces.push(piece);
        heard.resolve();
    }
    assert.equal(Buffer.concat(pieces).length, 2 * nSamples);
    heard = deferred();
    const events = await client.audio.speech.create({ ...asked, response_format: 'wav', stream_format: 'sse' });
    let text = '';
    for await (const piece of events.body) {
        text += Buffer.from(piece).toString();
        heard.resolve();
    }
    assert.equal(deltas(text).at(-1).type, 'speech.audio.done');
});

test('a speed that the provider does not have is made while it sends', { timeout: 60_000 }, async (t) => {
    const heard = deferred();
    const double = await speechDouble(t, 'deepgram', { pace: (n) => n === 1 && heard.promise });
    await addSpeech(h, double, 'steady');
    const reader = (await speech({ voice: 'steady/aura-2-thalia-en', speed: 0.5 })).body.getReader(), first = await reader.read();
    heard.resolve();
    const said = (await restOf(reader, [Buffer.from(first.value)])).length / 2 / rate;
    assert.ok(Math.abs(said - 2 * nSamples / rate) < 0.15, `${said} s`);
});

test('chunks of /sdk/tts/stream are whole sentences, as many as it said', async (t) => {
    const double = await speechDouble(t, 'openai-own');
    await addSpeech(h, double, 'chunks');
    const stream = await h.sse('/sdk/tts/stream', { method: 'POST', headers: { 'x-api-key': key }, body: { text: `${sentence} And here is another one.`, provider: 'chunks', voice: 'nova' } });
    await stream.ended;
    assert.deepEqual(stream.events.map(({ event }) => event), ['info', 'chunk', 'chunk', 'done']);
    const chunks = stream.events.filter(({ event }) => event === 'chunk').map(({ json }) => seconds(Buffer.from(json.audio, 'base64'), 'wav'));
    assert.deepEqual([stream.events[0].json.totalChunks, chunks.map((s) => s.toFixed(2))], [2, [sentence.length, 24].map((n) => (0.04 * n).toFixed(2))]);
});

const breaks = { 'openai-own': 'nova', elevenlabs: '21m00Tcm4TlvDq8ikWAM', deepgram: 'aura-2-thalia-en' };
for (const [kind, voice] of Object.entries(breaks))
    test(`${kind}: a stream that breaks off is told, and nothing of it is kept`, { timeout: 60_000 }, async (t) => {
        let isBroken = true, heard;
        const double = await speechDouble(t, kind, { pace: async (n) => {
            if (n === 1 && isBroken) {
                await heard.promise;
                double.asked.at(-1).outgoing.destroy();
            }
        } });
        const name = `broken-${kind}`;
        await addSpeech(h, double, name);
        heard = deferred();
        const audio = await speech({ voice: `${name}/${voice}` }), reader = audio.body.getReader();
        await reader.read();
        heard.resolve();
        await assert.rejects(restOf(reader), 'the connection is aborted');
        heard = deferred();
        const events = (await speech({ voice: `${name}/${voice}`, stream_format: 'sse' })).body.getReader(), first = await events.read();
        heard.resolve();
        const last = deltas(String(await restOf(events, [Buffer.from(first.value)]))).at(-1);
        assert.equal(last.error?.code, 'speech_failed');
        assert.match(last.error.message, new RegExp(name));
        heard.resolve();
        const whole = await h.as({ 'x-api-key': key })('POST', '/sdk/tts', { text: sentence, provider: name, voice });
        assert.equal(whole.status, 502, whole.text);
        isBroken = false;
        assert.equal((await restOf((await speech({ voice: `${name}/${voice}` })).body.getReader())).length, 2 * nSamples);
        const n = double.asked.length;
        assert.equal((await restOf((await speech({ voice: `${name}/${voice}` })).body.getReader())).length, 2 * nSamples);
        assert.equal(double.asked.length, n, 'what ended whole is kept');
    });

test('a client that leaves in the middle ends the request to the provider, and the worker', { timeout: 60_000 }, async (t) => {
    const closed = deferred(), never = deferred();
    const double = await speechDouble(t, 'openai-own', { pace: (n) => n === 1 && never.promise });
    await addSpeech(h, double, 'left');
    const gone = new AbortController();
    const reader = (await speech({ voice: 'left/nova' }, { signal: gone.signal })).body.getReader();
    await reader.read();
    double.asked.at(-1).outgoing.on('close', closed.resolve);
    const sounding = () => speechWorkers(h).filter(({ name }) => /sound/.test(name)).length;
    assert.equal(sounding(), 1);
    gone.abort();
    await closed.promise;
    await until(() => sounding() === 0, { what: 'the worker has ended' });
});

test('a provider that sends nothing more is ended after speech.timeout_s, in events and in audio', { timeout: 60_000 }, async (t) => {
    const own = await startHearth({ t, settings: { 'speech.timeout_s': 1 } }), { key: ownKey } = await newKey(own), never = deferred();
    const double = await speechDouble(t, 'openai-own', { pace: (n) => n === 1 && never.promise });
    await addSpeech(own, double, 'slow');
    const ask = (body) => fetch(`${own.url}/v1/audio/speech`, { method: 'POST', headers: { 'content-type': 'application/json', 'x-api-key': ownKey },
        body: JSON.stringify({ input: sentence, voice: 'slow/nova', response_format: 'pcm', ...body }) });
    const last = deltas(await (await ask({ stream_format: 'sse' })).text()).at(-1);
    assert.equal(last.error.code, 'speech_failed');
    assert.match(last.error.message, /slow: .*sent nothing more for 1 seconds/);
    await assert.rejects(ask({}).then((reply) => reply.arrayBuffer()));
});

test('a client that does not read holds neither the provider nor the worker of others', { timeout: 60_000 }, async (t) => {
    const own = await startHearth({ t, settings: { 'speech.cache_mb': 0, 'speech.workers': 1 } }), { key: ownKey, call } = await newKey(own);
    const long = tone('x'.repeat(2500));        // 4.8 MB: more than the buffers of two sockets hold
    const double = await speechDouble(t, 'elevenlabs', { sound: (text) => text.startsWith('Long') ? long : tone(text) });
    await addSpeech(own, double, 'eleven');
    const before = residentKib(own.pid), unread = [];
    for (let i = 0; i < 8; i++)
        unread.push((await fetch(`${own.url}/v1/audio/speech`, { method: 'POST', headers: { 'content-type': 'application/json', 'x-api-key': ownKey },
            body: JSON.stringify({ input: `Long ${i}. Another sentence.`, voice: 'eleven/21m00Tcm4TlvDq8ikWAM', response_format: 'pcm' }) })).body.getReader());
    await until(() => double.asked.filter(({ outgoing }) => outgoing.writableFinished).length >= 8, { what: 'the provider has sent all of the first sentences' });
    assert.equal((await call('POST', '/sdk/tts', { text: 'Somebody else.', provider: 'eleven' })).status, 200);
    if (!(process.env.HEARTH_BIN ?? 'debug').includes('debug'))
        assert.ok(residentKib(own.pid) - before < 8 * 24 * 1024, `${residentKib(own.pid) - before} KiB`);
    for (const reader of unread)
        assert.equal((await restOf(reader)).length, long.length + tone('Another sentence.').length);
});

// ---- loudness ----

// A person's sound, as espeak-ng makes it, at this level: samples of 24 kHz.
function voiceAt(decibels) {
    return (text) => {
        const whole = spawnSync('espeak-ng', ['-v', 'en-us', '--stdout', text]).stdout;
        return judge(whole, 'in.wav', 'sox', (from, to) => [from, '-r', String(rate), '-t', 'raw', '-e', 'signed', '-b', '16', to, 'norm', String(decibels)], 'out.raw').bytes;
    };
}
const story = ['The wind and the sun argued one day over which of them was the stronger of the two.', 'A traveller came along the road wrapped in a warm cloak, and they agreed to try their strength on him.',
    'The one who first made the traveller take his cloak off should be called the stronger one.'];
const liveWav = async (voice, input) => wav((await restOf((await speech({ voice, input })).body.getReader())));

test('voices of every level are within 3 LU of each other and of the engines here, from their first sentence on, and nothing clips', { timeout: 120_000 }, async (t) => {
    const here = loudness((await h.as({ 'x-api-key': key })('POST', '/sdk/tts', { text: story[0], provider: 'espeak_local', voice: 'en-us' })).bytes), levels = { here: [here] };
    for (const [kind, voice] of [['openai-own', 'nova'], ['elevenlabs', '21m00Tcm4TlvDq8ikWAM']])
        for (const decibels of [-36, -20, -0.1]) {
            const name = `level-${kind}${decibels}`.replace('.', '');
            await addSpeech(h, await speechDouble(t, kind, { sound: voiceAt(decibels) }), name);
            levels[name] = [];
            for (const input of story) {
                const bytes = await liveWav(`${name}/${voice}`, input);
                levels[name].push(loudness(bytes));
                assert.ok(truePeak(bytes) <= -0.9, `${name}: a true peak of ${truePeak(bytes)} dB`);
            }
        }
    t.diagnostic(JSON.stringify(levels));
    const all = Object.values(levels).flat();
    assert.ok(Math.max(...all) - Math.min(...all) <= 3, JSON.stringify(levels));
});

test('a voice that changes its level by 12 dB is brought back within the sentence', { timeout: 120_000 }, async (t) => {
    for (const [name, first, second] of [['softer', -6, -18], ['louder', -18, -6]]) {
        let decibels = first;
        await addSpeech(h, await speechDouble(t, 'openai-own', { sound: (text) => voiceAt(decibels)(text) }), name);
        const before = loudness(await liveWav(`${name}/nova`, story[0]));
        decibels = second;
        const bytes = await liveWav(`${name}/nova`, story[1]), changed = loudness(bytes);
        t.diagnostic(`${name}: ${before}, then ${changed} LUFS`);
        assert.ok(Math.abs(changed - before) <= 4 && truePeak(bytes) <= -0.9, `${before}, then ${changed} LUFS, ${truePeak(bytes)} dB`);
    }
});
