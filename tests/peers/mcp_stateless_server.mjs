// An MCP server of the stateless era (2026-07-28) over stdio, made of the official SDK.
import { McpServer, acceptedContent, fromJsonSchema, inputRequired } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';

const object = (properties) => fromJsonSchema({ type: 'object', properties });

serveStdio(() => {
    const server = new McpServer({ name: 'stateless', version: '1.0' }, { instructions: 'be brief', capabilities: { logging: {} } });
    server.registerTool('echo', { description: 'Echoes', inputSchema: object({ message: { type: 'string' } }) },
        ({ message }) => ({ content: [{ type: 'text', text: `Echo: ${message}` }] }));
    server.registerTool('city', { description: 'Asks for a city', inputSchema: object({}) }, (args, ctx) => {
        const given = acceptedContent(ctx.mcpReq.inputResponses, 'city');
        if (given)
            return { content: [{ type: 'text', text: `It is ${given.city}` }] };
        if (ctx.mcpReq.inputResponses)
            return { content: [{ type: 'text', text: 'Nobody said' }], isError: true };
        return inputRequired({ requestState: 'state-1',
            inputRequests: { city: inputRequired.elicit({ message: 'Which city?', requestedSchema: { type: 'object', properties: { city: { type: 'string' } } } }) } });
    });
    // Two answers of a model and a form, in two rounds; the second round's wish is made of the first one's answer and of the state.
    server.registerTool('think', { description: 'Thinks with the client\'s model', inputSchema: object({ about: { type: 'string' } }) }, ({ about }, ctx) => {
        const { idea, critique, title } = ctx.mcpReq.inputResponses ?? {};
        const wish = (text) => inputRequired.createMessage({ messages: [{ role: 'user', content: { type: 'text', text } }], maxTokens: 9 });
        if (critique)
            return { content: [{ type: 'text', text: JSON.stringify({ state: ctx.mcpReq.requestState(), critique, title }) }] };
        if (idea)
            return inputRequired({ requestState: `${ctx.mcpReq.requestState()}, idea: ${idea.content.text}`, inputRequests: {
                critique: wish(`Judge: ${idea.content.text} (${idea.model})`),
                title: inputRequired.elicit({ message: 'Which title?', requestedSchema: { type: 'object', properties: { name: { type: 'string' } } } }),
            } });
        return inputRequired({ requestState: `about: ${about}`, inputRequests: { idea: wish(`An idea about ${about}?`) } });
    });
    server.registerTool('grow', { description: 'Adds a tool', inputSchema: object({}) }, () => {
        server.registerTool('grown', { description: 'New', inputSchema: object({}) }, () => ({ content: [] }));
        return { content: [{ type: 'text', text: 'grown' }] };
    });
    server.registerTool('steps', { description: 'Reports progress', inputSchema: object({}) }, async (args, ctx) => {
        const progressToken = ctx.mcpReq._meta?.progressToken;
        for (let progress = 1; progressToken !== undefined && progress <= 3; progress++)
            await ctx.mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress, total: 3 } });
        return { content: [{ type: 'text', text: 'done' }] };
    });
    server.registerResource('note', 'note:one', { mimeType: 'text/plain' }, (uri) => ({ contents: [{ uri: uri.href, text: 'a note' }] }));
    server.registerPrompt('greet', { description: 'Greets', argsSchema: object({ name: { type: 'string' } }) },
        ({ name }) => ({ messages: [{ role: 'user', content: { type: 'text', text: `Greet ${name}` } }] }));
    return server;
});
