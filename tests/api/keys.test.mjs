// Developer keys (decision D3): at least 128 random bits, shown once, stored hashed, revocable with immediate effect.
import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { startHearth, until } from './harness.mjs';
import { admin, newKey, nobodysId, refused, refusedFields, timeForm } from './kit.mjs';

let h;
before(async () => { h = await startHearth({ settings: { 'log.level': 'debug' } }); });
after(() => h.stop());

const listed = async (id) => (await admin(h, 'GET', '/api/keys')).keys.find((one) => one.id === id);

test('a new key has at least 128 random bits and works at once', async () => {
    const { id, key, call } = await newKey(h);
    assert.ok(key.replace(/^[a-z]+_/, '').length >= 22, 'base 64 has 6 bits a character');
    assert.ok(id.length > 0);
    assert.equal((await call('GET', '/sdk/ping')).status, 200);
    assert.notEqual((await newKey(h)).key, key);
});

test('the list tells a key by its name and last characters, never the key', async () => {
    const { id, key } = await newKey(h, 'for the tests');
    const reply = await h.socket('GET', '/api/keys');
    assert.ok(!reply.text.includes(key));
    const { name, last4, created_at: made, revoked_at: revoked } = await listed(id);
    assert.equal(name, 'for the tests');
    assert.equal(last4, key.slice(-4));
    assert.match(made, timeForm);
    assert.equal(revoked, null);
});

test('a key may have no name', async () => {
    const { id } = await admin(h, 'POST', '/api/keys', undefined, 201);
    assert.equal((await listed(id)).name, '');
});

test('a key is on disk neither in the databases nor in any other file, nor in the log', async () => {
    const { key, call } = await newKey(h);
    await call('GET', '/activities');
    const files = readdirSync(h.dataDir, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
    assert.ok(files.length >= 2);
    for (const file of files)
        assert.equal(readFileSync(join(file.parentPath, file.name)).indexOf(key), -1, file.name);
    assert.ok(!h.log.some((line) => line.includes(key)));
});

test('a revoked key is refused from the next request on', async () => {
    const { id, call } = await newKey(h);
    assert.equal((await call('GET', '/activities')).status, 200);
    await admin(h, 'DELETE', `/api/keys/${id}`);
    refused(await call('GET', '/activities'), 401, 'MISSING_APP_ID');
    refused(await call('GET', '/sdk/ping'), 401, 'MISSING_APP_ID');
    assert.match((await listed(id)).revoked_at, timeForm);
});

test('a key tells when it was last used', async () => {
    const { id, call } = await newKey(h);
    assert.equal((await listed(id)).last_used_at, null);
    await call('GET', '/activities');
    assert.match(await until(async () => (await listed(id)).last_used_at, { what: 'last_used_at' }), timeForm);
});

test('an unknown key cannot be revoked', async () => {
    refused(await h.socket('DELETE', `/api/keys/${nobodysId}`), 404, 'KEY_NOT_FOUND');
    refused(await h.socket('DELETE', '/api/keys/x'), 404, 'KEY_NOT_FOUND');
});

test('a key nearly like another is none', async () => {
    const { key } = await newKey(h);
    for (const near of [key.slice(0, -1), `${key}0`, key.toUpperCase(), ` ${key}x`, key.slice(0, -1) + (key.endsWith('0') ? '1' : '0')])
        refused(await h.api('GET', '/activities', undefined, { 'x-api-key': near }), 401, 'MISSING_APP_ID');
});

test('the name of a key has at most 128 characters', async () => {
    await admin(h, 'POST', '/api/keys', { name: 'ü'.repeat(128) }, 201);
    refusedFields(await h.socket('POST', '/api/keys', { name: 'ü'.repeat(129) }), 'name');
});

test('a key survives a restart', async (t) => {
    const other = await startHearth({ t });
    const { key } = await newKey(other);
    await other.terminate();
    await other.start();
    assert.equal((await other.api('GET', '/sdk/ping', undefined, { 'x-api-key': key })).status, 200);
});

test('keys are made and revoked by the administrator only, and both is audited', async () => {
    const { id, call } = await newKey(h);
    refused(await call('GET', '/api/keys'), 401, 'ADMIN_REQUIRED');
    refused(await call('POST', '/api/keys', {}), 401, 'ADMIN_REQUIRED');
    refused(await call('DELETE', `/api/keys/${id}`), 401, 'ADMIN_REQUIRED');
    await admin(h, 'DELETE', `/api/keys/${id}`);
    const { entries } = await admin(h, 'GET', '/api/audit?limit=500');
    const mine = entries.filter((entry) => entry.subject === id);
    assert.equal(mine.length, 2, JSON.stringify(mine));
});
