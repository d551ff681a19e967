// A vector store that lies: an app with ordinary grants registers it and asks. Whatever it answers, the app gets an error that names the store and
// the rule, no byte of the service's memory and no thread for longer than the deadline, and everybody else is served.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { startHearth, until } from '../api/harness.mjs';
import { newApp } from '../api/kit.mjs';
import { hostileHttp, responseBytes } from './kit.mjs';
import { begun, described, message, parameter, ready, row, SILENCE, startPgDouble } from './pg_double.mjs';

const base = '/sdk/llm/vectors';
const dimensions = 4096;
const marker = 'SECRET-OF-ANOTHER-APP-';
const grants = ['vectors.read', 'vectors.write'];

const whole = { vector: Array.from({ length: dimensions }, () => 1) };
const listed = (call, more = '') => call('GET', `${base}/list?includeVectors=true${more}`);
const queried = (call, body = {}) => call('POST', `${base}/query`, { ...whole, includeVectors: true, ...body });

// Hearth whose memory has held another app's words, and an app that has registered the store.
async function attack(t, store, settings = {}) {
    const h = await startHearth({ t, settings });
    const app = h.asApp(await newApp(h, {}, grants));
    if (store) {
        await leaveWords(h);
        await register(app, store);
    }
    return { h, app };
}

async function leaveWords(h) {
    const other = h.asApp(await newApp(h, {}, [...grants, 'llm.embed']));
    for (let i = 0; i < 3; i++)
        await other('POST', '/sdk/llm/embed', { input: Array.from({ length: 20 }, () => marker.repeat(400)) });
}

async function register(app, { provider, config }) {
    const reply = await app('POST', `${base}/register`, { provider, config });
    assert.equal(reply.status, 200, reply.text);
}

// Numbers are how memory leaves when it is read as vectors.
function numbersAsBytes(text) {
    const numbers = text.match(/-?\d+(\.\d+)?([eE][-+]?\d+)?/g) ?? [];
    return Buffer.from(new Float32Array(numbers.map(Number)).buffer).toString('latin1');
}

function refusedByStore(reply, rule, what = '') {
    const told = `${what}: ${reply.status} ${reply.text.slice(0, 400)}`;
    assert.equal(reply.status, 502, told);
    assert.equal(reply.body.code, 'VECTOR_STORE_FAILED', told);
    assert.match(reply.body.error, rule, told);
    assert.ok(!reply.text.includes(marker) && !numbersAsBytes(reply.text).includes(marker.slice(0, 8)), 'no words of another app');
}

async function lives(h) {
    const reply = await h.api('GET', '/healthz');
    assert.equal(reply.status, 200, reply.text);
}

// ---- Qdrant ----

const qdrantCollection = (size) => ({ result: { status: 'green', config: { params: { vectors: { size, distance: 'Cosine' } } } } });
const qdrantPoint = (more = {}) => ({ id: 1, score: 0.5, payload: { hearth_id: 'a', hearth_length: 1, metadata: {} }, vector: [1], ...more });
const ones = (n) => Array.from({ length: n }, () => 1);

// answers: verb -> what is the body, bytes as they are, or a function (request, socket).
async function qdrant(t, answers) {
    const requests = [];
    const honest = {
        list: { result: { collections: [] } }, collection: qdrantCollection(dimensions), count: { result: { count: 1 } },
        scroll: { result: { points: [qdrantPoint()], next_page_offset: null } }, read: { result: [qdrantPoint({ vector: ones(dimensions) })] },
        query: { result: { points: [qdrantPoint({ vector: ones(dimensions) })] } },
    };
    const server = await hostileHttp(t, (request, socket) => {
        const verb = verbOfQdrant(request);
        requests.push(request);
        const said = answers[verb] ?? honest[verb];
        const value = typeof said === 'function' ? said(request, socket) : said;
        if (value !== undefined)
            socket.write(Buffer.isBuffer(value) ? value : responseBytes(value));
    });
    return { ...server, requests, answers, provider: 'qdrant', config: { url: server.url } };
}

