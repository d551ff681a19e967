// The tools of the configured servers behind /mcp as server__tool: per grant, with progress, with what the server asks passed on to the client, and with
// list_changed. The server is @modelcontextprotocol/server-everything, the client the official SDK's.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { CreateMessageRequestSchema, ElicitRequestSchema, ToolListChangedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import { startHearth, until } from '../api/harness.mjs';
import { decide, newApp } from '../api/kit.mjs';
import { session } from '../api/mcp.mjs';

const everything = fileURLToPath(new URL('../node_modules/@modelcontextprotocol/server-everything/dist/index.js', import.meta.url));
let h;

before(async () => {
    h = await startHearth();
    await add('every', everything);
});
after(() => h?.stop());

async function add(name, script) {
    const added = await h.cli('mcp', 'add', name, '--yes', '--', process.execPath, script);
    assert.equal(added.code, 0, added.stderr);
}

async function connect(t, capabilities = {}, prepare = () => {}) {
    const client = new Client({ name: 'editor', version: '1' }, { capabilities });
    prepare(client);
    await client.connect(new StreamableHTTPClientTransport(new URL(`${h.url}/mcp`), { requestInit: { headers: { authorization: `Bearer ${await h.key()}` } } }));
    t.after(() => client.close());
    return client;
}

const namesOf = ({ tools }) => tools.map((tool) => tool.name).filter((name) => name.includes('__'));

test('are listed and called beside the service\'s own', async (t) => {
    const client = await connect(t);
    const listed = await client.listTools();
    assert.ok(listed.tools.some((tool) => tool.name === 'chat'));
    const echo = listed.tools.find((tool) => tool.name === 'every__echo');
    assert.deepEqual(echo.inputSchema.required, ['message']);
    const said = await client.callTool({ name: 'every__echo', arguments: { message: 'hello' } });
    assert.deepEqual(said.content, [{ type: 'text', text: 'Echo: hello' }]);
    const structured = await client.callTool({ name: 'every__get-structured-content', arguments: { location: 'New York' } });
    assert.equal(typeof structured.structuredContent.temperature, 'number');
});

test('refuse arguments that break their schema, unknown tools and unknown servers', async (t) => {
    const client = await connect(t);
    const wrong = await client.callTool({ name: 'every__echo', arguments: { message: 7 } });
    assert.equal(wrong.isError, true);
    assert.equal(wrong._meta['hearth/error'].code, 'VALIDATION_ERROR');
    assert.match(wrong.content[0].text, /message/);
    for (const [name, code] of [['every__nosuch', 'TOOL_NOT_FOUND'], ['nosuch__echo', 'SERVER_NOT_FOUND']]) {
        const answer = await client.callTool({ name, arguments: {} });
        assert.deepEqual([answer.isError, answer._meta['hearth/error'].code], [true, code]);
    }
});

test('tell their progress', async (t) => {
    const client = await connect(t);
    const seen = [];
    const said = await client.callTool({ name: 'every__trigger-long-running-operation', arguments: { duration: 0.2, steps: 4 } }, undefined, { onprogress: (one) => seen.push(one.progress) });
    assert.ok(!said.isError, JSON.stringify(said));
    assert.ok(seen.length > 0 && seen.every((one, i) => i === 0 || one > seen[i - 1]), String(seen));
});

test('ask the client that called: a form and a model', async (t) => {
    const asked = [];
    const client = await connect(t, { elicitation: {}, sampling: {} }, (it) => {
        it.setRequestHandler(ElicitRequestSchema, ({ params }) => { asked.push(params.message); return { action: 'accept', content: { name: 'Ada', check: true } }; });
        it.setRequestHandler(CreateMessageRequestSchema, () => ({ role: 'assistant', content: { type: 'text', text: 'forty-two' }, model: 'editor-model' }));
    });
    const form = await client.callTool({ name: 'every__trigger-elicitation-request', arguments: {} });
    assert.equal(asked.length, 1);
    assert.match(JSON.stringify(form.content), /Ada/);
    const sampled = await client.callTool({ name: 'every__trigger-sampling-request', arguments: { prompt: 'What is the answer?', maxTokens: 10 } });
    assert.match(JSON.stringify(sampled.content), /forty-two/);
});

test('are an app\'s by its grants, whole or in part', async () => {
    const app = await newApp(h, { name: 'aggregated' });
    const s = await session(h.asApp(app));
    const echo = () => s.tool('every__echo', { message: 'hi' });
    assert.deepEqual(namesOf(await s.result('tools/list')), []);
    assert.equal((await echo())._meta['hearth/error'].code, 'PERMISSION_REQUIRED');
    await decide(h, app, ['mcp.tools/every/echo']);
    assert.deepEqual(namesOf(await s.result('tools/list')), ['every__echo']);
    assert.equal((await echo()).content[0].text, 'Echo: hi');
    assert.equal((await s.tool('every__get-sum', { a: 1, b: 2 }))._meta['hearth/error'].code, 'PERMISSION_REQUIRED');
    await decide(h, app, ['mcp.tools']);
    assert.ok(namesOf(await s.result('tools/list')).length > 5);
});

test('come and go with their servers, which list_changed tells', async (t) => {
    let n = 0;
    const client = await connect(t, {}, (it) => it.setNotificationHandler(ToolListChangedNotificationSchema, () => { n++; }));
    const seen = async (name) => until(async () => { const before = n; const has = namesOf(await client.listTools()).some((one) => one.startsWith(name)); return { has, before }; });
    const { before: start } = await seen('other__');
    await add('other', everything);
    await until(() => n > start, { what: 'list_changed for a new server' });
    assert.ok(namesOf(await client.listTools()).includes('other__echo'));
    const now = n;
    assert.equal((await h.cli('mcp', 'remove', 'other')).code, 0);
    await until(() => n > now, { what: 'list_changed for a removed server' });
    assert.ok(!namesOf(await client.listTools()).some((name) => name.startsWith('other__')));
});
