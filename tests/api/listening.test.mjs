// Listening to the microphone: what flite says into ALSA's file device, PocketSphinx hears.
import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { test } from 'node:test';
import { sharedHearth, startHearth, until } from './harness.mjs';
import { admin, changes, isAlive, newApp, newKey, refused, refusedFields, speechWorkers } from './kit.mjs';
import { wordErrorRate, wordsOf } from './sound.mjs';
import { fileMicrophone, noise, silence, spoken } from './microphone.mjs';

const mic = fileMicrophone();
const shared = sharedHearth({ env: mic.env });
const order = 'Please open the window and turn on the light.';
const voice = spoken(order);

const sentences = [order, 'The weather is very nice today.', 'She went to the market to buy some fresh bread.', 'We will meet again on Monday morning at nine.', 'My brother works in a large hospital.',
    'Can you tell me the way to the station?', 'He read a book about the history of music.', 'The children are playing in the garden.', 'I would like a cup of coffee and a piece of cake.', 'The train leaves in ten minutes.'];

// What is said at length is heard for minutes where other suites have the processors.
const listen = (call, body = {}) => call('POST', '/sdk/stt/listen', body, undefined, { timeoutMs: 600_000 });
const stream = (h, key, body = {}) => h.sse('/sdk/stt/listen', { method: 'POST', headers: { 'x-api-key': key, accept: 'text/event-stream' }, body });
const worker = (h, name) => speechWorkers(h).find((one) => one.name.endsWith(name))?.pid;
const nobodyIsLeft = (h) => until(() => !worker(h, 'ears') && !worker(h, 'microphone'), { what: 'no worker is left' });

test('what is said is heard, and silence ends listening', async (t) => {
    const h = await shared(t);
    mic.plays(silence(0.5), voice, silence(30));
    const { status, body, text } = await listen((await newKey(h)).call);
    assert.equal(status, 200, text);
    assert.equal(body.text, 'please open the window and turn on the light');
    const said = voice.length / 32000;
    assert.ok(body.duration > said && body.duration < said + 4, `${body.duration} s of ${said}`);
    assert.deepEqual(Object.keys(body).sort(), ['duration', 'success', 'text']);
});

test('the time to listen is counted in samples; silence and noise give an empty text', async (t) => {
    const h = await shared(t);
    const { call } = await newKey(h);
    for (const [sound, timeout] of [[silence(5), 1500], [noise(5), 2000], [silence(5), 1]]) {
        mic.plays(sound);
        const { status, body, text } = await listen(call, { timeout });
        assert.deepEqual([status, body.text, body.duration], [200, '', timeout / 1000], text);
    }
});

test('ten sentences are heard with at most one wrong word in ten', async (t) => {
    const h = await shared(t);
    const said = sentences.join(' ');
    mic.plays(silence(0.5), spoken(said), silence(5));
    const { body, text } = await listen((await newKey(h)).call);
    const rate = wordErrorRate(wordsOf(said), wordsOf(body.text ?? text));
    assert.ok(rate <= 0.1, `${rate}: ${body.text}`);
});

test('a bang is no voice, so that listening goes on to what is said after it', async (t) => {
    const h = await shared(t);
    mic.plays(silence(1), noise(0.2, 12000), silence(4), voice, silence(10));
    const { body } = await listen((await newKey(h)).call);
    assert.match(body.text, /please open the window and turn on the light$/);
    mic.plays(silence(1), noise(0.2, 12000), silence(30));
    assert.equal((await listen((await newKey(h)).call, { timeout: 10000 })).body.duration, 10);
});

test('speech is cut off where the time ends', async (t) => {
    const h = await shared(t);
    mic.plays(silence(0.5), voice, silence(30));
    const { body } = await listen((await newKey(h)).call, { timeout: 1800 });
    assert.equal(body.duration, 1.8);
    assert.match(body.text, /^please/);
    assert.doesNotMatch(body.text, /light/);
});

test('the clock ends listening when the microphone gives nothing', async (t) => {
    const h = await shared(t);
    const held = mic.holds();
    const { status, body, text } = await listen((await newKey(h)).call, { timeout: 300 });
    assert.deepEqual([status, body.text, body.duration], [200, '', 0], text);
    held.leaves();
});

