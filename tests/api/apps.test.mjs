// Local Apps: configuration, launch, status, log, end (specification, "Local App configuration"; issue, section 5).
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { startHearth, until } from './harness.mjs';
import { admin, isAlive, newApp, newKey, nobodysId, refused, refusedFields, shellAgent, timeForm, unique, uuidForm } from './kit.mjs';

let h;
before(async () => { h = await startHearth({ settings: { 'apps.restart_backoff_ms': 20, 'apps.restart_limit': 2, 'identity.abbr': 'anv' } }); });
after(() => h.stop());

const put = (config) => h.socket('POST', '/api/apps', config);
const state = async (app, on = h) => (await admin(on, 'GET', `/api/apps/${app}`)).app;
const becomes = (app, ...statuses) => until(async () => {
    const one = await state(app);
    return statuses.includes(one.status) && one;
}, { what: `${app} becomes ${statuses}` });
const script = (text, more) => ({ app_type: 'custom', config: { command: '/bin/sh', args: ['-c', text], ...more } });
const lines = async (app, query = '') => (await admin(h, 'GET', `/api/apps/${app}/logs${query}`)).lines;
const logged = (app, text) => until(async () => (await lines(app)).find((line) => line.text.includes(text)), { what: `the log says ${text}` });

test('a registered app is given back as it was configured', async () => {
    const agent = await shellAgent(h, 'exit 0');
    const config = {
        name: unique('whole'), display_name: 'The Whole', description: 'All fields', icon: 'data:image/png;base64,AAAA', app_type: 'custom', permissions: ['api.agents'],
        config: {
            command: '/bin/true', args: ['a b', '{port}'], working_dir: '/tmp', env: { KEY: 'value' },
            agentHandlers: [{ tableName: 'public.orders', agentId: agent, eventTypes: ['INSERT', 'DELETE'], description: 'orders' }],
            backend: { enabled: true, mode: 'compatible', tables: ['public.orders'], tableActions: { 'public.orders': ['INSERT', 'DELETE'] },
                filter: 'status=eq.pending', max_concurrent_tasks: 3 },
        },
    };
    const { app_id: id } = await admin(h, 'POST', '/api/apps', config, 201);
    assert.match(id, uuidForm);
    const shown = await admin(h, 'GET', `/api/apps/${id}`);
    assert.deepEqual(shown.config, config);
    assert.deepEqual([shown.app.name, shown.app.display_name, shown.app.app_type, shown.app.status, shown.app.pid, shown.app.enabled],
        [config.name, 'The Whole', 'custom', 'stopped', null, false]);
    assert.match(shown.app.created_at, timeForm);
    assert.equal((await admin(h, 'GET', `/api/apps/${config.name}`)).app.app_id, id, 'by name too');
});

test('a configuration of the same name or id replaces the earlier one', async () => {
    const name = unique('twice');
    const { app_id: id } = (await put({ name })).body;
    assert.equal((await put({ name, display_name: 'Second' })).body.app_id, id);
    assert.equal((await state(id)).display_name, 'Second');
    assert.equal((await put({ app_id: id, name: unique('renamed') })).body.app_id, id);
    const given = '11111111-2222-4333-8444-555555555555';
    assert.equal((await put({ app_id: given, name: unique('given') })).body.app_id, given);
});

test('every error of a configuration is told at once, with its place', async () => {
    refusedFields(await put({
        name: '', app_type: 'java', permissions: 'all',
        config: {
            command: 7, args: [1], working_dir: 'relative', env: { 'A=B': 'x' },
            agentHandlers: [{ eventTypes: ['UPSERT'] }],
            backend: { mode: 'other', tables: ['a b'], filter: 'status', max_concurrent_tasks: 0 },
        },
    }), 'name', 'app_type', 'permissions', 'config.command', 'config.args[0]', 'config.working_dir', 'config.env.A=B',
    'config.agentHandlers[0].tableName', 'config.agentHandlers[0].agentId', 'config.agentHandlers[0].eventTypes[0]', 'config.backend.mode',
    'config.backend.tables[0]', 'config.backend.filter', 'config.backend.max_concurrent_tasks');
});

