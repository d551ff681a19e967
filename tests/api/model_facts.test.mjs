// What is learnt about a model from its provider's refusals can be seen and forgotten (docs/language-models.md).
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startHearth, stoppedHearth } from './harness.mjs';
import { admin, newKey, refused, sqlite, storeFile, unique } from './kit.mjs';
import { scriptedProvider } from './scripted.mjs';

const factsOf = async (h) => (await admin(h, 'GET', '/api/models/facts')).facts;

test('a model that refused tools is tried anew when that is forgotten', async (t) => {
    const h = await startHearth({ t });
    const provider = await scriptedProvider(t, h), { call: dev } = await newKey(h);
    await admin(h, 'POST', '/api/agents', { name: 'clerk', kind: 'model', tools: ['builtin/now'] }, 201);
    const { session } = (await dev('POST', '/sdk/agent/session', { agent_name: 'clerk' })).body;
    const say = () => dev('POST', `/sdk/agent/session/${session.session_id}/chat`, { message: 'hello' });
    assert.match((await h.cli('provider', 'facts')).stdout, /Nothing is learnt/);

    const first = say();
    const native = await provider.next();
    assert.equal(native.tools.length, 1);
    native.refuse(400, 'scripted does not support tools');
    const spoken = await provider.next();
    assert.equal(spoken.tools.length, 0);
    spoken.answer('{"answer":"hi"}');
    assert.equal((await first).status, 200);
    const [{ learnt_at: learntAt, ...fact }] = await factsOf(h);
    assert.deepEqual(fact, { provider: 'scripted', model: 'scripted', fact: 'tools', value: 'schema' });
    assert.ok(Date.parse(learntAt) > 0);
    assert.match((await h.cli('provider', 'facts')).stdout, /^scripted +scripted +tools +schema/m);

    const second = say();
    const again = await provider.next();
    assert.equal(again.tools.length, 0, 'what was learnt is kept');
    again.answer('{"answer":"hi"}');
    await second;

    const forgotten = await h.cli('provider', 'forget', 'scripted', 'scripted');
    assert.match(forgotten.stdout, /^Forgotten \(1\)/, forgotten.stderr);
    assert.deepEqual(await factsOf(h), []);
    const third = say();
    const anew = await provider.next();
    assert.equal(anew.tools.length, 1);
    anew.answer('hi');
    assert.equal((await third).status, 200);
});

test('facts are forgotten by model or by provider, and what is not known is refused', async (t) => {
    const h = await stoppedHearth({ t });
    const name = unique('provider'), now = new Date().toISOString();
    await sqlite(storeFile(h), [['a', now], ['b', now], ['old', '2020-01-01T00:00:00.000Z']]
        .map(([model, at]) => `INSERT INTO model_facts VALUES ('${name}', '${model}', 'tools', 'schema', '${at}')`).join(';'));
    assert.deepEqual((await h.cliJson('provider', 'facts')).map((one) => one.model), ['a', 'b']);      // the old one no longer counts
    assert.equal((await h.cli('provider', 'forget', name, 'a')).code, 0);
    const nothing = await h.cli('provider', 'forget', name, 'a');
    assert.equal(nothing.code, 1);
    assert.match(nothing.stderr, /Nothing is learnt[^]*`hearth provider facts`/);
    assert.match((await h.cli('provider', 'forget', name)).stdout, /^Forgotten \(2\)/);
    await h.start();
    refused(await h.socket('DELETE', `/api/models/facts?provider=${name}`), 404, 'FACT_NOT_FOUND');
    assert.deepEqual(refused(await h.socket('DELETE', '/api/models/facts'), 400, 'VALIDATION_ERROR').errors, [{ field: 'provider', rule: 'is required' }]);
});
