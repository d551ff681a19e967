// Commands about workspaces, threads and activities, and what commands say: names, folders that are not there, slips of the pen, what a task waits for.
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { binary, coldHearth, runProgram, sharedHearth, startHearth, stoppedHearth, until } from './harness.mjs';
import { admin, newApp, nobodysId, refused, refusedFields, shellAgent, unique } from './kit.mjs';

const shared = sharedHearth();
const own = [['offline', (t) => stoppedHearth({ t })], ['online', (t) => startHearth({ t })]];
const common = [['offline', sharedHearth({}, stoppedHearth)], ['online', shared]];

function both(name, run, forms = common) {
    for (const [form, make] of forms)
        test(`${name} (${form})`, async (t) => run(await make(t), t));
}

async function says(h, said, ...args) {
    const result = await h.cli(...args);
    assert.equal(result.code, 0, `${args.join(' ')}: ${result.stderr}`);
    assert.match(result.stdout, said);
    return result;
}

async function fails(h, said, ...args) {
    const result = await h.cli(...args);
    assert.notEqual(result.code, 0, result.stdout);
    assert.match(result.stderr, said);
    return result;
}

both('workspaces and threads are made and listed', async (h) => {
    await says(h, /The workspace Front Desk is made\./, 'workspace', 'add', 'Front Desk');
    const { workspace } = await h.cliJson('workspace', 'add', 'Other', '--slug', 'other-desk');
    assert.equal(workspace.slug, 'other-desk');
    assert.ok((await h.cliJson('workspace', 'list')).some((one) => one.slug === 'front-desk' && one.name === 'Front Desk'));
    await says(h, /SLUG +NAME[^]*other-desk +Other/, 'workspace', 'list');
    await says(h, /no threads/, 'thread', 'list', 'other-desk');
    await says(h, /The thread First talk is made\./, 'thread', 'add', 'other-desk', 'First talk');
    assert.deepEqual((await h.cliJson('thread', 'list', 'other-desk')).map((one) => one.slug), ['first-talk']);
    await fails(h, /There is no workspace nowhere\./, 'thread', 'list', 'nowhere');
    await fails(h, /There is no workspace nowhere\./, 'thread', 'add', 'nowhere', 'x');
    await fails(h, /other-desk/, 'workspace', 'add', 'Other', '--slug', 'other-desk');
    await fails(h, /`hearth workspace list` shows/, 'thread', 'list', 'nowhere');
});

both('activities are inserted, listed, shown, changed and removed', async (h) => {
    const app = await h.app({ name: 'sorter' });
    const { stdout } = await says(h, /^[0-9a-f-]{36}\n$/, 'activity', 'add', h.file('raw.json', { n: 1 }), '--app', 'sorter');
    const id = stdout.trim();
    const { data } = await h.cliJson('activity', 'add', h.file('raw.json', { n: 2 }));
    assert.deepEqual(data.raw_data, { n: 2 });
    assert.equal((await h.cliJson('activity', 'list')).length, 2);
    for (const by of ['sorter', app])
        assert.deepEqual((await h.cliJson('activity', 'list', '--app', by)).map((one) => one.id), [id]);
    await says(h, new RegExp(`ID +STATUS[^]*${id} +pending`), 'activity', 'list', '--status', 'pending');
    await says(h, /raw_data: +\{"n":1\}/, 'activity', 'show', id);
    await says(h, /is changed/, 'activity', 'change', id, '--status', 'looked-at');
    assert.equal((await h.cliJson('activity', 'list', '--status', 'looked-at')).length, 1);
    await fails(h, /at least one of/, 'activity', 'change', id);
    await says(h, /is removed/, 'activity', 'remove', id);
    await fails(h, /Activity not found/, 'activity', 'show', id);
    await fails(h, /There is no app nobody\./, 'activity', 'add', h.file('raw.json', { n: 1 }), '--app', 'nobody');
    await fails(h, /raw_data/, 'activity', 'add', h.file('list.json', [1]));
}, own);

// Each with its least arguments.
const usages = async (h) => [...(await h.cli('help')).stdout.matchAll(/^ {2}([a-z]+(?: [a-z]+)?)((?: [A-Z][\w.|]*| app\|key)*)/gm)]
    .map(([, words, args]) => [...words.split(' '), ...args.split(' ').filter(Boolean).map((arg) => ({ 'FILE.json': '-', 'app|key': 'app' }[arg] ?? 'x'))]);
