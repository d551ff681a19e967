// `hearth app new`: a folder that runs, for each language, from the commands that it prints; and the commands on the way, `app add FOLDER` and
// `activity add --wait`.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { test } from 'node:test';
import { binary, coldHearth, runProgram, startHearth, stoppedHearth, until } from './harness.mjs';

const languages = ['node', 'python', 'bash'];
const skeletons = resolve(import.meta.dirname, '../../examples/skeletons');
const tests = { node: /\n# pass 4\n# fail 0\n/, python: /Ran 4 tests[^]*\nOK\n$/, bash: /\nok: a row gets its result\n$/ };

function place(t) {
    const folder = mkdtempSync(join(tmpdir(), 'hearth app new '));
    t.after(() => rmSync(folder, { recursive: true, force: true }));
    return folder;
}

// A folder with the program under the name `hearth`, for PATH.
function programs(t) {
    const folder = place(t);
    symlinkSync(binary, join(folder, 'hearth'));
    return folder;
}

// One command line of a person: bash in `cwd`, with this Hearth's data folder.
function typed(h, path, cwd, command) {
    const env = { ...h.env, PATH: `${path}:${h.env.PATH}`, HEARTH_DATA: h.dataDir };
    return runProgram('bash', ['-c', command], { env, cwd });
}

const newApp = (h, cwd, ...args) => runProgram(binary, ['app', 'new', ...args], { env: h.env, cwd });

for (const lang of languages)
    test(`${lang}: the printed commands register the app, allow it, work on a row and pass its tests`, async (t) => {
        const h = await startHearth({ t, sandbox: 'standard' });
        const path = programs(t);
        const cwd = place(t);
        const folder = join(cwd, "it's first");
        const made = await newApp(h, cwd, 'words-1', '--lang', lang, '--dir', folder, '--json');
        assert.equal(made.code, 0, made.stderr);
        const [add, grant, row, own] = made.json.next;

        const added = await typed(h, path, cwd, add);
        assert.match(added.stdout, /^The agent words-1-agent is registered[^]*The app \S+ is registered[^]*asks for activities\.read, activities\.write: `hearth permission grant words-1 --requested`/, added.stderr);
        assert.equal((await typed(h, path, cwd, grant)).stdout, 'words-1 may use activities.read, activities.write.\n');
        assert.doesNotMatch((await typed(h, path, cwd, add)).stdout, /asks for/);
        const { stdout, stderr } = await typed(h, path, cwd, row);
        assert.deepEqual(JSON.parse(stdout || '{}'), { words: 3, longest: 'Hello' }, stderr);
        const result = await typed(h, path, cwd, own);
        assert.equal(result.code, 0, result.stdout + result.stderr);
        assert.match(result.stdout + result.stderr, tests[lang]);
        assert.doesNotMatch(result.stdout + result.stderr, /skipped [1-9]|skipped=|skipped:/i);
    });

for (const lang of languages)
    test(`${lang}: the app waits for its permissions, then inserts a row and shows the result; a wrong row fails with its reason`, async (t) => {
        const h = await startHearth({ t, sandbox: 'standard', env: { LANG: 'C.UTF-8' } });      // as a person has it; bash is slower with it
        const cwd = place(t);
        assert.equal((await newApp(h, cwd, 'words', '--lang', lang)).code, 0);
        await h.cliJson('app', 'add', join(cwd, 'words'));
        assert.equal((await h.cli('app', 'start', 'words')).code, 0);
        await until(async () => /asks for activities\.read, activities\.write/.test((await h.cli('app', 'logs', 'words')).stdout), { what: 'what it waits for, in its log', everyMs: 100 });
        await h.grant('words', '--requested');
        await until(async () => /completed: \{"words": ?5/.test((await h.cli('app', 'logs', 'words')).stdout), { what: 'the result in the app\'s log', everyMs: 100 });
        await until(async () => (await h.cliJson('app', 'list'))[0].status === 'stopped', { what: 'the app has ended', everyMs: 50 });
        const wrong = await h.cli('activity', 'add', '-', '--app', 'words', '--wait', { input: '{"no":"text"}' });
        assert.equal(wrong.code, 1);
        assert.match(wrong.stderr, /is failed: `raw_data\.text` must be a string/);
        const hard = await h.cliJson('activity', 'add', '-', '--app', 'words', '--wait', { input: JSON.stringify({ text: '"a\\b" é\n/c\t' }) });
        assert.deepEqual(hard.data.result, { words: 3, longest: '"a\\b"' });
        const long = await h.cli('activity', 'add', '-', '--app', 'words', '--wait', { input: JSON.stringify({ text: 'word "q" é\n'.repeat(90_000) }) });
        assert.deepEqual([long.stderr, long.json], ['', { words: 270_000, longest: 'word' }], 'a row that is passed as a file');
    });

test('python: what an app or agent prints is in the log at once', async (t) => {
    const h = await startHearth({ t });
    const program = h.file('slow.py', 'import time\nprint("begun")\ntime.sleep(100)\n');
    await h.agent({ name: 'slow', command: 'python3', args: [program] });
    await h.app({ name: 'slow', app_type: 'python', config: { command: program, agentHandlers: [{ tableName: 'svc_activities', agentId: 'slow', eventTypes: ['INSERT'] }], backend: { enabled: true } } });
    await h.cli('app', 'start', 'slow');
    await until(async () => /begun/.test((await h.cli('app', 'logs', 'slow')).stdout), { what: "the app's line", everyMs: 50 });
    await h.cli('activity', 'add', '-', '--app', 'slow', { input: '{}' });
    const task = await until(async () => (await h.cliJson('task', 'list'))[0], { what: 'the task', everyMs: 50 });
    await until(async () => /begun/.test((await h.cliJson('task', 'show', task.uuid)).log), { what: "the agent's line", everyMs: 50 });
});

// --- what is written ---

test('every file is that of examples/skeletons, with the name in place of my-app; nothing else is made', async (t) => {
    const h = coldHearth({ t, isBare: true });
    const cwd = place(t);
    for (const lang of languages) {
        const { json, stderr } = await newApp(h, cwd, `n-${lang}`, '--lang', lang, '--json');
        assert.equal(stderr, '');
        const names = readdirSync(join(skeletons, lang)).filter((name) => name !== '__pycache__').sort();
        assert.deepEqual({ ...json, next: json.next.length }, { name: `n-${lang}`, lang, folder: `n-${lang}`, files: names, next: 4 });
        assert.deepEqual(readdirSync(join(cwd, json.folder)).sort(), names);
        for (const name of names) {
            const from = join(skeletons, lang, name);
            assert.equal(readFileSync(join(cwd, json.folder, name), 'utf8'), readFileSync(from, 'utf8').replaceAll('my-app', `n-${lang}`), name);
            assert.equal(statSync(join(cwd, json.folder, name)).mode & 0o100, readFileSync(from, 'utf8').startsWith('#!') ? 0o100 : 0, name);
        }
    }
    assert.ok(!existsSync(h.dataDir), 'it needs no data folder');
});

test('the umask decides who else may read', async (t) => {
    const h = coldHearth({ t, isBare: true });
    const cwd = place(t);
    const { code, stderr } = await runProgram('bash', ['-c', 'umask 077; exec "$0" app new a --lang bash', binary], { env: h.env, cwd });
    assert.equal(code, 0, stderr);
    for (const name of ['.', ...readdirSync(join(cwd, 'a'))])
        assert.equal(statSync(join(cwd, 'a', name)).mode & 0o077, 0, name);
});

test('an empty folder is filled, the current one too', async (t) => {
    const h = coldHearth({ t, isBare: true });
    const cwd = place(t);
    const { code, stdout, stderr } = await newApp(h, cwd, 'here', '--lang', 'bash', '--dir', '.');
    assert.equal(code, 0, stderr);
    assert.match(stdout, /hearth app add \.\n/);
    assert.ok(existsSync(join(cwd, 'app.json')));
});

// --- what is refused ---

test('names, languages and folders are refused with the rule', async (t) => {
    const h = coldHearth({ t, isBare: true });
    const cwd = place(t);
    const rule = /NAME must be 1 to 64 ASCII letters, digits, - and _, and begin with a letter or a digit\n/;
    for (const name of ['', '_a', '.', '..', 'a/b', 'a b', 'ä', 'a"b', 'a\nb', 'n'.repeat(65)])
        assert.match((await newApp(h, cwd, '--lang', 'node', '--', name)).stderr, rule, JSON.stringify(name));
    for (const [args, text] of [
        [['a'], /--lang must be node, python or bash\nusage: hearth app new NAME/],
        [['a', '--lang', 'perl'], /--lang must be node, python or bash/],
        [['a', '--lang', 'node', '--dir', ''], /--dir must name a folder/],
        [['--lang', 'node'], /hearth app new/],
    ]) {
        const refused = await newApp(h, cwd, ...args);
        assert.match(refused.stderr, text);
        assert.equal(refused.code, 2);
    }
    assert.deepEqual(readdirSync(cwd), []);
    assert.equal((await newApp(h, cwd, 'n'.repeat(64), '--lang', 'node')).code, 0);
});

test('a folder that holds something, a file and a missing parent are refused, and nothing is changed', async (t) => {
    const h = coldHearth({ t, isBare: true });
    const cwd = place(t);
    mkdirSync(join(cwd, 'full'));
    writeFileSync(join(cwd, 'full', '.hidden'), 'mine');
    writeFileSync(join(cwd, 'file'), 'mine');
    for (const [dir, text] of [
        ['full', /The folder full exists and is not empty; --dir names another one/],
        ['file', /file exists and is not a folder; --dir names another one/],
        ['no/where', /The folder no\/where cannot be made: No such file or directory/],
        ['/proc/self/app', /The folder \/proc\/self\/app cannot be made: /],
    ]) {
        const refused = await newApp(h, cwd, 'a', '--lang', 'node', '--dir', dir);
        assert.deepEqual([refused.code, refused.stdout], [1, '']);
        assert.match(refused.stderr, text);
    }
    assert.deepEqual(readdirSync(join(cwd, 'full')), ['.hidden']);
    assert.deepEqual(readdirSync(cwd).sort(), ['file', 'full']);
});

test('when the disk is full in the middle, no file is left', async (t) => {
    const h = coldHearth({ t, isBare: true });
    const cwd = place(t);
    mkdirSync(join(cwd, 'empty'));
    // The last file of the table is too large, those before it are not.
    const sizes = readdirSync(join(skeletons, 'bash')).map((name) => statSync(join(skeletons, 'bash', name)).size).sort((a, b) => a - b);
    assert.ok(sizes.at(-2) < sizes.at(-1));
    for (const dir of ['new', 'empty']) {
        const full = await runProgram('bash', ['-c', `trap '' XFSZ; exec prlimit --fsize=${sizes.at(-1) - 1} "$0" app new my-app --lang bash --dir "$1"`, binary, dir], { env: h.env, cwd });
        assert.equal(full.code, 1, full.stderr);
        assert.match(full.stderr, /test\.sh cannot be written: File too large/);
    }
    assert.deepEqual(readdirSync(cwd), ['empty']);
    assert.deepEqual(readdirSync(join(cwd, 'empty')), []);
});

test('a folder that may not be written to is refused', { skip: process.getuid() === 0 && 'root may write everywhere' }, async (t) => {
    const h = coldHearth({ t, isBare: true });
    const cwd = place(t);
    mkdirSync(join(cwd, 'closed'));
    chmodSync(join(cwd, 'closed'), 0o555);
    const refused = await newApp(h, cwd, 'a', '--lang', 'node', '--dir', 'closed');
    chmodSync(join(cwd, 'closed'), 0o755);
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /closed\/\S+ cannot be written: Permission denied/);
    assert.deepEqual(readdirSync(join(cwd, 'closed')), []);
});

// --- app add FOLDER ---

test('a folder without app.json, and one with a wrong agent, register nothing', async (t) => {
    const h = await stoppedHearth({ t });
    const folder = place(t);
    const bare = await h.cli('app', 'add', folder);
    assert.deepEqual([bare.code, bare.stderr], [1, `hearth: The file ${folder}/app.json cannot be opened: No such file or directory\n`]);
    writeFileSync(join(folder, 'app.json'), '{"name":"whole"}');
    writeFileSync(join(folder, 'agent.json'), '{"name":"no command"}');
    const wrong = await h.cli('app', 'add', folder);
    assert.equal(wrong.code, 1);
    assert.match(wrong.stderr, /agent\.json.*`command` is required|`command`/);
    assert.deepEqual(await h.cliJson('app', 'list'), []);
    rmSync(join(folder, 'agent.json'));
    writeFileSync(join(folder, 'app.json'), '{"name":"whole" "app_type":"node"}');
    assert.match((await h.cli('app', 'add', folder)).stderr, /^hearth: app\.json: This is not valid JSON/);
    writeFileSync(join(folder, 'app.json'), '{"name":"whole"}');
    assert.equal((await h.cli('app', 'add', folder)).code, 0, 'an app needs no agent');
});

const agentsOf = async (h) => (await h.cliJson('agent', 'list')).filter((agent) => agent.name !== '@agent');

test('an app.json that is refused leaves its agent as it was: unknown, or with its old definition', async (t) => {
    for (const h of [await stoppedHearth({ t }), await startHearth({ t })]) {
        const folder = place(t);
        const add = async (app, agent) => {
            writeFileSync(join(folder, 'app.json'), JSON.stringify(app));
            writeFileSync(join(folder, 'agent.json'), JSON.stringify(agent));
            return h.cli('app', 'add', folder);
        };
        const wrong = { name: 'half', config: { port: 99999 } }, whole = { name: 'half' };
        const refused = await add(wrong, { name: 'helper', command: '/bin/true' });
        assert.equal(refused.code, 1);
        assert.equal(refused.stdout, '', 'nothing is told as done');
        assert.match(refused.stderr, /^hearth: app\.json: .*port/);
        assert.deepEqual([await agentsOf(h), await h.cliJson('app', 'list')], [[], []]);

        assert.equal((await add(whole, { name: 'helper', command: '/bin/true', description: 'the first' })).code, 0);
        assert.equal((await add(wrong, { name: 'helper', command: '/bin/false', description: 'the second' })).code, 1);
        const [{ description }] = await agentsOf(h);
        assert.equal(description, 'the first');
        assert.deepEqual((await h.cliJson('app', 'list')).map(({ name }) => name), ['half']);
    }
});

// --- activity add --wait ---

test('a reason of several lines is shown line by line', async (t) => {
    const h = await startHearth({ t });
    await h.agent({ name: 'broken', command: '/bin/sh', args: ['-c', 'printf "first line\\n\\033[31msecond line\\n" >&2; exit 1'] });
    await h.app({ name: 'broken', config: { agentHandlers: [{ tableName: 'svc_activities', agentId: 'broken', eventTypes: ['INSERT'] }], backend: { enabled: true } } });
    const { code, stdout, stderr } = await h.cli('activity', 'add', '-', '--app', 'broken', '--wait', { input: '{}' });
    assert.deepEqual([code, stdout], [1, '']);
    assert.match(stderr, /^first line\n\S+second line\nhearth: The activity \S+ is failed: the reason is above\n$/);
    assert.ok(!stderr.includes('\x1b'), 'nothing controls the terminal');
    const [{ uuid }] = await h.cliJson('task', 'list');
    assert.match((await h.cli('task', 'wait', uuid)).stderr, /^first line\n\S+second line\nhearth: The task \S+ is failed: the reason is above\n$/);
});

test('--wait is refused where nobody would work, before anything is inserted', async (t) => {
    const h = await startHearth({ t });
    await h.app({ name: 'idle' });
    const add = (...args) => h.cli('activity', 'add', '-', ...args, { input: '{}' });
    for (const [args, text, code] of [
        [['--wait'], /--wait needs --app/, 2],
        [['--app', 'idle', '--timeout', '1'], /--timeout needs --wait/, 2],
        [['--app', 'idle', '--wait', '--timeout', 'soon'], /--timeout must be a number of seconds above 0/, 2],
    ]) {
        const refused = await add(...args);
        assert.match(refused.stderr, text);
        assert.equal(refused.code, code);
    }
    assert.deepEqual(await h.cliJson('activity', 'list'), []);
    const late = await add('--app', 'idle', '--wait', '--timeout', '0.2');
    assert.equal(late.code, 1);
    assert.match(late.stderr, /^hearth: The activity \S+ has not ended within 0\.2 seconds\n$/);
    await h.terminate();
    assert.match((await add('--app', 'idle', '--wait')).stderr, /--wait needs a running service/);
    assert.equal((await h.cliJson('activity', 'list')).length, 1);
});
