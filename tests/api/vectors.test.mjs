// Vectors over HTTP (specification, "Vector store"; decision D9): every route, its refusals, and who sees what.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { sharedHearth, startHearth, until } from './harness.mjs';
import { newApp, newKey } from './kit.mjs';

const base = '/sdk/llm/vectors';
const all = ['vectors.read', 'vectors.write'];

const axes = (id, vector, metadata) => ({ id, vector, metadata });
const three = [
    axes('x', [1, 0, 0], { text: 'east', documentId: 'a', page: 1 }),
    axes('y', [0, 1, 0], { text: 'north', documentId: 'a', page: 2 }),
    axes('xy', [1, 1, 0], { text: 'north-east', documentId: 'b', page: 3 }),
];
const ids = (reply) => reply.body.results.map((hit) => hit.id);

const shared = sharedHearth();

// A key of the test's own, and with it namespaces of its own, which hold three vectors.
async function withThree(t, begin = shared) {
    const h = await begin(t);
    const { call: dev } = await newKey(h);
    const stored = await dev('POST', `${base}/upsert`, { vectors: three });
    assert.equal(stored.status, 200, stored.text);
    return { h, dev, stored };
}

test('what was stored is found by its direction, best first', async (t) => {
    const { dev, stored } = await withThree(t);
    assert.equal(stored.body.success, true);
    assert.equal(stored.body.upserted, 3);
    assert.match(stored.body.namespace, /^sdk_[0-9a-f]+_default$/);
    const reply = await dev('POST', `${base}/query`, { vector: [2, 0.1, 0] });
    assert.equal(reply.status, 200, reply.text);
    assert.deepEqual(ids(reply), ['x', 'xy', 'y']);
    const [best] = reply.body.results;
    assert.deepEqual(best.metadata, { text: 'east', documentId: 'a', page: 1 });
    assert.ok(Math.abs(best.score - 2 / Math.hypot(2, 0.1)) < 1e-5);
    assert.equal('vector' in best, false);
});

test('a query may ask for fewer, for metadata, for a least score and for the vectors', async (t) => {
    const { dev } = await withThree(t);
    const query = (more) => dev('POST', `${base}/query`, { vector: [1, 0, 0], ...more });
    assert.deepEqual(ids(await query({ topK: 1 })), ['x']);
    assert.deepEqual(ids(await query({ filter: { documentId: 'a' } })), ['x', 'y']);
    assert.deepEqual(ids(await query({ filter: { documentId: 'b' }, topK: 1 })), ['xy']);
    assert.deepEqual(ids(await query({ filter: { page: { $gte: 2, $lt: 3 } } })), ['y']);
    assert.deepEqual(ids(await query({ filter: { page: { $in: [1, 3] } } })), ['x', 'xy']);
    assert.deepEqual(ids(await query({ filter: { documentId: 'nowhere' } })), []);
    assert.deepEqual(ids(await query({ scoreThreshold: 0.9 })), ['x']);
    assert.deepEqual(ids(await query({ topK: 1, exact: true })), ['x']);
    assert.equal((await query({ exact: 'yes' })).status, 400);
    const [hit] = (await query({ topK: 1, includeVectors: true })).body.results;
    assert.deepEqual(hit.vector, [1, 0, 0]);
});

test('an id stored again is replaced, and stays so over a restart', async (t) => {
    const { h, dev } = await withThree(t, (one) => startHearth({ t: one }));
    await dev('POST', `${base}/upsert`, { vectors: [axes('x', [0, 0, 1])] });
    await h.terminate();
    await h.start();
    assert.deepEqual(ids(await dev('POST', `${base}/query`, { vector: [0, 0, 1], topK: 1 })), ['x']);
    const { body } = await dev('GET', `${base}/count`);
    assert.equal(body.count, 3);
    assert.equal(body.dimensions, 3);
});

test('the metrics are there before anything happens, and know what is loaded at the start', async (t) => {
    const { h, dev } = await withThree(t, (one) => startHearth({ t: one }));
    const metric = async (name) => Number((await h.api('GET', '/metrics')).text.match(new RegExp(`^hearth_vector_${name} (\\S+)$`, 'm'))?.[1]);
    for (const name of ['evictions_total', 'renewals_total', 'renew_seconds_count'])
        assert.equal(await metric(name), 0, name);
    await dev('POST', `${base}/query`, { vector: [1, 0, 0] });
    await h.terminate();
    await h.start();
    await until(async () => await metric('memory_bytes') > 0, { what: 'the namespace asked last is loaded' });
    await until(async () => await metric('load_seconds_count') === 1, { what: 'its loading is measured' });
});

