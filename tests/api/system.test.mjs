// For whoever runs the service: alive, ready, measured, described; start and end (issue, sections 2 and 3; architecture, section 6).
import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { constants, tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import parsePrometheus from 'parse-prometheus-text-format';
import { Validator } from '@seriousme/openapi-schema-validator';
import { coldHearth, needsIpv6, startHearth, until } from './harness.mjs';
import { admin, insert, newApp, newKey, refused } from './kit.mjs';
import { buildSteps } from './steps.mjs';

let h;
before(async () => { h = await startHearth(); });
after(() => h.stop());

async function families() {
    const { status, headers, text } = await h.api('GET', '/metrics');
    assert.equal(status, 200);
    assert.match(headers['content-type'], /^text\/plain; version=0\.0\.4/);
    return new Map(parsePrometheus(text).map((family) => [family.name, family]));
}

test('healthz and readyz need no credentials', async () => {
    for (const path of ['/healthz', '/readyz']) {
        const { status, body } = await h.api('GET', path);
        assert.equal(status, 200, path);
        assert.equal(body.success, true);
    }
});

// What statvfs() does not tell: a quota, a disk that fails. The interposer refuses writes into the data folder, and statvfs() shows plenty of room.
test('readyz says that the disk takes no bytes, although it seems to have room', async (t) => {
    const steps = buildSteps(t);
    const flag = join(mkdtempSync(join(tmpdir(), 'hearth-flag-')), 'refuse');
    const own = await startHearth({ t, env: steps.refuseWhile(flag) });
    assert.equal((await own.api('GET', '/readyz')).body.disk, 'ready');
    for (const [errno, said] of [['EDQUOT', /full/], ['ENOSPC', /full/], ['EROFS', /read-only/], ['EIO', /cannot be written/]]) {
        writeFileSync(flag, `${constants.errno[errno]}`);
        const body = refused(await own.api('GET', '/readyz'), 503, 'NOT_READY', said);
        assert.equal(body.reason, 'disk');
    }
    rmSync(flag);
    assert.equal((await own.api('GET', '/readyz')).status, 200);
    assert.deepEqual(readdirSync(own.dataDir).filter((name) => /probe|tmp/.test(name)), [], 'nothing is left');
});

test('a parser nobody here wrote reads the metrics, and no sample stands twice', async () => {
    const found = await families();
    assert.ok(found.size >= 8, [...found.keys()].join());
    for (const family of found.values()) {
        assert.ok(['COUNTER', 'GAUGE', 'HISTOGRAM'].includes(family.type), family.name);
        assert.ok(family.help.length > 0, `${family.name} says what it is`);
        const labels = family.metrics.map((metric) => JSON.stringify(metric.labels ?? {}));
        assert.equal(new Set(labels).size, labels.length, family.name);
    }
});

test('requests are counted by route and status', async () => {
    const { call } = await newKey(h);
    const count = async () => {
        const { metrics } = (await families()).get('hearth_http_requests_total');
        return (status) => Number(metrics.find(({ labels }) => labels.route === '/activities' && labels.method === 'GET' &&
            labels.status === status)?.value ?? 0);
    };
    const before = await count();
    await call('GET', '/activities');
    await call('GET', '/activities');
    await call('GET', '/activities?limit=0');
    const now = await count();
    assert.equal(now('200') - before('200'), 2);
    assert.equal(now('400') - before('400'), 1);
});

test('every histogram rises to its count', async () => {
    await h.api('GET', '/readyz');
    const { text } = await h.api('GET', '/metrics');
    const [last, ends] = [new Map(), new Map()];
    for (const [, name, labels, value] of text.matchAll(/^(\w+_bucket)\{(.*)\} (\d+)$/gm)) {
        const series = name.replace(/_bucket$/, '') + labels.replace(/,?le="[^"]*"/, '');
        assert.ok(Number(value) >= (last.get(series) ?? 0), `${series} at ${labels}`);
        last.set(series, Number(value));
        if (labels.includes('le="+Inf"'))
            ends.set(series, Number(value));
    }
    for (const [, name, labels = '', value] of text.matchAll(/^(\w+)_count(?:\{(.*)\})? (\d+)$/gm))
        assert.equal(ends.get(name + labels), Number(value), name + labels);
    assert.ok([...ends.keys()].some((series) => series.startsWith('hearth_http_request_seconds') && series.includes('/readyz')));
});

test('an id in a path does not become a label', async () => {
    const { call } = await newKey(h);
    const { id } = await insert(call, {});
    await call('GET', `/activities/${id}`);
    await h.api('GET', '/no/such/route/here');
    const { text } = await h.api('GET', '/metrics');
    assert.ok(!text.includes(id));
    assert.ok(!text.includes('/no/such'));
});

for (const word of ['in_flight', 'queue', 'stream', 'task', 'child', 'commit'])
    test(`the metrics tell about ${word}`, async () => {
        assert.ok([...(await families()).keys()].some((name) => name.includes(word)), [...(await families()).keys()].join(' '));
    });

test('a validator nobody here wrote accepts the OpenAPI description', async () => {
    const { status, headers, body } = await h.api('GET', '/openapi.json');
    assert.equal(status, 200);
    assert.match(headers['content-type'], /^application\/json/);
    assert.equal(body.openapi.slice(0, 4), '3.1.');
    const { valid, errors } = await new Validator().validate(structuredClone(body));
    assert.ok(valid, JSON.stringify(errors ?? '', null, 1).slice(0, 3000));
    const ids = Object.values(body.paths).flatMap((path) => Object.values(path)).map((operation) => operation.operationId).filter(Boolean);
    assert.equal(new Set(ids).size, ids.length, 'operation ids are unique');
});

test('every reply has a request id of its own', async () => {
    const ids = await Promise.all(Array.from({ length: 20 }, async () => (await h.api('GET', '/healthz')).headers['x-request-id']));
    assert.equal(new Set(ids).size, 20);
});

test('the log names a request by its id', async () => {
    const { call } = await newKey(h);
    const { headers } = await call('GET', '/agents');
    await h.logged(new RegExp(headers['x-request-id']));
});

test('an unknown route is 404 in the decided words', async () => {
    const reply = await h.api('GET', '/nothing/here');
    assert.equal(reply.status, 404);
    assert.deepEqual(reply.body, { success: false, error: 'Not Found', code: 'NOT_FOUND' });
});

test('a large answer is compressed when the client asks for it', async () => {
    const plain = await h.api('GET', '/openapi.json');
    assert.equal(plain.headers['content-encoding'], undefined);
    const packed = await h.api('GET', '/openapi.json', undefined, { 'accept-encoding': 'gzip' });
    assert.equal(packed.headers['content-encoding'], 'gzip');
    assert.ok(Number(packed.headers['content-length']) < plain.text.length / 3);
    const small = await h.api('GET', '/healthz', undefined, { 'accept-encoding': 'gzip' });
    assert.equal(small.headers['content-encoding'], undefined);
    const unwanted = await h.api('GET', '/openapi.json', undefined, { 'accept-encoding': 'gzip;q=0, identity' });
    assert.equal(unwanted.headers['content-encoding'], undefined);
});

test('SIGTERM is obeyed from the first line on', async (t) => {
    for (let i = 0; i < 5; i++) {
        const brief = await startHearth();
        t.after(() => brief.stop());
        await brief.terminate();
    }
});

test('a request that runs when SIGTERM comes is finished', async (t) => {
    const closing = await startHearth({ t });
    const app = await newApp(closing);
    const held = closing.api('POST', '/api/local-apps/request-permission', { app_id: app, permission: 'api.agents' });
    await until(async () => (await admin(closing, 'GET', '/api/permissions/pending')).pending.length === 1, { what: 'the request waits' });
    closing.signal('SIGTERM');
    await closing.logged(/stopping/);
    const reply = await held;
    assert.ok(reply.status === 503 || reply.body.granted === false, reply.text);
    assert.deepEqual(await closing.exited(), { code: 0, signal: null });
});

test('who follows an app\'s log does not hold up the end', async (t) => {
    const closing = await startHearth({ t });
    const app = await newApp(closing, { app_type: 'custom', config: { command: '/bin/sleep', args: ['600'] } });
    await admin(closing, 'POST', `/api/apps/${app}/start`);
    const [{ number }] = (await admin(closing, 'GET', `/api/apps/${app}/logs?limit=1`)).lines;
    const held = admin(closing, 'GET', `/api/apps/${app}/logs?after=${number}&wait_s=30`);
    await until(async () => /^hearth_http_in_flight 2/m.test((await closing.api('GET', '/metrics')).text), { what: 'the question waits' });
    const began = performance.now();
    closing.signal('SIGTERM');
    assert.deepEqual((await held).lines, []);
    assert.deepEqual(await closing.exited(), { code: 0, signal: null });
    const tookMs = Math.round(performance.now() - began);
    assert.ok(tookMs < 25_000, `it took ${tookMs} ms of the 30 s that are waited for news`);
});

test('a second service on the same data folder refuses and names the first one\'s pid', async (t) => {
    const second = coldHearth({ t, dataDir: h.dataDir });
    await assert.rejects(second.start(), new RegExp(String(h.pid)));
    assert.equal((await h.api('GET', '/healthz')).status, 200);
});

test('a loopback service also answers on ::1', { skip: needsIpv6 }, async (t) => {
    const both = await startHearth({ t, listen: '[::1]:0' });
    assert.equal((await both.api('GET', '/healthz')).status, 200);
});

test('an address other machines reach is refused unless it is meant', async (t) => {
    const wide = coldHearth({ t, listen: '0.0.0.0:0' });
    await assert.rejects(wide.start(), /allow_remote/);
});

test('the answer that may hold secrets is not cached', async () => {
    const { call } = await newKey(h);
    assert.equal((await call('GET', '/agents')).headers['cache-control'], 'no-store');
    refused(await h.socket('GET', '/api/nothing'), 404, 'NOT_FOUND');
});
