// Milvus, Weaviate, Pinecone and Astra DB: what goes over the wire, held against their references; what is refused at the registration. No server of theirs runs
// here: strict doubles stand for them; vector_contract.test.mjs asks the same questions of them as of every store.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startHearth } from '../api/harness.mjs';
import { startAstraDouble } from './astra_double.mjs';
import { startMilvusDouble } from './milvus_double.mjs';
import { startPineconeDouble } from './pinecone_double.mjs';
import { freePort } from '../tools/ports.mjs';
import { base, registered } from './stores.mjs';
import { startWeaviateDouble } from './weaviate_double.mjs';

const record = { id: 'ä', vector: [3, 4], metadata: { documentId: 'd', page: 1, deep: { x: [1] }, tag: null } };
const filter = { documentId: { $in: ['d', 'e'] }, page: { $gt: 1 } };
const hash = /^[0-9a-f]{32}$/;

// Stores and asks once; gives what was sent.
async function conversation(t, store) {
    const { h, dev } = await registered(t, store);
    const call = async (verb, body) => {
        const reply = await dev('POST', `${base}/${verb}`, { ...body, workspaceId: 'W' });
        assert.equal(reply.status, 200, reply.text);
    };
    await call('upsert', { vectors: [record] });
    await call('query', { vector: [0, 2], topK: 3, filter });
    await call('query', { vector: [0, 2], topK: 3, filter: { documentId: 'd' } });
    await call('delete', { ids: ['ä'] });
    assert.ok(!h.log.join('\n').includes('s3cret'));
    const shown = (await dev('GET', `${base}/config`)).body;
    assert.ok(!JSON.stringify(shown).includes('s3cret'), JSON.stringify(shown));
    return { dev, sent: (path, has = () => true) => store.journal.find((one) => one.path === path && has(one.body)).body, all: store.journal };
}

function checkMembers({ hearth_id: id, hearth_namespace: namespace, hearth_length: length, hearth_json: json, hearth_tokens: tokens, ...more }) {
    assert.equal(id, 'ä');
    assert.match(namespace, /^sdk_.*_W$/);
    assert.equal(length, 5);
    assert.deepEqual(JSON.parse(json), record.metadata);
    assert.deepEqual(more, {});
    return tokens;
}

test('milvus: requests are those of the reference, and carry the token', async (t) => {
    const store = await startMilvusDouble(t, { token: 'root:s3cret', database: 'apps' });
    const { sent, all } = await conversation(t, store);
    const created = sent('/v2/vectordb/collections/create');
    assert.match(created.collectionName, /^hearth_[0-9a-f]{40}$/);
    assert.deepEqual(created.indexParams, [{ fieldName: 'vector', indexName: 'vector', metricType: 'COSINE', params: { index_type: 'AUTOINDEX' } }]);
    const { id, vector, ...members } = sent('/v2/vectordb/entities/upsert').data[0];
    const tokens = checkMembers(members);
    assert.equal(tokens.length, 2, 'of the string and the number');
    assert.ok(tokens.every((token) => hash.test(token)));
    assert.deepEqual(vector, [0.6, 0.8]);
    const searched = all.filter((one) => one.path.endsWith('/search')).map((one) => one.body);
    assert.match(searched[0].filter, /^array_contains_any\(hearth_tokens, \["many","[0-9a-f]{32}","[0-9a-f]{32}"\]\)$/);
    assert.ok(searched[0].limit > 3, 'more are asked for when the filter cannot be told whole');
    assert.equal(searched[1].limit, 3);
    assert.equal(searched[1].filter, `array_contains_any(hearth_tokens, ["many","${tokens[0]}"])`);
    assert.equal(sent('/v2/vectordb/entities/delete').filter, `id in ["${id}"]`);
    assert.ok(all.every((one) => one.body.dbName === 'apps' && one.headers.authorization === 'Bearer root:s3cret'));
});

