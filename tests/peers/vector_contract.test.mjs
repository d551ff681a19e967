// One contract for every vector store: the same questions have the same answers, whoever keeps the vectors.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startAstraDouble } from './astra_double.mjs';
import { startMilvusDouble } from './milvus_double.mjs';
import { startPineconeDouble } from './pinecone_double.mjs';
import { startQdrantDouble } from './qdrant_double.mjs';
import { base, registered, startChroma, startPostgres } from './stores.mjs';
import { startWeaviateDouble } from './weaviate_double.mjs';

const stores = {
    embedded: async () => ({ provider: 'embedded' }),
    pgvector: startPostgres,
    chroma: startChroma,
    qdrant: startQdrantDouble,          // no server of Qdrant's runs here
    'qdrant before 1.10': (t) => startQdrantDouble(t, { unknown: ['/points/query'] }),
    // None of these servers runs here either: strict doubles after their references.
    milvus: startMilvusDouble,
    weaviate: startWeaviateDouble,
    pinecone: (t, dimension) => startPineconeDouble(t, { dimension }),
    astra: startAstraDouble,
};

const ids = (reply) => {
    assert.equal(reply.status, 200, reply.text);
    return (reply.body.results ?? reply.body.vectors).map((hit) => hit.id);
};
const close = (got, wanted, what) => assert.ok(Math.abs(got - wanted) <= 1e-5 * Math.max(1, Math.abs(wanted)), `${what}: ${got}, not ${wanted}`);
const cosine = (a, b) => a.reduce((sum, x, k) => sum + x * b[k], 0) / (Math.hypot(...a) * Math.hypot(...b) || 1);

// An index of Pinecone has its dimensions from the start.
async function begin(t, store, dimension = 3) {
    const { h, dev } = await registered(t, await stores[store](t, store === 'pinecone' ? dimension : undefined));
    const call = (verb, body) => dev('POST', `${base}/${verb}`, body);
    return {
        h, dev,
        put: (vectors, more) => call('upsert', { vectors, ...more }),
        query: (vector, more) => call('query', { vector, ...more }),
        remove: (what, more) => call('delete', { ...what, ...more }),
        count: async (workspaceId = 'default') => (await dev('GET', `${base}/count?workspaceId=${encodeURIComponent(workspaceId)}`)).body,
        list: (query) => dev('GET', `${base}/list?${new URLSearchParams(query)}`),
        workspaces: async () => (await dev('GET', `${base}/workspaces`)).body.workspaces,
    };
}

const records = [
    { id: 'x', vector: [2, 0, 0], metadata: { text: 'east', documentId: 'a', page: 1, share: 0.5, tag: null, seen: true, 'a.b': 'dot', deep: { page: 1 }, list: ['n'] } },
    { id: 'y', vector: [0, 0.5, 0], metadata: { text: 'north', documentId: 'a', page: 2, tag: 'n', seen: false, big: 9007199254740993n } },
    { id: 'xy', vector: [1, 1, 0], metadata: { text: 'north-east', documentId: 'b', page: 10, share: 2 } },
    { id: "ö o'\"\\\u{1F600}/%", vector: [-1, 0, 0], metadata: { text: 'west', documentId: 'c', page: '10', "k'ey": "'; DROP TABLE x; --", 'q"u\\o': 1, $x: 1 } },
    { id: 'zero', vector: [0, 0, 0], metadata: { documentId: 'z', page: -3.5 } },
];
// Some keep no zero vectors: there another one that is at right angles to the rest.
const recordsOf = (store) => records.map((record) => (record.id === 'zero' && ['pinecone', 'astra'].includes(store) ? { ...record, vector: [0, 0, 5] } : record));
const west = records[3].id;
// JSON has integers that JavaScript has not.
const body = (value) => JSON.stringify(value, (key, v) => (typeof v === 'bigint' ? `@${v}@` : v)).replace(/"@(\d+)@"/g, '$1');
const plainOf = (store) => JSON.parse(body(recordsOf(store)));

