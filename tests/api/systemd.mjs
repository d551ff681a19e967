// A user manager of a test's own: `systemd --user` as a plain process, in a mount namespace in which /run says that systemd runs.
//
//     const manager = await startManager({ t, home, packageUnit });      // packageUnit: text of /usr/lib/systemd/user/hearth.service there
//     const { code } = await manager.run('systemctl', ['--user', 'is-enabled', 'hearth.service']);
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runProgram, until } from './harness.mjs';

const systemd = '/usr/lib/systemd/systemd';
const exitNow = 34 + 24;        // SIGRTMIN+24 of systemd(1)
const canMount = () => spawnSync('unshare', ['--mount', 'mount', '-t', 'tmpfs', 'tmpfs', '/run']).status === 0;

// For `skip`: false, or the reason. An ordinary user has no control group of its own here, without which systemd does not start.
export const needsManager = !existsSync(systemd) ? 'this machine has no systemd'
    : process.getuid() !== 0 ? 'a systemd user manager of its own needs root here'
        : !canMount() ? 'root may not make a mount namespace here' : false;

const script = `set -e
mount -t tmpfs tmpfs /run
mkdir -p /run/systemd/system
if [ -n "$1" ]; then mount --bind "$1" /usr/lib/systemd/user; fi
exec env -i PATH="$PATH" HOME="$HOME" XDG_RUNTIME_DIR="$XDG_RUNTIME_DIR" ${systemd} --user --log-target=null`;

export async function startManager({ t, home, packageUnit }) {
    const runtime = mkdtempSync(join(tmpdir(), 'hearth-runtime-'));
    let units = '';
    if (packageUnit) {
        units = join(home, 'package-units');
        spawnSync('cp', ['-a', '/usr/lib/systemd/user', units]);
        writeFileSync(join(units, 'hearth.service'), packageUnit);
    }
    const env = { PATH: process.env.PATH, HOME: home, XDG_RUNTIME_DIR: runtime, HEARTH_LLM_FIND_LOCAL: 'false' };
    const child = spawn('unshare', ['--mount', 'bash', '-c', script, 'manager', units], { env, stdio: 'ignore' });
    const ended = new Promise((done) => child.on('close', done));
    const run = (program, args, options = {}) =>
        runProgram('nsenter', ['--mount', '--target', String(child.pid), '--', program, ...args], { ...options, env: { ...env, ...options.env } });

    t.after(async () => {
        const late = setTimeout(() => child.kill('SIGKILL'), 60_000);
        process.kill(child.pid, exitNow);
        await ended;
        clearTimeout(late);
        rmSync(runtime, { recursive: true, force: true });
    });
    await until(async () => (await run('systemctl', ['--user', 'is-system-running'])).stdout === 'running\n', { what: 'the user manager' });
    return {
        env,
        run,
        async show(name) {
            return (await run('systemctl', ['--user', 'show', 'hearth.service', '--value', `--property=${name}`])).stdout.trim();
        },
    };
}
