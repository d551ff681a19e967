// Permissions (specification, "Permissions"; decision D4).
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startHearth, until } from './harness.mjs';
import { admin, changes, decide, newApp, newKey, nobodysId, refused, refusedFields, timeForm } from './kit.mjs';

let h;
before(async () => { h = await startHearth({ settings: { 'consent.wait_s': 30 } }); });
after(() => h.stop());

const ask = (app, permission, more) => h.api('POST', '/api/local-apps/request-permission', { app_id: app, permission, ...more });
const register = (app, permissions, more) => h.api('POST', '/sdk/register', { app_id: app, permissions, ...more });
const pending = async (app) => (await admin(h, 'GET', '/api/permissions/pending')).pending.filter((one) => one.app_id === app);
const waiting = (app, count = 1) => until(async () => {
    const list = await pending(app);
    return list.length === count && list;
}, { what: `${count} questions of ${app}` });
const grants = async (app) => (await admin(h, 'GET', `/api/permissions?app_id=${app}`)).grants;
const agents = (app) => h.asApp(app)('GET', '/agents');
const isRequired = (reply, permission = 'api.agents') => {
    const body = refused(reply, 403, 'PERMISSION_REQUIRED', 'PERMISSION_REQUIRED');
    assert.equal(body.permission, permission);
    assert.ok(body.message.length > 0);
};
const isDenied = (reply, permission = 'api.agents') =>
    assert.equal(refused(reply, 403, 'PERMISSION_DENIED', 'PERMISSION_DENIED').permission, permission);

test('a missing grant is 403 PERMISSION_REQUIRED, a stored denial 403 PERMISSION_DENIED', async () => {
    const app = await newApp(h);
    isRequired(await agents(app));
    await decide(h, app, 'api.agents', { allow: false });
    isDenied(await agents(app));
    await decide(h, app, 'api.agents');
    assert.equal((await agents(app)).status, 200);
});

test('a denial of what language models need carries the sentence for a person, and its code', async () => {
    const app = await newApp(h), chat = { messages: [{ role: 'user', content: 'hi' }] };
    const { display_name: name } = (await admin(h, 'GET', `/api/apps/${app}`)).app;
    for (const [permission, method, path, body] of [['llm.chat', 'POST', '/sdk/llm/chat', chat], ['llm.chat', 'POST', '/sdk/llm/chat/stream', chat],
        ['llm.embed', 'POST', '/sdk/llm/embed', { input: 'x' }], ['llm.providers', 'GET', '/sdk/llm/providers'], ['vectors.read', 'GET', '/sdk/llm/vectors/workspaces']]) {
        isRequired(await h.asApp(app)(method, path, body), permission);
        await decide(h, app, permission, { allow: false });
        const told = refused(await h.asApp(app)(method, path, body), 403, 'PERMISSION_DENIED', `The permission ${permission} was denied to the app ${name}; \`hearth permission grant ${app} ${permission}\` grants it.`);
        assert.deepEqual([told.permission, told.message], [permission, told.error]);
        await admin(h, 'POST', '/api/permissions/reset', { app_id: app });
    }
});

test('a call that lacks a permission shows the question to the person', async () => {
    const app = await newApp(h);
    await agents(app);
    const [question] = await waiting(app);
    assert.equal(question.permission, 'api.agents');
    assert.equal(question.known, true);
    await agents(app);
    assert.equal((await pending(app)).length, 1, 'one question, however often it is missed');
});

test('a request for a permission is held until the person allows it, and the grant is in force before the answer', async () => {
    const app = await newApp(h);
    let answered = false;
    const held = ask(app, 'api.agents').then((reply) => {
        answered = true;
        return reply;
    });
    await waiting(app);
    assert.equal(answered, false, 'the request is held');
    await decide(h, app, 'api.agents');
    const { status, body } = await held;
    assert.equal(status, 200);
    assert.deepEqual(body, { success: true, granted: true });
    assert.equal((await agents(app)).status, 200);
    assert.deepEqual(await pending(app), []);
});

test('a held request whose permission is denied gets granted: false', async () => {
    const app = await newApp(h);
    const held = ask(app, 'api.agents');
    await waiting(app);
    await decide(h, app, 'api.agents', { allow: false });
    assert.deepEqual((await held).body, { success: true, granted: false });
    isDenied(await agents(app));
});

