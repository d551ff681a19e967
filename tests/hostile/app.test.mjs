// A hostile app and a hostile agent in the profiles standard and strict, under an ordinary user and under root: files, sockets, /proc, other
// processes, the kernel, the network, links, and what they leave behind (docs/security.md, "Child"). app_attacks.py is what runs inside.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { chmodSync, chownSync, copyFileSync, existsSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { test } from 'node:test';
import { startHearth, until } from '../api/harness.mjs';
import { admin, insert, isAlive, listeningApp, newApp, rowBecomes, shellAgent, tasksOfRow, taskBecomes, unique } from '../api/kit.mjs';
import { isRoot, needsRoot, serviceUid, startHearthAsUser } from './kit.mjs';

const attacks = resolve(import.meta.dirname, 'app_attacks.py');
const forkMost = 2048;                  // LIMIT_CHILD_TASKS

function canMakeNamespaces(uid) {
    const args = ['--unshare-user', '--unshare-pid', '--ro-bind', '/', '/', '--proc', '/proc', '/bin/true'];
    return spawnSync('bwrap', args, { uid, gid: uid, cwd: '/' }).status === 0;
}

const landlockAbi = spawnSync('/usr/bin/python3', ['-c', 'import ctypes; print(ctypes.CDLL(None).syscall(444, None, 0, 1))']).stdout.toString();
const kernel = readFileSync('/proc/sys/kernel/osrelease', 'utf8').split('.').map((part) => parseInt(part, 10));
const hasOwnPidMax = kernel[0] > 6 || (kernel[0] === 6 && kernel[1] >= 14);

// {start, uid, skip}: root can do what an ordinary user cannot, so both are tried where the test may choose.
const users = [
    { name: isRoot ? 'an ordinary user' : 'this user', start: startHearthAsUser, uid: isRoot ? serviceUid : process.getuid() },
    { name: 'root', start: startHearth, uid: 0, skip: isRoot ? false : needsRoot },
];

function give(path, uid) {
    if (isRoot)
        chownSync(path, uid, uid);
}

// A file in a folder of h.home, which is the person's home.
function put(h, name, uid) {
    const path = join(h.home, name);
    mkdirSync(resolve(path, '..'), { recursive: true });
    writeFileSync(path, 'secret of the person\n');
    [resolve(path, '..'), path].forEach((made) => give(made, uid));
    return path;
}

// What an ended run wrote; it is stored after the row.
function logOf(h, uuid) {
    return until(async () => (await taskBecomes(h, uuid, 'completed', 'failed')).log, { what: 'the log of the run' });
}

// A listener of the test's own process: 'abstract' name or TCP port.
async function listener(t, where) {
    const server = net.createServer((socket) => socket.destroy());
    await new Promise((done, failed) => server.on('error', failed).listen(where, done));
    t.after(() => server.close());
    return server.address();
}

// A service with the attacker's program on the desk and another app's folder beside the attacker's own.
async function stage(t, user, options) {
    const h = await user.start({ t, sandbox: 'standard', ...options });
    const program = join(h.desk, 'attacks.py');
    copyFileSync(attacks, program);
    give(program, user.uid);
    const other = await newApp(h, { config: { command: '/bin/sh', args: ['-c', 'echo private >{data_dir}/diary; sleep 600'] } });
    await admin(h, 'POST', `/api/apps/${other}/start`);
    const diary = join(h.dataDir, 'local-apps', other, 'diary');
    await until(() => existsSync(diary), { what: 'the other app has written' });
    return { h, program, other, diary };
}

