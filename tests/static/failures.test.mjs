// The last lines of a run that failed say what failed, whichever suite it was in.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { aboutSuites } from '../tools/failures.mjs';

const about = (suites, files) => aboutSuites(suites, (path) => files[path] ?? '');

const notOk = (n, name, members, indent = '') => [`not ok ${n} - ${name}`, '  ---', "  location: '/x/y/tests/api/a.test.mjs:4:1'", ...members.map((one) => `  ${one}`), '  ...']
    .map((line) => indent + line).join('\n');

test('of Node\'s tests: the closing line, and each test that failed by itself with its place and first words', () => {
    const tap = ['TAP version 13', 'ok 1 - fine', notOk(2, 'one \\# two', ["failureType: 'testCodeFailure'", 'error: |-', '  words of it', '  ', '  1 !== 2', '  ', "code: 'X'"]),
        notOk(1, 'inner', ["failureType: 'testCodeFailure'", "error: 'it''s broken'"], '    '), notOk(3, 'group', ["failureType: 'subtestsFailed'", "error: '1 subtest failed'"])].join('\n');
    assert.deepEqual(about(['api'], { 'api.tap': tap, 'api.log': 'much\napi: 1 passed, 2 failed\n(api took 3 s)\n' }), [
        'api: 1 passed, 2 failed',
        '  one # two (tests/api/a.test.mjs:4:1)', '    words of it', '    1 !== 2',
        '  inner (tests/api/a.test.mjs:4:1)', "    it's broken",
    ]);
});

test('of unit: executable, part and what it said last; how it ended when it said nothing', () => {
    const run = (name, result, more) => JSON.stringify({ name: `hearth:net / ${name}`, result, returncode: 1, ...more });
    const log = [run('test_a', 'OK', { stdout: 'ok 1 - x\n' }), run('test_b', 'FAIL', { stdout: 'ok 1 - x\nnot ok 2 - a_wait_ends\n# 1 != 2\n# test_b.c:7\n' })].join('\n');
    assert.deepEqual(about(['unit'], { 'unit.log': 'unit: 1 passed, 2 failed', 'debug/meson-logs/testlog.json': log,
        'tsan/meson-logs/testlog.json': run('test_c', 'TIMEOUT', { returncode: -15, stdout: '', stderr: 'WARNING: ThreadSanitizer\n  here\n' }) }), [
        'unit: 1 passed, 2 failed',
        '  test_b: a_wait_ends', '    # 1 != 2', '    # test_b.c:7',
        '  test_c: TIMEOUT, code -15', '    WARNING: ThreadSanitizer', '      here',
    ]);
});

test('of checks in the shell: the check and what it said; of a suite that ended early its last words', () => {
    assert.deepEqual(about(['static', 'chaos'], { 'static.log': 'ok   static one\nsrc/a.c:1: long\nFAIL static two\nok   static three\nstatic: 2 passed, 1 failed\n', 'chaos.log': 'the build failed\n' }), [
        'static: 2 passed, 1 failed', '  FAIL static two', '    src/a.c:1: long',
        'chaos: it did not come to its closing line', '    the build failed',
    ]);
});

test('it stays short, and every suite has its share', () => {
    const tap = Array.from({ length: 300 }, (_, n) => notOk(n, `test ${n}`, ['error: |-', ...Array(40).fill(`  ${'long '.repeat(100)}`), "code: 'X'"])).join('\n');
    const lines = about(['api', 'peers'], { 'api.tap': tap, 'peers.tap': tap });
    assert.ok(lines.length <= 60 && lines.every((line) => line.length <= 210), lines.length);
    assert.equal(lines.filter((line) => line.includes('and more')).length, 2);
});