test('workspaces are apart, and are listed by their bare names', async (t) => {
    const { dev } = await withThree(t);
    const other = await dev('POST', `${base}/upsert`, { vectors: [axes('p', [1, 0], {})], workspaceId: 'my notes_1' });
    assert.match(other.body.namespace, /_my notes_1$/);
    assert.deepEqual((await dev('GET', `${base}/workspaces`)).body.workspaces, ['default', 'my notes_1']);
    assert.deepEqual(ids(await dev('POST', `${base}/query`, { vector: [1, 0], workspaceId: 'my notes_1' })), ['p']);
    assert.deepEqual(ids(await dev('POST', `${base}/query`, { vector: [1, 0], workspaceId: 'empty' })), []);
    assert.equal((await dev('GET', `${base}/count?workspaceId=my%20notes_1`)).body.count, 1);
});

test('each app has vectors of its own, with or without a key beside its id', async (t) => {
    const h = await shared(t);
    const [one, two] = [await newApp(h, {}, all), await newApp(h, {}, all)];
    await h.asApp(one)('POST', `${base}/upsert`, { vectors: three });
    assert.deepEqual((await h.asApp(two)('GET', `${base}/workspaces`)).body.workspaces, []);
    assert.deepEqual(ids(await h.asApp(two)('POST', `${base}/query`, { vector: [1, 0, 0] })), []);
    const key = { authorization: `Bearer ${(await newKey(h)).key}` };
    assert.deepEqual((await h.api('GET', `${base}/workspaces`, undefined, key)).body.workspaces, []);
    assert.deepEqual((await h.api('GET', `${base}/workspaces`, undefined, { ...key, 'x-app-id': one })).body.workspaces, ['default']);
});

test('without the permission nothing is read or written', async (t) => {
    const h = await shared(t);
    const app = h.asApp(await newApp(h));
    const cases = [
        ['POST', 'upsert', { vectors: three }, 'vectors.write'], ['POST', 'bulk', {}, 'vectors.write'], ['POST', 'delete', { deleteAll: true }, 'vectors.write'],
        ['POST', 'register', { provider: 'embedded' }, 'vectors.write'], ['POST', 'query', { vector: [1] }, 'vectors.read'],
        ['GET', 'workspaces', undefined, 'vectors.read'], ['GET', 'config', undefined, 'vectors.read'],
        ['GET', 'list', undefined, 'vectors.read'], ['GET', 'count', undefined, 'vectors.read'],
    ];
    for (const [method, route, body, permission] of cases) {
        const reply = await app(method, `${base}/${route}`, body);
        assert.equal(reply.status, 403, route);
        assert.equal(reply.body.code, 'PERMISSION_REQUIRED');
        assert.equal(reply.body.permission, permission);
    }
    assert.equal((await app('GET', `${base}/providers`)).status, 200);
});

const packed = (numbers) => Buffer.from(Float32Array.from(numbers).buffer).toString('base64');

test('a vector in base64 is the same as an array of its numbers', async (t) => {
    const { dev } = await withThree(t);
    const stored = await dev('POST', `${base}/upsert`, { vectors: [{ id: 'p', vector_b64: packed([0.1, -0.25, 3e38]) }, axes('q', [0, 0, 1])] });
    assert.equal(stored.body.upserted, 2, stored.text);
    const [hit] = (await dev('POST', `${base}/query`, { vector_b64: packed([0.1, -0.25, 3e38]), topK: 1, includeVectors: true })).body.results;
    assert.equal(hit.id, 'p');
    assert.deepEqual(Float32Array.from(hit.vector), Float32Array.from([0.1, -0.25, 3e38]));
    const both = await Promise.all([{ vector: [2, 0.1, 0] }, { vector_b64: packed([2, 0.1, 0]) }].map((body) => dev('POST', `${base}/query`, body)));
    assert.deepEqual(both[1].body.results, both[0].body.results);
    const wide = (n) => dev('POST', `${base}/upsert`, { vectors: [{ id: 'w', vector_b64: packed(Array(n).fill(0.5)) }], workspaceId: 'wide' });
    assert.match((await wide(8193)).body.error, /`vectors\[0\]\.vector_b64` must hold at most 8192 numbers/);
    assert.equal((await wide(8192)).status, 200);
    assert.equal((await dev('GET', `${base}/count?workspaceId=wide`)).body.dimensions, 8192);
});

