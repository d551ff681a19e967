// Several services as machines of one row store, what happens to them, and what is asked at the end. A test says where the rows are:
// options(machine, n) of startHearth(), rows() and history(), and may replace any other step.
//
// rows(): {id, n, status, attempt, attempted_by (an array), locked_by, error_message, result (parsed)}; history(): every write that changed status,
// attempt or result of a row, in order: {row, status, attempt, machine}.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as pause } from 'node:timers/promises';
import { startHearth, until } from '../api/harness.mjs';
import { admin } from '../api/kit.mjs';
import { Chance, Ledger, pidOfRun, query } from './chaos.mjs';

export const nMachines = 3;
export const insertMs = 5000;           // how long one insert may wait for its answer
const insertedMs = 240_000;             // and how long it is repeated: beyond the storm
// What a service may say of an insert while the storm goes on (409: a proxy sent it twice). Any other refusal will not go away.
const passingRefusals = [408, 409, 425, 429];

export function groupBy(list, key) {
    const groups = new Map();
    list.forEach((item) => groups.set(key(item), [...groups.get(key(item)) ?? [], item]));
    return groups;
}

// Of a file of the embedded backend. The history is written beside the rows by a trigger, whoever writes them.
export function keepHistory(file) {
    const db = new DatabaseSync(file);
    db.exec(`PRAGMA busy_timeout = 5000;
        CREATE TABLE chaos_history (at INTEGER PRIMARY KEY AUTOINCREMENT, row TEXT, status TEXT, attempt INTEGER, machine TEXT, locked_at TEXT);
        CREATE TRIGGER chaos_history_kept AFTER UPDATE ON svc_activities WHEN (new.status, new.attempt, new.result) IS NOT (old.status, old.attempt, old.result) BEGIN
            INSERT INTO chaos_history (row, status, attempt, machine, locked_at) VALUES (new.id, new.status, new.attempt, new.locked_by, new.locked_at);
        END;`);
    db.close();
}

export function fileHistory(file) { return query(file, 'SELECT * FROM chaos_history ORDER BY at'); }

export function fileRows(file) {
    return query(file, 'SELECT * FROM svc_activities').map((row) => ({
        ...row, n: JSON.parse(row.raw_data).n, attempted_by: JSON.parse(row.attempted_by), result: row.result && JSON.parse(row.result),
    }));
}

export class Fleet {
    members = [];
    isOver = false;
    acknowledged = new Map();           // row -> n
    kinds = new Map();                  // n -> steady, moody, doomed
    refusals = new Map();               // n -> {times, why}: its inserts that were not acknowledged
    agent = { command: process.execPath, args: [join(import.meta.dirname, 'agent.mjs')] };
    agentTimeoutS = 10;
    maxTasks = 4;

    constructor(t) {
        this.chance = new Chance(t);
        this.home = mkdtempSync(join(tmpdir(), 'hearth-chaos-'));
        t.after(() => this.close());
        this.desk = join(this.home, 'desk');
        mkdirSync(this.desk);
        this.ledger = new Ledger(join(this.desk, 'ledger'));
        this.appId = randomUUID();
    }

    // Also when the test has failed half-way: first what goes on beside it, then every service, though one has something to report, then the files.
    // CHAOS_KEEP leaves those to look at.
    async close() {
        this.isOver = true;
        await Promise.allSettled(this.#working);
        const ends = await Promise.allSettled(this.services().map((h) => h.isRunning && h.kill()));
        if (!process.env.CHAOS_KEEP)
            rmSync(this.home, { recursive: true, force: true });
        for (const { reason } of ends.filter(({ status }) => status === 'rejected'))
            throw reason;
    }

    services() { return this.members.map(({ h }) => h); }

    // What goes on beside the test and must have ended before the files are removed. It looks at isOver.
    #working = [];
    #beside(work) {
        this.#working.push(work);
        return work;
    }

    async start() {
        for (let n = 0; n < nMachines; n++)
            await this.startMember(`lin-${n}`, n);
    }

