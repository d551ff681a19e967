// Several machines on one backend file: one works on each row, another retries what failed, three failures end in quarantine, and
// nothing is lost when a service is killed (specification, "States and transitions", "Retry broadcast"; architecture, section 4).
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { startHearth, until } from './harness.mjs';
import { admin, insert, isAlive, listeningApp, newApp, rowBecomes, shellAgent, sqlite, taskBecomes, tasksOfRow, unique } from './kit.mjs';

// A lease lives so long that no slow machine lets one go by itself; tests of leases that end have soonStale.
const brisk = { 'tasks.heartbeat_s': 0.2, 'tasks.stale_after_s': 300, 'tasks.sweep_s': 0.2, 'tasks.presence_s': 0.5, 'backend.poll_ms': 20 };
const soonStale = { 'tasks.stale_after_s': 4 };
const appId = '99999999-0000-4000-8000-000000000001';

// Services m1, m2, ... on one file, each with the same app and an agent of its own.
async function machines(t, scripts, settings = {}) {
    const folder = mkdtempSync(join(tmpdir(), 'hearth-shared-'));
    t.after(() => rmSync(folder, { recursive: true, force: true }));
    const file = join(folder, 'backend.db');
    const services = [];
    for (const [i, script] of scripts.entries()) {
        const h = await startHearth({ t, settings: { ...brisk, 'backend.file': file, 'identity.machine_id': `m${i + 1}`, ...settings } });
        await admin(h, 'POST', '/api/agents', { name: 'worker', command: '/bin/sh', args: ['-c', script, 'worker'] });
        services.push(h);
    }
    return services;
}

async function joinIn(h, more = {}) {
    await newApp(h, { app_id: appId, name: 'shared', config: {
        agentHandlers: [{ tableName: 'svc_activities', agentId: 'worker', eventTypes: ['INSERT'] }], backend: { enabled: true, ...more } } },
    ['activities.read', 'activities.write']);
    return h.asApp(appId);
}

test('each row is worked on by exactly one of three machines', async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'hearth-gate-'));
    t.after(() => rmSync(folder, { recursive: true, force: true }));
    const go = join(folder, 'go');
    const services = await machines(t, Array(3).fill(`while [ ! -e ${go} ]; do sleep 0.05; done; printf '{"by":"%s"}' "$MACHINE_ID"`));
    const calls = await Promise.all(services.map((h) => joinIn(h, { max_concurrent_tasks: 4 })));
    const ids = await Promise.all(Array.from({ length: 30 }, async (_, i) => (await insert(calls[i % 3], { i })).id));
    await until(async () => (await calls[0]('GET', '/activities?status=claimed')).body.data.length === 12, { what: 'every place is taken' });
    writeFileSync(go, '');
    const rows = await Promise.all(ids.map((id) => rowBecomes(calls[0], id, 'completed')));
    for (const row of rows) {
        assert.equal(row.attempt, 1);
        assert.match(row.result.by, /^m[123]$/);
    }
    assert.equal(new Set(rows.map((row) => row.result.by)).size, 3, 'the work is shared');
});

test('what one machine failed another does, and the first does not try again', async (t) => {
    const services = await machines(t, ['echo "m1 cannot" >&2; exit 1', `printf '{"by":"%s"}' "$MACHINE_ID"`]);
    const first = await joinIn(services[0]);
    const { id } = await insert(first, {});
    const failed = await rowBecomes(first, id, 'failed');
    assert.deepEqual([failed.attempted_by, failed.retry_count, failed.locked_by], [['m1'], 1, null]);
    await joinIn(services[1]);
    const row = await rowBecomes(first, id, 'completed');
    assert.deepEqual(row.result, { by: 'm2' });
    assert.deepEqual(row.attempted_by, ['m1']);
    assert.equal(row.attempt, 2);
});

