// Sessions of /mcp, their streams, progress, cancellation, tasks and subscriptions (issue 10, section 5).
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { startHearth, until } from './harness.mjs';
import { admin, decide, newApp, nobodysId, shellAgent, taskBecomes } from './kit.mjs';
import { scriptedProvider } from './scripted.mjs';
import { ask, framesOf, latest, meta, session, stateless } from './mcp.mjs';

let h, key, dev, agent, slow;
before(async () => {
    h = await startHearth();
    assert.equal((await h.cli('provider', 'add', 'stand-in')).code, 0);
    key = await h.key();
    dev = await h.asKey();
    agent = await shellAgent(h, "echo '{\"n\":1}'");
    slow = await shellAgent(h, 'sleep 600');
});
after(() => h.stop());

const rpc = (method, params, id = 1) => ({ jsonrpc: '2.0', id, method, params });
const accept = 'application/json, text/event-stream';

// A stream of frames: of a session's GET, or of a POST with this body.
async function stream(headers, body) {
    const opened = await h.sse('/mcp', { method: body ? 'POST' : 'GET', body, headers: { authorization: `Bearer ${key}`, accept: body ? accept : 'text/event-stream', 'content-type': 'application/json', ...headers } });
    return { ...opened, status: opened.status, frame: (predicate, what) => opened.next((event) => predicate(JSON.parse(event.data)), { what }).then((event) => JSON.parse(event.data)), close: () => opened.close() };
}

const trigger = async (s, args) => (await s.tool('trigger_agent', args)).structuredContent;

describe('the stream of a session', () => {
    test('there is one; it needs the session and the type', async () => {
        const s = await session(dev);
        const first = await stream(s.headers);
        assert.equal(first.status, 200);
        const get = (headers) => dev('GET', '/mcp', undefined, { accept: 'text/event-stream', ...headers });
        assert.equal((await get(s.headers)).status, 409);
        assert.equal((await get({})).status, 400);
        assert.equal((await get({ 'mcp-session-id': nobodysId })).status, 404);
        assert.equal((await get({ ...s.headers, accept: 'application/json' })).status, 406);
        assert.equal((await h.api('HEAD', '/mcp', undefined, { authorization: `Bearer ${key}`, accept: 'text/event-stream', ...s.headers })).status, 405);
        first.close();
        const again = await until(async () => { const one = await stream(s.headers).catch(() => null); return one?.status === 200 && one; }, { what: 'the place of the first stream' });
        again.close();
    });

    test('it ends with the session', async () => {
        const s = await session(dev);
        const one = await stream(s.headers);
        assert.equal((await dev('DELETE', '/mcp', undefined, s.headers)).status, 200);
        await one.ended;
    });

    test('it tells of tasks that the session follows, and of decisions', async () => {
        const s = await session(dev);
        const one = await stream(s.headers);
        const made = await trigger(s, { agent_name: slow });
        const uri = `hearth://tasks/${made.task_uuid}`;
        await s.result('resources/subscribe', { uri });
        await s.result('logging/setLevel', { level: 'debug' });
        await s.result('tasks/cancel', { taskId: made.task_uuid });
        assert.equal((await one.frame((frame) => frame.method === 'notifications/resources/updated', 'resources/updated')).params.uri, uri);
        const log = await one.frame((frame) => frame.method === 'notifications/message', 'message');
        assert.deepEqual([log.params.level, log.params.data.uri], ['info', uri]);
        const app = await newApp(h, { name: 'stream-asks' });
        await (await session(h.asApp(app))).tool('list_activities', {});
        await one.frame((frame) => frame.method === 'notifications/tools/list_changed', 'tools/list_changed');
        one.close();
    });

    test('only existing resources are followed, and no more than 64', async () => {
        const s = await session(dev);
        assert.equal((await s.send('resources/subscribe', { uri: `hearth://tasks/${nobodysId}` })).error.code, -32002);
        assert.equal((await s.send('resources/subscribe', {})).error.code, -32602);
        assert.equal((await s.send('resources/subscribe', { uri: 'x'.repeat(256) })).error.code, -32002);
        assert.equal((await s.send('resources/subscribe', { uri: 'x'.repeat(257) })).error.code, -32602);
        const uris = [];
        for (let i = 0; i < 65; i++)
            uris.push(`hearth://tasks/${(await trigger(s, { auto_run: false })).task_uuid}`);
        for (const uri of uris.slice(0, 64))
            await s.result('resources/subscribe', { uri });
        await s.result('resources/subscribe', { uri: uris[0] });
        assert.match((await s.send('resources/subscribe', { uri: uris[64] })).error.message, /64/);
        await s.result('resources/unsubscribe', { uri: uris[0] });
        await s.result('resources/subscribe', { uri: uris[64] });
    });
});