    async startMember(machine, n) {
        mkdirSync(join(this.home, machine), { recursive: true });
        const h = await startHearth({ sandbox: 'standard', dataDir: join(this.home, machine, 'data'), ...this.options(machine, n) });
        await h.agent({ name: 'chaos', display_name: 'Chaos', ...this.agent, env: { CHAOS_LEDGER: this.ledger.path }, timeout_s: this.agentTimeoutS,
            sandbox: { read: [join(import.meta.dirname, '..')], write: [this.desk] } });
        await h.app({ app_id: this.appId, name: 'chaos', config: {
            agentHandlers: [{ tableName: 'svc_activities', agentId: 'chaos', eventTypes: ['INSERT'] }],
            backend: { enabled: true, mode: 'compatible', max_concurrent_tasks: this.maxTasks },
        } });
        this.members.push({ h, machine, key: await h.key(), isUp: true });
    }

    get up() { return this.members.filter((member) => member.isUp); }

    // Inserts through whichever service is up; one without an answer may be there or not.
    insertAll(nActivities, makePlan, nAtOnce = 1) { return this.#beside(this.#insertAll(nActivities, makePlan, nAtOnce)); }
    async #insertAll(nActivities, makePlan, nAtOnce) {
        const plans = Array.from({ length: nActivities }, () => makePlan(this.chance));
        plans.forEach(({ kind }, n) => this.kinds.set(n, kind));
        let next = 0;
        await Promise.all(Array.from({ length: nAtOnce }, async () => {
            while (next < nActivities) {
                const n = next++;
                await until(() => this.insert(n, plans[n].plan), { deadlineMs: insertedMs, what: `activity ${n} is inserted` })
                    .catch((error) => { throw new Error(`${error.message}, ${this.refusalOf(n)}\n${this.logs()}`); });
            }
        }));
    }

    // false: it was not acknowledged, for the reason that is noted.
    refused(n, why) {
        this.refusals.set(n, { times: (this.refusals.get(n)?.times ?? 0) + 1, why });
        return false;
    }
    refusalOf(n) {
        const { times, why } = this.refusals.get(n) ?? { times: 0 };
        return `refused ${times} times, the last time: ${why}`;
    }

    async insert(n, plan) {
        const member = this.chance.one(this.members);
        if (this.isOver)
            throw new Error('the test is over');
        if (!member.isUp)
            return this.refused(n, `${member.machine} is down`);
        let reply;
        try {
            reply = await this.post(member, { raw_data: { n, plan } });
        } catch (error) {
            return this.refused(n, `${member.machine}: ${error.message}`);
        }
        if (reply.status !== 201) {
            this.refused(n, `${member.machine} answers ${reply.status} ${reply.text}`);
            if (reply.status < 500 && !passingRefusals.includes(reply.status))
                throw new Error(`activity ${n} will never be inserted`);
            return false;
        }
        this.acknowledged.set(reply.body.data.id, n);
        return true;
    }

    post(member, row) {
        return member.h.api('POST', '/activities', row, { authorization: `Bearer ${member.key}`, 'x-app-id': this.appId }, { timeoutMs: insertMs });
    }

    // The last words of each service, for the message of a failure.
    logs() {
        return this.members.map(({ h, machine, isUp }) => `${machine} (${isUp ? 'up' : 'down'}): ${h.log.slice(-8).join('\n    ')}`).join('\n');
    }

    async killOne() {
        const member = this.chance.one(this.up);
        member.isUp = false;
        await member.h.kill();
        await pause(this.chance.between(0, 600));
        await member.h.start();
        member.isUp = true;
    }

    killAgent() {
        const entries = this.ledger.read();
        const ended = new Set(entries.filter((entry) => entry.what === 'ended').map((entry) => entry.token));
        const running = entries.filter((entry) => entry.what === 'started' && !ended.has(entry.token)).map(pidOfRun).filter(Boolean);
        if (!running.length)
            return;
        try {
            process.kill(this.chance.one(running), 'SIGKILL');
        } catch (error) {
            if (error.code !== 'ESRCH')         // it has ended since the look
                throw error;
        }
    }

