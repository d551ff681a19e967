// The tool loop of model agents against @copilotkit/aimock: whatever the model calls, each call's result is in the next request exactly
// once and in order, in the protocol of each provider.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LLMock } from '@copilotkit/aimock';
import { startHearth } from '../api/harness.mjs';
import { admin, newKey } from '../api/kit.mjs';

const providers = [['openai', '/v1'], ['generic-openai', '/v1'], ['anthropic', ''], ['ollama', '']];
const call = (id, name, args) => ({ id, name, arguments: typeof args === 'string' ? args : JSON.stringify(args) });
const many = (n, id) => Array.from({ length: n }, (_, i) => call(`${id}_${i}`, 'write_file', { path: `${id}-${i}.txt`, content: `${id} ${i}` }));

function teach(mock) {
    const on = (match, response) => mock.on(match, response);
    on({ userMessage: 'in parallel', hasToolResult: false }, { toolCalls: many(12, 'one') });
    on({ userMessage: 'in parallel', hasToolResult: true }, { content: 'All written.' });
    on({ userMessage: 'badly', hasToolResult: false }, { toolCalls: [call('b1', 'write_file', { path: 7 }), call('b2', 'wriite_file', {}), call('b3', 'list_files', {})] });
    on({ userMessage: 'badly', hasToolResult: true }, { content: 'I see.' });
    on({ userMessage: 'without end' }, { toolCalls: [call('e1', 'list_files', {})] });
    on({ userMessage: 'refused' }, { error: { message: 'This model refuses.', type: 'invalid_request_error', code: 'x' }, status: 400 });
}

// The calls and results of a request as pairs [id, what], in the order of the request, whatever the protocol. Ollama's results have no id:
// their order alone tells whose they are.
function exchanged(body) {
    const calls = [], results = [];
    for (const m of body.messages ?? body.input ?? []) {
        for (const one of m.tool_calls ?? [])
            calls.push(one.id ?? one.function.name);
        for (const block of Array.isArray(m.content) ? m.content : []) {
            if (block.type === 'tool_use')
                calls.push(block.id);
            if (block.type === 'tool_result')
                results.push([block.tool_use_id, JSON.stringify(block.content)]);
        }
        if (m.role === 'tool')
            results.push([m.tool_call_id ?? m.tool_name, m.content]);
        if (m.type === 'function_call')
            calls.push(m.call_id);
        if (m.type === 'function_call_output')
            results.push([m.call_id, m.output]);
    }
    return { calls, results: results.map(([id, what], i) => [id ?? calls[i], what]) };
}

async function begin(t, preset, path, agent = {}) {
    const mock = new LLMock({ port: 0, chunkSize: 8 });
    teach(mock);
    await mock.start();
    t.after(() => mock.stop());
    const h = await startHearth({ t, settings: { 'llm.rest_after': 0, 'llm.retries': 0 } });
    await admin(h, 'POST', '/api/providers', { preset, name: 'double', base_url: `${mock.url}${path}`, api_key: 'sk-test', model: 'double-model' }, 201);
    await admin(h, 'POST', '/api/agents', { name: 'helper', kind: 'model', tools: ['builtin/*'], approval: 'never', ...agent });
    const { call: dev } = await newKey(h);
    const { body: { session } } = await dev('POST', '/sdk/agent/session', { agent_name: 'helper' });
    const path_ = `/sdk/agent/session/${session.session_id}`;
    return { mock, chat: (message) => dev('POST', `${path_}/chat`, { message }), turns: async () => (await dev('GET', `${path_}/messages`)).body.turns };
}

const bodies = (mock) => mock.getRequests().map((one) => one.body).filter((one) => one?.messages || one?.input);

for (const [preset, path] of providers) {
    test(`${preset}: twelve calls of one answer, each result once and in order`, async (t) => {
        const { mock, chat } = await begin(t, preset, path);
        const { body, text } = await chat('in parallel');
        assert.equal(body.response?.text, 'All written.', text);
        const { calls, results } = exchanged(bodies(mock).at(-1));
        assert.equal(calls.length, 12);
        assert.deepEqual(results.map(([id]) => id), calls);
        results.forEach(([, what], i) => assert.match(what, new RegExp(`one-${i}\\.txt|written|Wrote|bytes`, 'i')));
    });

    test(`${preset}: bad arguments and unknown tools go back with the rule`, async (t) => {
        const { mock, chat } = await begin(t, preset, path);
        const { body, text } = await chat('badly');
        assert.equal(body.response?.text, 'I see.', text);
        const { calls, results } = exchanged(bodies(mock).at(-1));
        assert.deepEqual(results.map(([id]) => id), calls);
        assert.match(results[0][1], /arguments\.path` must be a string/);
        assert.match(results[1][1], /the nearest is write_file/);
        assert.doesNotMatch(results[2][1], /^Error/);
    });
}

test('the same call without end is stopped, a last answer is requested without tools', async (t) => {
    const { mock, chat, turns } = await begin(t, 'generic-openai', '/v1');
    await chat('without end');
    assert.equal((await turns())[0].ended, 'repeated_call');
    assert.equal(bodies(mock).at(-1).tool_choice, 'none');
});

test('a refusal of the provider fails the turn with its words', async (t) => {
    const { chat } = await begin(t, 'generic-openai', '/v1');
    const { status, body } = await chat('refused');
    assert.ok(status >= 400);
    assert.match(body.error, /This model refuses/);
});
