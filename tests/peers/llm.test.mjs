// Chats through every protocol against a provider no one here wrote: @copilotkit/aimock, in all its moods.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { LLMock } from '@copilotkit/aimock';
import { startHearth, until } from '../api/harness.mjs';
import { newKey, refused } from '../api/kit.mjs';

const text = 'The quick brown fox jumps over the lazy dog.';
const endless = 'and on '.repeat(600);         // ten seconds: whoever leaves it does so before its end
const long = Array.from({ length: 60 }, (_, n) => `Sentence number ${n}.`).join(' ');
const providers = ['openai', 'anthropic', 'ollama', 'generic-openai'];

// One double for all providers: each protocol has its own path there.
const envOf = (url) => ({
    OPENAI_API_KEY: 'sk-test', OPENAI_BASE_URL: `${url}/v1`, ANTHROPIC_API_KEY: 'sk-ant-test', ANTHROPIC_BASE_URL: url,
    OLLAMA_HOST: url, OLLAMA_MODEL: 'llama3.2', GENERIC_OPENAI_BASE_URL: `${url}/v1`, GENERIC_OPENAI_MODEL: 'gpt-4o',
});

function teach(mock) {
    const error = (message, type, code) => ({ error: { message, type, code } });
    mock.on({ userMessage: 'say it' }, { content: text });
    mock.on({ userMessage: 'say much' }, { content: long }, { latency: 20 });
    mock.on({ userMessage: 'think' }, { content: '42', reasoning: 'Six times seven.' });
    mock.on({ userMessage: 'the weather' }, { toolCalls: [{ id: 'call_1', name: 'weather', arguments: '{"city":"Bern","days":2}' }] });
    mock.on({ userMessage: 'go on and on' }, { content: endless }, { latency: 20 });
    mock.on({ userMessage: 'break off' }, { content: long }, { truncateAfterChunks: 12, latency: 5 });
    mock.on({ userMessage: 'hang up' }, { content: long }, { truncateAfterChunks: 40, latency: 5 });
    mock.on({ userMessage: 'begin late' }, { content: text }, { streamingProfile: { ttft: 400, tps: 200 } });
    mock.on({ userMessage: 'be locked' }, { ...error('Incorrect API key provided', 'authentication_error', 'invalid_api_key'), status: 401 });
    mock.on({ userMessage: 'be busy' }, { ...error('Slow down', 'rate_limit_error', 'rate_limit'), status: 429, retryAfter: 17 });
    mock.on({ userMessage: 'be tired' }, { ...error('Overloaded', 'server_error', 'x'), status: 503 });
    mock.on({ userMessage: 'be garbled' }, { content: text }, { chaos: { malformedRate: 1 } });
    mock.on({ userMessage: 'lack a model' }, { ...error("The model 'nope' does not exist", 'invalid_request_error', 'model_not_found'), status: 404 });
    mock.on({ userMessage: 'give json' }, { content: '```json\n{"n": 1}\n```' });
    mock.on({ userMessage: 'give prose' }, { content: 'Certainly! One.' });
    for (const provider of providers)
        for (const how of ['whole', 'streamed']) {
            mock.on({ userMessage: `wake up ${provider} ${how}`, sequenceIndex: 0 }, { ...error('Not yet', 'server_error', 'x'), status: 503 });
            mock.on({ userMessage: `wake up ${provider} ${how}`, sequenceIndex: 1 }, { content: text });
        }
}

let mock, h, call, headers;
let nBrokenOff = 0;          // answers of the double whose client left; its journal does not tell

before(async () => {
    mock = new LLMock({ port: 0, chunkSize: 8 });
    teach(mock);
    await mock.start();
    mock.serverInstance.server.on('request', (incoming, outgoing) => outgoing.on('close', () => { nBrokenOff += !outgoing.writableFinished; }));
    h = await startHearth({ env: envOf(mock.url), settings: { 'llm.rest_after': 0 } });
    const key = await newKey(h);
    call = key.call;
    headers = { 'x-api-key': key.key };
});
after(async () => {
    await h?.stop();
    await mock?.stop();
});

const chat = (provider, content, more = {}) => call('POST', '/sdk/llm/chat', { provider, messages: [{ role: 'user', content }], ...more });

async function stream(provider, content, more = {}) {
    const body = { provider, messages: [{ role: 'user', content }], ...more };
    return h.sse('/sdk/llm/chat/stream', { method: 'POST', body, headers });
}

// All of a stream: its text, its last chunk, how it ended.
async function whole(provider, content, more) {
    const opened = await stream(provider, content, more);
    await opened.ended;
    assert.equal(opened.status, 200, opened.text());
    const chunks = opened.events.filter((event) => event.json);
    return { opened, chunks, last: chunks.at(-1)?.json, end: opened.events.at(-1), text: chunks.map((one) => one.json.textResponse ?? '').join('') };
}

