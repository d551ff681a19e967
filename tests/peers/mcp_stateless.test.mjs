// A server of the stateless era (2026-07-28) behind the routes of the contract: started by Hearth in the sandbox `standard`, called over REST.
import assert from 'node:assert/strict';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { startHearth } from '../api/harness.mjs';
import { admin } from '../api/kit.mjs';

const modules = join(import.meta.dirname, '../node_modules');
const read = [modules, import.meta.dirname, dirname(dirname(process.execPath))];

// A service with that server; execute(tool, arguments) answers with the whole reply.
async function withServer(t, name, args, more = {}) {
    const h = await startHearth({ t });
    await admin(h, 'POST', '/api/mcp/servers?accept=true', { name, command: process.execPath, args, sandbox: { profile: 'standard', read }, ...more }, 201);
    const dev = await h.asKey();
    return {
        h, dev,
        tools: async () => (await dev('GET', `/sdk/mcp/servers/${name}/tools`)).body.tools,
        execute: (tool, given = {}) => dev('POST', `/sdk/mcp/servers/${name}/tools/${tool}/execute`, { arguments: given }),
    };
}

const textOf = ({ status, body }) => {
    assert.equal(status, 200, JSON.stringify(body));
    return body.result.content.map((block) => block.text ?? '').join('\n');
};

test('a server of the stateless era is called, and shown with its version', async (t) => {
    const s = await withServer(t, 'stateless', [join(import.meta.dirname, 'mcp_stateless_server.mjs')]);
    assert.ok((await s.tools()).some((tool) => tool.name === 'city'));
    assert.equal(textOf(await s.execute('echo', { message: 'x' })), 'Echo: x');
    const { servers } = await admin(s.h, 'GET', '/api/mcp/servers');
    assert.match(JSON.stringify(servers), /2026-07-28/);
});
