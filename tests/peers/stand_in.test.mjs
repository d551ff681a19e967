// The stand-in beside a provider: official clients get answers of the same shape from both, in every interface.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import Anthropic from '@anthropic-ai/sdk';
import { Ollama } from 'ollama';
import OpenAI from 'openai';
import { newKey } from '../api/kit.mjs';
import { modelOf, startBoth, weather } from './double.mjs';

const double = modelOf('generic-openai');
const standIn = 'stand-in/stand-in';
const sayIt = 'say it';
const callIt = 'the weather\ncall weather {"city":"Bern","days":2}';
const openaiTools = [{ type: 'function', function: { name: 'weather', description: 'Tells it', parameters: weather } }];
const says = (content) => [{ role: 'user', content }];
let both, openai, anthropic, ollama;

before(async () => {
    both = await startBoth();
    assert.equal((await both.h.cli('provider', 'add', 'stand-in')).code, 0);
    const { key } = await newKey(both.h);
    openai = new OpenAI({ apiKey: key, baseURL: `${both.h.url}/v1`, maxRetries: 0 });
    anthropic = new Anthropic({ apiKey: key, baseURL: both.h.url, maxRetries: 0 });
    ollama = new Ollama({ host: both.h.url, headers: { authorization: `Bearer ${key}` } });
});
after(() => both?.stop());

// Types in the place of values; of the elements of an array each shape once. `estimated`: the double reports no usage of embeddings.
function shapeOf(value) {
    if (Array.isArray(value))
        return [...new Set(value.map((item) => JSON.stringify(shapeOf(item))))].sort();
    if (value === null || typeof value !== 'object')
        return value === null ? 'null' : typeof value;
    return Object.fromEntries(Object.entries(value).filter(([name, item]) => item !== undefined && name !== 'estimated').map(([name, item]) => [name, shapeOf(item)]).sort());
}

async function all(stream) {
    const events = [];
    for await (const event of await stream)
        events.push(event);
    return events;
}

// What a client sees of one answer. `said` is the text or the arguments, to show that there is an answer at all.
const interfaces = {
    'openai chat': {
        say: async (model) => openai.chat.completions.create({ model, messages: says(sayIt) }),
        stream: (model) => all(openai.chat.completions.create({ model, messages: says(sayIt), stream: true, stream_options: { include_usage: true } })),
        call: (model) => openai.chat.completions.create({ model, messages: says(callIt), tools: openaiTools }),
        'streamed call': (model) => all(openai.chat.completions.create({ model, messages: says(callIt), tools: openaiTools, stream: true })),
        embed: (model) => openai.embeddings.create({ model: model === standIn ? 'stand-in/stand-in-embed' : model, input: ['red apples'] }),
    },
    'openai responses': {
        say: (model) => openai.responses.create({ model, input: sayIt }),
        stream: (model) => all(openai.responses.create({ model, input: sayIt, stream: true })),
        call: (model) => openai.responses.create({ model, input: callIt, tools: [{ type: 'function', name: 'weather', parameters: weather, strict: false }] }),
    },
    anthropic: {
        say: (model) => anthropic.messages.create({ model, max_tokens: 200, messages: says(sayIt) }),
        stream: (model) => all(anthropic.messages.create({ model, max_tokens: 200, messages: says(sayIt), stream: true })),
        call: (model) => anthropic.messages.create({ model, max_tokens: 200, messages: says(callIt), tools: [{ name: 'weather', input_schema: weather }] }),
    },
    ollama: {
        say: (model) => ollama.chat({ model, messages: says(sayIt) }),
        stream: async (model) => all(ollama.chat({ model, messages: says(sayIt), stream: true })),
        call: (model) => ollama.chat({ model, messages: says(callIt), tools: openaiTools }),
        embed: (model) => ollama.embed({ model: model === standIn ? 'stand-in/stand-in-embed' : model, input: ['red apples'] }),
    },
};

for (const [name, requests] of Object.entries(interfaces))
    describe(name, () => {
        for (const [what, request] of Object.entries(requests))
            test(`${what}: the stand-in's answer has the shape of a provider's`, async () => {
                const ours = await request(standIn);
                assert.deepEqual(shapeOf(ours), shapeOf(await request(double)));
                assert.match(JSON.stringify(ours), what.includes('call') ? /Bern/ : what === 'embed' ? /\d/ : /it/);
            });
    });

test('a whole loop with a tool: the call, its result, the answer', async () => {
    const messages = says(callIt);
    const first = await openai.chat.completions.create({ model: standIn, messages, tools: openaiTools });
    const [call] = first.choices[0].message.tool_calls;
    assert.deepEqual(JSON.parse(call.function.arguments), { city: 'Bern', days: 2 });
    messages.push(first.choices[0].message, { role: 'tool', tool_call_id: call.id, content: 'rain' });
    const second = await openai.chat.completions.create({ model: standIn, messages, tools: openaiTools });
    assert.match(second.choices[0].message.content, /^\[stand-in model: .*\] The tool answered: rain$/);
});

test('refusals are the errors that the clients know', async () => {
    const refused = (status) => openai.chat.completions.create({ model: standIn, messages: says(`fail ${status} 17`) }).catch((error) => error);
    const busy = await refused(429);
    assert.ok(busy instanceof OpenAI.RateLimitError);
    assert.equal(busy.headers.get('retry-after'), '17');
    assert.ok(await refused(503) instanceof OpenAI.InternalServerError);
    const error = await anthropic.messages.create({ model: standIn, max_tokens: 9, messages: says('fail 429') }).catch((e) => e);
    assert.ok(error instanceof Anthropic.RateLimitError);
});

test('a schema gets JSON that fits it, through the client of every interface', async () => {
    const schema = { type: 'object', properties: { n: { type: 'integer', minimum: 3 } }, required: ['n'], additionalProperties: false };
    const chat = await openai.chat.completions.create({ model: standIn, messages: says('how many?'), response_format: { type: 'json_schema', json_schema: { name: 'n', schema, strict: true } } });
    const response = await openai.responses.create({ model: standIn, input: 'how many?', text: { format: { type: 'json_schema', name: 'n', schema, strict: true } } });
    const { message } = await ollama.chat({ model: standIn, messages: says('how many?'), format: schema });
    for (const text of [chat.choices[0].message.content, response.output_text, message.content])
        assert.deepEqual(JSON.parse(text), { n: 3 });
});
