// The local administrator's browser: a one-time link sets an HttpOnly SameSite=Strict cookie (issue, section 4).
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startHearth } from './harness.mjs';
import { admin, refused, signIn } from './kit.mjs';

let h;
before(async () => { h = await startHearth(); });
after(() => h.stop());

test('the link opens a page and sets a cookie that scripts and other sites cannot use', async () => {
    const { url, reply } = await signIn(h);
    assert.equal(new URL(url).origin, h.url);
    assert.match(reply.headers['content-type'], /^text\/html/);
    const [cookie] = [reply.headers['set-cookie']].flat();
    assert.match(cookie, /; ?HttpOnly(;|$)/i);
    assert.match(cookie, /; ?SameSite=Strict(;|$)/i);
    assert.match(cookie, /; ?Path=\/(;|$)/i);
    assert.ok(Number(/Max-Age=(\d+)/i.exec(cookie)[1]) <= 30 * 24 * 3600);
    assert.ok(cookie.split(';')[0].split('=')[1].length >= 22, 'at least 128 random bits');
    assert.equal(reply.headers['cache-control'], 'no-store');
    assert.match(reply.headers['referrer-policy'], /no-referrer/);
});

test('the cookie is an administrator, without it nobody is', async () => {
    const { call } = await signIn(h);
    assert.equal((await call('GET', '/api/session')).status, 200);
    assert.equal((await call('GET', '/api/keys')).status, 200);
    refused(await h.api('GET', '/api/session'), 401, 'ADMIN_REQUIRED');
    refused(await h.api('GET', '/api/keys', undefined, { cookie: 'hearth_session=forged' }), 401, 'ADMIN_REQUIRED');
});

test('a link works once', async () => {
    const { url } = await signIn(h);
    const again = await h.api('GET', new URL(url).pathname + new URL(url).search);
    assert.equal(again.status, 403);
    assert.equal(again.headers['set-cookie'], undefined);
});

test('of several at the same time one gets the session', async () => {
    const { url } = await admin(h, 'POST', '/api/session/link', undefined, 201);
    const path = new URL(url).pathname + new URL(url).search;
    const replies = await Promise.all(Array.from({ length: 8 }, () => h.api('GET', path)));
    assert.deepEqual(replies.map((reply) => reply.status).sort(), [200, ...Array(7).fill(403)]);
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
    const { cookie } = await signIn(again);
    await again.kill();
    await again.start();
    assert.equal((await again.api('GET', '/api/session', undefined, { cookie })).status, 200);
});

test('a cookie among others is found', async () => {
    const { cookie } = await signIn(h);
    assert.equal((await h.api('GET', '/api/session', undefined, { cookie: `theme=dark; ${cookie}; other=1` })).status, 200);
});

test('a page of another origin cannot use the cookie', async () => {
    const { cookie } = await signIn(h);
    refused(await h.api('POST', '/api/keys', {}, { cookie, origin: 'https://example.org' }), 403, 'ORIGIN_NOT_ALLOWED');
});

test('links are made by an administrator only', async () => {
    refused(await h.api('POST', '/api/session/link'), 401, 'ADMIN_REQUIRED');
    const { call } = await signIn(h);
    assert.equal((await call('POST', '/api/session/link')).status, 201);
});