test('a row that three machines failed is in quarantine with every reason, and can be replayed', async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'hearth-gate-'));
    t.after(() => rmSync(folder, { recursive: true, force: true }));
    const go = join(folder, 'go');
    const services = await machines(t, Array(3).fill(`[ -e ${go} ] && { echo '{"at":"last"}'; exit 0; }; echo "$MACHINE_ID has no paper" >&2; exit 1`));
    const call = await joinIn(services[0]);
    const { id } = await insert(call, {});
    await rowBecomes(call, id, 'failed');
    await joinIn(services[1]);
    await joinIn(services[2]);
    const row = await until(async () => {
        const { data } = (await call('GET', `/activities/${id}`)).body;
        return data.status === 'failed' && data.retry_count === 3 && data;
    }, { what: 'three failures' });
    assert.deepEqual([...row.attempted_by].sort(), ['m1', 'm2', 'm3']);
    const shown = await Promise.all(services.map(async (h) => {
        const [{ uuid }] = await tasksOfRow(h, id);
        return until(async () => {
            const { body } = await h.socket('GET', `/api/tasks/${uuid}`);
            return body.task.quarantined && body;
        }, { what: 'quarantined' });
    }));
    const reasons = shown.flatMap(({ runs }) => runs.map((run) => run.error)).join(' ');
    for (const machine of ['m1', 'm2', 'm3'])
        assert.match(reasons, new RegExp(`${machine} has no paper`));
    assert.equal((await admin(services[0], 'GET', '/api/tasks?quarantined=true')).tasks.length, 1);

    writeFileSync(go, '');
    await admin(services[0], 'POST', `/api/tasks/${shown[0].task.uuid}/replay`);
    assert.deepEqual((await rowBecomes(call, id, 'completed')).result, { at: 'last' });
    assert.equal((await admin(services[0], 'GET', '/api/tasks?quarantined=true')).tasks.length, 0);
});

test('the work of a killed machine is done by another once its lease is stale', async (t) => {
    const services = await machines(t, ['exec sleep 600', `printf '{"by":"%s"}' "$MACHINE_ID"`], soonStale);
    const [one, two] = services;
    const call = await joinIn(one);
    const { id } = await insert(call, {});
    assert.equal((await rowBecomes(call, id, 'claimed')).locked_by, 'm1');
    const [{ uuid }] = await tasksOfRow(one, id);
    const { runs } = await until(async () => {
        const { body } = await one.socket('GET', `/api/tasks/${uuid}`);
        return body.runs[0]?.pid && body;
    }, { what: 'the agent has a pid' });
    const other = await joinIn(two);
    await one.kill();
    await until(() => !isAlive(runs[0].pid), { what: 'the agent ended with its service' });
    const row = await rowBecomes(other, id, 'completed');
    assert.deepEqual(row.result, { by: 'm2' });
    assert.equal(row.attempt, 2);
});

test('a service that was killed takes its work up again after its restart', async (t) => {
    const h = await startHearth({ t, settings: brisk });
    const go = join(h.home, 'go');
    const agent = await shellAgent(h, `[ -e ${go} ] && { echo '{"again":true}'; exit 0; }; exec sleep 600`);
    const { call } = await listeningApp(h, agent);
    const { id } = await insert(call, {});
    const { id: waiting } = await insert(call, {});
    await rowBecomes(call, id, 'claimed');
    const [{ uuid }] = await tasksOfRow(h, id);
    await until(async () => (await h.socket('GET', `/api/tasks/${uuid}`)).body.runs[0]?.pid, { what: 'the agent runs' });
    await h.kill();
    writeFileSync(go, '');
    await h.start();
    assert.deepEqual((await rowBecomes(call, id, 'completed')).result, { again: true });
    assert.deepEqual((await rowBecomes(call, waiting, 'completed')).result, { again: true });
    const { task, runs } = await taskBecomes(h, uuid, 'completed');
    assert.equal(task.status, 'completed');
    assert.equal(runs.length, 2, 'the run that was killed is still told');
    assert.equal(runs.filter((run) => run.status === 'running').length, 0);
});

