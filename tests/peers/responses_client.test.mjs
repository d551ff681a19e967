// /v1/responses and /v1/completions with programs no one here wrote: the official `openai` package, the AI SDK, LangChain; providers of every protocol behind.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { createOpenAI } from '@ai-sdk/openai';
import { HumanMessage, SystemMessage, ToolMessage } from '@langchain/core/messages';
import { ChatOpenAI } from '@langchain/openai';
import { generateObject, generateText, jsonSchema, stepCountIs, streamText, tool } from 'ai';
import OpenAI from 'openai';
import { startHearth, until } from '../api/harness.mjs';
import { newKey } from '../api/kit.mjs';
import { long, modelOf, providers, startBoth, text, weather } from './double.mjs';
import { envOf, startRecorded } from './recorded.mjs';

let both, key, client, ai;

before(async () => {
    both = await startBoth();
    ({ key } = await newKey(both.h));
    client = new OpenAI({ apiKey: key, baseURL: `${both.h.url}/v1`, maxRetries: 0 });
    ai = createOpenAI({ apiKey: key, baseURL: `${both.h.url}/v1` });
});
after(() => both?.stop());

const tools = [{ type: 'function', name: 'weather', description: 'Tells it', parameters: weather, strict: false }];
const counted = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'], additionalProperties: false };
const lastSent = () => JSON.stringify(both.mock.getRequests().at(-1).body);

for (const provider of providers)
    describe(`openai, with ${provider} behind`, () => {
        const model = modelOf(provider);
        const create = (input, more = {}) => client.responses.create({ model, input, ...more });

        test('an answer', async () => {
            const { data, response } = await create('say it', { instructions: 'Be brief.' }).withResponse();
            assert.deepEqual([data.object, data.status, data.output_text, data.error, data.incomplete_details], ['response', 'completed', text, null, null]);
            assert.ok(data.usage.input_tokens > 0 && data.usage.output_tokens > 0);
            assert.equal(response.headers.get('x-hearth-provider'), provider);
            assert.match(lastSent(), /Be brief\./);
        });

        test('a stream, added up by the client', async () => {
            const stream = client.responses.stream({ model, input: 'say it' });
            let told = '';
            stream.on('response.output_text.delta', (event) => { told += event.delta; });
            const final = await stream.finalResponse();
            assert.deepEqual([told, final.output_text, final.status], [text, text, 'completed']);
            const types = new Set();
            for await (const event of await create('say it', { stream: true }))
                types.add(event.type);
            for (const type of ['response.created', 'response.in_progress', 'response.output_item.added', 'response.content_part.added', 'response.output_text.delta',
                'response.output_text.done', 'response.content_part.done', 'response.output_item.done', 'response.completed'])
                assert.ok(types.has(type), type);
        });

        for (const how of ['whole', 'streamed'])
            test(`a tool, called and answered in a thread, ${how}`, async () => {
                const ask = (input, more) => (how === 'whole' ? create(input, { tools, ...more }) : client.responses.stream({ model, input, tools, ...more }).finalResponse());
                const first = await ask('the weather');
                const [call] = first.output;
                assert.deepEqual([call.type, call.name, JSON.parse(call.arguments), call.status], ['function_call', 'weather', { city: 'Bern', days: 2 }, 'completed']);
                const answered = { type: 'function_call_output', call_id: call.call_id, output: '21 degrees' };
                const second = await ask([answered, { role: 'user', content: 'say it' }], { previous_response_id: first.id });
                assert.ok(second.output_text.length > 0);
                assert.equal(second.previous_response_id, first.id);
                for (const part of [/the weather/, /Bern/, /21 degrees/, /Tells it/])
                    assert.match(lastSent(), part);
                const alone = await ask([{ role: 'user', content: 'the weather' }, ...first.output, answered, { role: 'user', content: 'say it' }], { store: false });
                assert.ok(alone.output_text.length > 0);
                assert.match(lastSent(), /21 degrees/);
            });

        test('three turns of a thread', async () => {
            const first = await create('say it: my name is Ada');
            const second = await create('say it: I live in Bern', { previous_response_id: first.id });
            await create('say it: and now?', { previous_response_id: second.id });
            const sent = lastSent();
            assert.ok(sent.indexOf('Ada') < sent.indexOf('Bern') && sent.indexOf('Bern') < sent.indexOf('and now') && sent.includes('Ada'), sent);
            assert.equal(sent.split(text).length, 3, 'both answers stand between');
        });

        test('an answer by a schema, parsed', async () => {
            const parsed = await client.responses.parse({ model, input: 'give json', text: { format: { type: 'json_schema', name: 'counted', strict: true, schema: counted } } });
            assert.deepEqual(JSON.parse(parsed.output_text), { n: 1 });
            const plain = await create('give json', { text: { format: { type: 'json_object' } } });
            assert.deepEqual(JSON.parse(plain.output_text), { n: 1 });
        });

        test('errors are of the right class', async () => {
            await assert.rejects(create('be busy'), (e) => e instanceof OpenAI.RateLimitError && e.code === 'rate_limit_exceeded');
            await assert.rejects(create('lack a model'), (e) => e instanceof OpenAI.NotFoundError && e.code === 'model_not_found');
            await assert.rejects(create('be tired', { stream: true }), (e) => e instanceof OpenAI.InternalServerError && e.status === 502);
        });

        test('an upstream that hangs up in the middle is an error of the stream', async () => {
            let seen = '';
            await assert.rejects(async () => {
                for await (const event of await create('hang up', { stream: true }))
                    seen += event.type === 'response.output_text.delta' ? event.delta : '';
            }, (e) => e instanceof OpenAI.APIError && /ended its answer|closed|cut/.test(e.message));
            assert.ok(long.startsWith(seen) && seen.length > 0);
        });

        test('a client that leaves cancels the provider', async () => {
            const before_ = both.nBrokenOff();
            for await (const event of await create('go on and on', { stream: true }))
                if (event.type === 'response.output_text.delta')
                    break;
            await until(() => both.nBrokenOff() > before_, { what: 'the double sees its client leave' });
        });

        test('a completion', async () => {
            const whole = await client.completions.create({ model, prompt: 'say it' });
            assert.deepEqual([whole.object, whole.choices[0].text, whole.choices[0].finish_reason], ['text_completion', text, 'stop']);
            let told = '';
            for await (const chunk of await client.completions.create({ model, prompt: 'say it', stream: true }))
                told += chunk.choices[0].text;
            assert.equal(told, text);
        });
    });

