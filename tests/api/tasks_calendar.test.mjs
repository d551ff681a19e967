// Tasks and calendar events as a person sees and edits them (specification, "Task", "Calendar event"; decision D5; issue, section 7).
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startHearth } from './harness.mjs';
import { admin, newApp, nobodysId, refused, refusedFields, shellAgent, taskBecomes, timeForm, uuidForm } from './kit.mjs';

let h, app;
before(async () => {
    h = await startHearth();
    app = await newApp(h, { display_name: 'Desk' }, ['webhook.trigger', 'api.task']);
});
after(() => h.stop());

async function trigger(from = app, payload = {}) {
    return (await h.api('POST', '/webhooks/svc', { event: 'trigger-agent', app_id: from, payload: { raw_data: { n: 1 }, ...payload } })).body;
}
const event = async (uuid) => (await admin(h, 'GET', `/api/calendar/${uuid}`)).event;
const edit = (uuid, change) => h.socket('PATCH', `/api/calendar/${uuid}`, change);

test('a task has the specified members', async () => {
    const { task_uuid: uuid } = await trigger();
    const { task, runs } = (await h.asApp(app)('GET', `/task/${uuid}`)).body;
    assert.match(task.uuid, uuidForm);
    assert.deepEqual([task.title, task.status, task.action_type, task.source_app, task.error], ['[Desk] New Activity', 'pending', 'SDK_TRIGGER', app, null]);
    assert.match(task.created_at, timeForm);
    assert.match(task.updated_at, timeForm);
    assert.equal(task.sourceAppName, 'Desk');
    assert.deepEqual(task.attempted_by, []);
    assert.equal(task.retry_count, 0);
    assert.deepEqual(runs, []);
});

test('the list of tasks is filtered by status and app, newest first, in pages', async () => {
    const mine = await newApp(h, {}, ['webhook.trigger']);
    const uuids = [];
    for (let i = 0; i < 4; i++)
        uuids.unshift((await trigger(mine)).task_uuid);
    await h.api('POST', '/webhooks/svc', { event: 'task-fail', app_id: mine, payload: { task_uuid: uuids[3] } });
    const list = async (query) => (await admin(h, 'GET', `/api/tasks?app=${mine}&${query}`)).tasks.map((task) => task.uuid);
    assert.deepEqual(await list(''), uuids);
    assert.deepEqual(await list('status=pending'), uuids.slice(0, 3));
    assert.deepEqual(await list('status=failed'), [uuids[3]]);
    assert.deepEqual(await list('status=nonsense'), []);
    assert.deepEqual(await list('limit=2'), uuids.slice(0, 2));
    assert.deepEqual(await list('limit=2&offset=3'), uuids.slice(3));
    assert.deepEqual(await list('quarantined=true'), []);
    refusedFields(await h.socket('GET', '/api/tasks?limit=501'), 'limit');
    refusedFields(await h.socket('GET', '/api/tasks?limit=0'), 'limit');
});

test('an unknown task is 404 everywhere', async () => {
    for (const [method, path] of [['GET', ''], ['POST', '/run'], ['POST', '/reject'], ['POST', '/replay']])
        refused(await h.socket(method, `/api/tasks/${nobodysId}${path}`), 404, 'TASK_NOT_FOUND');
    refused(await h.asApp(app)('GET', `/task/${nobodysId}`), 404, 'TASK_NOT_FOUND');
});

test('a task that is not waiting is neither run nor rejected, one that did not fail is not replayed', async () => {
    const { task_uuid: uuid } = await trigger();
    refused(await h.socket('POST', `/api/tasks/${uuid}/replay`), 409, 'TASK_NOT_FAILED');
    await h.api('POST', '/webhooks/svc', { event: 'task-complete', app_id: app, payload: { task_uuid: uuid } });
    refused(await h.socket('POST', `/api/tasks/${uuid}/run`, { agent_name: 'x' }), 409, 'TASK_NOT_WAITING');
    refused(await h.socket('POST', `/api/tasks/${uuid}/reject`), 409, 'TASK_NOT_WAITING');
    refused(await h.socket('POST', `/api/tasks/${uuid}/replay`), 409, 'TASK_NOT_FAILED');
});

test('a task the person runs is run by the agent named', async () => {
    const agent = await shellAgent(h, `echo '{"ok":1}'`);
    const { task_uuid: uuid } = await trigger();
    await admin(h, 'POST', `/api/tasks/${uuid}/run`, { agent_name: agent });
    const { task, runs } = await taskBecomes(h, uuid, 'completed');
    assert.deepEqual(task.result, { ok: 1 });
    assert.equal(runs[0].agent_name, agent);
    const { result, ...listed } = task;
    const { tasks } = await admin(h, 'GET', '/api/tasks');
    assert.deepEqual(tasks.find((one) => one.uuid === uuid), listed, 'a list leaves results out');
});

test('a failed trigger task is replayed', async () => {
    const agent = await shellAgent(h, 'exit 3');
    const { task_uuid: uuid } = await trigger(app, { auto_run: true, agent_name: agent, workspace_slug: 'default' });
    await taskBecomes(h, uuid, 'failed');
    await admin(h, 'POST', '/api/agents', { name: agent, command: '/bin/true' });
    await admin(h, 'POST', `/api/tasks/${uuid}/replay`);
    const { runs } = await taskBecomes(h, uuid, 'completed');
    assert.deepEqual(runs.map((run) => run.status).sort(), ['completed', 'failed']);
});

