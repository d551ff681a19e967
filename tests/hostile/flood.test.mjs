// Programs that take all they can get: connections, silent bodies, slow heads, unread answers, waiting requests, streams. Each asserts that
// other callers and the administrator are served meanwhile, and that the flooder is told which budget it has used up.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { startHearth, until } from '../api/harness.mjs';
import { decide, insert, newApp, refused, shellAgent, signIn } from '../api/kit.mjs';
import { converse, hostileServer } from './kit.mjs';

const MiB = 1024 * 1024;
// What is meant is two seconds; a machine that runs the other suites at the same time may take longer, and what waits behind a flood takes a minute.
// A slow machine has as much longer as its `hearth doctor` takes without a flood, and never half a minute.
let soonMs = 10_000;
before(async () => {
    const h = await startHearth(), began = performance.now();
    await h.cli('doctor');
    soonMs = Math.min(Math.max(soonMs, 5 * (performance.now() - began)), 30_000);
    await h.stop();
});
const openFiles = Number(execFileSync('/bin/sh', ['-c', 'ulimit -n'], { encoding: 'utf8' })) || 1024;

async function soon(t, what, work) {
    const began = performance.now();                        // the machine's clock may be set meanwhile
    const result = await work();
    const tookMs = Math.round(performance.now() - began);
    t.diagnostic(`${what}: ${tookMs} ms`);
    assert.ok(tookMs < soonMs, `${what} took ${tookMs} ms`);
    return result;
}

const closeAll = (t, sockets) => t.after(() => sockets.forEach((socket) => socket.destroy()));

// A provider of models that takes every request and never answers; h has it as its only one.
async function startWithSilentProvider(t, settings = {}) {
    const silent = await hostileServer(t, () => {});
    const h = await startHearth({ t, settings, env: { GENERIC_OPENAI_BASE_URL: `${silent.url}/v1`, GENERIC_OPENAI_MODEL: 'any', LOCALAI_BASE_URL: `${silent.url}/v1` } });
    return { h, silent };
}

const chatBody = JSON.stringify({ messages: [{ role: 'user', content: 'hello' }] });
const chat = (app, path = '/sdk/llm/chat') =>
    `POST ${path} HTTP/1.1\r\nhost: localhost\r\nx-app-id: ${app}\r\ncontent-type: application/json\r\ncontent-length: ${chatBody.length}\r\n\r\n${chatBody}`;

// Of a provider whose model is known: nothing is asked before the chat itself.
const namedBody = JSON.stringify({ messages: [{ role: 'user', content: 'hello' }], provider: 'generic-openai' });
const namedChat = (app) =>
    `POST /sdk/llm/chat HTTP/1.1\r\nhost: localhost\r\nx-app-id: ${app}\r\ncontent-type: application/json\r\ncontent-length: ${namedBody.length}\r\n\r\n${namedBody}`;

// Waits for its provider on a thread, unlike a chat.
const embedBody = JSON.stringify({ input: 'hello', provider: 'localai', model: 'any' });
const embedding = (app) =>
    `POST /sdk/llm/embed HTTP/1.1\r\nhost: localhost\r\nx-app-id: ${app}\r\ncontent-type: application/json\r\ncontent-length: ${embedBody.length}\r\n\r\n${embedBody}`;

// Opens n connections that send `bytes` and read nothing but their first answer; those refused at once are in `refusals`.
async function flood(t, h, n, bytes) {
    const sockets = [];
    const refusals = [];
    closeAll(t, sockets);
    for (let i = 0; i < n; i++) {
        const socket = net.connect(h.port, '127.0.0.1');
        let text = '';
        sockets.push(socket);
        socket.on('error', () => {});
        socket.on('data', (piece) => {
            text += piece.toString('latin1');
            const status = Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1]);
            if (status >= 400 && text.includes('}') && !refusals.some((refusal) => refusal.socket === socket))
                refusals.push({ socket, status, text });
        });
        await Promise.race([once(socket, 'connect'), once(socket, 'close')]).catch(() => {});
        if (bytes && !socket.destroyed)
            socket.write(typeof bytes === 'function' ? bytes(i) : bytes);
    }
    return { sockets, refusals };
}

function named(refusal, status, budget) {
    assert.equal(refusal.status, status, refusal.text);
    assert.match(refusal.text, new RegExp(`"budget":"${budget}"|\`${budget}\``));
    assert.match(refusal.text, /retry-after: \d/i);
}

