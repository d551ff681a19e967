// What the package brings beside the program: units, desktop entry, AppStream text, manual page, completion, container file.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { test } from 'node:test';

const top = resolve(import.meta.dirname, '../..');
const packaging = join(top, 'packaging');
const program = resolve(process.env.HEARTH_BIN ?? join(top, 'build/release/hearth'));
const run = (name, args, options) => spawnSync(name, args, { encoding: 'utf8', ...options });
const has = (name) => !run(name, ['--version']).error;
const needs = (name) => has(name) ? false : `${name} is not installed`;
const text = (name) => readFileSync(join(packaging, name), 'utf8');

function scratch(t) {
    const folder = mkdtempSync(join(tmpdir(), 'hearth-units-'));
    t.after(() => rmSync(folder, { recursive: true, force: true }));
    return folder;
}

test('systemd accepts both units', { skip: needs('systemd-analyze') }, (t) => {
    const folder = scratch(t);
    const env = { ...process.env, XDG_RUNTIME_DIR: folder, HOME: folder };
    for (const [unit, args, content] of [['user', ['--user'], text('hearth.service.in').replaceAll('@COMMAND@', '/bin/true serve')],
        ['system', [], text('hearth-system.service').replace('/usr/bin/hearth', '/bin/true').replace(/_hearth/g, 'root')]]) {
        mkdirSync(join(folder, unit));
        const path = join(folder, unit, 'hearth.service');
        writeFileSync(path, content);
        const { status, stderr } = run('systemd-analyze', ['verify', '--man=no', ...args, path], { env });
        assert.equal(status, 0, stderr);
        assert.doesNotMatch(stderr, /hearth\.service:\d+:/, stderr);
    }
});

test("the machine's unit has the exposure that docs/operating.md states, and keeps what sandboxes need", { skip: needs('systemd-analyze') }, () => {
    const { stdout } = run('systemd-analyze', ['security', '--offline=true', '--no-pager', join(packaging, 'hearth-system.service')]);
    const [, exposure] = /Overall exposure level for hearth-system\.service: ([\d.]+)/.exec(stdout);
    assert.match(readFileSync(join(top, 'docs/operating.md'), 'utf8'), new RegExp(`exposure ${exposure.replace('.', '\\.')}\\b`));
    assert.doesNotMatch(text('hearth-system.service'), /^(RestrictNamespaces|PrivateUsers|ProtectProc|ProcSubset|ProtectKernelTunables|ProtectKernelLogs|MemoryDenyWriteExecute)=/m);
    assert.doesNotMatch(text('hearth-system.service'), /^SystemCallFilter=.*@(mount|privileged|sandbox)/m);
});

test('the desktop entry runs `hearth open` and is valid', { skip: needs('desktop-file-validate') }, () => {
    assert.match(text('hearth.desktop'), /^Exec=hearth open$/m);
    const { status, stdout } = run('desktop-file-validate', [join(packaging, 'hearth.desktop')]);
    assert.equal(status, 0, stdout);
});

test('the AppStream text is valid', { skip: needs('appstreamcli') }, () => {
    const { status, stdout } = run('appstreamcli', ['validate', '--no-net', join(packaging, 'hearth.metainfo.xml')]);
    assert.equal(status, 0, stdout);
});

test('the manual page is well-formed', { skip: run('mandoc', ['-T', 'lint', '/dev/null']).error ? 'mandoc is not installed' : false }, () => {
    const page = run(program, ['man', '--data', '/nonexistent']).stdout;
    const { stdout } = run('mandoc', ['-T', 'lint', '-W', 'error'], { input: page });
    assert.equal(stdout, '');
});

for (const [shell, args] of [['bash', ['-n']], ['zsh', ['-n']], ['fish', ['--no-execute']]])
    test(`the completion for ${shell} parses`, { skip: needs(shell) }, () => {
        const { status, stderr } = run(shell, [...args, join(packaging, `completion/hearth.${shell}`)]);
        assert.equal(status, 0, stderr);
    });

test('the container file copies what exists, runs as a user without rights, keeps its data in a volume and tells its health', () => {
    const file = text('Containerfile');
    const stage = file.slice(file.lastIndexOf('\nFROM '));
    for (const [, paths] of file.matchAll(/^COPY (?!--from)(.+) \S+$/gm))
        for (const path of paths.split(' '))
            assert.ok(existsSync(join(top, path)), path);
    for (const wanted of [/^USER hearth$/m, /^VOLUME \/var\/lib\/hearth$/m, /^HEALTHCHECK .*CMD \["hearth", "status"\]$/m, /^ENTRYPOINT \["hearth", "serve"\]$/m])
        assert.match(stage, wanted);
    // The page says what the file says; container.test.mjs runs both.
    for (const [, command] of file.matchAll(/^# {5}(podman (?:build|run) .*)$/gm))
        assert.ok(readFileSync(join(top, 'docs/operating.md'), 'utf8').includes(`${command}\n`), command);
    // What the program links is installed in the last stage.
    const linked = run('ldd', [program]).stdout;
    for (const [library, name] of [['libcurl.so', 'libcurl4'], ['libpq.so', 'libpq5'], ['libsimdjson.so', 'libsimdjson14'], ['libsodium.so', 'libsodium23'], ['libevent_pthreads', 'libevent-pthreads-2.1-7']])
        assert.ok(!linked.includes(library) || stage.includes(name), name);
});
