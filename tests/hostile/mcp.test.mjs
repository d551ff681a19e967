// Clients of /mcp that mean harm: pages of other sites, other callers' sessions, floods of sessions, streams that nobody reads, bodies that
// are too large, too deep or of the wrong shape (issue 10, section 6).
import assert from 'node:assert/strict';
import net from 'node:net';
import { test } from 'node:test';
import { startHearth, until } from '../api/harness.mjs';
import { admin, decide, newApp, nobodysId, shellAgent } from '../api/kit.mjs';
import { latest, meta, post, session, stateless } from '../api/mcp.mjs';
import { residentKib } from './kit.mjs';

const accept = 'application/json, text/event-stream';
const rpc = (method, params, id = 1) => ({ jsonrpc: '2.0', id, method, params });
const initialize = rpc('initialize', { protocolVersion: latest, capabilities: {}, clientInfo: { name: 'x', version: '1' } });

test('a page of another site, and a name that was pointed at this machine, get nothing, with and without a key', async (t) => {
    const h = await startHearth({ t });
    const s = await session(await h.asKey());
    for (const call of [await h.asKey(), h.as({})])
        for (const headers of [{ origin: 'https://evil.example' }, { origin: 'null' }, { origin: 'http://127.0.0.1:1' }, { host: 'evil.example' }, { host: '127.0.0.1.nip.io' }])
            for (const [method, body] of [['POST', initialize], ['GET', undefined], ['DELETE', undefined], ['OPTIONS', undefined]]) {
                const reply = await call(method, '/mcp', body, { accept, 'content-type': 'application/json', ...s.headers, ...headers });
                assert.equal(reply.status, 403, `${method} ${JSON.stringify(headers)} ${reply.text}`);
                assert.equal(reply.headers['access-control-allow-origin'], undefined);
                assert.equal(reply.headers['mcp-session-id'], undefined);
            }
    assert.deepEqual(await s.result('ping'), {}, 'the session is there still');
});

test('the session of another caller is unknown, whatever is tried on it', async (t) => {
    const h = await startHearth({ t });
    assert.equal((await h.cli('provider', 'add', 'stand-in')).code, 0);
    const victim = h.asApp(await newApp(h, { name: 'victim' }, ['llm.chat']));
    const thief = h.asApp(await newApp(h, { name: 'thief' }, ['llm.chat', 'api.task']));
    const s = await session(victim);
    const running = s.raw(rpc('tools/call', { name: 'chat', arguments: { messages: [{ role: 'user', content: 'slow 200\nsay one two three four five' }] } }, 'mine'));
    for (const frame of [rpc('ping'), rpc('tools/list'), rpc('tasks/list'), { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 'mine' } }])
        assert.equal((await post(thief, frame, s.headers)).status, 404);
    assert.equal((await thief('GET', '/mcp', undefined, { ...s.headers, accept: 'text/event-stream' })).status, 404);
    assert.equal((await thief('DELETE', '/mcp', undefined, s.headers)).status, 404);
    const own = await session(thief);
    await own.notify('notifications/cancelled', { requestId: 'mine' });
    assert.ok((await running).body.result.content, 'the call of the victim was not cancelled');
});

test('a flood of sessions costs its own caller, and little memory', async (t) => {
    const h = await startHearth({ t, env: { ASAN_OPTIONS: 'detect_leaks=1:strict_string_checks=1:quarantine_size_mb=4:thread_local_quarantine_size_kb=64' } });
    const flooder = h.asApp(await newApp(h, { name: 'flooder' }));
    const s = await session(await h.asKey());
    const flood = async (rounds) => {
        for (let i = 0; i < rounds; i++)
            await Promise.all(Array.from({ length: 50 }, () => post(flooder, initialize)));
    };
    await flood(10);        // threads and connections
    const before = residentKib(h.pid);
    await flood(40);
    assert.ok(residentKib(h.pid) - before < 16 * 1024, `${residentKib(h.pid) - before} KiB more`);
    assert.deepEqual(await s.result('ping'), {});
});

