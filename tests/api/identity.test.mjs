// Who calls, what they may do, and who decides it: keys, apps, permissions, the administrator's session, the audit log.
import assert from 'node:assert/strict';
import { statSync } from 'node:fs';
import { test } from 'node:test';
import { sharedHearth, startHearth, until } from './harness.mjs';
import { followLink, newApp } from './kit.mjs';

const made = '00000000-0000-4000-8000-000000000000';

async function newKey(h) {
    const reply = await h.socket('POST', '/api/keys', { name: 'test' });
    assert.equal(reply.status, 201);
    return reply.body;
}

const pending = async (h, app) => (await h.socket('GET', '/api/permissions/pending')).body.pending.filter((question) => question.app_id === app);
const shared = sharedHearth();

async function decide(h, appId, permissions, allow, more = {}) {
    const reply = await h.socket('POST', '/api/permissions/decide', { app_id: appId, permissions, allow, ...more });
    assert.equal(reply.status, 200, reply.text);
}

test('ping tells keys and apps apart, and refuses strangers in the words of the specification', async (t) => {
    const h = await shared(t);
    const { key } = await newKey(h);
    const app = await newApp(h);
    const cases = [
        [{ authorization: `Bearer ${key}` }, 200, { mode: 'development', appId: undefined }],
        [{ 'x-api-key': key }, 200, { mode: 'development' }],
        [{ 'x-app-id': app }, 200, { mode: 'production', appId: app }],
        [{ 'x-app-id': app, authorization: `Bearer ${key}` }, 200, { mode: 'development', appId: app }],
        [{ 'x-app-id': made, authorization: `Bearer ${key}` }, 200, { mode: 'development', appId: undefined }],
        [{ 'x-app-id': app, authorization: 'Bearer nonsense' }, 200, { mode: 'production', appId: app }],
        [{}, 401, { success: false, code: 'MISSING_APP_ID', error: 'Missing required header: x-app-id' }],
        [{ 'x-app-id': made }, 401, { success: false, code: 'INVALID_APP_ID', error: `Invalid app ID: ${made}` }],
    ];
    for (const [headers, status, members] of cases)
        for (const path of ['/sdk/ping', '/api/sdk/ping']) {
            const reply = await h.api('GET', path, undefined, headers);
            assert.equal(reply.status, status, JSON.stringify(headers));
            for (const [name, value] of Object.entries(members))
                assert.equal(reply.body[name], value, `${name} for ${JSON.stringify(headers)}`);
            assert.match(reply.headers['x-request-id'], /^[A-Za-z0-9._-]{1,64}$/);
        }
});

test('a key is shown once, survives a restart, and is dead the moment it is revoked', async (t) => {
    const h = await startHearth({ t });
    const { id, key } = await newKey(h);
    assert.ok((await h.socket('GET', '/api/keys')).text.includes(id));
    assert.ok(!(await h.socket('GET', '/api/keys')).text.includes(key));
    await h.terminate();
    await h.start();
    const ping = () => h.api('GET', '/sdk/ping', undefined, { 'x-api-key': key });
    assert.equal((await ping()).status, 200);
    await until(async () => (await h.socket('GET', '/api/keys')).body.keys[0].last_used_at, { what: 'its last use is noted' });
    assert.equal((await h.socket('DELETE', `/api/keys/${id}`)).status, 200);
    assert.equal((await ping()).status, 401);
    assert.ok(!h.log.join('\n').includes(key), 'a key must never be logged');
});

test('Host and Origin are checked on every route, unknown ones too', async (t) => {
    const h = await startHearth({ t, settings: { 'http.allowed_origins': 'https://app.example' } });
    for (const path of ['/sdk/ping', '/healthz', '/metrics', '/openapi.json', '/nowhere', '/api/keys']) {
        const foreign = await h.api('GET', path, undefined, { host: 'evil.example' });
        assert.deepEqual([foreign.status, foreign.body.code], [403, 'HOST_NOT_ALLOWED'], path);
        const page = await h.api('GET', path, undefined, { origin: 'https://evil.example' });
        assert.deepEqual([page.status, page.body.code], [403, 'ORIGIN_NOT_ALLOWED'], path);
        assert.equal(page.headers['access-control-allow-origin'], undefined);
    }
    assert.equal((await h.api('GET', '/healthz', undefined, { origin: h.url })).status, 200);
    const preflight = await h.api('OPTIONS', '/sdk/ping', undefined, { origin: 'https://app.example', 'access-control-request-method': 'GET' });
    assert.equal(preflight.status, 200);
    assert.equal(preflight.headers['access-control-allow-origin'], 'https://app.example');
    for (const name of ['content-type', 'authorization', 'x-app-id', 'x-api-key', 'accept'])
        assert.ok(preflight.headers['access-control-allow-headers'].split(', ').includes(name), name);
});

