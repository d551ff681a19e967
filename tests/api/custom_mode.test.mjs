// Custom Mode from the lock to the end of a task: the example app, an app that is away, one that refuses, a service that is killed (docs/custom-mode.md).
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join, resolve } from 'node:path';
import { test } from 'node:test';
import { startHearth, until } from './harness.mjs';
import { admin, shellAgent, tasksOfRow } from './kit.mjs';
import { faceKeys } from './realtime.mjs';

const example = resolve(import.meta.dirname, '../../examples/orders');
const definition = (name) => JSON.parse(readFileSync(join(example, name), 'utf8'));
const brisk = { 'backend.poll_ms': 20, 'tasks.sweep_s': 0.5, 'backend.webhook_pause_s': 0.02 };
const start = (t, settings = {}) => startHearth({ t, settings: { ...brisk, ...settings } });

async function newOrder(h, order) {
    const { secret } = await faceKeys(h);
    const reply = await h.api('POST', '/rest/v1/orders', order, { apikey: secret, authorization: `Bearer ${secret}`, prefer: 'return=representation' });
    assert.equal(reply.status, 201, reply.text);
    return reply.body[0].id;
}
async function orderOf(h, id) {
    const { secret } = await faceKeys(h);
    return (await h.api('GET', `/rest/v1/orders?id=eq.${id}`, undefined, { apikey: secret, authorization: `Bearer ${secret}` })).body[0];
}
const orderBecomes = (h, id, status) => until(async () => {
    const order = await orderOf(h, id);
    return order.status === status && order;
}, { what: `order ${id} becomes ${status}` });

const deliveries = async (h, query = '') => (await admin(h, 'GET', `/api/backend/deliveries${query}`)).deliveries;
const oneDelivery = (h, state) => until(async () => {
    const [found] = await deliveries(h, `?state=${state}`);
    return found;
}, { what: `a ${state} delivery` });

const metadataOf = async (h, id) => {
    const [{ uuid }] = await tasksOfRow(h, id);
    const { events } = await admin(h, 'GET', '/api/calendar');
    return events.find(({ task_uuid: task }) => task === uuid).metadata;
};

// The example app, with the table and the lock of app.json; `agent` takes the place of its own agent.
async function exampleApp(h, agent) {
    const config = definition('app.json');
    config.config.env.REST_KEY = (await faceKeys(h)).secret;
    config.config.working_dir = example;
    if (agent)
        config.config.agentHandlers[0].agentId = agent;
    else
        await admin(h, 'POST', '/api/agents', { ...definition('agent.json'), working_dir: example });
    const { app_id: id } = await admin(h, 'POST', '/api/apps', config);
    const running = () => until(async () => (await admin(h, 'GET', `/api/apps/${id}`)).app.status === 'running', { what: 'the app runs' });
    const begin = async () => { await admin(h, 'POST', `/api/apps/${id}/start`); await running(); };
    await begin();
    return { id, begin, end: () => admin(h, 'POST', `/api/apps/${id}/stop`) };
}

// An app that somebody else runs: its answers are the test's.
async function ownApp(t, h, agent) {
    const seen = { locks: [], ends: [], lock: async () => [200, {}], webhook: async () => [200, { success: true }] };
    const server = createServer(async (request, response) => {
        let text = '';
        for await (const piece of request) text += piece;
        const isLock = request.url === '/api/task-lock';
        (isLock ? seen.locks : seen.ends).push({ text, body: JSON.parse(text), headers: request.headers });
        try {
            const answer = await (isLock ? seen.lock : seen.webhook)(JSON.parse(text));
            if (answer === 'no answer') {
                request.socket.destroy();
                return;
            }
            const [status, body, headers] = answer;
            response.writeHead(status, headers).end(typeof body === 'string' ? body : JSON.stringify(body));
        } catch { // the service, which has the rows, ends before this server does
            response.writeHead(500).end('{}');
        }
    });
    await new Promise((done) => { server.listen(0, '127.0.0.1', done); });
    server.unref();                     // a teardown that failed does not keep the file
    t.after(() => { server.close(); server.closeAllConnections(); });
    const config = definition('app.json');
    const { app_id: id } = await admin(h, 'POST', '/api/apps', { name: 'orders', config: { ...config.config, command: undefined, env: undefined, working_dir: undefined,
        home_url: `http://127.0.0.1:${server.address().port}/page`, agentHandlers: [{ ...config.config.agentHandlers[0], agentId: agent }] } });
    return Object.assign(seen, { id });
}

async function change(h, query, body) {
    const { secret } = await faceKeys(h);
    const reply = await h.api('PATCH', `/rest/v1/orders?${query}`, body, { apikey: secret, authorization: `Bearer ${secret}`, prefer: 'return=representation' });
    assert.equal(reply.status, 200, reply.text);
    return reply.body;
}
// What an app does that keeps its word.
const honest = (h) => ({
    lock: async ({ task_id, machine_id }) => {
        const taken = await change(h, `id=eq.${task_id}&status=in.(pending,failed)`, { status: 'claimed', locked_by: machine_id, locked_at: new Date().toISOString() });
        return taken.length ? [200, { success: true }] : [409, { success: false, reason: 'already_locked' }];
    },
    webhook: async ({ task_id, machine_id, action }) => {
        await change(h, `id=eq.${task_id}&locked_by=eq.${machine_id}`, { status: action === 'complete' ? 'completed' : 'failed', locked_by: null, locked_at: null });
        return [200, { success: true }];
    },
});

