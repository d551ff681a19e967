// MCP servers that mean harm, against the client: silence, floods, lines without end, wrong ids, deaths, forks, endless pages. What they must
// not achieve: that a call outlives its deadline, that memory or threads grow, that a call is made twice, that a process is left.
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { openMcp, textOf } from '../tools/mcp_client.mjs';
import { residentKib } from './kit.mjs';

const server = join(import.meta.dirname, 'mcp_bad_server.mjs');
const open = (t, options = [], more = {}) => openMcp(t, [server, ...options], { env: { ASAN_OPTIONS: 'detect_leaks=1:quarantine_size_mb=4' }, ...more });
const call = (mcp, name, more = {}) => mcp.op('call', { name, arguments: { message: 'hi' }, ...more });

function folder(t) {
    const path = mkdtempSync(join(tmpdir(), 'hearth-bad-'));
    t.after(() => rmSync(path, { recursive: true }));
    return path;
}

async function stillServes(mcp) {
    assert.equal(textOf(await call(mcp, 'echo')), 'Echo: hi');
}

test('a call that is never answered ends at its deadline, and the next one is served', async (t) => {
    const mcp = await open(t);
    assert.equal((await call(mcp, 'never', { ms: 200 })).code, 'MCP_TIMEOUT');
    assert.equal((await call(mcp, 'never', { quiet_ms: 200 })).code, 'MCP_TIMEOUT');
    await stillServes(mcp);
});

test('a server that answers nothing at all cannot be opened', async (t) => {
    const mcp = await open(t, ['start=silent'], { env: { PROBE_MS: '100', OPEN_MS: '1000' } });
    assert.equal(mcp.opened.code, 'MCP_TIMEOUT');
});

test('a server that ends at the probe or at its start is reported with how it ended', async (t) => {
    const probed = await open(t, ['start=ends-at-probe']);
    assert.equal(probed.opened.ok, true, 'the second start has no probe');
    const dead = await open(t, ['start=dies']);
    assert.equal(dead.opened.code, 'MCP_CLOSED');
    assert.match(dead.opened.text, /exit code 9/);
});

test('output that is no JSON, before and among frames, is skipped', async (t) => {
    const mcp = await open(t, ['start=garbage']);
    assert.equal(mcp.opened.ok, true);
    assert.equal(textOf(await call(mcp, 'no_json')), 'after it');
    assert.match((await mcp.op('log')).stdout, /<html>/);
    const { bad } = await mcp.op('counts');
    assert.ok(bad >= 2, `${bad} bad frames`);
});

test('responses with wrong, doubled and impossible ids are dropped', async (t) => {
    const mcp = await open(t);
    assert.equal((await call(mcp, 'wrong_id', { ms: 300 })).code, 'MCP_TIMEOUT');
    assert.equal(textOf(await call(mcp, 'double')), 'first');
    assert.equal(textOf(await call(mcp, 'error_and_result')), 'after it');
    assert.equal(textOf(await call(mcp, 'deep')), 'after it');
    await stillServes(mcp);
    assert.ok((await mcp.op('counts')).unasked >= 4);
});

test('results of the wrong shape are errors', async (t) => {
    const mcp = await open(t);
    assert.equal((await call(mcp, 'shapes')).code, 'MCP_BAD_ANSWER');
    assert.equal((await call(mcp, 'no_result')).code, 'MCP_BAD_ANSWER');
    assert.equal((await call(mcp, 'error')).isError, true);
    await stillServes(mcp);
});

for (const attack of ['huge', 'no_newline'])
    test(`a line that is too long ends the connection and takes little memory: ${attack}`, async (t) => {
        const mcp = await open(t);
        const before = residentKib(mcp.pid);
        assert.equal((await call(mcp, attack)).code, 'MCP_CLOSED');
        assert.match((await mcp.event('closed')).text, /above 16777216 bytes/);
        assert.ok(residentKib(mcp.pid) - before < 96 * 1024, `${residentKib(mcp.pid) - before} KiB more`);
        assert.equal((await call(mcp, 'echo')).code, 'MCP_CLOSED');
    });

for (const attack of ['notifications', 'changes', 'requests', 'pings', 'responses', 'progress', 'words'])
    test(`a flood ends with its call's deadline and takes little memory: ${attack}`, async (t) => {
        const mcp = await open(t);
        const before = residentKib(mcp.pid);
        const answer = await call(mcp, attack, { ms: 1500, quiet_ms: 1000 });
        assert.equal(answer.code, 'MCP_TIMEOUT');
        assert.ok(residentKib(mcp.pid) - before < 64 * 1024, `${residentKib(mcp.pid) - before} KiB more`);
        await mcp.op('close');
        assert.equal((await mcp.op('counts')).open, false);
    });

for (const attack of ['die', 'killed', 'half'])
    test(`a server that ends during a call fails this call, once: ${attack}`, async (t) => {
        const log = join(folder(t), 'log');
        const mcp = await open(t, [`log=${log}`]);
        const first = call(mcp, 'never');
        while (!existsSync(log) || !/tools\/call never/.test(readFileSync(log, 'utf8')))
            await mcp.op('ping');
        const answers = [await call(mcp, attack), await first];
        assert.deepEqual(answers.map((answer) => answer.code), ['MCP_CLOSED', 'MCP_CLOSED']);
        assert.equal(readFileSync(log, 'utf8').match(/tools\/call/g).length, 1, 'the server ended before it noted the second');
    });

test('a server that never reads holds no call beyond its deadline, and ends', async (t) => {
    const mcp = await open(t, ['deaf']);
    const large = 'x'.repeat(8 << 20);
    const answers = await Promise.all(Array.from({ length: 8 }, () => mcp.op('call', { name: 'echo', arguments: { message: large }, ms: 1000 })));
    assert.deepEqual([...new Set(answers.map((answer) => answer.code))], ['MCP_TIMEOUT']);
    await mcp.op('close');
});

for (const [list, cut] of [['endless', /more than 100 pages/], ['circle', /earlier one/], ['many', /more than 2000 entries/], ['large', /bytes/]])
    test(`a list without a good end is cut: ${list}`, async (t) => {
        const mcp = await open(t, [`list=${list}`]);
        const answer = await mcp.op('tools');
        assert.equal(answer.ok, true);
        assert.match(answer.why_cut, cut);
        assert.ok(answer.tools.length <= 2000);
    });

test('processes that a server leaves end with it', async (t) => {
    const pids = join(folder(t), 'pids');
    const mcp = await open(t, [`pids=${pids}`, 'stubborn'], { env: { SANDBOX: 'none' } });
    assert.equal(textOf(await call(mcp, 'fork')), 'forked');
    while (!existsSync(pids) || readFileSync(pids, 'utf8').trim().split('\n').length < 20)
        await mcp.op('ping');
    const numbers = readFileSync(pids, 'utf8').trim().split('\n').map(Number);
    await mcp.op('close');
    for (const pid of numbers)
        assert.equal(existsSync(`/proc/${pid}`) && !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8')), false, `process ${pid} lives`);
});

test('a task without an end is cancelled at the deadline', async (t) => {
    const mcp = await open(t);
    assert.equal((await call(mcp, 'task', { ms: 1000 })).code, 'MCP_TIMEOUT');
    await stillServes(mcp);
});
