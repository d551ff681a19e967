// The MCP client against the servers of the protocol's own authors, over stdio: everything, filesystem, memory and sequential-thinking
// (handshake era), and a server made of the SDK of the stateless era.
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { openMcp, textOf } from '../tools/mcp_client.mjs';

const official = (name) => join(import.meta.dirname, '../node_modules/@modelcontextprotocol', name, 'dist/index.js');
const everything = [official('server-everything')];
const stateless = [join(import.meta.dirname, 'mcp_stateless_server.mjs')];
const relayed = (way) => [join(import.meta.dirname, 'mcp_stream_relay.mjs'), way, ...stateless];

const call = (mcp, name, args = {}, more = {}) => mcp.op('call', { name, arguments: args, ...more });

function good(answer) {
    assert.equal(answer.ok, true, JSON.stringify(answer));
    return answer;
}

function folder(t) {
    const path = mkdtempSync(join(tmpdir(), 'hearth-mcp-'));
    t.after(() => rmSync(path, { recursive: true }));
    return path;
}

test('everything is found to be of the handshake era, and its tools, resources and prompts are listed', async (t) => {
    const mcp = await openMcp(t, everything);
    assert.deepEqual(mcp.opened, { op: 'open', ok: true, era: 1, version: '2025-11-25', name: 'mcp-servers/everything' });
    await mcp.event('logged', (line) => /Roots updated: 1/.test(line.params.data)); // it has asked for roots
    const { tools } = good(await mcp.op('tools'));
    const names = tools.map((tool) => tool.name);
    for (const name of ['echo', 'get-sum', 'trigger-sampling-request', 'trigger-elicitation-request', 'simulate-research-query'])
        assert.ok(names.includes(name), name);
    assert.equal(tools.find((tool) => tool.name === 'echo').is_read_only, true);
    assert.ok(good(await mcp.op('resources')).uris.includes('demo://resource/static/document/features.md'));
    assert.ok(good(await mcp.op('templates')).uris.includes('demo://resource/dynamic/text/{resourceId}'));
    assert.ok(good(await mcp.op('prompts')).names.includes('args-prompt'));
    const counts = await mcp.op('counts');
    assert.deepEqual([counts.bad, counts.unasked, counts.refused], [0, 0, 0]);
});

test('everything: results of every kind, its own errors, calls at the same time', async (t) => {
    const mcp = await openMcp(t, everything);
    assert.equal(textOf(good(await call(mcp, 'echo', { message: 'héllo' }))), 'Echo: héllo');
    const refused = good(await call(mcp, 'echo', { wrong: 1 }));
    assert.equal(refused.isError, true);
    assert.match(textOf(refused), /validation/i);
    assert.equal(good(await call(mcp, 'nosuch')).isError, true);
    const weather = good(await call(mcp, 'get-structured-content', { location: 'Chicago' }));
    assert.equal(typeof weather.structured.temperature, 'number');
    assert.equal(good(await call(mcp, 'get-tiny-image')).content.find((block) => block.type === 'image').mimeType, 'image/png');
    assert.equal(good(await call(mcp, 'get-resource-links', { count: 2 })).content.filter((block) => block.type === 'resource_link').length, 2);
    const sums = await Promise.all(Array.from({ length: 16 }, (_, i) => call(mcp, 'get-sum', { a: i, b: 100 })));
    sums.forEach((sum, i) => assert.match(textOf(sum), new RegExp(`\\b${i + 100}\\b`)));
    const env = textOf(good(await call(mcp, 'get-env')));
    assert.deepEqual(Object.keys(JSON.parse(env)).filter((name) => !['PATH', 'HEARTH_INSTANCE'].includes(name)), []);
});

test('everything: resources are read and followed, prompts filled, arguments completed', async (t) => {
    const mcp = await openMcp(t, everything);
    const { contents } = good(await mcp.op('read', { uri: 'demo://resource/static/document/features.md' }));
    assert.ok(contents[0].text.length > 100);
    assert.equal((await mcp.op('read', { uri: 'demo://nothing' })).code, 'MCP_SERVER_ERROR');
    good(await mcp.op('subscribe', { uri: 'demo://resource/static/document/features.md' }));
    good(await call(mcp, 'toggle-subscriber-updates'));
    await mcp.event('updated', (line) => line.uri === 'demo://resource/static/document/features.md');
    good(await call(mcp, 'toggle-subscriber-updates'));
    good(await mcp.op('unsubscribe', { uri: 'demo://resource/static/document/features.md' }));
    const { messages } = good(await mcp.op('prompt', { name: 'args-prompt', arguments: { city: 'Oslo' } }));
    assert.match(messages[0].content.text, /Oslo/);
    const { completion } = good(await mcp.op('complete', { ref_type: 'ref/prompt', ref: 'completable-prompt', argument: 'department', value: 'S' }));
    assert.ok(completion.values.length > 0 && completion.values.every((value) => value.startsWith('S')), JSON.stringify(completion));
});

