// Limits at their edge: what is just allowed is done, one more is refused (src/base/limits.h; specification, "Limits").
import assert from 'node:assert/strict';
import { once } from 'node:events';
import net from 'node:net';
import { after, before, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { startHearth, until } from './harness.mjs';
import { admin, insert, listeningApp, newApp, newKey, refused, refusedFields, rowBecomes, shellAgent, unique } from './kit.mjs';

const KiB = 1024;
const MiB = 1024 * 1024;

let h, dev;
before(async () => {
    h = await startHearth();
    dev = (await newKey(h)).call;
});
after(() => h.stop());

// The body with a member nobody knows that brings it to exactly `bytes`.
function padded(body, bytes) {
    const text = JSON.stringify({ ...body, padding: '' });
    return text.replace(/"padding":""/, `"padding":"${'p'.repeat(bytes - text.length)}"`);
}

for (const [what, send, limit, body, status] of [
    ['an ordinary body', (text) => h.socket('POST', '/api/workspaces', text), MiB, () => ({ name: unique('w') }), 201],
    ['an activity', (text) => dev('POST', '/activities', text), 4 * MiB, () => ({ raw_data: {} }), 201],
    ['a webhook', (text) => dev('POST', '/webhooks/svc', text), 4 * MiB, () => ({ event: 'trigger-agent', payload: { raw_data: {} } }), 200],
])
    test(`${what} may have ${limit} bytes`, async () => {
        assert.equal((await send(padded(body(), limit))).status, status);
        refused(await send(padded(body(), limit + 1)), 413, 'BODY_TOO_LARGE', `The body must be at most ${limit} bytes\\.`);
    });

test('a body without a length is measured as it comes', async () => {
    const chunk = `${(64 * KiB).toString(16)}\r\n${'x'.repeat(64 * KiB)}\r\n`;
    const text = await h.raw([`POST /sdk/register HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n`, ...Array(20).fill(chunk)]);
    assert.match(text, /^HTTP\/1\.1 413 /);
    assert.match(text, /BODY_TOO_LARGE/);
});

test('the largest raw_data is kept whole', async () => {
    const text = 'ü'.repeat((4 * MiB - 64) / 2);
    const { id } = await insert(dev, { text });
    assert.equal((await dev('GET', `/activities/${id}`)).body.data.raw_data.text, text);
    await dev('DELETE', `/activities/${id}`);
});

test('JSON may be 64 deep', async () => {
    const deep = (n) => `{"raw_data":${'{"a":'.repeat(n - 1)}1${'}'.repeat(n - 1)}}`;
    const json = { 'content-type': 'application/json' };
    const reply = await dev('POST', '/activities', deep(64), json);
    assert.equal(reply.status, 201, reply.text);
    refused(await dev('POST', '/activities', deep(65), json), 400, 'INVALID_JSON');
});

test('numbers come back as they went', async () => {
    const text = '{"raw_data":{"a":12345678901234567890,"b":-0.000001,"c":1e300,"d":0.1,"e":-9223372036854775808,"f":4.9e-324}}';
    const { body } = await dev('POST', '/activities', text, { 'content-type': 'application/json' });
    const reply = await dev('GET', `/activities/${body.data.id}`);
    assert.match(reply.text, /12345678901234567890/);
    assert.match(reply.text, /-9223372036854775808/);
    assert.deepEqual(reply.body.data.raw_data, JSON.parse(text).raw_data);
});

const lines = (n) => `GET /healthz HTTP/1.1\r\n${['host: localhost', 'connection: close', ...Array.from({ length: n - 2 }, (_, i) => `x-${i}: 1`)].join('\r\n')}\r\n\r\n`;
const ofBytes = (n) => {
    const bare = 'GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nx: \r\n\r\n';
    return bare.replace('x: ', `x: ${'v'.repeat(n - bare.length)}`);
};
const target = (n) => `GET /healthz?${'q'.repeat(n - '/healthz?'.length)} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n`;

for (const [what, make, limit, status] of [['header lines', lines, 100, 431], ['bytes of a head', ofBytes, 32_768, 431], ['bytes of a target', target, 8_192, 414]])
    test(`${limit} ${what} are read, one more is ${status}`, async () => {
        assert.match(await h.raw(make(limit)), /^HTTP\/1\.1 200 /);
        assert.match(await h.raw(make(limit + 1)), new RegExp(`^HTTP/1\\.1 ${status} `));
    });

test('a compressed body is refused in words', async () => {
    const key = (await newKey(h)).key;
    const send = (coding) => fetch(`${h.url}/sdk/llm/embed`, { method: 'POST', body: gzipSync('{"input":"x"}'),
        headers: { 'x-api-key': key, 'content-type': 'application/json', 'content-encoding': coding } });
    const reply = await send('gzip');
    assert.equal(reply.status, 415);
    assert.equal(reply.headers.get('accept-encoding'), 'identity');
    const { success, code, error } = await reply.json();
    assert.deepEqual([success, code], [false, 'UNSUPPORTED_ENCODING']);
    assert.equal(error, 'The body has the content-encoding gzip; send it without one.');
    assert.equal((await (await send('identity')).json()).code, 'INVALID_JSON', 'identity is none');
});

test('beyond http.max_connections the longest idle connection gives way, and working ones keep new ones out', async (t) => {
    const silent = net.createServer(() => {}).listen(0, '127.0.0.1');   // a provider that never answers
    t.after(() => silent.close());
    await once(silent, 'listening');
    const small = await startHearth({ t, settings: { 'http.max_connections': 8 },
        env: { GENERIC_OPENAI_BASE_URL: `http://127.0.0.1:${silent.address().port}/v1`, GENERIC_OPENAI_MODEL: 'any' } });
    const { key } = await newKey(small);
    const held = await Promise.all(Array.from({ length: 8 }, () => new Promise((done) => {
        const socket = net.connect(small.port, '127.0.0.1', () => socket.write('GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n'));
        socket.once('data', () => done(socket));
        socket.on('error', () => {});
    })));
    assert.equal((await small.api('GET', '/healthz')).status, 200);
    await until(() => held.some((socket) => socket.destroyed || socket.readableEnded), { what: 'one has given way' });
    held.forEach((socket) => socket.destroy());
    const body = JSON.stringify({ messages: [{ role: 'user', content: 'hello' }] });
    const busy = Array.from({ length: 8 }, () => net.connect(small.port, '127.0.0.1', function ask() {
        this.write(`POST /sdk/llm/chat HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${key}\r\ncontent-length: ${body.length}\r\n\r\n${body}`);
    }).on('error', () => {}));
    await until(async () => /^hearth_http_in_flight 9$/m.test((await small.socket('GET', '/metrics')).text), { what: 'all work' });
    const reply = await small.api('GET', '/healthz');
    refused(reply, 503, 'OVERLOADED');
    assert.equal(reply.body.budget, 'connections');
    assert.ok(reply.headers['retry-after']);
    assert.equal((await small.socket('GET', '/api/keys')).status, 200, 'the socket is open all the same');
    busy.forEach((socket) => socket.destroy());
    await until(async () => (await small.api('GET', '/healthz')).status === 200, { what: 'there is room again' });
});

test('an app declares up to 200 permissions', async () => {
    const names = (n) => Array.from({ length: n }, (_, i) => `made.up.${i}`);
    assert.equal((await h.socket('POST', '/api/apps', { name: unique('app'), permissions: names(200) })).status, 201);
    refusedFields(await h.socket('POST', '/api/apps', { name: unique('app'), permissions: names(201) }), 'permissions');
});

test('an app has up to 32 tables, 64 handlers and 64 tasks at a time', async () => {
    const agent = await shellAgent(h, 'true');
    const config = (tables, handlers, most) => ({ name: unique('app'), config: {
        agentHandlers: Array.from({ length: handlers }, (_, i) => ({ tableName: `public.limit_${i >> 1}`, agentId: agent, eventTypes: [i & 1 ? 'INSERT' : 'UPDATE'] })),
        backend: { tables: Array.from({ length: tables }, (_, i) => `public.limit_${i}`), max_concurrent_tasks: most } } });
    const reply = await h.socket('POST', '/api/apps', config(32, 64, 64));
    assert.equal(reply.status, 201, reply.text);
    refusedFields(await h.socket('POST', '/api/apps', config(33, 0, 1)), 'config.backend.tables');
    refusedFields(await h.socket('POST', '/api/apps', config(32, 65, 1)), 'config.agentHandlers');
    refusedFields(await h.socket('POST', '/api/apps', config(1, 1, 65)), 'config.backend.max_concurrent_tasks');
});

test('names have up to 128 characters, not bytes', async () => {
    for (const [path, body] of [['/api/apps', {}], ['/api/workspaces', {}], ['/api/keys', {}], ['/api/agents', { command: 'true' }]]) {
        assert.equal((await h.socket('POST', path, { ...body, name: '\u{1F600}'.repeat(128) })).status, 201, path);
        refusedFields(await h.socket('POST', path, { ...body, name: '\u{1F600}'.repeat(129) }), 'name');
    }
});

async function fill(t, make, limit, code) {
    const full = await startHearth({ t });
    const replies = [];
    for (let i = 0; i < limit + 20; i += 20)
        replies.push(...await Promise.all(Array.from({ length: 20 }, (_, k) => make(full, i + k))));
    assert.equal(replies.filter((reply) => reply.status === 201).length, limit);
    for (const reply of replies.filter((one) => one.status !== 201))
        refused(reply, 409, code);
}

test('there are up to 1,000 developer keys', (t) => fill(t, (full) => full.socket('POST', '/api/keys'), 1_000, 'TOO_MANY_KEYS'));
test('there are up to 500 apps', (t) => fill(t, (full, i) => full.socket('POST', '/api/apps', { name: `app-${i}` }), 500, 'TOO_MANY_APPS'));
test('there are up to 500 agents', (t) => fill(t, (full, i) => full.socket('POST', '/api/agents', { name: `agent-${i}`, command: 'true' }), 500, 'TOO_MANY_AGENTS'));

for (const [what, bytes] of [['just what is kept', 4 * MiB], ['a little less', 4 * MiB - 100], ['more than is kept', 5 * MiB]])
    test(`an agent whose output is ${what} (${bytes} bytes) completes its row`, async () => {
        const { call } = await listeningApp(h, await shellAgent(h, `head -c ${bytes} /dev/zero | tr '\\0' x`));
        const { id } = await insert(call, {});
        const row = await rowBecomes(call, id, 'completed', 'failed');
        assert.equal(row.status, 'completed', row.error_message?.slice(0, 200));
        assert.match(row.result.output, /^x+$/);
        assert.ok(row.result.output.length <= bytes && row.result.output.length > 3.9 * MiB);
        assert.equal(row.result.truncated === true, row.result.output.length < bytes);
    });

test('an agent whose output needs much escaping completes its row', async () => {
    const { call } = await listeningApp(h, await shellAgent(h, `head -c ${3 * MiB} /dev/zero | tr '\\0' '\\001'`));
    const row = await rowBecomes(call, (await insert(call, {})).id, 'completed', 'failed');
    assert.equal(row.status, 'completed', row.error_message?.slice(0, 200));
    assert.match(row.result.output, /^\u0001+$/);
});

test('an agent whose JSON is more than is kept completes its row with the beginning of it', async () => {
    const { call } = await listeningApp(h, await shellAgent(h, `printf '{"a":"'; head -c ${5 * MiB} /dev/zero | tr '\\0' x; printf '"}'`));
    const row = await rowBecomes(call, (await insert(call, {})).id, 'completed', 'failed');
    assert.equal(row.status, 'completed', row.error_message?.slice(0, 200));
    assert.equal(row.result.truncated, true);
    assert.ok(row.result.output.startsWith('{"a":"xxx'));
});

test('an agent that never stops writing to its log does not fill the memory', async () => {
    const { call } = await listeningApp(h, await shellAgent(h, `head -c ${8 * MiB} /dev/zero | tr '\\0' y >&2; echo >&2; echo "the end" >&2; exit 1`));
    const row = await rowBecomes(call, (await insert(call, {})).id, 'failed');
    assert.match(row.error_message, /the end/);
    assert.ok(row.error_message.length <= 8_192);
});

test('questions of all apps are bounded', async (t) => {
    const full = await startHearth({ t, settings: { 'consent.wait_s': 0 } });
    for (let i = 0; i < 5; i++)
        await newApp(full, { permissions: Array.from({ length: 200 }, (_, k) => `p.${k}`) });
    assert.equal((await admin(full, 'GET', '/api/permissions/pending')).pending.length, 1_000);
    const late = await newApp(full);
    refused(await full.api('POST', '/api/local-apps/request-permission', { app_id: late, permission: 'api.agents' }), 503, 'TOO_MANY_QUESTIONS');
    refused(await full.asApp(late)('GET', '/agents'), 403, 'PERMISSION_REQUIRED');
});
