// What TAB does in real shells on a terminal: the candidates come from the running service, and no name of an app is ever evaluated.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { test } from 'node:test';
import { binary, coldHearth, runProgram, sharedHearth, startHearth, until } from './harness.mjs';
import { newApp } from './kit.mjs';

const has = (program) => spawnSync('sh', ['-c', `command -v ${program}`]).status === 0;
const needs = (...programs) => programs.every(has) ? false : `${programs.find((one) => !has(one))} is not installed`;
const typed = resolve(import.meta.dirname, '../tools/typed.py');

const hostile = ['n1 two words', 'n2 $(touch canary)', 'n3 `touch canary`', 'n4;touch canary', "n5'touch canary'", 'n6"$(touch canary)"', 'n7\\ $HOME ~ *', 'n8 !! !1',
    'n9 {a,b} > canary', 'nA:b=c', 'nB "$(touch canary)\' `', 'nC ünï ©', 'nD & touch canary #'];

const shared = sharedHearth();

// A shell whose `hearth` completes by the service, to which its apps are known, and otherwise notes its arguments.
async function workshop(t, shell) {
    const h = await shared(t);
    for (const name of [...hostile, 'triage'])
        await newApp(h, { name });
    const folder = join(h.home, shell);
    mkdirSync(join(folder, 'bin'), { recursive: true });
    writeFileSync(join(folder, 'bin/hearth'), `#!/bin/sh\n[ "$1" != complete ] || exec '${binary}' --data '${h.dataDir}' "$@"\n{ printf '%s\\0' "$@"; echo; } >>'${folder}/args'\necho NOTED\n`);
    chmodSync(join(folder, 'bin/hearth'), 0o755);
    const env = { ...h.env, HOME: folder, ZDOTDIR: folder, PATH: `${folder}/bin:${process.env.PATH}`, TERM: 'dumb', LANG: 'C.UTF-8', LC_ALL: 'C.UTF-8', INPUTRC: '/dev/null' };
    return { h, folder, env };
}

// Lines of `cases` that were typed and did not become those arguments: [line, wanted, screen].
async function missed({ folder, env }, shell, cases) {
    rmSync(join(folder, 'args'), { force: true });
    const input = JSON.stringify(cases.map(([line]) => line));
    const { stdout: screen } = await runProgram('python3', [typed, 'READY> ', 'NOTED', ...shell], { env, cwd: folder, input });
    assert.ok(!existsSync(join(folder, 'canary')), `a name was evaluated:\n${screen}`);
    const noted = existsSync(join(folder, 'args')) ? readFileSync(join(folder, 'args'), 'utf8').split('\0\n') : [];
    return cases.filter(([, wanted], i) => noted[i] !== wanted.join('\0')).map((one) => [...one, screen]);
}

// Types the lines of all cases, several in one shell; each becomes its arguments. A service on a busy machine may miss the deadline of a completion: what was
// missed is typed again.
async function becomeArgs(place, shell, cases) {
    for (let at = 0; at < cases.length; at += 10) {
        let left = cases.slice(at, at + 10);
        await until(async () => (left = await missed(place, shell, left)).length === 0, { what: 'the arguments of each line', everyMs: 200 })
            .catch((error) => assert.fail(`${error.message}: ${JSON.stringify(left[0].slice(0, 2))}\n${left[0][2] ?? ''}`));
    }
}

const common = [['hearth app rem\ttri\t', ['app', 'remove', 'triage']], ['hearth settings log.l\t', ['settings', 'log.level']], ['hearth task list --quar\t', ['task', 'list', '--quarantined']],
    ['hearth permission grant triage llm.ch\t', ['permission', 'grant', 'triage', 'llm.chat']], ['hearth provider add anth\t', ['provider', 'add', 'anthropic']],
    ['hearth app add def\t', ['app', 'add', 'definition.json']], ['hearth task list --app tri\t', ['task', 'list', '--app', 'triage']]];