test('a member of config that stands beside it is refused, not ignored', async () => {
    refusedFields(await put({ name: unique('beside'), backend: { enabled: true }, home_url: 'http://127.0.0.1:1/', config: {} }), 'backend', 'home_url');
    assert.equal((await put({ name: unique('beside'), backend: null, unknown: 1, config: {} })).status, 201);
});

test('a handler is of a declared table and of an agent there is', async () => {
    const handler = { tableName: 'public.nope', agentId: 'nobody', eventTypes: ['INSERT'] };
    refusedFields(await put({ name: unique('app'), config: { agentHandlers: [handler] } }), 'config.agentHandlers[0].tableName', 'config.agentHandlers[0].agentId');
});

for (const [what, backend, field] of [
    ['an unknown action', { tables: ['public.t'], tableActions: { 'public.t': ['UPSERT'] } }, 'config.backend.tableActions.public.t'],
    ['actions of an undeclared table', { tableActions: { 'public.nope': ['INSERT'] } }, 'config.backend.tableActions.public.nope'],
    ['a table twice', { tables: ['public.t', 't'] }, 'config.backend.tables[1]'],
    ['a filter operator nobody knows', { filter: 'status=like.x' }, 'config.backend.filter'],
    ['two conditions', { filter: 'status=eq.a&n=eq.1' }, null],
    ['too many tasks at a time', { max_concurrent_tasks: 65 }, 'config.backend.max_concurrent_tasks'],
])
    test(`${what} is refused`, async () => {
        const reply = await put({ name: unique('app'), config: { backend: { enabled: true, ...backend } } });
        if (field)
            refusedFields(reply, field);
        else
            assert.ok(reply.status === 400 || reply.status === 201, 'a value may hold any character');
    });

test('an app is told who it is, where to listen and where the service is', async () => {
    const id = await newApp(h, { name: 'told', ...script('echo "$ANV_APP_ID|$ANV_APP_NAME|$ANV_PORT|$SERVER_URL|$HEARTH_BASE_URL|$OWN|$0|$1|$(pwd)"; sleep 600') });
    await put({ name: 'told', app_type: 'custom', config: { command: '/bin/sh', env: { OWN: 'port {port}' },
        args: ['-c', 'echo "$ANV_APP_ID|$ANV_APP_NAME|$ANV_PORT|$SERVER_URL|$HEARTH_BASE_URL|$OWN|$0|$1|$(pwd)"; exec sleep 600', 'at {port}', '{data_dir}'] } });
    await admin(h, 'POST', `/api/apps/${id}/start`);
    const { pid, port, started_at: at } = await becomes(id, 'running');
    assert.ok(isAlive(pid));
    assert.match(at, timeForm);
    const dataDir = join(h.dataDir, 'local-apps', id);
    const { text, stream } = await logged(id, '|');
    assert.deepEqual(text.split('|'), [id, 'told', String(port), h.url, h.url, `port ${port}`, `at ${port}`, dataDir, dataDir]);
    assert.equal(stream, 'stdout');
    await admin(h, 'POST', `/api/apps/${id}/stop`);
    assert.equal((await state(id)).status, 'stopped');
    assert.ok(!isAlive(pid));
});

test('an app inherits a minimal environment', async () => {
    const id = await newApp(h, script('env | cut -d= -f1 | sort | tr "\\n" " "; echo END'));
    await admin(h, 'POST', `/api/apps/${id}/start`);
    const { text } = await logged(id, 'END');
    for (const name of ['ASAN_OPTIONS', 'UBSAN_OPTIONS', 'TSAN_OPTIONS'])
        assert.ok(!text.includes(name), text);
    assert.match(text, /\bPATH\b/);
});

