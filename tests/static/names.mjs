// A comment that names a function, as `name()`, names one that exists: of this program, or of the system and libraries listed here.
// The identifiers of src are the trade's words, not the metaphors that were here before.
import { fileURLToPath } from 'node:url';
import { resolve } from 'node:path';
import { readProject, report } from '../tools/tree.mjs';
import { withoutComments } from './ranks.mjs';

const foreign = new Set(['exec', 'fork', 'vfork', 'free', 'malloc', 'realloc', 'calloc', 'exit', 'kill', 'poll', 'setsid', 'execve', 'umask', 'fail', 'assert']);

const metaphors = new Set(['tell', 'tells', 'telling', 'told', 'ask', 'asks', 'asked', 'asking', 'seat', 'seats', 'desk', 'desks', 'clerk', 'clerks', 'duty', 'duties', 'wish', 'wishes', 'roster', 'rosters', 'board', 'boards', 'behind']);
// A sealed secret (src/identity/seal.h) and a sealed file in memory are the trade's words; a thought has a signature.
const sealMeansEncrypted = /^src\/(identity|mcp|face\/keys|llm\/stored|models\/vector_stores|backend\/backend_password|store|os\/child_image|service\/open)/;

function* commentsOf(text) {
    for (const match of text.matchAll(/"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|\/\*[\s\S]*?\*\/|\/\/[^\n]*/g))
        if (match[0].startsWith('/'))
            yield { text: match[0], line: text.slice(0, match.index).split('\n').length };
}

export function checkNames(files) {
    const known = new Set(foreign);
    for (const { text } of files)
        for (const [name] of withoutComments(text).matchAll(/[A-Za-z_]\w*/g))
            known.add(name);
    const findings = [];
    for (const { path, text } of files)
        for (const comment of commentsOf(text))
            for (const [, name] of comment.text.matchAll(/(?<![\w.>/])([A-Za-z_]\w*)\(\)/g))
                if (!known.has(name))
                    findings.push(`${path}:${comment.line}: a comment names ${name}(), which does not exist`);
    return findings;
}

function* identifiersOf(text) {
    const code = withoutComments(text).replace(/"(?:\\.|[^"\\\n])*"/g, (literal) => `"${' '.repeat(literal.length - 2)}"`);
    for (const match of code.matchAll(/[A-Za-z_]\w*/g))
        yield { name: match[0], line: code.slice(0, match.index).split('\n').length };
}

export function checkMetaphors(files) {
    const findings = new Set();
    for (const { path, text } of files)
        for (const { name, line } of path.startsWith('src/') ? identifiersOf(text) : [])
            for (const word of name.toLowerCase().split('_'))
                if (metaphors.has(word) || /^(un)?seal(s|ed)?$/.test(word) && !sealMeansEncrypted.test(path))
                    findings.add(`${path}:${line}: ${name} is a metaphor: CONTRIBUTING.md, "Plain English"`);
    return [...findings];
}

if (process.argv[1] && resolve(process.argv[1]) === fileURLToPath(import.meta.url)) {
    const files = readProject(resolve(import.meta.dirname, '../..'), /^(src|tests|bench)\/.*\.(c|h|cpp)$/);
    report('names', files.length ? [...checkNames(files), ...checkMetaphors(files)] : ['no sources'], `${files.length} files read`);
}