test('all who wait for one permission get the same answer', async () => {
    const app = await newApp(h);
    const held = [ask(app, 'api.agents'), ask(app, 'api.agents'), ask(app, 'api.agents')];
    await waiting(app);
    await decide(h, app, 'api.agents');
    for (const { body } of await Promise.all(held))
        assert.equal(body.granted, true);
});

test('a request that nobody answers in time is granted: false, which denies nothing', async (t) => {
    const hasty = await startHearth({ t, settings: { 'consent.wait_s': 0.2 } });
    const app = await newApp(hasty);
    const { status, body } = await hasty.api('POST', '/api/local-apps/request-permission', { app_id: app, permission: 'api.agents' });
    assert.equal(status, 200);
    assert.deepEqual(body, { success: true, granted: false });
    isRequired(await hasty.asApp(app)('GET', '/agents'));
    assert.equal((await admin(hasty, 'GET', '/api/permissions/pending')).pending.length, 1, 'the question stays');
});

test('what is granted already is answered at once', async () => {
    const app = await newApp(h, {}, ['api.agents']);
    assert.deepEqual((await ask(app, 'api.agents')).body, { success: true, granted: true });
    assert.deepEqual(await pending(app), []);
});

test('a grant for once is used up by one call', async () => {
    const app = await newApp(h);
    await decide(h, app, 'api.agents', { scope: 'once' });
    assert.equal((await agents(app)).status, 200);
    isRequired(await agents(app));
});

test('a request refused for its body does not use up a grant for once', async () => {
    const app = await newApp(h);
    const insert = (body) => h.asApp(app)('POST', '/activities', body);
    const hook = (body) => h.asApp(app)('POST', '/webhooks/svc', body);
    await decide(h, app, ['activities.write', 'webhook.trigger'], { scope: 'once' });
    refusedFields(await insert({ raw_data: 'text' }), 'raw_data');
    assert.equal((await insert({ raw_data: {} })).status, 201);
    isRequired(await insert({ raw_data: 'text' }), 'activities.write');
    refusedFields(await hook({ event: 'trigger-agent' }), 'payload');
    refusedFields(await hook({ event: 'trigger-agent', payload: { raw_data: 'text' } }), 'payload.raw_data');
    refusedFields(await hook({ event: 'trigger-agent', payload: { raw_data: {}, auto_run: true } }), 'payload.agent_name');
    refusedFields(await hook({ event: 'trigger-agent', payload: { prompt: 7 }, event_id: 'one' }), 'payload.raw_data', 'payload.prompt');
    refusedFields(await hook({ event: 'task.completed', payload: { task_uuid: 7 } }), 'payload.task_uuid');
    for (const payload of [{ agent_name: 'nobody' }, { workspace_slug: 'nowhere' }, { workspace_slug: 'default', thread_slug: 'none' }])
        assert.equal((await hook({ event: 'trigger-agent', payload: { raw_data: {}, ...payload } })).status, 404);
    assert.equal((await hook({ event: 'task.completed', payload: { task_uuid: nobodysId } })).status, 404);
    assert.equal((await hook({ event: 'trigger-agent', payload: { raw_data: {}, agent_name: 'nobody' }, event_id: 'two' })).status, 404);
    assert.equal((await hook({ event: 'trigger-agent', payload: { raw_data: {} } })).status, 200);
    isRequired(await hook({ event: 'trigger-agent' }), 'webhook.trigger');
});

test('of many calls at the same time one gets the grant for once', async () => {
    const app = await newApp(h);
    await decide(h, app, 'api.agents', { scope: 'once' });
    const replies = await Promise.all(Array.from({ length: 12 }, () => agents(app)));
    assert.equal(replies.filter((reply) => reply.status === 200).length, 1);
    assert.equal(replies.filter((reply) => reply.status === 403).length, 11);
});

