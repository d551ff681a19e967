// Every row of a generated list is whole: `hearth routes --json | node rows.mjs routes`, `hearth settings --json | node rows.mjs settings`.
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { resolve } from 'node:path';
import { report } from '../tools/tree.mjs';

const isText = (value) => typeof value === 'string' && value.trim().length > 0;
const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];

// What the administrator changes without changing what runs or where data goes: a browser session needs no fresh confirmation for it.
const tuning = new Set([
    'POST /api/apps/:app/start', 'POST /api/apps/:app/stop', 'POST /api/apps/:app/restart',
    'POST /api/calendar/:uuid/run', 'POST /api/calendar/:uuid/reject', 'PATCH /api/calendar/:uuid', 'DELETE /api/calendar/:uuid',
    'POST /api/tasks/:uuid/run', 'POST /api/tasks/:uuid/reject', 'POST /api/tasks/:uuid/replay', 'POST /api/tasks/:uuid/cancel', 'POST /api/tasks/replay', 'POST /api/tasks/sweep',
    'POST /api/keys', 'POST /api/keys/import', 'DELETE /api/keys/:id', 'POST /api/permissions/decide', 'POST /api/permissions/revoke', 'POST /api/permissions/reset',
    'POST /api/backend/users', 'DELETE /api/backend/users/:user', 'PUT /api/backend/users/:user/password',
    'POST /api/backend/deliveries/:id/retry', 'DELETE /api/backend/deliveries/:id',
    'PUT /api/limits/apps/:app', 'PUT /api/limits/keys/:id', 'DELETE /api/limits/apps/:app', 'DELETE /api/limits/keys/:id',
    'POST /api/providers/:name/test', 'DELETE /api/models/facts', 'POST /api/session/link', 'POST /api/session/confirm', 'DELETE /api/session',
    'POST /api/workspaces', 'POST /api/workspaces/:slug/threads', 'POST /api/workspaces/:slug/threads/:thread/edit', 'POST /api/workspaces/:slug/threads/:thread/regenerate',
    'POST /api/approvals/rules', 'POST /api/approvals/rules/forget', 'POST /api/mcp/servers/:server/disable', 'POST /api/mcp/servers/:server/restart',
    'POST /api/mcp/servers/:server/call', 'POST /api/mcp/servers/:server/prompt', 'POST /api/mcp/servers/:server/login', 'POST /api/mcp/servers/:server/logout',
    'POST /api/backend/account/login', 'POST /api/backend/account/logout',
]);

const lists = {
    routes: {
        least: 40,
        name: (row) => `${row.method} ${row.path}`,
        rules: [
            ['has a known method', (row) => methods.includes(row.method)],
            ['has a path that begins with one slash and does not end with one', (row) => /^\/([^/]|$)/.test(row.path) && (row.path === '/' || !row.path.endsWith('/'))],
            ['says its permission', (row) => isText(row.permission)],
            ['says in a sentence what it does', (row) => isText(row.summary)],
            ['says that it changes what runs, or is one of those that do not', (row) => row.permission !== 'admin' || row.method === 'GET' ||
                row.defines !== tuning.has(`${row.method} ${row.path}`)],
        ],
    },
    settings: {
        least: 20,
        name: (row) => row.key,
        rules: [
            ['has a key of two words', (row) => /^[a-z]+\.[a-z_]+$/.test(row.key)],
            ['has a value', (row) => row.value !== undefined && row.value !== null],
            ['says where its value comes from', (row) => ['default', 'file', 'environment', 'database', 'flag'].includes(row.origin)],
            ['says in a sentence what it does', (row) => isText(row.help)],
        ],
    },
};

// The list itself, or the member of that name inside an envelope.
export function checkRows(kind, json) {
    const { least, name, rules } = lists[kind];
    const rows = Array.isArray(json) ? json : json?.[kind] ?? json?.data;
    if (!Array.isArray(rows))
        return [`${kind}: no list in the answer`];
    const findings = rows.length < least ? [`${kind}: only ${rows.length} rows, there are at least ${least}`] : [];
    const seen = new Set();
    for (const row of rows) {
        findings.push(...rules.filter(([, holds]) => !holds(row)).map(([rule]) => `${name(row)}: it is not so that the row ${rule}`));
        if (seen.has(name(row)))
            findings.push(`${name(row)}: listed twice`);
        seen.add(name(row));
    }
    return findings;
}

if (process.argv[1] && resolve(process.argv[1]) === fileURLToPath(import.meta.url)) {
    const kind = process.argv[2];
    const given = await text(process.stdin);
    let json = null;
    try {
        json = JSON.parse(given);
    } catch {
        console.log(`${kind}: what was printed is no JSON: ${given.slice(0, 200)}`);
    }
    report(kind, checkRows(kind, json), 'every row read');
}
