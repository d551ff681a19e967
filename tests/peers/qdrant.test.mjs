// Qdrant: what goes over the wire. No Qdrant server runs here: @copilotkit/aimock's vector double answers what it knows (storing, searching,
// deleting), ours (qdrant_double.mjs) the rest; vector_contract.test.mjs asks the same questions of it as of every store.
import assert from 'node:assert/strict';
import { networkInterfaces } from 'node:os';
import { test } from 'node:test';
import { LLMock, VectorMock } from '@copilotkit/aimock';
import { startHearth } from '../api/harness.mjs';
import { startQdrantDouble } from './qdrant_double.mjs';
import { freePort } from '../tools/ports.mjs';
import { base, registered } from './stores.mjs';

test('requests are those of the reference, and carry the key', async (t) => {
    const store = await startQdrantDouble(t, { key: 'q-s3cret' });
    const { h, dev } = await registered(t, store);
    assert.equal((await dev('POST', `${base}/upsert`, { vectors: [{ id: 'a', vector: [3, 4], metadata: { documentId: 'd', deep: { x: [1] } } }], workspaceId: 'W' })).status, 200);
    await dev('POST', `${base}/query`, { vector: [0, 2], topK: 3, workspaceId: 'W', filter: { documentId: { $in: ['d', 'e'] }, page: { $gt: 1 }, text: { $ne: 'x' } } });
    await dev('POST', `${base}/delete`, { ids: ['a'], workspaceId: 'W' });

    const name = [...store.collections.keys()][0];
    assert.match(name, /^hearth_[0-9a-f]{40}$/);
    const seen = (method, path) => store.journal.find((one) => one.method === method && one.path === `/collections/${name}${path}`);
    assert.deepEqual(seen('PUT', '').body, { vectors: { size: 2, distance: 'Cosine' } });
    assert.deepEqual(seen('PUT', '/index').body, { field_name: 'metadata.documentId', field_schema: 'keyword' });
    const [point] = seen('PUT', '/points').body.points;
    assert.equal(seen('PUT', '/points').query, '?wait=true');
    assert.match(point.id, /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    assert.deepEqual(point.vector, [0.6, 0.8]);
    const { hearth_namespace: namespace, ...payload } = point.payload;
    assert.match(namespace, /^sdk_.*_W$/);
    assert.deepEqual(payload, { hearth_id: 'a', hearth_length: 5, metadata: { documentId: 'd', deep: { x: [1] } } });
    const { limit, ...asked } = seen('POST', '/points/query').body;
    assert.ok(limit > 3, 'more are asked for when the filter cannot be told whole');
    assert.deepEqual(asked, {
        query: [0, 1], with_payload: true, with_vector: false,
        filter: { must: [{ should: [{ key: 'metadata.documentId', match: { any: ['d', 'e'] } }] }, { key: 'metadata.page', range: { gt: 1 } }] },
    });
    assert.deepEqual(seen('POST', '/points/delete').body, { points: [point.id] });
    assert.ok(store.journal.every((one) => one.headers['api-key'] === 'q-s3cret'));

    const shown = await dev('GET', `${base}/config`);
    assert.deepEqual(shown.body, { success: true, provider: 'qdrant', config: { url: store.url, apiKey: '****' } });
    assert.ok(!h.log.join('\n').includes('s3cret'));
});

test('aimock understands what is stored, searched and deleted', async (t) => {
    const vectors = new VectorMock();
    const mock = new LLMock({ port: await freePort() });
    mock.mount('/vector', vectors);
    await mock.start();
    t.after(() => mock.stop());
    const known = /^\/collections\/[^/]+\/points(\/search|\/delete)?(\?|$)/;
    const store = await startQdrantDouble(t, {
        unknown: ['/points/query'],
        forward: async (method, path, text) => {
            if (!known.test(path) || (method === 'POST' && /points(\?|$)/.test(path)))
                return null;
            const reply = await fetch(`${mock.url}/vector${path}`, { method, body: text, headers: { 'content-type': 'application/json' } });
            return { status: reply.status, body: await reply.json() };
        },
    });
    const { dev } = await registered(t, store);
    const asked = [];
    assert.equal((await dev('POST', `${base}/upsert`, { vectors: [{ id: 'a', vector: [1, 0], metadata: { text: 'hello' } }] })).status, 200);
    const name = [...store.collections.keys()][0];
    store.collections.get(name).points.set('counted', { id: 'counted', vector: [1, 0], payload: {} });
    const stored = store.journal.find((one) => one.method === 'PUT' && one.path.endsWith('/points')).body.points[0];
    vectors.onQuery(name, (query) => {
        asked.push(query);
        return [{ id: stored.id, score: 0.75, metadata: stored.payload }];
    });
    const found = await dev('POST', `${base}/query`, { vector: [2, 0], topK: 1, filter: { text: 'hello' } });
    assert.deepEqual(found.body.results, [{ id: 'a', score: 0.75, metadata: { text: 'hello' } }], found.text);
    assert.deepEqual(asked, [{ vector: [1, 0], topK: 1, collection: name, filter: { must: [{ key: 'metadata.text', match: { value: 'hello' } }] } }]);
});

test('what is not there, refuses, points elsewhere or is no Qdrant is not registered, and the reason is told', async (t) => {
    const locked = await startQdrantDouble(t, { key: 'right' });
    const away = await startQdrantDouble(t, { forward: () => ({ status: 200, body: { hello: 'world' } }) });
    const broken = await startQdrantDouble(t, { forward: () => ({ status: 500, body: { status: { error: 'the disk is full' } } }) });
    const h = await startHearth({ t });
    const dev = await h.asKey();
    for (const [config, reason] of [
        [{ url: `http://127.0.0.1:${await freePort()}` }, /takes no connection/],
        [{ url: 'http://no-such-host.invalid' }, /not known here/],
        [{ url: locked.url }, /takes no request without a valid API key \(status 401\): Must provide an API key/],
        [{ url: locked.url, apiKey: 'wrong' }, /API key/],
        [{ url: away.url }, /no Qdrant/],
        [{ url: broken.url }, /status 500: the disk is full/],
        [{ url: 'ftp://127.0.0.1' }, /url: The address must begin with http/],
        [{ url: 'http://user:s3cret@127.0.0.1' }, /url: The address must not hold a user name or password/],
        [{ url: 'http://169.254.169.254/' }, /cloud metadata/],
        [{ url: 'http://2852039166/' }, /cloud metadata/],
        [{ url: 'http://[::ffff:169.254.169.254]/' }, /cloud metadata/],
        [{ url: 'http://192.168.255.254/' }, /local network .*net\.private_hosts/],
        [{ url: 'http://0.0.0.0:6333' }, /unspecified/],
        [{ url: h.url }, /this service itself/],
        [{ url: h.url.replace('127.0.0.1', 'localhost') }, /this service itself/],
    ]) {
        const reply = await dev('POST', `${base}/register`, { provider: 'qdrant', config });
        assert.equal(reply.status, 400, reply.text);
        assert.match(reply.body.error, reason);
        assert.match(reply.body.error, /^Failed to connect to qdrant: /);
        assert.deepEqual(Object.keys(reply.body), ['success', 'error'], 'this failure has no code: specification, Errors');
        assert.ok(!reply.text.includes('s3cret'));
    }
    assert.equal((await dev('GET', `${base}/config`)).body.provider, 'embedded');
});

test('a private address is taken when the setting lists its host', async (t) => {
    const isPrivate = ({ family, address }) => family === 'IPv4' && /^(10\.|192\.168\.|172\.(1[6-9]|2\d|3[01])\.)/.test(address);
    const own = Object.values(networkInterfaces()).flat().find(isPrivate)?.address;
    if (!own)
        return t.skip('this machine has no private address of its own, and tests leave it in peace that others have');
    const h = await startHearth({ t, settings: { 'net.private_hosts': own } });
    const dev = await h.asKey();
    const ask = async (url) => (await dev('POST', `${base}/register`, { provider: 'qdrant', config: { url } })).body.error;
    assert.match(await ask('http://10.255.255.254/'), /net\.private_hosts/);
    assert.match(await ask(`http://${own}:${await freePort()}/`), /takes no connection/);
    assert.match(await ask(`http://${own}:${h.port}/`), /this service itself/);
});

test('a store that fails later says so', async (t) => {
    let isBroken = false;
    const store = await startQdrantDouble(t, { forward: () => (isBroken ? { status: 503, body: { status: { error: 'restarting' } } } : null) });
    const { dev } = await registered(t, store);
    await dev('POST', `${base}/upsert`, { vectors: [{ id: 'a', vector: [1, 0] }] });
    isBroken = true;
    const gone = await dev('POST', `${base}/query`, { vector: [1, 0] });
    assert.equal(gone.status, 502);
    assert.equal(gone.body.code, 'VECTOR_STORE_FAILED');
    assert.match(gone.body.error, /Qdrant refused with status 503: restarting/);
    isBroken = false;
    assert.equal((await dev('POST', `${base}/query`, { vector: [1, 0] })).body.results.length, 1);
});

test('a store where nobody answers any more is told as unavailable', async (t) => {
    const store = await startQdrantDouble(t, { port: await freePort() });
    const { dev } = await registered(t, store);
    await dev('POST', `${base}/upsert`, { vectors: [{ id: 'a', vector: [1, 0] }] });
    await store.stop();
    for (const [method, path, body] of [['POST', 'query', { vector: [1, 0] }], ['POST', 'upsert', { vectors: [{ id: 'a', vector: [1, 0] }] }], ['GET', 'list'], ['GET', 'count'],
        ['GET', 'workspaces'], ['POST', 'delete', { deleteAll: true }]]) {
        const gone = await dev(method, `${base}/${path}`, body);
        assert.equal(gone.status, 503, gone.text);
        assert.equal(gone.body.code, 'VECTOR_STORE_UNAVAILABLE');
        assert.match(gone.body.error, /^Qdrant: .*takes no connection/);
    }
    assert.equal((await dev('GET', `${base}/config`)).body.provider, 'qdrant');
});
