// An app that wants more speech than its person allows it: at once, by every route, by leaving, by texts that are kept.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startHearth, until } from '../api/harness.mjs';
import { admin, awayFromMidnight, changes, newApp, newKey, refused, residentKib, silentWav, speechWorkers } from '../api/kit.mjs';
import { encoded } from '../api/sound.mjs';
import { fileMicrophone, noise, silence } from '../api/microphone.mjs';
import { frame, handshake, openSocket } from '../api/realtime.mjs';

const permissions = ['tts.generate'];
const routes = [['/sdk/tts', 'text'], ['/sdk/tts/stream', 'text'], ['/v1/audio/speech', 'input']];
const ofApp = async (h, app) => (await admin(h, 'GET', `/api/usage?kind=speech&app=${app}`)).totals;

test('many requests at once get exactly what the limit allows, whichever route they take', async (t) => {
    await awayFromMidnight();
    const h = await startHearth({ t, settings: { 'speech.voices': 'en=espeak_local/en-us' } });
    const app = await newApp(h, {}, permissions), other = await newApp(h, {}, permissions);
    await admin(h, 'PUT', `/api/limits/apps/${app}`, { characters_a_day: 100 });
    const replies = await Promise.all(Array.from({ length: 30 }, (_, i) => {
        const [path, field] = routes[i % routes.length];
        return h.asApp(app)('POST', path, { [field]: `Ten digit ${i % 10}`.padEnd(20, '.') });
    }));
    const whole = replies.filter(({ status }) => status === 200), limited = replies.filter(({ status }) => status === 429);
    assert.deepEqual([whole.length, limited.length], [5, 25]);
    for (const { headers, body } of limited)
        assert.deepEqual([Number(headers['retry-after']) > 0, body.error.limit ?? body.limit], [true, 'characters_a_day']);
    const { requests, characters } = await ofApp(h, app);
    assert.deepEqual([requests, characters], [5, 100]);
    assert.equal((await h.asApp(other)('POST', '/sdk/tts', { text: 'Hello.' })).status, 200);
});

test('a client that leaves has used what it asked for, and a text that is kept counts again', async (t) => {
    await awayFromMidnight();
    const h = await startHearth({ t, settings: { 'speech.voices': 'en=espeak_local/en-us', 'limits.characters_a_day': 4000 } });
    const app = await newApp(h, {}, permissions);
    const stream = await h.sse('/sdk/tts/stream', { method: 'POST', headers: { 'x-app-id': app }, body: { text: 'One more sentence is here. '.repeat(140) } });
    await stream.next(({ event }) => event === 'chunk');
    stream.close();
    const call = h.asApp(app), text = 'Again and again. '.repeat(20);
    assert.equal((await call('POST', '/sdk/tts', { text })).status, 200);
    refused(await call('POST', '/sdk/tts', { text }), 429, 'RATE_LIMIT');
    refused(await call('POST', '/sdk/tts/stream', { text: 'x' }), 429, 'RATE_LIMIT');
    assert.ok((await ofApp(h, app)).characters >= text.length);
});

// ASan keeps little of what was freed, where memory is measured.
const thrifty = { ASAN_OPTIONS: 'detect_leaks=1:quarantine_size_mb=8' };

// Whole, such a text would take gigabytes in flite. The service's share is what it grows by: under ASan it is large from the start, and memory that was freed counts
// until it leaves ASan's quarantine.
for (const [provider, voice] of [['espeak_local', 'en-us'], ['flite_local', 'kal16']])
    test(`the longest text, spoken by ${provider}, comes from its start on and takes less than 200 MB of service and worker`, async (t) => {
        const h = await startHearth({ t, settings: { 'speech.cache_mb': 0 }, env: thrifty });
        const { key, call } = await newKey(h);
        assert.equal((await call('POST', '/sdk/tts', { text: 'Hello.', provider, voice })).status, 200);
        const used = () => residentKib(h.pid) + speechWorkers(h).reduce((sum, { pid }) => sum + residentKib(pid), 0), before = residentKib(h.pid);
        const text = 'All work and no play makes Jack a dull boy, as they say in the north of the country. '.repeat(300).slice(0, 20000);
        const stream = await h.sse('/sdk/tts/stream', { method: 'POST', headers: { 'x-api-key': key }, body: { text, provider, voice, speed: 2 } });
        const { json: { total } } = await stream.next(({ event }) => event === 'chunk');
        assert.ok(stream.events.length < total / 2, `${stream.events.length} of ${total} had come at the first one`);
        let most = 0;
        for (let i = 10; i < total; i += 10) {
            await stream.next(({ json }) => json?.index >= i);
            most = Math.max(most, used());
        }
        await stream.ended;
        assert.equal(stream.events.length, total + 2);
        t.diagnostic(`${most - before} KiB, and ${before} KiB of the idle service`);
        assert.ok(most - before < 200_000, `${most - before} KiB more than the ${before} of the idle service`);
    });

