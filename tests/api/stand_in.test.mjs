// The stand-in (docs/providers.md): a provider inside the service, for first steps and for tests of apps.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sharedHearth, startHearth } from './harness.mjs';
import { admin, newKey } from './kit.mjs';
import { env } from './provider.mjs';

const label = '[stand-in model: not a language model, it repeats what you say]';
const says = (content, more = {}) => ({ messages: [{ role: 'user', content }], ...more });
const tool = (name, parameters) => ({ type: 'function', function: { name, parameters } });
const weather = tool('weather', { type: 'object', properties: { city: { type: 'string' }, days: { type: 'integer', minimum: 1 } }, required: ['city', 'days'] });

const shared = sharedHearth();

// With the stand-in as the only provider; `own` are the options of a Hearth of the test's own.
async function withStandIn(t, own) {
    const h = await (own ? startHearth({ t, ...own }) : shared(t));
    await admin(h, 'POST', '/api/providers', { preset: 'stand-in' }, 201);
    return { h, dev: (await newKey(h)).call };
}

async function chat(dev, body) {
    const reply = await dev('POST', '/sdk/llm/chat', body);
    assert.equal(reply.status, 200, reply.text);
    return reply.body.response;
}

test('nothing is the stand-in until a person adds it, and then it says everywhere what it is', async (t) => {
    const h = await startHearth({ t });
    const before = await h.cli('chat', 'hello');
    assert.equal(before.code, 1);
    assert.match(before.stderr, /No provider of language models is configured/);
    assert.match((await h.cli('provider', 'presets')).stdout, /^stand-in +Stand-in: no language model +yes +yes +no +no +- +-/m);
    assert.match((await h.cli('provider', 'add', 'stand-in')).stdout, /The provider stand-in is added.* It is no language model: it repeats what you say/);
    assert.match((await h.cli('provider', 'list')).stdout, /^stand-in +Stand-in: no language model/m);
    assert.match((await h.cli('status')).stdout, /^chats +stand-in: no language model, it repeats what you say/m);
    assert.match((await h.cli('doctor')).stdout, /configured: stand-in \(no language model\)/);
    assert.match((await h.cli('provider', 'test', 'stand-in')).stdout, /^stand-in works/);
    assert.equal((await h.cli('chat', 'hello')).stdout, `${label} hello\n`);
    assert.equal((await h.cliJson('provider', 'list'))[0].stand_in, true);
});

test('every other provider is the default before it, whichever was added first', async (t) => {
    const { h, dev } = await withStandIn(t, {});
    assert.doesNotMatch((await h.cli('provider', 'add', 'stand-in')).stdout, /still go to/);
    await h.cli('provider', 'add', 'generic-openai', '--base-url', env.GENERIC_OPENAI_BASE_URL, '--model', 'said-model');
    assert.equal((await chat(dev, says('hello'))).provider, 'generic-openai');
    assert.equal((await chat(dev, says('hello', { provider: 'stand-in' }))).content, `${label} hello`);
    await h.cli('provider', 'remove', 'stand-in');
    assert.match((await h.cli('provider', 'add', 'stand-in')).stdout, /Chats that name no provider still go to generic-openai/);
    await h.cli('provider', 'default', 'stand-in');
    assert.equal((await chat(dev, says('hello'))).provider, 'stand-in');
});

test('it has neither address nor key, and its models are listed', async (t) => {
    const { h, dev } = await withStandIn(t);
    assert.match((await h.cli('provider', 'add', 'stand-in', '--base-url', 'http://x/v1')).stderr, /--base-url must be absent/);
    assert.match((await h.cli('provider', 'add', 'stand-in', '--api-key', 'abc')).stderr, /--api-key must be absent/);
    const { body } = await dev('GET', '/v1/models');
    assert.deepEqual(body.data.map((one) => one.id).filter((id) => id.startsWith('stand-in')).sort(), ['stand-in', 'stand-in-embed']);
});