for (const provider of providers)
    describe(provider, () => {
        test('a whole answer', async () => {
            const { status, body, headers: told, text: raw } = await chat(provider, 'say it');
            assert.equal(status, 200, raw);
            assert.equal(body.response.content, text);
            assert.equal(body.response.provider, provider);
            assert.ok(body.response.model);
            const { metrics } = body.response;
            assert.ok(metrics.prompt_tokens > 0 && metrics.completion_tokens > 0);
            assert.equal(metrics.total_tokens, metrics.prompt_tokens + metrics.completion_tokens);
            assert.ok(metrics.duration > 0 && metrics.outputTps > 0);
            assert.equal(told['x-hearth-provider'], provider);
            assert.ok(Number(told['x-hearth-overhead-ms']) >= 0 && Number(told['x-hearth-queue-ms']) >= 0);
        });

        test('a streamed answer, in the exact form', async () => {
            const { opened, chunks, last, end, text: told } = await whole(provider, 'say it');
            assert.equal(told, text);
            assert.ok(chunks.length > 3);
            const { uuid } = chunks[0].json;
            for (const line of opened.text().split('\n\n').slice(0, -3))
                assert.match(line, new RegExp(`^data: \\{"uuid":"${uuid}","type":"textResponseChunk","textResponse":".+","close":false,"error":false\\}$`));
            assert.equal(last.close, true);
            assert.equal(last.textResponse, '');
            assert.ok(last.metrics.prompt_tokens > 0 && last.metrics.completion_tokens > 0);
            assert.equal(end.data, '[DONE]');
            assert.equal(opened.headers['x-hearth-provider'], provider);
        });

        test('tool calls', async () => {
            const tools = [{ type: 'function', function: { name: 'weather', description: 'Tells it', parameters: { type: 'object', properties: { city: { type: 'string' } } } } }];
            const { body, text: raw } = await chat(provider, 'the weather', { tools });
            assert.equal(body.response?.finish_reason, 'tool_calls', raw);
            const [one] = body.response.tool_calls;
            assert.ok(one.id);
            assert.deepEqual([one.type, one.function.name, JSON.parse(one.function.arguments)], ['function', 'weather', { city: 'Bern', days: 2 }]);
            const { last } = await whole(provider, 'the weather', { tools });
            assert.deepEqual(JSON.parse(last.tool_calls[0].function.arguments), { city: 'Bern', days: 2 });
            const sent = mock.getRequests().at(-1);
            assert.ok(JSON.stringify(sent.body).includes('weather'));
        });

        test('thoughts stay apart from the answer', async () => {
            const { chunks, text: told } = await whole(provider, 'think');
            assert.equal(told, '42');
            if (provider !== 'ollama')          // the double knows no thoughts there
                assert.equal(chunks.map((one) => one.json.reasoning ?? '').join(''), 'Six times seven.');
            const { body } = await chat(provider, 'think');
            assert.equal(body.response.content, '42');
        });

        for (const mood of ['break off', 'hang up'])
            test(`an upstream that will ${mood} in the middle`, async () => {
                const { opened, end, chunks } = await whole(provider, mood);
                assert.ok(chunks.length > 1, opened.text());
                assert.equal(end.event, 'error', opened.text().slice(-500));
                assert.equal(end.json.code, 'LLM_STREAM_ERROR');
                assert.ok(end.json.error.length > 20);
                assert.ok(!opened.text().includes('[DONE]'));
            });

        test('refusals have their status, code and sentence, whole and streamed alike', async () => {
            const cases = [['be locked', 502, 'LLM_ERROR', /Incorrect API key/], ['be busy', 429, 'RATE_LIMIT', /Slow down/],
                ['be tired', 502, 'LLM_ERROR', /Overloaded/], ['be garbled', 502, 'LLM_ERROR', /./], ['lack a model', 400, 'INVALID_MODEL', /nope/]];
            for (const [mood, status, code, words] of cases)
                for (const path of ['/sdk/llm/chat', '/sdk/llm/chat/stream']) {
                    const reply = await call('POST', path, { provider, messages: [{ role: 'user', content: mood }] });
                    refused(reply, status, code, words);
                    assert.equal(reply.headers['retry-after'], mood === 'be busy' ? '17' : undefined);
                }
        });

        test('a 503 is followed by another attempt', async () => {
            const { body, text: raw } = await chat(provider, `wake up ${provider} whole`);
            assert.equal(body.response?.content, text, raw);
            assert.equal((await whole(provider, `wake up ${provider} streamed`)).text, text);
        });

        test('a slow first byte is waited for', async () => {
            const began = performance.now();
            assert.equal((await whole(provider, 'begin late')).text, text);
            assert.ok(performance.now() - began > 350);
        });

        test('a client that leaves cancels the upstream', async () => {
            const before = nBrokenOff;
            const opened = await stream(provider, 'go on and on');
            await opened.next();
            opened.close();
            await until(() => nBrokenOff > before, { what: 'the double sees its client leave' });
        });

        test('JSON is JSON, whatever the protocol knows of it', async () => {
            const schema = { type: 'object', required: ['n'], properties: { n: { type: 'integer' } } };
            const format = { response_format: { type: 'json_schema', json_schema: { name: 'count', schema } } };
            const { status, body, text: raw } = await chat(provider, 'give json', format);
            assert.equal(status, 200, raw);
            if (provider === 'anthropic') {             // by instruction: checked here, and prose is no answer
                assert.deepEqual(JSON.parse(body.response.content), { n: 1 });
                refused(await chat(provider, 'give prose', format), 502, 'LLM_ERROR', /not the JSON/);
                assert.ok(JSON.stringify(mock.getRequests().at(-1).body).includes('JSON Schema'));
            }
        });
    });

