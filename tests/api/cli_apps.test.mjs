// Local Apps through the command line of a running service: started, watched, logged, asked about.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { Arrivals, binary, sharedHearth, startHearth, until } from './harness.mjs';
import { scriptedProvider } from './scripted.mjs';

const shared = sharedHearth();
const shell = (script, more = {}) => ({ app_type: 'custom', ...more, config: { command: '/bin/sh', args: ['-c', script], ...more.config } });

const appOf = async (h, name) => (await h.cliJson('app', 'list')).find((app) => app.name === name);
const hasStatus = (h, name, status) => until(async () => (await appOf(h, name)).status === status, { what: `${name} is ${status}`, everyMs: 50 });

test('an app is started with its identity, logged and stopped', async (t) => {
    const h = await shared(t);
    const id = await h.app(shell('echo "I am $SVC_APP_ID on $SVC_PORT for $HEARTH_BASE_URL in $PWD"; echo oops >&2; exec sleep 100', { name: 'greeter' }));
    assert.match((await h.cli('app', 'start', 'greeter')).stdout, /^greeter is started\.\n$/);
    const app = await appOf(h, 'greeter');
    assert.equal(app.status, 'running');
    assert.ok(existsSync(`/proc/${app.pid}`));
    const text = await until(async () => {
        const { stdout } = await h.cli('app', 'logs', 'greeter');
        return /oops/.test(stdout) && /I am/.test(stdout) && stdout;
    }, { what: 'both lines of the log' });
    assert.match(text, new RegExp(`I am ${id} on ${app.port} for ${h.url} in ${join(h.dataDir, 'local-apps', id)}`));
    const lines = await h.cliJson('app', 'logs', 'greeter');
    assert.ok(lines.some((line) => line.stream === 'stderr' && line.text === 'oops'));
    assert.equal((await h.cliJson('app', 'logs', 'greeter', '-n', '1')).length, 1);
    assert.match((await h.cli('app', 'stop', 'greeter')).stdout, /stopped/);
    assert.equal((await appOf(h, 'greeter')).status, 'stopped');
    assert.ok(!existsSync(`/proc/${app.pid}`));
});

test('an app reaches the service with the identity it was given', async (t) => {
    const h = await shared(t);
    const script = `const r = await fetch(process.env.SERVER_URL + '/sdk/ping', { headers: { 'x-app-id': process.env.SVC_APP_ID } });
        console.log(JSON.stringify(await r.json()));`;
    const file = h.file('app.mjs', script);
    await h.app({ name: 'pinger', app_type: 'node', config: { command: file } });
    await h.cli('app', 'start', 'pinger');
    const line = await until(async () => (await h.cliJson('app', 'logs', 'pinger')).find((line) => line.text.startsWith('{')), { what: 'its line' });
    assert.equal(JSON.parse(line.text).mode, 'production');
    await hasStatus(h, 'pinger', 'stopped');
});

test('logs -f goes on with what the app writes', async (t) => {
    const h = await shared(t);
    const id = await h.app(shell('echo one; while [ ! -e go ]; do sleep 0.02; done; echo two; exec sleep 100', { name: 'talker' }));
    await h.cli('app', 'start', 'talker');
    const follower = spawn(binary, ['app', 'logs', 'talker', '-f', '--data', h.dataDir], { env: h.env, stdio: ['ignore', 'pipe', 'inherit'] });
    t.after(() => follower.kill('SIGKILL'));
    const seen = new Arrivals();
    follower.stdout.setEncoding('utf8').on('data', (piece) => piece.split('\n').forEach((line) => seen.push(line)));
    await seen.wait((line) => line.endsWith(' one'));
    spawnSync('touch', [join(h.dataDir, 'local-apps', id, 'go')]);
    await seen.wait((line) => line.endsWith(' two'));
});

