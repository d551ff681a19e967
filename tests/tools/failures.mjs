// What a page that keeps only the end of a long output must not lose: `failures.mjs SUITE...` says of each suite that failed, in a few lines, how it
// closed and what failed in it. Read from build/: <suite>.tap of Node's test runner, Meson's logs (unit), else <suite>.log, the suite's output.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const most = { lines: 60, words: 6, width: 200 };

const cut = (line) => (line.length > most.width ? `${line.slice(0, most.width - 1)}…` : line);
const filled = (text) => text.split('\n').map((line) => line.trimEnd()).filter(Boolean);

// The value of a member of a test's YAML block; `|-` begins one of several lines.
function member(block, name) {
    const at = block.findIndex((line) => line.startsWith(`${name}:`));
    if (at < 0)
        return [];
    const value = block[at].slice(name.length + 1).trim();
    if (value !== '|-')
        return [value.replace(/^'(.*)'$|^"(.*)"$/, '$1$2').replaceAll("''", "'")];
    const rest = block.slice(at + 1);
    const end = rest.findIndex((line) => line && !line.startsWith('  '));
    return rest.slice(0, end < 0 ? rest.length : end).map((line) => line.slice(2)).filter((line) => line.trim());
}

// [{name, words}] of Node's TAP. What failed only because a part of it did, or was ended with it, is left out.
export function failedTests(tap) {
    const lines = tap.split('\n');
    const failures = [];
    for (const [n, line] of lines.entries()) {
        const [, indent, name] = /^( *)not ok \d+ - (.*)$/.exec(line) ?? [];
        if (name === undefined)
            continue;
        const rest = lines.slice(n + 1);
        const block = rest.slice(0, rest.indexOf(`${indent}  ...`)).map((one) => one.slice(indent.length + 2));
        if (['subtestsFailed', 'cancelledByParent'].includes(member(block, 'failureType')[0]))
            continue;
        const [where = ''] = member(block, 'location');
        failures.push({ name: `${name.replaceAll(/\\([\\#])/g, '$1')} (${where.replace(/^.*(?=tests\/)/, '')})`, words: member(block, 'error') });
    }
    return failures;
}

// [{name, words}] of Meson's log: the executable and its parts that failed; without one, or when it was killed, how it ended.
export function failedPrograms(log) {
    return filled(log).map((line) => JSON.parse(line)).filter((run) => !['OK', 'EXPECTEDFAIL', 'SKIP'].includes(run.result)).map((run) => {
        const parts = filled(run.stdout ?? '').filter((line) => line.startsWith('not ok')).map((line) => line.replace(/^not ok \d+ - /, ''));
        return {
            name: `${run.name.replace(/^.* \/ /, '')}: ${parts.join(', ') || `${run.result}, code ${run.returncode}`}`,
            words: (run.stderr ? filled(run.stderr) : filled(run.stdout ?? '').filter((line) => line.startsWith('#'))).slice(-most.words),
        };
    });
}

// [{name, words}] of a suite in the shell: its lines FAIL, each with what was said before it.
export function failedChecks(log) {
    const lines = filled(log);
    return lines.flatMap((line, n) => {
        if (!line.startsWith('FAIL '))
            return [];
        const before = lines.slice(0, n);
        return [{ name: line, words: before.slice(1 + before.findLastIndex((one) => /^(ok {3}|FAIL )/.test(one))).slice(-most.words) }];
    });
}

// The suite hostile runs once a build.
const tapsOf = (suite) => (suite === 'hostile' ? ['hostile-release.tap', 'hostile-debug.tap'] : [`${suite}.tap`]);

// The lines about one suite, `room` at most. read(path below build/) gives a text or ''.
export function aboutSuite(suite, read, room) {
    const log = read(`${suite}.log`);
    const said = filled(log);
    const closing = said.findLast((line) => line.startsWith(`${suite}: `) && /\d+ passed, \d+ failed$/.test(line)) ?? `${suite}: it did not come to its closing line`;
    const failures = suite === 'unit' ? ['debug', 'tsan'].flatMap((build) => failedPrograms(read(`${build}/meson-logs/testlog.json`)))
        : [...tapsOf(suite).flatMap((tap) => failedTests(read(tap))), ...failedChecks(log)];
    if (failures.length === 0)
        return [closing, ...said.filter((line) => line !== closing).slice(-most.words).map((line) => `    ${cut(line)}`)].slice(0, room);
    const words = Math.min(most.words, Math.max(0, Math.floor((room - 2) / failures.length) - 1));
    const lines = failures.flatMap((one) => [`  ${cut(one.name)}`, ...one.words.slice(0, words).map((line) => `    ${cut(line)}`)]);
    return lines.length < room ? [closing, ...lines] : [closing, ...lines.slice(0, room - 2), `  ... and more: the whole is in build/${suite}.log`];
}

export function aboutSuites(suites, read) {
    return suites.flatMap((suite) => aboutSuite(suite, read, Math.floor(most.lines / suites.length)));
}

if (import.meta.filename === process.argv[1]) {
    const build = join(import.meta.dirname, '../../build');
    const read = (path) => (existsSync(join(build, path)) ? readFileSync(join(build, path), 'utf8') : '');
    console.log(aboutSuites(process.argv.slice(2), read).join('\n'));
}