test('a vector in base64 that breaks a rule is refused', async (t) => {
    const { dev } = await withThree(t);
    const [good, b64] = [packed([1, 0, 0]), /must be padded base64 of float32 numbers/];
    const cases = [
        [{ vector_b64: good, vector: [1, 0, 0] }, /`(vectors\[0\]\.)?vector` must not be given together with `vector_b64`/],
        [{ vector_b64: [1, 0, 0] }, /vector_b64` must be a string/],
        [{ vector_b64: '' }, /vector_b64` must hold at least 1 number/],
        [{ vector_b64: good.slice(0, -1) }, b64],
        [{ vector_b64: Buffer.alloc(11).toString('base64') }, b64],
        [{ vector_b64: Buffer.alloc(12, 0xff).toString('base64url') }, b64],
        [{ vector_b64: ` ${good}` }, b64],
        [{ vector_b64: packed([1, 0, NaN]) }, /vector_b64\[2\]` must be a finite number/],
        [{ vector_b64: packed([1, -Infinity, 0]) }, /vector_b64\[1\]` must be a finite number/],
    ];
    for (const [vector, text] of cases) {
        const replies = [await dev('POST', `${base}/upsert`, { vectors: [{ id: 'bad', ...vector }] }), await dev('POST', `${base}/query`, vector)];
        for (const reply of replies) {
            assert.equal(`${reply.status} ${reply.body.code}`, '400 VALIDATION_ERROR', JSON.stringify(vector));
            assert.match(reply.body.error, text);
        }
    }
    assert.equal((await dev('POST', `${base}/query`, { vector_b64: packed([1, 0]) })).body.code, 'DIMENSION_MISMATCH');
    const mixed = await dev('POST', `${base}/upsert`, { vectors: [axes('good', [1, 0, 0]), { id: 'bad', vector_b64: packed([1, 0]) }] });
    assert.equal(mixed.body.code, 'DIMENSION_MISMATCH');
    assert.match((await dev('POST', `${base}/query`, { text: 'x', embed: true, vector_b64: good })).body.error, /`embed` makes a vector of `text`: it must be left out beside `vector_b64`/);
    assert.equal((await dev('GET', `${base}/count`)).body.count, 3);
});

const bulkBody = (head, numbers) => Buffer.concat([Buffer.from(`${JSON.stringify(head)}\n`), Buffer.from(Float32Array.from(numbers).buffer)]);
const asBytes = { 'content-type': 'application/octet-stream' };

test('vectors sent in bulk are found like others, with their metadata', async (t) => {
    const { dev } = await withThree(t);
    const stored = await dev('POST', `${base}/bulk`, bulkBody({ ids: ['p', 'x'], metadata: [{ page: 9 }, {}] }, [0, 0, 1, 0, -1, 0]), asBytes);
    assert.deepEqual([stored.status, stored.body.upserted], [200, 2], stored.text);
    const [hit] = (await dev('POST', `${base}/query`, { vector: [0, 0, 2], topK: 1, includeVectors: true })).body.results;
    assert.deepEqual(hit, { id: 'p', score: 1, metadata: { page: 9 }, vector: [0, 0, 1] });
    assert.deepEqual(ids(await dev('POST', `${base}/query`, { vector: [0, -1, 0], topK: 1 })), ['x'], 'an id that was there is replaced');
    assert.equal((await dev('GET', `${base}/count`)).body.count, 4);
    const other = await dev('POST', `${base}/bulk`, bulkBody({ ids: ['o'], workspaceId: 'bulk', embeddingModel: 'm' }, [1]), asBytes);
    assert.match(other.body.namespace, /_bulk$/);
    assert.equal((await dev('GET', `${base}/count?workspaceId=bulk`)).body.embeddingModel, 'm');
});

