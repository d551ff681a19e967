// Specification, "Activities (proxy to the backend)"; decision D6.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startHearth } from './harness.mjs';
import { backendFile, insert, newApp, newKey, nobodysId, refused, refusedFields, sqlite, timeForm, uuidForm } from './kit.mjs';

let h, app, other;
before(async () => {
    h = await startHearth();
    app = await reader();
    other = await reader();
});
after(() => h.stop());

async function reader() { return h.asApp(await newApp(h, {}, ['activities.read', 'activities.write'])); }

test('a created activity is pending and is given back whole', async () => {
    const rawData = { text: 'Zoë ✓ 漢字 \u{1F600}', n: -0.5, big: 9007199254740991, deep: [{ a: [null, true, ''] }], '': 'empty name' };
    const { status, body } = await app('POST', '/activities', { raw_data: rawData });
    assert.equal(status, 201);
    assert.equal(body.success, true);
    assert.match(body.data.id, uuidForm);
    assert.deepEqual(body.data.raw_data, rawData);
    assert.equal(body.data.status, 'pending');
    assert.match(body.data.created_at, timeForm);
    assert.deepEqual((await app('GET', `/activities/${body.data.id}`)).body, { success: true, data: body.data });
});

test('the row in the database has the columns of the specification', async () => {
    const { id } = await insert(app, { where: 'on disk' });
    const [row] = await sqlite(backendFile(h), `SELECT * FROM svc_activities WHERE id = '${id}'`);
    for (const column of ['id', 'user_id', 'raw_data', 'old_data', 'status', 'locked_by', 'locked_at', 'completed_at', 'error_message',
        'attempted_by', 'retry_count', 'result', 'created_at'])
        assert.ok(column in row, column);
    assert.deepEqual(JSON.parse(row.raw_data), { where: 'on disk' });
    assert.deepEqual(JSON.parse(row.attempted_by), []);
    assert.equal(row.retry_count, 0);
});

test('the list has the newest first', async () => {
    const mine = await reader();
    const ids = [];
    for (let i = 0; i < 5; i++)
        ids.unshift((await insert(mine, { i })).id);
    const { status, body } = await mine('GET', '/activities');
    assert.equal(status, 200);
    assert.deepEqual(body.data.map((row) => row.id), ids);
});

test('limit and offset cut a page out of the list', async () => {
    const mine = await reader();
    const ids = [];
    for (let i = 0; i < 5; i++)
        ids.unshift((await insert(mine, { i })).id);
    const page = async (query) => (await mine('GET', `/activities?${query}`)).body.data.map((row) => row.id);
    assert.deepEqual(await page('limit=2'), ids.slice(0, 2));
    assert.deepEqual(await page('limit=2&offset=2'), ids.slice(2, 4));
    assert.deepEqual(await page('limit=2&offset=4'), ids.slice(4));
    assert.deepEqual(await page('offset=5'), []);
});

test('without a limit a page has 50', async () => {
    const mine = await reader();
    await Promise.all(Array.from({ length: 51 }, (_, i) => insert(mine, { i })));
    assert.equal((await mine('GET', '/activities')).body.data.length, 50);
    assert.equal((await mine('GET', '/activities?limit=500')).body.data.length, 51);
});

for (const [query, isAllowed] of [['limit=1', true], ['limit=500', true], ['limit=0', false], ['limit=501', false], ['limit=-1', false],
    ['limit=ten', false], ['limit=1.5', false], ['offset=0', true], ['offset=-1', false], ['limit=', true]])
    test(`the list is ${isAllowed ? 'given' : 'refused'} for ?${query}`, async () => {
        const reply = await app('GET', `/activities?${query}`);
        if (isAllowed)
            assert.equal(reply.status, 200, reply.text);
        else
            refusedFields(reply, query.split('=')[0]);
    });

