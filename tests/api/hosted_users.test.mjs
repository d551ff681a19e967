// Activities of a service of backend.kind = hosted: the project, here the face of another service, decides by the token of the app's user which rows there are.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { coldHearth, sharedHearth, startHearth } from './harness.mjs';
import { admin, newApp, newKey, nobodysId, refused } from './kit.mjs';
import { faceKeys, token } from './realtime.mjs';

const project = sharedHearth();
const rights = ['activities.read', 'activities.write'];

// A service whose project is the face of `h`: {h, keys, service}.
async function hosted(t) {
    const h = await project(t), keys = await faceKeys(h), cold = coldHearth({ t });
    const used = await cold.cli('backend', 'use', h.url, '--key', keys.publishable, '--secret', { input: keys.secret });
    assert.equal(used.code, 0, used.stderr);
    return { h, keys, service: await startHearth({ t, dataDir: cold.dataDir, settings: { 'backend.kind': 'hosted' } }) };
}

const sync = (call, text) => call('POST', '/sdk/auth/sync-supabase-token', { token: text });

async function userApp({ keys, service }, subject) {
    const call = service.asApp(await newApp(service, { require_user_auth: true }, rights));
    await sync(call, token(keys.jwt_secret, subject));
    return call;
}

// Requests of one app, each on behalf of a user: what hides a row is no rule about apps.
async function sharedApp({ keys, service }) {
    const call = service.asApp(await newApp(service, { require_user_auth: true }, rights));
    return (subject) => async (...request) => {
        assert.equal((await sync(call, token(keys.jwt_secret, subject))).status, 200);
        return call(...request);
    };
}

async function added(call, n) {
    const reply = await call('POST', '/activities', { raw_data: { n } });
    assert.equal(reply.status, 201, reply.text);
    return reply.body.data;
}

// The row as the project has it.
const rowOf = async ({ h }, id) => (await admin(h, 'GET', `/api/activities/${id}`)).data;

test('a user sees, changes and deletes the own rows only, and the row of another user stays as it is', async (t) => {
    const place = await hosted(t), anna = randomUUID(), ben = randomUUID();
    const as = await sharedApp(place), asAnna = as(anna), asBen = as(ben);
    const row = await added(asAnna, 1);
    assert.equal(row.user_id, anna);
    const own = await added(asBen, 2), before = await rowOf(place, row.id);
    assert.deepEqual((await asBen('GET', '/activities')).body.data.map((one) => one.id), [own.id]);
    assert.deepEqual((await asBen('GET', '/activities?status=pending&limit=1')).body.data.map((one) => one.id), [own.id]);
    for (const [method, body] of [['GET'], ['PATCH', { status: 'stolen' }], ['PATCH', { raw_data: {} }], ['DELETE']])
        refused(await asBen(method, `/activities/${row.id}`, body), 404, 'NOT_FOUND');
    for (const name of ['claim', 'complete', 'fail'])
        refused(await asBen('POST', `/activities/functions/svc_fn_${name}_task`, { task_id: row.id, machine_id: 'm' }), 404, 'NOT_FOUND');
    assert.deepEqual(await rowOf(place, row.id), before);
    assert.equal((await asAnna('PATCH', `/activities/${row.id}`, { status: 'seen' })).body.data.status, 'seen');
    assert.equal((await asAnna('PATCH', `/activities/${row.id}`, { status: 'pending' })).body.data.status, 'pending');
    const claimed = (await asAnna('POST', '/activities/functions/svc_fn_claim_task', { task_id: row.id, machine_id: 'm' })).body;
    assert.equal(claimed.result.success, true, JSON.stringify(claimed));
    assert.equal((await asAnna('POST', '/activities/functions/svc_fn_complete_task', { task_id: row.id, machine_id: 'm', result: { ok: 1 } })).body.result.success, true);
    assert.equal((await rowOf(place, row.id)).status, 'completed');
    assert.equal((await asAnna('DELETE', `/activities/${row.id}`)).status, 200);
    refused(await asAnna('GET', `/activities/${row.id}`), 404, 'NOT_FOUND');
});

