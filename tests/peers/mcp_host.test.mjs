// The host of MCP servers through the contract's routes and the command line, with the servers of the protocol's authors: everything, filesystem,
// memory and sequential-thinking over standard input and output, everything over streamable HTTP and over HTTP with SSE.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { sharedHearth, startHearth, until } from '../api/harness.mjs';
import { admin, decide, newApp, newKey, unique } from '../api/kit.mjs';
import { freePort } from '../tools/ports.mjs';

const official = (name) => join(import.meta.dirname, '../node_modules/@modelcontextprotocol', name, 'dist/index.js');
const shared = sharedHearth();

async function add(h, program, { args = [], ...more } = {}) {
    const name = unique(program.replace('server-', ''));
    await admin(h, 'POST', '/api/mcp/servers?accept=true', { name, command: process.execPath, args: [official(program), ...args], ...more }, 201);
    return name;
}

async function toolsOf(dev, server, provider = 'local') {
    const { status, body, text } = await dev('GET', `/sdk/mcp/servers/${server}/tools?provider=${provider}`);
    assert.equal(status, 200, text);
    return body.tools.map((tool) => tool.name);
}

async function result(dev, server, tool, args = {}, provider = 'local') {
    const { status, body, text } = await dev('POST', `/sdk/mcp/servers/${server}/tools/${tool}/execute?provider=${provider}`, { arguments: args });
    assert.equal(status, 200, text);
    return body.result;
}

test('filesystem reads and writes in the folder it was given, and nowhere else', async (t) => {
    const h = await shared(t);
    const { call: dev } = await newKey(h);
    const folder = join(h.home, unique('docs'));
    mkdirSync(folder);
    writeFileSync(join(folder, 'a.txt'), 'first');
    const name = await add(h, 'server-filesystem', { args: [folder], sandbox: { profile: 'standard' } });
    assert.ok((await toolsOf(dev, name)).includes('read_text_file'));
    assert.equal((await result(dev, name, 'read_text_file', { path: join(folder, 'a.txt') })).content[0].text, 'first');
    assert.equal((await result(dev, name, 'write_file', { path: join(folder, 'b.txt'), content: 'second' })).isError, false);
    assert.equal(readFileSync(join(folder, 'b.txt'), 'utf8'), 'second');
    assert.equal((await result(dev, name, 'read_text_file', { path: '/etc/passwd' })).isError, true);
});

test('memory keeps what it is told, sequential-thinking thinks', async (t) => {
    const h = await shared(t);
    const { call: dev } = await newKey(h);
    const folder = join(h.home, unique('memory'));
    mkdirSync(folder);
    const memory = await add(h, 'server-memory', { env: { MEMORY_FILE_PATH: join(folder, 'graph.json') }, folders: [folder], sandbox: { profile: 'standard' } });
    await result(dev, memory, 'create_entities', { entities: [{ name: 'Ada', entityType: 'person', observations: ['likes numbers'] }] });
    assert.match((await result(dev, memory, 'read_graph')).content[0].text, /likes numbers/);
    const thinking = await add(h, 'server-sequential-thinking');
    const thought = await result(dev, thinking, 'sequentialthinking', { thought: 'one', nextThoughtNeeded: false, thoughtNumber: 1, totalThoughts: 1 });
    assert.equal(thought.isError, false);
});

test('everything: results of every kind, 16 calls at a time, and its arguments checked before it sees them', async (t) => {
    const h = await shared(t);
    const { call: dev } = await newKey(h);
    const name = await add(h, 'server-everything');
    assert.deepEqual((await result(dev, name, 'echo', { message: 'héllo' })).content, [{ type: 'text', text: 'Echo: héllo' }]);
    const { status, body } = await dev('POST', `/sdk/mcp/servers/${name}/tools/echo/execute`, { arguments: { wrong: 1 } });
    assert.deepEqual([status, body.code], [400, 'VALIDATION_ERROR']);
    assert.equal((await result(dev, name, 'get-tiny-image')).content.find((block) => block.type === 'image').mimeType, 'image/png');
    assert.equal(typeof (await result(dev, name, 'get-structured-content', { location: 'Chicago' })).structuredContent.temperature, 'number');
    const sums = await Promise.all(Array.from({ length: 16 }, (_, i) => result(dev, name, 'get-sum', { a: i, b: 100 })));
    sums.forEach((sum, i) => assert.match(sum.content[0].text, new RegExp(`\\b${i + 100}\\b`)));
    const env = JSON.parse((await result(dev, name, 'get-env')).content[0].text);
    assert.equal(env.HEARTH_DATA, undefined);
});

