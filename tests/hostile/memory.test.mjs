// Little memory: under a limit of address space (ulimit -v) bursts of large bodies are answered one after the other or refused with
// 503 OUT_OF_MEMORY; the service lives, and small requests are answered meanwhile. A sanitizer needs terabytes of address space: with one
// this skips itself.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { binary, startHearth } from '../api/harness.mjs';

const MiB = 1024 * 1024;
const hasSanitizer = () => /__[at]san_init/.test(readFileSync(binary, 'latin1'));

// The program under test with so many MiB of address space.
function limited(t, megabytes) {
    const folder = mkdtempSync(join(tmpdir(), 'hearth-limited-')), path = join(folder, 'hearth');
    writeFileSync(path, `#!/bin/sh\nulimit -v ${megabytes * 1024}\nexec '${binary}' "$@"\n`);
    chmodSync(path, 0o755);
    t.after(() => rmSync(folder, { recursive: true, force: true }));
    return path;
}

// Pings until it is told to stop; gives how many were answered with what.
function pinging(call) {
    const statuses = [];
    let goesOn = true;
    const done = (async () => {
        while (goesOn) {
            statuses.push((await call('GET', '/sdk/ping')).status);
            await pause(20);
        }
    })();
    return async () => {
        goesOn = false;
        await done;
        return statuses;
    };
}

const bodies = {
    text: { raw_data: { text: 'x'.repeat(3 * MiB) } },
    values: { raw_data: { list: Array.from({ length: 1.5 * MiB }, () => 1) } },
};

for (const [megabytes, n, kind] of [[700, 64, 'text'], [1000, 64, 'values'], [1500, 80, 'text']])
    test(`with ${megabytes} MiB of address space a burst of ${n} bodies of 3 MB of ${kind} is survived`, async (t) => {
        if (hasSanitizer())
            return t.skip('a sanitizer needs more address space');
        const h = await startHearth({ t, program: limited(t, megabytes) });
        h.mayStall = true;              // jobs wait for the kernel's lock of the address space while others take and give back tens of MiB
        const dev = await h.asKey();
        const body = Buffer.from(JSON.stringify(bodies[kind]));
        const stop = pinging(dev);
        const send = () => dev('POST', '/activities', body, { 'content-type': 'application/json' });
        const replies = await Promise.all(Array.from({ length: n }, send));
        const counts = Object.groupBy(replies, ({ status, body: said }) => `${status} ${said?.code ?? ''}`);
        t.diagnostic(Object.entries(counts).map(([what, list]) => `${what}: ${list.length}`).join(', '));
        for (const { status, body: said, headers, text } of replies.filter((one) => one.status !== 201)) {
            assert.equal(status, 503, text);
            assert.ok(['OUT_OF_MEMORY', 'OVERLOADED'].includes(said.code), text);
            assert.ok(Number(headers['retry-after']) > 0);
        }
        assert.ok(replies.some((one) => one.status === 201), 'some were done');
        const pings = await stop();
        assert.ok(pings.length > 0 && pings.every((status) => status === 200), 'small requests were answered meanwhile');
        assert.equal((await send()).status, 201, 'a large one is done when the burst is over');
        return undefined;
    });

// A provider whose vectors are long texts: 256 vectors of 3,072 numbers are some 15 MB.
async function largeProvider(t) {
    const vector = `[${Array.from({ length: 3072 }, (_, i) => (0.1 + i / 31_337)).join()}]`;
    const answer = `{"model":"large","data":[${Array.from({ length: 256 }, (_, index) => `{"index":${index},"embedding":${vector}}`).join()}]}`;
    const server = http.createServer((incoming, outgoing) => {
        outgoing.setHeader('content-type', 'application/json');
        incoming.resume().on('end', () => outgoing.end(incoming.url.endsWith('/models') ? '{"data":[]}' : answer));
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    t.after(() => server.close());
    return { GENERIC_OPENAI_BASE_URL: `http://127.0.0.1:${server.address().port}/v1`, GENERIC_OPENAI_MODEL: 'large', GENERIC_OPENAI_EMBED_MODEL: 'large' };
}

test('an answer of a provider for which there is no memory is told as that, and not as the provider\'s fault', async (t) => {
    if (hasSanitizer())
        return t.skip('a sanitizer needs more address space');
    const h = await startHearth({ t, program: limited(t, 500), env: await largeProvider(t) });
    h.mayStall = true;
    const dev = await h.asKey();
    const input = Array.from({ length: 256 }, (_, i) => `text ${i}`);
    const embed = () => dev('POST', '/sdk/llm/embed', { input, provider: 'generic-openai', model: 'large' });
    const replies = await Promise.all(Array.from({ length: 40 }, embed));
    const counts = Object.groupBy(replies, ({ status, body: said }) => `${status} ${said?.code ?? ''}`);
    t.diagnostic(Object.entries(counts).map(([what, list]) => `${what}: ${list.length}`).join(', '));
    for (const { status, body: said, text } of replies.filter((one) => one.status !== 200))
        assert.deepEqual([status, said.code], [503, 'OUT_OF_MEMORY'], text);
    assert.ok(h.isRunning);
    return undefined;
});
