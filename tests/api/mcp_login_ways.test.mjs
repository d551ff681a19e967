// Logins at remote MCP servers that need no secret of a person: a client's key (private_key_jwt), and an identity provider that vouches for people
// (enterprise-managed authorization), as a user sets them up (docs/mcp.md).
import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { sharedHearth, startHearth } from './harness.mjs';
import { identityServer } from './identity_server.mjs';
import { admin, unique } from './kit.mjs';

const shared = sharedHearth({});
const show = async (h, name) => (await admin(h, 'GET', `/api/mcp/servers/${name}`)).server;
const tools = async (h, name) => (await admin(h, 'GET', `/api/mcp/servers/${name}/tools`)).tools.map((tool) => tool.name);

function textFile(h, text) {
    const path = h.file(`${unique('text')}.json`, {});
    writeFileSync(path, text);
    return path;
}

async function cli(h, ...args) {
    const { code, stdout, stderr } = await h.cli(...args);
    assert.equal(code, 0, stderr);
    return stdout;
}

// A definition that is refused: the rule of this field.
async function ruleOf(h, field, definition) {
    const reply = await h.socket('POST', '/api/mcp/servers', { name: unique('bad'), url: 'https://mcp.example/mcp', ...definition });
    assert.equal(reply.status, 400, reply.text);
    const found = JSON.stringify(reply.body).match(new RegExp(`"${field}"[^}]*`));
    assert.ok(found, reply.text);
    return found[0];
}

test('a machine logs in with the key that the command line gave, which nobody sees again', async (t) => {
    const h = await shared(t), far = await identityServer(t), name = unique('machine');
    await cli(h, 'mcp', 'add', name, '--url', far.url, '--client-id', 'client', '--machine', '--private-key', textFile(h, far.keys.pem), '--key-id', 'k1', '--yes');
    assert.match(await cli(h, 'mcp', 'login', name), /can use/);
    assert.deepEqual(await tools(h, name), ['greet']);
    assert.deepEqual([...new Set(far.extensions)], ['io.modelcontextprotocol/oauth-client-credentials']);
    const { login, grant, client_id, key_id, has_private_key } = await show(h, name);
    assert.deepEqual({ login, grant, client_id, key_id, has_private_key }, { login: 'logged_in', grant: 'machine', client_id: 'client', key_id: 'k1', has_private_key: true });
    far.forget();
    await admin(h, 'POST', `/api/mcp/servers/${name}/restart`);
    assert.deepEqual(await tools(h, name), ['greet']);                  // a new assertion, without a command
    assert.equal(new Set(far.forms.map((form) => form.client_assertion)).size, far.forms.length);
    assert.equal(JSON.parse(Buffer.from(far.forms[0].client_assertion.split('.')[0], 'base64url')).kid, 'k1');
    const body = far.keys.pem.split('\n')[1];
    for (const path of [`/api/mcp/servers/${name}`, '/api/audit?limit=50', `/api/mcp/servers/${name}/log`])
        assert.ok(!(await h.socket('GET', path)).text.includes(body), path);
});

test('a key that the authorization server does not know says what to register', async (t) => {
    const h = await shared(t), far = await identityServer(t), name = unique('machine');
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    await admin(h, 'POST', '/api/mcp/servers?accept=true', { name, url: far.url, client_id: 'client', grant: 'machine',
        private_key: privateKey.export({ type: 'pkcs8', format: 'pem' }) }, 201);
    const reply = await h.socket('POST', `/api/mcp/servers/${name}/login`);
    assert.equal(reply.body.code, 'MCP_LOGIN_DENIED', reply.text);
    assert.match(reply.text, /Register the public key of private_key/);
    assert.equal((await show(h, name)).login, 'none');
});

test('an id token that a person has is exchanged for a token of the server', async (t) => {
    const h = await shared(t), far = await identityServer(t), name = unique('enterprise');
    await cli(h, 'mcp', 'add', name, '--url', far.url, '--client-id', 'client', '--identity-provider', far.idp, '--identity-client-id', 'idp-client', '--yes');
    assert.match(await cli(h, 'mcp', 'login', name, '--id-token', textFile(h, `${far.idToken()}\n`)), /can use/);
    assert.deepEqual(await tools(h, name), ['greet']);
    assert.deepEqual(far.forms.map((form) => form.path), ['/idp/token', '/as/token']);
    assert.deepEqual([...new Set(far.extensions)], ['io.modelcontextprotocol/enterprise-managed-authorization']);
    assert.equal(far.forms[0].audience, `${far.origin}/as`);
    assert.equal(far.forms[0].resource, far.url);
    assert.equal((await show(h, name)).identity_provider, far.idp);
    far.forget();
    await admin(h, 'POST', `/api/mcp/servers/${name}/restart`);
    assert.deepEqual(await tools(h, name), ['greet']);                  // exchanged again, without a person
    assert.equal(far.forms.length, 4);
    const expired = await h.socket('POST', `/api/mcp/servers/${name}/login`, { id_token: far.idToken({ exp: 1 }) });
    assert.match(expired.text, /has expired/);
    assert.equal(far.forms.length, 4);
});

