// Hearth as an MCP server, before clients that nobody here wrote: both official SDKs over HTTP, in both eras, and the Inspector.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as StdioV1 } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport as HttpV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { Client as ClientV2, StreamableHTTPClientTransport as HttpV2 } from '@modelcontextprotocol/client';
import { StdioClientTransport as StdioV2 } from '@modelcontextprotocol/client/stdio';
import { fileURLToPath } from 'node:url';
import { binary, runProgram, until } from '../api/harness.mjs';
import { admin, newKey, shellAgent } from '../api/kit.mjs';
import { long, modelOf, startBoth, text } from './double.mjs';

const inspector = fileURLToPath(new URL('../node_modules/.bin/mcp-inspector', import.meta.url));
const info = { name: 'peer', version: '1' };
const model = modelOf('generic-openai');
const says = (content) => ({ model, messages: [{ role: 'user', content }] });
let both, h, key, slow;

before(async () => {
    both = await startBoth();
    h = both.h;
    ({ key } = await newKey(h));
    slow = await shellAgent(h, 'sleep 600');
});
after(() => both?.stop());

const url = () => new URL(`${h.url}/mcp`);
const withKey = () => ({ requestInit: { headers: { authorization: `Bearer ${key}` } } });

async function v1(t) {
    const client = new ClientV1(info, { capabilities: {} });
    await client.connect(new HttpV1(url(), withKey()));
    t.after(() => client.close());
    return client;
}

const v2 = (mode) => async (t) => {
    const client = new ClientV2(info, { capabilities: {}, versionNegotiation: { mode } });
    await client.connect(new HttpV2(url(), withKey()));
    t.after(() => client.close());
    return client;
};

const clients = { 'SDK v1': v1, 'SDK v2, handshake': v2('legacy'), 'SDK v2, found out': v2('auto'), 'SDK v2, stateless': v2({ pin: '2026-07-28' }) };

for (const [name, connect] of Object.entries(clients))
    describe(name, () => {
        test('lists the tools and calls them', async (t) => {
            const client = await connect(t);
            const { tools } = await client.listTools();
            assert.equal(tools.length, 10);
            const said = await client.callTool({ name: 'chat', arguments: says('say it') });
            assert.equal(said.content[0].text, text);
            assert.equal(said.structuredContent.response.content, text);
            const stored = await client.callTool({ name: 'upsert_vectors', arguments: { vectors: [{ id: 'a', vector: [0, 1] }], workspaceId: name } });
            assert.equal(stored.structuredContent.upserted, 1);
            const found = await client.callTool({ name: 'search_vectors', arguments: { vector: [0, 1], workspaceId: name } });
            assert.equal(found.structuredContent.results[0].id, 'a');
            assert.equal((await client.callTool({ name: 'embed', arguments: { input: 'red apples', provider: 'builtin' } })).structuredContent.dimensions, 384);
            assert.equal((await client.callTool({ name: 'search_vectors', arguments: { topK: 0 } })).isError, true);
            await assert.rejects(client.callTool({ name: 'nosuch', arguments: {} }), /Unknown tool/);
        });

        test('follows the progress of a chat', async (t) => {
            const client = await connect(t);
            const seen = [];
            const request = { name: 'chat', arguments: says('say much') };
            const onprogress = (one) => seen.push(one.progress);
            const said = await (connect === v1 ? client.callTool(request, undefined, { onprogress }) : client.callTool(request, { onprogress }));
            assert.equal(said.content[0].text, long);
            assert.ok(seen.length > 0 && seen.every((one, i) => i === 0 || one > seen[i - 1]), String(seen));
        });

        test('cancels a chat, which ends at its provider', async (t) => {
            const client = await connect(t);
            const broken = both.nBrokenOff();
            const request = { name: 'chat', arguments: says('go on and on') };
            const abort = new AbortController();
            const options = { signal: abort.signal, onprogress: () => abort.abort() };
            await assert.rejects(connect === v1 ? client.callTool(request, undefined, options) : client.callTool(request, options));
            await until(() => both.nBrokenOff() > broken, { what: 'the provider to lose its client' });
        });

        test('reads resources and completes their template', async (t) => {
            const client = await connect(t);
            const made = (await client.callTool({ name: 'trigger_agent', arguments: { agent_name: slow, prompt: 'x' } })).structuredContent;
            const uri = `hearth://tasks/${made.task_uuid}`;
            assert.ok((await client.listResources()).resources.some((one) => one.uri === uri));
            assert.equal((await client.listResourceTemplates()).resourceTemplates[0].uriTemplate, 'hearth://tasks/{uuid}');
            const { contents } = await client.readResource({ uri });
            assert.equal(JSON.parse(contents[0].text).task.uuid, made.task_uuid);
            const { completion } = await client.complete({ ref: { type: 'ref/resource', uri: 'hearth://tasks/{uuid}' }, argument: { name: 'uuid', value: made.task_uuid.slice(0, 12) } });
            assert.deepEqual(completion.values, [made.task_uuid]);
            await assert.rejects(client.readResource({ uri: 'hearth://tasks/nosuch' }));
            await admin(h, 'POST', `/api/tasks/${made.task_uuid}/cancel`, {});
        });
    });

