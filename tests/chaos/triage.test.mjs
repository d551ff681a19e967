// The example: its agent is killed while it works; the task fails, says why, and can be replayed.
import assert from 'node:assert/strict';
import { join, resolve } from 'node:path';
import { test } from 'node:test';
import { startHearth, until } from '../api/harness.mjs';
import { assertNoChildren, isRunOf } from './chaos.mjs';

const example = resolve(import.meta.dirname, '../../examples/triage');

test('a killed triage agent fails its task, and a replay finishes it', async (t) => {
    const h = await startHearth({ t, sandbox: 'standard' });
    for (const [kind, file] of [['agent', 'agent.json'], ['app', 'app.json']]) {
        const added = await h.cli(kind, 'add', join(example, file));
        assert.equal(added.code, 0, added.stderr);
    }
    const { apps } = (await h.socket('GET', '/api/apps')).body;
    const dev = h.as({ authorization: `Bearer ${await h.key()}`, 'x-app-id': apps.find((app) => app.name === 'triage').app_id });
    const inserted = await dev('POST', '/activities', { raw_data: { text: 'The printer is on fire!', slow_s: 8 } });
    assert.equal(inserted.status, 201, inserted.text);
    const rowId = inserted.body.data.id;

    const detail = async () => {
        const { body } = await h.socket('GET', '/api/tasks?limit=500');
        for (const task of body.tasks) {
            const one = (await h.socket('GET', `/api/tasks/${task.uuid}`)).body;
            if (one.raw_data?.text === 'The printer is on fire!')
                return one;
        }
        return undefined;
    };
    const running = await until(async () => {
        const one = await detail();
        return one?.runs.at(-1)?.pid && isRunOf(one.runs.at(-1).pid, one.task.uuid) && one;
    }, { what: 'the agent runs' });
    process.kill(running.runs.at(-1).pid, 'SIGKILL');

    const failed = await until(async () => {
        const one = await detail();
        return one.task.status === 'failed' && one;
    }, { what: 'the task failed' });
    assert.match(failed.task.error, /signal 9|SIGKILL|[Kk]illed/);
    assert.equal(failed.runs.at(-1).status, 'failed');
    assert.equal((await dev('GET', `/activities/${rowId}`)).body.data.status, 'failed');

    assert.equal((await h.socket('POST', `/api/tasks/${failed.task.uuid}/replay`)).status, 200);
    await until(async () => (await detail()).task.status === 'completed', { what: 'the replay is done' });
    const { body } = await dev('GET', `/activities/${rowId}`);
    assert.equal(body.data.status, 'completed');
    assert.ok(body.data.result.category, JSON.stringify(body.data.result));
    await h.terminate();
    await assertNoChildren(h.dataDir);
});