async function theAdministratorIsServed(t, h) {
    const doctor = await soon(t, 'hearth doctor', () => h.cli('doctor'));
    assert.match(doctor.stdout, /store/);
    assert.equal((await soon(t, 'the socket', () => h.socket('GET', '/api/keys'))).status, 200);
    return doctor;
}

test('silent connections beyond the maximum give way; others and the administrator are served', async (t) => {
    const most = openFiles >= 18_000 ? 8192 : 512;
    if (openFiles < 2 * most + 200)
        return t.skip(`needs ${2 * most + 200} open files, this machine allows ${openFiles}`);
    const h = await startHearth({ t, settings: { 'http.max_connections': most } });
    const key = await h.asKey();
    const { sockets, refusals } = await flood(t, h, most + 108);
    assert.equal((await soon(t, 'a key', () => key('GET', '/sdk/ping'))).status, 200);
    await theAdministratorIsServed(t, h);
    await until(() => refusals.length >= 100, { what: 'those that gave way are told' });
    refusals.forEach((refusal) => named(refusal, 503, 'connections'));
    assert.ok(sockets.length > most);
});

test('half heads, as many as there are connections, keep nobody out', async (t) => {
    const h = await startHearth({ t, settings: { 'http.max_connections': 100 } });
    const key = await h.asKey();
    await flood(t, h, 130, 'GET /sdk/ping HTTP/1.1\r\nhost: local');
    assert.equal((await soon(t, 'a key', () => key('GET', '/sdk/ping'))).status, 200);
    await theAdministratorIsServed(t, h);
});

test('when descriptors are out, the socket still accepts', async (t) => {
    const h = await startHearth({ t });
    const nobody = await flood(t, h, 40);
    execFileSync('prlimit', [`--pid=${h.pid}`, '--nofile=64:']);
    await flood(t, h, 40, 'GET /healthz HTTP/1.1\r\nhost: local');
    assert.equal((await soon(t, 'the socket', () => h.socket('GET', '/healthz'))).status, 200);
    nobody.sockets.forEach((socket) => socket.destroy());
    execFileSync('prlimit', [`--pid=${h.pid}`, '--nofile=1000:']);
});

test('connections, waiting requests and silent uploads at once: the doctor and a consent answer come soon', async (t) => {
    const { h, silent } = await startWithSilentProvider(t, { 'http.max_connections': 1500 });
    const apps = [];
    for (let i = 0; i < 5; i++)
        apps.push(await newApp(h, {}, ['llm.chat', 'llm.embed']));
    const { call: browser } = await signIn(h);
    assert.equal((await browser('GET', '/api/permissions/pending')).status, 200);
    for (const app of apps)
        await flood(t, h, 130, embedding(app));
    await until(() => silent.sockets.length >= 256, { what: 'all threads wait' });
    await flood(t, h, 12, (i) => `POST /sdk/llm/chat HTTP/1.1\r\nhost: localhost\r\nx-app-id: ${apps[i % 5]}\r\ncontent-length: ${32 * MiB}\r\n\r\n{`);
    const key = await h.asKey();
    await flood(t, h, 900);
    await theAdministratorIsServed(t, h);
    const answer = await soon(t, 'the browser answers a question', () => browser('POST', '/api/permissions/decide', { app_id: apps[0], permissions: ['api.agents'], allow: true }));
    assert.equal(answer.status, 200, answer.text);
    assert.equal((await soon(t, 'a key', () => key('POST', '/activities', { raw_data: {} }))).status, 201);
});

test('one app\'s hanging requests are refused by name beyond its share, and other apps are served', async (t) => {
    const { h, silent } = await startWithSilentProvider(t);
    const [greedy, other] = [await newApp(h, {}, ['llm.embed']), await newApp(h)];
    const { refusals } = await flood(t, h, 540, embedding(greedy));
    await until(() => refusals.length >= 540 - 128, { what: 'what is above the share is refused' });
    refusals.forEach((refusal) => named(refusal, 429, 'long_requests'));
    assert.ok(silent.sockets.length <= 128, `${silent.sockets.length} wait`);
    const asking = h.api('POST', '/api/local-apps/request-permission', { app_id: other, permission: 'api.agents' });
    await soon(t, 'another app\'s question', () => until(async () => (await h.socket('GET', '/api/permissions/pending')).body.pending.length > 0, { what: 'it is shown' }));
    await soon(t, 'the answer to it', () => decide(h, other, 'api.agents'));
    assert.equal((await soon(t, 'another app', () => asking)).body.granted, true);
    const doctor = await theAdministratorIsServed(t, h);
    assert.match(doctor.stdout, /128 of 128 requests that wait/);
    const { text } = await h.socket('GET', '/metrics');
    assert.match(text, /hearth_budget_refused_total\{budget="long_requests",limit="caller"\} [1-9]/);
});

