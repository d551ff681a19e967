// Embeddings over HTTP (specification, "LLM"; decision D8): the built-in model, what is refused, and search with them.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sharedHearth } from './harness.mjs';
import { newApp } from './kit.mjs';

const shared = sharedHearth();
const dot = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0);

test('texts become vectors of one length, in their order', async (t) => {
    const h = await shared(t);
    const dev = await h.asKey();
    const { status, body } = await dev('POST', '/sdk/llm/embed', { input: ['red apples', 'a green bicycle', 'red apples'] });
    assert.equal(status, 200);
    assert.deepEqual(Object.keys(body).sort(), ['dimensions', 'embeddings', 'model', 'provider', 'success']);
    assert.equal(body.provider, 'builtin');
    assert.equal(body.model, 'lexical-384');
    assert.equal(body.dimensions, 384);
    assert.equal(body.embeddings.length, 3);
    for (const vector of body.embeddings) {
        assert.equal(vector.length, 384);
        assert.ok(Math.abs(dot(vector, vector) - 1) < 1e-5);
    }
    assert.deepEqual(body.embeddings[0], body.embeddings[2]);
    assert.ok(dot(body.embeddings[0], body.embeddings[1]) < 0.5);
});

test('a bare string is one text; provider and model may be named; null or an empty text means absent', async (t) => {
    const h = await shared(t);
    const dev = await h.asKey();
    const one = await dev('POST', '/sdk/llm/embed', { input: 'red apples' });
    assert.equal(one.body.embeddings.length, 1);
    const named = await dev('POST', '/api/sdk/llm/embed', { input: ['red apples'], provider: 'builtin', model: 'lexical-384' });
    assert.deepEqual(named.body.embeddings, one.body.embeddings);
    for (const none of [null, ''])
        assert.equal((await dev('POST', '/sdk/llm/embed', { input: 'x', provider: none, model: none })).status, 200);
});

test('what breaks a rule is refused with the place where', async (t) => {
    const h = await shared(t);
    const dev = await h.asKey();
    const cases = [
        [{}, 'VALIDATION_ERROR', /`input` is required/],
        [{ input: [] }, 'VALIDATION_ERROR', /`input` must have 1 to 2048 texts/],
        [{ input: Array(2049).fill('x') }, 'VALIDATION_ERROR', /`input` must have 1 to 2048 texts/],
        [{ input: '' }, 'VALIDATION_ERROR', /`input` must not be empty/],
        [{ input: ['x', ''] }, 'VALIDATION_ERROR', /`input\[1\]` must not be empty/],
        [{ input: ['x', 7] }, 'VALIDATION_ERROR', /`input\[1\]` must be a string/],
        [{ input: { text: 'x' } }, 'VALIDATION_ERROR', /`input` must be a string or an array of strings/],
        [{ input: 'x'.repeat(262145) }, 'VALIDATION_ERROR', /`input` must be at most 262144 bytes/],
        [{ input: 'x', provider: 'nobody' }, 'PROVIDER_UNAVAILABLE', /nobody/],
        [{ input: 'x', provider: 'builtin', model: 'gpt' }, 'INVALID_MODEL', /lexical-384/],
    ];
    for (const [body, code, text] of cases) {
        const reply = await dev('POST', '/sdk/llm/embed', body);
        assert.equal(reply.status, 400, reply.text);
        assert.equal(reply.body.code, code);
        assert.match(reply.body.error, text);
    }
    assert.equal((await dev('POST', '/sdk/llm/embed', { input: 'x '.repeat(131072) })).status, 200);
    assert.equal((await dev('POST', '/sdk/llm/embed', { input: Array(2048).fill('x') })).body.embeddings.length, 2048);
});

test('the built-in provider is always there, and the active one unless a setting says otherwise', async (t) => {
    const h = await shared(t);
    const dev = await h.asKey();
    const { body } = await dev('GET', '/sdk/llm/providers/embed');
    const builtin = body.providers.find((p) => p.provider === 'builtin');
    assert.equal(builtin.active, true);
    assert.equal(builtin.models[0].id, 'lexical-384');
    assert.equal(typeof builtin.models[0].name, 'string');
});

test('each route asks for its own permission', async (t) => {
    const h = await shared(t);
    const app = h.asApp(await newApp(h));
    for (const [method, path, body, permission] of [
        ['POST', '/sdk/llm/embed', { input: 'x' }, 'llm.embed'], ['GET', '/sdk/llm/providers/embed', undefined, 'llm.providers']]) {
        const reply = await app(method, path, body);
        assert.equal(reply.status, 403);
        assert.equal(reply.body.permission, permission);
    }
});

test('embed, store and search: a misspelt question finds its text', async (t) => {
    const h = await shared(t);
    const app = h.asApp(await newApp(h, {}, ['llm.embed', 'vectors.read', 'vectors.write']));
    const texts = ['The vaccine must be stored between two and eight degrees.', 'The dishwasher leaks at the rubber seal of its door.',
        'Flight delays: passengers may claim compensation.', 'Chess openings: the Sicilian defence.'];
    const embed = async (input) => (await app('POST', '/sdk/llm/embed', { input })).body;
    const { embeddings, model } = await embed(texts);
    const vectors = texts.map((text, i) => ({ id: `t${i}`, vector: embeddings[i], metadata: { text } }));
    assert.equal((await app('POST', '/sdk/llm/vectors/upsert', { vectors, embeddingModel: model })).body.upserted, 4);
    for (const [question, id] of [['where to store vacines', 't0'], ['leeking dishwaser', 't1'], ['compensasion for delayd flights', 't2'], ['sicillian chess', 't3']]) {
        const [vector] = (await embed(question)).embeddings;
        const { results } = (await app('POST', '/sdk/llm/vectors/query', { vector, topK: 1, embeddingModel: model })).body;
        assert.equal(results[0].id, id, question);
    }
});
