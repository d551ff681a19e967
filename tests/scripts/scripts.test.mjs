// script/* in a copy of the tree (copy.mjs): what is installed, when, and what remains.
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { until } from '../api/harness.mjs';
import { Copy, root } from './copy.mjs';

const policyOf = (process) => `#!/bin/sh\n# made by script/bootstrap of Hearth, process ${process}\nexit 101\n`;

// exec: a shell between fork and exec swallows the signal that the test sends.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'])
    test(`bootstrap ended by ${signal} while apt works leaves no policy-rc.d`, async (t) => {
        const copy = new Copy(t);
        copy.standIn('apt-get', 'echo started >"$CALLS"; exec sleep 600');
        const { child, ended } = copy.start('script/bootstrap', ['build']);
        await until(() => copy.calls().length, { what: 'apt runs' });
        assert.ok(statSync(copy.policy).mode & 0o100, 'servers must not start while packages are installed');
        process.kill(-child.pid, signal);
        const { code, output } = await ended;
        assert.notEqual(code, 0, output);
        await until(() => !existsSync(copy.policy), { what: 'policy-rc.d is removed' });
        assert.ok(!existsSync(join(copy.tree, '.tools/stamps/build')), 'the group counts as installed');
    });

test('bootstrap removes its policy-rc.d after the installation, and one that a killed run left', async (t) => {
    const copy = new Copy(t);
    writeFileSync(copy.policy, policyOf(4_194_305));            // above the highest pid
    const { code, output } = await copy.run('script/bootstrap', ['build']);
    assert.equal(code, 0, output);
    assert.match(output, /removing .*policy-rc\.d, which an interrupted run left/);
    assert.ok(!existsSync(copy.policy));
    assert.match(copy.calls().join('\n'), /apt-get update\napt-get install -y .*libevent-dev/);
});

test('bootstrap removes a policy-rc.d that a killed run left also when nothing is to be installed', async (t) => {
    const copy = new Copy(t);
    await copy.run('script/bootstrap', ['build']);
    writeFileSync(copy.policy, policyOf(4_194_305));
    const { code, output } = await copy.run('script/bootstrap', ['build']);
    assert.equal(code, 0, output);
    assert.ok(!existsSync(copy.policy));
});

test("bootstrap leaves another's policy-rc.d alone", async (t) => {
    const copy = new Copy(t);
    writeFileSync(copy.policy, '#!/bin/sh\nexit 101\n');
    const { code, output } = await copy.run('script/bootstrap', ['build']);
    assert.equal(code, 0, output);
    assert.equal(readFileSync(copy.policy, 'utf8'), '#!/bin/sh\nexit 101\n');
});

test('bootstrap leaves the policy-rc.d of a run that works', async (t) => {
    const copy = new Copy(t);
    copy.standIn('apt-get', 'echo started >>"$CALLS"; exec sleep 600');
    const { child, ended } = copy.start('script/bootstrap', ['build']);
    let hasEnded = false;
    ended.then(() => {
        hasEnded = true;
    });
    t.after(() => hasEnded || process.kill(-child.pid, 'SIGKILL'));
    await until(() => copy.calls().length, { what: 'apt runs' });
    const other = copy.start('script/bootstrap', ['build']);
    await until(() => copy.calls().length === 2, { what: 'the second apt runs' });
    process.kill(-other.child.pid, 'SIGINT');
    await other.ended;
    assert.ok(existsSync(copy.policy));
    process.kill(-child.pid, 'SIGINT');
    await ended;
});

test('bootstrap says that it waits for another program that uses apt, once', async (t) => {
    const copy = new Copy(t);
    copy.standIn('apt-get', `echo "apt-get $*" >>"$CALLS"
        [ "$(wc -l <"$CALLS")" -gt 2 ] || { echo 'E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 77 (unattended-upgr)' >&2; exit 100; }`);
    const { code, output } = await copy.run('script/bootstrap', ['build']);
    assert.equal(code, 0, output);
    assert.deepEqual(output.match(/another program.*/g), ['another program (process 77 (unattended-upgr)) is using apt; waiting until it is done']);
});

