// An MCP server with one tool, `whoami`, and the authorization server that protects it: tokens that expire, are refreshed once each, and can be taken back.
//
//     const server = await tokenServer(t);      server.url, server.issuer
//     server.expire();                          every access token given so far is refused from now on
//     server.revoke();                          and so is every refresh token
//     server.asked                              the forms of /token, in order; server.used: the access tokens that /mcp was called with, in order
import { once } from 'node:events';
import http from 'node:http';

const tools = [{ name: 'whoami', description: 'Says with which token it is called', inputSchema: { type: 'object' } }];

function answerFrame({ id, method }, token) {
    const results = {
        initialize: { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'guarded', version: '1' } },
        'tools/list': { tools },
        'tools/call': { content: [{ type: 'text', text: token }] },
        ping: {},
    };
    return results[method] ? { jsonrpc: '2.0', id, result: results[method] } : { jsonrpc: '2.0', id, error: { code: -32601, message: 'unknown' } };
}

export async function tokenServer(t, { expiresIn = 3600 } = {}) {
    const state = { asked: [], used: [], access: new Set(), refresh: new Set(), n: 0, expiresIn };
    const give = () => {
        const n = ++state.n;
        state.access.add(`access-${n}`);
        state.refresh.add(`refresh-${n}-secret`);
        return { access_token: `access-${n}`, refresh_token: `refresh-${n}-secret`, token_type: 'Bearer', expires_in: state.expiresIn };
    };
    const server = http.createServer(async (incoming, outgoing) => {
        const issuer = `http://127.0.0.1:${server.address().port}`;
        const say = (status, body, headers = {}) => {
            outgoing.writeHead(status, { 'content-type': 'application/json', ...headers });
            outgoing.end(body === undefined ? '' : JSON.stringify(body));
        };
        let text = '';
        for await (const piece of incoming)
            text += piece;
        if (incoming.url.startsWith('/.well-known/oauth-protected-resource'))
            return say(200, { resource: `${issuer}/mcp`, authorization_servers: [issuer] });
        if (incoming.url.startsWith('/.well-known/'))
            return say(200, { issuer, authorization_endpoint: `${issuer}/authorize`, token_endpoint: `${issuer}/token`, registration_endpoint: `${issuer}/register`,
                response_types_supported: ['code'], code_challenge_methods_supported: ['S256'], token_endpoint_auth_methods_supported: ['none'] });
        if (incoming.url === '/register')
            return say(201, { client_id: 'client-1', redirect_uris: [], token_endpoint_auth_method: 'none' });
        if (incoming.url === '/token') {
            const form = Object.fromEntries(new URLSearchParams(text));
            state.asked.push(form);
            const isGood = form.grant_type === 'authorization_code' || state.refresh.delete(form.refresh_token);     // a refresh token counts once
            return isGood ? say(200, give()) : say(400, { error: 'invalid_grant', error_description: 'the refresh token was revoked' });
        }
        if (incoming.method !== 'POST')
            return say(405);
        const token = incoming.headers.authorization?.replace('Bearer ', '');
        state.used.push(token);
        if (!state.access.has(token))
            return say(401, {}, { 'www-authenticate': `Bearer resource_metadata="${issuer}/.well-known/oauth-protected-resource/mcp"` });
        const frame = JSON.parse(text);
        return frame.id === undefined ? say(202) : say(200, answerFrame(frame, token));
    }).listen(0, '127.0.0.1');
    t.after(() => { server.closeAllConnections(); server.close(); });
    await once(server, 'listening');
    const issuer = `http://127.0.0.1:${server.address().port}`;
    return Object.assign(state, { url: `${issuer}/mcp`, issuer, expire: () => state.access.clear(), revoke: () => { state.access.clear(); state.refresh.clear(); } });
}
