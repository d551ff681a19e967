// Every way a chat can fail, through the real service, whole and streamed: the status, the code, and the sentence a person reads. The upstream is
// recorded.mjs, for the causes stand below HTTP or in replies no double gives.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { startHearth } from '../api/harness.mjs';
import { newApp, newKey, refused } from '../api/kit.mjs';
import { freePort } from '../tools/ports.mjs';
import { envOf, startRecorded } from './recorded.mjs';

const key = envOf('http://x').GENERIC_OPENAI_API_KEY;
const paths = ['/sdk/llm/chat', '/sdk/llm/chat/stream'];
const single = { 'llm.rest_after': 0, 'llm.retries': 0 };
// A time limit is short only where it is to pass: elsewhere a busy machine would meet it too.
const hasty = { mute: { 'llm.first_byte_s': 0.3 }, halting: { 'llm.idle_s': 0.3 } };
const json = (status, body, headers = {}) => () => ({ status, headers, pieces: [typeof body === 'string' ? body : JSON.stringify(body)] });
const text = (words) => ({ messages: [{ role: 'user', content: words }] });

// What the upstream does, and what is told of it. Streams that have begun tell the same words in their error event.
const upstreams = [
    ['locked', json(401, { error: { message: `Incorrect API key provided: ${key}.` } }), 502, 'LLM_ERROR', /^generic-openai refuses the API key \(401\): Incorrect API key provided: \*\*\*\*\.$/],
    ['forbidden', json(403, ''), 502, 'LLM_ERROR', /^generic-openai says that this API key may not do this \(403\) and gives no reason\.$/],
    ['broke', json(402, { error: { message: 'Insufficient Balance' } }), 502, 'LLM_ERROR', /^generic-openai wants to be paid first \(402\): Insufficient Balance$/],
    ['lost', json(404, '<html>'), 502, 'LLM_ERROR', /^generic-openai has no such address \(404\): is its base URL right\?$/],
    ['no-such-model', json(404, { error: { message: 'The model `x` does not exist.', code: 'model_not_found' } }), 400, 'INVALID_MODEL', /^generic-openai has no such model: The model `x` does not exist\.$/],
    ['busy', json(429, { error: { message: 'Rate limit reached' } }, { 'retry-after': '30' }), 429, 'RATE_LIMIT', /^generic-openai takes no more requests for now \(429\): Rate limit reached$/],
    ['listed', json(400, [{ error: { message: 'Invalid value' } }]), 502, 'LLM_ERROR', /^generic-openai refuses the request \(400\): Invalid value$/],
    ['detailed', json(422, { detail: [{ loc: ['body'], msg: 'Field required' }] }), 502, 'LLM_ERROR', /^generic-openai refuses the request \(422\): Field required$/],
    ['plain', json(500, 'upstream is down\n'), 502, 'LLM_ERROR', /^generic-openai fails \(500\): upstream is down$/],
    ['broken', json(500, '<html>'), 502, 'LLM_ERROR', /^generic-openai fails \(500\) and gives no reason\.$/],
    ['moved', json(302, '', { location: 'https://elsewhere.example/' }), 502, 'LLM_ERROR', /^generic-openai answers with a redirect \(302\): give the address it points to as base URL\.$/],
    ['page', json(200, '<!doctype html><title>Login</title>'), 502, 'LLM_ERROR', /^generic-openai: A web page came in place of a model's answer: is the base URL right\?$/, 'UPSTREAM_INVALID'],
    ['empty', json(200, '{}'), 502, 'LLM_ERROR', /^generic-openai sent a reply that holds no answer of a model\.$/, 'UPSTREAM_INVALID'],
    ['reporting', json(200, { error: { message: `Broken, ${key}` } }), 502, 'LLM_ERROR', /^generic-openai reports: Broken, \*\*\*\*$/],
    ['mute', 'silence', 502, 'LLM_ERROR', /^generic-openai: its server did not begin its answer within 0\.3 seconds\.$/, 'UPSTREAM_TIMEOUT'],
    ['halting', (wire, body) => [body.stream ? wire.text('Hel') : '{"choices"', 'hang'], 502, 'LLM_ERROR', /^generic-openai: its server sent nothing more for 0\.3 seconds\.$/, 'UPSTREAM_TIMEOUT'],
    ['cut', (wire, body) => [body.stream ? wire.text('Hel') : '{"choices"', 20, 'cut'], 502, 'LLM_ERROR', /^generic-openai: its server closed the connection before its answer was complete\.$/, 'UPSTREAM_CLOSED'],
];

let upstream, h, caller;
const hastyCalls = {};

before(async () => {
    upstream = await startRecorded();
    for (const [name, reply] of upstreams)
        upstream.say(name, reply);
    upstream.say('dripping', (wire) => Array.from({ length: 40 }, () => [wire.text('x'), 100]).flat());
    upstream.say('prose', (wire, body) => (body.stream ? [wire.text('Certainly!'), wire.end([1, 1])] : [wire.whole('Certainly!', [1, 1])]));
    h = await startHearth({ env: envOf(upstream.url), settings: single });
    caller = await newKey(h);
    for (const [name, limit] of Object.entries(hasty)) {
        const one = await startHearth({ env: envOf(upstream.url), settings: { ...single, ...limit } });
        hastyCalls[name] = { one, call: (await newKey(one)).call };
    }
});
after(async () => {
    for (const one of [h, ...Object.values(hastyCalls).map((hastyCall) => hastyCall.one)])
        await one?.stop();
    upstream?.stop();
});

// The answer, or what its error event says.
async function told(call, path, body, status, code, words, reason) {
    const reply = await call('POST', path, body);
    assert.ok(!reply.text.includes(key), 'no reply holds a key');
    if (reply.status === 200) {
        const { error, code: inner } = JSON.parse(/event: error\ndata: (.*)\n\n$/.exec(reply.text)[1]);
        assert.match(error, words);
        assert.equal(inner, 'LLM_STREAM_ERROR');
        return reply;
    }
    refused(reply, status, code, words);
    assert.equal(reply.body.reason, reason);
    return reply;
}

for (const [name, , ...wanted] of upstreams)
    test(`an upstream that is ${name}`, async () => {
        for (const path of paths) {
            const reply = await told(hastyCalls[name]?.call ?? caller.call, path, { provider: 'generic-openai', model: name, ...text('hi') }, ...wanted);
            assert.equal(reply.headers['retry-after'], name === 'busy' ? '30' : undefined);
        }
    });

test('what the caller asks in vain', async () => {
    const schema = { type: 'json_schema', json_schema: { schema: { type: 'object', required: ['n'] } } };
    const block = (one) => ({ messages: [{ role: 'user', content: [one] }] });
    const cases = [
        [{ provider: 'nobody', ...text('hi') }, 400, 'PROVIDER_UNAVAILABLE', /^The provider nobody is not configured; configured are: openai, anthropic, ollama, generic-openai\.$/],
        [{ provider: 'anthropic', model: 'prose', response_format: schema, ...text('hi') }, 502, 'LLM_ERROR', /^The model's answer is not the JSON that response_format asks for: it is no JSON\.$/],
        [{ provider: 'ollama', ...block({ type: 'image_url', image_url: { url: 'http://169.254.169.254/x.png' } }) }, 400, 'FILE_NOT_FETCHED', /^`messages\[0\]\.content\[0\]`: the file at 169\.254\.169\.254 could not be fetched: /, 'ADDRESS_REFUSED'],
        [{ provider: 'anthropic', ...block({ type: 'input_file', filename: 'a.zip', file_data: 'data:application/zip;base64,QUJD' }) }, 400, 'UNSUPPORTED_CONTENT',
            /^Anthropic reads PDF, text and images: `messages\[0\]` holds a file of the type application\/zip\.$/],
        [block({ type: 'audio' }), 400, 'VALIDATION_ERROR', /^`messages\[0\]\.content\[0\]` must be a block of type text, image_url or input_file$/],
    ];
    for (const [body, ...wanted] of cases)
        for (const path of paths)
            await told(caller.call, path, body, ...wanted);
});

// One upstream that is wrong below HTTP, each in a service of its own.
async function toldOf(t, url, settings, ...wanted) {
    const one = await startHearth({ t, env: { GENERIC_OPENAI_BASE_URL: url, GENERIC_OPENAI_MODEL: 'm', GENERIC_OPENAI_API_KEY: key }, settings: { ...single, ...settings } });
    const { call } = await newKey(one);
    for (const path of paths)
        await told(call, path, text('hi'), ...wanted);
    return call;
}

async function listen(t, server) {
    await once(server.listen(0, '127.0.0.1'), 'listening');
    t.after(() => server.close());
    return `127.0.0.1:${server.address().port}`;
}

test('a name nobody knows', (t) => toldOf(t, 'https://no-such-host.invalid/v1', {}, 502, 'LLM_ERROR', /^generic-openai: The name of its server is not known here/, 'DNS_FAILED'));

test('what a failed attempt waited for its provider is no overhead of this service', async (t) => {
    const lateMs = 600;
    const answer = JSON.stringify({ choices: [{ message: { content: 'Hi.' }, finish_reason: 'stop' }] });
    let n = 0;
    const where = await listen(t, http.createServer((incoming, outgoing) => {
        incoming.resume();
        if (n++ % 2 === 1)
            outgoing.end(answer);
        else
            setTimeout(() => outgoing.writeHead(503).end('{}'), lateMs);
    }));
    const one = await startHearth({ t, env: { GENERIC_OPENAI_BASE_URL: `http://${where}/v1`, GENERIC_OPENAI_MODEL: 'm' } });
    const { call } = await newKey(one);
    for (const path of paths) {
        const began = performance.now();
        const reply = await call('POST', path, text('hi'));
        assert.equal(reply.status, 200, reply.text);
        const overhead = Number(reply.headers['x-hearth-overhead-ms']), mostMs = performance.now() - began - lateMs + 5;
        assert.ok(overhead <= mostMs, `${path}: ${overhead} ms of at most ${mostMs}`);
    }
});

test('nobody listens; after some failures the provider rests', async (t) => {
    const where = `127.0.0.1:${await freePort()}`;
    const call = await toldOf(t, `http://${where}/v1`, { 'llm.rest_after': 2 }, 502, 'LLM_ERROR', /takes no connection: is the server there running, and is the address right\?$/, 'CONNECT_FAILED');
    for (const path of paths) {
        const resting = await told(call, path, text('hi'), 503, 'PROVIDER_UNAVAILABLE', /^generic-openai has failed several times in a row and rests; try again in \d+ seconds\.$/);
        const seconds = Number(resting.headers['retry-after']);
        assert.ok(seconds >= 1 && seconds <= 15, `Retry-After is ${seconds}`);
        assert.match(resting.body.error, new RegExp(`in ${seconds} seconds`));
    }
});

test('a certificate that signed itself, and no TLS at all', async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'hearth-tls-'));
    t.after(() => rmSync(folder, { recursive: true }));
    execFileSync('openssl', ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-keyout', join(folder, 'key'), '-out', join(folder, 'cert'), '-days', '2', '-subj', '/CN=localhost',
        '-addext', 'subjectAltName=IP:127.0.0.1'], { stdio: 'ignore' });
    const tls = await listen(t, https.createServer({ key: readFileSync(join(folder, 'key')), cert: readFileSync(join(folder, 'cert')) }));
    await toldOf(t, `https://${tls}/v1`, {}, 502, 'LLM_ERROR', /its certificate is not trusted here: it signed itself/, 'TLS_FAILED');
    const plain = await listen(t, http.createServer((_, outgoing) => outgoing.end('{}')));
    await toldOf(t, `https://${plain}/v1`, {}, 502, 'LLM_ERROR', /does not speak TLS there/, 'TLS_FAILED');
});