test('rows that came while no service ran are taken up at the start', async (t) => {
    const h = await startHearth({ t, settings: { ...brisk, 'tasks.sweep_s': 3600 } });
    const { id: app, call } = await listeningApp(h, await shellAgent(h, 'echo {}'), { backend: { max_concurrent_tasks: 4 } });
    await h.terminate();
    const file = join(h.dataDir, 'backend.db');
    const ids = (await sqlite(file, `INSERT INTO svc_activities (app_id, raw_data) VALUES ${Array.from({ length: 8 }, (_, i) => `('${app}', '{"i":${i}}')`)} RETURNING id`)).map((row) => row.id);
    await h.start();
    await Promise.all(ids.map((id) => rowBecomes(call, id, 'completed')));
});

test('at the start no more than recovery_rows of a table are taken up, the newest', async (t) => {
    const h = await startHearth({ t, settings: { ...brisk, 'tasks.sweep_s': 3600, 'tasks.recovery_rows': 3 } });
    const { id: app, call } = await listeningApp(h, await shellAgent(h, 'echo {}'), { backend: { max_concurrent_tasks: 8 } });
    await h.terminate();
    const file = join(h.dataDir, 'backend.db');
    const values = Array.from({ length: 6 }, (_, i) => `('${app}', '{"i":${i}}', '2026-01-01T00:00:0${i}.000Z')`);
    await sqlite(file, `INSERT INTO svc_activities (app_id, raw_data, created_at) VALUES ${values}`);
    await h.start();
    const done = await until(async () => {
        const { data } = (await call('GET', '/activities?status=completed')).body;
        return data.length === 3 && data;
    }, { what: 'three are done' });
    assert.deepEqual(done.map((row) => row.raw_data.i).sort(), [3, 4, 5]);
    assert.equal((await call('GET', '/activities?status=pending')).body.data.length, 3);
});

test('SIGTERM ends the agents and releases their rows for others', async (t) => {
    const services = await machines(t, ['exec sleep 600', `printf '{"by":"%s"}' "$MACHINE_ID"`], { 'tasks.heartbeat_s': 100, 'shutdown.deadline_s': 0.5 });
    const [one, two] = services;
    const call = await joinIn(one);
    const { id } = await insert(call, {});
    await rowBecomes(call, id, 'claimed');
    const [{ uuid }] = await tasksOfRow(one, id);
    await until(async () => (await one.socket('GET', `/api/tasks/${uuid}`)).body.runs[0]?.pid, { what: 'the agent runs' });
    const other = await joinIn(two);
    await one.terminate();
    assert.deepEqual((await rowBecomes(other, id, 'completed')).result, { by: 'm2' });
});

test('an agent whose lease was taken from it is stopped, and what it says is not stored', async (t) => {
    const h = await startHearth({ t, settings: brisk });
    const { call } = await listeningApp(h, await shellAgent(h, 'exec sleep 600'));
    const { id } = await insert(call, {});
    await rowBecomes(call, id, 'claimed');
    const [{ uuid }] = await tasksOfRow(h, id);
    const { runs } = await until(async () => {
        const { body } = await h.socket('GET', `/api/tasks/${uuid}`);
        return body.runs[0]?.pid && body;
    }, { what: 'the agent has a pid' });
    await sqlite(join(h.dataDir, 'backend.db'),
        `UPDATE svc_activities SET locked_by = 'another', attempt = attempt + 1, locked_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now') WHERE id = '${id}'`);
    await until(() => !isAlive(runs[0].pid), { what: 'the agent is stopped' });
    const { data } = (await call('GET', `/activities/${id}`)).body;
    assert.deepEqual([data.locked_by, data.status], ['another', 'claimed']);
});

