// Embeddings by providers over HTTP: @copilotkit/aimock in the place of OpenAI, of any OpenAI-compatible server and of Ollama; where that
// double differs from its original (Ollama's `embeddings`, Azure's deployments, Voyage's members), a replay of the documented answer.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import http from 'node:http';
import { test } from 'node:test';
import { LLMock } from '@copilotkit/aimock';
import { startHearth } from '../api/harness.mjs';
import { freePort } from '../tools/ports.mjs';

async function startDouble(t, prepare = () => {}) {
    const double = new LLMock({ port: 0, host: '127.0.0.1' });
    prepare(double);
    await double.start();
    t.after(() => double.stop());
    return double;
}

const envOf = {
    openai: (url) => ({ OPENAI_API_KEY: 'sk-s3cret', OPENAI_BASE_URL: `${url}/v1` }),
    'generic-openai': (url) => ({ GENERIC_OPENAI_BASE_URL: `${url}/v1`, GENERIC_OPENAI_API_KEY: 's3cret', GENERIC_OPENAI_MODEL: 'chat' }),
    ollama: (url) => ({ OLLAMA_HOST: url }),
};

async function startBoth(t, provider, prepare, settings = {}) {
    const double = await startDouble(t, prepare);
    const h = await startHearth({ t, env: envOf[provider](double.url), settings });
    return { double, h, dev: await h.asKey() };
}

// What each provider documents as its answer; `told` has what was asked. Vectors tell the number in their text: "text 7" is [7, 1].
const numberOf = (text) => Number(text.match(/\d+/)?.[0] ?? 0);
const replays = {
    openai: (body) => ({ object: 'list', model: body.model, usage: { prompt_tokens: 4, total_tokens: 4 }, data: [body.input].flat().map((text, index) => (
        { object: 'embedding', index, embedding: body.encoding_format === 'base64'
            ? Buffer.from(new Float32Array([numberOf(text), 1]).buffer).toString('base64') : [numberOf(text), 1] })) }),
    ollama: (body) => ({ model: body.model, embeddings: [body.input].flat().map((text) => [numberOf(text), 1]), total_duration: 14143917, load_duration: 1019500,
        prompt_eval_count: 8 }),
};