test('an answer without end is ended', async (t) => {
    const one = await startHearth({ t, env: envOf(upstream.url), settings: { 'llm.total_s': 0.6, 'llm.retries': 0 } });
    const { call } = await newKey(one);
    for (const path of paths)
        await told(call, path, { provider: 'generic-openai', model: 'dripping', ...text('hi') }, 502, 'LLM_ERROR', /^generic-openai: its server did not finish its answer in time\.$/, 'UPSTREAM_TIMEOUT');
});

test('where a provider is asked is told to administrators and the log only', async (t) => {
    const where = `127.0.0.1:${await freePort()}`;
    const one = await startHearth({ t, env: { GENERIC_OPENAI_BASE_URL: `http://${where}/v1`, GENERIC_OPENAI_MODEL: 'm' }, settings: single });
    const call = one.asApp(await newApp(one, {}, ['llm.chat', 'llm.embed']));
    for (const path of paths)
        await told(call, path, text('hi'), 502, 'LLM_ERROR', /^generic-openai: its server takes no connection/, 'CONNECT_FAILED');
    const embedding = await call('POST', '/sdk/llm/embed', { provider: 'generic-openai', model: 'm', input: 'x' });
    assert.match(embedding.body.error, /^generic-openai: its server takes no connection/, embedding.text);
    await told((...ask) => one.socket(...ask), paths[0], text('hi'), 502, 'LLM_ERROR', new RegExp(`^generic-openai: ${where} takes no connection`), 'CONNECT_FAILED');
    const { text: said } = (await one.socket('POST', '/api/providers/generic-openai/test')).body;
    assert.ok(said.startsWith(`generic-openai: ${where} takes no connection`), said);
    await one.logged(new RegExp(`app: LLM_ERROR "generic-openai: ${where} takes no connection`));
});

test('a provider without a model whose list cannot be had says why, again and again', async (t) => {
    const where = `127.0.0.1:${await freePort()}`;
    const one = await startHearth({ t, env: { OLLAMA_HOST: `http://${where}` }, settings: single });
    const { call } = await newKey(one);
    for (const path of [...paths, ...paths])
        await told(call, path, text('hi'), 502, 'LLM_ERROR', /^ollama: its server takes no connection/, 'CONNECT_FAILED');
});