const filters = [
    [{ documentId: 'a' }, ['x', 'y']],
    [{ documentId: 'nobody' }, []],
    [{ documentId: 'a', page: 2 }, ['y']],
    [{ page: { $gte: 2 } }, ['xy', 'y']],
    [{ page: { $gt: 1, $lt: 10 } }, ['y']],
    [{ page: { $lte: -3.5 } }, ['zero']],
    [{ page: { $lt: 1.5 } }, ['x', 'zero']],
    [{ page: { $gt: -3.6, $lte: 1 } }, ['x', 'zero']],
    [{ page: { $in: [1, 10] } }, ['x', 'xy']],
    [{ page: { $in: [1, '10', true] } }, ['x', west]],
    [{ page: { $in: [] } }, []],
    [{ tag: { $in: ['n', null] } }, ['x', 'xy', 'y', 'zero', west]],
    [{ share: 2 }, ['xy']],
    [{ share: { $gte: 0.5, $lt: 2 } }, ['x']],
    [{ share: { $lt: 1e300, $gt: -1e300 } }, ['x', 'xy']],
    [{ big: { $gt: 9007199254740992 } }, ['y']],
    [{ big: 9007199254740992 }, []],
    [{ seen: true }, ['x']],
    [{ seen: { $ne: true } }, ['xy', 'y', 'zero', west]],
    [{ text: { $lt: 'north' } }, ['x']],
    [{ text: { $gte: 'north', $lt: 'o' } }, ['xy', 'y']],
    [{ tag: null }, ['x', 'xy', 'zero', west]],
    [{ tag: { $ne: null } }, ['y']],
    [{ documentId: { $ne: 'a' } }, ['xy', 'zero', west]],
    [{ page: '10' }, [west]],
    [{ page: 10 }, ['xy']],
    [{ "k'ey": "'; DROP TABLE x; --" }, [west]],
    [{ 'q"u\\o': 1 }, [west]],
    [{ 'a.b': 'dot' }, ['x']],
    [{ 'deep.page': 1 }, []],
    [{ list: 'n' }, []],
    [{ hearth_length: { $gt: 0 } }, []],
];

