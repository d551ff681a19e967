// Claim and complete through the embedded backend with 8 clients, against graphile-worker with 8 on PostgreSQL; both durable,
// on the same disk, in turns.
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { graphile, jobsPerSecond } from './lib/graphile.mjs';
import { emit, interleave } from './lib/measure.mjs';
import { bench, buildFolder, diskFolder } from './lib/programs.mjs';

const rounds = 5;
const clients = 8;
const rows = 20000;
const jobs = 5000;

await bench(async () => {
    const folder = diskFolder('claim');
    const peer = await graphile(clients);
    const latency = [];
    let n = 0;

    async function claims() {
        const args = ['-t', String(clients), '-n', String(rows), '-s', join(folder, `${n++}.db`)];
        const { stdout } = await promisify(execFile)(join(buildFolder, 'bench/bench_claim'), args, { cwd: folder });
        const seen = JSON.parse(stdout);
        latency.push(seen.p99_us / 1000);
        return seen.claims_per_second;
    }

    const samples = await interleave(rounds, { hearth: claims, graphile: () => jobsPerSecond(peer, jobs) });
    emit({ what: 'claim + complete, 8 clients', unit: 'rows/s', better: 'more', hearth: samples.hearth, peer: samples.graphile,
        peer_name: 'graphile-worker, PostgreSQL', target: { of: 'value', at: 5000 } });
    emit({ what: 'claim + complete, 8 clients, p99 of one', unit: 'ms', better: 'less', hearth: latency });
});