async function attackFrom(t, user, { sandbox = {}, options = {}, nForks = 0 } = {}) {
    const { h, program, other, diary } = await stage(t, user, options);
    const name = unique('hostile');
    const sibling = (await admin(h, 'GET', `/api/apps/${other}`)).app.pid;
    const abstract = unique('hearth-hostile-');
    await listener(t, `\0${abstract}`);
    const files = [...['master.key', 'hearth.db', 'backend.db'].map((file) => join(h.dataDir, file)), diary, put(h, '.ssh/id_ed25519', user.uid), '/etc/shadow'];
    const attack = {
        files, folders: [h.dataDir, join(h.dataDir, 'local-apps', other), join(h.home, '.ssh'), '/home'],
        targets: [join(h.home, 'outside'), join(h.desk, 'outside'), '/usr/outside', '/etc/outside', '/outside', '/proc/sys/kernel/core_pattern', '/proc/sysrq-trigger'],
        pids: [h.pid, sibling, process.pid], socket: join(h.dataDir, 'hearth.sock'), abstract,
        other_port: (await listener(t, { port: 0, host: '127.0.0.1' })).port, service_port: h.port, own: join(h.dataDir, 'agents', name), fork_most: nForks,
    };
    const agent = await shellAgent(h, '', { name, command: '/usr/bin/python3', args: [program], env: { ATTACK: JSON.stringify(attack) }, sandbox: { read: [h.desk], ...sandbox } });
    const { call } = await listeningApp(h, agent);
    const { id } = await insert(call, { n: 1 });
    const row = await rowBecomes(call, id, 'completed', 'failed');
    assert.equal(row.status, 'completed', row.error_message);
    return { h, attack, got: row.result, other, name };
}

// Programs of PATH may lie in somebody's home, as in a clone of this project: then /home has the way to them.
const isWayThroughHome = process.env.PATH.split(':').some((folder) => folder.startsWith('/home/'));

// What both profiles promise, with namespaces.
function assertHeld({ h, attack, got }) {
    if (isWayThroughHome) {
        assert.equal(got['list /home'], 1, 'of /home there is nothing but the way to programs');
        delete got['list /home'];
    }
    const refused = (pattern) => Object.entries(got).filter(([name]) => pattern.test(name));
    assert.equal(got[`list ${h.dataDir}`], 1, 'of the data folder there is nothing but the way to its own folder');
    for (const [name, outcome] of refused(/^(read|list (?!.*\/data$)|signal|environ of \d|memory|descriptors of|root of|ptrace|process_vm)/))
        assert.ok(['ENOENT', 'ESRCH', 'EPERM', 'EACCES'].includes(outcome), `${name}: ${outcome}`);
    for (const [name, outcome] of refused(/^write (?!\/tmp\/)/))       // of /tmp it has one of its own
        assert.ok(['ENOENT', 'EACCES', 'EROFS', 'EPERM'].includes(outcome), `${name}: ${outcome}`);
    for (const call of ['user namespace', 'mount', 'bpf', 'io_uring', 'keyctl', 'perf', 'userfaultfd', 'setns', 'file handle', 'kexec', 'module', 'reboot',
        'personality', 'TIOCSTI'])
        assert.ok(['EPERM', 'ENOSYS'].includes(got[call]), `${call}: ${got[call]}`);
    assert.ok(got.processes <= 6, `it sees ${got.processes} processes`);
    assert.ok(['done', 'EPERM'].includes(got['kill the first process']), 'the kernel drops a signal to the first process of a namespace');
    assert.match(String(got['environ of the first process']), /EACCES|EPERM/);
    assert.match(got['unix socket'], /ENOENT|ECONNREFUSED/);
    assert.deepEqual([got.CapEff, got.CapPrm, got.CapBnd, got.NoNewPrivs, got.Seccomp], ['0', '0', '0', '1', '2']);
    assert.deepEqual(got.core, [0, 0]);
    assert.deepEqual(got.descriptors, [0, 1, 2]);
    assert.equal(got.service, 'HTTP/1.1 200 OK');
    assert.deepEqual([got['own folder'], got.home, got.tmp], ['done', 'done', 'done']);
    assert.ok(!existsSync('/tmp/mine') || statSync('/tmp/mine').mtimeMs < Date.now() - 3_600_000, '/tmp is private');
    assert.ok(attack.targets.slice(0, 5).every((path) => !existsSync(path)), 'nothing was written outside');
    assert.ok(isAlive(h.pid));
}

