// The release program as the linker left it (readelf of binutils): position independent, relocations read-only from the start, no stack and no
// segment both writable and executable, the stack protector and checked library calls in use, no search path of its own.
//
//     node tests/static/binary.mjs build/release/hearth
import { execFileSync } from 'node:child_process';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { report } from '../tools/tree.mjs';

const wanted = [
    [/^ *Type: +DYN \(Position-Independent Executable/m, 'it is not position independent'],
    [/\(FLAGS_1\).*\bNOW\b.*\bPIE\b/, 'its relocations are not bound at the start (-z now)'],
    [/^ *GNU_RELRO /m, 'its relocations stay writable (-z relro)'],
    [/^ *GNU_STACK .* RW +0x/m, 'its stack is not marked as data'],
    [/\b__stack_chk_fail\b/, 'it has no stack protector'],
    [/\b__(memcpy|snprintf|vsnprintf|read|memset)_chk\b/, 'it calls no checked functions (_FORTIFY_SOURCE)'],
];
const unwanted = [
    [/^ *LOAD .* (RWE|WE) +0x/m, 'a segment is writable and executable'],
    [/\((RPATH|RUNPATH)\)/, 'it looks for libraries in a folder of its own'],
    [/\(TEXTREL\)/, 'its code is relocated'],
];

// What `readelf -hldW --dyn-syms` says of the program.
export function checkBinary(text) {
    return [...wanted.filter(([pattern]) => !pattern.test(text)), ...unwanted.filter(([pattern]) => pattern.test(text))].map(([, what]) => what);
}

if (process.argv[1] && resolve(process.argv[1]) === fileURLToPath(import.meta.url)) {
    const program = process.argv[2];
    const text = execFileSync('readelf', ['-hldW', '--dyn-syms', program], { encoding: 'utf8', maxBuffer: 1 << 26 });
    report('binary', checkBinary(text).map((what) => `${program}: ${what}`), '1 program read');
}
