// sampling/createMessage and elicitation/create of a configured server (@modelcontextprotocol/server-everything) whose call no client of /mcp made: a person is
// asked, then the caller's own model answers (docs/mcp.md, "What a server may want").
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { startHearth, until } from '../api/harness.mjs';
import { admin, decide, insert, listeningApp, newApp, newKey, rowBecomes } from '../api/kit.mjs';
import { scriptedProvider } from '../api/scripted.mjs';

const everything = join(import.meta.dirname, '../node_modules/@modelcontextprotocol/server-everything/dist/index.js');
const pending = (h) => until(async () => (await admin(h, 'GET', '/api/approvals')).approvals[0], { what: 'a question' });
const answer = (h, question, body) => admin(h, 'POST', `/api/approvals/${question.id}`, body);

async function begin(t, settings = {}) {
    const h = await startHearth({ t, settings: { 'tasks.sweep_s': 0.5, 'backend.poll_ms': 20, ...settings } });
    const provider = await scriptedProvider(t, h);
    await admin(h, 'POST', '/api/mcp/servers?accept=true', { name: 'every', command: process.execPath, args: [everything] }, 201);
    return { h, provider };
}

const sample = (as, args = {}) => as('POST', '/sdk/mcp/servers/every/tools/trigger-sampling-request/execute', { arguments: { prompt: 'What is the answer?', ...args } });
const textOf = (reply) => reply.body.result?.content[0].text ?? reply.text;

test('a person is shown what the server wants, and allows it: the caller\'s model answers, within the limit of tokens', async (t) => {
    const { h, provider } = await begin(t);
    const { call } = await newKey(h);
    const reply = sample(call, { maxTokens: 1_000_000 });
    const question = await pending(h);
    assert.deepEqual([question.kind, question.server, question.arguments.maxTokens, question.arguments.messages.length], ['sampling', 'every', 1_000_000, 1]);
    assert.match(question.text, /at most 8192 tokens/);
    assert.equal(provider.asked.length, 0, 'no model is asked before a person allows it');
    assert.match((await h.cli('approval', 'list')).stdout, /every wants an answer of a model/);
    await answer(h, question, { allow: true });
    const asked = await provider.next();
    assert.deepEqual(asked.messages.map((one) => one.role), ['system', 'user']);
    assert.match(asked.text(), /What is the answer\?/);
    assert.deepEqual([asked.body.max_tokens ?? asked.body.max_completion_tokens, asked.body.temperature, asked.tools.length], [8192, 0.7, 0]);
    asked.answer('forty-two');
    const text = textOf(await reply);
    assert.deepEqual(JSON.parse(text.slice(text.indexOf('{'))), { role: 'assistant', content: { type: 'text', text: 'forty-two' }, model: 'scripted', stopReason: 'endTurn' });
});

test('a denial and a missing answer are told to the server, and no model is asked', async (t) => {
    const { h, provider } = await begin(t);
    const { call } = await newKey(h);
    const denied = sample(call);
    await answer(h, await pending(h), { allow: false });
    assert.match(textOf(await denied), /denied/);
    await admin(h, 'PUT', '/api/settings/approvals.wait_s', { value: 1 });
    assert.match(textOf(await sample(call)), /Nobody answered/);
    assert.equal(provider.asked.length, 0);
});

test('the grants and limits of the caller count', async (t) => {
    const { h, provider } = await begin(t, { 'limits.requests_a_minute': 1 });
    const app = await newApp(h, { name: 'sampled' });
    await decide(h, app, ['mcp.tools']);
    assert.match(textOf(await sample(h.asApp(app))), /PERMISSION_REQUIRED/, 'no person is asked for an app without the grant');
    const { call } = await newKey(h);
    const first = sample(call);
    await answer(h, await pending(h), { allow: true });
    (await provider.next()).answer('one');
    assert.match(textOf(await first), /one/);
    const second = sample(call);
    await answer(h, await pending(h), { allow: true });
    assert.match(textOf(await second), /limit of 1 requests? a minute/);
    assert.equal(provider.asked.length, 1);
});

test('a task has no session: its agent\'s calls may be answered by a person all the same', async (t) => {
    const { h, provider } = await begin(t);
    await admin(h, 'POST', '/api/agents', { name: 'clerk', kind: 'model', tools: ['every/*'], approval: 'never' }, 201);
    const { id: appId, call } = await listeningApp(h, 'clerk', { name: 'desk', handler: { prompt: 'Work.' } });
    await decide(h, appId, ['mcp.tools', 'llm.chat']);
    const row = await insert(call, { text: 'x' });
    (await provider.next()).call(['every__trigger-elicitation-request', {}]);
    const form = await pending(h);
    assert.deepEqual([form.kind, form.server, form.app_id], ['elicitation', 'every', appId]);
    assert.ok(form.task_uuid);
    await answer(h, form, { allow: true, reply: { name: 'Ada' } });
    const after = await provider.next();
    assert.match(after.text(), /Ada/);
    after.call(['every__trigger-sampling-request', { prompt: 'Which colour?', maxTokens: 9 }]);
    const wish = await pending(h);
    assert.deepEqual([wish.kind, wish.task_uuid], ['sampling', form.task_uuid]);
    await answer(h, wish, { allow: true });
    const inner = await provider.next();
    assert.match(inner.text(), /Which colour\?/);
    inner.answer('blue');
    const last = await provider.next();
    assert.match(last.text(), /blue/);
    last.answer('done');
    assert.equal((await rowBecomes(call, row.id, 'completed', 'failed')).status, 'completed');
});

test('a call that ends takes its question with it', async (t) => {
    const { h } = await begin(t);
    const leaving = new AbortController();
    const gone = fetch(`${h.url}/sdk/mcp/servers/every/tools/trigger-sampling-request/execute`, { method: 'POST', signal: leaving.signal,
        headers: { 'content-type': 'application/json', authorization: `Bearer ${await h.key()}` }, body: '{"arguments":{"prompt":"x"}}' }).catch((e) => e.name);
    const question = await pending(h);
    leaving.abort();
    assert.equal(await gone, 'AbortError');
    await until(async () => !(await admin(h, 'GET', '/api/approvals')).approvals.some((one) => one.id === question.id), { what: 'the question to end' });
});
