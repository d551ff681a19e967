// docs/settings.md, docs/cli.md, docs/providers.md and docs/permissions.md end with what the program says about itself, and links between the pages lead somewhere.
// `node pages.mjs HEARTH` checks, `node pages.mjs HEARTH --write` writes those parts anew.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, normalize, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { readProject, report } from '../tools/tree.mjs';

const mark = '<!-- Below this line: written by `node tests/static/pages.mjs build/release/hearth --write`. -->\n';

const plain = (text) => text.replaceAll('<', '&lt;');

export function settingsTable(settings) {
    const rows = settings.map((s) => `| \`${s.key}\` | ${s.type} | ${s.default === '' ? '' : `\`${s.default}\``} | ${s.needs_restart ? 'restart' : 'at once'} | ${plain(s.help)} |`);
    return ['| key | type | default | a change counts | what |', '|---|---|---|---|---|', ...rows, ''].join('\n');
}

// What a preset needs, and the variables that configure it.
export function presetsTable(presets) {
    const words = (list) => list.map((word) => `\`${word}\``).join(', ');
    const rows = presets.map((p) => `| \`${p.id}\` | ${p.label} | ${p.protocol} | ${p.base_url ?? ''} | ${words(p.needs)} | ${[p.can_chat && 'chats', p.can_embed && 'embeds', p.can_speak && 'speaks', p.can_hear && 'hears'].filter(Boolean).join(', ')} | ${words(p.variables)} |`);
    return ['| id | provider | protocol | address | needs | does | variables of the environment |', '|---|---|---|---|---|---|---|', ...rows, ''].join('\n');
}

// What a permission allows. Most routes are there twice, below /api as well; those are left out.
export function permissionsTable(permissions, routes) {
    const paths = new Set(routes.map((route) => route.path));
    const once = routes.filter(({ path }) => !path.startsWith('/api/') || !paths.has(path.slice('/api'.length)));
    const uses = (name) => once.filter(({ permission }) => permission === name).map(({ method, path }) => `\`${method} ${path}\``).join(', ');
    const rows = permissions.map((p) => `| \`${p.name}\` | ${plain(p.asks)} | ${p.dangerous ? 'yes' : ''} | ${uses(p.name) || 'none yet'} |`);
    return ['| name | the app wants to | every use is in the audit log | routes |', '|---|---|---|---|', ...rows, ''].join('\n');
}

// What `hearth help COMMAND` prints: usage, summary, details and its own options.
export function commandSection(help) {
    const [usage, ...rest] = help.trimEnd().split('\n\n');
    const options = rest.pop().split('\n').slice(1).map((line) => line.trim().match(/^(.+?) {2,}(.+)$/)).filter(([, name]) => !/^--(data|json)\b|--help/.test(name));
    const lines = [`## ${usage.match(/^usage: (hearth [a-z]+(?: [a-z]+)?)/)[1]}`, '', '```', usage.replace(/^usage: /, '').replace(' [--data DIR]', ''), '```', '', plain(rest.join('\n\n'))];
    if (options.length)
        lines.push('', ...options.map(([, name, what]) => `- \`${name}\`: ${plain(what)}`));
    return `${lines.join('\n')}\n`;
}

export const commandNames = (list) => [...list.matchAll(/^ {2}([a-z]+(?: [a-z]+)?)(?= )/gm)].map(([, words]) => words);

function cliSections(run) {
    return commandNames(run('help')).map((words) => commandSection(run('help', ...words.split(' ')))).join('\n');
}

const anchorOf = (title) => title.toLowerCase().replace(/[^\w\- ]/g, '').replaceAll(' ', '-');

// files: [{path, text}] of Markdown; exists(path) for whatever else a link may name.
export function checkLinks(files, exists) {
    const anchors = new Map(files.map(({ path, text }) => [path, new Set([...text.matchAll(/^#+ (.+)$/gm)].map(([, title]) => anchorOf(title)))]));
    const findings = [];
    for (const { path, text } of files)
        for (const [, target] of text.matchAll(/\]\((?!\w+:)([^)\s]+)\)/g)) {
            const [file, anchor] = target.split('#');
            const found = file ? normalize(join(dirname(path), file)) : path;
            if (!anchors.has(found) && !exists(found))
                findings.push(`${path}: links to ${target}, which is not there`);
            else if (anchor && !anchors.get(found)?.has(anchor))
                findings.push(`${path}: links to ${target}, which has no such heading`);
        }
    return findings;
}

export function withPart(page, part) {
    return page.slice(0, page.indexOf(mark) + mark.length) + '\n' + part;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
    const root = resolve(import.meta.dirname, '../..');
    const [program, option] = process.argv.slice(2);
    const data = mkdtempSync(join(tmpdir(), 'hearth-pages-'));
    process.on('exit', () => rmSync(data, { recursive: true }));
    const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('HEARTH_')));
    const run = (...args) => execFileSync(resolve(program), [...args, '--data', data], { encoding: 'utf8', env });
    run('workspace', 'add', 'pages');           // a command that only reads makes no data folder
    const pages = { 'docs/settings.md': () => settingsTable(JSON.parse(run('settings', '--json'))), 'docs/cli.md': () => cliSections(run),
        'docs/providers.md': () => presetsTable(JSON.parse(run('provider', 'presets', '--json'))),
        'docs/permissions.md': () => permissionsTable(JSON.parse(run('permission', 'names', '--json')), JSON.parse(run('routes', '--json'))) };
    const findings = checkLinks(readProject(root, /\.md$/), (path) => existsSync(join(root, path)));
    for (const [path, part] of Object.entries(pages)) {
        const text = readFileSync(join(root, path), 'utf8');
        const wanted = withPart(text, part());
        if (!text.includes(mark))
            findings.push(`${path}: has no line that says where the written part begins`);
        else if (option === '--write')
            writeFileSync(join(root, path), wanted);
        else if (text !== wanted)
            findings.push(`${path}: is not what the program says; write it with node tests/static/pages.mjs ${program} --write`);
    }
    report('pages', findings, `${Object.keys(pages).length} pages`);
}
