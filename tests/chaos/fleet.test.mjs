// 500 activities, three services on one backend file as three machines. Services are killed, stopped and restarted, agents crash, are
// killed, hang, report twice and too late. At the end everything is done once and nothing that was promised is lost.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { startHearth, until } from '../api/harness.mjs';
import { assertIntact, assertNoChildren, Chance, databases, Ledger, monotonicMs, pidOfRun, query } from './chaos.mjs';

const nActivities = 500;
const nMachines = 3;
const stormMs = 25_000;                 // how long services are killed
const settleMs = 420_000;               // how long the rest may take
// Both beyond what a busy machine delays a thread or an agent's start by.
const staleS = 5;
const agentTimeoutS = 10;

const goodActs = { report: 5, print: 4, twice: 2, contradict: 2, reportAndCrash: 1, linger: 1, slow: 2 };
const badActs = { fail: 4, crash: 4, kill: 3, hang: 0.6, late: 3 };
const planLength = 8;

const settings = (machine, file) => ({
    'identity.machine_id': machine, 'backend.file': file, 'backend.poll_ms': 50, 'tasks.heartbeat_s': 0.5, 'tasks.stale_after_s': staleS,
    'tasks.sweep_s': 0.5, 'tasks.presence_s': 2, 'shutdown.deadline_s': 5, 'log.level': 'warn',
});

// steady rows succeed at once, doomed ones never, the others as it comes.
function makePlan(chance) {
    const kind = chance.weighted({ steady: 50, moody: 35, doomed: 15 });
    const good = () => chance.weighted(goodActs);
    const bad = () => chance.weighted(badActs);
    const act = { steady: good, doomed: bad, moody: () => (chance.unit() < 0.5 ? good() : bad()) }[kind];
    return { kind, plan: Array.from({ length: planLength }, act) };
}

// Written beside the rows by a trigger, whoever writes them: every status a row ever had.
const historySchema = `
    CREATE TABLE chaos_history (at INTEGER PRIMARY KEY AUTOINCREMENT, row TEXT, status TEXT, attempt INTEGER, machine TEXT);
    CREATE TRIGGER chaos_history_kept AFTER UPDATE OF status ON svc_activities WHEN new.status IS NOT old.status BEGIN
        INSERT INTO chaos_history (row, status, attempt, machine) VALUES (new.id, new.status, new.attempt, new.locked_by);
    END;`;

class Fleet {
    members = [];
    isOver = false;
    stops = [];                         // {machine, from, to}: while a service was stopped its lease may go on elsewhere

    constructor(t) {
        this.chance = new Chance(t);
        this.home = mkdtempSync(join(tmpdir(), 'hearth-chaos-'));
        t.after(() => this.close());
        this.file = join(this.home, 'shared.db');
        this.desk = join(this.home, 'desk');
        mkdirSync(this.desk);
        this.ledger = new Ledger(join(this.desk, 'ledger'));
        this.appId = randomUUID();
    }

    // Also when the test has failed half-way. CHAOS_KEEP leaves the files to look at.
    async close() {
        this.isOver = true;
        await Promise.all(this.members.map(({ h }) => h.isRunning && h.kill()));
        if (!process.env.CHAOS_KEEP)
            rmSync(this.home, { recursive: true, force: true });
    }

    async start() {
        for (let i = 0; i < nMachines; i++) {
            const machine = `lin-${i}`;
            mkdirSync(join(this.home, machine));
            const h = await startHearth({ sandbox: 'standard', dataDir: join(this.home, machine, 'data'), settings: settings(machine, this.file) });
            await h.agent({ name: 'chaos', display_name: 'Chaos', command: process.execPath, args: [join(import.meta.dirname, 'agent.mjs')],
                env: { CHAOS_LEDGER: this.ledger.path }, timeout_s: agentTimeoutS,
                sandbox: { read: [join(import.meta.dirname, '..')], write: [this.desk] } });
            await h.app({ app_id: this.appId, name: 'chaos', config: {
                agentHandlers: [{ tableName: 'svc_activities', agentId: 'chaos', eventTypes: ['INSERT'] }],
                backend: { enabled: true, mode: 'compatible', max_concurrent_tasks: 4 },
            } });
            this.members.push({ h, machine, key: await h.key(), isUp: true });
        }
        const db = new DatabaseSync(this.file);
        db.exec('PRAGMA busy_timeout = 5000');
        db.exec(historySchema);
        db.close();
    }

    get up() { return this.members.filter((member) => member.isUp); }

    rows() { return query(this.file, 'SELECT * FROM svc_activities'); }

    // Inserts through whichever service is up; one without an answer may be there or not.
    async insertAll() {
        this.acknowledged = new Map();
        this.kinds = new Map();
        for (let n = 0; n < nActivities; n++) {
            const { kind, plan } = makePlan(this.chance);
            this.kinds.set(n, kind);
            await until(() => this.insert(n, plan), { what: `activity ${n} is inserted` });
        }
    }