test('one app\'s chats that wait hold no thread, and are refused by name beyond its share', async (t) => {
    const { h, silent } = await startWithSilentProvider(t, { 'limits.open_requests': 300 });
    const [greedy, other] = [await newApp(h, {}, ['llm.chat']), await newApp(h, {}, ['activities.write'])];
    const { refusals } = await flood(t, h, 400, namedChat(greedy));
    await until(() => refusals.length === 100 && silent.sockets.length === 300, { what: 'what is above the share is refused' });
    refusals.forEach((refusal) => named(refusal, 429, 'requests'));
    const { text } = await h.socket('GET', '/metrics');
    assert.match(text, /hearth_pool_busy\{pool="long"\} 0\n/);
    assert.equal((await soon(t, 'another app', () => h.asApp(other)('POST', '/activities', { raw_data: {} }))).status, 201);
});

test('announced bodies hold nothing, and silent ones are ended', async (t) => {
    const { h } = await startWithSilentProvider(t, { 'http.body_timeout_s': 2 });
    const [silent, other] = [await newApp(h, {}, ['llm.embed']), await newApp(h, {}, ['llm.embed'])];
    const upload = `POST /sdk/llm/embed HTTP/1.1\r\nhost: localhost\r\nx-app-id: ${silent}\r\ncontent-length: ${32 * MiB}\r\n\r\n{`;
    const { refusals } = await flood(t, h, 60, upload);
    const texts = Array.from({ length: 64 }, () => 'word '.repeat(2000));
    const reply = await soon(t, 'another app\'s body', () => h.asApp(other)('POST', '/sdk/llm/embed', { input: texts, provider: 'builtin' }));
    assert.notEqual(reply.status, 503, reply.text);
    assert.notEqual(reply.status, 429, reply.text);
    await until(() => refusals.length === 60, { what: 'the silent ones are ended' });
    assert.ok(refusals.every(({ status }) => status === 408));
});

test('bodies above one app\'s budget are refused by name while another app\'s are taken', async (t) => {
    const { h } = await startWithSilentProvider(t, { 'limits.body_mb': 8 });
    const [greedy, other] = [await newApp(h, {}, ['llm.chat']), await newApp(h, {}, ['activities.write'])];
    const piece = Buffer.alloc(3 * MiB, ' ');
    const head = `POST /sdk/llm/chat HTTP/1.1\r\nhost: localhost\r\nx-app-id: ${greedy}\r\ncontent-length: ${32 * MiB}\r\n\r\n`;
    const { refusals } = await flood(t, h, 6, Buffer.concat([Buffer.from(head), piece]));
    await until(() => refusals.length > 0, { what: 'one is refused' });
    refusals.forEach((refusal) => named(refusal, 429, 'body'));
    const reply = await soon(t, 'another app', () => h.asApp(other)('POST', '/activities', { raw_data: { text: 'x'.repeat(2 * MiB) } }));
    assert.equal(reply.status, 201, reply.text);
    await theAdministratorIsServed(t, h);
});

test('unread answers count, and the app that leaves them is refused by name', async (t) => {
    const h = await startHearth({ t, settings: { 'limits.replies_mb': 4 } });
    const [greedy, other] = [await newApp(h, {}, ['activities.read', 'activities.write']), await newApp(h, {}, ['activities.read'])];
    for (let i = 0; i < 8; i++)
        await insert(h.asApp(greedy), { text: 'x'.repeat(3 * MiB) });
    const unread = [];
    closeAll(t, unread);
    const call = h.asApp(greedy);
    for (let i = 0; i < 4; i++) {
        const socket = net.connect({ port: h.port, host: '127.0.0.1' }).on('error', () => {});
        await once(socket, 'connect');
        socket.pause();
        socket.write(`GET /activities?limit=8 HTTP/1.1\r\nhost: localhost\r\nx-app-id: ${greedy}\r\n\r\n`);
        unread.push(socket);
    }
    const reply = await until(async () => {
        const answer = await call('GET', '/activities?limit=1');
        return answer.status === 429 && answer;
    }, { what: 'the reader of nothing is refused' });
    refused(reply, 429, 'BUDGET_EXCEEDED');
    assert.equal(reply.body.budget, 'replies');
    assert.equal((await soon(t, 'another app', () => h.asApp(other)('GET', '/activities?limit=1'))).status, 200);
    unread.forEach((socket) => socket.destroy());
    await until(async () => (await call('GET', '/activities?limit=1')).status === 200, { what: 'the budget is free again' });
});

