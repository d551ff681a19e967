// Specification, "Connectivity and local data" and "Authentication"; decisions D2 and D3.
import assert from 'node:assert/strict';
import { statSync } from 'node:fs';
import { isAbsolute } from 'node:path';
import { after, before, test } from 'node:test';
import { startHearth } from './harness.mjs';
import { admin, newApp, newKey, nobodysId, refused, timeForm } from './kit.mjs';

let h;
before(async () => { h = await startHearth(); });
after(() => h.stop());

test('ping tells an app that it is in production mode and who it is', async () => {
    const app = await newApp(h);
    const { status, body } = await h.asApp(app)('GET', '/sdk/ping');
    assert.equal(status, 200);
    assert.equal(body.success, true);
    assert.equal(typeof body.message, 'string');
    assert.equal(body.mode, 'production');
    assert.equal(body.appId, app);
    assert.match(body.timestamp, timeForm);
    assert.ok(Math.abs(Date.parse(body.timestamp) - Date.now()) < 60_000);
});

test('ping tells a developer key that it is in development mode, without an app id', async () => {
    const { call } = await newKey(h);
    const { body } = await call('GET', '/sdk/ping');
    assert.equal(body.mode, 'development');
    assert.ok(!('appId' in body));
});

test('a developer key is taken from x-api-key as well', async () => {
    const { key } = await newKey(h);
    const { body } = await h.api('GET', '/sdk/ping', undefined, { 'x-api-key': key });
    assert.equal(body.mode, 'development');
});

test('with key and app id the key decides and the app id names the app', async () => {
    const app = await newApp(h);
    const { call } = await newKey(h);
    const { body } = await call('GET', '/sdk/ping', undefined, { 'X-App-Id': app });
    assert.equal(body.mode, 'development');
    assert.equal(body.appId, app);
});

test('an unknown app id beside a valid key does no harm', async () => {
    const { call } = await newKey(h);
    const { status, body } = await call('GET', '/sdk/ping', undefined, { 'x-app-id': nobodysId });
    assert.equal(status, 200);
    assert.equal(body.mode, 'development');
});

test('a bearer value that is no key does not fail a request of a known app', async () => {
    const app = await newApp(h);
    const { status, body } = await h.api('GET', '/sdk/ping', undefined, { authorization: 'Bearer of-something-else', 'x-app-id': app });
    assert.equal(status, 200);
    assert.equal(body.mode, 'production');
});

test('without credentials the answer is 401 MISSING_APP_ID in the specified words', async () => {
    refused(await h.api('GET', '/sdk/ping'), 401, 'MISSING_APP_ID', 'Missing required header: x-app-id');
});

test('an unknown app id is 401 INVALID_APP_ID and is named', async () => {
    refused(await h.asApp(nobodysId)('GET', '/sdk/ping'), 401, 'INVALID_APP_ID', `Invalid app ID: ${nobodysId}`);
});

for (const [what, headers, code] of [
    ['a bearer value that is no key', { authorization: 'Bearer nothing' }, 'INVALID_API_KEY'],
    ['an empty bearer value', { authorization: 'Bearer ' }, 'MISSING_APP_ID'],
    ['another scheme', { authorization: 'Basic YTpi' }, 'INVALID_API_KEY'],
    ['an empty app id', { 'x-app-id': '' }, 'MISSING_APP_ID'],
    ['an empty api key', { 'x-api-key': '' }, 'MISSING_APP_ID'],
])
    test(`${what} alone is no identity`, async () => {
        refused(await h.api('GET', '/sdk/ping', undefined, headers), 401, code);
    });

test('a content type on GET is of no consequence', async () => {
    const app = await newApp(h);
    const { status } = await h.asApp(app)('GET', '/sdk/ping', undefined, { 'content-type': 'application/json' });
    assert.equal(status, 200);
});

test('an app that was removed is unknown at once', async () => {
    const app = await newApp(h);
    assert.equal((await h.asApp(app)('GET', '/sdk/ping')).status, 200);
    await admin(h, 'DELETE', `/api/apps/${app}`);
    refused(await h.asApp(app)('GET', '/sdk/ping'), 401, 'INVALID_APP_ID');
});

test('the data folder of an app is its own, absolute, there, and closed to others', async () => {
    const [one, other] = [await newApp(h), await newApp(h)];
    const { body } = await h.asApp(one)('GET', '/sdk/local-apps/data-dir');
    assert.equal(body.success, true);
    assert.ok(isAbsolute(body.dataDir));
    assert.ok(body.dataDir.endsWith(`/local-apps/${one}`));
    assert.equal(statSync(body.dataDir).mode & 0o777, 0o700);
    assert.ok(statSync(body.dataDir).isDirectory());
    assert.notEqual((await h.asApp(other)('GET', '/sdk/local-apps/data-dir')).body.dataDir, body.dataDir);
    assert.equal((await h.asApp(one)('GET', '/sdk/local-apps/data-dir')).body.dataDir, body.dataDir, 'the same one each time');
});

test('callers with the same key share a data folder, another key has another', async () => {
    const [one, other] = [await newKey(h), await newKey(h)];
    const first = (await one.call('GET', '/sdk/local-apps/data-dir')).body.dataDir;
    assert.equal((await one.call('GET', '/api/sdk/local-apps/data-dir')).body.dataDir, first);
    assert.notEqual((await other.call('GET', '/sdk/local-apps/data-dir')).body.dataDir, first);
    assert.ok(!first.includes(one.key), 'the key itself is not in the path');
});
