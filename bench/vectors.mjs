// Nearest vectors, top 10. First the engine on one thread over several kinds of data (lib/vector_engine.mjs). Then engine and service over HTTP beside the
// stores that apps embed today, all with the same rows (384 dimensions, clustered) and queries; recall is counted against sqlite-vec, which is exact.
//
//     BENCH_SETS=text:400,isotropic:100x1536 script/bench vectors   kinds of data, thousands of rows, dimensions; '' for none
//     BENCH_VECTORS=10,100,400,1000 script/bench vectors            thousands of rows beside the stores; '' for none; 100 by default
//     BENCH_HNSWLIB=all script/bench vectors                        hnswlib everywhere: its larger indexes take many minutes to build, and are kept; without it
//                                                                   those count that are kept or soon built, and isotropic data is measured without
//     BENCH_ONLY=indexes BENCH_SETS=text:400 script/bench vectors   builds such indexes alone, before a part is measured on a quiet machine
//     BENCH_ONLY=live BENCH_VECTORS=400 script/bench vectors        queries beside other work of the service alone
//     BENCH_FAISS=all script/bench vectors                          beside faiss too, which trains for minutes
import http from 'node:http';
import { emit, quantile } from './lib/measure.mjs';
import { bench, hearth, residentBytes } from './lib/programs.mjs';
import { engine, measureSets, readRows } from './lib/vector_engine.mjs';
import { measureLive } from './lib/vector_live.mjs';
import { writeSet } from './lib/vector_sets.mjs';
import { dimensions, hnswlib, indexLance, lance, sqliteVec, topK } from './lib/vector_yardsticks.mjs';

const queries = 200;
const batch = 1000;
const singleClients = 8;
const singlesOfClient = 100;
const formRows = 10_000;                 // loaded in each form of an upsert
const clientsAtOnce = 8;
const queriesOfClient = 25;
const only = process.env.BENCH_ONLY;
const roundsOf = (n) => n <= 10_000 ? 5 : n <= 100_000 ? 3 : 1;
const sizes = (process.env.BENCH_VECTORS ?? '100').split(',').filter(Boolean).map((thousands) => Number(thousands) * 1000)
    .map((n) => ({ n, rounds: roundsOf(n), isLarge: n >= 400_000 }));

// {p50, p99} in ms of one query after the other, and what was found.
async function measure(query, all, n) {
    const ms = [];
    const found = [];
    for (let i = 0; i < queries; i++) {
        const vector = all.subarray((n + i) * dimensions, (n + i + 1) * dimensions);
        const began = performance.now();
        found.push(await query(vector));
        ms.push(performance.now() - began);
    }
    return { p50: quantile(ms, 0.5), p99: quantile(ms, 0.99), found };
}

const recall = (found, exact) => found.reduce((sum, ids, i) => sum + ids.filter((id) => exact[i].some((right) => Number(right) === Number(id))).length, 0) / (queries * topK);

const json = (vector) => `[${Array.from(vector, (x) => x.toFixed(6)).join(',')}]`;

// One connection that stays open.
function caller(h, key) {
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
    return (path, body, type = 'application/json') => new Promise((done, failed) => {
        const headers = { authorization: `Bearer ${key}`, 'content-type': type, 'content-length': Buffer.byteLength(body) };
        http.request(`${h.url}${path}`, { method: 'POST', agent, headers }, (reply) => {
            const pieces = [];
            reply.on('data', (piece) => pieces.push(piece));
            reply.on('end', () => reply.statusCode === 200 ? done(JSON.parse(Buffer.concat(pieces))) : failed(new Error(String(Buffer.concat(pieces)))));
        }).on('error', failed).end(body);
    });
}

// Queries on a connection of their own: one that idles while others are measured would be closed.
function queryOf({ h, key }) {
    const call = caller(h, key);
    return async (vector) => (await call('/sdk/llm/vectors/query', `{"topK":${topK},"vector":${json(vector)}}`)).results.map((hit) => hit.id);
}

const rowOf = (all, i) => all.subarray(i * dimensions, (i + 1) * dimensions);
const bytesOf = (numbers) => Buffer.from(numbers.buffer, numbers.byteOffset, numbers.byteLength);
const records = (workspaceId, from, member) => {
    const vectors = Array.from({ length: batch }, (_, i) => `{"id":"${from + i}",${member(from + i)}}`);
    return Buffer.from(`{"workspaceId":"${workspaceId}","vectors":[${vectors.join(',')}]}`);
};