    async insert(n, plan) {
        const member = this.chance.one(this.members);
        if (this.isOver)
            throw new Error('the test is over');
        if (!member.isUp)
            return false;
        try {
            const reply = await member.h.api('POST', '/activities', { raw_data: { n, plan } },
                { authorization: `Bearer ${member.key}`, 'x-app-id': this.appId }, { timeoutMs: 5000 });
            if (reply.status === 201)
                this.acknowledged.set(reply.body.data.id, n);
            return reply.status === 201;
        } catch {
            return false;
        }
    }

    async killOne() {
        const member = this.chance.one(this.up);
        member.isUp = false;
        await member.h.kill();
        await pause(this.chance.between(0, 600));
        await member.h.start();
        member.isUp = true;
    }

    // As a laptop that sleeps, or a machine that swaps: longer than its leases live.
    async stopOne() {
        const member = this.chance.one(this.up);
        const stop = { machine: member.machine, from: monotonicMs(), to: Infinity };
        this.stops.push(stop);
        member.isUp = false;
        member.h.mayStall = true;
        member.h.signal('SIGSTOP');
        await pause(this.chance.between(500, staleS * 1000 + 1000));
        member.h.signal('SIGCONT');
        stop.to = monotonicMs();
        member.isUp = true;
    }

    killAgent() {
        const entries = this.ledger.read();
        const ended = new Set(entries.filter((entry) => entry.what === 'ended').map((entry) => entry.token));
        const running = entries.filter((entry) => entry.what === 'started' && !ended.has(entry.token)).map(pidOfRun).filter(Boolean);
        if (running.length)
            process.kill(this.chance.one(running), 'SIGKILL');
    }

    async storm() {
        const end = Date.now() + stormMs;
        const counts = { killOne: 0, stopOne: 0, killAgent: 0 };
        while (Date.now() < end) {
            await pause(this.chance.between(100, 700));
            const what = this.chance.weighted({ killOne: 6, stopOne: 1, killAgent: 3 });
            counts[what]++;
            await this[what]();
        }
        return counts;
    }

    // Reports for the agents that wanted it, some time after their attempt.
    async reportLate() {
        const done = new Set();
        const reports = [];
        while (!this.isOver) {
            await pause(200);
            for (const entry of this.ledger.read().filter((e) => e.what === 'wants a late report' && !done.has(e.token))) {
                done.add(entry.token);
                reports.push(this.reportOne(entry));
            }
        }
        await Promise.all(reports);
        return done.size;
    }

    async reportOne(entry) {
        await pause(this.chance.between(0, 2500));
        const member = this.members.find(({ machine }) => machine === entry.machine);
        const body = { action: 'completed', machine_id: entry.machine, attempt: entry.attempt, data: { result: { token: entry.token } } };
        try {
            const reply = await member.h.api('POST', `/api/external-tasks/${entry.task}/webhook`, body, {}, { timeoutMs: 5000 });
            this.ledger.add({ ...entry, what: reply.status === 200 ? 'completed acknowledged' : 'late report refused', status: reply.status, text: reply.text });
        } catch {
            // It is down just now: nothing was acknowledged.
        }
    }

    openRows() {
        return this.rows().filter((row) => !(row.status === 'completed' || (row.status === 'failed' && JSON.parse(row.attempted_by).length >= nMachines)));
    }

    async settle() {
        try {
            await until(() => this.openRows().length === 0, { deadlineMs: settleMs, everyMs: 250, what: 'every row is completed or quarantined' });
        } catch (error) {
            throw new Error(`${error.message}\n${JSON.stringify(this.openRows().slice(0, 5), null, 1)}`);
        }
    }
}

function groupBy(list, key) {
    const groups = new Map();
    list.forEach((item) => groups.set(key(item), [...groups.get(key(item)) ?? [], item]));
    return groups;
}