describe('progress and cancellation', () => {
    const endless = { messages: [{ role: 'user', content: `slow 300\nsay ${'word '.repeat(300)}` }] };
    const call = (id, args, more = {}) => rpc('tools/call', { name: 'chat', arguments: args, _meta: { progressToken: 7 }, ...more }, id);

    test('a call with a token is answered by a stream: progress that grows, then the answer', async () => {
        const s = await session(dev);
        const reply = await s.raw(call('a', { messages: [{ role: 'user', content: 'slow 100\nsay one two three four five six' }] }));
        assert.match(reply.headers['content-type'], /text\/event-stream/);
        const frames = framesOf(reply);
        assert.equal(frames.at(-1).id, 'a');
        assert.ok(!frames.at(-1).result.isError, reply.text);
        const told = frames.slice(0, -1);
        assert.ok(told.length > 0);
        for (const [i, one] of told.entries()) {
            assert.equal(one.params.progressToken, 7);
            assert.ok(i === 0 || one.params.progress > told[i - 1].params.progress);
        }
    });

    test('a token of another type is none', async () => {
        const s = await session(dev);
        for (const progressToken of [true, {}, 1.5, 'x'.repeat(513)])
            assert.match((await s.raw(rpc('tools/call', { name: 'embed', arguments: { input: 'x', provider: 'builtin' }, _meta: { progressToken } }))).headers['content-type'], /json/);
    });

    test('notifications/cancelled ends the call without an answer', async () => {
        const s = await session(dev);
        const one = await stream(s.headers, call('gone', endless));
        await one.frame((frame) => frame.method === 'notifications/progress', 'progress');
        assert.equal((await s.notify('notifications/cancelled', { requestId: 'other' })).status, 202);
        assert.equal((await s.notify('notifications/cancelled', { requestId: 'gone' })).status, 202);
        await one.ended;
        assert.ok(!one.events.some((event) => JSON.parse(event.data).id === 'gone'));
    });

    test('another session cancels nothing', async () => {
        const s = await session(dev), other = await session(dev);
        const one = await stream(s.headers, call('mine', { messages: [{ role: 'user', content: 'slow 200\nsay one two three four five' }] }));
        await one.frame((frame) => frame.method === 'notifications/progress', 'progress');
        await other.notify('notifications/cancelled', { requestId: 'mine' });
        assert.ok((await one.frame((frame) => frame.id === 'mine', 'the answer')).result);
    });

    test('a wait for a task tells its status and ends with the time', async () => {
        const s = await session(dev);
        const reply = await s.raw(rpc('tools/call', { name: 'trigger_agent', arguments: { agent_name: slow, wait_s: 1 }, _meta: { progressToken: 't' } }));
        const frames = framesOf(reply);
        const outcome = frames.at(-1).result.structuredContent;
        assert.equal(outcome.finished, false);
        assert.ok(frames.some((frame) => frame.params?.message === outcome.status), reply.text);
        await s.result('tasks/cancel', { taskId: outcome.task_uuid });
    });
});

