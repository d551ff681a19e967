// The official `openai` package against Hearth, unchanged but for its base URL, with providers of every protocol behind.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import OpenAI from 'openai';
import { startHearth, until } from '../api/harness.mjs';
import { admin, newApp, newKey } from '../api/kit.mjs';
import { long, modelOf, providers, startBoth, text, weather } from './double.mjs';

let both, key, client;

before(async () => {
    both = await startBoth();
    ({ key } = await newKey(both.h));
    client = new OpenAI({ apiKey: key, baseURL: `${both.h.url}/v1`, maxRetries: 0 });
});
after(() => both?.stop());

const says = (content) => [{ role: 'user', content }];
const tools = [{ type: 'function', function: { name: 'weather', description: 'Tells it', parameters: weather } }];

async function chunksOf(stream) {
    const chunks = [];
    for await (const chunk of stream)
        chunks.push(chunk);
    return chunks;
}

for (const provider of providers)
    describe(`with ${provider} behind`, () => {
        const model = modelOf(provider);
        const create = (content, more = {}) => client.chat.completions.create({ model, messages: says(content), ...more });

        test('a chat', async () => {
            const { data, response } = await create('say it').withResponse();
            assert.equal(data.object, 'chat.completion');
            assert.match(data.id, /^chatcmpl-/);
            assert.ok(Math.abs(data.created - Date.now() / 1000) < 60);
            assert.equal(data.choices.length, 1);
            assert.deepEqual(data.choices[0].message, { role: 'assistant', content: text, refusal: null });
            assert.equal(data.choices[0].finish_reason, 'stop');
            assert.ok(data.usage.prompt_tokens > 0 && data.usage.completion_tokens > 0);
            assert.equal(data.usage.total_tokens, data.usage.prompt_tokens + data.usage.completion_tokens);
            assert.equal(response.headers.get('x-hearth-provider'), provider);
        });

        test('what was not said is not sent', async () => {
            await create('say it');
            const { body } = both.mock.getRequests().at(-1);
            const sent = JSON.stringify(body);
            assert.doesNotMatch(sent, /temperature|num_predict|max_completion_tokens|max_output_tokens/);
            await create('say it', { temperature: 0.25, max_completion_tokens: 77, top_p: 0.5, stop: ['END'] });
            const next = JSON.stringify(both.mock.getRequests().at(-1).body);
            assert.match(next, /"temperature":0.25/);
            assert.match(next, /"(max_tokens|max_output_tokens|num_predict)":77/);
        });

        test('a stream', async () => {
            const chunks = await chunksOf(await create('say it', { stream: true, stream_options: { include_usage: true } }));
            assert.equal(chunks.map((chunk) => chunk.choices[0]?.delta.content ?? '').join(''), text);
            assert.equal(chunks[0].choices[0].delta.role, 'assistant');
            assert.equal(new Set(chunks.map((chunk) => chunk.id)).size, 1);
            assert.deepEqual(chunks.flatMap((chunk) => chunk.choices.map((one) => one.finish_reason)).filter(Boolean), ['stop']);
            const last = chunks.at(-1);
            assert.deepEqual(last.choices, []);
            assert.ok(last.usage.total_tokens > 0);
        });

        test('a stream without usage', async () => {
            const chunks = await chunksOf(await create('say it', { stream: true }));
            assert.ok(chunks.every((chunk) => chunk.choices.length === 1 && !chunk.usage));
        });

        test('a tool, called and answered', async () => {
            const first = await create('the weather', { tools });
            const { message, finish_reason: why } = first.choices[0];
            assert.equal(why, 'tool_calls');
            assert.equal(message.content, null);
            const [one] = message.tool_calls;
            assert.deepEqual([one.type, one.function.name, JSON.parse(one.function.arguments)], ['function', 'weather', { city: 'Bern', days: 2 }]);
            const answered = [...says('say it'), message, { role: 'tool', tool_call_id: one.id, content: '21 degrees' }, ...says('say it')];
            const second = await client.chat.completions.create({ model, messages: answered, tools });
            assert.ok(second.choices[0].message.content.length > 0);
            const sent = JSON.stringify(both.mock.getRequests().at(-1).body);
            assert.match(sent, /21 degrees/);
            assert.match(sent, /Tells it/);
        });

        test('a tool in a stream', async () => {
            const stream = client.chat.completions.stream({ model, messages: says('the weather'), tools });
            const { choices: [{ message, finish_reason: why }] } = await stream.finalChatCompletion();
            assert.equal(why, 'tool_calls');
            assert.deepEqual(JSON.parse(message.tool_calls[0].function.arguments), { city: 'Bern', days: 2 });
            assert.equal(message.tool_calls[0].function.name, 'weather');
        });

        test('a client that leaves cancels the provider', async () => {
            const before_ = both.nBrokenOff();
            const stream = await create('go on and on', { stream: true });
            for await (const chunk of stream)
                if (chunk.choices[0].delta.content)
                    break;              // aborts the request
            await until(() => both.nBrokenOff() > before_, { what: 'the double sees its client leave' });
        });

        test('errors are of the right class', async () => {
            await assert.rejects(create('be busy'), (e) => e instanceof OpenAI.RateLimitError && e.code === 'rate_limit_exceeded' && e.headers.get('retry-after') === '17');
            await assert.rejects(create('lack a model'), (e) => e instanceof OpenAI.NotFoundError && e.code === 'model_not_found');
            await assert.rejects(create('be tired'), (e) => e instanceof OpenAI.InternalServerError && e.status === 502);
            await assert.rejects(create('be locked'), (e) => e instanceof OpenAI.InternalServerError && /API key/.test(e.message));
            await assert.rejects(create('be busy', { stream: true }), OpenAI.RateLimitError);
        });

        test('an upstream that hangs up in the middle is an error of the stream', async () => {
            const stream = await create('hang up', { stream: true });
            let seen = '';
            await assert.rejects(async () => {
                for await (const chunk of stream)
                    seen += chunk.choices[0].delta.content ?? '';
            }, (e) => e instanceof OpenAI.APIError && /ended its answer|closed|cut/.test(e.message));
            assert.ok(long.startsWith(seen) && seen.length > 0);
        });
    });

