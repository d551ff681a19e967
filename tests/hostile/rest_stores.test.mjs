// Milvus, Weaviate, Pinecone and Astra DB that lie: strict doubles whose replies are changed on their way. Whatever comes, the app gets an error that names the store
// and the rule, and everybody else is served. (store.test.mjs has the same of Qdrant, Chroma and PostgreSQL.)
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startHearth } from '../api/harness.mjs';
import { newApp } from '../api/kit.mjs';
import { startAstraDouble } from '../peers/astra_double.mjs';
import { startMilvusDouble } from '../peers/milvus_double.mjs';
import { startPineconeDouble } from '../peers/pinecone_double.mjs';
import { startWeaviateDouble } from '../peers/weaviate_double.mjs';

const base = '/sdk/llm/vectors';
const dimensions = 1024;
const vector = Array.from({ length: dimensions }, () => 1);

const listed = (call) => call('GET', `${base}/list?includeVectors=true`);
const queried = (call) => call('POST', `${base}/query`, { vector, includeVectors: true });
const counted = (call) => call('GET', `${base}/count`);
const named = (call) => call('GET', `${base}/workspaces`);
const deleted = (call) => call('POST', `${base}/delete`, { filter: { k: 1 } });
const stored = (call) => call('POST', `${base}/upsert`, { vectors: [{ id: 'a', vector, metadata: { k: 1 } }] });

// Every member of that name, wherever it stands.
function change(value, name, to) {
    if (Array.isArray(value))
        return value.map((one) => change(one, name, to));
    if (!value || typeof value !== 'object')
        return value;
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, key === name ? (typeof to === 'function' ? to(one) : to) : change(one, name, to)]));
}

const all = (name, to) => (request, reply) => change(reply, name, to);
// The first page of objects for ever.
let page;
const again = (request, reply) => {
    page ??= reply.objects && { objects: Array.from({ length: 1000 }, () => reply.objects[0]) };
    return reply.objects ? page : reply;
};
const many = (n) => (list) => (list?.[0] ? Array.from({ length: n }, () => list[0]) : list);

// Of every store that keeps our members.
const lies = ({ label, vector: vectorName, score, count }) => [
    ['an id that is a number', all('hearth_id', 7), /hearth_id/],
    ['an id of a megabyte', all('hearth_id', 'x'.repeat(1 << 20)), /hearth_id/],
    ['no id', all('hearth_id', undefined), /hearth_id/],
    ['metadata that is no JSON', all('hearth_json', '{}},"admin":true,"x":{"a":1'), /metadata/],
    ['metadata that is no object', all('hearth_json', '[1]'), /metadata/],
    ['a length that makes numbers infinite', all('hearth_length', 1e300), /vector/],
    ['a vector of another length', all(vectorName, [1]), new RegExp(`${label}.*1 .*${dimensions}`)],
    ['a vector of another length in a query', all(vectorName, [1]), new RegExp(`${label}.*1 .*${dimensions}`), queried],
    ['a vector of words', all(vectorName, vector.map(() => 'x')), /vector/],
    ['no vector', all(vectorName, null), /vector/],
    ['a score that is a word', (request, reply) => (/schema/.test(request.path) ? reply : change(reply, score, 'near')), /score/, queried],
    ['a count below zero', all(count, -1), /count/, counted],
    ['a count in words', all(count, 'many'), /count/, counted],
    ['JSON that is deep', () => '['.repeat(100_000), /JSON/],
    ['no JSON', () => '<html>', /JSON/],
    ['a list where an object is', () => '[]', new RegExp(label)],
];

