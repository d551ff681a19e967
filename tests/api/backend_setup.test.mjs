// The set-up of a project of the hosted service (docs/hosted.md, "Account and set-up"): its SQL on a real PostgreSQL, which the double of the management
// API asks. Roles, auth.uid() and the publication are as the service's projects have them.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { accountDouble } from '../peers/account_double.mjs';
import { startHearth } from './harness.mjs';
import { refused } from './kit.mjs';
import { postgresPrograms, startPostgres } from './postgres_server.mjs';

const skip = !postgresPrograms && 'PostgreSQL is not installed';
const [ada, bob] = ['6f9619ff-8b86-4d01-b42d-00c04fc964a1', '6f9619ff-8b86-4d01-b42d-00c04fc964b2'];

async function project(t) {
    const pg = await startPostgres(t);
    for (const sql of ['CREATE ROLE anon NOLOGIN', 'CREATE ROLE authenticated NOLOGIN', 'CREATE ROLE service_role NOLOGIN BYPASSRLS', 'GRANT anon, authenticated, service_role TO owner',
        'CREATE SCHEMA auth', 'GRANT USAGE ON SCHEMA auth, public TO anon, authenticated, service_role, owner',
        `CREATE FUNCTION auth.uid() RETURNS uuid LANGUAGE sql STABLE AS $$ SELECT (nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'sub')::uuid $$`])
        pg.psql(sql, 'root');
    const run = (sql) => {
        const text = sql.startsWith('SELECT ') ? `SELECT coalesce(json_agg(t), '[]') FROM (${sql}) t` : sql;
        try {
            const out = pg.psql(text);
            return sql.startsWith('SELECT ') ? JSON.parse(out) : [];
        } catch (error) {
            throw new Error(/ERROR: .*/.exec(error.message)?.[0] ?? error.message);
        }
    };
    const service = await accountDouble(t, { runSql: run });
    const h = await startHearth({ t, env: { HEARTH_BACKEND_ACCOUNT_API: service.url } });
    await h.cli('backend', 'login', '--token', { input: service.newToken() });
    assert.equal((await h.cli('backend', 'use', 'Orders')).code, 0);
    // As the REST interface does it: one transaction, the role and the claims of the caller.
    const as = (role, sub, sql) => pg.psql(`BEGIN; SET LOCAL ROLE ${role}; SET LOCAL request.jwt.claims = '${JSON.stringify({ sub, role })}'; ${sql}; COMMIT`);
    return { pg, service, h, as };
}

test('the set-up makes all, tells its steps, may be repeated, and what is removed is named with its SQL', { skip }, async (t) => {
    const { pg, h } = await project(t);
    const before = await h.cli('backend', 'check', 'shop.orders', '--json');
    assert.equal(before.code, 1);
    assert.ok(before.json.missing.length > 15);
    const first = await h.cli('backend', 'setup', 'shop.orders');
    assert.equal(first.code, 0, first.stderr);
    const steps = [...first.stdout.matchAll(/^(\d+) of (\d+): (.*)$/gm)];
    assert.deepEqual(steps.map(([, n]) => Number(n)), Array.from({ length: Number(steps[0][2]) }, (_, i) => i + 1));
    assert.ok(steps.some(([, , , what]) => what === 'row-level security of "shop"."orders"'));
    assert.equal((await h.cli('backend', 'setup', 'shop.orders')).code, 0, 'again');
    const after = await h.cli('backend', 'check', 'shop.orders', '--json');
    assert.deepEqual([after.code, after.json.missing], [0, []]);
    const columns = pg.psql(`SELECT string_agg(column_name, ' ' ORDER BY ordinal_position) FROM information_schema.columns WHERE table_name = 'svc_activities'`).split(' ');
    for (const name of ['id', 'user_id', 'raw_data', 'old_data', 'status', 'locked_by', 'locked_at', 'completed_at', 'error_message', 'attempted_by', 'retry_count', 'result', 'created_at', 'attempt'])
        assert.ok(columns.includes(name), name);
    assert.deepEqual(pg.psql(`SELECT schemaname || '.' || tablename FROM pg_publication_tables WHERE pubname = 'supabase_realtime' ORDER BY 1`).split('\n'),
        ['public.svc_activities', 'public.svc_deletions', 'shop.orders']);
    assert.equal(pg.psql(`SELECT count(*) FROM pg_class WHERE relname IN ('svc_activities', 'orders') AND relreplident = 'f'`), '2');
    assert.equal(pg.psql(`SELECT to_regclass('svc_outbox') IS NULL`), 't', 'realtime takes the place of the outbox');
    pg.psql('DROP POLICY hearth_own_rows ON svc_activities; ALTER PUBLICATION supabase_realtime DROP TABLE shop.orders; DROP FUNCTION get_publications_full()');
    const { missing } = (await h.cli('backend', 'check', 'shop.orders', '--json')).json;
    assert.deepEqual(missing.map(({ what }) => what), ['function get_publications_full', 'row-level security of "public"."svc_activities"', '"shop"."orders" in the publication supabase_realtime']);
    for (const { sql } of missing)
        pg.psql(sql);
    assert.equal((await h.cli('backend', 'check', 'shop.orders')).code, 0);
});

