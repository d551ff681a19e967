// A service killed in every phase of a turn: the turn is shown as interrupted, with every step that had ended, and the next turn goes on from it
// with each call's result exactly once.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { startHearth } from '../api/harness.mjs';
import { admin, newKey, unique } from '../api/kit.mjs';
import { scriptedProvider } from '../api/scripted.mjs';
import { assertIntact, Chance, query } from './chaos.mjs';

// Each brings the turn into its phase; `least` are the roles that must be stored then, in order.
const phases = {
    'the model is asked': { least: ['user'], go: async (provider) => { await provider.next(); } },
    'the model speaks': { least: ['user'], go: async (provider) => { (await provider.next()).say('half an ans'); } },
    'a tool is called': { least: ['user'], go: async (provider) => { (await provider.next()).call(['now', {}], ['now', { time_zone: 'UTC' }]); } },
    'the model is asked again': { least: ['user', 'assistant', 'tool', 'tool'], go: async (provider) => {
        (await provider.next()).call(['now', {}], ['now', { time_zone: 'UTC' }]);
        await provider.next();
    } },
    'the model answers': { least: ['user'], go: async (provider) => { (await provider.next()).answer('done'); } },
};

function assertPaired(messages) {
    const results = messages.filter((one) => one.role === 'tool').map((one) => one.tool_call_id);
    const calls = messages.flatMap((one) => one.tool_calls ?? []).map((call) => call.id);
    assert.deepEqual([...results].sort(), [...calls].sort());
    assert.equal(new Set(results).size, results.length);
}

test('a service killed in any phase of a turn loses no step that had ended', async (t) => {
    const chance = new Chance(t);
    const h = await startHearth({ t, settings: { 'log.level': 'warn', 'llm.retries': 0 } });
    const provider = await scriptedProvider(t, h);
    const { call: dev } = await newKey(h);
    const { name: agent } = await admin(h, 'POST', '/api/agents', { kind: 'model', name: unique('thinker'), tools: ['builtin/now'], approval: 'never' }, 201);
    const { session } = (await dev('POST', '/sdk/agent/session', { agent_name: agent })).body;
    const path = `/sdk/agent/session/${session.session_id}`;
    for (let round = 0; round < 12; round++) {
        const name = round < 5 ? Object.keys(phases)[round] : chance.one(Object.keys(phases));
        const turn = dev('POST', `${path}/chat`, { message: `round ${round}` }).catch(() => null);
        await phases[name].go(provider);
        await pause(chance.between(0, 15));
        await h.kill();
        const answered = await turn;
        await h.start();
        assert.equal(query(join(h.dataDir, 'hearth.db'), "SELECT count(*) AS n FROM turns WHERE state = 'running'")[0].n, 0);
        const [last] = (await dev('GET', `${path}/messages?limit=1`)).body.turns;
        assert.equal(last.messages[0].message.content, `round ${round}`, name);
        assert.equal(last.state, answered?.status === 200 || last.ended === 'answered' ? 'ended' : 'interrupted', name);
        const roles = last.messages.map((one) => one.role);
        assert.deepEqual(roles.slice(0, phases[name].least.length), phases[name].least, name);
        if (answered?.status === 200)
            assert.equal(last.messages.at(-1).message.content, 'done');
        provider.skip();
        const next = dev('POST', `${path}/chat`, { message: 'go on' });
        const asked = await provider.next();
        assertPaired(asked.messages);
        assert.equal(asked.text(), 'go on');
        asked.answer('yes');
        assert.equal((await next).status, 200, name);
    }
    await h.terminate();
    assertIntact(join(h.dataDir, 'hearth.db'));
});
