// Two builds of Hearth side by side: ping with a key and with an app's id, streamed and whole chats, claim, idle memory. Both work in turns, the
// order changing each round, each alone on one core; `beside` is the older build.
//
//     node bench/lib/compare.mjs OLDER_TREE > build/compare.jsonl; node bench/lib/table.mjs build/compare.jsonl      (script/compare)
import { execFile } from 'node:child_process';
import { join, resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { hearthBefore, streamProvider, wholeProvider } from './chat_yardsticks.mjs';
import { emit } from './measure.mjs';
import { bench, buildFolder, cpuSeconds, diskFolder, hearth, pin, residentBytes, root } from './programs.mjs';

const run = promisify(execFile);
const rounds = Number(process.env.COMPARE_ROUNDS ?? 7), seconds = 2, servedCore = 0, otherCore = 1, idleMs = 3000;
const trees = { older: resolve(process.argv[2]), hearth: root };
const programOf = (side) => join(trees[side], 'build/release/hearth');

// {older: [], hearth: []}; the side that is first changes, so that neither has the quieter half.
async function inTurns(work, n = rounds) {
    const samples = { older: [], hearth: [] };
    for (let round = 0; round < n; round++)
        for (const side of round % 2 ? ['hearth', 'older'] : ['older', 'hearth'])
            samples[side].push(await work(side, round));
    return samples;
}

function row(what, unit, better, { older, hearth: ours }, measure = (sample) => sample) {
    const at = better === 'more' ? 0.95 : 1.05;
    emit({ what, unit, better, hearth: ours.map(measure), peer: older.map(measure), peer_name: 'older build', target: { of: 'ratio', at } });
}

async function wrk(service, path, headers, options = []) {
    const heads = Object.entries(headers).flatMap(([name, value]) => ['-H', `${name}: ${value}`]);
    const before = cpuSeconds(service.pid);
    const { stdout } = await run('taskset', ['-c', String(otherCore), 'wrk', '-t1', '-c64', `-d${seconds}s`, ...options, ...heads, `http://127.0.0.1:${service.port}${path}`]);
    const n = Number(/(\d+) requests in/.exec(stdout)[1]);
    if (/Non-2xx|Socket errors/.test(stdout))
        throw new Error(stdout);
    return { perSecond: Number(/Requests\/sec:\s+([\d.]+)/.exec(stdout)[1]), cpuUs: (cpuSeconds(service.pid) - before) / n * 1e6 };
}

async function comparePing() {
    const services = {};
    for (const side of Object.keys(trees)) {
        const h = await hearth({ program: programOf(side) });
        services[side] = { pid: h.pid, port: h.port, key: await h.key(), app: await h.app() };
        pin(h.pid, servedCore);
    }
    for (const [what, headers] of [['a developer key', ({ key }) => ({ authorization: `Bearer ${key}` })], ['an app id', ({ app }) => ({ 'x-app-id': app })]]) {
        const samples = await inTurns((side) => wrk(services[side], '/sdk/ping', headers(services[side])));
        row(`GET /sdk/ping, ${what}`, 'requests/s', 'more', samples, (sample) => sample.perSecond);
        row('  the same by processor time', 'us/request', 'less', samples, (sample) => sample.cpuUs);
    }
}

async function compareWhole() {
    const completion = JSON.stringify({ id: 'chatcmpl-1', object: 'chat.completion', created: 1700000000, model: 'bench',
        choices: [{ index: 0, message: { role: 'assistant', content: 'Something short, as asked.' }, finish_reason: 'stop' }], usage: { prompt_tokens: 4, completion_tokens: 6, total_tokens: 10 } });
    const { port } = await wholeProvider(otherCore, completion);
    const services = {};
    for (const side of Object.keys(trees))
        services[side] = await hearthBefore(servedCore, port, { program: programOf(side) });
    const script = join(root, 'bench/lib/chat.lua');
    const samples = await inTurns((side) => wrk(services[side], services[side].path, { ...services[side].headers, 'content-type': 'application/json' }, ['-s', script]));
    row('POST /sdk/llm/chat, 64 at a time', 'chats/s', 'more', samples, (sample) => sample.perSecond);
    row('  the same by processor time', 'us/chat', 'less', samples, (sample) => sample.cpuUs);
}

async function compareRelay() {
    const perSecond = 100, events = 300, streams = 200;
    const provider = await streamProvider(otherCore, ['-r', String(perSecond), '-n', String(events)]);
    const services = {};
    for (const side of Object.keys(trees))
        services[side] = await hearthBefore(servedCore, provider, { program: programOf(side) });
    const samples = await inTurns(async (side) => {
        const service = services[side];
        const headers = Object.entries(service.headers).flatMap(([name, value]) => ['-H', `${name}: ${value}`]);
        const before = cpuSeconds(service.pid);
        const { stdout } = await run('taskset', ['-c', String(otherCore), join(buildFolder, 'bench/bench_stream'), '-c', String(streams), '-r', String(perSecond), '-n', String(events), ...headers,
            'read', String(service.port), '/sdk/llm/chat/stream', JSON.stringify({ ...service.body, stream: true })]);
        const seen = JSON.parse(stdout);
        return { p50: seen.p50_us / 1000, cpuUs: (cpuSeconds(service.pid) - before) / streams / events * 1e6 };
    });
    row(`relay, ${streams} streams x ${perSecond} events/s, lateness p50`, 'ms', 'less', samples, (sample) => sample.p50);
    row('  processor time', 'us/event', 'less', samples, (sample) => sample.cpuUs);
}

async function compareClaim() {
    const folder = diskFolder('compare');
    const samples = await inTurns(async (side, round) => {
        const { stdout } = await run(join(trees[side], 'build/release/bench/bench_claim'), ['-t', '8', '-n', '5000', '-s', join(folder, `${side}-${round}.db`)], { cwd: folder });
        return JSON.parse(stdout);
    });
    row('claim + complete, 8 clients', 'rows/s', 'more', samples, (sample) => sample.claims_per_second);
    row('  p99 of one', 'ms', 'less', samples, (sample) => sample.p99_us / 1000);
}

async function compareIdle() {
    const samples = await inTurns(async (side) => {
        const h = await hearth({ program: programOf(side) });
        await pause(idleMs);
        const bytes = residentBytes(h.pid);
        await h.terminate();
        return bytes / 2 ** 20;
    }, 3);
    row('idle memory', 'MiB', 'less', samples);
}

const parts = { ping: comparePing, whole: compareWhole, relay: compareRelay, claim: compareClaim, idle: compareIdle };
const wanted = process.argv.slice(3);
await bench(async () => {
    for (const [name, part] of Object.entries(parts))
        if (wanted.length === 0 || wanted.includes(name))
            await part();
});
