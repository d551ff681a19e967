// Content as client programs send it, through the real service to an upstream of every protocol (recorded.mjs): files without names, files by
// address, halves of characters, failed tools, details of images; and when a model is said to have been made.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { startHearth, until } from '../api/harness.mjs';
import { admin, insert, newApp, newKey, refused } from '../api/kit.mjs';
import { envOf, startRecorded } from './recorded.mjs';

const pdf = Buffer.from('%PDF-1.4 a scanned page').toString('base64');
const providers = ['openai', 'anthropic', 'ollama', 'generic-openai'];
const hows = { whole: '/sdk/llm/chat', streamed: '/sdk/llm/chat/stream' };
const times = { openai: 1715367049, anthropic: '2025-02-19T00:00:00Z', ollama: '2025-10-03T23:34:03.409490317-07:00', 'generic-openai': 1715367049123 };

let upstream, files, h, dev, far, askFar, models;

// A server of files: what was asked of it, and who waits at /slow. Its types are those of a careless one.
async function startFiles() {
    const asked = [];
    const state = { asked, nWaiting: 0 };
    const server = http.createServer((incoming, outgoing) => {
        asked.push(incoming.url);
        const path = incoming.url.split('?')[0];
        if (path === '/slow') {
            state.nWaiting++;
            outgoing.on('close', () => state.nWaiting--);
        } else if (path === '/moved') {
            outgoing.writeHead(302, { location: '/a.pdf' }).end();
        } else if (path === '/notes.txt') {
            outgoing.writeHead(200, { 'content-type': 'text/plain; charset=utf-8' }).end('Grüße');
        } else if (path === '/gone') {
            outgoing.writeHead(410).end('gone');
        } else {
            outgoing.writeHead(200, { 'content-type': 'application/octet-stream' }).end(Buffer.from(pdf, 'base64'));
        }
    }).listen(0, '127.0.0.1').unref();
    await once(server, 'listening');
    const url = `http://127.0.0.1:${server.address().port}`;
    return Object.assign(state, { url, stop: () => { server.closeAllConnections(); server.close(); } });
}

function listModels() {
    const { path, headers } = upstream.asked.at(-1);
    if (path === '/api/tags')
        return [JSON.stringify({ models: [{ name: 'llama3.2', modified_at: times.ollama }] })];
    if (headers['anthropic-version'])
        return [JSON.stringify({ data: [{ type: 'model', id: 'claude-x', display_name: 'Claude X', created_at: times.anthropic }] })];
    const generic = headers.authorization?.includes('generic');
    return [JSON.stringify({ data: generic ? [{ id: 'gpt-4o', created: times['generic-openai'] }, { id: 'timeless' }] : [{ id: 'gpt-x', created: times.openai }] })];
}

before(async () => {
    upstream = await startRecorded();
    files = await startFiles();
    upstream.say('m', (wire, body) => (body.stream ? [wire.text('Seen.'), wire.end([1, 1])] : [wire.whole('Seen.', [1, 1])]));
    upstream.say(undefined, listModels);
    models = mkdtempSync(join(tmpdir(), 'hearth-models-'));
    h = await startHearth({ env: envOf(upstream.url), settings: { 'llm.rest_after': 0, 'llm.retries': 0, 'net.private_hosts': '127.0.0.1' } });
    dev = (await newKey(h)).call;
    // Providers that are elsewhere: a name that only the proxy of the environment reaches.
    far = await startHearth({ env: { ...envOf('http://models.example'), http_proxy: upstream.url }, settings: { 'llm.rest_after': 0, 'llm.retries': 0, 'net.private_hosts': '127.0.0.1' } });
    askFar = (await newKey(far)).call;
});
after(async () => {
    await h?.stop();
    await far?.stop();
    upstream?.stop();
    files?.stop();
    rmSync(models, { recursive: true, force: true });
});

const saying = (...content) => [{ role: 'user', content: [{ type: 'text', text: 'Read this.' }, ...content] }];
const sent = () => upstream.askedFor('m').at(-1).body;
const ask = (provider, messages, path = hows.whole, call = dev) => call('POST', path, { provider, model: 'm', messages });

// What each protocol calls the file of the last message.
const fileSent = {
    openai: () => sent().input.at(-1).content.at(-1),
    anthropic: () => sent().messages.at(-1).content.at(-1),
    'generic-openai': () => sent().messages.at(-1).content.at(-1),
};
const asData = (name) => ({
    openai: { type: 'input_file', filename: name ?? 'file.pdf', file_data: `data:application/pdf;base64,${pdf}` },
    anthropic: { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: pdf }, ...name && { title: name } },
    'generic-openai': { type: 'file', file: { filename: name ?? 'file.pdf', file_data: `data:application/pdf;base64,${pdf}` } },
});

