// Users of the face: what a test of the official client (tests/peers/auth.test.mjs) does not reach.
import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { sharedHearth, startHearth, until } from './harness.mjs';
import { admin, refused, refusedFields, sqlite, storeFile, unique } from './kit.mjs';
import { faceKeys, faceUser, token } from './realtime.mjs';

const shared = sharedHearth();
const password = 'correct horse';
const address = () => `${unique('person')}@example.org`;

async function callerOf(h) {
    const { publishable } = await faceKeys(h);
    return (method, path, body, headers) => h.api(method, `/auth/v1/${path}`, body, { apikey: publishable, ...headers });
}

const signUp = (call, email, more) => call('POST', 'signup', { email, password, ...more });
const signIn = (call, email, word = password) => call('POST', 'token?grant_type=password', { email, password: word });
const refresh = (call, { refresh_token: given }) => call('POST', 'token?grant_type=refresh_token', { refresh_token: given });

test('the limits of a sign-up are those of its fields', async (t) => {
    const h = await shared(t), call = await callerOf(h);
    const local = 'a'.repeat(64), labels = `${'b'.repeat(63)}.${'c'.repeat(63)}.${'d'.repeat(61)}`;
    assert.equal((await signUp(call, `${local}@${labels}`)).status, 200, 'an address of 254 characters');
    for (const bad of ['a', '@', 'a@', '@b.de', 'a@b..de', 'a@-b.de', 'a@b-.de', `${local}a@b.de`, `a@${'b'.repeat(64)}.de`, 'ä@b.de', 'a@ä.de', 'a b@c.de', 'a@b@c.de', 'a@b.de\n'])
        refused(await signUp(call, bad), 400, 'VALIDATION_ERROR', 'Unable to validate email address: invalid format');
    refusedFields(await signUp(call, `${local}@${labels}dd`), 'email');
    refused(await signUp(call, address(), { password: '12345' }), 422, 'WEAK_PASSWORD');
    assert.equal((await signUp(call, address(), { password: '123456' })).status, 200);
    assert.equal((await signUp(call, address(), { password: 'ü'.repeat(36) })).status, 200, '72 bytes');
    refusedFields(await signUp(call, address(), { password: `${'ü'.repeat(36)}x` }), 'password');
    assert.equal((await signUp(call, address(), { data: { x: 'y'.repeat(4096 - 8) } })).status, 200);
    refusedFields(await signUp(call, address(), { data: { x: 'y'.repeat(4096 - 7) } }), 'data');
    refused(await signUp(call, undefined), 400, 'VALIDATION_ERROR', 'missing email or phone');
    refused(await signUp(call, address(), { password: '' }), 400, 'VALIDATION_ERROR', 'missing password');
});

test('an old form of errors is for clients that name no version', async (t) => {
    const h = await shared(t), call = await callerOf(h);
    const { body, status } = await signIn(call, address());
    assert.deepEqual({ status, ...body }, { status: 400, code: 400, error_code: 'invalid_credentials', msg: 'Invalid login credentials', hearth_code: 'INVALID_CREDENTIALS' });
    const newer = await call('POST', 'token?grant_type=password', { email: address(), password }, { 'x-supabase-api-version': '2024-01-01' });
    assert.deepEqual(newer.body, { code: 'invalid_credentials', message: 'Invalid login credentials', hearth_code: 'INVALID_CREDENTIALS' });
    assert.equal(newer.headers['x-supabase-api-version'], '2024-01-01');
});

test('who has no key is told so in the words of the gateway', async (t) => {
    const h = await shared(t);
    for (const [method, path, body] of [['POST', 'signup', {}], ['POST', 'token', {}], ['GET', 'user'], ['PUT', 'user', {}], ['POST', 'logout'], ['GET', 'health'], ['GET', 'settings']]) {
        const reply = await h.api(method, `/auth/v1/${path}`, body);
        assert.equal(reply.status, 401, path);
        assert.equal(reply.body.message, 'No API key found in request');
    }
});

