// A login at a remote MCP server lasts beyond the end of the service and of its access token: the refresh token is sealed in the data folder (docs/mcp.md).
import assert from 'node:assert/strict';
import { readFileSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { startHearth } from './harness.mjs';
import { admin } from './kit.mjs';
import { tokenServer } from './token_server.mjs';

// A service whose person has logged in at `far`; whoami() is a call of its tool.
async function loggedIn(t, options) {
    const server = await tokenServer(t, options);
    const h = await startHearth({ t });
    const dev = await h.asKey();
    await admin(h, 'POST', '/api/mcp/servers', { name: 'far', url: server.url }, 201);
    const logIn = async () => {
        const asked = new URL((await admin(h, 'POST', '/api/mcp/servers/far/login')).url).searchParams;
        const back = new URL(asked.get('redirect_uri'));
        const page = await h.api('GET', `${back.pathname}?state=${asked.get('state')}&code=c1`);
        assert.equal(page.status, 200, page.text);
    };
    const call = () => dev('POST', '/sdk/mcp/servers/far/tools/whoami/execute?provider=remote', { arguments: {} });
    const whoami = async () => {
        const { status, body, text } = await call();
        assert.equal(status, 200, text);
        return body.result.content[0].text;
    };
    const restart = async () => {
        await h.terminate();
        await h.start();
    };
    await logIn();
    return { server, h, logIn, call, whoami, restart };
}

const refreshes = (server) => server.asked.filter((form) => form.grant_type === 'refresh_token').map((form) => form.refresh_token);

function* filesOf(folder) {
    for (const name of readdirSync(folder, { recursive: true }))
        if (statSync(join(folder, name)).isFile())
            yield join(folder, name);
}

test('after a restart a refused access token is refreshed with the sealed refresh token, and the new one is kept too', async (t) => {
    const { server, h, whoami, restart } = await loggedIn(t);
    assert.equal(await whoami(), 'access-1');
    await restart();
    assert.equal(await whoami(), 'access-1', 'the access token is kept as long as it lasts');
    assert.deepEqual(refreshes(server), []);
    await restart();
    server.expire();
    assert.equal(await whoami(), 'access-2');
    assert.deepEqual(refreshes(server), ['refresh-1-secret']);
    assert.equal(server.asked.at(-1).resource, server.url, 'the token is for this server');
    await restart();
    server.expire();
    assert.equal(await whoami(), 'access-3');
    assert.deepEqual(refreshes(server), ['refresh-1-secret', 'refresh-2-secret'], 'each refresh token once');
    await h.terminate();
    for (const file of filesOf(h.dataDir))
        assert.ok(!/(refresh|access)-\d/.test(readFileSync(file, 'latin1')), `${file} holds no token in clear`);
});

test('an access token that has ended while the service was stopped is refreshed before the server is asked', async (t) => {
    const { server, whoami, restart } = await loggedIn(t, { expiresIn: 1 });
    await restart();
    server.expiresIn = 3600;
    server.expire();
    server.used.length = 0;
    const token = await whoami();
    assert.equal(token, `access-${server.n}`);
    assert.deepEqual([...new Set(server.used)], [token], 'the old token is not sent any more');
    assert.equal(refreshes(server).length, server.n - 1);
});

test('a revoked refresh token is tried once, then the person is told to log in again, and can', async (t) => {
    const { server, h, logIn, call, whoami, restart } = await loggedIn(t);
    await restart();
    server.revoke();
    for (let i = 0; i < 2; i++) {
        const { status, body, text } = await call();
        assert.deepEqual([status, body.code], [502, 'MCP_LOGIN_REQUIRED'], text);
        assert.match(text, /hearth mcp login far/);
    }
    assert.deepEqual(refreshes(server), ['refresh-1-secret']);
    assert.equal((await admin(h, 'GET', '/api/mcp/servers/far')).server.login, 'wanted');
    await restart();
    assert.equal((await call()).body.code, 'MCP_LOGIN_REQUIRED', 'what was revoked stays so');
    assert.deepEqual(refreshes(server), ['refresh-1-secret']);
    await logIn();
    assert.equal(await whoami(), 'access-2');
    assert.equal((await admin(h, 'GET', '/api/mcp/servers/far')).server.login, 'logged_in');
});