for (const [how, path] of Object.entries(hows))
    describe(how, () => {
        test('a data URL in file_url, without a name, is a file', async () => {
            const block = { type: 'input_file', file_url: `data:application/pdf;base64,${pdf}` };
            for (const provider of Object.keys(fileSent)) {
                const reply = await ask(provider, saying(block), path);
                assert.equal(reply.status, 200, reply.text);
                assert.deepEqual(fileSent[provider](), asData()[provider], provider);
            }
            refused(await ask('ollama', saying(block), path), 400, 'UNSUPPORTED_CONTENT', /text and images only/);
        });

        test('an address goes to the protocols that take it, and is fetched for the others', async () => {
            const block = (where, filename) => ({ type: 'input_file', file_url: files.url + where, ...filename && { filename } });
            files.asked.length = 0;
            await ask('openai', saying(block('/a.pdf')), path, askFar);
            assert.deepEqual(fileSent.openai(), { type: 'input_file', file_url: `${files.url}/a.pdf` });
            await ask('anthropic', saying(block('/a.pdf', 'mine.pdf')), path, askFar);
            assert.deepEqual(fileSent.anthropic(), { type: 'document', source: { type: 'url', url: `${files.url}/a.pdf` }, title: 'mine.pdf' });
            assert.deepEqual(files.asked, []);
            await ask('anthropic', saying(block('/scan')), path, askFar);
            assert.deepEqual(fileSent.anthropic(), asData('scan').anthropic);
            await ask('generic-openai', saying(block('/moved?signed=1', 'b.pdf')), path, askFar);
            assert.deepEqual(fileSent['generic-openai'](), asData('b.pdf')['generic-openai']);
            const reply = await ask('ollama', saying(block('/notes.txt')), path);
            assert.equal(reply.status, 200, reply.text);
            assert.match(sent().messages.at(-1).content, /\[notes\.txt\]\nGrüße/);
            assert.deepEqual(files.asked, ['/scan', '/moved?signed=1', '/a.pdf', '/notes.txt']);
        });

        test('a file that cannot be had is told before anything is sent', async () => {
            const n = upstream.asked.length;
            const cases = [[`${files.url}/gone?secret=1`, 'UPSTREAM_INVALID', /status 410/], [`${h.url}/sdk/ping`, 'ADDRESS_REFUSED', /this service itself/],
                ['http://169.254.169.254/latest/meta-data', 'ADDRESS_REFUSED', /cloud metadata/], ['http://127.0.0.1:1/x', 'CONNECT_FAILED', /takes no connection/]];
            for (const [address, reason, words] of cases) {
                const body = refused(await ask('generic-openai', saying({ type: 'input_file', file_url: address }), path), 400, 'FILE_NOT_FETCHED', words);
                assert.equal(body.reason, reason);
                assert.match(body.error, /`messages\[0\]\.content\[1\]`/);
                assert.doesNotMatch(body.error, /secret/);
            }
            assert.equal(upstream.asked.length, n);
        });

        test('half a character in a text is read as U+FFFD', async () => {
            const body = `{"provider":"generic-openai","model":"m","messages":[{"role":"user","content":"cut \\ud83d here"}],"max_tokens":99}`;
            const reply = await dev('POST', path, body);
            assert.equal(reply.status, 200, reply.text);
            assert.equal(sent().messages[0].content, 'cut \ufffd here');
        });
    });

