// Hearth as an MCP server: /mcp in both eras, its tools and what a caller may do (issue 10, section 5).
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { startHearth } from './harness.mjs';
import { admin, decide, newApp, nobodysId, shellAgent, uuidForm } from './kit.mjs';
import { ask, framesOf, latest, meta, post, session, stateless } from './mcp.mjs';

const names = ['chat', 'embed', 'search_vectors', 'upsert_vectors', 'list_activities', 'add_activity', 'update_activity', 'trigger_agent', 'task_status', 'task_result'];
const handshakes = ['2024-11-05', '2025-03-26', '2025-06-18', latest];
let h, dev;

before(async () => {
    h = await startHearth();
    assert.equal((await h.cli('provider', 'add', 'stand-in')).code, 0);
    dev = await h.asKey();
});
after(() => h.stop());

const rpc = (method, params, id = 1) => ({ jsonrpc: '2.0', id, method, params });

function refusedFrame(reply, status, code, text = /./) {
    assert.equal(reply.status, status, reply.text);
    assert.equal(reply.body.error.code, code, reply.text);
    assert.match(reply.body.error.message, text);
    return reply.body;
}

describe('the handshake', () => {
    for (const version of handshakes)
        test(`${version} is answered with itself`, async () => {
            const s = await session(dev, version);
            assert.equal(s.begun.protocolVersion, version);
            assert.equal(s.begun.serverInfo.name, 'hearth');
            assert.match(s.id, uuidForm);
            assert.deepEqual(await s.result('ping'), {});
            assert.equal('tasks' in s.begun.capabilities, version === latest);
        });

    for (const version of ['2026-06-30', '1.0', stateless])
        test(`${version} is answered with the latest version that has a handshake`, async () => assert.equal((await session(dev, version)).begun.protocolVersion, latest));

    test('a request without a session is refused, and one of an unknown session is 404', async () => {
        refusedFrame(await post(dev, rpc('ping')), 400, -32000, /Mcp-Session-Id/);
        refusedFrame(await post(dev, rpc('ping'), { 'mcp-session-id': nobodysId }), 404, -32001, /initialize/);
    });

    test('a version that is not served is refused with the versions that are', async () => {
        const s = await session(dev);
        refusedFrame(await s.raw(rpc('ping'), { 'mcp-protocol-version': '2099-01-01' }), 400, -32000, /2025-11-25/);
    });

    test('a session ends when its client says so', async () => {
        const s = await session(dev);
        assert.equal((await dev('DELETE', '/mcp', undefined, s.headers)).status, 200);
        assert.equal((await s.raw(rpc('ping'))).status, 404);
        assert.equal((await dev('DELETE', '/mcp', undefined, s.headers)).status, 404);
    });

    test('notifications and answers are taken and not answered', async () => {
        const s = await session(dev);
        for (const body of [{ jsonrpc: '2.0', method: 'notifications/initialized' }, { jsonrpc: '2.0', id: 0, result: {} }, { jsonrpc: '2.0', method: 'notifications/unknown' }]) {
            const reply = await s.raw(body);
            assert.equal(reply.status, 202);
            assert.equal(reply.text, '');
        }
    });

    test('ids come back as they are', async () => {
        const s = await session(dev);
        for (const id of [0, -1, 'text', ''])
            assert.equal((await s.raw(rpc('ping', undefined, id))).body.id, id);
    });

    test('an unknown method is told as such', async () => assert.equal((await (await session(dev)).send('nosuch/list')).error.code, -32601));
});

describe('what a body may be', () => {
    test('JSON, and a JSON-RPC frame', async () => {
        refusedFrame(await post(dev, '{'), 400, -32700);
        refusedFrame(await post(dev, { id: 3, method: 'ping' }), 400, -32600, /jsonrpc/);
        assert.equal((await post(dev, { jsonrpc: '2.0', id: 3, method: 7 })).body.id, 3);
        refusedFrame(await post(dev, { jsonrpc: '2.0', id: {}, method: 'ping' }), 400, -32600, /`id`/);
    });

    test('of the type application/json, from a client that accepts both forms', async () => {
        refusedFrame(await post(dev, rpc('ping'), { 'content-type': 'text/plain' }), 415, -32000, /application\/json/);
        for (const accept of ['application/json', 'text/event-stream', 'text/html'])
            refusedFrame(await post(dev, rpc('ping'), { accept }), 406, -32000, /accept/);
        assert.equal((await post(dev, rpc('ping'), { accept: '*/*' })).status, 400);
    });

    test('a batch in 2025-03-26 only', async () => {
        const s = await session(dev, '2025-03-26');
        const reply = await s.raw([rpc('ping', undefined, 1), { jsonrpc: '2.0', method: 'notifications/initialized' }, { id: 5 }, rpc('nosuch', undefined, 'b')]);
        assert.equal(reply.status, 200, reply.text);
        assert.deepEqual(reply.body.map((one) => [one.id, one.error?.code]), [[1, undefined], [5, -32600], ['b', -32601]]);
        assert.equal((await s.raw([{ jsonrpc: '2.0', method: 'notifications/initialized' }])).status, 202);
        refusedFrame(await s.raw([]), 400, -32600);
        refusedFrame(await s.raw(Array.from({ length: 65 }, () => rpc('ping'))), 400, -32600, /64/);
        assert.equal((await s.raw(Array.from({ length: 64 }, () => rpc('ping')))).body.length, 64);
        const newer = await session(dev, '2025-06-18');
        refusedFrame(await newer.raw([rpc('ping')]), 400, -32600, /no batches/);
    });
});

