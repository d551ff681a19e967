// The static checks must be able to fail: each violation planted here is found, and its lawful twin is not.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkRanks } from './ranks.mjs';
import { checkShape } from './shape.mjs';
import { checkBinary } from './binary.mjs';
import { checkText } from './hygiene.mjs';
import { checkRows } from './rows.mjs';
import { checkCodes, readTable } from './codes.mjs';
import { checkMetaphors, checkNames } from './names.mjs';
import { checkLinks, commandNames, commandSection, permissionsTable, presetsTable, settingsTable, withPart } from './pages.mjs';

const body = (lines) => `int f(void)\n{\n${'    g();\n'.repeat(lines - 2)}}\n`;

const rankCases = [
    ['a higher rank', 'src/base/buf.c', '#include "http/http.h"', /rank 1 from rank 0/],
    ['a sibling', 'src/os/child.c', '#include "http/http.h"', /sibling/],
    ['a sibling, with blanks', 'src/tasks/run.c', ' #  include   "apps/apps.h"', /sibling/],
    ['an include without its folder', 'src/os/child.c', '#include "child.h"', /folder of src/],
    ['an include that climbs', 'src/os/child.c', '#include "../http/http.h"', /folder of src/],
    ['evhttp outside src/http', 'src/net/client.c', '#include <event2/http.h>', /event2\/http/],
    ['evhttp structures outside src/http', 'src/api/dispatch.c', '#include <event2/http_struct.h>', /event2/],
    ['libevent in api', 'src/api/dispatch.c', '#include <event2/event.h>', /event2/],
    ['sqlite in identity', 'src/identity/keys.c', '#include <sqlite3.h>', /sqlite3/],
    ['a second C++ file', 'src/net/url.cpp', '', /only C\+\+/],
    ['a folder without rank', 'src/misc/x.c', '', /no rank/],
    ['a loose file', 'src/util.c', '', /main\.c only/],
    ['a query in api', 'src/api/resources/keys.c', 'x("SELECT id FROM keys");', /SQL/],
    ['a query over two literals', 'src/identity/keys.c', 'x("INSERT "\n  "INTO keys VALUES (1)");', /SQL/],
    ['an update', 'src/tasks/run.c', 'x("UPDATE tasks SET a = 1");', /SQL/],
    ['a deletion in small letters', 'src/cli/app.c', 'x("delete from apps");', /SQL/],
];

for (const [name, path, text, wanted] of rankCases)
    test(`ranks finds ${name}`, () => {
        const findings = checkRanks([{ path, text }]);
        assert.equal(findings.length, 1, findings.join('\n'));
        assert.match(findings[0], wanted);
    });

test('ranks lets pass what is lawful', () => {
    const files = [
        { path: 'src/main.c', text: '#include "cli/cli.h"\n#include "base/log.h"' },
        { path: 'src/http/server.c', text: '#include <event2/http.h>\n#include "http/http.h"\n#include "base/loop.h"' },
        { path: 'src/backend/embedded/embedded.c', text: '#include <sqlite3.h>\nx("SELECT a FROM b");' },
        { path: 'src/api/resources/apps.c', text: '/* SELECT a FROM b */ // #include "cli/cli.h"\nx("Select an app from the list, or update it.", "DELETE", "INSERT");' },
        { path: 'src/base/json_simdjson.cpp', text: '#include <simdjson.h>' },
    ];
    assert.deepEqual(checkRanks(files), []);
});

const shapeCases = [
    ['a function of 61 lines', 'src/os/a.c', body(61), /61 lines/],
    ['a file of 601 lines', 'src/os/a.c', body(3) + '\n'.repeat(597), /601 lines/],
    ['a header without a comment', 'src/os/a.h', '#pragma once\n', /opens with a comment/],
    ['a header without a guard', 'src/os/a.h', '/* A. */\n', /pragma once/],
    ['exit below main', 'src/api/a.c', 'int f(void)\n{\n    exit(1);\n}\n', /ends the process/],
    ['a command that prints by itself', 'src/cli/a.c', 'int f(void)\n{\n    printf("x");\n}\n', /cli\/out\.h/],
    ['abort below main', 'src/tasks/a.c', 'int f(void)\n{\n    abort();\n}\n', /ends the process/],
];

for (const [name, path, text, wanted] of shapeCases)
    test(`shape finds ${name}`, () => {
        const findings = checkShape([{ path, text }]);
        assert.equal(findings.length, 1, findings.join('\n'));
        assert.match(findings[0], wanted);
    });

