// Agent sessions (docs/sessions.md; specification "Agent sessions", decision D10).
import assert from 'node:assert/strict';
import net from 'node:net';
import { test } from 'node:test';
import { startHearth, until } from './harness.mjs';
import { admin, decide, newApp, newKey, nobodysId, refused, refusedFields, shellAgent, storeFile, sqlite, timeForm, unique, uuidForm } from './kit.mjs';
import { scriptedProvider } from './scripted.mjs';

async function begin(t, { settings = {}, ...more } = {}) {
    const h = await startHearth({ t, settings, ...more });
    const provider = await scriptedProvider(t, h);
    const { key, call } = await newKey(h);
    return { h, provider, dev: Object.assign(call, { headers: { authorization: `Bearer ${key}` } }) };
}

async function newSession(dev, body = {}) {
    const reply = await dev('POST', '/sdk/agent/session', body);
    assert.equal(reply.status, 200, reply.text);
    return reply.body.session;
}

const chatPath = (session, word = '') => `/sdk/agent/session/${session.session_id}/chat${word}`;
const turnsOf = async (dev, session) => (await dev('GET', `/sdk/agent/session/${session.session_id}/messages`)).body.turns;

const isFree = (dev, session) => until(async () => !(await dev('GET', `/sdk/agent/session/${session.session_id}`)).body.session.busy);

function stream(h, dev, session, body, more = {}) {
    return h.sse(chatPath(session, '/stream'), { method: 'POST', body, headers: dev.headers, ...more });
}

test('an empty body begins a session with the default agent in the first workspace', async (t) => {
    const { dev } = await begin(t);
    const session = await newSession(dev);
    assert.match(session.session_id, uuidForm);
    assert.match(session.created_at, timeForm);
    assert.deepEqual(session.workspace, { slug: 'default', name: 'Default' });
    assert.deepEqual(session.agent, { name: '@agent', provider: 'scripted', model: 'scripted' });
    assert.match(session.thread.slug, /^session-/);
    assert.deepEqual((await dev('GET', `/sdk/agent/session/${session.session_id}`)).body.session, session);
    const bare = await dev('POST', '/sdk/agent/session');
    assert.equal(bare.status, 200, bare.text);
    assert.equal((await dev('POST', '/api/sdk/agent/session', {})).status, 200);
});

test('a turn has the shape of the contract, and the next turn remembers it', async (t) => {
    const { dev, provider } = await begin(t);
    const session = await newSession(dev);
    const first = dev('POST', chatPath(session), { message: 'My name is Ada.' });
    (await provider.next()).answer('Hello ', 'Ada.');
    const { body, status, text } = await first;
    assert.equal(status, 200, text);
    assert.equal(body.success, true);
    assert.match(body.response.id, uuidForm);
    assert.equal(body.response.session_id, session.session_id);
    assert.equal(body.response.text, 'Hello Ada.');
    assert.ok(Array.isArray(body.response.thoughts));
    assert.equal(body.response.message_count, 2);
    const second = dev('POST', chatPath(session), { message: 'Who am I?' });
    const asked = await provider.next();
    assert.deepEqual(asked.messages.slice(-3).map(({ role, content }) => [role, content]), [['user', 'My name is Ada.'], ['assistant', 'Hello Ada.'], ['user', 'Who am I?']]);
    asked.answer('Ada.');
    assert.equal((await second).body.response.message_count, 4);
    const turns = await turnsOf(dev, session);
    assert.deepEqual(turns.map((turn) => [turn.state, turn.ended, turn.steps, turn.messages.map((one) => one.role)]), [
        ['ended', 'answered', 1, ['user', 'assistant']], ['ended', 'answered', 1, ['user', 'assistant']]]);
    assert.equal(turns[1].messages[1].message.content, 'Hello Ada.');
    assert.deepEqual([turns[1].provider, turns[1].model, turns[1].prompt_tokens, turns[1].completion_tokens], ['scripted', 'scripted', 7, 5]);
});

