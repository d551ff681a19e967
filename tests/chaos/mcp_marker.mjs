// MCP servers whose tool `mark` writes each call that reaches it to a ledger: {id, server, pid} when it begins, the same with `is_done` before it answers.
//
//     node mcp_marker.mjs stdio NAME LEDGER DESCRIPTION         of the handshake era, without packages; the description of `mark` is the text of the file
//                                                               DESCRIPTION, read at every list; the tool `announce` says that the list changed
//     node mcp_marker.mjs stateless NAME LEDGER                 of the stateless era (2026-07-28), made of the official SDK
//
// In the process of the test: marksOverHttp(name, ledger), streamable HTTP of the handshake era, closed and opened again on the same port.
import { readFileSync } from 'node:fs';
import http from 'node:http';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { freePort } from '../tools/ports.mjs';
import { Ledger } from './chaos.mjs';

const inputSchema = { type: 'object', properties: { id: { type: 'string' }, wait_ms: { type: 'number' } }, required: ['id'] };
const text = (words) => ({ content: [{ type: 'text', text: words }] });

async function mark(ledger, server, { id, wait_ms: waitMs = 0 }) {
    ledger.add({ id, server, pid: process.pid });
    await pause(waitMs);
    ledger.add({ id, server, pid: process.pid, is_done: true });
    return text(`marked ${id}`);
}

function serveStdio(name, ledger, description) {
    const say = (frame) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...frame })}\n`);
    const tools = {
        mark: (args) => mark(ledger, name, args),
        announce: () => { say({ method: 'notifications/tools/list_changed' }); return text('announced'); },
    };
    const methods = {
        initialize: ({ protocolVersion }) => ({ protocolVersion, capabilities: { tools: { listChanged: true } }, serverInfo: { name, version: '1' } }),
        ping: () => ({}),
        'tools/list': () => ({ tools: [{ name: 'mark', description: readFileSync(description, 'utf8'), inputSchema }, { name: 'announce', inputSchema: { type: 'object' } }] }),
        'tools/call': (params) => tools[params.name](params.arguments ?? {}),
    };
    createInterface({ input: process.stdin }).on('line', async (line) => {
        const { id, method, params = {} } = JSON.parse(line);
        if (id !== undefined)
            say(methods[method] ? { id, result: await methods[method](params) } : { id, error: { code: -32601, message: 'Method not found' } });
    });
}

async function serveStateless(name, ledger) {
    const { McpServer, fromJsonSchema } = await import('@modelcontextprotocol/server');
    const { serveStdio: serve } = await import('@modelcontextprotocol/server/stdio');
    serve(() => {
        const server = new McpServer({ name, version: '1' });
        server.registerTool('mark', { description: 'Marks', inputSchema: fromJsonSchema(inputSchema) }, (args) => mark(ledger, name, args));
        return server;
    });
}

async function sessionOverHttp(name, ledger, sessions) {
    const { Server } = await import('@modelcontextprotocol/sdk/server/index.js');
    const { StreamableHTTPServerTransport } = await import('@modelcontextprotocol/sdk/server/streamableHttp.js');
    const { CallToolRequestSchema, ListToolsRequestSchema } = await import('@modelcontextprotocol/sdk/types.js');
    const server = new Server({ name, version: '1' }, { capabilities: { tools: {} } });
    server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: [{ name: 'mark', inputSchema }] }));
    server.setRequestHandler(CallToolRequestSchema, ({ params }) => mark(ledger, name, params.arguments));
    const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: () => crypto.randomUUID(), onsessioninitialized: (id) => sessions.set(id, transport) });
    await server.connect(transport);
    return transport;
}

// {port, url, open(), close()}; close() breaks every connection and forgets every session, open() takes the same port.
export async function marksOverHttp(name, ledger) {
    const sessions = new Map();
    const port = await freePort();
    let server;
    const answer = async (req, res) => {
        const id = req.headers['mcp-session-id'];
        if (id && !sessions.has(id))
            return res.writeHead(404).end();
        await (sessions.get(id) ?? await sessionOverHttp(name, ledger, sessions)).handleRequest(req, res);
    };
    const open = async () => {
        server = http.createServer((req, res) => answer(req, res).catch(() => res.destroy()));
        await new Promise((done, failed) => server.on('error', failed).listen(port, '127.0.0.1', done));
    };
    const close = async () => {
        const closed = new Promise((done) => server.close(done));
        server.closeAllConnections();
        sessions.clear();
        await closed;
    };
    await open();
    return { url: `http://127.0.0.1:${port}/mcp`, open, close };
}

const [, program, era, name, path, description] = process.argv;
if (program === import.meta.filename)
    (era === 'stateless' ? serveStateless : serveStdio)(name, new Ledger(path), description);
