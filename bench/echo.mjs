// 2 KB of JSON to a real route and back: PATCH /activities/:id stores the row on disk and answers with it. Beside Express with Node's SQLite doing the
// same, as durably. wrk sends the requests; each server alone on one core.
import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { emit, interleave } from './lib/measure.mjs';
import { bench, cpuSeconds, diskFolder, freePort, hearth, listening, pin, program, root } from './lib/programs.mjs';

const rounds = 5;
const seconds = 3;
const connections = 16;
const servedCore = 0;
const otherCore = 1;
const lines = Array.from({ length: 32 }, (_, i) => ({ position: i, text: `line ${i} of an invoice`, amount: i * 1.25 }));
const body = JSON.stringify({ raw_data: { kind: 'invoice', customer: 'Åse Ærlig', lines } });

async function express() {
    const port = await freePort();
    const child = program(process.execPath, [join(root, 'bench/lib/express_rows.mjs'), String(port), join(diskFolder('express'), 'rows.db')], { env: { PATH: process.env.PATH, NODE_ENV: 'production' } });
    await listening(child, { port, host: '127.0.0.1' });
    pin(child.pid, servedCore);
    return { url: `http://127.0.0.1:${port}`, pid: child.pid };
}

async function rowOf(url, key) {
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${key}` };
    const reply = await (await fetch(`${url}/activities`, { method: 'POST', headers, body })).json();
    return reply.id ?? reply.data?.id ?? reply.activity_id;
}

async function wrkOn({ url, pid }, key) {
    const script = join(diskFolder('wrk'), 'patch.lua');
    writeFileSync(script, `wrk.method = "PATCH"\nwrk.body = [==[${body}]==]\nwrk.headers["content-type"] = "application/json"\nwrk.headers["authorization"] = "Bearer ${key}"\n`);
    const args = ['-c', String(otherCore), 'wrk', '-t1', `-c${connections}`, `-d${seconds}s`, '-s', script, `${url}/activities/${await rowOf(url, key)}`];
    return async () => {
        const before = cpuSeconds(pid);
        const { stdout } = await promisify(execFile)('taskset', args);
        if (/Non-2xx|Socket errors/.test(stdout))
            throw new Error(`wrk on ${url}: ${stdout}`);
        return { perSecond: Number(stdout.match(/Requests\/sec:\s+([\d.]+)/)[1]), perCpuSecond: Number(stdout.match(/(\d+) requests in/)[1]) / (cpuSeconds(pid) - before) };
    };
}

await bench(async () => {
    const h = await hearth();
    pin(h.pid, servedCore);
    const samples = await interleave(rounds, { hearth: await wrkOn(h, await h.key()), express: await wrkOn(await express(), 'bench') });
    const what = `PATCH /activities/:id, ${(Buffer.byteLength(body) / 1024).toFixed(1)} KB there and back, durable`;
    for (const [measure, name] of [['perSecond', what], ['perCpuSecond', '  the same by processor time of the server']])
        emit({ what: name, unit: 'requests/s', better: 'more', hearth: samples.hearth.map((s) => s[measure]), peer: samples.express.map((s) => s[measure]),
            peer_name: 'Express 5 + node:sqlite', target: { of: 'ratio', at: 1 } });
});
