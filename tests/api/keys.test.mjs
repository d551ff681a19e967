// Developer keys (decision D3): at least 128 random bits, shown once, stored hashed, revocable with immediate effect.
import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { startHearth, until } from './harness.mjs';
import { admin, newApp, newKey, nobodysId, refused, refusedFields, timeForm, unique } from './kit.mjs';

let h;
before(async () => { h = await startHearth({ settings: { 'log.level': 'debug' } }); });
after(() => h.stop());

const listed = async (id) => (await admin(h, 'GET', '/api/keys')).keys.find((one) => one.id === id);

test('a new key has at least 128 random bits and works at once', async () => {
    const { id, key, call } = await newKey(h);
    assert.ok(key.replace(/^[a-z]+_/, '').length >= 22, 'base 64 has 6 bits a character');
    assert.ok(id.length > 0);
    assert.equal((await call('GET', '/sdk/ping')).status, 200);
    assert.notEqual((await newKey(h)).key, key);
});

test('the list tells a key by its name and last characters, never the key', async () => {
    const { id, key } = await newKey(h, 'for the tests');
    const reply = await h.socket('GET', '/api/keys');
    assert.ok(!reply.text.includes(key));
    const { name, last4, created_at: made, revoked_at: revoked } = await listed(id);
    assert.equal(name, 'for the tests');
    assert.equal(last4, key.slice(-4));
    assert.match(made, timeForm);
    assert.equal(revoked, null);
});

test('a key may have no name', async () => {
    const { id } = await admin(h, 'POST', '/api/keys', undefined, 201);
    assert.equal((await listed(id)).name, '');
});

