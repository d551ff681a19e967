// What an agent is given and what it may report with it (specification, "Agent process inputs", "Task run"; issue 8, section 1).
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startHearth } from './harness.mjs';
import { admin, insert, listeningApp, newApp, newKey, nobodysId, refused, rowBecomes, shellAgent, taskBecomes, tasksOfRow } from './kit.mjs';

let h;
before(async () => { h = await startHearth({ settings: { 'tasks.sweep_s': 0.2 } }); });
after(() => h.stop());

const runsOf = async (row) => (await admin(h, 'GET', `/api/tasks/${(await tasksOfRow(h, row))[0].uuid}`)).runs;
const environment = `printf '{"env":{"app":"%s","name":"%s","workspace":"%s","thread":"%s","prompt":"%s"},"activity":%s}' \
    "$SVC_APP_ID" "$SVC_APP_NAME" "$WORKSPACE_SLUG" "$THREAD_SLUG" "$AGENT_PROMPT" "$ACTIVITY_DATA"`;

// What the SDK sends from within an agent: app id in the header, events by task uuid.
const report = (event, more = '') => `curl -sf -o /dev/null -H 'content-type: application/json' -H "x-app-id: $SVC_APP_ID" \
    -d "{\\"event\\":\\"${event}\\",\\"payload\\":{\\"task_uuid\\":\\"$TASK_UUID\\",\\"machine_id\\":\\"$MACHINE_ID\\"${more}}}" "$SERVER_URL/webhooks/svc" || exit 9`;

test('an agent of a row event has workspace, thread, prompt and app in environment and activity', async () => {
    const { id: app, call } = await listeningApp(h, await shellAgent(h, environment), { name: 'printer', display_name: 'The Printer', handler: { prompt: 'gently' } });
    const { id } = await insert(call, { n: 1 });
    const { env, activity } = (await rowBecomes(call, id, 'completed')).result;
    assert.deepEqual(env, { app, name: 'The Printer', workspace: 'default', thread: `tasks-${app}`, prompt: 'gently' });
    assert.deepEqual([activity.app_id, activity.app_name, activity.workspace_slug, activity.thread_slug, activity.prompt],
        [app, 'The Printer', 'default', `tasks-${app}`, 'gently']);
    const [run] = await runsOf(id);
    assert.deepEqual([run.workspace_slug, run.thread_slug], ['default', `tasks-${app}`]);
    const { threads } = (await (await newKey(h)).call('GET', '/workspaces/default/threads')).body;
    assert.equal(threads.find((thread) => thread.slug === `tasks-${app}`)?.name, 'Tasks of The Printer');
});

test('a handler names workspace and thread of its runs', async () => {
    await admin(h, 'POST', '/api/workspaces', { slug: 'attic', name: 'Attic' });
    const { call } = await listeningApp(h, await shellAgent(h, environment), { handler: { workspaceSlug: 'attic', threadSlug: 'letters' } });
    const { id } = await insert(call, {});
    const { env } = (await rowBecomes(call, id, 'completed')).result;
    assert.deepEqual([env.workspace, env.thread], ['attic', 'letters']);
});

test('a triggered agent has the same', async () => {
    const agent = await shellAgent(h, environment);
    const app = await newApp(h, { display_name: 'Bell' }, ['webhook.trigger']);
    const { task_uuid: uuid } = (await h.api('POST', '/webhooks/svc', { event: 'trigger-agent', app_id: app,
        payload: { raw_data: {}, auto_run: true, agent_name: agent, workspace_slug: 'default', prompt: 'ring' } })).body;
    const { task, runs } = await taskBecomes(h, uuid, 'completed');
    assert.deepEqual(task.result.env, { app, name: 'Bell', workspace: 'default', thread: runs[0].thread_slug, prompt: 'ring' });
    assert.equal(task.result.activity.app_id, app);
});

test('an agent reports start and end as the SDK does, although its app was granted nothing', async () => {
    const agent = await shellAgent(h, `${report('task-start')}; ${report('task-complete', ',\\"result\\":{\\"by\\":\\"sdk\\"}')}`);
    const id = await newApp(h, { config: { agentHandlers: [{ tableName: 'svc_activities', agentId: agent, eventTypes: ['INSERT'] }], backend: { enabled: true } } },
        ['activities.read', 'activities.write']);
    const row = await insert(h.asApp(id), {});
    assert.deepEqual((await rowBecomes(h.asApp(id), row.id, 'completed', 'failed')).result, { by: 'sdk' });
    const [task] = await tasksOfRow(h, row.id);
    assert.equal((await taskBecomes(h, task.uuid, 'completed')).runs.length, 1);
});

