// The PostgreSQL backend: commit to event for outbox and logical stream, what the events cost a writer, and claim + complete by three services
// beside graphile-worker (alone and in batches) and pg-boss; all on one server, durable, in turns.
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { run } from 'graphile-worker';
import pg from 'pg';
import PgBoss from 'pg-boss';
import { graphile, jobsPerSecond } from './lib/graphile.mjs';
import { emit, interleave, quantile } from './lib/measure.mjs';
import { atEnd, bench, buildFolder } from './lib/programs.mjs';
import { postgres } from './lib/postgres.mjs';

const rounds = 3, claimRounds = 7;      // claims differ by a tenth from round to round
const program = join(buildFolder, 'bench/bench_postgres');
const machines = [0, 1, 2];

const urlOf = (place, database) => `host=${place.host} port=${place.port} user=${place.user} dbname=${database}`;

async function measured(...args) {
    const { stdout } = await promisify(execFile)(program, args.map(String), { maxBuffer: 2 ** 26 });
    return stdout.trim() ? JSON.parse(stdout) : null;
}

// A database with the schema of the backend.
async function database(place, name) {
    const client = new pg.Client(place);
    await client.connect();
    await client.query(`CREATE DATABASE ${name}`);
    await client.end();
    const url = urlOf(place, name);
    await measured(url, 'setup');
    const own = new pg.Client({ ...place, database: name });
    await own.connect();
    atEnd(() => own.end());
    return { url, query: (sql) => own.query(sql) };
}

async function events(db) {
    const perRound = 300;
    const samples = await interleave(rounds, { outbox: () => measured(db.url, 'events', 'outbox', perRound), logical: () => measured(db.url, 'events', 'logical', perRound) });
    for (const [i, from] of [[0, 'insert sent'], [1, 'commit answered']])
        for (const [q, name] of [[0.5, 'p50'], [0.99, 'p99']]) {
            const each = (side) => samples[side].map((round) => quantile(round.map((pair) => pair[i]), q));
            emit({ what: `PostgreSQL: ${from} to event, logical stream, ${name}`, unit: 'ms', better: 'less', hearth: each('logical'), peer: each('outbox'), peer_name: 'outbox',
                target: q === 0.99 ? { of: 'value', at: 10 } : undefined });
            if (q === 0.99)
                emit({ what: `PostgreSQL: ${from} to event, outbox, ${name}`, unit: 'ms', better: 'less', hearth: each('outbox'), target: { of: 'value', at: 10 } });
        }
}

async function writer(db) {
    const modes = ['none', 'idle', 'outbox', 'logical'];
    for (const [commits, wait, rows] of [['on', 'commits that wait for the disk', 300], ['off', 'commits that do not', 1500]]) {
        const samples = await interleave(rounds, Object.fromEntries(modes.map((mode) => [mode, () => measured(db.url, 'writer', mode, rows, commits)])));
        for (const [mode, name] of [['idle', 'triggers that nobody reads'], ['outbox', 'the outbox read'], ['logical', 'the stream read']])
            emit({ what: `PostgreSQL: insert + update by one writer, ${wait}, ${name}`, unit: 'rows/s', better: 'more', hearth: samples[mode], peer: samples.none, peer_name: 'no triggers',
                target: { of: 'ratio', at: 0.75 } });
    }
}

const fill = (db, n) => db.query(`TRUNCATE svc_activities; INSERT INTO svc_activities (raw_data) SELECT json_build_object('kind', 'invoice', 'n', i) FROM generate_series(1, ${n}) i; ANALYZE svc_activities`);

// Three programs at once; rows a second from the first start to the last end, without those that warmed their sessions up.
async function three(db, n, clients, what) {
    await fill(db, n);
    const parts = await Promise.all(machines.map((i) => measured(db.url, what, `m${i}`, Math.max(1, Math.round(clients / machines.length)), machines.length, i)));
    const done = parts.reduce((sum, part) => sum + part.done, 0);
    if (done !== n)
        throw new Error(`${done} of ${n} rows were completed`);
    return (n - parts.reduce((sum, part) => sum + part.warm, 0)) * 1000 / (Math.max(...parts.map((part) => part.ended_ms)) - Math.min(...parts.map((part) => part.started_ms)));
}

// graphile-worker takes and finishes jobs in batches with a queue of its own in memory.
async function batched({ pgPool, logger }, clients, n) {
    await pgPool.query("SELECT count(graphile_worker.add_job('claim', json_build_object('n', i))) FROM generate_series(1, $1::int) i", [n]);
    await pgPool.query('ANALYZE');
    let done = 0;
    let finish;
    const finished = new Promise((resolve) => { finish = resolve; });
    const started = performance.now();
    const runner = await run({ pgPool, concurrency: clients, noHandleSignals: true, logger, taskList: { claim() { if (++done === n) finish(); } },
        preset: { worker: { localQueue: { size: 500 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 } } });
    await finished;
    const seconds = (performance.now() - started) / 1000;
    await runner.stop();
    return n / seconds;
}

async function startBoss(place) {
    const boss = new PgBoss({ ...place, max: 36, supervise: false, schedule: false });
    boss.on('error', () => {});
    await boss.start();
    await boss.createQueue('claim');
    atEnd(() => boss.stop({ graceful: false, wait: true }));
    return boss;
}

// Its own calls: fetch one, complete it, from so many clients at once.
async function bossJobs(boss, clients, n) {
    await boss.insert(Array.from({ length: n }, (_, i) => ({ name: 'claim', data: { kind: 'invoice', n: i } })));
    let done = 0;
    const started = performance.now();
    await Promise.all(Array.from({ length: clients }, async () => {
        for (let jobs = await boss.fetch('claim'); jobs?.length; jobs = await boss.fetch('claim')) {
            await boss.complete('claim', jobs[0].id);
            done++;
        }
    }));
    if (done !== n)
        throw new Error(`pg-boss did ${done} of ${n} jobs`);
    return n * 1000 / (performance.now() - started);
}

// The sessions of every side have their plans before the clock starts, as those of a service that runs.
async function warmed(clients, work, n) {
    await work(clients * 8);
    return work(n);
}

async function claims(place, db) {
    const peers = { 8: await graphile(8, place), 32: await graphile(32, place) };
    const boss = await startBoss(place);
    for (const clients of [8, 32]) {
        const samples = await interleave(claimRounds, {
            hearth: () => three(db, 4000, clients, 'split'),
            alone: () => warmed(clients, (n) => jobsPerSecond(peers[clients], n), 3000),
            batched: () => warmed(clients, (n) => batched(peers[clients], clients, n), 3000),
            boss: () => warmed(clients, (n) => bossJobs(boss, clients, n), 1500),
        });
        for (const [side, name] of [['alone', 'graphile-worker'], ['batched', 'graphile-worker in batches'], ['boss', 'pg-boss']])
            emit({ what: `PostgreSQL: claim + complete, 3 services, ${clients} clients`, unit: 'rows/s', better: 'more', hearth: samples.hearth, peer: samples[side], peer_name: name,
                target: side === 'batched' ? undefined : { of: 'ratio', at: 1 } });
    }
    const drained = await interleave(3, { hearth: () => three(db, 10000, 24, 'drain') });
    emit({ what: 'PostgreSQL: 10,000 waiting rows drained by 3 machines', unit: 'rows/s', better: 'more', hearth: drained.hearth });
}

await bench(async () => {
    const place = await postgres({ wal_level: 'logical', max_connections: 200 });
    const db = await database(place, 'work');
    await events(db);
    await writer(db);
    await claims(place, db);
});
