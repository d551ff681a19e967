// Tasks of model agents with a model no one here wrote: @copilotkit/aimock calls tools (also several at once), answers, refuses and breaks off.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { LLMock } from '@copilotkit/aimock';
import { startHearth } from '../api/harness.mjs';
import { admin, insert, listeningApp, rowBecomes } from '../api/kit.mjs';

let h, mock;
before(async () => {
    mock = new LLMock({ port: 0, chunkSize: 8 });
    mock.on({ userMessage: 'two tools', hasToolResult: false }, { content: 'Let me look.', toolCalls: [{ id: 'a', name: 'now', arguments: '{"timezone":"UTC"}' }, { id: 'b', name: 'list_activities', arguments: '{"limit":3}' }] });
    mock.on({ userMessage: 'two tools', hasToolResult: true }, { content: '{"category":"billing","urgency":"low"}' });
    mock.on({ userMessage: 'bad arguments', hasToolResult: false }, { toolCalls: [{ id: 'c', name: 'now', arguments: '{"timezone":7}' }] });
    mock.on({ userMessage: 'bad arguments', hasToolResult: true }, { content: 'It was refused.' });
    mock.on({ userMessage: 'a refusal' }, { error: { message: 'The model is gone for good', type: 'invalid_request_error', code: 'model_not_found' }, status: 404 });
    mock.on({ userMessage: 'broken off' }, { content: 'one two three four five six seven eight nine ten' }, { truncateAfterChunks: 2, latency: 5 });
    await mock.start();
    h = await startHearth({ settings: { 'tasks.sweep_s': 0.5, 'backend.poll_ms': 20 } });
    await admin(h, 'POST', '/api/providers', { preset: 'generic-openai', name: 'mock', base_url: `${mock.url}/v1`, api_key: 'sk-test', model: 'gpt-4o' }, 201);
    await admin(h, 'POST', '/api/agents', { name: 'sorter', kind: 'model', instructions: 'Sort.', tools: ['builtin/now', 'builtin/list_activities'] }, 201);
});
after(async () => {
    await h.stop();
    await mock.stop();
});

async function ended(prompt) {
    const { call } = await listeningApp(h, 'sorter', { handler: { prompt } });
    const { id } = await insert(call, { text: 'hello' });
    return rowBecomes(call, id, 'completed', 'failed');
}

test('two tools at once, then JSON: the row has the data and both tools', async () => {
    const row = await ended('two tools');
    assert.equal(row.status, 'completed', JSON.stringify(row));
    assert.deepEqual(row.result.data, { category: 'billing', urgency: 'low' });
    assert.deepEqual(row.result.tools_used.sort(), ['list_activities', 'now']);
    assert.equal(row.result.steps, 2);
});

test('arguments that break the schema go back to the model, which answers', async () => {
    const row = await ended('bad arguments');
    assert.deepEqual([row.status, row.result?.text], ['completed', 'It was refused.'], JSON.stringify(row));
});

test('a refusal fails the row with its words', async () => {
    const row = await ended('a refusal');
    assert.equal(row.status, 'failed');
    assert.match(row.error_message, /gone for good|model/);
});

test('an answer that breaks off is no result', async () => {
    const row = await ended('broken off');
    assert.equal(row.status, 'failed', JSON.stringify(row));
    assert.ok(row.error_message.length > 0);
});
