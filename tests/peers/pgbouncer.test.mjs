// Services behind a pooler of transactions: statements through pgbouncer, events over a connection of their own or, without one, the sweep only.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { coldHearth, startHearth, until } from '../api/harness.mjs';
import { admin, insert, listeningApp, newApp, rowBecomes } from '../api/kit.mjs';
import { postgresPrograms, startPostgres } from '../api/postgres_server.mjs';
import { hasPgbouncer, startPgbouncer } from './pgbouncer.mjs';

const skip = postgresPrograms && hasPgbouncer ? false : 'no PostgreSQL or no pgbouncer is installed';
const appId = '99999999-0000-4000-8000-00000000000c';
const brisk = { 'tasks.heartbeat_s': 0.2, 'tasks.sweep_s': 0.5, 'tasks.presence_s': 0.5 };

async function begin(t, { zone = 'UTC', ...pooling } = {}) {
    const pg = await startPostgres(t);
    pg.psql(`ALTER ROLE owner SET TimeZone = '${zone}'`, 'root');
    const pooler = await startPgbouncer(t, pg, pooling), h = coldHearth({ t });
    assert.equal((await h.cli('key', 'new')).code, 0);
    const settings = { ...brisk, 'backend.kind': 'postgres', 'backend.url': pooler.url };
    const env = { HEARTH_BACKEND_KIND: 'postgres', HEARTH_BACKEND_URL: pooler.url };
    const setup = await h.cli('backend', 'setup', 'shop.orders', { env });
    assert.equal(setup.code, 0, setup.stderr);
    return { pg, pooler, h, settings, env };
}

async function machine(t, name, settings) {
    const h = await startHearth({ t, settings: { ...settings, 'identity.machine_id': name } });
    await admin(h, 'POST', '/api/agents', { name: 'worker', command: '/bin/sh', args: ['-c', `printf '{"by":"%s"}' "$MACHINE_ID"`, 'worker'] });
    await newApp(h, { app_id: appId, name: 'shared', config: {
        agentHandlers: [{ tableName: 'svc_activities', agentId: 'worker', eventTypes: ['INSERT'] }], backend: { enabled: true, max_concurrent_tasks: 4 } } },
    ['activities.read', 'activities.write']);
    return h;
}

const eventsOf = async (h) => (await admin(h, 'GET', '/api/backend/monitor'));

test('two services behind a pooler share the rows, with events from the server itself', { skip }, async (t) => {
    const { pg, settings } = await begin(t);
    const direct = { ...settings, 'backend.events_url': pg.url(), 'tasks.sweep_s': 3600 };
    const services = [await machine(t, 'm1', direct), await machine(t, 'm2', direct)];
    const calls = services.map((h) => h.asApp(appId));
    const ids = await Promise.all(Array.from({ length: 40 }, async (_, i) => (await insert(calls[i % 2], { i })).id));
    for (const id of ids) {
        const row = await rowBecomes(calls[0], id, 'completed');
        assert.equal(row.attempt, 1);
        assert.match(row.result.by, /^m[12]$/);
    }
    const id = pg.psql(`INSERT INTO svc_activities (app_id, raw_data) VALUES ('${appId}', '{"from":"psql"}') RETURNING id`);
    assert.deepEqual((await rowBecomes(calls[1], id, 'completed')).raw_data, { from: 'psql' });
});

test('without a session for the events the sweep finds the rows, and the service says so', { skip }, async (t) => {
    const { settings } = await begin(t), h = await machine(t, 'm1', settings), call = h.asApp(appId);
    const ids = await Promise.all(Array.from({ length: 20 }, async (_, i) => (await insert(call, { i })).id));
    for (const id of ids)
        assert.equal((await rowBecomes(call, id, 'completed')).attempt, 1);
    await until(() => /leads through a pooler that changes sessions.*backend\.events_url/.test(h.log.join("\n")), { what: 'the sentence in the log' });
    assert.equal(h.log.join("\n").match(/leads through a pooler/g).length, 1);
    assert.match(JSON.stringify(await eventsOf(h)), /backend\.events_url/);
    assert.match((await h.cli('doctor')).stdout, /a session of its own for the events/);
});

test('check names what a pooler takes away, with what mends it', { skip }, async (t) => {
    const { pg, pooler, h, env } = await begin(t, { zone: 'Europe/Berlin' });
    const check = async (more = {}) => JSON.parse((await h.cli('backend', 'check', 'shop.orders', '--json', { env: { ...env, ...more } })).stdout).missing;
    const [zone, session, ...none] = await check();
    assert.deepEqual(none, []);
    assert.match(zone.what, /times in UTC: .*Europe\/Berlin/);
    assert.match(session.what, /a session of its own for the events/);
    pg.psql(zone.sql);
    await pooler.restart(); // it gives its clients the time zone of its first session
    assert.deepEqual(await check({ HEARTH_BACKEND_EVENTS_URL: pg.url() }), []);
    const refused = await h.cli('settings', 'set', 'backend.events_url', 'postgresql://owner:hunter2@localhost/work');
    assert.match(refused.stderr, /must not hold a password/);
});

test('a pooler of sessions gives all a service needs', { skip }, async (t) => {
    const { h, env, settings } = await begin(t, { mode: 'session', sessions: 20 });
    assert.doesNotMatch((await h.cli('backend', 'check', { env })).stdout, /session of its own/);
    const service = await machine(t, 'm1', { ...settings, 'tasks.sweep_s': 3600 }), call = service.asApp(appId);
    await rowBecomes(call, (await insert(call, { by: 'an event' })).id, 'completed');
});
