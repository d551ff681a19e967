// What may change the state of a task and what may not (specification, "States and transitions"; issue 8, section 1).
import assert from 'node:assert/strict';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { sharedHearth, startHearth, until } from './harness.mjs';
import { admin, insert, isAlive, listeningApp, newApp, newKey, refused, rowBecomes, shellAgent, taskBecomes, tasksOfRow, unique } from './kit.mjs';

const brisk = { 'tasks.heartbeat_s': 0.2, 'tasks.sweep_s': 0.2 };
const shared = sharedHearth({ settings: brisk });
const shown = async (h, uuid) => admin(h, 'GET', `/api/tasks/${uuid}`);
const taskOf = async (h, row) => (await tasksOfRow(h, row))[0].uuid;

async function agentHasPid(h, uuid) {
    return until(async () => (await shown(h, uuid)).runs.at(-1)?.pid, { what: 'the agent runs' });
}


for (const word of ['processed', 'archived', 'PENDING', 'canceled'])
    test(`a completed task keeps its end and its result when its row gets the status ${word}`, async (t) => {
        const h = await shared(t);
        const { call } = await listeningApp(h, await shellAgent(h, `echo '{"kept":true}'`));
        const { id } = await insert(call, {});
        await rowBecomes(call, id, 'completed');
        const uuid = await taskOf(h, id);
        await taskBecomes(h, uuid, 'completed');
        assert.equal((await call('PATCH', `/activities/${id}`, { status: word })).body.data.status, word);
        const other = await insert(call, {});
        await taskBecomes(h, await taskOf(h, other.id), 'completed');           // the event of the change was handled before
        const { task, runs } = await shown(h, uuid);
        assert.deepEqual([task.status, task.result, task.error, runs.length], ['completed', { kept: true }, null, 1]);
    });

test('a failed task stays failed when its row gets a word of the app', async (t) => {
    const h = await shared(t);
    const { call } = await listeningApp(h, await shellAgent(h, 'echo "no ink" >&2; exit 1'));
    const { id } = await insert(call, {});
    await rowBecomes(call, id, 'failed');
    const uuid = await taskOf(h, id);
    await taskBecomes(h, uuid, 'failed');
    await call('PATCH', `/activities/${id}`, { status: 'put aside' });
    const other = await insert(call, {});
    await taskBecomes(h, await taskOf(h, other.id), 'failed');
    const { task } = await shown(h, uuid);
    assert.deepEqual([task.status, task.error], ['failed', 'no ink']);
});

test('a claimed row that is set to failed counts as a failure of its machine, which does not try it again', async (t) => {
    const h = await startHearth({ t, settings: { ...brisk, 'identity.machine_id': 'm1' } });
    const door = join(h.home, 'door'), closed = join(h.home, 'closed');
    const { call } = await listeningApp(h, await shellAgent(h, `[ -e ${door} ] && { echo '{"again":true}'; exit 0; }; : >${closed}; exec sleep 600`));
    const { id } = await insert(call, {});
    await rowBecomes(call, id, 'claimed');
    const uuid = await taskOf(h, id);
    const pid = await agentHasPid(h, uuid);
    await until(() => existsSync(closed), { what: 'the agent has found the door closed' });
    writeFileSync(door, '');
    const { data } = (await call('PATCH', `/activities/${id}`, { status: 'failed', error_message: 'the printer burns' })).body;
    assert.deepEqual([data.status, data.attempted_by, data.retry_count, data.error_message, data.locked_by],
        ['failed', ['m1'], 1, 'the printer burns', null]);
    await until(() => !isAlive(pid), { what: 'the agent is stopped' });
    const { task, runs } = await taskBecomes(h, uuid, 'failed');
    assert.deepEqual([task.error, task.attempted_by, task.retry_count], ['the printer burns', ['m1'], 1]);
    const other = await insert(call, {});
    await rowBecomes(call, other.id, 'completed');
    await admin(h, 'POST', '/api/tasks/sweep');
    const third = await insert(call, {});
    await rowBecomes(call, third.id, 'completed');
    assert.equal((await call('GET', `/activities/${id}`)).body.data.status, 'failed');
    assert.equal((await shown(h, uuid)).runs.length, 1);
    assert.equal(runs.length, 1);
});

test('a failure that says no reason has one all the same', async (t) => {
    const h = await shared(t);
    const { call } = await listeningApp(h, await shellAgent(h, 'exec sleep 600'));
    const { id } = await insert(call, {});
    await rowBecomes(call, id, 'claimed');
    const { data } = (await call('PATCH', `/activities/${id}`, { status: 'failed' })).body;
    assert.match(data.error_message, /set to failed/);
});

