// Every error code the program can answer with stands in api_errors[] (src/api/errors.c), and docs/errors.md is that table.
// `node codes.mjs` checks, `node codes.mjs --write` writes the page anew.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { join, resolve } from 'node:path';
import { readProject, report } from '../tools/tree.mjs';

const table = 'src/api/errors.c';
const page = 'docs/errors.md';

// Told before the service listens or by the command line only, so never in an answer; src/cli answers nobody.
const startUp = new Set(['ADDRESS_IN_USE', 'ALREADY_RUNNING', 'BAD_DATA_FOLDER', 'BAD_MASTER_KEY', 'BAD_ROUTE', 'COMMAND_TIMED_OUT', 'LISTEN_FAILED', 'NO_DATA_DIR', 'NO_HOME', 'SCHEMA_MISSING', 'SCHEMA_TOO_NEW', 'SCHEMA_TOO_OLD']);

// Of a connection to an MCP server; src/mcp/host_start.c: host_err() answers with MCP_SERVER_ERROR instead.
const ofConnections = new Set(['MCP_BAD_ANSWER', 'MCP_BAD_TOOL', 'MCP_CLOSED', 'MCP_ERA_RETRY', 'MCP_FRAME_TOO_LARGE', 'MCP_NO_ANSWER', 'MCP_SESSION_LOST', 'MCP_TOO_LARGE', 'MCP_VERSION']);

export function readTable(text) {
    // A long row stands on several lines, its text may be in parts.
    return [...text.matchAll(/^ {4}\{ "([A-Z_]+)", (\d+),\s+"((?:.|\s)*?)" \},$/gm)]
        .map(([, code, status, meaning]) => ({ code, status: Number(status), meaning: meaning.replace(/"\s*\n\s*"/g, '') }));
}

// files: [{path, text}], rows: readTable()
export function checkCodes(files, rows) {
    const known = new Set(rows.map((row) => row.code));
    const findings = rows.length > known.size ? [`${table}: a code stands there twice`] : [];
    for (const { path, text } of files)
        for (const [, code] of text.matchAll(/\berr_set\([^;]*?"([A-Z][A-Z0-9_]+)"/gs))
            if (!known.has(code) && !startUp.has(code) && !(ofConnections.has(code) && path.startsWith('src/mcp/')))
                findings.push(`${path}: the code ${code} is not in ${table}`);
    return findings;
}

export function writePage(rows) {
    const lines = rows.map(({ code, status, meaning }) => `| ${status} | \`${code}\` | ${meaning} |`);
    return `# Error codes

A request that is not carried out is answered with \`{"success": false, "error": text, "code": code}\`. The text is for a person and may
change; the code stays. One failure has no code: a vector store that cannot be registered (400 \`Failed to connect to …\`). Some codes bring further members: \`permission\` and \`message\`, \`locked_by\`, \`reason\`; \`VALIDATION_ERROR\` brings
\`errors\`, a list of \`{field, rule}\` with every field that breaks its rule. With 503 comes \`Retry-After\`, unless waiting changes nothing (no provider is configured, no port is free): then \`x-should-retry: false\`, which the official clients of OpenAI and Anthropic obey. With 405 comes \`Allow\`. Of a failure
inside (500) the answer tells nothing but the code: the log has the reason under the \`x-request-id\` of the answer.

This page is written by \`node tests/static/codes.mjs --write\` from \`${table}\`.

| status | code | meaning |
|---|---|---|
${lines.join('\n')}
`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
    const root = resolve(import.meta.dirname, '../..');
    const rows = readTable(readFileSync(join(root, table), 'utf8'));
    const files = readProject(root, /^src\/(?!cli\/).*\.[ch]$/);
    const findings = checkCodes(files, rows);
    if (process.argv.includes('--write'))
        writeFileSync(join(root, page), writePage(rows));
    else if (!existsSync(join(root, page)) || readFileSync(join(root, page), 'utf8') !== writePage(rows))
        findings.push(`${page}: is not what ${table} says; write it with node tests/static/codes.mjs --write`);
    report('codes', findings, `${rows.length} codes, ${files.length} files read`);
}