test('a streamed turn: every data line is JSON, chunks make the whole text, the stream ends after close', async (t) => {
    const { h, dev, provider } = await begin(t);
    const session = await newSession(dev);
    const opened = stream(h, dev, session, { message: 'hello' });
    (await provider.next()).answer('one ', 'two\n', 'three "4"');
    const s = await opened;
    await s.ended;
    assert.equal(s.headers['content-type'], 'text/event-stream');
    for (const line of s.text().split('\n').filter((one) => one.startsWith('data:')))
        assert.doesNotThrow(() => JSON.parse(line.slice(5)), line);
    const events = s.events.map((one) => one.json);
    assert.doesNotMatch(s.text(), /\[DONE\]/);
    const chunks = events.filter((one) => one.type === 'textResponseChunk').map((one) => one.textResponse);
    assert.equal(chunks.join(''), 'one two\nthree "4"');
    assert.deepEqual(events.slice(-2), [{ type: 'textResponse', textResponse: 'one two\nthree "4"' }, { type: 'close' }]);
    assert.equal(events.filter((one) => one.type === 'textResponse').length, 1);
});

test('a second chat while one runs is SESSION_BUSY, of many at once exactly one runs', async (t) => {
    const { dev, provider } = await begin(t);
    const session = await newSession(dev);
    const refusals = [];
    const all = Array.from({ length: 8 }, async (_, i) => {
        const reply = await dev('POST', chatPath(session), { message: `turn ${i}` });
        if (reply.status !== 200)
            refusals.push(refused(reply, 409, 'SESSION_BUSY'));
        return reply.status;
    });
    const asked = await provider.next();
    await until(() => refusals.length === 7);
    asked.answer('done');
    assert.equal((await Promise.all(all)).filter((status) => status === 200).length, 1);
    assert.equal((await turnsOf(dev, session)).length, 1);
});

test('sessions are their owner\'s: another key, another app and nobody do not find them', async (t) => {
    const { h, dev, provider } = await begin(t);
    const session = await newSession(dev);
    const app = await newApp(h, {}, ['agent.chat']);
    await decide(h, app, ['agent.chat']);
    const { call: other } = await newKey(h);
    for (const call of [other, h.asApp(app)])
        for (const [method, word, body] of [['GET', ''], ['DELETE', ''], ['POST', '/chat', { message: 'x' }], ['POST', '/chat/stream', { message: 'x' }], ['GET', '/events'], ['GET', '/messages'], ['POST', '/cancel']])
            refused(await call(method, `/sdk/agent/session/${session.session_id}${word}`, body), 404, 'SESSION_NOT_FOUND');
    refused(await dev('GET', `/sdk/agent/session/${nobodysId}`), 404, 'SESSION_NOT_FOUND');
    refused(await h.asApp(app)('POST', '/sdk/agent/session', { thread_slug: session.thread.slug }), 404, 'THREAD_NOT_FOUND');
    assert.equal((await dev('GET', `/sdk/agent/session/${session.session_id}`)).status, 200);
    assert.equal(provider.asked.length, 0);
});

test('an app needs agent.chat', async (t) => {
    const { h } = await begin(t);
    const app = await newApp(h);
    const reply = await h.asApp(app)('POST', '/sdk/agent/session', {});
    refused(reply, 403, 'PERMISSION_REQUIRED');
    assert.equal(reply.body.permission, 'agent.chat');
});

test('what a session may not name is refused with the field', async (t) => {
    const { h, dev } = await begin(t);
    const agent = await shellAgent(h, 'exit 0');
    refused(await dev('POST', '/sdk/agent/session', { workspace_slug: 'nowhere' }), 404, 'WORKSPACE_NOT_FOUND');
    refused(await dev('POST', '/sdk/agent/session', { thread_slug: 'nowhere' }), 404, 'THREAD_NOT_FOUND');
    refused(await dev('POST', '/sdk/agent/session', { agent_name: 'nobody' }), 404, 'AGENT_NOT_FOUND');
    refusedFields(await dev('POST', '/sdk/agent/session', { agent_name: agent }), 'agent_name');
    const session = await newSession(dev);
    refusedFields(await dev('POST', chatPath(session), {}), 'message');
    refusedFields(await dev('POST', chatPath(session), { message: '' }), 'message');
    refusedFields(await dev('POST', chatPath(session), { message: 5 }), 'message');
});