test('a grant until the app stops ends with the app', async () => {
    const app = await newApp(h, { app_type: 'custom', config: { command: '/bin/sleep', args: ['600'] } });
    const state = async () => (await admin(h, 'GET', `/api/apps/${app}`)).app.status;
    await admin(h, 'POST', `/api/apps/${app}/start`);
    await until(async () => await state() === 'running', { what: 'the app runs' });
    await decide(h, app, 'api.agents', { scope: 'until_stop' });
    await decide(h, app, 'api.workspaces');
    assert.equal((await agents(app)).status, 200);
    await admin(h, 'POST', `/api/apps/${app}/stop`);
    await until(async () => await state() === 'stopped', { what: 'the app stopped' });
    await until(async () => (await agents(app)).status === 403, { what: 'the grant ended' });
    isRequired(await agents(app));
    assert.equal((await h.asApp(app)('GET', '/workspaces')).status, 200, 'a grant for always stays');
});

test('a grant until a date ends then', async () => {
    const app = await newApp(h);
    await decide(h, app, 'api.agents', { scope: 'until_date', until: new Date(Date.now() + 3_600_000).toISOString() });
    assert.equal((await agents(app)).status, 200);
    const end = Date.now() + 3_000;
    await decide(h, app, 'api.agents', { scope: 'until_date', until: new Date(end).toISOString() });
    const { status } = await agents(app);
    assert.ok(status === 200 || Date.now() >= end, `${status} before its end`);
    await until(async () => (await agents(app)).status === 403, { what: 'the grant expired' });
    isRequired(await agents(app));
    const [grant] = await grants(app);
    assert.equal(grant.scope, 'until_date');
    assert.equal(grant.in_force, false);
});

test('a grant until a date needs one that is to come', async () => {
    const app = await newApp(h);
    const body = { app_id: app, permissions: ['api.agents'], allow: true, scope: 'until_date' };
    for (const until of [undefined, '2001-01-01T00:00:00Z', 'tomorrow', '2030-13-01'])
        refusedFields(await h.socket('POST', '/api/permissions/decide', { ...body, until }), 'until');
    isRequired(await agents(app));
});

test('after a second denial the app is not asked about again', async () => {
    const app = await newApp(h);
    for (let i = 0; i < 2; i++) {
        const held = ask(app, 'api.agents');
        await waiting(app);
        await decide(h, app, 'api.agents', { allow: false });
        assert.equal((await held).body.granted, false);
    }
    assert.deepEqual((await ask(app, 'api.agents')).body, { success: true, granted: false }, 'answered at once');
    assert.deepEqual(await pending(app), []);
    isDenied(await agents(app));
    assert.deepEqual(await pending(app), []);
    const reply = await register(app, ['api.agents']);
    assert.deepEqual(reply.body.permissions, { granted: [], denied: ['api.agents'] });
});

test('a denial of one permission says nothing about another', async () => {
    const app = await newApp(h);
    await decide(h, app, 'api.agents', { allow: false });
    isRequired(await h.asApp(app)('GET', '/workspaces'), 'api.workspaces');
});

test('register asks for all that is missing in one prompt', async () => {
    const app = await newApp(h, {}, ['api.task']);
    const held = register(app, ['api.task', 'api.agents', 'api.workspaces'], { app_name: 'Its own name' });
    const questions = await waiting(app, 2);
    assert.deepEqual(questions.map((one) => one.permission).sort(), ['api.agents', 'api.workspaces']);
    assert.equal(questions[0].id, questions[1].id, 'one prompt');
    await decide(h, app, 'api.agents');
    await decide(h, app, 'api.workspaces', { allow: false });
    const { status, body } = await held;
    assert.equal(status, 200);
    assert.equal(body.success, true);
    assert.equal(typeof body.message, 'string');
    assert.deepEqual(body.permissions.granted.sort(), ['api.agents', 'api.task']);
    assert.deepEqual(body.permissions.denied, ['api.workspaces']);
});

test('one decision may be about all permissions of a prompt', async () => {
    const app = await newApp(h);
    const held = register(app, ['api.agents', 'api.workspaces', 'api.task']);
    await waiting(app, 3);
    await decide(h, app, ['api.agents', 'api.workspaces', 'api.task']);
    assert.equal((await held).body.permissions.granted.length, 3);
});

test('register without missing permissions answers at once', async () => {
    const app = await newApp(h, {}, ['api.task']);
    assert.deepEqual((await register(app, ['api.task'])).body.permissions, { granted: ['api.task'], denied: [] });
    assert.deepEqual((await register(app, [])).body.permissions, { granted: [], denied: [] });
    assert.deepEqual((await register(app, undefined)).body.permissions, { granted: [], denied: [] });
});

