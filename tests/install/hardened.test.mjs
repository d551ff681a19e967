// The machine's unit under a real systemd: the restrictions of packaging/hearth-system.service are in force, and apps still run in their sandbox.
import assert from 'node:assert/strict';
import { chownSync, chmodSync, copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { test } from 'node:test';
import { runProgram, startHearth, until } from '../api/harness.mjs';
import { needsManager, startManager } from '../api/systemd.mjs';

const top = resolve(import.meta.dirname, '../..');
const program = resolve(process.env.HEARTH_BIN ?? join(top, 'build/release/hearth'));
const user = 61235;

// The unit as it is, with the data folder and the program of this test. A manager that is not the machine's may set no User=: setpriv changes the user and
// empties the bounding set. ProtectHome= needs files of /run that only the machine's manager makes,
// and that manager's socket for readiness is open to other users (tests/api/service_command.test.mjs checks readiness).
function unitOf(folder) {
    return readFileSync(join(top, 'packaging/hearth-system.service'), 'utf8')
        .replace(/^(User|Group|StateDirectory|StateDirectoryMode|ProtectHome)=.*\n/gm, '')
        .replace(/^Type=notify\nNotifyAccess=main$/m, 'Type=exec')
        .replace(/^CapabilityBoundingSet=$/m, 'CapabilityBoundingSet=CAP_SETUID CAP_SETGID CAP_SETPCAP')
        .replaceAll('/var/lib/hearth', `${folder}/data`)
        .replace('/usr/bin/hearth serve', `/usr/bin/setpriv --reuid ${user} --regid ${user} --clear-groups --bounding-set=-all ${folder}/hearth serve`)
        .replace('[Install]', `ReadWritePaths=${folder}/data\n\n[Install]`);
}

test('under the unit of the machine apps run in their sandbox', { skip: needsManager }, async (t) => {
    const folder = mkdtempSync('/var/lib/hearth-test-');            // where PrivateTmp and ProtectHome hide nothing
    t.after(() => rmSync(folder, { recursive: true, force: true }));
    chmodSync(folder, 0o755);
    const data = join(folder, 'data');
    mkdirSync(data, { mode: 0o700 });
    copyFileSync(program, join(folder, 'hearth'));
    writeFileSync(join(data, 'hearth.conf'), 'http.listen = 127.0.0.1:0\nllm.find_local = false\n', { mode: 0o600 });
    for (const path of [data, join(data, 'hearth.conf')])
        chownSync(path, user, user);
    mkdirSync(join(folder, 'home/.config/systemd/user'), { recursive: true });
    writeFileSync(join(folder, 'home/.config/systemd/user/hearth.service'), unitOf(folder));

    const manager = await startManager({ t, home: join(folder, 'home') });
    const started = await manager.run('systemctl', ['--user', 'start', 'hearth.service']);
    assert.equal(started.code, 0, started.stderr + (await manager.run('systemctl', ['--user', 'status', 'hearth.service'])).stdout);
    t.after(() => manager.run('systemctl', ['--user', 'stop', 'hearth.service']));

    const status = readFileSync(`/proc/${await manager.show('MainPID')}/status`, 'utf8');
    assert.match(status, new RegExp(`^Uid:\\s+${user}\\b`, 'm'));
    assert.match(status, /^NoNewPrivs:\s+1$/m);
    assert.match(status, /^Seccomp:\s+2$/m);
    assert.match(status, /^CapBnd:\s+0+$/m);

    const hearth = (...args) => runProgram('setpriv', ['--reuid', String(user), '--regid', String(user), '--clear-groups', join(folder, 'hearth'), ...args, '--data', data],
        { env: { PATH: '/usr/bin:/bin', HOME: data } });
    await until(async () => (await hearth('status')).code === 0, { what: 'the service' });
    const plain = await startHearth({ t });
    const expected = (await plain.cli('doctor', '--json')).json.find(({ name }) => name === 'sandbox');
    const sandbox = JSON.parse((await hearth('doctor', '--json')).stdout).find(({ name }) => name === 'sandbox');
    assert.equal(sandbox.ok, expected.ok, sandbox.text);

    writeFileSync(join(folder, 'app.json'), JSON.stringify({ name: 'inside', config: { command: '/bin/sh', args: ['-c', 'echo "pid $$ sees $(ls /proc | grep -c "^[0-9]")"; exec sleep 600'] } }));
    const added = await hearth('app', 'add', join(folder, 'app.json'));
    assert.equal(added.code, 0, added.stderr);
    assert.equal((await hearth('app', 'start', 'inside')).code, 0);
    const line = await until(async () => /pid \d+ sees \d+/.exec((await hearth('app', 'logs', 'inside')).stdout)?.[0], { what: "the app's line" });
    assert.ok(!sandbox.ok || Number(line.split(' ')[1]) < 10, `a PID namespace of its own: ${line}`);
    assert.equal((await hearth('app', 'stop', 'inside')).code, 0);
});
