// Every command in both of its forms: against a running service, and on the data folder alone. What it prints, and how it ends.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { binary, coldHearth, sharedHearth, startHearth, stoppedHearth, until } from './harness.mjs';

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const shared = sharedHearth(), sharedStopped = sharedHearth({}, stoppedHearth);
const own = [
    ['offline', (t) => stoppedHearth({ t })],
    ['online', (t) => startHearth({ t })],
];
const common = [['offline', sharedStopped], ['online', shared]];

// On a Hearth of each test's own, or `common` ones: those tests look at no whole list.
function both(name, run, forms = own) {
    for (const [form, make] of forms)
        test(`${name} (${form})`, async (t) => run(await make(t), form));
}

async function fails(h, code, said, ...args) {
    const result = await h.cli(...args);
    assert.equal(result.code, code, `${args.join(' ')}: ${result.stdout}${result.stderr}`);
    assert.match(result.stderr, said);
    assert.match(result.stderr, /^hearth: \S/);
    assert.equal(result.stdout, '');
}

async function says(h, said, ...args) {
    const result = await h.cli(...args);
    assert.equal(result.code, 0, `${args.join(' ')}: ${result.stderr}`);
    assert.match(result.stdout, said);
    return result.stdout;
}

both('keys are made, listed and revoked', async (h) => {
    assert.deepEqual(await h.cliJson('key', 'list'), []);
    await says(h, /no developer keys/, 'key', 'list');
    const made = await h.cliJson('key', 'new', '--name', 'for tests');
    assert.deepEqual(Object.keys(made).sort(), ['id', 'key']);
    assert.match(made.id, uuid);
    const plain = await h.cli('key', 'new');
    assert.match(plain.stdout, /^hearth_\S+\n$/);
    const listed = await h.cliJson('key', 'list');
    assert.equal(listed.length, 2);
    const mine = listed.find((key) => key.id === made.id);
    assert.equal(mine.name, 'for tests');
    assert.equal(mine.last4, made.key.slice(-4));
    assert.ok(!JSON.stringify(listed).includes(made.key), 'a key is shown once');
    await says(h, new RegExp(`ID .*NAME.*\n.*${made.id} +for tests`, 's'), 'key', 'list');
    await says(h, /is revoked/, 'key', 'revoke', made.id);
    assert.ok((await h.cliJson('key', 'list')).find((key) => key.id === made.id).revoked_at);
    await fails(h, 1, /key/, 'key', 'revoke', '00000000-0000-4000-8000-000000000000');
});

both('a key that was made elsewhere is tied to an app', async (h) => {
    const { app_id: id } = await h.cliJson('app', 'add', h.file('reader.json', { name: 'reader', config: { command: 'true' } }));
    const key = 'ABCDEFG-0123456-hijklmn';
    await says(h, /^The key that ends in klmn stands for the app reader: it may what reader was granted, and nothing else\./, 'key', 'import', 'reader', { input: `${key}\n` });
    const again = await h.cliJson('key', 'import', id, '--name', 'published', { input: key });
    assert.deepEqual({ ...again, id: 0 }, { id: 0, last4: 'klmn', app_id: id, app: 'reader' });
    const [listed] = await h.cliJson('key', 'list');
    assert.deepEqual([listed.id, listed.name, listed.app, listed.may], [again.id, 'published', 'reader', 'what reader was granted']);
    await says(h, /published +klmn +what reader was granted/, 'key', 'list');
    await fails(h, 2, /nothing came/, 'key', 'import', 'reader', { input: '\n' });
    await fails(h, 1, /`key`/, 'key', 'import', 'reader', { input: 'short' });
    await fails(h, 1, /app/, 'key', 'import', 'nobody', { input: key });
    await says(h, /is revoked/, 'key', 'revoke', again.id);
});