test('a text is repeated, and rules are obeyed wherever a line has one', async (t) => {
    const { dev } = await withStandIn(t);
    const answer = await chat(dev, says('one two'));
    assert.deepEqual([answer.content, answer.model, answer.finish_reason], [`${label} one two`, 'stand-in', 'stop']);
    assert.deepEqual([answer.metrics.prompt_tokens, answer.metrics.completion_tokens], [2, 13]);
    assert.equal((await chat(dev, says('Answer this:\nsay Paris.\nsay France.'))).content, 'Paris.\nFrance.');
    assert.equal((await chat(dev, says('think Hm.\nsay Yes.'))).reasoning, 'Hm.');
    const short = await chat(dev, says('say one two three', { max_tokens: 2 }));
    assert.deepEqual([short.content, short.finish_reason, short.metrics.completion_tokens], ['one two ', 'length', 2]);
    assert.equal((await chat(dev, says('say one STOP two', { stop: ['STOP'] }))).content, 'one ');
    const long = await chat(dev, says('x '.repeat(20000), { max_tokens: 20000 }));
    assert.deepEqual([long.content.length, long.finish_reason], [16384, 'length']);
});

test('the last message counts, the result of a tool too', async (t) => {
    const { dev } = await withStandIn(t);
    const call = { id: 'c1', type: 'function', function: { name: 'weather', arguments: '{}' } };
    const messages = [
        { role: 'user', content: 'call weather' }, { role: 'assistant', content: '', tool_calls: [call] },
        { role: 'tool', tool_call_id: 'c1', content: 'call weather again: rain' },
    ];
    assert.equal((await chat(dev, { messages, tools: [weather] })).content, `${label} The tool answered: call weather again: rain`);
    assert.equal((await chat(dev, { messages: [{ role: 'user', content: 'say no' }, { role: 'assistant', content: 'no' }, { role: 'user', content: 'say yes' }] })).content, 'yes');
});

test('tools are called by rule, by demand, and never when that is forbidden', async (t) => {
    const { dev } = await withStandIn(t);
    const tools = [weather, tool('clock', {})];
    const calls = async (content, more) => (await chat(dev, says(content, { tools, ...more }))).tool_calls?.map((call) => [call.function.name, JSON.parse(call.function.arguments)]);
    assert.deepEqual(await calls('call weather {"city":"Oslo","days":3}\ncall clock'), [['weather', { city: 'Oslo', days: 3 }], ['clock', {}]]);
    assert.deepEqual(await calls('call weather'), [['weather', { city: '', days: 1 }]]);
    assert.deepEqual(await calls('hello', { tool_choice: 'required' }), [['weather', { city: '', days: 1 }]]);
    assert.deepEqual(await calls('hello', { tool_choice: { type: 'function', function: { name: 'clock' } } }), [['clock', {}]]);
    const none = await chat(dev, says('call weather', { tools, tool_choice: 'none' }));
    assert.equal(none.content, `${label} call weather`);
    const answer = await chat(dev, says('call weather', { tools }));
    assert.equal(answer.finish_reason, 'tool_calls');
    assert.match(answer.tool_calls[0].id, /^call_/);
    assert.equal((await chat(dev, says('call nobody', { tools }))).content, `${label} call nobody`);
});

test('JSON that is asked for is the smallest that fits', async (t) => {
    const { dev } = await withStandIn(t);
    const schema = { type: 'object', properties: { category: { enum: ['billing', 'other'] }, urgent: { type: 'boolean' } }, required: ['category', 'urgent'], additionalProperties: false };
    const response_format = { type: 'json_schema', json_schema: { name: 'triage', schema, strict: true } };
    assert.deepEqual(JSON.parse((await chat(dev, says('Classify.', { response_format }))).content), { category: 'billing', urgent: false });
    assert.equal((await chat(dev, says('say not that', { response_format }))).content, 'not that');
    assert.equal((await chat(dev, says('Some JSON.', { response_format: { type: 'json_object' } }))).content, '{}');
    const impossible = { type: 'json_schema', json_schema: { name: 'x', schema: { type: 'object', properties: { n: { type: 'integer', minimum: 2, maximum: 1 } }, required: ['n'] } } };
    const refused = await dev('POST', '/sdk/llm/chat', says('Classify.', { response_format: impossible }));
    assert.equal(refused.status, 502, refused.text);
    assert.match(refused.body.error, /the stand-in finds no value that fits the schema/);
});