async function startReplay(t, answer) {
    const told = [];
    const server = http.createServer(async (incoming, outgoing) => {
        const pieces = [];
        for await (const piece of incoming)
            pieces.push(piece);
        const request = { url: incoming.url, headers: incoming.headers, body: JSON.parse(Buffer.concat(pieces) || '{}'), isOver: once(outgoing, 'close') };
        told.push(request);
        const reply = await answer(request.body, outgoing);
        if (reply === undefined)
            return;
        outgoing.setHeader('content-type', 'application/json');
        outgoing.end(JSON.stringify(reply));
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    t.after(() => {
        server.closeAllConnections();
        server.close();
    });
    return { told, url: `http://127.0.0.1:${server.address().port}` };
}

const requests = (double, path) => double.getRequests().filter((entry) => entry.path.includes(path));

test('an OpenAI-compatible provider embeds; large calls go out in batches and come back in order', async (t) => {
    const { double, dev } = await startBoth(t, 'openai');
    const input = Array.from({ length: 1203 }, (_, i) => `text number ${i}`);
    const reply = await dev('POST', '/sdk/llm/embed', { input, provider: 'openai' });
    assert.equal(reply.status, 200, reply.text);
    assert.equal(reply.body.provider, 'openai');
    assert.equal(reply.body.model, 'text-embedding-3-small');
    assert.equal(reply.body.embeddings.length, 1203);
    assert.ok(reply.body.embeddings.every((vector) => vector.length === reply.body.dimensions));
    assert.equal(requests(double, '/embeddings').length, 3);
    for (const i of [0, 499, 500, 1202]) {
        const alone = await dev('POST', '/sdk/llm/embed', { input: input[i], provider: 'openai' });
        assert.deepEqual(alone.body.embeddings[0], reply.body.embeddings[i], `text ${i}`);
    }
});

test('the key goes to the provider and nowhere else; the model is the one that was named', async (t) => {
    const { double, h, dev } = await startBoth(t, 'generic-openai');
    const unnamed = await dev('POST', '/sdk/llm/embed', { input: 'x', provider: 'generic-openai' });
    assert.equal(unnamed.status, 400);
    assert.equal(unnamed.body.code, 'INVALID_MODEL');
    const reply = await dev('POST', '/sdk/llm/embed', { input: 'x', provider: 'generic-openai', model: 'bge-m3' });
    assert.equal(reply.status, 200, reply.text);
    const [sent] = requests(double, '/embeddings');
    assert.equal(sent.body.model, 'bge-m3');
    assert.ok(!h.log.join('\n').includes('s3cret'));
});

test('the settings make a provider the active one', async (t) => {
    const { dev } = await startBoth(t, 'openai', undefined, { 'embed.provider': 'openai', 'embed.model': 'text-embedding-3-large' });
    const reply = await dev('POST', '/sdk/llm/embed', { input: ['x'] });
    assert.equal(reply.body.provider, 'openai', reply.text);
    assert.equal(reply.body.model, 'text-embedding-3-large');
    const { providers } = (await dev('GET', '/sdk/llm/providers/embed')).body;
    assert.deepEqual(providers.map((p) => [p.provider, p.active]), [['openai', true], ['builtin', false]]);
    assert.deepEqual(providers[0].models.slice(0, 2).map((model) => model.id), ['text-embedding-3-large', 'text-embedding-3-small']);
    assert.deepEqual((await dev('GET', '/sdk/llm/providers')).body.embedding, providers);
    assert.equal((await dev('POST', '/sdk/llm/embed', { input: 'x', provider: 'builtin' })).body.model, 'lexical-384');
});

test('Ollama is asked in its own protocol, also when it takes one text at a time', async (t) => {
    const { double, dev } = await startBoth(t, 'ollama');
    const reply = await dev('POST', '/sdk/llm/embed', { input: ['one', 'two', 'three'], provider: 'ollama', model: 'nomic-embed-text' });
    assert.equal(reply.status, 200, reply.text);
    assert.equal(reply.body.embeddings.length, 3);
    assert.ok(requests(double, '/api/embed').length >= 3);
    const alone = await dev('POST', '/sdk/llm/embed', { input: 'two', provider: 'ollama', model: 'nomic-embed-text' });
    assert.deepEqual(alone.body.embeddings[0], reply.body.embeddings[1]);
});

test('refusals of the provider are told in its words, with the code of what happened', async (t) => {
    const failing = (error, status, more = {}) => (double) => double.addFixture({ match: { endpoint: 'embedding' }, response: { error, status, ...more } });
    for (const [prepare, status, code, text] of [
        [failing({ message: 'Incorrect API key provided', type: 'invalid_request_error' }, 401), 502, 'LLM_ERROR', /Incorrect API key/],
        [failing({ message: 'slow down', type: 'rate_limit' }, 429, { retryAfter: 60 }), 429, 'RATE_LIMIT', /slow down/],
        [failing({ message: 'The model `text-embedding-3-small` does not exist', code: 'model_not_found' }, 404), 400, 'INVALID_MODEL', /does not exist/],
        [failing({ message: 'overloaded' }, 503), 502, 'LLM_ERROR', /overloaded/],
    ]) {
        const { dev } = await startBoth(t, 'openai', prepare, { 'llm.retries': 1 });
        const reply = await dev('POST', '/sdk/llm/embed', { input: ['x', 'y'], provider: 'openai' });
        assert.equal(reply.status, status, reply.text);
        assert.equal(reply.body.code, code, reply.text);
        assert.match(reply.body.error, text);
        if (status === 429)
            assert.equal(reply.headers['retry-after'], '60');
    }
});

test('a provider that fails once is asked again', async (t) => {
    const { double, dev } = await startBoth(t, 'openai', (d) => {
        d.addFixture({ match: { endpoint: 'embedding', sequenceIndex: 0 }, response: { error: { message: 'once' }, status: 503 } });
    });
    const reply = await dev('POST', '/sdk/llm/embed', { input: 'x', provider: 'openai' });
    assert.equal(reply.status, 200, reply.text);
    assert.equal(requests(double, '/embeddings').length, 2);
});

test('a provider that is not there is told in a sentence', async (t) => {
    const h = await startHearth({ t, env: envOf.ollama(`http://127.0.0.1:${await freePort()}`), settings: { 'llm.retries': 0 } });
    const dev = await h.asKey();
    const reply = await dev('POST', '/sdk/llm/embed', { input: 'x', provider: 'ollama', model: 'm' });
    assert.equal(reply.status, 502, reply.text);
    assert.equal(reply.body.code, 'LLM_ERROR');
    assert.match(reply.body.error, /^ollama: /);
});

test('Ollama answers many texts at once with `embeddings`', async (t) => {
    const { told, url } = await startReplay(t, replays.ollama);
    const h = await startHearth({ t, env: { OLLAMA_HOST: url } });
    const dev = await h.asKey();
    const input = Array.from({ length: 70 }, (_, i) => `text ${i}`);
    const reply = await dev('POST', '/sdk/llm/embed', { input, provider: 'ollama', model: 'embeddinggemma' });
    assert.deepEqual(reply.body.embeddings, input.map((_, i) => [i, 1]), reply.text);
    assert.equal(reply.body.dimensions, 2);
    assert.deepEqual(told.map((request) => request.body.input.length).sort(), [32, 32, 6].sort());
    assert.ok(told.every((request) => request.url === '/api/embed' && request.body.truncate === false));
});

test('vectors come as base64 where the provider has that', async (t) => {
    const { told, url } = await startReplay(t, replays.openai);
    const h = await startHearth({ t, env: envOf.openai(url) });
    const reply = await (await h.asKey())('POST', '/sdk/llm/embed', { input: ['text 5', 'text 6'], provider: 'openai' });
    assert.deepEqual(reply.body.embeddings, [[5, 1], [6, 1]], reply.text);
    assert.equal(told[0].body.encoding_format, 'base64');
});

test('Azure is asked by the address that was given: the newer API, or a deployment with its own header', async (t) => {
    const { told, url } = await startReplay(t, replays.openai);
    for (const [base, path, header, value] of [
        [url, '/openai/v1/embeddings', 'authorization', 'Bearer k3y'],
        [`${url}/openai/deployments`, '/openai/deployments/my-embedder/embeddings?api-version=2024-10-21', 'api-key', 'k3y'],
        [`${url}/openai/deployments/other?api-version=2023-05-15`, '/openai/deployments/other/embeddings?api-version=2023-05-15', 'api-key', 'k3y'],
    ]) {
        const h = await startHearth({ t, env: { AZURE_OPENAI_API_KEY: 'k3y', AZURE_OPENAI_ENDPOINT: base } });
        const reply = await (await h.asKey())('POST', '/sdk/llm/embed', { input: 'text 1', provider: 'azure', model: 'my-embedder' });
        assert.equal(reply.status, 200, reply.text);
        const request = told.pop();
        assert.equal(request.url, path);
        assert.equal(request.headers[header], value);
        assert.equal(header === 'api-key' ? request.headers.authorization : request.headers['api-key'], undefined);
    }
});

test('a provider without chats embeds, and is offered for nothing else', async (t) => {
    const h = await startHearth({ t, env: { VOYAGE_API_KEY: 'k3y', GROQ_API_KEY: 'k3y' } });
    const dev = await h.asKey();
    const embedding = (await dev('GET', '/sdk/llm/providers/embed')).body.providers.map((p) => p.provider);
    assert.deepEqual(embedding, ['builtin', 'voyageai']);
    const chat = (await dev('GET', '/sdk/llm/providers/chat')).body.providers.map((p) => p.provider);
    assert.deepEqual(chat, ['groq']);
    const refused = await dev('POST', '/sdk/llm/embed', { input: 'x', provider: 'groq' });
    assert.equal(refused.status, 400);
    assert.match(refused.body.error, /^groq has chats but no embeddings; embedding providers are: builtin, voyageai\.$/);
});

test('questions and documents are told apart, by the beginning of the text', async (t) => {
    const { told, url } = await startReplay(t, replays.openai);
    const h = await startHearth({ t, env: envOf['generic-openai'](url), settings: { 'embed.provider': 'generic-openai', 'embed.model': 'nomic',
        'embed.query_prefix': 'search_query: ', 'embed.document_prefix': 'search_document: ' } });
    const dev = await h.asKey();
    for (const [input_type, sent] of [['query', 'search_query: text 1'], ['document', 'search_document: text 1'], [undefined, 'text 1']]) {
        const reply = await dev('POST', '/sdk/llm/embed', { input: 'text 1', input_type });
        assert.equal(reply.status, 200, reply.text);
        assert.deepEqual(told.pop().body.input, [sent]);
    }
    assert.equal((await dev('POST', '/sdk/llm/embed', { input: 'x', input_type: 'passage' })).status, 400);
});

test('the answer says who made the vectors, what the service took, and how long the request waited', async (t) => {
    const lateMs = 600;
    const slow = async (body) => {
        await new Promise((done) => setTimeout(done, lateMs));
        return replays.openai(body);
    };
    const { url } = await startReplay(t, slow);
    const h = await startHearth({ t, env: envOf['generic-openai'](url) });
    const dev = await h.asKey();
    for (const [provider, model, waitedMs] of [['generic-openai', 'm', lateMs], ['builtin', 'lexical-384', 0]]) {
        const began = performance.now();
        const reply = await dev('POST', '/sdk/llm/embed', { input: 'text 1', provider, model });
        assert.equal(reply.headers['x-hearth-provider'], provider, reply.text);
        const overhead = Number(reply.headers['x-hearth-overhead-ms']), mostMs = performance.now() - began - waitedMs + 5;
        assert.ok(overhead <= mostMs, `${provider}: ${overhead} ms of at most ${mostMs}`);
        assert.ok(Number(reply.headers['x-hearth-queue-ms']) >= 0);
    }
});

test('vectors of two lengths, too few vectors and no vectors are errors, and nothing of them is answered', async (t) => {
    const wrong = {
        'two lengths': (body) => ({ data: body.input.map((_, index) => ({ index, embedding: index ? [1, 2] : [1, 2, 3] })) }),
        'too few': (body) => ({ data: body.input.slice(1).map((_, index) => ({ index, embedding: [1, 2] })) }),
        none: () => ({ data: [] }),
        'no numbers': (body) => ({ data: body.input.map((_, index) => ({ index, embedding: ['a', 'b'] })) }),
        'an error with 200': () => ({ error: { message: 'quota' } }),
    };
    for (const [what, answer] of Object.entries(wrong)) {
        const { url } = await startReplay(t, answer);
        const h = await startHearth({ t, env: envOf['generic-openai'](url) });
        const reply = await (await h.asKey())('POST', '/sdk/llm/embed', { input: ['a', 'b'], provider: 'generic-openai', model: 'm' });
        assert.equal(reply.status, 502, `${what}: ${reply.text}`);
        assert.equal(reply.body.embeddings, undefined);
        assert.match(reply.body.error, /^generic-openai: it answered with/);
    }
});

test('one batch that is refused refuses all, and says which texts it was about', async (t) => {
    const { url } = await startReplay(t, (body, outgoing) => {
        if (!body.input.includes('text 40'))
            return replays.ollama(body);
        outgoing.statusCode = 400;
        return { error: 'the input length exceeds the context length' };
    });
    const h = await startHearth({ t, env: { OLLAMA_HOST: url } });
    const input = Array.from({ length: 70 }, (_, i) => `text ${i}`);
    const reply = await (await h.asKey())('POST', '/sdk/llm/embed', { input, provider: 'ollama', model: 'm' });
    assert.equal(reply.status, 502, reply.text);
    assert.equal(reply.body.embeddings, undefined);
    assert.match(reply.body.error, /input\[32\].*input\[63\].*exceeds the context length/);
});

test('the first failure of a batch cancels the others', async (t) => {
    const { told, url } = await startReplay(t, (body, outgoing) => {
        if (body.input.includes('text 0'))
            return undefined;       // never answered
        outgoing.statusCode = 400;
        return { error: 'no' };
    });
    const h = await startHearth({ t, env: { OLLAMA_HOST: url } });
    const input = Array.from({ length: 40 }, (_, i) => `text ${i}`);
    const reply = await (await h.asKey())('POST', '/sdk/llm/embed', { input, provider: 'ollama', model: 'm' });
    assert.match(reply.body.error, /input\[32\]/);
    await Promise.all(told.map((request) => request.isOver));
});

test('a client that leaves cancels what is asked of the provider', async (t) => {
    const arrived = Promise.withResolvers();
    const { told, url } = await startReplay(t, () => {
        arrived.resolve();      // and never answers
    });
    const h = await startHearth({ t, env: envOf['generic-openai'](url) });
    const leaving = new AbortController();
    const asked = fetch(`${h.url}/sdk/llm/embed`, { method: 'POST', signal: leaving.signal,
        headers: { authorization: `Bearer ${await h.key()}`, 'content-type': 'application/json' },
        body: JSON.stringify({ input: 'x', provider: 'generic-openai', model: 'm' }) });
    await arrived.promise;
    leaving.abort();
    await assert.rejects(asked);
    await told[0].isOver;
});

test('a provider that fails again and again rests, and is then not asked', async (t) => {
    const { told, url } = await startReplay(t, (body, outgoing) => {
        outgoing.statusCode = 503;
        return { error: 'down' };
    });
    const h = await startHearth({ t, env: envOf['generic-openai'](url), settings: { 'llm.retries': 0, 'llm.rest_after': 2 } });
    const dev = await h.asKey();
    const ask = () => dev('POST', '/sdk/llm/embed', { input: 'x', provider: 'generic-openai', model: 'm' });
    assert.equal((await ask()).status, 502);
    assert.equal((await ask()).status, 502);
    const resting = await ask();
    assert.equal(resting.status, 503, resting.text);
    assert.match(resting.body.error, new RegExp(`rests; try again in ${resting.headers['retry-after']} seconds`));
    assert.ok(Number(resting.headers['retry-after']) >= 1);
    assert.equal(told.length, 2);
});

test('the built-in model answers while every provider is slow', async (t) => {
    const arrived = Promise.withResolvers();
    let n = 0;
    const { url } = await startReplay(t, () => {
        if (++n === 40)
            arrived.resolve();
    });
    const h = await startHearth({ t, env: envOf['generic-openai'](url) });
    const dev = await h.asKey();
    const leaving = new AbortController();
    const headers = { authorization: `Bearer ${await h.key()}`, 'content-type': 'application/json' };
    const body = JSON.stringify({ input: 'x', provider: 'generic-openai', model: 'm' });
    const waiting = Array.from({ length: 40 }, () => fetch(`${h.url}/sdk/llm/embed`, { method: 'POST', signal: leaving.signal, headers, body }).catch(() => {}));
    await arrived.promise;
    assert.equal((await dev('POST', '/sdk/llm/embed', { input: 'x', provider: 'builtin' })).status, 200);
    leaving.abort();
    await Promise.all(waiting);
});
