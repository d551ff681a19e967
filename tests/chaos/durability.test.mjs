// What was answered with success is there afterwards: after SIGKILL in the middle of group commits, after SIGTERM under load, after a
// full disk.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, statfsSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { startHearth, until } from '../api/harness.mjs';
import { smallDisk } from '../api/kit.mjs';
import { assertIntact, assertNoChildren, Chance, children, databases, Ledger, query } from './chaos.mjs';

const writers = 48;

// Many clients insert until `stop` is aborted; ids that were answered with 201 are collected in `acknowledged`.
async function load(h, headers, stop, acknowledged = []) {
    const others = [];
    await Promise.all(Array.from({ length: writers }, async (_, writer) => {
        for (let n = 0; !stop.aborted; n++) {
            try {
                const reply = await h.api('POST', '/activities', { raw_data: { writer, n } }, headers, { timeoutMs: 10_000 });
                if (reply.status === 201)
                    acknowledged.push(reply.body.data.id);
                else
                    others.push(reply);
            } catch {
                await pause(5);         // the service is gone: this one was not acknowledged
            }
        }
    }));
    return { acknowledged, others };
}

function missing(h, acknowledged) {
    const there = new Set(query(join(h.dataDir, 'backend.db'), 'SELECT id FROM svc_activities').map((row) => row.id));
    return acknowledged.filter((id) => !there.has(id));
}

test('activities that were acknowledged survive SIGKILL in the middle of group commits', async (t) => {
    const rounds = 8;
    const chance = new Chance(t);
    const h = await startHearth({ t, settings: { 'log.level': 'warn' } });
    const headers = { authorization: `Bearer ${await h.key()}` };
    const all = [];
    for (let round = 0; round < rounds; round++) {
        const stop = new AbortController();
        const acknowledged = [];
        const loading = load(h, headers, stop.signal, acknowledged);
        await until(() => acknowledged.length > 20, { what: 'some are acknowledged' });
        await pause(chance.between(100, 600));
        await h.kill();
        stop.abort();
        await loading;
        all.push(...acknowledged);
        await h.start();
        assert.deepEqual(missing(h, all), [], `round ${round}`);
    }
    t.diagnostic(`${all.length} acknowledged in ${rounds} rounds`);
    const first = await h.api('GET', `/activities/${all[0]}`, undefined, headers);
    assert.equal(first.body.data.status, 'pending');
    await h.terminate();
    databases(h.dataDir).forEach(assertIntact);
});

test('SIGTERM under load loses nothing, ends in time and leaves no process', async (t) => {
    const deadlineS = 4;
    const nRunning = 4;
    const h = await startHearth({ t, settings: { 'shutdown.deadline_s': deadlineS, 'log.level': 'warn' } });
    const ledger = new Ledger(join(h.home, 'ledger'));
    await h.agent({ name: 'chaos', display_name: 'Chaos', command: process.execPath, args: [join(import.meta.dirname, 'agent.mjs')],
        env: { CHAOS_LEDGER: ledger.path }, timeout_s: 60 });
    const working = await h.app({ config: {
        agentHandlers: [{ tableName: 'svc_activities', agentId: 'chaos', eventTypes: ['INSERT'] }],
        backend: { enabled: true, mode: 'compatible', max_concurrent_tasks: nRunning },
    } });
    const key = { authorization: `Bearer ${await h.key()}` };
    for (let n = 0; n < nRunning; n++)
        assert.equal((await h.api('POST', '/activities', { raw_data: { n, plan: ['hang', 'report'] } }, { ...key, 'x-app-id': working })).status, 201);
    const stop = new AbortController();
    const loading = load(h, { ...key, 'x-app-id': await h.app() }, stop.signal);        // nobody listens to that app
    await until(() => ledger.read().filter((e) => e.what === 'started').length === nRunning, { what: 'agents run' });
    assert.ok(children(h.dataDir).length >= nRunning);         // each with hearth-child around it
    await pause(300);                   // of load
    const asked = performance.now();
    h.signal('SIGTERM');
    assert.deepEqual(await h.exited(), { code: 0, signal: null });
    const tookMs = Math.round(performance.now() - asked);
    stop.abort();
    const { acknowledged, others } = await loading;
    t.diagnostic(`${acknowledged.length} acknowledged, ended after ${tookMs} ms`);
    assert.ok(tookMs < deadlineS * 1000 + 30_000, `it took ${tookMs} ms`);
    await assertNoChildren(h.dataDir);
    assert.deepEqual([...new Set(others.map((reply) => reply.status))].filter((status) => status !== 503), []);

    const backend = join(h.dataDir, 'backend.db');
    assert.deepEqual(missing(h, acknowledged), []);
    assert.deepEqual(query(backend, 'SELECT id FROM svc_activities WHERE locked_by IS NOT NULL'), [], 'leases are released');
    databases(h.dataDir).forEach(assertIntact);

    // The interrupted ones are no failures: they run again on the same machine.
    const interrupted = new Set(ledger.read().filter((e) => e.what === 'started').map((e) => e.row));
    await h.start();
    const finished = () => query(backend, "SELECT id, attempted_by FROM svc_activities WHERE status = 'completed'").filter((row) => interrupted.has(row.id));
    await until(() => finished().length === interrupted.size, { everyMs: 100, what: 'interrupted tasks are done after the restart' });
    assert.ok(finished().every((row) => row.attempted_by === '[]'));
});