test('shape lets pass 60 lines, 600 lines, a long table, exit in main and in words', () => {
    const files = [
        { path: 'src/os/a.c', text: body(60) },
        { path: 'src/os/b.c', text: body(3) + '\n'.repeat(596) },
        { path: 'src/os/c.c', text: `const int t[] = {\n${'    1,\n'.repeat(700)}};\n` },
        { path: 'src/main.c', text: 'int main(void)\n{\n    exit(1);\n}\n' },
        { path: 'src/os/d.c', text: '/* no abort() here */\nint f(struct x *x)\n{\n    return x->on_exit(x) + child_exit(x);\n}\n' },
    ];
    assert.deepEqual(checkShape(files), []);
});

const hygieneCases = [
    ["cmocka's own skip", 'tests/unit/http/test_listen.c', 'if (geteuid() != 0)\n    skip();', /SKIP_TEST/],
    ['a lock that names hosts', 'tests/package-lock.json', '{"resolved": "x"}', /names hosts/],
    ['a private key', 'src/a.c', ['-----BEGIN ', 'PRIVATE KEY-----'].join(''), /private key/],
    ['a path of one machine', 'script/x', ['cd ', '/home', '/me/x'].join(''), /one machine/],
    ['a merge conflict', 'a.md', ['<<<<', '<<< HEAD'].join(''), /conflict/],
];

for (const [name, path, text, wanted] of hygieneCases)
    test(`hygiene finds ${name}`, () => assert.match(checkText({ path, text }).join('\n'), wanted));

test('hygiene lets pass an ordinary file', () => assert.deepEqual(checkText({ path: 'a.md', text: 'Write to /etc/hearth.conf.' }), []));

const route = (n, more) => ({ method: 'GET', path: `/r${n}`, permission: 'none', summary: 'Says r', ...more });
const routes = (...more) => [...Array.from({ length: 40 }, (_, n) => route(n)), ...more];

const rowCases = [
    ['a route without permission', routes(route('x', { permission: '' })), /permission/],
    ['a route without summary', routes(route('x', { summary: undefined })), /sentence/],
    ['a route that ends with a slash', routes(route('x', { path: '/x/' })), /path/],
    ['a route listed twice', routes(route(1)), /twice/],
    ['a change by the administrator that is in neither list', routes(route('x', { method: 'POST', permission: 'admin', defines: false })), /changes what runs/],
    ['a list that is too short', routes().slice(0, 39), /only 39/],
    ['no list', {}, /no list/],
];

for (const [name, json, wanted] of rowCases)
    test(`rows finds ${name}`, () => {
        const findings = checkRows('routes', json);
        assert.equal(findings.length, 1, findings.join('\n'));
        assert.match(findings[0], wanted);
    });

test('rows lets pass a whole list, bare or in the envelope', () => {
    assert.deepEqual(checkRows('routes', routes()), []);
    assert.deepEqual(checkRows('routes', { success: true, routes: routes() }), []);
});

const hardened = `  Type:                              DYN (Position-Independent Executable file)
  LOAD           0x06d1b0 0x000000000006e1b0 0x000000000006e1b0 0x0a97bb 0x0a97bb R E 0x1000
  GNU_STACK      0x000000 0x0000000000000000 0x0000000000000000 0x000000 0x000000 RW  0x1
  GNU_RELRO      0x116970 0x0000000000118970 0x0000000000118970 0x02e6b8 0x02f690 R   0x1
 0x000000006ffffffb (FLAGS_1)            Flags: NOW PIE
     9: 0000000000000000     0 FUNC    GLOBAL DEFAULT  UND __stack_chk_fail@GLIBC_2.4 (5)
    10: 0000000000000000     0 FUNC    GLOBAL DEFAULT  UND __memcpy_chk@GLIBC_2.3.4 (6)
`;
const binaryCases = [
    ['a fixed address', 'DYN (Position-Independent Executable file)', 'EXEC (Executable file)', /position independent/],
    ['late binding', 'NOW PIE', 'PIE', /bound at the start/],
    ['writable relocations', 'GNU_RELRO', 'GNU_OTHER', /stay writable/],
    ['a stack of code', ' RW  0x1', ' RWE 0x10', /stack is not marked/],
    ['no stack protector', '__stack_chk_fail', 'x', /stack protector/],
    ['no checked calls', '__memcpy_chk', 'memcpy', /checked functions/],
    ['a segment of code that can be written', 'R E 0x1000', 'RWE 0x1000', /writable and executable/],
    ['a search path', ' 0x000000006ffffffb', ' 0x1d (RUNPATH) Library runpath: [/opt]\n 0x000000006ffffffb', /folder of its own/],
    ['relocated code', ' 0x000000006ffffffb', ' 0x16 (TEXTREL) 0x0\n 0x000000006ffffffb', /code is relocated/],
];