test('a crash starts it again; too many are an error that says why', async (t) => {
    const h = await startHearth({ t, settings: { 'apps.restart_backoff_ms': 20, 'apps.restart_limit': 2 } });
    await h.app(shell('[ -e here ] && exec sleep 100; touch here; exit 3', { name: 'once' }));
    await h.app(shell('echo "no database" >&2; exit 3', { name: 'always' }));
    await h.cli('app', 'start', 'once');
    await h.cli('app', 'start', 'always');
    await until(async () => {
        const { status, n_restarts: n } = await appOf(h, 'once');
        return status === 'running' && n === 1;
    }, { what: 'once runs again', everyMs: 50 });
    await hasStatus(h, 'always', 'error');
    assert.match((await appOf(h, 'always')).message, /exit code 3.*no database.*3 times/);
    assert.match((await h.cli('app', 'logs', 'always')).stdout, /no database[^]*no database[^]*no database[^]*-- not started again/);
    const doctor = await h.cli('doctor');
    assert.equal(doctor.code, 1);
    assert.match(doctor.stdout, /FAIL +app +always/);
});

test('a missing interpreter is an error with a sentence for a person', async (t) => {
    const h = await shared(t);
    await h.app({ name: 'homeless', app_type: 'uvx', config: { args: ['datasette'], env: { PATH: '/nowhere' } } });
    const result = await h.cli('app', 'start', 'homeless');
    assert.equal(result.code, 1);
    assert.match(result.stderr, /uvx.*not found/);
    const app = await appOf(h, 'homeless');
    assert.equal(app.status, 'error');
    assert.match(app.message, /uvx/);
});

test('enabled apps start with the service and none outlives it', async (t) => {
    const h = await startHearth({ t });
    await h.app(shell('trap "" TERM; while :; do sleep 0.1; done', { name: 'stubborn', enabled: true }));
    await h.app(shell('exec sleep 100', { name: 'idle' }));
    await h.terminate();
    await h.start();
    await hasStatus(h, 'stubborn', 'running');
    const { pid } = await appOf(h, 'stubborn');
    assert.equal((await appOf(h, 'idle')).status, 'stopped');
    await h.terminate();
    assert.ok(!existsSync(`/proc/${pid}`));
});

test('a removed app is ended, its grants are gone, its data stays unless asked for', async (t) => {
    const h = await startHearth({ t });
    for (const [name, ...how] of [['kept'], ['gone', '--with-data']]) {
        const id = await h.app(shell('exec sleep 100', { name }), ['llm.chat']);
        await h.cli('app', 'start', name);
        const { pid } = await appOf(h, name);
        assert.equal((await h.cli('app', 'remove', name, ...how)).code, 0);
        assert.ok(!existsSync(`/proc/${pid}`));
        assert.equal(existsSync(join(h.dataDir, 'local-apps', id)), name === 'kept');
        assert.equal((await h.api('GET', '/sdk/ping', undefined, { 'x-app-id': id })).status, 401);
    }
    assert.deepEqual((await h.cliJson('permission', 'list')).filter((one) => one.decision !== 'waiting'), []);
});

test('a replaced configuration counts from the next start', async (t) => {
    const h = await shared(t);
    const id = await h.app(shell('echo first; exec sleep 100', { name: 'changing' }));
    await h.cli('app', 'start', 'changing');
    assert.equal(await h.app(shell('echo second; exec sleep 100', { name: 'changing' })), id);
    await h.cli('app', 'restart', 'changing');
    await until(async () => /first[^]*second/.test((await h.cli('app', 'logs', 'changing')).stdout), { what: 'both lines in one log' });
});

// --- asking in a terminal: script(1) of util-linux makes one ---

const hasTerminal = spawnSync('sh', ['-c', 'command -v script']).status === 0;

function watchInTerminal(t, h) {
    const command = `'${binary}' permission watch --data '${h.dataDir}'`;
    const child = spawn('script', ['-qefc', command, '/dev/null'], { env: { ...h.env, TERM: 'dumb' }, stdio: ['pipe', 'pipe', 'inherit'] });
    t.after(() => child.kill('SIGKILL'));
    let text = '';
    child.stdout.setEncoding('utf8').on('data', (piece) => { text += piece; });
    return {
        type: (line) => child.stdin.write(line),
        shows: (pattern) => until(() => text.match(pattern), { what: `the terminal shows ${pattern}, it shows ${text}` }),
    };
}