async function overHttp(t, transport) {
    const port = await freePort();
    const child = spawn(process.execPath, [official('server-everything'), transport], { env: { ...process.env, PORT: String(port) }, stdio: 'ignore' });
    t.after(() => child.kill('SIGKILL'));
    await until(() => new Promise((done) => {
        const socket = net.connect(port, '127.0.0.1', () => { socket.destroy(); done(true); });
        socket.on('error', () => done(false));
    }), { what: `everything listens with ${transport}` });
    return `http://127.0.0.1:${port}`;
}

for (const [transport, type, path] of [['streamableHttp', 'http', '/mcp'], ['sse', 'sse', '/sse']])
    test(`everything over ${transport} is a remote server`, async (t) => {
        const h = await startHearth({ t });
        const dev = await h.asKey();
        const base = await overHttp(t, transport);
        await admin(h, 'POST', '/api/mcp/servers', { name: 'far', url: `${base}${path}`, server_type: type }, 201);
        assert.equal((await dev('GET', '/sdk/mcp/servers?provider=remote')).body.servers[0].server_type, type);
        assert.equal((await dev('GET', '/sdk/mcp/servers/far/tools')).status, 404);          // `provider` is local unless the request says otherwise
        assert.ok((await toolsOf(dev, 'far', 'remote')).includes('echo'));
        assert.equal((await result(dev, 'far', 'echo', { message: 'hello' }, 'remote')).content[0].text, 'Echo: hello');
    });

test('over streamable HTTP a question belongs to the call in whose answer it comes, however many callers there are', async (t) => {
    const h = await startHearth({ t });
    await admin(h, 'POST', '/api/mcp/servers', { name: 'far', url: `${await overHttp(t, 'streamableHttp')}/mcp`, server_type: 'http' }, 201);
    const apps = [];
    for (const name of ['Ada', 'Bob']) {
        const app = await newApp(h, { name });
        await decide(h, app, ['mcp.tools']);
        apps.push({ app, name, reply: result(h.asApp(app), 'far', 'trigger-elicitation-request', {}, 'remote') });
    }
    const forms = await until(async () => {
        const { approvals } = await admin(h, 'GET', '/api/approvals');
        return approvals.length === 2 && approvals;
    }, { what: 'both are asked' });
    assert.deepEqual(forms.map((form) => form.app_id).sort(), apps.map(({ app }) => app).sort());
    for (const { app, name } of apps)
        await admin(h, 'POST', `/api/approvals/${forms.find((form) => form.app_id === app).id}`, { allow: true, reply: { name } });
    for (const { name, reply } of apps)
        assert.match(JSON.stringify(await reply), new RegExp(name));
});

test('the command line sets up, shows, calls and forgets a server', async (t) => {
    const h = await shared(t);
    const name = unique('cli');
    const run = async (...args) => {
        const done = await h.cli('mcp', ...args);
        assert.equal(done.code, 0, done.stderr);
        return done.stdout;
    };
    const unaccepted = await h.cli('mcp', 'add', name, '--', process.execPath, official('server-everything'));
    assert.match(unaccepted.stdout, new RegExp(`hearth mcp accept ${name}`));
    assert.match(await run('accept', name, '--yes'), /accepted/);
    assert.match(await run('tools', name), /echo/);
    assert.equal((await run('call', name, 'echo', '--arg', 'message=hi')).trim(), 'Echo: hi');
    assert.equal((await run('call', name, 'get-sum', '{"a":2,"b":3}')).includes('5'), true);
    assert.match(await run('list'), new RegExp(`${name} .*running`));
    assert.match(await run('show', name), /server-everything/);
    assert.match(await run('logs', name), /started/);
    await run('disable', name, 'echo');
    assert.equal((await h.cli('mcp', 'call', name, 'echo', '{"message":"hi"}')).code, 1);
    await run('enable', name, 'echo');
    const file = join(h.home, unique('servers'));
    const other = unique('imported');
    writeFileSync(file, JSON.stringify({ mcpServers: { [other]: { command: process.execPath, args: [official('server-everything'), '${PART}'] } } }));
    await run('import', file, '--input', 'env:PART=stdio', '--yes');
    assert.match(await run('tools', other), /echo/);
    await run('remove', name);
    assert.equal((await h.cli('mcp', 'show', name)).code, 1);
});
