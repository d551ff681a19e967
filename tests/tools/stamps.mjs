// What has passed, and with which inputs: build/stamps/<suite>/<item>.json. A suite asks which of its items are due, runs them, and hands in those that
// passed; an item whose inputs are those of its stamp is skipped. TEST_ALL=1 makes every item due.
//
//     stamps.mjs due SUITE <items       the items that are due, one a line; their stamps are removed. An item is `NAME<TAB>INPUT...`: a file, a folder
//                                       (all files below it), or =WORDS
//     stamps.mjs due-tests SUITE BIN FILE...       the same for files of Node's test runner, which run the program BIN; slowest first, before them those never
//                                              run, as they are named
//     stamps.mjs due-units SUITE BUILD LABEL       the same for Meson's tests of build/BUILD with this label (all: every one)
//     stamps.mjs due-sources SUITE BUILD           the same for the C files of src/, with the headers that build/BUILD knows
//     stamps.mjs programs BUILD LABEL              the programs of these tests, as ninja names them
//     stamps.mjs passed SUITE <passed   makes the stamps of `NAME<TAB>TESTS<TAB>MS`
//     stamps.mjs passed-units SUITE LOG            the same out of a log of Meson's
//     stamps.mjs skipped SUITE...       how many tests and items were skipped, and the sentences about them
//
// An item's key is a hash of its inputs and of the machine: its id, kernel and user, the compiler, Node, every Debian package's version, and variables
// that tests read. What the program reads beyond that (the time, the load) no key can hold: `script/test --all` and continuous integration take no stamps.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import { dirname, join, relative, resolve } from 'node:path';
import { areaOf, partOf } from './areas.mjs';

const root = resolve(import.meta.dirname, '../..');
const stamps = join(root, 'build/stamps');
const isAll = process.env.TEST_ALL === '1';

const hash = (...parts) => parts.reduce((all, part) => all.update(part).update('\0'), createHash('sha256')).digest('hex');
const readJson = (path, otherwise) => (existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : otherwise);
const stampPath = (suite, name) => join(stamps, suite, `${name.replaceAll(/[^A-Za-z0-9._-]+/g, '-')}.json`);
const planPath = (suite) => join(stamps, suite, 'plan');
const lines = (text) => text.split('\n').filter(Boolean);

// --- What an item reads ---

function filesBelow(folder) {
    return readdirSync(folder, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1)).flatMap((entry) => {
        const path = join(folder, entry.name);
        if (entry.isDirectory())
            return ['node_modules', 'found'].includes(entry.name) ? [] : filesBelow(path);
        return entry.isFile() ? [path] : [];
    });
}

const seen = new Map();

// The hash of a file, of all files of a folder with their names, or of what is missing.
function contentOf(input) {
    if (input.startsWith('='))
        return input;
    const path = resolve(root, input);
    if (!seen.has(path)) {
        const isFolder = existsSync(path) && statSync(path).isDirectory();
        seen.set(path, !existsSync(path) ? 'missing' : isFolder ? hash(...filesBelow(path).flatMap((one) => [one.slice(path.length), contentOf(one)]))
            : hash(readFileSync(path)));
    }
    return seen.get(path);
}