for (const [type, command, file, text] of [
    ['node', 'app.mjs', 'app.mjs', 'console.log("hello from " + process.argv0); setInterval(() => {}, 1000);'],
    ['python', 'app.py', 'app.py', 'import time\nprint("hello from python", flush=True)\ntime.sleep(600)'],
])
    test(`an app of type ${type} is started by its interpreter`, async () => {
        h.file(file, text);
        const id = await newApp(h, { app_type: type, config: { command, working_dir: h.home, env: { PATH: process.env.PATH } } });
        await admin(h, 'POST', `/api/apps/${id}/start`);
        await logged(id, 'hello from');
        await admin(h, 'POST', `/api/apps/${id}/stop`);
    });

for (const [type, program, command] of [['python', 'python3', 'app.py'], ['node', 'node', 'app.js'], ['npx', 'npx', 'a-package'], ['uvx', 'uvx', 'a-package']])
    test(`a missing ${program} is an error with the sentence a person needs`, async () => {
        const id = await newApp(h, { app_type: type, config: { command, env: { PATH: '/nowhere' } } });
        await h.socket('POST', `/api/apps/${id}/start`);
        const { message } = await becomes(id, 'error');
        assert.match(message, new RegExp(`\\b${program}\\b`), message);
    });

test('a missing program of a custom app is an error too', async () => {
    const id = await newApp(h, { app_type: 'custom', config: { command: '/no/such/program' } });
    refused(await h.socket('POST', `/api/apps/${id}/start`), 502, 'COMMAND_NOT_FOUND');
    assert.match((await becomes(id, 'error')).message, /\/no\/such\/program/);
});

test('an app without type and command is never started', async () => {
    const id = await newApp(h);
    refused(await h.socket('POST', `/api/apps/${id}/start`), 400, 'NOT_LAUNCHABLE');
});

test('an app that crashes is started again, a few times', async () => {
    const id = await newApp(h, script('echo up; echo "the reason" >&2; exit 7'));
    await admin(h, 'POST', `/api/apps/${id}/start`);
    const { message, n_restarts: n, pid } = await becomes(id, 'error');
    assert.equal(n, 2);
    assert.equal(pid, null);
    assert.match(message, /7|the reason/);
    assert.equal((await lines(id)).filter((line) => line.text === 'up').length, 3);
    assert.ok((await lines(id)).some((line) => line.stream === 'stderr' && line.text === 'the reason'));
});

test('an app that is killed is started again', async () => {
    const id = await newApp(h, script('exec sleep 600'));
    await admin(h, 'POST', `/api/apps/${id}/start`);
    const { pid } = await becomes(id, 'running');
    process.kill(pid, 'SIGKILL');
    await until(async () => {
        const now = await state(id);
        return now.status === 'running' && now.pid !== pid;
    }, { what: 'it runs again' });
    await admin(h, 'POST', `/api/apps/${id}/stop`);
});

test('stop ends the whole family of processes, also one that does not listen', async () => {
    const note = join(h.home, unique('pid'));
    const id = await newApp(h, script(`trap '' TERM; (trap '' TERM; exec sleep 600) & echo $! > ${note}.part; mv ${note}.part ${note}; wait; wait; sleep 600`));
    await admin(h, 'POST', `/api/apps/${id}/start`);
    const { pid } = await becomes(id, 'running');
    await until(() => existsSync(note), { what: 'the grandchild' });
    const grandchild = Number(readFileSync(note, 'utf8'));
    await admin(h, 'POST', `/api/apps/${id}/stop`);
    assert.ok(!isAlive(pid));
    await until(() => !isAlive(grandchild), { what: 'the grandchild ended' });
});

test('start and stop may be repeated, restart is a new process', async () => {
    const id = await newApp(h, script('exec sleep 600'));
    await admin(h, 'POST', `/api/apps/${id}/stop`);
    await admin(h, 'POST', `/api/apps/${id}/start`);
    const { pid } = await becomes(id, 'running');
    await admin(h, 'POST', `/api/apps/${id}/start`);
    assert.equal((await state(id)).pid, pid);
    await admin(h, 'POST', `/api/apps/${id}/restart`);
    const again = await becomes(id, 'running');
    assert.notEqual(again.pid, pid);
    assert.ok(!isAlive(pid));
    await admin(h, 'POST', `/api/apps/${id}/stop`);
});

