// The wall clock steps while agents work. libfaketime gives one process another wall clock; the monotonic one stays.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { startHearth, until } from '../api/harness.mjs';
import { assertIntact, databases, Ledger, query } from './chaos.mjs';
import { fakeClock, needsFakeClock as skip } from './fake_clock.mjs';

class SteppingClock {
    constructor(path) {
        this.path = path;
        this.step('+0');
    }

    step(offset) { writeFileSync(this.path, `${offset}\n`); }
    get env() { return { ...fakeClock, FAKETIME_TIMESTAMP_FILE: this.path, FAKETIME_NO_CACHE: '1' }; }
}

for (const [name, offset] of [['an hour ahead', '+3600'], ['an hour back', '-3600']]) {
    test(`tasks are finished once when the clock steps ${name} while agents work`, { skip }, async (t) => {
        const home = mkdtempSync(join(tmpdir(), 'hearth-clock-'));
        t.after(() => rmSync(home, { recursive: true, force: true }));
        const clock = new SteppingClock(join(home, 'clock'));
        const ledger = new Ledger(join(home, 'ledger'));
        const h = await startHearth({ t, dataDir: join(home, 'data'), env: clock.env,
            settings: { 'tasks.heartbeat_s': 0.2, 'tasks.stale_after_s': 1, 'tasks.sweep_s': 0.3, 'log.level': 'warn' } });
        h.mayStall = true;      // libfaketimeMT reads its file under one lock for each reading of the clock
        await h.agent({ name: 'chaos', display_name: 'Chaos', command: process.execPath, args: [join(import.meta.dirname, 'agent.mjs')],
            env: { CHAOS_LEDGER: ledger.path }, timeout_s: 120 });
        const appId = await h.app({ config: {
            agentHandlers: [{ tableName: 'svc_activities', agentId: 'chaos', eventTypes: ['INSERT'] }],
            backend: { enabled: true, mode: 'compatible', max_concurrent_tasks: 4 },
        } });
        const dev = h.as({ authorization: `Bearer ${await h.key()}`, 'x-app-id': appId });
        const file = join(h.dataDir, 'backend.db');
        for (let n = 0; n < 24; n++) {
            if (n === 8) {
                await until(() => ledger.read().length > 0, { what: 'agents work' });
                clock.step(offset);
            }
            assert.equal((await dev('POST', '/activities', { raw_data: { n, plan: ['slow'] } })).status, 201);
        }
        await pause(300);
        clock.step('+0');
        const rows = () => query(file, 'SELECT id, status, result, created_at FROM svc_activities');
        const apart = rows().map((row) => Math.abs(Date.parse(row.created_at) - Date.now()) / 3_600_000);
        assert.ok(apart.some((hours) => hours > 0.9) && apart.some((hours) => hours < 0.1), `the clock did not step: ${apart}`);
        await until(() => rows().every((row) => row.status === 'completed'), { deadlineMs: 180_000, everyMs: 100, what: 'all are completed' });
        for (const entry of ledger.read().filter((e) => e.what === 'completed acknowledged'))
            assert.deepEqual(JSON.parse(rows().find((row) => row.id === entry.row).result), { token: entry.token });
        await h.terminate();
        databases(h.dataDir).forEach(assertIntact);
    });
}

test('a machine whose clock steps an hour ahead takes no live lease of another machine of the host', { skip }, async (t) => {
    const home = mkdtempSync(join(tmpdir(), 'hearth-clock-'));
    t.after(() => rmSync(home, { recursive: true, force: true }));
    const clock = new SteppingClock(join(home, 'clock'));
    const ledger = new Ledger(join(home, 'ledger'));
    const file = join(home, 'shared.db'), appId = '99999999-0000-4000-8000-0000000000c1';
    const settings = { 'backend.file': file, 'tasks.heartbeat_s': 5, 'tasks.stale_after_s': 60, 'tasks.sweep_s': 0.2, 'log.level': 'warn' };
    const services = [];
    for (const [i, env] of [{}, clock.env].entries()) {
        const h = await startHearth({ t, dataDir: join(home, `data-${i}`), env, settings: { ...settings, 'identity.machine_id': `m${i}` } });
        h.mayStall = true;
        await h.agent({ name: 'chaos', display_name: 'Chaos', command: process.execPath, args: [join(import.meta.dirname, 'agent.mjs')],
            env: { CHAOS_LEDGER: ledger.path }, timeout_s: 120 });
        services.push(h);
    }
    const config = { agentHandlers: [{ tableName: 'svc_activities', agentId: 'chaos', eventTypes: ['INSERT'] }], backend: { enabled: true, mode: 'compatible', max_concurrent_tasks: 4 } };
    await services[0].app({ app_id: appId, name: 'shared', config });
    const dev = services[0].as({ authorization: `Bearer ${await services[0].key()}`, 'x-app-id': appId });
    for (let n = 0; n < 4; n++)
        assert.equal((await dev('POST', '/activities', { raw_data: { n, plan: ['slow'] } })).status, 201);
    const rows = () => query(file, 'SELECT id, status, attempt FROM svc_activities');
    await until(() => rows().every((row) => row.status !== 'pending'), { what: 'the first machine works on all' });
    clock.step('+3600');
    await services[1].app({ app_id: appId, name: 'shared', config });            // it looks for work, an hour ahead
    await until(() => rows().every((row) => row.status === 'completed'), { deadlineMs: 120_000, everyMs: 50, what: 'all are completed' });
    assert.deepEqual(rows().map((row) => row.attempt), [1, 1, 1, 1]);
    for (const h of services)
        await h.terminate();
});
