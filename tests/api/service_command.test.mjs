// hearth service: install, start, stop, status, uninstall, without a systemd user manager and with a real one; what the service tells its manager.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import {
    chmodSync, chownSync, copyFileSync, existsSync, lstatSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, symlinkSync, writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { Arrivals, binary, runProgram, startHearth, until } from './harness.mjs';
import { isAlive } from './kit.mjs';
import { needsManager, startManager } from './systemd.mjs';

const isRoot = process.getuid() === 0;
const needsRoot = isRoot ? false : 'only root can give files to another user';
const needsValidator = spawnSync('desktop-file-validate', ['--help']).status === 0 ? false : 'desktop-file-validate is not installed';
const awkward = `a% b$c"d'e=f\`g\\t $HOME`;

// A home, a data folder with a free port, and no manager unless one is given: the tester's own is never asked.
function makeHome(t, { name = 'data', program = binary } = {}) {
    const home = mkdtempSync(join(tmpdir(), 'hearth-home-'));
    const data = join(home, name);
    mkdirSync(data, { mode: 0o700 });
    mkdirSync(join(home, 'nowhere'), { mode: 0o700 });
    writeFileSync(join(data, 'hearth.conf'), 'http.listen = 127.0.0.1:0\n', { mode: 0o600 });
    const env = { PATH: process.env.PATH, HOME: home, XDG_RUNTIME_DIR: join(home, 'nowhere'), HEARTH_LLM_FIND_LOCAL: 'false' };
    const h = {
        home, data, env, program,
        unit: join(home, '.config/systemd/user/hearth.service'),
        wants: join(home, '.config/systemd/user/default.target.wants/hearth.service'),
        entry: join(home, '.config/autostart/hearth.desktop'),
        run: (file, args, options) => runProgram(file, args, { ...options, env: { ...env, ...options?.env } }),
        async service(...args) {
            const options = typeof args.at(-1) === 'object' ? args.pop() : {};
            return h.run(h.program, ['service', ...args, '--data', h.data], options);
        },
        async json(...args) {
            const result = await h.service(...args, '--json');
            assert.ok(result.json, `service ${args.join(' ')}: ${result.stderr}${result.stdout}`);
            return { ...result.json, code: result.code };
        },
    };
    t.after(async () => {
        await h.service('stop');
        rmSync(home, { recursive: true, force: true });
    });
    return h;
}