test('bash completes words, options and files, and names of apps are inert', { skip: needs('bash', 'python3') }, async (t) => {
    const place = await workshop(t, 'bash');
    writeFileSync(join(place.folder, 'definition.json'), '{}');
    writeFileSync(join(place.folder, 'rc'), `PS1='READY> '\n${(await place.h.cli('completion', 'bash')).stdout}`);
    const shell = ['bash', '--noprofile', '--rcfile', join(place.folder, 'rc'), '-i'];
    await becomeArgs(place, shell, [...common, ['hearth task list --app=tri\t', ['task', 'list', '--app=triage']]]);
    await becomeArgs(place, shell, hostile.flatMap((name) => ['', '"', "'"].map((quote) => [`hearth app start ${quote}${name.slice(0, 2)}\t`, ['app', 'start', name]])));
});

test('zsh completes the same', { skip: needs('zsh', 'python3') }, async (t) => {
    const place = await workshop(t, 'zsh');
    writeFileSync(join(place.folder, 'definition.json'), '{}');
    writeFileSync(join(place.folder, '_hearth'), (await place.h.cli('completion', 'zsh')).stdout);
    writeFileSync(join(place.folder, '.zshrc'), `PS1='READY> '\nfpath=('${place.folder}' $fpath)\nautoload -Uz compinit\ncompinit -u -D\n`);
    await becomeArgs(place, ['zsh', '-d', '-i'], [...common, ...hostile.map((name) => [`hearth app start ${name.slice(0, 2)}\t`, ['app', 'start', name]])]);
});

test('fish completes the same', { skip: needs('fish') }, async (t) => {
    const place = await workshop(t, 'fish');
    const script = join(place.folder, 'hearth.fish');
    writeFileSync(script, (await place.h.cli('completion', 'fish')).stdout);
    const candidates = async (line) => (await runProgram('fish', ['--no-config', '-c', 'source $argv[1]; complete -C $argv[2]', script, line], { env: place.env, cwd: place.folder }))
        .stdout.split('\n').filter(Boolean).map((one) => one.split('\t')[0]);
    assert.deepEqual(await candidates('hearth app rem'), ['remove']);
    assert.deepEqual(await candidates('hearth settings log.l'), ['log.level']);
    await until(async () => JSON.stringify((await candidates('hearth app start n')).sort()) === JSON.stringify([...hostile].sort()), { what: 'every name in fish', everyMs: 200 });
    assert.deepEqual(await candidates('hearth app start "n1'), [hostile[0]]);
    assert.ok(!existsSync(join(place.folder, 'canary')));
});

test('where no service runs a completion is silent, quick and makes nothing', async (t) => {
    const h = coldHearth({ t, isBare: true });
    for (const words of [['app', 'start', ''], ['task', 'show', ''], ['nonsense', ''], []]) {
        const result = await runProgram(binary, ['complete', '--data', h.dataDir, '--', ...words], { env: h.env });
        assert.deepEqual([result.code, result.stderr], [0, ''], words.join(' '));
        assert.equal(result.stdout === '', words.length > 0);
    }
    assert.ok(!existsSync(h.dataDir));
    assert.doesNotMatch((await h.cli('help')).stdout + (await h.cli('man')).stdout, /hearth complete\b|^ {2}complete /m);
});

test('names that control a terminal, and words that would be options, are not offered', async (t) => {
    const h = await startHearth({ t });
    for (const name of ['x1 \u202egnp.exe', 'x2 \u200bhidden', 'x3 plain', '--with-data'])
        await newApp(h, { name });
    const offered = async (...words) => (await runProgram(binary, ['complete', '--data', h.dataDir, '--', ...words], { env: h.env })).stdout.split('\n').filter(Boolean).map((line) => line.split('\t')[0]);
    await until(async () => (await offered('app', 'start', '')).length > 0, { what: 'an answer in time' });
    assert.deepEqual(await offered('app', 'start', ''), ['x3 plain']);
    assert.deepEqual(await offered('app', 'start', '--', '--'), []);
    assert.deepEqual(await offered('app', 'remove', '--w'), ['--with-data']);
    assert.deepEqual(await offered('app', 'new', 'x', '--lang', ''), ['node', 'python', 'bash']);
});