describe('tasks of 2025-11-25', () => {
    test('a call runs as a task, which is asked until its result', async () => {
        const s = await session(dev);
        const { task } = await s.tool('trigger_agent', { agent_name: agent }, { task: { ttl: 60_000 } });
        assert.deepEqual(Object.keys(task).sort(), ['createdAt', 'lastUpdatedAt', 'pollInterval', 'status', 'taskId', 'ttl']);
        const end = await s.result('tasks/result', { taskId: task.taskId });
        assert.deepEqual(end.structuredContent.result, { n: 1 });
        assert.equal(end._meta['io.modelcontextprotocol/related-task'].taskId, task.taskId);
        assert.equal((await s.result('tasks/get', { taskId: task.taskId })).status, 'completed');
        assert.ok((await s.result('tasks/list')).tasks.some((one) => one.taskId === task.taskId));
        assert.equal((await s.send('tasks/cancel', { taskId: task.taskId })).error.code, -32602);
    });

    test('the stream of the session that began it tells its status, others tell nothing', async () => {
        const s = await session(dev), other = await session(dev);
        const one = await stream(s.headers), another = await stream(other.headers);
        const { task } = await s.tool('trigger_agent', { agent_name: slow }, { task: {} });
        await other.result('tasks/cancel', { taskId: task.taskId });
        const told = await one.frame((frame) => frame.method === 'notifications/tasks/status' && frame.params.status === 'cancelled', 'tasks/status');
        const { taskId, createdAt, ttl, pollInterval } = told.params;
        assert.deepEqual({ taskId, createdAt, ttl, pollInterval }, { taskId: task.taskId, createdAt: task.createdAt, ttl: null, pollInterval: 1000 });
        assert.ok(told.params.lastUpdatedAt >= task.lastUpdatedAt);
        await other.result('resources/subscribe', { uri: `hearth://tasks/${(await trigger(s, { auto_run: false })).task_uuid}` });
        assert.ok(!another.events.some((event) => JSON.parse(event.data).method === 'notifications/tasks/status'));
        one.close();
        another.close();
    });

    test('it is cancelled, waits for a person, or fails', async () => {
        const s = await session(dev);
        const { task } = await s.tool('trigger_agent', { agent_name: slow }, { task: {} });
        assert.equal((await s.result('tasks/cancel', { taskId: task.taskId })).status, 'cancelled');
        assert.equal((await s.result('tasks/result', { taskId: task.taskId })).isError, true);
        const waiting = await s.tool('trigger_agent', { auto_run: false }, { task: {} });
        assert.equal(waiting.task.status, 'input_required');
        assert.equal((await s.send('tasks/get', { taskId: nobodysId })).error.code, -32602);
        assert.equal((await s.send('tasks/get', {})).error.code, -32602);
        assert.equal((await s.send('tools/call', { name: 'embed', arguments: {}, task: {} })).error.code, -32601);
        assert.equal((await s.send('tools/call', { name: 'trigger_agent', arguments: {}, task: {} })).error.code, -32602);
    });

    test('an older version has none', async () => assert.equal((await (await session(dev, '2025-06-18')).send('tasks/list')).error.code, -32601));
});

describe('resources', () => {
    test('the list has pages, each task is on one of them', async () => {
        const app = await newApp(h, { name: 'pages' });
        await decide(h, app, ['api.task', 'webhook.trigger']);
        const s = await session(h.asApp(app));
        const made = new Set();
        for (let i = 0; i < 51; i++)
            made.add(`hearth://tasks/${(await trigger(s, { auto_run: false })).task_uuid}`);
        const first = await s.result('resources/list');
        assert.equal(first.resources.length, 50);
        const second = await s.result('resources/list', { cursor: first.nextCursor });
        assert.equal(second.nextCursor, undefined);
        assert.deepEqual(new Set([...first.resources, ...second.resources].map((one) => one.uri)), made);
        for (const cursor of ['-1', '', 'x', '1e3', '99999999999999999999', 7])
            assert.equal((await s.send('resources/list', { cursor })).error.code, -32602, String(cursor));
        assert.equal((await s.result('tasks/list')).tasks.length, 50);
    });

    test('an app reads its own tasks only, and its list asks nothing of the person', async () => {
        const made = await trigger(await session(dev), { auto_run: false });
        const app = await newApp(h, { name: 'reader' });
        const s = await session(h.asApp(app));
        assert.deepEqual((await s.result('resources/list')).resources, []);
        assert.ok(!(await admin(h, 'GET', '/api/permissions/pending')).pending.some((one) => one.app_id === app));
        const uri = `hearth://tasks/${made.task_uuid}`;
        assert.match((await s.send('resources/read', { uri })).error.message, /api\.task/);
        await decide(h, app, ['api.task']);
        assert.deepEqual((await s.send('resources/read', { uri })).error, { code: -32002, message: `There is no resource ${uri}`, data: { uri } });
        assert.deepEqual((await s.result('completion/complete', { ref: { type: 'ref/resource', uri: 'hearth://tasks/{uuid}' }, argument: { name: 'uuid', value: '' } })).completion.values, []);
    });

    test('only the arguments of templates are completed', async () => {
        const s = await session(dev);
        for (const params of [{}, { ref: { type: 'ref/prompt', name: 'x' }, argument: { name: 'uuid', value: '' } }, { ref: { type: 'ref/resource', uri: 'hearth://tasks/{uuid}' }, argument: { name: 'other', value: '' } }])
            assert.equal((await s.send('completion/complete', params)).error.code, -32602);
    });
});

