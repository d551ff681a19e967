// Vectors in PostgreSQL with pgvector: PGlite with its extension `vector`, over PostgreSQL's wire protocol.
import assert from 'node:assert/strict';
import net from 'node:net';
import { test } from 'node:test';
import { startHearth } from '../api/harness.mjs';
import { freePort } from '../tools/ports.mjs';
import { base, registered, startPostgres } from './stores.mjs';

const records = [
    { id: 'x', vector: [1, 0, 0], metadata: { text: 'east', documentId: 'a', page: 1, tag: null } },
    { id: 'y', vector: [0, 1, 0], metadata: { text: 'north', documentId: 'a', page: 2, tag: 'n' } },
    { id: 'xy', vector: [1, 1, 0], metadata: { text: 'north-east', documentId: 'b', page: 10 } },
    { id: "o'\"\\", vector: [-1, 0, 0], metadata: { text: 'west', documentId: 'c', page: '10', "k'ey": "'; DROP TABLE x; --" } },
];

async function begin(t) {
    const postgres = await startPostgres(t);
    const { h, dev, reply } = await registered(t, postgres);
    assert.match(reply.body.message, /embedded/);
    return { h, dev, ...postgres };
}

const ids = (reply) => reply.body.results.map((hit) => hit.id);

test('vectors are stored, found, filtered, listed and deleted in PostgreSQL', async (t) => {
    const { dev, db } = await begin(t);
    const put = (vectors, workspaceId) => dev('POST', `${base}/upsert`, { vectors, workspaceId });
    const query = (more) => dev('POST', `${base}/query`, { vector: [1, 0, 0], ...more });

    assert.equal((await query({})).body.results.length, 0);
    const stored = await put(records);
    assert.equal(stored.status, 200, stored.text);
    assert.equal(stored.body.upserted, 4);
    const all = await query({});
    assert.deepEqual(ids(all), ['x', 'xy', 'y', "o'\"\\"]);
    assert.ok(Math.abs(all.body.results[1].score - Math.SQRT1_2) < 1e-6);
    assert.deepEqual(all.body.results[0].metadata, records[0].metadata);
    assert.deepEqual((await query({ topK: 1, includeVectors: true })).body.results[0].vector, [1, 0, 0]);
    for (const [filter, found] of [
        [{ documentId: 'a' }, ['x', 'y']],
        [{ page: { $gte: 2 } }, ['xy', 'y']],
        [{ page: { $gt: 1, $lt: 10 } }, ['y']],
        [{ page: { $in: [1, 10] } }, ['x', 'xy']],
        [{ text: { $lt: 'north' } }, ['x']],
        [{ tag: null }, ['x', 'xy', "o'\"\\"]],
        [{ documentId: { $ne: 'a' } }, ['xy', "o'\"\\"]],
        [{ "k'ey": "'; DROP TABLE x; --" }, ["o'\"\\"]],
        [{ page: '10' }, ["o'\"\\"]],
    ])
        assert.deepEqual(ids(await query({ filter })), found, JSON.stringify(filter));
    assert.deepEqual(ids(await query({ scoreThreshold: 0.5 })), ['x', 'xy']);
    assert.deepEqual((await dev('GET', `${base}/count`)).body, { success: true, count: 4, dimensions: 3, embeddingModel: null });
    assert.deepEqual((await dev('GET', `${base}/list?limit=2&offset=1`)).body.vectors.map((v) => v.id), ['x', 'xy']);
    const { rows } = await db.query('SELECT indexdef FROM pg_indexes WHERE tablename = $1', ['test_vectors']);
    assert.ok(rows.some((row) => /hnsw/.test(row.indexdef)), 'an HNSW index is there');

    const wrong = await put([{ id: 'w', vector: [1, 2] }]);
    assert.equal(wrong.status, 400);
    assert.equal(wrong.body.code, 'DIMENSION_MISMATCH');
    assert.equal((await dev('POST', `${base}/query`, { vector: [1] })).body.code, 'DIMENSION_MISMATCH');
    assert.equal((await put([{ id: 'w', vector: [1, 2] }], 'two_%')).status, 200);
    assert.deepEqual((await dev('GET', `${base}/workspaces`)).body.workspaces, ['default', 'two_%']);

    assert.equal((await dev('POST', `${base}/delete`, { ids: ["o'\"\\", 'nobody'] })).body.deleted, 1);
    assert.equal((await dev('POST', `${base}/delete`, { filter: { documentId: 'a' } })).body.deleted, 2);
    assert.deepEqual(ids(await query({})), ['xy']);
    assert.equal((await dev('POST', `${base}/delete`, { deleteAll: true })).body.deleted, 1);
    assert.deepEqual((await dev('GET', `${base}/workspaces`)).body.workspaces, ['two_%']);
});