describe('the stateless era', () => {
    test('discover names what there is', async () => {
        const { status, body: { result } } = await ask(dev, 'server/discover');
        assert.equal(status, 200);
        assert.deepEqual(result.supportedVersions, [stateless]);
        assert.equal(result.resultType, 'complete');
        assert.equal(result.ttlMs, 0);
        assert.equal(result.cacheScope, 'private');
        assert.equal(result._meta['io.modelcontextprotocol/serverInfo'].name, 'hearth');
    });

    test('headers that disagree with the body, or are missing, are -32020', async () => {
        for (const headers of [{ 'mcp-method': 'tools/call' }, { 'mcp-protocol-version': latest }, { 'mcp-method': undefined }, { 'mcp-protocol-version': undefined }])
            refusedFrame(await ask(dev, 'tools/list', {}, { headers }), 400, -32020);
        for (const name of [undefined, 'embed', '=?base64?!!?='])
            refusedFrame(await ask(dev, 'tools/call', { name: 'list_activities' }, { headers: { 'mcp-name': name } }), 400, -32020);
        assert.equal((await ask(dev, 'tools/call', { name: 'list_activities' }, { headers: { 'mcp-name': `=?base64?${btoa('list_activities')}?=` } })).status, 200);
    });

    test('the envelope is required', async () => {
        for (const missing of ['io.modelcontextprotocol/protocolVersion', 'io.modelcontextprotocol/clientCapabilities'])
            refusedFrame(await ask(dev, 'tools/list', {}, { envelope: meta({ [missing]: undefined }) }), 400, -32602, /_meta/);
        refusedFrame(await post(dev, rpc('tools/list'), { 'mcp-protocol-version': stateless, 'mcp-method': 'tools/list' }), 400, -32602, /_meta/);
    });

    test('an unknown version is -32022 with those that are served', async () => {
        const reply = await ask(dev, 'tools/list', {}, { envelope: meta({ 'io.modelcontextprotocol/protocolVersion': '2099-01-01' }), headers: { 'mcp-protocol-version': '2099-01-01' } });
        assert.deepEqual(refusedFrame(reply, 400, -32022).error.data, { supported: [stateless], requested: '2099-01-01' });
    });

    test('methods of the handshake are gone', async () => {
        for (const method of ['ping', 'logging/setLevel', 'resources/subscribe', 'tasks/list', 'initialize'])
            refusedFrame(await ask(dev, method), 404, -32601);
        assert.equal((await dev('GET', '/mcp', undefined, { accept: 'text/event-stream', 'mcp-protocol-version': stateless })).status, 405);
    });
});

