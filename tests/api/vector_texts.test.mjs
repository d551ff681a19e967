// Vectors made of texts by the service itself: one call instead of two (docs/vectors.md).
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sharedHearth } from './harness.mjs';
import { decide, newApp, refused, refusedFields } from './kit.mjs';

const base = '/sdk/llm/vectors';
const grants = ['vectors.read', 'vectors.write', 'llm.embed'];
const ids = (reply) => reply.body.results.map((hit) => hit.id);

const shared = sharedHearth();

async function world(t, permissions = grants) {
    const h = await shared(t);
    const app = await newApp(h, {}, permissions);
    return { h, app, call: h.asApp(app), send: (route, body) => h.asApp(app)('POST', `${base}/${route}`, body) };
}

test('a text is embedded, stored and found in one call each', async (t) => {
    const { call, send } = await world(t);
    const stored = await send('upsert', { vectors: [{ id: 'cat', text: 'the cat sleeps', metadata: { documentId: 'a' } }, { id: 'tax', text: 'a form of the tax office', metadata: { text: 'its own' } }] });
    assert.equal(stored.status, 200, stored.text);
    const { body: { vectors } } = await call('GET', `${base}/list?includeVectors=true`);
    const [cat] = (await call('POST', '/sdk/llm/embed', { input: ['the cat sleeps'] })).body.embeddings;
    assert.deepEqual(vectors.map((one) => one.metadata), [{ text: 'the cat sleeps', documentId: 'a' }, { text: 'its own' }]);
    assert.ok(vectors[0].vector.every((value, i) => Math.abs(value - cat[i]) < 1e-5));
    assert.equal((await call('GET', `${base}/count`)).body.embeddingModel, 'lexical-384');
    assert.deepEqual(ids(await send('query', { text: 'sleeping cats', embed: true })), ['cat', 'tax']);
    assert.deepEqual(ids(await send('query', { text: 'tax office', embed: true, topK: 1, scoreThreshold: 0.1 })), ['tax']);
});

test('a text alone is still searched by its words', async (t) => {
    const { send } = await world(t);
    await send('upsert', { vectors: [{ id: 'cat', text: 'the cat sleeps' }, { id: 'dog', text: 'the dog barks' }] });
    const reply = await send('query', { text: 'barks' });
    assert.deepEqual(reply.body.results.map((hit) => [hit.id, hit.score]), [['dog', 1]]);
});

test('metadata may have as many bytes as the limit says, its text among them', async (t) => {
    const { send } = await world(t);
    const room = 65536 - '{"text":"east","note":""}'.length;
    const upsert = (length) => send('upsert', { vectors: [{ id: 'x', text: 'east', metadata: { note: 'n'.repeat(length) } }] });
    assert.equal((await upsert(room)).status, 200);
    refusedFields(await upsert(room + 1), 'vectors[0].metadata');
    refusedFields(await send('upsert', { vectors: [{ id: 'x', text: 'east' }, { id: 'y', text: 'west', metadata: { list: Array(40_000).fill(10) } }] }), 'vectors[1].metadata');
});

test('a vector beside a text is stored as it is, and the text beside its metadata', async (t) => {
    const { call, send } = await world(t);
    await send('upsert', { vectors: [{ id: 'x', vector: [1, 0], text: 'east' }] });
    const { body: { vectors } } = await call('GET', `${base}/list?includeVectors=true`);
    assert.deepEqual(vectors, [{ id: 'x', metadata: { text: 'east' }, vector: [1, 0] }]);
    refused(await send('upsert', { vectors: [{ id: 'y', text: 'north' }] }), 400, 'DIMENSION_MISMATCH');
    refused(await send('query', { text: 'north', embed: true }), 400, 'DIMENSION_MISMATCH');
});

test('texts are embedded with the model of the stored vectors', async (t) => {
    const { send } = await world(t);
    await send('upsert', { vectors: [{ id: 'x', vector: Array(384).fill(1) }], embeddingModel: 'a-model-nobody-has' });
    refused(await send('query', { text: 'north', embed: true }), 400, 'INVALID_MODEL');
    refused(await send('upsert', { vectors: [{ id: 'y', text: 'north' }], embeddingModel: 'lexical-384' }), 400, 'EMBEDDING_MODEL_MISMATCH');
});

test('embedding takes its own grant', async (t) => {
    const { h, app, send } = await world(t, ['vectors.read', 'vectors.write']);
    for (const [route, body] of [['upsert', { vectors: [{ id: 'x', text: 'east' }] }], ['query', { text: 'east', embed: true }]])
        assert.equal(refused(await send(route, body), 403, 'PERMISSION_REQUIRED').permission, 'llm.embed');
    await decide(h, app, ['llm.embed']);
    assert.equal((await send('upsert', { vectors: [{ id: 'x', text: 'east' }] })).status, 200);
});

test('what can be no vector is refused with its field', async (t) => {
    const { send } = await world(t);
    refusedFields(await send('upsert', { vectors: [{ id: 'a', text: 'x' }, { id: 'b' }] }), 'vectors[1].vector');
    refusedFields(await send('upsert', { vectors: Array.from({ length: 2049 }, (_, i) => ({ id: `${i}`, text: 'x' })) }), 'vectors');
    assert.equal((await send('upsert', { vectors: Array.from({ length: 2048 }, (_, i) => ({ id: `${i}`, text: 'x' })) })).status, 200);
    refusedFields(await send('upsert', { vectors: [{ id: 'a', text: '' }] }), 'vectors[0].text');
    refusedFields(await send('query', { embed: true }), 'vector');
    refusedFields(await send('query', { text: 'x', vector: [1], embed: true }), 'embed');
});

test('only the administrator names another app', async (t) => {
    const { h, app, send } = await world(t);
    await send('upsert', { vectors: [{ id: 'cat', text: 'the cat sleeps' }] });
    const other = h.asApp(await newApp(h, {}, grants));
    assert.deepEqual(ids(await other('POST', `${base}/query`, { text: 'cat', embed: true, app })), []);
    assert.deepEqual(ids(await h.socket('POST', `${base}/query`, { text: 'cat', embed: true, app })), ['cat']);
    assert.deepEqual(ids(await h.socket('POST', `${base}/query`, { text: 'cat', embed: true })), []);
});
