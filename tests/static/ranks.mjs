// Folders are ranks (ARCHITECTURE.md): a file includes its own folder and lower ranks only, siblings never include each other.
// `node ranks.mjs` checks src/; the rules are exported as data so that their own test can plant violations.
import { fileURLToPath } from 'node:url';
import { resolve } from 'node:path';
import { readProject, report } from '../tools/tree.mjs';

export const ranks = {
    base: 0,
    os: 1, net: 1, http: 1, store: 1,
    settings: 2, backup: 2, stand_in: 2, pg: 2,
    identity: 3,
    llm: 4, embed: 4, vector: 4, speech: 4, mcp: 4, backend: 4,
    models: 5, face: 5,
    tasks: 6, agents: 6, apps: 6,
    api: 7,
    service: 8,
    cli: 9,
};

// A library's header and the places that may name it.
export const libraries = [
    { header: /^event2\/http/, allowed: /^src\/http\// },
    { header: /^event2\//, allowed: /^src\/(base|os|net|http)\// },
    { header: /^simdjson/, allowed: /^src\/base\/json_simdjson\.cpp$/ },
    { header: /^sqlite3\.h$/, allowed: /^src\/(store|backend)\// },
    { header: /^libpq/, allowed: /^src\/(pg\/|backend\/|vector\/pgvector)/ },
    { header: /^archive/, allowed: /^src\/backup\// },
    { header: /^curl\//, allowed: /^src\/(net|cli)\// },
    { header: /^wslay\//, allowed: /^src\/base\/websocket_frames\.c$/ },
    { header: /^(alsa|espeak-ng|flite|lame)\/|^(ebur128|sonic|pocketsphinx|sndfile|samplerate)\./, allowed: /^src\/speech\/worker_\w+\.[ch]$/ },
    { header: /^xxhash/, allowed: /^src\/base\/checksum\.c$/ },
    { header: /^libxml\//, allowed: /^src\/agents\/page_html\.c$/ },
];

// Hearth's own databases, and the two places that speak to a foreign one in its language (ARCHITECTURE.md, "Folders are ranks").
const sqlFolders = /^src\/(store\/|backend\/|vector\/pgvector)/;
const sqlWords = [
    /\bSELECT\b[^"]*\bFROM\b/, /\bINSERT\s+(OR\s+\w+\s+)?INTO\b/, /\bUPDATE\s+\S+\s+SET\b/, /\bDELETE\s+FROM\b/,
    /\b(CREATE|DROP|ALTER)\s+(TABLE|INDEX|TRIGGER|VIEW)\b/, /^PRAGMA\b/, /^SELECT\s+\S/, /^(BEGIN|COMMIT|ROLLBACK)\b/,
    /^(select\s+\S+.*\sfrom\s|insert\s+into\s|update\s+\S+\s+set\s|delete\s+from\s)/,
];

// C source without comments; strings stay.
export function withoutComments(text) {
    return text.replace(/"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|\/\*[\s\S]*?\*\/|\/\/[^\n]*/g,
        (match) => (match.startsWith('/') ? match.replace(/[^\n]/g, ' ') : match));
}

function checkHouseInclude(folder, path, included) {
    const target = included.split('/')[0];
    if (!included.includes('/') || !(target in ranks))
        return `"${included}" does not begin with a folder of src/`;
    if (folder === null || target === folder || ranks[target] < ranks[folder])
        return null;
    const relation = ranks[target] === ranks[folder] ? 'a sibling of the same rank' : `rank ${ranks[target]} from rank ${ranks[folder]}`;
    return `includes "${included}": ${relation}`;
}

function* checkIncludes(folder, path, text) {
    const pattern = /^[ \t]*#[ \t]*include[ \t]+(?:"([^"]+)"|<([^>]+)>)/gm;
    for (const match of text.matchAll(pattern)) {
        const line = text.slice(0, match.index).split('\n').length;
        const wrong = match[1] && checkHouseInclude(folder, path, match[1]);
        if (wrong)
            yield `${path}:${line}: ${wrong}`;
        const header = match[1] ?? match[2];
        const library = libraries.find((rule) => rule.header.test(header));
        if (library && !library.allowed.test(path))
            yield `${path}:${line}: <${header}> belongs to ${library.allowed.source.replace(/\\/g, '')}`;
    }
}

// Neighbouring literals are one string, as the compiler sees them.
function* checkSql(path, text) {
    if (sqlFolders.test(path))
        return;
    for (const match of text.matchAll(/"(?:\\.|[^"\\\n])*"(?:\s*"(?:\\.|[^"\\\n])*")*/g)) {
        const literal = match[0].replace(/"\s*"/g, '').slice(1, -1);
        if (sqlWords.some((word) => word.test(literal)))
            yield `${path}:${text.slice(0, match.index).split('\n').length}: SQL text outside src/store, src/backend and src/vector/pgvector*`;
    }
}

export function checkRanks(files) {
    const findings = [];
    for (const { path, text } of files) {
        const parts = path.split('/');
        const folder = parts.length > 2 ? parts[1] : null;
        if (folder === null && path !== 'src/main.c' && path !== 'src/meson.build')
            findings.push(`${path}: src/ itself holds main.c only`);
        if (folder !== null && !(folder in ranks))
            findings.push(`${path}: the folder has no rank; give it one in tests/static/ranks.mjs and ARCHITECTURE.md`);
        if (/\.(cc|cpp|cxx|hpp)$/.test(path) && path !== 'src/base/json_simdjson.cpp')
            findings.push(`${path}: src/base/json_simdjson.cpp is the only C++ file`);
        if (!/\.(c|h|cpp)$/.test(path) || (folder !== null && !(folder in ranks)))
            continue;
        const code = withoutComments(text);
        findings.push(...checkIncludes(folder, path, code), ...checkSql(path, code));
    }
    return findings;
}

if (process.argv[1] && resolve(process.argv[1]) === fileURLToPath(import.meta.url)) {
    const files = readProject(resolve(import.meta.dirname, '../..'), /^src\//);
    report('ranks', files.length ? checkRanks(files) : ['src/ is empty'], `${files.length} files read`);
}