function verbOfQdrant({ method, path }) {
    if (path === '/collections')
        return 'list';
    const [, verb] = /^\/collections\/[^/]+(?:\/points)?\/?(\w*)/.exec(path);
    return verb || (method === 'GET' ? 'collection' : 'read');
}

test('Qdrant: vectors of another length than announced are an error, not memory', async (t) => {
    const store = await qdrant(t, { read: { result: [qdrantPoint()] }, query: { result: { points: [qdrantPoint()] } } });
    const { h, app } = await attack(t, store);
    refusedByStore(await listed(app), /Qdrant.*1 .*4096/);
    refusedByStore(await queried(app), /Qdrant.*1 .*4096/);
    store.answers.read = { result: [qdrantPoint({ vector: ones(dimensions + 1) })] };
    refusedByStore(await listed(app), /Qdrant.*4097 .*4096/);
    await lives(h);
});

const qdrantLies = [
    ['dimensions beyond the limit', { collection: qdrantCollection(100_000_000) }, /dimension/],
    ['negative dimensions', { collection: qdrantCollection(-4) }, /dimension/],
    ['dimensions that are no number', { collection: qdrantCollection('4096') }, /dimension/],
    ['a count that is no number', { count: { result: { count: 'many' } } }, /count/, queried],
    ['a count below zero', { count: { result: { count: -1 } } }, /count/, queried],
    ['a point without an id', { scroll: { result: { points: [{ id: 1 }] } } }, /hearth_id/],
    ['an id of a megabyte', { scroll: { result: { points: [qdrantPoint({ payload: { hearth_id: 'x'.repeat(1 << 20) } })] } } }, /id/],
    ['points that are no list', { scroll: { result: { points: { a: 1 } } } }, /points/],
    ['more points than were asked for', { read: { result: Array.from({ length: 50 }, () => qdrantPoint({ vector: ones(dimensions) })) } }, /50 .*1/],
    ['no vector where one was asked for', { read: { result: [qdrantPoint({ vector: null })] } }, /vector/],
    ['a vector of words', { read: { result: [qdrantPoint({ vector: Array.from({ length: dimensions }, () => 'x') })] } }, /vector/],
    ['a length that makes numbers infinite', { read: { result: [qdrantPoint({ vector: ones(dimensions), payload: { hearth_id: 'a', hearth_length: 1e300, metadata: {} } })] } }, /vector/],
    ['NaN', { read: '{"result":[{"id":1,"vector":[NaN]}]}' }, /JSON/],
    ['JSON that is deep', { read: '['.repeat(100_000) }, /JSON/],
    ['a giant body', { read: (request, socket) => { socket.write('HTTP/1.1 200 OK\r\ncontent-length: 900000000\r\n\r\n'); flood(socket, Buffer.alloc(1 << 20, 0x20)); } }, /more than/],
    ['a page that leads nowhere', { scroll: { result: { points: [], next_page_offset: 7 } } }, /page/],
    ['the same page again and again', { scroll: { result: { points: [qdrantPoint()], next_page_offset: 7 } } }, /page/],
    ['an offset that is a tree', { scroll: { result: { points: [qdrantPoint()], next_page_offset: { a: [1] } } } }, /page/],
];

function flood(socket, piece) {
    const more = () => { while (!socket.destroyed && socket.write(piece)); };
    socket.on('drain', more);
    more();
}

test('Qdrant: every lie is an error that names it, and the service lives', async (t) => {
    const store = await qdrant(t, {});
    const { h, app } = await attack(t, store);
    for (const [what, answers, rule, ask = listed] of qdrantLies) {
        Object.keys(store.answers).forEach((key) => delete store.answers[key]);
        Object.assign(store.answers, answers);
        refusedByStore(await ask(app), rule, what);
    }
    await lives(h);
});

test('Qdrant: pages without end are over at the deadline of the whole operation', async (t) => {
    let n = 0;
    const store = await qdrant(t, { scroll: () => ({ result: { points: [qdrantPoint({ payload: { hearth_id: `p${n++}` } })], next_page_offset: n } }) });
    const { h, app } = await attack(t, store, { 'vectors.store_timeout_s': 1 });
    refusedByStore(await listed(app), /Qdrant.*(1 second|pages)/);
    await lives(h);
});

