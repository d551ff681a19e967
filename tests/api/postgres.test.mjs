// The PostgreSQL backend from outside: its set-up on the command line, two services as two machines, a server that restarts.
import assert from 'node:assert/strict';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { coldHearth, startHearth, until } from './harness.mjs';
import { admin, insert, listeningApp, newApp, refused, rowBecomes, shellAgent } from './kit.mjs';
import { startProxy } from './postgres_proxy.mjs';
import { postgresPrograms, startPostgres } from './postgres_server.mjs';
import { faceKeys } from './realtime.mjs';

const skip = postgresPrograms ? false : 'no PostgreSQL is installed';
const brisk = { 'tasks.heartbeat_s': 0.2, 'tasks.stale_after_s': 300, 'tasks.sweep_s': 0.5, 'tasks.presence_s': 0.5 };
const appId = '99999999-0000-4000-8000-00000000000b';

const on = (pg, more = {}) => ({ ...brisk, 'backend.kind': 'postgres', 'backend.url': pg.url(), ...more });

// The commands of `hearth backend` work without a service, which could not start before the set-up.
async function prepared(t) {
    const h = coldHearth({ t });
    assert.equal((await h.cli('key', 'new')).code, 0);
    return h;
}

test('a database is set up, checked and mended on the command line', { skip }, async (t) => {
    const pg = await startPostgres(t);
    const h = await prepared(t);
    const refused = await h.cli('backend', 'setup');
    assert.notEqual(refused.code, 0);
    assert.match(refused.stderr, /embedded needs no set-up/);
    assert.equal((await h.cli('settings', 'set', 'backend.kind', 'postgres')).code, 0);
    const secret = await h.cli('settings', 'set', 'backend.url', 'postgresql://owner:hunter2@localhost/work');
    assert.notEqual(secret.code, 0);
    assert.match(secret.stderr, /must not hold a password/);
    assert.doesNotMatch(secret.stderr, /hunter2/);
    assert.equal((await h.cli('settings', 'set', 'backend.url', pg.url())).code, 0);

    const early = await h.cli('key', 'list'); // the tables are not there yet: the setting that chose them can be taken back
    assert.match(early.stderr, /hearth backend setup.*settings unset backend\.url/);
    assert.equal((await h.cli('settings', 'unset', 'backend.kind')).code, 0);
    assert.equal((await h.cli('key', 'list')).code, 0);
    assert.equal((await h.cli('settings', 'set', 'backend.kind', 'postgres')).code, 0);

    const bare = await h.cli('backend', 'check');
    assert.equal(bare.code, 1);
    assert.match(bare.stdout, /-- missing: table "public"."svc_activities"/);
    const sql = await h.cli('backend', 'sql', 'shop.orders');
    assert.match(sql.stdout, /^BEGIN;/);
    pg.psql(sql.stdout);
    assert.match((await h.cli('backend', 'check', 'shop.orders')).stdout, /has all it needs/);
    assert.equal((await h.cli('backend', 'setup', 'shop.orders')).code, 0);

    pg.psql('DROP TRIGGER hearth_1_deleted ON shop.orders');
    const missing = JSON.parse((await h.cli('backend', 'check', 'shop.orders', '--json')).stdout).missing;
    assert.equal(missing.length, 1);
    assert.match(missing[0].what, /hearth_1_deleted on "shop"."orders"/);
    pg.psql(missing[0].sql);
    assert.equal((await h.cli('backend', 'check', 'shop.orders')).code, 0);
});

test('a password is kept encrypted and used', { skip }, async (t) => {
    const pg = await startPostgres(t);
    const h = await prepared(t);
    const file = join(h.dataDir, 'backend.password');
    const kept = await h.cli('backend', 'password', { input: 'open sesame\n' });
    assert.equal(kept.code, 0);
    assert.equal(statSync(file).mode & 0o777, 0o600);
    assert.ok(!readFileSync(file).includes('sesame'));
    pg.psql('CREATE ROLE asked LOGIN PASSWORD \'open sesame\'', 'root');
    assert.doesNotMatch((await h.cli('settings', 'list')).stdout, /sesame/);
});