test('thoughts come apart', async () => {
    const whole = await client.chat.completions.create({ model: modelOf('generic-openai'), messages: says('think') });
    assert.deepEqual([whole.choices[0].message.content, whole.choices[0].message.reasoning_content], ['42', 'Six times seven.']);
    const chunks = await chunksOf(await client.chat.completions.create({ model: modelOf('anthropic'), messages: says('think'), stream: true }));
    assert.equal(chunks.map((chunk) => chunk.choices[0].delta.reasoning_content ?? '').join(''), 'Six times seven.');
});

test('JSON by schema', async () => {
    const schema = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'], additionalProperties: false };
    for (const provider of providers) {
        const parsed = await client.chat.completions.parse({ model: modelOf(provider), messages: says('give json'),
            response_format: { type: 'json_schema', json_schema: { name: 'counted', strict: true, schema } } });
        assert.deepEqual(JSON.parse(parsed.choices[0].message.content), { n: 1 }, provider);
    }
});

test('images and files', async () => {
    const dot = 'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==';
    const notes = { type: 'file', file: { filename: 'notes.txt', file_data: 'data:text/plain;base64,aGVsbG8=' } };
    const content = [{ type: 'text', text: 'look at this' }, { type: 'image_url', image_url: { url: dot } }, notes];
    const { choices } = await client.chat.completions.create({ model: modelOf('generic-openai'), messages: says(content) });
    assert.equal(choices[0].message.content, 'A red dot.');
    const sent = JSON.stringify(both.mock.getRequests().at(-1).body);
    assert.match(sent, /iVBORw0KGgo/);
    assert.match(sent, /hello/);
});

test('embeddings, in both encodings', async () => {
    for (const encoding_format of [undefined, 'float', 'base64']) {
        const made = await client.embeddings.create({ model: 'openai/text-embedding-3-small', input: ['red apples', 'red apples too'], encoding_format });
        const [first] = made.data;
        const vector = typeof first.embedding === 'string' ? [...new Float32Array(Uint8Array.from(Buffer.from(first.embedding, 'base64')).buffer)] : [...first.embedding];
        assert.deepEqual([made.object, made.data.length, first.index], ['list', 2, 0]);
        assert.deepEqual(vector, [0.25, -0.5, 0.125]);
        assert.ok(made.usage.total_tokens > 0);
    }
    const own = await client.embeddings.create({ model: 'lexical-384', input: 'red apples' });
    assert.equal(own.data[0].embedding.length, 384);
    assert.equal(own.model, 'lexical-384');
    await assert.rejects(client.embeddings.create({ model: 'lexical-384', input: [1, 2, 3] }), (e) => e instanceof OpenAI.BadRequestError && e.param === 'input' && /tokens/.test(e.message));
    await assert.rejects(client.embeddings.create({ model: 'lexical-384', input: 'x', dimensions: 10 }), (e) => e instanceof OpenAI.BadRequestError && e.param === 'dimensions');
    await assert.rejects(client.embeddings.create({ model: 'builtin/nope', input: 'x' }), OpenAI.NotFoundError);
});

