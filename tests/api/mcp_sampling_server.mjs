// An MCP server with one tool, `want`: sends sampling/createMessage with the params it is given, and tells what came back.
import { createInterface } from 'node:readline';

const say = (frame) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...frame })}\n`);
const waiting = new Map();
let n = 0;

const methods = {
    initialize: (id, { protocolVersion }) => say({ id, result: { protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'wanting', version: '1' } } }),
    'tools/list': (id) => say({ id, result: { tools: [{ name: 'want', inputSchema: { type: 'object' } }] } }),
    'tools/call': (id, params) => {
        waiting.set(++n, id);
        say({ id: n, method: 'sampling/createMessage', params: params.arguments });
    },
};

createInterface({ input: process.stdin }).on('line', (line) => {
    const { id, method, params = {}, result, error } = JSON.parse(line);
    if (method && id !== undefined)
        (methods[method] ?? (() => say({ id, error: { code: -32601, message: 'Method not found' } })))(id, params);
    else if (waiting.has(id))
        say({ id: waiting.get(id), result: { content: [{ type: 'text', text: JSON.stringify(result ?? error) }] } });
});
