// GET /sdk/ping with a developer key, one loop core, against nginx `return 200` and Express on the same core, in turns.
// wrk has the other core. Only one of the three works at a time; the others sleep.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { emit, interleave } from './lib/measure.mjs';
import { express, nginx } from './lib/http_yardsticks.mjs';
import { bench, cpuSeconds, hearth, pin } from './lib/programs.mjs';

const rounds = 5;
const seconds = 3;
const connections = 64;
const servedCore = 0;
const askingCore = 1;

// {perSecond, perCpuSecond}: by the clock, and by the processor time the server used, which other programs on the machine do not change.
async function load({ url, pid }, key) {
    const args = ['-c', String(askingCore), 'wrk', '-t1', `-c${connections}`, `-d${seconds}s`, '-H', `authorization: Bearer ${key}`, `${url}/sdk/ping`];
    const before = cpuSeconds(pid);
    const { stdout } = await promisify(execFile)('taskset', args);
    const usedSeconds = cpuSeconds(pid) - before;
    if (/Non-2xx|Socket errors/.test(stdout))
        throw new Error(`wrk on ${url}: ${stdout}`);
    return { perSecond: Number(stdout.match(/Requests\/sec:\s+([\d.]+)/)[1]), perCpuSecond: Number(stdout.match(/(\d+) requests in/)[1]) / usedSeconds };
}

await bench(async () => {
    const h = await hearth();
    const key = await h.key();
    const { text } = await (await h.asKey())('GET', '/sdk/ping');
    pin(h.pid, servedCore);
    const peers = { nginx: await nginx(servedCore, text), express: await express(servedCore) };
    const samples = await interleave(rounds, {
        hearth: () => load(h, key),
        nginx: () => load(peers.nginx, key),
        express: () => load(peers.express, 'bench'),
    });
    for (const [measure, what] of [['perSecond', 'GET /sdk/ping, developer key, one core'], ['perCpuSecond', '  the same by processor time of the server']]) {
        const of = (side) => samples[side].map((sample) => sample[measure]);
        const row = { what, unit: 'requests/s', hearth: of('hearth'), better: 'more' };
        emit({ ...row, peer: of('nginx'), peer_name: 'nginx return 200', target: { of: 'ratio', at: 0.5 } });
        emit({ ...row, peer: of('express'), peer_name: 'Express 5', target: { of: 'ratio', at: 5 } });
    }
});
