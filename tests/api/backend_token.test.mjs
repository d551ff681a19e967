// The user's backend token and the database configuration (decision D6).
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { startHearth } from './harness.mjs';
import { newApp, newKey, nobodysId, refused, refusedFields, timeForm } from './kit.mjs';
import { faceKeys, token } from './realtime.mjs';

let h;
before(async () => { h = await startHearth({ settings: { 'log.level': 'debug' } }); });
after(() => h.stop());

const sync = (call, token) => call('POST', '/sdk/auth/sync-backend-token', { token });

test('a synchronised token is given back to the app that synchronised it', async () => {
    const app = h.asApp(await newApp(h));
    const { status, body } = await sync(app, 'aaa.bbb.ccc');
    assert.equal(status, 200);
    assert.equal(body.success, true);
    assert.equal(typeof body.message, 'string');
    assert.equal(body.hasToken, true);
    assert.match(body.syncedAt, timeForm);
    const shown = (await app('GET', '/sdk/auth/token')).body;
    assert.equal(shown.token, 'aaa.bbb.ccc');
    assert.equal(shown.hasToken, true);
    assert.equal(shown.syncedAt, body.syncedAt);
});

test('a later token replaces the earlier one', async () => {
    const app = h.asApp(await newApp(h));
    await sync(app, 'first');
    await sync(app, 'second');
    assert.equal((await app('GET', '/sdk/auth/token')).body.token, 'second');
});

test('without a token the answer is 404 with the envelope', async () => {
    const app = h.asApp(await newApp(h));
    refused(await app('GET', '/sdk/auth/token'), 404, 'TOKEN_NOT_FOUND');
});

test('no other app and no other key sees the token', async () => {
    const app = h.asApp(await newApp(h));
    await sync(app, 'mine');
    refused(await h.asApp(await newApp(h))('GET', '/sdk/auth/token'), 404, 'TOKEN_NOT_FOUND');
    const [one, other] = [await newKey(h), await newKey(h)];
    await sync(one.call, 'of the key');
    assert.equal((await one.call('GET', '/sdk/auth/token')).body.token, 'of the key');
    refused(await other.call('GET', '/sdk/auth/token'), 404, 'TOKEN_NOT_FOUND');
});

