// Custom Mode, the table's side: the app's own table, its lock and its webhook, from the row to the end (docs/custom-mode.md).
import assert from 'node:assert/strict';
import http from 'node:http';
import { test } from 'node:test';
import { runProgram, startHearth, until } from './harness.mjs';
import { admin, backendFile, shellAgent, sqlite, taskBecomes, tasksOfRow } from './kit.mjs';

const columns = {
    id: { type: 'uuid', key: true, default: 'gen_random_uuid()' },
    status: { type: 'text', nullable: false, default: 'pending' },
    locked_by: { type: 'text' },
    locked_at: { type: 'timestamptz' },
    created_at: { type: 'timestamptz', default: 'now()' },
    note: { type: 'text' },
};

// An app that owns the table orders and keeps its lock there.
async function ownApp(t, h) {
    const seen = { locks: [], webhooks: [] };
    const routes = {
        '/api/task-lock': async (body) => {
            seen.locks.push(body);
            const rows = await sqlite(backendFile(h), `UPDATE orders SET status = 'claimed', locked_by = '${body.machine_id}',
                locked_at = strftime('%Y-%m-%dT%H:%M:%f+00:00', 'now') WHERE id = '${body.task_id}' AND status = 'pending' RETURNING id`);
            return rows.length ? { success: true } : { success: false, reason: 'already_locked', locked_by: 'another' };
        },
        '/api/task-webhook': async (body) => {
            seen.webhooks.push(body);
            await sqlite(backendFile(h), `UPDATE orders SET status = '${body.action === 'complete' ? 'completed' : 'failed'}', locked_by = NULL,
                locked_at = NULL WHERE id = '${body.task_id}'`);
            return { success: true };
        },
    };
    const server = http.createServer((req, res) => {
        let text = '';
        req.on('data', (part) => { text += part; });
        req.on('end', async () => {
            try {
                const answer = JSON.stringify(await routes[req.url](JSON.parse(text)));
                res.writeHead(200, { 'content-type': 'application/json' }).end(answer);
            } catch { // the file of the rows is removed before this server is stopped
                res.writeHead(500).end('{}');
            }
        });
    });
    await new Promise((resolve) => { server.listen(0, '127.0.0.1', resolve); });
    server.unref();                     // a teardown that failed does not keep the file
    t.after(() => server.close());
    return { ...seen, url: `http://127.0.0.1:${server.address().port}` };
}

const customConfig = (app, agent, more = {}) => ({
    name: 'shop',
    config: {
        home_url: `${app.url}/page`,
        backend: { enabled: true, mode: 'custom', tables: ['orders'], schema: { orders: { columns } }, ...more },
        agentHandlers: agent ? [{ tableName: 'orders', agentId: agent, eventTypes: ['INSERT', 'UPDATE'] }] : [],
    },
});

const order = async (h, note) => (await sqlite(backendFile(h), `INSERT INTO orders (note) VALUES ('${note}') RETURNING id`))[0].id;

test('a row of the app is locked by the app, worked on, and ended by its webhook', async (t) => {
    const h = await startHearth({ t, settings: { 'backend.poll_ms': 20 } });
    const app = await ownApp(t, h);
    const agent = await shellAgent(h, 'printf %s "{\\"seen\\":$ACTIVITY_DATA}"');
    const answer = await admin(h, 'POST', '/api/apps', customConfig(app, agent), 201);
    assert.deepEqual(answer.missing, []);
    const id = await order(h, 'first');
    const [{ uuid }] = await tasksOfRow(h, id);
    const { task } = await taskBecomes(h, uuid, 'completed');
    assert.equal(task.action_type, 'INSERT');
    await until(() => app.webhooks.length > 0, { what: 'the webhook' });
    assert.equal(app.locks[0].task_id, id);
    assert.equal(app.locks[0].table_name, 'orders');
    assert.equal(app.webhooks[0].action, 'complete');
    assert.equal(app.webhooks[0].data.result.seen.raw_data.note, 'first');
    const status = async () => (await sqlite(backendFile(h), `SELECT status FROM orders WHERE id = '${id}'`))[0].status;
    await until(async () => await status() === 'completed', { what: 'the app has written the end' });
    await sqlite(backendFile(h), `UPDATE orders SET status = 'pending', note = 'second' WHERE id = '${id}'`);
    await until(() => app.webhooks.length > 1, { what: 'the second webhook' });
    const second = app.webhooks[1].data.result.seen;
    assert.equal(second.event, 'UPDATE');
    assert.equal(second.old_data.note, 'first');
});