// The words of an Exec value as the Desktop Entry Specification reads them: escapes of the string, then quotes, then field codes.
function wordsOfExec(text) {
    const line = text.match(/^Exec=(.*)$/m)[1].replaceAll('\\\\', '\\');
    return [...line.matchAll(/"((?:\\.|[^"\\])*)"|(\S+)/g)].map(([, quoted, plain]) => (quoted?.replace(/\\(["`$\\])/g, '$1') ?? plain).replaceAll('%%', '%'));
}

// --- without a systemd user manager ---

test('without a user manager, install writes an autostart entry and starts the service in the background', { skip: needsValidator }, async (t) => {
    const h = makeHome(t);
    const made = await h.json('install');
    assert.equal(made.code, 0);
    assert.deepEqual([made.running, made.installed, made.enabled, made.file], [true, 'autostart', true, h.entry]);
    assert.match(made.notes.join('\n'), /No systemd user manager answers[^]*loginctl enable-linger/);
    assert.match(made.notes.join('\n'), /HEARTH_LLM_FIND_LOCAL/, 'variables of the shell are named');
    assert.equal((await (await fetch(`${made.url}/healthz`)).json()).version, made.version);
    assert.equal(Number(readFileSync(`/proc/${made.pid}/stat`, 'utf8').split(') ')[1].split(' ')[3]), made.pid, 'it leads a session of its own');
    assert.match(readFileSync(made.log, 'utf8'), /^hearth: listening on http/m);
    assert.equal(statSync(made.log).mode & 0o777, 0o600);
    const validated = await h.run('desktop-file-validate', [h.entry]);
    assert.deepEqual([validated.code, validated.stdout], [0, '']);
    assert.deepEqual(wordsOfExec(readFileSync(h.entry, 'utf8')), [binary, 'service', 'start', '--data', h.data]);
});

test('each command may be repeated: the second one changes nothing', async (t) => {
    const h = makeHome(t);
    const first = await h.json('install');
    const { mtimeMs } = statSync(h.entry);
    const again = await h.json('install');
    assert.deepEqual([again.code, again.pid, statSync(h.entry).mtimeMs], [0, first.pid, mtimeMs]);
    assert.equal((await h.json('start')).pid, first.pid);
    assert.equal((await h.json('status')).code, 0);
    for (let i = 0; i < 2; i++) {
        const stopped = await h.json('stop');
        assert.deepEqual([stopped.code, stopped.running, stopped.installed], [0, false, 'autostart']);
    }
    assert.equal(isAlive(first.pid), false);
    assert.equal((await h.json('status')).code, 3);
    const started = await h.json('start');
    assert.ok(started.running && started.pid !== first.pid);
    for (let i = 0; i < 2; i++) {
        const gone = await h.json('uninstall');
        assert.deepEqual([gone.code, gone.running, gone.installed], [0, false, null]);
    }
    assert.equal(existsSync(h.entry), false);
    assert.ok(existsSync(join(h.data, 'hearth.db')), 'the data stays');
    const missing = await h.service('start');
    assert.equal(missing.code, 1);
    assert.match(missing.stderr, /hearth service install/);
});

test('an entry names awkward paths so that its words are the paths again', { skip: needsValidator }, async (t) => {
    const h = makeHome(t, { name: awkward });
    h.program = join(h.home, `${awkward}.program`);
    copyFileSync(binary, h.program);
    chmodSync(h.program, 0o755);
    assert.equal((await h.json('install')).code, 0);
    const text = readFileSync(h.entry, 'utf8');
    const validated = await h.run('desktop-file-validate', [h.entry]);
    assert.deepEqual([validated.code, validated.stdout], [0, '']);
    await h.json('stop');
    const [program, ...args] = wordsOfExec(text);
    assert.equal((await h.run(program, args)).code, 0);
    assert.equal((await h.json('status')).running, true, 'what the desktop runs starts the service');
});

test('a path with control characters is refused', async (t) => {
    const h = makeHome(t, { name: 'a\nb' });
    const refused = await h.service('install');
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /control characters/);
    assert.equal(existsSync(h.entry), false);
});

const keepers = [
    ['a person changed', (h) => writeFileSync(h.entry, `${readFileSync(h.entry, 'utf8')}# mine\n`), /was changed/],
    ['somebody else made', (h) => writeFileSync(h.entry, '[Desktop Entry]\nType=Application\nName=Mine\nExec=true\n'), /was not written by/],
    ['is a symbolic link', (h) => {
        writeFileSync(join(h.home, 'victim'), readFileSync(h.entry));
        rmSync(h.entry);
        symlinkSync(join(h.home, 'victim'), h.entry);
    }, /is a symbolic link/],
];

for (const [what, plant, said] of keepers)
    test(`a file that ${what} is told and kept, unless --force`, async (t) => {
        const h = makeHome(t);
        assert.equal((await h.json('install')).code, 0);
        await h.json('stop');
        plant(h);
        const [before, victim] = [readFileSync(h.entry, 'utf8'), join(h.home, 'victim')];
        const refused = await h.service('install');
        assert.equal(refused.code, 1);
        assert.match(refused.stderr, said);
        assert.match(refused.stderr, /--force/);
        const kept = await h.json('uninstall');
        assert.equal(kept.code, 1);
        assert.match(kept.notes.join('\n'), said);
        assert.equal(readFileSync(h.entry, 'utf8'), before);
        assert.equal((await h.json('install', '--force')).code, 0);
        assert.ok(lstatSync(h.entry).isFile());
        plant(h);
        assert.equal((await h.json('uninstall', '--force')).code, 0);
        assert.equal(existsSync(h.entry), false);
        if (existsSync(victim))
            assert.equal(readFileSync(victim, 'utf8').startsWith('# hearth-service'), true, 'the file behind the link stays');
    });

test('an installed service belongs to its data folder: with another one, install, start and uninstall say so', async (t) => {
    const h = makeHome(t);
    const first = await h.json('install');
    const other = { ...h.env };
    const elsewhere = join(h.home, 'other');
    for (const command of ['install', 'start']) {
        const refused = await h.run(h.program, ['service', command, '--data', elsewhere], { env: other });
        assert.equal(refused.code, 1, command);
        assert.ok(refused.stderr.includes(h.data), refused.stderr);
    }
    const kept = await h.run(h.program, ['service', 'uninstall', '--data', elsewhere, '--json']);
    assert.deepEqual([kept.code, kept.json.installed], [1, null]);
    assert.equal((await h.run(h.program, ['service', 'stop', '--data', elsewhere, '--json'])).code, 0);
    assert.equal((await h.json('status')).pid, first.pid, 'the service of the first folder still runs');
    assert.equal(existsSync(elsewhere), false);
});

