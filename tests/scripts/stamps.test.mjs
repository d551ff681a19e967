// What script/test skips: only what passed with the same inputs on the same machine, and never without a word.
import assert from 'node:assert/strict';
import { appendFileSync, cpSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { stale } from '../tools/areas.mjs';
import { Copy, root } from './copy.mjs';

// A tree with suites of its own: `demo` runs Node's tests against a program, `checks` has two checks, one of which is stamped.
class Suites extends Copy {
    constructor(t) {
        super(t);
        cpSync(join(root, 'tests/tools'), join(this.tree, 'tests/tools'), { recursive: true });
        rmSync(join(this.tree, 'script/suites'), { recursive: true });
        this.standIn('dpkg-query', 'echo "libc 1"');
        this.standIn('cc', 'echo "cc 1"');
        this.program(join(this.tree, 'script/bootstrap'), 'exit 0');
        this.suite('demo', 'export HEARTH_BIN=$house_root/build/debug/hearth\nnode_suite demo tests/demo/*.test.mjs');
        this.suite('checks', `inputs_one() { printf 'a\\tfolder'; }\ncheck_one() { echo one >>"$CALLS"; [ ! -e broken ]; }\ncheck_two() { echo two >>"$CALLS"; }\nrun_checks checks one two`);
        this.write('build/debug/hearth', 'program 1');
        this.write('src/vector/a.c', '1');
        this.write('src/base/a.c', '1');
        this.write('meson.build', '1');
        this.write('tests/demo/kit.mjs', 'export const n = 1;');
        for (const name of ['x', 'y'])
            this.write(`tests/demo/${name}.test.mjs`, `import { test } from 'node:test';\nimport { appendFileSync } from 'node:fs';\nimport { n } from './kit.mjs';
test('it runs', () => appendFileSync(process.env.CALLS, '${name}\\n'));\n`);
        this.write('a', '1');
        this.write('folder/b', '1');
    }

    write(path, text) {
        mkdirSync(dirname(join(this.tree, path)), { recursive: true });
        writeFileSync(join(this.tree, path), text);
    }

    suite(name, script) {
        this.program(join(this.tree, 'script/suites', name), '');
        this.write(`script/suites/${name}`, `#!/usr/bin/env bash\n. "$(dirname "$0")/../lib/house.sh"\n${script}\n`);
    }

    // {code, output, ran}: what script/test said, and which tests and checks it executed.
    async test(args, options) {
        rmSync(this.path('calls'), { force: true });
        const { code, output } = await this.run('script/test', args, options);
        return { code, output, ran: this.calls().sort() };
    }
}

test('what passed is skipped with a line that says so, and its former count; --all runs it', async (t) => {
    const tree = new Suites(t);
    const first = await tree.test(['demo', 'checks']);
    assert.equal(first.code, 0, first.output);
    assert.deepEqual(first.ran, ['one', 'two', 'x', 'y']);
    assert.match(first.output, /^demo: 2 passed, 0 failed$/m);
    const second = await tree.test(['demo', 'checks']);
    assert.equal(second.code, 0, second.output);
    assert.deepEqual(second.ran, ['two'], 'a check without inputs always runs');
    assert.match(second.output, /^demo: skipped 2 of its parts, 2 passed before: nothing it reads has changed since it passed \(script\/test --all runs it\)$/m);
    assert.match(second.output, /^demo: 2 passed, 0 failed \(before; this run executed nothing of it\)$/m);
    assert.match(second.output, /^checks: skipped 1 of its parts, 1 passed before: .*\nchecks: 1 passed, 0 failed$/m);
    assert.deepEqual((await tree.test(['--all', 'demo', 'checks'])).ran, ['one', 'two', 'x', 'y']);
});

const changes = [
    ['the test', (tree) => appendFileSync(join(tree.tree, 'tests/demo/x.test.mjs'), '// more\n'), ['x']],
    ['a module beside it', (tree) => tree.write('tests/demo/kit.mjs', 'export const n = 2;'), ['x', 'y']],
    ['a file beside it that is new', (tree) => tree.write('tests/demo/agent.py', '1'), ['x', 'y']],
    ['an example', (tree) => tree.write('examples/new', '1'), ['x', 'y']],
    ['the program', (tree) => tree.write('build/debug/hearth', 'program 2'), ['x', 'y']],
    ['a file of a check', (tree) => tree.write('a', '2'), ['one']],
    ['a file of a folder of a check', (tree) => tree.write('folder/c', '1'), ['one']],
    ['a removed file of a folder of a check', (tree) => rmSync(join(tree.tree, 'folder/b')), ['one']],
    ['the version of a package', (tree) => tree.standIn('dpkg-query', 'echo "libc 2"'), ['one', 'x', 'y']],
    ['the version of the compiler', (tree) => tree.standIn('cc', 'echo "cc 2"'), ['one', 'x', 'y']],
    ['a variable that tests read', () => ({ env: { CHAOS_SEED: '7' } }), ['one', 'x', 'y']],
];

test('whatever is read changes, what reads it runs again, and nothing else', async (t) => {
    const tree = new Suites(t);
    await tree.test(['demo', 'checks']);
    for (const [what, change, wanted] of changes) {
        const options = change(tree);
        const { code, output, ran } = await tree.test(['demo', 'checks'], options?.env ? options : {});
        assert.equal(code, 0, output);
        assert.deepEqual(ran.filter((one) => one !== 'two'), wanted, what);
        if (options?.env)
            await tree.test(['demo', 'checks']);
    }
});

test('what failed has no stamp, and runs until it passes', async (t) => {
    const tree = new Suites(t);
    tree.write('broken', '');
    const bad = "import { test } from 'node:test';\nimport { existsSync } from 'node:fs';\ntest('bad', () => { if (existsSync('broken')) throw new Error('bad'); });\n";
    appendFileSync(join(tree.tree, 'tests/demo/x.test.mjs'), bad.replace(/^.*\n/, ''));
    for (const again of [1, 2]) {
        const { code, output, ran } = await tree.test(['demo', 'checks']);
        assert.equal(code, 1, output);
        assert.deepEqual(ran, again === 1 ? ['one', 'two', 'x', 'y'] : ['one', 'two', 'x']);
    }
    rmSync(join(tree.tree, 'broken'));
    assert.deepEqual((await tree.test(['demo', 'checks'])).ran, ['one', 'two', 'x']);
    assert.deepEqual((await tree.test(['demo', 'checks'])).ran, ['two']);
    tree.write('broken', '');
    assert.equal((await tree.test(['--all', 'checks'])).code, 1, 'it passed with these inputs before');
    rmSync(join(tree.tree, 'broken'));
    assert.deepEqual((await tree.test(['checks'])).ran, ['one', 'two'], 'a failure takes the stamp away');
});

test('a failure that lies in no test file leaves no stamp of any', async (t) => {
    const tree = new Suites(t);
    tree.write('tests/demo/kit.mjs', "import { test } from 'node:test';\nexport const n = 1;\nif (process.argv[1].includes('x.test')) test('bad', () => { throw new Error('bad'); });");
    for (const _ of [1, 2])
        assert.deepEqual((await tree.test(['demo'])).ran, ['x', 'y']);
});

test('another machine\'s stamps and a suite without tests are not taken for a pass', async (t) => {
    const tree = new Suites(t);
    await tree.test(['checks']);
    const stamp = join(tree.tree, 'build/stamps/checks/one.json');
    writeFileSync(stamp, readFileSync(stamp, 'utf8').replace(/"key":"./, '"key":"z'));
    assert.deepEqual((await tree.test(['checks'])).ran, ['one', 'two']);
    await tree.test(['demo']);
    rmSync(join(tree.tree, 'tests/demo'), { recursive: true });
    const { code, output } = await tree.test(['demo']);
    assert.equal(code, 1, output);
    assert.match(output, /demo: 0 passed, 0 failed\n.*executed nothing/);
});

test('a file with an area is skipped while its part of src/ is as it was, whatever else changes', async (t) => {
    const tree = new Suites(t);
    tree.suite('demo', 'export HEARTH_BIN=$house_root/build/debug/hearth\nnode_suite demo tests/api/*.test.mjs');
    for (const name of ['keys', 'vectors', 'events']) {
        tree.write(`tests/api/${name}.test.mjs`, readFileSync(join(tree.tree, 'tests/demo/x.test.mjs'), 'utf8').replace("'x\\n'", `'${name}\\n'`));
        cpSync(join(tree.tree, 'tests/demo/kit.mjs'), join(tree.tree, 'tests/api/kit.mjs'));
    }
    await tree.test(['demo']);
    const changed = async (path) => {
        tree.write(path, String(Math.random()));
        tree.write('build/debug/hearth', String(Math.random()));
        return tree.test(['demo']);
    };
    const { ran, output } = await changed('src/vector/a.c');
    assert.deepEqual(ran, ['events', 'vectors'], 'events has no row in areas.mjs');
    assert.match(output, /^demo: skipped 1 of its parts, 1 passed before: the program has changed, but no part of src\/ that it is about \(script\/test --all runs it\)$/m);
    assert.deepEqual((await changed('src/base/a.c')).ran, ['events', 'keys', 'vectors'], 'all stand on the ground');
    assert.deepEqual((await changed('meson.build')).ran, ['events', 'keys', 'vectors']);
});

test('every row of areas.mjs matches something', () => {
    const below = (folder) => readdirSync(join(root, folder), { recursive: true }).filter((path) => statSync(join(root, folder, path)).isFile());
    const tests = ['api', 'peers', 'hostile', 'chaos'].flatMap((suite) => below(`tests/${suite}`).map((path) => `tests/${suite}/${path}`));
    assert.deepEqual(stale(below('src'), tests), []);
    assert.deepEqual(stale(['nothing.c'], ['none.mjs']).filter((one) => one === 'cli/'), ['cli/']);
});
