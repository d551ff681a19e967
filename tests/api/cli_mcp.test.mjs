// The command line of MCP servers: resources, prompts, and sentences that say what to do next.
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { fileURLToPath } from 'node:url';
import { sharedHearth } from './harness.mjs';
import { admin, unique } from './kit.mjs';
import { inTerminal } from './terminal.mjs';

const script = fileURLToPath(new URL('./mcp_tool_server.mjs', import.meta.url));
const shared = sharedHearth();

async function add(h, { mode = [], accept = true, command = [process.execPath, script, ...mode] } = {}) {
    const name = unique('server');
    const { code, stdout, stderr } = await h.cli('mcp', 'add', name, ...accept ? ['--yes'] : [], '--', ...command);
    assert.equal(code, 0, stderr);
    return { name, stdout, stderr };
}

// The exit code and both outputs of a command.
async function says(h, code, args, ...patterns) {
    const result = await h.cli(...args);
    const text = result.stdout + result.stderr;
    assert.equal(result.code, code, text);
    for (const pattern of patterns)
        assert.match(text, pattern);
    return text;
}

test('resources are listed and read, prompts are listed and filled in', async (t) => {
    const h = await shared(t), { name } = await add(h);
    await says(h, 0, ['mcp', 'resources', name], /^URI +NAME +TYPE/m, /^note:\/\/one +one +text\/plain/m);
    assert.equal((await h.cli('mcp', 'resources', name, 'note://one')).stdout, 'a note\n');
    await says(h, 0, ['mcp', 'prompts', name], /^haiku +topic/m);
    assert.equal((await h.cli('mcp', 'prompts', name, 'haiku', 'topic=the sea=deep')).stdout, 'user:\nA haiku on the sea=deep\n');
    assert.deepEqual((await h.cliJson('mcp', 'resources', name)).resources.map((one) => one.uri), ['note://one']);
    assert.equal((await h.cliJson('mcp', 'prompts', name))[0].name, 'haiku');
    assert.equal((await h.cliJson('mcp', 'prompts', name, 'haiku', 'topic=rain')).messages[0].content.text, 'A haiku on rain');
});

test('a server without templates has resources, and one without prompts has an empty list', async (t) => {
    const h = await shared(t), { name } = await add(h, { mode: ['bare'] });
    await says(h, 0, ['mcp', 'resources', name], /^note:\/\/one/m);
    await says(h, 0, ['mcp', 'prompts', name], /^It has no prompts\.$/m);
    await says(h, 1, ['mcp', 'prompts', name, 'haiku', 'topic=x'], /has no prompts/);
});

test('--output writes a resource as it is', async (t) => {
    const h = await shared(t), { name } = await add(h, { mode: ['rude'] });
    const file = join(h.home, unique('resource'));
    await says(h, 0, ['mcp', 'resources', name, 'note://one', '--output', file], /is written: \d+ bytes/);
    assert.equal(readFileSync(file, 'utf8'), 'a note\u001b]0;owned\u0007\u202e');
    const other = join(h.home, unique('resource'));
    await says(h, 1, ['mcp', 'resources', name, 'note://broken', '--output', other], /no valid base64/);
    await says(h, 2, ['mcp', 'resources', name, 'note://two', '--output', other], /2 parts/, /--json/);
    assert.ok(!existsSync(other));
    await says(h, 2, ['mcp', 'resources', name, '--output', other], /which URI/);
    await says(h, 1, ['mcp', 'resources', name, 'note://one', '--output', '/nowhere/file'], /\/nowhere\/file/);
});

test('what a server says cannot control the terminal, and broken contents end no command', async (t) => {
    const h = await shared(t), { name } = await add(h, { mode: ['rude'] });
    const texts = [await says(h, 0, ['mcp', 'resources', name, '--wide']), await says(h, 0, ['mcp', 'resources', name, 'note://one']),
        await says(h, 0, ['mcp', 'resources', name, 'note://two'], /^first$/m, /binary of image\/png, 3 bytes/), await says(h, 0, ['mcp', 'resources', name, 'note://broken']),
        await says(h, 0, ['mcp', 'resources', name, 'note://none'], /is empty/), await says(h, 0, ['mcp', 'prompts', name, '--wide']),
        await says(h, 0, ['mcp', 'prompts', name, 'haiku'], /resource of no stated type, 1 bytes/), await says(h, 0, ['mcp', 'prompts', name, 'haiku', '--json'])];
    for (const text of texts)
        assert.doesNotMatch(text, /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/);
    const odd = await h.cli('mcp', 'resources', name, 'note://odd');
    assert.ok([0, 1].includes(odd.code), odd.stderr);
});

test('a prompt that is unknown, or lacks an argument, is refused with what to type', async (t) => {
    const h = await shared(t), { name } = await add(h);
    await says(h, 1, ['mcp', 'prompts', name, 'haikus'], /has no prompt haikus; did you mean haiku\?/, new RegExp(`hearth mcp prompts ${name}\``));
    await says(h, 2, ['mcp', 'prompts', name, 'haiku'], new RegExp(`hearth mcp prompts ${name} haiku topic=VALUE`));
    await says(h, 2, ['mcp', 'prompts', name, 'haiku', 'topic'], /ARG=VALUE, not "topic"/);
    const reply = await h.socket('POST', `/api/mcp/servers/${name}/prompt`, { name: 'haiku' });
    assert.equal(reply.status, 400, reply.text);
    assert.deepEqual(reply.body.errors, [{ field: 'arguments.topic', rule: 'is required' }]);
    assert.equal((await h.socket('POST', `/api/mcp/servers/${name}/prompt`, { name: 'haikus' })).body.code, 'PROMPT_NOT_FOUND');
});

