// An MCP server behind a login, its authorization server and an identity provider, all on one port: {url, idp, origin, forms, extensions, keys, idToken(claims)}.
// The authorization server takes what is signed by `keys.public` (private_key_jwt, RFC 7523) and ID-JAGs of the provider; the provider exchanges its own
// id tokens (RFC 8693). `forms` are the requests for tokens, in order; `extensions` what clients said at `initialize`.
import { createPrivateKey, createPublicKey, generateKeyPairSync, sign, verify } from 'node:crypto';
import { once } from 'node:events';
import http from 'node:http';

const encoded = (value) => Buffer.from(JSON.stringify(value)).toString('base64url');
const decoded = (part) => JSON.parse(Buffer.from(part, 'base64url'));
const es256 = (key) => ({ key, dsaEncoding: 'ieee-p1363' });

export function signed(key, claims, header = {}) {
    const text = `${encoded({ alg: 'ES256', ...header })}.${encoded(claims)}`;
    return `${text}.${sign('sha256', Buffer.from(text), es256(key)).toString('base64url')}`;
}

// The claims of a JWT that this key signed; undefined for every other one.
export function claimsOf(publicKey, jwt = '') {
    const [header, claims, signature] = jwt.split('.');
    const isGood = signature && decoded(header).alg === 'ES256' &&
        verify('sha256', Buffer.from(`${header}.${claims}`), es256(publicKey), Buffer.from(signature, 'base64url'));
    return isGood ? decoded(claims) : undefined;
}

function newKeys() {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    return { pem: privateKey.export({ type: 'pkcs8', format: 'pem' }), private: createPrivateKey(privateKey.export({ type: 'pkcs8', format: 'pem' })), public: createPublicKey(privateKey) };
}

const tool = { name: 'greet', description: '', inputSchema: { type: 'object' } };
const results = { initialize: { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'one', version: '1' } }, 'tools/list': { tools: [tool] } };

export async function identityServer(t) {
    const keys = newKeys(), idpKeys = newKeys(), forms = [], extensions = [], tokens = new Set(), jtis = new Set();
    const now = () => Math.floor(Date.now() / 1000);
    let origin;
    const give = () => {
        const token = `token-${forms.length}`;
        tokens.add(token);
        return { access_token: token, token_type: 'Bearer', expires_in: 3600 };
    };
    const idToken = (claims = {}) => signed(idpKeys.private, { iss: `${origin}/idp`, sub: 'ann', aud: 'idp-client', exp: now() + 600, ...claims });
    const providers = {
        'urn:ietf:params:oauth:grant-type:token-exchange': (form) => {
            const subject = claimsOf(idpKeys.public, form.subject_token);
            return subject && { issued_token_type: 'urn:ietf:params:oauth:token-type:id-jag', token_type: 'N_A',
                access_token: signed(idpKeys.private, { iss: `${origin}/idp`, sub: subject.sub, aud: form.audience, resource: form.resource, client_id: 'client', exp: now() + 60 },
                    { typ: 'oauth-id-jag+jwt' }) };
        },
        // The code is the nonce: a person would have sent it with the browser.
        authorization_code: (form) => ({ access_token: 'of-idp', token_type: 'Bearer', id_token: idToken({ nonce: form.code }) }),
    };
    const grants = {
        client_credentials: (form) => {
            const claims = claimsOf(keys.public, form.client_assertion);
            const isGood = claims?.aud === `${origin}/as` && claims.sub === 'client' && claims.iss === 'client' && claims.exp > now() && !jtis.has(claims.jti);
            jtis.add(claims?.jti);
            return isGood && give();
        },
        'urn:ietf:params:oauth:grant-type:jwt-bearer': (form) => claimsOf(idpKeys.public, form.assertion)?.aud === `${origin}/as` && give(),
    };
    const metadata = (name, more) => ({ issuer: `${origin}/${name}`, authorization_endpoint: `${origin}/${name}/authorize`, token_endpoint: `${origin}/${name}/token`, ...more });
    const answers = {
        '/.well-known/oauth-protected-resource/mcp': () => ({ resource: `${origin}/mcp`, authorization_servers: [`${origin}/as`] }),
        '/.well-known/oauth-authorization-server/as': () => metadata('as', { token_endpoint_auth_methods_supported: ['private_key_jwt', 'none'], token_endpoint_auth_signing_alg_values_supported: ['ES256'] }),
        '/idp/.well-known/openid-configuration': () => metadata('idp'),
        '/as/token': (form) => grants[form.grant_type]?.(form),
        '/idp/token': (form) => providers[form.grant_type]?.(form),
    };
    const server = http.createServer(async (incoming, outgoing) => {
        const say = (status, body, headers = {}) => {
            outgoing.writeHead(status, { 'content-type': 'application/json', ...headers });
            outgoing.end(JSON.stringify(body));
        };
        let text = '';
        for await (const piece of incoming)
            text += piece;
        if (incoming.url === '/mcp') {
            if (!tokens.has(incoming.headers.authorization?.replace('Bearer ', '')))
                return say(401, {}, { 'www-authenticate': 'Bearer' });
            const { id, method, params } = text ? JSON.parse(text) : {};
            if (method === 'initialize')
                extensions.push(...Object.keys(params.capabilities.extensions ?? {}));
            const result = results[method];
            return id === undefined ? say(incoming.method === 'POST' ? 202 : 405, {}) : say(200, { jsonrpc: '2.0', id, ...result ? { result } : { error: { code: -32601, message: 'no' } } });
        }
        if (!answers[incoming.url])
            return say(404, {});
        const form = incoming.method === 'POST' ? Object.fromEntries(new URLSearchParams(text)) : undefined;
        if (form)
            forms.push({ path: incoming.url, ...form });
        const body = answers[incoming.url](form);
        return body ? say(200, body) : say(401, { error: 'invalid_client' });
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    origin = `http://127.0.0.1:${server.address().port}`;
    t.after(() => { server.closeAllConnections(); server.close(); });
    return { url: `${origin}/mcp`, idp: `${origin}/idp`, origin, forms, extensions, keys, idToken, forget: () => tokens.clear() };
}