test('a start that fails ends with the reason out of the log', async (t) => {
    const h = makeHome(t);
    writeFileSync(join(h.data, 'hearth.conf'), 'no.such = 1\n', { mode: 0o600 });
    const failed = await h.service('install');
    assert.equal(failed.code, 1);
    assert.match(failed.stderr, /hearth\.log: hearth: .*there is no setting no\.such/);
});

test('a large log is kept once, as hearth.log.1', async (t) => {
    const h = makeHome(t);
    writeFileSync(join(h.data, 'hearth.log'), Buffer.alloc((10 << 20) + 1), { mode: 0o600 });
    assert.equal((await h.json('install')).code, 0);
    assert.equal(statSync(join(h.data, 'hearth.log.1')).size, (10 << 20) + 1);
    assert.ok(statSync(join(h.data, 'hearth.log')).size < 10 << 20);
});

test('stop ends the service that runs in a terminal, of this folder only', async (t) => {
    const [one, two] = [await startHearth({ t }), await startHearth({ t })];
    const env = { XDG_RUNTIME_DIR: one.home };
    const status = await one.cli('service', 'status', '--json', { env });
    assert.deepEqual([status.code, status.json.pid, status.json.installed, status.json.url], [0, one.pid, null, one.url]);
    const stopped = await one.cli('service', 'stop', { env });
    assert.equal(stopped.code, 0, stopped.stderr);
    assert.deepEqual(await one.exited(), { code: 0, signal: null });
    assert.equal((await two.api('GET', '/healthz')).status, 200);
});

test('a process that only holds the folder is never ended', async (t) => {
    const h = makeHome(t);
    const holder = spawn('flock', [join(h.data, 'hearth.lock'), '-c', 'echo held; exec sleep 1000'], { stdio: ['ignore', 'pipe', 'ignore'], detached: true });
    t.after(() => process.kill(-holder.pid, 'SIGKILL'));
    await new Promise((done) => holder.stdout.once('data', done));
    writeFileSync(join(h.data, 'hearth.lock'), `${holder.pid}\n`);
    const refused = await h.service('stop');
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, new RegExp(`process ${holder.pid} holds the data folder`));
    assert.ok(isAlive(holder.pid));
});

test('files and folders of another user are left alone', { skip: needsRoot }, async (t) => {
    const h = makeHome(t);
    assert.equal((await h.json('install')).code, 0);
    await h.json('stop');
    chownSync(h.entry, 65534, 65534);
    const refused = await h.service('install');
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /belongs to another user \(uid 65534\)/);
    rmSync(h.entry);
    chownSync(dirname(h.entry), 65534, 65534);
    const denied = await h.service('install');
    assert.equal(denied.code, 1);
    assert.match(denied.stderr, /autostart belongs to another user \(uid 65534\)[^]*without sudo/);
    assert.deepEqual(readdirSync(dirname(h.entry)), []);
});

test('without HOME, XDG_CONFIG_HOME says where; without both and without an account, a sentence does', { skip: needsRoot }, async (t) => {
    const h = makeHome(t);
    const env = { PATH: h.env.PATH, XDG_RUNTIME_DIR: h.env.XDG_RUNTIME_DIR, XDG_CONFIG_HOME: join(h.home, 'config') };
    const made = await runProgram(h.program, ['service', 'install', '--data', h.data, '--json'], { env });
    assert.equal(made.json?.file, join(h.home, 'config/autostart/hearth.desktop'), made.stderr);
    await h.json('stop');
    chmodSync(h.home, 0o755);
    const nobody = await runProgram(h.program, ['service', 'status', '--data', '/nowhere'], { env: { PATH: h.env.PATH }, uid: 61235, gid: 61235 });
    assert.equal(nobody.code, 1);
    assert.match(nobody.stderr, /There is no home folder/);
});

// --- a stand-in for systemctl ---

function standIn(h, script) {
    const folder = join(h.home, 'bin');
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'systemctl'), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
    h.env.PATH = `${folder}:${h.env.PATH}`;
}