test('a stream has partial results, then the final one', async (t) => {
    const h = await shared(t);
    mic.plays(silence(0.5), voice, silence(10));
    const { key } = await newKey(h);
    const heard = await stream(h, key);
    await heard.ended;
    const names = heard.events.map(({ event }) => event), texts = heard.events.map(({ json }) => json.text);
    assert.deepEqual([names.pop(), new Set(names)], ['final', new Set(['partial'])]);
    assert.ok(names.length > 3, `${names.length} partial results`);
    assert.equal(texts.at(-1), 'please open the window and turn on the light');
    assert.equal(texts.at(-2), texts.at(-1));
    assert.ok(texts[0].length < texts.at(-1).length / 2, texts[0]);
    assert.ok(heard.events.at(-1).json.duration > 2);
    refusedFields(await h.as({ 'x-api-key': key, accept: 'text/event-stream' })('POST', '/sdk/stt/listen', { provider: 'nobody' }), 'provider');
});

test('with phrases nothing else is heard', async (t) => {
    const h = await shared(t);
    const { call } = await newKey(h);
    mic.plays(silence(0.5), spoken('Close the door.'), silence(5));
    assert.equal((await listen(call, { phrases: 'open the window, close the door' })).body.text, 'close the door');
    assert.equal((await listen(call, { phrases: '#JSGF V1.0; grammar doors; public <order> = (open | close) the (door | window);' })).body.text, 'close the door');
    refusedFields(await listen(call, { phrases: 'xyzzy' }), 'phrases');
});

test('a recording is kept only when the request asks for it, in the folder of its app', async (t) => {
    const h = await shared(t);
    const call = h.asApp(await newApp(h, {}, ['stt.listen']));
    const { dataDir } = (await call('GET', '/sdk/local-apps/data-dir')).body;
    mic.plays(silence(0.5), spoken('Hello.'), silence(5));
    assert.equal((await listen(call, { keep: false })).status, 200);
    assert.deepEqual(readdirSync(dataDir), []);
    const { body } = await listen(call, { keep: true });
    assert.deepEqual(readdirSync(dataDir).map((name) => `${dataDir}/${name}`), [body.path]);
    const wav = readFileSync(body.path);
    assert.deepEqual([wav.toString('latin1', 0, 4), wav.readUInt32LE(24), (wav.length - 44) / 32000], ['RIFF', 16000, body.duration]);
    assert.equal((await h.asApp(await newApp(h, {}, ['stt.transcribe']))('POST', '/sdk/stt/transcribe', wav)).status, 200);
});

test('one request at a time has the microphone, and the person sees who', async (t) => {
    const h = await startHearth({ t, env: mic.env });
    const app = await newApp(h, { display_name: 'Notebook' }, ['stt.listen']), events = await changes(t, h);
    const held = mic.holds();
    const first = listen(h.asApp(app), { timeout: 60000 });
    const opened = await events.next(({ event }) => event === 'microphone');
    assert.deepEqual(opened.json, { status: 'open', caller: `app:${app}`, app_id: app, app_name: opened.json.app_name });
    assert.ok(opened.json.app_name);
    refused(await listen((await newKey(h)).call), 409, 'MICROPHONE_BUSY');
    await held.says(Buffer.concat([silence(0.3), spoken('Hello.'), silence(1.5)]));
    assert.equal((await first).status, 200);
    assert.equal((await events.next(({ event }) => event === 'microphone')).json.status, 'closed');
    await h.logged(/"app:[^"]+" opened the microphone/);
    await h.logged(/"app:[^"]+" closed the microphone/);
    mic.plays(silence(1));
    assert.equal((await listen((await newKey(h)).call, { timeout: 500 })).status, 200);
    await nobodyIsLeft(h);
    held.leaves();
});

test('a client that leaves closes the microphone, whenever it does', async (t) => {
    const h = await startHearth({ t, env: mic.env });
    const { key } = await newKey(h), held = mic.holds();
    const phases = {
        'before the engine is ready': () => {},
        'while the microphone opens': () => until(() => worker(h, 'ears')),
        'while nothing is said': () => until(() => worker(h, 'microphone')),
        'while somebody speaks': async (begun) => {
            await until(() => worker(h, 'microphone'));
            await held.says(voice.subarray(0, 60000));
            await (await begun).next(({ event }) => event === 'partial');
        },
    };
    for (const [phase, reached] of Object.entries(phases)) {
        const abort = new AbortController();
        const whole = phase === 'while somebody speaks' ? null : fetch(`${h.url}/sdk/stt/listen`, { method: 'POST', headers: { 'x-api-key': key, 'content-type': 'application/json' }, body: '{}', signal: abort.signal }).catch(() => null);
        const begun = whole ? null : stream(h, key);
        await reached(begun);
        if (whole)
            abort.abort();
        else
            (await begun).close();
        await whole;
        await nobodyIsLeft(h);
        await until(async () => (await listen(h.as({ 'x-api-key': key }), { phrases: 'xyzzy' })).status === 400, { what: `the microphone is free, ${phase}` });
    }
    held.leaves();
});

