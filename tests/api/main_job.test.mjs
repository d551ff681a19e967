// The main job: a row changes, an agent does the work, its result is written back, and a person sees all of it
// (specification, "States and transitions", "Agent process inputs", "Database events consumed"; decision D5).
import assert from 'node:assert/strict';
import { existsSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { startHearth, until } from './harness.mjs';
import { admin, backendFile, changes, insert, isAlive, listeningApp, newApp, newKey, refused, rowBecomes, shellAgent, sqlite, taskBecomes,
    tasksOfRow, timeForm, unique, uuidForm } from './kit.mjs';

let h;
before(async () => { h = await startHearth({ sandbox: 'standard', settings: { 'tasks.sweep_s': 0.5, 'backend.poll_ms': 20 } }); });
after(() => h.stop());

// Waits for a file that open() makes, so that a test decides when the agent goes on.
function gate() {
    const path = join(h.desk, unique('gate'));
    return { path, open: () => writeFileSync(path, ''), wait: `while [ ! -e ${path} ]; do sleep 0.02; done` };
}

async function doneTask(rowId) {
    const [{ uuid }] = await tasksOfRow(h, rowId);
    return taskBecomes(h, uuid, 'completed', 'failed', 'canceled');
}

// One activity through one agent: {row, task, runs, log, call}.
async function oneJob(script, rawData = { n: 1 }, more) {
    const agent = await shellAgent(h, script, more);
    const { id: appId, call } = await listeningApp(h, agent);
    const { id } = await insert(call, rawData);
    const row = await rowBecomes(call, id, 'completed', 'failed');
    return { row, ...await doneTask(id), call, appId, agent };
}

test('an inserted activity is claimed, worked on and completed, and everything about it can be seen', async (t) => {
    const stream = await changes(t, h);
    const agent = await shellAgent(h, `echo '{"category":"greeting"}'`, { display_name: 'Sorter' });
    const { id: appId, call } = await listeningApp(h, agent, { name: 'inbox', display_name: 'My Inbox', handler: { workspaceSlug: 'default', prompt: 'Sort it' } });
    const { id } = await insert(call, { text: 'hello' });

    const row = await rowBecomes(call, id, 'completed');
    assert.deepEqual(row.result, { category: 'greeting' });
    assert.match(row.completed_at, timeForm);
    assert.equal(row.error_message, null);
    assert.equal(row.retry_count, 0);
    assert.deepEqual(row.attempted_by, []);
    assert.deepEqual(row.raw_data, { text: 'hello' });

    const { task: { uuid } } = await doneTask(id);
    const { status, body: { success, task, runs } } = await call('GET', `/task/${uuid}`);
    assert.equal(status, 200);
    assert.equal(success, true);
    assert.equal(task.title, '[My Inbox] New Activity');
    assert.equal(task.status, 'completed');
    assert.equal(task.action_type, 'INSERT');
    assert.equal(task.source_app, appId);
    assert.equal(task.sourceAppName, 'My Inbox');
    assert.equal(task.error, null);
    assert.deepEqual(task.attempted_by, []);
    assert.equal(task.retry_count, 0);
    assert.match(task.created_at, timeForm);
    assert.ok(task.updated_at >= task.created_at);

    assert.equal(runs.length, 1);
    assert.ok(Number.isInteger(runs[0].id));
    assert.equal(runs[0].agent_name, agent);
    assert.equal(runs[0].workspace_slug, 'default');
    assert.equal(runs[0].status, 'completed');
    assert.equal(runs[0].error, null);
    assert.ok(runs[0].completed_at >= runs[0].started_at);

    const { event } = await admin(h, 'GET', `/api/calendar/${task.calendar_event_uuid}`);
    assert.equal(event.title, '[My Inbox] New Activity');
    assert.equal(event.metadata.source_app, appId);
    assert.equal(event.metadata.task_uuid, uuid);
    assert.equal(event.metadata.agent_name, agent);
    assert.equal(event.metadata.workspace_slug, 'default');
    assert.equal(event.metadata.prompt, 'Sort it');
    assert.equal(event.metadata.dispatch_status, 'completed');

    for (const word of ['claimed', 'completed'])
        await stream.next((one) => one.event === 'task' && one.json.uuid === uuid && one.json.status === word);
});

test('an agent has task, activity, machine and service in its environment, and with pass_arguments as arguments', async () => {
    const script = `printf '{"uuid":"%s","arg":"%s","machine":"%s","url":"%s","attempt":"%s","data":%s,"argData":%s}' \
        "$TASK_UUID" "$1" "$MACHINE_ID" "$SERVER_URL" "$TASK_ATTEMPT" "$ACTIVITY_DATA" "$2"`;
    const { row, task } = await oneJob(script, { text: 'Grüße "quoted" \\ $HOME' }, { pass_arguments: true });
    const { uuid, arg, machine, url, attempt, data, argData } = row.result;
    assert.equal(uuid, task.uuid);
    assert.equal(arg, task.uuid);
    assert.equal(machine, task.machine_id);
    assert.equal(url, h.url);
    assert.equal(attempt, '1');
    assert.deepEqual(data.raw_data, { text: 'Grüße "quoted" \\ $HOME' });
    assert.deepEqual(argData, data);
});

test('an agent has a minimal environment', async () => {
    const { row } = await oneJob(`env | sed 's/=.*//' | sort | tr '\\n' ' '`);
    const names = row.result.output.trim().split(' ');
    for (const name of ['ASAN_OPTIONS', 'UBSAN_OPTIONS', 'HEARTH_BIN'])
        assert.ok(!names.includes(name), names.join(' '));
    assert.ok(names.includes('PATH'));
});

for (const [what, script, result] of [
    ['JSON on standard output is the result', `echo '{"a":[1,2,{"b":null}]}'`, { a: [1, 2, { b: null }] }],
    ['text on standard output is the result as output', `echo 'two words'; echo 'and a line'`, { output: 'two words\nand a line' }],
    ['an agent that says nothing has an empty result', 'exit 0', {}],
    ['standard error is no part of the result', `echo oops >&2; echo '{"ok":true}'`, { ok: true }],
])
    test(`${what}`, async () => {
        const { row, task } = await oneJob(script);
        assert.equal(row.status, 'completed', row.error_message);
        assert.deepEqual(row.result, result);
        assert.deepEqual(task.result, result);
    });

test('an agent that exits with 1 has failed with the last lines of its standard error', async () => {
    const { row, task, runs, log } = await oneJob('echo started; echo "no paper in tray 2" >&2; exit 1');
    assert.equal(row.status, 'failed');
    assert.match(row.error_message, /no paper in tray 2/);
    assert.equal(row.retry_count, 1);
    assert.deepEqual(row.attempted_by, [task.machine_id]);
    assert.equal(row.locked_by, null);
    assert.equal(task.status, 'failed');
    assert.match(task.error, /no paper in tray 2/);
    assert.equal(runs[0].status, 'failed');
    assert.match(runs[0].error, /no paper in tray 2/);
    assert.match(log, /started/);
    assert.match(log, /no paper in tray 2/);
});

test('a machine that failed a row does not take it again', async () => {
    const { row, call, task } = await oneJob('exit 1');
    await admin(h, 'POST', '/api/tasks/sweep');
    const other = await shellAgent(h, 'echo {}');
    const { call: second } = await listeningApp(h, other);
    await rowBecomes(second, (await insert(second, {})).id, 'completed');
    assert.equal((await call('GET', `/activities/${row.id}`)).body.data.status, 'failed');
    assert.equal((await h.socket('GET', `/api/tasks/${task.uuid}`)).body.runs.length, 1);
});

test('an agent that runs too long is ended and has failed', async () => {
    const { row, runs } = await oneJob('sleep 600 & wait', {}, { timeout_s: 0.3 });
    assert.equal(row.status, 'failed');
    assert.match(row.error_message, /timed out after 0.3 s/);
    assert.equal(runs[0].status, 'failed');
});

test('an agent that is killed has failed, and the reason says so', async () => {
    const agent = await shellAgent(h, 'exec sleep 600');
    const { call } = await listeningApp(h, agent);
    const { id } = await insert(call, {});
    const [{ uuid }] = await tasksOfRow(h, id);
    const { runs } = await until(async () => {
        const { body } = await h.socket('GET', `/api/tasks/${uuid}`);
        return body.runs[0]?.pid && body;
    }, { what: 'the agent has a pid' });
    process.kill(runs[0].pid, 'SIGKILL');
    const row = await rowBecomes(call, id, 'failed');
    assert.match(row.error_message, /signal 9|SIGKILL|Killed/i);
    assert.equal((await doneTask(id)).runs[0].pid, null, 'the pid is told of a running run only');
});

test('while the agent works the row is claimed with a lease and the run goes on', async () => {
    const door = gate();
    const agent = await shellAgent(h, `${door.wait}; echo '{}'`);
    const { call } = await listeningApp(h, agent);
    const { id } = await insert(call, {});
    const row = await rowBecomes(call, id, 'claimed', 'processing');
    assert.equal(row.status, 'claimed');
    assert.match(row.locked_at, timeForm);
    assert.ok(row.locked_by.length > 0);
    const [{ uuid }] = await tasksOfRow(h, id);
    const { runs } = await until(async () => {
        const { body } = await h.socket('GET', `/api/tasks/${uuid}`);
        return body.runs[0]?.pid && body;
    }, { what: 'the agent has a pid' });
    assert.equal(runs[0].status, 'running');
    assert.ok(isAlive(runs[0].pid));
    door.open();
    const done = await rowBecomes(call, id, 'completed');
    assert.equal(done.locked_by, null);
});

test('what an agent writes can be read while it runs', async () => {
    const door = gate();
    const agent = await shellAgent(h, `echo 'half way'; ${door.wait}`);
    const { call } = await listeningApp(h, agent);
    const { id } = await insert(call, {});
    const [{ uuid }] = await tasksOfRow(h, id);
    await until(async () => (await h.socket('GET', `/api/tasks/${uuid}`)).body.log?.includes('half way'), { what: 'the live log' });
    door.open();
    await rowBecomes(call, id, 'completed');
});

test('a payload above 96 KiB goes through a file only the owner may read, which is removed afterwards', async () => {
    const text = 'ü'.repeat(100 * 1024);
    const script = `mode=$(stat -c %a "$ACTIVITY_FILE"); bytes=$(wc -c < "$ACTIVITY_FILE")
        grep -q '"raw_data"' "$ACTIVITY_FILE" && printf '{"mode":"%s","bytes":%s,"file":"%s","data":%s,"arguments":%s}' "$mode" "$bytes" "$ACTIVITY_FILE" "$ACTIVITY_DATA" "$#"`;
    const { row } = await oneJob(script, { text });
    assert.equal(row.status, 'completed', row.error_message);
    assert.equal(row.result.mode, '600');
    assert.ok(row.result.bytes > 200 * 1024);
    assert.equal(row.result.data.activity_file, row.result.file);
    assert.equal(row.result.arguments, 1, 'the task id alone: every user of the machine can read arguments');
    await until(() => !existsSync(row.result.file), { what: 'the file is removed' });
});

test('a payload just below 96 KiB comes in the environment', async () => {
    const { row } = await oneJob(`printf '{"file":"%s","bytes":%s}' "$ACTIVITY_FILE" "\${#ACTIVITY_DATA}"`, { text: 'x'.repeat(97_000) });
    assert.equal(row.status, 'completed', row.error_message);
    assert.equal(row.result.file, '');
    assert.ok(row.result.bytes > 97_000);
});

test('the largest activity there may be reaches the agent', async () => {
    const text = 'x'.repeat(4 * 1024 * 1024 - 200);
    const { row } = await oneJob(`printf '{"bytes":%s}' "$(wc -c < "$ACTIVITY_FILE")"`, { text });
    assert.equal(row.status, 'completed', row.error_message);
    assert.ok(row.result.bytes > text.length);
});

test('an agent that is not installed fails the row with a sentence for a person', async () => {
    const { name } = await admin(h, 'POST', '/api/agents', { name: unique('agent'), command: 'no-such-program-anywhere' });
    const { call } = await listeningApp(h, name);
    const row = await rowBecomes(call, (await insert(call, {})).id, 'failed');
    assert.match(row.error_message, /no-such-program-anywhere/);
});

test('an agent that was removed fails the row and is named', async () => {
    const agent = await shellAgent(h, 'echo {}');
    const { call } = await listeningApp(h, agent);
    await admin(h, 'DELETE', `/api/agents/${agent}?force=true`);
    const row = await rowBecomes(call, (await insert(call, {})).id, 'failed');
    assert.match(row.error_message, new RegExp(agent));
});

test('rows beyond max_concurrent_tasks wait as tasks in the calendar and are worked on in their order', async () => {
    const door = gate();
    const order = join(h.desk, unique('order'));
    const agent = await shellAgent(h, `echo "$ACTIVITY_DATA" | sed 's/.*"n":\\([0-9]*\\).*/\\1/' >> ${order}; ${door.wait}; cat ${order}`);
    const { id: appId, call } = await listeningApp(h, agent);
    const ids = [];
    for (let n = 0; n < 5; n++)
        ids.push((await insert(call, { n })).id);
    await until(async () => (await admin(h, 'GET', `/api/tasks?app=${appId}`)).tasks.length === 5, { what: 'five tasks' });
    await until(() => existsSync(order), { what: 'the first agent' });
    const waiting = (await admin(h, 'GET', `/api/tasks?app=${appId}&status=pending`)).tasks;
    assert.equal(waiting.length, 4);
    for (const task of waiting)
        assert.equal((await admin(h, 'GET', `/api/calendar/${task.calendar_event_uuid}`)).event.metadata.task_uuid, task.uuid);
    assert.equal((await call('GET', '/activities?status=pending')).body.data.length, 4, 'what waits is not claimed');
    door.open();
    for (const id of ids)
        await rowBecomes(call, id, 'completed');
    const last = await rowBecomes(call, ids[4], 'completed');
    assert.deepEqual(last.result.output.split('\n').map(Number), [0, 1, 2, 3, 4]);
});

test('max_concurrent_tasks is how many run at a time', async () => {
    const door = gate();
    const agent = await shellAgent(h, door.wait);
    const { id: appId, call } = await listeningApp(h, agent, { backend: { max_concurrent_tasks: 3 } });
    const ids = await Promise.all([1, 2, 3, 4, 5].map(async (n) => (await insert(call, { n })).id));
    const running = async () => (await admin(h, 'GET', `/api/tasks?app=${appId}&status=claimed`)).tasks.length;
    await until(async () => await running() === 3, { what: 'three run' });
    await until(async () => (await admin(h, 'GET', `/api/tasks?app=${appId}&status=pending`)).tasks.length === 2, { what: 'two wait' });
    assert.equal(await running(), 3);
    door.open();
    await Promise.all(ids.map((id) => rowBecomes(call, id, 'completed')));
});

test('one app that is busy does not hold up another', async () => {
    const door = gate();
    const { call: busy } = await listeningApp(h, await shellAgent(h, door.wait));
    const { id: stuck } = await insert(busy, {});
    await rowBecomes(busy, stuck, 'claimed');
    const { call: free } = await listeningApp(h, await shellAgent(h, 'echo {}'));
    await rowBecomes(free, (await insert(free, {})).id, 'completed');
    door.open();
    await rowBecomes(busy, stuck, 'completed');
});

test('an UPDATE is an event with the old and the new data', async () => {
    const agent = await shellAgent(h, `printf '%s' "$ACTIVITY_DATA"`);
    const { call } = await listeningApp(h, agent, { backend: { tableActions: { 'public.svc_activities': ['UPDATE'] } }, handler: { eventTypes: ['UPDATE'] } });
    const { id } = await insert(call, { n: 1 });
    await call('PATCH', `/activities/${id}`, { raw_data: { n: 2 } });
    const row = await rowBecomes(call, id, 'completed');
    assert.equal(row.result.event, 'UPDATE');
    assert.deepEqual(row.result.raw_data, { n: 2 });
    assert.deepEqual(row.result.old_data, { n: 1 });
    const { task } = await doneTask(id);
    assert.equal(task.action_type, 'UPDATE');
});

test('a completed row that is changed is worked on again', async () => {
    const agent = await shellAgent(h, `printf '%s' "$ACTIVITY_DATA"`);
    const { call } = await listeningApp(h, agent, { handler: { eventTypes: ['INSERT', 'UPDATE'] } });
    const { id } = await insert(call, { n: 1 });
    assert.equal((await rowBecomes(call, id, 'completed')).result.event, 'INSERT');
    await call('PATCH', `/activities/${id}`, { raw_data: { n: 2 } });
    const row = await until(async () => {
        const { body } = await call('GET', `/activities/${id}`);
        return body.data.status === 'completed' && body.data.result.event === 'UPDATE' && body.data;
    }, { what: 'the change is worked on' });
    assert.deepEqual(row.result.raw_data, { n: 2 });
});

test('the result an agent writes back is no new event', async () => {
    const { call, row, appId } = await oneJob('echo {}');
    await admin(h, 'POST', '/api/tasks/sweep');
    const { call: other } = await listeningApp(h, await shellAgent(h, 'echo {}'));
    await rowBecomes(other, (await insert(other, {})).id, 'completed');
    assert.equal((await admin(h, 'GET', `/api/tasks?app=${appId}`)).tasks.length, 1);
    assert.equal((await call('GET', `/activities/${row.id}`)).body.data.attempt, 1);
});

test('a DELETE is an event with the deleted data', async () => {
    const seen = join(h.desk, unique('deleted'));
    const agent = await shellAgent(h, `printf '%s' "$ACTIVITY_DATA" > ${seen}.part && mv ${seen}.part ${seen}`);
    const { id: appId, call } = await listeningApp(h, agent, { handler: { eventTypes: ['DELETE'] } });
    const { id } = await insert(call, { last: 'words' });
    assert.equal((await call('DELETE', `/activities/${id}`)).status, 200);
    const [task] = await until(async () => {
        const { tasks } = await admin(h, 'GET', `/api/tasks?app=${appId}`);
        return tasks.length > 0 && tasks[0].status === 'completed' && tasks;
    }, { what: 'the deletion is worked on' });
    assert.equal(task.action_type, 'DELETE');
    const { default: activity } = await import(`data:application/json,${encodeURIComponent(await readText(seen))}`, { with: { type: 'json' } });
    assert.equal(activity.event, 'DELETE');
    assert.deepEqual(activity.raw_data, { last: 'words' });
});

async function readText(path) { return (await import('node:fs/promises')).readFile(path, 'utf8'); }

test('tableActions decides which events count', async () => {
    const agent = await shellAgent(h, 'echo {}');
    const { id: appId, call } = await listeningApp(h, agent,
        { backend: { tableActions: { 'public.svc_activities': ['DELETE'] } }, handler: { eventTypes: ['INSERT', 'DELETE'] } });
    const { id } = await insert(call, {});
    await admin(h, 'POST', '/api/tasks/sweep');
    await call('DELETE', `/activities/${id}`);
    await until(async () => (await admin(h, 'GET', `/api/tasks?app=${appId}&status=completed`)).tasks.length === 1, { what: 'the deletion' });
    const { tasks } = await admin(h, 'GET', `/api/tasks?app=${appId}`);
    assert.deepEqual(tasks.map((task) => task.action_type), ['DELETE']);
});

for (const [filter, taken, left] of [
    ['raw_data->>kind=eq.urgent', { kind: 'urgent' }, { kind: 'slow' }],
    ['raw_data->>kind=neq.slow', { kind: 'urgent' }, { kind: 'slow' }],
    ['raw_data->>n=gt.9', { n: 10 }, { n: 9 }],
    ['raw_data->>n=gte.10', { n: 10 }, { n: 9.5 }],
    ['raw_data->>n=lt.10', { n: 9 }, { n: 10 }],
    ['raw_data->>n=lte.10', { n: 10 }, { n: 11 }],
])
    test(`the filter ${filter} lets only what fits through`, async () => {
        const { id: appId, call } = await listeningApp(h, await shellAgent(h, 'echo {}'), { backend: { filter } });
        const { id: not } = await insert(call, left);
        const { id: fits } = await insert(call, taken);
        await rowBecomes(call, fits, 'completed');
        await admin(h, 'POST', '/api/tasks/sweep');
        assert.equal((await call('GET', `/activities/${not}`)).body.data.status, 'pending');
        assert.equal((await admin(h, 'GET', `/api/tasks?app=${appId}`)).tasks.length, 1);
    });

test('an app\'s rows go to its own agent only', async () => {
    const [one, two] = await Promise.all(['one', 'two'].map(async (word) => listeningApp(h, await shellAgent(h, `echo '{"by":"${word}"}'`))));
    const [first, second] = [await insert(one.call, {}), await insert(two.call, {})];
    assert.deepEqual((await rowBecomes(one.call, first.id, 'completed')).result, { by: 'one' });
    assert.deepEqual((await rowBecomes(two.call, second.id, 'completed')).result, { by: 'two' });
});

test('a row another program writes with SQL is work like any other', async () => {
    const { id: appId, call } = await listeningApp(h, await shellAgent(h, `printf '%s' "$ACTIVITY_DATA"`));
    const id = 'aaaaaaaa-0000-4000-8000-00000000abcd';
    await sqlite(backendFile(h), `INSERT INTO svc_activities (id, app_id, raw_data) VALUES ('${id}', '${appId}', '{"by":"sqlite3"}')`);
    const row = await rowBecomes(call, id, 'completed');
    assert.deepEqual(row.result.raw_data, { by: 'sqlite3' });
});

test('a row another program changes with SQL is an UPDATE', async () => {
    const { call } = await listeningApp(h, await shellAgent(h, `printf '%s' "$ACTIVITY_DATA"`), { handler: { eventTypes: ['UPDATE'] } });
    const { id } = await insert(call, { n: 1 });
    await sqlite(backendFile(h), `UPDATE svc_activities SET raw_data = '{"n":2}' WHERE id = '${id}'`);
    const row = await rowBecomes(call, id, 'completed');
    assert.deepEqual([row.result.event, row.result.raw_data, row.result.old_data], ['UPDATE', { n: 2 }, { n: 1 }]);
});

test('rows of a table the app declares are work', async () => {
    const agent = await shellAgent(h, `printf '%s' "$ACTIVITY_DATA"`);
    const id = await newApp(h, { config: {
        agentHandlers: [{ tableName: 'public.orders', agentId: agent, eventTypes: ['INSERT'] }],
        backend: { enabled: true, tables: ['public.orders'] } } });
    await until(async () => (await sqlite(backendFile(h), "SELECT name FROM sqlite_master WHERE name = 'orders'")).length === 1, { what: 'the table' });
    const [{ id: rowId }] = await sqlite(backendFile(h), `INSERT INTO orders (app_id, raw_data) VALUES ('${id}', '{"item":"tea"}') RETURNING id`);
    const { task } = await doneTask(rowId);
    assert.equal(task.status, 'completed');
    assert.deepEqual(task.result.raw_data, { item: 'tea' });
});

// ---- reports of the agent itself ----

// Sends these reports one after the other: one program does, because a process that has reported its end is stopped after 3 s.
const reporter = (bodies, then = '') => `"${process.execPath}" -e '
    for (const body of JSON.parse(process.argv[1])) {
        const reply = await fetch(process.env.SERVER_URL + "/api/external-tasks/" + process.env.TASK_UUID + "/webhook",
            { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
        console.error(reply.status, await reply.text());
    }' --input-type=module '${JSON.stringify([bodies].flat())}'; ${then}`;

test('what an agent reports counts, not how it leaves', async () => {
    const { row } = await oneJob(reporter({ action: 'completed', data: { result: { by: 'webhook' }, score: 7 } }, 'echo late words; exit 3'));
    assert.equal(row.status, 'completed');
    assert.deepEqual(row.result, { by: 'webhook', score: 7 }, 'extra members of data are kept');
});

test('an agent that reports a failure and exits with 0 has failed', async () => {
    const { row, runs } = await oneJob(reporter({ action: 'failed', data: { error: { message: 'not my language' } } }));
    assert.equal(row.status, 'failed');
    assert.equal(row.error_message, 'not my language');
    assert.equal(runs[0].error, 'not my language');
});

test('an agent that reports twice, the second time otherwise, is told so and nothing changes', async () => {
    const { row, log } = await oneJob(reporter([1, 2].map((n) => ({ action: 'completed', data: { result: { n } } })).concat({ action: 'failed', data: {} })));
    assert.deepEqual(row.result, { n: 1 });
    const final = await until(async () => {
        const [{ uuid }] = await tasksOfRow(h, row.id);
        const { body } = await h.socket('GET', `/api/tasks/${uuid}`);
        return body.log.includes('409') && body;
    }, { what: 'the log of three reports' });
    assert.match(final.log, /200[^]*200[^]*409[^]*TASK_ALREADY_FINISHED/, log);
    assert.equal(final.task.status, 'completed');
});

// ---- a person decides ----

async function reviewed(script = `echo '{"done":true}'`, more = {}) {
    const agent = await shellAgent(h, script);
    const { call, id: appId } = await listeningApp(h, agent, { handler: { review: true }, ...more });
    const { id } = await insert(call, { text: 'please look' });
    const [task] = await tasksOfRow(h, id);
    return { call, id, appId, agent, uuid: task.uuid, event: task.calendar_event_uuid };
}

test('a handler set to review waits for the person, who runs it', async () => {
    const { call, id, uuid, event } = await reviewed();
    assert.equal((await call('GET', `/activities/${id}`)).body.data.status, 'pending');
    assert.equal((await taskBecomes(h, uuid, 'pending')).task.review, 'waiting');
    assert.equal((await admin(h, 'GET', `/api/calendar/${event}`)).event.metadata.dispatch_status, 'review');
    await admin(h, 'POST', `/api/calendar/${event}/run`);
    assert.deepEqual((await rowBecomes(call, id, 'completed')).result, { done: true });
    assert.equal((await taskBecomes(h, uuid, 'completed')).task.review, 'approved');
});

test('a table without a handler makes a task for a person, who names the agent', async () => {
    const { call } = await listeningApp(h, null);
    const { id } = await insert(call, {});
    const [{ uuid }] = await tasksOfRow(h, id);
    refused(await h.socket('POST', `/api/tasks/${uuid}/run`, {}), 400, 'VALIDATION_ERROR', /agent_name/);
    const agent = await shellAgent(h, `echo '{"named":true}'`);
    await admin(h, 'POST', `/api/tasks/${uuid}/run`, { agent_name: agent });
    assert.deepEqual((await rowBecomes(call, id, 'completed')).result, { named: true });
});

test('a task the person rejects is not run, ever', async () => {
    const { call, id, uuid, event } = await reviewed();
    await admin(h, 'POST', `/api/calendar/${event}/reject`, { reason: 'spam' });
    const { task, runs } = await taskBecomes(h, uuid, 'canceled');
    assert.equal(task.review, 'rejected');
    assert.match(task.error, /spam/);
    assert.deepEqual(runs, []);
    assert.notEqual((await call('GET', `/activities/${id}`)).body.data.status, 'pending');
    refused(await h.socket('POST', `/api/calendar/${event}/run`, {}), 409, 'TASK_NOT_WAITING');
    refused(await h.socket('POST', `/api/calendar/${event}/reject`, {}), 409, 'TASK_NOT_WAITING');
});

test('decisions at the same time leave one end', async () => {
    const { call, id, uuid } = await reviewed();
    const replies = await Promise.all(['run', 'reject', 'run', 'reject'].map((word) => h.socket('POST', `/api/tasks/${uuid}/${word}`, {})));
    for (const reply of replies.filter((one) => one.status !== 200))
        refused(reply, 409, reply.body.code === 'ALREADY_LOCKED' ? 'ALREADY_LOCKED' : 'TASK_NOT_WAITING'); // the first run may have the row, or already the task too
    const { task, runs } = await taskBecomes(h, uuid, 'completed', 'canceled');
    const row = await rowBecomes(call, id, 'completed', 'failed', 'canceled');
    assert.equal(row.status === 'completed', task.status === 'completed');
    assert.equal(runs.length, task.status === 'completed' ? 1 : 0);
});

test('an agent that reports its start makes the task processing', async () => {
    const door = gate();
    const agent = await shellAgent(h, reporter({ action: 'started', data: {} }, `${door.wait}; echo '{}'`));
    const { call } = await listeningApp(h, agent);
    const { id } = await insert(call, {});
    const [{ uuid }] = await tasksOfRow(h, id);
    await taskBecomes(h, uuid, 'processing');
    assert.equal((await call('GET', `/activities/${id}`)).body.data.status, 'claimed', 'the row is processing in Custom Mode only');
    door.open();
    await rowBecomes(call, id, 'completed');
});

test('what the person writes into the calendar event goes to the agent', async () => {
    const { call, id, event } = await reviewed(`printf '{"prompt":"%s"}' "$AGENT_PROMPT"`);
    await admin(h, 'PATCH', `/api/calendar/${event}`, { metadata: { prompt: 'mind the tone' } });
    await admin(h, 'POST', `/api/calendar/${event}/run`, {});
    assert.deepEqual((await rowBecomes(call, id, 'completed')).result, { prompt: 'mind the tone' });
});

test('a failed task is replayed, also by the machine that failed it', async () => {
    const door = gate();
    const { row, task, call } = await oneJob(`[ -e ${door.path} ] && echo '{"second":true}' || exit 1`);
    assert.equal(row.status, 'failed');
    door.open();
    await admin(h, 'POST', `/api/tasks/${task.uuid}/replay`);
    assert.deepEqual((await rowBecomes(call, row.id, 'completed')).result, { second: true });
    const { runs } = await taskBecomes(h, task.uuid, 'completed');
    assert.equal(runs.length, 2);
    refused(await h.socket('POST', `/api/tasks/${task.uuid}/replay`), 409, 'TASK_NOT_FAILED');
});

test('a developer key\'s activity is nobody\'s work', async () => {
    const { call } = await newKey(h);
    const { id } = await insert(call, {});
    await admin(h, 'POST', '/api/tasks/sweep');
    const { call: other } = await listeningApp(h, await shellAgent(h, 'echo {}'));
    await rowBecomes(other, (await insert(other, {})).id, 'completed');
    assert.equal((await call('GET', `/activities/${id}`)).body.data.status, 'pending');
});

test('an app that may not see tasks is told so, another app\'s task is 404', async () => {
    const { task } = await oneJob('echo {}');
    assert.match(task.uuid, uuidForm);
    const stranger = h.asApp(await newApp(h, {}, ['api.task']));
    refused(await stranger('GET', `/task/${task.uuid}`), 404, 'TASK_NOT_FOUND');
    const without = h.asApp(await newApp(h));
    assert.equal(refused(await without('GET', `/task/${task.uuid}`), 403, 'PERMISSION_REQUIRED').permission, 'api.task');
    const { call } = await newKey(h);
    assert.equal((await call('GET', `/task/${task.uuid}`)).status, 200);
});

test('an app whose backend is disabled gets no work', async () => {
    const { call } = await listeningApp(h, await shellAgent(h, 'echo {}'), { backend: { enabled: false } });
    const { id } = await insert(call, {});
    const { call: other } = await listeningApp(h, await shellAgent(h, 'echo {}'));
    await rowBecomes(other, (await insert(other, {})).id, 'completed');
    assert.equal((await call('GET', `/activities/${id}`)).body.data.status, 'pending');
});

test('a heartbeat keeps the lease of a long run', async (t) => {
    const staleS = 4;       // long enough that a busy machine's heartbeat comes in time
    const brisk = await startHearth({ t, settings: { 'tasks.heartbeat_s': 0.1, 'tasks.stale_after_s': staleS, 'tasks.sweep_s': 0.1 } });
    const door = join(brisk.home, 'door');
    const { call } = await listeningApp(brisk, await shellAgent(brisk, `while [ ! -e ${door} ]; do sleep 0.02; done`));
    const { id } = await insert(call, {});
    const first = await rowBecomes(call, id, 'claimed');
    await until(async () => {
        const { body: { data } } = await call('GET', `/activities/${id}`);
        assert.equal(data.attempt, 1);
        return Date.parse(data.locked_at) - Date.parse(first.locked_at) > staleS * 1250;
    }, { what: 'the lease is refreshed for longer than it would live' });
    writeFileSync(door, '');
    const row = await rowBecomes(call, id, 'completed');
    assert.equal(row.attempt, 1);
    assert.equal(statSync(door).size, 0);
});
