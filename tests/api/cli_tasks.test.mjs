// hearth task: what a person sees and does of real work.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startHearth, stoppedHearth, until } from './harness.mjs';
import { insert, listeningApp, shellAgent } from './kit.mjs';

async function world(t, script, handler = {}) {
    const h = await startHearth({ t });
    const { call } = await listeningApp(h, await shellAgent(h, script, { name: 'worker' }), { name: 'demo', handler });
    await insert(call, { n: 1 });
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

test('task wait ends with the task, and its exit code says how', async (t) => {
    const h = await world(t, 'while [ ! -e "$HOME/go" ]; do sleep 0.05; done; exit "$(cat "$HOME/go")"');
    const { uuid } = await taskWith(h, (task) => task.status !== 'pending', 'the task is begun');
    const late = await h.cli('task', 'wait', uuid, '--timeout', '0.2');
    assert.deepEqual([late.code, late.stderr], [1, `hearth: The task ${uuid} has not ended within 0.2 seconds\n`]);
    const waiting = h.cli('task', 'wait', uuid);
    h.file('go', '0');
    assert.deepEqual(await waiting.then(({ code, stdout }) => [code, stdout]), [0, `The task ${uuid} is completed.\n`]);
    assert.equal((await h.cliJson('task', 'wait', uuid)).task.status, 'completed');
    assert.equal((await h.cli('task', 'wait', uuid, '--timeout', 'soon')).code, 2);
    assert.equal((await h.cli('task', 'wait', 'nothing')).code, 1);
});

test('the beginning of an id names a developer key', async (t) => {
    const h = await stoppedHearth({ t });
    const [{ id }, other] = [await h.cliJson('key', 'new'), await h.cliJson('key', 'new')];
    const revoked = await h.cli('key', 'revoke', id.slice(0, 12));
    assert.deepEqual([revoked.code, revoked.stdout], [0, `The key ${id} is revoked.\n`]);
    const keys = await h.cliJson('key', 'list');
    assert.deepEqual([keys.find((key) => key.id === id).revoked_at !== null, keys.find((key) => key.id === other.id).revoked_at], [true, null]);
});

test('the beginning of an id names a task', async (t) => {
    const h = await world(t, 'echo done');
    const { uuid } = await taskWith(h, (task) => task.status === 'completed', 'the task completes');
    assert.equal((await h.cliJson('task', 'show', uuid.slice(0, 8))).task.uuid, uuid);
    assert.equal((await h.cliJson('task', 'wait', uuid.slice(0, 4).toUpperCase())).task.uuid, uuid);
    assert.match((await h.cli('task', 'show', uuid.slice(0, 3))).stderr, /hearth task list/);
});

test('task wait tells a failure, and a task that waits for a person', async (t) => {
    const h = await world(t, 'echo "it is broken" >&2; exit 4', { review: true });
    const { uuid } = await taskWith(h, (task) => task.review === 'waiting', 'the task waits');
    const waiting = h.cli('task', 'wait', uuid);
    assert.equal((await h.cli('task', 'run', uuid)).code, 0);
    const { code, stderr } = await waiting;
    assert.equal(code, 1);
    assert.match(stderr, new RegExp(`hearth: The task ${uuid} is failed: .*\\n$`));
    const timedOut = await h.cli('task', 'replay', uuid);
    assert.equal(timedOut.code, 0);
});