test('Qdrant: an answer that drips is over at the deadline of the whole operation', async (t) => {
    const store = await qdrant(t, {
        scroll: (request, socket) => {
            socket.write('HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n');
            const drip = setInterval(() => socket.write(' '), 100);
            socket.on('close', () => clearInterval(drip));
        },
    });
    const { h, app } = await attack(t, store, { 'vectors.store_timeout_s': 1 });
    refusedByStore(await listed(app), /Qdrant.*(in time|1 second)/);
    await lives(h);
});

test('Qdrant: a client that leaves ends the waiting for a silent store', async (t) => {
    let asked;
    const store = await qdrant(t, { scroll: (request, socket) => asked(socket) });
    const { h, app } = await attack(t, store);
    await clientLeaves(h, app, (resolve) => { asked = resolve; });
});

// Sends a request that the store never answers, goes away, and waits until the service has hung up on the store.
async function clientLeaves(h, app, onAsked) {
    const asked = new Promise(onAsked), leaving = new AbortController();
    const refusal = assert.rejects(app('GET', `${base}/list`, undefined, undefined, { signal: leaving.signal }), /abort/);
    const socket = await asked;
    const hungUp = Promise.race([once(socket, 'end'), once(socket, 'close')]);
    leaving.abort();
    await refusal;
    await Promise.race([hungUp, new Promise((done, failed) => setTimeout(() => failed(new Error('the store was still waited for')), 30_000).unref())]);
    await lives(h);
}

// ---- Chroma ----

async function chroma(t, answers) {
    const collection = (more = {}) => ({
        id: '11111111-1111-4111-8111-111111111111', name: 'x', dimension: dimensions, configuration_json: { hnsw: { space: 'cosine' } }, metadata: {}, ...more,
    });
    const server = await hostileHttp(t, (request, socket) => {
        const [, name = '', verb = ''] = /\/collections\/?([^/?]*)\/?(\w*)/.exec(request.path) ?? [];
        const kind = verb || (/heartbeat/.test(request.path) ? 'heartbeat' : name ? 'collection' : /collections/.test(request.path) ? 'collections' : 'other');
        const honest = {
            heartbeat: { 'nanosecond heartbeat': 1 }, other: {}, collections: [], collection: collection({ metadata: { hearth_namespace: name } }), count: 1,
            get: { ids: ['a'], metadatas: [{ hearth_json: '{}', hearth_length: 1 }], embeddings: [ones(dimensions)] },
            query: { ids: [['a']], metadatas: [[{ hearth_json: '{}', hearth_length: 1 }]], embeddings: [[ones(dimensions)]], distances: [[0.5]] },
        };
        const said = answers[kind] ?? honest[kind];
        const value = typeof said === 'function' ? said(collection({ metadata: { hearth_namespace: name } }), socket) : said;
        if (value !== undefined)
            socket.write(Buffer.isBuffer(value) ? value : responseBytes(value));
    });
    return { ...server, answers, provider: 'chroma', config: { url: server.url } };
}

const chromaRecord = (more = {}) => ({ ids: ['a'], metadatas: [{ hearth_json: '{}', hearth_length: 1 }], embeddings: [ones(dimensions)], ...more });
const chromaHit = (more = {}) => ({ ids: [['a']], metadatas: [[{ hearth_json: '{}', hearth_length: 1 }]], embeddings: [[ones(dimensions)]], distances: [[0.5]], ...more });