const stores = {
    milvus: {
        label: 'Milvus', start: startMilvusDouble, vector: 'vector', score: 'distance', count: 'count(*)',
        lies: [
            ['dimensions beyond the limit', all('value', '100000000'), /dimension/],
            ['dimensions in words', all('value', 'many'), /dimension/],
            ['more rows than were asked for', all('data', many(50)), /50 .*5/, queried],
            ['a refusal in its words', () => ({ code: 1100, message: 'the disk is full' }), /the disk is full/],
            ['no code', () => ({ data: [] }), /code/],
        ],
    },
    weaviate: {
        label: 'Weaviate', start: startWeaviateDouble, vector: 'vector', score: 'distance', count: 'count',
        lies: [
            ['dimensions beyond the limit', all('description', (text) => text.replace(` ${dimensions} `, ' 100000000 ')), /dimension/],
            ['a namespace of somebody else', all('description', () => `Vectors of Hearth: ${dimensions} sdk_other_x`), /not of this service/],
            ['a class without a description', all('description', null), /not of this service/],
            ['the same page again and again', again, /page/],
            ['ids that are none', all('id', '../../secrets'), /UUID/],
            ['errors of GraphQL', () => ({ errors: [{ message: 'the disk is full' }] }), /Weaviate/, queried],
            ['a failure of one object', (request, reply) => (request.path === '/v1/batch/objects' ? change(reply, 'result', { status: 'FAILED', errors: { error: [{ message: 'the disk is full' }] } }) : reply),
                /did not store a vector: the disk is full/, stored],
            ['fewer results than objects', (request, reply) => (request.path === '/v1/batch/objects' ? [] : reply), /0 results for 1/, stored],
        ],
    },
    pinecone: {
        label: 'Pinecone', start: (t) => startPineconeDouble(t, { dimension: dimensions }), vector: 'values', score: 'score', count: 'vectorCount',
        lies: [
            ['dimensions beyond the limit', all('dimension', 100_000_000), /dimension/],
            ['another metric', all('metric', 'euclidean'), /metric/],
            ['namespaces in a list', all('namespaces', [1]), /namespaces/],
            ['more matches than were asked for', all('matches', many(50)), /50 .*5/, queried],
            ['vectors of others', (request, reply) => (request.path === '/vectors/list' ? change(reply, 'id', '../../secrets') : reply), /ids/],
            ['more vectors than were asked for', (request, reply) => (request.path === '/vectors/fetch' ? { vectors: Object.fromEntries(Array.from({ length: 50 }, (_, i) => [i, Object.values(reply.vectors)[0]])) } : reply), /at most the 1/],
            ['the same page again and again', (request, reply) => (request.path === '/vectors/list' ? { ...reply, pagination: { next: 'eA==' } } : reply), /page/],
        ],
    },
    astra: {
        label: 'Astra DB', start: startAstraDouble, vector: '$vector', score: '$similarity', count: 'count',
        lies: [
            ['dimensions beyond the limit', all('hearth_dimensions', 100_000_000), /dimension/],
            ['dimensions in words', all('hearth_dimensions', 'many'), /dimension/],
            ['more documents than were asked for', all('documents', many(50)), /50 .*5/, queried],
            ['the same page again and again', all('nextPageState', 'x'), /page/],
            ['a state of a megabyte', all('nextPageState', 'x'.repeat(1 << 20)), /page/],
            ['a state that is a tree', all('nextPageState', { a: [1] }), /page/],
            ['a refusal in its words', () => ({ errors: [{ message: 'the disk is full', errorCode: 'SERVER' }] }), /the disk is full/],
            ['no responses for documents', (request, reply) => (request.body.insertMany ? { status: { documentResponses: [] } } : reply), /0 elements for 1/, stored],
            ['removals without end', (request, reply) => (request.body.deleteMany ? { status: { deletedCount: 20, moreData: true } } : reply), /pages/, deleted],
        ],
    },
};

for (const [name, kind] of Object.entries(stores))
    test(`${name}: every lie is an error that names it, and the service lives`, async (t) => {
        const h = await startHearth({ t });
        const app = h.asApp(await newApp(h, {}, ['vectors.read', 'vectors.write']));
        const store = await kind.start(t);
        const taken = await app('POST', `${base}/register`, { provider: store.provider, config: store.config });
        assert.equal(taken.status, 200, taken.text);
        for (const ask of [stored, listed, queried, counted, named])
            assert.equal((await ask(app)).status, 200, `without lies ${ask.name} works`);
        for (const [what, lie, rule, ask = listed] of [...lies(kind), ...kind.lies]) {
            store.lie = lie;
            const reply = await ask(app), told = `${what}: ${reply.status} ${reply.text.slice(0, 400)}`;
            assert.equal(reply.status, 502, told);
            assert.equal(reply.body.code, 'VECTOR_STORE_FAILED', told);
            assert.match(reply.body.error, rule, told);
        }
        store.lie = null;
        assert.equal((await stored(app)).status, 200);
        assert.equal((await listed(app)).body.vectors.length, 1);
        assert.equal((await h.api('GET', '/healthz')).status, 200);
    });
