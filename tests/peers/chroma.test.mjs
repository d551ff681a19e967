// Chroma's own server: what is particular to it. vector_contract.test.mjs asks the same questions of it as of every store.
import assert from 'node:assert/strict';
import http from 'node:http';
import { test } from 'node:test';
import { startHearth } from '../api/harness.mjs';
import { freePort } from '../tools/ports.mjs';
import { base, register, registered, startChroma, startPostgres } from './stores.mjs';

// A server in front that sees every request.
async function startFront(t, target, onRequest = () => null) {
    const seen = [];
    const server = http.createServer(async (req, res) => {
        let text = '';
        for await (const piece of req.setEncoding('utf8'))
            text += piece;
        seen.push({ method: req.method, path: req.url, headers: req.headers, body: text && JSON.parse(text) });
        const own = onRequest(seen.at(-1), seen);
        if (own)
            return res.writeHead(own.status, { 'content-type': 'application/json', ...own.headers }).end(own.body ?? '');
        const reply = await fetch(target + req.url, { method: req.method, body: text || undefined, headers: { 'content-type': 'application/json' } });
        res.writeHead(reply.status, { 'content-type': 'application/json' }).end(await reply.text());
    });
    await new Promise((done) => server.listen(0, '127.0.0.1', done));
    t.after(() => { server.closeAllConnections(); server.close(); });
    return { url: `http://127.0.0.1:${server.address().port}`, seen };
}

test('a call above what one request takes is several; when a later one fails the answer says how far it came', async (t) => {
    const chroma = await startChroma(t);
    const upserts = (seen) => seen.filter((one) => one.path.endsWith('/upsert'));
    let isFailing = false;
    const front = await startFront(t, chroma.url, (one, seen) => (isFailing && one.path.endsWith('/upsert') && upserts(seen).length === 4
        ? { status: 507, body: '{"error":"full","message":"no space left"}' } : null));
    const { dev } = await registered(t, { provider: 'chroma', config: { url: front.url } });
    const { max_batch_size: most } = await (await fetch(`${chroma.url}/api/v2/pre-flight-checks`)).json();
    const vectors = Array.from({ length: most + 500 }, (_, i) => ({ id: `v${i}`, vector: [Math.cos(i), Math.sin(i)], metadata: { i } }));
    const stored = await dev('POST', `${base}/upsert`, { vectors });
    assert.equal(stored.status, 200, stored.text);
    assert.deepEqual(upserts(front.seen).map((one) => one.body.ids.length), [most, 500]);
    assert.equal((await dev('GET', `${base}/count`)).body.count, most + 500);
    assert.equal((await dev('POST', `${base}/query`, { vector: [1, 0], topK: 1000, filter: { i: { $lt: 3000 } } })).body.results.length, 1000);
    isFailing = true;
    const failed = await dev('POST', `${base}/upsert`, { vectors, workspaceId: 'other' });
    assert.equal(failed.status, 502);
    assert.match(failed.body.error, new RegExp(`^${most} of ${most + 500} vectors were stored before this: Chroma refused with status 507: no space left`));
});

test('two first upserts at one time leave one number of dimensions', async (t) => {
    const { dev } = await registered(t, await startChroma(t));
    const put = (id, vector) => dev('POST', `${base}/upsert`, { vectors: [{ id, vector }] });
    const replies = await Promise.all([put('a', [1, 0]), put('b', [1, 0, 0]), put('c', [1, 0]), put('d', [0, 0, 1])]);
    const { count, dimensions } = (await dev('GET', `${base}/count`)).body;
    assert.equal(replies.filter((reply) => reply.status === 200).length, count);
    assert.ok(dimensions === 2 || dimensions === 3);
    for (const reply of replies.filter((one) => one.status !== 200))
        assert.equal(reply.body.code, 'DIMENSION_MISMATCH', reply.text);
});

test('Chroma refuses other dimensions before its collection tells which it has', async (t) => {
    const chroma = await startChroma(t);
    const front = await startFront(t, chroma.url, (one) => (one.path.endsWith('/upsert')
        ? { status: 400, body: '{"error":"InvalidArgumentError","message":"Collection expecting embedding with dimension of 3, got 2"}' } : null));
    const { dev } = await registered(t, { provider: 'chroma', config: { url: front.url } });
    const reply = await dev('POST', `${base}/upsert`, { vectors: [{ id: 'a', vector: [1, 0] }] });
    assert.equal(reply.body.code, 'DIMENSION_MISMATCH', reply.text);
    assert.match(reply.body.error, /holds vectors of 3 dimensions; this one has 2/);
});