test('a row that somebody outside works on makes its task processing, in the answer and afterwards', async (t) => {
    const h = await shared(t);
    const { id: app, call } = await listeningApp(h, null);
    const { id } = await insert(call, {});
    const uuid = await taskOf(h, id);
    const report = (event, payload) => h.api('POST', '/webhooks/svc', { event, app_id: app, payload: { task_uuid: uuid, machine_id: 'elsewhere', ...payload } });
    const started = await report('task-start', {});
    assert.deepEqual([started.status, started.body.status], [200, 'processing']);
    const other = await insert(call, {});
    await tasksOfRow(h, other.id);                              // the event of the claim was handled before
    await admin(h, 'POST', '/api/tasks/sweep');
    await tasksOfRow(h, (await insert(call, {})).id);
    const { task, runs } = (await call('GET', `/task/${uuid}`)).body;
    assert.equal(task.status, 'processing');
    assert.deepEqual(runs.map((run) => [run.status, run.machine_id]), [['running', 'elsewhere']]);
    assert.equal((await report('task-complete', { result: { by: 'hand' } })).status, 200);
    const after = (await call('GET', `/task/${uuid}`)).body;
    assert.deepEqual([after.task.status, after.task.result], ['completed', { by: 'hand' }]);
    assert.deepEqual(after.runs.map((run) => [run.status, run.error]), [['completed', null]]);
});

test('work that is reported from outside has a run, also when only its end is reported', async (t) => {
    const h = await shared(t);
    const { call } = await newKey(h);
    for (const [event, status, error] of [['task-complete', 'completed', null], ['task-fail', 'failed', 'no paper']]) {
        const { task_uuid: uuid } = (await call('POST', '/webhooks/svc', { event: 'trigger-agent', payload: { raw_data: {} } })).body;
        await call('POST', '/webhooks/svc', { event, payload: { task_uuid: uuid, machine_id: 'laptop', error: error ?? undefined } });
        const { runs } = (await call('GET', `/task/${uuid}`)).body;
        assert.deepEqual(runs.map((run) => [run.status, run.machine_id, run.error]), [[status, 'laptop', error]]);
    }
});

test('a triggered task that a program started and forgot waits again after tasks.stale_after_s', async (t) => {
    const h = await startHearth({ t, settings: { ...brisk, 'tasks.stale_after_s': 4 } });
    const { call } = await newKey(h);
    const send = (event, payload) => call('POST', '/webhooks/svc', { event, payload });
    const { task_uuid: forgotten } = (await send('trigger-agent', { raw_data: {} })).body;
    const agent = await shellAgent(h, `echo '{"by":"agent"}'`);
    await send('task-start', { task_uuid: forgotten, machine_id: 'gone' });
    assert.equal((await shown(h, forgotten)).task.status, 'processing');
    const { task, runs } = await taskBecomes(h, forgotten, 'pending');
    assert.equal(task.review, 'waiting', 'a person is asked again');
    assert.deepEqual(runs.map((run) => run.status), ['failed']);
    assert.match(runs[0].error, /no report/i);
    await admin(h, 'POST', `/api/tasks/${forgotten}/run`, { agent_name: agent });
    assert.deepEqual((await taskBecomes(h, forgotten, 'completed')).task.result, { by: 'agent' });
});

test('a triggered task that goes on reporting is left to the one who works on it', async (t) => {
    const h = await startHearth({ t, settings: { ...brisk, 'tasks.stale_after_s': 4 } });
    const { call } = await newKey(h);
    const send = (event, payload) => call('POST', '/webhooks/svc', { event, payload });
    const { task_uuid: uuid } = (await send('trigger-agent', { raw_data: {} })).body;
    const { task_uuid: forgotten } = (await send('trigger-agent', { raw_data: {} })).body;
    await send('task-start', { task_uuid: uuid });
    await send('task-start', { task_uuid: forgotten });
    await until(async () => {
        assert.equal((await send('task.progress', { task_uuid: uuid })).status, 200);
        assert.equal((await shown(h, uuid)).task.status, 'processing');
        return (await shown(h, forgotten)).task.status === 'pending';
    }, { what: 'the other one is taken back', everyMs: 100 });
    assert.equal((await shown(h, uuid)).task.status, 'processing');
});

