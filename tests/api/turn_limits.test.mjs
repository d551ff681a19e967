// What is kept of turns, at its limits: sentences and rich blocks of one turn, the events of turns that have ended (docs/sessions.md).
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { startHearth } from './harness.mjs';
import { admin, newKey, sqlite, storeFile } from './kit.mjs';
import { scriptedProvider } from './scripted.mjs';

const script = fileURLToPath(new URL('./mcp_tool_server.mjs', import.meta.url));
const blocksLimit = 4 * 1024 * 1024;                            // LIMIT_TURN_BLOCKS

async function begin(t) {
    const h = await startHearth({ t });
    const provider = await scriptedProvider(t, h);
    const { key, call } = await newKey(h);
    await admin(h, 'POST', '/api/mcp/servers?accept=true', { name: 'tools', command: process.execPath, args: [script] }, 201);
    await admin(h, 'POST', '/api/agents', { name: 'clerk', kind: 'model', tools: ['tools/greet'], approval: 'never', max_steps: 20 }, 201);
    const newSession = async (body = {}) => {
        const reply = await call('POST', '/sdk/agent/session', body);
        assert.equal(reply.status, 200, reply.text);
        return `/sdk/agent/session/${reply.body.session.session_id}`;
    };
    return { h, provider, call, headers: { authorization: `Bearer ${key}` }, newSession };
}

// A streamed turn of the agent that makes these calls; {events, turn}.
async function turnWithCalls({ h, provider, call, headers, newSession }, answers) {
    const session = await newSession({ agent_name: 'clerk' });
    const opened = h.sse(`${session}/chat/stream`, { method: 'POST', body: { message: 'greet them all' }, headers });
    for (const names of answers)
        (await provider.next()).call(...names.map((name) => ['tools__greet', { name }]));
    (await provider.next()).answer('done');
    const stream = await opened;
    await stream.ended;
    const [turn] = (await call('GET', `${session}/messages`)).body.turns;
    assert.deepEqual([turn.state, turn.ended], ['ended', 'answered']);
    return { events: stream.events.map((one) => one.json), turn };
}

test('of the sentences about a turn the first 1000 are kept (LIMIT_TURN_THOUGHTS), and all are told', async (t) => {
    const it = await begin(t);
    const answers = Array.from({ length: 8 }, (_, i) => Array.from({ length: 128 }, (_none, n) => `${i}-${n}`));
    const { events, turn } = await turnWithCalls(it, answers);
    const told = events.filter((one) => one.type === 'agentThought').map((one) => one.thought);
    assert.ok(told.length >= 1024, String(told.length));
    assert.equal(turn.thoughts.length, 1000);
    assert.deepEqual(turn.thoughts, told.slice(0, 1000));
});

test('of the rich blocks of a turn so many are kept as have 4 MiB (LIMIT_TURN_BLOCKS), and all are told', async (t) => {
    const it = await begin(t);
    const names = (i) => Array.from({ length: 40 }, (_, n) => `${i}-${n}-${'x'.repeat(30000)}`);
    const { events, turn } = await turnWithCalls(it, [names(0), names(1)]);
    const told = events.filter((one) => one.dataType === 'toolUse').map((one) => JSON.parse(one.textResponse));
    const bytes = (blocks) => Buffer.byteLength(JSON.stringify(blocks));
    assert.equal(told.length, 80);
    assert.ok(turn.blocks.length > 60 && turn.blocks.length < 80, String(turn.blocks.length));
    assert.deepEqual(turn.blocks.map((one) => one.data.input.name), told.slice(0, turn.blocks.length).map((one) => one.data.input.name));
    assert.ok(bytes(turn.blocks) <= blocksLimit, 'they fit');
    assert.ok(bytes(told.slice(0, turn.blocks.length + 1)) > blocksLimit, 'one more would not');
});

test('the events of the newest 64 turns that ended are kept for viewers who come back (LIMIT_TURNS_KEPT)', async (t) => {
    const { h, provider, call, headers, newSession } = await begin(t);
    const session = await newSession(), other = await newSession();
    const chat = async (path) => {
        const reply = call('POST', `${path}/chat`, { message: 'hello' });
        (await provider.next()).answer('kept');
        assert.equal((await reply).status, 200);
    };
    const follow = (more = {}) => h.sse(`${session}/events`, { headers: { ...headers, ...more } });
    const viewer = await follow();
    await chat(session);
    const { id } = await viewer.next((event) => event.json.type === 'textResponse');
    const back = async () => {
        const again = await follow({ 'last-event-id': id });
        const first = (await again.next()).json;
        again.close();
        return first.type;
    };
    for (let i = 1; i < 64; i++)
        await chat(other);
    assert.equal(await back(), 'session', 'the 64th newest');
    await chat(other);
    assert.equal(await back(), 'resync', 'the 65th');
    viewer.close();
});

test('a turn reads 200 earlier ones; then half of them leave for a summary (LIMIT_CONTEXT_TURNS)', async (t) => {
    const { h, provider, call, newSession } = await begin(t);
    const session = await newSession();
    const begun = (message) => call('POST', `${session}/chat`, { message });
    const said = (asked) => asked.messages.filter((one) => one.role === 'user').length;
    const first = begun('first');
    (await provider.next()).answer('noted');
    assert.equal((await first).status, 200);
    await sqlite(storeFile(h), `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 198)
        INSERT INTO turns (uuid, thread_id, session_id, scope, who, agent_name, state, why, n_steps, started_at, ended_at)
        SELECT 'copy-' || i, thread_id, session_id, scope, who, agent_name, state, why, n_steps, started_at, ended_at FROM turns, n;
        INSERT INTO messages (turn_id, role, message, created_at)
        SELECT turns.id, m.role, m.message, m.created_at FROM turns, messages m WHERE turns.uuid LIKE 'copy-%' ORDER BY turns.id, m.id`);
    const whole = begun('with 199 before it');
    const asked = await provider.next();
    assert.equal(said(asked), 200);
    asked.answer('noted');
    assert.equal((await whole).status, 200);
    const cut = begun('with 200 before it');
    const summary = await provider.next();
    assert.match(summary.text(), /first/);
    summary.answer('They said first a hundred times.');
    const after = await provider.next();
    assert.match(after.text(0), /They said first a hundred times\./);
    assert.equal(said(after), 101);
    assert.equal(after.text(), 'with 200 before it');
    after.answer('noted');
    assert.equal((await cut).status, 200);
});