test('an ended session is not found, and its thread stays', async (t) => {
    const { h, dev, provider } = await begin(t);
    const session = await newSession(dev);
    const turn = dev('POST', chatPath(session), { message: 'remember' });
    (await provider.next()).answer('yes');
    await turn;
    assert.equal((await dev('DELETE', `/sdk/agent/session/${session.session_id}`)).status, 200);
    refused(await dev('GET', `/sdk/agent/session/${session.session_id}`), 404, 'SESSION_NOT_FOUND');
    refused(await dev('DELETE', `/sdk/agent/session/${session.session_id}`), 404, 'SESSION_NOT_FOUND');
    const again = await newSession(dev, { thread_slug: session.thread.slug });
    assert.equal((await turnsOf(dev, again)).length, 1);
    const next = dev('POST', chatPath(again), { message: 'and?' });
    const asked = await provider.next();
    assert.equal(asked.text(-3), 'remember');
    asked.answer('still');
    await next;
    assert.ok((await admin(h, 'GET', '/workspaces/default/threads')).threads.some((one) => one.slug === session.thread.slug));
});

test('an idle session ends, a busy one does not', async (t) => {
    const { dev, provider } = await begin(t, { settings: { 'agents.session_idle_s': 4 } });
    const [idle, busy] = [await newSession(dev), await newSession(dev)];
    const turn = dev('POST', chatPath(busy), { message: 'wait' });
    const asked = await provider.next();
    await until(async () => (await dev('GET', `/sdk/agent/session/${idle.session_id}`)).status === 404);
    assert.equal((await dev('GET', `/sdk/agent/session/${busy.session_id}`)).body.session.busy, true);
    asked.answer('done');
    assert.equal((await turn).status, 200);
});

test('a turn is cancelled by its client that leaves, and by cancel; a detached one goes on', async (t) => {
    const { h, dev, provider } = await begin(t);
    const session = await newSession(dev);
    const left = await (async () => {
        const opened = stream(h, dev, session, { message: 'first' });
        const asked = await provider.next();
        asked.say('begun');
        const s = await opened;
        await s.next((one) => one.json.type === 'textResponseChunk');
        s.close();
        return asked;
    })();
    await until(() => left.isGone);
    await until(async () => (await turnsOf(dev, session))[0].ended === 'cancelled');
    await isFree(dev, session);

    const turn = dev('POST', chatPath(session), { message: 'second' });
    await provider.next();
    assert.deepEqual((await dev('POST', `/sdk/agent/session/${session.session_id}/cancel`)).body, { success: true, cancelled: true });
    refused(await turn, 409, 'TURN_CANCELLED');
    assert.equal((await dev('POST', `/sdk/agent/session/${session.session_id}/cancel`)).body.cancelled, false);

    const opened = stream(h, dev, session, { message: 'third', detached: true });
    const asked = await provider.next();
    asked.say('begun ');
    const s = await opened;
    await s.next((one) => one.json.type === 'textResponseChunk');
    s.close();
    asked.say('and ended').end();
    await until(async () => (await turnsOf(dev, session))[0].state === 'ended');
    const [last] = await turnsOf(dev, session);
    assert.equal(last.ended, 'answered');
    assert.equal(last.messages[1].message.content, 'begun and ended');
});