test('everything: it may ask for roots, for a sample, for a form and for an address', async (t) => {
    const mcp = await openMcp(t, everything);
    await mcp.event('logged', (line) => /Roots updated/.test(line.params.data));
    assert.match(textOf(good(await call(mcp, 'get-roots-list'))), /file:\/\/\/srv\/demo/);
    assert.match(textOf(good(await call(mcp, 'trigger-sampling-request', { prompt: 'hi', maxTokens: 5 }, { caller: 'app one' }))), /sampled/);
    assert.equal(mcp.events('sample')[0].params.maxTokens, 5);
    assert.equal(mcp.events('sample')[0].caller, 'app one');
    assert.match(textOf(good(await call(mcp, 'trigger-elicitation-request'))), /declined/i);
    await mcp.op('answers', { elicited: '{"action":"accept","content":{"name":"Ada"}}', sampled: 'refuse' });
    assert.match(textOf(good(await call(mcp, 'trigger-elicitation-request'))), /Ada/);
    assert.equal(good(await call(mcp, 'trigger-sampling-request', { prompt: 'hi' })).isError, true);
    good(await call(mcp, 'trigger-url-elicitation', { url: 'https://a.example/one' }));
    assert.equal((await mcp.event('elicit', (line) => line.params.mode === 'url')).params.url, 'https://a.example/one');
    const refused = good(await call(mcp, 'trigger-url-elicitation', { url: 'https://a.example/one', errorPath: true }));
    assert.equal(refused.isError, true);
    assert.match(textOf(refused), /^MCP error -32042: This request requires.*A person was shown the address/);
    assert.equal(mcp.events('elicit').at(-1).params.url, 'https://modelcontextprotocol.io');
});

test('everything: progress keeps a call alive, silence and cancellation end it', async (t) => {
    const mcp = await openMcp(t, everything);
    good(await call(mcp, 'trigger-long-running-operation', { duration: 1, steps: 4 }, { progress: true }));
    assert.deepEqual(mcp.events('progress').map((line) => [line.progress, line.total]), [[1, 4], [2, 4], [3, 4], [4, 4]]);
    const late = await call(mcp, 'trigger-long-running-operation', { duration: 30, steps: 1 }, { quiet_ms: 300 });
    assert.equal(late.code, 'MCP_TIMEOUT');
    good(await mcp.op('ping'));
    good(await mcp.op('level', { level: 'debug' }));
    assert.equal((await mcp.op('level', { level: 'loud' })).code, 'VALIDATION_ERROR');
});

test('everything: a task is asked for until its end, also when it asks a person', async (t) => {
    const mcp = await openMcp(t, everything);
    await mcp.event('logged', (line) => /Roots updated/.test(line.params.data));
    good(await mcp.op('tools')); // tells which tools run as tasks
    const plain = good(await call(mcp, 'simulate-research-query', { topic: 'tea' }));
    assert.match(textOf(plain), /tea/);
    assert.equal(plain.isError, false);
    await mcp.op('answers', { elicited: '{"action":"accept","content":{"interpretation":"technical"}}', sampled: '{}' });
    const asked = good(await call(mcp, 'simulate-research-query', { topic: 'python', ambiguous: true }));
    assert.match(textOf(asked), /python/);
    assert.ok(mcp.events('elicit').length > 0);
});

test('filesystem: files of the folder it was given, and of no other', async (t) => {
    const path = folder(t);
    const mcp = await openMcp(t, [official('server-filesystem'), path]);
    writeFileSync(join(path, 'one.txt'), 'first');
    assert.match(textOf(good(await call(mcp, 'list_directory', { path }))), /one\.txt/);
    assert.match(textOf(good(await call(mcp, 'read_text_file', { path: join(path, 'one.txt') }))), /first/);
    good(await call(mcp, 'edit_file', { path: join(path, 'one.txt'), edits: [{ oldText: 'first', newText: 'second' }] }));
    assert.equal(readFileSync(join(path, 'one.txt'), 'utf8'), 'second');
    assert.equal(good(await call(mcp, 'read_text_file', { path: '/etc/hostname' })).isError, true);
});