test('models of all providers, each by its id', async () => {
    const models = (await client.models.list()).data;
    assert.deepEqual(new Set(models.map((model) => model.owned_by)), new Set([...providers, 'builtin']));
    assert.equal(new Set(models.map((model) => model.id)).size, models.length);
    const plain = models.find((model) => !model.id.includes('/'));
    assert.deepEqual(await client.models.retrieve(plain.id), plain);
    await assert.rejects(client.models.retrieve('no-such-model'), (e) => e instanceof OpenAI.NotFoundError && e.code === 'model_not_found');
});

test('a model whose name has slashes is retrieved, however a client writes them', async (t) => {
    const h = await startHearth({ t });
    await admin(h, 'POST', '/api/providers', { preset: 'lmstudio', name: 'shelf', base_url: 'http://127.0.0.1:9/v1', models: ['lab/tall-model', 'lab/hall/tall-model'] });
    const { key: own } = await newKey(h);
    const models = new OpenAI({ apiKey: own, baseURL: `${h.url}/v1`, maxRetries: 0 }).models;
    const ids = ['lab/tall-model', 'shelf/lab/tall-model', 'lab/hall/tall-model'];
    for (const id of ids)
        assert.equal((await models.retrieve(id)).owned_by, 'shelf', id);
    const get = (path) => h.api('GET', path, undefined, { authorization: `Bearer ${own}` });
    assert.equal((await get('/api/v1/models/lab/tall-model')).body.id, 'lab/tall-model');
    assert.equal((await get('/api/v1/models/lab%2ftall-model')).body.id, 'lab/tall-model');
    for (const path of ['/v1%2Fmodels/lab', '/v1%2Fmodels', '/v1/models%2Flab', '/sdk%2Fping', '/nowhere%2F', '/v1/models/..%2F..%2Fsdk%2Fping'])
        assert.equal((await get(path)).status, 400, path);
});

test('a bare model goes to who lists it, an unknown one and `default` to the default provider', async () => {
    const providerOf = async (model) => {
        const { response } = await client.chat.completions.create({ model, messages: says('say it') }).withResponse();
        return response.headers.get('x-hearth-provider');
    };
    assert.equal(await providerOf('house-model'), 'generic-openai');
    assert.equal(await providerOf('llama3.2'), 'ollama');
    assert.equal(await providerOf('default'), 'openai');
    assert.equal(await providerOf('brand-new-model'), 'openai');
});

test('an app set to use another provider gets that one for `default` and for names nobody lists', async () => {
    const id = await newApp(both.h, {}, ['llm.chat']);
    await admin(both.h, 'POST', '/api/providers/ollama/default', { app: id });
    const own = new OpenAI({ apiKey: 'none', baseURL: `${both.h.url}/v1`, maxRetries: 0, defaultHeaders: { 'x-app-id': id } });
    for (const [model, provider] of [['default', 'ollama'], ['brand-new-model', 'ollama'], ['house-model', 'generic-openai']]) {
        const { response } = await own.chat.completions.create({ model, messages: says('say it') }).withResponse();
        assert.equal(response.headers.get('x-hearth-provider'), provider, model);
    }
    const { response } = await client.chat.completions.create({ model: 'default', messages: says('say it') }).withResponse();
    assert.equal(response.headers.get('x-hearth-provider'), 'openai');
});

