// Who may talk to the service at all: Host, Origin, preflight, names that only resolve to this machine (decision D2).
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { needsIpv6, startHearth } from './harness.mjs';
import { newKey, refused } from './kit.mjs';

let h;
before(async () => {
    h = await startHearth({ listen: '127.0.0.1:0', args: ['--listen', '[::1]:0'], settings: { 'http.allowed_hosts': 'hearth.example.org,other.example.org:8443', 'http.allowed_origins': 'https://app.example.org' } });
});
after(() => h.stop());

const withHost = (host) => h.api('GET', '/healthz', undefined, { host });
const withOrigin = (origin, more) => h.api('GET', '/healthz', undefined, { origin, ...more });

for (const host of ['localhost', 'LOCALHOST', 'localhost:1', '127.0.0.1', '127.0.0.1:3001', '127.255.1.2', '[::1]', '[::1]:3001', '[0:0:0:0:0:0:0:1]',
    'hearth.example.org', 'hearth.example.org:80', 'Hearth.Example.Org', 'other.example.org:8443'])
    test(`the host ${host} is answered`, async () => assert.equal((await withHost(host)).status, 200));

for (const host of ['example.org', 'localhost.example.org', '127.0.0.1.nip.io', 'localhost.', '0.0.0.0', '192.168.0.1', '10.0.0.1', '128.0.0.1', '127.1', '2130706433',
    '0x7f000001', '[::]', '[::ffff:127.0.0.1]', '[fe80::1]', 'xn--localhost', 'hearth.example.org.evil.com', 'evil.hearth.example.org', 'other.example.org', 'other.example.org:1'])
    test(`the host ${host} is refused`, async () => {
        const reply = await withHost(host);
        assert.ok(reply.status === 403 || reply.status === 400, reply.text);
        assert.equal(reply.body.success, false);
        if (reply.status === 403)
            refused(reply, 403, 'HOST_NOT_ALLOWED');
    });

test('a request without Origin is answered, one of the service\'s own origin too', async () => {
    assert.equal((await h.api('GET', '/healthz')).status, 200);
    for (const origin of [h.url, `http://localhost:${h.port}`, ...needsIpv6 ? [] : [`http://[::1]:${h.port}`]]) {
        const reply = await withOrigin(origin);
        assert.equal(reply.status, 200, origin);
        assert.equal(reply.headers['access-control-allow-origin'], origin);
        assert.match(reply.headers.vary, /origin/i);
    }
});

test('a configured origin is answered and named, and no other is', async () => {
    const reply = await withOrigin('https://app.example.org');
    assert.equal(reply.status, 200);
    assert.equal(reply.headers['access-control-allow-origin'], 'https://app.example.org');
    assert.equal(reply.headers['access-control-allow-credentials'], undefined);
});

for (const origin of ['https://example.org', 'null', 'http://app.example.org', 'https://app.example.org:444', 'https://app.example.org.evil.com', 'http://localhost',
    'http://localhost:1', 'https://localhost', 'file://', 'chrome-extension://abc', 'http://127.0.0.1:3001@evil.com', ''])
    test(`the origin ${origin || '(empty)'} is refused and not reflected`, async () => {
        const reply = await withOrigin(origin);
        refused(reply, 403, 'ORIGIN_NOT_ALLOWED');
        assert.equal(reply.headers['access-control-allow-origin'], undefined);
    });

test('a foreign origin is refused whatever credential comes with it', async () => {
    const { key } = await newKey(h);
    refused(await withOrigin('https://example.org', { authorization: `Bearer ${key}` }), 403, 'ORIGIN_NOT_ALLOWED');
});

test('a preflight of an allowed origin is answered with the decided headers', async () => {
    const reply = await h.api('OPTIONS', '/activities', undefined, { origin: 'https://app.example.org', 'access-control-request-method': 'POST' });
    assert.equal(reply.status, 200);
    assert.equal(reply.body.success, true, 'a body, never 204');
    assert.equal(reply.headers['access-control-allow-origin'], 'https://app.example.org');
    const names = reply.headers['access-control-allow-headers'].toLowerCase().split(/, */).sort();
    assert.deepEqual(names, ['accept', 'accept-profile', 'apikey', 'authorization', 'content-profile', 'content-type', 'mcp-method', 'mcp-name', 'mcp-protocol-version', 'mcp-session-id',
        'prefer', 'range', 'range-unit', 'x-api-key', 'x-app-id', 'x-client-info', 'x-supabase-api-version']);
    const methods = reply.headers['access-control-allow-methods'].split(/, */);
    for (const method of ['GET', 'POST', 'PATCH', 'DELETE'])
        assert.ok(methods.includes(method), method);
});

test('a preflight of a foreign origin is refused', async () => {
    refused(await h.api('OPTIONS', '/activities', undefined, { origin: 'https://example.org', 'access-control-request-method': 'POST' }), 403, 'ORIGIN_NOT_ALLOWED');
});

test('OPTIONS without an origin is a method like any other', async () => {
    refused(await h.api('OPTIONS', '/activities'), 405, 'METHOD_NOT_ALLOWED');
});

test('an error is readable for an allowed origin', async () => {
    const reply = await h.api('GET', '/activities', undefined, { origin: 'https://app.example.org' });
    assert.equal(reply.status, 401);
    assert.equal(reply.headers['access-control-allow-origin'], 'https://app.example.org');
});

test('both loopback addresses are listened on when both are named', { skip: needsIpv6 }, async (t) => {
    const both = await startHearth({ t, listen: '127.0.0.1:0', args: ['--listen', '[::1]:0'] });
    assert.equal((await both.api('GET', '/healthz')).status, 200);
    const six = await fetch(`http://[::1]:${both.port}/healthz`);
    assert.equal(six.status, 200);
    await six.text();
});

test('the Unix socket asks for neither Host nor Origin', async () => {
    assert.equal((await h.socket('GET', '/api/keys', undefined, { host: 'example.org', origin: 'https://example.org' })).status, 200);
});