describe('openai', () => {
    const model = modelOf('generic-openai');

    test('an answer is read again and removed', async () => {
        const made = await client.responses.create({ model, input: 'say it' });
        assert.equal((await client.responses.retrieve(made.id)).output_text, text);
        await client.responses.delete(made.id);
        await assert.rejects(client.responses.retrieve(made.id), (e) => e instanceof OpenAI.NotFoundError && e.message.includes(made.id));
        await assert.rejects(client.responses.create({ model, input: 'say it', previous_response_id: made.id }),
            (e) => e instanceof OpenAI.NotFoundError && e.param === 'previous_response_id' && e.message.includes(made.id));
    });

    test('images and files', async () => {
        const image_url = 'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==';
        const content = [{ type: 'input_text', text: 'look at this' }, { type: 'input_image', image_url, detail: 'auto' },
            { type: 'input_file', filename: 'notes.txt', file_data: 'data:text/plain;base64,aGVsbG8=' }];
        const made = await client.responses.create({ model, input: [{ role: 'user', content }] });
        assert.equal(made.output_text, 'A red dot.');
        assert.match(lastSent(), /iVBORw0KGgo/);
        assert.match(lastSent(), /hello/);
    });

    test('thoughts come as items of reasoning', async () => {
        const made = await client.responses.create({ model, input: 'think' });
        assert.deepEqual(made.output.map((item) => item.type), ['reasoning', 'message']);
        assert.equal(made.output[0].summary[0].text, 'Six times seven.');
        const stream = client.responses.stream({ model, input: 'think' });
        let told = '';
        stream.on('response.reasoning_summary_text.delta', (event) => { told += event.delta; });
        assert.deepEqual((await stream.finalResponse()).output.map((item) => item.type), ['reasoning', 'message']);
        assert.equal(told, 'Six times seven.');
    });

    test('tools that a provider runs itself are refused', async () => {
        await assert.rejects(client.responses.create({ model, input: 'x', tools: [{ type: 'web_search' }] }),
            (e) => e instanceof OpenAI.BadRequestError && e.param === 'tools[0].type' && /must be function/.test(e.message));
    });
});