test('another provider answers when the default one fails, also by a bare name of its model', async (t) => {
    const one = await startHearth({ t, env: { OPENAI_API_KEY: 'sk-test', OPENAI_BASE_URL: 'http://127.0.0.1:1/v1', OPENAI_MODEL: 'gone', ANTHROPIC_API_KEY: 'sk-ant-test',
        ANTHROPIC_BASE_URL: both.mock.url }, settings: { 'llm.fallbacks': 'anthropic', 'llm.retries': 0 } });
    const other = new OpenAI({ apiKey: (await newKey(one)).key, baseURL: `${one.url}/v1`, maxRetries: 0 });
    for (const stream of [false, true])
        for (const model of ['default', 'gone']) {
            const { data, response } = await other.chat.completions.create({ model, messages: says('say it'), stream }).withResponse();
            const told = stream ? (await chunksOf(data)).map((chunk) => chunk.choices[0].delta.content ?? '').join('') : data.choices[0].message.content;
            assert.deepEqual([response.headers.get('x-hearth-provider'), told], ['anthropic', text]);
        }
    await assert.rejects(other.chat.completions.create({ model: 'openai/gone', messages: says('say it') }), OpenAI.InternalServerError);
});

test('who may not, and what is wrong', async () => {
    const of = (options) => new OpenAI({ baseURL: `${both.h.url}/v1`, maxRetries: 0, ...options });
    const ask = (one, more = {}) => one.chat.completions.create({ model: modelOf('openai'), messages: says('say it'), ...more });
    await assert.rejects(ask(of({ apiKey: 'no-key' })), (e) => e instanceof OpenAI.AuthenticationError && e.code === 'invalid_api_key' && /no developer key of this Hearth/.test(e.message));
    const poor = await newApp(both.h);
    await assert.rejects(ask(of({ apiKey: 'no-key', defaultHeaders: { 'x-app-id': poor } })), (e) => e instanceof OpenAI.PermissionDeniedError && /llm\.chat/.test(e.message));
    const rich = await newApp(both.h, {}, ['llm.chat', 'llm.embed']);
    assert.equal((await ask(of({ apiKey: 'no-key', defaultHeaders: { 'x-app-id': rich } }))).choices[0].message.content, text);
    for (const [more, param] of [[{ messages: [] }, 'messages'], [{ n: 2 }, 'n'], [{ temperature: 3 }, 'temperature'], [{ messages: [{ role: 'pope', content: 'x' }] }, 'messages[0].role']])
        await assert.rejects(ask(client, more), (e) => e instanceof OpenAI.BadRequestError && e.type === 'invalid_request_error' && e.param === param);
    const raw = await both.h.api('POST', '/v1/chat/completions', '{', { authorization: `Bearer ${key}` });
    assert.equal(raw.body?.error?.code ?? raw.text, 'invalid_json');
    assert.equal((await both.h.api('GET', '/v1/chat/completions')).body.error.code, 'method_not_allowed');
    const big = await both.h.api('POST', '/v1/chat/completions', Buffer.alloc(33 * 1024 * 1024, ' '), { authorization: `Bearer ${key}` });
    assert.deepEqual([big.status, big.body.error.code], [413, 'body_too_large']);
});

test('a limit of the key is what its client calls a rate limit', async () => {
    const poor = await newKey(both.h);
    await admin(both.h, 'PUT', `/api/limits/keys/${poor.id}`, { requests_a_minute: 1 });
    const one = new OpenAI({ apiKey: poor.key, baseURL: `${both.h.url}/v1`, maxRetries: 0 });
    const ask = (stream) => one.chat.completions.create({ model: 'default', messages: says('say it'), stream });
    assert.equal((await chunksOf(await ask(true))).map((chunk) => chunk.choices[0].delta.content ?? '').join(''), text);
    for (const stream of [false, true])
        await assert.rejects(ask(stream), (e) => e instanceof OpenAI.RateLimitError && e.error.hearth_code === 'RATE_LIMIT' && Number(e.headers.get('retry-after')) > 0);
});

test('with no provider at all the client does not ask again: waiting would change nothing', async (t) => {
    const h = await startHearth({ t });
    let n = 0;
    const counting = (...of) => (n++, fetch(...of));
    const one = new OpenAI({ apiKey: (await newKey(h)).key, baseURL: `${h.url}/v1`, fetch: counting });
    for (const stream of [false, true]) {
        n = 0;
        await assert.rejects(one.chat.completions.create({ model: 'default', messages: says('say it'), stream }), (e) => e.status === 503
            && /No provider of language models is configured/.test(e.message) && e.headers.get('retry-after') === null);
        assert.equal(n, 1);
    }
});

test('the same routes answer below /api', async () => {
    const below = new OpenAI({ apiKey: key, baseURL: `${both.h.url}/api/v1`, maxRetries: 0 });
    const { choices } = await below.chat.completions.create({ model: modelOf('ollama'), messages: says('say it') });
    assert.equal(choices[0].message.content, text);
});
