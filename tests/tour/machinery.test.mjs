// The reader of the tour must be able to fail.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { lineMatches, missingPromise, plainShellBlocks, readTour, Shell } from './tour.mjs';

const markdown = [
    'Text', '```sh', 'never run', '```', '```sh tour', 'a=1', 'echo $a', '# => 1', 'echo two', '# => t...', '```', '```sh tour until', 'true', '```', '',
].join('\n');

test('only marked blocks are run, in steps that end with their promises', () => {
    const [first, second] = readTour(markdown);
    assert.deepEqual(first, {
        line: 5, kind: 'once', steps: [
            { line: 6, commands: ['a=1', 'echo $a'], expected: ['1'] },
            { line: 9, commands: ['echo two'], expected: ['t...'] },
        ],
    });
    assert.equal(second.kind, 'until');
});

test('a block that is not run is found', () => assert.deepEqual(plainShellBlocks(markdown), [2]));

test('three dots stand for anything, all else for itself', () => {
    assert.ok(lineMatches('{"id":"...","n":1}', '{"id":"x-y","n":1}'));
    assert.ok(!lineMatches('{"id":"...","n":1}', '{"id":"x-y","n":2}'));
    assert.ok(!lineMatches('a.b', 'axb'));
    assert.ok(!lineMatches('1', '12'));
});

test('promises are looked for in order', () => {
    assert.equal(missingPromise(['a', 'b'], 'a\nx\nb\n'), null);
    assert.equal(missingPromise(['b', 'a'], 'a\nx\nb\n'), 'a');
    assert.equal(missingPromise(['c'], ''), 'c');
});

test('the shell keeps variables, tells the exit code and sees a failure in the middle', async (t) => {
    const shell = new Shell({ cwd: '.', env: process.env, replace: (text) => text.replace('OLD', 'new') });
    t.after(() => shell.close());
    assert.deepEqual(await shell.run(['a=OLD']), { code: 0, output: '' });
    assert.deepEqual(await shell.run(['echo "$a"', "printf '%s' 'it'\\''s'"]), { code: 0, output: "new\nit's" });
    assert.equal((await shell.run(['false', 'echo more'])).code, 1);
    assert.equal((await shell.run(['false | true'])).code, 1);
    assert.equal((await shell.run(['true'])).code, 0);
});
