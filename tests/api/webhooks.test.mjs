// Specification, "Webhook receiver: POST /webhooks/svc", "Webhook event types" and "Task status"; decisions D1 and D5.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startHearth } from './harness.mjs';
import { admin, newApp, newKey, nobodysId, refused, refusedFields, shellAgent, taskBecomes, timeForm, uuidForm } from './kit.mjs';

let h, app, agent;
before(async () => {
    h = await startHearth();
    app = await newApp(h, { name: 'hooks', display_name: 'Hooks' }, ['webhook.trigger', 'api.task']);
    agent = await shellAgent(h, `printf '{"data":%s,"prompt":"%s"}' "$ACTIVITY_DATA" "$AGENT_PROMPT"`);
});
after(() => h.stop());

const send = (event, payload, more, headers) => h.api('POST', '/webhooks/svc', { event, payload, app_id: app, ...more }, headers);
const trigger = async (payload = {}) => {
    const reply = await send('trigger-agent', { raw_data: { n: 1 }, ...payload });
    assert.equal(reply.status, 200, reply.text);
    return reply.body;
};
const task = async (uuid) => (await h.asApp(app)('GET', `/task/${uuid}`)).body;

test('trigger-agent makes a pending task and a calendar event, and starts nothing by itself', async () => {
    const { success, task_uuid: uuid, calendar_event_uuid: event, auto_run: autoRun, message } = await trigger({ raw_data: { text: 'hi' } });
    assert.equal(success, true);
    assert.match(uuid, uuidForm);
    assert.match(event, uuidForm);
    assert.equal(autoRun, false);
    assert.equal(typeof message, 'string');
    const { task: made, runs } = await task(uuid);
    assert.equal(made.status, 'pending');
    assert.equal(made.action_type, 'SDK_TRIGGER');
    assert.equal(made.title, '[Hooks] New Activity');
    assert.equal(made.source_app, app);
    assert.deepEqual(runs, []);
    const { event: shown } = await admin(h, 'GET', `/api/calendar/${event}`);
    assert.equal(shown.title, '[Hooks] New Activity');
    assert.equal(shown.metadata.task_uuid, uuid);
});

test('app_name is the display name in the calendar', async () => {
    const { body } = await send('trigger-agent', { raw_data: {} }, { app_name: 'Spelled Otherwise' });
    assert.equal((await task(body.task_uuid)).task.title, '[Spelled Otherwise] New Activity');
});

test('a prompt may be as long as a variable of the agent can hold', async () => {
    const counter = await shellAgent(h, 'printf %s "$AGENT_PROMPT" | wc -c');
    const longest = 'é'.repeat((131_071 - 'AGENT_PROMPT='.length) / 2);
    const payload = { raw_data: {}, auto_run: true, agent_name: counter, workspace_slug: 'default' };
    const { task: done } = await taskBecomes(h, (await trigger({ ...payload, prompt: longest })).task_uuid, 'completed', 'failed');
    assert.equal(done.status, 'completed', done.error);
    assert.equal(done.result, 131_058);
    refusedFields(await send('trigger-agent', { ...payload, prompt: `${longest}x` }), 'payload.prompt');
});

test('auto_run without a workspace runs in the default one', async () => {
    const { task_uuid: uuid } = await trigger({ auto_run: true, agent_name: agent });
    await taskBecomes(h, uuid, 'completed');
    const { runs } = await task(uuid);
    assert.deepEqual(runs.map((run) => run.workspace_slug), ['default']);
    assert.match(runs[0].thread_slug, /./);
});

test('auto_run starts the agent with the data and the prompt', async () => {
    const { task_uuid: uuid, auto_run: autoRun } = await trigger({ raw_data: { text: 'go' }, auto_run: true, agent_name: agent, workspace_slug: 'default', prompt: 'Be brief' });
    assert.equal(autoRun, true);
    const { task: done, runs } = await taskBecomes(h, uuid, 'completed', 'failed');
    assert.equal(done.status, 'completed', done.error);
    assert.deepEqual(done.result.data.raw_data, { text: 'go' });
    assert.equal(done.result.prompt, 'Be brief');
    assert.equal(runs.length, 1);
    assert.equal(runs[0].agent_name, agent);
    assert.equal(runs[0].workspace_slug, 'default');
    assert.ok(runs[0].thread_slug.length > 0, 'a new thread');
});

test('without thread_slug, and with create_new, each run has a new thread', async () => {
    const slugs = [];
    for (const thread of [undefined, 'create_new', 'create_new']) {
        const { task_uuid: uuid } = await trigger({ auto_run: true, agent_name: agent, workspace_slug: 'default', thread_slug: thread });
        slugs.push((await taskBecomes(h, uuid, 'completed')).runs[0].thread_slug);
    }
    assert.equal(new Set(slugs).size, 3);
    const { threads } = await admin(h, 'GET', '/workspaces/default/threads');
    for (const slug of slugs)
        assert.ok(threads.some((thread) => thread.slug === slug), slug);
});