// Signed thoughts are needed between a tool's call and its result: they must come back to Anthropic as they were, whichever way the client returns them.
describe('thoughts that must travel', () => {
    const event = (json) => `event: ${json.type}\ndata: ${JSON.stringify(json)}\n\n`;
    const head = { id: 'msg_1', type: 'message', role: 'assistant', model: 'claude-said' }, usage = { input_tokens: 3, output_tokens: 5 };
    const thoughts = [{ type: 'thinking', thinking: 'Bern… “Grüße” 😀\n\t\\"', signature: 'EqoBCkgIARABGAIiQL2+/oU0b1==' }, { type: 'redacted_thinking', data: 'EmwKAhgBEgy3va3pzix/LafPsn4=' },
        { type: 'tool_use', id: 'toolu_1', name: 'weather', input: { city: 'Bern' } }];
    const parts = (index) => [
        event({ type: 'content_block_start', index: 0, content_block: { type: 'thinking', thinking: '', signature: '' } }),
        event({ type: 'content_block_delta', index: 0, delta: { type: 'thinking_delta', thinking: thoughts[0].thinking } }),
        event({ type: 'content_block_delta', index: 0, delta: { type: 'signature_delta', signature: thoughts[0].signature } }),
        event({ type: 'content_block_stop', index: 0 }),
        event({ type: 'content_block_start', index: 1, content_block: thoughts[1] }), event({ type: 'content_block_stop', index: 1 }),
        event({ type: 'content_block_start', index: 2, content_block: { ...thoughts[2], input: {} } }),
        event({ type: 'content_block_delta', index: 2, delta: { type: 'input_json_delta', partial_json: '{"city":"Bern"}' } }), event({ type: 'content_block_stop', index: 2 }),
    ][index];
    const asks = (body) => body.stream
        ? [event({ type: 'message_start', message: { ...head, content: [], usage } }), ...Array.from({ length: 9 }, (_, n) => parts(n)),
            event({ type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage }), event({ type: 'message_stop' })]
        : [JSON.stringify({ ...head, content: thoughts, stop_reason: 'tool_use', usage })];
    const done = (body) => body.stream
        ? [event({ type: 'message_start', message: { ...head, content: [], usage } }), event({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'It rains.' } }),
            event({ type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage }), event({ type: 'message_stop' })]
        : [JSON.stringify({ ...head, content: [{ type: 'text', text: 'It rains.' }], stop_reason: 'end_turn', usage })];
    let upstream, h, own, one;

    before(async () => {
        upstream = await startRecorded();
        h = await startHearth({ env: envOf(upstream.url), settings: { 'llm.retries': 0, 'llm.rest_after': 0 } });
        ({ key: own } = await newKey(h));
        one = new OpenAI({ apiKey: own, baseURL: `${h.url}/v1`, maxRetries: 0 });
    });
    after(async () => {
        await h?.stop();
        upstream?.stop();
    });

    for (const how of ['whole', 'streamed'])
        for (const way of ['previous_response_id', 'items', 'references'])
            test(`by ${way}, ${how}`, async () => {
                const model = `travel by ${way} ${how}`;
                upstream.say(model, (wire, body, nth) => (nth === 1 ? asks(body) : done(body)));
                const ask = (body) => (how === 'whole' ? one.responses.create(body) : one.responses.stream(body).finalResponse());
                const asked = { model: `anthropic/${model}`, tools };
                const first = await ask({ ...asked, input: 'hi' });
                assert.deepEqual(first.output.map((item) => item.type), ['reasoning', 'reasoning', 'function_call']);
                const result = { type: 'function_call_output', call_id: 'toolu_1', output: 'rain' }, hi = { role: 'user', content: 'hi' };
                const rest = { previous_response_id: { input: [result], previous_response_id: first.id }, items: { input: [hi, ...first.output, result] },
                    references: { input: [hi, ...first.output.map(({ id }) => ({ type: 'item_reference', id })), result] } }[way];
                assert.equal((await ask({ ...asked, ...rest })).output_text, 'It rains.');
                assert.deepEqual(upstream.askedFor(model).at(-1).body.messages[1], { role: 'assistant', content: thoughts });
            });
});