test('an unknown app is 404 APP_NOT_FOUND for register and request-permission', async () => {
    refused(await register(nobodysId, ['api.agents']), 404, 'APP_NOT_FOUND');
    refused(await ask(nobodysId, 'api.agents'), 404, 'APP_NOT_FOUND');
});

test('both are reached below /api and with the app id in the header', async () => {
    const app = await newApp(h, {}, ['api.agents']);
    assert.equal((await h.api('POST', '/api/sdk/register', { app_id: app, permissions: [] })).status, 200);
    const reply = await h.asApp(app)('POST', '/api/local-apps/request-permission', { permission: 'api.agents' });
    assert.deepEqual(reply.body, { success: true, granted: true });
});

test('a developer key has every permission', async () => {
    const { call } = await newKey(h);
    for (const path of ['/agents', '/workspaces', '/activities', '/sdk/database/config'])
        assert.equal((await call('GET', path)).status, 200, path);
});

test('a permission nobody knows is accepted, stored and shown as unknown', async () => {
    const app = await newApp(h, { permissions: ['cooking.soup'] });
    const [question] = await waiting(app);
    assert.equal(question.permission, 'cooking.soup');
    assert.equal(question.known, false);
    await decide(h, app, 'cooking.soup');
    assert.equal((await grants(app))[0].permission, 'cooking.soup');
});

test('the permissions of a manifest are asked for in one prompt', async () => {
    const app = await newApp(h, { permissions: ['api.agents', 'api.workspaces'] });
    const questions = await waiting(app, 2);
    assert.equal(questions[0].id, questions[1].id);
});

test('a manifest that asks for more is asked about again, one that asks for less is not', async () => {
    const manifest = (permissions) => ({ name: 'grows', permissions });
    const app = await newApp(h, manifest(['api.agents']));
    await decide(h, app, 'api.agents');
    assert.deepEqual(await pending(app), []);
    assert.equal(await newApp(h, manifest(['api.agents', 'llm.chat'])), app, 'the same app');
    const questions = await waiting(app);
    assert.deepEqual(questions.map((one) => one.permission), ['llm.chat']);
    assert.equal((await agents(app)).status, 200, 'what was granted stays');
    await decide(h, app, 'llm.chat', { allow: false });
    await newApp(h, manifest(['api.agents']));
    assert.deepEqual(await pending(app), []);
});

test('a revoked grant is gone with the next call, and may be asked for again', async () => {
    const app = await newApp(h, {}, ['api.agents']);
    assert.equal((await agents(app)).status, 200);
    await admin(h, 'POST', '/api/permissions/revoke', { app_id: app, permission: 'api.agents' });
    isRequired(await agents(app));
    assert.deepEqual(await grants(app), []);
    const held = ask(app, 'api.agents');
    await waiting(app);
    await decide(h, app, 'api.agents');
    assert.equal((await held).body.granted, true);
});

test('a reset forgets grants and denials of one app', async () => {
    const [app, other] = [await newApp(h, {}, ['api.agents']), await newApp(h, {}, ['api.agents'])];
    await decide(h, app, 'api.workspaces', { allow: false });
    await decide(h, app, 'api.workspaces', { allow: false });
    await admin(h, 'POST', '/api/permissions/reset', { app_id: app });
    isRequired(await agents(app));
    isRequired(await h.asApp(app)('GET', '/workspaces'), 'api.workspaces');
    assert.equal((await agents(other)).status, 200);
});

test('what was never decided cannot be revoked, and an unknown app has nothing', async () => {
    const app = await newApp(h);
    refused(await h.socket('POST', '/api/permissions/revoke', { app_id: app, permission: 'api.agents' }), 404, 'GRANT_NOT_FOUND');
    refused(await h.socket('POST', '/api/permissions/revoke', { app_id: nobodysId, permission: 'api.agents' }), 404, 'APP_NOT_FOUND');
    refused(await h.socket('POST', '/api/permissions/reset', { app_id: nobodysId }), 404, 'APP_NOT_FOUND');
    refused(await h.socket('POST', '/api/permissions/decide', { app_id: nobodysId, permissions: ['a'], allow: true }), 404, 'APP_NOT_FOUND');
});