test('binary lets pass a hardened program', () => assert.deepEqual(checkBinary(hardened), []));
for (const [name, from, to, wanted] of binaryCases)
    test(`binary finds ${name}`, () => {
        const findings = checkBinary(hardened.replace(from, to));
        assert.equal(findings.length, 1, findings.join('\n'));
        assert.match(findings[0], wanted);
    });

test('codes finds an error code that the table does not have', () => {
    const rows = readTable('    { "KNOWN", 404, "It is not there." },\n');
    const files = [{ path: 'src/api/x.c', text: 'return err_set(e, -ENOENT, "KNOWN", "x");\nerr_set(e, r,\n    "MADE_UP", "y");' }];
    assert.deepEqual(rows, [{ code: 'KNOWN', status: 404, meaning: 'It is not there.' }]);
    assert.deepEqual(checkCodes(files, rows), ['src/api/x.c: the code MADE_UP is not in src/api/errors.c']);
});

test('names finds a function of a comment that does not exist', () => {
    const files = [{ path: 'src/os/a.c', text: '/* As there_is() and there_is_not() do, and call->member(), \nand fork(). */\nint there_is(void);\nx("never_in_a_string()");' }];
    assert.deepEqual(checkNames(files), ['src/os/a.c:1: a comment names there_is_not(), which does not exist']);
});

test('names finds a metaphor in an identifier, and no word that merely holds one', () => {
    const files = [{ path: 'src/os/a.c', text: 'int tell_failure(void);\nint task_mask, board_of; /* told */\nx("asked");\nint a_seal;' },
        { path: 'src/identity/a.c', text: 'int seal_open(void);' }, { path: 'tests/unit/a.c', text: 'int asked;' }];
    assert.deepEqual(checkMetaphors(files).map((line) => line.replace(/ is a metaphor.*/, '')), ['src/os/a.c:1: tell_failure', 'src/os/a.c:2: board_of', 'src/os/a.c:4: a_seal']);
});

test('pages show what the program says of commands and settings', () => {
    assert.deepEqual(commandNames('Hearth\n\n  key new          Make\n  serve            Run\n\n`hearth help`\n'), ['key new', 'serve']);
    const help = 'usage: hearth key new [--name NAME] [--json] [--data DIR]\n\nMake a key.\n\nOptions:\n  --name NAME            for <whom>\n  --json                 print JSON\n  --data DIR             the folder\n  -h, --help             help\n';
    assert.equal(commandSection(help), '## hearth key new\n\n```\nhearth key new [--name NAME] [--json]\n```\n\nMake a key.\n\n- `--name NAME`: for &lt;whom>\n');
    assert.match(settingsTable([{ key: 'a.b', type: 'string', default: '', needs_restart: true, help: 'What.' }]), /\n\| `a\.b` \| string \|  \| restart \| What\. \|\n$/);
    const routes = [{ method: 'GET', path: '/b', permission: 'a.b' }, { method: 'GET', path: '/api/b', permission: 'a.b' }, { method: 'PUT', path: '/api/c', permission: 'a.b' }];
    assert.match(permissionsTable([{ name: 'a.b', asks: 'do it', dangerous: true }, { name: 'c', asks: 'wait', dangerous: false }], routes),
        /\n\| `a\.b` \| do it \| yes \| `GET \/b`, `PUT \/api\/c` \|\n\| `c` \| wait \|  \| none yet \|\n$/);
    assert.match(presetsTable([{ id: 'x', label: 'X', protocol: 'p', base_url: null, needs: ['api_key'], can_chat: true, can_embed: false, variables: ['A', 'B'] }]),
        /\n\| `x` \| X \| p \|  \| `api_key` \| chats \| `A`, `B` \|\n$/);
});

test('only the written part of a page is replaced', () => {
    const page = '# P\n\n<!-- Below this line: written by `node tests/static/pages.mjs build/release/hearth --write`. -->\n\nold\n';
    assert.equal(withPart(page, 'new\n'), page.replace('old', 'new'));
});

test('a link that leads nowhere is found', () => {
    const files = [
        { path: 'README.md', text: '# R\n[a](docs/a.md#the-part), [b](docs/b.md), [c](docs/a.md#nothing), [d](src), [e](https://example.org), [f](#r)' },
        { path: 'docs/a.md', text: '## The part\n[up](../README.md)' },
    ];
    assert.deepEqual(checkLinks(files, (path) => path === 'src'), [
        'README.md: links to docs/b.md, which is not there', 'README.md: links to docs/a.md#nothing, which has no such heading',
    ]);
});