test('chats that wait for files hold up nobody, and a client that leaves ends the fetch', async () => {
    const block = { type: 'input_file', file_url: `${files.url}/slow` };
    const controllers = [];
    const rounds = [['/sdk/llm/chat/stream', { provider: 'generic-openai', model: 'm', messages: saying(block) }],
        ['/v1/chat/completions', { model: 'generic-openai/m', stream: true, messages: saying(block) }],
        ['/v1/messages', { model: 'generic-openai/m', stream: true, max_tokens: 9, messages: [{ role: 'user', content: [{ type: 'document', source: { type: 'url', url: `${files.url}/slow` } }] }] }],
        ['/sdk/llm/chat', { provider: 'generic-openai', model: 'm', messages: saying(block) }]];
    const { key } = await newKey(h);
    const asks = Array.from({ length: 12 }, (_, n) => {
        const [path, body] = rounds[n % rounds.length];
        controllers.push(new AbortController());
        return fetch(h.url + path, { method: 'POST', body: JSON.stringify(body), signal: controllers.at(-1).signal,
            headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' } }).catch((e) => e.name);
    });
    await until(() => files.nWaiting === 12, { what: 'twelve fetches wait' });
    assert.equal((await dev('GET', '/activities')).status, 200);
    assert.equal((await dev('GET', '/sdk/ping')).status, 200);
    for (const one of controllers)
        one.abort();
    await until(() => files.nWaiting === 0, { what: 'the fetches end' });
    assert.deepEqual(new Set(await Promise.all(asks)), new Set(['AbortError']));
});

test('a file on this machine is fetched only from a host that net.private_hosts lists', async (t) => {
    const one = await startHearth({ t, env: envOf(upstream.url), settings: { 'llm.rest_after': 0, 'llm.retries': 0 } });
    const { call } = await newKey(one);
    const reply = await call('POST', hows.whole, { provider: 'generic-openai', model: 'm', messages: saying({ type: 'input_file', file_url: `${files.url}/scan.pdf` }) });
    assert.equal(reply.status, 400);
    assert.equal(reply.body.code, 'FILE_NOT_FETCHED');
    assert.match(JSON.stringify(reply.body), /ADDRESS_REFUSED/);
});

test('what a fetched file takes is paid by its caller', async (t) => {
    const big = http.createServer((incoming, outgoing) => outgoing.end(Buffer.alloc(12 << 20))).listen(0, '127.0.0.1').unref();
    await once(big, 'listening');
    t.after(() => big.close());
    const one = await startHearth({ t, env: envOf(upstream.url), settings: { 'llm.rest_after': 0, 'limits.request_memory_mb': 16, 'net.private_hosts': '127.0.0.1' } });
    const app = one.asApp(await newApp(one, {}, ['llm.chat']));
    const reply = await app('POST', '/sdk/llm/chat', { provider: 'generic-openai', model: 'm', messages: saying({ type: 'input_file', file_url: `http://127.0.0.1:${big.address().port}/x` }) });
    refused(reply, 429, 'BUDGET_EXCEEDED');
});

test('halves of characters and large integers are stored as what they stand for', async () => {
    const reply = await dev('POST', '/activities', '{"raw_data":{"title":"cut \\ud83d","n":123456789012345678901234567890,"list":[-9223372036854775809,18446744073709551615]}}');
    assert.equal(reply.status, 201, reply.text);
    const { body } = await dev('GET', `/activities/${reply.body.data.id}`);
    assert.deepEqual(body.data.raw_data, { title: 'cut \ufffd', n: 123456789012345678901234567890, list: [-9223372036854775809, 18446744073709551615] });
    await insert(dev, { title: 'whole \u{1f600}' });
    refused(await dev('POST', '/activities', '{"raw_data":{"\\ud83d":1}}'), 400, 'INVALID_JSON', /wrong escape/);
    refused(await dev('POST', '/activities', '{"raw_data":{"n":1e400}}'), 400, 'INVALID_JSON', /too large/);
});

test('the detail of an image and the failure of a tool travel', async () => {
    const image = { type: 'image_url', image_url: { url: 'https://h.example/x.png', detail: 'low' } };
    await askFar('POST', '/v1/chat/completions', { model: 'generic-openai/m', messages: saying(image) });
    assert.deepEqual(sent().messages[0].content[1], image);
    await askFar('POST', '/v1/chat/completions', { model: 'openai/m', messages: saying(image) });
    assert.deepEqual(sent().input[0].content[1], { type: 'input_image', image_url: 'https://h.example/x.png', detail: 'low' });
    const messages = [{ role: 'user', content: 'x' }, { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'look', input: {} }] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', is_error: true, content: 'no network' }] }];
    const message = (provider) => dev('POST', '/v1/messages', { model: `${provider}/m`, max_tokens: 9, messages });
    await message('anthropic');
    assert.deepEqual(sent().messages.at(-1).content, [{ type: 'tool_result', tool_use_id: 'toolu_1', content: 'no network', is_error: true }]);
    await message('generic-openai');
    assert.deepEqual(sent().messages.at(-1), { role: 'tool', content: 'Error: no network', tool_call_id: 'toolu_1' });
    await message('openai');
    assert.deepEqual(sent().input.at(-1), { type: 'function_call_output', call_id: 'toolu_1', output: 'Error: no network' });
    await message('ollama');
    assert.equal(sent().messages.at(-1).content, 'Error: no network');
});

test('a model is as old as its provider, its file or the program says', async (t) => {
    const gguf = join(models, 'tiny.gguf');
    writeFileSync(gguf, 'GGUF');
    utimesSync(gguf, 1_700_000_000, 1_700_000_000);
    const one = await startHearth({ t, env: envOf(upstream.url), settings: { 'llm.models_dir': models, 'llamacpp.server': process.execPath } });
    await admin(one, 'POST', '/api/providers', { preset: 'lmstudio', name: 'shelf', base_url: `${upstream.url}/v1`, models: ['by-hand'] });
    const { body } = await one.api('GET', '/v1/models', undefined, { authorization: `Bearer ${(await newKey(one)).key}` });
    const of = (id) => body.data.find((model) => model.id === id);
    assert.deepEqual([of('gpt-x').created, of('gpt-x').created_at], [1715367049, '2024-05-10T18:50:49.000Z']);
    assert.deepEqual([of('claude-x').created, of('claude-x').created_at], [1739923200, '2025-02-19T00:00:00.000Z']);
    assert.equal(of('llama3.2').created, 1759559643);
    assert.equal(of('gpt-4o').created, 1715367049);
    assert.deepEqual([of('timeless').created, of('timeless').created_at], [0, '1970-01-01T00:00:00.000Z']);
    assert.equal(of('by-hand').created, 0);
    assert.equal(of('lexical-384').created, 1795132800);
    assert.equal(of('tiny').created, 1_700_000_000);
});