for (const user of users) {
    const skip = user.skip || (canMakeNamespaces(user.uid) ? false : 'this machine has no bubblewrap or no user namespaces');

    test(`in standard a hostile agent of ${user.name} reaches no file, socket, process or kernel call that is not its own`, { skip }, async (t) => {
        const attacked = await attackFrom(t, user);
        assertHeld(attacked);
        assert.equal(attacked.got['other port'], 'done', 'the network is on');
        if (Number(landlockAbi) >= 6)
            assert.equal(attacked.got['abstract socket'], 'EPERM');
    });

    test(`in strict a hostile agent of ${user.name} reaches the service's port and no other`, { skip }, async (t) => {
        const attacked = await attackFrom(t, user, { sandbox: { profile: 'strict' } });
        assertHeld(attacked);
        assert.match(attacked.got['other port'], /ECONNREFUSED|ENETUNREACH/);
        assert.match(attacked.got['abstract socket'], /ECONNREFUSED|EPERM/);
    });

    test(`a fork bomb of ${user.name} stays within its limit`, { skip: skip || (user.uid === 0 && !hasOwnPidMax && 'root has no limit of processes before Linux 6.14') },
        async (t) => {
            const { got } = await attackFrom(t, user, { nForks: forkMost + 100 });
            assert.ok(got.fork > 0 && got.fork <= forkMost, `${got.fork} processes`);
            assert.equal(got['fork ended'], 'EAGAIN');
        });
}

const skip = canMakeNamespaces(users[0].uid) ? false : 'this machine has no bubblewrap or no user namespaces';
const [{ start: startAsUser, uid }] = users;

test('a folder around the data folder shows everything but the service, and cannot be written', { skip }, async (t) => {
    const h = await startAsUser({ t, sandbox: 'standard' });
    put(h, 'letters/one', uid);
    const agent = await shellAgent(h, `cat ${h.home}/letters/one; ls -A ${h.dataDir}; cat ${h.dataDir}/master.key; echo x >${h.home}/letters/two; echo x >${h.dataDir}/y`,
        { sandbox: { read: [h.home] } });
    const { call } = await listeningApp(h, agent);
    const row = await rowBecomes(call, (await insert(call, {})).id, 'completed', 'failed');
    const [{ uuid }] = await tasksOfRow(h, row.id);
    const said = await logOf(h, uuid);
    assert.match(said, /stdout secret of the person/);
    assert.match(said, /master\.key: No such file/);
    assert.deepEqual(said.split('\n').filter((line) => /stdout (?!secret)/.test(line)).map((line) => line.split(' stdout ')[1]), ['agents']);
    assert.ok(!existsSync(join(h.home, 'letters/two')) && !existsSync(join(h.dataDir, 'y')));
});

test('the rows of other apps are covered where their database lies in a folder it may read', { skip }, async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'hearth-rows-'));
    t.after(() => rmSync(folder, { recursive: true, force: true }));
    give(folder, uid);
    const h = await startAsUser({ t, sandbox: 'standard', settings: { 'backend.file': join(folder, 'rows.db') } });
    const agent = await shellAgent(h, `cat ${folder}/rows.db ${folder}/rows.db-wal | wc -c`, { sandbox: { read: [folder] } });
    const { call } = await listeningApp(h, agent);
    assert.ok(statSync(join(folder, 'rows.db-wal')).size > 0);
    const row = await rowBecomes(call, (await insert(call, {})).id, 'completed', 'failed');
    assert.equal(row.result, 0);
});

test('a definition that asks for the folder of the service, for the machine or for a device is refused with the rule', async (t) => {
    const h = await startAsUser({ t, sandbox: 'standard' });
    const define = (sandbox) => h.socket('POST', '/api/agents', { name: unique('agent'), command: 'true', sandbox });
    for (const [sandbox, field] of [
        [{ read: [join(h.dataDir, 'local-apps')] }, 'sandbox.read[0]'], [{ write: [h.home] }, 'sandbox.write[0]'], [{ read: ['/'] }, 'sandbox.read[0]'],
        [{ read: ['/proc/1'] }, 'sandbox.read[0]'], [{ read: ['/home/../etc'] }, 'sandbox.read[0]'], [{ read: ['here'] }, 'sandbox.read[0]'],
        [{ profile: 'strict', network: true }, 'sandbox.network'], [{ profile: 'none', read: ['/srv'] }, 'sandbox.profile'], [{ profile: 'loose' }, 'sandbox.profile'],
        [{ read: Array(65).fill('/srv') }, 'sandbox.read'],
    ]) {
        const { status, body } = await define(sandbox);
        assert.equal(status, 400, JSON.stringify(sandbox));
        assert.deepEqual(body.errors.map((one) => one.field), [field]);
    }
    assert.equal((await define({ read: Array(64).fill('/srv') })).status, 201);
});