test('a service that stops, or is killed, closes the microphone', async (t) => {
    const h = await startHearth({ t, env: mic.env });
    const { call } = await newKey(h), held = mic.holds();
    for (const end of [() => h.terminate(), () => h.kill()]) {
        const events = await changes(t, h), broken = listen(call).catch(() => ({ status: 0 }));
        await events.next(({ json }) => json.status === 'open');
        const pids = speechWorkers(h).map(({ pid }) => pid);
        assert.equal(pids.length, 2);
        await end();
        assert.notEqual((await broken).status, 200);
        await until(() => !pids.some(isAlive), { what: 'no worker is left' });
        await h.start();
    }
    held.leaves();
});

test('a worker that crashes fails its request only', async (t) => {
    const h = await startHearth({ t, env: mic.env });
    const { call } = await newKey(h), events = await changes(t, h), held = mic.holds();
    for (const name of ['microphone', 'ears']) {
        const broken = listen(call);
        await events.next(({ json }) => json.status === 'open');
        process.kill(worker(h, name), 'SIGSEGV');
        refused(await broken, 502, 'SPEECH_FAILED');
        await nobodyIsLeft(h);
    }
    held.leaves();
    mic.plays(silence(2));
    assert.equal((await listen(call, { timeout: 1000 })).status, 200);
});

test('without a microphone the answer and the doctor say so', async (t) => {
    const h = await startHearth({ t });
    const { call } = await newKey(h), choose = (value) => admin(h, 'PUT', '/api/settings/speech.microphone', { value });
    await choose('hw:77');
    const { error } = refused(await listen(call), 503, 'NO_AUDIO_DEVICE');
    assert.match(String(error), /hw:77/);
    const { checks } = await admin(h, 'GET', '/api/doctor');
    const [check] = checks.filter(({ name }) => name === 'microphone');
    assert.deepEqual([check.ok, /speech\.microphone/.test(check.advice)], [true, true]);
    await choose('é'.repeat(128));                          // 256 bytes
    refused(await listen(call), 503, 'NO_AUDIO_DEVICE');
    refused(await h.socket('PUT', '/api/settings/speech.microphone', { value: 'a'.repeat(257) }), 400, 'BAD_SETTING');
    refused(await h.socket('PUT', '/api/settings/speech.silence_ms', { value: 10_001 }), 400, 'BAD_SETTING');
    await choose('null');
    assert.deepEqual((await listen(call, { timeout: 1000 })).body, { success: true, text: '', duration: 1 });
    await nobodyIsLeft(h);
});

test('without the workers the answer names the packages', async (t) => {
    const h = await startHearth({ t, env: mic.env, settings: { 'speech.folder': '/nonexistent' } });
    refused(await listen((await newKey(h)).call), 503, 'SPEECH_UNAVAILABLE');
});

test('what a request asks for is checked before anything is opened', async (t) => {
    const h = await shared(t);
    const { call } = await newKey(h);
    for (const [body, field] of [[{ timeout: 0 }, 'timeout'], [{ timeout: 600001 }, 'timeout'], [{ timeout: '5' }, 'timeout'], [{ provider: 'nobody' }, 'provider'], [{ model: 'large' }, 'model'], [{ language: 'de' }, 'language'], [{ keep: 'yes' }, 'keep']])
        refusedFields(await listen(call, body), field);
    mic.plays(silence(1));
    assert.equal((await listen(call, { timeout: 600000, provider: 'pocketsphinx_local', model: 'en-us', language: 'en-US' })).status, 200);
    assert.equal((await call('POST', '/api/sdk/stt/listen')).status, 200);
});

test('an app needs the permission stt.listen, whose question names the microphone', async (t) => {
    const h = await shared(t);
    refused(await listen(h.asApp(await newApp(h, {}, ['stt.transcribe']))), 403, 'PERMISSION_REQUIRED');
    const { permissions } = await admin(h, 'GET', '/api/permissions/known');
    assert.equal(permissions.find(({ name }) => name === 'stt.listen').asks, 'listen to your microphone');
});