test('large batches are stored whole; the last of equal ids counts; the index finds what an exact search finds', async (t) => {
    const { dev } = await begin(t);
    const n = 1200;
    const at = (i) => Array.from({ length: 8 }, (_, k) => Math.sin(i * i * 0.37 + k * k * 1.71 + i * k));
    const vectors = Array.from({ length: n }, (_, i) => ({ id: `v${i}`, vector: at(i), metadata: { i } }));
    const stored = await dev('POST', `${base}/upsert`, { vectors: [{ id: 'v7', vector: Array(8).fill(1), metadata: { old: true } }, ...vectors] });
    assert.equal(stored.status, 200, stored.text);
    assert.equal((await dev('GET', `${base}/count`)).body.count, n);
    const { results } = (await dev('POST', `${base}/query`, { vector: at(7), topK: 10 })).body;
    assert.equal(results[0].id, 'v7');
    assert.deepEqual(results[0].metadata, { i: 7 });
    const cosine = (a, b) => a.reduce((s, x, k) => s + x * b[k], 0) / Math.hypot(...a) / Math.hypot(...b);
    const exact = vectors.map((v) => ({ id: v.id, score: cosine(v.vector, at(7)) })).sort((a, b) => b.score - a.score).slice(0, 10).map((v) => v.id);
    const found = results.filter((hit) => exact.includes(hit.id)).length;
    assert.ok(found >= 9, `${found} of 10`);
    assert.equal((await dev('POST', `${base}/query`, { vector: at(7), topK: 1000 })).body.results.length, 1000);
});

test('the registration survives a restart, is masked, and leaves the embedded vectors where they are', async (t) => {
    const { url } = await startPostgres(t);
    const h = await startHearth({ t });
    let dev = await h.asKey();
    await dev('POST', `${base}/upsert`, { vectors: [{ id: 'here', vector: [1, 0, 0] }] });
    const config = { connectionString: `${url}?application_name=x`, tableName: 'kept', unknown: 'dropped' };
    assert.equal((await dev('POST', `${base}/register`, { provider: 'pgvector', config })).status, 200);
    await dev('POST', `${base}/upsert`, { vectors: records });
    await h.terminate();
    await h.start();
    dev = await h.asKey();
    const shown = (await dev('GET', `${base}/config`)).body;
    assert.equal(shown.provider, 'pgvector');
    assert.deepEqual(shown.config, { connectionString: url.replace('s3cret', '****'), tableName: 'kept' });
    assert.equal((await dev('GET', `${base}/count`)).body.count, 4);
    assert.equal((await dev('POST', `${base}/register`, { provider: 'embedded' })).status, 200);
    assert.deepEqual(ids(await dev('POST', `${base}/query`, { vector: [1, 0, 0] })), ['here']);
    assert.ok(!h.log.join('\n').includes('s3cret'));
});

test('no part of a password is shown, wherever it stands in the address', async (t) => {
    const { url } = await startPostgres(t);
    const dev = await (await startHearth({ t })).asKey();
    const { protocol, host, username, pathname } = new URL(url);
    const cases = [
        [`${url}?application_name=a@b`, url.replace('s3cret', '****')],
        [`${protocol}//${host}${pathname}?user=${username}&password=s3cret@tail`, `${protocol}//${host}${pathname}`],
        [`${protocol}//${username}@${host}${pathname}?password=s3cret@tail`, `${protocol}//${username}@${host}${pathname}`],
    ];
    for (const [connectionString, shown] of cases) {
        const reply = await dev('POST', `${base}/register`, { provider: 'pgvector', config: { connectionString } });
        assert.equal(reply.status, 200, reply.text);
        assert.equal((await dev('GET', `${base}/config`)).body.config.connectionString, shown);
    }
});