describe('Inspector', () => {
    const inspect = (...args) => runProgram(process.execPath, [inspector, '--cli', url().href, '--transport', 'http', '--header', `Authorization: Bearer ${key}`, ...args], {});

    test('lists the tools', async () => {
        const { code, stdout, stderr } = await inspect('--method', 'tools/list');
        assert.equal(code, 0, stderr);
        assert.equal(JSON.parse(stdout).tools.length, 10);
    });

    test('calls one', async () => {
        const { code, stdout, stderr } = await inspect('--method', 'tools/call', '--tool-name', 'list_activities', '--tool-arg', 'limit=3');
        assert.equal(code, 0, stderr);
        assert.ok(!JSON.parse(stdout).isError, stdout);
    });
});

describe('over standard input and output, through `hearth mcp serve`', () => {
    const parameters = () => ({ command: binary, args: ['mcp', 'serve', '--data', h.dataDir], stderr: 'inherit' });
    const modes = { 'SDK v1': null, 'SDK v2, handshake': 'legacy', 'SDK v2, found out': 'auto', 'SDK v2, stateless': { pin: '2026-07-28' } };

    for (const [name, mode] of Object.entries(modes))
        test(name, async (t) => {
            const client = mode ? new ClientV2(info, { capabilities: {}, versionNegotiation: { mode } }) : new ClientV1(info, { capabilities: {} });
            await client.connect(mode ? new StdioV2(parameters()) : new StdioV1(parameters()));
            t.after(() => client.close());
            assert.equal((await client.listTools()).tools.length, 10);
            const seen = [];
            const request = { name: 'chat', arguments: says('say much') };
            const options = { onprogress: (one) => seen.push(one.progress) };
            const said = await (mode ? client.callTool(request, options) : client.callTool(request, undefined, options));
            assert.equal(said.content[0].text, long);
            assert.ok(seen.length > 0);
            const broken = both.nBrokenOff();
            const abort = new AbortController();
            const endless = { name: 'chat', arguments: says('go on and on') };
            const leaving = { signal: abort.signal, onprogress: () => abort.abort() };
            await assert.rejects(mode ? client.callTool(endless, leaving) : client.callTool(endless, undefined, leaving));
            await until(() => both.nBrokenOff() > broken, { what: 'the provider to lose its client' });
        });

    test('the Inspector', async () => {
        const { code, stdout, stderr } = await runProgram(process.execPath, [inspector, '--cli', binary, 'mcp', 'serve', '--data', h.dataDir, '--method', 'tools/list'], {});
        assert.equal(code, 0, stderr);
        assert.equal(JSON.parse(stdout).tools.length, 10);
    });
});