test('requests for streams above one app\'s budget are refused by name', async (t) => {
    const { h, silent } = await startWithSilentProvider(t, { 'limits.streams': 5, 'limits.open_requests': 8 });
    const [greedy, other] = [await newApp(h, {}, ['llm.chat']), await newApp(h, {}, ['activities.read'])];
    const { refusals } = await flood(t, h, 20, chat(greedy, '/sdk/llm/chat/stream'));
    await until(() => refusals.length >= 12, { what: 'what is above is refused' });
    refusals.forEach((refusal) => named(refusal, 429, 'requests'));
    assert.ok(silent.sockets.length <= 8);
    assert.equal((await soon(t, 'another app', () => h.asApp(other)('GET', '/activities'))).status, 200);
});

test('open streams above one app\'s budget are refused by name until one ends', async (t) => {
    const piece = `data: ${JSON.stringify({ model: 'any', choices: [{ index: 0, delta: { content: 'word ' }, finish_reason: null }] })}\n\n`;
    const endless = await hostileServer(t, (socket) => socket.once('data', () => socket.write(`HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n${piece}`)));
    const h = await startHearth({ t, settings: { 'limits.streams': 3 }, env: { GENERIC_OPENAI_BASE_URL: `${endless.url}/v1`, GENERIC_OPENAI_MODEL: 'any' } });
    const [greedy, other] = [await newApp(h, {}, ['llm.chat']), await newApp(h, {}, ['llm.chat'])];
        const { sockets, refusals } = await flood(t, h, 3, chat(greedy, '/sdk/llm/chat/stream'));
    const held = async () => Number(/hearth_budget_held\{budget="streams"\} (\d+)/.exec((await h.socket('GET', '/metrics')).text)[1]);
    await until(async () => await held() === 3, { what: 'three streams are open' });
    assert.equal(refusals.length, 0);
    const reply = await h.asApp(greedy)('POST', '/sdk/llm/chat/stream', JSON.parse(chatBody));
    refused(reply, 429, 'BUDGET_EXCEEDED');
    assert.equal(reply.body.budget, 'streams');
    const others = await flood(t, h, 1, chat(other, '/sdk/llm/chat/stream'));
    await until(async () => await held() === 4, { what: 'another app\'s stream is open' });
    assert.equal(others.refusals.length, 0);
    assert.match((await theAdministratorIsServed(t, h)).stdout, /3 of 3 open streams/);
    sockets[0].destroy();
    await until(async () => await held() === 3, { what: 'its end is seen' });
    const again = await flood(t, h, 1, chat(greedy, '/sdk/llm/chat/stream'));
    await until(async () => await held() === 4, { what: 'there is room for one more' });
    assert.equal(again.refusals.length, 0);
});

test('programs above one app\'s budget are refused by name, and other apps are started', async (t) => {
    const h = await startHearth({ t, settings: { 'limits.children': 1 } });
    const program = { app_type: 'custom', config: { command: '/bin/sh', args: ['-c', 'exec sleep 600'] } };
    const agent = await shellAgent(h, 'exec sleep 600');
    const greedy = await newApp(h, { ...program, config: { ...program.config, backend: { enabled: true },
        agentHandlers: [{ tableName: 'svc_activities', agentId: agent, eventTypes: ['INSERT'] }] } }, ['activities.write', 'api.task']);
    const other = await newApp(h, program);
    await insert(h.asApp(greedy), {});
    await until(async () => /hearth_budget_held\{budget="children"\} 1/.test((await h.socket('GET', '/metrics')).text), { what: 'its agent runs' });
    const reply = await h.socket('POST', `/api/apps/${greedy}/start`);
    refused(reply, 429, 'BUDGET_EXCEEDED');
    assert.equal(reply.body.budget, 'children');
    assert.equal((await h.socket('POST', `/api/apps/${other}/start`)).status, 200);
    assert.match((await theAdministratorIsServed(t, h)).stdout, /1 of 1 running processes/);
});

