// A server of the stateless era (2026-07-28) behind the routes of the contract: started by Hearth in the sandbox `standard`, called over REST.
import assert from 'node:assert/strict';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { startHearth, until } from '../api/harness.mjs';
import { admin } from '../api/kit.mjs';
import { scriptedProvider } from '../api/scripted.mjs';

const modules = join(import.meta.dirname, '../node_modules');
const stateless = join(import.meta.dirname, 'mcp_stateless_server.mjs');
const read = [modules, import.meta.dirname, dirname(dirname(process.execPath))];

// A service with that server; execute(tool, arguments) answers with the whole reply.
async function withServer(t, name, args, more = {}) {
    const h = await startHearth({ t });
    await admin(h, 'POST', '/api/mcp/servers?accept=true', { name, command: process.execPath, args, sandbox: { profile: 'standard', read }, ...more }, 201);
    const dev = await h.asKey();
    return {
        h, dev,
        tools: async () => (await dev('GET', `/sdk/mcp/servers/${name}/tools`)).body.tools,
        execute: (tool, given = {}) => dev('POST', `/sdk/mcp/servers/${name}/tools/${tool}/execute`, { arguments: given }),
    };
}

const textOf = ({ status, body }) => {
    assert.equal(status, 200, JSON.stringify(body));
    return body.result.content.map((block) => block.text ?? '').join('\n');
};

test('a server of the stateless era is called, and shown with its version', async (t) => {
    const s = await withServer(t, 'stateless', [stateless]);
    assert.ok((await s.tools()).some((tool) => tool.name === 'city'));
    assert.equal(textOf(await s.execute('echo', { message: 'x' })), 'Echo: x');
    const { servers } = await admin(s.h, 'GET', '/api/mcp/servers');
    assert.match(JSON.stringify(servers), /2026-07-28/);
});

// ---- sampling within a call (input_required): a person allows it, the caller's model answers ----

const pending = (h, n = 1) => until(async () => {
    const { approvals } = await admin(h, 'GET', '/api/approvals');
    return approvals.length === n && approvals[0];
}, { what: 'a question' });
const decide = (h, question, body) => admin(h, 'POST', `/api/approvals/${question.id}`, body);

test('a call of the stateless era gets answers of our model and of a person, round after round, with the server\'s state', async (t) => {
    const s = await withServer(t, 'stateless', [stateless]);
    const provider = await scriptedProvider(t, s.h);
    const reply = s.execute('think', { about: 'tea' });
    const first = await pending(s.h);
    assert.deepEqual([first.kind, first.server, first.arguments.messages[0].content.text], ['sampling', 'stateless', 'An idea about tea?']);
    assert.equal(provider.asked.length, 0, 'no model is asked before a person allows it');
    await decide(s.h, first, { allow: true });
    const idea = await provider.next();
    assert.match(idea.text(), /An idea about tea\?/);
    idea.answer('a kettle that sings');
    const second = await pending(s.h);
    assert.equal(second.arguments.messages[0].content.text, 'Judge: a kettle that sings (scripted)');
    await decide(s.h, second, { allow: true });
    (await provider.next()).answer('too loud');
    const form = await pending(s.h);
    assert.deepEqual([form.kind, form.server], ['elicitation', 'stateless']);
    await decide(s.h, form, { allow: true, reply: { name: 'Kettles' } });
    assert.deepEqual(JSON.parse(textOf(await reply)), {
        state: 'about: tea, idea: a kettle that sings',
        critique: { role: 'assistant', content: { type: 'text', text: 'too loud' }, model: 'scripted', stopReason: 'endTurn' },
        title: { action: 'accept', content: { name: 'Kettles' } },
    });
    assert.equal(provider.asked.length, 2);
});

test('a person who says no ends the call of the stateless era, and no model is asked', async (t) => {
    const s = await withServer(t, 'stateless', [stateless]);
    const provider = await scriptedProvider(t, s.h);
    const reply = s.execute('think', { about: 'tea' });
    await decide(s.h, await pending(s.h), { allow: false });
    const { status, text } = await reply;
    assert.ok(status >= 400, text);
    assert.match(text, /`idea` could not be answered.*denied/);
    assert.equal(provider.asked.length, 0);
    assert.equal(textOf(await s.execute('echo', { message: 'on' })), 'Echo: on', 'the server goes on');
});

test('several callers at once: each question of the stateless era belongs to its own call', async (t) => {
    const s = await withServer(t, 'stateless', [stateless]);
    const provider = await scriptedProvider(t, s.h);
    const { key } = await admin(s.h, 'POST', '/api/keys', { name: 'second' });
    const other = s.h.as({ authorization: `Bearer ${key}` });
    const replies = [s.execute('city'), other('POST', '/sdk/mcp/servers/stateless/tools/city/execute', { arguments: {} })];
    await pending(s.h, 2);
    for (const question of (await admin(s.h, 'GET', '/api/approvals')).approvals)
        await decide(s.h, question, { allow: true, reply: { city: 'Bern' } });
    assert.deepEqual((await Promise.all(replies)).map(textOf), ['It is Bern', 'It is Bern']);
    assert.equal(provider.asked.length, 0);
});