test('viewers follow a session, and one that comes back loses no event', async (t) => {
    const { h, dev, provider } = await begin(t);
    const session = await newSession(dev);
    const follow = (headers = {}) => h.sse(`/sdk/agent/session/${session.session_id}/events`, { headers: { ...dev.headers, ...headers } });
    const first = await follow();
    assert.deepEqual((await first.next()).json, { type: 'session', state: 'idle' });
    const turn = dev('POST', chatPath(session), { message: 'hello', detached: true });
    const asked = await provider.next();
    assert.equal((await first.next()).json.type, 'turnStarted');
    asked.say('one ');
    const one = await first.next((event) => event.json.type === 'textResponseChunk');
    first.close();
    asked.say('two ');
    const second = await follow({ 'last-event-id': one.id });
    assert.deepEqual((await second.next()).json, { type: 'session', state: 'running' });
    assert.deepEqual((await second.next()).json, { type: 'textResponseChunk', textResponse: 'two ' });
    const third = await follow();
    assert.deepEqual((await third.next((event) => event.json.type === 'textResponseChunk')).json.textResponse, 'one ');
    asked.say('three').end();
    for (const viewer of [second, third]) {
        assert.equal((await viewer.next((event) => event.json.type === 'textResponse')).json.textResponse, 'one two three');
        assert.equal((await viewer.next()).json.type, 'close');
    }
    assert.equal((await turn).body.response.text, 'one two three');
    const late = await follow({ 'last-event-id': one.id });
    await late.next((event) => event.json.type === 'session');
    assert.deepEqual((await late.next((event) => event.json.textResponse)).json.textResponse, 'two ');
    const lost = await follow({ 'last-event-id': '9999.1' });
    assert.deepEqual((await lost.next()).json, { type: 'resync' });
    const next = dev('POST', chatPath(session), { message: 'again' });
    (await provider.next()).answer('once more');
    await next;
    for (const viewer of [second, third, late, lost])
        assert.equal((await viewer.next((event) => event.json.type === 'textResponse' && event.json.textResponse === 'once more')).json.type, 'textResponse');
    assert.equal((await dev('DELETE', `/sdk/agent/session/${session.session_id}`)).status, 200);
    for (const viewer of [second, third, late, lost])
        await viewer.ended;
});

test('a provider that refuses: an error before the first byte, else an event; and the next turn goes on without it', async (t) => {
    const { h, dev, provider } = await begin(t, { settings: { 'llm.retries': 0 } });
    const session = await newSession(dev);
    const turn = dev('POST', chatPath(session), { message: 'first' });
    (await provider.next()).refuse(400, 'no such thing');
    refused(await turn, 502, 'LLM_ERROR');
    const opened = stream(h, dev, session, { message: 'second' });
    const asked = await provider.next();
    asked.say('half');
    const s = await opened;
    await s.next((event) => event.json.type === 'textResponseChunk');
    asked.break();
    await s.ended;
    assert.deepEqual(s.events.slice(-2).map((one) => one.json.type), ['error', 'close']);
    assert.equal(typeof s.events.at(-2).json.error, 'string');
    const third = dev('POST', chatPath(session), { message: 'third' });
    const again = await provider.next();
    assert.deepEqual(again.messages.filter((one) => one.role !== 'system').map((one) => one.content), ['third']);
    again.answer('fine');
    assert.equal((await third).status, 200);
    assert.deepEqual((await turnsOf(dev, session)).map((one) => one.ended), ['answered', 'failed', 'failed']);
});

test('without a provider a turn says what to configure', async (t) => {
    const h = await startHearth({ t });
    const { call: dev } = await newKey(h);
    const session = await newSession(dev);
    assert.deepEqual([session.agent.provider, session.agent.model], ['', '']);
    refused(await dev('POST', chatPath(session), { message: 'hello' }), 503, 'PROVIDER_UNAVAILABLE');
    refused(await dev('POST', chatPath(session, '/stream'), { message: 'hello' }), 503, 'PROVIDER_UNAVAILABLE');
});