// espeak-ng obeys commands in a text: U+0001, a number, a letter (A amplitude, S speed, P pitch, R range, H echo, X, Y, F). Some of them last.
test("commands to espeak-ng in one caller's text change nobody's voice", async (t) => {
    const h = await startHearth({ t, settings: { 'speech.cache_mb': 0 } });
    const attacker = await newKey(h), other = await newKey(h), voice = { provider: 'espeak_local', voice: 'en-us' };
    const text = 'Please open the window and turn on the light.';
    const spoken = async (call, words) => {
        const { status, bytes } = await call('POST', '/sdk/tts', { text: words, ...voice, format: 'pcm' });
        assert.equal(status, 200, words);
        const samples = new Int16Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
        return { n: samples.length, level: Math.sqrt(samples.reduce((sum, x) => sum + x * x, 0) / samples.length),
            crossings: samples.reduce((n, x, i) => n + (x < 0 !== (samples[i - 1] ?? 0) < 0), 0) };
    };
    const about = (is, was, what) => assert.ok(Math.abs(is / was - 1) < 0.2, `${what}: ${is} after ${was}`);
    const before = await spoken(other.call, text), worker = speechWorkers(h).map(({ pid }) => pid);
    for (const commands of ['\u00010A', '\u0001400S\u000190P\u00010R', '\u000180H', '\u00014Y\u00019X\u000199F\u00011U', '\u0010\u0011\u001b\u007f\u0085']) {
        const own = await spoken(attacker.call, `${commands} ${text}`), after = await spoken(other.call, text);
        about(own.level, before.level, `level of ${JSON.stringify(commands)}`);
        for (const of of ['n', 'level', 'crossings'])
            about(after[of], before[of], `${of} after ${JSON.stringify(commands)}`);
    }
    assert.deepEqual(speechWorkers(h).map(({ pid }) => pid), worker);
});

// ---- the microphone ----

const mic = fileMicrophone();
const anApp = (h, ...permitted) => newApp(h, {}, permitted);

test('an app without the grant opens no microphone, and starts no worker', async (t) => {
    const h = await startHearth({ t, env: mic.env });
    const events = await changes(t, h), held = mic.holds();
    for (const permitted of [[], ['stt.transcribe'], ['tts.generate']])
        for (const accept of ['application/json', 'text/event-stream'])
            refused(await h.as({ 'x-app-id': await anApp(h, ...permitted), accept })('POST', '/sdk/stt/listen', {}), 403, 'PERMISSION_REQUIRED');
    refused(await h.api('POST', '/sdk/stt/listen', {}), 401, 'MISSING_APP_ID');
    assert.deepEqual(speechWorkers(h), []);
    assert.deepEqual(events.events.filter(({ event }) => event === 'microphone'), []);
    held.leaves();
});

test("a page of another site reaches neither the microphone nor a session's WebSocket", async (t) => {
    const h = await startHearth({ t, env: mic.env });
    const app = await anApp(h, 'stt.listen', 'stt.transcribe'), origin = 'https://example.org';
    mic.plays(silence(1));
    refused(await h.as({ 'x-app-id': app, origin })('POST', '/sdk/stt/listen', {}), 403, 'ORIGIN_NOT_ALLOWED');
    refused(await h.as({ 'x-app-id': app, origin })('POST', '/sdk/stt/sessions', {}), 403, 'ORIGIN_NOT_ALLOWED');
    const { path } = (await h.asApp(app)('POST', '/sdk/stt/sessions', {})).body;
    assert.match(await h.raw(handshake(h, path, { Origin: origin }), { quietMs: 200 }), /^HTTP\/1.1 403 [\s\S]+ORIGIN_NOT_ALLOWED/);
    assert.match(await h.raw(handshake(h, path, { Host: 'example.org' }), { quietMs: 200 }), /^HTTP\/1.1 (403|421) /);
    assert.deepEqual(speechWorkers(h), []);
    const own = await openSocket(h, { path });              // the token was not used up by them
    own.end();
});

test('of a flood of listeners one has the microphone, and no worker is started for the others', async (t) => {
    const h = await startHearth({ t, env: mic.env });
    const apps = await Promise.all(Array.from({ length: 3 }, () => anApp(h, 'stt.listen'))), events = await changes(t, h), held = mic.holds();
    const flood = Array.from({ length: 40 }, (_, i) => h.asApp(apps[i % apps.length])('POST', '/sdk/stt/listen', { timeout: 600_000 }));
    const statuses = [];
    flood.forEach(async (reply) => statuses.push((await reply).status));
    await until(() => statuses.length === flood.length - 1 && speechWorkers(h).length === 2, { what: 'all but one are refused' });
    assert.ok(statuses.every((status) => [409, 429, 503].includes(status)), String(statuses));
    assert.deepEqual(speechWorkers(h).map(({ name }) => name).sort(), ['hearth-speech-ears', 'hearth-speech-microphone']);
    await events.next(({ event }) => event === 'microphone');
    held.leaves();                                          // the device ends, and with it the one that listens
    await until(() => statuses.length === flood.length && speechWorkers(h).length === 0, { what: 'no worker is left' });
    assert.equal(statuses.filter((status) => status === 200).length, 1, String(statuses));
});

