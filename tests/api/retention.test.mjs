// What is removed for its age (docs/operating.md, "What is kept"): rows are made old in the file while the service is stopped, and upkeep runs at its start.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';
import { startHearth, until } from './harness.mjs';
import { admin, newApp, newKey, sqlite, storeFile } from './kit.mjs';

const old = '2020-01-01T00:00:00.000Z';

const finish = async (h, app, payload = {}) => {
    const { body } = await h.api('POST', '/webhooks/svc', { event: 'trigger-agent', app_id: app, payload: { raw_data: { n: 1 }, ...payload }, event_id: crypto.randomUUID() });
    await h.api('POST', '/webhooks/svc', { event: 'task-complete', app_id: app, payload: { task_uuid: body.task_uuid, result: { ok: true } } });
    return body;
};

async function restartWith(h, sql) {
    await h.terminate();
    await sqlite(storeFile(h), sql);
    await h.start();
}

test('old finished tasks, their events and answered deliveries are removed, young ones stay', async (t) => {
    const h = await startHearth({ t });
    const app = await newApp(h, {}, ['webhook.trigger']);
    const [aged, young] = [await finish(h, app), await finish(h, app)];
    await restartWith(h, `UPDATE tasks SET completed_at = '${old}' WHERE uuid = '${aged.task_uuid}';
        UPDATE calendar SET start_date = '${old}', end_date = '${old}' WHERE uuid = '${aged.calendar_event_uuid}';
        UPDATE deliveries SET created_at = '${old}' WHERE answer LIKE '%${aged.task_uuid}%'`);
    await until(async () => (await h.socket('GET', `/api/calendar/${aged.calendar_event_uuid}`)).status === 404);
    assert.equal((await h.socket('GET', `/api/tasks/${aged.task_uuid}`)).status, 404);
    assert.equal((await h.socket('GET', `/api/tasks/${young.task_uuid}`)).status, 200);
    assert.equal((await h.socket('GET', `/api/calendar/${young.calendar_event_uuid}`)).status, 200);
    const [{ n }] = await sqlite(storeFile(h), 'SELECT count(*) AS n FROM deliveries');
    assert.equal(n, 1);         // removed before the calendar's events
});

test('0 keeps everything', async (t) => {
    const h = await startHearth({ t, settings: { 'tasks.keep_days': 0, 'calendar.keep_days': 0, 'webhooks.keep_days': 0 } });
    const app = await newApp(h, {}, ['webhook.trigger']);
    const kept = await finish(h, app);
    const marker = await finish(h, app);
    await restartWith(h, `UPDATE tasks SET completed_at = '${old}'; UPDATE deliveries SET created_at = '${old}';
        UPDATE calendar SET start_date = '${old}', end_date = '${old}';
        INSERT INTO usage VALUES ('2000-01-01', '', '', 'p', 'm', 'chat', 1, 0, 0, 1, 1, 0, 0)`);
    await until(async () => (await sqlite(storeFile(h), 'SELECT count(*) AS n FROM usage'))[0].n === 0);     // the last that upkeep does
    for (const one of [kept, marker]) {
        assert.equal((await h.socket('GET', `/api/tasks/${one.task_uuid}`)).status, 200);
        assert.equal((await h.socket('GET', `/api/calendar/${one.calendar_event_uuid}`)).status, 200);
    }
    assert.equal((await sqlite(storeFile(h), 'SELECT count(*) AS n FROM deliveries'))[0].n, 2);
});

// The chain as src/store/tables/audit.c makes it, with older times.
function chainOf(rows, atOf) {
    let prev = '0'.repeat(64);
    return rows.map((row) => {
        const at = atOf(row);
        const text = [prev, at, row.actor, row.action, row.subject, row.detail].reduce(
            (all, one) => `${all}${one === null ? '|null' : `|${Buffer.byteLength(one)}:${one}`}`, String(row.seq));
        const hash = execFileSync('b2sum', ['--length=256'], { input: text, encoding: 'utf8' }).slice(0, 64);
        const sql = `UPDATE audit SET at = '${at}', prev_hash = '${prev}', hash = '${hash}' WHERE seq = ${row.seq}`;
        prev = hash;
        return { sql, hash };
    });
}

test('old entries of the audit log are removed, the removal is told in it, and the rest stays whole', async (t) => {
    const h = await startHearth({ t });
    for (let i = 0; i < 6; i++)
        await newKey(h);
    const rows = await sqlite(storeFile(h), 'SELECT * FROM audit ORDER BY seq');
    const chain = chainOf(rows, (row) => (row.seq <= 4 ? old : row.at));
    await restartWith(h, `DROP TRIGGER audit_no_update; ${chain.map((one) => one.sql).join(';')};
        UPDATE meta SET value = '${rows.length}:${chain.at(-1).hash}' WHERE key = 'audit.head'`);
    const list = async () => (await admin(h, 'GET', '/api/audit')).entries;
    await until(async () => (await list())[0].action === 'audit.trim');
    const left = await list();
    assert.deepEqual(left.map((entry) => entry.seq), Array.from({ length: left.length }, (_, i) => left[0].seq - i));
    assert.equal(left.at(-1).seq, 5);
    assert.deepEqual(left[0].detail, { until_seq: 4, hash: chain[3].hash });
    assert.equal(left[0].actor, 'service');
    const verdict = await admin(h, 'GET', '/api/audit/verify');
    assert.deepEqual([verdict.whole, verdict.entries, verdict.trimmed], [true, left.length, 4]);
    await assert.rejects(sqlite(storeFile(h), 'DELETE FROM audit WHERE seq = 5'), /append/);
});

test('doctor tells what is kept, how much that is and for how long', async (t) => {
    const h = await startHearth({ t, settings: { 'tasks.keep_logs_days': 7, 'calendar.keep_days': 0 } });
    const app = await newApp(h, {}, ['webhook.trigger']);
    await finish(h, app);
    const { checks } = await admin(h, 'GET', '/api/doctor');
    const texts = (name) => checks.filter((check) => check.name === name).map((check) => check.text);
    assert.ok(texts('size').some((text) => /^hearth\.db: \d+\.\d MiB$/.test(text)));
    assert.match(texts('kept').join('\n'), /^tasks: 1, 0\.0 MiB, the oldest of \d{4}-\d\d-\d\d, kept 365 days \(tasks\.keep_days\)$/m);
    assert.match(texts('kept').join('\n'), /^output of runs: 0, 0\.0 MiB, kept 7 days \(tasks\.keep_logs_days\)$/m);
    assert.match(texts('kept').join('\n'), /^calendar events: 1, .*kept forever \(calendar\.keep_days\)$/m);
    assert.match(texts('audit')[0], /is whole, \d+ entries, kept 1095 days \(audit\.keep_days\)/);
});