// The arguments of caller()'s function that store a batch, in each form that the service takes.
const forms = {
    JSON: (all, from) => ['/sdk/llm/vectors/upsert', records('default', from, (i) => `"vector":${json(rowOf(all, i))}`)],
    base64: (all, from) => ['/sdk/llm/vectors/upsert', records('base64', from, (i) => `"vector_b64":"${bytesOf(rowOf(all, i)).toString('base64')}"`)],
    bulk: (all, from) => ['/sdk/llm/vectors/bulk', Buffer.concat([
        Buffer.from(`${JSON.stringify({ ids: Array.from({ length: batch }, (_, i) => String(from + i)), workspaceId: 'bulk' })}\n`),
        bytesOf(all.subarray(from * dimensions, (from + batch) * dimensions))]), 'application/octet-stream'],
};

// Vectors a second over one connection; the time in which the client writes bodies does not count.
async function load({ h, key }, all, n, form) {
    const call = caller(h, key);
    let ms = 0;
    for (let from = 0; from < n; from += batch) {
        const request = form(all, from);
        const began = performance.now();
        await call(...request);
        ms += performance.now() - began;
    }
    return n / ms * 1000;
}

// The service with the rows in it.
async function overHttp(all, n) {
    const h = await hearth();
    const service = { h, key: await h.key() };
    const before = residentBytes(h.pid);
    const upserts = { JSON: await load(service, all, n, forms.JSON) };
    const bytes = (residentBytes(h.pid) - before) / n * 1e5;
    for (const name of ['base64', 'bulk'])
        upserts[name] = await load(service, all, Math.min(n, formRows), forms[name]);
    return { ...service, upserts, bytes };
}

// Clients that ask at the same time, each one query after the other.
async function queriesAtOnce(service, all, n) {
    const ms = [];
    const began = performance.now();
    await Promise.all(Array.from({ length: clientsAtOnce }, async (_, client) => {
        const query = queryOf(service);
        for (let i = 0; i < queriesOfClient; i++) {
            const asked = performance.now();
            await query(rowOf(all, n + (client * queriesOfClient + i) % queries));
            ms.push(performance.now() - asked);
        }
    }));
    return { perSecond: ms.length / (performance.now() - began) * 1000, p99: quantile(ms, 0.99) };
}

// Vectors one at a time from clients that each wait for their answers: what shares a commit counts.
async function singleUpserts({ h, key }, all) {
    const began = performance.now();
    await Promise.all(Array.from({ length: singleClients }, async (_, client) => {
        const call = caller(h, key);
        for (let i = 0; i < singlesOfClient; i++) {
            const row = client * singlesOfClient + i;
            const vector = json(all.subarray(row * dimensions, (row + 1) * dimensions));
            await call('/sdk/llm/vectors/upsert', `{"workspaceId":"singles","vectors":[{"id":"${row}","vector":${vector}}]}`);
        }
    }));
    return singleClients * singlesOfClient / (performance.now() - began) * 1000;
}

async function yardsticks(all, n) {
    const peers = [await sqliteVec(all, n), await lance(all, n)];
    if (process.env.BENCH_HNSWLIB !== 'none')
        peers.push(await hnswlib(all, n));
    return peers.filter(Boolean);
}

// The engine's samples, and for the peers {name: [{p50, p99, found}]}, in turns.
async function takeTurns({ all, file }, peers, service, { n, rounds, isLarge }) {
    const turns = { engine: [], lists: [], http: [], atOnce: [], peers: new Map(peers.map((peer) => [peer.name, []])) };
    for (let round = 0; round < rounds; round++) {
        turns.engine.push(engine(file, { n, dimensions, queries, batch }));
        if (isLarge)
            turns.lists.push(engine(file, { n, dimensions, queries, batch, listAbove: n / 2 }));
        turns.http.push(await measure(queryOf(service), all, n));
        turns.atOnce.push(await queriesAtOnce(service, all, n));
        for (const peer of peers)
            turns.peers.get(peer.name).push(await measure(peer.query, all, n));
    }
    return turns;
}

const us = (samples, member) => samples.map((s) => s[member] / 1000);

