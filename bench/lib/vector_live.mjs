// Queries over HTTP while the service works at something else: bulk upserts with sketches, lists, removals, compaction, and the load at a start. Each row stands beside
// the quiet service of the same run; the target of what the service does by itself (lists, compaction, a load) is the quiet p99 plus 2 ms.
import { once } from 'node:events';
import http from 'node:http';
import { emit, quantile } from './measure.mjs';
import { hearth } from './programs.mjs';
import { dimensions, topK } from './vector_yardsticks.mjs';

const batch = 1000;
const queriesOfRound = 400;
const clientsAtOnce = 8;
const idsOfCall = 5000;
const renewalMs = 60_000;               // at most
const pollMs = 500;                     // reading the metrics takes time of clients and service, so of fewer than one query in a hundred
const leastRowsOfSureLists = 250_000;   // with fewer clustered vectors, lists that lose nothing are of no use
const mostMs = 2;                       // that other work may add to a query's p99
const filter = { share: { $lt: 50 } };  // half of the rows

// One connection that stays open.
function connect(h, key) {
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
    return async (path, body, type = 'application/json') => {
        const headers = { authorization: `Bearer ${key}`, 'content-type': type, 'content-length': Buffer.byteLength(body) };
        const request = http.request(`${h.url}${path}`, { method: 'POST', agent, headers });
        request.end(body);
        const [reply] = await once(request, 'response');
        const text = Buffer.concat(await reply.toArray()).toString();
        if (reply.statusCode !== 200)
            throw new Error(text);
        return JSON.parse(text);
    };
}

async function metric(h, name) {
    const line = (await h.api('GET', '/metrics')).text.split('\n').find((text) => text.startsWith(`${name} `));
    return line ? Number(line.split(' ')[1]) : 0;
}

const rowOf = (all, i) => all.subarray(i * dimensions, (i + 1) * dimensions);
const base64Of = (numbers) => Buffer.from(numbers.buffer, numbers.byteOffset, numbers.byteLength).toString('base64');

// Rows and their metadata; `prefix` distinguishes ids of rows that are stored twice.
function bulkBody(all, workspaceId, from, to, prefix) {
    const numbers = all.subarray(from * dimensions, to * dimensions);
    const each = (fn) => Array.from({ length: to - from }, (_, i) => fn(from + i));
    const line = JSON.stringify({ workspaceId, ids: each((i) => prefix + i), metadata: each((i) => ({ share: i * 37 % 100 })) });
    return Buffer.concat([Buffer.from(`${line}\n`), Buffer.from(numbers.buffer, numbers.byteOffset, numbers.byteLength)]);
}

// Vectors a second; the time in which the client writes bodies does not count.
async function store(call, all, workspaceId, from, to, prefix = '') {
    let ms = 0;
    for (let at = from; at < to; at += batch) {
        const body = bulkBody(all, workspaceId, at, Math.min(to, at + batch), prefix);
        const began = performance.now();
        await call('/sdk/llm/vectors/bulk', body, 'application/octet-stream');
        ms += performance.now() - began;
    }
    return (to - from) / ms * 1000;
}

// {p50, p99, most} in ms of one query after the other, until `isOver` says so, but at least as many as one round has.
async function ask({ h, key, all, n }, workspaceId, { isOver = () => true, filter } = {}) {
    const call = connect(h, key);
    const ms = [];
    while (ms.length < queriesOfRound || !isOver()) {
        const body = JSON.stringify({ workspaceId, topK, filter, vector_b64: base64Of(rowOf(all, n + ms.length % 100)) });
        const began = performance.now();
        await call('/sdk/llm/vectors/query', body);
        ms.push(performance.now() - began);
    }
    return { p50: quantile(ms, 0.5), p99: quantile(ms, 0.99), most: ms.reduce((most, one) => Math.max(most, one), 0), n: ms.length };
}

// Until no thread of the service computes any more.
async function calm(h) {
    for (let before = -1, now = 0; now !== before;) {
        before = now;
        await new Promise((done) => setTimeout(done, 1500));
        now = await metric(h, 'hearth_db_commits_total{db="vectors"}');
    }
}

// Queries without a filter and with one, each on its connection, while `work` runs.
async function during(service, workspaceId, work) {
    let over = false;
    const isOver = () => over;
    const [plain, filtered] = await Promise.all([ask(service, workspaceId, { isOver }), ask(service, workspaceId, { isOver, filter }), work().finally(() => { over = true; })]);
    return { plain, filtered };
}

// Vectors a second.
async function remove(call, workspaceId, from, to) {
    const began = performance.now();
    for (let at = from; at < to; at += idsOfCall)
        await call('/sdk/llm/vectors/delete', JSON.stringify({ workspaceId, ids: Array.from({ length: Math.min(idsOfCall, to - at) }, (_, i) => String(at + i)) }));
    return (to - from) / (performance.now() - began) * 1000;
}