test('an existing thread is used, an unknown one refused', async () => {
    await admin(h, 'POST', '/api/workspaces/default/threads', { slug: 'letters', name: 'Letters' });
    const { task_uuid: uuid } = await trigger({ auto_run: true, agent_name: agent, workspace_slug: 'default', thread_slug: 'letters' });
    assert.equal((await taskBecomes(h, uuid, 'completed')).runs[0].thread_slug, 'letters');
    refused(await send('trigger-agent', { raw_data: {}, workspace_slug: 'default', thread_slug: 'nope' }), 404, 'THREAD_NOT_FOUND');
    refused(await send('trigger-agent', { raw_data: {}, workspace_slug: 'nope' }), 404, 'WORKSPACE_NOT_FOUND');
    refused(await send('trigger-agent', { raw_data: {}, agent_name: 'nope' }), 404, 'AGENT_NOT_FOUND');
});

test('what trigger-agent needs is told by name', async () => {
    refusedFields(await send('trigger-agent', {}), 'payload.raw_data');
    refusedFields(await send('trigger-agent', { raw_data: 'x' }), 'payload.raw_data');
    refusedFields(await send('trigger-agent', { raw_data: {}, auto_run: true }), 'payload.agent_name');
    refusedFields(await send('trigger-agent', { raw_data: {}, auto_run: 'yes' }), 'payload.auto_run');
    refusedFields(await send('trigger-agent', undefined), 'payload');
    refusedFields(await send('trigger-agent', []), 'payload');
    refusedFields(await send('dance', {}), 'event');
    refusedFields(await h.api('POST', '/webhooks/svc', { app_id: app, payload: {} }), 'event');
});

for (const [events, status] of [
    [['task-start', 'task-started', 'task-progress', 'task-processing', 'task.started', 'task.start', 'start', 'task.progress', 'task.processing', 'processing'], 'processing'],
    [['task-complete', 'task-completed', 'task.completed', 'task.complete', 'complete'], 'completed'],
    [['task-fail', 'task-failed', 'task.failed', 'task.fail', 'fail'], 'failed'],
    [['task-claimed', 'task-claim', 'task.claimed', 'task.claim', 'claim'], 'claimed'],
    [['task-cancel', 'task-canceled', 'task-cancelled', 'task.canceled', 'task.cancelled', 'task.cancel', 'cancel'], 'canceled'],
])
    for (const event of events)
        test(`the event ${event} moves a pending task to ${status}`, async () => {
            const { task_uuid: uuid } = await trigger();
            const reply = await send(event, { task_uuid: uuid, machine_id: 'm1' });
            assert.equal(reply.status, 200, reply.text);
            assert.equal(reply.body.success, true);
            assert.equal(reply.body.task_uuid, uuid);
            assert.equal(reply.body.status, status);
            assert.equal((await task(uuid)).task.status, status);
        });

test('task.trigger is trigger-agent, ping and system.ping are answered without credentials', async () => {
    assert.match((await send('task.trigger', { raw_data: {} })).body.task_uuid, uuidForm);
    for (const event of ['ping', 'system.ping']) {
        const { status, body } = await h.api('POST', '/webhooks/svc', { event });
        assert.equal(status, 200);
        assert.equal(body.success, true);
        assert.match(body.timestamp, timeForm);
    }
});

test('a completed task has the result, a failed one the error', async () => {
    const { task_uuid: one } = await trigger();
    await send('task-complete', { task_uuid: one, result: { n: [1] } });
    assert.deepEqual((await task(one)).task.result, { n: [1] });
    for (const error of ['out of ink', { message: 'out of ink' }]) {
        const { task_uuid: other } = await trigger();
        await send('task-fail', { task_uuid: other, error });
        assert.equal((await task(other)).task.error, 'out of ink');
    }
});

test('complete and fail are accepted from pending, claimed and processing', async () => {
    for (const [first, last] of [['task.claimed', 'task-complete'], ['task-start', 'task-complete'], ['task.claimed', 'task-fail'], ['task-start', 'task-fail']]) {
        const { task_uuid: uuid } = await trigger();
        await send(first, { task_uuid: uuid });
        assert.equal((await send(last, { task_uuid: uuid })).status, 200);
    }
});

