// Push-to-talk: sound over a WebSocket of Node's own client, text back.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { Arrivals, sharedHearth, startHearth, until } from './harness.mjs';
import { isAlive, newApp, newKey, refused, refusedFields, speechWorkers, timeForm } from './kit.mjs';
import { noise, silence, spoken } from './microphone.mjs';
import { handshake } from './realtime.mjs';

const shared = sharedHearth();
const voice = spoken('Please open the window and turn on the light.');
// The place of a session that has just ended may not be free yet.
const session = async (call, body = {}) => {
    const reply = await until(async () => {
        const made = await call('POST', '/sdk/stt/sessions', body);
        return made.status === 429 ? null : made;
    }, { what: 'a place for a session' });
    assert.equal(reply.status, 201, reply.text);
    return reply.body;
};
const ears = (h) => speechWorkers(h).find(({ name }) => name.endsWith('ears'))?.pid;

// {messages, closed, say(samples), end()}: closed resolves with the code of the close frame.
async function talk(h, path) {
    const socket = new WebSocket(`${h.url.replace('http', 'ws')}${path}`);
    const messages = new Arrivals();
    socket.binaryType = 'arraybuffer';
    socket.addEventListener('message', ({ data }) => messages.push(JSON.parse(data)));
    const closed = new Promise((done) => socket.addEventListener('close', ({ code, reason }) => {
        messages.end('the socket ended');
        done({ code, reason });
    }));
    await new Promise((done, failed) => {
        socket.addEventListener('open', done);
        socket.addEventListener('error', () => failed(new Error('the WebSocket was refused')));
    });
    return {
        socket, messages, closed,
        say(samples, piece = 3200) {
            for (let at = 0; at < samples.length; at += piece)
                socket.send(samples.subarray(at, at + piece));
        },
        end: () => socket.send('{"type":"end"}'),
        next: (type) => messages.wait((m) => m.type === type, { what: type }),
    };
}

test('what is said is heard while it is said, and final at the end', async (t) => {
    const h = await shared(t);
    const { call, id: keyId } = await newKey(h), { path, id, rate, expires_at } = await session(call);
    assert.match(path, new RegExp(`^/sdk/stt/sessions/${id}/socket\\?token=[\\w-]{43}$`));
    assert.deepEqual([rate, timeForm.test(expires_at)], [16000, true]);
    const one = await talk(h, path);
    await one.next('ready');
    one.say(Buffer.concat([silence(0.3), voice, silence(0.2)]));
    await one.next('partial');
    one.end();
    const final = await one.next('final');
    assert.equal(final.text, 'please open the window and turn on the light');
    assert.ok(Math.abs(final.duration - 0.5 - voice.length / 32000) < 0.01);
    assert.equal((await one.closed).code, 1000);
    await until(() => !ears(h), { what: 'no worker is left' });
    const { usage: [counted] } = (await h.socket('GET', `/api/usage?group=kind&kind=hearing&key=${keyId}`)).body;
    assert.deepEqual([counted.requests, counted.audio_seconds.toFixed(1)], [1, final.duration.toFixed(1)]);
});

test('a session has the rate and the phrases it was created with; partial results can be left out', async (t) => {
    const h = await shared(t);
    const { call } = await newKey(h);
    const door = spoken('Close the door.');
    const at48 = spawnSync('sox', ['-t', 'raw', '-e', 'signed', '-b', '16', '-r', '16000', '-c', '1', '-', '-t', 'raw', '-r', '48000', '-'], { input: door, maxBuffer: 1 << 26 }).stdout;
    const one = await talk(h, (await session(call, { rate: 48000, phrases: 'open the window, close the door', partial: false })).path);
    one.say(Buffer.concat([silence(1), at48, silence(1)]), 65536);
    one.end();
    const { text, duration } = await one.next('final');
    assert.equal(text, 'close the door');
    assert.ok(Math.abs(duration - (at48.length + 64000) / 96000) < 0.01, `${duration} s`);
    assert.deepEqual(one.messages.items.map(({ type }) => type), ['ready', 'final']);
});

test('silence and noise give an empty text, and silence does not end a session', async (t) => {
    const h = await shared(t);
    const one = await talk(h, (await session((await newKey(h)).call)).path);
    one.say(Buffer.concat([noise(2), silence(5)]));
    one.end();
    const { text, duration } = await one.next('final');
    assert.deepEqual([text, duration], ['', 7]);
});

