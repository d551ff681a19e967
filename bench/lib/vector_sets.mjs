// Files of rows and queries for the bench of vectors, made by bench_vector. `text` is this machine's own documentation: passages of man pages and of
// /usr/share/doc, embedded with lexical-384.
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { buildFolder, diskFolder } from './programs.mjs';

export const sets = ['text', 'low-rank', 'clustered', 'isotropic'];

const leastLength = 40;
const mostLength = 200;
const mostBytes = 1 << 22;

const filesOf = (folder) => readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name)).sort();

function textOf(path) {
    const bytes = readFileSync(path);
    try {
        return (path.endsWith('.gz') ? gunzipSync(bytes, { maxOutputLength: mostBytes }) : bytes).toString();
    } catch {
        return '';                      // larger, or not gzip
    }
}

// Lines that belong together, without the marks of roff and HTML.
const paragraphsOf = (text) => text
    .replace(/^[.'](?:\\"|[A-Za-z]{1,2}\b).*$/gm, '\n').replace(/\\f[A-Z(][A-Z]?|\\[&|^%]|<[^>]*>/g, '').replace(/\\-/g, '-')
    .split(/\n\s*\n/);

// Sentences, put together until they have some length.
function* passagesOf(text) {
    for (const paragraph of paragraphsOf(text)) {
        let passage = '';
        for (const sentence of paragraph.replace(/\s+/g, ' ').trim().split(/(?<=[.;:]) /)) {
            passage = `${passage} ${sentence}`.trim();
            if (passage.length < leastLength)
                continue;
            yield passage.slice(0, mostLength);
            passage = '';
        }
    }
}

// A number from 0 to 2^32 for a text: the same order in every run.
function hashOf(text) {
    let hash = 2166136261;
    for (let i = 0; i < text.length; i++)
        hash = Math.imul(hash ^ text.charCodeAt(i), 16777619);
    return hash >>> 0;
}

let known;

// Distinct passages in an order that has nothing to do with their files.
function passages() {
    if (known)
        return known;
    const distinct = new Set();
    for (const file of [...filesOf('/usr/share/man'), ...filesOf('/usr/share/doc')].filter((path) => !/\.(png|svg|pdf|js|css|jpg|gif|ico|woff2?|json|xml)(\.gz)?$/.test(path)))
        for (const passage of passagesOf(textOf(file)))
            distinct.add(passage);
    known = [...distinct].map((text) => [hashOf(text), text]).sort((a, b) => a[0] - b[0]).map(([, text]) => text);
    return known;
}

// The path of a file with so many rows and then the queries; null when this machine has too little documentation.
export function writeSet(set, { n, queries, dimensions }) {
    const path = join(diskFolder('rows'), 'rows.f32');
    const texts = set === 'text' ? passages().slice(0, n + queries) : [];
    if (set === 'text' && texts.length < n + queries)
        return null;
    execFileSync(join(buildFolder, 'bench/bench_vector'), ['-k', set, '-n', String(n), '-q', String(queries), '-d', String(dimensions), '-w', path],
        { input: texts.length ? `${texts.join('\n')}\n` : '', stdio: ['pipe', 'ignore', 'inherit'] });
    return path;
}
