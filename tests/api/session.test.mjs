// The local administrator's browser: a one-time link sets an HttpOnly SameSite=Strict cookie and hands a proof to its page; a session is both.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startHearth, stoppedHearth } from './harness.mjs';
import { admin, refused, signIn, sqlite, storeFile } from './kit.mjs';

let h;
before(async () => { h = await startHearth(); });
after(() => h.stop());

const newLink = async () => {
    const { url } = await admin(h, 'POST', '/api/session/link', undefined, 201);
    return new URL(url).pathname + new URL(url).search;
};
const session = (headers) => h.api('GET', '/api/session', undefined, headers);

test('the link sets a cookie that scripts and other sites cannot use, and goes on to the page with the proof in the fragment', async () => {
    const { url, reply, proof } = await signIn(h);
    assert.equal(new URL(url).origin, h.url);
    const [cookie] = [reply.headers['set-cookie']].flat();
    assert.match(cookie, /; ?HttpOnly(;|$)/i);
    assert.match(cookie, /; ?SameSite=Strict(;|$)/i);
    assert.match(cookie, /; ?Path=\/(;|$)/i);
    assert.ok(Number(/Max-Age=(\d+)/i.exec(cookie)[1]) <= 30 * 24 * 3600);
    assert.ok(cookie.split(';')[0].split('=')[1].length >= 22 && proof.length >= 22, 'at least 128 random bits each');
    assert.equal(reply.headers['cache-control'], 'no-store');
    assert.match(reply.headers['referrer-policy'], /no-referrer/);
    assert.ok(!reply.text.includes(proof), 'the proof is in the address alone');
});

test('the page runs its own script only, is framed by nobody and keeps no handle for others', async () => {
    const { headers, text } = await h.api('GET', '/session');
    assert.match(headers['content-security-policy'], /frame-ancestors 'none'/);
    assert.match(headers['content-security-policy'], /style-src 'self'; script-src 'self'; connect-src 'self'$/);
    assert.deepEqual([headers['x-frame-options'], headers['cross-origin-opener-policy'], headers['referrer-policy'], headers['cache-control']],
        ['DENY', 'same-origin', 'no-referrer', 'no-store']);
    assert.doesNotMatch(text, /\son\w+=|<style|<script>/, 'no handler in an attribute, no style and no script in the page');
});

test('cookie and proof together are an administrator; each alone, forged or of another session is nobody', async () => {
    const [one, other] = [await signIn(h), await signIn(h)];
    assert.equal((await one.call('GET', '/api/session')).status, 200);
    assert.equal((await one.call('GET', '/api/keys')).status, 200);
    for (const headers of [{}, { cookie: one.cookie }, { 'x-hearth-proof': one.proof }, { cookie: one.cookie, 'x-hearth-proof': '' },
        { cookie: one.cookie, 'x-hearth-proof': other.proof }, { cookie: other.cookie, 'x-hearth-proof': one.proof },
        { cookie: one.cookie, 'x-hearth-proof': one.cookie.split('=')[1] }, { cookie: `hearth_session=${one.proof}`, 'x-hearth-proof': one.proof },
        { cookie: 'hearth_session=forged', 'x-hearth-proof': 'forged' }, { cookie: `${one.cookie}; hearth_proof=${one.proof}` }]) {
        refused(await session(headers), 401, 'ADMIN_REQUIRED');
        refused(await h.api('POST', '/api/agents', { name: 'evil', command: '/bin/sh' }, headers), 401, 'ADMIN_REQUIRED');
    }
});

test('neither cookie nor proof is in the store', async () => {
    const { cookie, proof } = await signIn(h);
    const text = JSON.stringify(await sqlite(storeFile(h), 'SELECT *, hex(id_hash) AS i, hex(proof_hash) AS p FROM sessions'));
    for (const secret of [cookie.split('=')[1], proof])
        assert.ok(!text.includes(secret) && !text.includes(Buffer.from(secret).toString('hex').toUpperCase()));
});

test('a link works once', async () => {
    const { url } = await signIn(h);
    const again = await h.api('GET', new URL(url).pathname + new URL(url).search);
    assert.equal(again.status, 403);
    assert.equal(again.headers['set-cookie'], undefined);
    assert.equal(again.headers.location, undefined);
    assert.match(again.text, /hearth open/);
});

test('of several at the same time one gets the session', async () => {
    const path = await newLink();
    const replies = await Promise.all(Array.from({ length: 8 }, () => h.api('GET', path)));
    assert.deepEqual(replies.map((reply) => reply.status).sort(), [303, ...Array(7).fill(403)]);
});