test('a server that nobody has accepted is refused at once, with the command that accepts it', async (t) => {
    const h = await shared(t), { name, stdout } = await add(h, { accept: false });
    assert.match(stdout, new RegExp(`is set up\\. It does not run before a person accepts it: \`hearth mcp accept ${name}\``));
    assert.doesNotMatch(stdout, /mcp tools/);
    for (const args of [['tools', name], ['call', name, 'pid'], ['resources', name], ['prompts', name]])
        await says(h, 1, ['mcp', ...args], new RegExp(`\`hearth mcp accept ${name}\``));
    assert.ok(!(await admin(h, 'GET', '/api/approvals')).approvals.some((one) => one.server === name));
    await says(h, 1, ['mcp', 'accept', name], /without a terminal --yes accepts it/);
    await says(h, 0, ['mcp', 'accept', name, '--yes']);
    await says(h, 0, ['mcp', 'call', name, 'pid']);
    assert.match((await add(h)).stdout, /is set up; `hearth mcp tools/);
});

test('in a terminal the first use of a server shows what runs and asks', async (t) => {
    const h = await shared(t), { name } = await add(h, { accept: false });
    const no = inTerminal(t, h, 'mcp', 'tools', name);
    await no.seen(/May this run on this machine\?/);
    no.type('n\n');
    assert.match(await no.ended, /Nothing was started[^]*code 1/);
    const yes = inTerminal(t, h, 'mcp', 'tools', name);
    await yes.seen(/mcp_tool_server[^]*May this run on this machine\?/);
    yes.type('y\n');
    assert.match(await yes.ended, /greet[^]*code 0/);
});

test('an unknown server is refused by every command, with the nearest name and the list', async (t) => {
    const h = await shared(t), { name } = await add(h);
    for (const command of ['show', 'tools', 'resources', 'prompts', 'logs', 'accept', 'enable', 'disable', 'restart', 'login', 'logout', 'remove'])
        await says(h, 1, ['mcp', command, `${name}x`], /There is no MCP server named/, /did you mean server-/, /`hearth mcp list`/);
    await says(h, 1, ['mcp', 'call', name, 'gret'], /did you mean greet\?/, new RegExp(`\`hearth mcp tools ${name}\``));
});

test('what is disabled says how to enable it, and a tool that does not exist cannot be disabled', async (t) => {
    const h = await shared(t), { name } = await add(h);
    await says(h, 0, ['mcp', 'tools', name]);
    await says(h, 1, ['mcp', 'disable', name, 'gret'], /did you mean greet\?/);
    await says(h, 0, ['mcp', 'disable', name, 'greet'], new RegExp(`greet of the MCP server ${name} is disabled; \`hearth mcp enable ${name} greet\` takes that back`));
    await says(h, 1, ['mcp', 'call', name, 'greet', '--arg', 'name=Ada'], new RegExp(`it is disabled \\(\`hearth mcp enable ${name} greet\`\\)`));
    await says(h, 0, ['mcp', 'enable', name, 'greet'], /is enabled\.$/m);
    await says(h, 0, ['mcp', 'disable', name], new RegExp(`\`hearth mcp enable ${name}\``));
    await says(h, 1, ['mcp', 'tools', name], new RegExp(`\`hearth mcp enable ${name}\``));
});

test('a server that does not start says where its output is', async (t) => {
    const h = await shared(t), { name } = await add(h, { mode: ['refuse'] });
    await says(h, 0, ['mcp', 'logs', name], /has written nothing/);
    await says(h, 1, ['mcp', 'tools', name], /the licence file is missing/, new RegExp(`\`hearth mcp logs ${name}\``));
    await says(h, 0, ['mcp', 'logs', name], /the licence file is missing/);
});

test('an unknown agent is refused with the nearest name', async (t) => {
    const h = await shared(t);
    await says(h, 1, ['agent', 'show', '@agnt'], /did you mean @agent\?/, /`hearth agent list`/);
    await says(h, 1, ['chat', '--agent', '@agnt', 'hello'], /did you mean @agent\?/);
});

test('a shell completes tools, resources and prompts of a server that runs, and starts none', async (t) => {
    const h = await shared(t), { name } = await add(h);
    const candidates = async (...words) => (await h.cli('complete', '--', ...words)).stdout.split('\n').filter(Boolean).map((line) => line.split('\t')[0]);
    assert.deepEqual(await candidates('mcp', 'call', name, 'gr'), []);
    assert.equal((await admin(h, 'GET', `/api/mcp/servers/${name}`)).server.status, 'stopped');
    await says(h, 0, ['mcp', 'tools', name]);
    assert.deepEqual(await candidates('mcp', 'call', name, 'gr'), ['greet']);
    assert.deepEqual(await candidates('mcp', 'resources', name, ''), ['note://one']);
    assert.deepEqual(await candidates('mcp', 'prompts', name, ''), ['haiku']);
    assert.ok((await candidates('approval', 'set', '')).includes('@agent'));
});