test('what a killed service was doing is shown as interrupted, with its steps', async (t) => {
    const { h, dev, provider } = await begin(t);
    const session = await newSession(dev);
    const turn = dev('POST', chatPath(session), { message: 'hello' }).catch(() => null);
    await provider.next();
    await h.kill();
    await turn;
    await h.start();
    const turns = await turnsOf(dev, session);
    assert.deepEqual(turns.map((one) => [one.state, one.ended, one.messages.length]), [['interrupted', 'interrupted', 1]]);
    const next = dev('POST', chatPath(session), { message: 'again' });
    (await provider.next()).answer('yes');
    assert.equal((await next).status, 200);
});

test('a service that stops tells its turns, and they are interrupted', async (t) => {
    const { h, dev, provider } = await begin(t);
    const session = await newSession(dev);
    const turn = dev('POST', chatPath(session), { message: 'hello' });
    await provider.next();
    await h.terminate();
    refused(await turn, 503, 'SHUTTING_DOWN');
    await h.start();
    assert.deepEqual((await turnsOf(dev, session)).map((one) => [one.state, one.ended]), [['interrupted', 'interrupted']]);
    assert.equal((await sqlite(storeFile(h), 'SELECT count(*) AS n FROM turns WHERE state = \'running\''))[0].n, 0);
});

test('the last message is edited, and its answer is made anew', async (t) => {
    const { h, dev, provider } = await begin(t);
    const session = await newSession(dev);
    const path = `/api/workspaces/default/threads/${session.thread.slug}`;
    refused(await h.socket('POST', `${path}/regenerate`, {}), 404, 'TURN_NOT_FOUND');
    for (const [said, answered] of [['one', 'ONE'], ['two', 'TWO']]) {
        const turn = dev('POST', chatPath(session), { message: said });
        (await provider.next()).answer(answered);
        await turn;
    }
    const edited = h.socket('POST', `${path}/edit`, { message: 'three' });
    const asked = await provider.next();
    assert.deepEqual(asked.messages.filter((one) => one.role !== 'system').map((one) => one.content), ['one', 'ONE', 'three']);
    refused(await h.socket('POST', `${path}/regenerate`, {}), 409, 'SESSION_BUSY');
    asked.answer('THREE');
    assert.equal((await edited).body.response.text, 'THREE');
    const anew = h.socket('POST', `${path}/regenerate`);
    (await provider.next()).answer('DREI');
    const { body, text } = await anew;
    assert.equal(body.response?.text, 'DREI', text);
    const { turns } = await admin(h, 'GET', `${path}/messages`);
    assert.deepEqual(turns.map((one) => one.messages.map((message) => message.message.content)), [['three', 'DREI'], ['one', 'ONE']]);
    assert.deepEqual((await admin(h, 'GET', `${path}/messages?before=${turns[0].number}&limit=5`)).turns.map((one) => one.number), [turns[1].number]);
    refused(await dev('GET', `${path}/messages`), 401, 'ADMIN_REQUIRED');
});

test('an edited turn may be streamed', async (t) => {
    const { h, dev, provider } = await begin(t);
    const session = await newSession(dev);
    const turn = dev('POST', chatPath(session), { message: 'one' });
    (await provider.next()).answer('ONE');
    await turn;
    const streamed = h.socket('POST', `/api/workspaces/default/threads/${session.thread.slug}/edit`, { message: 'two', stream: true });
    (await provider.next()).answer('TWO');
    const { headers, text } = await streamed;
    assert.equal(headers['content-type'], 'text/event-stream');
    assert.match(text, /"type":"textResponse","textResponse":"TWO"/);
});

// ---- tools and the context ----

async function modelAgent(h, definition) {
    const { name } = await admin(h, 'POST', '/api/agents', { kind: 'model', name: unique('thinker'), ...definition }, 201);
    return name;
}

