// A whole chat through Hearth, nginx and Portkey's gateway, each alone on one core; the provider, which answers at once, and wrk have the other.
// What a way adds is its time less that of a request to the provider itself.
import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { direct, hearthBefore, nginxProxy, portkey, wholeProvider } from './lib/chat_yardsticks.mjs';
import { emit, interleave } from './lib/measure.mjs';
import { bench, cpuSeconds, diskFolder } from './lib/programs.mjs';

const rounds = 5;
const seconds = 2;
const servedCore = 0;
const otherCore = 1;
const completion = JSON.stringify({ id: 'chatcmpl-1', object: 'chat.completion', created: 1700000000, model: 'bench',
    choices: [{ index: 0, message: { role: 'assistant', content: 'Something short, as asked.' }, finish_reason: 'stop' }], usage: { prompt_tokens: 4, completion_tokens: 6, total_tokens: 10 } });

const ms = (text) => Number.parseFloat(text) * { us: 0.001, ms: 1, s: 1000 }[text.match(/[a-z]+$/)[0]];

function scriptOf(folder, name, way) {
    const path = join(folder, `${name}.lua`);
    const headers = Object.entries({ 'content-type': 'application/json', ...way.headers }).map(([key, value]) => `wrk.headers["${key}"] = "${value}"`);
    writeFileSync(path, [`wrk.method = "POST"`, `wrk.body = [[${JSON.stringify(way.body)}]]`, ...headers].join('\n'));
    return path;
}

// {p50, p99} in ms and processor time a chat in us, with so many chats at a time.
async function load(way, script, connections) {
    const args = ['-c', String(otherCore), 'wrk', '-t1', `-c${connections}`, `-d${seconds}s`, '--latency', '-s', script, `http://127.0.0.1:${way.port}${way.path}`];
    const before = way.pid && cpuSeconds(way.pid);
    const { stdout } = await promisify(execFile)('taskset', args);
    if (/Non-2xx|Socket errors/.test(stdout))
        throw new Error(`wrk on ${way.path}: ${stdout}`);
    const of = (share) => ms(stdout.match(new RegExp(`${share}%\\s+(\\S+)`))[1]);
    return { p50: of(50), p99: of(99), cpu: way.pid && (cpuSeconds(way.pid) - before) / Number(stdout.match(/(\d+) requests in/)[1]) * 1e6 };
}

// Of 32 chats at a time (issue 8): what Hearth may add to the median, and the processor time that it may spend on a chat. That is 0.4 ms where nginx
// adds 0.08, and 30 us where nginx spends 14; the machine and other programs on it change both alike, so the targets are ratios to nginx.
const targets = { p50: { of: 'ratio', at: 5 }, cpu: { of: 'ratio', at: 2.1 } };

function rows(connections, samples) {
    const target = (member, peer) => (connections === 32 && peer === 'nginx' ? targets[member] : undefined);
    const added = (side, member) => samples[side].map((s, i) => s[member] - samples.direct[i][member]);
    const what = `whole chat, ${connections} at a time:`;
    for (const [peer, name] of [['nginx', 'nginx proxy_pass'], ['portkey', 'Portkey gateway']]) {
        for (const member of ['p50', 'p99'])
            emit({ what: `${what} added ${member}`, unit: 'ms', better: 'less', hearth: added('hearth', member), peer: added(peer, member), peer_name: name, target: target(member, peer) });
        emit({ what: `${what} processor time`, unit: 'us/chat', better: 'less', hearth: samples.hearth.map((s) => s.cpu), peer: samples[peer].map((s) => s.cpu), peer_name: name, target: target('cpu', peer) });
    }
}

await bench(async () => {
    const provider = (await wholeProvider(otherCore, completion)).port;
    const ways = { direct: direct(provider), hearth: await hearthBefore(servedCore, provider), nginx: await nginxProxy(servedCore, provider), portkey: await portkey(servedCore, provider) };
    const folder = diskFolder('wrk');
    const scripts = Object.fromEntries(Object.entries(ways).map(([name, way]) => [name, scriptOf(folder, name, way)]));
    for (const connections of [1, 32])
        rows(connections, await interleave(rounds, Object.fromEntries(Object.entries(ways).map(([name, way]) => [name, () => load(way, scripts[name], connections)]))));
});