describe('threads', () => {
    test('a conversation is read by who began it, and comes into the client\'s conversation', async (t) => {
        const own = await startHearth({ t });
        const provider = await scriptedProvider(t, own);
        const call = await own.asKey(), s = await session(call);
        const { body: { session: begun } } = await call('POST', '/sdk/agent/session', {});
        const chat = call('POST', `/sdk/agent/session/${begun.session_id}/chat`, { message: 'My name is Ada.' });
        (await provider.next()).answer('Hello Ada.');
        assert.equal((await chat).status, 200);
        const thread = `default/${begun.thread.slug}`, uri = `hearth://threads/${thread}`;
        assert.ok((await s.result('resources/list')).resources.some((one) => one.uri === uri && one.title === begun.thread.name));
        const { contents: [read] } = await s.result('resources/read', { uri });
        const [turn] = JSON.parse(read.text).turns;
        assert.deepEqual([turn.agent, turn.why, turn.messages.map((one) => one.role)], ['@agent', 'answered', ['user', 'assistant']]);
        const values = async (ref, name, value) => (await s.result('completion/complete', { ref, argument: { name, value } })).completion.values;
        assert.deepEqual(await values({ type: 'ref/prompt', name: 'continue_thread' }, 'thread', 'def'), [thread]);
        const template = { type: 'ref/resource', uri: 'hearth://threads/{workspace}/{thread}' };
        assert.deepEqual([await values(template, 'workspace', ''), await values(template, 'thread', 'session-')], [['default'], [begun.thread.slug]]);
        const { messages } = await s.result('prompts/get', { name: 'continue_thread', arguments: { thread } });
        assert.equal(messages[1].content.resource.uri, uri);
        const app = await newApp(own, { name: 'curious' }), other = await session(own.asApp(app));
        assert.match((await other.send('resources/read', { uri })).error.message, /api\.threads/);
        await decide(own, app, ['api.threads']);
        assert.equal((await other.send('resources/read', { uri })).error.code, -32002);
        assert.deepEqual((await other.result('resources/list')).resources, []);
        for (const wrong of ['hearth://threads/', 'hearth://threads/default', 'hearth://threads/default/', `hearth://threads//${begun.thread.slug}`, `${uri}/more`])
            assert.equal((await s.send('resources/read', { uri: wrong })).error.code, -32002, wrong);
    });
});