test('a tool of a turn is shown as a block and a thought, its step is stored, and its result is in the next turn once', async (t) => {
    const { h, dev, provider } = await begin(t);
    const session = await newSession(dev, { agent_name: await modelAgent(h, { instructions: 'Be brief.', tools: ['builtin/now'], approval: 'never' }) });
    const opened = stream(h, dev, session, { message: 'What time is it?' });
    const first = await provider.next();
    assert.match(first.text(0), /Be brief\./);
    assert.deepEqual(first.tools.map((tool) => tool.function.name), ['now']);
    first.call(['now', {}]);
    const second = await provider.next();
    const result = second.messages.at(-1);
    assert.equal(result.role, 'tool');
    second.answer('It is late.');
    const s = await opened;
    await s.ended;
    const events = s.events.map((one) => one.json);
    const blocks = events.filter((one) => one.dataType);
    assert.ok(blocks.length > 0, s.text());
    for (const block of blocks)
        assert.equal(JSON.parse(block.textResponse).dataType, block.dataType);
    const used = JSON.parse(blocks.find((one) => one.dataType === 'toolUse').textResponse).data;
    assert.equal(used.toolName, 'now');
    assert.ok(['input', 'content', 'status'].every((member) => member in used), JSON.stringify(used));
    assert.ok(events.some((one) => one.type === 'agentThought' && typeof one.thought === 'string'));
    assert.equal(events.at(-2).textResponse, 'It is late.');
    const third = dev('POST', chatPath(session), { message: 'Thanks.' });
    const asked = await provider.next();
    assert.deepEqual(asked.messages.map((one) => one.role), ['system', 'user', 'assistant', 'tool', 'assistant', 'user']);
    assert.equal(asked.messages[3].tool_call_id, asked.messages[2].tool_calls[0].id);
    asked.answer('Good night.');
    assert.equal((await third).body.response.message_count, 6);
    const [, turn] = await turnsOf(dev, session);
    assert.deepEqual(turn.messages.map((one) => one.role), ['user', 'assistant', 'tool', 'assistant']);
    assert.equal(turn.messages[2].tool, 'now');
    assert.ok(turn.blocks.length > 0);
});

test('a conversation longer than the window: the oldest turns leave, and a summary takes their place', async (t) => {
    const { h, dev, provider } = await begin(t, { settings: { 'agents.windows': 'scripted=2000' } });
    const session = await newSession(dev, { agent_name: await modelAgent(h, { instructions: 'Stay.' }) });
    const long = (word) => `${word} `.repeat(250);
    for (let i = 0; i < 3; i++) {
        const turn = dev('POST', chatPath(session), { message: long(`ask${i}`) });
        (await provider.next()).answer(long(`say${i}`));
        assert.equal((await turn).status, 200);
    }
    const turn = dev('POST', chatPath(session), { message: 'and now?' });
    const summary = await provider.next();
    assert.match(summary.text(), /ask0/);
    summary.answer('They spoke of ask0.');
    const asked = await provider.next();
    assert.match(asked.text(0), /^Stay\.[\s\S]*They spoke of ask0\./);
    assert.equal(asked.text(), 'and now?');
    assert.doesNotMatch(JSON.stringify(asked.messages.slice(1)), /ask0/);
    asked.answer('Fine.');
    await turn;
    const [last] = await turnsOf(dev, session);
    assert.ok(last.cut.turns_left >= 1 && last.cut.window_tokens === 2000, JSON.stringify(last.cut));
    const next = dev('POST', chatPath(session), { message: 'still?' });
    const kept = await provider.next();
    assert.match(kept.text(0), /They spoke of ask0\./);
    assert.equal(kept.text(), 'still?');
    kept.answer('Yes.');
    await next;
});

test('a window is learnt from a refusal and kept', async (t) => {
    const { dev, provider } = await begin(t, { settings: { 'llm.retries': 0 } });
    const session = await newSession(dev);
    for (let i = 0; i < 2; i++) {
        const turn = dev('POST', chatPath(session), { message: `${`ask${i}`} ${'word '.repeat(1200)}` });
        (await provider.next()).answer('word '.repeat(400));
        assert.equal((await turn).status, 200);
    }
    const turn = dev('POST', chatPath(session), { message: 'short' });
    (await provider.next()).refuse(400, "This model's maximum context length is 2048 tokens. However, your messages resulted in 4100 tokens.", 'context_length_exceeded');
    (await provider.next()).answer('They said word.');
    const again = await provider.next();
    assert.equal(again.text(), 'short');
    assert.ok(JSON.stringify(again.messages).length < 2048 * 4);
    again.answer('Yes.');
    assert.equal((await turn).body.response.text, 'Yes.');
    assert.equal((await turnsOf(dev, session))[0].cut.window_tokens, 2048);
});

