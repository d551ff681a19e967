// /v1/responses, /v1/completions and the form of errors below /v1: what a client package does not show. What the packages make of it is in tests/peers.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import http from 'node:http';
import { after, before, test } from 'node:test';
import { startHearth, until } from './harness.mjs';
import { admin, newApp, newKey, nobodysId } from './kit.mjs';
import { env } from './provider.mjs';

let h, dev;

before(async () => {
    h = await startHearth({ env });
    dev = (await newKey(h)).call;
});
after(() => h?.stop());

const ask = (call, body) => call('POST', '/v1/responses', { input: 'Say hello.', ...body });
const unknownId = 'resp_0123456789abcdef0123456789abcdef';

function isOpenAIError(reply, status, code, param = null) {
    const { error } = reply.body;
    assert.deepEqual([reply.status, error?.code, error?.param], [status, code, param], reply.text);
    assert.equal(typeof error.message, 'string');
    assert.equal(error.type, { 401: 'authentication_error', 403: 'permission_error' }[status] ?? 'invalid_request_error');
}

function isAnthropicError(reply, status, type) {
    assert.deepEqual([reply.status, reply.body.type, reply.body.error?.type], [status, 'error', type], reply.text);
}

async function eventsOf(body, headers) {
    const stream = await h.sse('/v1/responses', { method: 'POST', body: { input: 'Say hello.', stream: true, ...body }, headers });
    await stream.ended;
    return stream.events.map((event) => ({ name: event.event, ...event.json }));
}

test('an answer repeats what was asked, and is given back by its id until it is removed', async () => {
    const metadata = { trip: 'Bern' }, tools = [{ type: 'function', name: 'f', parameters: { type: 'object' } }];
    const made = await ask(dev, { instructions: 'Be brief.', metadata, tools, temperature: 0.5, max_output_tokens: 40 });
    assert.equal(made.status, 200, made.text);
    const one = made.body;
    assert.match(one.id, /^resp_[0-9a-f]{32}$/);
    assert.deepEqual([one.object, one.status, one.store, one.instructions, one.metadata, one.tools, one.temperature, one.max_output_tokens],
        ['response', 'completed', true, 'Be brief.', metadata, tools, 0.5, 40]);
    assert.deepEqual(one.output.map((item) => [item.type, item.role, item.content[0].text]), [['message', 'assistant', 'Hello.']]);
    assert.deepEqual([one.usage.input_tokens, one.usage.output_tokens, one.usage.total_tokens], [3, 2, 5]);
    for (const prefix of ['', '/api'])
        assert.deepEqual((await dev('GET', `${prefix}/v1/responses/${one.id}`)).body, one);
    assert.deepEqual((await dev('DELETE', `/v1/responses/${one.id}`)).body, { id: one.id, object: 'response', deleted: true });
    isOpenAIError(await dev('GET', `/v1/responses/${one.id}`), 404, 'response_not_found', 'response_id');
    isOpenAIError(await dev('DELETE', `/v1/responses/${one.id}`), 404, 'response_not_found', 'response_id');
    isOpenAIError(await ask(dev, { previous_response_id: one.id }), 404, 'response_not_found', 'previous_response_id');
});

test('what is not to be stored cannot be continued', async () => {
    const { body } = await ask(dev, { store: false });
    assert.equal(body.store, false);
    isOpenAIError(await dev('GET', `/v1/responses/${body.id}`), 404, 'response_not_found', 'response_id');
    const reply = await ask(dev, { previous_response_id: body.id });
    isOpenAIError(reply, 404, 'response_not_found', 'previous_response_id');
    assert.ok(reply.body.error.message.includes(body.id));
});

