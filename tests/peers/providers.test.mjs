// What `hearth provider test` says of every way in which a provider can fail, each made for real on this machine, and of one that works.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { LLMock } from '@copilotkit/aimock';
import { startHearth } from '../api/harness.mjs';
import { admin, unique } from '../api/kit.mjs';
import { freePort } from '../tools/ports.mjs';

const folder = mkdtempSync(join(tmpdir(), 'hearth-tls-'));
const file = (name) => join(folder, name);
const openssl = (...args) => execFileSync('openssl', args, { cwd: folder, stdio: 'pipe' });

// An authority of the test's own, which Hearth trusts (SSL_CERT_FILE), and what it signs: a good certificate, an expired one, one for
// another host; and one that signed itself.
function makeCertificates() {
    openssl('req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', 'ca.key', '-out', 'ca.pem', '-days', '2', '-subj', '/CN=Test CA');
    for (const [name, host, days] of [['good', 'IP:127.0.0.1', '2'], ['expired', 'IP:127.0.0.1', '-1'], ['other', 'DNS:other.example', '2']]) {
        openssl('req', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', `${name}.key`, '-out', `${name}.csr`, '-subj', `/CN=${name}`);
        writeFileSync(file(`${name}.ext`), `subjectAltName=${host}\n`);
        openssl('x509', '-req', '-in', `${name}.csr`, '-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial', '-out', `${name}.pem`, '-days', days, '-extfile', `${name}.ext`);
    }
    openssl('req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', 'self.key', '-out', 'self.pem', '-days', '2', '-subj', '/CN=self',
        '-addext', 'subjectAltName=IP:127.0.0.1');
}

const servers = [];
async function listen(server) {
    servers.push(server.listen(0, '127.0.0.1'));
    await once(server, 'listening');
    return server.address().port;
}

async function tls(name) {
    const answer = (_, outgoing) => outgoing.end(JSON.stringify({ model: 'm', choices: [{ message: { content: 'OK' }, finish_reason: 'stop' }], usage: { prompt_tokens: 4, completion_tokens: 1 } }));
    return `https://127.0.0.1:${await listen(https.createServer({ key: readFileSync(file(`${name}.key`)), cert: readFileSync(file(`${name}.pem`)) }, answer))}/v1`;
}

const plain = async (answer) => `http://127.0.0.1:${await listen(http.createServer(answer))}`;
const refusing = (status, message, headers = {}) => plain((_, outgoing) => outgoing.writeHead(status, headers).end(JSON.stringify({ error: { message } })));

let mock, h, hasty;
const env = { SSL_CERT_FILE: file('ca.pem') };
before(async () => {
    makeCertificates();
    mock = new LLMock({ port: 0 });
    mock.on({ userMessage: 'Say OK.', model: 'busy' }, { error: { message: 'Slow down', type: 'rate_limit_error' }, status: 429, retryAfter: 17 });
    mock.on({ userMessage: 'Say OK.', model: 'locked' }, { error: { message: 'Incorrect API key provided: sk-test-0123456789', type: 'authentication_error', code: 'invalid_api_key' }, status: 401 });
    mock.on({ userMessage: 'Say OK.', model: 'nope' }, { error: { message: "The model 'nope' does not exist", type: 'invalid_request_error', code: 'model_not_found' }, status: 404 });
    mock.on({ userMessage: 'Say OK.' }, { content: 'OK' });
    mock.onEmbedding?.('OK', { embedding: [1, 0] });
    await mock.start();
    h = await startHearth({ env, settings: { 'llm.retries': 0 } });
    hasty = await startHearth({ env, settings: { 'llm.first_byte_s': 0.5, 'llm.retries': 0 } });
});
after(async () => {
    await h?.stop();
    await hasty?.stop();
    await mock?.stop();
    servers.forEach((server) => server.closeAllConnections?.() ?? server.close());
    servers.forEach((server) => server.close());
    rmSync(folder, { recursive: true, force: true });
});

// Adds a provider, tests it, forgets it; what was said, with the provider's name as NAME.
async function trial(baseUrl, more = {}, body = {}, at = h) {
    const name = unique('p');
    await admin(at, 'POST', '/api/providers', { preset: 'generic-openai', name, base_url: baseUrl, model: 'm', api_key: 'sk-test-0123456789', ...more }, 201);
    const said = await admin(at, 'POST', `/api/providers/${name}/test`, body);
    await admin(at, 'DELETE', `/api/providers/${name}`);
    assert.equal(said.provider, name);
    const told = said.text.replaceAll(name, 'NAME').replaceAll(/127\.0\.0\.1:\d+/g, 'HOST');
    if (process.env.READ_ALOUD)
        console.log(`        ${told}`);
    return { ...said, text: told };
}

const fails = async (text, code, reason, ...how) => {
    const said = await trial(...how);
    assert.deepEqual([said.works, said.code, said.reason], [false, code, reason], said.text);
    assert.match(said.text, text instanceof RegExp ? text : new RegExp(`^${text.replaceAll(/[.?()*[\]]/g, '\\$&')}$`));
};

test('one that works', async () => {
    const said = await trial(`${mock.url}/v1`, { model: 'gpt-4o' });
    assert.deepEqual([said.works, said.capability, said.code, said.reason], [true, 'chat', null, null], said.text);
    assert.match(said.text, /^NAME works: gpt-4o\S* answered in \d+ ms; \d+ tokens were sent and \d+ came back(, by estimate)?\.$/);
    assert.ok(said.prompt_tokens > 0 && said.completion_tokens > 0);
});

test('one that works over TLS with a certificate of an own authority', async () => {
    const said = await trial(await tls('good'));
    assert.equal(said.text.replace(/\d+ ms/, 'N ms'), 'NAME works: m answered in N ms; 4 tokens were sent and 1 came back.');
});

for (const [preset, base] of [['anthropic', ''], ['ollama', ''], ['openai', '/v1']])
    test(`one that works and speaks as ${preset}`, async () => {
        const said = await trial(mock.url + base, { preset });
        assert.equal(said.works, true, said.text);
    });

test('one that only embeds', async () => {
    const said = await trial(`${mock.url}/v1`, { model: undefined, embed_model: 'text-embedding-3-small' });
    assert.equal(said.capability, 'embed');
    assert.match(said.text, /^NAME works: text-embedding-3-small made a vector in \d+ ms\.$/);
});

test('a name that nobody knows', () => fails('NAME: The name of nowhere.invalid:443 is not known here: check the address and this machine\'s network.', 'LLM_ERROR', 'DNS_FAILED', 'https://nowhere.invalid/v1'));

test('a port where nothing listens', async () => {
    const port = await freePort();
    await fails('NAME: HOST takes no connection: is the server there running, and is the address right?', 'LLM_ERROR', 'CONNECT_FAILED', `http://127.0.0.1:${port}/v1`);
});

test('a certificate that signed itself', async () =>
    fails(/^NAME: No trusted TLS connection to HOST came about: its certificate is not trusted here: it signed itself\. Add it to this machine's authorities/, 'LLM_ERROR', 'TLS_FAILED', await tls('self')));

test('a certificate that has expired', async () =>
    fails('NAME: No trusted TLS connection to HOST came about: its certificate has expired.', 'LLM_ERROR', 'TLS_FAILED', await tls('expired')));

test('a certificate for another host', async () =>
    fails('NAME: No trusted TLS connection to HOST came about: its certificate is for another host name; is the address right?', 'LLM_ERROR', 'TLS_FAILED', await tls('other')));

test('no TLS where TLS was asked for', async () =>
    fails('NAME: No trusted TLS connection to HOST came about: it does not speak TLS there; should the address begin with http://?', 'LLM_ERROR', 'TLS_FAILED',
        (await refusing(200, 'x')).replace('http:', 'https:')));

test('a key that is refused, which is not repeated', () =>
    fails('NAME refuses the API key (401): Incorrect API key provided: ****', 'LLM_ERROR', null, `${mock.url}/v1`, { model: 'locked' }));

test('rights that are lacking', async () => fails('NAME says that this API key may not do this (403): Not in your plan', 'LLM_ERROR', null, `${await refusing(403, 'Not in your plan')}/v1`));

test('a model that is not there', () => fails("NAME has no such model: The model 'nope' does not exist", 'INVALID_MODEL', null, `${mock.url}/v1`, { model: 'nope' }));

test('an address without /v1', async () => fails(/^NAME has no such address \(404\): its base URL probably lacks \/v1 at its end\. \(The base URL is http:\/\/HOST\/?\.\)$/, 'LLM_ERROR', null, await plain((incoming, outgoing) => {
    outgoing.writeHead(incoming.url.startsWith('/v1/') ? 200 : 404).end('{}');
})));

test('an address with /v1 that is wrong all the same', async () =>
    fails(/^NAME has no such address \(404\): is its base URL right\? It says: No such route \(The base URL is http:\/\/HOST\/x\/v1\.\)$/, 'LLM_ERROR', null, `${await refusing(404, 'No such route')}/x/v1`));

test('one that takes no more requests', () => fails('NAME takes no more requests for now (429): Slow down', 'RATE_LIMIT', null, `${mock.url}/v1`, { model: 'busy' }));

test('one that says nothing', async () => fails('NAME: HOST did not begin its answer within 0.5 seconds.', 'LLM_ERROR', 'UPSTREAM_TIMEOUT', `${await plain(() => {})}/v1`, {}, {}, hasty));

test('one that hangs up', async () => fails('NAME: HOST closed the connection without an answer.', 'LLM_ERROR', 'UPSTREAM_CLOSED', `${await plain((_, outgoing) => outgoing.destroy())}/v1`));

test('one that fails', async () => fails('NAME fails (500): Out of memory', 'LLM_ERROR', null, `${await refusing(500, 'Out of memory')}/v1`));

test('a web page instead of an answer', async () =>
    fails(/^NAME: A web page came in place of a model's answer: is the base URL right\?/, 'LLM_ERROR', 'UPSTREAM_INVALID', `${await plain((_, outgoing) => outgoing.end('<html>Welcome</html>'))}/v1`));

test('a redirect', async () =>
    fails('NAME answers with a redirect (301): give the address it points to as base URL.', 'LLM_ERROR', null, `${await refusing(301, '', { location: 'http://127.0.0.1:1/' })}/v1`));

test('no model', async () =>
    fails(/^NAME has no model yet/, 'INVALID_MODEL', null, `${await plain((_, outgoing) => outgoing.end('{"data":[]}'))}/v1`, { model: undefined }, { capability: 'chat' }));

test('embeddings of one that has none', () => fails('NAME has no embeddings.', 'PROVIDER_UNAVAILABLE', null, mock.url, { preset: 'anthropic' }, { capability: 'embed' }));