describe('prompts', () => {
    test('a task comes into the conversation', async () => {
        const s = await session(dev);
        const { prompts } = await s.result('prompts/list');
        assert.deepEqual(prompts.map((prompt) => prompt.name), ['ask_agent', 'task_report', 'continue_thread']);
        assert.ok(prompts.every((prompt) => prompt.title && prompt.arguments.every((argument) => argument.required && argument.title)));
        const made = await trigger(s, { auto_run: false, prompt: 'look' });
        const { messages } = await s.result('prompts/get', { name: 'task_report', arguments: { uuid: made.task_uuid } });
        assert.deepEqual(messages.map((message) => [message.role, message.content.type]), [['user', 'text'], ['user', 'resource']]);
        assert.equal(messages[1].content.resource.uri, `hearth://tasks/${made.task_uuid}`);
        assert.equal(JSON.parse(messages[1].content.resource.text).task.uuid, made.task_uuid);
        const told = await s.result('prompts/get', { name: 'ask_agent', arguments: { agent, task: 'count the files' } });
        assert.match(told.messages[0].content.text, new RegExp(`${agent}.*count the files`, 's'));
    });

    test('their arguments are completed and checked', async () => {
        const s = await session(dev);
        const complete = (name, argument, value) => s.send('completion/complete', { ref: { type: 'ref/prompt', name }, argument: { name: argument, value } });
        assert.deepEqual((await complete('ask_agent', 'agent', agent)).result.completion.values.includes(agent), true);
        assert.deepEqual((await complete('ask_agent', 'agent', 'no agent')).result.completion.values, []);
        assert.deepEqual((await complete('ask_agent', 'task', '')).result.completion.values, []);
        const made = await trigger(s, { auto_run: false });
        assert.deepEqual((await complete('task_report', 'uuid', made.task_uuid.slice(0, 30))).result.completion.values, [made.task_uuid]);
        assert.equal((await complete('ask_agent', 'other', '')).error.code, -32602);
        for (const params of [{}, { name: 'nosuch' }, { name: 'ask_agent' }, { name: 'ask_agent', arguments: { agent: 7, task: 'x' } }, { name: 'task_report', arguments: { uuid: '' } }])
            assert.equal((await s.send('prompts/get', params)).error.code, -32602, JSON.stringify(params));
        assert.equal((await s.send('prompts/get', { name: 'task_report', arguments: { uuid: nobodysId } })).error.code, -32002);
        assert.equal((await s.send('prompts/list', { cursor: '50' })).error.code, -32602);
    });

    test('an older version has no titles; the stateless one has prompts too', async () => {
        assert.ok((await (await session(dev, '2025-03-26')).result('prompts/list')).prompts.every((prompt) => !('title' in prompt)));
        const listed = (await ask(dev, 'prompts/list')).body.result;
        assert.deepEqual([listed.resultType, listed.cacheScope, listed.prompts.length], ['complete', 'private', 3]);
        const got = await ask(dev, 'prompts/get', { name: 'ask_agent', arguments: { agent, task: 'x' } }, { headers: { 'mcp-name': 'ask_agent' } });
        assert.equal(got.body.result.messages.length, 1);
    });

    test('an app that may not read agents and tasks gets no names of them', async () => {
        const app = await newApp(h, { name: 'prompted' });
        const s = await session(h.asApp(app));
        for (const [name, argument] of [['ask_agent', 'agent'], ['task_report', 'uuid'], ['continue_thread', 'thread']])
            assert.deepEqual((await s.result('completion/complete', { ref: { type: 'ref/prompt', name }, argument: { name: argument, value: '' } })).completion.values, []);
        const made = await trigger(await session(dev), { auto_run: false });
        assert.match((await s.send('prompts/get', { name: 'task_report', arguments: { uuid: made.task_uuid } })).error.message, /api\.task/);
        await decide(h, app, ['api.task']);
        assert.equal((await s.send('prompts/get', { name: 'task_report', arguments: { uuid: made.task_uuid } })).error.code, -32002);
    });
});