test('a running agent is canceled: it ends, and its task and row say so', async (t) => {
    const h = await shared(t);
    const { call } = await listeningApp(h, await shellAgent(h, 'exec sleep 600'));
    const { id } = await insert(call, {});
    await rowBecomes(call, id, 'claimed');
    const uuid = await taskOf(h, id);
    const pid = await agentHasPid(h, uuid);
    await admin(h, 'POST', `/api/tasks/${uuid}/cancel`, { reason: 'not today' });
    await until(() => !isAlive(pid), { what: 'the agent is stopped' });
    const { task, runs } = await taskBecomes(h, uuid, 'canceled');
    assert.equal(task.error, 'not today');
    assert.deepEqual([runs.length, runs[0].status], [1, 'failed']);
    const { data } = (await call('GET', `/activities/${id}`)).body;
    assert.deepEqual([data.status, data.error_message, data.attempted_by], ['canceled', 'not today', []]);
});

test('a triggered agent, a waiting task and one at work outside are canceled alike', async (t) => {
    const h = await startHearth({ t, settings: brisk });
    const { call } = await newKey(h);
    const agent = await shellAgent(h, 'exec sleep 600');
    const send = async (event, payload) => (await call('POST', '/webhooks/svc', { event, payload })).body;
    const { task_uuid: running } = await send('trigger-agent', { raw_data: {}, auto_run: true, agent_name: agent, workspace_slug: 'default' });
    const pid = await agentHasPid(h, running);
    const { task_uuid: behind } = await send('trigger-agent', { raw_data: {}, auto_run: true, agent_name: agent, workspace_slug: 'default' });
    const { task_uuid: asked } = await send('trigger-agent', { raw_data: {} });
    const { task_uuid: outside } = await send('trigger-agent', { raw_data: {} });
    await send('task-start', { task_uuid: outside });
    for (const uuid of [asked, outside, behind, running]) {
        await admin(h, 'POST', `/api/tasks/${uuid}/cancel`);
        assert.equal((await taskBecomes(h, uuid, 'canceled')).task.error, 'Canceled by a person.');
        await admin(h, 'POST', `/api/tasks/${uuid}/cancel`);            // a repeat is a success
    }
    await until(() => !isAlive(pid), { what: 'the agent is stopped' });
});

test('each state is told what can be done with its task', async (t) => {
    const h = await startHearth({ t, settings: brisk });
    const { call } = await newKey(h);
    const agent = await shellAgent(h, 'exec sleep 600');
    const send = async (event, payload) => (await call('POST', '/webhooks/svc', { event, payload })).body;
    const trigger = async () => (await send('trigger-agent', { raw_data: {} })).task_uuid;
    const act = (uuid, what, body) => h.socket('POST', `/api/tasks/${uuid}/${what}`, body);

    const asked = await trigger();
    refused(await act(asked, 'replay'), 409, 'TASK_NOT_FAILED', /waits for a person.*task run.*task reject/);
    const outside = await trigger();
    await send('task-start', { task_uuid: outside });
    for (const [what, code] of [['run', 'TASK_NOT_WAITING'], ['reject', 'TASK_NOT_WAITING'], ['replay', 'TASK_NOT_FAILED']])
        refused(await act(outside, what, {}), 409, code, /is being worked on.*task cancel/);
    const failed = await trigger();
    await send('task-fail', { task_uuid: failed });
    for (const what of ['run', 'reject'])
        refused(await act(failed, what, {}), 409, 'TASK_NOT_WAITING', /has failed.*task replay/);
    refused(await act(failed, 'cancel'), 409, 'TASK_ALREADY_FINISHED', /has failed/);
    const done = await trigger();
    await send('task-complete', { task_uuid: done });
    for (const [what, code] of [['run', 'TASK_NOT_WAITING'], ['reject', 'TASK_NOT_WAITING'], ['replay', 'TASK_NOT_FAILED'], ['cancel', 'TASK_ALREADY_FINISHED']])
        refused(await act(done, what, {}), 409, code, /is completed/);
    const first = await send('trigger-agent', { raw_data: {}, auto_run: true, agent_name: agent, workspace_slug: 'default' });
    await agentHasPid(h, first.task_uuid);
    const queued = await send('trigger-agent', { raw_data: {}, auto_run: true, agent_name: agent, workspace_slug: 'default' });
    refused(await act(queued.task_uuid, 'run'), 409, 'TASK_NOT_WAITING', /waits for a place.*starts by itself/);
    await admin(h, 'POST', `/api/tasks/${queued.task_uuid}/reject`);
    assert.equal((await shown(h, queued.task_uuid)).task.status, 'canceled');
});