for (const store of Object.keys(stores)) {
    test(`${store}: what was stored is found by cosine similarity, best first, as it was given`, async (t) => {
        const { dev, query, count, list } = await begin(t, store);
        const plain = plainOf(store);
        assert.deepEqual(ids(await query([1, 0, 0])), []);
        assert.deepEqual(await count(), { success: true, count: 0, dimensions: 0, embeddingModel: null });
        assert.deepEqual(ids(await list({})), []);
        const stored = await dev('POST', `${base}/upsert`, body({ vectors: recordsOf(store) }));
        assert.equal(stored.status, 200, stored.text);
        assert.equal(stored.body.upserted, 5);
        assert.deepEqual(await count(), { success: true, count: 5, dimensions: 3, embeddingModel: null });

        const all = await query([3, 0, 0], { includeVectors: true });
        assert.deepEqual(ids(all).slice(0, 2), ['x', 'xy']);
        assert.deepEqual(ids(all).slice(2, 4).sort(), ['y', 'zero']);
        assert.equal(ids(all)[4], west);
        for (const hit of all.body.results) {
            const wanted = plain.find((record) => record.id === hit.id);
            close(hit.score, cosine([3, 0, 0], wanted.vector), `the score of ${hit.id}`);
            assert.ok(hit.score >= -1 && hit.score <= 1);
            hit.vector.forEach((x, k) => close(x, wanted.vector[k], `the vector of ${hit.id}`));
            assert.deepEqual(hit.metadata, wanted.metadata);
        }
        assert.ok(!('vector' in (await query([3, 0, 0])).body.results[0]));
        assert.deepEqual(ids(await query([3, 0, 0], { topK: 2 })), ['x', 'xy']);
        assert.deepEqual(ids(await query([3, 0, 0], { scoreThreshold: 0.5 })), ['x', 'xy']);
        assert.deepEqual(ids(await query([3, 0, 0], { scoreThreshold: 0.5, filter: { documentId: 'b' } })), ['xy']);
        for (const hit of (await query([0, 0, 0])).body.results)
            assert.equal(Math.abs(hit.score), 0);

        const inOrder = ['x', 'xy', 'y', 'zero', west];
        assert.deepEqual(ids(await list({})), inOrder);
        assert.deepEqual(ids(await list({ limit: 2, offset: 1 })), inOrder.slice(1, 3));
        assert.deepEqual(ids(await list({ offset: 5 })), []);
        const [, , , , last] = (await list({ includeVectors: true })).body.vectors;
        assert.deepEqual(last.metadata, plain[3].metadata);
        last.vector.forEach((x, k) => close(x, plain[3].vector[k], 'a listed vector'));
    });

    test(`${store}: filters`, async (t) => {
        const { dev, query, remove, count } = await begin(t, store);
        assert.equal((await dev('POST', `${base}/upsert`, body({ vectors: recordsOf(store) }))).status, 200);
        for (const [filter, found] of filters)
            assert.deepEqual(ids(await query([3, 0.001, 0], { filter })).sort(), found, JSON.stringify(filter));
        for (const filter of [{ page: { $near: 1 } }, { page: { $gt: true } }, { page: [1] }, { $or: [] }])
            assert.equal((await query([3, 0, 0], { filter })).body.code, 'VALIDATION_ERROR', JSON.stringify(filter));
        assert.deepEqual(ids(await query([3, 0, 0], { topK: 1, filter: { documentId: { $ne: 'a' } } })), ['xy']);

        assert.equal((await remove({ filter: { page: { $gte: 2 }, documentId: 'a' } })).body.deleted, 1);
        assert.equal((await remove({ filter: { text: { $gt: 'a', $lt: 'f' } } })).body.deleted, 1);
        assert.equal((await remove({ filter: { page: { $in: [] } } })).body.deleted, 0);
        assert.equal((await remove({ ids: ['zero', 'zero', 'nobody'] })).body.deleted, 1);
        assert.deepEqual(ids(await query([3, 0, 0])), ['xy', west]);
        assert.equal((await remove({ deleteAll: true })).body.deleted, 2);
        assert.equal((await remove({ deleteAll: true })).body.deleted, 0);
        assert.equal((await count()).count, 0);
    });

    test(`${store}: an id that is there is replaced whole; the last of equal ids counts`, async (t) => {
        const { put, query, count } = await begin(t, store, 2);
        await put([{ id: 'one', vector: [1, 0], metadata: { old: 'yes', page: 1 } }]);
        const again = await put([{ id: 'two', vector: [1, 0] }, { id: 'one', vector: [1, 0], metadata: { page: 2 } }, { id: 'one', vector: [0, 1], metadata: { page: 3 } }]);
        assert.equal(again.status, 200, again.text);
        assert.equal((await count()).count, 2);
        assert.deepEqual(ids(await query([0, 1], { filter: { old: 'yes' } })), []);
        assert.deepEqual(ids(await query([0, 1], { filter: { page: { $in: [1, 2] } } })), []);
        const [best, other] = (await query([0, 1])).body.results;
        assert.deepEqual([best.id, best.metadata, other.metadata], ['one', { page: 3 }, {}]);
        close(best.score, 1, 'the new vector');
    });

    test(`${store}: only the direction of a vector counts`, { skip: store === 'pgvector' && 'it calculates with float32: docs/vectors.md' }, async (t) => {
        const { put, query } = await begin(t, store, 2);
        const vectors = [{ id: 'long', vector: [3e38, 3e38] }, { id: 'short', vector: [1e-37, 0] }, { id: 'other', vector: [-2, 0] }];
        assert.equal((await put(vectors)).status, 200);
        const { results } = (await query([2e38, 0], { includeVectors: true })).body;
        assert.deepEqual(results.map((hit) => hit.id), ['short', 'long', 'other']);
        [1, Math.SQRT1_2, -1].forEach((score, i) => close(results[i].score, score, results[i].id));
        for (const { id, vector } of results)
            vectors.find((one) => one.id === id).vector.forEach((x, k) => assert.ok(Math.abs(vector[k] - x) <= 1e-6 * Math.abs(x), `${id}: ${vector}`));
    });

    test(`${store}: a namespace has one number of dimensions and one embedding model`, { skip: store === 'pinecone' && 'its index has one for all namespaces' }, async (t) => {
        const { put, query, remove, count } = await begin(t, store);
        assert.equal((await put([{ id: 'a', vector: [1, 0, 0] }], { embeddingModel: 'm1' })).status, 200);
        for (const reply of [await put([{ id: 'b', vector: [1, 0, 0] }, { id: 'c', vector: [1, 0] }]), await put([{ id: 'b', vector: [1, 0] }]), await query([1, 0])]) {
            assert.equal(reply.status, 400, reply.text);
            assert.equal(reply.body.code, 'DIMENSION_MISMATCH');
        }
        assert.equal((await put([{ id: 'b', vector: [1, 0, 0] }], { embeddingModel: 'm2' })).body.code, 'EMBEDDING_MODEL_MISMATCH');
        assert.equal((await query([1, 0, 0], { embeddingModel: 'm2' })).body.code, 'EMBEDDING_MODEL_MISMATCH');
        assert.deepEqual(await count(), { success: true, count: 1, dimensions: 3, embeddingModel: 'm1' });
        assert.equal((await put([{ id: 'b', vector: [1, null, 0] }])).body.code, 'VALIDATION_ERROR');
        await remove({ deleteAll: true });
        assert.equal((await put([{ id: 'a', vector: [1, 0] }], { embeddingModel: 'm2' })).status, 200);
        assert.equal((await count()).dimensions, 2);
        await remove({ ids: ['a'] });
        assert.deepEqual(await count(), await count('never used'));
        assert.deepEqual(ids(await query([1, 0, 0, 0])), []);
        assert.equal((await put([{ id: 'a', vector: [1, 0, 0, 0] }])).status, 200);
        assert.equal((await count()).dimensions, 4);
    });

    test(`${store}: workspaces are kept apart, whatever their names`, async (t) => {
        const { put, query, remove, count, workspaces } = await begin(t, store, 2);
        const names = ['A', 'a', 'a ', 'a/b', 'default', 'two_%', 'ä'.repeat(100), `${'x'.repeat(126)}_1`, `${'x'.repeat(126)}_2`, '..', '-'];
        for (const [i, workspaceId] of names.entries()) {
            const reply = await put([{ id: 'same', vector: [1, i] }], { workspaceId });
            assert.equal(reply.status, 200, `${workspaceId}: ${reply.text}`);
        }
        for (const [i, workspaceId] of names.entries()) {
            assert.equal((await count(workspaceId)).count, 1, workspaceId);
            const [hit] = (await query([1, i], { workspaceId, includeVectors: true })).body.results;
            close(hit.vector[1], i, workspaceId);
        }
        const inOrder = (list) => [...list].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
        assert.deepEqual(await workspaces(), inOrder(names));
        await remove({ deleteAll: true }, { workspaceId: 'A' });
        await remove({ ids: ['same'] }, { workspaceId: '..' });
        assert.deepEqual(await workspaces(), inOrder(names.filter((name) => name !== 'A' && name !== '..')));
        assert.equal((await count('a')).count, 1);
    });

    test(`${store}: many vectors, against an exact search`, async (t) => {
        const n = 1500, width = 16;
        const { put, query, list, remove, count } = await begin(t, store, width);
        let seed = 7;
        const random = () => { seed = (seed * 1103515245 + 12345) % 2147483648; return seed / 2147483648; };
        const vectors = Array.from({ length: n }, (_, i) => ({
            id: `id ${i}`, vector: Array.from({ length: width }, () => random() * 2 - 1), metadata: { i, group: `g${i % 7}`, half: i / 2 },
        }));
        const stored = await put(vectors);
        assert.equal(stored.status, 200, stored.text);
        let hits = 0, wanted = 0;
        const cases = [{}, { filter: { group: 'g3' } }, { filter: { half: { $gte: 100, $lt: 300.25 } } }, { filter: { group: { $ne: 'g1' }, i: { $lt: 700 } } },
            { topK: 200 }, { topK: 50, filter: { group: { $in: ['g0', 'g6'] } } }];
        const passes = ({ filter = {} }, m) => (!filter.group || (typeof filter.group === 'string' ? m.group === filter.group : filter.group.$in?.includes(m.group) ?? m.group !== 'g1'))
            && (!filter.half || (m.half >= 100 && m.half < 300.25)) && (!filter.i || m.i < 700);
        for (const one of cases) {
            const at = Array.from({ length: width }, () => random() * 2 - 1);
            const { topK = 10 } = one;
            const found = ids(await query(at, { topK, ...one }));
            const exact = vectors.filter((v) => passes(one, v.metadata)).map((v) => [cosine(v.vector, at), v.id]).sort((a, b) => b[0] - a[0]).slice(0, topK).map((v) => v[1]);
            assert.equal(found.length, exact.length, JSON.stringify(one));
            hits += found.filter((id) => exact.includes(id)).length;
            wanted += exact.length;
        }
        assert.ok(hits / wanted >= 0.97, `recall ${hits / wanted}`);
        assert.equal((await query(vectors[0].vector, { topK: 1000 })).body.results.length, 1000);
        const inOrder = vectors.map((v) => v.id).sort();
        assert.deepEqual(ids(await list({ limit: 500, offset: 900 })), inOrder.slice(900, 1400));
        assert.equal((await remove({ ids: vectors.slice(0, 1200).map((v) => v.id) })).body.deleted, 1200);
        assert.equal((await remove({ filter: { i: { $gte: 1400 } } })).body.deleted, 100);
        assert.equal((await count()).count, 200);
    });

    // More rows than are looked at one by one: the store has to be asked among those that match.
    test(`${store}: few of many match what only Hearth can decide`, { skip: ['embedded', 'pgvector'].includes(store) && 'it decides every filter itself' }, async (t) => {
        const { dev, query } = await begin(t, store, 2);
        const n = 11_000;
        const vectors = Array.from({ length: n }, (_, i) => ({ id: `v${i}`, vector: [Math.cos(i / n), Math.sin(i / n)], metadata: { name: `n${String(i).padStart(5, '0')}` } }));
        for (const half of [vectors.slice(0, 5500), vectors.slice(5500)])
            assert.equal((await dev('POST', `${base}/upsert`, { vectors: half })).status, 200);
        const found = async (filter, topK = 5) => ids(await query([1, 0], { topK, filter }));
        assert.deepEqual(await found({ name: { $gte: 'n10990' } }), ['v10990', 'v10991', 'v10992', 'v10993', 'v10994']);
        assert.equal((await found({ name: { $gte: 'n10990' } }, 100)).length, 10);
        assert.deepEqual(await found({ name: { $gt: 'z' } }), []);
        assert.deepEqual(await found({ name: { $lt: 'n00003' } }), ['v0', 'v1', 'v2']);
    });
}