describe('subscriptions/listen', () => {
    test('acknowledges what it follows, tells of it, and ends with an answer when the service ends', async (t) => {
        const s = await session(dev);
        const made = await trigger(s, { agent_name: slow });
        const uri = `hearth://tasks/${made.task_uuid}`;
        const wanted = { toolsListChanged: true, resourceSubscriptions: [uri, `hearth://tasks/${nobodysId}`, 7], promptsListChanged: true };
        const body = { jsonrpc: '2.0', id: 'sub', method: 'subscriptions/listen', params: { notifications: wanted, _meta: meta() } };
        const one = await stream({ 'mcp-protocol-version': stateless, 'mcp-method': 'subscriptions/listen' }, body);
        const begun = await one.frame((frame) => frame.method === 'notifications/subscriptions/acknowledged', 'acknowledged');
        assert.deepEqual(begun.params.notifications, { toolsListChanged: true, resourceSubscriptions: [uri] });
        assert.equal(begun.params._meta['io.modelcontextprotocol/subscriptionId'], 'sub');
        await s.result('tasks/cancel', { taskId: made.task_uuid });
        const told = await one.frame((frame) => frame.method === 'notifications/resources/updated', 'updated');
        assert.deepEqual([told.params.uri, told.params._meta['io.modelcontextprotocol/subscriptionId']], [uri, 'sub']);
        one.close();
    });

    test('follows 64 resources at most, whether or not they are there', async () => {
        const uris = (n) => ({ notifications: { resourceSubscriptions: Array(n).fill(`hearth://tasks/${nobodysId}`) } });
        const { error } = (await ask(dev, 'subscriptions/listen', uris(65))).body;
        assert.equal(error.code, -32602);
        assert.match(error.message, /`notifications.resourceSubscriptions` must have at most 64 resources/);
        const body = { jsonrpc: '2.0', id: 'sub', method: 'subscriptions/listen', params: { ...uris(64), _meta: meta() } };
        const one = await stream({ 'mcp-protocol-version': stateless, 'mcp-method': 'subscriptions/listen' }, body);
        await one.frame((frame) => frame.method === 'notifications/subscriptions/acknowledged', 'acknowledged');
        one.close();
    });

    test('needs the filter', async () => assert.equal((await ask(dev, 'subscriptions/listen')).body.error.code, -32602));
});

describe('how many sessions, and how long', () => {
    test('a caller has 64; the one unused for longest makes room', async () => {
        const app = h.asApp(await newApp(h, { name: 'many' }));
        const sessions = [];
        for (let i = 0; i < 65; i++)
            sessions.push(await session(app));
        assert.equal((await sessions[0].raw(rpc('ping'))).status, 404);
        for (const s of sessions.slice(1))
            assert.equal((await s.raw(rpc('ping'))).status, 200);
    });

    test('an idle one ends; one with an open stream does not', async (t) => {
        const own = await startHearth({ t });
        const call = await own.asKey(), key = await own.key();
        const idle = await session(call), open = await session(call);
        const held = await own.sse('/mcp', { headers: { authorization: `Bearer ${key}`, accept: 'text/event-stream', ...open.headers } });
        const began = performance.now();
        await admin(own, 'PUT', '/api/settings/mcp.session_idle_s', { value: 1 });
        await until(() => performance.now() - began > 1200, { what: 'the time of an idle session' });
        await session(call);                                    // its begin removes those that are idle
        assert.equal((await idle.raw(rpc('ping'))).status, 404);
        assert.equal((await open.raw(rpc('ping'))).status, 200);
        held.close();
    });

    test('the service ends while streams are open and a call waits', async (t) => {
        const own = await startHearth({ t });
        const call = await own.asKey();
        const waiter = await shellAgent(own, 'sleep 600');
        const s = await session(call);
        const headers = { authorization: `Bearer ${await own.key()}`, accept: 'text/event-stream', ...s.headers };
        const held = await own.sse('/mcp', { headers });
        const listening = await own.sse('/mcp', { method: 'POST', body: { jsonrpc: '2.0', id: 9, method: 'subscriptions/listen', params: { notifications: {}, _meta: meta() } },
            headers: { ...headers, accept, 'content-type': 'application/json', 'mcp-protocol-version': stateless, 'mcp-method': 'subscriptions/listen', 'mcp-session-id': '' } });
        const waiting = s.raw(rpc('tools/call', { name: 'trigger_agent', arguments: { agent_name: waiter, wait_s: 600 } })).catch((error) => error);
        await until(async () => (await admin(own, 'GET', '/api/tasks')).tasks.some((one) => one.status !== 'pending'), { what: 'the task' });
        await own.terminate();
        await held.ended;
        await listening.ended;
        const last = JSON.parse(listening.events.at(-1).data);
        assert.deepEqual([last.id, last.result.resultType], [9, 'complete']);
        await waiting;
    });
});