test('a link to the service in a named folder leads nowhere', { skip }, async (t) => {
    const h = await startAsUser({ t, sandbox: 'standard' });
    symlinkSync(h.dataDir, join(h.desk, 'way'));
    const agent = await shellAgent(h, 'true', { sandbox: { read: [join(h.desk, 'way')] } });
    const { call } = await listeningApp(h, agent);
    const row = await rowBecomes(call, (await insert(call, {})).id, 'completed', 'failed');
    assert.equal(row.status, 'failed');
    assert.match(row.error_message, /belongs to the service/);
});

test('links in the folder of an app are not followed when the app is removed with its data, nor when its home is made', { skip }, async (t) => {
    const h = await startAsUser({ t, sandbox: 'standard' });
    const treasure = put(h, 'treasure/kept', uid);
    const before = statSync(resolve(treasure, '..')).mode;
    const id = await newApp(h, { config: { command: '/bin/sh', args: ['-c', `cd {data_dir}; rmdir home; ln -s ${resolve(treasure, '..')} home; ln -s ${h.dataDir} all; ln -s ${treasure} one; touch ready; sleep 600`] } });
    await admin(h, 'POST', `/api/apps/${id}/start`);
    const own = join(h.dataDir, 'local-apps', id);
    await until(() => existsSync(join(own, 'ready')), { what: 'the links are made' });
    assert.ok(lstatSync(join(own, 'home')).isSymbolicLink());
    await admin(h, 'POST', `/api/apps/${id}/restart`);
    await admin(h, 'DELETE', `/api/apps/${id}?with_data=true`);
    assert.ok(!existsSync(own));
    assert.equal(readFileSync(treasure, 'utf8'), 'secret of the person\n');
    assert.equal(statSync(resolve(treasure, '..')).mode, before);
    assert.ok(existsSync(join(h.dataDir, 'master.key')));
});

test('variables of a definition reach the program and nothing that runs outside of its sandbox', { skip }, async (t) => {
    const h = await startAsUser({ t, sandbox: 'standard' });
    const agent = await shellAgent(h, 'echo "$LD_PRELOAD"', { env: { LD_PRELOAD: join(h.desk, 'evil.so'), GLIBC_TUNABLES: 'x=y' } });
    const { call } = await listeningApp(h, agent);
    const row = await rowBecomes(call, (await insert(call, {})).id, 'completed', 'failed');
    const [{ uuid }] = await tasksOfRow(h, row.id);
    const complaints = (await logOf(h, uuid)).split('\n').filter((line) => /cannot be preloaded/.test(line));
    assert.equal(complaints.length, 1, complaints.join('\n'));      // the loader of /bin/sh; bubblewrap's would be one more
});

// ---- nothing survives ----

function sleepers(seconds) {
    return readdirSync('/proc').filter((name) => /^\d+$/.test(name)).filter((pid) => {
        try {
            return readFileSync(`/proc/${pid}/cmdline`, 'utf8') === `sleep\0${seconds}\0` && isAlive(Number(pid));
        } catch {
            return false;
        }
    });
}

// Two generations away from the program, in a session of its own, with an empty environment; one that is deaf to SIGTERM costs the grace of a stop.
function daemon(seconds, isDeaf) { return `(setsid env -i /bin/sh -c "${isDeaf ? "trap '' TERM; " : ''}(sleep ${seconds} &) ; exec sleep ${seconds}" >/dev/null 2>&1 &)`; }

const levels = [
    { name: 'bubblewrap', sandbox: 'standard', settings: {}, isDeaf: true, skip },
    { name: 'Landlock', sandbox: 'standard', settings: { 'sandbox.bwrap': '/nonexistent/bwrap' } },
    { name: 'the profile none', sandbox: 'none', settings: {} },
];