test('a service without a set-up database says what to do', { skip }, async (t) => {
    const pg = await startPostgres(t);
    await assert.rejects(startHearth({ t, settings: on(pg) }), /hearth backend setup/);
});

async function machines(t, pg, n) {
    const services = [];
    for (let i = 1; i <= n; i++) {
        const h = await startHearth({ t, settings: on(pg, { 'identity.machine_id': `m${i}` }) });
        await admin(h, 'POST', '/api/agents', { name: 'worker', command: '/bin/sh', args: ['-c', `printf '{"by":"%s"}' "$MACHINE_ID"`, 'worker'] });
        await newApp(h, { app_id: appId, name: 'shared', config: {
            agentHandlers: [{ tableName: 'svc_activities', agentId: 'worker', eventTypes: ['INSERT'] }], backend: { enabled: true, max_concurrent_tasks: 4 } } },
        ['activities.read', 'activities.write']);
        services.push(h);
    }
    return services;
}

async function setUp(t) {
    const pg = await startPostgres(t);
    const h = await prepared(t);
    pg.psql((await h.cli('backend', 'sql', { env: { HEARTH_BACKEND_KIND: 'postgres', HEARTH_BACKEND_URL: pg.url() } })).stdout);
    return pg;
}

// The owner of the tables declares one with columns of its own; the service works as a role that owns nothing.
test('a service has the rights that the set-up gives its role, and is told which it lacks', { skip }, async (t) => {
    const pg = await startPostgres(t), owner = await prepared(t);
    const env = { HEARTH_BACKEND_KIND: 'postgres', HEARTH_BACKEND_URL: pg.url() };
    const notes = { name: 'notes', app_type: 'node', config: { args: ['x.js'], backend: { schema: { notes: { columns: {
        id: { type: 'uuid', key: true, default: 'gen_random_uuid()' }, body: { type: 'text' } } } } } } };
    pg.psql('CREATE ROLE runtime LOGIN', 'root', 'postgres');
    assert.equal((await owner.cli('backend', 'setup', '--role', 'runtime', { env })).code, 0);
    const file = join(owner.dataDir, 'notes.json');
    writeFileSync(file, JSON.stringify(notes));
    assert.equal((await owner.cli('app', 'add', file, { env })).code, 0);

    const h = await startHearth({ t, settings: on(pg, { 'backend.url': pg.url('runtime') }) });
    const { secret } = await faceKeys(h), face = (path, body) => h.api(body ? 'POST' : 'GET', `/rest/v1/${path}`, body, { apikey: secret });
    assert.equal((await face('nothing')).body.code, 'PGRST205');
    assert.deepEqual([(await face('notes')).status, (await face('notes')).body.code], [403, '42501']);
    const { missing } = await admin(h, 'GET', '/api/backend/check');
    assert.deepEqual(missing.map((one) => one.what), ['rights of "runtime" on the declared tables']);
    pg.psql(missing[0].sql);
    assert.equal((await face('notes', { body: 'one' })).status, 201);
    assert.equal((await face('notes')).body.length, 1);
    assert.equal((await h.socket('POST', '/api/apps', notes)).status, 201, 'nothing is to be made');
    const other = { ...notes, name: 'others', config: { ...notes.config, backend: { schema: { others: notes.config.backend.schema.notes } } } };
    refused(await h.socket('POST', '/api/apps', other), 502, 'STORE_DENIED', /permission denied/);
    const work = { ...notes, name: 'work', config: { ...notes.config, backend: { enabled: true, tables: ['svc_activities', 'jobs'] } } };
    refused(await h.socket('POST', '/api/apps', work), 502, 'STORE_DENIED', /permission denied/);
    assert.equal((await owner.cli('backend', 'setup', '--role', 'runtime', 'jobs', { env })).code, 0);
    assert.equal((await h.socket('POST', '/api/apps', work)).status, 201);
    assert.deepEqual((await admin(h, 'GET', '/api/backend/check')).missing, []);
    pg.psql('DROP TRIGGER hearth_1_deleted ON jobs');
    assert.match((await h.cli('backend', 'check')).stdout, /-- missing: trigger hearth_1_deleted on "public"."jobs"/, 'tables of apps are looked at');
});