test('500 activities over three services that are killed, stopped and restarted are each finished exactly once', { timeout: 900_000 }, async (t) => {
    const fleet = new Fleet(t);
    await fleet.start();
    const late = fleet.reportLate();
    const [counts] = await Promise.all([fleet.storm(), fleet.insertAll()]);
    await fleet.settle();
    fleet.isOver = true;
    const nLate = await late;
    // Runs that lost their lease may still be on their way out.
    await until(() => fleet.members.every(({ h }) => query(join(h.dataDir, 'hearth.db'), "SELECT id FROM runs WHERE status IN ('pending', 'running')").length === 0),
        { everyMs: 100, what: 'no run is open in any store' });

    const entries = fleet.ledger.read();
    const rows = fleet.rows();
    const history = query(fleet.file, 'SELECT * FROM chaos_history ORDER BY at');
    const byRow = { history: groupBy(history, (h) => h.row), ledger: groupBy(entries, (e) => e.row) };
    const runs = entries.filter((e) => e.what === 'started');
    t.diagnostic(`${counts.killOne} services killed, ${counts.stopOne} stopped, ${counts.killAgent} agents killed, ${nLate} late reports, ${runs.length} runs, `
        + `${rows.filter((row) => row.status === 'completed').length} completed, ${rows.filter((row) => row.status === 'failed').length} quarantined`);

    // What happened to a row, for the message of a failure.
    const story = (row) => ['', ...(byRow.ledger.get(row) ?? []).map((e) => `${e.at.toFixed(0)} ${e.machine} attempt ${e.attempt}: ${e.what} ${e.act ?? e.text ?? ''}`),
        ...(byRow.history.get(row) ?? []).map((h) => `row: ${h.status} attempt ${h.attempt} ${h.machine ?? ''}`)].join('\n');

    await t.test('no activity that was acknowledged is lost', () => {
        const ids = new Set(rows.map((row) => row.id));
        for (const [id, n] of fleet.acknowledged)
            assert.ok(ids.has(id), `activity ${n} was answered with 201 and row ${id} is gone`);
        assert.equal(fleet.acknowledged.size, nActivities);
    });

    await t.test('every row is completed once, or was failed by three machines', () => {
        for (const row of rows) {
            const completions = (byRow.history.get(row.id) ?? []).filter((h) => h.status === 'completed');
            assert.equal(completions.length, row.status === 'completed' ? 1 : 0, `row ${row.id} is ${row.status}${story(row.id)}`);
            assert.equal(row.locked_by, null, `row ${row.id} is ${row.status} and still locked`);
            if (row.status === 'failed') {
                assert.equal(new Set(JSON.parse(row.attempted_by)).size, nMachines, row.attempted_by);
                assert.ok(row.error_message, `row ${row.id} failed without a reason`);
            }
        }
    });

    await t.test('what doomed activities wanted is done: quarantine', () => {
        const doomed = rows.filter((row) => fleet.kinds.get(JSON.parse(row.raw_data).n) === 'doomed');
        assert.ok(doomed.length > nActivities / 20);
        for (const row of doomed) {
            const lateOnes = (byRow.ledger.get(row.id) ?? []).filter((e) => e.what === 'completed acknowledged');
            assert.equal(row.status, lateOnes.length ? 'completed' : 'failed', story(row.id));
        }
    });

    await t.test('a result that was acknowledged is the one that is stored', () => {
        for (const entry of entries.filter((e) => e.what === 'completed acknowledged')) {
            const row = rows.find((r) => r.id === entry.row);
            assert.equal(row.status, 'completed', `the success of ${entry.token} was acknowledged${story(row.id)}`);
            assert.deepEqual(JSON.parse(row.result), { token: entry.token }, story(row.id));
        }
    });

    await t.test('a stored result is of a run that was started', () => {
        const tokens = new Set(runs.map((run) => run.token));
        for (const row of rows.filter((r) => r.status === 'completed'))
            assert.ok(tokens.has(JSON.parse(row.result).token), `${row.result}${story(row.id)}`);
    });

    await t.test('a failure after an acknowledged success is refused', () => {
        const contradictions = entries.filter((e) => e.what === 'failed acknowledged');
        for (const entry of contradictions) {
            const success = entries.find((e) => e.token === entry.token && e.what === 'completed acknowledged');
            assert.equal(success, undefined, `both ends of ${entry.token} were acknowledged`);
        }
    });

    await t.test('an agent that reports while its attempt goes on is heard', () => {
        for (const entry of entries.filter((e) => e.what === 'completed refused')) {
            const { at } = runs.find((run) => run.token === entry.token);
            const stop = fleet.stops.find((s) => s.machine === entry.machine && s.from < entry.at && s.to > at);
            assert.ok(stop, `${entry.text}${story(entry.row)}`);
        }
    });

    await t.test('an attempt is started once, and two attempts never run at one time, unless the service stood still', () => {
        for (const [row, list] of groupBy(runs, (run) => run.row)) {
            assert.equal(new Set(list.map((run) => run.attempt)).size, list.length, `attempts of ${row}: ${JSON.stringify(list)}`);
            const ended = list.map((run) => ({ ...run, end: entries.find((e) => e.what === 'ended' && e.token === run.token)?.at ?? run.at }));
            for (const a of ended)
                for (const b of ended.filter((other) => other.attempt > a.attempt && other.at < a.end))
                    assert.ok(fleet.stops.some((stop) => stop.machine === a.machine && stop.from < b.at && stop.to > a.at),
                        `attempts ${a.attempt} and ${b.attempt} of row ${row} ran at one time: ${JSON.stringify([a, b])}`);
        }
    });

    await t.test('each store says of a task what its row says', async () => {
        for (const { h, machine } of fleet.members) {
            const differing = () => query(join(h.dataDir, 'hearth.db'), 'SELECT row_id, status, error FROM tasks').filter((task) => {
                const row = rows.find((r) => r.id === task.row_id);
                return row.status !== task.status;
            });
            await until(() => differing().length === 0, { everyMs: 100, what: `tasks of ${machine} agree with the rows` })
                .catch((error) => { throw new Error(`${error.message}: ${differing().map((task) => `${JSON.stringify(task)}${story(task.row_id)}`).join('\n')}`); });
        }
    });

    await t.test('the services end in peace, no process is left, every file is intact', async () => {
        for (const { h } of fleet.members) {
            await h.terminate();
            await assertNoChildren(h.dataDir);
            databases(h.dataDir).forEach(assertIntact);
        }
        assertIntact(fleet.file);
    });
});
