// The official `@anthropic-ai/sdk` against Hearth, unchanged but for its base URL, with providers of every protocol behind.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import Anthropic from '@anthropic-ai/sdk';
import { until } from '../api/harness.mjs';
import { admin, newApp, newKey } from '../api/kit.mjs';
import { long, modelOf, providers, startBoth, text, thought, weather } from './double.mjs';

let both, key, client;

before(async () => {
    both = await startBoth();
    ({ key } = await newKey(both.h));
    client = new Anthropic({ apiKey: key, baseURL: both.h.url, maxRetries: 0 });
});
after(() => both?.stop());

const says = (content) => [{ role: 'user', content }];
const tools = [{ name: 'weather', description: 'Tells it', input_schema: weather }];

for (const provider of providers)
    describe(`with ${provider} behind`, () => {
        const model = modelOf(provider);
        const asked = (content, more) => ({ model, max_tokens: 200, messages: says(content), ...more });
        const create = (content, more = {}) => client.messages.create(asked(content, more));

        test('a message', async () => {
            const { data, response, request_id: id } = await create('say it', { system: 'Be brief.' }).withResponse();
            assert.match(data.id, /^msg_/);
            assert.deepEqual([data.type, data.role, data.stop_reason, data.stop_sequence], ['message', 'assistant', 'end_turn', null]);
            assert.deepEqual(data.content, [{ type: 'text', text }]);
            assert.ok(data.usage.input_tokens > 0 && data.usage.output_tokens > 0);
            assert.equal(response.headers.get('x-hearth-provider'), provider);
            assert.equal(id, response.headers.get('x-request-id'));
            const sent = JSON.stringify(both.mock.getRequests().at(-1).body);
            assert.match(sent, /Be brief\./);
            assert.doesNotMatch(sent, /temperature/);
        });

        test('a stream, event by event', async () => {
            const types = [];
            const stream = client.messages.stream(asked('say it')).on('streamEvent', (event) => types.push(event.type));
            const message = await stream.finalMessage();
            assert.deepEqual(message.content, [{ type: 'text', text }]);
            assert.equal(message.stop_reason, 'end_turn');
            assert.ok(message.usage.output_tokens > 0);
            const order = types.filter((type, i) => type !== types[i - 1] && type !== 'ping');
            assert.deepEqual(order, ['message_start', 'content_block_start', 'content_block_delta', 'content_block_stop', 'message_delta', 'message_stop']);
        });

        test('a tool, called and answered', async () => {
            const first = await create('the weather', { tools, tool_choice: { type: 'any' } });
            assert.equal(first.stop_reason, 'tool_use');
            const use = first.content.find((block) => block.type === 'tool_use');
            assert.deepEqual([use.name, use.input], ['weather', { city: 'Bern', days: 2 }]);
            const result = [{ type: 'tool_result', tool_use_id: use.id, content: [{ type: 'text', text: '21 degrees' }] }, { type: 'text', text: 'say it' }];
            const second = await client.messages.create({ ...asked('x', { tools }),
                messages: [...says('the weather'), { role: 'assistant', content: first.content }, { role: 'user', content: result }] });
            assert.ok(second.content[0].text.length > 0);
            assert.match(JSON.stringify(both.mock.getRequests().at(-1).body), /21 degrees/);
        });

        test('a tool in a stream', async () => {
            const message = await client.messages.stream(asked('the weather', { tools })).finalMessage();
            assert.equal(message.stop_reason, 'tool_use');
            const use = message.content.find((block) => block.type === 'tool_use');
            assert.deepEqual([use.name, use.input], ['weather', { city: 'Bern', days: 2 }]);
            assert.ok(use.id);
        });

        test('a client that leaves cancels the provider', async () => {
            const n = both.nBrokenOff();
            const stream = await create('go on and on', { stream: true });
            for await (const event of stream)
                if (event.type === 'content_block_delta')
                    break;              // aborts the request
            await until(() => both.nBrokenOff() > n, { what: 'the double sees its client leave' });
        });

        test('errors are of the right class', async () => {
            await assert.rejects(create('be busy'), (e) => e instanceof Anthropic.RateLimitError && e.error.error.type === 'rate_limit_error' && e.headers.get('retry-after') === '17');
            await assert.rejects(create('lack a model'), (e) => e instanceof Anthropic.NotFoundError && e.error.error.type === 'not_found_error' && e.requestID.length > 0);
            await assert.rejects(create('be tired'), (e) => e instanceof Anthropic.InternalServerError && e.status === 502);
            await assert.rejects(create('be busy', { stream: true }), Anthropic.RateLimitError);
        });

        test('an upstream that hangs up in the middle is an error of the stream', async () => {
            const stream = await create('hang up', { stream: true });
            let seen = '';
            await assert.rejects(async () => {
                for await (const event of stream)
                    seen += event.delta?.text ?? '';
            }, (e) => e instanceof Anthropic.APIError && /api_error/.test(e.message));
            assert.ok(long.startsWith(seen) && seen.length > 0);
        });
    });

