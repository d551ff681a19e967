// Reasoning that must travel: what a model thought goes to the official clients and comes back to its maker unchanged, between a tool's call and
// its result. Against recorded sequences of the services' documentation: @copilotkit/aimock does not show the bodies it was sent.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { startHearth } from '../api/harness.mjs';
import { admin, newKey } from '../api/kit.mjs';
import { envOf, startRecorded } from './recorded.mjs';

let upstream, h, key, anthropic, openai;

before(async () => {
    upstream = await startRecorded();
    h = await startHearth({ env: envOf(upstream.url), settings: { 'llm.retries': 0, 'llm.rest_after': 0 } });
    ({ key } = await newKey(h));
    anthropic = new Anthropic({ apiKey: key, baseURL: h.url, maxRetries: 0 });
    openai = new OpenAI({ apiKey: key, baseURL: `${h.url}/v1`, maxRetries: 0 });
    await admin(h, 'POST', '/api/providers', { preset: 'gemini', name: 'gemini', base_url: `${upstream.url}/v1`, api_key: 'k-gemini-0123' }, 201);
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

    for (const how of hows)
        test(`encrypted thoughts of OpenAI come as blocks that nobody reads, and go back as they were, ${how}`, async () => {
            const model = `gpt-5-${how}`;
            upstream.say(model, (wire, body, nth) => (nth === 1 ? responses(body.stream) : wire && [body.stream ? wire.text('Done.') + wire.end([1, 2]) : wire.whole('Done.', [1, 2])]));
            const asked = { model: `openai/${model}`, max_tokens: 2000, tools };
            const first = await ask(how, { ...asked, messages: says('hi') });
            assert.deepEqual(first.content.map((block) => block.type), ['thinking', 'redacted_thinking', 'tool_use']);
            assert.deepEqual(lastBody(model).include, ['reasoning.encrypted_content']);
            const result = [{ type: 'tool_result', tool_use_id: first.content[2].id, content: 'fine' }];
            const messages = [...says('hi'), { role: 'assistant', content: first.content }, { role: 'user', content: result }];
            assert.equal((await ask(how, { ...asked, messages })).content[0].text, 'Done.');
            assert.deepEqual(lastBody(model).input.slice(1, 3), [item, call]);
            upstream.say('moved', (wire) => [wire.whole('Done.', [1, 2])]);
            await ask('whole', { ...asked, model: 'anthropic/moved', messages });
            assert.deepEqual(lastBody('moved').messages[1].content.map((block) => block.type), ['tool_use']);
        });
});

// What Responses answers ("Reasoning models", encrypted items): a thought and the call it led to.
const item = { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: 'The weather it is.' }], encrypted_content: 'gAAAAABo+/0==' };
const call = { type: 'function_call', call_id: 'call_1', name: 'weather', arguments: '{"city":"Bern"}' };

function responses(isStreamed) {
    const output = [{ ...item, status: 'completed' }, { ...call, id: 'fc_1', status: 'completed' }];
    const response = { model: 'gpt-said', status: 'completed', error: null, output, usage: { input_tokens: 3, output_tokens: 5 } };
    if (!isStreamed)
        return [JSON.stringify(response)];
    return [event({ type: 'response.output_item.added', output_index: 0, item: { ...item, summary: [], encrypted_content: 'gAAA' } }),
        event({ type: 'response.reasoning_summary_text.delta', output_index: 0, summary_index: 0, delta: 'The weather it is.' }),
        event({ type: 'response.output_item.done', output_index: 0, item: output[0] }), event({ type: 'response.output_item.added', output_index: 1, item: { ...output[1], arguments: '' } }),
        event({ type: 'response.function_call_arguments.delta', output_index: 1, delta: call.arguments }), event({ type: 'response.output_item.done', output_index: 1, item: output[1] }),
        event({ type: 'response.completed', response })];
}