test('the database is named by databaseUrl, or by connectionString as before', async (t) => {
    const { url } = await startPostgres(t);
    const dev = await (await startHearth({ t })).asKey();
    const register = (config) => dev('POST', `${base}/register`, { provider: 'pgvector', config });
    for (const name of ['databaseUrl', 'connectionString']) {
        const reply = await register({ [name]: url, tableName: 'named' });
        assert.equal(reply.status, 200, reply.text);
        assert.deepEqual((await dev('GET', `${base}/config`)).body.config, { [name]: url.replace('s3cret', '****'), tableName: 'named' });
        assert.equal((await dev('POST', `${base}/upsert`, { vectors: records })).status, 200);
    }
    assert.match((await register({ databaseUrl: url, connectionString: url })).body.error, /`config.connectionString` is another name of databaseUrl/);
    assert.match((await register({ databaseUrl: '' })).body.error, /`config.databaseUrl` must not be empty/);
});

test('a store that cannot be reached is not registered', async (t) => {
    const h = await startHearth({ t });
    const dev = await h.asKey();
    const url = `postgresql://user:s3cret@127.0.0.1:${await freePort()}/db`;
    const register = (config) => dev('POST', `${base}/register`, { provider: 'pgvector', config });
    const refused = await register({ connectionString: url });
    assert.equal(refused.status, 400);
    assert.equal(refused.body.success, false);
    assert.match(refused.body.error, /^Failed to connect to pgvector: connection to server .*refused/);
    assert.ok(!refused.text.includes('s3cret'));
    assert.match((await register({ connectionString: 'mysql://x' })).body.error, /^Failed to connect to pgvector: The database URL must begin with postgresql:/);
    assert.match((await register({})).body.error, /`config.databaseUrl` is required/);
    assert.match((await register({ connectionString: url, tableName: 'x"; DROP' })).body.error, /tableName must have/);
    assert.equal((await dev('GET', `${base}/config`)).body.provider, 'embedded');
});

test('a server that comes back is used again; while it is gone the error says so', async (t) => {
    const { db, url } = await startPostgres(t);
    const port = Number(new URL(url).port);
    const h = await startHearth({ t });
    const dev = await h.asKey();
    const through = net.createServer((client) => {
        const server = net.connect(port, '127.0.0.1');
        client.pipe(server).pipe(client);
        for (const side of [client, server])
            side.on('error', () => {}).on('close', () => { client.destroy(); server.destroy(); });
        live.add(client);
    });
    const live = new Set();
    const at = await freePort();
    await new Promise((done) => through.listen(at, '127.0.0.1', done));
    t.after(() => through.close());
    const proxied = url.replace(String(port), String(at));
    assert.equal((await dev('POST', `${base}/register`, { provider: 'pgvector', config: { connectionString: proxied, tableName: 'again' } })).status, 200);
    assert.equal((await dev('POST', `${base}/upsert`, { vectors: records })).status, 200);
    live.forEach((client) => client.destroy());
    const after = await dev('GET', `${base}/count`);
    assert.equal(after.status, 200, after.text);
    assert.equal(after.body.count, 4);
    live.forEach((client) => client.destroy());
    await new Promise((done) => through.close(done));
    const gone = await dev('GET', `${base}/count`);
    assert.equal(gone.status, 503, gone.text);
    assert.equal(gone.body.code, 'VECTOR_STORE_UNAVAILABLE');
    assert.match(gone.body.error, /^PostgreSQL: /);
    await new Promise((done) => through.listen(at, '127.0.0.1', done));
    assert.equal((await dev('GET', `${base}/count`)).body.count, 4);
    assert.ok(db);
});