for (const provider of providers)
    describe(`the AI SDK, with ${provider} behind`, () => {
        const model = () => ai.responses(modelOf(provider));
        const weatherTool = { weather: tool({ description: 'Tells it', inputSchema: jsonSchema(weather), execute: () => '21 degrees' }) };

        test('a text, whole and streamed', async () => {
            assert.equal((await generateText({ model: model(), prompt: 'say it', maxRetries: 0 })).text, text);
            const stream = streamText({ model: model(), prompt: 'say it', maxRetries: 0 });
            let told = '';
            for await (const part of stream.textStream)
                told += part;
            assert.equal(told, text);
            assert.equal(await stream.finishReason, 'stop');
            assert.ok((await stream.usage).inputTokens > 0);
        });

        for (const store of [true, false])
            test(`a tool, called and answered, ${store ? 'by references to what is kept' : 'with nothing kept'}`, async () => {
                const options = { model: model(), prompt: 'the weather', tools: weatherTool, stopWhen: stepCountIs(2), maxRetries: 0, providerOptions: { openai: { store } } };
                const whole = await generateText(options);
                assert.deepEqual(whole.steps[0].toolCalls[0].input, { city: 'Bern', days: 2 });
                assert.equal(whole.steps.length, 2);
                assert.match(lastSent(), /21 degrees/);
                const stream = streamText(options);
                await stream.consumeStream();
                assert.deepEqual((await stream.steps)[0].toolCalls[0].input, { city: 'Bern', days: 2 });
                assert.match(lastSent(), /21 degrees/);
            });

        test('an object by a schema', async () => {
            const { object } = await generateObject({ model: model(), prompt: 'give json', schema: jsonSchema(counted), maxRetries: 0 });
            assert.deepEqual(object, { n: 1 });
        });

        test('a thread', async () => {
            const first = await generateText({ model: model(), prompt: 'say it: my name is Ada', maxRetries: 0 });
            const previousResponseId = first.providerMetadata.openai.responseId;
            await generateText({ model: model(), prompt: 'say it again', maxRetries: 0, providerOptions: { openai: { previousResponseId } } });
            assert.match(lastSent(), /Ada/);
        });

        test('an upstream that hangs up in the middle is an error of the stream', async () => {
            const errors = [];
            const stream = streamText({ model: model(), prompt: 'hang up', maxRetries: 0, onError: ({ error }) => errors.push(error) });
            await stream.consumeStream().catch(() => {});
            assert.ok(errors.length > 0);
        });
    });

for (const provider of providers)
    describe(`LangChain, with ${provider} behind`, () => {
        const model = (more = {}) => new ChatOpenAI({ model: modelOf(provider), apiKey: key, configuration: { baseURL: `${both.h.url}/v1` }, useResponsesApi: true, maxRetries: 0, ...more });

        test('a text, whole and streamed', async () => {
            assert.equal((await model().invoke([new SystemMessage('Be brief.'), new HumanMessage('say it')])).text, text);
            let told = '';
            for await (const chunk of await model({ streaming: true }).stream('say it'))
                told += chunk.text;
            assert.equal(told, text);
        });

        test('a tool, called and answered', async () => {
            const bound = model().bindTools([{ type: 'function', function: { name: 'weather', description: 'Tells it', parameters: weather } }]);
            const first = await bound.invoke('the weather');
            assert.deepEqual([first.tool_calls[0].name, first.tool_calls[0].args], ['weather', { city: 'Bern', days: 2 }]);
            await bound.invoke([new HumanMessage('the weather'), first, new ToolMessage({ content: '21 degrees', tool_call_id: first.tool_calls[0].id })]);
            assert.match(lastSent(), /21 degrees/);
        });
    });