test('large requests wait for memory; then their caller is refused by name, and others are not', async (t) => {
    const { h, silent } = await startWithSilentProvider(t, { 'limits.request_memory_mb': 1, 'limits.memory_mb': 64 });
    const [greedy, other] = [await newApp(h, {}, ['llm.embed']), await newApp(h, {}, ['llm.embed', 'activities.write'])];
    const texts = Array.from({ length: 8 }, () => 'word '.repeat(20_000));
    const body = JSON.stringify({ input: texts, provider: 'localai', model: 'any' });
    const embed = `POST /sdk/llm/embed HTTP/1.1\r\nhost: localhost\r\nx-app-id: ${greedy}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
    const { refusals } = await flood(t, h, 6, embed);
    await until(() => silent.sockets.length > 0, { what: 'one is at work' }).catch(() => assert.fail(refusals[0]?.text ?? 'nothing'));
    const reply = await soon(t, 'another app', () => h.asApp(other)('POST', '/activities', { raw_data: { text: 'x'.repeat(MiB) } }));
    assert.equal(reply.status, 201, reply.text);
    await theAdministratorIsServed(t, h);
    await until(() => refusals.length === 5, { what: 'the others have waited' });
    refusals.forEach((refusal) => named(refusal, 429, 'memory'));
});

test('an app whose data folder is above its budget has nothing more stored', async (t) => {
    const h = await startHearth({ t, settings: { 'limits.disk_mb': 2 } });
    const [greedy, other] = [await newApp(h, {}, ['activities.write']), await newApp(h, {}, ['activities.write'])];
    const folder = join(h.dataDir, 'local-apps', greedy);
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'hoard'), Buffer.alloc(3 * MiB, 'x'));
    await h.terminate();
    await h.start();
    const reply = await until(async () => {
        const answer = await h.asApp(greedy)('POST', '/activities', { raw_data: {} });
        return answer.status === 429 && answer;
    }, { what: 'the folder is measured' });
    assert.equal(reply.body.budget, 'disk');
    assert.equal((await h.asApp(other)('POST', '/activities', { raw_data: {} })).status, 201);
    assert.match((await h.cli('doctor')).stdout, /MiB of 2\.0 MiB bytes in the data folder/);
});

const records = (name, n, text = 'x'.repeat(60_000)) => Array.from({ length: n }, (_, i) => ({ id: `${name}-${i}`, vector: [1, i], metadata: { text } }));

test('vectors above the budget of one app or key are refused by name, in all of its workspaces', async (t) => {
    const h = await startHearth({ t, settings: { 'limits.vectors_mb': 1 } });
    const key = await h.asKey();
    const [greedy, other] = [await newApp(h, {}, ['vectors.write']), await newApp(h, {}, ['vectors.write'])];
    const upsert = (call, workspaceId, vectors) => call('POST', '/sdk/llm/vectors/upsert', { workspaceId, vectors });
    const isFull = async (call) => {
        const reply = await upsert(call, 'three', records('more', 2));
        refused(reply, 429, 'BUDGET_EXCEEDED');
        assert.equal(reply.body.budget, 'vectors');
        assert.ok(reply.headers['retry-after']);
    };
    for (const call of [h.asApp(greedy), key]) {
        assert.equal((await upsert(call, 'one', records('a', 8))).status, 200);
        assert.equal((await upsert(call, 'two', records('a', 8))).status, 200);
        await isFull(call);
        assert.equal((await upsert(call, 'two', records('small', 1, 'word'))).status, 200, 'what fits is stored');
    }
    assert.equal((await upsert(h.asApp(other), 'one', records('a', 8))).status, 200);
    assert.match((await h.cli('doctor')).stdout, /MiB of 1\.0 MiB bytes of stored vectors/);
    assert.match((await h.socket('GET', '/metrics')).text, /hearth_budget_refused_total\{budget="vectors",limit="caller"\} 2/);
    await h.terminate();
    await h.start();
    await until(async () => (await h.cli('doctor')).stdout.includes('bytes of stored vectors'), { what: 'the vectors are measured at the start' });
    await isFull(h.asApp(greedy));
    assert.equal((await h.asApp(greedy)('POST', '/sdk/llm/vectors/delete', { workspaceId: 'one', deleteAll: true })).status, 200);
    assert.equal((await upsert(h.asApp(greedy), 'three', records('more', 2))).status, 200);
});

test('ten thousand pipelined requests are answered in order or cut, and others are served meanwhile', async (t) => {
    const h = await startHearth({ t });
    const key = await h.asKey();
    const talk = await converse(h);
    const sending = talk.send('GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n'.repeat(10_000));
    assert.equal((await soon(t, 'a key', () => key('GET', '/sdk/ping'))).status, 200);
    await sending;
    assert.equal((await talk.response()).status, 200);
    talk.destroy();
});

test('a huge head is refused, and costs nobody else anything', async (t) => {
    const h = await startHearth({ t });
    const { refusals } = await flood(t, h, 50, `GET /healthz HTTP/1.1\r\nhost: localhost\r\nx-large: ${'a'.repeat(60_000)}\r\n\r\n`);
    await until(() => refusals.length === 50, { what: 'all are refused' });
    assert.ok(refusals.every(({ status }) => status === 431));
    assert.equal((await h.api('GET', '/healthz')).status, 200);
});

// How much of a body of `announced` bytes the service takes from a client that does not read.
async function pour(t, h, head, announced) {
    const socket = net.connect(h.port, '127.0.0.1').on('error', () => {});
    closeAll(t, [socket]);
    let text = '';
    socket.on('data', (piece) => { text += piece.toString('latin1'); });
    await once(socket, 'connect');
    socket.write(head);
    const piece = Buffer.alloc(MiB, 'x');
    let stalled = false;
    for (let sent = 0; sent < announced && !stalled && !socket.destroyed; sent += piece.length)
        stalled = !await Promise.race([new Promise((done) => socket.write(piece, () => done(true))), new Promise((done) => setTimeout(done, 1500, false))]);
    await until(() => text.includes('\r\n\r\n') || socket.destroyed, { what: 'the answer' });
    return { text, taken: socket.bytesWritten };
}

test('a body that nobody will read is refused at its head', async (t) => {
    const h = await startHearth({ t });
    const announced = 94 * MiB;
    for (const [what, path, headers, status] of [
        ['a foreign page', '/sdk/llm/chat', `origin: http://evil.example\r\nx-app-id: ${await newApp(h)}`, 403],
        ['nobody', '/sdk/llm/vectors/upsert', 'x-other: 1', 401],
        ['an unknown app', '/sdk/llm/vectors/upsert', 'x-app-id: 00000000-0000-4000-8000-000000000000', 401],
        ['a stranger at a route of the administrator', '/api/apps', 'x-other: 1', 401],
        ['a path that is not there', '/nowhere', 'x-other: 1', 404],
    ]) {
        const { text, taken } = await pour(t, h, `POST ${path} HTTP/1.1\r\nhost: localhost\r\n${headers}\r\ncontent-length: ${announced}\r\n\r\n`, announced);
        assert.match(text, new RegExp(`^HTTP/1\\.1 ${status} `), what);
        assert.match(text, /connection: close/i, what);
        t.diagnostic(`${what}: ${(taken / MiB).toFixed(1)} MiB were taken, with the kernel's buffers`);
        assert.ok(taken < 40 * MiB, `${what} could send ${taken} bytes`);
    }
});

