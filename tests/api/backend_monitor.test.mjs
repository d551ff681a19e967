// The subscription monitor: machines that listen, and the state of each app's tables (specification, "Presence").
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startHearth, until } from './harness.mjs';
import { admin, insert, newApp } from './kit.mjs';

const monitor = (h) => admin(h, 'GET', '/api/backend/monitor');

test('the monitor shows this machine, and each table of each app with its last event', async (t) => {
    const h = await startHearth({ t, settings: { 'identity.machine_id': 'lin-a', 'backend.poll_ms': 20 } });
    const app = await newApp(h, { name: 'triage', config: { backend: { enabled: true, tables: ['public.svc_activities', 'sales.orders'] } } },
        ['activities.read', 'activities.write']);
    await until(async () => (await monitor(h)).machines.some((m) => m.machine_id === 'lin-a'), { what: 'the machine listens' });
    const before = await monitor(h);
    assert.deepEqual([before.provider, before.way, before.state, before.last_error, before.machines_error], ['embedded', 'change log', 'live', null, null]);
    const of = (shown, table) => shown.subscriptions.find((s) => s.app_id === app && s.table === table);
    assert.deepEqual(of(before, 'sales.orders'), { app_id: app, app_name: 'triage', table: 'sales.orders', filter: null, state: 'live',
        last_event_at: null, lag_ms: null, events: 0, gaps: of(before, 'sales.orders').gaps, retries: 0, last_error: null, last_error_at: null });
    await insert(await h.asApp(app), { n: 1 });
    const after = await until(async () => {
        const shown = await monitor(h);
        return of(shown, 'svc_activities').events > 0 && shown;
    }, { what: 'the event is counted' });
    const row = of(after, 'svc_activities');
    assert.ok(Math.abs(Date.parse(row.last_event_at) - Date.now()) < 60_000);
    assert.ok(row.lag_ms >= 0 && row.lag_ms < 60_000);
    assert.equal(of(after, 'sales.orders').events, 0);
});

test('hearth backend monitor prints the same for a person and as JSON', async (t) => {
    const h = await startHearth({ t, settings: { 'identity.machine_id': 'lin-a' } });
    const app = await newApp(h, { name: 'triage', config: { backend: { enabled: true } } });
    await until(async () => (await monitor(h)).machines.length === 1, { what: 'the machine listens' });
    const { stdout } = await h.cli('backend', 'monitor');
    assert.match(stdout, /^Backend embedded, changes by change log: live$/m);
    assert.match(stdout, /^lin-a /m);
    assert.match(stdout, /^triage +svc_activities +live/m);
    const json = await h.cliJson('backend', 'monitor');
    assert.equal(json.subscriptions.find((s) => s.app_id === app).state, 'live');
});