test('key, header, tenant and database go where Chroma looks for them, and are masked', async (t) => {
    const chroma = await startChroma(t);
    await fetch(`${chroma.url}/api/v2/tenants`, { method: 'POST', body: '{"name":"team x"}', headers: { 'content-type': 'application/json' } });
    await fetch(`${chroma.url}/api/v2/tenants/team%20x/databases`, { method: 'POST', body: '{"name":"docs"}', headers: { 'content-type': 'application/json' } });
    const front = await startFront(t, chroma.url, (one) => (one.headers['x-chroma-token'] === 'c-s3cret' || one.headers.authorization === 'Bearer c-s3cret'
        ? null : { status: 401, body: '{"error":"AuthError","message":"Forbidden"}' }));
    const config = { url: front.url, apiKey: 'c-s3cret', tenant: 'team x', database: 'docs' };
    const { h, dev } = await registered(t, { provider: 'chroma', config });
    assert.equal((await dev('POST', `${base}/upsert`, { vectors: [{ id: 'a', vector: [1, 0] }] })).status, 200);
    const there = await (await fetch(`${chroma.url}/api/v2/tenants/team%20x/databases/docs/collections`)).json();
    assert.equal(there.length, 1);
    assert.deepEqual((await dev('GET', `${base}/config`)).body, { success: true, provider: 'chroma', config: { ...config, apiKey: '****' } });
    assert.equal((await register(dev, { provider: 'chroma', config: { ...config, headerName: 'Authorization' } })).status, 200);
    for (const [wrong, reason] of [[{ apiKey: 'no' }, /API key \(status 401\): Forbidden/], [{ tenant: 'nobody' }, /nobody|not exist|not found/i],
        [{ headerName: 'x: y' }, /header/i], [{ apiKey: 'a\nx-evil: 1' }, /header/i]]) {
        const reply = await register(dev, { provider: 'chroma', config: { ...config, ...wrong } });
        assert.equal(reply.status, 400, reply.text);
        assert.match(reply.body.error, reason);
        assert.ok(!reply.text.includes('s3cret'));
    }
    assert.equal((await dev('GET', `${base}/count`)).body.count, 1);
    assert.ok(!h.log.join('\n').includes('s3cret'));
});

test('what answers but is no Chroma, or points elsewhere, is not registered', async (t) => {
    const chroma = await startChroma(t);
    const answers = { '/plain': { status: 200, body: 'hello' }, '/json': { status: 200, body: '{}' }, '/old': { status: 404, body: '{"detail":"Not Found"}' },
        '/away': { status: 302, headers: { location: 'http://169.254.169.254/latest/meta-data/' } } };
    const front = await startFront(t, chroma.url, (one) => answers[`/${one.path.split('/')[1]}`]);
    const h = await startHearth({ t });
    const dev = await h.asKey();
    for (const [path, reason] of [['/plain', /no JSON/], ['/json', /no Chroma/], ['/old', /no Chroma of version 1\.0/], ['/away', /points to http:\/\/169\.254.*not followed/]])
        assert.match((await register(dev, { provider: 'chroma', config: { url: front.url + path } })).body.error, reason);
    assert.match((await register(dev, { provider: 'chroma', config: { url: `http://127.0.0.1:${await freePort()}` } })).body.error, /takes no connection/);
    assert.equal((await dev('GET', `${base}/config`)).body.provider, 'embedded');
});

test('a collection of somebody else is not touched', async (t) => {
    const chroma = await startChroma(t);
    const { dev } = await registered(t, chroma);
    const put = () => dev('POST', `${base}/upsert`, { vectors: [{ id: 'a', vector: [1, 0] }] });
    const { namespace } = (await put()).body;
    await dev('POST', `${base}/delete`, { deleteAll: true });
    await fetch(`${chroma.url}/api/v2/tenants/default_tenant/databases/default_database/collections`,
        { method: 'POST', body: JSON.stringify({ name: namespace }), headers: { 'content-type': 'application/json' } });
    for (const reply of [await put(), await dev('POST', `${base}/delete`, { deleteAll: true })]) {
        assert.equal(reply.status, 502);
        assert.match(reply.body.error, /not of this service/);
    }
    assert.deepEqual((await dev('GET', `${base}/workspaces`)).body.workspaces, []);
});

test('switching stores deletes nothing, and says so', async (t) => {
    const stores = [{ provider: 'embedded' }, await startPostgres(t), await startChroma(t)];
    const h = await startHearth({ t });
    const dev = await h.asKey();
    for (const [i, store] of stores.entries()) {
        const { message } = (await register(dev, store)).body;
        assert.match(message, new RegExp(`^The vector store ${store.provider} is registered\\.`));
        if (i > 0)
            assert.match(message, new RegExp(`Vectors in ${stores[i - 1].provider} were neither moved nor deleted`));
        await dev('POST', `${base}/upsert`, { vectors: [{ id: store.provider, vector: [1, 0] }], embeddingModel: `m-${store.provider}` });
    }
    for (const store of [...stores].reverse()) {
        assert.equal((await register(dev, store)).status, 200);
        assert.deepEqual((await dev('POST', `${base}/query`, { vector: [1, 0] })).body.results.map((hit) => hit.id), [store.provider]);
        assert.equal((await dev('GET', `${base}/count`)).body.embeddingModel, `m-${store.provider}`);
    }
});