test('a cancel at any moment ends the turn once, and the session is free again', async (t) => {
    const { h, dev, provider } = await begin(t);
    const session = await newSession(dev, { agent_name: await modelAgent(h, { tools: ['builtin/now'], approval: 'never' }) });
    const moments = [
        async () => {},
        async (asked) => { asked.say('half'); },
        async (asked) => { asked.call(['now', {}]); },
        async (asked) => { asked.call(['now', {}]); await provider.next(); },
        async (asked) => { asked.answer('whole'); },
    ];
    for (const [i, moment] of [...moments, ...moments].entries()) {
        const turn = dev('POST', chatPath(session), { message: `turn ${i}` });
        await moment(await provider.next());
        const [cancelled, { status, body }] = await Promise.all([dev('POST', `/sdk/agent/session/${session.session_id}/cancel`), turn]);
        assert.equal(cancelled.status, 200);
        assert.ok(status === 200 || (status === 409 && body.code === 'TURN_CANCELLED'), `${status} ${JSON.stringify(body)}`);
        await isFree(dev, session);
        const [last] = await turnsOf(dev, session);
        assert.equal(last.messages[0].message.content, `turn ${i}`);
        assert.equal(last.ended, status === 200 ? 'answered' : 'cancelled');
        provider.skip();
    }
});

test('a turn that waits for a person says so, and is cancelled while it waits', async (t) => {
    const { h, dev, provider } = await begin(t);
    const session = await newSession(dev, { agent_name: await modelAgent(h, { tools: ['builtin/now'], approval: 'always' }) });
    const opened = stream(h, dev, session, { message: 'time?' });
    (await provider.next()).call(['now', {}]);
    const s = await opened;
    await s.next((event) => event.json.type === 'agentThought');
    const pending = async () => (await admin(h, 'GET', '/api/approvals')).approvals;
    await until(async () => (await pending()).length === 1);
    assert.equal((await dev('POST', `/sdk/agent/session/${session.session_id}/cancel`)).body.cancelled, true);
    await s.ended;
    assert.deepEqual(s.events.slice(-2).map((one) => one.json.type), ['error', 'close']);
    assert.equal(s.events.at(-2).json.code, 'TURN_CANCELLED');
    assert.equal((await pending()).length, 0);
});

test('a viewer that reads nothing delays a turn by seconds only, and another viewer sees all of it', async (t) => {
    const { h, dev, provider } = await begin(t);
    const session = await newSession(dev);
    const path = `/sdk/agent/session/${session.session_id}/events`;
    const good = await h.sse(path, { headers: dev.headers });
    await good.next();
    const socket = net.connect(Number(new URL(h.url).port), '127.0.0.1');
    t.after(() => socket.destroy());
    socket.pause();
    socket.write(`GET ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: ${dev.headers.authorization}\r\n\r\n`);
    const turn = dev('POST', chatPath(session), { message: 'much', detached: true });
    const asked = await provider.next();
    const piece = `${'x'.repeat(32 << 10)} `;
    for (let i = 0; i < 200; i++)
        asked.say(piece);
    asked.end();
    assert.equal((await turn).body.response.text.length, 200 * piece.length);
    const last = await good.next((event) => event.json.type === 'textResponse');
    assert.equal(last.json.textResponse.length, 200 * piece.length);
    assert.equal(good.events.filter((one) => one.json.type === 'resync').length, 0);
    assert.equal(good.events.filter((one) => one.json.type === 'textResponseChunk').map((one) => one.json.textResponse).join('').length, 200 * piece.length);
});
