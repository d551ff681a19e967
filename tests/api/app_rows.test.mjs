// An app and its rows: tables at once, no waiting tasks left behind, rows that nobody works on are told (issue 8, section 1).
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startHearth } from './harness.mjs';
import { admin, backendFile, insert, listeningApp, newApp, newKey, rowBecomes, shellAgent, sqlite, taskBecomes, tasksOfRow, unique } from './kit.mjs';

test('the tables of an app exist when it has been registered', async (t) => {
    const h = await startHearth({ t });
    const agent = await shellAgent(h, 'echo {}');
    for (let i = 0; i < 8; i++) {
        const table = `fresh_${i}`;
        const config = { name: unique('tables'), config: { backend: { enabled: true, tables: [`public.${table}`, `sales.${table}`] },
            agentHandlers: [{ tableName: `public.${table}`, agentId: agent, eventTypes: ['INSERT'] }] } };
        await admin(h, 'POST', '/api/apps', config);
        const [{ id }] = await sqlite(backendFile(h), `INSERT INTO ${table} (raw_data) VALUES ('{"i":${i}}') RETURNING id`);
        await sqlite(backendFile(h), `SELECT count(*) FROM "sales.${table}"`);
        const [{ uuid }] = await tasksOfRow(h, id);
        await taskBecomes(h, uuid, 'completed');
    }
});

test('a table that cannot be used is told before the app is registered', async (t) => {
    const h = await startHearth({ t });
    await sqlite(backendFile(h), 'CREATE TABLE foreign_one (n INTEGER)');
    const reply = await h.socket('POST', '/api/apps', { name: 'unfit', config: { backend: { enabled: true, tables: ['public.foreign_one'] } } });
    assert.equal(reply.status, 400, reply.text);
    assert.equal(reply.body.code, 'TABLE_UNFIT');
    assert.deepEqual((await admin(h, 'GET', '/api/apps')).apps, []);
});

test('the waiting tasks of an app that is removed are rejected with that reason', async (t) => {
    const h = await startHearth({ t });
    const { id: app, call } = await listeningApp(h, await shellAgent(h, 'echo {}'), { name: 'leaving', handler: { review: true } });
    const { id } = await insert(call, {});
    const [{ uuid: asked }] = await tasksOfRow(h, id);
    const { task_uuid: triggered } = (await h.api('POST', '/webhooks/svc', { event: 'trigger-agent', app_id: app, payload: { raw_data: {} } })).body;
    await admin(h, 'DELETE', '/api/apps/leaving');
    for (const uuid of [asked, triggered]) {
        const { task } = await taskBecomes(h, uuid, 'canceled');
        assert.deepEqual([task.error, task.review], ['The app leaving was removed.', 'rejected']);
    }
    assert.equal((await sqlite(backendFile(h), `SELECT status FROM svc_activities WHERE id = '${id}'`))[0].status, 'canceled');
});

test('doctor tells of rows that were inserted with a bare developer key, and of those of no app', async (t) => {
    const h = await startHearth({ t });
    const rows = async () => (await admin(h, 'GET', '/api/doctor')).checks.filter((check) => check.name === 'rows');
    assert.deepEqual((await rows()).map((check) => check.ok), [true]);
    const { call } = await newKey(h, 'script of Ann');
    await insert(call, {});
    await insert(call, {});
    await sqlite(backendFile(h), `INSERT INTO svc_activities (app_id, raw_data) VALUES ('gone', '{}')`);
    const told = await rows();
    assert.deepEqual(told.map((check) => check.ok), [false, false]);
    assert.match(told[0].text, /^2 rows inserted with the developer key script of Ann and no app: nobody works on them$/);
    assert.match(told[0].advice, /x-app-id/);
    assert.match(told[1].text, /^1 row of gone, which is no registered app/);
    const app = await newApp(h, { config: { backend: { enabled: true }, agentHandlers: [{ tableName: 'svc_activities', agentId: await shellAgent(h, 'echo {}'), eventTypes: ['INSERT'] }] } });
    const both = (method, path, body) => call(method, path, body, { 'x-app-id': app });
    await rowBecomes(both, (await insert(both, {})).id, 'completed');
});
