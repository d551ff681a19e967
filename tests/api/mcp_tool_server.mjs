// A small MCP server over standard input and output for the tests of the host, without packages. Arguments: `refuse` (writes to standard error
// and exits), `silent` (never answers), `late FILE` (the definition of `greet` is that of FILE, read at every list), `rude` (its resources and
// prompts hold characters that control a terminal, and contents that break the protocol), `bare` (resources without
// templates, and no prompts).
import { existsSync, readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

const [, , mode, file] = process.argv;
const say = (frame) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...frame })}\n`);
const text = (words, more = {}) => ({ content: [{ type: 'text', text: words }], ...more });
const schema = (properties = {}, required = []) => ({ type: 'object', properties, required });

if (mode === 'refuse') {
    process.stderr.write('the licence file is missing\n');
    process.exit(3);
}

let calls = 0;
const tools = {
    greet: { description: 'Greets somebody', inputSchema: schema({ name: { type: 'string', minLength: 1 } }, ['name']), run: ({ name }) => text(`Hello, ${name}.`) },
    fail: { inputSchema: schema(), run: () => text('out of paper', { isError: true }) },
    count: { inputSchema: schema(), run: () => text(String(++calls)) },
    pid: { inputSchema: schema(), run: () => text(String(process.pid)) },
    environment: { inputSchema: schema(), run: () => text(JSON.stringify(process.env)) },
    see: { inputSchema: schema({ path: { type: 'string' } }, ['path']), run: ({ path }) => text(String(existsSync(path))) },
    structured: { inputSchema: schema(), run: () => text('{"n":1}', { structuredContent: { n: 1 } }) },
    wait: { inputSchema: schema(), run: () => { process.stderr.write('a call waits\n'); } },
    die: { inputSchema: schema(), run: () => { process.stderr.write('stack smashed\n'); process.exit(7); } },
    announce: { inputSchema: schema(), run: () => { for (let i = 0; i < 5; i++) say({ method: 'notifications/tools/list_changed' }); return text('announced'); } },
};

function list() {
    const described = Object.entries(tools).map(([name, { description, inputSchema }]) => ({ name, description, inputSchema }));
    return mode === 'late' ? described.map((tool) => tool.name === 'greet' ? { ...tool, ...JSON.parse(readFileSync(file, 'utf8')) } : tool) : described;
}

const methods = {
    initialize: ({ protocolVersion }) => ({ protocolVersion, capabilities: { tools: { listChanged: true }, resources: {}, prompts: {} }, serverInfo: { name: 'small', version: '1' } }),
    ping: () => ({}),
    'tools/list': () => ({ tools: list() }),
    'tools/call': (params) => tools[params.name].run(params.arguments ?? {}),
    'resources/list': () => ({ resources: [{ uri: 'note://one', name: 'one', mimeType: 'text/plain' }] }),
    'resources/templates/list': () => ({ resourceTemplates: [] }),
    'resources/read': ({ uri }) => ({ contents: [{ uri, text: 'a note' }] }),
    'prompts/list': () => ({ prompts: [{ name: 'haiku', arguments: [{ name: 'topic', required: true }] }] }),
    'prompts/get': (params) => ({ messages: [{ role: 'user', content: { type: 'text', text: `A haiku on ${params.arguments.topic}` } }] }),
};

const escape = '\u001b]0;owned\u0007\u202e';
const rudeContents = {
    'note://two': [{ uri: 'note://two', text: 'first' }, { uri: `note://two${escape}`, blob: 'AAEC', mimeType: 'image/png' }],
    'note://broken': [{ uri: 'note://broken', blob: '%%%' }],
    'note://odd': [{ uri: 7, text: 7, blob: null, mimeType: [] }, 'no object', null],
    'note://none': [],
};
if (mode === 'rude')
    Object.assign(methods, {
        'resources/list': () => ({ resources: [{ uri: `note://one${escape}`, name: `one${escape}`, description: `d${escape}` }] }),
        'resources/read': ({ uri }) => ({ contents: rudeContents[uri] ?? [{ uri, text: `a note${escape}` }] }),
        'prompts/list': () => ({ prompts: [{ name: 'haiku', description: escape, arguments: [{ name: `topic${escape}` }, 7, { name: null }] }] }),
        'prompts/get': () => ({ messages: [{ role: escape, content: { type: escape, text: escape } }, { role: 'user', content: { type: 'text', text: escape } }, 7,
            { role: 'assistant', content: { type: 'resource_link', uri: `note://${escape}` } }, { role: 'user', content: { type: 'resource', resource: { blob: 'AA==' } } }] }),
    });

if (mode === 'bare') {
    methods.initialize = ({ protocolVersion }) => ({ protocolVersion, capabilities: { tools: {}, resources: {} }, serverInfo: { name: 'bare', version: '1' } });
    delete methods['resources/templates/list'];
}

createInterface({ input: process.stdin }).on('line', (line) => {
    const { id, method, params = {} } = JSON.parse(line);
    if (mode === 'silent' || id === undefined)
        return;
    if (!methods[method])
        return say({ id, error: { code: -32601, message: 'Method not found' } });
    const result = methods[method](params);
    if (result)
        say({ id, result });
});
