// Settings over HTTP, and the presence record (issue, sections 2 and 7; specification, "Presence record").
import assert from 'node:assert/strict';
import { hostname } from 'node:os';
import { after, before, test } from 'node:test';
import { startHearth, until } from './harness.mjs';
import { admin, refused, refusedFields, timeForm } from './kit.mjs';

let h;
before(async () => { h = await startHearth({ settings: { 'tasks.sweep_s': 7 }, env: { HEARTH_TASKS_RECOVERY_ROWS: '20' } }); });
after(() => h.stop());

const setting = async (key) => (await admin(h, 'GET', `/api/settings/${key}`)).setting;
const put = (key, value) => h.socket('PUT', `/api/settings/${key}`, { value });

test('every setting tells value, origin, default and help', async () => {
    const { settings } = await admin(h, 'GET', '/api/settings');
    assert.ok(settings.length > 20);
    for (const one of settings) {
        assert.match(one.key, /^[a-z]+\.[a-z_]+$/);
        assert.ok(['default', 'file', 'environment', 'database', 'flag'].includes(one.origin), one.key);
        assert.ok(one.help.length > 10, one.key);
        assert.equal(typeof one.default, 'string');
    }
    assert.deepEqual([(await setting('tasks.sweep_s')).value, (await setting('tasks.sweep_s')).origin], ['7', 'flag']);
    assert.deepEqual([(await setting('tasks.recovery_rows')).value, (await setting('tasks.recovery_rows')).origin], ['20', 'environment']);
    assert.equal((await setting('tasks.heartbeat_s')).origin, 'default');
    assert.equal((await setting('tasks.heartbeat_s')).value, '120');
});

test('a stored setting outranks the environment and is outranked by a flag', async () => {
    assert.equal((await put('tasks.recovery_rows', 30)).status, 200);
    assert.deepEqual([(await setting('tasks.recovery_rows')).value, (await setting('tasks.recovery_rows')).origin], ['30', 'database']);
    await put('tasks.sweep_s', 9);
    assert.deepEqual([(await setting('tasks.sweep_s')).value, (await setting('tasks.sweep_s')).origin], ['7', 'flag']);
    await admin(h, 'DELETE', '/api/settings/tasks.recovery_rows');
    assert.equal((await setting('tasks.recovery_rows')).origin, 'environment');
    await admin(h, 'DELETE', '/api/settings/tasks.sweep_s');
});

test('a stored setting outlives the service', async (t) => {
    const again = await startHearth({ t });
    await admin(again, 'PUT', '/api/settings/consent.wait_s', { value: 3 });
    await again.kill();
    await again.start();
    const { setting: kept } = await admin(again, 'GET', '/api/settings/consent.wait_s');
    assert.deepEqual([kept.value, kept.origin], ['3', 'database']);
});

for (const [key, value] of [['tasks.sweep_s', 'soon'], ['tasks.sweep_s', 0], ['tasks.sweep_s', -1], ['tasks.max_machines', 1.5], ['tasks.max_machines', 101],
    ['http.max_connections', 8193], ['http.allow_remote', 'perhaps'], ['log.level', 'loud'], ['backend.kind', 'postgress'], ['identity.token', 'Two Words'], ['http.listen', 'nowhere']])
    test(`${key} cannot be ${value}`, async () => {
        const before = await setting(key);
        const body = refused(await put(key, value), 400, 'BAD_SETTING');
        assert.ok(body.error.includes(key), body.error);
        assert.deepEqual(await setting(key), before);
    });

test('an unknown provider of the backend is refused with those that are known', async () => {
    refused(await put('backend.kind', 'postgress'), 400, 'BAD_SETTING', /backend\.kind must be one of embedded/);
    assert.equal((await put('backend.kind', 'embedded')).status, 200);
});

test('settings that contradict each other are refused', async () => {
    refused(await put('apps.port_max', 2000), 400, 'BAD_SETTING', /apps\.port_max/);
    refused(await put('tasks.stale_after_s', 60), 400, 'BAD_SETTING', /tasks\.(stale_after_s|heartbeat_s)/);
});

test('a value is text, a number or a truth value', async () => {
    for (const value of [{}, []])
        refusedFields(await put('tasks.presence_s', value), 'value');
    refusedFields(await h.socket('PUT', '/api/settings/tasks.presence_s', {}), 'value');
    for (const value of [15, '15'])
        assert.equal((await put('tasks.presence_s', value)).body.setting.value, '15');
    assert.equal((await put('http.allow_remote', false)).body.setting.value, 'false');
});

test('a change of a setting is in the audit log', async () => {
    await put('tasks.presence_s', 16);
    await admin(h, 'DELETE', '/api/settings/tasks.presence_s');
    const { entries } = await admin(h, 'GET', '/api/audit?limit=2');
    assert.deepEqual(entries.map((entry) => [entry.action, entry.subject]), [['setting.unset', 'tasks.presence_s'], ['setting.set', 'tasks.presence_s']]);
});

test('this machine is present, under a stable id of its own', async (t) => {
    const one = await startHearth({ t, settings: { 'tasks.presence_s': 0.2, 'identity.user_email': 'ann@example.org' } });
    const machines = async () => (await admin(one, 'GET', '/api/presence')).machines;
    const [first] = await until(async () => {
        const list = await machines();
        return list.length && list;
    }, { what: 'presence' });
    assert.match(first.machine_id, /^(lin|mac)-[0-9a-z]{4,}$/);
    assert.equal(first.hostname, hostname());
    assert.equal(first.user_email, 'ann@example.org');
    assert.match(first.online_at, timeForm);
    await one.terminate();
    await one.start();
    const again = await until(async () => {
        const list = await machines();
        return list.length && list;
    }, { what: 'presence again' });
    assert.deepEqual(again.map((machine) => machine.machine_id), [first.machine_id]);
});

test('machines on one backend file see each other, and those that left are gone', async (t) => {
    const file = `${h.home}/shared-presence.db`;
    const settings = (id) => ({ 'backend.file': file, 'identity.machine_id': id, 'tasks.presence_s': 0.2 });
    const [one, two] = await Promise.all(['m-one', 'm-two'].map((id) => startHearth({ t, settings: settings(id) })));
    const seen = async () => (await admin(one, 'GET', '/api/presence')).machines.map((machine) => machine.machine_id).sort();
    await until(async () => (await seen()).join() === 'm-one,m-two', { what: 'both are present' });
    await two.kill();
    await until(async () => (await seen()).join() === 'm-one', { what: 'the killed one is gone' });
});