test('the list can be of one status, and of an unknown one it is empty', async () => {
    const mine = await reader();
    const [first, second] = [await insert(mine, { n: 1 }), await insert(mine, { n: 2 })];
    await mine('PATCH', `/activities/${first.id}`, { status: 'completed' });
    const ids = async (status) => (await mine('GET', `/activities?status=${status}`)).body.data.map((row) => row.id);
    assert.deepEqual(await ids('completed'), [first.id]);
    assert.deepEqual(await ids('pending'), [second.id]);
    assert.deepEqual(await ids('claimed'), []);
    assert.deepEqual(await ids('nonsense'), []);
    assert.deepEqual(await ids(''), [second.id, first.id], 'an empty value is none, as with limit');
});

test('a change takes any subset of status, result, raw_data and error_message', async () => {
    const { id } = await insert(app, { n: 1 });
    const step = async (patch) => {
        const { status, body } = await app('PATCH', `/activities/${id}`, patch);
        assert.equal(status, 200);
        assert.equal(body.success, true);
        return body.data;
    };
    assert.deepEqual((await step({ result: { ok: true } })).result, { ok: true });
    const renamed = await step({ status: 'waiting for Ann' });
    assert.equal(renamed.status, 'waiting for Ann', 'the status is free text');
    assert.deepEqual(renamed.result, { ok: true }, 'what is not named stays');
    assert.equal((await step({ error_message: 'no paper' })).error_message, 'no paper');
    const changed = await step({ raw_data: { n: 2 } });
    assert.deepEqual(changed.raw_data, { n: 2 });
    assert.deepEqual(changed.old_data, { n: 1 }, 'old_data is what raw_data was');
});

test('null means absent in a change', async () => {
    const { id } = await insert(app, { n: 1 });
    const { status, body } = await app('PATCH', `/activities/${id}`, { status: null, raw_data: null, result: null, error_message: 'x' });
    assert.equal(status, 200);
    assert.equal(body.data.status, 'pending');
    assert.deepEqual(body.data.raw_data, { n: 1 });
    assert.equal(body.data.error_message, 'x');
});

test('a deleted activity is gone, and its second deletion is 404', async () => {
    const { id } = await insert(app, {});
    const { status, body } = await app('DELETE', `/activities/${id}`);
    assert.equal(status, 200);
    assert.deepEqual(body, { success: true });
    refused(await app('GET', `/activities/${id}`), 404, 'NOT_FOUND', 'Activity not found');
    refused(await app('DELETE', `/activities/${id}`), 404, 'NOT_FOUND', 'Activity not found');
});

test('another app sees nothing of an activity', async () => {
    const { id } = await insert(app, { secret: true });
    refused(await other('GET', `/activities/${id}`), 404, 'NOT_FOUND', 'Activity not found');
    refused(await other('PATCH', `/activities/${id}`, { status: 'stolen' }), 404, 'NOT_FOUND', 'Activity not found');
    refused(await other('DELETE', `/activities/${id}`), 404, 'NOT_FOUND', 'Activity not found');
    assert.ok(!(await other('GET', '/activities?limit=500')).body.data.some((row) => row.id === id));
    assert.equal((await app('GET', `/activities/${id}`)).body.data.status, 'pending');
});

test('an id of any other form is 404 too', async () => {
    for (const id of [nobodysId, 'x', "'%20OR%20'1'='1", '%00', 'a'.repeat(2000)]) {
        const reply = await app('GET', `/activities/${id}`);
        assert.ok(reply.status === 404 || (reply.status === 400 && id === '%00'), `${id}: ${reply.status} ${reply.text}`);
    }
});

test('a developer key needs no app id', async () => {
    const { call } = await newKey(h);
    const { id } = await insert(call, { by: 'key' });
    assert.deepEqual((await call('GET', `/activities/${id}`)).body.data.raw_data, { by: 'key' });
    assert.equal((await call('DELETE', `/activities/${id}`)).status, 200);
});