test('a connection string says where the database is and nothing about this machine', async (t) => {
    const { url } = await startPostgres(t);
    const h = await startHearth({ t });
    const dev = await h.asKey();
    const register = (connectionString) => dev('POST', `${base}/register`, { provider: 'pgvector', config: { connectionString, tableName: 'strings' } });
    for (const more of ['', '?sslmode=disable', '?application_name=mine&connect_timeout=3&keepalives=1'])
        assert.equal((await register(url + more)).status, 200, more);
    const port = new URL(url).port;
    for (const [wrong, reason] of [
        ...['service=x', 'passfile=/root/.pgpass', 'sslcert=/etc/passwd', 'sslkey=/etc/shadow', 'sslrootcert=/etc/passwd', 'sslcrl=/x', 'options=-csearch_path%3Dx',
            'hostaddr=169.254.169.254', 'krbsrvname=x', 'requirepeer=root', 'replication=database', 'gssencmode=require', 'client_encoding=LATIN1']
            .map((parameter) => [`${url}?${parameter}`, new RegExp(`must not set ${parameter.split('=')[0]}`)]),
        ['postgresql:///postgres', /must name a host/],
        ['postgresql://%2Fvar%2Frun%2Fpostgresql/db', /not a Unix socket/],
        ['postgresql:///db?host=/tmp', /not a Unix socket/],
        ['postgresql:///db?host=@abstract', /not a Unix socket/],
        [`postgresql://127.0.0.1:${port},169.254.169.254:80/db`, /one host only/],
        ['postgresql://127.0.0.1:0/db', /port from 1 to 65535/],
        ['postgresql://127.0.0.1:99999/db', /port from 1 to 65535/],
        ['postgresql://u:s3c%zzret@127.0.0.1/db', /is no connection URI/],
        ['postgresql://u:s3cret@169.254.169.254/db', /cloud metadata/],
        ['postgresql://u:s3cret@2852039166/db', /cloud metadata/],
        ['postgresql://u:s3cret@[::ffff:a9fe:a9fe]/db', /cloud metadata/],
        ['postgresql://u:s3cret@10.1.2.3/db', /net\.private_hosts/],
        ['postgresql:///db?host=10.1.2.3', /net\.private_hosts/],
        [`postgresql://u:s3cret@localhost:${h.port}/db`, /this service itself/],
    ]) {
        const reply = await register(wrong);
        assert.equal(reply.status, 400, `${wrong}: ${reply.text}`);
        assert.match(reply.body.error, reason, wrong);
        assert.match(reply.body.error, /^Failed to connect to pgvector: /);
        assert.equal(reply.body.code, undefined);
        assert.ok(!reply.text.includes('s3c'), reply.text);
    }
});

test('passwords of the person who runs the service go to no database an app names', async (t) => {
    const heard = [];
    // PostgreSQL's start: TLS is declined, then a password in clear is asked for.
    const server = net.createServer((socket) => socket.on('error', () => {}).on('data', (bytes) => {
        if (bytes.length === 8 && bytes.readInt32BE(4) === 80877103)
            return socket.write('N');
        if (bytes[0] === 'p'.charCodeAt(0)) {
            heard.push(bytes.toString('utf8', 5, bytes.length - 1));
            return socket.destroy();
        }
        return socket.write(Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 3]));
    }));
    await new Promise((done) => server.listen(0, '127.0.0.1', done));
    t.after(() => server.close());
    const { port } = server.address();
    const h = await startHearth({ t, env: { PGPASSWORD: 'the-persons-own', PGUSER: 'person' } });
    h.file('.pgpass', `127.0.0.1:${port}:*:*:of-the-file\n`);
    const dev = await h.asKey();
    for (const [user, wanted] of [['app', 'none'], ['app:its-own', 'its-own']]) {
        const reply = await dev('POST', `${base}/register`, { provider: 'pgvector', config: { connectionString: `postgresql://${user}@127.0.0.1:${port}/db` } });
        assert.equal(reply.status, 400, reply.text);
        assert.equal(heard.at(-1), wanted);
    }
});

test('a filter deletes exactly what it finds', async (t) => {
    const { dev } = await begin(t);
    const vectors = Array.from({ length: 60 }, (_, i) => ({ id: `v${i}`, vector: [Math.cos(i), Math.sin(i)], metadata: { i, even: i % 2 === 0, name: `n${i}` } }));
    await dev('POST', `${base}/upsert`, { vectors });
    await dev('POST', `${base}/upsert`, { vectors, workspaceId: 'other' });
    for (const [filter, n] of [[{ even: true, i: { $lt: 20 } }, 10], [{ name: { $in: ['n1', 'n3', 'nobody'] } }, 2], [{ i: { $gte: 50 } }, 10], [{ missing: 1 }, 0], [{ missing: null }, 38]]) {
        const found = await dev('POST', `${base}/query`, { vector: [1, 0], topK: 100, filter });
        assert.equal(found.body.results.length, n, JSON.stringify(filter));
        assert.equal((await dev('POST', `${base}/delete`, { filter })).body.deleted, n, JSON.stringify(filter));
        assert.equal((await dev('POST', `${base}/query`, { vector: [1, 0], topK: 100, filter })).body.results.length, 0);
    }
    assert.equal((await dev('GET', `${base}/count?workspaceId=other`)).body.count, 60);
});