// `permission watch` and `approval watch` look for a terminal first; `status` says itself that nothing runs (cli_chat.test.mjs), and so do `service`, whose command
// `service install` starts one (service_command.test.mjs), and `upgrade` (upgrade.test.mjs).
const needNoFolder = ['permission watch', 'approval watch', 'status', 'serve', 'service', 'upgrade', 'restore', 'help', 'man', 'completion', 'version'];
const makers = ['key new', 'app add', 'agent add', 'provider add', 'settings set', 'workspace add', 'mcp add', 'mcp import', 'backend keys', 'backend password', 'backend login', 'backend use'];

for (const [what, make] of [['does not exist', () => {}], ['is empty', (path) => mkdirSync(path, { mode: 0o700 })]])
    test(`a command on a data folder that ${what} says that no service ran, and makes nothing`, async (t) => {
        const h = coldHearth({ t });
        const folder = join(h.home, 'typo');
        make(folder);
        const others = (await usages(h)).filter((args) => ![...needNoFolder, ...makers].some((words) => args.join(' ').startsWith(words)));
        let n = 0;
        for (const args of others) {
            const result = await runProgram(binary, [...args, '--data', folder], { env: h.env, input: '{}' });
            assert.equal(result.stdout, '');
            assert.deepEqual(existsSync(folder) ? readdirSync(folder) : [], [], args.join(' '));
            if (result.code === 2)              // wrong use is told first
                continue;
            assert.equal(result.code, 1, `${args.join(' ')}: ${result.stderr}`);
            assert.match(result.stderr, new RegExp(`No service runs on the data folder ${folder} and none ever ran there; start one with \`hearth serve\``), args.join(' '));
            n++;
        }
        assert.ok(n > 40, `${n} commands`);
    });

test('what registers something may be the first command on a data folder', async (t) => {
    const h = coldHearth({ t });
    const there = (...args) => runProgram(binary, [...args, '--data', join(h.home, 'new')], { env: h.env });
    assert.equal((await there('key', 'new')).code, 0);
    assert.equal((await there('key', 'list')).code, 0);
});

both('a permission that nobody knows is told with the nearest', async (h) => {
    await h.app({ name: 'asker', permissions: ['llm.chat'] });
    await fails(h, /There is no permission llm\.chta; did you mean llm\.chat\?/, 'permission', 'grant', 'asker', 'llm.chta');
    await fails(h, /There is no permission nonsense\n/, 'permission', 'deny', 'asker', 'nonsense');
    await fails(h, /There is no permission llm\.cat; did you mean llm\.chat\?/, 'permission', 'revoke', 'asker', 'llm.cat');
    await fails(h, /Nothing was decided about the permission llm\.chat/, 'permission', 'revoke', 'asker', 'llm.chat');
    const made = await says(h, /is registered/, 'app', 'add', h.file('slip.json', { name: 'slip', permissions: ['activities.raed', 'future.thing'] }));
    assert.match(made.stderr, /activities\.raed is no permission that this version knows; did you mean activities\.read\?/);
    assert.match(made.stderr, /future\.thing is no permission that this version knows\n/);
    await says(h, /may use future\.thing/, 'permission', 'grant', 'slip', 'future.thing');
});

test('APP is name or id where tasks and usage are listed', async (t) => {
    const h = await shared(t);
    const name = unique('lister'), id = await newApp(h, { name }, ['webhook.trigger']);
    await h.asApp(id)('POST', '/webhooks/svc', { event: 'trigger-agent', payload: { raw_data: {} } });
    for (const by of [name, id]) {
        assert.equal((await h.cliJson('task', 'list', '--app', by)).length, 1, by);
        assert.ok((await h.cliJson('usage', '--app', by)).usage);
    }
    for (const args of [['task', 'list', '--app', 'nobody'], ['usage', '--app', 'nobody']])
        await fails(h, /There is no app nobody\.\n.*`hearth app list`/, ...args);
    await fails(h, /There is no developer key with the id nokey\.\n.*`hearth key list`/, 'usage', '--key', 'nokey');
    await admin(h, 'DELETE', `/api/apps/${id}`);
    assert.equal((await h.cliJson('task', 'list', '--app', id)).length, 1, 'tasks outlive their app, by its id');
    assert.ok((await h.cliJson('usage', '--app', id)).usage);
});