test('bootstrap gives up on the lock of apt after its time', async (t) => {
    const copy = new Copy(t);
    copy.standIn('apt-get', "echo 'E: Could not get lock /var/lib/apt/lists/lock' >&2; exit 100");
    const { code, output } = await copy.run('script/bootstrap', ['build'], { env: { BOOTSTRAP_APT_WAIT_S: '0' } });
    assert.equal(code, 1);
    assert.match(output, /Could not get lock[^]*apt-get failed/);
});

test('without root and sudo bootstrap says what to run', async (t) => {
    const copy = new Copy(t);
    copy.standIn('id', 'echo 1234');
    rmSync(copy.path('bin/sudo'));
    const tools = ['bash', 'dirname', 'sed', 'tr', 'sha256sum', 'cut', 'cat', 'stat', 'sort', 'grep', 'mkdir', 'getent', 'id'];
    for (const name of tools.filter((name) => !existsSync(copy.path('bin', name))))
        copy.standIn(name, `exec $(PATH=/usr/bin:/bin command -v ${name}) "$@"`);
    const { code, output } = await copy.run('script/bootstrap', ['build'], { env: { PATH: copy.path('bin') } });
    assert.equal(code, 1, output);
    assert.match(output, /neither root nor sudo is here\. Run this once as root: apt-get install -y .*libevent-dev/);
});

test('npm packages are installed anew when their lock file changes, and for nothing else', async (t) => {
    const copy = new Copy(t);
    const lock = join(copy.tree, 'tests/package-lock.json');
    const list = join(copy.tree, 'script/lib/packages.txt');
    const installs = () => copy.calls().filter((line) => line.startsWith('npm ')).length;
    mkdirSync(dirname(lock), { recursive: true });
    writeFileSync(lock, '{"lockfileVersion": 3}');
    const bootstrap = async () => {
        const { code, output } = await copy.run('script/bootstrap', ['test']);
        assert.equal(code, 0, output);
        return installs();
    };
    assert.equal(await bootstrap(), 1);
    writeFileSync(list, `${readFileSync(list, 'utf8')}# changes what the group's stamp is made of, as a change of dpkg's does\n`);
    assert.equal(await bootstrap(), 1);
    assert.equal(copy.calls().filter((line) => line === 'apt-get update').length, 2, 'the packages were looked at again');
    writeFileSync(lock, '{"lockfileVersion": 3, "name": "other"}');
    assert.equal(await bootstrap(), 2);
    rmSync(join(copy.tree, 'tests/node_modules'), { recursive: true });
    assert.equal(await bootstrap(), 3);
});

test("npm trusts the machine's certificate authorities, unless others are named", async (t) => {
    const copy = new Copy(t);
    const authorities = copy.path('root/etc/ssl/certs/ca-certificates.crt');
    copy.standIn('npm', 'echo "npm trusts $NODE_EXTRA_CA_CERTS" >>"$CALLS"; mkdir -p tests/node_modules');
    for (const [env, trusted] of [[{}, authorities], [{ NODE_EXTRA_CA_CERTS: '/other' }, '/other']]) {
        for (const [path, text] of [[authorities, ''], [join(copy.tree, 'tests/package-lock.json'), JSON.stringify(env)]]) {
            mkdirSync(dirname(path), { recursive: true });
            writeFileSync(path, text);
        }
        const { code, output } = await copy.run('script/bootstrap', ['test'], { env });
        assert.equal(code, 0, output);
        assert.equal(copy.calls().at(-1), `npm trusts ${trusted}`);
    }
});

const scripts = ['.ci/run', ...['bench', 'bootstrap', 'compare', 'package', 'server', 'test', ...readdirSync(join(root, 'script/suites')).map((name) => `suites/${name}`)].map((name) => `script/${name}`)];

