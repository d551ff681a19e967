// Input that breaks a rule, over every route of the running service: each kind gets its documented answer, and afterwards the
// service holds neither more memory nor another state than before (issue, sections 3 and 9; decision D2).
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { startHearth, until } from './harness.mjs';
import { admin, asEnvelope, backendFile, confirming, nobodysId, refused, residentKib, signIn, sqlite, storeFile } from './kit.mjs';
import { env } from './provider.mjs';
import { faceUser } from './realtime.mjs';
import { makeWorld, successOf } from './success.mjs';

const memoryBoundKib = 40 * 1024;
const bigBytes = 33 * 1024 * 1024;
const kept = { ASAN_OPTIONS: 'detect_leaks=1:strict_string_checks=1:quarantine_size_mb=4:thread_local_quarantine_size_kb=64' };

const h = await startHearth({ env: { ...kept, ...env } });
const { routes } = await admin(h, 'GET', '/api/routes');
const { body: openapi } = await h.api('GET', '/openapi.json');
const big = Buffer.concat([Buffer.from('{"x":"'), Buffer.alloc(bigBytes - 8, 'a'), Buffer.from('"}')]);
let world, browser, face;

before(async () => {
    world = await makeWorld(h);
    browser = await signIn(h);
    face = await faceUser(h);
});
after(() => h.stop());

const named = (route) => `${route.method} ${route.path}`;
const template = (path) => path.replace(/:(\w+)|\{(\w+)\*\}/g, '{$1$2}');
const operationOf = (route) => (openapi.paths[template(route.path)] ?? openapi.paths[template(route.path.replace(/^\/api/, ''))])[route.method.toLowerCase()];
const bodySchemaOf = (route) => operationOf(route).requestBody?.content['application/json']?.schema;
// Refusals of /mcp are JSON-RPC's: tests/hostile/mcp.test.mjs. The body of one broadcast is its payload, whatever it is: tests/peers/realtime.test.mjs.
// A body of /rest/v1 is rows, or arguments of a function: tests/api/rest.test.mjs.
const withBody = routes.filter((route) => bodySchemaOf(route) && !route.path.startsWith('/rest/') &&
    !['/mcp', '/realtime/v1/api/broadcast/:topic/events/:event'].includes(route.path));
const pathOf = (route) => route.path.replace(':app', world.app).replace(':name', world.agent).replace(':slug', 'desk')
    .replace(':key', 'tasks.presence_s').replace(/:\w+/g, nobodysId);