test('100 Continue is said only to who may send the body', async (t) => {
    const h = await startHearth({ t });
    const app = await newApp(h, {}, ['activities.write']);
    const body = JSON.stringify({ raw_data: {} });
    const ask = (headers) => `POST /activities HTTP/1.1\r\nhost: localhost\r\n${headers}expect: 100-continue\r\ncontent-length: ${body.length}\r\n\r\n`;
    const stranger = await converse(h);
    await stranger.send(ask(''));
    assert.equal((await stranger.response()).status, 401);
    const known = await converse(h);
    await known.send(ask(`x-app-id: ${app}\r\n`));
    assert.equal((await known.response()).status, 100);
    await known.send(body);
    assert.equal((await known.response()).status, 201);
    [stranger, known].forEach((talk) => talk.destroy());
});

test('a page at another loopback address with the same port is foreign', async (t) => {
    const h = await startHearth({ t });
    for (const origin of [`http://127.0.0.5:${h.port}`, `http://127.1.2.3:${h.port}`]) {
        refused(await h.api('GET', '/healthz', undefined, { origin }), 403, 'ORIGIN_NOT_ALLOWED');
        refused(await h.api('GET', '/healthz', undefined, { origin, host: new URL(origin).host }), 403, 'ORIGIN_NOT_ALLOWED');
    }
    assert.equal((await h.api('GET', '/healthz', undefined, { origin: h.url })).status, 200);
});
