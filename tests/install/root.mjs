// A Debian 12 in a folder (debootstrap, made once in build/install/base), of which each test gets a copy. Commands run as root in it with their own
// processes and mounts, which end with the command; the network is the machine's.
import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';

const top = resolve(import.meta.dirname, '../..');
export const place = join(top, 'build/install');

export const works = (...argv) => spawnSync(argv[0], argv.slice(1), { stdio: 'ignore' }).status === 0;

// For `skip`: false, or the reason.
export const needsRoots = process.getuid() !== 0 ? 'only root can install into a root folder of its own'
    : !works('debootstrap', '--version') ? 'debootstrap is not installed'
        : !works('unshare', '--mount', '--pid', '--fork', 'true') ? 'this machine allows no namespaces' : false;

export function must(program, args, options = {}) {
    const result = spawnSync(program, args, { encoding: 'utf8', maxBuffer: 1 << 26, ...options });
    if (result.status !== 0)
        throw new Error(`${program} ${args.join(' ')}\n${result.stdout?.slice(-3000)}\n${result.stderr?.slice(-3000)}`);
    return result.stdout;
}

// The folder of a minimal Debian 12, from the machine's own mirror.
export function makeBase() {
    const base = join(place, 'base');
    if (existsSync(base))
        return base;
    const part = join(place, 'base.part');
    const sites = must('apt-get', ['indextargets', '--format', '$(SITE) $(RELEASE) $(COMPONENT)', 'Created-By: Packages']).trim().split('\n').map((line) => line.split(' '));
    const mirror = sites.find(([, release, component]) => release === 'bookworm' && component === 'main')?.[0] ?? 'http://deb.debian.org/debian';
    rmSync(part, { recursive: true, force: true });
    mkdirSync(place, { recursive: true });
    must('debootstrap', ['--variant=minbase', 'bookworm', part, mirror]);
    renameSync(part, base);
    return base;
}

export class Root {
    constructor(t) {
        const base = makeBase();
        this.path = mkdtempSync(join(place, 'root-'));
        t.after(() => rmSync(this.path, { recursive: true, force: true }));
        must('cp', ['-a', `${base}/.`, this.path]);
        copyFileSync('/etc/resolv.conf', this.inside('etc/resolv.conf'));
        must('chmod', ['755', this.path]);
    }

    inside(path) { return join(this.path, path); }

    // {code, out}: both outputs in their order. The script stops at the first command that fails. isReadOnly: only /tmp and /var/lib/hearth can be
    // written, as in a container that is started so.
    run(script, { isReadOnly = false } = {}) {
        const readOnly = isReadOnly ? `mount --bind "$0" "$0" && mount --bind "$0/var/lib/hearth" "$0/var/lib/hearth" && mount -o remount,bind,ro "$0" && mount -t tmpfs tmpfs "$0/tmp" &&` : '';
        const { status, stdout, signal } = spawnSync('unshare', ['--mount', '--pid', '--ipc', '--fork', '--kill-child', 'bash', '-c',
            readOnly + ' mount -t proc proc "$0/proc" && exec chroot "$0" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 bash -euc "$1" 2>&1',
            this.path, script], { encoding: 'utf8', maxBuffer: 1 << 26, timeout: 600_000, stdio: ['ignore', 'pipe', 'inherit'] });
        return { code: status ?? signal, out: stdout };
    }

    must(script, options) {
        const { code, out } = this.run(script, options);
        if (code !== 0)
            throw new Error(`in the root: ${script}\nended with ${code}:\n${out.slice(-4000)}`);
        return out;
    }

    // Copies a file of the machine to /tmp of the root; returns its path there.
    bring(path) {
        copyFileSync(path, this.inside(`tmp/${basename(path)}`));
        return `/tmp/${basename(path)}`;
    }

    read(path) { return readFileSync(this.inside(path), 'utf8'); }
}

// The package that script/package built.
export function builtPackage() {
    const deb = must('bash', ['-c', 'ls build/package/hearth_*.deb'], { cwd: top }).trim().split('\n');
    if (deb.length !== 1)
        throw new Error(`build/package has ${deb.length} packages`);
    return join(top, deb[0]);
}

// The same program as a package of an older version.
export function olderPackage(deb, version) {
    const folder = mkdtempSync(join(place, 'older-'));
    try {
        const out = join(place, `hearth_${version}_older.deb`);
        must('dpkg-deb', ['-R', deb, `${folder}/x`]);
        must('sed', ['-i', `s/^Version: .*/Version: ${version}/`, `${folder}/x/DEBIAN/control`]);
        must('dpkg-deb', ['--root-owner-group', '-b', `${folder}/x`, out]);
        return out;
    } finally {
        rmSync(folder, { recursive: true, force: true });
    }
}