test('a repeat of the same end is a success, another end is 409 and changes nothing', async () => {
    for (const [end, same, others] of [['task-complete', 'completed', ['task-fail', 'task.canceled', 'task-start']],
        ['task-fail', 'failed', ['task-complete', 'task.canceled', 'task-start']]]) {
        const { task_uuid: uuid } = await trigger();
        await send(end, { task_uuid: uuid, result: { n: 1 }, error: 'first' });
        const before = await task(uuid);
        const again = await send(end, { task_uuid: uuid, result: { n: 2 }, error: 'second' });
        assert.equal(again.status, 200);
        assert.equal(again.body.status, same);
        for (const other of others)
            refused(await send(other, { task_uuid: uuid }), 409, 'TASK_ALREADY_FINISHED');
        assert.deepEqual(await task(uuid), before);
    }
});

test('an unknown task is 404, a missing or malformed one is told by name', async () => {
    for (const event of ['task-start', 'task-complete', 'task-fail'])
        refused(await send(event, { task_uuid: nobodysId }), 404, 'TASK_NOT_FOUND');
    refusedFields(await send('task-start', {}), 'payload.task_uuid');
    refusedFields(await send('task-start', { task_uuid: 'x' }), 'payload.task_uuid');
});

test('another app\'s task is 404', async () => {
    const { task_uuid: uuid } = await trigger();
    const other = await newApp(h, {}, ['webhook.trigger']);
    const theirs = await send('task-complete', { task_uuid: uuid }, { app_id: other });
    refused(theirs, 404, 'TASK_NOT_FOUND');
    const nobodys = await send('task-complete', { task_uuid: nobodysId }, { app_id: other });
    assert.deepEqual(theirs.body, { ...nobodys.body, error: nobodys.body.error.replace(nobodysId, uuid) });
    assert.equal((await task(uuid)).task.status, 'pending');
});

test('an event_id makes a delivery idempotent', async () => {
    const first = await send('trigger-agent', { raw_data: {} }, { event_id: 'delivery-1' });
    const again = await send('trigger-agent', { raw_data: { other: true } }, { event_id: 'delivery-1' });
    assert.equal(again.status, first.status);
    assert.deepEqual(again.body, { ...first.body, deduplicated: true });
    const byHeader = await send('trigger-agent', { raw_data: {} }, {}, { 'x-svc-event-id': 'delivery-2' });
    const repeated = await send('trigger-agent', { raw_data: {} }, {}, { 'x-svc-event-id': 'delivery-2' });
    assert.deepEqual(repeated.body, { ...byHeader.body, deduplicated: true });
    assert.notEqual(byHeader.body.task_uuid, first.body.task_uuid);
});

test('of deliveries with one event_id at the same time one acts', async () => {
    const replies = await Promise.all(Array.from({ length: 10 }, () => send('trigger-agent', { raw_data: {} }, { event_id: 'storm' })));
    const uuids = new Set(replies.filter((reply) => reply.status === 200).map((reply) => reply.body.task_uuid));
    assert.equal(uuids.size, 1);
    for (const reply of replies.filter((one) => one.status !== 200))
        refused(reply, 409, 'DELIVERY_IN_PROGRESS');
});

test('an event_id is an app\'s own, and a refused delivery may be sent again', async () => {
    const other = await newApp(h, {}, ['webhook.trigger']);
    await send('trigger-agent', { raw_data: {} }, { event_id: 'shared' });
    assert.equal((await send('trigger-agent', { raw_data: {} }, { event_id: 'shared', app_id: other })).body.deduplicated, undefined);
    refused(await send('trigger-agent', {}, { event_id: 'second try' }), 400, 'VALIDATION_ERROR');
    assert.equal((await send('trigger-agent', { raw_data: {} }, { event_id: 'second try' })).status, 200);
});

test('the same event_id is answered the same after a restart', async (t) => {
    const again = await startHearth({ t });
    const { call } = await newKey(again);
    const body = { event: 'trigger-agent', event_id: 'kept', payload: { raw_data: {} } };
    const first = await call('POST', '/webhooks/svc', body);
    await again.kill();
    await again.start();
    const second = await again.api('POST', '/webhooks/svc', body, { authorization: (await newKey(again)).key });
    assert.ok(second.status === 401, 'another key is another source');
    assert.deepEqual((await call('POST', '/webhooks/svc', body).catch(() => null))?.body ?? null, { ...first.body, deduplicated: true });
});

