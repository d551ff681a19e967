// Whole HTTP conversations, mutated from real ones: the service lives, answers others in time, says nothing that is no HTTP, no 500, no secret
// of another caller, and holds afterwards what it held before.
//
// HOSTILE_SEED (1; a new one each night) decides the choices of a run, HOSTILE_SECONDS is its time (10), HOSTILE_REPLAY=FILE carries out one kept conversation or a list of
// them. What fails is kept in build/hostile-found/ with the conversations around it; once repaired it goes to tests/hostile/regressions/.
import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { binary, startHearth, until } from '../api/harness.mjs';
import { env } from '../api/provider.mjs';
import { newApp, residentKib } from '../api/kit.mjs';
import { makeSource, plainRequest } from './conversation_grammar.mjs';
import { makeConversation } from './conversation_mutate.mjs';
import { asKept, carryOut, fromKept, judgeReceived, judgeSecrets } from './conversation_run.mjs';
import { descriptorsByKind, isRoot } from './kit.mjs';

const root = resolve(import.meta.dirname, '../..');
const seed = Number(process.env.HOSTILE_SEED ?? 1);
const seconds = Number(process.env.HOSTILE_SECONDS ?? 10);
const campaignSeconds = 60;             // a fresh service each: what it keeps by order of its callers does not pile up
const nLanes = 16, nKeptAlive = 2 * nLanes, pingMs = 20_000, nAround = 60, grownKib = 160 * 1024;
const quarantine = { ASAN_OPTIONS: 'detect_leaks=1:strict_string_checks=1:quarantine_size_mb=4:thread_local_quarantine_size_kb=64' };

process.env.CONVERSATION_PROVIDER = env.GENERIC_OPENAI_BASE_URL;

async function startSource(t) {
    const h = await startHearth({ t, env: { ...env, ...quarantine }, settings: { 'http.header_timeout_s': 2, 'http.body_timeout_s': 2, 'log.level': 'error' } });
    const source = await makeSource(h);
    source.plain = source.requests.map(plainRequest);
    source.pinger = await newApp(h, { name: 'pinger' });
    return source;
}

// A well-formed request of somebody else: answered in time, whatever goes on.
async function ping({ h, pinger }) {
    const { status } = await h.api('GET', '/sdk/ping', undefined, { 'x-app-id': pinger }, { timeoutMs: pingMs });
    assert.ok([200, 429, 503].includes(status), `ping: ${status}`);
    assert.equal((await h.socket('GET', '/healthz')).status, 200);
}

function keep(source, around, error) {
    const folder = join(root, 'build/hostile-found');
    mkdirSync(folder, { recursive: true });
    const path = join(folder, `${basename(resolve(binary, '..'))}-${seed}-${around.at(-1).seed}.json`);
    writeFileSync(path, JSON.stringify(around.map((conversation) => asKept(source, conversation)), null, 1));
    error.message = `${error.message}\nHOSTILE_SEED=${seed}; kept in ${path}: HOSTILE_REPLAY=${path} repeats it`;
    return error;
}

async function oneConversation(source, around, conversation) {
    around.push(conversation);
    around.splice(0, around.length - nAround);
    try {
        const n = await carryOut(source, conversation);
        await ping(source);
        source.h.assertNoReport();
        assert.ok(source.h.isRunning, 'the service ended');
        return n;
    } catch (error) {
        throw keep(source, [...around.filter((one) => one !== conversation), conversation], error);
    }
}

// Lanes beside each other, so that conversations meet. `next` is a seed until the time is over.
async function fuzz(source, firstSeed, endMs) {
    const around = [];
    let next = firstSeed, nConversations = 0, nAnswers = 0;
    const lane = async () => {
        while (performance.now() < endMs) {
            const n = await oneConversation(source, around, makeConversation(source, next++));
            nAnswers += n;
            nConversations++;
        }
    };
    await Promise.all(Array.from({ length: nLanes }, lane));
    return { next, nConversations, nAnswers };
}

const held = (h) => isRoot ? Object.fromEntries(Object.entries(descriptorsByKind(h.pid)).filter(([kind]) => ['socket', 'pipe', '/dev/null', 'anon_inode:[pidfd]'].includes(kind))) : {};

async function connectionsLeft({ h }) {
    const { body, text } = await h.socket('GET', '/metrics');
    assert.equal(body, undefined);
    return Number(/^hearth_http_connections (\d+)/m.exec(text)[1]);
}