test('a developer key with an app id works on the rows of that app', async () => {
    const id = await newApp(h, {}, ['activities.read', 'activities.write']);
    const { call } = await newKey(h);
    const row = await insert(h.asApp(id), { by: 'app' });
    assert.equal((await call('GET', `/activities/${row.id}`, undefined, { 'x-app-id': id })).status, 200);
});

test('reading and writing are two permissions', async () => {
    const readOnly = h.asApp(await newApp(h, {}, ['activities.read']));
    const writeOnly = h.asApp(await newApp(h, {}, ['activities.write']));
    const required = (reply, permission) => assert.equal(refused(reply, 403, 'PERMISSION_REQUIRED', 'PERMISSION_REQUIRED').permission, permission);
    const { id } = await insert(writeOnly, {});
    required(await readOnly('POST', '/activities', { raw_data: {} }), 'activities.write');
    required(await readOnly('PATCH', `/activities/${id}`, {}), 'activities.write');
    required(await readOnly('DELETE', `/activities/${id}`), 'activities.write');
    required(await writeOnly('GET', '/activities'), 'activities.read');
    required(await writeOnly('GET', `/activities/${id}`), 'activities.read');
    assert.equal((await readOnly('GET', '/activities')).status, 200);
});

test('raw_data must be an object', async () => {
    for (const rawData of ['text', 1, true, [1]])
        refusedFields(await app('POST', '/activities', { raw_data: rawData }), 'raw_data');
    for (const body of [{}, { raw_data: null }, { rawData: {} }])
        refusedFields(await app('POST', '/activities', body), 'raw_data');
});

test('every broken field of a change is told at once', async () => {
    const { id } = await insert(app, {});
    refusedFields(await app('PATCH', `/activities/${id}`, { status: 1, result: [], raw_data: 'x', error_message: {} }),
        'status', 'result', 'raw_data', 'error_message');
});

test('an app claims and completes its own row through the database functions', async () => {
    const mine = h.asApp(await newApp(h, {}, ['activities.write', 'activities.read']));
    const other = h.asApp(await newApp(h, {}, ['activities.write', 'activities.read']));
    const { id } = (await mine('POST', '/activities', { raw_data: { n: 1 } })).body.data;
    const call = (who, name, more) => who('POST', `/activities/functions/svc_fn_${name}`, { task_id: id, machine_id: 'm1', ...more });

    assert.equal((await call(other, 'claim_task')).status, 404);
    const claimed = (await call(mine, 'claim_task')).body.result;
    assert.deepEqual([claimed.success, claimed.locked_by, claimed.status], [true, 'm1', 'claimed']);
    const refused = (await call(mine, 'claim_task', { machine_id: 'm2' })).body.result;
    assert.deepEqual([refused.success, refused.reason, refused.locked_by], [false, 'already_locked', 'm1']);
    assert.equal((await call(mine, 'complete_task', { attempt: claimed.attempt, result: { ok: 1 } })).body.result.success, true);
    const { data } = (await mine('GET', `/activities/${id}`)).body;
    assert.deepEqual([data.status, data.result], ['completed', { ok: 1 }]);
});

test('an attempt is an integer up to 2^53 - 1, as the largest that JSON keeps', async () => {
    const mine = h.asApp(await newApp(h, {}, ['activities.write', 'activities.read']));
    const { id } = (await mine('POST', '/activities', { raw_data: { n: 1 } })).body.data;
    const complete = (attempt) => mine('POST', '/activities/functions/svc_fn_complete_task', { task_id: id, machine_id: 'm1', attempt });
    assert.deepEqual([(await complete(2 ** 53 - 1)).status, (await complete(2 ** 53)).status], [200, 400]);
});

test('a database function that does not exist is told as such', async () => {
    const mine = h.asApp(await newApp(h, {}, ['activities.write']));
    assert.equal((await mine('POST', '/activities/functions/drop_everything', {})).status, 404);
});