test('a key is on disk neither in the databases nor in any other file, nor in the log', async () => {
    const { key, call } = await newKey(h);
    await call('GET', '/activities');
    const files = readdirSync(h.dataDir, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
    assert.ok(files.length >= 2);
    for (const file of files)
        assert.equal(readFileSync(join(file.parentPath, file.name)).indexOf(key), -1, file.name);
    assert.ok(!h.log.some((line) => line.includes(key)));
});

test('a revoked key is refused from the next request on', async () => {
    const { id, call } = await newKey(h);
    assert.equal((await call('GET', '/activities')).status, 200);
    await admin(h, 'DELETE', `/api/keys/${id}`);
    refused(await call('GET', '/activities'), 401, 'INVALID_API_KEY', /no developer key of this Hearth, or it was revoked/);
    refused(await call('GET', '/sdk/ping'), 401, 'INVALID_API_KEY');
    assert.match((await listed(id)).revoked_at, timeForm);
});

test('a key tells when it was last used', async () => {
    const { id, call } = await newKey(h);
    assert.equal((await listed(id)).last_used_at, null);
    await call('GET', '/activities');
    assert.match(await until(async () => (await listed(id)).last_used_at, { what: 'last_used_at' }), timeForm);
});

test('an unknown key cannot be revoked', async () => {
    refused(await h.socket('DELETE', `/api/keys/${nobodysId}`), 404, 'KEY_NOT_FOUND');
    refused(await h.socket('DELETE', '/api/keys/x'), 404, 'KEY_NOT_FOUND');
});

test('a key nearly like another is none', async () => {
    const { key } = await newKey(h);
    for (const near of [key.slice(0, -1), `${key}0`, key.toUpperCase(), ` ${key}x`, key.slice(0, -1) + (key.endsWith('0') ? '1' : '0')])
        refused(await h.api('GET', '/activities', undefined, { 'x-api-key': near }), 401, 'INVALID_API_KEY');
});

test('the name of a key has at most 128 characters', async () => {
    await admin(h, 'POST', '/api/keys', { name: 'ü'.repeat(128) }, 201);
    refusedFields(await h.socket('POST', '/api/keys', { name: 'ü'.repeat(129) }), 'name');
});

test('a key survives a restart', async (t) => {
    const other = await startHearth({ t });
    const { key } = await newKey(other);
    await other.terminate();
    await other.start();
    assert.equal((await other.api('GET', '/sdk/ping', undefined, { 'x-api-key': key })).status, 200);
});

test('keys are made and revoked by the administrator only, and both is audited', async () => {
    const { id, call } = await newKey(h);
    refused(await call('GET', '/api/keys'), 401, 'ADMIN_REQUIRED');
    refused(await call('POST', '/api/keys', {}), 401, 'ADMIN_REQUIRED');
    refused(await call('DELETE', `/api/keys/${id}`), 401, 'ADMIN_REQUIRED');
    await admin(h, 'DELETE', `/api/keys/${id}`);
    const { entries } = await admin(h, 'GET', '/api/audit?limit=500');
    const mine = entries.filter((entry) => entry.subject === id);
    assert.equal(mine.length, 2, JSON.stringify(mine));
});

// ---- a key that is none, on every face ----

const chatBody = { model: 'm', max_tokens: 9, messages: [{ role: 'user', content: 'hi' }] };
const wrong = [{ authorization: 'Bearer nonsense' }, { 'x-api-key': 'nonsense' }, { authorization: 'Basic bm9ib2R5' }, { authorization: 'Bearer nonsense', 'x-app-id': nobodysId }];

for (const headers of wrong)
    test(`${JSON.stringify(headers)} is told as a wrong key by every face`, async () => {
        for (const [method, path, body] of [['GET', '/sdk/ping'], ['GET', '/activities'], ['POST', '/sdk/llm/chat', chatBody], ['POST', '/sdk/llm/chat/stream', chatBody],
            ['POST', '/sdk/register', {}]])
            refused(await h.api(method, path, body, headers), 401, 'INVALID_API_KEY', /^Invalid API key/);
        for (const path of ['/v1/chat/completions', '/v1/embeddings']) {
            const { status, body } = await h.api('POST', path, { ...chatBody, input: 'x' }, headers);
            assert.deepEqual([status, body.error.code, body.error.type, body.error.hearth_code], [401, 'invalid_api_key', 'authentication_error', 'INVALID_API_KEY']);
        }
        const { status, body } = await h.api('POST', '/v1/messages', chatBody, headers);
        assert.deepEqual([status, body.type, body.error.type], [401, 'error', 'authentication_error']);
        assert.match(body.error.message, /Invalid API key/);
    });

test('a wrong key spoils nothing when another credential is valid, and both are told when none is', async () => {
    const app = await newApp(h);
    assert.equal((await h.api('GET', '/sdk/ping', undefined, { authorization: 'Bearer nonsense', 'x-app-id': app })).status, 200);
    const { key } = await newKey(h);
    assert.equal((await h.api('GET', '/sdk/ping', undefined, { authorization: 'Bearer nonsense', 'x-api-key': key })).status, 200);
    refused(await h.api('GET', '/sdk/ping', undefined, { authorization: 'Bearer nonsense', 'x-app-id': nobodysId }), 401, 'INVALID_API_KEY',
        new RegExp(`Invalid app ID: ${nobodysId}`));
    refused(await h.api('GET', '/sdk/ping', undefined, { authorization: 'Bearer' }), 401, 'MISSING_APP_ID');
});

// ---- keys that were made elsewhere ----

const published = () => `ABCDEFG-${unique('key')}-0123456789`;
const importKey = (app, key, more = {}, status = 201) => admin(h, 'POST', '/api/keys/import', { app, key, ...more }, status);
const withKey = (key, headers = {}) => (method, path, body) => h.api(method, path, body, { authorization: `Bearer ${key}`, ...headers });

test('an imported key is its app, with what the app was granted and nothing else', async () => {
    const key = published(), app = await newApp(h, { name: unique('published') }, ['api.agents']);
    refused(await withKey(key)('GET', '/sdk/ping'), 401, 'INVALID_API_KEY');
    const { name } = (await admin(h, 'GET', `/api/apps/${app}`)).app;
    const made = await importKey(name, key, { name: 'of the package' });
    assert.deepEqual([made.app_id, made.app, made.last4], [app, name, key.slice(-4)]);
    for (const call of [withKey(key), (method, path, body) => h.api(method, path, body, { 'x-api-key': key }), withKey(key, { 'x-app-id': app }), withKey(key, { 'x-app-id': nobodysId })]) {
        const { body } = await call('GET', '/sdk/ping');
        assert.deepEqual([body.mode, body.appId], ['production', app]);
        assert.equal((await call('GET', '/agents')).status, 200);
        refused(await call('GET', '/workspaces'), 403, 'PERMISSION_REQUIRED');
        refused(await call('GET', '/api/keys'), 401, 'ADMIN_REQUIRED');
    }
    assert.equal((await withKey(key)('GET', '/sdk/local-apps/data-dir')).body.dataDir, `${h.dataDir}/local-apps/${app}`);
    const shown = await listed(made.id);
    assert.deepEqual([shown.name, shown.app_id, shown.app, shown.may, shown.last4], ['of the package', app, name, `what ${name} was granted`, key.slice(-4)]);
    await until(async () => (await listed(made.id)).last_used_at, { what: 'last_used_at' });
    const { entries } = await admin(h, 'GET', '/api/audit?limit=500');
    assert.deepEqual(entries.filter((entry) => entry.subject === made.id).map((entry) => [entry.action, entry.detail.app_id]), [['key.import', app]]);
});

test('an imported key cannot act as another app', async () => {
    const key = published(), app = await newApp(h, {}, ['webhook.trigger']), other = await newApp(h, {}, ['webhook.trigger']);
    await importKey(app, key);
    refused(await withKey(key, { 'x-app-id': other })('GET', '/sdk/ping'), 403, 'APP_ID_MISMATCH');
    refused(await withKey(key)('POST', '/webhooks/svc', { event: 'trigger-agent', app_id: other, payload: { raw_data: {} } }), 403, 'APP_ID_MISMATCH');
    refused(await withKey(key)('POST', '/api/local-apps/request-permission', { app_id: other, permission: 'llm.chat' }), 403, 'APP_ID_MISMATCH');
    assert.equal((await withKey(key)('POST', '/webhooks/svc', { event: 'trigger-agent', app_id: app, payload: { raw_data: {} } })).status, 200);
});

test('an imported key ends when it is revoked and with its app, and may come again', async () => {
    const key = published(), app = await newApp(h);
    const { id } = await importKey(app, key);
    assert.equal((await withKey(key)('GET', '/sdk/ping')).status, 200);
    await admin(h, 'DELETE', `/api/keys/${id}`);
    refused(await withKey(key)('GET', '/sdk/ping'), 401, 'INVALID_API_KEY');
    assert.equal((await importKey(app, key)).id, id);
    assert.equal((await importKey(app, key)).id, id, 'the same once more changes nothing');
    const other = await newApp(h);
    refused(await h.socket('POST', '/api/keys/import', { app: other, key }), 409, 'ALREADY_EXISTS', /tied to the app .* already/);
    await admin(h, 'DELETE', `/api/apps/${app}`);
    refused(await withKey(key)('GET', '/sdk/ping'), 401, 'INVALID_API_KEY');
    assert.equal(await listed(id), undefined);
    await importKey(other, key);
    assert.equal((await withKey(key)('GET', '/sdk/ping')).body.appId, other);
});

test('a developer key that is tied to an app loses every other right', async () => {
    const { id, key, call } = await newKey(h), app = await newApp(h);
    assert.equal((await call('GET', '/agents')).status, 200);
    assert.equal((await importKey(app, key)).id, id);
    refused(await call('GET', '/agents'), 403, 'PERMISSION_REQUIRED');
    assert.equal((await call('GET', '/sdk/ping')).body.appId, app);
});

test('an imported key survives a restart, and is in no file and no log', async (t) => {
    const other = await startHearth({ t }), key = published(), app = await newApp(other);
    await admin(other, 'POST', '/api/keys/import', { app, key }, 201);
    await other.terminate();
    await other.start();
    assert.equal((await other.api('GET', '/sdk/ping', undefined, { 'x-api-key': key })).body.appId, app);
    for (const file of readdirSync(other.dataDir, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile()))
        assert.equal(readFileSync(join(file.parentPath, file.name)).indexOf(key), -1, file.name);
    assert.ok(!other.log.some((line) => line.includes(key)));
});

test('a key to import is long and varied enough, and its app is there', async () => {
    const app = await newApp(h);
    for (const key of ['Abcdefgh01234567', `Ab${'cdefgh01'.repeat(32)}`.slice(0, 256)])
        await importKey(app, key);
    for (const key of ['Abcdefgh0123456', 'x'.repeat(257), 'abcdefg'.repeat(4), 'abcdefgh 12345678', 'abcdefgh12345678ü', 'hearth_task_abcdefgh12345678', 'hearth_app_abcdefgh12345678', 7, null])
        refusedFields(await h.socket('POST', '/api/keys/import', { app, key }), 'key');
    refused(await h.socket('POST', '/api/keys/import', { app: nobodysId, key: published() }), 404, 'APP_NOT_FOUND');
});