test('a user needs a token of a user: no key, no anonymous token, none of the service role', async (t) => {
    const h = await shared(t), call = await callerOf(h);
    const { jwt_secret: secret, secret: service } = await faceKeys(h);
    const bearer = (role) => ({ authorization: `Bearer ${token(secret, '', { role, sub: undefined })}` });
    for (const headers of [{}, { apikey: service }, bearer('anon'), bearer('service_role'), bearer('authenticated')])
        for (const [method, path, body] of [['GET', 'user'], ['PUT', 'user', {}], ['POST', 'logout']])
            refused(await call(method, path, body, headers), 401, 'NO_AUTHORIZATION');
    const { user, headers } = await faceUser(h);
    assert.equal((await call('GET', 'user', undefined, headers)).body.id, user.id);
    await admin(h, 'DELETE', `/api/backend/users/${user.id}`);
    assert.equal((await call('GET', 'user', undefined, headers)).body.error_code, 'user_not_found');
    refused(await call('GET', 'user', undefined, { authorization: `Bearer ${token(secret, user.id, { exp: 1 })}` }), 403, 'JWT_EXPIRED');
});

test('grants other than password and refresh_token are refused', async (t) => {
    const call = await callerOf(await shared(t));
    refused(await call('POST', 'token?grant_type=id_token', {}), 400, 'UNSUPPORTED_GRANT_TYPE');
    refused(await call('POST', 'token', {}), 400, 'UNSUPPORTED_GRANT_TYPE');
    refused(await refresh(call, { refresh_token: '' }), 400, 'VALIDATION_ERROR', 'refresh_token is required');
    refused(await refresh(call, { refresh_token: 'A'.repeat(48) }), 400, 'REFRESH_TOKEN_NOT_FOUND');
});

test('an account is guarded against guessing, and its user is not locked out by it', async (t) => {
    const h = await startHearth({ t }), call = await callerOf(h), email = address();
    const { body: session } = await signUp(call, email);
    const guess = async (whom) => {
        let n = 0;
        while ((await signIn(call, whom, 'guess')).status === 400)
            n++;
        return n;
    };
    assert.ok(await guess(email) >= 10);
    const reply = await until(async () => {                 // on a busy machine the next attempt is free soon after the last
        const next = await signIn(call, email);
        return next.status !== 200 && next || (await guess(email), null);
    }, { what: 'the user is held up too' });
    assert.equal(refused(reply, 429, 'RATE_LIMIT', /^Too many attempts: try again in [1-6] seconds\.$/).error_code, 'over_request_rate_limit');
    assert.ok(Number(reply.headers['retry-after']) <= 6);
    assert.equal((await refresh(call, session)).status, 200, 'who is signed in stays so');
    const other = address();
    assert.equal((await signUp(call, other)).status, 200);
    for (let i = 0; i < 15; i++)
        assert.equal((await signIn(call, other)).status, 200, 'right passwords count for nothing');
    assert.ok(await guess(`nobody-${other}`) >= 10, 'the same for an account that is not there');
});

test('an address may not make users without end', async (t) => {
    const h = await startHearth({ t }), call = await callerOf(h);
    let reply;
    for (let i = 0; i < 120; i++) {
        reply = await signUp(call, address());
        if (reply.status !== 200)
            break;
    }
    refused(reply, 429, 'RATE_LIMIT');
    const n = (await admin(h, 'GET', '/api/backend/users')).users.length;
    assert.ok(n >= 60 && n < 120, `${n} users`);
});

test('who may sign up is a setting', async (t) => {
    const h = await startHearth({ t }), call = await callerOf(h), email = address();
    assert.equal((await signUp(call, address())).status, 200, 'programs of this machine may');
    await admin(h, 'PUT', '/api/settings/face.signup', { value: 'closed' });
    refused(await signUp(call, email), 422, 'SIGNUP_DISABLED');
    assert.equal((await call('GET', 'settings')).body.disable_signup, true);
    await admin(h, 'POST', '/api/backend/users', { email, password }, 201);
    assert.equal((await signIn(call, email)).status, 200);
    await admin(h, 'PUT', '/api/settings/face.signup', { value: 'open' });
    assert.equal((await signUp(call, address())).status, 200);
});