function sayings(program, ...args) {
    try {
        return execFileSync(program, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'], maxBuffer: 1 << 26 });
    } catch {
        return `no ${program}`;
    }
}

const isRead = (name) => /^(HEARTH|HOSTILE|CHAOS|FUZZ|SCHEMA|TIDY|WAIT|ASAN|UBSAN|TSAN)_/.test(name) && name !== 'HEARTH_BIN';

function machine() {
    const id = existsSync('/etc/machine-id') ? readFileSync('/etc/machine-id', 'utf8') : '';
    const kernel = existsSync('/proc/version') ? readFileSync('/proc/version', 'utf8') : '';
    const hasIpv6 = Object.values(networkInterfaces()).flat().some(({ address }) => address === '::1');
    const variables = Object.entries(process.env).filter(([name]) => isRead(name)).sort().flat();
    return hash('1', id, kernel, process.version, String(process.getuid()), String(hasIpv6), sayings('cc', '--version'), sayings('clang-14', '--version'),
        sayings('dpkg-query', '-W', '-f', '${Package} ${Version} ${Architecture}\n'), contentOf('tests/package-lock.json'), ...variables);
}

// A module and all that it imports of this project.
function modules(path, found = new Set()) {
    if (found.has(path) || !existsSync(path))
        return found;
    found.add(path);
    for (const [, name] of readFileSync(path, 'utf8').matchAll(/(?:from|import|import\()\s*['"](\.[^'"]+)['"]/g))
        modules(resolve(dirname(path), name), found);
    return found;
}

// What stands beside a test file and is no test: harness, agents, doubles, inputs that once failed.
const beside = (file) => filesBelow(dirname(resolve(root, file))).filter((path) => !path.endsWith('.test.mjs'));

const read = { tour: ['README.md', 'docs'], scripts: ['script', '.ci'] };

function testItems(program, files) {
    const isOurs = ['debug', 'release'].some((build) => program === join(root, 'build', build, 'hearth'));
    return [...new Set(files)].map((file) => ({
        name: file,
        inputs: [...new Set([...modules(resolve(root, file)), ...beside(file)])].map((path) => relative(root, path))
            .concat('examples', 'packaging', read[file.split('/').at(-2)] ?? []),
        program,
        area: isOurs ? areaOf(file) : null,
    }));
}

function unitTests(build, label) {
    const tests = JSON.parse(execFileSync('meson', ['introspect', '--tests', join(root, 'build', build)], { encoding: 'utf8', maxBuffer: 1 << 26 }));
    return tests.filter(({ suite }) => label === 'all' || suite.some((one) => one.split(':').at(-1) === label));
}

const unitItems = (build, label) => unitTests(build, label).map(({ name, cmd, env }) => (
    { name, inputs: [cmd[0], `=${cmd.slice(1)}`, ...Object.entries(env).map((pair) => `=${pair}`)] }));

// Headers of the system are not read: the versions of their packages are part of the machine.
function sourceItems(build) {
    const folder = join(root, 'build', build);
    const known = new Map();
    for (const block of execFileSync('ninja', ['-C', folder, '-t', 'deps'], { encoding: 'utf8', maxBuffer: 1 << 28 }).split('\n\n')) {
        const paths = lines(block).slice(1).map((line) => relative(root, resolve(folder, line.trim())));
        if (paths.length > 0)
            known.set(paths[0], paths.filter((path) => !path.startsWith('..')));
    }
    const commands = new Map(readJson(join(folder, 'compile_commands.json'), []).map(({ file, command }) => [relative(root, resolve(folder, file)), command]));
    return filesBelow(join(root, 'src')).filter((path) => path.endsWith('.c')).map((path) => relative(root, path)).map((name) => ({
        name, inputs: known.has(name) ? [...known.get(name), '.clang-tidy', 'script/suites/static', `=${commands.get(name)}`] : [`=${Date.now()}`],
    }));
}

// --- Which are due ---

// The hashes of the parts of src/ that an item is about: they stand in for the program, which any change changes.
function partHashes(area) {
    const files = filesBelow(join(root, 'src')).map((path) => path.slice(join(root, 'src/').length));
    return Object.fromEntries(area.map((part) => [part, hash(contentOf('meson.build'),
        ...files.filter((path) => partOf(path) === part).flatMap((path) => [path, contentOf(`src/${path}`)]))]));
}

function isSame(stamp, now) {
    if (!stamp?.key || stamp.key !== now.key)
        return null;
    if (stamp.program === now.program)
        return 'same';
    return now.area && JSON.stringify(stamp.area) === JSON.stringify(now.area) ? 'elsewhere' : null;
}

function due(suite, items, isSlowestFirst) {
    const here = machine();
    const plan = { due: {}, skipped: { same: { items: 0, tests: 0 }, elsewhere: { items: 0, tests: 0 } } };
    const wanted = [];
    mkdirSync(join(stamps, suite), { recursive: true });
    for (const item of items) {
        const now = { key: hash(here, ...item.inputs.flatMap((input) => [input, contentOf(input)])), program: item.program ? contentOf(item.program) : '',
            area: item.area ? partHashes(item.area) : null };
        const path = stampPath(suite, item.name);
        const stamp = readJson(path, null);
        const why = isAll ? null : isSame(stamp, now);
        if (why) {
            plan.skipped[why].items += 1;
            plan.skipped[why].tests += stamp.tests;
            continue;
        }
        plan.due[item.name] = { ...now, inputs: item.inputs, ms: stamp?.ms ?? 0 };
        writeFileSync(path, JSON.stringify({ ms: stamp?.ms ?? 0 }));
        wanted.push({ name: item.name, ms: stamp?.ms || Infinity });
    }
    writeFileSync(planPath(suite), JSON.stringify(plan));
    return (isSlowestFirst ? wanted.sort((a, b) => (a.ms === b.ms ? 0 : b.ms - a.ms)) : wanted).map(({ name }) => name);
}

function passed(suite, text) {
    const plan = readJson(planPath(suite), { due: {} });
    for (const [name, tests = 1, ms = 0] of lines(text).map((line) => line.split('\t')))
        if (plan.due[name])
            writeFileSync(stampPath(suite, name), JSON.stringify({ ...plan.due[name], tests: Number(tests), ms: Number(ms) }));
}

// The programs of a log of Meson's that passed, as passed() reads them.
function unitsOf(log) {
    return lines(existsSync(log) ? readFileSync(log, 'utf8') : '').map((line) => JSON.parse(line)).filter(({ result }) => result === 'OK')
        .map(({ name, stdout = '', duration }) => [name.split(' / ').at(-1), lines(stdout).filter((line) => /^ok\b/.test(line)).length, Math.round(duration * 1000)].join('\t')).join('\n');
}

const sentences = {
    same: 'nothing it reads has changed since it passed',
    elsewhere: 'the program has changed, but no part of src/ that it is about',
};

function skipped(suites) {
    const plans = suites.map((suite) => [suite, readJson(planPath(suite), null)]).filter(([, plan]) => plan);
    const sums = plans.flatMap(([suite, plan]) => Object.entries(plan.skipped).filter(([, sum]) => sum.items > 0).map(([why, sum]) => ({ suite, why, ...sum })));
    return [`${sums.reduce((all, one) => all + one.tests, 0)} ${sums.reduce((all, one) => all + one.items, 0)}`,
        ...sums.map((one) => `${one.suite}: skipped ${one.items} of its parts, ${one.tests} passed before: ${sentences[one.why]} (script/test --all runs it)`)].join('\n');
}

// --- The command ---

const stdin = () => readFileSync(0, 'utf8');

const commands = {
    due: (suite) => due(suite, lines(stdin()).map((line) => line.split('\t')).map(([name, ...inputs]) => ({ name, inputs }))),
    'due-tests': (suite, program, ...files) => due(suite, testItems(program && resolve(program), files), true),
    'due-units': (suite, build, label) => due(suite, unitItems(build, label)),
    'due-sources': (suite, build) => due(suite, sourceItems(build)),
    programs: (build, label) => unitTests(build, label).map(({ cmd }) => relative(join(root, 'build', build), cmd[0])),
    passed: (suite) => passed(suite, stdin()),
    'passed-units': (suite, log) => passed(suite, unitsOf(log)),
    skipped: (...suites) => [skipped(suites)],
};

const [command, ...args] = process.argv.slice(2);
const out = commands[command](...args) ?? [];
if (out.length > 0)
    console.log(out.join('\n'));