test('bulk bytes that break a rule are refused whole', async (t) => {
    const { dev } = await withThree(t);
    const refusals = [
        ['', 'VALIDATION_ERROR', /one line of JSON, a line feed/],
        ['{"ids":["a"]}', 'VALIDATION_ERROR', /one line of JSON, a line feed/],
        ['{"ids":["a"}\nAAAA', 'INVALID_JSON', /JSON/],
        [bulkBody({ ids: ['a', 'b'] }, [1, 0, 0]), 'VALIDATION_ERROR', /12 bytes follow the line feed: for 2 ids/],
        [bulkBody({ ids: ['a', 'b'] }, [1, 0, 0, NaN, 0, 0]), 'VALIDATION_ERROR', /vectors\[1\]\.vector` must hold finite numbers/],
        [bulkBody({ ids: ['a'] }, [1, 0, 0, 0]), 'DIMENSION_MISMATCH', /holds vectors of 3 dimensions/],
        [bulkBody({ ids: ['i'.repeat(513)] }, [1, 0, 0]), 'VALIDATION_ERROR', /vectors\[0\]\.id` must be .*512/],
        [bulkBody({ ids: ['a'], metadata: [{ text: 'x'.repeat(65536) }] }, [1, 0, 0]), 'VALIDATION_ERROR', /vectors\[0\]\.metadata` must be at most 65536 bytes/],
        [bulkBody({ ids: ['a'], workspaceId: '' }, [1, 0, 0]), 'VALIDATION_ERROR', /workspaceId/],
    ];
    for (const [body, code, text] of refusals) {
        const reply = await dev('POST', `${base}/bulk`, body, asBytes);
        assert.equal(`${reply.status} ${reply.body.code}`, `400 ${code}`, String(body).slice(0, 100));
        assert.match(reply.body.error, text);
    }
    const packedBody = await dev('POST', `${base}/bulk`, bulkBody({ ids: ['a'] }, [1, 0, 0]), { ...asBytes, 'content-encoding': 'gzip' });
    assert.equal(`${packedBody.status} ${packedBody.body.code}`, '415 UNSUPPORTED_ENCODING');
    const line = Buffer.concat([Buffer.alloc(33 * 1024 * 1024, ' '), bulkBody({ ids: ['a'] }, [1, 0, 0])]);
    assert.equal((await dev('POST', `${base}/bulk`, line, asBytes)).body.code, 'BODY_TOO_LARGE');
    assert.equal((await dev('GET', `${base}/count`)).body.count, 3);
});

test('a batch that breaks a rule is refused whole', async (t) => {
    const { dev } = await withThree(t);
    const good = axes('good', [1, 0, 0], {});
    const cases = [
        [{}, 'VALIDATION_ERROR', /`vectors` is required/],
        [{ vectors: [] }, 'VALIDATION_ERROR', /`vectors` must have at least 1/],
        [{ vectors: [good, { id: 'bad' }] }, 'VALIDATION_ERROR', /`vectors\[1\]\.vector` is required/],
        [{ vectors: [good, { vector: [1, 0, 0] }] }, 'VALIDATION_ERROR', /`vectors\[1\]\.id` is required/],
        [{ vectors: [good, axes('bad', [1, 0, null])] }, 'VALIDATION_ERROR', /`vectors\[1\]\.vector\[2\]` must be a number/],
        [{ vectors: [good, axes('bad', [1, 0, 1e39])] }, 'VALIDATION_ERROR', /`vectors\[1\]\.vector\[2\]` must be a number that fits/],
        [{ vectors: [good, axes('bad', [1, 0, 0], 'text')] }, 'VALIDATION_ERROR', /`vectors\[1\]\.metadata` must be an object/],
        [{ vectors: [good, axes('bad', [1, 0, 0], { text: 'x'.repeat(65536) })] }, 'VALIDATION_ERROR', /metadata` must be at most 65536 bytes/],
        [{ vectors: [good, axes('bad', [1, 0])] }, 'DIMENSION_MISMATCH', /vectors\[1\]\.vector/],
        [{ vectors: [axes('bad', [1, 0])] }, 'DIMENSION_MISMATCH', /^The namespace sdk_\w+ holds vectors of 3 dimensions; these have 2\.$/],
        [{ vectors: [good], workspaceId: '' }, 'VALIDATION_ERROR', /workspaceId/],
        [{ vectors: [good], workspaceId: 'w'.repeat(129) }, 'VALIDATION_ERROR', /`workspaceId` must be at most 128/],
    ];
    for (const [body, code, text] of cases) {
        const reply = await dev('POST', `${base}/upsert`, body);
        assert.equal(reply.status, 400, reply.text);
        assert.equal(reply.body.code, code);
        assert.match(reply.body.error, text);
    }
    assert.equal((await dev('GET', `${base}/count`)).body.count, 3);
    const nan = await dev('POST', `${base}/upsert`, '{"vectors":[{"id":"n","vector":[NaN,0,0]}]}', { 'content-type': 'application/json' });
    assert.equal(nan.body.code, 'INVALID_JSON');
});