test('a change that the sweep finds before its event is an UPDATE, too', async (t) => {
    const h = await startHearth({ t, settings: { 'backend.poll_ms': 60000, 'tasks.sweep_s': 0.1 } });
    const app = await ownApp(t, h);
    const agent = await shellAgent(h, 'printf %s "{\\"seen\\":$ACTIVITY_DATA}"');
    await admin(h, 'POST', '/api/apps', customConfig(app, agent), 201);
    const id = await order(h, 'first');
    await until(async () => (await sqlite(backendFile(h), `SELECT status FROM orders WHERE id = '${id}'`))[0].status === 'completed',
        { what: 'the app has written the end' });
    await sqlite(backendFile(h), `UPDATE orders SET status = 'pending', note = 'second' WHERE id = '${id}'`);
    await until(() => app.webhooks.length > 1, { what: 'the second webhook' });
    const second = app.webhooks[1].data.result.seen;
    assert.deepEqual([second.event, second.old_data?.note, second.raw_data.note], ['UPDATE', 'first', 'second']);
});

test('a person cancels and repeats a task of the app\'s own row', async (t) => {
    const h = await startHearth({ t, settings: { 'backend.poll_ms': 20 } });
    const app = await ownApp(t, h);
    await admin(h, 'POST', '/api/apps', customConfig(app, await shellAgent(h, 'exec sleep 600')), 201);
    const id = await order(h, 'long');
    const [{ uuid }] = await tasksOfRow(h, id);
    const status = async () => (await sqlite(backendFile(h), `SELECT status FROM orders WHERE id = '${id}'`))[0].status;
    await taskBecomes(h, uuid, 'claimed');
    await admin(h, 'POST', `/api/tasks/${uuid}/cancel`, {});
    await taskBecomes(h, uuid, 'canceled');
    assert.equal(await status(), 'canceled');
    await admin(h, 'POST', `/api/tasks/${uuid}/replay`, {});
    await until(async () => await status() === 'claimed', { what: 'the row is claimed again' });
    assert.equal(app.locks.length, 2);
});

test('a table of Custom Mode belongs to one app', async (t) => {
    const h = await startHearth({ t });
    const app = await ownApp(t, h);
    await admin(h, 'POST', '/api/apps', customConfig(app), 201);
    const compatible = { name: 'other', config: { backend: { enabled: true, tables: ['public.orders'] } } };
    for (const second of [compatible, { ...customConfig(app), name: 'third' }]) {
        const { status, body } = await h.socket('POST', '/api/apps', second);
        assert.equal(status, 400);
        assert.equal(body.errors[0].field, 'config.backend.tables[0]');
        assert.match(body.errors[0].rule, /shop/);
    }
    await admin(h, 'POST', '/api/apps', customConfig(app), 201); // the app itself, anew
});

test('what the app\'s table lacks is told at registration and by the check', async (t) => {
    const h = await startHearth({ t });
    const app = await ownApp(t, h);
    const config = customConfig(app, undefined, { schema: undefined });
    const { missing } = await admin(h, 'POST', '/api/apps', config, 201);
    assert.equal(missing[0].what, 'the table orders');
    assert.match(missing[0].sql, /config\.backend\.schema/);
    assert.deepEqual((await admin(h, 'GET', '/api/backend/check')).missing, missing);
    const { code, stdout } = await h.cli('backend', 'check');
    assert.equal(code, 1, stdout);
    assert.match(stdout, /the table orders/);
    await admin(h, 'POST', '/api/apps', customConfig(app), 201);
    assert.deepEqual((await admin(h, 'GET', '/api/backend/check')).missing, []);
});
