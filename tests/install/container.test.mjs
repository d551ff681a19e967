// The container of packaging/Containerfile, built by podman and run as docs/operating.md says. Its base is the image of the registry, or, where no
// registry is reachable, the root of debootstrap under the same name. All images, volumes and networks lie in build/install/podman.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { test } from 'node:test';
import { until } from '../api/harness.mjs';
import { makeBase, must, needsRoots, place, works } from './root.mjs';

const top = resolve(import.meta.dirname, '../..');
const own = join(place, 'podman');
const needsPodman = needsRoots || (works('podman', '--version') ? false : 'podman is not installed (apt install podman runc iptables)');
const [, base] = /^FROM (\S+) AS build$/m.exec(readFileSync(join(top, 'packaging/Containerfile'), 'utf8'));

const storage = ['--root', join(own, 'storage'), '--runroot', join(own, 'run'), '--tmpdir', join(own, 'tmp'), '--network-config-dir', join(own, 'networks')];
// Root of a virtual machine may be without the right to raise these limits, which podman does otherwise.
const limits = ['--ulimit', 'nofile=1024:1024', '--ulimit', 'nproc=2000:2000'];
const network = ['--network', 'hearth-test', '-p', '127.0.0.1::3001'];
let runtime = [];

const podman = (...args) => spawnSync('podman', [...storage, ...runtime, ...args], { encoding: 'utf8', cwd: top, maxBuffer: 1 << 26 });
const mustPodman = (...args) => must('podman', [...storage, ...runtime, ...args], { cwd: top }).trim();

function bringBase(t) {
    if (podman('image', 'exists', base).status === 0)
        return;
    const pulled = spawnSync('podman', [...storage, 'pull', '-q', base], { encoding: 'utf8', timeout: 120_000 });
    if (pulled.status === 0)
        return;
    t.diagnostic(`no registry is reachable; ${base} is made by debootstrap`);
    must('bash', ['-c', 'set -o pipefail; from=$1 name=$2; shift 2; tar -C "$from" --exclude="./var/cache/apt/archives/*.deb" -c . | podman "$@" import -q - "$name"', 'import', makeBase(), base, ...storage]);
}

// The words of the last runtime why it runs no container here; '' when one does, which `runtime` then names.
function refusal() {
    let words = '';
    for (const candidate of [[], ['--runtime', 'runc']]) {
        runtime = candidate;
        const tried = podman('run', '--rm', ...limits, ...network, base, 'true');
        if (tried.status === 0)
            return '';
        words += `${candidate.at(-1) ?? 'default'}: ${tried.stderr.trim().split('\n').at(-1)}; `;
    }
    runtime = [];
    return words;
}

// Containers, their volume and their bridge go; the images stay for the next run.
function leaveNothing() {
    for (const command of [['rm', '-f', '--all'], ['volume', 'rm', '-f', 'hearth'], ['network', 'rm', '-f', 'hearth-test']])
        podman(...command);
    rmSync(join(own, 'tmp'), { recursive: true, force: true });
}

// The container is well; runs a command in it.
async function start(name, options) {
    mustPodman('run', '-d', '--name', name, ...limits, '--read-only', '--tmpfs', '/tmp', ...options, '-v', 'hearth:/var/lib/hearth', ...network, 'hearth');
    await until(() => podman('healthcheck', 'run', name).status === 0, { what: `the health of ${name}`, deadlineMs: 60_000 });
    return (...words) => podman('exec', name, ...words);
}

test('the container is built, serves with a read-only root and keeps its data in the volume', { skip: needsPodman, timeout: 2_400_000 }, async (t) => {
    mkdirSync(own, { recursive: true });
    leaveNothing();
    t.after(leaveNothing);
    bringBase(t);
    mustPodman('build', '--format', 'docker', '--isolation', 'chroot', '--network', 'host', '--pull=never', '-f', 'packaging/Containerfile', '-t', 'hearth', '.');
    const [{ User, Healthcheck }] = JSON.parse(mustPodman('image', 'inspect', 'hearth'));
    assert.deepEqual([User, Healthcheck.Test], ['hearth', ['CMD', 'hearth', 'status']]);
    const mounted = mustPodman('image', 'mount', 'hearth');
    try {
        assert.match(must('chroot', ['--userspec=970:970', mounted, '/usr/bin/hearth', '--version']), /^hearth \d/);
    } finally {
        mustPodman('image', 'umount', 'hearth');
    }

    mustPodman('network', 'create', 'hearth-test');
    const why = refusal();
    if (why) {
        t.skip(`the image is built and its program runs; this machine runs no containers (${why})`);
        return;
    }

    const inside = await start('first', ['--security-opt', 'unmask=/proc/*']);
    assert.equal(inside('id', '-un').stdout, 'hearth\n');
    assert.match(inside('touch', '/usr/bin/x').stderr, /Read-only file system/);
    const port = mustPodman('port', 'first', '3001/tcp').split(':').at(-1);
    const health = await fetch(`http://127.0.0.1:${port}/healthz`);
    assert.deepEqual([health.status, (await health.json()).success], [200, true]);
    assert.equal(inside('hearth', 'provider', 'add', 'stand-in').status, 0);
    assert.match(inside('hearth', 'chat', 'say it works').stdout, /it works/);
    const sandboxOf = (run) => JSON.parse(run('hearth', 'doctor', '--json').stdout).find(({ name }) => name === 'sandbox');
    if (works('setpriv', '--reuid', '65534', '--clear-groups', 'unshare', '--user', 'true'))
        assert.deepEqual([sandboxOf(inside).ok, sandboxOf(inside).text.split(',')[0]], [true, 'bubblewrap works']);
    mustPodman('stop', 'first');
    assert.equal(mustPodman('inspect', '--format', '{{.State.ExitCode}}', 'first'), '0');
    mustPodman('rm', 'first');

    const again = await start('second', ['--security-opt', 'unmask=/proc/*']);
    assert.match(again('hearth', 'chat', 'say it is kept').stdout, /it is kept/);
    mustPodman('stop', 'second');

    const covered = sandboxOf(await start('covered', []));
    assert.ok(covered.ok || /no namespaces \(bwrap: Can't mount proc/.test(covered.text) && /unmask=\/proc/.test(covered.advice), JSON.stringify(covered));
});