function queryRows(what, turns, n) {
    const target = { 100_000: { engine: 0.2, http: 0.6 }, 400_000: { engine: 0.6 }, 1_000_000: { engine: 1.6 } }[n] ?? {};
    const exact = turns.peers.get('sqlite-vec')[0].found;
    for (const [name, samples] of turns.peers)
        emit({ what: `${what}: engine p50`, unit: 'ms', better: 'less', hearth: us(turns.engine, 'p50_us'), peer: samples.map((s) => s.p50),
            peer_name: `${name} (recall ${recall(samples[0].found, exact).toFixed(2)})`, target: target.engine && { of: 'value', at: target.engine } });
    emit({ what: `${what}: engine p99`, unit: 'ms', better: 'less', hearth: us(turns.engine, 'p99_us'), peer: turns.peers.get('sqlite-vec').map((s) => s.p99), peer_name: 'sqlite-vec' });
    if (turns.lists.length)
        emit({ what: `${what}: lists p50, recall ${turns.lists[0].recall.toFixed(2)}`, unit: 'ms', better: 'less', hearth: us(turns.lists, 'p50_us'),
            peer: us(turns.engine, 'p50_us'), peer_name: 'the exact scan' });
    for (const member of ['p50', 'p99'])
        emit({ what: `${what}: HTTP ${member}`, unit: 'ms', better: 'less', hearth: turns.http.map((s) => s[member]), peer: turns.peers.get('LanceDB').map((s) => s[member]),
            peer_name: 'LanceDB in process', target: member === 'p50' && target.http ? { of: 'value', at: target.http } : undefined });
    emit({ what: `${what}: HTTP queries, ${clientsAtOnce} clients`, unit: 'queries/s', better: 'more', hearth: turns.atOnce.map((s) => s.perSecond),
        peer: turns.http.map((s) => 1000 / s.p50), peer_name: 'one client' });
    emit({ what: `${what}: HTTP p99, ${clientsAtOnce} clients`, unit: 'ms', better: 'less', hearth: turns.atOnce.map((s) => s.p99), peer: turns.http.map((s) => s.p99), peer_name: 'one client' });
    emit({ what: `${what}: recall, engine`, unit: 'share', better: 'more', hearth: turns.engine.map((s) => s.recall), target: { of: 'value', at: 0.999 } });
    emit({ what: `${what}: recall, HTTP`, unit: 'share', better: 'more', hearth: turns.http.map((s) => recall(s.found, exact)), target: { of: 'value', at: 0.99 } });
}

function storeRows(what, turns, service, peers, { isLarge }) {
    const of = (member) => turns.engine.map((s) => s[member]);
    for (const peer of peers)
        emit({ what: `${what}: upserts of ${batch}, engine`, unit: 'vectors/s', better: 'more', hearth: of('upserts_per_second'), peer: peer.addsPerSecond,
            peer_name: peer.name, target: { of: 'value', at: 50_000 } });
    for (const [name, perSecond] of Object.entries(service.upserts))
        emit({ what: `${what}: upserts of ${batch}, HTTP, ${name}`, unit: 'vectors/s', better: 'more', hearth: perSecond, target: name === 'bulk' ? { of: 'value', at: 100_000 } : undefined });
    emit({ what: `${what}: single upserts, engine`, unit: 'vectors/s', better: 'more', hearth: of('single_upserts_per_second') });
    emit({ what: `${what}: single upserts, HTTP, ${singleClients} clients`, unit: 'vectors/s', better: 'more', hearth: service.singlesPerSecond });
    emit({ what: `${what}: processor time of an upsert, engine`, unit: 'us', better: 'less', hearth: of('upsert_cpu_us') });
    emit({ what: `${what}: loaded and first answer`, unit: 's', better: 'less', hearth: of('load_seconds') });
    emit({ what: `${what}: memory a 100k, engine`, unit: 'MB', better: 'less', hearth: of('memory_mb_per_100k') });
    emit({ what: `${what}: memory a 100k, service after upserts`, unit: 'MB', better: 'less', hearth: service.bytes / 2 ** 20 });
    if (isLarge)                        // smaller ones fit into caches
        emit({ what: `${what}: share of memory bandwidth`, unit: 'share', better: 'more', hearth: of('scan_share'), target: { of: 'value', at: 0.85 } });
}

await bench(async () => {
    if (only !== 'live')
        await measureSets();
    for (const size of only === 'indexes' ? [] : sizes) {
        const { n } = size;
        const file = writeSet('clustered', { n, queries, dimensions });
        const all = readRows(file, (n + queries) * dimensions);
        const what = `${n / 1000}k x ${dimensions}`;
        if (only === 'live') {
            await measureLive(what, all, n);
            continue;
        }
        const peers = await yardsticks(all, n);
        const service = await overHttp(all, n);
        service.singlesPerSecond = await singleUpserts(service, all);
        const turns = await takeTurns({ all, file }, peers, service, size);
        const indexed = await indexLance(peers.find((peer) => peer.table));
        turns.peers.set(indexed.name, [await measure(indexed.query, all, n)]);
        queryRows(what, turns, n);
        storeRows(what, turns, service, peers, size);
        peers.forEach((peer) => peer.close());
        await service.h.terminate();
        await measureLive(what, all, n);
    }
});
