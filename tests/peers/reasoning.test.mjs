// Reasoning that must travel: what a model thought goes to the official clients and comes back to its maker unchanged, between a tool's call and
// its result. Against recorded sequences of the services' documentation: @copilotkit/aimock does not show the bodies it was sent.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import Anthropic from '@anthropic-ai/sdk';
import { startHearth } from '../api/harness.mjs';
import { newKey } from '../api/kit.mjs';
import { envOf, startRecorded } from './recorded.mjs';

let upstream, h, key, anthropic;

before(async () => {
    upstream = await startRecorded();
    h = await startHearth({ env: envOf(upstream.url), settings: { 'llm.retries': 0, 'llm.rest_after': 0 } });
    ({ key } = await newKey(h));
    anthropic = new Anthropic({ apiKey: key, baseURL: h.url, maxRetries: 0 });
});
after(async () => {
    await h?.stop();
    upstream?.stop();
});

const says = (content) => [{ role: 'user', content }];
const event = (json) => `event: ${json.type}\ndata: ${JSON.stringify(json)}\n\n`;
const hows = ['whole', 'streamed'];
const lastBody = (model) => upstream.askedFor(model).at(-1).body;

// As docs.claude.com, "Streaming messages", tells each block.
const partsOf = {
    thinking: (block) => [{ ...block, thinking: '', signature: '' }, ...[...block.thinking].map((thinking) => ({ type: 'thinking_delta', thinking })), { type: 'signature_delta', signature: block.signature }],
    redacted_thinking: (block) => [block],
    text: (block) => [{ ...block, text: '' }, { type: 'text_delta', text: block.text }],
    tool_use: (block) => [{ ...block, input: {} }, { type: 'input_json_delta', partial_json: JSON.stringify(block.input) }],
};

function claude(content, stop_reason, isStreamed) {
    const usage = { input_tokens: 3, output_tokens: 5 }, head = { id: 'msg_1', type: 'message', role: 'assistant', model: 'claude-said' };
    if (!isStreamed)
        return [JSON.stringify({ ...head, content, stop_reason, usage })];
    const blocks = content.map((block, index) => {
        const [start, ...deltas] = partsOf[block.type](block);
        return event({ type: 'content_block_start', index, content_block: start }) + deltas.map((delta) => event({ type: 'content_block_delta', index, delta })).join('')
            + event({ type: 'content_block_stop', index });
    });
    return [event({ type: 'message_start', message: { ...head, content: [], usage } }), event({ type: 'ping' }), ...blocks,
        event({ type: 'message_delta', delta: { stop_reason }, usage: { output_tokens: 5 } }), event({ type: 'message_stop' })];
}

const thoughts = [
    { type: 'thinking', thinking: 'Bern… “Grüße” 😀\n\t\\"', signature: 'EqoBCkgIARABGAIiQL2+/oU0b1==' },
    { type: 'redacted_thinking', data: 'EmwKAhgBEgy3va3pzix/LafPsn4=' },
    { type: 'text', text: 'Let me look.' },
    { type: 'thinking', thinking: '', signature: 'EkeptBack==' },
    { type: 'tool_use', id: 'toolu_1', name: 'weather', input: { city: 'Bern' } },
    { type: 'thinking', thinking: 'And the time.', signature: 'EpBetweenCalls' },
    { type: 'tool_use', id: 'toolu_2', name: 'time', input: {} },
];

describe('/v1/messages', () => {
    const tools = ['weather', 'time'].map((name) => ({ name, input_schema: { type: 'object' } }));
    const results = ['toolu_1', 'toolu_2'].map((tool_use_id) => ({ type: 'tool_result', tool_use_id, content: 'fine' }));
    const ask = (how, body) => (how === 'whole' ? anthropic.messages.create(body) : anthropic.messages.stream(body).finalMessage());

    for (const how of hows)
        test(`thoughts between tools come back to Anthropic as they were, ${how}`, async () => {
            const model = `travel ${how}`, thinking = { type: 'adaptive', display: 'summarized' }, output_config = { effort: 'high' };
            upstream.say(model, (wire, body, nth) => (nth === 1 ? claude(thoughts, 'tool_use', body.stream) : claude([{ type: 'text', text: 'Done.' }], 'end_turn', body.stream)));
            const asked = { model: `anthropic/${model}`, max_tokens: 2000, thinking, output_config, tools };
            const first = await ask(how, { ...asked, messages: says('hi') });
            assert.deepEqual(first.content, thoughts);
            assert.deepEqual([lastBody(model).thinking, lastBody(model).output_config, lastBody(model).temperature], [thinking, output_config, undefined]);
            const second = await ask(how, { ...asked, messages: [...says('hi'), { role: 'assistant', content: first.content }, { role: 'user', content: results }] });
            assert.equal(second.content[0].text, 'Done.');
            assert.deepEqual(lastBody(model).messages[1], { role: 'assistant', content: thoughts });
        });

    for (const provider of ['openai', 'ollama', 'generic-openai'])
        test(`${provider} is not told another model's thoughts`, async () => {
            const model = `foreign ${provider}`;
            upstream.say(model, (wire) => [wire.whole('Done.', [1, 2])]);
            await ask('whole', { model: `${provider}/${model}`, max_tokens: 2000, thinking: { type: 'enabled', budget_tokens: 1024 }, tools,
                messages: [...says('hi'), { role: 'assistant', content: thoughts }, { role: 'user', content: results }] });
            const sent = JSON.stringify(lastBody(model));
            assert.doesNotMatch(sent, /Grüße|Eqo|Emw|kept|Between|thinking|budget/);
            assert.match(sent, /Let me look/);
        });

    test('thoughts of a model that signs none have an empty signature, and Anthropic is not sent them', async () => {
        upstream.say('unsigned', (wire, body) => (body.stream ? [wire.thought('Six times seven.'), wire.text('42'), wire.end([1, 2])] : ['{}']));
        const first = await ask('streamed', { model: 'generic-openai/unsigned', max_tokens: 20, messages: says('hi') });
        assert.deepEqual(first.content, [{ type: 'thinking', thinking: 'Six times seven.', signature: '' }, { type: 'text', text: '42' }]);
        upstream.say('signed', (wire) => [wire.whole('Done.', [1, 2])]);
        await ask('whole', { model: 'anthropic/signed', max_tokens: 20, messages: [...says('hi'), { role: 'assistant', content: first.content }, ...says('more')] });
        assert.deepEqual(lastBody('signed').messages[1], { role: 'assistant', content: [{ type: 'text', text: '42' }] });
    });
});