test('the caller is known by body, header or key, and needs the permission', async () => {
    const payload = { raw_data: {} };
    refused(await h.api('POST', '/webhooks/svc', { event: 'trigger-agent', payload }), 401, 'MISSING_APP_ID');
    refused(await h.api('POST', '/webhooks/svc', { event: 'trigger-agent', payload, app_id: nobodysId }), 401, 'INVALID_APP_ID');
    const wrong = { authorization: 'Bearer nonsense' };
    refused(await h.api('POST', '/webhooks/svc', { event: 'trigger-agent', payload }, wrong), 401, 'INVALID_API_KEY');
    assert.equal((await h.api('POST', '/webhooks/svc', { event: 'trigger-agent', payload, app_id: app }, wrong)).status, 200);
    const { task_uuid: uuid } = await trigger(payload);
    assert.equal((await h.api('POST', '/webhooks/svc', { event: 'task-start', payload: { task_uuid: uuid } }, wrong)).status, 200, 'the uuid identifies');
    refused(await h.api('POST', '/webhooks/svc', { event: 'task-start', payload: { task_uuid: uuid }, app_id: nobodysId }, wrong), 401, 'INVALID_API_KEY');
    const poor = await newApp(h);
    assert.equal(refused(await send('trigger-agent', payload, { app_id: poor }), 403, 'PERMISSION_REQUIRED').permission, 'webhook.trigger');
    assert.equal((await h.asApp(app)('POST', '/webhooks/svc', { event: 'trigger-agent', payload })).status, 200);
    const { call } = await newKey(h);
    assert.equal((await call('POST', '/webhooks/svc', { event: 'trigger-agent', payload })).status, 200);
});

test('the webhook answers at its configured word and at svc', async (t) => {
    const renamed = await startHearth({ t, settings: { 'identity.token': 'anvil', 'identity.abbr': 'anv' } });
    const { call } = await newKey(renamed);
    for (const path of ['/webhooks/anvil', '/webhooks/svc', '/api/webhooks/anvil', '/api/webhooks/svc'])
        assert.equal((await call('POST', path, { event: 'trigger-agent', payload: { raw_data: {} } })).status, 200, path);
    refused(await call('POST', '/webhooks/other', { event: 'ping' }), 404, 'NOT_FOUND');
    const sent = { event: 'trigger-agent', payload: { raw_data: {} } };
    await call('POST', '/webhooks/anvil', sent, { 'x-anv-event-id': 'e1' });
    assert.equal((await call('POST', '/webhooks/anvil', sent, { 'x-anv-event-id': 'e1' })).body.deduplicated, true);
});

// ---- POST /api/external-tasks/:taskUuid/webhook ----

const external = (uuid, body) => h.api('POST', `/api/external-tasks/${uuid}/webhook`, body);

test('an agent\'s report needs the task\'s uuid only', async () => {
    const { task_uuid: uuid } = await trigger();
    const { status, body } = await external(uuid, { action: 'completed', table_name: 'svc_activities', machine_id: 'm1', data: { result: { ok: true } } });
    assert.equal(status, 200);
    assert.deepEqual(body, { success: true, status: 'completed' });
    assert.deepEqual((await task(uuid)).task.result, { ok: true });
});

for (const [data, result] of [
    [{ result: { a: 1 }, extra: 2 }, { a: 1, extra: 2 }],
    [{ only: 'extras' }, { only: 'extras' }],
    [{ result: 'text' }, 'text'],
    [{ result: [1, 2] }, [1, 2]],
    [{}, {}],
    [undefined, {}],
])
    test(`the data ${JSON.stringify(data)} becomes the result ${JSON.stringify(result)}`, async () => {
        const { task_uuid: uuid } = await trigger();
        assert.equal((await external(uuid, { action: 'completed', data })).status, 200);
        assert.deepEqual((await task(uuid)).task.result, result);
    });

test('a failure has its message', async () => {
    for (const data of [{ error: { message: 'jam' } }, { error: 'jam' }]) {
        const { task_uuid: uuid } = await trigger();
        assert.deepEqual((await external(uuid, { action: 'failed', data })).body, { success: true, status: 'failed' });
        assert.equal((await task(uuid)).task.error, 'jam');
    }
});

test('the external webhook is idempotent and refuses another end', async () => {
    const { task_uuid: uuid } = await trigger();
    for (let i = 0; i < 2; i++)
        assert.deepEqual((await external(uuid, { action: 'completed', data: { result: { i } } })).body, { success: true, status: 'completed' });
    refused(await external(uuid, { action: 'failed', data: {} }), 409, 'TASK_ALREADY_FINISHED');
    assert.deepEqual((await task(uuid)).task.result, { i: 0 });
});

test('the external webhook knows the aliases and no other action', async () => {
    for (const [action, status] of [['complete', 'completed'], ['fail', 'failed'], ['started', 'processing'], ['canceled', 'canceled']]) {
        const { task_uuid: uuid } = await trigger();
        assert.deepEqual((await external(uuid, { action, data: {} })).body, { success: true, status });
    }
    const { task_uuid: uuid } = await trigger();
    for (const action of ['trigger-agent', 'ping', 'dance'])
        assert.equal(refusedFields(await external(uuid, { action }), 'action').error, '`action` must be completed, failed, processing or canceled');
    refusedFields(await external(uuid, {}), 'action');
    refused(await external(nobodysId, { action: 'completed' }), 404, 'TASK_NOT_FOUND');
    refused(await external('not-a-uuid', { action: 'completed' }), 404, 'TASK_NOT_FOUND');
});
