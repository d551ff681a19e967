// `hearth mcp serve`, the bridge for programs that start their servers, and `hearth mcp config` (issue 10, section 5).
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { binary, startHearth, until } from './harness.mjs';
import { decide, newApp, newKey, nobodysId } from './kit.mjs';
import { latest, meta, stateless } from './mcp.mjs';

let h;
before(async () => {
    h = await startHearth();
    assert.equal((await h.cli('provider', 'add', 'stand-in')).code, 0);
});
after(() => h.stop());

// A bridge: frames are what it has written; ends when its input ends.
function bridge(t, ...args) {
    const child = spawn(binary, ['mcp', 'serve', '--data', h.dataDir, ...args], { stdio: ['pipe', 'pipe', 'pipe'] });
    const frames = [];
    let rest = '', stderr = '';
    const ended = new Promise((done) => child.on('close', (code) => done(code)));
    child.stdout.setEncoding('utf8').on('data', (piece) => {
        const lines = (rest + piece).split('\n');
        rest = lines.pop();
        frames.push(...lines.map((line) => JSON.parse(line)));
    });
    child.stderr.setEncoding('utf8').on('data', (piece) => { stderr += piece; });
    child.stdin.on('error', () => {});
    const write = (frame) => child.stdin.write(`${typeof frame === 'string' ? frame : JSON.stringify(frame)}\n`);
    const answer = (id) => until(() => frames.find((one) => one.id === id && !one.method), { what: `the answer ${id}; ${JSON.stringify(frames)} ${stderr}` });
    const ask = (id, method, params) => { write({ jsonrpc: '2.0', id, method, params }); return answer(id); };
    t.after(async () => { child.kill('SIGKILL'); await ended; });
    return { child, frames, write, ask, answer, ended, stderr: () => stderr,
        begin: (version = latest) => ask('init', 'initialize', { protocolVersion: version, capabilities: {}, clientInfo: { name: 't', version: '1' } }) };
}

test('a session over standard input and output', async (t) => {
    const b = bridge(t);
    assert.equal((await b.begin()).result.protocolVersion, latest);
    b.write({ jsonrpc: '2.0', method: 'notifications/initialized' });
    assert.deepEqual((await b.ask(0, 'ping')).result, {});
    assert.equal((await b.ask('t', 'tools/list')).result.tools.length, 10);
    b.child.stdin.end();
    assert.equal(await b.ended, 0, b.stderr());
});

test('a request of the stateless era', async (t) => {
    const b = bridge(t);
    const found = await b.ask(1, 'server/discover', { _meta: meta() });
    assert.deepEqual(found.result.supportedVersions, [stateless]);
    const said = await b.ask(2, 'tools/call', { _meta: meta(), name: 'list_activities', arguments: {} });
    assert.ok(said.result.content, JSON.stringify(said));
    assert.equal((await b.ask(3, 'tools/call', { _meta: meta(), name: 'gr\u00fc\u00dfe', arguments: {} })).error.code, -32602);
});

test('a long call holds up no other, and is cancelled', async (t) => {
    for (const era of ['session', 'stateless']) {
        const b = bridge(t);
        const more = era === 'stateless' ? { _meta: meta({ progressToken: 'p' }) } : { _meta: { progressToken: 'p' } };
        if (era === 'session')
            await b.begin();
        b.write({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { ...more, name: 'chat', arguments: { messages: [{ role: 'user', content: `slow 500\nsay ${'word '.repeat(200)}` }] } } });
        await until(() => b.frames.some((one) => one.method === 'notifications/progress'), { what: 'progress' });
        assert.ok((await b.ask(2, 'tools/list', era === 'stateless' ? { _meta: meta() } : {})).result.tools);
        b.write({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } });
        await until(async () => (await h.api('GET', '/metrics')).text.includes('hearth_'), { what: 'the service to answer' });
        b.child.stdin.end();
        assert.equal(await b.ended, 0, b.stderr());
        assert.ok(!b.frames.some((one) => one.id === 1), era);
    }
});