const chromaLies = [
    ['a vector of another length', { get: chromaRecord({ embeddings: [[1]] }) }, /Chroma.*1 .*4096/],
    ['a vector of another length in a query', { query: chromaHit({ embeddings: [[[1]]] }) }, /Chroma.*1 .*4096/, queried],
    ['dimensions beyond the limit', { collection: (c) => ({ ...c, dimension: 100_000_000 }) }, /dimension/],
    ['metadata that is no JSON', { get: chromaRecord({ metadatas: [{ hearth_json: '{}},"admin":true,"x":{"a":1', hearth_length: 1 }] }) }, /metadata/],
    ['metadata that is no object', { get: chromaRecord({ metadatas: [{ hearth_json: '7', hearth_length: 1 }] }) }, /metadata/],
    ['an id that is a number', { get: chromaRecord({ ids: [1] }) }, /id/],
    ['more ids than were asked for', { get: chromaRecord({ ids: Array.from({ length: 5000 }, (_, i) => `i${i}`) }) }, /5000 .*1000/],
    ['more nearest than were asked for', { query: chromaHit({ ids: [Array.from({ length: 6 }, (_, i) => `i${i}`)] }) }, /6 .*5/, queried],
    ['ids by the million', { get: `{"ids":[${'1,'.repeat(16_700_000)}1]}` }, /more/],
    ['a count that is a list', { count: [1] }, /count/, queried],
    ['a distance that is a word', { query: chromaHit({ distances: [['near']] }) }, /score/, queried],
    ['an id of a collection that is a path', { collection: (c) => ({ ...c, id: '../../../secrets' }) }, /collection/],
];

test('Chroma: every lie is an error that names it, and the service lives', async (t) => {
    const store = await chroma(t, {});
    const { h, app } = await attack(t, store);
    assert.equal((await listed(app)).status, 200, 'without lies it works');
    for (const [what, answers, rule, ask = listed] of chromaLies) {
        Object.keys(store.answers).forEach((key) => delete store.answers[key]);
        Object.assign(store.answers, answers);
        refusedByStore(await ask(app), rule, what);
    }
    await lives(h);
});

// ---- PostgreSQL ----

const prefixOf = (params) => params[0];
const record = (more = {}) => [{ id: 'a', score: 0, metadata: '{}', vector: JSON.stringify(ones(dimensions)), ...more }].map(({ id, score, metadata, vector }) => [id, score, metadata, vector])[0];
const hitColumns = ['id', 'score', 'metadata', 'embedding'];
const records = (...rows) => ({ columns: hitColumns, rows });

// answers: what kind of statement -> result, bytes, or function (statement, socket).
async function postgres(t, answers, options = {}) {
    const server = await startPgDouble(t, (statement, socket) => {
        const kind = kindOf(statement.sql);
        const honest = { count: { columns: ['n', 'd'], rows: [[1, dimensions]] }, dimensions: { columns: ['n_dimensions'], rows: [[dimensions]] },
            list: records(record()), query: records(record()), names: { columns: ['name'], rows: [] } };
        const said = answers[kind] ?? honest[kind];
        return typeof said === 'function' ? said(statement, socket) : said;
    }, options);
    return { ...server, answers };
}

function kindOf(sql) {
    if (/count\(\*\)/.test(sql))
        return 'count';
    if (/^SELECT n_dimensions/.test(sql))
        return 'dimensions';
    if (/DISTINCT namespace/.test(sql))
        return 'names';
    return /OFFSET/.test(sql) ? 'list' : /^SELECT id/.test(sql) ? 'query' : 'other';
}

const counted = (call) => call('GET', `${base}/count`);
const named = (call) => call('GET', `${base}/workspaces`);