    // For stormMs, one of these methods after the other, chosen by weight; how often each.
    storm(stormMs, weights, pauses = [100, 700]) { return this.#beside(this.#storm(stormMs, weights, pauses)); }
    async #storm(stormMs, weights, [least, most]) {
        const end = performance.now() + stormMs, counts = Object.fromEntries(Object.keys(weights).map((what) => [what, 0]));
        while (performance.now() < end && !this.isOver) {
            await pause(this.chance.between(least, most));
            const what = this.chance.weighted(weights);
            counts[what]++;
            await this[what]();
        }
        return counts;
    }

    // Reports for the agents that wanted it, some time after their attempt.
    reportLate() { return this.#beside(this.#reportLate()); }
    async #reportLate() {
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
        return this.rows().filter((row) => !(row.status === 'completed' || (row.status === 'failed' && row.attempted_by.length >= nMachines)));
    }

    async settle(settleMs) {
        try {
            await until(() => this.openRows().length === 0, { deadlineMs: settleMs, everyMs: 250, what: 'every row is completed or quarantined' });
        } catch (error) {
            throw new Error(`${error.message}\n${JSON.stringify(this.openRows().slice(0, 5), null, 1)}`);
        }
    }

    // By the presence of the backend, as `hearth backend monitor` shows it.
    async assertAllAreSeen(others = []) {
        const all = [...this.members.map(({ machine }) => machine), ...others].sort().join();
        for (const { h, machine } of this.members) {
            const seen = async () => (await admin(h, 'GET', '/api/backend/monitor')).machines.map((one) => one.machine_id).sort().join();
            await until(async () => await seen() === all, { everyMs: 200, what: `${machine} sees ${all}` })
                .catch(async (error) => { throw new Error(`${error.message}, it sees ${await seen()}`); });
        }
    }

    // Runs that lost their lease may still be on their way out.
    runsEnd() {
        return until(() => this.members.every(({ h }) => query(join(h.dataDir, 'hearth.db'), "SELECT id FROM runs WHERE status IN ('pending', 'running')").length === 0),
            { everyMs: 100, what: 'no run is open in any store' });
    }
}

// What is there when all is over. story(row) is what happened to it, for the message of a failure.
export class Outcome {
    constructor(fleet) {
        this.fleet = fleet;
        this.entries = fleet.ledger.read();
        this.rows = fleet.rows();
        this.byRow = { history: groupBy(fleet.history(), (h) => h.row), ledger: groupBy(this.entries, (e) => e.row) };
        this.runs = this.entries.filter((e) => e.what === 'started');
    }

    row(id) { return this.rows.find((row) => row.id === id); }
    count(status) { return this.rows.filter((row) => row.status === status).length; }

    story(row) {
        return ['', `CHAOS_SEED=${this.fleet.chance.seed}`,
            ...(this.byRow.ledger.get(row) ?? []).map((e) => `${e.at.toFixed(0)} ${e.machine} attempt ${e.attempt}: ${e.what} ${e.act ?? e.text ?? ''}`),
            ...(this.byRow.history.get(row) ?? []).map((h) => `row: ${h.status} attempt ${h.attempt} ${h.machine ?? ''}`)].join('\n');
    }

    assertNoneIsLost(nActivities) {
        const ids = new Set(this.rows.map((row) => row.id));
        for (const [id, n] of this.fleet.acknowledged)
            assert.ok(ids.has(id), `activity ${n} was answered with 201 and row ${id} is gone`);
        assert.equal(this.fleet.acknowledged.size, nActivities);
    }