test('a calendar event has the decided members', async () => {
    const { calendar_event_uuid: uuid, task_uuid: task } = await trigger();
    const shown = await event(uuid);
    assert.deepEqual(Object.keys(shown).filter((name) => name !== 'task_uuid').sort(), ['all_day', 'color', 'created_at', 'description', 'end_date',
        'metadata', 'reminders', 'repeat', 'start_date', 'title', 'updated_at', 'uuid']);
    assert.equal(shown.uuid, uuid);
    assert.match(shown.start_date, timeForm);
    assert.equal(shown.all_day, false);
    assert.equal(shown.metadata.task_uuid, task);
});

test('an event is edited member by member', async () => {
    const { calendar_event_uuid: uuid } = await trigger();
    const before = await event(uuid);
    assert.equal((await edit(uuid, { title: 'Call Ann', description: 'about tea' })).status, 200);
    let shown = await event(uuid);
    assert.deepEqual([shown.title, shown.description, shown.start_date], ['Call Ann', 'about tea', before.start_date]);
    await edit(uuid, { start_date: '2027-03-01T10:00:00+01:00', end_date: '2027-03-01T11:00:00Z', all_day: true, color: '#ff8800', repeat: 'weekly', reminders: [10, 60] });
    shown = await event(uuid);
    assert.equal(Date.parse(shown.start_date), Date.parse('2027-03-01T09:00:00Z'));
    assert.deepEqual([shown.all_day, shown.color, shown.repeat, shown.reminders], [true, '#ff8800', 'weekly', [10, 60]]);
    await edit(uuid, { all_day: false, metadata: { prompt: 'gently' } });
    shown = await event(uuid);
    assert.equal(shown.all_day, false);
    assert.equal(shown.metadata.prompt, 'gently');
    assert.equal(shown.metadata.source_app, app, 'metadata that is not named stays');
    assert.ok(shown.updated_at >= before.updated_at);
});

test('an event ends after it starts, and its dates are dates', async () => {
    const { calendar_event_uuid: uuid } = await trigger();
    refusedFields(await edit(uuid, { start_date: '2027-03-02', end_date: '2027-03-01' }), 'end_date');
    refusedFields(await edit(uuid, { start_date: 'soon' }), 'start_date');
    refusedFields(await edit(uuid, { end_date: '2027-02-30T00:00:00Z' }), 'end_date');
    refusedFields(await edit(uuid, { title: '' }), 'title');
    refusedFields(await edit(uuid, { reminders: 'x', metadata: [], all_day: 'no' }), 'reminders', 'metadata', 'all_day');
});

test('the list has the events that overlap a range', async () => {
    const at = async (start_date, end_date) => {
        const { calendar_event_uuid: uuid } = await trigger();
        assert.equal((await edit(uuid, { start_date, end_date })).status, 200);
        return uuid;
    };
    const [early, long, late] = [await at('2031-01-01T00:00:00Z', '2031-01-01T01:00:00Z'), await at('2031-01-01T12:00:00Z', '2031-01-05T00:00:00Z'), await at('2031-01-06T00:00:00Z')];
    const between = async (from, to) => (await admin(h, 'GET', `/api/calendar?from=${from}&to=${to}`)).events.map((one) => one.uuid);
    assert.deepEqual(await between('2031-01-02T00:00:00Z', '2031-01-03T00:00:00Z'), [long]);
    assert.deepEqual(await between('2031-01-01T00:00:00Z', '2031-01-07T00:00:00Z'), [early, long, late]);
    assert.deepEqual(await between('2031-01-05T01:00:00Z', '2031-01-05T02:00:00Z'), []);
    refusedFields(await h.socket('GET', '/api/calendar?from=yesterday'), 'from');
});

test('a deleted event is gone, its task stays', async () => {
    const { calendar_event_uuid: uuid, task_uuid: task } = await trigger();
    await admin(h, 'DELETE', `/api/calendar/${uuid}`);
    refused(await h.socket('GET', `/api/calendar/${uuid}`), 404, 'EVENT_NOT_FOUND');
    refused(await h.socket('DELETE', `/api/calendar/${uuid}`), 404, 'EVENT_NOT_FOUND');
    assert.equal((await admin(h, 'GET', `/api/tasks/${task}`)).task.status, 'pending');
    const agent = await shellAgent(h, 'echo {}');
    await admin(h, 'POST', `/api/tasks/${task}/run`, { agent_name: agent });
    await taskBecomes(h, task, 'completed');
});

test('an unknown event is 404 everywhere', async () => {
    for (const [method, path] of [['GET', ''], ['PATCH', ''], ['DELETE', ''], ['POST', '/run'], ['POST', '/reject']])
        refused(await h.socket(method, `/api/calendar/${nobodysId}${path}`, method === 'PATCH' ? { title: 'x' } : {}), 404, 'EVENT_NOT_FOUND');
});