test('a refresh token that comes again is taken as stolen, unless it came at once', async (t) => {
    const h = await startHearth({ t }), call = await callerOf(h);
    const { body: first } = await signUp(call, address());
    const { body: second } = await refresh(call, first);
    assert.equal((await refresh(call, first)).body.refresh_token, second.refresh_token);
    await sqlite(storeFile(h), "UPDATE face_sessions SET refreshed_at = strftime('%Y-%m-%dT%H:%M:%fZ', refreshed_at, '-11 seconds')");
    refused(await refresh(call, first), 400, 'REFRESH_TOKEN_ALREADY_USED');
    refused(await refresh(call, second), 400, 'REFRESH_TOKEN_NOT_FOUND');
});

test('a user has a hundred sessions at most, and an idle one ends', async (t) => {
    const h = await startHearth({ t }), call = await callerOf(h), email = address();
    const { body: first } = await signUp(call, email);
    const { id } = first.user;
    await sqlite(storeFile(h), "UPDATE face_sessions SET refreshed_at = strftime('%Y-%m-%dT%H:%M:%fZ', refreshed_at, '-2 seconds')");
    await sqlite(storeFile(h), `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 99)
        INSERT INTO face_sessions SELECT 's' || i, '${id}', 0, '2026-01-01', strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-1 seconds') FROM n`);
    assert.equal((await refresh(call, first)).status, 200, 'the hundredth');
    await sqlite(storeFile(h), `UPDATE face_sessions SET refreshed_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-3 seconds') WHERE length(id) = 36`);
    await signIn(call, email);
    const sessions = await sqlite(storeFile(h), 'SELECT id FROM face_sessions');
    assert.equal(sessions.length, 100);
    assert.ok(!sessions.some((one) => first.access_token.includes(Buffer.from(one.id).toString('base64url'))));
    await sqlite(storeFile(h), "UPDATE face_sessions SET refreshed_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-91 days')");
    await signIn(call, email);
    assert.equal((await sqlite(storeFile(h), 'SELECT id FROM face_sessions')).length, 1);
});

test('passwords and refresh tokens are in no file and no log, and users outlive the service', async (t) => {
    const h = await startHearth({ t, settings: { 'log.level': 'debug' } }), call = await callerOf(h), email = address();
    const secret = `secret-${'q'.repeat(40)}`;
    const { body: session } = await signUp(call, email, { password: secret });
    await signIn(call, email, `${secret}-wrong`);
    await admin(h, 'PUT', `/api/backend/users/${email}/password`, { password: `${secret}-2` });
    const { body: again } = await signIn(call, email, `${secret}-2`);
    const files = readdirSync(h.dataDir, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
    for (const file of files)
        for (const text of [secret, session.refresh_token, again.refresh_token])
            assert.equal(readFileSync(join(file.parentPath, file.name)).indexOf(text), -1, file.name);
    assert.ok(!h.log.some((line) => line.includes(secret) || line.includes(again.refresh_token)));
    const { entries } = await admin(h, 'GET', '/api/audit');
    assert.ok(entries.some((entry) => entry.action === 'backend.user_password' && entry.subject === email));
    await h.kill();
    await h.start();
    const later = await callerOf(h);
    assert.equal((await refresh(later, again)).status, 200);
    refused(await refresh(later, session), 400, 'REFRESH_TOKEN_NOT_FOUND');
    assert.equal((await signIn(later, email, `${secret}-2`)).status, 200);
});

test('the administrator lists, adds and removes users', async (t) => {
    const h = await startHearth({ t }), email = address();
    const { user } = await admin(h, 'POST', '/api/backend/users', { email: email.toUpperCase(), password }, 201);
    assert.equal(user.email, email);
    assert.deepEqual((await admin(h, 'GET', '/api/backend/users')).users, [user]);
    refused(await h.socket('POST', '/api/backend/users', { email, password }), 422, 'USER_ALREADY_EXISTS');
    refused(await h.socket('POST', '/api/backend/users', { email: 'x', password }), 400, 'VALIDATION_ERROR');
    await admin(h, 'DELETE', `/api/backend/users/${email}`);
    assert.deepEqual((await admin(h, 'GET', '/api/backend/users')).users, []);
    refused(await h.socket('DELETE', `/api/backend/users/${email}`), 404, 'USER_NOT_FOUND');
});

test('a face that is off has no users', async (t) => {
    const h = await startHearth({ t, settings: { 'face.enabled': false } });
    refused(await signUp(await callerOf(h), address()), 404, 'FACE_OFF');
});