    assertEachIsFinishedOnce() {
        for (const row of this.rows) {
            const completions = (this.byRow.history.get(row.id) ?? []).filter((h) => h.status === 'completed');
            assert.equal(completions.length, row.status === 'completed' ? 1 : 0, `row ${row.id} is ${row.status}${this.story(row.id)}`);
            assert.equal(row.locked_by, null, `row ${row.id} is ${row.status} and still locked`);
            if (row.status === 'failed') {
                assert.equal(new Set(row.attempted_by).size, nMachines, `${row.attempted_by}`);
                assert.ok(row.error_message, `row ${row.id} failed without a reason`);
            }
        }
    }

    assertTheDoomedAreQuarantined(least) {
        const doomed = this.rows.filter((row) => this.fleet.kinds.get(row.n) === 'doomed');
        assert.ok(doomed.length > least);
        for (const row of doomed) {
            const lateOnes = (this.byRow.ledger.get(row.id) ?? []).filter((e) => e.what === 'completed acknowledged');
            assert.equal(row.status, lateOnes.length ? 'completed' : 'failed', this.story(row.id));
        }
    }

    // A few lose three agents to SIGKILL.
    assertTheSteadyAreCompleted() {
        const steady = this.rows.filter((row) => this.fleet.kinds.get(row.n) === 'steady');
        const failed = steady.filter((row) => row.status !== 'completed');
        assert.ok(failed.length < steady.length / 2, `${failed.length} of ${steady.length} failed, the first one: ${failed[0]?.error_message}`);
    }

    assertAcknowledgedResultsAreStored() {
        for (const entry of this.entries.filter((e) => e.what === 'completed acknowledged')) {
            const row = this.row(entry.row);
            assert.equal(row.status, 'completed', `the success of ${entry.token} was acknowledged${this.story(row.id)}`);
            assert.deepEqual(row.result, { token: entry.token }, this.story(row.id));
        }
    }

    assertResultsAreOfRuns() {
        const tokens = new Set(this.runs.map((run) => run.token));
        for (const row of this.rows.filter((r) => r.status === 'completed'))
            assert.ok(tokens.has(row.result.token), `${JSON.stringify(row.result)}${this.story(row.id)}`);
    }

    assertNoAttemptHasTwoEnds() {
        for (const entry of this.entries.filter((e) => e.what === 'failed acknowledged')) {
            const success = this.entries.find((e) => e.token === entry.token && e.what === 'completed acknowledged');
            assert.equal(success, undefined, `both ends of ${entry.token} were acknowledged`);
        }
    }

    assertAttemptsEndOnce() {
        for (const row of this.rows) {
            const ends = (this.byRow.history.get(row.id) ?? []).filter((h) => ['completed', 'failed'].includes(h.status));
            assert.equal(new Set(ends.map((h) => h.attempt)).size, ends.length, `an attempt of row ${row.id} ended twice${this.story(row.id)}`);
            assert.equal(ends.at(-1).attempt, row.attempt, `row ${row.id}${this.story(row.id)}`);
            if (row.status !== 'completed')
                continue;
            const of = Number(row.result.token.split('/')[1]);
            assert.ok(of === row.attempt || (this.fleet.isFencedByTime && of > row.attempt), `${row.result.token} is the result of attempt ${row.attempt}${this.story(row.id)}`);
        }
    }

    assertAttemptsStartOnce() {
        for (const [row, list] of groupBy(this.runs, (run) => run.row))
            assert.equal(new Set(list.map((run) => run.attempt)).size, list.length, `an attempt was started twice${this.story(row)}`);
    }

    async assertStoresAgree() {
        for (const { h, machine } of this.fleet.members) {
            const differing = () => query(join(h.dataDir, 'hearth.db'), 'SELECT row_id, status, error FROM tasks').filter((task) => this.row(task.row_id).status !== task.status);
            await until(() => differing().length === 0, { everyMs: 100, what: `tasks of ${machine} agree with the rows` })
                .catch((error) => { throw new Error(`${error.message}: ${differing().map((task) => `${JSON.stringify(task)}${this.story(task.row_id)}`).join('\n')}`); });
        }
    }
}