test('a person logs in at the identity provider with a browser', async (t) => {
    const h = await shared(t), far = await identityServer(t), name = unique('enterprise');
    await admin(h, 'POST', '/api/mcp/servers?accept=true', { name, url: far.url, client_id: 'client', grant: 'enterprise',
        identity_provider: far.idp, identity_client_id: 'idp-client' }, 201);
    assert.equal((await h.socket('GET', `/api/mcp/servers/${name}/tools`)).body.code, 'MCP_LOGIN_REQUIRED');
    const login = await admin(h, 'POST', `/api/mcp/servers/${name}/login`);
    const asked = new URL(login.url);
    assert.equal(asked.pathname, '/idp/authorize');
    const { pathname } = new URL(asked.searchParams.get('redirect_uri'));
    const page = await h.api('GET', `${pathname}?state=${asked.searchParams.get('state')}&code=${asked.searchParams.get('nonce')}`);
    assert.equal(page.status, 200, page.text);
    assert.deepEqual(await tools(h, name), ['greet']);
    await admin(h, 'POST', `/api/mcp/servers/${name}/logout`);
    assert.notEqual((await show(h, name)).login, 'logged_in');
});

test('a key and an identity outlast the service, and lie in no file as text', async (t) => {
    const h = await startHearth({ t }), far = await identityServer(t), idToken = far.idToken();
    await admin(h, 'POST', '/api/mcp/servers?accept=true', { name: 'machine', url: far.url, client_id: 'client', grant: 'machine', private_key: far.keys.pem }, 201);
    await admin(h, 'POST', '/api/mcp/servers?accept=true', { name: 'person', url: far.url, client_id: 'client', grant: 'enterprise',
        identity_provider: far.idp, identity_client_id: 'idp-client', identity_client_secret: 'very_secret' }, 201);
    await admin(h, 'POST', '/api/mcp/servers/person/login', { id_token: idToken });
    await h.terminate();
    await h.start();
    far.forget();
    assert.deepEqual(await tools(h, 'machine'), ['greet']);
    assert.deepEqual(await tools(h, 'person'), ['greet']);
    assert.deepEqual(far.forms.map((form) => form.path), ['/idp/token', '/as/token', '/as/token', '/idp/token', '/as/token']);
    await h.terminate();
    const files = readdirSync(h.dataDir, { recursive: true }).map((name) => join(h.dataDir, name)).filter((path) => statSync(path).isFile());
    for (const secret of [idToken.slice(-40), far.keys.pem.split('\n')[1].slice(0, 40), 'very_secret'])
        for (const path of files)
            assert.ok(!readFileSync(path).includes(secret), path);
});

test('what is missing or does not fit is named', async (t) => {
    const h = await shared(t), key = (type, options) => generateKeyPairSync(type, options).privateKey.export({ type: 'pkcs8', format: 'pem' });
    const private_key = key('ec', { namedCurve: 'P-256' }), client_id = 'client';
    assert.match(await ruleOf(h, 'grant', { grant: 'machine', client_id }), /client_secret or private_key/);
    assert.match(await ruleOf(h, 'private_key', { private_key }), /client_id/);
    assert.match(await ruleOf(h, 'private_key', { private_key, client_id, client_secret: 's' }), /one of them/);
    assert.match(await ruleOf(h, 'private_key', { private_key: key('ed25519'), client_id }), /P-256/);
    assert.match(await ruleOf(h, 'private_key', { private_key: 'secret', client_id }), /no private key in PEM/);
    assert.match(await ruleOf(h, 'private_key', { private_key: 'x'.repeat(8193), client_id }), /8192/);
    assert.match(await ruleOf(h, 'key_id', { key_id: 'k', client_id }), /private_key/);
    assert.match(await ruleOf(h, 'grant', { grant: 'enterprise', client_id }), /identity_provider and identity_client_id/);
    const enterprise = { grant: 'enterprise', client_id, identity_provider: 'https://idp.example', identity_client_id: 'c' };
    assert.match(await ruleOf(h, 'identity_provider', { ...enterprise, identity_provider: 'http://idp.example' }), /https/);
    assert.match(await ruleOf(h, 'identity_provider', { ...enterprise, grant: 'person' }), /enterprise/);
    assert.match(await ruleOf(h, 'grant', { ...enterprise, client_id: undefined }), /client_id/);
    const name = unique('person');
    await admin(h, 'POST', '/api/mcp/servers?accept=true', { name, url: 'http://127.0.0.1:1/mcp' }, 201);
    assert.equal((await h.socket('POST', `/api/mcp/servers/${name}/login`, { id_token: 'x' })).body.code, 'VALIDATION_ERROR');
    const tooLong = await h.socket('POST', `/api/mcp/servers/${name}/login`, { id_token: 'x'.repeat(16385) });
    assert.match(tooLong.text, /16384/);
});

test('a command line that contradicts itself, or names no file, changes nothing', async (t) => {
    const h = await shared(t), name = unique('none');
    const both = await h.cli('mcp', 'add', name, '--url', 'https://mcp.example/mcp', '--machine', '--identity-provider', 'https://idp.example');
    assert.equal(both.code, 2, both.stderr);
    const missing = await h.cli('mcp', 'add', name, '--url', 'https://mcp.example/mcp', '--client-id', 'c', '--private-key', `${name}/no.pem`);
    assert.notEqual(missing.code, 0);
    assert.match(missing.stderr, /no\.pem/);
    assert.equal((await h.socket('GET', `/api/mcp/servers/${name}`)).status, 404);
});