test('what a session asks for is checked', async (t) => {
    const h = await shared(t);
    const { call } = await newKey(h);
    for (const [body, field] of [[{ rate: 7999 }, 'rate'], [{ rate: 48001 }, 'rate'], [{ partial: 'no' }, 'partial'], [{ phrases: 7 }, 'phrases']])
        refusedFields(await call('POST', '/sdk/stt/sessions', body), field);
    for (const wrong of [{ provider: 'nobody' }, { model: 'large' }, { phrases: 'xyzzy' }]) {
        const one = await talk(h, (await session(call, wrong)).path);
        assert.equal((await one.next('error')).code, 'VALIDATION_ERROR');
        await one.closed;
    }
    refused(await h.asApp(await newApp(h, {}, ['stt.listen']))('POST', '/sdk/stt/sessions', {}), 403, 'PERMISSION_REQUIRED');
    const own = await h.asApp(await newApp(h, {}, ['stt.transcribe']))('POST', '/api/sdk/stt/sessions');
    assert.equal(own.status, 201);
    (await talk(h, `/api${own.body.path}`)).socket.close();
});

test('a token opens one socket, once', async (t) => {
    const h = await startHearth({ t });
    const { call } = await newKey(h);
    const { path, id } = await session(call);
    const upgrade = (to) => h.raw(`${handshake(h, to)}`, { quietMs: 300 });
    for (const wrong of [`/sdk/stt/sessions/${id}/socket`, `/sdk/stt/sessions/${id}/socket?token=${'a'.repeat(43)}`, path.replace(id, '00000000-0000-4000-8000-000000000000')])
        assert.match(await upgrade(wrong), /^HTTP\/1.1 40[04] /);
    refused(await call('GET', path), 426, 'UPGRADE_REQUIRED');
    const one = await talk(h, path);
    assert.match(await upgrade(path), /SPEECH_SESSION_NOT_FOUND/);
    one.end();
    await one.next('final');
    await one.closed;
    assert.match(await upgrade(path), /SPEECH_SESSION_NOT_FOUND/);
});

test('a caller has two sessions at most, all have four, and an ended one makes room', async (t) => {
    const h = await startHearth({ t });
    const callers = await Promise.all(Array.from({ length: 3 }, () => newKey(h)));
    const open = [];
    for (const { call } of [callers[0], callers[0], callers[1], callers[1]])
        open.push(await talk(h, (await session(call)).path));
    refused(await callers[0].call('POST', '/sdk/stt/sessions', {}), 429, 'TOO_MANY_SPEECH_SESSIONS');
    refused(await callers[2].call('POST', '/sdk/stt/sessions', {}), 429, 'TOO_MANY_SPEECH_SESSIONS');
    open[0].end();
    await open[0].closed;
    await until(async () => (await callers[2].call('POST', '/sdk/stt/sessions', {})).status === 201, { what: 'the place of the session that ended' });
    for (const one of open)
        one.socket.close();
});

test('a session that was not opened makes room for a new one of its caller', async (t) => {
    const h = await startHearth({ t });
    const { call } = await newKey(h);
    const [first, second, third] = [await session(call), await session(call), await session(call)];
    await assert.rejects(talk(h, first.path), /refused/);
    for (const { path } of [second, third]) {
        const one = await talk(h, path);
        one.end();
        await one.next('final');
    }
});

test('a message above a limit, half a sample and an unknown text end the session with the reason', async (t) => {
    const h = await shared(t);
    for (const [message, code, reason] of [[Buffer.alloc(65538), 1009, /65536 bytes/], [Buffer.alloc(3), 1008, /whole samples/], ['{"type":"begin"}', 1008, /"end"/], ['hello', 1008, /"end"/], [`{"type":"end","x":"${'a'.repeat(1024)}"}`, 1008, /"end"/]]) {
        const one = await talk(h, (await session((await newKey(h)).call)).path);
        one.socket.send(message);
        const { code: seen, reason: why } = await one.closed;
        assert.equal(seen, code, why);
        assert.match(why, reason);
    }
    const one = await talk(h, (await session((await newKey(h)).call)).path);
    one.socket.send(Buffer.alloc(65536));
    one.end();
    assert.equal((await one.next('final')).duration, 2.048);
});

test('a client that leaves ends the worker, and one that crashes ends its session only', async (t) => {
    const h = await startHearth({ t });
    const { call } = await newKey(h);
    const left = await talk(h, (await session(call)).path);
    await left.next('ready');
    const pid = ears(h);
    left.socket.close();
    await until(() => !isAlive(pid), { what: 'the worker is killed' });
    const crashed = await talk(h, (await session(call)).path);
    await crashed.next('ready');
    process.kill(ears(h), 'SIGSEGV');
    assert.equal((await crashed.next('error')).code, 'SPEECH_FAILED');
    await crashed.closed;
    const next = await talk(h, (await session(call)).path);
    next.end();
    assert.equal((await next.next('final')).text, '');
    await until(() => !ears(h), { what: 'no worker is left' });
});