test('weaviate: requests are those of the reference, and carry the key', async (t) => {
    const store = await startWeaviateDouble(t, { key: 'w-s3cret' });
    const { sent, all } = await conversation(t, store);
    const made = sent('/v1/schema', (body) => body);
    assert.match(made.class, /^Hearth_[0-9a-f]{40}$/);
    assert.match(made.description, /^Vectors of Hearth: 2 sdk_.*_W$/);
    assert.deepEqual([made.vectorizer, made.vectorIndexConfig], ['none', { distance: 'dot' }]);
    const object = sent('/v1/batch/objects').objects[0];
    const tokens = checkMembers(object.properties);
    assert.equal(tokens[0], object.id, 'objects are asked for by their ids as by their tokens');
    const { query } = sent('/v1/graphql', (body) => /nearVector/.test(body.query));
    assert.match(query, /^\{Get\{Hearth_\w+\(limit:\d+,nearVector:\{vector:\[0,1\]\},where:\{operator:And,operands:\[\{path:\["hearth_tokens"\],operator:ContainsAny,valueText:\["many","\w{32}","\w{32}"\]\}\]\}\)\{hearth_id hearth_json hearth_length _additional\{distance\}\}\}\}$/);
    const removed = all.find((one) => one.method === 'DELETE').body;
    assert.deepEqual(removed, { match: { class: made.class, where: { path: ['hearth_tokens'], operator: 'ContainsAny', valueTextArray: [object.id] } }, output: 'minimal' });
    assert.ok(all.every((one) => one.headers.authorization === 'Bearer w-s3cret'));
});

test('pinecone: requests are those of the reference, and carry key and version', async (t) => {
    const store = await startPineconeDouble(t, { dimension: 2 });
    const { dev, sent, all } = await conversation(t, store);
    assert.ok(all.every((one) => one.headers['x-pinecone-api-version'] === '2025-01'));
    const { vectors: [{ id, values, metadata }], namespace } = sent('/vectors/upsert');
    assert.match(namespace, /^hearth_[0-9a-f]{40}$/);
    assert.deepEqual(values, [0.6, 0.8]);
    const tokens = checkMembers(metadata);
    assert.equal(tokens[0], id);
    const { topK, filter: told, ...asked } = sent('/query');
    assert.ok(topK > 3);
    assert.deepEqual(asked, { namespace, vector: [0, 1], includeValues: false, includeMetadata: true });
    assert.deepEqual(told.$and.map((one) => one.hearth_tokens.$in.length), [3]);
    assert.deepEqual(sent('/vectors/delete'), { ids: [id], namespace });
    const zero = await dev('POST', `${base}/upsert`, { vectors: [{ id: 'z', vector: [0, 0] }] });
    assert.deepEqual([zero.status, zero.body.code], [400, 'VALIDATION_ERROR'], zero.text);
    assert.match(zero.body.error, /`vectors\[0\]\.vector` must not be zero throughout: Pinecone keeps no such vectors/);
    const other = await dev('POST', `${base}/upsert`, { vectors: [{ id: 'z', vector: [1, 0, 0] }] });
    assert.equal(other.body.code, 'DIMENSION_MISMATCH', other.text);
});

