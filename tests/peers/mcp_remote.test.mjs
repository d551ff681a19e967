// The HTTP side of the host of MCP servers before a server of the stateless era (2026-07-28), made of the official SDK.
import assert from 'node:assert/strict';
import http from 'node:http';
import { test } from 'node:test';
import { toNodeHandler } from '@modelcontextprotocol/node';
import { McpServer, createMcpHandler, fromJsonSchema } from '@modelcontextprotocol/server';
import { startHearth } from '../api/harness.mjs';
import { admin } from '../api/kit.mjs';

const object = (properties) => fromJsonSchema({ type: 'object', properties });

function newServer() {
    const server = new McpServer({ name: 'stateless', version: '1.0' });
    server.registerTool('echo', { description: 'Echoes', inputSchema: object({ message: { type: 'string' } }) },
        ({ message }) => ({ content: [{ type: 'text', text: `Echo: ${message}` }] }));
    server.registerTool('steps', { description: 'Reports progress', inputSchema: object({}) }, async (args, ctx) => {
        const progressToken = ctx.mcpReq._meta?.progressToken;
        for (let progress = 1; progressToken !== undefined && progress <= 3; progress++)
            await ctx.mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress, total: 3 } });
        return { content: [{ type: 'text', text: 'done' }] };
    });
    return server;
}

async function serve(t) {
    const handler = toNodeHandler(createMcpHandler(newServer)), heard = [];
    const server = http.createServer((req, res) => {
        heard.push([req.method, req.headers['mcp-protocol-version'], req.headers['mcp-method'], req.headers['mcp-name'], req.headers['mcp-session-id']]);
        handler(req, res);
    }).listen(0, '127.0.0.1');
    t.after(() => { server.closeAllConnections(); server.close(); });
    await new Promise((done) => server.once('listening', done));
    return { url: `http://127.0.0.1:${server.address().port}/mcp`, heard };
}

test('a server of the stateless era over HTTP is used without session and with the headers of its revision', async (t) => {
    const h = await startHearth({ t });
    const dev = await h.asKey();
    const { url, heard } = await serve(t);
    await admin(h, 'POST', '/api/mcp/servers', { name: 'far', url, server_type: 'http' }, 201);
    const { body: { tools } } = await dev('GET', '/sdk/mcp/servers/far/tools?provider=remote');
    assert.deepEqual(tools.map((tool) => tool.name).sort(), ['echo', 'steps']);
    const execute = async (tool, args) => (await dev('POST', `/sdk/mcp/servers/far/tools/${tool}/execute?provider=remote`, { arguments: args })).body.result;
    assert.equal((await execute('echo', { message: 'héllo' })).content[0].text, 'Echo: héllo');
    assert.equal((await execute('steps', {})).content[0].text, 'done');
    assert.deepEqual(heard.filter(([, , method]) => method === 'tools/call').map(([, version, , name]) => [version, name]), [['2026-07-28', 'echo'], ['2026-07-28', 'steps']]);
    assert.ok(heard.every(([method, version, , , session]) => method === 'POST' && version === '2026-07-28' && session === undefined), JSON.stringify(heard));
});