both('apps are added, listed, shown and removed', async (h) => {
    await says(h, /No app is registered/, 'app', 'list');
    const file = h.file('demo.json', { name: 'demo', display_name: 'Demo', permissions: ['llm.chat'], config: { command: 'true' } });
    const made = await h.cliJson('app', 'add', file);
    assert.deepEqual(Object.keys(made).sort(), ['app_id', 'sandbox']);
    assert.match(made.sandbox, /sandbox/);
    assert.match(made.app_id, uuid);
    assert.deepEqual(await h.cliJson('app', 'add', file), made, 'the same name is the same app');
    const piped = await h.cli('app', 'add', '-', '--json', { input: '{"name":"piped"}' });
    assert.match(piped.json.app_id, uuid);
    const listed = await h.cliJson('app', 'list');
    assert.deepEqual(listed.map((app) => [app.name, app.status]).sort(), [['demo', 'stopped'], ['piped', 'stopped']]);
    await says(h, /NAME +STATUS[^]*demo +stopped +custom/, 'app', 'list');
    for (const by of ['demo', made.app_id])
        assert.equal((await h.cliJson('app', 'show', by)).app.app_id, made.app_id);
    await says(h, /display_name: +Demo[^]*Configuration:\n\{/, 'app', 'show', 'demo');
    await says(h, /removed/, 'app', 'remove', 'demo');
    await fails(h, 1, /no app (demo|nobody)\./, 'app', 'show', 'demo');
    await fails(h, 1, /no app (demo|nobody)\./, 'app', 'remove', 'demo');
});

both('a bad configuration is told with every error at once', async (h) => {
    const file = h.file('bad.json', { name: '', app_type: 'ruby', config: { working_dir: '/', args: 1, backend: { filter: 'bogus' } } });
    const result = await h.cli('app', 'add', file);
    assert.equal(result.code, 1);
    for (const field of ['name', 'app_type', 'config.args', 'config.backend.filter'])
        assert.ok(result.stderr.includes(`\`${field}\``), `${field} in ${result.stderr}`);
    await fails(h, 1, /JSON/, 'app', 'add', h.file('broken.json', '{"name":'));
    await fails(h, 1, /missing\.json/, 'app', 'add', 'missing.json');
}, common);

both('permissions are granted, denied, revoked and reset', async (h) => {
    const id = await h.app({ name: 'decided', permissions: ['llm.chat', 'mcp.tools'] });
    const decisions = async () => Object.fromEntries((await h.cliJson('permission', 'list', 'decided')).filter((one) => one.decision !== 'waiting')
        .map((grant) => [grant.permission, `${grant.decision} ${grant.scope}`]));
    await says(h, /may use llm\.chat/, 'permission', 'grant', 'decided', 'llm.chat');
    await says(h, /may use llm\.embed/, 'permission', 'grant', id, 'llm.embed', '--once');
    await says(h, /may use tts\.generate/, 'permission', 'grant', 'decided', 'tts.generate', '--until', '2999-01-01');
    await says(h, /may not use mcp\.tools/, 'permission', 'deny', 'decided', 'mcp.tools');
    assert.deepEqual(await decisions(), { 'llm.chat': 'allow always', 'llm.embed': 'allow once', 'tts.generate': 'allow until_date', 'mcp.tools': 'deny always' });
    await says(h, /decided +mcp\.tools +deny/, 'permission', 'list');
    await says(h, /taken back/, 'permission', 'revoke', 'decided', 'llm.chat');
    assert.equal((await decisions())['llm.chat'], undefined);
    await fails(h, 1, /llm\.chat|decided/, 'permission', 'revoke', 'decided', 'llm.chat');
    await says(h, /forgotten/, 'permission', 'reset', 'decided');
    assert.deepEqual(await decisions(), {});
    await fails(h, 1, /no app nobody\./, 'permission', 'grant', 'nobody', 'llm.chat');
    await fails(h, 1, /date|future|until/i, 'permission', 'grant', 'decided', 'llm.chat', '--until', '2001-01-01');
}, common);

both('several permissions are decided at once, or all that the app requests', async (h) => {
    await h.app({ name: 'several', permissions: ['llm.chat', 'llm.embed', 'vectors.read'] });
    const decisions = async () => (await h.cliJson('permission', 'list', 'several')).filter((one) => one.decision !== 'waiting').map((grant) => `${grant.permission} ${grant.decision}`).sort();
    await says(h, /^several may not use llm\.chat, llm\.embed\.\n$/, 'permission', 'deny', 'several', 'llm.chat', 'llm.embed');
    await fails(h, 1, /no permission llm\.chatt; did you mean llm\.chat\?/, 'permission', 'grant', 'several', 'vectors.read', 'llm.chatt');
    assert.deepEqual(await decisions(), ['llm.chat deny', 'llm.embed deny']);
    await says(h, /^several may use llm\.chat, llm\.embed, vectors\.read\.\n$/, 'permission', 'grant', 'several', '--requested');
    assert.deepEqual(await decisions(), ['llm.chat allow', 'llm.embed allow', 'vectors.read allow']);
    await fails(h, 2, /needs APP PERMISSION/, 'permission', 'grant', 'several');
    await fails(h, 2, /--requested needs no PERMISSION/, 'permission', 'grant', 'several', 'llm.chat', '--requested');
    await h.app({ name: 'modest' });
    await fails(h, 1, /modest declares no permission/, 'permission', 'grant', 'modest', '--requested');
}, common);

test('permission names lists what the service knows, with the words that the person reads', async (t) => {
    const h = await sharedStopped(t);
    const names = await h.cliJson('permission', 'names');
    assert.deepEqual(names.find(({ name }) => name === 'activities.read'), { name: 'activities.read', asks: 'read its activities', dangerous: false });
    assert.match((await h.cli('permission', 'names')).stdout, /^PERMISSION +THE APP WANTS TO +EVERY USE AUDITED\n[^]*\nmcp\.tools +run tools on this machine, which can be any program +yes\n/);
});

test('permission list shows what waits for an answer', async (t) => {
    const h = await startHearth({ t });
    await h.app({ name: 'demo', permissions: ['llm.chat'] });
    const pending = await h.cliJson('permission', 'list');
    assert.deepEqual(pending.map((question) => question.permission), ['llm.chat']);
    await says(h, /demo +llm\.chat +waiting/, 'permission', 'list');
    await says(h, /may use/, 'permission', 'grant', 'demo', 'llm.chat');
    assert.deepEqual((await h.cliJson('permission', 'list')).filter((one) => one.decision === 'waiting'), []);
});

both('agents are added, listed and removed', async (h) => {
    await says(h, /@agent +Agent/, 'agent', 'list');
    const file = h.file('agent.json', { name: 'sorter', display_name: 'Sorter', command: 'true' });
    const added = await h.cliJson('agent', 'add', file);
    assert.deepEqual({ ...added, sandbox: /sandbox/.test(added.sandbox) }, { name: 'sorter', sandbox: true });
    assert.deepEqual((await h.cliJson('agent', 'list')).map((agent) => agent.name), ['@agent', 'sorter']);
    await says(h, /sorter +Sorter/, 'agent', 'list');
    await says(h, /removed/, 'agent', 'remove', 'sorter');
    await fails(h, 1, /agent/, 'agent', 'remove', 'sorter');
    await fails(h, 1, /name/, 'agent', 'add', h.file('bad-agent.json', {}));
});

both('tasks are listed and shown', async (h) => {
    await says(h, /There are no tasks/, 'task', 'list');
    assert.deepEqual(await h.cliJson('task', 'list', '--status', 'failed', '--limit', '3'), []);
    await fails(h, 1, /task/i, 'task', 'show', '00000000-0000-4000-8000-000000000000');
    await fails(h, 1, /task/i, 'task', 'replay', '00000000-0000-4000-8000-000000000000');
    await fails(h, 1, /limit/, 'task', 'list', '--limit', 'many');
});

both('settings are shown, kept and removed', async (h) => {
    const settings = await h.cliJson('settings');
    const sweep = settings.find((setting) => setting.key === 'tasks.sweep_s');
    assert.deepEqual([sweep.value, sweep.origin, sweep.default], ['60', 'default', '60']);
    await says(h, /KEY +VALUE +FROM[^]*tasks\.sweep_s +60 +default/, 'settings');
    await says(h, /^60 \(default\)\n$/, 'settings', 'tasks.sweep_s');
    await says(h, /tasks\.sweep_s is 90/, 'settings', 'set', 'tasks.sweep_s', '90');
    await says(h, /^90 \(database\)\n$/, 'settings', 'tasks.sweep_s');
    await says(h, /no longer/, 'settings', 'unset', 'tasks.sweep_s');
    await says(h, /^60 \(default\)\n$/, 'settings', 'tasks.sweep_s');
    await fails(h, 2, /no\.such/, 'settings', 'no.such');
    await fails(h, 2, /no\.such/, 'settings', 'set', 'no.such', '1');
    await fails(h, 2, /tasks\.sweep_s/, 'settings', 'set', 'tasks.sweep_s', 'soon');
    await says(h, /^60 \(default\)\n$/, 'settings', 'tasks.sweep_s');
});

both('the audit log is listed and verified', async (h) => {
    const { id } = await h.cliJson('key', 'new');
    const [newest] = await h.cliJson('audit', 'list', '--limit', '1');
    assert.deepEqual([newest.action, newest.subject], ['key.new', id]);
    await says(h, /key\.new/, 'audit', 'list');
    await says(h, /is whole: 1 entries/, 'audit', 'verify');
    assert.equal((await h.cliJson('audit', 'verify')).whole, true);
});

both('doctor checks everything', async (h, form) => {
    const checks = await h.cliJson('doctor');
    for (const name of ['folder', 'disk', 'store', 'backend', 'audit', 'network', 'tasks', 'permissions'])
        assert.equal(checks.find((check) => check.name === name)?.ok, true, name);
    assert.match(checks.find((check) => check.name === 'network').text, form === 'online' ? /answers at http/ : /no service runs/);
    await says(h, /ok +store .*\n[^]*Everything is in order/, 'doctor');
    await h.agent({ name: 'nobody', command: 'true' });
    await h.app({ name: 'broken', config: { command: 'no-such-program', agentHandlers: [{ tableName: 'svc_activities', agentId: 'nobody', eventTypes: ['INSERT'] }] } });
    await says(h, /removed/, 'agent', 'remove', 'nobody', '--force');
    const result = await h.cli('doctor');
    assert.equal(result.code, 1);
    assert.match(result.stdout, /FAIL +app +broken: .*no-such-program/);
    assert.match(result.stdout, /FAIL +handler .*nobody/);
    assert.match(result.stdout, /-> .*hearth agent add/);
});

both('routes and the description of the API are printed', async (h) => {
    const routes = await h.cliJson('routes');
    assert.ok(routes.some((route) => route.method === 'GET' && route.path === '/sdk/ping'));
    assert.ok(routes.every((route) => route.permission && route.summary));
    await says(h, /METHOD +PATH[^]*GET +\/healthz +public/, 'routes');
    const { json, code } = await h.cli('openapi');
    assert.equal(code, 0);
    assert.match(json.openapi, /^3\.1/);
    assert.ok(json.paths['/sdk/ping']);
}, common);

test('what only a running service can do is refused without one', async (t) => {
    const h = coldHearth({ t });
    await h.app({ name: 'demo', config: { command: 'true' } });
    for (const args of [['app', 'start', 'demo'], ['app', 'stop', 'demo'], ['app', 'restart', 'demo'], ['app', 'logs', 'demo'], ['open'],
        ['task', 'run', '00000000-0000-4000-8000-000000000000']])
        await fails(h, 1, /No service runs .*hearth serve/, ...args);
});

test('open prints a link that signs a browser in once', async (t) => {
    const h = await shared(t);
    const printed = await says(h, new RegExp(`^${h.url}/\\S+token=\\S+\n$`), 'open');
    const first = await h.api('GET', printed.trim().slice(h.url.length));
    assert.equal(first.status, 303);
    assert.match(first.headers['set-cookie'][0], /HttpOnly; SameSite=Strict/);
    const again = await h.api('GET', printed.trim().slice(h.url.length));
    assert.equal(again.status, 403);
    assert.match((await h.cliJson('open')).url, /token=/);
});

test('open hands xdg-open a private page that goes on to the link when there is a display, and needs neither', async (t) => {
    const h = await startHearth({ t });
    const seen = join(h.home, 'seen');
    const bin = join(h.home, 'bin');
    mkdirSync(bin);
    writeFileSync(join(bin, 'xdg-open'), `#!/bin/sh\necho "$1" > '${seen}.part' && mv '${seen}.part' '${seen}'\n`, { mode: 0o755 });
    const PATH = `${bin}:${h.env.PATH}`;
    assert.equal((await h.cli('open', { env: { PATH } })).code, 0);
    const { stdout } = await h.cli('open', { env: { PATH, DISPLAY: ':99' } });
    await until(() => existsSync(seen), { what: 'xdg-open was called' });
    const page = readFileSync(seen, 'utf8').trim();
    assert.ok(!page.includes('token'), 'the link is no argument that others can read');
    assert.equal(statSync(page).mode & 0o777, 0o600);
    assert.ok(readFileSync(page, 'utf8').includes(`url=${stdout.trim()}"`));
    assert.equal((await h.cli('open', { env: { PATH: '/nowhere', DISPLAY: ':99' } })).code, 0);
});

test('the data folder is found by HEARTH_DATA, else below XDG_DATA_HOME', async (t) => {
    const h = coldHearth({ t });
    const run = (env) => spawnSync(binary, ['key', 'new'], { env: { ...h.env, ...env }, encoding: 'utf8' });
    assert.equal(run({ HEARTH_DATA: join(h.home, 'by-variable'), XDG_DATA_HOME: join(h.home, 'xdg') }).status, 0);
    assert.ok(existsSync(join(h.home, 'by-variable', 'hearth.db')));
    assert.equal(run({ XDG_DATA_HOME: join(h.home, 'xdg') }).status, 0);
    assert.ok(existsSync(join(h.home, 'xdg', 'hearth', 'hearth.db')));
});

test('commands at the same time on one folder wait for each other', async (t) => {
    const h = coldHearth({ t });
    const made = await Promise.all(Array.from({ length: 6 }, () => h.cliJson('key', 'new')));
    assert.equal(new Set(made.map((key) => key.id)).size, 6);
    assert.equal((await h.cliJson('key', 'list')).length, 6);
});

test('what is written offline is there when the service runs, and the other way round', async (t) => {
    const h = coldHearth({ t });
    const { key } = await h.cliJson('key', 'new');
    const id = await h.app({ name: 'demo' }, ['llm.chat']);
    const running = await startHearth({ t, dataDir: h.dataDir });
    assert.equal((await running.api('GET', '/sdk/ping', undefined, { 'x-api-key': key })).body.mode, 'development');
    assert.equal((await running.api('GET', '/sdk/ping', undefined, { 'x-app-id': id })).body.mode, 'production');
    await running.cli('app', 'remove', 'demo');
    await running.terminate();
    assert.deepEqual(await h.cliJson('app', 'list'), []);
});

test('a key that is revoked by the command line is refused at once', async (t) => {
    const h = await shared(t);
    const { id, key } = await h.cliJson('key', 'new');
    const ping = () => h.api('GET', '/sdk/ping', undefined, { 'x-api-key': key });
    assert.equal((await ping()).status, 200);
    await h.cli('key', 'revoke', id);
    assert.equal((await ping()).status, 401);
});