test('astra: requests are those of the reference, and carry the token', async (t) => {
    const store = await startAstraDouble(t, { keyspace: 'apps' });
    const { dev, sent } = await conversation(t, store);
    assert.deepEqual(sent('/api/json/v1/apps', (body) => body.createCollection?.options.vector).createCollection, {
        name: 'hearth_vectors_2', options: { vector: { dimension: 2, metric: 'cosine' }, indexing: { allow: ['hearth_namespace', 'hearth_tokens'] } },
    });
    const path = '/api/json/v1/apps/hearth_vectors_2';
    const { documents: [{ _id: id, $vector: vector, ...members }], options } = sent(path, (body) => body.insertMany).insertMany;
    const tokens = checkMembers(members);
    assert.deepEqual(vector, [0.6, 0.8]);
    assert.deepEqual(options, { ordered: false, returnDocumentResponses: true });
    const { find } = sent(path, (body) => body.find?.options.limit === 3);
    assert.deepEqual(find, {
        filter: { $and: [{ hearth_namespace: members.hearth_namespace }, { $or: [{ hearth_tokens: { $all: ['many'] } }, { hearth_tokens: { $all: [tokens[0]] } }] }] },
        sort: { $vector: [0, 1] }, projection: { hearth_id: 1, hearth_json: 1, hearth_length: 1 }, options: { limit: 3, includeSimilarity: true },
    });
    assert.deepEqual(sent(path, (body) => body.deleteMany).deleteMany, { filter: { $and: [{ hearth_namespace: members.hearth_namespace }, { _id: { $in: [id] } }] } });
    assert.equal((await dev('POST', `${base}/upsert`, { vectors: [{ id: 'z', vector: [0, 0] }] })).body.code, 'VALIDATION_ERROR');
});

test('a record with more members than there are tokens is found all the same', async (t) => {
    const { dev } = await registered(t, await startMilvusDouble(t));
    const metadata = Object.fromEntries(Array.from({ length: 300 }, (_, i) => [`k${i}`, i]));
    assert.equal((await dev('POST', `${base}/upsert`, { vectors: [{ id: 'wide', vector: [1, 0], metadata }, { id: 'other', vector: [1, 0], metadata: { k7: 8 } }] })).status, 200);
    const found = async (filter) => (await dev('POST', `${base}/query`, { vector: [1, 0], filter })).body.results.map((hit) => hit.id);
    assert.deepEqual(await found({ k299: 299 }), ['wide']);
    assert.deepEqual(await found({ k7: 7 }), ['wide']);
    assert.deepEqual(await found({ k7: 8 }), ['other']);
});

test('what is not there, or refuses, or is something else is not registered, and the reason is told', async (t) => {
    const h = await startHearth({ t });
    const dev = await h.asKey();
    const [milvus, weaviate, pinecone, astra] = [await startMilvusDouble(t, { token: 'right' }), await startWeaviateDouble(t, { key: 'right' }),
        await startPineconeDouble(t, { metric: 'euclidean' }), await startAstraDouble(t)];
    for (const [provider, config, reason] of [
        ['milvus', { url: `http://127.0.0.1:${await freePort()}` }, /takes no connection/],
        ['milvus', { url: milvus.url, token: 'wrong' }, /auth check failure/],
        ['milvus', { url: weaviate.url }, /./],
        ['weaviate', { url: weaviate.url }, /takes no request without a valid API key \(status 401\): anonymous access not enabled/],
        ['weaviate', { url: milvus.url }, /./],
        ['pinecone', { url: pinecone.url, apiKey: 'wrong' }, /takes no request without a valid API key \(status 401\): Invalid API Key/],
        ['pinecone', { url: pinecone.url, apiKey: 'pc-s3cret' }, /metric cosine or dotproduct/],
        ['astra', { url: astra.url, token: 'wrong' }, /status 401\): Role unauthorized/],
        ['astra', { url: astra.url, token: 'AstraCS:s3cret', keyspace: 'other' }, /Unknown keyspace other/],
        ['astra', { url: astra.url, token: 'AstraCS:s3cret', keyspace: '../x' }, /keyspace must have letters, digits and _ only/],
        ['weaviate', { url: 'http://169.254.169.254/' }, /cloud metadata/],
    ]) {
        const reply = await dev('POST', `${base}/register`, { provider, config });
        assert.equal(reply.status, 400, reply.text);
        assert.match(reply.body.error, reason);
        assert.match(reply.body.error, new RegExp(`^Failed to connect to ${provider}: `));
    }
    for (const provider of ['pinecone', 'astra'])
        assert.match((await dev('POST', `${base}/register`, { provider, config: { url: astra.url } })).body.error, /is required/);
    assert.equal((await dev('GET', `${base}/config`)).body.provider, 'embedded');
});