test('limits hold at their edges', async (t) => {
    const { dev } = await withThree(t);
    const wide = (n) => ({ vectors: [axes('w', Array(n).fill(0.5))], workspaceId: `wide${n}` });
    assert.equal((await dev('POST', `${base}/upsert`, wide(8192))).status, 200);
    assert.equal((await dev('POST', `${base}/upsert`, wide(8193))).body.code, 'VALIDATION_ERROR');
    const many = (n) => ({ vectors: Array.from({ length: n }, (_, i) => axes(`v${i}`, [i + 1, 1])), workspaceId: 'many' });
    assert.equal((await dev('POST', `${base}/upsert`, many(10001))).status, 400);
    assert.equal((await dev('POST', `${base}/upsert`, many(10000))).body.upserted, 10000);
    const top = (topK) => dev('POST', `${base}/query`, { vector: [1, 0], topK, workspaceId: 'many' });
    assert.equal((await top(1000)).body.results.length, 1000);
    assert.equal((await top(1001)).status, 400);
    assert.equal((await top(0)).status, 400);
    const metadata = { text: 'x'.repeat(65536 - '{"text":""}'.length) };
    assert.equal((await dev('POST', `${base}/upsert`, { vectors: [axes('m', [1, 0, 0], metadata)] })).status, 200);
    const one = (id) => dev('POST', `${base}/upsert`, { vectors: [axes(id, [2])], workspaceId: 'line' });
    assert.equal((await one('i'.repeat(512))).status, 200);
    for (const id of ['i'.repeat(513), 'é'.repeat(257)])
        assert.match((await one(id)).body.error, /`vectors\[0\]\.id` must be .*512/, 'bytes of UTF-8 count');
    assert.deepEqual(ids(await dev('POST', `${base}/query`, { vector: [-1], workspaceId: 'line' })), ['i'.repeat(512)]);
    const removal = (n) => dev('POST', `${base}/delete`, { ids: Array(n).fill('v1'), workspaceId: 'many' });
    assert.equal((await removal(10001)).status, 400);
    assert.equal((await removal(10000)).body.deleted, 1);
});

test('zero vectors, equal ids and the outermost numbers are defined', async (t) => {
    const { dev } = await withThree(t);
    const put = (text) => dev('POST', `${base}/upsert`, `{"vectors":[${text}]}`, { 'content-type': 'application/json' });
    assert.equal((await put('{"id":"zero","vector":[0,0,-0.0]}')).status, 200);
    const scores = (await dev('POST', `${base}/query`, { vector: [-1, -1, 0] })).body.results.map((hit) => hit.id);
    assert.equal(scores[0], 'zero', 'its score is 0, the others are below');
    assert.ok((await dev('POST', `${base}/query`, { vector: [0, 0, 0] })).body.results.every((hit) => hit.score === 0));
    assert.equal((await put('{"id":"twice","vector":[1,0,0]},{"id":"twice","vector":[0,0,1]}')).body.upserted, 2);
    assert.deepEqual(ids(await dev('POST', `${base}/query`, { vector: [0, 0, 1], topK: 1 })), ['twice']);
    assert.equal((await put('{"id":"far","vector":[3.4028234e38,0,0]}')).status, 200);
    assert.equal((await put('{"id":"near","vector":[1e-45,0,0]}')).status, 200);
    const [far] = (await dev('POST', `${base}/query`, { vector: [1, 0, 0], topK: 1, scoreThreshold: 0.9999 })).body.results;
    assert.equal(far.score, 1);
    assert.equal((await put('{"id":"e","vector":[3.5e38,0,0]}')).body.code, 'VALIDATION_ERROR');
    assert.equal((await put('{"id":"e","vector":[1e400,0,0]}')).body.code, 'INVALID_JSON');
    assert.equal((await put('{"id":"e","vector":[Infinity,0,0]}')).body.code, 'INVALID_JSON');
    assert.equal((await dev('GET', `${base}/count`)).body.count, 7);
});

