// identity.dialect, clients of another dialect, and the words they use (decision D1; issue, section 2).
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startHearth, until } from './harness.mjs';
import { admin, decide, newApp, newKey, refused, refusedFields, shellAgent, unique } from './kit.mjs';

const trigger = { event: 'trigger-agent', payload: { raw_data: {} } };
const clientsOf = async (h) => (await admin(h, 'GET', '/api/doctor')).checks.filter((one) => one.name === 'clients');

test('one setting sets token, abbreviation and what hangs on them', async (t) => {
    const h = await startHearth({ t, settings: { 'identity.dialect': 'realtimex' } });
    const { call } = await newKey(h);
    for (const path of ['/webhooks/realtimex', '/api/webhooks/realtimex', '/webhooks/svc'])
        assert.equal((await call('POST', path, trigger)).status, 200, path);
    await call('POST', '/webhooks/realtimex', trigger, { 'x-rtx-event-id': 'e1' });
    assert.equal((await call('POST', '/webhooks/realtimex', trigger, { 'x-rtx-event-id': 'e1' })).body.deduplicated, true);
    const app = await newApp(h, { name: unique('env'), app_type: 'custom', config: { command: '/bin/sh', args: ['-c', 'echo "$RTX_APP_ID on $RTX_PORT"; sleep 600'] } });
    await admin(h, 'POST', `/api/apps/${app}/start`);
    await until(async () => (await admin(h, 'GET', `/api/apps/${app}/logs`)).lines.some((line) => line.text.startsWith(`${app} on `)));
    await decide(h, app, ['activities.write']);
    const { body } = await h.asApp(app)('POST', '/activities', { raw_data: {} });
    const claim = await call('POST', '/activities/functions/rtx_fn_claim_task', { target_task_id: body.data.id, machine_id: 'm', table_name: 'rtx_activities' }, { 'x-app-id': app });
    assert.equal(claim.body.result.success, true);
    assert.deepEqual((await clientsOf(h)).map((one) => one.ok), [true]);
});

test('words that are set themselves outrank those of the dialect', async (t) => {
    const h = await startHearth({ t, settings: { 'identity.dialect': 'realtimex', 'identity.token': 'anvil' } });
    const { call } = await newKey(h);
    assert.equal((await call('POST', '/webhooks/anvil', trigger)).status, 200);
    const { settings } = await admin(h, 'GET', '/api/settings');
    const of = (key) => settings.find((one) => one.key === key).value;
    assert.deepEqual([of('identity.dialect'), of('identity.token'), of('identity.abbr')], ['realtimex', 'anvil', 'anvil']);
    const { error, setting } = refused(await call('POST', '/webhooks/realtimex', trigger), 404, 'NOT_FOUND');
    assert.match(error, /`hearth settings set identity\.token realtimex`/);
    assert.equal(setting, 'identity.token realtimex');
});

test('a client of another dialect is told the setting, by 404, log and doctor, and logged once', async (t) => {
    const h = await startHearth({ t });
    const { call } = await newKey(h);
    for (let i = 0; i < 3; i++) {
        const { error } = refused(await call('POST', '/webhooks/realtimex', trigger), 404, 'NOT_FOUND');
        assert.match(error, /^Not Found: .*`hearth settings set identity\.dialect realtimex`/);
    }
    assert.match(refused(await call('POST', '/api/webhooks/acme_2', trigger), 404, 'NOT_FOUND').error, /identity\.token acme_2/);
    for (const path of ['/webhooks/Acme', '/webhooks/a%20b', '/webhooks/', '/webhooks/x/y', `/webhooks/${'w'.repeat(33)}`])
        assert.equal(refused(await call('POST', path, trigger), 404, 'NOT_FOUND').error, 'Not Found', path);
    assert.match(refused(await call('POST', '/activities/functions/rtx_fn_claim_task', { machine_id: 'm' }), 404, 'FUNCTION_NOT_FOUND').error, /identity\.dialect realtimex/);
    assert.equal((await call('POST', '/webhooks/svc', trigger, { 'x-rtx-event-id': 'e1' })).status, 200);
    assert.equal((await call('POST', '/webhooks/svc', trigger, { 'x-rtx-event-id': 'e1' })).body.deduplicated, true, 'its header counts all the same');
    await newApp(h, { name: unique('theirs'), config: { backend: { enabled: true, tables: ['public.rtx_activities'] }, env: { RTX_API_KEY: 'x' } } });
    const seen = (await clientsOf(h)).map((one) => [one.ok, one.text, one.advice]);
    assert.equal(seen.length, 5);
    assert.ok(seen.every(([ok, , advice]) => !ok && advice.startsWith('`hearth settings set identity.')));
    assert.match(seen[0][1], /calls \/webhooks\/realtimex.*seen 3 times/);
    assert.equal(h.log.filter((line) => / warn .*calls \/webhooks\/realtimex/.test(line)).length, 1);
});

test('many made-up words are bounded, and a known one is still told after them', async (t) => {
    const h = await startHearth({ t });
    for (let i = 0; i < 40; i++)
        refused(await h.api('POST', `/webhooks/word${i}`, {}), 404, 'NOT_FOUND');
    refused(await h.api('POST', '/webhooks/realtimex', {}), 404, 'NOT_FOUND');
    const seen = await clientsOf(h);
    assert.equal(seen.length, 33);
    assert.match(seen.at(-1).text, /realtimex/);
});

test('the block of the hosted backend is read as backend', async (t) => {
    const h = await startHearth({ t });
    const agent = await shellAgent(h, 'exit 0');
    const config = { supabase: { enabled: true, tables: ['orders'], max_concurrent_tasks: 2 }, agentHandlers: [{ tableName: 'public.orders', agentId: agent, eventTypes: ['INSERT'] }] };
    const app = await newApp(h, { name: unique('hosted'), config });
    await decide(h, app, ['database.config']);
    const { body } = await h.asApp(app)('GET', '/sdk/database/config');
    assert.deepEqual([body.config.tables, body.config.max_concurrent_tasks], [['orders'], 2]);
    const put = (one) => h.socket('POST', '/api/apps', { name: unique('bad'), config: one });
    refusedFields(await put({ supabase: { tables: ['a b'] } }), 'config.supabase.tables[0]');
    refusedFields(await put({ supabase: { enabled: true }, backend: { enabled: true } }), 'config.supabase');
});