test('a grant shows when it was last used', async () => {
    const app = await newApp(h, {}, ['api.agents', 'api.workspaces']);
    const used = async (permission) => (await grants(app)).find((grant) => grant.permission === permission).last_used_at;
    assert.equal(await used('api.agents'), null);
    await agents(app);
    assert.match(await until(() => used('api.agents'), { what: 'last_used_at' }), timeForm);
    assert.equal(await used('api.workspaces'), null);
});

test('decisions outlive the service, questions are asked anew', async (t) => {
    const again = await startHearth({ t });
    const app = await newApp(again, {}, ['api.agents']);
    await decide(again, app, 'api.workspaces', { allow: false });
    await again.kill();
    await again.start();
    assert.equal((await again.asApp(app)('GET', '/agents')).status, 200);
    isDenied(await again.asApp(app)('GET', '/workspaces'), 'api.workspaces');
});

/* Fewer than may wait for a worker (256): else a loaded machine answers some with OVERLOADED, which is another rule. */
const ENDLESS = 250;

test('an app that asks without end fills neither the list nor the workers', async () => {
    const app = await newApp(h);
    const replies = [];
    const asked = Array.from({ length: ENDLESS }, (_, i) => ask(app, `made.up.${i}`).then((reply) => replies.push(reply)));
    await until(() => replies.length >= ENDLESS - 16, { what: 'most are refused' });
    for (const reply of replies) {
        if (reply.status === 429)
            refused(reply, 429, 'BUDGET_EXCEEDED');
        else
            refused(reply, 503, 'TOO_MANY_QUESTIONS');
        assert.ok(reply.headers['retry-after']);
    }
    assert.ok((await pending(app)).length <= 200, 'no more than the permissions an app may have');
    const other = await newApp(h);
    const held = ask(other, 'api.agents');
    await waiting(other);
    await decide(h, other, 'api.agents');
    assert.equal((await held).body.granted, true, 'another app is served meanwhile');
    await admin(h, 'DELETE', `/api/apps/${app}`);
    await Promise.all(asked);
});

test('the question list is empty again when the app is removed, and who waits is told', async () => {
    const app = await newApp(h);
    const held = ask(app, 'api.agents');
    await waiting(app);
    await admin(h, 'DELETE', `/api/apps/${app}`);
    const reply = await held;
    assert.ok(reply.status === 404 || reply.body.granted === false, reply.text);
    assert.deepEqual(await pending(app), []);
});

test('a body without app id or permission is refused by name', async () => {
    const app = await newApp(h);
    refusedFields(await h.api('POST', '/api/local-apps/request-permission', { permission: 'api.agents' }), 'app_id');
    refusedFields(await ask(app, undefined), 'permission');
    refusedFields(await ask(app, ''), 'permission');
    refusedFields(await ask(app, 'x'.repeat(129)), 'permission');
    refusedFields(await register(app, 'api.agents'), 'permissions');
    refusedFields(await register(app, Array.from({ length: 201 }, (_, i) => `p${i}`)), 'permissions');
    refusedFields(await register(app, [1]), 'permissions[0]');
});

test('management is the administrator\'s, and its bodies are checked', async () => {
    const app = await newApp(h, {}, ['api.agents']);
    const { call } = await newKey(h);
    for (const caller of [call, h.asApp(app)]) {
        refused(await caller('POST', '/api/permissions/decide', { app_id: app, permissions: ['llm.chat'], allow: true }), 401, 'ADMIN_REQUIRED');
        refused(await caller('GET', '/api/permissions'), 401, 'ADMIN_REQUIRED');
    }
    refusedFields(await h.socket('POST', '/api/permissions/decide', {}), 'app_id', 'permissions', 'allow');
    refusedFields(await h.socket('POST', '/api/permissions/decide', { app_id: app, permissions: [], allow: true }), 'permissions');
    refusedFields(await h.socket('POST', '/api/permissions/decide', { app_id: app, permissions: ['a'], allow: true, scope: 'for ever' }), 'scope');
});

test('the person who waits at the stream of changes sees how many questions there are', async (t) => {
    const stream = await changes(t, h);
    const app = await newApp(h);
    await agents(app);
    await stream.next((event) => event.event === 'permission' && event.json.pending >= 1);
    const before = (await admin(h, 'GET', '/api/permissions/pending')).pending.length;
    await decide(h, app, 'api.agents');
    await stream.next((event) => event.event === 'permission' && event.json.pending === before - 1);
});
