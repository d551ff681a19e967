// The command line itself: help, wrong use, and what is generated from the table of commands.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { test } from 'node:test';
import { coldHearth, stoppedHearth } from './harness.mjs';

const has = (program) => spawnSync('sh', ['-c', `command -v ${program}`]).status === 0;

test('help lists the commands and tells about each', async (t) => {
    const h = coldHearth({ t, isBare: true });
    const list = await h.cli('help');
    assert.equal(list.code, 0);
    const commands = [...list.stdout.matchAll(/^ {2}([a-z]+(?: [a-z]+)?)[ \n]/gm)].map((match) => match[1]);
    for (const wanted of ['serve', 'key new', 'key list', 'key revoke', 'app new', 'app add', 'app list', 'app show', 'app start', 'app stop', 'app restart',
        'app logs', 'app remove', 'permission list', 'permission names', 'permission grant', 'permission deny', 'permission revoke', 'permission reset',
        'permission watch', 'agent add', 'agent list', 'agent show', 'agent remove', 'task list', 'task show', 'task run', 'task replay', 'settings',
        'settings set', 'settings unset', 'audit verify', 'open', 'doctor', 'backup', 'restore', 'routes', 'openapi', 'version'])
        assert.ok(commands.includes(wanted), `${wanted} is missing`);
    for (const command of commands) {
        const words = command.split(' ');
        const long = await h.cli('help', ...words);
        const same = await h.cli(...words, '--help');
        assert.equal(long.code, 0, command);
        assert.match(long.stdout, new RegExp(`^usage: hearth ${command}`));
        assert.equal(same.stdout, long.stdout, `${command} --help`);
    }
    assert.ok(!existsSync(h.dataDir), 'help makes no data folder');
});

test('help is grouped by what a person wants, and each command is in one group', async (t) => {
    const { stdout } = await coldHearth({ t, isBare: true }).cli('help');
    const groups = stdout.split('\n\n').slice(2, -1).map((part) => part.split('\n')[0]);
    assert.deepEqual(groups, ['See how it is', 'Use models', 'Apps and what they may', 'Agents and their work', 'Settings and safety', 'For programs, and help']);
    const lines = stdout.match(/^ {2}[a-z]+( [a-z]+)?/gm);
    assert.equal(new Set(lines).size, lines.length);
});

test('the keys for apps of the hosted service are printed one a line, as a shell reads them', async (t) => {
    const h = coldHearth({ t });
    const { stdout, stderr, code } = await h.cli('backend', 'keys');
    assert.equal(code, 0, stderr);
    assert.match(stdout, /^publishable sb_publishable_\S+\nsecret sb_secret_\S+\njwt_secret \S+\n$/);
    assert.equal(stdout.includes('\\n'), false);
});

test('a group alone names its commands', async (t) => {
    const h = coldHearth({ t });
    const help = await h.cli('help', 'app');
    assert.equal(help.code, 0);
    assert.match(help.stdout, /app start APP/);
    assert.doesNotMatch(help.stdout, /key new/);
    const bare = await h.cli('app');
    assert.equal(bare.code, 2);
    assert.match(bare.stderr, /hearth help app/);
});

const wrongUses = [
    ['an unknown command', ['frobnicate'], /no command frobnicate/],
    ['an unknown command of a group', ['key', 'frobnicate'], /no command key frobnicate/],
    ['a missing argument', ['key', 'revoke'], /needs ID\n.*usage: hearth key revoke ID/s],
    ['an argument too many', ['key', 'list', 'x'], /x is one argument too many\nusage: hearth key list/],
    ['an unknown option', ['key', 'list', '--frob'], /no option --frob\nusage: hearth key list/],
    ['an option of another command', ['key', 'list', '--with-data'], /no option --with-data/],
    ['an option without its value', ['key', 'new', '--name'], /--name needs a value|given twice|needs a value/],
    ['a value for a switch', ['key', 'list', '--json=yes'], /--json takes no value/],
    ['two scopes', ['permission', 'grant', 'a', 'llm.chat', '--once', '--until', '2030-01-01'], /Only one of/],
    ['another shell', ['completion', 'tcsh'], /bash/],
];

for (const [name, args, said] of wrongUses)
    test(`wrong use: ${name} exits with 2 and says so`, async (t) => {
        const h = coldHearth({ t });
        const result = name === 'an option without its value' ? await rawCli(h, args) : await h.cli(...args);
        assert.equal(result.code, 2, result.stderr);
        assert.match(result.stderr, said);
        assert.equal(result.stdout, '');
    });

// Without the --data that cli() adds behind.
async function rawCli(h, args) {
    const { binary } = await import('./harness.mjs');
    const done = spawnSync(binary, args, { env: h.env, encoding: 'utf8' });
    return { code: done.status, stdout: done.stdout, stderr: done.stderr };
}

test('no command at all is wrong use and shows the help', async (t) => {
    const h = coldHearth({ t });
    const result = await rawCli(h, []);
    assert.equal(result.code, 2);
    assert.match(result.stderr, /usage: hearth COMMAND/);
});

test('the version is told in two ways', async (t) => {
    const h = coldHearth({ t });
    const [one, two] = [await h.cli('version'), await rawCli(h, ['--version'])];
    assert.match(one.stdout, /^hearth \d+\.\d+\.\d+\n$/);
    assert.equal(two.stdout, one.stdout);
    assert.equal(two.code, 0);
});

test('options may stand before the command, and -- ends them', async (t) => {
    const h = await stoppedHearth({ t });
    const result = await rawCli(h, ['--data', h.dataDir, '--json', 'key', 'list']);
    assert.equal(result.code, 0, result.stderr);
    assert.deepEqual(JSON.parse(result.stdout), []);
    const dashed = await rawCli(h, ['key', 'revoke', `--data=${h.dataDir}`, '--', '--json']);
    assert.equal(dashed.code, 1);
    assert.match(dashed.stderr, /key/i);
});

test('the manual page has every command and no fault', { skip: !has('groff') }, async (t) => {
    const h = coldHearth({ t });
    const { stdout } = await h.cli('man');
    const page = spawnSync('groff', ['-man', '-ww', '-Tutf8', '-P-c'], { input: stdout, encoding: 'utf8' });
    assert.equal(page.stderr, '');
    const text = page.stdout.replace(/.\x08/g, '');
    for (const wanted of [/hearth serve/, /hearth permission grant APP \[PERMISSION\]\.\.\./, /\-\-check\-config/, /EXIT STATUS/])
        assert.match(text, wanted);
});