const pgLies = [
    ['a vector of another length', { list: records(record({ vector: '[1]' })) }, /PostgreSQL.*1 .*4096/],
    ['a vector of another length in a query', { query: records(record({ vector: '[1]' })) }, /PostgreSQL.*1 .*4096/, queried],
    ['a hundred million dimensions', { count: { columns: ['n', 'd'], rows: [[1, 100_000_000]] }, list: records(record({ vector: '[1]' })) }, /dimension/],
    ['a count of NULL', { count: { columns: ['n', 'd'], rows: [[null, null]] } }, /PostgreSQL.*NULL/, counted],
    ['a count without columns', { count: { columns: ['n'], rows: [[1]] } }, /column/, counted],
    ['a count without rows', { count: { columns: ['n', 'd'], rows: [] } }, /row/, counted],
    ['a count in words', { count: { columns: ['n', 'd'], rows: [['many', 3]] } }, /PostgreSQL/, counted],
    ['a count below zero', { count: { columns: ['n', 'd'], rows: [[-1, 3]] } }, /PostgreSQL/, counted],
    ['records of one column', { list: { columns: ['id'], rows: [['a']] } }, /column/],
    ['a record without an id', { list: records(record({ id: null })) }, /PostgreSQL.*NULL/],
    ['an id of a megabyte', { list: records(record({ id: 'x'.repeat(600_000) })) }, /PostgreSQL/],
    ['an id that is no UTF-8', { list: records(record({ id: Buffer.from([0x61, 0xff]) })) }, /UTF-8/],
    ['a score in words', { query: records(record({ score: 'near' })) }, /PostgreSQL/, queried],
    ['metadata that is no JSON', { list: records(record({ metadata: '{}},"admin":true,"x":{"a":1' })) }, /metadata/],
    ['metadata of NULL', { list: records(record({ metadata: null })) }, /PostgreSQL/],
    ['metadata that is no object', { list: records(record({ metadata: '[1]' })) }, /metadata/],
    ['a vector of NULL', { list: records(record({ vector: null })) }, /PostgreSQL.*NULL/],
    ['a vector in words', { list: records(record({ vector: `[${ones(dimensions - 1)},"x"]` })) }, /vector/],
    ['a namespace of NULL', { names: { columns: ['name'], rows: [[null]] } }, /PostgreSQL.*NULL/, named],
    ['a namespace of somebody else', { names: { columns: ['name'], rows: [['x']] } }, /PostgreSQL.*namespace/, named],
    ['a namespace without columns', { names: { columns: [], rows: [[]] } }, /PostgreSQL/, named],
    ['binary columns', { count: Buffer.concat([begun, described(['n', 'd'], 1), row([1, 1]), ready()]) }, /PostgreSQL/, counted],
    ['rows that do not fit their description', { count: Buffer.concat([begun, described(['n', 'd']), message('D', Buffer.from([0, 9])), ready()]) }, /PostgreSQL/, counted],
    ['a message of no kind', { count: Buffer.from('garbage of a server that is none') }, /PostgreSQL/, counted],
    ['a copy instead of rows', { count: Buffer.concat([begun, message('H', Buffer.from([0, 0, 0])), ready()]) }, /PostgreSQL/, counted],
    ['rows without end', { list: (statement, socket) => { socket.write(Buffer.concat([begun, described(hitColumns)])); flood(socket, row(record())); return SILENCE; } }, /more/],
    ['settings without end', { list: (statement, socket) => { let n = 0; floodOf(socket, () => parameter(`p${n++}`, 'x'.repeat(100))); return SILENCE; } }, /more/],
    ['a row that has a gigabyte', { list: (statement, socket) => {
        socket.write(Buffer.concat([begun, described(hitColumns), Buffer.from('D'), Buffer.from([0x3f, 0xff, 0xff, 0xff, 0, 4, 0x3f, 0xff, 0, 0])]));
        flood(socket, Buffer.alloc(1 << 16, 0x78));
        return SILENCE;
    } }, /more/],
];

function floodOf(socket, make) {
    flood(socket, Buffer.concat(Array.from({ length: 2000 }, make)));
}

test('PostgreSQL: every lie is an error that names it, and the service lives', async (t) => {
    const store = await postgres(t, {});
    const { h, app } = await attack(t, store);
    for (const ask of [listed, queried, counted, named])
        assert.equal((await ask(app)).status, 200, `without lies ${ask.name} works`);
    for (const [what, answers, rule, ask = listed] of pgLies) {
        Object.keys(store.answers).forEach((key) => delete store.answers[key]);
        Object.assign(store.answers, answers);
        refusedByStore(await ask(app), rule, what);
    }
    await lives(h);
});

test('PostgreSQL: large numbers in metadata come back as the numbers they are', async (t) => {
    const metadata = `{"big": 1${'0'.repeat(30)}, "huge": -1${'0'.repeat(300)}, "text": "1${'0'.repeat(30)}", "small": 7}`;
    const { app } = await attack(t, await postgres(t, { list: records(record({ metadata })) }));
    const reply = await listed(app);
    assert.equal(reply.status, 200, reply.text.slice(0, 400));
    assert.deepEqual(reply.body.vectors[0].metadata, { big: 1e30, huge: -1e300, text: `1${'0'.repeat(30)}`, small: 7 });
});