test('an answer is its caller\'s alone: not another key\'s, not an app\'s, not a key\'s that names the app', async () => {
    const app = await newApp(h, {}, ['llm.chat']);
    const other = await newKey(h), both = h.as({ authorization: `Bearer ${other.key}`, 'x-app-id': app });
    const callers = [dev, other.call, h.asApp(app), both];
    const made = await Promise.all(callers.map(async (call) => (await ask(call)).body));
    for (const [i, call] of callers.entries())
        for (const [k, { id, output }] of made.entries()) {
            const status = i === k ? 200 : 404;
            assert.equal((await call('GET', `/v1/responses/${id}`)).status, status, `${i} reads ${k}`);
            assert.equal((await ask(call, { previous_response_id: id })).status, status, `${i} continues ${k}`);
            assert.equal((await ask(call, { input: [{ type: 'item_reference', id: output[0].id }, { role: 'user', content: 'x' }] })).status, status, `${i} refers to ${k}`);
            if (i !== k)
                assert.equal((await call('DELETE', `/v1/responses/${id}`)).status, 404, `${i} removes ${k}`);
        }
    isOpenAIError(await h.api('GET', `/v1/responses/${made[0].id}`), 401, 'invalid_api_key');
    isOpenAIError(await h.asApp(await newApp(h))('GET', `/v1/responses/${made[0].id}`), 403, 'permission_required');
});

test('answers are kept as long as the setting says, which counts at once', async (t) => {
    const own = await startHearth({ t, env });
    const { call } = await newKey(own);
    const { id } = (await ask(call)).body;
    const next = (await ask(call, { previous_response_id: id })).body;
    assert.equal(next.previous_response_id, id);
    await admin(own, 'PUT', '/api/settings/llm.responses_keep_s', { value: 0.2 });
    for (const old of [id, next.id])
        await until(async () => (await call('GET', `/v1/responses/${old}`)).status === 404, { what: 'the answer is forgotten' });
    isOpenAIError(await ask(call, { previous_response_id: next.id }), 404, 'response_not_found', 'previous_response_id');
    await admin(own, 'PUT', '/api/settings/llm.responses_keep_s', { value: 0 });
    const last = (await ask(call)).body;
    assert.equal((await call('GET', `/v1/responses/${last.id}`)).status, 404);
});

test('a turn outlives its own id as long as a later one is kept', async () => {
    const first = (await ask(dev, { input: 'The first.' })).body;
    const second = (await ask(dev, { input: 'The second.', previous_response_id: first.id })).body;
    await dev('DELETE', `/v1/responses/${first.id}`);
    const third = await ask(dev, { input: 'The third.', previous_response_id: second.id });
    assert.equal(third.status, 200, third.text);
});

test('a thread has as many items as one request may', async () => {
    const items = (n) => Array.from({ length: n }, (_, i) => ({ role: i % 2 ? 'assistant' : 'user', content: `${i}` }));
    const { id } = (await ask(dev, { input: items(1990) })).body;          // and its answer
    assert.equal((await ask(dev, { input: items(9), previous_response_id: id })).status, 200);
    isOpenAIError(await ask(dev, { input: items(10), previous_response_id: id }), 400, 'validation_error', 'input');
    isOpenAIError(await ask(dev, { input: items(2001) }), 400, 'validation_error', 'input');
});

test('the thousandth answer of a caller is kept, the one before leaves for the next', async () => {
    const { call } = await newKey(h);
    const first = (await ask(call)).body.id;
    for (let n = 0; n < 999; n += 37)
        await Promise.all(Array.from({ length: Math.min(37, 999 - n) }, () => ask(call)));
    assert.equal((await call('GET', `/v1/responses/${first}`)).status, 200);
    const last = (await ask(call)).body.id;
    assert.equal((await call('GET', `/v1/responses/${first}`)).status, 404);
    assert.equal((await call('GET', `/v1/responses/${last}`)).status, 200);
});

test('events are numbered, in order, and end with the whole answer', async () => {
    const { key, call } = await newKey(h);
    const events = await eventsOf({}, { authorization: `Bearer ${key}` });
    assert.deepEqual(events.map((one) => one.type), ['response.created', 'response.in_progress', 'response.output_item.added', 'response.content_part.added',
        'response.output_text.delta', 'response.output_text.delta', 'response.output_text.done', 'response.content_part.done', 'response.output_item.done', 'response.completed']);
    assert.deepEqual(events.map((one) => one.sequence_number), events.map((_, n) => n));
    assert.ok(events.every((one) => one.name === one.type));
    const { response } = events.at(-1);
    assert.deepEqual([events[0].response.id, events[0].response.status, events[0].response.output, events[0].response.usage], [response.id, 'in_progress', [], null]);
    assert.deepEqual(events.at(-2).item, response.output[0]);
    assert.deepEqual((await call('GET', `/v1/responses/${response.id}`)).body, response);
    const unkept = await eventsOf({ store: false }, { authorization: `Bearer ${key}` });
    assert.equal((await call('GET', `/v1/responses/${unkept.at(-1).response.id}`)).status, 404);
});