describe('/v1/chat/completions', () => {
    const tools = ['weather', 'time'].map((name) => ({ type: 'function', function: { name, parameters: { type: 'object' } } }));
    const ask = async (how, body) => (how === 'whole' ? await openai.chat.completions.create(body) : await openai.chat.completions.stream(body).finalChatCompletion()).choices[0].message;
    const answered = (message) => [...says('hi'), message, ...message.tool_calls.map((one) => ({ role: 'tool', tool_call_id: one.id, content: 'fine' }))];
    const done = (wire, body) => [body.stream ? wire.text('Done.') + wire.end([1, 2]) : wire.whole('Done.', [1, 2])];

    for (const how of hows) {
        test(`a signature that Gemini gives with a call goes back to it, ${how}`, async () => {
            const model = `gemini ${how}`, extra_content = { google: { thought_signature: 'CiQB+/9==' } };
            const calls = [{ index: 0, id: 'c1', type: 'function', function: { name: 'weather', arguments: '{"city":"Bern"}' }, extra_content },
                { index: 1, id: 'c2', type: 'function', function: { name: 'time', arguments: '{}' } }];
            const data = (json) => `data: ${JSON.stringify(json)}\n\n`;
            upstream.say(model, (wire, body, nth) => (nth > 1 ? done(wire, body) : body.stream
                ? [data({ choices: [{ index: 0, delta: { role: 'assistant', tool_calls: [calls[0]] } }] }), data({ choices: [{ index: 0, delta: { tool_calls: [calls[1]] }, finish_reason: 'stop' }] }), 'data: [DONE]\n\n']
                : [JSON.stringify({ choices: [{ message: { role: 'assistant', content: null, tool_calls: calls }, finish_reason: 'stop' }] })]));
            const first = await ask(how, { model: `gemini/${model}`, messages: says('hi'), tools });
            assert.deepEqual(first.tool_calls.map((one) => one.extra_content), [extra_content, undefined]);
            assert.equal((await ask(how, { model: `gemini/${model}`, messages: answered(first), tools })).content, 'Done.');
            const sent = lastBody(model).messages[1].tool_calls;
            assert.deepEqual(sent[0].extra_content, extra_content);
            assert.equal(sent[1].extra_content.google.thought_signature, 'skip_thought_signature_validator');
            upstream.say('elsewhere', done);
            await ask('whole', { model: 'openai/elsewhere', messages: answered(first), tools });
            assert.doesNotMatch(JSON.stringify(lastBody('elsewhere')), /CiQB/);
        });

        test(`Anthropic's thoughts go back to it with a tool's result, ${how}`, async () => {
            const model = `claude-sonnet-4-5 ${how}`, told = [thoughts[0], thoughts[1], thoughts[2], thoughts[4]];
            upstream.say(model, (wire, body, nth) => (nth === 1 ? claude(told, 'tool_use', body.stream) : claude([{ type: 'text', text: 'Done.' }], 'end_turn', body.stream)));
            const asked = { model: `anthropic/${model}`, tools, reasoning_effort: 'high', max_completion_tokens: 8000, temperature: 0.5 };
            const first = await ask(how, { ...asked, messages: says('hi') });
            assert.deepEqual([first.content, first.thinking_blocks], ['Let me look.', told.slice(0, 2)]);
            if (how === 'whole')
                assert.equal(first.reasoning_content, thoughts[0].thinking);
            assert.deepEqual([lastBody(model).thinking, lastBody(model).temperature], [{ type: 'enabled', budget_tokens: 6400 }, undefined]);
            assert.equal((await ask(how, { ...asked, messages: answered(first) })).content, 'Done.');
            assert.deepEqual(lastBody(model).messages[1].content, told);
            assert.equal(lastBody(model).thinking.budget_tokens, 6400);
            const { thinking_blocks: lost, ...poor } = first;
            await ask(how, { ...asked, messages: answered(poor) });
            assert.deepEqual([lastBody(model).thinking, lastBody(model).temperature, lost.length], [undefined, 0.5, 2], 'nothing is asked for that would be refused');
        });

        test(`OpenAI's encrypted thoughts go back to it, ${how}`, async () => {
            const model = `gpt-5-chats-${how}`;
            upstream.say(model, (wire, body, nth) => (nth === 1 ? responses(body.stream) : done(wire, body)));
            const asked = { model: `openai/${model}`, tools, reasoning_effort: 'low' };
            const first = await ask(how, { ...asked, messages: says('hi') });
            assert.deepEqual(first.thinking_blocks.map((block) => block.type), ['redacted_thinking']);
            assert.equal((await ask(how, { ...asked, messages: answered(first) })).content, 'Done.');
            assert.deepEqual(lastBody(model).input.slice(1, 3), [item, call]);
            assert.deepEqual(lastBody(model).reasoning, { effort: 'low' });
        });
    }

    test('how hard a model is to think is passed on, or nothing', async () => {
        for (const [provider, effort, wanted] of [['generic-openai', 'minimal', { reasoning_effort: 'minimal' }], ['ollama', 'none', { think: false }], ['ollama', 'low', { think: true }]]) {
            const model = `effort ${provider} ${effort}`;
            upstream.say(model, done);
            await ask('whole', { model: `${provider}/${model}`, messages: says('hi'), reasoning_effort: effort });
            for (const [name, value] of Object.entries(wanted))
                assert.equal(lastBody(model)[name], value);
            await ask('whole', { model: `${provider}/${model}`, messages: says('hi') });
            assert.doesNotMatch(JSON.stringify(lastBody(model)), /reasoning_effort|think"/);
        }
    });

    test("the SDK's own routes tell what they always told", async () => {
        upstream.say('sdk', (wire, body) => claude(thoughts.slice(0, 2).concat(thoughts[4]), 'tool_use', body.stream));
        const { body: { response } } = await h.api('POST', '/sdk/llm/chat', { provider: 'anthropic', model: 'sdk', messages: says('hi') }, { authorization: `Bearer ${key}` });
        assert.deepEqual(Object.keys(response).sort(), ['content', 'finish_reason', 'metrics', 'model', 'provider', 'reasoning', 'tool_calls']);
        assert.deepEqual(Object.keys(response.tool_calls[0]).sort(), ['function', 'id', 'type']);
    });
});