test('the example app locks its orders, and gets the price or the problem of each', async (t) => {
    const h = await start(t);
    await exampleApp(h);
    const [known, odd] = [await newOrder(h, { article: 'hammer', pieces: 3 }), await newOrder(h, { article: 'sky', pieces: 1 })];
    const priced = await orderBecomes(h, known, 'completed');
    assert.equal(priced.price, 44.7);
    assert.equal(priced.locked_by, null);
    assert.match((await orderBecomes(h, odd, 'failed')).problem, /nobody knows the price of sky/);
    await until(async () => (await deliveries(h)).length === 0, { what: 'everything is delivered' });
    assert.equal((await deliveries(h, '?state=delivered')).length, 2);
});

test('an end waits for an app that is down, and arrives once it runs again', async (t) => {
    const h = await start(t);
    const go = join(h.desk ?? h.dataDir, 'go');
    const app = await exampleApp(h, await shellAgent(h, `while [ ! -e '${go}' ]; do sleep 0.05; done; echo '{"price": 7}'`));
    const id = await newOrder(h, { article: 'nail' });
    await orderBecomes(h, id, 'claimed');
    await app.end();
    writeFileSync(go, '');
    const waiting = await until(async () => (await deliveries(h)).find((one) => one.tries > 0), { what: 'a try' });
    assert.equal(waiting.state, 'waiting');
    assert.equal(waiting.task_id, id);
    assert.equal((await orderOf(h, id)).status, 'claimed');
    await app.begin();
    assert.equal((await orderBecomes(h, id, 'completed')).price, 7);
});

test('a refused end is a dead letter that a person sends again or drops', async (t) => {
    const h = await start(t);
    const app = await ownApp(t, h, await shellAgent(h, 'echo \'{"price": 1}\''));
    const { lock, webhook } = honest(h);
    Object.assign(app, { lock, webhook: async () => [422, { error: 'not today' }] });
    const id = await newOrder(h, { article: 'nail' });
    const dead = await oneDelivery(h, 'dead');
    assert.deepEqual([dead.task_id, dead.action, dead.status, dead.tries], [id, 'complete', 422, 1]);
    assert.match(dead.error, /status 422: .*not today/);
    assert.equal((await orderOf(h, id)).status, 'claimed');
    const list = await h.cli('backend', 'deliveries');
    assert.match(list.stdout, /dead +orders/);
    const metadata = await until(async () => (await metadataOf(h, id)).delivery_status === 'dead' && metadataOf(h, id), { what: 'the calendar shows it' });
    assert.match(metadata.delivery_error, /status 422/);
    const found = (await admin(h, 'GET', '/api/doctor')).checks.find(({ name }) => name === 'custom mode');
    assert.deepEqual([found.ok, /orders has not accepted 1 end of tasks, last: .*422/.test(found.text)], [false, true], JSON.stringify(found));
    app.webhook = webhook;
    const retried = await h.cli('backend', 'deliveries', 'retry', dead.id);
    assert.equal(retried.code, 0, retried.stderr);
    await orderBecomes(h, id, 'completed');
    assert.equal(app.ends.length, 2);
    await until(async () => !('delivery_status' in await metadataOf(h, id)), { what: 'the calendar forgets it' });
    assert.equal(app.ends[1].text, app.ends[0].text);
    assert.equal(app.ends[1].headers['x-svc-event-id'], app.ends[0].headers['x-svc-event-id']);
    const finished = await h.socket('POST', `/api/backend/deliveries/${dead.id}/retry`);
    assert.deepEqual([finished.status, finished.body.code], [409, 'DELIVERY_FINISHED']);

    app.webhook = async () => [400, {}];
    const other = await newOrder(h, { article: 'nail' });
    const second = await oneDelivery(h, 'dead');
    app.webhook = webhook;
    assert.equal((await h.cli('backend', 'deliveries', 'drop', second.id)).code, 0);
    await orderBecomes(h, other, 'completed'); // the row waited again, and the work was done anew
    assert.equal(app.locks.filter(({ body }) => body.task_id === other).length, 2);
});

test('an end is sent at once when its app runs again', async (t) => {
    const h = await start(t, { 'backend.webhook_pause_s': 300 });
    const go = join(h.desk ?? h.dataDir, 'go');
    const app = await exampleApp(h, await shellAgent(h, `while [ ! -e '${go}' ]; do sleep 0.05; done; echo '{"price": 7}'`));
    const id = await newOrder(h, { article: 'nail' });
    await orderBecomes(h, id, 'claimed');
    await app.end();
    writeFileSync(go, '');
    await until(async () => (await deliveries(h)).find((one) => one.tries > 0), { what: 'a try' });
    await app.begin();
    assert.equal((await orderBecomes(h, id, 'completed')).price, 7);
});