test('memory: a graph is written and read', async (t) => {
    const mcp = await openMcp(t, [official('server-memory')], { env: { HOME: folder(t) } });
    assert.match(mcp.opened.name, /memory/);
    assert.ok(good(await mcp.op('tools')).tools.some((tool) => tool.name === 'read_graph'));
    assert.equal(good(await call(mcp, 'search_nodes', { query: 'nothing of this name' })).isError, false);
});

test('sequential-thinking: a thought is taken', async (t) => {
    const mcp = await openMcp(t, [official('server-sequential-thinking')]);
    const result = good(await call(mcp, 'sequentialthinking', { thought: 'one', thoughtNumber: 1, totalThoughts: 1, nextThoughtNeeded: false }));
    assert.equal(result.structured.thoughtNumber, 1);
    assert.match((await mcp.op('log')).stderr, /Sequential Thinking MCP Server running/);
});

test('a server of the stateless era is found out, listed, called', async (t) => {
    const mcp = await openMcp(t, stateless);
    assert.deepEqual(mcp.opened, { op: 'open', ok: true, era: 2, version: '2026-07-28', name: 'stateless' });
    assert.ok(good(await mcp.op('tools')).tools.some((tool) => tool.name === 'echo'));
    assert.equal(textOf(good(await call(mcp, 'echo', { message: 'x' }))), 'Echo: x');
    const unknown = good(await call(mcp, 'nosuch'));
    assert.equal(unknown.isError, true);
    assert.match(textOf(unknown), /-32602/);
    assert.equal(good(await mcp.op('read', { uri: 'note:one' })).contents[0].text, 'a note');
    assert.match(good(await mcp.op('prompt', { name: 'greet', arguments: { name: 'Ada' } })).messages[0].content.text, /Ada/);
    good(await mcp.op('ping'));
    good(await mcp.op('level', { level: 'debug' }));
    good(await call(mcp, 'steps', {}, { progress: true }));
    assert.deepEqual(mcp.events('progress').map((line) => line.progress), [1, 2, 3]);
});

test('a server of the stateless era asks before its result', async (t) => {
    const mcp = await openMcp(t, stateless);
    assert.match(textOf(good(await call(mcp, 'city', {}, { caller: 'app two' }))), /Nobody said/);
    assert.equal(mcp.events('elicit')[0].caller, 'app two');
    await mcp.op('answers', { elicited: '{"action":"accept","content":{"city":"Oslo"}}', sampled: '{}' });
    assert.equal(textOf(good(await call(mcp, 'city'))), 'It is Oslo');
});

test('a server of the stateless era reports new tools on its stream of changes', async (t) => {
    const mcp = await openMcp(t, stateless);
    good(await call(mcp, 'grow'));
    await mcp.event('changed', (line) => line.what === 'tools');
    assert.ok(good(await mcp.op('tools')).tools.some((tool) => tool.name === 'grown'));
});

test('new tools are noticed when the stream of changes begins after them', async (t) => {
    const mcp = await openMcp(t, relayed('late'));
    good(await call(mcp, 'grow'));
    await mcp.event('changed', (line) => line.what === 'tools');
    assert.ok(good(await mcp.op('tools')).tools.some((tool) => tool.name === 'grown'));
});

test('new tools are noticed when the stream of changes had ended before them', async (t) => {
    const mcp = await openMcp(t, relayed('ends'));
    good(await call(mcp, 'grow'));
    await mcp.event('changed', (line) => line.what === 'tools');
    assert.ok(good(await mcp.op('tools')).tools.some((tool) => tool.name === 'grown'));
});

test('a kept verdict may be wrong: the other era is tried', async (t) => {
    assert.equal((await openMcp(t, everything, { env: { ERA: 'stateless' } })).opened.era, 1);
    assert.equal((await openMcp(t, everything, { env: { ERA: 'handshake' } })).opened.era, 1);
    // This server speaks both eras: it is taken at its first message.
    assert.equal((await openMcp(t, stateless, { env: { ERA: 'handshake' } })).opened.version, '2025-11-25');
    assert.equal((await openMcp(t, stateless, { env: { ERA: 'stateless' } })).opened.version, '2026-07-28');
});