test('a second service on the same data folder is refused and told the first one\'s pid', async (t) => {
    const h = await startHearth({ t });
    const second = await h.cli('serve', '--listen', '127.0.0.1:0');
    assert.equal(second.code, 1);
    assert.match(second.stderr, new RegExp(`Another Hearth \\(pid ${h.pid}\\) uses this data folder`));
    assert.equal((await (await h.asKey())('GET', '/sdk/ping')).status, 200, 'the first one works on');
    await h.kill();
    await h.start();                    // what a killed one left behind does not count
});

// Which part a service says is not ready.
function unready({ status, body, text }) {
    assert.equal(status, 503, text);
    assert.equal(body.code, 'NOT_READY', text);
    return body.reason;
}

function fill(folder) {
    const path = join(folder, 'filler');
    const { bavail, bsize } = statfsSync(folder);
    writeFileSync(path, Buffer.alloc(bavail * bsize));
    return path;
}

test('on a full disk writes are refused, what was acknowledged stays, and with room it goes on', async (t) => {
    const disk = smallDisk(t, 32);
    if (!disk)
        return t.skip('needs root and the right to mount a tmpfs');
    mkdirSync(join(disk, 'home'));
    const h = await startHearth({ dataDir: join(disk, 'home/data') });
    t.after(() => h.stop());
    const dev = await h.asKey();
    const insert = () => dev('POST', '/activities', { raw_data: { text: 'x'.repeat(20_000) } });
    const acknowledged = [];
    for (let i = 0; i < 10; i++)
        acknowledged.push((await insert()).body.data.id);

    const filler = fill(disk);
    const refusals = [];
    for (let i = 0; i < 300 && refusals.length < 5; i++) {
        const reply = await insert();
        if (reply.status === 201)
            acknowledged.push(reply.body.data.id);
        else
            refusals.push(reply);
    }
    assert.equal(refusals.length, 5, 'the disk did not become full');
    t.diagnostic(`refused with ${refusals[0].status} ${refusals[0].text}`);
    for (const reply of refusals) {
        assert.equal(reply.status, 507, reply.text);
        assert.equal(reply.body.code, 'STORE_FULL');
    }
    assert.equal((await dev('GET', '/sdk/ping')).status, 200);
    assert.equal((await dev('GET', `/activities/${acknowledged[0]}`)).status, 200, 'reading goes on');
    assert.deepEqual(unready(await h.api('GET', '/readyz')), 'disk');

    truncateSync(filler, 0);
    const after = await until(async () => {
        const reply = await insert();
        return reply.status === 201 && reply;
    }, { what: 'inserts work again' });
    acknowledged.push(after.body.data.id);
    assert.equal((await h.api('GET', '/readyz')).body.disk, 'ready');
    assert.deepEqual(missing(h, acknowledged), []);
    await h.terminate();
    databases(h.dataDir).forEach(assertIntact);
    assert.ok(existsSync(filler));
});

test('a disk that is read-only is told as such', async (t) => {
    const h = await startHearth({ t });
    // A read-only file system over the data folder: what is open stays open, as when the kernel makes a broken disk read-only.
    const mounted = process.getuid() === 0 && spawnSync('mount', ['-t', 'tmpfs', '-o', 'ro,size=64m,mode=700', 'tmpfs', h.dataDir]).status === 0;
    if (!mounted)
        return t.skip('needs root and the right to mount a tmpfs');
    const reply = await h.api('GET', '/readyz').finally(() => spawnSync('umount', ['-l', h.dataDir]));
    assert.equal(unready(reply), 'disk');
    assert.match(reply.body.error, /read-only/);
    assert.equal((await h.api('GET', '/readyz')).status, 200);
    return undefined;
});
