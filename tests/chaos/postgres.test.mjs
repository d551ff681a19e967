// Thousands of activities, three services on one PostgreSQL as three machines, each behind a proxy of its own that drops, delays, doubles and half-closes
// connections; one reads the outbox, one the logical stream, one what it can have; the clocks of two are two hours wrong. Services and the database are
// killed, sessions are terminated by the dozen, other programs hold rows, tables and snapshots in idle transactions, or take every connection.
// What is true at the end is read by psql beside all of it.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { coldHearth, until } from '../api/harness.mjs';
import { startProxy } from '../api/postgres_proxy.mjs';
import { postgresPrograms, startPostgres } from '../api/postgres_server.mjs';
import { badWeather } from '../tools/tcp_proxy.mjs';
import { assertIntact, assertNoChildren, databases } from './chaos.mjs';
import { fakeClock, forgetFakeClock, needsFakeClock } from './fake_clock.mjs';
import { Fleet, nMachines, Outcome } from './fleet.mjs';

const skip = postgresPrograms ? false : 'no PostgreSQL is installed';
// The whole run (script/test --all) has 2,000; CHAOS_ROWS and CHAOS_STORM_MS say otherwise, to look for a fault.
const isWhole = process.env.TEST_ALL === '1';
const nActivities = Number(process.env.CHAOS_ROWS ?? (isWhole ? 2000 : 600));
const stormMs = Number(process.env.CHAOS_STORM_MS ?? (isWhole ? 45_000 : 20_000));
const settleMs = 420_000;
const staleS = 5;                       // beyond what a busy machine delays a thread or an agent's start by
const skewS = [0, 7200, -7200];
const sources = ['outbox', 'logical', 'auto'];
// One machine has two connections for all its rows, and one more for events.
const connections = [4, 2, 8];

// The letters of agent.sh.
const goodActs = { r: 6, p: 4, t: 2, c: 2, s: 2 };
const badActs = { f: 4, x: 3, k: 2, l: 2 };

function makePlan(chance) {
    const kind = chance.weighted({ steady: 84, moody: 12, doomed: 4 });
    const good = () => chance.weighted(goodActs);
    const bad = () => chance.weighted(badActs);
    const act = { steady: good, doomed: bad, moody: () => (chance.unit() < 0.5 ? good() : bad()) }[kind];
    return { kind, plan: Array.from({ length: 8 }, act).join('') };
}

// Written beside the rows, whoever writes them: every status, attempt and result a row ever had.
const historySchema = `
    CREATE TABLE chaos_history (at bigserial PRIMARY KEY, row uuid, status text, attempt bigint, machine text, result jsonb);
    CREATE FUNCTION chaos_keep() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN
        INSERT INTO public.chaos_history (row, status, attempt, machine, result) VALUES (new.id, new.status, new.attempt, new.locked_by, new.result);
        RETURN NULL;
    END $$;
    CREATE TRIGGER chaos_history_kept AFTER UPDATE ON svc_activities FOR EACH ROW
        WHEN ((old.status, old.attempt, old.result) IS DISTINCT FROM (new.status, new.attempt, new.result)) EXECUTE FUNCTION chaos_keep();`;

const isOpen = `NOT (status = 'completed' OR (status = 'failed' AND jsonb_array_length(to_jsonb(attempted_by)) >= ${nMachines}))`;

class PostgresFleet extends Fleet {
    agent = { command: '/usr/bin/env', args: ['bash', `${import.meta.dirname}/agent.sh`] };
    agentTimeoutS = 60;
    maxTasks = 6;
    sessions = new Set();               // of programs beside the services
    pids = new Set();
    #t;

    constructor(t) {
        super(t);
        this.#t = t;
    }

    options(machine, n) {
        return {
            clockAheadMs: needsFakeClock ? 0 : skewS[n] * 1000,
            env: needsFakeClock || !skewS[n] ? {} : { ...fakeClock, FAKETIME: `${skewS[n] < 0 ? '' : '+'}${skewS[n]}s` },
            settings: {
                'identity.machine_id': machine, 'backend.kind': 'postgres', 'backend.url': this.proxies[n].url(), 'backend.events': sources[n],
                'backend.connections': connections[n], 'backend.call_s': 3, 'tasks.heartbeat_s': 0.5, 'tasks.stale_after_s': staleS,
                'tasks.sweep_s': 0.5, 'tasks.presence_s': 2, 'shutdown.deadline_s': 5, 'log.level': 'warn',
            },
        };
    }