test('a heartbeat does not stop because the database is locked for a while', async (t) => {
    const h = await startHearth({ t, settings: { ...brisk, ...soonStale } });
    const door = join(h.home, unique('door'));
    const { call } = await listeningApp(h, await shellAgent(h, `while [ ! -e ${door} ]; do sleep 0.02; done; echo '{"kept":true}'`));
    const { id } = await insert(call, {});
    await rowBecomes(call, id, 'claimed');
    await sqlite(join(h.dataDir, 'backend.db'), 'BEGIN IMMEDIATE; SELECT count(*) FROM svc_activities, (WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 300000) SELECT n FROM c); COMMIT');
    writeFileSync(door, '');
    const row = await rowBecomes(call, id, 'completed');
    assert.deepEqual([row.result, row.attempt], [{ kept: true }, 1]);
});

test('of two services with one machine id the second refuses work until the first is gone', async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'hearth-shared-'));
    t.after(() => rmSync(folder, { recursive: true, force: true }));
    // The first keeps the id while it is heard of within three times presence_s.
    const settings = { ...brisk, 'backend.file': join(folder, 'backend.db'), 'identity.machine_id': 'twin', 'tasks.presence_s': 4 };
    const [one, two] = [await startHearth({ t, settings }), await startHearth({ t, settings })];
    for (const [h, name] of [[one, 'first'], [two, 'second']])
        await admin(h, 'POST', '/api/agents', { name: 'worker', command: '/bin/sh', args: ['-c', `[ -n "$(cat)" ]; exec printf '{"by":"${name}"}'`, 'worker'] });
    await two.logged(/no work is taken up.*machine id twin.*identity\.machine_id/);
    const doctor = (await two.socket('GET', '/api/doctor')).body.checks.find((check) => check.name === 'machine');
    assert.deepEqual([doctor.ok, /twin/.test(doctor.text)], [false, true], JSON.stringify(doctor));
    assert.equal((await one.socket('GET', '/api/doctor')).body.checks.find((check) => check.name === 'machine').ok, true);
    await joinIn(two);
    const call = await joinIn(one);
    for (let i = 0; i < 6; i++)
        assert.deepEqual((await rowBecomes(call, (await insert(call, { i })).id, 'completed')).result, { by: 'first' });
    await one.terminate();
    await two.logged(/machine id "?twin"? is free/);
    const after = two.asApp(appId);
    assert.deepEqual((await rowBecomes(after, (await insert(after, {})).id, 'completed')).result, { by: 'second' });
});

test('a service that was killed has its own machine id at once at its next start', async (t) => {
    const h = await startHearth({ t, settings: { ...brisk, 'tasks.presence_s': 600 } });
    const { call } = await listeningApp(h, await shellAgent(h, 'echo {}'));
    await h.kill();
    await h.start();
    await rowBecomes(call, (await insert(call, {})).id, 'completed');
});

test('a data folder of another host gets a machine id of its own, one that stays keeps it', async (t) => {
    const h = await startHearth({ t, settings: brisk });
    const id = async () => (await until(async () => (await h.socket('GET', '/api/presence')).body.machines, { what: 'it is present' }))[0]?.machine_id;
    const first = await until(id, { what: 'a machine id' });
    await h.terminate();
    await h.start();
    assert.equal(await until(id, { what: 'a machine id' }), first);
    await h.terminate();
    const hosts = await sqlite(join(h.dataDir, 'hearth.db'), `SELECT value FROM meta WHERE key = 'identity.machine_host'`);
    if (!hosts.length)
        return t.skip('this host has no machine-id(5)');
    await sqlite(join(h.dataDir, 'hearth.db'), `UPDATE meta SET value = 'another host' WHERE key = 'identity.machine_host'`);
    await h.start();
    const second = await until(id, { what: 'a machine id' });
    assert.notEqual(second, first);
    assert.match(second, /^lin-[0-9a-f]{8}$/);
});
