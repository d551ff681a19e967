// hearth chat --agent: a conversation with an agent in the terminal, with approvals asked there.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sharedHearth, startHearth, until } from './harness.mjs';
import { admin } from './kit.mjs';
import { scriptedProvider } from './scripted.mjs';
import { inTerminal } from './terminal.mjs';

async function begin(t) {
    const h = await startHearth({ t });
    return { h, provider: await scriptedProvider(t, h) };
}

const shared = sharedHearth();

test('a question is answered on standard output, what the agent does is on standard error', async (t) => {
    const { h, provider } = await begin(t);
    const asked = h.cli('chat', '--agent', '@agent', 'what time is it?');
    (await provider.next()).call(['now', {}]);
    (await provider.next()).answer('It is ', 'late.');
    const { code, stdout, stderr } = await asked;
    assert.equal(code, 0, stderr);
    assert.equal(stdout, 'It is late.\n');
    assert.match(stderr, /^ {2}\* Date and time/m);
});

test('--json prints the answer of the route', async (t) => {
    const { h, provider } = await begin(t);
    const asked = h.cliJson('chat', '--agent', '@agent', 'hello');
    (await provider.next()).answer('Hello.');
    assert.equal((await asked).text, 'Hello.');
});

test('a conversation remembers, and its thread can be taken up', async (t) => {
    const { h, provider } = await begin(t);
    await admin(h, 'POST', '/api/workspaces/default/threads', { name: 'notes' });
    const terminal = inTerminal(t, h, 'chat', '--agent', '@agent', '--thread', 'notes');
    await terminal.seen(/> /);
    terminal.type('My name is Ada.\r');
    (await provider.next()).answer('Hello Ada.');
    await terminal.seen(/Hello Ada\.\r?\n> /);
    terminal.type('\x04');
    assert.match(await terminal.ended, /code 0/);
    const again = h.cli('chat', '--agent', '@agent', '--thread', 'notes', 'who am I?');
    const asked = await provider.next();
    assert.deepEqual(asked.messages.slice(-3).map((one) => one.role), ['user', 'assistant', 'user']);
    asked.answer('Ada.');
    assert.equal((await again).stdout, 'Ada.\n');
});

test('a tool that changes something is asked about in the terminal, allowed and denied there', async (t) => {
    const { h, provider } = await begin(t);
    const terminal = inTerminal(t, h, 'chat', '--agent', '@agent');
    await terminal.seen(/> /);
    for (const [key, said, result] of [['o', /allowed once/, /notes\.txt/], ['d', /denied/, /denied/]]) {
        terminal.type('write it down\r');
        (await provider.next()).call(['write_file', { path: 'notes.txt', content: `by ${key}` }]);
        await terminal.seen(/wants to call write_file[^]*notes\.txt[^]*for later: /);
        terminal.type(`${key}\r`);
        await terminal.seen(said);
        const after = await provider.next();
        assert.equal(after.messages.at(-1).role, 'tool');
        assert.match(after.text(), result);
        after.answer('Done.');
        await terminal.seen(/Done\.\r?\n> /);
    }
    terminal.type('\x04');
    assert.match(await terminal.ended, /code 0/);
});

test('Ctrl-C cancels the turn, and the conversation goes on', async (t) => {
    const { h, provider } = await begin(t);
    const terminal = inTerminal(t, h, 'chat', '--agent', '@agent');
    await terminal.seen(/> /);
    terminal.type('think\r');
    const asked = await provider.next();
    asked.say('I think');
    await terminal.seen(/I think/);
    terminal.type('\x03');
    await terminal.seen(/\(canceled\)\r?\n> /);
    await until(() => asked.isGone, { what: 'the model is no longer asked' });
    terminal.type('go on\r');
    (await provider.next()).answer('Yes.');
    await terminal.seen(/Yes\.\r?\n> /);
});

test('what does not fit is refused', async (t) => {
    const h = await shared(t);
    const refusal = async (...args) => { const { code, stderr } = await h.cli('chat', ...args); assert.notEqual(code, 0); return stderr; };
    assert.match(await refusal('--agent', '@agent', '--model', 'm', 'x'), /--model, --provider and --system are the agent's own/);
    assert.match(await refusal('--thread', 'x', 'x'), /--workspace and --thread are of a conversation with an --agent/);
    assert.match(await refusal('--agent', 'nobody', 'x'), /nobody/);
    assert.match(await refusal('--agent', '@agent', '--thread', 'none', 'x'), /none/);
});