describe('tools', () => {
    test('all are listed, with schemas that are valid and complete annotations', async () => {
        const ajv = new Ajv2020({ strict: false });
        addFormats.default(ajv);
        const { tools } = await (await session(dev)).result('tools/list');
        assert.deepEqual(tools.map((one) => one.name), names);
        for (const tool of tools) {
            assert.ok(tool.title && tool.description);
            assert.equal(tool.inputSchema.type, 'object');
            assert.deepEqual(Object.keys(tool.annotations).sort(), ['destructiveHint', 'idempotentHint', 'openWorldHint', 'readOnlyHint', 'title']);
            ajv.compile(tool.inputSchema);
            ajv.compile(tool.outputSchema);
            assert.equal(tool.execution.taskSupport, tool.name === 'trigger_agent' ? 'optional' : 'forbidden');
        }
    });

    test('an older client is shown only what its version knows', async () => {
        const [first] = (await (await session(dev, '2024-11-05')).result('tools/list')).tools;
        assert.deepEqual(Object.keys(first), ['name', 'description', 'inputSchema']);
    });

    for (const era of ['handshake', 'stateless'])
        test(`each works: ${era}`, async () => {
            const s = await session(dev);
            const tool = era === 'handshake' ? s.tool : async (name, args) => (await ask(dev, 'tools/call', { name, arguments: args })).body.result;
            const run = async (name, args) => {
                const result = await tool(name, args);
                assert.ok(!result.isError, JSON.stringify(result));
                assert.equal(result.content[0].type, 'text');
                return result;
            };
            const said = await run('chat', { messages: [{ role: 'user', content: 'say hello there' }] });
            assert.equal(said.content[0].text, said.structuredContent.response.content);
            assert.equal((await run('embed', { input: 'red apples', provider: 'builtin' })).structuredContent.dimensions, 384);
            assert.equal((await run('upsert_vectors', { vectors: [{ id: 'a', vector: [0, 1], metadata: { n: 1 } }], workspaceId: era })).structuredContent.upserted, 1);
            assert.deepEqual((await run('search_vectors', { vector: [0, 1], workspaceId: era })).structuredContent.results.map((one) => one.id), ['a']);
            const added = (await run('add_activity', { raw_data: { era } })).structuredContent.data;
            assert.deepEqual(added.raw_data, { era });
            assert.equal((await run('update_activity', { id: added.id, status: 'completed' })).structuredContent.data.status, 'completed');
            assert.ok((await run('list_activities', { limit: 1 })).structuredContent.data.length === 1);
            const agent = await shellAgent(h, `echo '{"done":"${era}"}'`);
            const made = (await run('trigger_agent', { agent_name: agent, prompt: 'do it', wait_s: 60 })).structuredContent;
            assert.deepEqual([made.status, made.finished], ['completed', true], JSON.stringify(made));
            assert.equal((await run('task_status', { uuid: made.task_uuid })).structuredContent.task.status, 'completed');
            assert.deepEqual((await run('task_result', { uuid: made.task_uuid })).structuredContent, made);
            assert.deepEqual(JSON.parse((await run('task_result', { uuid: made.task_uuid })).content[0].text), made);
        });

    test('arguments are checked first, and every violated rule is told', async () => {
        const s = await session(dev);
        const failed = await s.tool('search_vectors', { topK: 0, workspaceId: 7 });
        assert.equal(failed.isError, true);
        assert.match(failed.content[0].text, /topK/);
        assert.match(failed.content[0].text, /workspaceId/);
        assert.match((await s.tool('update_activity', { status: 'x' })).content[0].text, /`id`/);
        assert.match((await s.tool('trigger_agent', {})).content[0].text, /agent_name/);
        assert.equal((await s.send('tools/call', { name: 'nosuch', arguments: {} })).error.code, -32602);
        assert.equal((await s.send('tools/call', { name: 'embed', arguments: [] })).error.code, -32602);
        assert.equal((await s.send('tools/call', {})).error.code, -32602);
        assert.equal((await s.send('tools/list', { cursor: 'x' })).error.code, -32602);
    });

    test('a failure inside a tool names its code', async () => {
        const failed = await (await session(dev)).tool('task_status', { uuid: nobodysId });
        assert.equal(failed.isError, true);
        assert.equal(failed._meta['hearth/error'].code, 'TASK_NOT_FOUND');
    });
});

describe('who may do what', () => {
    test('nobody is told how to identify itself', async () => {
        const reply = await post(h.as({}), rpc('ping'));
        assert.equal(reply.status, 401, reply.text);
        assert.equal(reply.body.error.data.hearth_code, 'MISSING_APP_ID');
    });

    test('an app without the grant is told which it needs, and the person is asked', async () => {
        const app = await newApp(h, { name: 'mcp-asks' });
        const s = await session(h.asApp(app));
        assert.deepEqual((await s.result('tools/list')).tools.map((one) => one.name), names);
        const failed = await s.tool('list_activities', {});
        assert.equal(failed.isError, true);
        assert.match(failed.content[0].text, /activities\.read/);
        assert.equal(failed._meta['hearth/error'].permission, 'activities.read');
        const { pending } = await admin(h, 'GET', '/api/permissions/pending');
        assert.ok(pending.some((one) => one.app_id === app && one.permission === 'activities.read'), JSON.stringify(pending));
        await decide(h, app, ['activities.read']);
        assert.ok(!(await s.tool('list_activities', {})).isError);
    });

    test('a tool whose permission was denied is not listed', async () => {
        const app = await newApp(h, { name: 'mcp-denied' });
        await decide(h, app, ['llm.chat'], { allow: false });
        const { tools } = await (await session(h.asApp(app))).result('tools/list');
        assert.ok(!tools.some((one) => one.name === 'chat'));
    });

    test('each permission is needed for its tool', async () => {
        const app = await newApp(h, { name: 'mcp-none' });
        const s = await session(h.asApp(app));
        const given = { chat: { messages: [{ role: 'user', content: 'x' }] }, embed: { input: 'x' }, search_vectors: { vector: [1] }, upsert_vectors: { vectors: [{ id: 'a', vector: [1] }] },
            add_activity: { raw_data: {} }, update_activity: { id: nobodysId, status: 'x' }, trigger_agent: { agent_name: 'x' }, task_status: { uuid: nobodysId }, task_result: { uuid: nobodysId } };
        for (const [name, args] of Object.entries(given))
            assert.equal((await s.tool(name, args))._meta?.['hearth/error'].code, 'PERMISSION_REQUIRED', name);
    });

    test('a session belongs to its caller', async () => {
        const s = await session(dev);
        const other = h.asApp(await newApp(h, { name: 'mcp-thief' }));
        assert.equal((await post(other, rpc('ping'), s.headers)).status, 404);
        assert.equal((await other('DELETE', '/mcp', undefined, s.headers)).status, 404);
        assert.equal((await s.raw(rpc('ping'))).status, 200);
    });
});
