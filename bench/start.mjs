// From exec to the first answer, on a fresh and on a used data folder, and resident memory when nothing is to be done.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync } from 'node:fs';
import http from 'node:http';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { binary } from '../tests/api/harness.mjs';
import { emit, interleave } from './lib/measure.mjs';
import { bench, diskFolder, freePort, residentBytes, root } from './lib/programs.mjs';

const rounds = 9;
const settleMs = 1000;
const folder = diskFolder('start');
const idle = { hearth: [], express: [] };

function firstAnswer(port) {
    return new Promise((done) => {
        const tryOnce = () => {
            const request = http.get({ port, host: '127.0.0.1', path: '/sdk/ping', headers: { 'x-app-id': 'none' }, agent: false }, (reply) => {
                reply.resume();
                reply.on('end', () => done(performance.now()));
            });
            request.on('error', () => setTimeout(tryOnce, 1));
        };
        tryOnce();
    });
}

// Milliseconds from spawn to the first answer. The memory is looked at when the process has been idle for a while.
async function start(command, args, port, keptIdle) {
    const started = performance.now();
    const child = spawn(command, args, { stdio: 'ignore', env: { PATH: process.env.PATH, HOME: folder, NODE_ENV: 'production' } });
    const exited = once(child, 'exit');
    const ms = await firstAnswer(port) - started;
    if (keptIdle) {
        await pause(settleMs);
        keptIdle.push(residentBytes(child.pid) / 1e6);
    }
    child.kill();
    await exited;
    return ms;
}

async function startHearth(data, keptIdle) {
    const port = await freePort();
    return start(binary, ['serve', '--data', data, '--listen', `127.0.0.1:${port}`, '--log', 'warn'], port, keptIdle);
}

async function startExpress() {
    const port = await freePort();
    return start(process.execPath, [join(root, 'bench/lib/express_app.mjs'), String(port)], port, idle.express);
}

await bench(async () => {
    const used = join(folder, 'used');
    await startHearth(used);
    const samples = await interleave(rounds, {
        used: () => startHearth(used, idle.hearth),
        fresh: () => startHearth(join(mkdtempSync(join(folder, 'fresh-')), 'data')),
        express: startExpress,
    });
    const row = { unit: 'ms', better: 'less', peer: samples.express, peer_name: 'Express 5', target: { of: 'value', at: 100 } };
    emit({ ...row, what: 'start to first answer', hearth: samples.used });
    emit({ ...row, what: 'start to first answer, fresh data folder', hearth: samples.fresh });
    emit({ ...row, what: 'idle resident memory', unit: 'MB', hearth: idle.hearth, peer: idle.express, target: { of: 'value', at: 25 } });
});