test('an agent that does not exist is told before anything changes', async (t) => {
    const h = await shared(t);
    const app = await newApp(h, {}, ['webhook.trigger', 'api.task']);
    const { task_uuid: uuid } = (await h.api('POST', '/webhooks/svc', { event: 'trigger-agent', app_id: app, payload: { raw_data: {} } })).body;
    refused(await h.socket('POST', `/api/tasks/${uuid}/run`, { agent_name: 'typo' }), 404, 'AGENT_NOT_FOUND', /typo/);
    const { task } = await shown(h, uuid);
    assert.deepEqual([task.status, task.review, task.agent_name], ['pending', 'waiting', null]);

    const agent = await shellAgent(h, 'exit 1');
    await admin(h, 'POST', `/api/tasks/${uuid}/run`, { agent_name: agent });
    await taskBecomes(h, uuid, 'failed');
    await admin(h, 'DELETE', `/api/agents/${agent}`);
    refused(await h.socket('POST', `/api/tasks/${uuid}/replay`), 404, 'AGENT_NOT_FOUND', new RegExp(agent));
    assert.equal((await shown(h, uuid)).task.status, 'failed');
    const better = await shellAgent(h, 'echo {}');
    await admin(h, 'POST', `/api/tasks/${uuid}/replay`, { agent_name: better });
    assert.equal((await taskBecomes(h, uuid, 'completed')).task.agent_name, better);
});

test('an agent in use is removed with force only, and its users are listed', async (t) => {
    const h = await shared(t);
    const agent = await shellAgent(h, 'echo {}');
    await newApp(h, { name: 'printer', config: { agentHandlers: [{ tableName: 'svc_activities', agentId: agent, eventTypes: ['INSERT'] }], backend: { enabled: true } } });
    refused(await h.socket('DELETE', `/api/agents/${agent}`), 409, 'AGENT_IN_USE', /printer/);
    const denied = await h.cli('agent', 'remove', agent);
    assert.equal(denied.code, 1);
    assert.match(denied.stderr, /printer.*--force/s);
    assert.equal((await h.cli('agent', 'remove', agent, '--force')).code, 0);
    refused(await h.socket('GET', `/api/agents/${agent}`), 404, 'AGENT_NOT_FOUND');
});

test('an agent that a waiting task names is in use', async (t) => {
    const h = await shared(t);
    const { call } = await newKey(h);
    const agent = await shellAgent(h, 'echo {}');
    await call('POST', '/webhooks/svc', { event: 'trigger-agent', payload: { raw_data: {}, agent_name: agent } });
    refused(await h.socket('DELETE', `/api/agents/${agent}`), 409, 'AGENT_IN_USE', /1 task/);
    await admin(h, 'DELETE', `/api/agents/${agent}?force=true`);
});

test('all failed tasks of an app are replayed at once', async (t) => {
    const h = await startHearth({ t });
    const door = join(h.home, unique('door'));
    const agent = await shellAgent(h, `[ -e ${door} ] && exec echo {}; exit 1`);
    const mine = await newApp(h, { name: 'mine' }, ['webhook.trigger']), other = await newApp(h, { name: 'other' }, ['webhook.trigger']);
    const trigger = async (app) => (await h.api('POST', '/webhooks/svc', { event: 'trigger-agent', app_id: app,
        payload: { raw_data: {}, auto_run: true, agent_name: agent, workspace_slug: 'default' } })).body.task_uuid;
    const [one, two, theirs] = [await trigger(mine), await trigger(mine), await trigger(other)];
    for (const uuid of [one, two, theirs])
        await taskBecomes(h, uuid, 'failed');
    writeFileSync(door, '');
    const done = await h.cli('task', 'replay', '--all', '--app', 'mine', '--status', 'failed');
    assert.deepEqual([done.code, done.stdout.trim()], [0, '2 tasks will be done again.'], done.stderr);
    for (const uuid of [one, two])
        await taskBecomes(h, uuid, 'completed');
    assert.equal((await shown(h, theirs)).task.status, 'failed');
    assert.deepEqual((await admin(h, 'POST', '/api/tasks/replay', { status: 'failed' })).replayed, 1);
    await taskBecomes(h, theirs, 'completed');
    refused(await h.socket('POST', '/api/tasks/replay', { status: 'completed' }), 400, 'VALIDATION_ERROR');
    refused(await h.socket('POST', '/api/tasks/replay', { app: 'nobody' }), 404, 'APP_NOT_FOUND');
    assert.equal((await h.cli('task', 'replay')).code, 2);
    assert.equal((await h.cli('task', 'replay', one, '--all')).code, 2);
});
