// Routes that client programs of this interface call beside those of the specification: /sdk/logs, /sdk/capabilities, /api/calendar-events,
// /sdk/auth/sync-supabase-token.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startHearth } from './harness.mjs';
import { admin, decide, newApp, newKey, refused, refusedFields, unique, uuidForm } from './kit.mjs';

let h;
before(async () => { h = await startHearth(); });
after(() => h.stop());

test('entries of an app stand in its log, also when Hearth never started it', async () => {
    const app = await newApp(h), call = h.asApp(app);
    const logs = [
        { level: 'info', source: 'app', message: 'My app started', timestamp: new Date().toISOString() },
        { level: 'error', source: 'llm', message: 'LLM call failed\nwith two lines', context: { model: 'gpt', n: 1 } },
        { message: 'no more than a message\u001b[31m' },
    ];
    const { status, body } = await call('POST', '/sdk/logs', { logs });
    assert.deepEqual([status, body], [200, { success: true, ingested: 3 }]);
    const { lines } = await admin(h, 'GET', `/api/apps/${app}/logs`);
    assert.deepEqual(lines.map(({ stream, text }) => [stream, text]), [
        ['log', 'info app: My app started'],
        ['log', 'error llm: LLM call failed'],
        ['log', 'with two lines {"model":"gpt","n":1}'],
        ['log', 'info app: no more than a message\ufffd[31m'],
    ]);
});

test('entries of a developer key without an app stand in the service\'s log', async () => {
    const { call } = await newKey(h);
    assert.equal((await call('POST', '/sdk/logs', { logs: [{ level: 'fatal', message: 'the key\'s word' }] })).body.ingested, 1);
    await h.logged(/ client .*the key's word/);
});

test('entries have a form and a number', async () => {
    const { call } = await newKey(h);
    refusedFields(await call('POST', '/sdk/logs', {}), 'logs');
    refusedFields(await call('POST', '/sdk/logs', { logs: [{ level: 'info' }, 'text'] }), 'logs[0].message', 'logs[1]');
    const many = (n) => ({ logs: Array.from({ length: n }, (_, i) => ({ message: `m${i}` })) });
    assert.equal((await call('POST', '/sdk/logs', many(500))).body.ingested, 500);
    refusedFields(await call('POST', '/sdk/logs', many(501)), 'logs');
    refused(await h.api('POST', '/sdk/logs', many(1)), 401, 'MISSING_APP_ID');
});

test('capabilities say what is there and what of it the caller may use, and ask nobody', async () => {
    const app = await newApp(h);
    await decide(h, app, ['llm.chat']);
    const { body } = await h.asApp(app)('GET', '/sdk/capabilities');
    assert.deepEqual([body.success, body.apiVersion], [true, 1]);
    assert.deepEqual(body.capabilities['llm.chat'], { version: 1, permission: 'llm.chat', granted: true });
    assert.deepEqual(body.capabilities['webhook.trigger'], { version: 1, permission: 'webhook.trigger', granted: false });
    assert.equal((await admin(h, 'GET', '/api/permissions/pending')).pending.filter((one) => one.app_id === app).length, 0);
    const { call } = await newKey(h);
    assert.ok(Object.values((await call('GET', '/sdk/capabilities')).body.capabilities).every((one) => one.granted));
    refused(await h.api('GET', '/sdk/capabilities'), 401, 'MISSING_APP_ID');
});

test('an app puts an event into the calendar, in either spelling', async () => {
    const app = await newApp(h, { name: unique('planner'), display_name: 'Planner' });
    await decide(h, app, ['webhook.trigger']);
    const call = h.asApp(app);
    const metadata = { source: 'planner', workflowRunConfig: { seedValue: 'x' }, source_app: 'somebody', task_uuid: 'forged', dispatch_status: 'completed' };
    const { status, body } = await call('POST', '/api/calendar-events', { title: 'Look', startDate: '2027-01-02T03:04:05+01:00', allDay: false, color: '#22c55e', metadata });
    assert.equal(status, 201);
    assert.match(body.event.uuid, uuidForm);
    assert.deepEqual([body.event.title, body.event.start_date, body.event.all_day, body.event.color, body.event.task_uuid],
        ['Look', '2027-01-02T02:04:05.000Z', false, '#22c55e', null]);
    const { source_app_name: name, ...kept } = body.event.metadata;
    assert.ok(name);
    assert.deepEqual(kept, { source_app: app, source: 'planner', workflowRunConfig: { seedValue: 'x' } });
    assert.deepEqual((await admin(h, 'GET', `/api/calendar/${body.event.uuid}`)).event, body.event);
    const snake = await call('POST', '/api/calendar-events', { title: 'Day', start_date: '2027-01-02', end_date: '2027-01-03', all_day: true, reminders: [10] });
    assert.deepEqual([snake.body.event.all_day, snake.body.event.end_date, snake.body.event.reminders], [true, '2027-01-03T00:00:00.000Z', [10]]);
    refusedFields(await call('POST', '/api/calendar-events', { title: 'No date' }), 'start_date');
    refusedFields(await call('POST', '/api/calendar-events', { title: 'Back', startDate: '2027-01-02', endDate: '2027-01-01' }), 'endDate');
    refusedFields(await call('POST', '/api/calendar-events', { startDate: 'soon' }), 'title');
    refused(await h.asApp(await newApp(h))('POST', '/api/calendar-events', { title: 'Look', startDate: '2027-01-02' }), 403, 'PERMISSION_REQUIRED');
});

test('the token is synchronised under both names', async () => {
    const app = await newApp(h), call = h.asApp(app);
    for (const word of ['backend', 'supabase']) {
        const { status, body } = await call('POST', `/sdk/auth/sync-${word}-token`, { token: `a.${word}.c` });
        assert.deepEqual([status, body.success, body.hasToken, body.source], [200, true, true, 'app']);
        const read = await call('GET', '/sdk/auth/token');
        assert.deepEqual([read.status, read.body.token, read.body.source], [200, `a.${word}.c`, 'app']);
    }
});