test('the SQL of `hearth backend sql` does the same by hand, twice', { skip }, async (t) => {
    const { pg, h } = await project(t);
    const { stdout, code } = await h.cli('backend', 'sql', 'Shop.Orders_2');
    assert.equal(code, 0);
    pg.psql(stdout);
    pg.psql(stdout);
    assert.equal((await h.cli('backend', 'check', 'Shop.Orders_2')).stdout, 'The database has all it needs.\n');
});

test('row-level security: users see and change their own rows, the service role all, anonymous callers nothing', { skip }, async (t) => {
    const { pg, h, as } = await project(t);
    assert.equal((await h.cli('backend', 'setup')).code, 0);
    const id = as('authenticated', ada, `INSERT INTO svc_activities (raw_data) VALUES ('{"n":1}') RETURNING id`);
    assert.equal(pg.psql('SELECT user_id FROM svc_activities'), ada, 'the caller is the owner');
    assert.throws(() => as('authenticated', bob, `INSERT INTO svc_activities (raw_data, user_id) VALUES ('{}', '${ada}')`), /violates row-level security/);
    assert.equal(as('authenticated', bob, 'SELECT count(*) FROM svc_activities'), '0');
    assert.equal(as('authenticated', bob, `UPDATE svc_activities SET status = 'failed' RETURNING id`), '');
    assert.equal(as('authenticated', bob, 'DELETE FROM svc_activities RETURNING id'), '');
    assert.equal(as('authenticated', ada, 'SELECT count(*) FROM svc_activities'), '1');
    assert.throws(() => as('anon', ada, 'SELECT count(*) FROM svc_activities'), /permission denied/);
    assert.throws(() => as('anon', ada, `INSERT INTO svc_activities (raw_data) VALUES ('{}')`), /permission denied/);
    const claim = (role, sub, machine) => JSON.parse(as(role, sub, `SELECT svc_fn_claim_task('${id}', '${machine}')`));
    assert.equal(claim('authenticated', bob, 'lin-b').reason, 'not_found');
    assert.equal(claim('service_role', null, 'lin-a').success, true);
    assert.deepEqual([claim('authenticated', ada, 'lin-c').reason, claim('authenticated', ada, 'lin-c').locked_by], ['already_locked', 'lin-a']);
    assert.equal(JSON.parse(as('service_role', null, `SELECT svc_fn_complete_task('${id}', 'lin-a', '{"ok":true}', attempt => 1)`)).success, true);
    assert.equal(JSON.parse(as('authenticated', ada, 'SELECT get_publications_full()'))[0].pubname, 'supabase_realtime');
    as('authenticated', ada, 'DELETE FROM svc_activities');
    assert.deepEqual([as('authenticated', ada, 'SELECT count(*) FROM svc_deletions'), as('authenticated', bob, 'SELECT count(*) FROM svc_deletions'), as('service_role', null, 'SELECT count(*) FROM svc_deletions')], ['1', '0', '1']);
});

test('an account that may not write is told Access Denied; a step that fails is named, and the set-up goes on later', { skip }, async (t) => {
    const { pg, service, h } = await project(t);
    service.mayWrite = false;
    const denied = await h.cli('backend', 'setup');
    assert.equal(denied.code, 1);
    assert.match(denied.stderr, /Step 1 of \d+, .*Access Denied: /);
    service.mayWrite = true;
    pg.psql(`ALTER FUNCTION auth.uid() RENAME TO uid_gone`, 'root');
    const partly = await h.cli('backend', 'setup');
    assert.equal(partly.code, 1);
    assert.match(partly.stderr, /Step \d+ of \d+, row-level security of "public"."svc_activities": .*auth\.uid\(\) does not exist/);
    const { status, body } = await h.socket('POST', '/api/backend/setup', {});
    assert.deepEqual([status, body.code], [502, 'HOSTED_REFUSED']);
    const told = (await h.socket('GET', '/api/backend/setup')).body;
    assert.deepEqual([told.running, told.step.split(' of ')[0], /auth\.uid/.test(told.error)], [false, 'row-level security', true]);
    pg.psql(`ALTER FUNCTION auth.uid_gone() RENAME TO uid`, 'root');
    const whole = await h.socket('POST', '/api/backend/setup', { tables: ['shop.orders'] });
    assert.deepEqual([whole.status, whole.body.steps], [200, (await h.socket('GET', '/api/backend/setup')).body.of]);
    assert.deepEqual((await h.socket('GET', '/api/backend/check?tables=shop.orders')).body.missing, []);
    assert.ok((await h.socket('GET', '/api/backend/check?tables=shop.other')).body.missing.length > 0);
});

test('without a project, an account or a reference there is nothing to set up', async (t) => {
    const h = await startHearth({ t });
    refused(await h.socket('POST', '/api/backend/setup', {}), 400, 'HOSTED_UNSET');
    await h.socket('PUT', '/api/backend/project', { url: 'https://abcdefghijklmnopqrst.supabase.co', key: 'sb_publishable_x' });
    refused(await h.socket('POST', '/api/backend/setup', {}), 502, 'HOSTED_LOGIN_REQUIRED');
    await h.socket('PUT', '/api/backend/project', { url: 'http://127.0.0.1:9', key: 'sb_publishable_x' });
    refused(await h.socket('POST', '/api/backend/setup', {}), 400, 'HOSTED_UNSET', /by hand/);
    refused(await h.socket('POST', '/api/backend/setup', { tables: ['a.b.c'] }), 400, 'VALIDATION_ERROR');
});