test('a machine without systemctl, and a session without a manager, get the autostart entry and are told why', async (t) => {
    const h = makeHome(t);
    standIn(h, 'echo "Failed to connect to bus: No medium found" >&2; exit 1');
    assert.match((await h.json('install')).notes.join('\n'), /No medium found[^]*not by sudo or su/);
    await h.json('uninstall');
    const none = makeHome(t);
    none.env.PATH = join(none.home, 'nowhere');
    assert.match((await none.json('install')).notes.join('\n'), /systemctl was not found on PATH/);
});

test('what systemctl says about a failure is shown, and controls no terminal', async (t) => {
    const h = makeHome(t);
    standIn(h, `case "$*" in *Version*) ;; *FragmentPath*) echo FragmentPath=/x ;; *start*) printf 'no \\033[31mway\\n' >&2; exit 1 ;; esac`);
    const failed = await h.service('install');
    assert.equal(failed.code, 1);
    assert.match(failed.stderr, /systemctl --user start hearth\.service` failed: no \\u001b\[31mway/i);
    assert.ok(!failed.stderr.includes('\x1b'));
});

test('a unit in a folder that the manager does not see is told', async (t) => {
    const h = makeHome(t);
    standIn(h, 'case "$*" in *FragmentPath*) echo FragmentPath= ;; esac');
    const failed = await h.service('install');
    assert.equal(failed.code, 1);
    assert.match(failed.stderr, /does not look into the folder of .*hearth\.service/);
});

// --- a real systemd user manager ---

function managed(h, manager) {
    h.run = (file, args, options) => manager.run(file, args, { ...options, env: { ...h.env, ...manager.env, ...options?.env } });
}

test('with systemd: installed from awkward paths, verified, enabled, ready, restarted after a crash, stopped, removed', { skip: needsManager }, async (t) => {
    const h = makeHome(t, { name: awkward });
    h.program = join(h.home, `${awkward}.program`);
    copyFileSync(binary, h.program);
    chmodSync(h.program, 0o755);
    const manager = await startManager({ t, home: h.home });
    managed(h, manager);
    const made = await h.json('install');
    assert.deepEqual([made.code, made.installed, made.file, made.enabled, made.state], [0, 'systemd', h.unit, true, 'active']);
    assert.equal(await manager.show('MainPID'), String(made.pid));
    assert.equal(await manager.show('StatusText'), `listening on ${made.url}`, 'READY=1 came with the address');
    const verified = await manager.run('systemd-analyze', ['--user', 'verify', h.unit]);
    assert.deepEqual([verified.code, verified.stdout, verified.stderr], [0, '', '']);
    assert.equal((await h.json('install')).pid, made.pid);

    process.kill(made.pid, 'SIGKILL');
    const again = await until(async () => {
        const now = await h.json('status');
        return now.running && now.pid !== made.pid && now.state === 'active' && now;
    }, { what: 'the restart' });
    assert.equal(again.code, 0);

    const doctor = (await h.run(h.program, ['doctor', '--json', '--data', h.data])).json.find(({ name }) => name === 'sandbox');
    const plain = await startHearth({ t });
    const expected = (await plain.cli('doctor', '--json')).json.find(({ name }) => name === 'sandbox');
    assert.equal(doctor.ok, expected.ok, `the unit lets sandboxes work: ${doctor.text}`);

    const stopped = await h.json('stop');
    assert.deepEqual([stopped.code, stopped.running, stopped.state, stopped.enabled], [0, false, 'inactive', true]);
    assert.equal((await h.json('status')).code, 3);
    assert.equal((await h.json('start')).running, true);
    const gone = await h.json('uninstall');
    assert.deepEqual([gone.code, gone.running, gone.installed], [0, false, null]);
    assert.deepEqual([existsSync(h.unit), existsSync(h.wants)], [false, false]);
    assert.equal((await h.json('uninstall')).code, 0);
});

test('with systemd: a service that runs in a terminal is told, and replaced after stop and start', { skip: needsManager }, async (t) => {
    const h = makeHome(t);
    const manager = await startManager({ t, home: h.home });
    managed(h, manager);
    const other = await startHearth({ t, dataDir: h.data, listen: '127.0.0.1:0' });
    const made = await h.json('install');
    assert.deepEqual([made.code, made.pid, made.enabled], [0, other.pid, true]);
    assert.match(made.notes.join('\n'), new RegExp(`started otherwise \\(pid ${other.pid}\\)`));
    assert.equal((await h.json('stop')).running, false);
    const started = await h.json('start');
    assert.equal(await manager.show('MainPID'), String(started.pid));
    assert.equal((await h.json('uninstall')).code, 0);
});

test('with systemd: a bad setting fails the start with a sentence and is not tried again', { skip: needsManager }, async (t) => {
    const h = makeHome(t);
    const manager = await startManager({ t, home: h.home });
    managed(h, manager);
    writeFileSync(join(h.data, 'hearth.conf'), 'no.such = 1\n', { mode: 0o600 });
    const failed = await h.service('install');
    assert.equal(failed.code, 1);
    assert.match(failed.stderr, /systemctl --user start hearth\.service` failed/);
    assert.deepEqual([await manager.show('ActiveState'), await manager.show('NRestarts')], ['failed', '0']);
    assert.equal((await h.json('uninstall')).code, 0);
});