test('bodies that are too large, too deep, too many or of the wrong shape are refused, and the service goes on', async (t) => {
    const h = await startHearth({ t });
    const dev = await h.asKey();
    const s = await session(dev, '2025-03-26');
    const large = await h.raw(`POST /mcp HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${await h.key()}\r\naccept: ${accept}\r\ncontent-type: application/json\r\ncontent-length: ${100 * 1024 * 1024}\r\n\r\n{`);
    assert.match(String(large.text ?? large), /^HTTP\/1\.1 413 /);
    const deep = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add_activity","arguments":{"raw_data":${'{"a":'.repeat(50_000)}1${'}'.repeat(50_000)}}}}`;
    for (const [body, status, code] of [[deep, 400, -32700], [`[${'['.repeat(60_000)}`, 400, -32700], [Array.from({ length: 100_000 }, () => 1), 400, -32600],
        [rpc('ping', [1]), 400, -32600], [rpc('ping', {}, { a: 1 }), 400, -32600], [rpc('ping', {}, 'x'.repeat(513)), 400, -32600], [rpc('ping', {}, 1e300), 400, -32600], [rpc('x'.repeat(257)), 400, -32600],
        [{ ...rpc('ping'), result: {} }, 400, -32600], ['', 400, -32700], [7, 400, -32600], [null, 400, -32600]]) {
        const reply = await s.raw(typeof body === 'string' ? body : JSON.stringify(body));
        assert.deepEqual([reply.status, reply.body?.error?.code], [status, code], `${JSON.stringify(body).slice(0, 80)}: ${reply.text.slice(0, 200)}`);
    }
    const wide = (n) => Object.fromEntries(Array.from({ length: n }, (_, i) => [`k${i}`, i]));
    assert.equal((await s.tool('list_activities', wide(50_000))).isError, undefined);
    assert.equal((await s.tool('list_activities', wide(200_000)))._meta['hearth/error'].code, 'BODY_TOO_LARGE');        // as for the route
    for (const params of [{ name: 7 }, { name: 'embed', arguments: 'x' }, { name: '\u0000' }, { name: 'x'.repeat(100_000) }])
        assert.equal((await s.send('tools/call', params)).error.code, -32602);
    for (const protocolVersion of [7, null, {}, ['x']])
        assert.equal((await post(dev, rpc('initialize', { protocolVersion }))).body.error.code, -32602);
    assert.equal((await post(dev, rpc('initialize', { protocolVersion: 'x'.repeat(100_000) }))).status, 200);
    assert.equal((await post(dev, rpc('tools/list', { _meta: meta({ 'io.modelcontextprotocol/protocolVersion': 'x'.repeat(100_000) }) }))).body.error.code, -32022);
    for (const id of ['x'.repeat(8000), nobodysId.toUpperCase(), '../../etc', '%00'])
        assert.equal((await post(dev, rpc('ping'), { 'mcp-session-id': id })).status, 404);
});

test('streams that nobody reads hold up neither tasks nor others, and end with their budget', async (t) => {
    const h = await startHearth({ t });
    const app = await newApp(h, { name: 'sleeper' }, ['webhook.trigger', 'api.task']);
    const call = h.asApp(app);
    const agent = await shellAgent(h, 'exit 0');
    const sockets = [];
    t.after(() => sockets.forEach((socket) => socket.destroy()));
    for (let i = 0; i < 30; i++) {
        const s = await session(call);
        const socket = net.connect(h.port, '127.0.0.1');
        sockets.push(socket);
        socket.on('error', () => {});
        socket.pause();
        socket.write(`GET /mcp HTTP/1.1\r\nhost: localhost\r\nx-app-id: ${app}\r\naccept: text/event-stream\r\nmcp-session-id: ${s.id}\r\n\r\n`);
        for (let n = 0; n < 3; n++) {
            const { task_uuid: uuid } = (await s.tool('trigger_agent', { auto_run: false })).structuredContent;
            await s.result('resources/subscribe', { uri: `hearth://tasks/${uuid}` });
            await s.result('tasks/cancel', { taskId: uuid });
        }
    }
    const s = await session(await h.asKey());
    const done = (await s.tool('trigger_agent', { agent_name: agent, wait_s: 60 })).structuredContent;
    assert.equal(done.finished, true);
});

test('calls that wait are bounded for each caller, and others are served', async (t) => {
    const h = await startHearth({ t });
    const app = await newApp(h, { name: 'waiter' }, ['webhook.trigger', 'api.task', 'activities.read']);
    const headers = { 'x-app-id': app };
    const s = await session(h.as(headers));
    const slow = await shellAgent(h, 'sleep 600');
    const waits = Array.from({ length: 400 }, (_, i) => s.raw(rpc('tools/call', { name: 'trigger_agent', arguments: { agent_name: slow, auto_run: false, wait_s: 600 } }, i)).catch(() => null));
    const refusals = [];
    for (const wait of waits)
        wait.then((reply) => reply && reply.status >= 400 && refusals.push(reply));
    await until(() => refusals.length > 0, { what: 'a refusal' });
    assert.ok([429, 503].includes(refusals[0].status), refusals[0].text);
    assert.equal(typeof refusals[0].body.error.message, 'string');
    const other = await session(await h.asKey());
    const { task_uuid: uuid } = (await other.tool('trigger_agent', { agent_name: slow, auto_run: false, wait_s: 1 })).structuredContent;
    assert.ok(uuid, 'another caller waits in the same pool');
    await admin(h, 'GET', '/api/tasks');
    await decide(h, app, ['api.task'], { allow: false });
});

test('what a stateless request says of itself gives it nothing', async (t) => {
    const h = await startHearth({ t });
    const poor = h.asApp(await newApp(h, { name: 'boaster' }));
    const envelope = meta({ 'io.modelcontextprotocol/clientInfo': { name: 'hearth', version: '1' }, 'hearth/permission': '*', app_id: 'admin' });
    const reply = await post(poor, { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'list_activities', arguments: { app_id: 'admin' }, app_id: 'admin', _meta: envelope } },
        { 'mcp-protocol-version': stateless, 'mcp-method': 'tools/call', 'mcp-name': 'list_activities' });
    assert.equal(reply.body.result._meta['hearth/error'].code, 'PERMISSION_REQUIRED');
});
