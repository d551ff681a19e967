// The package under a systemd of its own, booted by systemd-nspawn in a root of debootstrap: an upgrade restarts the unit of the machine and that of a
// user with the new program and the new unit, and a removal stops both.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { until } from '../api/harness.mjs';
import { Root, builtPackage, needsRoots, olderPackage, place, works } from './root.mjs';

const needsBoot = needsRoots || (works('systemd-nspawn', '--version') ? false : 'systemd-container is not installed');

// `run` of the result: a script in the booted root, {code, out}. The network is the machine's. null, and t is skipped: this machine boots none.
async function boot(t, root) {
    const said = [];
    const nspawn = spawn('systemd-nspawn', ['--quiet', '--register=no', '--keep-unit', '--resolv-conf=off', '--console=pipe', '-D', root.path, '--boot', 'systemd.unit=multi-user.target'],
        { stdio: ['ignore', 'pipe', 'pipe'] });
    const ended = new Promise((done) => nspawn.on('close', () => done(true)));
    for (const stream of [nspawn.stdout, nspawn.stderr])
        stream.on('data', (bytes) => said.push(bytes));
    const leader = () => readFileSync(`/proc/${nspawn.pid}/task/${nspawn.pid}/children`, 'utf8').trim().split(' ')[0];
    const run = (script) => {
        const { status, signal, stdout } = spawnSync('nsenter', ['--all', '--target', leader(), '/usr/bin/env', '-i', 'PATH=/usr/sbin:/usr/bin:/sbin:/bin', 'DEBIAN_FRONTEND=noninteractive',
            'LC_ALL=C.UTF-8', 'bash', '-euc', `exec 2>&1; cd /; ${script}`], { encoding: 'utf8', timeout: 300_000, stdio: ['ignore', 'pipe', 'inherit'] });
        return { code: status ?? signal, out: stdout };
    };
    t.after(async () => {
        nspawn.kill('SIGTERM');         // systemd-nspawn(1): powers the container off
        const late = setTimeout(() => nspawn.kill('SIGKILL'), 60_000);
        await ended;
        clearTimeout(late);
    });
    try {
        await until(() => nspawn.exitCode === null && leader() && /^(running|degraded)/.test(run('systemctl is-system-running || true').out), { deadlineMs: 60_000, everyMs: 200, what: 'the boot' });
    } catch {
        t.skip(`this machine boots no systemd in a root: ${Buffer.concat(said).toString().trim().split('\n').at(-1)}`);
        return null;
    }
    return run;
}

// The text of a unit in the older package says so: an upgrade must bring the new one into force.
function olderUnits(root, deb) {
    const marked = root.must(`cd /tmp && dpkg-deb -R ${deb} x && for unit in x/lib/systemd/system/hearth.service x/usr/lib/systemd/user/hearth.service; do sed -i 's/^Description=.*/Description=the older unit/' $unit; done
        printf older >>x/usr/bin/hearth && rm -f x/DEBIAN/md5sums && dpkg-deb --root-owner-group -b x older.deb >/dev/null && rm -r x && echo /tmp/older.deb`);
    return marked.trim();
}

test('an upgrade restarts the unit of the machine and that of a user with the new program; a removal stops both', { skip: needsBoot, timeout: 900_000 }, async (t) => {
    mkdirSync(place, { recursive: true });
    const root = new Root(t);
    const deb = '/opt/new.deb', older = olderUnits(root, root.bring(olderPackage(builtPackage(), '0.0.1')));
    root.must(`mv ${root.bring(builtPackage())} ${deb}`);                   // systemd covers /tmp
    root.must(`apt-get update; apt-get install -y --no-install-recommends systemd-sysv dbus dbus-user-session libpam-systemd ${older}
        for user in anna ben; do useradd -m -s /bin/bash $user; install -D -m 644 /dev/null /var/lib/systemd/linger/$user; done`);
    const run = await boot(t, root);
    if (!run)
        return;
    const must = (script) => {
        const { code, out } = run(script);
        assert.equal(code, 0, `${script}\n${out}`);
        return out.trim();
    };
    const as = (user, command) => `runuser -u ${user} -- env XDG_RUNTIME_DIR=/run/user/$(id -u ${user}) ${command}`;
    const units = { machine: 'systemctl', anna: as('anna', 'systemctl --user') };
    const service = { machine: 'runuser -u _hearth -- env HEARTH_DATA=/var/lib/hearth hearth', anna: as('anna', 'hearth') };
    const running = (whose) => {
        const { MainPID: pid, ActiveState: state, Description: description } = Object.fromEntries(must(`${units[whose]} show hearth.service --property=MainPID,ActiveState,Description`)
            .split('\n').map((line) => line.split(/=(.*)/s)));
        return { pid, state, description, program: pid === '0' ? null : must(`sha256sum </proc/${pid}/exe`).split(' ')[0] };
    };
    const installed = () => createHash('sha256').update(readFileSync(root.inside('usr/bin/hearth'))).digest('hex');

    for (const whose of ['machine', 'anna']) {
        must(`${service[whose]} settings set http.listen 127.0.0.1:0`);
        must(`${units[whose]} enable --now hearth.service`);
        must(`${service[whose]} workspace add kept-room`);
    }
    must(as('ben', 'systemctl --user enable hearth.service'));
    const before = { machine: running('machine'), anna: running('anna') };
    for (const whose of ['machine', 'anna'])
        assert.deepEqual([before[whose].state, before[whose].description, before[whose].program], ['active', 'the older unit', installed()]);
    const said = must(`apt-get install -y --no-install-recommends ${deb}`);
    for (const whose of ['machine', 'anna']) {
        const after = running(whose);
        assert.deepEqual([after.state, after.program], ['active', installed()], said);
        assert.notEqual(after.description, 'the older unit', whose);
        assert.notEqual(after.pid, before[whose].pid);
        assert.notEqual(after.program, before[whose].program);
        assert.match(must(`${service[whose]} workspace list`), /kept-room/);
    }
    assert.doesNotMatch(said, /restart them yourself|Failed|Warning/, said);
    assert.equal(run(`${as('ben', 'systemctl --user')} is-active hearth.service`).out.trim(), 'inactive', 'a unit that is enabled and does not run is not started');

    const removed = must('apt-get remove -y hearth');
    assert.doesNotMatch(removed, /Failed|Warning/, removed);
    assert.equal(run("readlink /proc/[0-9]*/exe | grep hearth").out, '', 'nothing of it runs');
    for (const folder of ['var/lib/hearth', 'home/anna/.local/share/hearth'])
        assert.ok(existsSync(root.inside(`${folder}/hearth.db`)), folder);
});
