// Built-in tools of a model agent whose model is @copilotkit/aimock, in the protocol of each of these providers.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LLMock } from '@copilotkit/aimock';
import { startHearth } from '../api/harness.mjs';
import { admin, newKey, unique } from '../api/kit.mjs';

function teach(mock) {
    const call = (id, name, args) => ({ toolCalls: [{ id, name, arguments: JSON.stringify(args) }] });
    mock.on({ toolCallId: 'call_3' }, { content: 'The note says: buy milk.' });
    mock.on({ toolCallId: 'call_2' }, call('call_3', 'read_file', { path: 'note.txt' }));
    mock.on({ toolCallId: 'call_1' }, call('call_2', 'edit_file', { path: 'note.txt', old_text: 'bread', new_text: 'milk' }));
    mock.on({ userMessage: 'write it down' }, call('call_1', 'write_file', { path: 'note.txt', content: 'buy bread' }));
}

for (const [provider, preset, path] of [['openai', 'openai', '/v1'], ['anthropic', 'anthropic', '']])
    test(`${provider}: a file is written, edited and read in one turn`, async (t) => {
        const mock = new LLMock({ port: 0, chunkSize: 8 });
        teach(mock);
        await mock.start();
        t.after(() => mock.stop());
        const h = await startHearth({ t });
        await admin(h, 'POST', '/api/providers', { preset, name: 'double', base_url: `${mock.url}${path}`, api_key: 'sk-test', model: 'double-model' }, 201);
        const { call: dev } = await newKey(h);
        const name = unique('helper');
        await admin(h, 'POST', '/api/agents', { name, kind: 'model', instructions: 'Help.', tools: ['builtin/*'], approval: 'never' });
        const { body: { session } } = await dev('POST', '/sdk/agent/session', { agent_name: name });
        const { body, text } = await dev('POST', `/sdk/agent/session/${session.session_id}/chat`, { message: 'write it down' });
        assert.equal(body.response?.text, 'The note says: buy milk.', text);
        const [turn] = (await dev('GET', `/sdk/agent/session/${session.session_id}/messages`)).body.turns;
        assert.equal(turn.steps, 4);
        const results = turn.messages.filter((one) => one.role === 'tool').map((one) => JSON.stringify(one));
        assert.equal(results.length, 3);
        assert.match(results[2], /buy milk/);
    });