// Descriptors of the connections and of programs that ended are given back. Those of databases belong to threads, which go later, and a few
// connections to the provider are kept for its next request.
async function givesBack(source, before) {
    await until(async () => await connectionsLeft(source) <= 1, { what: 'connections are given back' });
    await until(() => Object.entries(held(source.h)).every(([kind, n]) => n <= (before[kind] ?? 0) + nKeptAlive), { what: `descriptors are given back, at first ${JSON.stringify(before)}` })
        .catch((error) => { throw new Error(`${error.message}, now ${JSON.stringify(held(source.h))}`); });
}

async function campaign(t, firstSeed, forSeconds) {
    const source = await startSource(t);
    const { next: warmed } = await fuzz(source, firstSeed, performance.now() + 1000);
    await givesBack(source, held(source.h));
    const before = held(source.h), beforeKib = residentKib(source.h.pid);
    const endMs = performance.now() + forSeconds * 1000;
    const victim = (async () => {
        while (performance.now() < endMs)
            await Promise.all([source.victim.talk(), pause(200)]);
    })();
    const done = await fuzz(source, warmed, endMs);
    await victim;
    await givesBack(source, before);
    const grown = residentKib(source.h.pid) - beforeKib;
    t.diagnostic(`${done.nConversations} conversations, ${done.nAnswers} answers, grown by ${grown} KiB from ${beforeKib} KiB`);
    assert.ok(grown < grownKib, `the service grew by ${grown} KiB`);
    assert.ok(done.nAnswers > done.nConversations / 4, `${done.nAnswers} answers to ${done.nConversations} conversations: the fuzzer says nothing the service understands`);
    await source.h.stop();
    return done.next;
}

function keptIn(path) { return [JSON.parse(readFileSync(path, 'utf8'))].flat(); }

test('the judge finds what must not come back', () => {
    const answer = (status, body, more = 'x-request-id: a\r\n') => Buffer.from(`HTTP/1.1 ${status} X\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n${more}\r\n${body}`, 'latin1');
    const refusal = '{"success":false,"code":"X","error":"x"}';
    assert.equal(judgeReceived(Buffer.concat([answer(200, '{}'), answer(404, refusal), Buffer.from('HTTP/1')]), false), 2);
    for (const bad of [answer(500, refusal), answer(404, '{}'), answer(200, '{'), answer(200, '7'), answer(200, '{"a":"\xff"}'), answer(200, '{}', ''), Buffer.from('garbage'),
        Buffer.concat([answer(200, '{}'), Buffer.from('rest of the heap')])])
        assert.throws(() => judgeReceived(bad, true), bad.toString('latin1'));
    const packed = (body) => answer(200, gzipSync(body).toString('latin1'), 'x-request-id: a\r\ncontent-encoding: gzip\r\n'), unpacked = [];
    assert.equal(judgeReceived(packed('{"a":"canary"}'), true, unpacked), 1);
    assert.equal(unpacked.join(), '{"a":"canary"}');
    assert.throws(() => judgeReceived(packed('{'), true));
    const source = { victim: { id: 'their-id' }, values: { cookie: 'c=1' }, secrets: { always: ['provider-key'], victims: ['canary'] } };
    const judge = (sent, received) => judgeSecrets(source, Buffer.from(sent), Buffer.from(received));
    judge('x-app-id: their-id', 'canary');
    judge('canary', 'canary');
    assert.throws(() => judge('x-app-id: mine', 'canary'));
    assert.throws(() => judge('x-app-id: their-id', 'provider-key'));
});

test('conversations that once failed do no harm', async (t) => {
    const folder = join(root, 'tests/hostile/regressions');
    const files = process.env.HOSTILE_REPLAY ? [process.env.HOSTILE_REPLAY] : readdirSync(folder).filter((name) => name.endsWith('.json')).map((name) => join(folder, name));
    const source = await startSource(t);
    for (const file of files)
        for (const kept of keptIn(file))
            await oneConversation(source, [], fromKept(source, { seed: basename(file), ...kept }));
});

test(`mutated conversations do no harm (HOSTILE_SEED=${seed})`, { skip: process.env.HOSTILE_REPLAY && 'a kept conversation is repeated' }, async (t) => {
    t.diagnostic(`HOSTILE_SEED=${seed}`);
    for (let left = seconds, next = seed; left > 0; left -= campaignSeconds)
        next = await campaign(t, next, Math.min(left, campaignSeconds));
});