test('unknown routes and methods have their answers', async (t) => {
    const h = await shared(t);
    const unknown = await h.api('GET', '/nowhere');
    assert.deepEqual([unknown.status, unknown.body], [404, { success: false, error: 'Not Found', code: 'NOT_FOUND' }]);
    const method = await h.api('DELETE', '/sdk/ping');
    assert.deepEqual([method.status, method.body.code, method.headers.allow], [405, 'METHOD_NOT_ALLOWED', 'GET']);
});

test('the data folder is private and its owner\'s', async (t) => {
    const h = await shared(t);
    const app = await newApp(h);
    const { key } = await newKey(h);
    const ofApp = (await h.api('GET', '/sdk/local-apps/data-dir', undefined, { 'x-app-id': app })).body.dataDir;
    const ofKey = (await h.api('GET', '/sdk/local-apps/data-dir', undefined, { 'x-api-key': key })).body.dataDir;
    assert.equal(ofApp, `${h.dataDir}/local-apps/${app}`);
    assert.notEqual(ofApp, ofKey);
    for (const path of [ofApp, ofKey])
        assert.equal(statSync(path).mode & 0o777, 0o700);
});

test('an app asks, the person answers, the call goes through', async (t) => {
    const h = await shared(t);
    const app = await newApp(h);
    const agents = () => h.api('GET', '/agents', undefined, { 'x-app-id': app });
    const refused = await agents();
    assert.equal(refused.status, 403);
    assert.deepEqual([refused.body.error, refused.body.code, refused.body.permission], ['PERMISSION_REQUIRED', 'PERMISSION_REQUIRED', 'api.agents']);
    const asked = h.api('POST', '/api/local-apps/request-permission', { app_id: app, app_name: 'x', permission: 'api.agents' });
    await until(async () => (await pending(h, app)).some((question) => question.permission === 'api.agents'));
    await decide(h, app, ['api.agents'], true, { scope: 'once' });
    assert.equal((await asked).body.granted, true);
    assert.equal((await agents()).status, 200);
    assert.equal((await agents()).status, 403);
    await decide(h, app, ['api.agents'], false);
    assert.equal((await agents()).body.code, 'PERMISSION_DENIED');
    await decide(h, app, ['api.agents'], true);
    assert.equal((await agents()).status, 200);
    assert.equal((await h.socket('POST', '/api/permissions/revoke', { app_id: app, permission: 'api.agents' })).status, 200);
    assert.equal((await agents()).body.code, 'PERMISSION_REQUIRED');
});

test('register asks for all that is missing in one prompt', async (t) => {
    const h = await shared(t);
    const app = await newApp(h);
    const permissions = ['llm.chat', 'llm.embed', 'made.up'];
    const asked = h.api('POST', '/sdk/register', { app_id: app, permissions });
    const questions = await until(async () => {
        const all = await pending(h, app);
        return all.length === 3 && all;
    });
    assert.equal(new Set(questions.map((question) => question.id)).size, 1);
    assert.equal(questions.find((question) => question.permission === 'made.up').known, false);
    await decide(h, app, ['llm.chat', 'made.up'], true);
    await decide(h, app, ['llm.embed'], false);
    const { body } = await asked;
    assert.equal(body.success, true);
    assert.deepEqual(body.permissions, { granted: ['llm.chat', 'made.up'], denied: ['llm.embed'] });
    assert.equal((await h.api('POST', '/sdk/register', { app_id: made, permissions })).status, 404);
});

test('a client that leaves while it waits leaves the question and no thread behind', async (t) => {
    const h = await shared(t);
    const app = await newApp(h);
    const body = JSON.stringify({ app_id: app, permission: 'llm.chat' });
    const leaving = new AbortController();
    const left = fetch(`${h.url}/api/local-apps/request-permission`, { method: 'POST', signal: leaving.signal, body, headers: { 'content-type': 'application/json' } });
    left.catch(() => {});
    await until(async () => (await pending(h, app)).length === 1, { what: 'the question' });
    leaving.abort();
    await assert.rejects(left);
    assert.equal((await pending(h, app)).length, 1);
    await decide(h, app, ['llm.chat'], true);
    assert.equal((await h.api('POST', '/api/local-apps/request-permission', body)).body.granted, true);
});