    async start() {
        this.pg = await startPostgres(this.#t, { wal_level: 'logical', max_connections: 40, superuser_reserved_connections: 6 });
        this.pg.psql('ALTER ROLE owner REPLICATION', 'root');
        const cold = coldHearth({ t: this.#t });
        const env = { HEARTH_BACKEND_KIND: 'postgres', HEARTH_BACKEND_URL: this.pg.url(), HEARTH_BACKEND_EVENTS: 'logical' };
        this.pg.psql((await cold.cli('backend', 'sql', { env })).stdout);
        this.pg.psql(historySchema, 'root');
        this.proxies = await Promise.all(sources.map(() => startProxy(this.#t, this.pg)));
        await super.start();
    }

    async close() {
        try {
            await super.close();
        } finally {
            this.members.forEach(({ h }) => this.pids.add(h.pid));
            this.sessions.forEach((child) => child.kill('SIGKILL'));
            this.pids.forEach(forgetFakeClock);
        }
    }

    async killOne() {
        this.up.forEach(({ h }) => this.pids.add(h.pid));
        await super.killOne();
    }

    ask(sql) { return JSON.parse(this.pg.psql(`SELECT coalesce(json_agg(x), '[]') FROM (${sql}) x`, 'root')); }
    read(where) {
        return this.ask(`SELECT id, (raw_data->>'n')::int AS n, status, attempt, to_jsonb(attempted_by) AS attempted_by, locked_by, error_message, result FROM svc_activities
            WHERE ${where}`);
    }
    rows() { return this.read('true'); }
    openRows() { return this.read(isOpen); }
    history() { return this.ask('SELECT * FROM chaos_history ORDER BY at'); }

    // One in four comes from another program.
    async insert(n, plan) {
        if (n % 4)
            return super.insert(n, plan);
        const id = this.ids[n] ??= randomUUID();
        try {
            await this.pg.later(`SET statement_timeout = 5000; INSERT INTO svc_activities (id, app_id, raw_data) VALUES ('${id}', '${this.appId}', '${JSON.stringify({ n, plan })}') ON CONFLICT DO NOTHING`, 'root');
        } catch (error) {
            return this.refused(n, `psql: ${error.message}`);
        }
        this.acknowledged.set(id, n);
        return true;
    }
    ids = {};

    // ---- what happens to them ----

    async crashDatabase() {
        await this.pg.restart(this.chance.one(['SIGKILL', 'SIGQUIT', 'SIGINT']));
    }

    async terminateSessions() {
        for (let i = this.chance.between(1, 6); i > 0; i--) {
            this.pg.psql("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename = 'owner' AND random() < 0.7", 'root');
            await pause(this.chance.between(0, 150));
        }
    }

    // A program that begins a transaction and thinks.
    async hold(sql, ms) {
        const child = this.pg.session(`BEGIN;\n${sql};\n`);
        this.sessions.add(child);
        await pause(ms);
        child.kill('SIGKILL');
        this.sessions.delete(child);
    }
    holdRows() { return this.hold('SELECT id FROM svc_activities WHERE random() < 0.05 FOR UPDATE', this.chance.between(200, 3500)); }
    holdTable() { return this.hold(`LOCK TABLE svc_activities IN ${this.chance.one(['SHARE ROW EXCLUSIVE', 'ACCESS EXCLUSIVE'])} MODE`, this.chance.between(200, 2000)); }

    // Holders beside all else: a snapshot, and a transaction that has written.
    holdLong() {
        const held = this.hold(this.chance.one(['SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM svc_activities',
            `INSERT INTO svc_activities (id, raw_data) VALUES ('${randomUUID()}', '{}')`]), this.chance.between(3000, 12_000));
        this.holders.push(held);
    }
    holders = [];

    async takeAllConnections() {
        const children = Array.from({ length: 40 }, () => this.pg.session('SELECT 1;\n'));
        children.forEach((child) => this.sessions.add(child));
        await pause(this.chance.between(500, 2500));
        children.forEach((child) => {
            child.kill('SIGKILL');
            this.sessions.delete(child);
        });
    }

    async isolate() {
        const proxy = this.chance.one(this.proxies);
        if (this.chance.unit() < 0.5) {
            proxy.hang();
            await pause(this.chance.between(300, 4000));
            proxy.pass();
        } else {
            await proxy.close();
            await pause(this.chance.between(100, 2500));
            await proxy.open();
        }
    }

    async storm() {
        this.proxies.forEach((proxy) => proxy.storm(badWeather(this.chance)));
        const counts = await super.storm(stormMs, { killOne: 4, crashDatabase: 2, terminateSessions: 4, holdRows: 3, holdTable: 2, holdLong: 2, takeAllConnections: 2, isolate: 3 });
        await Promise.all(this.holders);
        this.proxies.forEach((proxy) => proxy.calm());
        return counts;
    }
}

const sum = (lists) => lists.reduce((all, one) => Object.entries(one).reduce((so, [name, n]) => ({ ...so, [name]: (so[name] ?? 0) + n }), all), {});

test(`${nActivities} activities over three services on a PostgreSQL that is killed, cut off and crowded are each finished exactly once`, { skip, timeout: 900_000 }, async (t) => {
    const fleet = new PostgresFleet(t);
    await fleet.start();
    const late = fleet.reportLate(), began = Date.now();
    const [counts] = await Promise.all([fleet.storm(), fleet.insertAll(nActivities, makePlan, 6)]);
    const calm = Date.now();
    await fleet.settle(settleMs);
    fleet.isOver = true;
    const nLate = await late;
    await fleet.runsEnd();

    const end = new Outcome(fleet);
    t.diagnostic(`${JSON.stringify(counts)} ${JSON.stringify(sum(fleet.proxies.map((proxy) => proxy.counts)))}, ${nLate} late reports, ${end.runs.length} runs, `
        + `${end.count('completed')} completed, ${end.count('failed')} quarantined; storm ${calm - began} ms, then ${Date.now() - calm} ms`);

    await t.test('no activity that was acknowledged is lost', () => end.assertNoneIsLost(nActivities));
    await t.test('every row is completed once, or was failed by three machines', () => end.assertEachIsFinishedOnce());
    await t.test('an attempt ends once, and the newest one is the row', () => end.assertAttemptsEndOnce());
    await t.test('an agent that does its work completes its activity', () => end.assertTheSteadyAreCompleted());
    await t.test('what doomed activities wanted is done: quarantine', () => end.assertTheDoomedAreQuarantined(nActivities / 50));
    await t.test('a result that was acknowledged is the one that is stored', () => end.assertAcknowledgedResultsAreStored());
    await t.test('a stored result is of a run that was started', () => end.assertResultsAreOfRuns());
    await t.test('a failure after an acknowledged success is refused', () => end.assertNoAttemptHasTwoEnds());
    await t.test('an attempt is started once', () => end.assertAttemptsStartOnce());
    await t.test('each store says of a task what its row says', () => end.assertStoresAgree());
    await t.test('every machine sees each machine once', () => fleet.assertAllAreSeen());
    await t.test('the services end in peace, no process or session is left, every file is intact', async () => {
        for (const { h } of fleet.members) {
            await h.terminate();
            await assertNoChildren(h.dataDir);
            databases(h.dataDir).forEach(assertIntact);
        }
        await until(() => fleet.pg.psql("SELECT count(*) FROM pg_stat_activity WHERE usename = 'owner'", 'root') === '0', { what: 'no session of a service is left', everyMs: 50 });
        assert.equal(fleet.pg.psql('SELECT count(*) FROM pg_replication_slots', 'root'), '0', 'slots are left');
        assert.equal(fleet.pg.psql("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'", 'root'), '0', 'advisory locks are left');
    });
});
