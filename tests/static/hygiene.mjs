// What must not be in the tree: paths of one machine, package locks that name hosts, private keys, merge conflicts, JavaScript and
// shell that do not parse.
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { join, resolve } from 'node:path';
import { readProject, report } from '../tools/tree.mjs';

const root = resolve(import.meta.dirname, '../..');

export function checkText({ path, text }) {
    const findings = [];
    const say = (what) => findings.push(`${path}: ${what}`);
    if (/(^|\/)package-lock\.json$/.test(path) && /"resolved"/.test(text))
        say('the lock names hosts; make it with npm --omit-lockfile-registry-resolved');
    if (/-----BEGIN [A-Z ]*PRIVATE KEY-----/.test(text) && !path.startsWith('tests/'))
        say('holds a private key');
    if (/(^|[\s"'`=(])\/(home|root|work|Users)\/[a-z]/m.test(text) && path !== 'LICENSE')
        say('names a path of one machine');
    if (/^tests\/unit\/.*\.c$/.test(path) && /\bskip\(\)/.test(text))
        say('calls skip(), which Meson counts as a failure; SKIP_TEST() of tests/unit/skip.h says why');
    if (/^(<<<<<<<|>>>>>>>) /m.test(text))
        say('holds a merge conflict');
    return findings;
}

function parses(path, text) {
    try {
        if (/\.(m?js)$/.test(path))
            execFileSync(process.execPath, ['--check', join(root, path)], { stdio: 'pipe' });
        else if (/^#!.*\b(ba)?sh\b/.test(text))
            execFileSync('bash', ['-n', join(root, path)], { stdio: 'pipe' });
        return [];
    } catch (error) {
        return [`${path}: ${error.stderr}`];
    }
}

if (process.argv[1] && resolve(process.argv[1]) === fileURLToPath(import.meta.url)) {
    const files = readProject(root, /^(?!.*(\.(png|ico|gz|bin)$|(seeds|regressions)\/))/);
    const findings = files.flatMap((file) => [...checkText(file), ...parses(file.path, file.text)]);
    report('hygiene', findings, `${files.length} files read`);
}
