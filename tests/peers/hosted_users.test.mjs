// Activities with the rights of a user over a server that is not ours: the hosted service's own small one (@supabase/lite) over PostgreSQL, whose row-level
// security is that of `hearth backend sql`, and a policy by which users see rows that they may not change.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { coldHearth, startHearth } from '../api/harness.mjs';
import { newApp, refused } from '../api/kit.mjs';
import { postgresPrograms } from '../api/postgres_server.mjs';
import { token } from '../api/realtime.mjs';
import { hostedProject } from './hosted_project.mjs';
import { startLite } from './lite_server.mjs';

const skip = postgresPrograms ? false : 'no PostgreSQL is installed';

test('the project\'s row-level security decides which rows an app reaches', { skip }, async (t) => {
    const pg = await hostedProject(t), lite = await startLite(t, pg), cold = coldHearth({ t });
    const used = await cold.cli('backend', 'use', lite.url, '--key', lite.publishable, '--secret', { input: lite.secret });
    assert.equal(used.code, 0, used.stderr);
    const h = await startHearth({ t, dataDir: cold.dataDir, settings: { 'backend.kind': 'hosted' } });
    const call = h.asApp(await newApp(h, { require_user_auth: true }, ['activities.read', 'activities.write']));
    const as = (text) => async (...request) => {    // one app: what hides a row is no rule about apps
        await call('POST', '/sdk/auth/sync-supabase-token', { token: text });
        return call(...request);
    };
    const anna = randomUUID(), asAnna = as(token(lite.jwt_secret, anna)), asBen = as(token(lite.jwt_secret, randomUUID()));
    const row = (await asAnna('POST', '/activities', { raw_data: { n: 1 } })).body.data;
    assert.equal(row?.user_id, anna);
    assert.deepEqual((await asAnna('GET', '/activities')).body.data.map((one) => one.id), [row.id]);
    assert.deepEqual((await asBen('GET', '/activities')).body.data, []);
    for (const [method, body] of [['GET'], ['PATCH', { status: 'stolen' }], ['DELETE']])
        refused(await asBen(method, `/activities/${row.id}`, body), 404, 'NOT_FOUND');
    refused(await asBen('POST', '/activities/functions/svc_fn_claim_task', { task_id: row.id, machine_id: 'm' }), 404, 'NOT_FOUND');

    const anonymous = h.asApp(await newApp(h, {}, ['activities.read', 'activities.write']));
    assert.deepEqual((await anonymous('GET', '/activities')).body.data, [], 'lite gives the role anon the right to read, but no policy shows it a row');
    refused(await anonymous('GET', `/activities/${row.id}`), 404, 'NOT_FOUND');
    refused(await anonymous('POST', '/activities', { raw_data: {} }), 403, 'ROW_REFUSED', /anonymous/);
    refused(await as(token(lite.jwt_secret, anna, { exp: 1 }))('GET', '/activities'), 401, 'JWT_EXPIRED');
    refused(await as(token('x'.repeat(40), anna))('GET', '/activities'), 401, 'JWT_SIGNATURE');

    pg.psql('CREATE POLICY all_see ON svc_activities FOR SELECT TO authenticated USING (true)', 'root');
    assert.equal((await asBen('GET', `/activities/${row.id}`)).body.data.id, row.id);
    refused(await asBen('PATCH', `/activities/${row.id}`, { status: 'stolen' }), 403, 'ROW_REFUSED');
    refused(await asBen('DELETE', `/activities/${row.id}`), 403, 'ROW_REFUSED');
    assert.equal((await asAnna('GET', `/activities/${row.id}`)).body.data.status, 'pending');
    const claimed = await asAnna('POST', '/activities/functions/svc_fn_claim_task', { task_id: row.id, machine_id: 'm' });
    assert.equal(claimed.body.result?.success, true, claimed.text);
    assert.equal((await asAnna('DELETE', `/activities/${row.id}`)).status, 200);
});