test('a failure that the agent reports by the webhook is stored as one', async () => {
    const { call } = await listeningApp(h, await shellAgent(h, report('task-fail', ',\\"error\\":\\"no toner\\"')));
    const { id } = await insert(call, {});
    assert.equal((await rowBecomes(call, id, 'failed')).error_message, 'no toner');
});

test('task events by uuid need no credentials on the webhook, as on /api/external-tasks; a trigger does', async () => {
    const { call } = await newKey(h);
    const { task_uuid: uuid } = (await call('POST', '/webhooks/svc', { event: 'trigger-agent', payload: { raw_data: {} } })).body;
    const send = (event, payload, more = {}) => h.api('POST', '/webhooks/svc', { event, payload, ...more });
    assert.deepEqual((await send('task-start', { task_uuid: uuid })).body, { success: true, task_uuid: uuid, status: 'processing' });
    assert.equal((await send('task-complete', { task_uuid: uuid, result: { n: 1 } }, { event_id: 'e' })).body.status, 'completed');
    assert.equal((await send('task-complete', { task_uuid: uuid }, { event_id: 'e' })).body.status, 'completed');
    refused(await send('task-start', { task_uuid: nobodysId }), 404, 'TASK_NOT_FOUND');
    refused(await send('task-start', { task_uuid: uuid }, { app_id: nobodysId }), 401, 'INVALID_APP_ID');
    refused(await send('trigger-agent', { raw_data: {} }), 401, 'MISSING_APP_ID');
});

test('a task that a key triggers for an app is that app\'s', async () => {
    const app = await newApp(h, { display_name: 'Owner' }, ['webhook.trigger', 'api.task']);
    const { call } = await newKey(h);
    const { task_uuid: uuid } = (await call('POST', '/webhooks/svc', { event: 'trigger-agent', app_id: app, payload: { raw_data: {} } })).body;
    const { task } = (await h.asApp(app)('GET', `/task/${uuid}`)).body;
    assert.deepEqual([task.source_app, task.sourceAppName], [app, 'Owner']);
});

test('a ping says which app it came from', async () => {
    const app = await newApp(h, { name: 'pinger', display_name: 'Pinger' });
    const ping = async (body, headers) => (await h.api('POST', '/webhooks/svc', { event: 'ping', ...body }, headers)).body;
    assert.equal((await ping({ app_id: app })).app_name, 'Pinger');
    assert.equal((await ping({}, { 'x-app-id': app })).app_name, 'Pinger');
    assert.equal((await ping({ app_name: 'Unregistered' })).app_name, 'Unregistered');
    assert.equal((await ping({})).app_name, null);
});

test('database functions take the argument names target_task_id, result_data and error_msg', async () => {
    const app = h.asApp(await newApp(h, {}, ['activities.read', 'activities.write']));
    const other = h.asApp(await newApp(h, {}, ['activities.read', 'activities.write']));
    const call = async (who, name, body) => who('POST', `/activities/functions/svc_fn_${name}`, body);
    const { id } = await insert(app, {});
    assert.equal((await call(other, 'claim_task', { target_task_id: id, machine_id: 'm' })).status, 404, 'only its own rows');
    assert.equal((await call(app, 'claim_task', { target_task_id: id, machine_id: 'm' })).body.result.success, true);
    assert.equal((await call(app, 'complete_task', { target_task_id: id, machine_id: 'm', result_data: { ok: 1 } })).body.result.success, true);
    assert.deepEqual((await app('GET', `/activities/${id}`)).body.data.result, { ok: 1 });
    const { id: second } = await insert(app, {});
    await call(app, 'claim_task', { target_task_id: second, machine_id: 'm' });
    assert.equal((await call(app, 'fail_task', { target_task_id: second, machine_id: 'm', error_msg: 'no' })).body.result.success, true);
    assert.equal((await app('GET', `/activities/${second}`)).body.data.error_message, 'no');
    refused(await call(app, 'claim_task', { machine_id: 'm' }), 400, 'VALIDATION_ERROR', /task_id/);
});
