// Structured output through POST /v1/messages as three client libraries ask for it, unchanged but for their base URL: the official
// `@anthropic-ai/sdk`, `ai` with `@ai-sdk/anthropic`, and `@langchain/anthropic`. By output_config.format, and by a tool that must be called.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { createAnthropic } from '@ai-sdk/anthropic';
import Anthropic from '@anthropic-ai/sdk';
import { zodOutputFormat } from '@anthropic-ai/sdk/helpers/zod';
import { ChatAnthropic } from '@langchain/anthropic';
import { generateText, Output, streamText } from 'ai';
import { z } from 'zod';
import { newKey } from '../api/kit.mjs';
import { modelOf, providers, startBoth } from './double.mjs';

const recipe = { name: 'Rösti', steps: ['grate', 'fry'], minutes: 30 };
const schema = z.object({ name: z.string(), steps: z.array(z.string()), minutes: z.number().int() });
const wish = 'write a recipe';

let both, key;
let sent = '';               // the last body the double got, as it came

before(async () => {
    both = await startBoth();
    ({ key } = await newKey(both.h));
    both.mock.serverInstance.server.prependListener('request', (incoming) => {
        const pieces = [];
        incoming.on('data', (piece) => pieces.push(piece));
        incoming.on('end', () => { sent = pieces.length ? Buffer.concat(pieces).toString() : sent; });
    });
    for (const toolName of ['json', 'extract'])
        both.mock.on({ userMessage: wish, toolName }, { toolCalls: [{ id: 'call_7', name: toolName, arguments: JSON.stringify(recipe) }] });
    both.mock.on({ userMessage: wish }, { content: JSON.stringify(recipe) });
    both.mock.on({ userMessage: 'write prose' }, { content: 'Certainly! Take two potatoes.' });
});
after(() => both?.stop());

// The schema went up: in the protocol's own words, or in the instruction of one that has none.
function schemaWentUp() {
    assert.match(sent, /\\*"minutes\\*":\s*\{\\*"type\\*":\\*"integer/);
    assert.doesNotMatch(sent, /output_config|output_format/);
}

for (const provider of providers)
    describe(`with ${provider} behind`, () => {
        const model = modelOf(provider);

        test('the official client', async () => {
            const client = new Anthropic({ apiKey: key, baseURL: both.h.url, maxRetries: 0 });
            const asked = (content) => ({ model, max_tokens: 500, messages: [{ role: 'user', content }], output_config: { format: zodOutputFormat(schema) } });
            const message = await client.messages.parse(asked(wish));
            assert.deepEqual(message.parsed_output, recipe);
            assert.deepEqual([message.stop_reason, message.content.length], ['end_turn', 1]);
            schemaWentUp();
            const streamed = await client.messages.stream(asked(wish)).finalMessage();
            assert.deepEqual(JSON.parse(streamed.content[0].text), recipe);
            if (provider === 'anthropic')       // by instruction there: the answer is checked
                await assert.rejects(client.messages.parse(asked('write prose')), /not the JSON that response_format asks for/);
            const wrong = { ...asked(wish), output_config: { format: { type: 'grammar' } } };
            await assert.rejects(client.messages.create(wrong), (e) => e instanceof Anthropic.BadRequestError && /output_config\.format\.type.*must be json_schema/.test(e.message));
        });

        test('ai', async () => {
            const anthropic = createAnthropic({ baseURL: `${both.h.url}/v1`, apiKey: key });
            for (const structuredOutputMode of ['outputFormat', 'jsonTool']) {
                const asked = { model: anthropic(model), maxOutputTokens: 500, prompt: wish, maxRetries: 0, output: Output.object({ schema }), providerOptions: { anthropic: { structuredOutputMode } } };
                assert.deepEqual((await generateText(asked)).output, recipe, structuredOutputMode);
                schemaWentUp();
                const streamed = streamText(asked);
                assert.deepEqual(await streamed.output, recipe, `${structuredOutputMode}, streamed`);
            }
        });

        test('langchain', async () => {
            const chat = new ChatAnthropic({ model, apiKey: key, anthropicApiUrl: both.h.url, maxRetries: 0, maxTokens: 500 });
            for (const method of ['jsonSchema', 'functionCalling']) {
                assert.deepEqual(await chat.withStructuredOutput(schema, { method }).invoke(wish), recipe, method);
                schemaWentUp();
            }
        });
    });