test('the providers are listed with their models, the default is active', async () => {
    const { body } = await call('GET', '/sdk/llm/providers/chat');
    assert.deepEqual(body.providers.map((one) => [one.provider, one.active]), providers.map((name, n) => [name, n === 0]));
    for (const one of body.providers) {
        assert.ok(one.models.length > 0, one.provider);
        assert.ok(one.models.every((model) => model.id && model.name));
    }
    assert.deepEqual((await call('GET', '/api/sdk/llm/providers')).body.llm, body.providers);
});

test('what nobody configured is told in words', async (t) => {
    refused(await chat('nobody', 'say it'), 400, 'PROVIDER_UNAVAILABLE', /configured are: openai, anthropic/);
    const bare = await startHearth({ t });
    const key = await newKey(bare);
    for (const path of ['/sdk/llm/chat', '/sdk/llm/chat/stream'])
        refused(await key.call('POST', path, { messages: [{ role: 'user', content: 'x' }] }), 503, 'PROVIDER_UNAVAILABLE', /`hearth provider add openai --api-key -`/);
    assert.deepEqual((await key.call('GET', '/sdk/llm/providers/chat')).body.providers, []);
});

test('streaming can be switched off for the generic provider', async (t) => {
    const one = await startHearth({ t, env: { ...envOf(mock.url), GENERIC_LLM_STREAMING_DISABLED: 'true' } });
    const key = await newKey(one);
    const opened = await one.sse('/sdk/llm/chat/stream', { method: 'POST', body: { provider: 'generic-openai', messages: [{ role: 'user', content: 'say it' }] },
        headers: { 'x-api-key': key.key } });
    await opened.ended;
    assert.deepEqual(opened.events.map((event) => event.json?.textResponse), [text, '', undefined]);
});

test('a resumable stream goes on where its client stopped', async () => {
    const body = { provider: 'generic-openai', messages: [{ role: 'user', content: 'say much' }] };
    const first = await h.sse('/sdk/llm/chat/stream', { method: 'POST', body, headers: { ...headers, 'x-hearth-resumable': '1' } });
    await first.next();
    const { id } = await first.next();
    const seen = first.events.filter((_, n) => n <= first.events.findIndex((event) => event.id === id));
    first.close();
    const again = await h.sse('/sdk/llm/chat/stream', { method: 'POST', body, headers: { ...headers, 'last-event-id': id } });
    await again.ended;
    assert.equal([...seen, ...again.events].map((event) => event.json?.textResponse ?? '').join(''), long);
    assert.equal(again.events.at(-1).data, '[DONE]');
    const stranger = await newKey(h);
    refused(await stranger.call('POST', '/sdk/llm/chat/stream', body, { 'last-event-id': id }), 404, 'STREAM_GONE');
    refused(await call('POST', '/sdk/llm/chat/stream', body, { 'last-event-id': 'nonsense' }), 400, 'VALIDATION_ERROR');
});

test('another provider answers when the default fails', async (t) => {
    const one = await startHearth({ t, env: { ...envOf(mock.url), OPENAI_BASE_URL: 'http://127.0.0.1:1/v1' }, settings: { 'llm.fallbacks': 'anthropic', 'llm.retries': 0 } });
    const key = await newKey(one);
    const { body, text: raw, headers: told } = await key.call('POST', '/sdk/llm/chat', { messages: [{ role: 'user', content: 'say it' }] });
    assert.equal(body.response?.provider, 'anthropic', raw);
    assert.equal(told['x-hearth-provider'], 'anthropic');
});