test('rows that wait for an app are taken up soon after it listens, without waiting for the sweep', async (t) => {
    const h = await start(t, { 'tasks.sweep_s': 3600 });
    const app = await ownApp(t, h, await shellAgent(h, 'echo \'{"price": 1}\''));
    const { lock, webhook } = honest(h);
    let tries = 0;
    Object.assign(app, { webhook, lock: (body) => ++tries > 2 ? lock(body) : 'no answer' });
    const id = await newOrder(h, { article: 'nail' });
    await orderBecomes(h, id, 'completed');
    assert.equal(app.locks.length, 3);
});

test('the secret of an app that runs by itself is told to the administrator, and signs what the app is sent', async (t) => {
    const h = await start(t);
    const app = await ownApp(t, h, await shellAgent(h, 'exit 0'));
    app.lock = async () => [409, { success: false, reason: 'already_locked' }];
    const { stdout, stderr, code } = await h.cli('app', 'secret', 'orders');
    assert.equal(code, 0, stderr);
    const key = Buffer.from(stdout.trim().replace(/^whsec_/, ''), 'base64');
    await newOrder(h, { article: 'nail' });
    await until(() => app.locks.length > 0, { what: 'a lock' });
    const { headers, text } = app.locks[0];
    assert.equal(headers['webhook-signature'],
        `v1,${createHmac('sha256', key).update(`${headers['webhook-id']}.${headers['webhook-timestamp']}.${text}`).digest('base64')}`);
    assert.equal((await admin(h, 'GET', `/api/apps/${app.id}/webhook-secret`)).secret, stdout.trim());
    const { entries } = await admin(h, 'GET', '/api/audit');
    assert.ok(entries.some(({ action }) => action === 'app.webhook_secret'), JSON.stringify(entries));
    assert.equal(JSON.stringify(entries).includes(stdout.trim()), false);
});

test('an end that was stored survives kill -9 and arrives with the same content', async (t) => {
    const h = await start(t);
    const app = await ownApp(t, h, await shellAgent(h, 'echo \'{"price": 1}\''));
    const { lock, webhook } = honest(h);
    Object.assign(app, { lock, webhook: async () => [503, ''] });
    const id = await newOrder(h, { article: 'nail' });
    await until(() => app.ends.length > 0, { what: 'a try' });
    await h.kill();
    app.webhook = webhook;
    await h.start();
    await orderBecomes(h, id, 'completed');
    const [first, last] = [app.ends[0], app.ends.at(-1)];
    assert.equal(last.text, first.text);
    assert.equal(last.headers['webhook-id'], first.headers['webhook-id']);
    assert.equal(app.locks.length, 1);
});

test('an app that says success and locks nothing starts no agent', async (t) => {
    const h = await start(t);
    const mark = join(h.desk ?? h.dataDir, 'ran');
    const app = await ownApp(t, h, await shellAgent(h, `echo >> '${mark}'`));
    app.lock = async ({ machine_id }) => [200, { success: true, locked_by: machine_id, locked_at: new Date().toISOString() }];
    const id = await newOrder(h, { article: 'nail' });
    await until(() => app.locks.length > 0, { what: 'a lock' });
    await h.logged(/says? that row|is locked, and the table says/);
    assert.equal((await orderOf(h, id)).status, 'pending');
    assert.equal(existsSync(mark), false);
});

test('redirects, floods and silence lock nothing, and a later honest answer does', async (t) => {
    const h = await start(t, { 'backend.lock_s': 2, 'tasks.sweep_s': 0.3 });
    const app = await ownApp(t, h, await shellAgent(h, 'echo \'{"price": 1}\''));
    const { lock, webhook } = honest(h);
    let n = 0;
    const answers = [
        async () => [307, '', { location: 'http://127.0.0.1:1/api/task-lock' }],
        async () => [200, 'x'.repeat(1 << 20)],
        () => new Promise(() => {}),
        async () => [200, '{"success":'],
    ];
    Object.assign(app, { webhook, lock: (body) => (answers[n++] ?? lock)(body) });
    const id = await newOrder(h, { article: 'nail' });
    await orderBecomes(h, id, 'completed');
    assert.ok(n > answers.length);
    assert.equal(app.ends.length, 1);
});

test('keys with quotes and line ends stay one value in the request', async (t) => {
    const h = await start(t);
    const app = await ownApp(t, h, await shellAgent(h, 'exit 0'));
    app.lock = async () => [409, { success: false, reason: 'already_locked' }];
    const article = 'x", "machine_id": "another\r\nContent-Length: 0\r\n\r\nGET / HTTP/1.1';
    await newOrder(h, { article });
    await until(() => app.locks.length > 0, { what: 'a lock' });
    assert.deepEqual(Object.keys(app.locks[0].body), ['task_id', 'table_name', 'machine_id', 'user_email']);
});
