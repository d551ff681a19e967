// Streamed chats through Hearth, nginx and Portkey's gateway, each alone on one core; the provider and the clients have the other. 100 events a
// second and stream, each stamped when it was written: what a way adds is its lateness less that of reading the provider directly.
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { direct, hearthBefore, nginxProxy, portkey, streamProvider } from './lib/chat_yardsticks.mjs';
import { emit, interleave } from './lib/measure.mjs';
import { bench, buildFolder, cpuSeconds, residentBytes } from './lib/programs.mjs';

const rounds = 5;
const perSecond = 100;
const events = 500;
const servedCore = 0;
const otherCore = 1;
const halfWayMs = events / perSecond * 500;

function read(way, streams) {
    const headers = Object.entries(way.headers).flatMap(([name, value]) => ['-H', `${name}: ${value}`]);
    const args = ['-c', String(streams), '-r', String(perSecond), '-n', String(events), ...headers, 'read', String(way.port), way.path, JSON.stringify({ ...way.body, stream: true })];
    return promisify(execFile)('taskset', ['-c', String(otherCore), join(buildFolder, 'bench/bench_stream'), ...args]);
}

// {p50, p99} in ms, processor time an event in us, bytes a stream.
async function sample(way, streams) {
    const before = way.pid && { cpu: cpuSeconds(way.pid), bytes: residentBytes(way.pid) };
    const reading = read(way, streams);
    await pause(halfWayMs);
    const bytes = way.pid && (residentBytes(way.pid) - before.bytes) / streams;
    const seen = JSON.parse((await reading).stdout);
    return { p50: seen.p50_us / 1000, p99: seen.p99_us / 1000, cpu: way.pid && (cpuSeconds(way.pid) - before.cpu) / streams / events * 1e6, bytes };
}

// A yardstick that breaks is a finding, not the end of the measurement.
function orBroken(take) {
    return take().catch((error) => ({ broke: String(error.stderr || error.message).trim().split('\n')[0].slice(0, 60) }));
}

function rows(streams, samples) {
    const of = (side, member) => samples[side].map((s) => s[member]);
    const added = (side, member) => samples[side].map((s, i) => s[member] - samples.direct[i][member]);
    const what = `chat stream, ${streams} x ${perSecond} events/s:`;
    const isBudget = streams === 200;
    for (const [peer, name] of [['nginx', 'nginx proxy_pass'], ['portkey', 'Portkey gateway']]) {
        const broken = samples[peer].find((s) => s.broke);
        if (broken) {
            emit({ what: `${what} added p50`, unit: 'ms', better: 'less', hearth: added('hearth', 'p50'), peer_name: `${name} broke: ${broken.broke}` });
            continue;
        }
        emit({ what: `${what} added p50`, unit: 'ms', better: 'less', hearth: added('hearth', 'p50'), peer: added(peer, 'p50'), peer_name: name,
            target: isBudget ? { of: 'value', at: 0.3 } : undefined });
        emit({ what: `${what} added p99`, unit: 'ms', better: 'less', hearth: added('hearth', 'p99'), peer: added(peer, 'p99'), peer_name: name,
            target: isBudget ? { of: 'value', at: 1 } : undefined });
        emit({ what: `${what} processor time`, unit: 'us/event', better: 'less', hearth: of('hearth', 'cpu'), peer: of(peer, 'cpu'), peer_name: name,
            target: peer === 'nginx' ? { of: 'ratio', at: 2 } : undefined });
        emit({ what: `${what} memory`, unit: 'bytes/stream', better: 'less', hearth: of('hearth', 'bytes').slice(0, 1), peer: of(peer, 'bytes').slice(0, 1), peer_name: name,
            target: { of: 'value', at: 24576 } });
    }
}

await bench(async () => {
    const provider = await streamProvider(otherCore, ['-r', String(perSecond), '-n', String(events)]);
    for (const streams of [200, 500]) {
        const ours = await hearthBefore(servedCore, provider);
        const ways = {
            direct: direct(provider),
            hearth: { ...ours, path: '/sdk/llm/chat/stream' },
            nginx: await nginxProxy(servedCore, provider),
            portkey: await portkey(servedCore, provider),
        };
        rows(streams, await interleave(rounds, Object.fromEntries(Object.entries(ways).map(([name, way]) => [name, () => (['nginx', 'portkey'].includes(name) ? orBroken(() => sample(way, streams)) : sample(way, streams))]))));
    }
});
