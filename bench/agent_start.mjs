// From the insert to the agent's process: the time before POST /activities is sent to the first instruction of main(), one at a
// time on a quiet service. Beside it: graphile-worker on PostgreSQL, whose task starts the same program.
import { spawn } from 'node:child_process';
import { closeSync, openSync, readSync } from 'node:fs';
import http from 'node:http';
import { join } from 'node:path';
import { run } from 'graphile-worker';
import { until } from '../tests/api/harness.mjs';
import { graphile } from './lib/graphile.mjs';
import { emit, interleave, quantile } from './lib/measure.mjs';
import { atEnd, bench, buildFolder, diskFolder, hearth } from './lib/programs.mjs';

const rounds = 5;
const perRound = 200;
const stamp = join(buildFolder, 'bench/bench_stamp');
const now = () => Number(process.hrtime.bigint());

// What the agents wrote: activity number -> nanoseconds. Reads on where it stopped.
class Stamps {
    #seen = new Map();
    #rest = '';
    #at = 0;

    constructor(path) {
        this.fd = openSync(path, 'a+');
        this.bytes = Buffer.alloc(65536);
        atEnd(() => closeSync(this.fd));
    }

    get(n) {
        const got = readSync(this.fd, this.bytes, 0, this.bytes.length, this.#at);
        this.#at += got;
        const lines = (this.#rest + this.bytes.toString('utf8', 0, got)).split('\n');
        this.#rest = lines.pop();
        for (const line of lines) {
            const cut = line.indexOf(' ');
            const activity = JSON.parse(line.slice(cut + 1));
            this.#seen.set((activity.raw_data ?? activity).n, Number(line.slice(0, cut)));
        }
        return this.#seen.get(n);
    }
}

// insert(n) resolves when the insert is answered. Milliseconds from before it to the agent, and from the answer to the agent.
async function measure(stamps, from, insert) {
    const samples = [];
    for (let n = from; n < from + perRound; n++) {
        const sent = now();
        await insert(n);
        const answered = now();
        const began = await until(() => stamps.get(n), { everyMs: 2, what: `the agent of activity ${n}` });
        samples.push({ whole: (began - sent) / 1e6, fromAnswer: (began - answered) / 1e6 });
    }
    return samples;
}

function poster(h, key) {
    const agent = new http.Agent({ keepAlive: true });
    const { port } = new URL(h.url);
    atEnd(() => agent.destroy());
    return (n) => new Promise((done, failed) => {
        const body = JSON.stringify({ raw_data: { n } });
        const headers = { authorization: `Bearer ${key}`, 'x-app-id': h.benchApp, 'content-type': 'application/json', 'content-length': body.length };
        const asked = http.request({ port, host: '127.0.0.1', method: 'POST', path: '/activities', headers, agent }, (reply) => {
            reply.resume();
            reply.on('end', () => (reply.statusCode === 201 ? done() : failed(new Error(`POST /activities: ${reply.statusCode}`))));
        });
        asked.on('error', failed);
        asked.end(body);
    });
}

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
        hearth: (round) => measure(stamps.hearth, round * perRound, inserts.hearth),
        peer: (round) => measure(stamps.peer, round * perRound, inserts.peer),
    });
    const each = (side, part, q) => samples[side].map((round) => quantile(round.map((s) => s[part]), q));
    const all = (side, q) => quantile(samples[side].flat().map((s) => s.whole), q);
    const row = { unit: 'ms', better: 'less', peer_name: 'graphile-worker, PostgreSQL' };
    emit({ ...row, what: 'insert sent to agent started, p50', hearth: each('hearth', 'whole', 0.5), peer: each('peer', 'whole', 0.5), target: { of: 'value', at: 10 } });
    emit({ ...row, what: 'insert sent to agent started, p99', hearth: all('hearth', 0.99), peer: all('peer', 0.99), target: { of: 'value', at: 50 } });
    emit({ ...row, what: '  from the answer (so from the commit, nearly), p50', hearth: each('hearth', 'fromAnswer', 0.5), peer: each('peer', 'fromAnswer', 0.5) });
});