for (const level of levels) {
    test(`with ${level.name} no daemon survives its program, a stop, or SIGKILL of the service`, { skip: level.skip }, async (t) => {
        const h = await startAsUser({ t, sandbox: level.sandbox, settings: level.settings });
        const seconds = randomInt(100_000, 9_999_999);
        const agent = await shellAgent(h, `${daemon(seconds, false)}; while [ -z "$(cat /proc/[0-9]*/cmdline 2>/dev/null | tr -d '\\0' | grep -a sleep${seconds})" ]; do :; done; exit 3`);
        const { call } = await listeningApp(h, agent);
        const row = await rowBecomes(call, (await insert(call, {})).id, 'completed', 'failed');
        assert.match(row.error_message, /code 3/);
        await until(() => sleepers(seconds).length === 0, { what: 'the daemon of the agent has ended' });

        const id = await newApp(h, { config: { command: '/bin/sh', args: ['-c', `${daemon(seconds, level.isDeaf)}; sleep 600`] } });
        const startApp = async () => {
            await admin(h, 'POST', `/api/apps/${id}/start`);
            await until(() => sleepers(seconds).length >= 2, { what: 'the daemon runs' });
        };
        await startApp();
        await admin(h, 'POST', `/api/apps/${id}/stop`);
        assert.deepEqual(sleepers(seconds), []);
        await startApp();
        await h.kill();
        await until(() => sleepers(seconds).length === 0, { what: 'the daemon ended with the service' });
    });
}

test('with Landlock alone files and processes are closed, and a folder around the data folder is refused', { skip: Number(landlockAbi) >= 1 ? false : 'this kernel has no Landlock' },
    async (t) => {
        const { h, got, attack } = await attackFrom(t, users[0], { options: { settings: { 'sandbox.bwrap': '/nonexistent/bwrap' } } });
        for (const path of [...attack.files, ...attack.folders])
            assert.match(String(got[`read ${path}`] ?? got[`list ${path}`]), /EACCES|ENOENT/, path);
        for (const path of attack.targets)
            assert.match(String(got[`write ${path}`]), /EACCES|EPERM|ENOENT|EROFS/, path);
        for (const call of ['user namespace', 'mount', 'bpf', 'keyctl', 'TIOCSTI', `ptrace ${h.pid}`, `process_vm_readv ${h.pid}`])
            assert.ok(['EPERM', 'ENOSYS'].includes(got[call]), `${call}: ${got[call]}`);
        assert.match(String(got[`environ of ${h.pid}`]), /EACCES|EPERM/);
        if (Number(landlockAbi) >= 6)
            assert.deepEqual([got[`signal ${h.pid}`], got['abstract socket']], ['EPERM', 'EPERM']);
        assert.match(got.administer, /closed|ECONNRESET|EPIPE/);
        assert.equal(got.service, 'HTTP/1.1 200 OK');
        assert.equal(got['own folder'], 'done');
        const agent = await shellAgent(h, 'true', { sandbox: { read: [h.home] } });
        const { call } = await listeningApp(h, agent);
        const row = await rowBecomes(call, (await insert(call, {})).id, 'completed', 'failed');
        assert.match(row.error_message, /only bubblewrap can hide that/);
    });

test('doctor says what the machine has and what is missing, and consent what the app may do', async (t) => {
    const h = await startAsUser({ t, sandbox: 'standard', settings: { 'sandbox.bwrap': '/nonexistent/bwrap' } });
    const { stdout } = await h.cli('doctor');
    assert.match(stdout, /FAIL +sandbox +no namespaces \(bubblewrap is not installed\)/);
    assert.match(stdout, /apt install bubblewrap/);
    const added = await h.cliJson('app', 'add', h.file('weak.json', JSON.stringify({ name: 'weak', permissions: ['activities.read'],
        config: { command: 'true', sandbox: { profile: 'none' } } })));
    assert.match(added.sandbox, /without a sandbox: may read, change and delete everything that you can/);
    const { pending } = await admin(h, 'GET', '/api/permissions/pending');
    assert.match(pending[0].sandbox, /without a sandbox/);
});
