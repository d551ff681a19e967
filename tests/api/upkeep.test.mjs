// The routes of upkeep: settings, backup, doctor. Over the data folder's socket, where the caller is the administrator.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { sharedHearth, startHearth } from './harness.mjs';
import { newApp } from './kit.mjs';

const shared = sharedHearth();
const routes = [
    ['GET', '/api/settings'], ['GET', '/api/settings/tasks.sweep_s'], ['PUT', '/api/settings/tasks.sweep_s', { value: 5 }],
    ['DELETE', '/api/settings/tasks.sweep_s'], ['POST', '/api/backup', { path: '/nowhere/x' }], ['GET', '/api/doctor'],
];

test('only the administrator may', async (t) => {
    const h = await shared(t);
    const id = await newApp(h);
    for (const who of [h.as({}), await h.asKey(), h.asApp(id)])
        for (const [method, path, body] of routes) {
            const reply = await who(method, path, body);
            assert.equal(reply.status, 401, `${method} ${path}`);
            assert.equal(reply.body.code, 'ADMIN_REQUIRED');
        }
    assert.equal((await h.socket('GET', '/api/settings/tasks.sweep_s')).body.setting.origin, 'default');
});

test('a setting is read, kept, told as changed and removed', async (t) => {
    const h = await startHearth({ t });
    const path = '/api/settings/tasks.sweep_s';
    const { status, body } = await h.socket('GET', path);
    assert.equal(status, 200);
    assert.deepEqual(Object.keys(body.setting).sort(), ['default', 'help', 'key', 'needs_restart', 'origin', 'type', 'value']);
    for (const [value, shown] of [[7, '7'], ['8', '8'], [0.5, '0.5']]) {
        const reply = await h.socket('PUT', path, { value });
        assert.equal(reply.status, 200, reply.text);
        assert.deepEqual([reply.body.setting.value, reply.body.setting.origin], [shown, 'database']);
    }
    assert.equal((await h.socket('GET', '/api/settings')).body.settings.find((one) => one.key === 'tasks.sweep_s').value, '0.5');
    assert.equal((await h.socket('DELETE', path)).body.setting.origin, 'default');
    const audit = (await h.socket('GET', '/api/audit')).body.entries;
    assert.deepEqual(audit.map((entry) => entry.action), ['setting.unset', 'setting.set', 'setting.set', 'setting.set']);
});

test('a setting kept while the service runs is there after a restart', async (t) => {
    const h = await startHearth({ t });
    await h.socket('PUT', '/api/settings/tasks.max_machines', { value: 4 });
    await h.terminate();
    await h.start();
    assert.equal((await h.socket('GET', '/api/settings/tasks.max_machines')).body.setting.value, '4');
});

const badSettings = [
    ['a value of the wrong kind', 'tasks.sweep_s', { value: 'soon' }, 'BAD_SETTING'],
    ['a value beyond its bounds', 'tasks.sweep_s', { value: -1 }, 'BAD_SETTING'],
    ['an object', 'tasks.sweep_s', { value: {} }, 'VALIDATION_ERROR'],
    ['a list', 'tasks.sweep_s', { value: [1] }, 'VALIDATION_ERROR'],
    ['nothing', 'tasks.sweep_s', {}, 'VALIDATION_ERROR'],
    ['null', 'tasks.sweep_s', { value: null }, 'VALIDATION_ERROR'],
    ['text with a NUL', 'tasks.sweep_s', { value: '1\u0000' }, 'VALIDATION_ERROR'],
];

for (const [name, key, body, code] of badSettings)
    test(`${name} is refused as a setting and changes nothing`, async (t) => {
        const h = await shared(t);
        const before = (await h.socket('GET', '/api/settings')).text;
        const reply = await h.socket('PUT', `/api/settings/${key}`, body);
        assert.equal(reply.status, 400, reply.text);
        assert.equal(reply.body.code, code);
        assert.equal((await h.socket('GET', '/api/settings')).text, before);
    });

test('a backup is made where it was asked for, and nowhere else', async (t) => {
    const h = await shared(t);
    const path = join(h.home, 'b.tar.gz');
    const reply = await h.socket('POST', '/api/backup', { path });
    assert.equal(reply.status, 200);
    assert.equal(reply.body.path, path);
    assert.ok(reply.body.files.includes('hearth.db'));
    assert.ok(existsSync(path));
    for (const [body, status, code] of [
        [{ path }, 409, 'FILE_EXISTS'],
        [{ path: 'relative.tar.gz' }, 400, 'VALIDATION_ERROR'],
        [{ path: '' }, 400, 'VALIDATION_ERROR'],
        [{}, 400, 'VALIDATION_ERROR'],
        [{ path: join(h.home, 'no', 'folder') }, 400, 'FILE_NOT_WRITABLE'],
    ]) {
        const refused = await h.socket('POST', '/api/backup', body);
        assert.deepEqual([refused.status, refused.body.code], [status, code], refused.text);
    }
});

test('several backups at once are each whole', async (t) => {
    const h = await shared(t);
    const paths = [1, 2, 3].map((n) => join(h.home, `b${n}.tar.gz`));
    const replies = await Promise.all(paths.map((path) => h.socket('POST', '/api/backup', { path })));
    assert.deepEqual(replies.map((reply) => reply.status), [200, 200, 200]);
    assert.ok(paths.every(existsSync));
});

test('doctor answers with checks that say what they found', async (t) => {
    const h = await shared(t);
    const { status, body } = await h.socket('GET', '/api/doctor');
    assert.equal(status, 200);
    assert.ok(body.checks.length >= 8);
    for (const check of body.checks)
        assert.ok(check.name && check.text && typeof check.ok === 'boolean');
});