test('lines that are no frames are answered, and the next one is read', async (t) => {
    const b = bridge(t);
    b.write('{');
    await until(() => b.frames.length === 1);
    assert.deepEqual([b.frames[0].id, b.frames[0].error.code], [null, -32700]);
    b.write({ id: 7, method: 'ping' });
    assert.equal((await b.answer(7)).error.code, -32600);
    b.write('');
    assert.equal((await b.ask(8, 'ping')).error.code, -32000, 'before the handshake');
    assert.ok((await b.begin()).result);
});

test('as an app it has the grants of the app', async (t) => {
    const app = await newApp(h, { name: 'bridged' });
    const b = bridge(t, '--app', 'bridged');
    await b.begin();
    assert.equal((await b.ask(1, 'tools/call', { name: 'list_activities', arguments: {} })).result.isError, true);
    await decide(h, app, ['activities.read']);
    assert.ok(!(await b.ask(2, 'tools/call', { name: 'list_activities', arguments: {} })).result.isError);
});

test('with a key file it is the key', async (t) => {
    const { key } = await newKey(h);
    const file = join(h.home, 'the.key');
    writeFileSync(file, `${key}\n`, { mode: 0o600 });
    const b = bridge(t, '--key-file', file);
    await b.begin();
    assert.ok(!(await b.ask(1, 'tools/call', { name: 'list_activities', arguments: {} })).result.isError);
    writeFileSync(file, 'A'.repeat(43));
    const wrong = bridge(t, '--key-file', file);
    assert.match((await wrong.begin()).error.message, /key/);         // and it is not the administrator instead
});

test('a service that was started anew gets the session again', async (t) => {
    const own = await startHearth({ t });
    const child = spawn(binary, ['mcp', 'serve', '--data', own.dataDir], { stdio: ['pipe', 'pipe', 'inherit'] });
    t.after(() => child.kill('SIGKILL'));
    let text = '';
    child.stdout.setEncoding('utf8').on('data', (piece) => { text += piece; });
    const ask = async (id, method, params) => {
        child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`);
        await until(() => text.includes(`"id":${id}`), { what: `the answer ${id} in ${text}` });
        return JSON.parse(text.split('\n').find((line) => line.includes(`"id":${id}`)));
    };
    assert.ok((await ask(1, 'initialize', { protocolVersion: latest, capabilities: {}, clientInfo: { name: 't', version: '1' } })).result);
    await own.terminate();
    assert.match((await ask(2, 'ping')).error.message, /did not answer/);
    await own.start();
    assert.deepEqual((await ask(3, 'ping')).result, {});
});

test('without a service it says so', async () => {
    const { code, stderr } = await h.cli('mcp', 'serve', '--data', join(h.home, 'nothing'));
    assert.notEqual(code, 0);
    assert.match(stderr, /hearth/);
});

test('each client gets its snippet', async () => {
    const args = ['mcp', 'serve', '--data', h.dataDir];
    const server = { command: binary, args };
    const config = async (...words) => {
        const { code, stdout, stderr } = await h.cli('mcp', 'config', ...words);
        assert.equal(code, 0, stderr);
        return stdout;
    };
    for (const [name, expected] of Object.entries({
        'claude-desktop': { mcpServers: { hearth: server } }, cursor: { mcpServers: { hearth: server } },
        vscode: { servers: { hearth: { type: 'stdio', ...server } } }, zed: { context_servers: { hearth: server } },
        http: { mcpServers: { hearth: { type: 'http', url: `${h.url}/mcp`, headers: { Authorization: 'Bearer KEY' } } } },
    }))
        assert.deepEqual(JSON.parse(await config(name)), expected, name);
    assert.equal(await config('codex'), `[mcp_servers.hearth]\ncommand = ${JSON.stringify(binary)}\nargs = [${args.map((one) => JSON.stringify(one)).join(', ')}]\n`);
    assert.equal(await config('claude-code'), `claude mcp add hearth -- '${[binary, ...args].join("' '")}'\n`);
    assert.deepEqual(JSON.parse(await config('cursor', '--app', nobodysId)).mcpServers.hearth.args, [...args, '--app', nobodysId]);
});

test('an unknown client is refused with the nearest', async () => {
    const { code, stderr } = await h.cli('mcp', 'config', 'cursr');
    assert.notEqual(code, 0);
    assert.match(stderr, /did you mean cursor\?/);
});