test('nobody decides in time: not granted, not denied', async (t) => {
    const h = await startHearth({ t, settings: { 'consent.wait_s': 0.1 } });
    const app = await newApp(h);
    const reply = await h.api('POST', '/api/local-apps/request-permission', { app_id: app, permission: 'llm.chat' });
    assert.deepEqual([reply.status, reply.body.granted], [200, false]);
    assert.equal((await h.socket('GET', `/api/permissions?app_id=${app}`)).body.grants.length, 0);
});

test('two denials stop the asking until a reset', async (t) => {
    const h = await shared(t);
    const app = await newApp(h);
    const ask = () => h.api('POST', '/api/local-apps/request-permission', { app_id: app, permission: 'llm.chat' });
    for (let denials = 0; denials < 2; denials++) {
        const asked = ask();
        await until(async () => (await pending(h, app)).length === 1);
        await decide(h, app, ['llm.chat'], false);
        assert.equal((await asked).body.granted, false);
    }
    assert.equal((await ask()).body.granted, false);
    assert.equal((await pending(h, app)).length, 0);
    await h.socket('POST', '/api/permissions/reset', { app_id: app });
    const again = ask();
    await until(async () => (await pending(h, app)).length === 1);
    await decide(h, app, ['llm.chat'], true);
    assert.equal((await again).body.granted, true);
});

test('management answers the administrator alone, whose link works once', async (t) => {
    const h = await shared(t);
    const { key } = await newKey(h);
    const asKey = await h.api('GET', '/api/keys', undefined, { 'x-api-key': key });
    assert.deepEqual([asKey.status, asKey.body.code], [401, 'ADMIN_REQUIRED']);
    const { url } = (await h.socket('POST', '/api/session/link')).body;
    const path = url.slice(h.url.length);
    const { reply, cookie, proof, headers } = await followLink(h, url);
    const [, ...rules] = reply.headers['set-cookie'][0].split('; ');
    assert.ok(rules.includes('HttpOnly') && rules.includes('SameSite=Strict') && rules.includes('Path=/'));
    const page = await h.api('GET', '/session');
    assert.equal(page.status, 200);
    assert.match(page.headers['content-type'], /^text\/html/);
    assert.match(page.headers['content-security-policy'], /default-src 'none'/);
    assert.match(page.headers['content-security-policy'], /style-src 'self'; script-src 'self'/);
    assert.equal((await h.api('GET', '/api/keys', undefined, headers)).status, 200);
    assert.equal((await h.api('GET', path)).status, 403);
    assert.equal((await h.api('DELETE', '/api/session', undefined, headers)).status, 200);
    assert.equal((await h.api('GET', '/api/keys', undefined, headers)).status, 401);
    for (const secret of [cookie.split('=')[1], proof])
        assert.ok(!h.log.join('\n').includes(secret), 'a session must never be logged');
});

test('the audit log has every decision, in a chain that is whole', async (t) => {
    const h = await startHearth({ t });
    const app = await newApp(h);
    await decide(h, app, ['llm.chat', 'mcp.tools'], true);
    await decide(h, app, ['llm.chat'], false);
    const { entries } = (await h.socket('GET', '/api/audit?limit=100')).body;
    const actions = entries.filter((entry) => entry.subject === app).map((entry) => `${entry.action} ${entry.detail?.permission ?? ''}`);
    assert.deepEqual(actions.slice(0, 3), ['permission.deny llm.chat', 'permission.allow mcp.tools', 'permission.allow llm.chat']);
    const verdict = (await h.socket('GET', '/api/audit/verify')).body;
    assert.deepEqual([verdict.whole, verdict.entries], [true, entries.length]);
});

test('a backend token is kept for its owner, sealed, across a restart', async (t) => {
    const h = await startHearth({ t });
    const [app, other] = [await newApp(h), await newApp(h)];
    assert.equal((await h.api('GET', '/sdk/auth/token', undefined, { 'x-app-id': app })).status, 404);
    const synced = await h.api('POST', '/sdk/auth/sync-backend-token', { token: 'a token' }, { 'x-app-id': app });
    assert.deepEqual([synced.status, synced.body.hasToken], [200, true]);
    await h.terminate();
    await h.start();
    const { body } = await h.api('GET', '/sdk/auth/token', undefined, { 'x-app-id': app });
    assert.deepEqual([body.token, body.hasToken, body.syncedAt], ['a token', true, synced.body.syncedAt]);
    assert.equal((await h.api('GET', '/sdk/auth/token', undefined, { 'x-app-id': other })).status, 404);
});