test('what is wrong is named', async () => {
    const cases = [
        [{ input: undefined }, 'input'], [{ input: [] }, 'input'], [{ input: 7 }, 'input'], [{ input: [{ role: 'pope', content: 'x' }] }, 'input[0].role'],
        [{ input: [{ type: 'computer_call_output', output: {} }] }, 'input[0]'], [{ input: [{ role: 'user' }] }, 'input[0].content'],
        [{ input: [{ type: 'function_call_output', output: 'x' }] }, 'input[0].call_id'], [{ input: [{ type: 'function_call', call_id: 'c' }] }, 'input[0].name'],
        [{ input: [{ role: 'user', content: [{ type: 'input_image', file_id: 'file_1' }] }] }, 'input[0].content[0]'],
        [{ input: [{ role: 'system', content: [{ type: 'input_image', image_url: 'https://x/y.png' }] }] }, 'input[0]'],
        [{ tools: [{ type: 'web_search' }] }, 'tools[0].type'], [{ tools: [{ type: 'function' }] }, 'tools[0].name'], [{ tool_choice: { type: 'web_search' } }, 'tool_choice'],
        [{ text: { format: { type: 'grammar' } } }, 'text.format.type'], [{ text: { format: { type: 'json_schema', name: 'x' } } }, 'text.format.schema'],
        [{ background: true }, 'background'], [{ conversation: 'conv_1' }, 'conversation'], [{ prompt: { id: 'pmpt_1' } }, 'prompt'],
        [{ temperature: 3 }, 'temperature'], [{ max_output_tokens: 0 }, 'max_output_tokens'], [{ metadata: { a: 'x'.repeat(513) } }, 'metadata'],
        [{ metadata: Object.fromEntries(Array.from({ length: 17 }, (_, n) => [`${n}`, 'x'])) }, 'metadata'],
    ];
    for (const [more, param] of cases)
        isOpenAIError(await ask(dev, more), 400, 'validation_error', param);
    assert.equal((await ask(dev, { metadata: { ['n'.repeat(64)]: 'x'.repeat(512) } })).status, 200);
    for (const id of [unknownId, 'resp_7', 'msg', `${unknownId}0`, nobodysId]) {
        isOpenAIError(await ask(dev, { previous_response_id: id }), 404, 'response_not_found', 'previous_response_id');
        isOpenAIError(await dev('GET', `/v1/responses/${id}`), 404, 'response_not_found', 'response_id');
    }
    for (const id of ['msg_1', `msg_${unknownId.slice(5)}_0`, `msg_${unknownId.slice(5)}_x`])
        isOpenAIError(await ask(dev, { input: [{ type: 'item_reference', id }] }), 404, 'response_not_found', 'input[0]');
    isOpenAIError(await dev('POST', '/v1/responses', '{'), 400, 'invalid_json');
});

test('an item that is not there is not found, whatever its number', async () => {
    const { id } = (await ask(dev)).body;
    for (const n of [1, 4096, 999999999])
        isOpenAIError(await ask(dev, { input: [{ type: 'item_reference', id: `msg_${id.slice(5)}_${n}` }] }), 404, 'response_not_found', 'input[0]');
});

test('completions of a text', async () => {
    const complete = (body) => dev('POST', '/v1/completions', { prompt: 'Say hello.', ...body });
    const { body } = await complete({ max_tokens: 20, stop: ['END'] });
    assert.match(body.id, /^cmpl-/);
    assert.deepEqual([body.object, body.choices, body.usage], ['text_completion', [{ text: 'Hello.', index: 0, logprobs: null, finish_reason: 'stop' }],
        { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 }]);
    assert.equal((await complete({ prompt: ['Say hello.'], echo: true })).body.choices[0].text, 'Say hello.Hello.');
    const refused = [[{ prompt: undefined }, 'prompt'], [{ prompt: [] }, 'prompt'], [{ prompt: ['a', 'b'] }, 'prompt'], [{ prompt: [1, 2] }, 'prompt'], [{ prompt: [[1]] }, 'prompt'],
        [{ suffix: 'x' }, 'suffix'], [{ n: 2 }, 'n'], [{ best_of: 2 }, 'best_of']];
    for (const [more, param] of refused)
        isOpenAIError(await complete(more), 400, 'validation_error', param);
});

