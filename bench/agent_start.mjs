// From the insert to the agent's process: the time before POST /activities is sent to the first instruction of main(), one at a
// time on a quiet service. Beside it: graphile-worker on PostgreSQL, whose task starts the same program.
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { run } from 'graphile-worker';
import { graphile } from './lib/graphile.mjs';
import { emit, interleave, quantile } from './lib/measure.mjs';
import { atEnd, bench, diskFolder, hearth } from './lib/programs.mjs';
import { measure, poster, stamp, Stamps } from './lib/stamps.mjs';

const rounds = 5;
const perRound = 200;

async function ours(file) {
    const h = await hearth();
    await h.agent({ name: 'stamp', display_name: 'Stamp', command: stamp, args: [file] });
    h.benchApp = await h.app({ config: {
        agentHandlers: [{ tableName: 'svc_activities', agentId: 'stamp', eventTypes: ['INSERT'] }],
        backend: { enabled: true, mode: 'compatible', max_concurrent_tasks: 4 },
    } });
    return poster(h, await h.key());
}

async function theirs(file) {
    const { pgPool, utils, logger } = await graphile(4);
    const runner = await run({
        pgPool, concurrency: 4, noHandleSignals: true, logger,
        taskList: {
            stamp: (payload) => new Promise((done) => spawn(stamp, [file, 'task', JSON.stringify(payload)], { stdio: 'ignore' }).on('exit', done)),
        },
    });
    atEnd(() => runner.stop());
    return (n) => utils.addJob('stamp', { n });
}

await bench(async () => {
    const folder = diskFolder('agent');
    const files = { hearth: join(folder, 'hearth'), peer: join(folder, 'peer') };
    const stamps = { hearth: new Stamps(files.hearth), peer: new Stamps(files.peer) };
    const inserts = { hearth: await ours(files.hearth), peer: await theirs(files.peer) };
    const samples = await interleave(rounds, {
        hearth: (round) => measure(stamps.hearth, round * perRound, perRound, inserts.hearth),
        peer: (round) => measure(stamps.peer, round * perRound, perRound, inserts.peer),
    });
    const each = (side, part, q) => samples[side].map((round) => quantile(round.map((s) => s[part]), q));
    const all = (side, q) => quantile(samples[side].flat().map((s) => s.whole), q);
    const row = { unit: 'ms', better: 'less', peer_name: 'graphile-worker, PostgreSQL' };
    emit({ ...row, what: 'insert sent to agent started, p50', hearth: each('hearth', 'whole', 0.5), peer: each('peer', 'whole', 0.5), target: { of: 'value', at: 10 } });
    emit({ ...row, what: 'insert sent to agent started, p99', hearth: all('hearth', 0.99), peer: all('peer', 0.99), target: { of: 'value', at: 50 } });
    emit({ ...row, what: '  from the answer (so from the commit, nearly), p50', hearth: each('hearth', 'fromAnswer', 0.5), peer: each('peer', 'fromAnswer', 0.5) });
});