for (const script of [...scripts, 'examples/triage/register'])
    test(`${script} --help says what it does, and does nothing`, async (t) => {
        const copy = new Copy(t);
        const before = readdirSync(copy.tree).sort();
        const { code, output } = await copy.run(script, ['--help'], { env: { HOME: undefined } });
        assert.equal(code, 0, output);
        assert.equal(output.split('\n')[0], readFileSync(join(root, script), 'utf8').match(/^# (.*)$/m)[1]);
        assert.deepEqual(readdirSync(copy.tree).sort(), before);
        assert.deepEqual(copy.calls(), []);
    });

test('script/server under sudo stops and says how to run it', async (t) => {
    const copy = new Copy(t);
    copy.standIn('id', 'echo 0');
    const { code, output } = await copy.run('script/server', [], { env: { SUDO_UID: '1000' } });
    assert.equal(code, 1);
    assert.equal(output, 'server: run it as yourself, without sudo; it asks for sudo when it installs packages\n');
    assert.deepEqual(copy.calls(), []);
});

for (const [what, owner, isRefused] of [["a user's tree", 1000, true], ["root's own tree", 0, false]])
    test(`script/test under sudo in ${what} ${isRefused ? 'stops' : 'runs'}`, async (t) => {
        const copy = new Copy(t);
        copy.standIn('id', 'echo 0');
        copy.standIn('stat', `echo ${owner}`);
        const { output } = await copy.run('script/test', ['no-such-suite'], { env: { SUDO_UID: '1000' } });
        assert.match(output, isRefused ? /run it as yourself/ : /there is no suite/);
    });

// script/server with stand-ins for the build and the program.
function serverCopy(t) {
    const copy = new Copy(t);
    copy.program(join(copy.tree, 'script/bootstrap'), 'exit 0');
    copy.program(join(copy.tree, 'examples/triage/register'), 'mkdir -p "$2"; echo "register $2" >>"$CALLS"');
    copy.program(join(copy.tree, 'build/release/hearth'), 'echo "hearth $* in $PWD" >>"$CALLS"');
    writeFileSync(join(copy.tree, 'build/release/build.ninja'), '');
    copy.standIn('ninja', 'echo "ninja: no work to do."');
    return copy;
}

const folders = [
    ['HEARTH_DATA', { HEARTH_DATA: '/DATA/named', XDG_DATA_HOME: '/DATA/xdg' }, [], '/DATA/named'],
    ['a relative HEARTH_DATA', { HEARTH_DATA: 'rel' }, [], '/DATA/rel'],
    ['XDG_DATA_HOME', { XDG_DATA_HOME: '/DATA/xdg' }, [], '/DATA/xdg/hearth'],
    ['no absolute XDG_DATA_HOME', { XDG_DATA_HOME: 'xdg' }, [], '/DATA/.local/share/hearth'],
    ['HOME', {}, [], '/DATA/.local/share/hearth'],
    ['--data', { HEARTH_DATA: '/DATA/named' }, ['--data', '/DATA/flag'], '/DATA/flag'],
    ['--data=, relative', { HEARTH_DATA: '/DATA/named' }, ['--data=flag'], '/DATA/flag'],
    ['HEARTH_DATA without HOME', { HEARTH_DATA: '/DATA/named', HOME: undefined }, [], '/DATA/named'],
];

for (const [what, env, args, folder] of folders)
    test(`script/server registers the example in the folder that the program will serve: ${what}`, async (t) => {
        const copy = serverCopy(t);
        const here = (text) => text?.replace('/DATA', copy.folder);
        const given = Object.fromEntries(Object.entries(env).map(([name, value]) => [name, here(value)]));
        const { code, output } = await copy.run('script/server', args.map(here), { env: given });
        assert.equal(code, 0, output);
        assert.deepEqual(copy.calls(), [`register ${here(folder)}`, `hearth serve${args.map((arg) => ` ${here(arg)}`).join('')} in ${copy.folder}`]);
        await copy.run('script/server', args.map(here), { env: given });
        assert.equal(copy.calls().filter((line) => line.startsWith('register')).length, 1, 'what a person removed stays removed');
    });

test('the program gets the PATH of the person, not that of the tests', async (t) => {
    const copy = serverCopy(t);
    copy.program(join(copy.tree, 'build/release/hearth'), 'echo "$PATH" >>"$CALLS"');
    const { code, output } = await copy.run('script/server', []);
    assert.equal(code, 0, output);
    assert.ok(!copy.calls().at(-1).includes(join(copy.tree, '.tools')));
});

test('script/server without any home folder says what to give', async (t) => {
    const copy = serverCopy(t);
    copy.standIn('getent', 'exit 2');
    const { code, output } = await copy.run('script/server', [], { env: { HOME: undefined } });
    assert.equal(code, 1);
    assert.match(output, /no home folder to keep the data in: give --data DIR, or set HEARTH_DATA/);
});
