// Live sound and providers over HTTP: they hear recordings, so the sound goes to them when it has ended.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startHearth, until } from '../api/harness.mjs';
import { newKey, refused, speechWorkers } from '../api/kit.mjs';
import { fileMicrophone, silence, spoken } from '../api/microphone.mjs';
import { addSpeech, parts, speechDouble } from './speech_double.mjs';

const mic = fileMicrophone();
const voice = spoken('Please open the window.');
const heard = 'please open the window and turn on the light';       // what the double says to everything

test('a provider hears what the microphone recorded, and a silent one is not asked', async (t) => {
    const h = await startHearth({ t, env: mic.env });
    const { call, key } = await newKey(h), double = await speechDouble(t, 'openai');
    await addSpeech(h, double, 'house');
    mic.plays(silence(0.5), voice, silence(20));
    const { status, body, text } = await call('POST', '/sdk/stt/listen', { provider: 'house', language: 'en', keep: true });
    assert.equal(status, 200, text);
    assert.equal(body.text, heard);
    const { file: [{ data }] } = parts(double.asked.find(({ url }) => url.endsWith('/transcriptions')));
    assert.deepEqual([data.toString('latin1', 0, 4), (data.length - 44) / 32000], ['RIFF', body.duration]);
    assert.ok(body.duration < 6, `${body.duration} s: silence ends it as with every engine`);
    const stream = await h.sse('/sdk/stt/listen', { method: 'POST', headers: { 'x-api-key': key, accept: 'text/event-stream' }, body: { provider: 'house' } });
    assert.equal((await stream.next(({ event }) => event === 'final')).json.text, heard);
    const held = mic.holds(), asked = double.asked.length;
    assert.equal((await call('POST', '/sdk/stt/listen', { provider: 'house', timeout: 200 })).body.text, '');
    assert.equal(double.asked.length, asked);
    held.leaves();
    mic.plays(silence(10));
    assert.deepEqual((await call('POST', '/sdk/stt/listen', { provider: 'house', timeout: 5000 })).body, { success: true, text: '', duration: 5 });
    assert.equal(double.asked.length, asked);
    await until(() => speechWorkers(h).length === 0, { what: 'no worker is left' });
});

test('a provider that fails says so when the sound has ended, and the microphone is free again', async (t) => {
    const h = await startHearth({ t, env: mic.env });
    const { call } = await newKey(h), double = await speechDouble(t, 'openai', { change: (request, outgoing) => request.url.endsWith('/transcriptions') && Boolean(outgoing.writeHead(500).end('{}')) });
    await addSpeech(h, double, 'house');
    mic.plays(silence(0.5), voice, silence(20));
    assert.ok((await call('POST', '/sdk/stt/listen', { provider: 'house' })).status >= 500);
    assert.equal((await call('POST', '/sdk/stt/listen', { timeout: 100 })).status, 200);
    refused(await call('POST', '/sdk/stt/listen', { provider: 'nobody' }), 400, 'VALIDATION_ERROR');
});

test('a session sends its sound to the provider when it ends', async (t) => {
    const h = await startHearth({ t });
    const double = await speechDouble(t, 'openai');
    await addSpeech(h, double, 'house');
    const { path } = (await (await newKey(h)).call('POST', '/sdk/stt/sessions', { provider: 'house', rate: 16000 })).body;
    const socket = new WebSocket(`${h.url.replace('http', 'ws')}${path}`), messages = [];
    socket.onmessage = ({ data }) => messages.push(JSON.parse(data));
    socket.onopen = () => {
        for (let at = 0; at < voice.length; at += 32000)
            socket.send(voice.subarray(at, at + 32000));
        socket.send('{"type":"end"}');
    };
    await new Promise((done) => { socket.onclose = done; });
    assert.deepEqual([messages[0].type, messages.at(-1)], ['ready', { type: 'final', text: heard, duration: voice.length / 32000 }]);
    assert.ok(messages.slice(1, -1).every(({ type, text }) => type === 'partial' && heard.startsWith(text)));
    const { file: [{ data }] } = parts(double.asked.find(({ url }) => url.endsWith('/transcriptions')));
    assert.deepEqual(data.subarray(44), voice);
});
