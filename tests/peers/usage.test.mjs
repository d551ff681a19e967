// Limits and usage as the official clients meet them (docs/usage.md): the routes of /v1 go through the same place as all others.
import Anthropic from '@anthropic-ai/sdk';
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import OpenAI from 'openai';
import { until } from '../api/harness.mjs';
import { admin, isRestOfMinute, newKey } from '../api/kit.mjs';
import { modelOf, providers, startBoth } from './double.mjs';

let both;
before(async () => { both = await startBoth(); });
after(() => both?.stop());

const says = (content) => [{ role: 'user', content }];

async function clients() {
    const { id, key } = await newKey(both.h);
    return {
        id,
        openai: new OpenAI({ apiKey: key, baseURL: `${both.h.url}/v1`, maxRetries: 0 }),
        anthropic: new Anthropic({ apiKey: key, baseURL: both.h.url, maxRetries: 0 }),
    };
}

async function last(stream) {
    let chunk;
    for await (chunk of stream);
    return chunk;
}

const usageOf = async (id, group) => admin(both.h, 'GET', `/api/usage?key=${id}&group=${group}`);

test('beyond a limit the official clients get their own error with Retry-After', async () => {
    const { id, openai, anthropic } = await clients();
    await admin(both.h, 'PUT', `/api/limits/keys/${id}`, { requests_a_minute: 2 });
    const ask = { model: modelOf('openai'), messages: says('say it') };
    const began = performance.now();
    await openai.chat.completions.create(ask);
    await anthropic.messages.create({ ...ask, max_tokens: 100 });
    const nAsked = both.mock.getRequests().length;
    const isLimit = (Kind) => (e) => {
        assert.ok(e instanceof Kind, `${e}`);
        const seconds = Number(e.headers.get('retry-after'));
        assert.ok(isRestOfMinute(seconds, began), `Retry-After ${seconds}`);
        assert.match(e.message, new RegExp(`This developer key has reached its limit of 2 requests a minute; try again in ${seconds} seconds\\.`));
        return true;
    };
    await assert.rejects(openai.chat.completions.create(ask), isLimit(OpenAI.RateLimitError));
    await assert.rejects(openai.chat.completions.create({ ...ask, stream: true }), isLimit(OpenAI.RateLimitError));
    await assert.rejects(openai.embeddings.create({ model: 'openai/text-embedding-3-small', input: 'red apples' }), isLimit(OpenAI.RateLimitError));
    await assert.rejects(anthropic.messages.create({ ...ask, max_tokens: 100 }), isLimit(Anthropic.RateLimitError));
    await assert.rejects(last(anthropic.messages.stream({ ...ask, max_tokens: 100 })), isLimit(Anthropic.RateLimitError));
    assert.equal(both.mock.getRequests().length, nAsked);
    assert.ok((await openai.models.list()).data.length > 0, 'a list of models is no request to a model');
});

test('a client that retries by itself succeeds when there is room again', async () => {
    const { id, openai } = await clients();
    const retrying = openai.withOptions({ maxRetries: 100 });
    await admin(both.h, 'PUT', `/api/limits/keys/${id}`, { tokens_a_minute: 100_000 });
    const many = Array.from({ length: 4 }, () => retrying.chat.completions.create({ model: modelOf('openai'), messages: says('say much'), max_tokens: 60_000 }));
    assert.equal((await Promise.all(many)).length, 4);
});

for (const provider of providers)
    test(`usage is what the clients were told, with ${provider} behind`, async () => {
        const { id, openai, anthropic } = await clients();
        const ask = { model: modelOf(provider), messages: says('say it') };
        let prompt = 0;
        let completion = 0;
        const { usage } = await openai.chat.completions.create(ask);
        const { usage: streamed } = await last(await openai.chat.completions.create({ ...ask, stream: true, stream_options: { include_usage: true } }));
        for (const told of [usage, streamed]) {
            prompt += told.prompt_tokens;
            completion += told.completion_tokens;
        }
        const whole = await anthropic.messages.create({ ...ask, max_tokens: 100 });
        const final = await anthropic.messages.stream({ ...ask, max_tokens: 100 }).finalMessage();
        for (const told of [whole.usage, final.usage]) {
            prompt += told.input_tokens;
            completion += told.output_tokens;
        }
        const { totals, usage: rows } = await until(async () => {
            const answer = await usageOf(id, 'provider,kind');
            return answer.totals.requests === 4 && answer;
        }, { what: 'four requests are counted' });
        assert.deepEqual([totals.prompt_tokens, totals.completion_tokens, totals.failed], [prompt, completion, 0]);
        assert.deepEqual(rows.map((row) => [row.provider, row.kind]), [[provider, 'chat']]);
    });

test('embeddings are counted with what the client was told', async () => {
    const { id, openai } = await clients();
    const { usage } = await openai.embeddings.create({ model: 'openai/text-embedding-3-small', input: 'red apples' });
    const { usage: rows } = await usageOf(id, 'kind,provider');
    assert.deepEqual(rows.map((row) => [row.kind, row.provider, row.requests, row.prompt_tokens]), [['embed', 'openai', 1, usage.prompt_tokens]]);
});

test('a stream that the client leaves is counted as failed, with what came until then', async () => {
    const { id, openai } = await clients();
    const stream = await openai.chat.completions.create({ model: modelOf('openai'), messages: says('go on and on'), stream: true });
    for await (const chunk of stream)
        if (chunk.choices[0]?.delta.content)
            break;
    const { totals } = await until(async () => {
        const answer = await usageOf(id, 'kind');
        return answer.totals.requests === 1 && answer;
    }, { what: 'the stream is counted' });
    assert.equal(totals.failed, 1);
    assert.equal(totals.estimated, 1);
    assert.ok(totals.prompt_tokens > 0 && totals.completion_tokens > 0 && totals.completion_tokens < 900, JSON.stringify(totals));
});