test('a flood of sessions, giant, endless and silent messages leave the service as it was', async (t) => {
    const h = await startHearth({ t, env: thrifty });
    const apps = await Promise.all(Array.from({ length: 2 }, () => anApp(h, 'stt.transcribe')));
    const create = async (app) => (await h.asApp(app)('POST', '/sdk/stt/sessions', {})).body?.path;
    const tickets = await Promise.all(Array.from({ length: 60 }, (_, i) => create(apps[i % 2])));
    const opened = await Promise.all(tickets.map((path) => (path ? openSocket(h, { path }).catch(() => null) : null)));
    const sockets = opened.filter(Boolean);
    assert.equal(sockets.length, 4);
    await until(() => speechWorkers(h).length === 4, { what: 'an engine for each' });
    const [giant, endless, quiet, gone] = sockets, before = residentKib(h.pid);
    giant.write(frame(2, Buffer.alloc(4_000_000)));
    for (let i = 0; i < 1100; i++)                          // fragments that never end a message
        endless.write(frame(i ? 0 : 2, Buffer.alloc(16), { fin: false }));
    assert.equal((await giant.ended).code, 1009);
    assert.ok([1002, 1008, 1009].includes((await endless.ended)?.code));
    gone.end();
    await until(() => speechWorkers(h).length <= 1, { what: 'the workers of those that are gone have ended' });   // the quiet one has 10 s
    assert.ok(residentKib(h.pid) - before < 64 * 1024);
    const final = await quiet.frames.wait(({ opcode, payload }) => opcode === 1 && JSON.parse(payload).type === 'final', { what: 'the end of a session in which nothing is sent' });
    assert.equal(JSON.parse(final.payload).text, '');
    await until(() => speechWorkers(h).length === 0, { what: 'no worker is left' });
    assert.ok(await create(apps[0]));
});

test('a client that sends on and on, and does not read, is heard for ten minutes of sound', async (t) => {
    const h = await startHearth({ t, env: thrifty });
    const { path } = (await h.asApp(await anApp(h, 'stt.transcribe'))('POST', '/sdk/stt/sessions', { rate: 8000 })).body;
    const socket = await openSocket(h, { path }), before = residentKib(h.pid), piece = frame(2, noise(2.048));   // 65536 bytes: 4.096 s at this rate
    socket.tcp.pause();
    for (let n = 0; n < 160 && !socket.tcp.destroyed; n++)
        if (!socket.tcp.write(piece))
            await Promise.race(['drain', 'close', 'error'].map((event) => new Promise((done) => socket.tcp.once(event, done))));
    assert.ok(residentKib(h.pid) - before < 64 * 1024);
    socket.tcp.resume();
    const final = await socket.frames.wait(({ opcode, payload }) => opcode === 1 && JSON.parse(payload).type === 'final', { what: 'the result' });
    assert.equal(JSON.parse(final.payload).duration, 600);
    socket.end();
    await until(() => speechWorkers(h).length === 0, { what: 'no worker is left' });
});

// Damage by a seed, so that what fails fails again.
function damaged(bytes, seed) {
    const made = Buffer.from(bytes);
    let state = seed * 2654435761 >>> 0;
    const next = (n) => { state = (Math.imul(state, 1664525) + 1013904223) >>> 0; return Math.floor(state / 2 ** 32 * n); };
    for (let i = 0; i < 1 + seed % 7 * 3; i++)
        made[next(i % 2 ? 400 : made.length)] = [0, 0xff, 0x7f, 0x80, next(256)][next(5)];
    return seed % 3 ? made : made.subarray(0, next(made.length));
}

test('recordings made to break their reader, and lists of files instead of recordings, harm nobody', async (t) => {
    const h = await startHearth({ t });
    const { call } = await newKey(h);
    const hear = (bytes) => call('POST', '/sdk/stt/transcribe', bytes);
    const sources = [silentWav, encoded(silentWav, 'a.webm', '-c:a', 'libopus'), encoded(silentWav, 'a.m4a'), encoded(silentWav, 'a.ogg'), encoded(silentWav, 'a.flac')];
    for (let seed = 0; seed < 12; seed += 2)
        for (const { status, text } of await Promise.all([seed, seed + 1].map((i) => hear(damaged(sources[i % sources.length], i)))))
            assert.ok([200, 400, 413, 502].includes(status), `${status}: ${text}`);
    for (const list of ['#EXTM3U\nfile:///etc/passwd\n', 'ffconcat version 1.0\nfile /etc/passwd\n', 'v=0\no=- 0 0 IN IP4 127.0.0.1\n', 'concat:/etc/passwd'])
        refused(await hear(list), 400, 'AUDIO_UNREADABLE');
    await until(() => speechWorkers(h).length === 0, { what: 'no worker is left' });
    assert.equal((await hear(silentWav)).status, 200);
});