test('with systemd: the unit of the package is used where it runs this program, and never removed', { skip: needsManager }, async (t) => {
    const h = makeHome(t);
    h.data = join(h.home, '.local/share/hearth');
    mkdirSync(h.data, { recursive: true, mode: 0o700 });
    writeFileSync(join(h.data, 'hearth.conf'), 'http.listen = 127.0.0.1:0\n', { mode: 0o600 });
    const template = readFileSync(join(import.meta.dirname, '../../packaging/hearth.service.in'), 'utf8');
    const manager = await startManager({ t, home: h.home, packageUnit: template.replace('=@COMMAND@', `=${binary} serve`) });
    managed(h, manager);
    assert.equal((await h.json('status')).installed, null, 'it is there and not enabled');
    const made = await h.json('install');
    assert.deepEqual([made.code, made.installed, made.running, made.file], [0, 'package', true, '/usr/lib/systemd/user/hearth.service']);
    assert.equal(existsSync(h.unit), false);
    assert.equal((await h.json('stop')).running, false);
    const gone = await h.json('uninstall');
    assert.deepEqual([gone.code, gone.installed, existsSync(h.wants)], [0, null, false]);
    assert.equal(await manager.show('FragmentPath'), '/usr/lib/systemd/user/hearth.service');
});

// --- the manager is told ---

const receiver = `import os, socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
name = sys.argv[1]
s.bind("\\0" + name[1:] if name[0] == "@" else name)
print("bound", flush=True)
while True:
    print(s.recv(4096).decode().replace("\\n", " "), flush=True)`;

for (const kind of ['a path', 'an abstract name'])
    test(`NOTIFY_SOCKET with ${kind}: READY=1 when requests are answered, STOPPING=1 at the end`, async (t) => {
        const home = mkdtempSync(join(tmpdir(), 'hearth-notify-'));
        t.after(() => rmSync(home, { recursive: true }));
        const name = kind === 'a path' ? join(home, 'notify') : `@hearth-test-${process.pid}`;
        const child = spawn('python3', ['-c', receiver, name], { stdio: ['ignore', 'pipe', 'inherit'] });
        t.after(() => child.kill('SIGKILL'));
        const lines = new Arrivals();
        child.stdout.setEncoding('utf8').on('data', (piece) => piece.split('\n').filter(Boolean).forEach((line) => lines.push(line)));
        await lines.wait((line) => line === 'bound');
        const h = await startHearth({ t, env: { NOTIFY_SOCKET: name } });
        assert.equal(await lines.wait((line) => /READY/.test(line)), `READY=1 STATUS=listening on ${h.url}`);
        assert.equal((await h.api('GET', '/readyz')).status, 200);
        await h.terminate();
        await lines.wait((line) => line === 'STOPPING=1');
        assert.deepEqual(lines.items.map((line) => line.split('=')[0]), ['bound', 'READY', 'STOPPING']);
    });

test('a bad NOTIFY_SOCKET harms nothing and is logged', async (t) => {
    for (const name of ['relative', '/nowhere/notify', `@${'n'.repeat(300)}`]) {
        const h = await startHearth({ t, env: { NOTIFY_SOCKET: name } });
        await h.logged(/the manager that NOTIFY_SOCKET names was not told/);
        assert.equal((await h.api('GET', '/readyz')).status, 200);
    }
});
