// An MCP server behind a login, with its authorization server, as far as a client needs them to log in (RFC 9728, 8414, 7591): {url, issuer}.
import { once } from 'node:events';
import http from 'node:http';

export async function loginServer(t) {
    const server = http.createServer(async (incoming, outgoing) => {
        const issuer = `http://127.0.0.1:${server.address().port}`;
        const say = (status, body, headers = {}) => {
            outgoing.writeHead(status, { 'content-type': 'application/json', ...headers });
            outgoing.end(JSON.stringify(body));
        };
        for await (const piece of incoming)
            piece.length;                                     // the body is read and not looked at
        if (incoming.url.startsWith('/.well-known/oauth-protected-resource'))
            return say(200, { resource: `${issuer}/mcp`, authorization_servers: [issuer] });
        if (incoming.url.startsWith('/.well-known/'))
            return say(200, { issuer, authorization_endpoint: `${issuer}/authorize`, token_endpoint: `${issuer}/token`, registration_endpoint: `${issuer}/register`,
                response_types_supported: ['code'], code_challenge_methods_supported: ['S256'], token_endpoint_auth_methods_supported: ['none'],
                authorization_response_iss_parameter_supported: true });
        if (incoming.url === '/register')
            return say(201, { client_id: 'client-1', redirect_uris: [], token_endpoint_auth_method: 'none' });
        if (incoming.url === '/token')
            return say(200, { access_token: 'token-1', token_type: 'Bearer', expires_in: 3600 });
        return say(401, {}, { 'www-authenticate': `Bearer resource_metadata="${issuer}/.well-known/oauth-protected-resource/mcp"` });
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    if (t)
        t.after(() => server.close());
    else
        server.unref();
    const issuer = `http://127.0.0.1:${server.address().port}`;
    return { url: `${issuer}/mcp`, issuer };
}
