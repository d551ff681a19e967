// The MCP server of the benches, over stdio: the official SDK with one tool that answers at once.
import { McpServer } from '../../tests/node_modules/@modelcontextprotocol/sdk/dist/esm/server/mcp.js';
import { StdioServerTransport } from '../../tests/node_modules/@modelcontextprotocol/sdk/dist/esm/server/stdio.js';
import { z } from '../../tests/node_modules/zod/index.js';

const server = new McpServer({ name: 'echo', version: '1' });
server.registerTool('echo', { description: 'Answers what it is told', inputSchema: { message: z.string() }, annotations: { readOnlyHint: true } },
    ({ message }) => ({ content: [{ type: 'text', text: message }] }));
await server.connect(new StdioServerTransport());
