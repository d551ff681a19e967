// A double of the hosted service's account: the login of a command line, the management API's projects, keys and SQL. Its own command line was run against
// it (hosted_cli.test.mjs). The page of the dashboard is played by visit(): it signs a person in, makes the token, and returns the code.
//
//     const service = await accountDouble(t);
//     const code = service.visit(url);              url as a command line prints it
import { createCipheriv, createECDH, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import http from 'node:http';

export const aProject = { id: 'abcdefghijklmnopqrst', ref: 'abcdefghijklmnopqrst', organization_id: 'workshop-id', organization_slug: 'workshop', name: 'Orders', region: 'eu-central-1',
    created_at: '2026-01-02T03:04:05.678Z', status: 'ACTIVE_HEALTHY', database: { host: 'db.abcdefghijklmnopqrst.supabase.co', version: '15.8.1', postgres_engine: '15', release_channel: 'ga' } };
const key = (name, type, apiKey) => ({ name, type, api_key: apiKey, id: name, prefix: apiKey?.slice(0, 12), hash: '', description: null, inserted_at: '2026-01-02T03:04:05.678Z', updated_at: '2026-01-02T03:04:05.678Z' });
export const someKeys = [
    key('anon', 'legacy', 'eyJhbGciOiJIUzI1NiJ9.eyJyb2xlIjoiYW5vbiJ9.c2lnbmVk'), key('service_role', 'legacy', 'eyJhbGciOiJIUzI1NiJ9.eyJyb2xlIjoic2VydmljZV9yb2xlIn0.c2lnbmVk'),
    key('default', 'publishable', 'sb_publishable_ACJWlzQHlZjBrEguHvfOxg_3BJgxAaH'), key('default', 'secret', 'sb_secret_N7UND0UgjKTVK-Uodkm0Hg_xSvEMPvz'),
];
export const newToken = () => `sbp_${randomBytes(20).toString('hex')}`;

// What the dashboard does with the public key of a command line: {nonce, public_key, access_token}, all hexadecimal.
export function encryptToken(publicKey, token, nonce = randomBytes(12)) {
    const own = createECDH('prime256v1');
    own.generateKeys();
    const cipher = createCipheriv('aes-256-gcm', own.computeSecret(Buffer.from(publicKey, 'hex')), nonce);
    const bytes = Buffer.concat([cipher.update(token, 'utf8'), cipher.final(), cipher.getAuthTag()]);
    return { nonce: nonce.toString('hex'), public_key: own.getPublicKey('hex'), access_token: bytes.toString('hex') };
}

// answer(request) may return [status, body, headers] instead of the double's own answer, or null: then nothing is answered, for ever.
export async function accountDouble(t, { port = 0, projects = [aProject], keys = someKeys, answer = () => undefined, runSql = () => [] } = {}) {
    const logins = new Map();
    const service = { tokens: new Set(), requests: [], answer, runSql, mayWrite: true, mayReveal: true, profile: { gotrue_id: '6f9619ff-8b86-4d01-b42d-00c04fc964ff', primary_email: 'ada@example.org', username: 'ada' } };

    function login(session, code) {
        const found = logins.get(session);
        return found && code && found.nonce.slice(0, 8) === code ? [200, found] : [404, { message: 'Cannot find the login session' }];
    }

    async function ofProject(ref, what, request) {
        if (!projects.some((one) => one.ref === ref))
            return [404, { message: 'Project not found' }];
        if (!what)
            return [200, projects.find((one) => one.ref === ref)];
        if (what === 'api-keys') {
            const isShown = request.query.get('reveal') === 'true';
            if (isShown && !service.mayReveal)
                return [403, { message: 'Your account does not have the necessary privileges' }];
            return [200, keys.map((one) => one.type === 'secret' && !isShown ? { ...one, api_key: `${one.api_key.slice(0, 14)}····` } : one)];
        }
        if (what !== 'database/query')
            return [404, { message: 'Not found' }];
        if (!service.mayWrite)
            return [403, { message: 'Your account does not have the necessary privileges to access this endpoint' }];
        return [201, await service.runSql(request.body.query, ref)];
    }

    async function ownAnswer(request) {
        const { method, path, query, headers } = request;
        const [, session] = /^\/platform\/cli\/login\/([0-9a-f-]{36})$/.exec(path) ?? [];
        if (session && method === 'GET')
            return login(session, query.get('device_code'));
        if (!service.tokens.has(headers.authorization?.replace(/^Bearer /, '')))
            return [401, { message: 'Unauthorized' }];
        if (path === '/v1/profile')
            return [200, service.profile];
        if (path === '/v1/projects')
            return [200, projects];
        if (path === '/v1/organizations')
            return [200, [{ id: 'workshop-id', slug: 'workshop', name: 'Workshop' }]];
        const [, ref, what] = /^\/v1\/projects\/([^/]+)(?:\/(.+))?$/.exec(path) ?? [];
        return ref ? ofProject(ref, what, request) : [404, { message: `Cannot ${method} ${path}` }];
    }

    const server = http.createServer(async (incoming, outgoing) => {
        const url = new URL(incoming.url, 'http://double');
        let text = '';
        for await (const piece of incoming)
            text += piece;
        const request = { method: incoming.method, path: url.pathname, query: url.searchParams, headers: incoming.headers, text, body: text ? JSON.parse(text) : null };
        service.requests.push(request);
        const given = service.answer(request, service);
        if (given === null)
            return;
        const [status, body, headers = {}] = given ?? await Promise.resolve(ownAnswer(request)).catch((error) => [400, { message: error.message }]);
        outgoing.writeHead(status, { 'content-type': 'application/json', ...headers });
        outgoing.end(typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body));
    }).listen(port, '127.0.0.1');
    await once(server, 'listening');
    if (t)
        t.after(() => {
            server.closeAllConnections();
            server.close();
        });
    else
        server.unref();
    service.url = `http://127.0.0.1:${server.address().port}`;
    // The person opens the address and signs in. change(login): what a wrong service would answer instead.
    service.visit = (address, { token = newToken(), change = (one) => one } = {}) => {
        const { searchParams } = new URL(address);
        const made = encryptToken(searchParams.get('public_key'), token);
        service.tokens.add(token);
        logins.set(searchParams.get('session_id'), change({ id: searchParams.get('session_id'), created_at: new Date().toISOString(), ...made }, made));
        return made.nonce.slice(0, 8);
    };
    service.newToken = () => {
        const token = newToken();
        service.tokens.add(token);
        return token;
    };
    return service;
}