// Does `work`, and waits until the service has put a namespace into a new order for it.
async function renewed({ h }, work) {
    const before = await metric(h, 'hearth_vector_renewals_total');
    await work();
    for (const end = performance.now() + renewalMs; performance.now() < end && await metric(h, 'hearth_vector_renewals_total') === before;)
        await new Promise((done) => setTimeout(done, pollMs));
}

async function atOnce(service) {
    const samples = await Promise.all(Array.from({ length: clientsAtOnce }, () => ask(service, 'main')));
    return { p50: quantile(samples.map((s) => s.p50), 0.5), p99: Math.max(...samples.map((s) => s.p99)) };
}

// Queries of the small namespace after a start, while it loads what else there is.
async function restart(service) {
    await service.h.terminate();
    await service.h.start();
    return { plain: await ask(service, 'small') };
}

// Changes of a client have no target: their writer computes on one of two processors.
function rows(what, quiet, sample, { hasTarget = true } = {}) {
    for (const [name, { p99, most, n }] of Object.entries(sample)) {
        const label = `${what}${name === 'filtered' ? ', with a filter' : ''}`;
        emit({ what: `${label}: HTTP p99`, unit: 'ms', better: 'less', hearth: p99, peer: quiet[name].p99, peer_name: 'the quiet service', target: hasTarget ? { of: 'value', at: quiet[name].p99 + mostMs } : undefined });
        emit({ what: `${label}: HTTP, the slowest of ${n}`, unit: 'ms', better: 'less', hearth: most, peer: quiet[name].most, peer_name: `the quiet service, of ${quiet[name].n}` });
    }
}

// More rows than the lists begin at; then nearly a quarter of the rows is removed, and the few more that have the service close the gaps.
async function renew(what, service, call, quiet) {
    const { all, n } = service;
    const more = batch;
    const few = n / 4 - idsOfCall;
    let removed;
    rows(`${what} while lists are built`, quiet, await during(service, 'main', () => renewed(service, () => store(call, all, 'main', 0, more, String(n)))));
    await calm(service.h);
    rows(`${what} during removals`, quiet, await during(service, 'main', async () => { removed = await remove(call, 'main', 0, few); }), { hasTarget: false });
    await calm(service.h);
    rows(`${what} during compaction`, quiet, await during(service, 'main', () => renewed(service, () => remove(call, 'main', few, few + 2 * idsOfCall))));
    emit({ what: `${what}: removals of ${idsOfCall} over HTTP beside two clients`, unit: 'vectors/s', better: 'more', hearth: removed });
    await calm(service.h);
}

export async function measureLive(what, all, n) {
    const listAboveRows = n < leastRowsOfSureLists ? n : 4 * n;
    const h = await hearth({ settings: { 'limits.vectors_mb': 100_000, 'vectors.list_above_rows': listAboveRows } });
    const service = { h, key: await h.key(), all, n };
    await store(connect(h, service.key), all, 'small', 0, batch);
    await restart(service);             // the first start has nothing to load
    const small = await restart(service);
    const call = connect(h, service.key);
    const perSecond = await store(call, all, 'main', 0, n);
    await calm(h);
    const quiet = { plain: await ask(service, 'main') };
    const many = await atOnce(service);
    emit({ what: `${what}: bulk upserts over HTTP, one client`, unit: 'vectors/s', better: 'more', hearth: perSecond, target: { of: 'value', at: 100_000 } });
    emit({ what: `${what}: HTTP p50, ${clientsAtOnce} clients`, unit: 'ms', better: 'less', hearth: many.p50, peer: quiet.plain.p50, peer_name: 'one client' });
    emit({ what: `${what}: HTTP p99, ${clientsAtOnce} clients`, unit: 'ms', better: 'less', hearth: many.p99, peer: quiet.plain.p99, peer_name: 'one client' });
    await ask(service, 'main', { filter });     // its values are read into memory
    const both = await during(service, 'main', async () => {});
    rows(`${what} during bulk upserts into another namespace`, both, await during(service, 'main', () => store(call, all, 'other', 0, Math.min(n, 50_000))), { hasTarget: false });
    await calm(h);
    await renew(what, service, call, both);
    rows(`${what}, a small namespace during the load at a start`, small, await restart(service));
    await ask(service, 'main');
    emit({ what: `${what}: load of all namespaces at a start`, unit: 's', better: 'less', hearth: await metric(h, 'hearth_vector_load_seconds_sum'), target: { of: 'value', at: 2 } });
    await h.terminate();
}