test('a large namespace gets lists in the background, and the metrics say how well they find', async (t) => {
    const h = await startHearth({ t, settings: { 'vectors.list_above_rows': 1000 } });
    const dev = await h.asKey();
    const vectors = Array.from({ length: 2000 }, (_, i) => axes(`v${i}`, Array.from({ length: 16 }, (_, j) => (j === i % 16 ? 9 : 0) + ((i * 31 + j * 17) % 2003) / 2003), { even: i % 2 === 0 }));
    await dev('POST', `${base}/upsert`, { vectors });
    const metric = async (name) => Number((await h.api('GET', '/metrics')).text.match(new RegExp(`^${name}(?:{[^}]*})? (\\S+)$`, 'm'))?.[1]);
    await until(async () => await metric('hearth_vector_renewals_total') >= 1, { what: 'lists are built' });
    const recall = await metric('hearth_vector_lists_recall');
    assert.ok(recall >= 0.97 && recall <= 1, `${recall}`);
    assert.ok(await metric('hearth_vector_memory_bytes') >= 2000 * 16);
    for (let i = 0; i < 2000; i += 97)
        assert.equal(ids(await dev('POST', `${base}/query`, { vector: vectors[i].vector, topK: 1 }))[0], `v${i}`);
    const filtered = (await dev('POST', `${base}/query`, { vector: vectors[1].vector, topK: 1000, filter: { even: false } })).body.results;
    assert.equal(filtered.length, 1000);
});

test('a query that breaks a rule is refused', async (t) => {
    const { dev } = await withThree(t);
    const cases = [
        [{}, 'VALIDATION_ERROR', /`vector` is required, unless `text`/],
        [{ vector: [1, 0, 0], text: '' }, 'VALIDATION_ERROR', /`text` must not be empty/],
        [{ text: 'é'.repeat(2049) }, 'VALIDATION_ERROR', /`text` must be at most 4096 bytes/],
        [{ text: 'x', scoreThreshold: 0.5 }, 'VALIDATION_ERROR', /`scoreThreshold` needs `vector`/],
        [{ vector: [] }, 'VALIDATION_ERROR', /`vector` must have at least 1/],
        [{ vector: 'x' }, 'VALIDATION_ERROR', /`vector` must be an array of numbers/],
        [{ vector: [1, 0] }, 'DIMENSION_MISMATCH', /^The namespace sdk_\w+ holds vectors of 3 dimensions; this one has 2\.$/],
        [{ vector: [1, 0, 0], filter: [] }, 'VALIDATION_ERROR', /`filter` must be an object/],
        [{ vector: [1, 0, 0], filter: { page: { $near: 1 } } }, 'VALIDATION_ERROR', /`filter.page` must use/],
        [{ vector: [1, 0, 0], filter: { page: { $near: 1 } }, workspaceId: 'empty' }, 'VALIDATION_ERROR', /`filter.page` must use/],
        [{ vector: [1, 0, 0], topK: 2.5 }, 'VALIDATION_ERROR', /`topK` must be an integer/],
    ];
    for (const [body, code, text] of cases) {
        const reply = await dev('POST', `${base}/query`, body);
        assert.equal(reply.status, 400, reply.text);
        assert.equal(reply.body.code, code, reply.text);
        assert.match(reply.body.error, text);
    }
});