test('a token that the project does not take reaches nothing', async (t) => {
    const place = await hosted(t), user = randomUUID(), call = await userApp(place, user), row = await added(call, 1);
    const requests = [['GET', '/activities'], ['GET', `/activities/${row.id}`], ['POST', '/activities', { raw_data: {} }], ['PATCH', `/activities/${row.id}`, { status: 'x' }],
        ['DELETE', `/activities/${row.id}`], ['POST', '/activities/functions/svc_fn_claim_task', { task_id: row.id, machine_id: 'm' }]];
    const everywhere = async (status, code, words) => {
        for (const [method, path, body] of requests)
            refused(await call(method, path, body), status, code, words);
    };
    await sync(call, token(place.keys.jwt_secret, user, { exp: Math.floor(Date.now() / 1000) - 3600 }));
    await everywhere(401, 'JWT_EXPIRED', /synchronise a fresh backend token/);
    await sync(call, token(place.keys.jwt_secret, user, { iat: Math.floor(Date.now() / 1000) + 3600 }));
    await everywhere(401, 'JWT_NOT_YET');
    await sync(call, token('x'.repeat(40), user, { role: 'service_role' }));
    await everywhere(401, 'JWT_SIGNATURE');
    await sync(call, 'no token');
    await everywhere(401, 'MALFORMED_JWT', /printable/);
    await sync(call, `${token(place.keys.jwt_secret, user)}\r\napikey: ${place.keys.secret}`);
    await everywhere(401, 'MALFORMED_JWT', /printable/);
    await sync(call, 'ü');
    await everywhere(401, 'MALFORMED_JWT', /printable/);
    await sync(call, 'x'.repeat(8193));
    await everywhere(401, 'MALFORMED_JWT', /8192 bytes/);
    await sync(call, 'x'.repeat(8192));
    await everywhere(401, 'JWT_SIGNATURE');
    await sync(call, token(place.keys.jwt_secret, user, { role: 'anon' }));
    await everywhere(403, 'ROW_REFUSED', /row-level security/i);
    await sync(call, '');
    await everywhere(403, 'BACKEND_TOKEN_REQUIRED');
    await sync(call, token(place.keys.jwt_secret, user));
    assert.equal((await call('GET', `/activities/${row.id}`)).body.data.status, 'pending');
});

test('an app without user authentication is anonymous, whatever token it has handed over; a key and the administrator are the service', async (t) => {
    const place = await hosted(t), { keys, service } = place, user = randomUUID(), row = await added(await userApp(place, user), 1);
    const id = await newApp(service, {}, rights), call = service.asApp(id), key = await newKey(service);
    await sync(call, token(keys.jwt_secret, user));
    const asApp = (method, path, body) => key.call(method, path, body, { 'x-app-id': id });
    for (const one of [call, asApp]) {
        refused(await one('POST', '/activities', { raw_data: {} }), 403, 'ROW_REFUSED', /anonymous/);
        refused(await one('GET', '/activities'), 403, 'ROW_REFUSED', /require_user_auth/);
        refused(await one('GET', `/activities/${row.id}`), 403, 'ROW_REFUSED');
        refused(await one('PATCH', `/activities/${row.id}`, { status: 'x' }), 403, 'ROW_REFUSED');
        refused(await one('DELETE', `/activities/${row.id}`), 403, 'ROW_REFUSED');
        refused(await one('GET', `/activities/${nobodysId}`), 403, 'ROW_REFUSED');
    }
    assert.equal((await key.call('POST', '/activities', { raw_data: {} })).status, 201);
    assert.equal((await admin(service, 'GET', `/api/activities/${row.id}`)).data.user_id, user);
});

test('the functions that tell of the project answer with the rights of the user too', async (t) => {
    const place = await hosted(t), call = await userApp(place, randomUUID());
    const ask = async (name, body) => (await call('POST', `/activities/functions/${name}`, body)).body.result;
    assert.ok((await ask('get_publications_full'))[0].tables.some((one) => one.table === 'svc_activities'));
    assert.ok(Math.abs(Date.parse(await ask('svc_fn_now')) - Date.now()) < 60_000);
    assert.ok((await ask('svc_fn_shape', { schema_name: 'public', table_name: 'svc_activities' })).columns.length > 10);
});

test('an app is told the address and the publishable key of the project', async (t) => {
    const { h, keys, service } = await hosted(t), app = service.asApp(await newApp(service, {}, ['database.config'])), key = await newKey(service);
    for (const reply of [await app('GET', '/sdk/database/config'), await key.call('GET', '/sdk/database/config')]) {
        assert.deepEqual([reply.body.config?.url, reply.body.config?.anonKey], [h.url, keys.publishable], reply.text);
        assert.ok(!reply.text.includes(keys.secret));
    }
    await admin(service, 'PUT', '/api/backend/project', { url: h.url, key: token(keys.jwt_secret, undefined, { role: 'service_role' }) });
    await service.terminate();
    await service.start();
    for (const call of [app, (await newKey(service)).call])
        refused(await call('GET', '/sdk/database/config'), 400, 'BAD_SETTING', /publishable/);
});