test('thoughts are blocks of their own', async () => {
    for (const provider of ['anthropic', 'generic-openai']) {
        const asked = { model: modelOf(provider), max_tokens: 200, messages: says('think') };
        const whole = await client.messages.create(asked);
        assert.deepEqual(whole.content.map((block) => [block.type, block.thinking ?? block.text]), [['thinking', 'Six times seven.'], ['text', '42']]);
        const streamed = await client.messages.stream(asked).finalMessage();
        assert.deepEqual(streamed.content.map((block) => [block.type, block.thinking ?? block.text]), [['thinking', 'Six times seven.'], ['text', '42']]);
    }
});

// Anthropic refuses a tool's result whose call has lost the thought before it; so does this double, when it is told to be strict.
test("a tool's result goes back with the thoughts before its call", async () => {
    await admin(both.h, 'POST', '/api/providers', { preset: 'anthropic', name: 'strict', base_url: both.mock.url, api_key: 'sk-ant-test', headers: { 'x-aimock-strict': 'true' } }, 201);
    const asked = { max_tokens: 4096, thinking: { type: 'enabled', budget_tokens: 1024 }, tools };
    const asks = [(body) => client.messages.create({ ...asked, ...body }), (body) => client.messages.stream({ ...asked, ...body }).finalMessage()];
    for (const ask of asks) {
        const model = 'strict/claude-sonnet-4';
        const first = await ask({ model, messages: says('ponder') });
        assert.equal(first.stop_reason, 'tool_use');
        assert.deepEqual(first.content.map((block) => block.type), ['redacted_thinking', 'thinking', 'text', 'tool_use']);
        assert.deepEqual([first.content[0].data, first.content[1].thinking, first.content[1].signature], [thought.data, thought.text, thought.signature]);
        const result = [{ type: 'tool_result', tool_use_id: first.content.at(-1).id, content: 'rain' }];
        const history = (content) => [...says('ponder'), { role: 'assistant', content }, { role: 'user', content: result }];
        assert.equal((await ask({ model, messages: history(first.content) })).content[0].text, 'It rains.');
        await assert.rejects(ask({ model, messages: history(first.content.slice(2)) }), /must begin with a `thinking` block/);
    }
});

test('images and documents', async () => {
    const data = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==';
    const content = [{ type: 'text', text: 'look at this' }, { type: 'image', source: { type: 'base64', media_type: 'image/png', data } },
        { type: 'document', title: 'notes', source: { type: 'text', media_type: 'text/plain', data: 'hello' } }];
    const message = await client.messages.create({ model: modelOf('generic-openai'), max_tokens: 50, messages: says(content) });
    assert.equal(message.content[0].text, 'A red dot.');
    const sent = JSON.stringify(both.mock.getRequests().at(-1).body);
    assert.match(sent, /data:image\/png;base64,iVBORw0KGgo/);
    assert.match(sent, /hello/);
});

test('tokens are counted, by estimate', async () => {
    const few = await client.messages.countTokens({ model: modelOf('anthropic'), messages: says('hi') });
    const many = await client.messages.countTokens({ model: modelOf('anthropic'), system: 'Be brief.', messages: says('hi '.repeat(400)) });
    assert.ok(few.input_tokens > 0 && many.input_tokens > few.input_tokens + 200);
    assert.equal(few.estimated, true);
});

test('models', async () => {
    const { data } = await client.models.list();
    assert.ok(data.length > providers.length && data.every((model) => model.type === 'model' && model.display_name));
    const plain = data.find((model) => !model.id.includes('/'));
    assert.equal((await client.models.retrieve(plain.id)).id, plain.id);
    await assert.rejects(client.models.retrieve('no-such-model'), (e) => e instanceof Anthropic.NotFoundError && e.error.error.type === 'not_found_error');
});

test('who may not, and what is wrong', async () => {
    const of = (options) => new Anthropic({ baseURL: both.h.url, maxRetries: 0, ...options });
    const ask = (one, more = {}) => one.messages.create({ model: modelOf('anthropic'), max_tokens: 9, messages: says('say it'), ...more });
    await assert.rejects(ask(of({ apiKey: 'no-key' })), (e) => e instanceof Anthropic.AuthenticationError && e.error.error.type === 'authentication_error');
    assert.equal((await ask(of({ apiKey: null, authToken: key }))).content[0].text, text);
    const poor = await newApp(both.h);
    await assert.rejects(ask(of({ apiKey: 'no-key', defaultHeaders: { 'x-app-id': poor } })), (e) => e instanceof Anthropic.PermissionDeniedError && /llm\.chat/.test(e.message));
    for (const more of [{ messages: [] }, { max_tokens: 0 }, { temperature: 2 }, { messages: says([{ type: 'sound' }]) }, { tool_choice: { type: 'tool' } },
        { tools: [{ type: 'web_search_20250305', name: 'web_search' }] }])
        await assert.rejects(ask(client, more), (e) => e instanceof Anthropic.BadRequestError && e.error.error.type === 'invalid_request_error', JSON.stringify(more));
});
