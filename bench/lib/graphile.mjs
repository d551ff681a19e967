// graphile-worker on PostgreSQL as a yardstick: jobs added with SQL, done by its own runner with a task that does nothing.
import { Logger, makeWorkerUtils, runOnce } from 'graphile-worker';
import pg from 'pg';
import { postgres } from './postgres.mjs';
import { atEnd } from './programs.mjs';

const quiet = new Logger(() => () => {});

// place: a server that runs already, as postgres() returns it.
export async function graphile(clients, place) {
    const pgPool = new pg.Pool({ ...place ?? await postgres(), max: clients + 4 });
    pgPool.on('error', () => {});
    pgPool.on('connect', (client) => client.on('error', () => {}));
    const utils = await makeWorkerUtils({ pgPool, logger: quiet });
    await utils.migrate();
    atEnd(async () => {
        await utils.release();
        await pgPool.end();
    });
    return { pgPool, utils, clients, logger: quiet };
}

// Jobs a second over n jobs that were inserted before, until none is left.
export async function jobsPerSecond({ pgPool, clients }, n) {
    await pgPool.query("SELECT count(graphile_worker.add_job('claim', json_build_object('kind', 'invoice', 'n', i))) FROM generate_series(1, $1::int) i", [n]);
    await pgPool.query('ANALYZE');
    let done = 0;
    const started = performance.now();
    await runOnce({ pgPool, logger: quiet, concurrency: clients, noHandleSignals: true, taskList: { claim() { done++; } } });
    const seconds = (performance.now() - started) / 1000;
    if (done !== n)
        throw new Error(`graphile-worker did ${done} of ${n} jobs`);
    return n / seconds;
}
