// hearth task: what a person sees and does of real work.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startHearth, until } from './harness.mjs';

async function world(t, script, handler = {}) {
    const h = await startHearth({ t });
    await h.agent({ name: 'worker', command: '/bin/sh', args: ['-c', script] });
    const id = await h.app({
        name: 'demo',
        config: {
            agentHandlers: [{ tableName: 'svc_activities', agentId: 'worker', eventTypes: ['INSERT'], ...handler }],
            backend: { enabled: true },
        },
    }, ['activities.write', 'activities.read']);
    const inserted = await h.asApp(id)('POST', '/activities', { raw_data: { n: 1 } });
    assert.equal(inserted.status, 201);
    return h;
}

const taskWith = (h, condition, what) => until(async () => (await h.cliJson('task', 'list')).find(condition), { what, everyMs: 50 });

test('a finished task is listed and shown with its run and its log', async (t) => {
    const h = await world(t, 'echo working >&2; echo "{\\"label\\":\\"good\\"}"');
    const { uuid } = await taskWith(h, (task) => task.status === 'completed', 'the task completes');
    assert.match((await h.cli('task', 'list')).stdout, new RegExp(`UUID +STATUS[^]*${uuid} +completed`));
    assert.deepEqual(await h.cliJson('task', 'list', '--status', 'failed'), []);
    const shown = await h.cliJson('task', 'show', uuid);
    assert.deepEqual(shown.task.result, { label: 'good' });
    assert.equal(shown.runs[0].agent_name, 'worker');
    const { stdout } = await h.cli('task', 'show', uuid);
    assert.match(stdout, /status: +completed[^]*RUN +AGENT[^]*worker +completed[^]*Log of the newest run:[^]*working/);
});

test('a task that waits for a person is run by hand, once', async (t) => {
    const h = await world(t, 'echo done', { review: true });
    const { uuid } = await taskWith(h, (task) => task.review === 'waiting', 'the task waits');
    const run = await h.cli('task', 'run', uuid);
    assert.equal(run.code, 0, run.stderr);
    assert.match(run.stdout, /is started/);
    await taskWith(h, (task) => task.status === 'completed', 'the task completes');
    assert.equal((await h.cli('task', 'run', uuid)).code, 1);
});

test('a failed task is replayed by hand', async (t) => {
    const h = await world(t, '[ -e "$HOME/fixed" ] && { echo done; exit 0; }; echo "it is broken" >&2; exit 4');
    const { uuid } = await taskWith(h, (task) => task.status === 'failed', 'the task fails');
    assert.match((await h.cli('task', 'show', uuid)).stdout, /it is broken/);
    assert.equal((await h.cli('task', 'run', uuid)).code, 1);
    h.file('fixed', '');
    const replay = await h.cli('task', 'replay', uuid);
    assert.equal(replay.code, 0, replay.stderr);
    await taskWith(h, (task) => task.uuid === uuid && task.status === 'completed', 'the task completes');
});