test('what waits for a person and what waits for a place differ in lists', async (t) => {
    const h = await startHearth({ t });
    const slow = await shellAgent(h, 'sleep 600; :');
    const id = await newApp(h, { max_concurrent_tasks: 1, config: { max_concurrent_tasks: 1 } }, ['webhook.trigger']);
    await admin(h, 'POST', '/api/workspaces', { name: 'Desk', slug: 'desk' });
    const trigger = (payload) => h.asApp(id)('POST', '/webhooks/svc', { event: 'trigger-agent', payload: { raw_data: {}, ...payload } });
    const person = (await trigger({})).body.task_uuid;
    const places = [];
    for (let i = 0; i < 40; i++)
        places.push((await trigger({ auto_run: true, agent_name: slow, workspace_slug: 'desk' })).body.task_uuid);
    const tasks = Object.fromEntries((await h.cliJson('task', 'list', '--limit', '100')).map((one) => [one.uuid, one]));
    assert.equal(tasks[person].waits_for, 'person');
    const waiting = places.map((uuid) => tasks[uuid]).filter((one) => one.status === 'pending');
    assert.ok(waiting.length > 0 && waiting.every((one) => one.waits_for === 'place'));
    assert.ok(Object.values(tasks).every((one) => one.status === 'pending' || one.waits_for === null));
    await says(h, new RegExp(`WAITS FOR[^]*${person} +pending +person`), 'task', 'list', '--limit', '100');
    await says(h, / pending +place /, 'task', 'list', '--limit', '100');
    const { events } = await admin(h, 'GET', '/api/calendar?limit=100');
    const dispatch = new Set(events.map((one) => one.metadata.dispatch_status));
    assert.ok(dispatch.has('review') && dispatch.has('waiting'), [...dispatch].join());
});

test('what is not there is named', async (t) => {
    const h = await shared(t);
    const dev = await h.asKey();
    for (const [path, what] of [[`/api/apps/${nobodysId}`, 'app'], [`/api/tasks/${nobodysId}`, 'task'], [`/api/calendar/${nobodysId}`, 'calendar event']])
        assert.match((await h.socket('GET', path)).body.error, new RegExp(`There is no ${what} ${nobodysId}\\.`), path);
    assert.match((await dev('GET', `/task/${nobodysId}`)).body.error, new RegExp(nobodysId));
    assert.match((await dev('GET', '/workspaces/nowhere/threads')).body.error, /There is no workspace nowhere\./);
    await fails(h, new RegExp(`There is no developer key .*${nobodysId}`), 'key', 'revoke', nobodysId);
    await fails(h, /There is no agent.*nobody/, 'agent', 'remove', 'nobody');
});

test('an empty PATCH is refused, with what it could change', async (t) => {
    const h = await shared(t);
    const dev = await h.asKey();
    const { body } = await dev('POST', '/activities', { raw_data: { n: 1 } });
    for (const empty of [{}, { status: null }, { unknown: 1 }])
        refused(await dev('PATCH', `/activities/${body.data.id}`, empty), 400, 'VALIDATION_ERROR', /at least one of: status, result, raw_data, error_message/);
    refusedFields(await dev('PATCH', `/activities/${body.data.id}`, { status: 1 }), 'status');
    await dev('POST', '/webhooks/svc', { event: 'trigger-agent', payload: { raw_data: {} } });
    const { events } = await admin(h, 'GET', '/api/calendar');
    assert.equal((await h.socket('PATCH', `/api/calendar/${events[0].uuid}`, {})).status, 400);
});

test('an app that npm could not start shows npm\'s sentence', async (t) => {
    const h = await startHearth({ t, settings: { 'apps.restart_limit': 0 } });
    const words = ['npm error code E404', "npm error 404 Not Found - GET https://registry.npmjs.org/nosuch - Not found", 'npm error 404',
        'npm error A complete log of this run can be found in: /root/.npm/_logs/x-debug-0.log'];
    const id = await newApp(h, { config: { command: '/bin/sh', args: ['-c', 'printf "%s\\n" "$@" >&2; exit 1', 'sh', ...words] } });
    await h.cli('app', 'start', id);
    const app = await until(async () => {
        const { app } = await h.cliJson('app', 'show', id);
        return app.status === 'error' && app;
    }, { what: 'the app has failed' });
    assert.match(app.message, /exit code 1; its last words: npm error 404 Not Found - GET https:\/\/registry/);
    await says(h, /404 Not Found/, 'app', 'show', id);
});