test('a schema that takes long to fit does not hold the loop', async (t) => {
    const { dev } = await withStandIn(t);
    const item = { anyOf: [{ type: 'string', minLength: 1 }, ...Array.from({ length: 50 }, (_, n) => ({ type: 'string', maxLength: 0, const: `${n}` }))] };
    const schema = { type: 'object', properties: { list: { type: 'array', minItems: 2000, items: { allOf: [item, { oneOf: item.anyOf }] } } }, required: ['list'] };
    const reply = await dev('POST', '/sdk/llm/chat', says('Fill it.', { response_format: { type: 'json_schema', json_schema: { name: 'x', schema } } }));
    assert.equal(reply.status, 200, reply.text);      // the harness fails a test whose service reports a stall
});

test('it can be the one that others fall back on, with tools too', async (t) => {
    const { h, dev } = await withStandIn(t, { settings: { 'llm.fallbacks': 'stand-in', 'llm.retries': 0 } });
    await h.cli('provider', 'add', 'generic-openai', '--base-url', 'http://127.0.0.1:1/v1', '--model', 'gone');
    const answer = await chat(dev, says('call weather', { tools: [weather] }));
    assert.deepEqual([answer.provider, answer.tool_calls?.length], ['stand-in', 1]);
});

test('failures on request are those of a provider, and leave no trace', async (t) => {
    const { h, dev } = await withStandIn(t, { settings: { 'llm.retries': 0 } });
    const refused = async (content) => (({ status, headers, body }) => [status, body.code, headers['retry-after']])(await dev('POST', '/sdk/llm/chat', says(content)));
    assert.deepEqual(await refused('fail 429 30'), [429, 'RATE_LIMIT', '30']);
    assert.deepEqual(await refused('fail 404'), [400, 'INVALID_MODEL', undefined]);
    for (let i = 0; i < 6; i++)
        assert.deepEqual(await refused('fail 500'), [502, 'LLM_ERROR', undefined]);
    assert.deepEqual(await refused('cut 0'), [502, 'LLM_ERROR', undefined]);
    assert.equal((await chat(dev, says('say still there'))).content, 'still there');
    assert.doesNotMatch((await h.cli('doctor')).stdout, /FAIL +provider/);
});

test('a stream comes in pieces, slowly when it is told to, and can break', async (t) => {
    const { dev, h } = await withStandIn(t);
    const { key } = (await h.cliJson('key', 'new', '--name', 'streams'));
    const stream = await h.sse('/sdk/llm/chat/stream', { method: 'POST', headers: { 'x-api-key': key }, body: says('slow 5\nsay one two three') });
    const pieces = [];
    for (let event; (event = await stream.next())?.data !== '[DONE]';)
        pieces.push(JSON.parse(event.data));
    assert.deepEqual(pieces.map((piece) => piece.textResponse).filter(Boolean), ['one ', 'two ', 'three']);
    const broken = await h.cli('chat', 'slow 1\ncut 2\nsay one two three');
    assert.equal(broken.code, 1);
    assert.equal(broken.stdout, 'one two \n');
    assert.match(broken.stderr, /the stand-in closed the connection before its answer was complete/);
    assert.ok(dev);
});

test('texts with common words have near vectors, of one length and the same every time', async (t) => {
    const { h, dev } = await withStandIn(t);
    const embed = async (...input) => (await dev('POST', '/sdk/llm/embed', { input, provider: 'stand-in' })).body;
    const { embeddings, model, provider } = await embed('refund for invoice 7', 'a refund, please', 'the site is down');
    assert.deepEqual([model, provider], ['stand-in-embed', 'stand-in']);
    const dot = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0);
    assert.ok(Math.abs(dot(embeddings[0], embeddings[0]) - 1) < 1e-5);
    assert.ok(dot(embeddings[0], embeddings[1]) > dot(embeddings[0], embeddings[2]));
    assert.deepEqual((await embed('a refund, please')).embeddings[0], embeddings[1]);
    const wrong = await dev('POST', '/v1/embeddings', { input: 'x', model: 'stand-in-embed', dimensions: 3 });
    assert.match(wrong.body.error.message, /`dimensions` must be 384 or absent/);
    const failed = await dev('POST', '/sdk/llm/embed', { input: ['x', 'fail 429 30'], provider: 'stand-in' });
    assert.deepEqual([failed.status, failed.body.code, failed.headers['retry-after']], [429, 'RATE_LIMIT', '30']);
    assert.match((await h.cli('provider', 'test', 'stand-in', '--for', 'embed')).stdout, /stand-in-embed made a vector/);
});
