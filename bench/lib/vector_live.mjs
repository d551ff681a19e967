// Queries over HTTP while the service works at something else: bulk upserts with sketches, compaction, and the load at a start. Each row stands beside
// the quiet service of the same run; the target is the quiet p99 plus 2 ms.
import { once } from 'node:events';
import http from 'node:http';
import { emit, quantile } from './measure.mjs';
import { hearth } from './programs.mjs';
import { dimensions, topK } from './vector_yardsticks.mjs';

const batch = 1000;
const queriesOfRound = 400;
const clientsAtOnce = 8;
const idsOfCall = 5000;
const mostMs = 2;                       // that other work may add to a query's p99

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

async function store(call, all, workspaceId, from, to) {
    const began = performance.now();
    for (let at = from; at < to; at += batch) {
        const numbers = all.subarray(at * dimensions, Math.min(to, at + batch) * dimensions);
        const line = JSON.stringify({ workspaceId, ids: Array.from({ length: numbers.length / dimensions }, (_, i) => String(at + i)) });
        await call('/sdk/llm/vectors/bulk', Buffer.concat([Buffer.from(`${line}\n`), Buffer.from(numbers.buffer, numbers.byteOffset, numbers.byteLength)]), 'application/octet-stream');
    }
    return (to - from) / (performance.now() - began) * 1000;
}

// {p50, p99} in ms of one query after the other, until `isOver` says so, but at least as many as one round has.
async function ask({ h, key, all, n }, workspaceId, isOver = () => true) {
    const call = connect(h, key);
    const ms = [];
    while (ms.length < queriesOfRound || !isOver()) {
        const body = JSON.stringify({ workspaceId, topK, vector_b64: base64Of(rowOf(all, n + ms.length % 100)) });
        const began = performance.now();
        await call('/sdk/llm/vectors/query', body);
        ms.push(performance.now() - began);
    }
    return { p50: quantile(ms, 0.5), p99: quantile(ms, 0.99) };
}

// Until no thread of the service computes any more.
async function calm(h) {
    for (let before = -1, now = 0; now !== before;) {
        before = now;
        await new Promise((done) => setTimeout(done, 1500));
        now = await metric(h, 'hearth_db_commits_total{db="vectors"}');
    }
}

// p99 of queries of `workspaceId` while `work` runs.
async function during(service, workspaceId, work) {
    let isOver = false;
    const [sample] = await Promise.all([ask(service, workspaceId, () => isOver), work().finally(() => { isOver = true; })]);
    return sample;
}

async function remove(call, workspaceId, from, to) {
    for (let at = from; at < to; at += idsOfCall)
        await call('/sdk/llm/vectors/delete', JSON.stringify({ workspaceId, ids: Array.from({ length: Math.min(idsOfCall, to - at) }, (_, i) => String(at + i)) }));
}

// Removes a third of the rows, which has the service close the gaps.
async function compact({ h, key, n }) {
    const before = await metric(h, 'hearth_vector_renewals_total');
    await remove(connect(h, key), 'main', 0, n / 3);
    for (const end = performance.now() + 20_000; performance.now() < end && await metric(h, 'hearth_vector_renewals_total') === before;)
        await new Promise((done) => setTimeout(done, 20));
}

async function atOnce(service) {
    const samples = await Promise.all(Array.from({ length: clientsAtOnce }, () => ask(service, 'main')));
    return { p50: quantile(samples.map((s) => s.p50), 0.5), p99: Math.max(...samples.map((s) => s.p99)) };
}

// Queries of the small namespace while the start loads the large ones, and the seconds that it took.
async function restart(service) {
    const { h } = service;
    await h.terminate();
    await h.start();
    const sample = await ask(service, 'small');
    await ask(service, 'main');
    return { sample, seconds: await metric(h, 'hearth_vector_load_seconds_sum') };
}

function row(what, quiet, sample) {
    emit({ what, unit: 'ms', better: 'less', hearth: sample.p99, peer: quiet.p99, peer_name: 'the quiet service', target: { of: 'value', at: quiet.p99 + mostMs } });
}

export async function measureLive(what, all, n) {
    const h = await hearth({ settings: { 'limits.vectors_mb': 100_000 } });
    const service = { h, key: await h.key(), all, n };
    const call = connect(h, service.key);
    const perSecond = await store(call, all, 'main', 0, n);
    await store(call, all, 'small', 0, batch);
    await calm(h);
    const quiet = await ask(service, 'main');
    const small = await ask(service, 'small');
    const many = await atOnce(service);
    emit({ what: `${what}: bulk upserts over HTTP, one client`, unit: 'vectors/s', better: 'more', hearth: perSecond, target: { of: 'value', at: 100_000 } });
    emit({ what: `${what}: HTTP p50, ${clientsAtOnce} clients`, unit: 'ms', better: 'less', hearth: many.p50, peer: quiet.p50, peer_name: 'one client' });
    emit({ what: `${what}: HTTP p99, ${clientsAtOnce} clients`, unit: 'ms', better: 'less', hearth: many.p99, peer: quiet.p99, peer_name: 'one client' });
    row(`${what}: HTTP p99 during bulk upserts into another namespace`, quiet, await during(service, 'main', () => store(call, all, 'other', 0, Math.min(n, 50_000))));
    await calm(h);
    row(`${what}: HTTP p99 during removal and compaction`, quiet, await during(service, 'main', () => compact(service)));
    await calm(h);
    const started = await restart(service);
    row(`${what}: HTTP p99 of a small namespace during the load at a start`, small, started.sample);
    emit({ what: `${what}: load of all namespaces at a start`, unit: 's', better: 'less', hearth: started.seconds, target: { of: 'value', at: 2 } });
    await h.terminate();
}