test('a token is sealed on disk and never logged, and outlives the service', async (t) => {
    const again = await startHearth({ t, settings: { 'log.level': 'debug' } });
    const app = await newApp(again);
    const kept = `secret-${'q'.repeat(40)}`;
    await sync(again.asApp(app), kept);
    const files = readdirSync(again.dataDir, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
    for (const file of files)
        assert.equal(readFileSync(join(file.parentPath, file.name)).indexOf(kept), -1, file.name);
    assert.ok(!again.log.some((line) => line.includes(kept)));
    await again.kill();
    await again.start();
    assert.equal((await again.asApp(app)('GET', '/sdk/auth/token')).body.token, kept);
});

test('a token is text of at most 16,384 characters', async () => {
    const app = h.asApp(await newApp(h));
    assert.equal((await sync(app, 'x'.repeat(16_384))).status, 200);
    refusedFields(await sync(app, 'x'.repeat(16_385)), 'token');
    refusedFields(await sync(app, 1), 'token');
    refusedFields(await sync(app, undefined), 'token');
});

test('the database configuration is that of the app', async () => {
    const id = await newApp(h, { config: { backend: { enabled: true, tables: ['public.orders'], max_concurrent_tasks: 4 } } }, ['database.config']);
    const { status, body } = await h.asApp(id)('GET', '/sdk/database/config');
    assert.equal(status, 200);
    assert.equal(body.success, true);
    assert.equal(typeof body.config.url, 'string');
    assert.equal(typeof body.config.anonKey, 'string');
    assert.equal(body.config.mode, 'compatible');
    assert.deepEqual(body.config.tables, ['public.orders']);
    assert.equal(body.config.max_concurrent_tasks, 4);
});

test('the database configuration needs its permission', async () => {
    assert.equal(refused(await h.asApp(await newApp(h))('GET', '/sdk/database/config'), 403, 'PERMISSION_REQUIRED').permission, 'database.config');
});

test('an app that requires user authentication reaches activities with a synchronised token only', async () => {
    const id = await newApp(h, { require_user_auth: true }, ['activities.read', 'activities.write']);
    const app = h.asApp(id), key = await newKey(h);
    const routes = [['POST', '/activities', { raw_data: {} }], ['GET', '/activities'], ['GET', `/activities/${nobodysId}`],
        ['PATCH', `/activities/${nobodysId}`, { status: 'seen' }], ['DELETE', `/activities/${nobodysId}`]];
    const without = async () => {
        for (const [method, path, body] of routes)
            assert.match(refused(await app(method, path, body), 403, 'BACKEND_TOKEN_REQUIRED').error, /has to be synchronised first/, `${method} ${path}`);
        refused(await key.call('GET', '/activities', undefined, { 'x-app-id': id }), 403, 'BACKEND_TOKEN_REQUIRED');
    };
    await without();
    assert.equal((await key.call('GET', '/activities')).status, 200, 'a key without an app');
    assert.equal((await h.socket('GET', '/api/activities')).status, 200, 'the administrator');
    await sync(h.asApp(await newApp(h)), 'of another app');
    await without();
    await sync(app, 'of the user');
    assert.equal((await app('POST', '/activities', { raw_data: {} })).status, 201);
    assert.equal((await app('GET', '/activities')).body.data.length, 1);
    refused(await app('GET', `/activities/${nobodysId}`), 404, 'NOT_FOUND');
    await sync(app, '');
    await without();
});

test('a token that was signed here decides which rows the app reaches', async () => {
    const { jwt_secret: secret } = await faceKeys(h);
    const app = h.asApp(await newApp(h, { require_user_auth: true }, ['activities.read', 'activities.write']));
    const anna = randomUUID(), ben = randomUUID();
    const as = (user, more) => sync(app, token(secret, user, more));
    const add = async (n) => (await app('POST', '/activities', { raw_data: { n } })).body.data;
    const seen = async (query = '') => (await app('GET', `/activities${query}`)).body.data.map((row) => row.raw_data.n);

    await as(anna.toUpperCase());
    const first = await add(1);
    assert.equal(first.user_id, anna);
    await as(ben);
    await add(2);
    assert.deepEqual(await seen(), [2]);
    assert.deepEqual(await seen('?status=pending&limit=1'), [2]);
    assert.deepEqual(await seen('?status=completed'), []);
    for (const [method, body] of [['GET'], ['PATCH', { status: 'x' }], ['DELETE']])
        refused(await app(method, `/activities/${first.id}`, body), 404, 'NOT_FOUND');
    refused(await app('POST', '/activities/functions/svc_fn_claim_task', { task_id: first.id, machine_id: 'm' }), 404, 'NOT_FOUND');
    await as(anna);
    assert.deepEqual(await seen(), [1]);
    assert.equal((await app('PATCH', `/activities/${first.id}`, { status: 'x' })).body.data.status, 'x');

    await as(anna, { exp: 1 });
    refused(await app('GET', '/activities'), 401, 'JWT_EXPIRED', /synchronise a fresh backend token/);
    await as(undefined, { role: 'anon' });
    refused(await app('POST', '/activities', { raw_data: {} }), 403, 'BACKEND_TOKEN_REQUIRED', /row-level security/);
    await as('no uuid');
    refused(await app('GET', '/activities'), 403, 'BACKEND_TOKEN_REQUIRED');
    await as(undefined, { role: 'service_role' });
    assert.deepEqual(await seen(), [2, 1]);
    assert.equal((await app('DELETE', `/activities/${first.id}`)).status, 200);
});

test('the configuration leads to the face, and a user who signs in there is known to the activities', async () => {
    const id = await newApp(h, { require_user_auth: true }, ['database.config', 'activities.read', 'activities.write']), app = h.asApp(id);
    const { url, anonKey } = (await app('GET', '/sdk/database/config')).body.config;
    assert.equal(anonKey, (await faceKeys(h)).publishable);
    assert.equal(url, h.url);
    const { body } = await h.api('POST', '/auth/v1/signup', { email: `${randomUUID()}@example.org`, password: 'a password' }, { apikey: anonKey });
    await app('POST', '/sdk/auth/sync-supabase-token', { token: body.access_token });
    assert.equal((await app('POST', '/activities', { raw_data: {} })).body.data.user_id, body.user.id);
});
