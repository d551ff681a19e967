// Custom Mode over PostgreSQL with two services as two machines: one winner for each row, and rows of a killed machine are recovered.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { test } from 'node:test';
import { startHearth, coldHearth, until } from '../api/harness.mjs';
import { admin, shellAgent } from '../api/kit.mjs';
import { postgresPrograms, startPostgres } from '../api/postgres_server.mjs';

const skip = postgresPrograms ? false : 'no PostgreSQL is installed';
const columns = {
    id: { type: 'uuid', key: true, default: 'gen_random_uuid()' }, n: { type: 'int4' }, status: { type: 'text', nullable: false, default: 'pending' },
    locked_by: { type: 'text' }, locked_at: { type: 'timestamptz' }, ended_by: { type: 'text' },
};
const quoted = (text) => `'${text.replaceAll("'", "''")}'`;

// One app for both machines; its rows are changed by conditional statements.
async function ownApp(t, pg) {
    const seen = { locks: [], calls: [], ends: [] };
    const routes = {
        '/api/task-lock': ({ task_id, machine_id }) => {
            const id = pg.psql(`UPDATE orders SET status = 'claimed', locked_by = ${quoted(machine_id)}, locked_at = now()
                WHERE id = ${quoted(task_id)} AND status IN ('pending', 'failed') RETURNING id`);
            seen.locks.push({ task_id, machine_id, won: id !== '' });
            return id ? [200, { success: true }] : [409, { success: false, reason: 'already_locked' }];
        },
        '/api/task-webhook': ({ task_id, machine_id, action }) => {
            const id = pg.psql(`UPDATE orders SET status = '${action === 'complete' ? 'completed' : 'failed'}', locked_by = NULL, locked_at = NULL, ended_by = locked_by
                WHERE id = ${quoted(task_id)} AND locked_by = ${quoted(machine_id)} RETURNING id`);
            seen.ends.push({ task_id, machine_id, stored: id !== '' });
            return [200, { success: true }];
        },
    };
    seen.answerEnd = (body) => routes['/api/task-webhook'](body);
    const server = createServer(async (request, response) => {
        let text = '';
        for await (const piece of request) text += piece;
        try {
            const isEnd = request.url === '/api/task-webhook';
            if (isEnd)
                seen.calls.push({ text, id: request.headers['webhook-id'] });
            const [status, body] = (isEnd ? seen.answerEnd : routes[request.url])(JSON.parse(text));
            response.writeHead(status).end(JSON.stringify(body));
        } catch { // the database is stopped before this server is
            response.writeHead(500).end('{}');
        }
    });
    await new Promise((done) => { server.listen(0, '127.0.0.1', done); });
    server.unref();                     // a teardown that failed does not keep the file
    t.after(() => { server.close(); server.closeAllConnections(); });
    const accept = seen.answerEnd;
    return Object.assign(seen, { accept: () => { seen.answerEnd = accept; }, url: `http://127.0.0.1:${server.address().port}` });
}

async function machine(t, pg, app, id, script, more = {}) {
    const settings = { 'backend.kind': 'postgres', 'backend.url': pg.url(), 'identity.machine_id': id, 'tasks.heartbeat_s': 0.2, 'tasks.stale_after_s': 60, 'tasks.sweep_s': 0.3,
        'tasks.presence_s': 0.5, 'backend.webhook_pause_s': 0.02, ...more };
    const h = await startHearth({ t, settings });
    const agent = await shellAgent(h, script);
    await admin(h, 'POST', '/api/apps', { name: 'shop', config: { home_url: app.url,
        backend: { enabled: true, mode: 'custom', tables: ['orders'], schema: { orders: { columns } }, max_concurrent_tasks: 4 },
        agentHandlers: [{ tableName: 'orders', agentId: agent, eventTypes: ['INSERT'] }] } }, 201);
    return h;
}

async function prepared(t, server = {}) {
    const pg = await startPostgres(t, server);
    const h = coldHearth({ t });
    for (const command of [['key', 'new'], ['settings', 'set', 'backend.url', pg.url()], ['settings', 'set', 'backend.kind', 'postgres'], ['backend', 'setup']]) {
        const { code, stderr } = await h.cli(...command);
        assert.equal(code, 0, stderr);
    }
    return pg;
}

const count = (pg, where) => Number(pg.psql(`SELECT count(*) FROM orders WHERE ${where}`));

