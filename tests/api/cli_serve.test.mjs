// hearth serve: how it begins, refuses and ends.
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { coldHearth, sharedHearth, startHearth, stoppedHearth, until } from './harness.mjs';

const shared = sharedHearth();

test('the first line says where it listens; it answers there and its data folder is private', async (t) => {
    const h = await shared(t);
    assert.equal((await h.api('GET', '/healthz')).status, 200);
    assert.equal(statSync(h.dataDir).mode & 0o777, 0o700);
    for (const name of readdirSync(h.dataDir).filter((name) => !statSync(join(h.dataDir, name)).isDirectory()))
        assert.equal(statSync(join(h.dataDir, name)).mode & 0o077, 0, `${name} can be read by others`);
});

test('the first start prints three next steps, a later one none', async (t) => {
    const h = await startHearth({ t });
    await h.outLines.wait((line) => /^ {2}3\. hearth app new NAME --lang python --data '/.test(line));
    assert.deepEqual(h.outLines.items.filter((line) => /^ {2}\d\. /.test(line)).length, 3);
    assert.match(h.outLines.items[2], /this is the first start here/);
    await h.terminate();
    await h.start();
    await h.terminate();
    assert.deepEqual(h.outLines.items.map((line) => line.split(' ')[1]), ['listening', 'data']);
});

test('an app that is registered before the first start does not take the next steps away', async (t) => {
    const h = await coldHearth({ t });
    assert.equal((await h.cli('key', 'new', '--name', 'early')).code, 0);
    await h.start();
    await h.outLines.wait((line) => /^ {2}1\. hearth provider add stand-in --data '/.test(line));
});

test('GET / is a page that says what to do next', async (t) => {
    const h = await shared(t);
    const reply = await h.api('GET', '/');
    assert.equal(reply.status, 200);
    assert.match(reply.headers['content-type'], /^text\/html/);
    assert.match(reply.headers['content-security-policy'], /default-src 'none'/);
    assert.match(reply.text, /<h1>Hearth is running<\/h1>[^]*hearth provider presets[^]*hearth app add FILE\.json/);
});

test('a second service on the folder refuses and names the first by its pid', async (t) => {
    const h = await shared(t);
    const second = await h.cli('serve', '--listen', '127.0.0.1:0');
    assert.equal(second.code, 1);
    assert.match(second.stderr, new RegExp(`pid ${h.pid}\\b`));
    assert.equal(second.stdout, '');
    assert.equal((await h.api('GET', '/healthz')).status, 200);
});

test('SIGTERM ends it with 0, takes the socket away and lets it start again', async (t) => {
    const h = await startHearth({ t });
    const key = await h.key();
    await h.terminate();
    assert.ok(!existsSync(join(h.dataDir, 'hearth.sock')));
    await h.start();
    const reply = await h.api('GET', '/sdk/ping', undefined, { authorization: `Bearer ${key}` });
    assert.equal(reply.body.mode, 'development');
});

test('SIGINT ends it as SIGTERM does', async (t) => {
    const h = await startHearth({ t });
    h.signal('SIGINT');
    assert.deepEqual(await h.exited(), { code: 0, signal: null });
});

test('a port that is taken is told', async (t) => {
    const h = await shared(t);
    const other = coldHearth({ t });
    const result = await other.cli('serve', '--listen', `127.0.0.1:${h.port}`);
    assert.equal(result.code, 1);
    assert.match(result.stderr, new RegExp(`${h.port}`));
});

const badSettings = [
    ['an unknown key', ['--set', 'no.such=1'], {}, /no\.such/],
    ['a bad value', ['--set', 'tasks.sweep_s=soon'], {}, /tasks\.sweep_s/],
    ['a bad log level', ['--log', 'loud'], {}, /log\.level/],
    ['a bad address', ['--listen', 'nowhere'], {}, /http\.listen/],
    ['an address others reach', ['--listen', '0.0.0.0:0'], {}, /allow_remote/],
    ['a bad variable', [], { HEARTH_TASKS_SWEEP_S: 'soon' }, /HEARTH_TASKS_SWEEP_S/],
    ['an unknown variable of a known group', [], { HEARTH_TASKS_FROBNICATE: '1' }, /HEARTH_TASKS_FROBNICATE/],
];

for (const [name, args, env, said] of badSettings)
    test(`${name} is exit 2 and names key and rule, for serve and for --check-config`, async (t) => {
        const h = coldHearth({ t, env });
        const listen = args.includes('--listen') ? [] : ['--listen', '127.0.0.1:0'];
        for (const more of [[], ['--check-config']]) {
            const result = await h.cli('serve', ...listen, ...args, ...more);
            assert.equal(result.code, 2, result.stderr + result.stdout);
            assert.match(result.stderr, said);
        }
    });

test('a settings file is read, and its errors name the line', async (t) => {
    const h = coldHearth({ t });
    const good = h.file('good.conf', '# comment\ntasks.sweep_s = 7\n');
    const bad = h.file('bad.conf', 'tasks.sweep_s = 7\nno.such = 1\n');
    assert.equal((await h.cli('serve', '--check-config', '--config', good)).stdout, 'configuration ok\n');
    const result = await h.cli('serve', '--check-config', '--config', bad);
    assert.equal(result.code, 2);
    assert.match(result.stderr, /bad\.conf:2/);
    assert.match(result.stderr, /no\.such/);
});

test('--check-config writes nothing, and works beside a running service', async (t) => {
    const cold = coldHearth({ t, isBare: true });
    assert.equal((await cold.cli('serve', '--check-config')).stdout, 'configuration ok\n');
    assert.ok(!existsSync(cold.dataDir));
    const h = await startHearth({ t });
    const before = readdirSync(h.dataDir).sort();
    const result = await h.cli('serve', '--check-config');
    assert.equal(result.code, 0, result.stderr);
    assert.deepEqual(readdirSync(h.dataDir).sort(), before);
});

test('a data folder that cannot be is refused', async (t) => {
    const h = coldHearth({ t, isBare: true });
    h.file('data', 'a file');
    for (const more of [['--check-config'], ['--listen', '127.0.0.1:0']]) {
        const result = await h.cli('serve', ...more);
        assert.equal(result.code, 1, result.stdout);
        assert.match(result.stderr, /folder/);
    }
});

test('a data folder deeper than a socket address can say serves its commands too', async (t) => {
    const outer = coldHearth({ t });
    const deep = join(outer.home, 'x'.repeat(100), 'data');
    mkdirSync(deep, { recursive: true, mode: 0o700 });
    const h = await startHearth({ t, dataDir: deep });
    assert.equal((await h.cliJson('key', 'new')).key.slice(0, 7), 'hearth_');
    assert.match((await h.cli('doctor')).stdout, /answers at http/);
    await h.terminate();
    assert.ok(!existsSync(join(deep, 'hearth.sock')));
});

test('the log can be JSON', async (t) => {
    const h = await startHearth({ t, args: ['--log-format', 'json', '--log', 'info'] });
    await h.cli('key', 'list');
    const line = await h.logged(/\/api\/keys/);
    const entry = JSON.parse(line);
    assert.equal(entry.level, 'info');
});

test('the database outranks the environment and a flag outranks the database', async (t) => {
    const h = await stoppedHearth({ t, env: { HEARTH_TASKS_SWEEP_S: '11' } });
    assert.equal((await h.cli('settings', 'tasks.sweep_s')).stdout, '11 (environment)\n');
    assert.equal((await h.cli('settings', 'set', 'tasks.sweep_s', '12')).code, 0);
    assert.equal((await h.cli('settings', 'tasks.sweep_s')).stdout, '12 (database)\n');
    const running = await startHearth({ t, dataDir: h.dataDir, env: { HEARTH_TASKS_SWEEP_S: '11' }, settings: { 'tasks.sweep_s': 13 } });
    assert.equal((await running.cli('settings', 'tasks.sweep_s')).stdout, '13 (flag)\n');
});

test('no app outlives a service that is killed', async (t) => {
    const h = await startHearth({ t });
    const id = await h.app({ app_type: 'custom', config: { command: '/bin/sh', args: ['-c', 'trap "" TERM; while :; do sleep 1; done'] } });
    await h.cli('app', 'start', id);
    const [{ pid }] = await h.cliJson('app', 'list');
    await h.kill();
    await until(() => !existsSync(`/proc/${pid}`) || /\) Z/.test(readStat(pid)), { what: 'the end of the app' });
    await h.start();
    assert.equal((await h.cliJson('app', 'list'))[0].status, 'stopped');
});

function readStat(pid) {
    try {
        return readFileSync(`/proc/${pid}/stat`, 'utf8');
    } catch {
        return ') Z';
    }
}
