// A copy of script/ for one test, in a path with a space. What the scripts call (apt, sudo, npm, the program) are stand-ins in a folder that comes first in PATH, so
// that nothing is installed and no file outside of the copy changes.
import { spawn } from 'node:child_process';
import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';

export const root = resolve(import.meta.dirname, '../..');

export class Copy {
    constructor(t) {
        this.folder = mkdtempSync(join(tmpdir(), 'hearth scripts '));
        t.after(() => rmSync(this.folder, { recursive: true, force: true }));
        this.tree = join(this.folder, 'a tree');
        for (const name of ['script', '.ci', 'examples'])
            cpSync(join(root, name), join(this.tree, name), { recursive: true });
        mkdirSync(join(this.folder, 'root/usr/sbin'), { recursive: true });
        this.policy = join(this.folder, 'root/usr/sbin/policy-rc.d');
        this.standIn('sudo', 'exec "$@"');
        this.standIn('dpkg-query', 'exit 1');       // no package is installed
        this.standIn('apt-get', 'echo "apt-get $*" >>"$CALLS"');
        this.standIn('npm', 'echo "npm $*" >>"$CALLS"; mkdir -p tests/node_modules');
    }

    path(...parts) { return join(this.folder, ...parts); }
    calls() { return existsSync(this.path('calls')) ? readFileSync(this.path('calls'), 'utf8').trimEnd().split('\n') : []; }
    standIn(name, script) { this.program(join(this.folder, 'bin', name), script); }

    program(path, script) {
        mkdirSync(dirname(path), { recursive: true });
        writeFileSync(path, `#!/bin/sh\n${script}\n`);
        chmodSync(path, 0o755);
    }

    // {child, ended: {code, signal, output}}; an environment of its own, in a group of its own.
    start(script, args = [], { env = {}, cwd = this.folder } = {}) {
        const child = spawn(join(this.tree, script), args, {
            cwd, detached: true, stdio: ['ignore', 'pipe', 'pipe'],
            env: { PATH: `${this.path('bin')}:${dirname(process.execPath)}:/usr/bin:/bin`, HOME: this.folder, CALLS: this.path('calls'), BOOTSTRAP_ROOT: this.path('root'), ...env },
        });
        let output = '';
        for (const stream of [child.stdout, child.stderr])
            stream.setEncoding('utf8').on('data', (piece) => { output += piece; });
        const ended = new Promise((done) => child.on('close', (code, signal) => done({ code, signal, output })));
        return { child, ended };
    }

    run(...args) { return this.start(...args).ended; }
}
