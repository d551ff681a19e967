// 500 activities, three services on one backend file as three machines. Services are killed, stopped and restarted, agents crash, are
// killed, hang, report twice and too late. At the end everything is done once and nothing that was promised is lost.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { assertIntact, assertNoChildren, databases, monotonicMs } from './chaos.mjs';
import { fileHistory, fileRows, Fleet, groupBy, keepHistory, Outcome } from './fleet.mjs';

const nActivities = 500;
const stormMs = 25_000;                 // how long services are killed
const settleMs = 420_000;               // how long the rest may take
// Both beyond what a busy machine delays a thread or an agent's start by.
const staleS = 5;

const goodActs = { report: 5, print: 4, twice: 2, contradict: 2, reportAndCrash: 1, linger: 1, slow: 2 };
const badActs = { fail: 4, crash: 4, kill: 3, hang: 0.6, late: 3 };
const planLength = 8;

// steady rows succeed at once, doomed ones never, the others as it comes.
function makePlan(chance) {
    const kind = chance.weighted({ steady: 50, moody: 35, doomed: 15 });
    const good = () => chance.weighted(goodActs);
    const bad = () => chance.weighted(badActs);
    const act = { steady: good, doomed: bad, moody: () => (chance.unit() < 0.5 ? good() : bad()) }[kind];
    return { kind, plan: Array.from({ length: planLength }, act) };
}

class FileFleet extends Fleet {
    stops = [];                         // {machine, from, to}: while a service was stopped its lease may go on elsewhere

    get file() { return join(this.home, 'shared.db'); }

    options(machine) {
        return { settings: {
            'identity.machine_id': machine, 'backend.file': this.file, 'backend.poll_ms': 50, 'tasks.heartbeat_s': 0.5, 'tasks.stale_after_s': staleS,
            'tasks.sweep_s': 0.5, 'tasks.presence_s': 2, 'shutdown.deadline_s': 5, 'log.level': 'warn',
        } };
    }

    async start() {
        await super.start();
        keepHistory(this.file);
    }

    rows() { return fileRows(this.file); }
    history() { return fileHistory(this.file); }

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
}

test('500 activities over three services that are killed, stopped and restarted are each finished exactly once', { timeout: 900_000 }, async (t) => {
    const fleet = new FileFleet(t);
    await fleet.start();
    const late = fleet.reportLate();
    const [counts] = await Promise.all([fleet.storm(stormMs, { killOne: 6, stopOne: 1, killAgent: 3 }), fleet.insertAll(nActivities, makePlan)]);
    await fleet.settle(settleMs);
    fleet.isOver = true;
    const nLate = await late;
    await fleet.runsEnd();

    const end = new Outcome(fleet);
    const { entries, runs } = end;
    t.diagnostic(`${counts.killOne} services killed, ${counts.stopOne} stopped, ${counts.killAgent} agents killed, ${nLate} late reports, ${runs.length} runs, `
        + `${end.count('completed')} completed, ${end.count('failed')} quarantined`);

    await t.test('no activity that was acknowledged is lost', () => end.assertNoneIsLost(nActivities));
    await t.test('every row is completed once, or was failed by three machines', () => end.assertEachIsFinishedOnce());
    await t.test('an agent that does its work completes its activity', () => end.assertTheSteadyAreCompleted());
    await t.test('what doomed activities wanted is done: quarantine', () => end.assertTheDoomedAreQuarantined(nActivities / 20));
    await t.test('a result that was acknowledged is the one that is stored', () => end.assertAcknowledgedResultsAreStored());
    await t.test('a stored result is of a run that was started', () => end.assertResultsAreOfRuns());
    await t.test('a failure after an acknowledged success is refused', () => end.assertNoAttemptHasTwoEnds());

    await t.test('an agent that reports while its attempt goes on is heard', () => {
        for (const entry of entries.filter((e) => e.what === 'completed refused')) {
            const { at } = runs.find((run) => run.token === entry.token);
            const stop = fleet.stops.find((s) => s.machine === entry.machine && s.from < entry.at && s.to > at);
            assert.ok(stop, `${entry.text}${end.story(entry.row)}`);
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

    await t.test('each store says of a task what its row says', () => end.assertStoresAgree());

    await t.test('the services end in peace, no process is left, every file is intact', async () => {
        for (const { h } of fleet.members) {
            await h.terminate();
            await assertNoChildren(h.dataDir);
            databases(h.dataDir).forEach(assertIntact);
        }
        assertIntact(fleet.file);
    });
});