test('permission watch asks as requests come, and the waiting request goes on', { skip: !hasTerminal }, async (t) => {
    const h = await startHearth({ t });
    const id = await h.app({ name: 'demo', display_name: 'Demo' });
    const terminal = watchInTerminal(t, h);
    await terminal.shows(/Watching/);
    const ask = (permission) => h.api('POST', '/api/local-apps/request-permission', { app_id: id, permission });
    const chat = ask('llm.chat');
    await terminal.shows(/Demo wants to .*\(llm\.chat\)/);
    terminal.type('a\n');
    assert.equal((await chat).body.granted, true);
    await terminal.shows(/allowed always/);
    const tools = ask('mcp.tools');
    await terminal.shows(/\(mcp\.tools\)\. This can run any program/);
    terminal.type('d\n');
    assert.equal((await tools).body.granted, false);
    await terminal.shows(/denied/);
    const embed = ask('llm.embed');
    await terminal.shows(/\(llm\.embed\)/);
    terminal.type('yes\n');
    await terminal.shows(/please answer o, s, a or d/);
    terminal.type('\n');
    await terminal.shows(/put off/);
    await h.cli('permission', 'grant', 'demo', 'llm.embed', '--once');
    assert.equal((await embed).body.granted, true);
});

test('permission watch without a terminal refuses and says what to use', async (t) => {
    const h = await shared(t);
    const result = await h.cli('permission', 'watch');
    assert.equal(result.code, 1);
    assert.match(result.stderr, /terminal.*permission list/);
});

test('a grant until the app stops ends with it', async (t) => {
    const h = await shared(t);
    const id = await h.app(shell('exec sleep 100', { name: 'guest' }));
    await h.cli('app', 'start', 'guest');
    await h.grant(id, 'api.agents', '--until-stop');
    assert.equal((await h.asApp(id)('GET', '/agents')).status, 200);
    await h.cli('app', 'stop', 'guest');
    assert.equal((await h.asApp(id)('GET', '/agents')).status, 403);
});

test('the example with a model agent is registered, runs, and its messages are sorted by the model', async (t) => {
    const h = await startHearth({ t, settings: { 'tasks.sweep_s': 0.5, 'backend.poll_ms': 20 } });
    const root = join(import.meta.dirname, '../../examples/triage');
    const provider = await scriptedProvider(t, h);
    const added = await h.cli('agent', 'add', join(root, 'agent-model.json'));
    assert.equal(added.code, 0, added.stderr);
    assert.equal((await h.cli('app', 'add', join(root, 'app-model.json'))).code, 0);
    for (const permission of ['activities.read', 'activities.write'])
        assert.equal((await h.cli('permission', 'grant', 'triage-model', permission)).code, 0);
    assert.equal((await h.cli('app', 'start', 'triage-model')).code, 0);
    const first = await provider.next();
    assert.match(JSON.stringify(first.messages[0]), /help desk for the app/);
    assert.deepEqual(first.tools.map((tool) => tool.function.name), ['list_activities']);
    first.call(['list_activities', { limit: 20 }]);
    for (let n = 0; n < 6;) {
        const asked = await provider.next();
        asked.answer(JSON.stringify({ category: 'billing', urgency: 'normal', because: `message ${++n}`, like: null }));
    }
    const call = h.asApp((await h.cliJson('app', 'show', 'triage-model')).app.app_id);
    const rows = await until(async () => {
        const { body } = await call('GET', '/activities');
        return body.data.length === 6 && body.data.every((row) => row.status === 'completed') && body.data;
    }, { what: 'all messages are sorted' });
    assert.ok(rows.every((row) => row.result.data.category === 'billing'));
    assert.equal(rows.filter((row) => row.result.tools_used.includes('list_activities')).length, 1);
});

test('the example of the repository is registered and runs', async (t) => {
    const h = await shared(t);
    const root = join(import.meta.dirname, '../../examples/triage');
    assert.equal(JSON.parse(readFileSync(join(root, 'app.json'), 'utf8')).name, 'triage');
    assert.equal((await h.cli('agent', 'add', join(root, 'agent.json'))).code, 0);
    assert.equal((await h.cli('app', 'add', join(root, 'app.json'))).code, 0);
    assert.equal((await h.cli('app', 'start', 'triage')).code, 0);
    await hasStatus(h, 'triage', 'running');
});