test('two machines share the rows: each row has one winner and one end', { skip }, async (t) => {
    const pg = await prepared(t);
    const app = await ownApp(t, pg);
    await machine(t, pg, app, 'one', 'echo {}');
    await machine(t, pg, app, 'two', 'echo {}');
    pg.psql('INSERT INTO orders (n) SELECT generate_series(1, 30)');
    await until(() => count(pg, "status = 'completed'") === 30, { what: 'all rows are completed' });
    const won = app.locks.filter((lock) => lock.won);
    assert.equal(won.length, 30);
    assert.equal(new Set(won.map((lock) => lock.task_id)).size, 30);
    assert.equal(app.ends.filter((end) => end.stored).length, 30);
});

test('rows of a machine that is killed become work of the other one', { skip }, async (t) => {
    const pg = await prepared(t);
    const app = await ownApp(t, pg);
    const first = await machine(t, pg, app, 'one', 'sleep 300');
    pg.psql('INSERT INTO orders (n) VALUES (1)');
    await until(() => count(pg, "status = 'claimed' AND locked_by = 'one'") === 1, { what: 'the first machine has the row' });
    await first.kill();
    await machine(t, pg, app, 'two', 'echo {}', { 'tasks.stale_after_s': 3 });
    await until(() => count(pg, "status = 'completed' AND ended_by = 'two'") === 1, { what: 'the second machine has ended the row' });
    assert.deepEqual(app.ends.map((end) => end.machine_id), ['two']);
});

const deliveries = async (h, state) => (await admin(h, 'GET', `/api/backend/deliveries?state=${state}`)).deliveries;

test('an end keeps body and id over all its tries, becomes a dead letter at the bound, and is sent again by a person', { skip }, async (t) => {
    const pg = await prepared(t);
    const app = await ownApp(t, pg);
    app.answerEnd = () => [503, {}];
    const h = await machine(t, pg, app, 'one', 'echo {}', { 'backend.webhook_tries': 5 });
    pg.psql('INSERT INTO orders (n) VALUES (1)');
    const [dead] = await until(async () => (await deliveries(h, 'dead')).length === 1 && deliveries(h, 'dead'), { what: 'a dead letter' });
    assert.deepEqual([dead.tries, app.calls.length], [5, 5]);
    assert.equal(new Set(app.calls.map(({ text, id }) => `${id} ${text}`)).size, 1);
    assert.equal(count(pg, "status = 'claimed' AND locked_by = 'one'"), 1, 'its lease is kept');
    app.accept();
    await admin(h, 'POST', `/api/backend/deliveries/${dead.id}/retry`);
    await until(() => count(pg, "status = 'completed' AND ended_by = 'one'") === 1, { what: 'the app has stored the end' });
    assert.equal(app.calls.at(-1).text, app.calls[0].text);
});

test('an end whose lease is lost is dropped unsent', { skip }, async (t) => {
    const pg = await prepared(t);
    const app = await ownApp(t, pg);
    app.answerEnd = () => { // the app is away, and gives the row to somebody else
        pg.psql("UPDATE orders SET locked_by = 'another', locked_at = now() + interval '1 hour'");
        return [503, {}];
    };
    const h = await machine(t, pg, app, 'one', 'echo {}', { 'tasks.sweep_s': 600 });
    pg.psql('INSERT INTO orders (n) VALUES (1)');
    const [dropped] = await until(async () => (await deliveries(h, 'dropped')).length === 1 && deliveries(h, 'dropped'), { what: 'the end is dropped' });
    assert.match(dropped.error, /lease was lost/);
    assert.deepEqual([dropped.tries, app.calls.length], [1, 1]);
    assert.equal(count(pg, "status = 'claimed' AND locked_by = 'another'"), 1);
});

test('new rows are learnt of from the logical stream, without a sweep', { skip }, async (t) => {
    const pg = await prepared(t, { wal_level: 'logical' });
    pg.psql('ALTER ROLE owner REPLICATION', 'root', 'postgres');
    const app = await ownApp(t, pg);
    await machine(t, pg, app, 'one', 'echo {}', { 'backend.events': 'logical', 'tasks.sweep_s': 600 });
    pg.psql('INSERT INTO orders (n) SELECT generate_series(1, 5)');
    await until(() => count(pg, "status = 'completed'") === 5, { what: 'all rows are completed' });
});
