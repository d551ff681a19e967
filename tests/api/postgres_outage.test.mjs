// A service whose PostgreSQL hangs, is away, or comes back.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { coldHearth, startHearth, until } from './harness.mjs';
import { insert, listeningApp, newApp, newKey, rowBecomes, shellAgent } from './kit.mjs';
import { startProxy } from './postgres_proxy.mjs';
import { postgresPrograms, startPostgres } from './postgres_server.mjs';

const skip = postgresPrograms ? false : 'no PostgreSQL is installed';
const grants = ['activities.read', 'activities.write', 'api.task', 'webhook.trigger'];

// A set-up database behind a proxy.
async function world(t, options) {
    const pg = await startPostgres(t);
    const proxy = await startProxy(t, pg, options);
    const cold = coldHearth({ t });
    pg.psql((await cold.cli('backend', 'sql', { env: { HEARTH_BACKEND_KIND: 'postgres', HEARTH_BACKEND_URL: pg.url() } })).stdout);
    const start = (more = {}) => startHearth({ t, settings: { 'backend.kind': 'postgres', 'backend.url': proxy.url(), 'tasks.sweep_s': 0.5, ...more } });
    return { pg, proxy, start };
}

test('a database that hangs holds up nobody but those who need it', { skip }, async (t) => {
    const { proxy, start } = await world(t);
    const h = await start({ 'limits.long_requests': 24, 'backend.call_s': 10 });
    const app = h.asApp(await newApp(h, {}, grants)), other = (await newKey(h)).call;
    await insert(app, {});
    proxy.hang();
    let answers = [];
    const calls = Array.from({ length: 64 }, () => app('POST', '/activities', { raw_data: {} }).then((reply) => answers.push(reply)));
    await until(() => answers.length >= 40, { what: 'the calls beyond the budget are refused' });
    const refused = answers.splice(0);
    for (const { status, headers, body } of refused) {
        assert.ok(status === 503 || status === 429, `${status}`);
        assert.ok(Number(headers['retry-after']) >= 1);
        assert.match(body.code, /BUDGET_EXCEEDED|OVERLOADED/);
    }
    for (const path of ['/healthz', '/metrics', '/api/apps', '/api/tasks', '/api/settings', '/api/approvals', '/'])
        assert.ok((await h.socket('GET', path)).status < 400, path);
    assert.equal((await other('GET', '/sdk/ping')).status, 200);
    assert.equal((await other('GET', '/sdk/llm/providers')).status < 500, true);
    assert.equal(answers.length, 0, 'the calls of the database still wait');
    await Promise.all(calls);
    for (const { status, headers, body } of answers) {
        assert.equal(status, 503, JSON.stringify(body));
        assert.equal(body.code, 'STORE_UNAVAILABLE', JSON.stringify(body));
        assert.ok(Number(headers['retry-after']) >= 1);
    }
    proxy.pass();
    await until(async () => (await app('POST', '/activities', { raw_data: {} })).status === 201, { what: 'rows again' });
});

test('a service stops in time while its database hangs', { skip }, async (t) => {
    const { proxy, start } = await world(t);
    const h = await start({ 'shutdown.deadline_s': 1 });
    const app = h.asApp(await newApp(h, { config: { backend: { enabled: true } } }, grants));
    await insert(app, {});
    proxy.hang();
    const waiting = app('GET', '/activities').catch((error) => error);
    const { body } = await h.socket('GET', '/readyz');
    assert.equal(body.code, 'NOT_READY');
    assert.match(body.error, /did not answer/);
    await h.stop();
    assert.match(h.log.join('\n'), /the database is waited for no longer/);
    await waiting;
});

test('a service starts without its database, says so, and goes on by itself when it is there', { skip }, async (t) => {
    const { pg, proxy, start } = await world(t, { isOpen: false });
    const h = await start({ 'tasks.presence_s': 0.2 });
    await h.logged(/the database of backend\.url cannot be reached now/);
    await h.logged(/no work is taken up until the rows can be reached/);
    assert.equal((await h.socket('GET', '/healthz')).status, 200);
    assert.match((await h.cli('status')).stdout, /not ready .*backend is not ready/);
    assert.match((await h.cli('doctor')).stdout, /backend.*(refused|PostgreSQL)/);
    const agent = await shellAgent(h, 'printf \'{"done":true}\'');
    const { id, call } = await listeningApp(h, agent);
    const refused = await call('POST', '/activities', { raw_data: {} });
    assert.equal(refused.status, 503);
    assert.equal(refused.body.code, 'STORE_UNAVAILABLE');
    assert.ok(Number(refused.headers['retry-after']) >= 1);

    const row = pg.psql(`INSERT INTO svc_activities (app_id, raw_data) VALUES ('${id}', '{}') RETURNING id`);
    await proxy.open();
    assert.deepEqual((await rowBecomes(call, row, 'completed')).result, { done: true });
    assert.doesNotMatch((await h.cli('status')).stdout, /not ready/);
    await rowBecomes(call, (await insert(call, {})).id, 'completed');
});

test('a login that is refused stops the start, and tables that are missing are told when the database comes', { skip }, async (t) => {
    const pg = await startPostgres(t);
    const proxy = await startProxy(t, pg);
    const begin = (url) => startHearth({ t, settings: { 'backend.kind': 'postgres', 'backend.url': url } });
    await assert.rejects(begin(proxy.url('stranger')), /role "stranger" does not exist/);
    await assert.rejects(begin(proxy.url('owner', 'elsewhere')), /database "elsewhere" does not exist/);
    await assert.rejects(begin(proxy.url()), /hearth backend setup/);
    await proxy.close();
    const h = await begin(proxy.url());
    const app = h.asApp(await newApp(h, {}, grants));
    await proxy.open();
    const early = await until(async () => {
        const reply = await app('POST', '/activities', { raw_data: {} });
        return reply.body.code === 'SCHEMA_MISSING' && reply;
    }, { what: 'the tables are missed' });
    assert.match(early.body.error, /hearth backend setup/);
    assert.equal((await h.cli('backend', 'setup', { env: { HEARTH_BACKEND_KIND: 'postgres', HEARTH_BACKEND_URL: proxy.url() } })).code, 0);
    await insert(app, {});
});
