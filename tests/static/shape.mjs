// The measures of CONTRIBUTING.md: functions of at most 60 lines, files of at most 600 (tables without a function are exempt),
// headers that open with a comment, no exit or abort below main.
import { fileURLToPath } from 'node:url';
import { resolve } from 'node:path';
import { readProject, report } from '../tools/tree.mjs';
import { withoutComments } from './ranks.mjs';

export const maxFunctionLines = 60;
export const maxFileLines = 600;

// Ending the process: main, a child between fork and exec, memory that is not to be had, the second SIGTERM.
const mayExit = /^src\/(main\.c|os\/(child\w*|spawn)\.c|base\/(util|arena|buf)\.[ch]|service\/lifecycle\.c)$/;

// Functions as clang-format leaves them: the brace alone in column 0, and one that closes it.
export function functionsOf(text) {
    const found = [];
    const lines = text.split('\n');
    let start = -1;
    lines.forEach((line, i) => {
        if (line.startsWith('{') && !line.startsWith('{ ') && start < 0)
            start = i;
        else if (line.startsWith('}') && start >= 0) {
            let head = start - 1;
            while (head > 0 && /^\s/.test(lines[head]))
                head--;
            found.push({ name: lines[head].match(/(\w+)\s*\(/)?.[1] ?? lines[head], line: start + 1, lines: i - start + 1 });
            start = -1;
        }
    });
    return found;
}

export function checkShape(files) {
    const findings = [];
    for (const { path, text } of files) {
        const functions = functionsOf(text);
        const nLines = text.split('\n').length - 1;
        for (const f of functions.filter((f) => f.lines > maxFunctionLines))
            findings.push(`${path}:${f.line}: ${f.name} has ${f.lines} lines, the most is ${maxFunctionLines}`);
        if (nLines > maxFileLines && functions.length > 0)
            findings.push(`${path}: ${nLines} lines, the most is ${maxFileLines}`);
        if (path.startsWith('src/') && path.endsWith('.h') && !text.startsWith('/*'))
            findings.push(`${path}: a header opens with a comment: what it is, who owns what, which thread calls it`);
        if (path.endsWith('.h') && !/^#pragma once$/m.test(text))
            findings.push(`${path}: #pragma once is missing`);
        if (path.startsWith('src/cli/') && path !== 'src/cli/out.c' && /(^|[^\w.])(printf|fprintf|puts|fputs|putchar|putc|fputc|fwrite|dprintf)\s*\(/m.test(withoutComments(text)))
            findings.push(`${path}: what commands print goes through cli/out.h, so that no foreign text steers the terminal`);
        if (!path.startsWith('src/') || mayExit.test(path))
            continue;
        withoutComments(text).split('\n').forEach((line, i) => {
            if (/(^|[^\w.>])(_?exit|abort|quick_exit)\s*\(/.test(line))
                findings.push(`${path}:${i + 1}: nothing below main ends the process`);
        });
    }
    return findings;
}

if (process.argv[1] && resolve(process.argv[1]) === fileURLToPath(import.meta.url)) {
    const files = readProject(resolve(import.meta.dirname, '../..'), /^(src|tests)\/.*\.(c|h|cpp)$/);
    report('shape', files.length ? checkShape(files) : ['no sources'], `${files.length} files read`);
}
