// A tool of a stdio server: `execute` over REST against the official SDK's client, which calls the same server itself. What Hearth adds is the difference of
// the two sides' quantiles in each round.
import { join } from 'node:path';
import { Client } from '../tests/node_modules/@modelcontextprotocol/sdk/dist/esm/client/index.js';
import { StdioClientTransport } from '../tests/node_modules/@modelcontextprotocol/sdk/dist/esm/client/stdio.js';
import { emit, interleave, quantile } from './lib/measure.mjs';
import { atEnd, bench, hearth, root } from './lib/programs.mjs';
import { RawCaller } from './lib/raw_http.mjs';

const rounds = 7;
const perRound = 400;
const parallel = 16;
const wavesPerRound = 30;
const script = join(root, 'bench/lib/mcp_echo.mjs');
const now = () => Number(process.hrtime.bigint()) / 1e6;

async function timed(n, call) {
    const samples = [];
    for (let i = 0; i < n; i++) {
        const began = now();
        await call();
        samples.push(now() - began);
    }
    return samples;
}

async function connect() {
    const client = new Client({ name: 'bench', version: '1' });
    await client.connect(new StdioClientTransport({ command: process.execPath, args: [script], stderr: 'ignore' }));
    return client;
}

async function theirs() {
    const client = await connect();
    atEnd(() => client.close());
    return () => client.callTool({ name: 'echo', arguments: { message: 'hello' } });
}

function check(text) {
    if (JSON.parse(text).result.content[0].text !== 'hello')
        throw new Error(text);
}

// Functions that call the tool, each over a connection of its own.
async function ours(h, n) {
    const headers = [`Authorization: Bearer ${await h.key()}`];
    const callers = await Promise.all(Array.from({ length: n }, () => new RawCaller(h.url, headers).open()));
    const bytes = callers[0].request('POST', '/sdk/mcp/servers/echo/tools/echo/execute', { arguments: { message: 'hello' } });
    return callers.map((caller) => async () => check(await caller.send(bytes)));
}

// From nothing to the list of tools.
async function startOurs(h) {
    await h.socket('POST', '/api/mcp/servers/echo/restart', {});
    const began = now(), reply = await (await h.asKey())('GET', '/sdk/mcp/servers/echo/tools');
    if (reply.body.tools?.length !== 1)
        throw new Error(reply.text);
    return now() - began;
}

async function startTheirs() {
    const began = now(), client = await connect();
    await client.listTools();
    const took = now() - began;
    await client.close();
    return took;
}

await bench(async () => {
    const h = await hearth();
    const added = await h.cli('mcp', 'add', 'echo', '--yes', '--', process.execPath, script);
    if (added.code !== 0)
        throw new Error(added.stderr);
    const call = await theirs(), calls = await ours(h, parallel);
    await timed(perRound, call);
    await timed(perRound, calls[0]);
    const one = await interleave(rounds, { hearth: () => timed(perRound, calls[0]), peer: () => timed(perRound, call) });
    const many = await interleave(rounds, { hearth: () => timed(wavesPerRound, () => Promise.all(calls.map((each) => each()))), peer: () => timed(wavesPerRound, () => Promise.all(calls.map(call))) });
    const start = await interleave(rounds, { hearth: () => startOurs(h), peer: startTheirs });

    const row = { unit: 'ms', better: 'less', peer_name: 'SDK client, same server' };
    const each = (sides, side, q) => sides[side].map((round) => quantile(round, q));
    const difference = (q) => each(one, 'hearth', q).map((value, i) => value - each(one, 'peer', q)[i]);
    for (const [q, name, at] of [[0.5, 'p50', 0.3], [0.99, 'p99', 1]]) {
        emit({ ...row, what: `execute, ${name}`, hearth: each(one, 'hearth', q), peer: each(one, 'peer', q) });
        emit({ what: `  added, ${name}`, unit: 'ms', better: 'less', hearth: difference(q), target: { of: 'value', at } });
    }
    emit({ ...row, what: `${parallel} calls at once, all answered, p50`, hearth: each(many, 'hearth', 0.5), peer: each(many, 'peer', 0.5) });
    emit({ ...row, what: 'start of a server to its tools', hearth: start.hearth, peer: start.peer });
});