test('the log has numbered lines with their time, and news can be waited for', async () => {
    const go = join(h.home, unique('go'));
    const id = await newApp(h, script(`echo first; while [ ! -e ${go} ]; do sleep 0.02; done; echo second; exec sleep 600`));
    await admin(h, 'POST', `/api/apps/${id}/start`);
    const { number, time } = await logged(id, 'first');
    assert.match(time, timeForm);
    const news = admin(h, 'GET', `/api/apps/${id}/logs?after=${number}&wait_s=20`);
    h.file(go.split('/').pop(), '');
    assert.deepEqual((await news).lines.map((line) => line.text), ['second']);
    assert.ok((await lines(id, '?limit=1')).length === 1);
    refusedFields(await h.socket('GET', `/api/apps/${id}/logs?limit=2001`), 'limit');
    await admin(h, 'POST', `/api/apps/${id}/stop`);
});

test('the log of a talkative app is bounded', async () => {
    const id = await newApp(h, script('i=0; while [ $i -lt 3000 ]; do echo "line $i"; i=$((i+1)); done; printf "%08000d\\n" 7; echo THE END; exec sleep 600'));
    await admin(h, 'POST', `/api/apps/${id}/start`);
    await logged(id, 'THE END');
    const kept = await lines(id, '?limit=2000');
    assert.ok(kept.length <= 2000);
    assert.deepEqual(kept.map((line) => Buffer.byteLength(line.text)).filter((n) => n > 4096 + ' [line cut]'.length), []);
    assert.ok(!kept.some((line) => line.text === 'line 0'));
    await admin(h, 'POST', `/api/apps/${id}/stop`);
});

test('a removed app is ended and forgotten, its data only when asked', async () => {
    for (const [query, stays] of [['', true], ['?with_data=true', false]]) {
        const id = await newApp(h, script('exec sleep 600'));
        const { dataDir } = (await h.asApp(id)('GET', '/sdk/local-apps/data-dir')).body;
        await admin(h, 'POST', `/api/apps/${id}/start`);
        const { pid } = await becomes(id, 'running');
        await admin(h, 'DELETE', `/api/apps/${id}${query}`);
        assert.ok(!isAlive(pid));
        refused(await h.socket('GET', `/api/apps/${id}`), 404, 'APP_NOT_FOUND');
        assert.equal(existsSync(dataDir), stays);
    }
});

test('an unknown app is 404 everywhere', async () => {
    for (const [method, path] of [['GET', ''], ['DELETE', ''], ['POST', '/start'], ['POST', '/stop'], ['POST', '/restart'], ['GET', '/logs']])
        refused(await h.socket(method, `/api/apps/${nobodysId}${path}`), 404, 'APP_NOT_FOUND');
});

test('an enabled app starts with the service, and no app outlives it', async (t) => {
    const other = await startHearth({ t });
    const enabled = await newApp(other, { enabled: true, ...script('exec sleep 600') });
    const disabled = await newApp(other, { ...script('exec sleep 600') });
    await other.terminate();
    await other.start();
    const running = await until(async () => {
        const one = await state(enabled, other);
        return one.status === 'running' && one;
    }, { what: 'the enabled app runs' });
    assert.equal((await state(disabled, other)).status, 'stopped');
    await other.kill();
    await until(() => !isAlive(running.pid), { what: 'the app ended with the killed service' });
    await other.start();
    const again = await until(async () => {
        const one = await state(enabled, other);
        return one.status === 'running' && one;
    }, { what: 'it runs again' });
    await other.terminate();
    assert.ok(!isAlive(again.pid));
});

test('apps are the administrator\'s to manage', async () => {
    const { call } = await newKey(h);
    refused(await call('POST', '/api/apps', { name: 'x' }), 401, 'ADMIN_REQUIRED');
    refused(await h.asApp(await newApp(h))('GET', '/api/apps'), 401, 'ADMIN_REQUIRED');
});