test('PostgreSQL: rows in TLS records of 16 KiB are read to the end', async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'hearth-pg-tls-'));
    t.after(() => rmSync(folder, { recursive: true, force: true }));
    execFileSync('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', join(folder, 'key'), '-out', join(folder, 'cert'),
        '-days', '2', '-subj', '/CN=localhost'], { stdio: 'pipe' });
    const vector = JSON.stringify(Array.from({ length: dimensions }, (_, i) => i / 7));
    const rows = Array.from({ length: 50 }, (_, i) => record({ id: `r${i}`, vector }));
    const store = await postgres(t, { list: records(...rows) }, { tls: { key: readFileSync(join(folder, 'key')), cert: readFileSync(join(folder, 'cert')) } });
    const { app } = await attack(t, store);
    const reply = await listed(app);
    assert.equal(reply.status, 200, reply.text.slice(0, 400));
    assert.deepEqual(reply.body.vectors.map(({ id, vector: { length } }) => [id, length]), rows.map(([id]) => [id, dimensions]));
});

test('PostgreSQL: silence after the startup, before and within a row is over at the deadline', async (t) => {
    const store = await postgres(t, {});
    const { h, app } = await attack(t, store, { 'vectors.store_timeout_s': 1 });
    for (const silence of [SILENCE, Buffer.concat([begun, described(hitColumns)]), Buffer.concat([begun, described(hitColumns), Buffer.from([0x44, 0, 0, 1, 0, 0, 4])])]) {
        store.answers.list = silence;
        refusedByStore(await listed(app), /PostgreSQL.*1 second/);
    }
    const mute = await startPgDouble(t, undefined, { isSilent: true });
    const reply = await app('POST', `${base}/register`, mute);
    assert.equal(reply.status, 400, reply.text);
    assert.match(reply.body.error, /1 second/);
    await lives(h);
});

test('PostgreSQL: a client that leaves ends the waiting for a silent store', async (t) => {
    let asked;
    const store = await postgres(t, { list: (statement, socket) => { asked(socket); return SILENCE; } });
    const { h, app } = await attack(t, store);
    await clientLeaves(h, app, (resolve) => { asked = resolve; });
});

// ---- time and threads of others ----

// Registrations with a server that takes the connection and then answers no statement; the answers are of no interest.
function hang(app, store, n) {
    return Array.from({ length: n }, () => app('POST', `${base}/register`, store).catch((error) => error));
}

test('540 registrations that hang: other apps are served and consent is asked', async (t) => {
    const silent = await startPgDouble(t, () => SILENCE);
    const { h, app } = await attack(t, null, { 'consent.wait_s': 0 });
    const reader = h.asApp(await newApp(h, { config: { backend: { enabled: true } } }, ['activities.read']));
    let waiting = 540;
    const registrations = hang(app, silent, waiting).map((one) => one.then(() => waiting--));
    await until(() => silent.statements.length >= 1, { what: 'the store is asked' });

    const rows = await reader('GET', '/activities');
    assert.equal(rows.status, 200, rows.text);
    const asked = await reader('POST', '/api/local-apps/request-permission', { permission: 'vectors.read' });
    assert.equal(asked.status, 200, asked.text);
    assert.ok(waiting > 0, 'registrations still hang');
    await h.terminate();
    await Promise.all(registrations);
});

test('SIGTERM ends a service at once whose workers wait for silent stores', async (t) => {
    const silent = await startPgDouble(t, () => SILENCE);
    const { h, app } = await attack(t);
    const registrations = hang(app, silent, 40);
    await until(() => silent.statements.length >= 1, { what: 'the store is asked' });
    const begunMs = performance.now();
    h.signal('SIGTERM');
    assert.deepEqual(await h.exited(), { code: 0, signal: null });
    const tookMs = Math.round(performance.now() - begunMs);
    assert.ok(tookMs < 15_000, `SIGTERM took ${tookMs} ms`);
    await Promise.all(registrations);
});