test('a preview, a prefetch or a frame does not use a link up', async () => {
    const path = await newLink();
    for (const [method, headers] of [['HEAD', {}], ['GET', { 'sec-purpose': 'prefetch' }], ['GET', { 'sec-purpose': 'prefetch;prerender' }],
        ['GET', { 'sec-fetch-dest': 'iframe' }], ['GET', { 'sec-fetch-dest': 'empty' }], ['GET', { 'sec-fetch-dest': 'image' }]]) {
        const reply = await h.api(method, path, undefined, headers);
        assert.deepEqual([reply.status, reply.headers['set-cookie'], reply.headers.location], [403, undefined, undefined]);
    }
    assert.equal((await h.api('GET', path, undefined, { 'sec-fetch-dest': 'document' })).status, 303);
});

test('a link that was never made opens nothing', async () => {
    for (const token of ['x', 'A'.repeat(43)]) {
        const reply = await h.api('GET', `/session/open?token=${token}`);
        assert.equal(reply.status, 403);
        assert.equal(reply.headers['set-cookie'], undefined);
    }
    refused(await h.api('GET', '/session/open'), 400, 'VALIDATION_ERROR');
});

test('signing out ends the session at once, and only this one', async () => {
    const [one, other] = [await signIn(h), await signIn(h)];
    const reply = await one.call('DELETE', '/api/session');
    assert.deepEqual(reply.body, { success: true });
    assert.match([reply.headers['set-cookie']].flat()[0], /Max-Age=0/);
    refused(await one.call('GET', '/api/session'), 401, 'ADMIN_REQUIRED');
    assert.equal((await other.call('GET', '/api/session')).status, 200);
});

test('a session outlives the service', async (t) => {
    const again = await startHearth({ t });
    const { headers } = await signIn(again);
    await again.kill();
    await again.start();
    assert.equal((await again.api('GET', '/api/session', undefined, headers)).status, 200);
});

test('a session without a proof, of a version before proofs, has ended', async (t) => {
    const old = await stoppedHearth({ t });
    const { version } = (await sqlite(storeFile(old), 'SELECT user_version AS version FROM pragma_user_version'))[0];
    const { n } = (await sqlite(storeFile(old), "SELECT count(*) AS n FROM pragma_table_info('sessions') WHERE name = 'proof_hash' AND \"notnull\""))[0];
    assert.ok(version >= 7 && n === 1);
    await sqlite(storeFile(old), "INSERT INTO sessions (id_hash, kind, created_at, expires_at) VALUES (x'00', 'admin', '', '9999')");
    await old.start();
    const reply = await old.api('GET', '/api/session', undefined, { cookie: 'hearth_session=old', 'x-hearth-proof': 'x' });
    refused(reply, 401, 'ADMIN_REQUIRED', /hearth open/);
});

test('a cookie among others is found', async () => {
    const { cookie, proof } = await signIn(h);
    assert.equal((await session({ cookie: `theme=dark; ${cookie}; other=1`, 'x-hearth-proof': proof })).status, 200);
});

test('a page of another origin cannot use the session', async () => {
    const { headers } = await signIn(h);
    refused(await h.api('POST', '/api/keys', {}, { ...headers, origin: 'https://example.org' }), 403, 'ORIGIN_NOT_ALLOWED');
});

test('a preflight allows the proof to the service\'s own pages only', async (t) => {
    const wide = await startHearth({ t, settings: { 'http.allowed_origins': 'https://ui.example' } });
    const allowed = async (origin) => (await wide.api('OPTIONS', '/api/session', undefined,
        { origin, 'access-control-request-method': 'GET', 'access-control-request-headers': 'x-hearth-proof' })).headers['access-control-allow-headers'];
    assert.match(await allowed(wide.url), /x-hearth-proof/);
    assert.match(await allowed('https://ui.example'), /x-app-id/);
    assert.doesNotMatch(await allowed('https://ui.example'), /proof/);
});

test('links are made by an administrator only', async () => {
    refused(await h.api('POST', '/api/session/link'), 401, 'ADMIN_REQUIRED');
    const { call, cookie } = await signIn(h);
    assert.equal((await call('POST', '/api/session/link')).status, 201);
    refused(await h.api('POST', '/api/session/link', undefined, { cookie }), 401, 'ADMIN_REQUIRED');
});