test('two services on one database are two machines, and each row is worked on once', { skip }, async (t) => {
    const pg = await setUp(t);
    const services = await machines(t, pg, 2);
    const calls = services.map((h) => h.asApp(appId));
    const ids = await Promise.all(Array.from({ length: 20 }, async (_, i) => (await insert(calls[i % 2], { i })).id));
    const rows = await Promise.all(ids.map((id) => rowBecomes(calls[0], id, 'completed')));
    for (const row of rows) {
        assert.equal(row.attempt, 1);
        assert.match(row.result.by, /^m[12]$/);
    }
    const id = pg.psql(`INSERT INTO svc_activities (app_id, raw_data) VALUES ('${appId}', '{"from":"psql"}') RETURNING id`);
    assert.deepEqual((await rowBecomes(calls[1], id, 'completed')).raw_data, { from: 'psql' });
    const doctor = await services[0].cli('doctor');
    assert.match(doctor.stdout, /postgres answers and is whole/);
});

test('backup, restore, upgrade and doctor say where the rows are', { skip }, async (t) => {
    const pg = await setUp(t);
    const h = await prepared(t);
    assert.equal((await h.cli('settings', 'set', 'backend.url', pg.url())).code, 0);
    assert.equal((await h.cli('settings', 'set', 'backend.kind', 'postgres')).code, 0);
    const archive = join(h.home, 'kept.tar.gz');
    assert.match((await h.cli('backup', archive)).stdout, /rows of activities and apps are not: they are in the PostgreSQL database/);
    assert.match((await h.cli('restore', archive, '--force')).stdout, /PostgreSQL database that backend\.url names: they are as they were before this restore/);
    assert.match((await h.cli('upgrade', '--check')).stdout, /rows +are in the PostgreSQL database .* not examined here: `hearth backend check`/);
    assert.match((await h.cli('doctor')).stdout, /in no backup of this service/);
});

test('rows whose changes died with the server are found by the sweep that a gap begins', { skip }, async (t) => {
    const pg = await setUp(t);
    const proxy = await startProxy(t, pg);
    const h = await startHearth({ t, settings: on({ url: proxy.url }, { 'tasks.sweep_s': 3600 }) });
    const { id, call } = await listeningApp(h, await shellAgent(h, 'printf \'{"done":true}\''));
    await rowBecomes(call, (await insert(call, {})).id, 'completed');
    await proxy.close();
    const rows = pg.psql(`INSERT INTO svc_activities (app_id, raw_data) SELECT '${id}', '{}' FROM generate_series(1, 20) RETURNING id`).split('\n');
    await pg.restart('SIGKILL');
    assert.equal(pg.psql('SELECT count(*) FROM svc_outbox'), '0');
    await proxy.open();
    for (const row of rows)
        assert.equal((await rowBecomes(call, row, 'completed')).attempt, 1);
});

test('rows that are written without triggers are found by the sweep', { skip }, async (t) => {
    const pg = await setUp(t);
    const h = await startHearth({ t, settings: on(pg) });
    const { id, call } = await listeningApp(h, await shellAgent(h, 'printf \'{"done":true}\''));
    const row = pg.psql(`SET session_replication_role = replica; INSERT INTO svc_activities (app_id, raw_data) VALUES ('${id}', '{}') RETURNING id`, 'root');
    assert.equal((await rowBecomes(call, row, 'completed')).attempt, 1);
});

test('the service works on after the database has crashed and come back', { skip }, async (t) => {
    const pg = await setUp(t);
    const [h] = await machines(t, pg, 1);
    const call = h.asApp(appId);
    await rowBecomes(call, (await insert(call, {})).id, 'completed');
    await pg.restart();
    const id = await until(async () => (await call('POST', '/activities', { raw_data: { after: true } })).body.data?.id, { what: 'a row after the restart' });
    await rowBecomes(call, id, 'completed');
});