function headersOf(route) {
    if (route.permission === 'admin')
        return browser.headers;
    if (/^\/(realtime|auth|rest)\//.test(route.path))
        return face.headers;
    return ['public', 'body'].includes(route.permission) ? {} : { 'x-app-id': world.app };
}

const sure = confirming(h, h.api.bind(h));
const send = async (route, body, more) =>
    asEnvelope(await sure(route.method, pathOf(route), body, { 'content-type': 'application/json', ...headersOf(route), ...more }));

// Everything that bad input may not change.
async function state() {
    const tables = async (file) => {
        const names = await sqlite(file, "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name <> '_presence'");
        const counts = await sqlite(file, names.map(({ name }) => `SELECT '${name}' AS name, count(*) AS n FROM "${name}"`).join(' UNION ALL '));
        return Object.fromEntries(counts.map(({ name, n }) => [name, n]));
    };
    const { settings } = await admin(h, 'GET', '/api/settings');
    const { entries, whole } = await admin(h, 'GET', '/api/audit/verify');
    const { pending } = await admin(h, 'GET', '/api/permissions/pending');
    const { grants } = await admin(h, 'GET', '/api/permissions');
    const { apps } = await admin(h, 'GET', '/api/apps');
    await admin(h, 'GET', '/api/usage');        // stores what is counted in memory, as that of the conversations that make the bodies
    return { store: await tables(storeFile(h)), backend: await tables(backendFile(h)), settings, entries, whole, pending,
        grants: grants.map(({ last_used_at: _, ...rest }) => rest), apps: apps.map(({ app_id: id, status, updated_at: at }) => [id, status, at]) };
}

// ---- bodies that are no JSON, or no object ----

const deep = (open, close) => open.repeat(10_000) + close.repeat(10_000);
const noJson = {
    'nothing': '',
    'blanks': ' \r\n\t ',
    'a brace': '{',
    'a comma too many': '{"a":1,}',
    'no quotes': '{a:1}',
    'single quotes': "{'a':1}",
    'two objects': '{}{}',
    'words behind the object': '{} x',
    'a number with a leading zero': '{"a":01}',
    'NaN': '{"a":NaN}',
    'a bare control character': '{"a":"\n"}',
    'a bad escape': '{"a":"\\x"}',
    'half a surrogate in a name': '{"\\ud800":1}',
    'a NUL byte': '{"a":1}\0',
    'a NUL byte in a string': '{"a":"b\0c"}',
    'a byte order mark of UTF-16': Buffer.from('\ufeff{"a":1}', 'utf16le'),
    'bytes that are no UTF-8': Buffer.from([0x7b, 0x22, 0x61, 0x22, 0x3a, 0x22, 0xff, 0xfe, 0x22, 0x7d]),
    'overlong UTF-8': Buffer.from([0x7b, 0x22, 0x61, 0x22, 0x3a, 0x22, 0xc0, 0xaf, 0x22, 0x7d]),
    'a surrogate in UTF-8': Buffer.from([0x7b, 0x22, 0x61, 0x22, 0x3a, 0x22, 0xed, 0xa0, 0x80, 0x22, 0x7d]),
    '10,000 arrays deep': `{"a":${deep('[', ']')}}`,
    '10,000 objects deep': `${'{"a":'.repeat(10_000)}1${'}'.repeat(10_000)}`,
    '10,000 brackets that never close': `{"a":${'['.repeat(10_000)}`,
};
const noObject = { 'an array': '[]', 'a string': '"x"', 'a number': '1', 'true': 'true', 'null': 'null' };

async function refuseNoJson(route) {
    const isOptional = !operationOf(route).requestBody.required;
    for (const [what, text] of Object.entries(noJson)) {
        if (what === 'nothing' && isOptional)
            continue;
        const reply = await send(route, text);
        assert.equal(`${reply.status} ${reply.body?.code}`, '400 INVALID_JSON', `${named(route)}, ${what}: ${reply.text}`);
        refused(reply, 400, 'INVALID_JSON');
    }
    for (const [what, text] of Object.entries(noObject)) {
        const reply = await send(route, text);
        assert.equal(`${reply.status} ${reply.body?.code}`, '400 VALIDATION_ERROR', `${named(route)}, ${what}: ${reply.text}`);
    }
}

// ---- fields of the wrong type, missing ones, null ----

const others = { string: [1, true, [], {}], integer: ['1', true, 1.5, [], {}], number: ['1', true, [], {}], boolean: ['true', 1, [], {}],
    array: ['x', 1, {}, true], object: ['x', 1, [], true] };

// [field, wrong values] of a body's own members and of the objects in it.
function* wrongFields(schema, at = []) {
    for (const [name, field] of Object.entries(schema.properties ?? {})) {
        const path = [...at, name];
        const type = Array.isArray(field.type) ? field.type.find((one) => one !== 'null') : field.type;
        if (type)
            yield [path, others[type]];
        if (field.enum)
            yield [path, ['not one of them']];
        if (field.maxLength !== undefined && field.maxLength < 100_000)
            yield [path, ['x'.repeat(field.maxLength + 1)]];
        if (field.minLength)
            yield [path, ['']];
        if (field.maximum < Number.MAX_SAFE_INTEGER)
            yield [path, [field.maximum + 1]];
        if (field.minimum !== undefined)
            yield [path, [field.minimum - 1]];
        if (type === 'object' && field.properties)
            yield* wrongFields(field, path);
    }
}

const nest = (path, value) => path.reduceRight((inner, name) => ({ [name]: inner }), value);

function merge(into, from) {
    const result = { ...into };
    for (const [name, value] of Object.entries(from))
        result[name] = value !== null && typeof value === 'object' && !Array.isArray(value) && Object.keys(value).length &&
            typeof into[name] === 'object' && into[name] !== null ? merge(into[name], value) : value;
    return result;
}

async function refuseWrongFields(route, goodBody) {
    for (const [path, values] of wrongFields(bodySchemaOf(route)))
        for (const value of values) {
            const reply = await send(route, merge(goodBody, nest(path, value)));
            const told = `${named(route)}, ${path.join('.')} = ${JSON.stringify(value).slice(0, 60)}: ${reply.status} ${reply.text}`;
            assert.equal(reply.status, 400, told);
            assert.equal(reply.body.code, 'VALIDATION_ERROR', told);
            assert.ok(reply.body.errors.some(({ field }) => field === path.join('.') || field.startsWith(path[0])), told);
        }
}

async function refuseMissingFields(route, goodBody) {
    for (const name of bodySchemaOf(route).required ?? []) {
        const { [name]: _, ...rest } = goodBody;
        for (const body of [rest, { ...rest, [name]: null }]) {
            const reply = await send(route, body);
            assert.equal(reply.status, 400, `${named(route)} without ${name}: ${reply.text}`);
            assert.ok(reply.body.errors.some(({ field }) => field === name), reply.text);
            assert.ok(reply.body.error.includes(name), 'the sentence names the field');
        }
    }
}

async function refuseWrongQuery(route) {
    for (const { name, in: where, schema } of operationOf(route).parameters ?? []) {
        if (where !== 'query' || !['integer', 'number', 'boolean'].includes(schema.type))
            continue;
        const path = `${pathOf(route)}?${name}=`;
        const above = schema.maximum === undefined || schema.maximum > Number.MAX_SAFE_INTEGER - 1 ? [] : [schema.maximum + 1];
        const below = schema.minimum === undefined ? [] : [schema.minimum - 1];
        for (const value of ['x', '1x', '%00', '99999999999999999999999', '--1', '1e400', ...above, ...below]) {
            const reply = asEnvelope(await h.api(route.method, path + value, undefined, headersOf(route)));
            const told = `${named(route)} ?${name}=${value}: ${reply.status} ${reply.text.slice(0, 300)}`;
            assert.equal(reply.status, 400, told);
            assert.ok(['VALIDATION_ERROR', 'BAD_PATH', 'BAD_REQUEST'].includes(reply.body.code), told);
        }
    }
}

// ---- what is wrong about the request itself ----

const head = (route, lines = [], path = pathOf(route)) => [`${route.method} ${path} HTTP/1.1`, `host: 127.0.0.1:${h.port}`,
    ...Object.entries(headersOf(route)).map((pair) => pair.join(': ')), ...lines, '', ''].join('\r\n');

const broken = {
    'two lengths': [(r) => `${head(r, ['content-length: 2', 'content-length: 2'])}{}`, 400],
    'two different lengths': [(r) => `${head(r, ['content-length: 2', 'content-length: 3'])}{}`, 400],
    'a signed length': [(r) => `${head(r, ['content-length: +2'])}{}`, 400],
    'a negative length': [(r) => head(r, ['content-length: -1']), 400],
    'a length in hexadecimal': [(r) => head(r, ['content-length: 0x2']), 400],
    'a list of lengths': [(r) => `${head(r, ['content-length: 2, 2'])}{}`, 400],
    'a length beyond every number': [(r) => head(r, ['content-length: 99999999999999999999999999']), [400, 413]],
    'length and transfer coding': [(r) => `${head(r, ['content-length: 2', 'transfer-encoding: chunked'])}0\r\n\r\n`, 400],
    'an unknown transfer coding': [(r) => head(r, ['transfer-encoding: gzip']), 501],
    'chunked twice': [(r) => `${head(r, ['transfer-encoding: chunked', 'transfer-encoding: chunked'])}0\r\n\r\n`, 400],
    'a broken chunk': [(r) => `${head(r, ['transfer-encoding: chunked'])}zz\r\n\r\n`, 400],
    'a space before the colon': [(r) => head(r, ['x-thing : 1']), 400],
    'a header without a colon': [(r) => head(r, ['nonsense']), 400],
    'a folded header': [(r) => head(r, ['x-thing: 1', ' more']), 400],
    'a NUL in a header': [(r) => head(r, ['x-thing: a\0b']), 400],
    'bare line feeds': [(r) => head(r).replaceAll('\r\n', '\n'), 400],
    'no host': [(r) => `${r.method} ${pathOf(r)} HTTP/1.1\r\n\r\n`, 400],
    'two hosts': [(r) => head(r, ['host: localhost']), 400],
    'another version': [(r) => head(r).replace('HTTP/1.1', 'HTTP/3.0'), 505],
    'no version': [(r) => `${r.method} ${pathOf(r)}\r\n\r\n`, 400],
    'an unknown method': [(r) => head(r).replace(r.method, 'BREW'), 501],
    'a header of 40,000 bytes': [(r) => head(r, [`x-thing: ${'a'.repeat(40_000)}`]), 431],
    'two hundred headers': [(r) => head(r, Array.from({ length: 200 }, (_, i) => `x-${i}: 1`)), 431],
    'a target of 9,000 bytes': [(r) => head(r, [], `${pathOf(r)}?x=${'a'.repeat(9_000)}`), 414],
    'a percent sign alone': [(r) => head(r, [], `${pathOf(r)}%`), 400],
    'a bad percent escape': [(r) => head(r, [], `${pathOf(r)}%zz`), 400],
    'an encoded NUL': [(r) => head(r, [], `${pathOf(r)}%00`), 400],
    'bytes that are no UTF-8': [(r) => head(r, [], `${pathOf(r)}%ff%fe`), 400],
    'a segment ..': [(r) => head(r, [], `/x/..${pathOf(r)}`), 400],
    'an encoded segment ..': [(r) => head(r, [], `/x/%2e%2e${pathOf(r)}`), 400],
    'an encoded slash': [(r) => head(r, [], `/x%2f..${pathOf(r)}`), 400],
    'a space in the target': [(r) => head(r, [], `${pathOf(r)} x`), 400],
    'a foreign host': [(r) => head(r).replace(/host: .*/, 'host: example.org'), 403, 'HOST_NOT_ALLOWED'],
    'a host that resolves to this machine': [(r) => head(r).replace(/host: .*/, `host: localhost.example.org:${h.port}`), 403, 'HOST_NOT_ALLOWED'],
    'a foreign origin': [(r) => head(r, ['origin: https://example.org']), 403, 'ORIGIN_NOT_ALLOWED'],
    'the origin null': [(r) => head(r, ['origin: null']), 403, 'ORIGIN_NOT_ALLOWED'],
};

function readReply(text, told) {
    const [top, ...rest] = text.split('\r\n\r\n');
    const status = Number(/^HTTP\/1\.1 (\d+)/.exec(top)?.[1]);
    const body = /transfer-encoding: chunked/i.test(top) ? undefined : JSON.parse(rest.join('\r\n\r\n') || 'null');
    assert.ok(status, `${told}: ${text.slice(0, 300)}`);
    assert.match(top, /\r\nx-request-id: \S+/i, told);
    assert.match(top, /\r\ncontent-type: application\/json/i, told);
    return asEnvelope({ status, body });
}

async function refuseBroken(route) {
    await Promise.all(Object.entries(broken).map(async ([what, [make, status, code]]) => {
        const told = `${named(route)}, ${what}`;
        const bytes = make(route);
        const text = await h.raw(Buffer.from(bytes.replace('\r\n\r\n', '\r\nconnection: close\r\n\r\n'), 'latin1'));
        const reply = readReply(text, told);
        assert.ok([status].flat().includes(reply.status), `${told}: ${reply.status} ${JSON.stringify(reply.body)}`);
        assert.equal(reply.body.success, false, told);
        assert.equal(typeof reply.body.error, 'string', told);
        assert.ok(code ? reply.body.code === code : reply.body.code, `${told}: ${reply.body.code}`);
    }));
}

// Whole batches of vectors travel in one body: LIMIT_BODY_VECTORS.
const isRoomy = (route) => route.path.endsWith('/vectors/upsert');

async function refuseBig(route) {
    const reply = await h.api(route.method, pathOf(route), big, { 'content-type': 'application/json', ...headersOf(route) });
    refused(reply, 413, 'BODY_TOO_LARGE');
}

async function everything() {
    for (const route of withBody) {
        const good = (await goodBodies.get(named(route))) ?? {};
        await refuseNoJson(route);
        await refuseWrongFields(route, good);
        await refuseMissingFields(route, good);
    }
    for (const route of routes) {
        await refuseWrongQuery(route);
        await refuseBroken(route);
    }
    for (const route of withBody.filter((one, i) => i % 4 === 0 && !isRoomy(one)))
        await refuseBig(route);
}

const goodBodies = new Map();

describe('over every route', { concurrency: false }, () => {
    let atFirst;

    before(async () => {
        for (const route of withBody) {
            const { make } = successOf(route);
            goodBodies.set(named(route), (await make(world)).body);
        }
        await admin(h, 'POST', `/api/apps/${world.app}/stop`);
        await until(async () => {       // that this test uses the id of an app is shown once, and is in the audit log
            await h.asApp(world.app)('GET', '/sdk/ping');
            return (await admin(h, 'GET', '/api/audit?limit=500')).entries.some((entry) => entry.action === 'app.contact');
        }, { what: 'the first contact is noted', everyMs: 300 });
        atFirst = await state();
    });

    for (const route of withBody) {
        test(`${named(route)} refuses what is no JSON object`, () => refuseNoJson(route));
        test(`${named(route)} refuses fields of the wrong type and length, by name`, () => refuseWrongFields(route, goodBodies.get(named(route)) ?? {}));
        test(`${named(route)} refuses missing fields and null for them, by name`, () => refuseMissingFields(route, goodBodies.get(named(route)) ?? {}));
        if (!isRoomy(route))
            test(`${named(route)} refuses a body of 33 MiB`, () => refuseBig(route));
    }
    for (const route of routes) {
        test(`${named(route)} refuses wrong query values`, () => refuseWrongQuery(route));
        test(`${named(route)} refuses broken requests`, () => refuseBroken(route));
    }

    test('afterwards nothing has changed', async () => {
        assert.deepEqual(await state(), atFirst);
        assert.equal((await h.api('GET', '/readyz')).status, 200);
    });

    test('once more all of it takes no more memory', async () => {
        const before = residentKib(h.pid);
        await everything();
        const grown = residentKib(h.pid) - before;
        assert.ok(grown < memoryBoundKib, `grown by ${grown} KiB from ${before} KiB`);
        assert.deepEqual(await state(), atFirst);
    });
});

// ---- what is no error ----

describe('what clients do and may do', { concurrency: false }, () => {
    for (const route of withBody) {
        test(`${named(route)} ignores members it does not know`, async () => {
            const { make, prefix } = successOf(route);
            const { path, body, status = 200, call = sure } = await make(world);
            const reply = await call(route.method, prefix + path, { ...body, unknown_member: { deep: [1, { a: null }] }, __proto__x: 1, '': 0 }, headersOf(route));
            assert.equal(reply.status, status, reply.text);
        });

        test(`${named(route)} takes null for absent`, async () => {
            const { make, prefix } = successOf(route);
            const { path, body, status = 200, call = sure } = await make(world);
            const schema = bodySchemaOf(route);
            const nulls = Object.keys(schema.properties).filter((name) => !(schema.required ?? []).includes(name) && !(name in (body ?? {})));
            const reply = await call(route.method, prefix + path, { ...body, ...Object.fromEntries(nulls.map((name) => [name, null])) }, headersOf(route));
            assert.equal(reply.status, status, reply.text);
        });
    }

    test('a NUL in a string of raw_data comes back as it went', async () => {
        const { status, body, text } = await world.call('POST', '/activities', '{"raw_data":{"a":"b\\u0000c","\\u0000":1}}', { 'content-type': 'application/json' });
        assert.equal(status, 201, text);
        assert.deepEqual((await world.call('GET', `/activities/${body.data.id}`)).body.data.raw_data, { a: 'b\0c', '\0': 1 });
    });

    test('a NUL in a field of ours is refused', async () => {
        const reply = await world.call('PATCH', `/activities/${nobodysId}`, '{"status":"a\\u0000b"}', { 'content-type': 'application/json' });
        refused(reply, 400, 'VALIDATION_ERROR');
    });
});

// ---- slow clients ----

describe('slow clients', () => {
    const brief = { 'http.header_timeout_s': 0.3, 'http.body_timeout_s': 0.3 };

    test('a head that does not come whole in time is 408', async (t) => {
        const one = await startHearth({ t, settings: brief });
        const { status, body } = readReply(await one.raw('GET /healthz HTTP/1.1\r\nhost: localhost\r\nx-'), 'slow head');
        assert.equal(status, 408);
        assert.equal(body.code, 'REQUEST_TIMEOUT');
    });

    test('a head that drips is not kept alive by its drops', async (t) => {
        const one = await startHearth({ t, settings: brief });
        const drops = Array.from({ length: 99 }, (_, i) => ['x', 500, `${i}: 1\r\n`]).flat();       // 50 s in all
        const started = performance.now();
        const { status } = readReply(await one.raw(['GET /healthz HTTP/1.1\r\nhost: localhost\r\n', ...drops]), 'dripping head');
        assert.equal(status, 408);
        assert.ok(performance.now() - started < 40_000, 'the last drop was not waited for');
    });

    test('a body that does not come whole in time is 408, however it drips', async (t) => {
        const one = await startHearth({ t, settings: brief });
        const drops = Array.from({ length: 40 }, () => [' ', 50]).flat();
        const request = 'POST /webhooks/svc HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n{';
        const { status, body } = readReply(await one.raw([request, ...drops]), 'slow body');
        assert.equal(status, 408);
        assert.equal(body.code, 'REQUEST_TIMEOUT');
    });

    test('slow clients hold nobody else up', async (t) => {
        const one = await startHearth({ t, settings: { 'http.header_timeout_s': 2 } });
        const slow = Array.from({ length: 50 }, () => one.raw('GET /healthz HTTP/1.1\r\nhost: localhost\r\nx-').catch(() => ''));
        for (let i = 0; i < 5; i++)
            assert.equal((await one.api('GET', '/readyz')).status, 200);
        await Promise.all(slow);
    });
});