test('hybrid search finds by words what the vector puts last, by vector what no word names', async (t) => {
    const { dev } = await withThree(t);
    const query = async (more) => ids(await dev('POST', `${base}/query`, more));
    await dev('POST', `${base}/upsert`, { vectors: [axes('w', [-1, 0, 0], { text: 'Rechnung über Äpfel', page: 9 })] });
    assert.deepEqual(await query({ vector: [1, 0, 0], topK: 2 }), ['x', 'xy']);
    assert.deepEqual((await query({ vector: [1, 0, 0], text: 'apfel', topK: 2 })).sort(), ['w', 'x'], 'a word without its accent');
    assert.deepEqual(await query({ vector: [1, 0, 0], text: 'Rechnnung', topK: 2 }), ['x', 'xy'], 'a misspelt word is no word: the vector decides');
    assert.deepEqual(await query({ text: 'rechnung' }), ['w'], 'text alone');
    assert.deepEqual(await query({ text: 'rechnung', filter: { page: 1 } }), []);
    assert.deepEqual(await query({ vector: [1, 0, 0], text: 'rechnung', filter: { page: 9 } }), ['w']);
    const [hit] = (await dev('POST', `${base}/query`, { text: 'rechnung', includeVectors: true })).body.results;
    assert.deepEqual(hit, { id: 'w', score: 1, metadata: { text: 'Rechnung über Äpfel', page: 9 }, vector: [-1, 0, 0] });
    for (const text of ['"', '*', 'NEAR(', '-', 'a AND', 'text:x', '^', "'; DROP TABLE vectors", '(', 'NOT', '\\', '{x', '+'])
        assert.equal((await dev('POST', `${base}/query`, { vector: [1, 0, 0], text })).status, 200, text);
    await dev('POST', `${base}/upsert`, { vectors: [axes('w', [-1, 0, 0], { text: 'invoice' })] });
    assert.deepEqual(await query({ text: 'rechnung' }), [], 'replaced');
    await dev('POST', `${base}/delete`, { ids: ['w'] });
    assert.deepEqual(await query({ text: 'invoice' }), [], 'deleted');
});

test('deleting asks for exactly one of deleteAll, ids and filter', async (t) => {
    const { dev } = await withThree(t);
    const remove = (body) => dev('POST', `${base}/delete`, body);
    for (const body of [{}, { deleteAll: false }, { deleteAll: true, ids: ['x'] }, { ids: ['x'], filter: { page: 1 } }, { filter: {} }, { ids: [] }]) {
        const reply = await remove(body);
        assert.equal(reply.status, 400, JSON.stringify(body));
        assert.equal(reply.body.code, 'VALIDATION_ERROR');
    }
    assert.equal((await remove({ ids: ['x', 'nobody'] })).body.deleted, 1);
    assert.equal((await remove({ filter: { documentId: 'a' } })).body.deleted, 1);
    assert.deepEqual(ids(await dev('POST', `${base}/query`, { vector: [1, 0, 0] })), ['xy']);
    assert.deepEqual((await remove({ deleteAll: true })).body, { success: true, deleted: 1 });
    assert.equal((await remove({ deleteAll: true })).body.deleted, 0);
    assert.deepEqual((await dev('GET', `${base}/workspaces`)).body.workspaces, []);
    assert.equal((await dev('POST', `${base}/upsert`, { vectors: [axes('new', [1, 2, 3, 4])] })).status, 200, 'its dimensions are free again');
});

test('vectors are listed page by page', async (t) => {
    const { dev } = await withThree(t);
    const page = async (query) => (await dev('GET', `${base}/list?${query}`)).body.vectors;
    assert.deepEqual((await page('limit=2')).map((v) => v.id), ['x', 'xy']);
    const [last, ...none] = await page('limit=2&offset=2&includeVectors=true');
    assert.deepEqual(last, { id: 'y', metadata: { text: 'north', documentId: 'a', page: 2 }, vector: [0, 1, 0] });
    assert.deepEqual(none, []);
    assert.equal((await dev('GET', `${base}/list?limit=501`)).status, 400);
});

test('a namespace remembers which model made its vectors', async (t) => {
    const h = await shared(t);
    const { call: dev } = await newKey(h);
    const put = (embeddingModel, id = 'a') => dev('POST', `${base}/upsert`, { vectors: [axes(id, [1, 0], {})], embeddingModel });
    assert.equal((await dev('GET', `${base}/count`)).body.embeddingModel, null);
    assert.equal((await put('lexical-384')).status, 200);
    assert.equal((await put(undefined)).status, 200, 'who does not say is believed');
    const refused = await put('other-model');
    assert.equal(refused.status, 400);
    assert.equal(refused.body.code, 'EMBEDDING_MODEL_MISMATCH');
    assert.equal((await dev('GET', `${base}/count`)).body.embeddingModel, 'lexical-384');
    assert.equal((await dev('POST', `${base}/query`, { vector: [1, 0], embeddingModel: 'other-model' })).body.code, 'EMBEDDING_MODEL_MISMATCH');
    assert.equal((await dev('POST', `${base}/query`, { vector: [1, 0], embeddingModel: 'lexical-384' })).status, 200);
    await dev('POST', `${base}/delete`, { ids: ['a'] });
    assert.equal((await put('other-model')).status, 200, 'an emptied namespace may change its model');
    await dev('POST', `${base}/delete`, { deleteAll: true });
    assert.equal((await put('third-model')).status, 200);
});