test('completions in a stream', async () => {
    const { key } = await newKey(h);
    const stream = await h.sse('/v1/completions', { method: 'POST', headers: { authorization: `Bearer ${key}` },
        body: { prompt: 'Say hello.', stream: true, echo: true, stream_options: { include_usage: true } } });
    await stream.ended;
    const lines = stream.events.map((event) => event.data);
    assert.equal(lines.pop(), '[DONE]');
    const chunks = lines.map((line) => JSON.parse(line));
    assert.equal(chunks.map((chunk) => chunk.choices[0]?.text ?? '').join(''), 'Say hello.Hello.');
    assert.deepEqual(chunks.flatMap((chunk) => chunk.choices.map((one) => one.finish_reason)).filter(Boolean), ['stop']);
    assert.ok(chunks.every((chunk) => chunk.object === 'text_completion'));
    assert.ok(chunks.at(-1).usage.total_tokens > 0);
});

test('unknown paths below /v1 and other methods are refused in the face\'s own form', async () => {
    for (const prefix of ['', '/api']) {
        for (const path of ['/v1', '/v1/nothing', '/v1/audio/nothing', '/v1/responses/a/b/c', '/v1/messagesx', '/v1/users'])
            for (const method of ['GET', 'POST', 'DELETE']) {
                const reply = await dev(method, prefix + path, method === 'GET' ? undefined : {});
                isOpenAIError(reply, 404, 'not_found');
                assert.ok(reply.body.error.message.includes(`${method} ${prefix}${path}`), reply.text);
            }
        isAnthropicError(await dev('POST', `${prefix}/v1/messages/batches`, {}), 404, 'not_found_error');
        isAnthropicError(await dev('POST', `${prefix}/v1/files`, {}, { 'anthropic-version': '2023-06-01' }), 404, 'not_found_error');
        isAnthropicError(await dev('GET', `${prefix}/v1/messages`), 405, 'invalid_request_error');
        for (const path of ['/v1/responses', '/v1/completions', '/v1/chat/completions', '/v1/embeddings']) {
            const reply = await dev('GET', prefix + path);
            isOpenAIError(reply, 405, 'method_not_allowed');
            assert.equal(reply.headers.allow, 'POST');
        }
        isOpenAIError(await dev('PUT', `${prefix}/v1/responses/${unknownId}`, {}), 405, 'method_not_allowed');
        isOpenAIError(await h.api('GET', `${prefix}/v1/nothing`), 404, 'not_found');
    }
    for (const path of ['/v2/nothing', '/v1x', '/api/v1x', '/nothing', '/apiv1/x'])
        assert.deepEqual((await dev('GET', path)).body, { success: false, error: 'Not Found', code: 'NOT_FOUND' }, path);
});

test('the last events of a very long answer are whole, and are not printed on the loop', async (t) => {
    const words = 'words "in" pieces\n'.repeat(4096), n = 72;
    const chunk = (delta, finish = null) => `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;
    const server = http.createServer((incoming, outgoing) => {
        incoming.resume();
        outgoing.setHeader('content-type', 'text/event-stream');
        for (let i = 0; i < n; i++)
            outgoing.write(chunk({ content: words }));
        outgoing.end(`${chunk({}, 'stop')}data: [DONE]\n\n`);
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    t.after(() => server.close());
    const own = await startHearth({ t, env: { GENERIC_OPENAI_BASE_URL: `http://127.0.0.1:${server.address().port}/v1`, GENERIC_OPENAI_MODEL: 'any' } });
    const { key } = await own.cliJson('key', 'new');
    const stream = await own.sse('/v1/responses', { method: 'POST', body: { input: 'Say much.', stream: true }, headers: { authorization: `Bearer ${key}` } });
    await stream.ended;
    const last = stream.events.at(-1).json;
    assert.equal(last.type, 'response.completed');
    assert.ok(last.response.output[0].content[0].text === words.repeat(n));
    assert.deepEqual(stream.events.map(({ json }) => json.sequence_number), stream.events.map((_, i) => i));
    const kept = await own.api('GET', `/v1/responses/${last.response.id}`, undefined, { authorization: `Bearer ${key}` });
    assert.ok(kept.body.output[0].content[0].text === words.repeat(n));
});
