// Tasks of model agents: the service is killed in each phase of a turn; the task is done by the next attempt, once, and no step that had ended is lost.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { startHearth, until } from '../api/harness.mjs';
import { admin, insert, listeningApp, rowBecomes } from '../api/kit.mjs';
import { scriptedProvider } from '../api/scripted.mjs';
import { assertIntact, assertNoChildren, Chance, databases, query } from './chaos.mjs';

async function begin(t, { agent = {}, backend = {} } = {}) {
    const h = await startHearth({ t, settings: { 'tasks.sweep_s': 0.5, 'backend.poll_ms': 20, 'log.level': 'warn' } });
    const provider = await scriptedProvider(t, h);
    await admin(h, 'POST', '/api/agents', { name: 'worker', kind: 'model', tools: ['builtin/now', 'builtin/add_activity'], approval: 'never', ...agent }, 201);
    const { id, call } = await listeningApp(h, 'worker', { backend });
    return { h, provider, call, appId: id };
}

const store = (h) => join(h.dataDir, 'hearth.db');
const turnsOf = (h, rowId) => query(store(h), 'SELECT turns.* FROM turns JOIN tasks ON tasks.uuid = turns.task_uuid WHERE tasks.row_id = ? ORDER BY turns.id', rowId);
const runsOf = (h, rowId) => query(store(h), 'SELECT runs.status FROM runs JOIN tasks ON tasks.uuid = runs.task_uuid WHERE tasks.row_id = ? ORDER BY runs.id', rowId);
const rolesOf = (h, turn) => query(store(h), 'SELECT role FROM messages WHERE turn_id = ? ORDER BY id', turn.id).map((row) => row.role);

async function isKilledAndDone({ h, provider, call }, row, steps) {
    await h.kill();
    await h.start();
    const again = await provider.next();
    const [first] = turnsOf(h, row.id);
    assert.deepEqual([first.state, rolesOf(h, first)], ['interrupted', steps], 'the steps that had ended are there, the turn says that it was interrupted');
    again.answer('done by the second attempt');
    const done = await rowBecomes(call, row.id, 'completed', 'failed');
    assert.deepEqual([done.status, done.result?.text, done.attempt], ['completed', 'done by the second attempt', 2]);
    await until(() => runsOf(h, row.id).map((run) => run.status).join() === 'failed,completed', { what: 'both runs have ended' });
    assert.deepEqual(turnsOf(h, row.id).map((turn) => turn.state), ['interrupted', 'ended']);
}

const phases = {
    'while a person is asked about a tool': {
        steps: ['user', 'assistant'],
        agent: { approval: 'always' },
        reach: async ({ h, provider }) => {
            (await provider.next()).call(['now', {}]);
            await until(async () => (await admin(h, 'GET', '/api/approvals')).approvals.length === 1, { what: 'a person is asked' });
        },
    },
    'before the model has said a word': { steps: ['user'], reach: async ({ provider }) => { await provider.next(); } },
    'while the model writes': { steps: ['user'], reach: async ({ provider }) => { (await provider.next()).say('I am').say(' writing'); } },
    'after a tool has answered': {
        steps: ['user', 'assistant', 'tool'],
        reach: async ({ provider }) => {
            (await provider.next()).call(['now', {}]);
            await provider.next();
        },
    },
    'while the model writes after two rounds of tools': {
        steps: ['user', 'assistant', 'tool', 'tool', 'assistant', 'tool'],
        reach: async ({ provider }) => {
            (await provider.next()).call(['now', {}], ['now', { timezone: 'UTC' }]);
            (await provider.next()).call(['now', { timezone: 'Europe/Berlin' }]);
            (await provider.next()).say('almost');
        },
    },
};

for (const [name, { steps, agent, reach }] of Object.entries(phases))
    test(`killed ${name}: the next attempt does the task`, async (t) => {
        const at = await begin(t, { agent });
        const row = await insert(at.call, { n: 1 });
        await reach(at);
        await isKilledAndDone(at, row, steps);
        await at.h.terminate();
        databases(at.h.dataDir).forEach(assertIntact);
        await assertNoChildren(at.h.dataDir);
    });

test('killed while it waits for a place: the task waits again and is done', async (t) => {
    const at = await begin(t, { backend: { max_concurrent_tasks: 1 } });
    const rows = [await insert(at.call, { n: 1 }), await insert(at.call, { n: 2 })];
    await at.provider.next();
    await at.h.kill();
    await at.h.start();
    for (const text of ['one', 'two'])
        (await at.provider.next()).answer(text);
    for (const { id } of rows)
        assert.equal((await rowBecomes(at.call, id, 'completed', 'failed')).status, 'completed');
});

// The model answers by itself, after a while: a call of a tool, then an answer.
async function answerAll(provider, chance, isOver) {
    for (let n = 0; !isOver();) {
        const asked = provider.asked[n];
        await pause(asked ? chance.between(0, 40) : 5);
        if (!asked)
            continue;
        n++;
        if (asked.messages.at(-1).role === 'tool')
            asked.answer('do', 'ne');
        else
            asked.call(['now', {}]);
    }
}

test('killed at any instant, again and again: every row is completed once', async (t) => {
    const rounds = 8;
    const chance = new Chance(t);
    const at = await begin(t, { backend: { max_concurrent_tasks: 3 } });
    let isOver = false;
    const answering = answerAll(at.provider, chance, () => isOver);
    const rows = [];
    for (let round = 0; round < rounds; round++) {
        for (let n = 0; n < 3; n++)
            rows.push(await insert(at.call, { round, n }));
        await pause(chance.between(0, 250));
        await at.h.kill();
        await at.h.start();
    }
    for (const { id } of rows) {
        const row = await rowBecomes(at.call, id, 'completed', 'failed');
        assert.deepEqual([row.status, row.result?.text], ['completed', 'done'], JSON.stringify(row));
        await until(() => query(store(at.h), 'SELECT status FROM tasks WHERE row_id = ?', id)[0]?.status === 'completed', { what: `the task of ${id} is completed` });
        // None, when the kill came between the commit of the row and that of the run.
        assert.ok(runsOf(at.h, id).filter((run) => run.status === 'completed').length <= 1);
    }
    isOver = true;
    await answering;
    assert.deepEqual(query(store(at.h), "SELECT id FROM turns WHERE state = 'running'"), []);
    t.diagnostic(`${query(store(at.h), "SELECT count(*) AS n FROM turns WHERE state = 'interrupted'")[0].n} turns of ${query(store(at.h), 'SELECT count(*) AS n FROM turns')[0].n} were interrupted`);
    await at.h.terminate();
    databases(at.h.dataDir).forEach(assertIntact);
});