test('the embedded store is the one in use until another is registered', async (t) => {
    const { dev } = await withThree(t);
    assert.deepEqual((await dev('GET', `${base}/config`)).body, { success: true, provider: 'embedded', config: {} });
    const { providers } = (await dev('GET', `${base}/providers`)).body;
    const embedded = providers.find((p) => p.name === 'embedded');
    for (const member of ['label', 'description'])
        assert.ok(embedded[member].length > 3);
    assert.deepEqual(embedded.fields, []);
    for (const field of providers.flatMap((p) => p.fields))
        assert.deepEqual(['name', 'label', 'type', 'placeholder'].map((m) => typeof field[m]), Array(4).fill('string'));
    const types = Object.fromEntries(providers.map((p) => [p.name, Object.fromEntries(p.fields.map((f) => [f.name, f.type]))]));
    assert.deepEqual(types.pgvector, { databaseUrl: 'password', tableName: 'string' });
    assert.deepEqual(types.qdrant, { url: 'string', apiKey: 'password' });
    assert.deepEqual(types.lancedb, {});
    assert.deepEqual([...new Set(providers.flatMap((p) => p.fields.map((f) => f.type)))].sort(), ['password', 'string']);
    const again = await dev('POST', `${base}/register`, { provider: 'embedded', config: {} });
    assert.equal(again.status, 200);
    assert.equal(typeof again.body.message, 'string');
    assert.equal((await dev('GET', `${base}/count`)).body.count, 3);
    const unknown = await dev('POST', `${base}/register`, { provider: 'granite' });
    assert.equal(unknown.status, 400);
    assert.match(unknown.body.error, /`provider` must be one of embedded/);
});

test('lancedb is another name of the embedded store', async (t) => {
    const { dev } = await withThree(t);
    const taken = await dev('POST', `${base}/register`, { provider: 'lancedb', config: {} });
    assert.equal(taken.status, 200, taken.text);
    assert.doesNotMatch(taken.body.message, /neither moved/);
    assert.deepEqual((await dev('GET', `${base}/config`)).body, { success: true, provider: 'lancedb', config: {} });
    assert.equal((await dev('GET', `${base}/count`)).body.count, 3);
    assert.deepEqual(ids(await dev('POST', `${base}/query`, { text: 'x', vector: [1, 0, 0], topK: 1 })), ['x'], 'with its full text');
    assert.doesNotMatch((await dev('POST', `${base}/register`, { provider: 'embedded' })).body.message, /neither moved/);
});

test('an app that is removed with its data takes its vectors along', async (t) => {
    const h = await shared(t);
    const [gone, stays] = [await newApp(h, {}, all), await newApp(h, {}, all)];
    for (const app of [gone, stays])
        await h.asApp(app)('POST', `${base}/upsert`, { vectors: three });
    assert.equal((await h.socket('DELETE', `/api/apps/${gone}?with_data=true`)).status, 200);
    const key = { authorization: `Bearer ${(await newKey(h)).key}` };
    const again = await h.cliJson('app', 'add', h.file('again.json', { app_id: gone, name: 'again', display_name: 'Again' }));
    assert.equal(again.app_id, gone);
    const namesOf = async (app) => (await h.api('GET', `${base}/workspaces`, undefined, { ...key, 'x-app-id': app })).body.workspaces;
    assert.deepEqual(await namesOf(gone), []);
    assert.deepEqual(await namesOf(stays), ['default']);
});

test('vectors are in a backup', async (t) => {
    const { h } = await withThree(t);
    const path = join(h.home, 'all.tar.gz');
    const reply = await h.socket('POST', '/api/backup', { path });
    assert.equal(reply.status, 200, reply.text);
    assert.ok(reply.body.files.includes('vectors.db'));
    assert.ok(readFileSync(path).length > 0);
});
