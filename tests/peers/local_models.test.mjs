// Models on the person's own machine: servers that are found (behind their own first words stands @copilotkit/aimock), and llama-server processes
// (the same double as a program of that name: no llama-server can be had here).
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { LLMock } from '@copilotkit/aimock';
import { startHearth, until } from '../api/harness.mjs';
import { freePort } from '../tools/ports.mjs';

const text = 'The quick brown fox jumps over the lazy dog.';
const say = { messages: [{ role: 'user', content: 'say it' }] };

// What each server says to the one question that is asked of it.
const introductions = {
    ollama: { path: '/api/version', body: { version: '0.12.3' } },
    lmstudio: { path: '/api/v0/models', body: { object: 'list', data: [{ id: 'gpt-4o', object: 'model', type: 'llm', state: 'loaded' }] } },
    llamacpp: { path: '/props', headers: { server: 'llama.cpp' }, body: { default_generation_settings: { n_ctx: 4096 }, total_slots: 1 } },
    localai: { path: '/system', body: { backends: ['llama-cpp'], loaded_models: [] } },
};

async function listen(t, answer) {
    const server = http.createServer(answer).listen(0, '127.0.0.1');
    await once(server, 'listening');
    t.after(() => { server.closeAllConnections(); server.close(); });
    return server.address().port;
}

// A server that introduces itself as `what` and leaves the rest, but `more` ({path: body}), to the double; `asked` has every path.
async function startServer(t, what, more = {}) {
    const mock = new LLMock({ port: 0, host: '127.0.0.1', chunkSize: 8 });
    mock.on({ userMessage: 'say it' }, { content: text });
    await mock.start();
    t.after(() => mock.stop().catch(() => {}));
    const asked = [];
    const { path, headers, body } = introductions[what];
    const port = await listen(t, (incoming, outgoing) => {
        asked.push(incoming.url);
        if (incoming.url === path) {
            outgoing.writeHead(200, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
            return;
        }
        if (more[incoming.url]) {
            outgoing.end(JSON.stringify(more[incoming.url]));
            return;
        }
        const { hostname, port: at } = new URL(mock.url);
        const onward = http.request({ hostname, port: at, path: incoming.url, method: incoming.method, headers: incoming.headers }, (reply) => {
            outgoing.writeHead(reply.statusCode, reply.headers);
            reply.pipe(outgoing);
        });
        incoming.pipe(onward);
    });
    return { mock, port, asked, probes: () => asked.filter((one) => one === path).length };
}

// What is not given gets a port that nobody listens at, so that what the tester's machine has is never met. A look ends when all have answered: the time it may take is for machines where that is late.
async function findingSettings(given) {
    const names = [...Object.keys(introductions), 'kokoro', 'piper', 'whispercpp'];
    const dead = await Promise.all(names.map(freePort));
    return { 'llm.local_accepted': names.join(','), 'llm.find_local': true, 'llm.find_local_wait_s': 30, 'llm.local_ports': names.map((name, n) => `${name}=${given[name] ?? dead[n]}`).join(',') };
}

const listed = async (dev) => (await dev('GET', '/sdk/llm/providers')).body;

// ---- servers that are found ----

for (const what of Object.keys(introductions))
    test(`${what} is found, offered as active, chats and embeds`, async (t) => {
        const server = await startServer(t, what);
        const h = await startHearth({ t, settings: await findingSettings({ [what]: server.port }) });
        const dev = await h.asKey();
        const { llm, embedding } = await listed(dev);
        assert.deepEqual(llm.map(({ provider, active }) => [provider, active]), [[what, true]]);
        assert.ok(embedding.some(({ provider }) => provider === what));
        const whole = await dev('POST', '/sdk/llm/chat', { ...say, model: 'gpt-4o' });
        assert.equal(whole.status, 200, whole.text);
        assert.deepEqual([whole.body.response.content, whole.body.response.provider], [text, what]);
        const stream = await h.sse('/sdk/llm/chat/stream', { method: 'POST', body: { ...say, model: 'gpt-4o' }, headers: { 'x-api-key': await h.key() } });
        await stream.ended;
        assert.equal(stream.status, 200, stream.text());
        assert.equal(stream.events.filter((event) => event.json).map((event) => event.json.textResponse).join(''), text);
        const embedded = await dev('POST', '/sdk/llm/embed', { input: ['one', 'two'], provider: what, model: 'text-embedding-3-small' });
        assert.equal(embedded.status, 200, embedded.text);
        assert.equal(embedded.body.embeddings.length, 2);
        assert.equal(server.probes(), 1, 'what was found is remembered');
    });

test('the model asked for is the first of the list that is none for embeddings', async (t) => {
    const server = await startServer(t, 'lmstudio', { '/v1/models': { object: 'list', data: [{ id: 'text-embedding-nomic' }, { id: 'gpt-4o' }] } });
    const h = await startHearth({ t, settings: await findingSettings({ lmstudio: server.port }) });
    const reply = await (await h.asKey())('POST', '/sdk/llm/chat', say);
    assert.equal(reply.status, 200, reply.text);
    assert.equal(server.mock.getRequests().at(-1).body.model, 'gpt-4o');
});

test('llama.cpp and LocalAI at one port are told apart', async (t) => {
    const server = await startServer(t, 'localai');
    const h = await startHearth({ t, settings: await findingSettings({ llamacpp: server.port, localai: server.port }) });
    assert.deepEqual((await listed(await h.asKey())).llm.map(({ provider }) => provider), ['localai']);
});

test('another web server is not taken for a model server', async (t) => {
    const port = await listen(t, (incoming, outgoing) => outgoing.end(JSON.stringify({ version: 'shop 1.0', data: [{ id: 1 }], backends: 3 })));
    const h = await startHearth({ t, settings: await findingSettings(Object.fromEntries(Object.keys(introductions).map((name) => [name, port]))) });
    const dev = await h.asKey();
    assert.deepEqual((await listed(dev)).llm, []);
    const reply = await dev('POST', '/sdk/llm/chat', say);
    assert.deepEqual([reply.status, reply.body.code], [503, 'PROVIDER_UNAVAILABLE']);
});

test('a server that hangs delays nobody beyond the limit, and many that ask at once share one look', async (t) => {
    let nAsked = 0;
    const port = await listen(t, () => { nAsked++; });
    const server = await startServer(t, 'ollama');
    const settings = { ...await findingSettings({ ollama: server.port, lmstudio: port, llamacpp: port, localai: port }), 'llm.find_local_wait_s': 5 };
    const h = await startHearth({ t, settings });
    const dev = await h.asKey();
    const replies = await Promise.all(Array.from({ length: 8 }, () => dev('POST', '/sdk/llm/chat', { ...say, model: 'gpt-4o' })));
    for (const reply of replies)        // that there are any: those who hang never answer
        assert.equal(reply.status, 200, reply.text);
    assert.deepEqual([nAsked, server.probes()], [3, 1]);
});

test('what has gone is not offered any more, and what comes is found', async (t) => {
    let isOllama = true;
    const port = await listen(t, (incoming, outgoing) => {
        const { path, body } = introductions[isOllama ? 'ollama' : 'lmstudio'];
        outgoing.writeHead(incoming.url === path ? 200 : 404).end(JSON.stringify(body));
    });
    const h = await startHearth({ t, settings: { ...await findingSettings({ ollama: port, lmstudio: port }), 'llm.find_local_s': 0 } });
    const dev = await h.asKey();
    assert.deepEqual((await listed(dev)).llm.map(({ provider }) => provider), ['ollama']);
    isOllama = false;
    assert.deepEqual((await listed(dev)).llm.map(({ provider }) => provider), ['lmstudio']);
    const gone = await dev('POST', '/sdk/llm/chat', { ...say, provider: 'ollama' });
    assert.deepEqual([gone.status, gone.body.code], [400, 'PROVIDER_UNAVAILABLE']);
    assert.equal(gone.body.error, `Ollama does not answer as such at 127.0.0.1:${port} and is not configured. Start it, or say where it is: \`hearth provider add ollama --base-url URL\`.`);
});

test('nothing is looked for when it is off, or when a provider is configured, except by name', async (t) => {
    const server = await startServer(t, 'ollama');
    const settings = await findingSettings({ ollama: server.port });
    const off = await startHearth({ t, settings: { ...settings, 'llm.find_local': false } });
    const reply = await (await off.asKey())('POST', '/sdk/llm/chat', say);
    assert.equal(reply.status, 503);
    assert.match(reply.body.error, /^No provider of language models is configured, and none is looked for on this machine \(the setting llm\.find_local is off\)\. Add a provider: `/);
    assert.equal(server.probes(), 0);

    const configured = await startHearth({ t, settings, env: { GENERIC_OPENAI_BASE_URL: `${server.mock.url}/v1`, GENERIC_OPENAI_MODEL: 'gpt-4o' } });
    const dev = await configured.asKey();
    assert.deepEqual((await listed(dev)).llm.map(({ provider }) => provider), ['generic-openai']);
    assert.equal((await dev('POST', '/sdk/llm/chat', say)).body.response.provider, 'generic-openai');
    assert.equal(server.probes(), 0);
    const named = await dev('POST', '/sdk/llm/chat', { ...say, provider: 'ollama', model: 'llama3.2' });
    assert.equal(named.status, 200, named.text);
    assert.equal(named.body.response.provider, 'ollama');
    assert.deepEqual((await listed(dev)).llm.map(({ provider }) => provider), ['generic-openai']);
});

// ---- models that are run ----

// The head of a GGUF file as the converter writes it.
function gguf(architecture, numbers = {}, n = 0) {
    const u32 = (value) => { const b = Buffer.alloc(4); b.writeUInt32LE(value); return b; };
    const u64 = (value) => { const b = Buffer.alloc(8); b.writeBigUInt64LE(BigInt(value)); return b; };
    const string = (value) => Buffer.concat([u64(value.length), Buffer.from(value)]);
    const pairs = [[string('general.architecture'), u32(8), string(architecture)],
        ...Object.entries(numbers).map(([key, value]) => [string(`${architecture}.${key}`), u32(4), u32(value)])].flat();
    const nPairs = 1 + Object.keys(numbers).length;
    return Buffer.concat([Buffer.from('GGUF'), u32(3), u64(0), u64(nPairs), ...pairs, Buffer.alloc(n)]);
}

const chatModel = gguf('llama', { context_length: 4096, block_count: 2, embedding_length: 64, 'attention.head_count': 4, 'attention.head_count_kv': 2 });
const vectorModel = gguf('nomic-bert', { context_length: 2048, block_count: 2, embedding_length: 64, 'attention.head_count': 4, pooling_type: 1 });

// A Hearth with these model files and the double as its llama-server. starts(): what was started, in order.
async function startRunner(t, files, settings = {}, options = {}) {
    const folder = mkdtempSync(join(tmpdir(), 'hearth-llama-'));
    t.after(() => rmSync(folder, { recursive: true, force: true }));
    mkdirSync(join(folder, 'models'));
    for (const [name, bytes] of Object.entries(files))
        writeFileSync(join(folder, 'models', name), bytes);
    const program = join(folder, 'llama-server');
    writeFileSync(program, `#!/bin/sh\nexec '${process.execPath}' '${join(import.meta.dirname, 'llama_server.mjs')}' '${folder}' "$@"\n`);
    chmodSync(program, 0o755);
    const h = await startHearth({ t, settings: { 'llm.models_dir': join(folder, 'models'), 'llamacpp.server': program, ...settings }, ...options });
    const noted = () => (existsSync(join(folder, 'starts')) ? readFileSync(join(folder, 'starts'), 'utf8').trim().split('\n').map((line) => JSON.parse(line)) : []);
    return { h, dev: await h.asKey(), folder, program, starts: () => noted().filter((one) => !one.port), ports: () => noted().filter((one) => one.port) };
}

const lives = (pid) => {
    try {
        process.kill(pid, 0);
        return true;
    } catch {
        return false;
    }
};

const chatWith = (dev, model, content = 'say it') => dev('POST', '/sdk/llm/chat', { provider: 'llamacpp', model, messages: [{ role: 'user', content }] });

test('a model is started once when many ask first, answers, and only this service can use it', async (t) => {
    const { h, dev, starts, ports } = await startRunner(t, { 'tiny.gguf': chatModel, 'vectors.gguf': vectorModel, 'mmproj-tiny.gguf': chatModel });
    const { llm, embedding } = await listed(dev);
    assert.deepEqual(llm.map(({ provider, active, models }) => [provider, active, models.map(({ id }) => id)]), [['llamacpp', true, ['tiny', 'vectors']]]);
    assert.ok(embedding.some(({ provider }) => provider === 'llamacpp'));
    assert.deepEqual(starts(), []);
    const replies = await Promise.all(Array.from({ length: 8 }, () => dev('POST', '/sdk/llm/chat', say)));
    for (const { status, body, text: raw } of replies) {
        assert.equal(status, 200, raw);
        assert.deepEqual([body.response.content, body.response.provider], ['This is tiny.', 'llamacpp']);
    }
    const stream = await h.sse('/sdk/llm/chat/stream', { method: 'POST', body: say, headers: { 'x-api-key': await h.key() } });
    await stream.ended;
    assert.equal(stream.events.filter((event) => event.json).map((event) => event.json.textResponse).join(''), 'This is tiny.');
    assert.equal(starts().length, 1);
    const [{ argv, env, pid }] = starts();
    assert.deepEqual(argv.slice(2), ['--alias', 'tiny', '--host', '127.0.0.1', '--port', '0', '--ctx-size', '4096']);
    assert.ok(!argv.join(' ').includes(env.LLAMA_API_KEY) && env.LLAMA_API_KEY.length >= 40);
    assert.deepEqual(Object.keys(env).filter((name) => /HEARTH|KEY|SAN_OPTIONS/.test(name)).sort(), ['HEARTH_INSTANCE', 'LLAMA_API_KEY']);
    const stranger = await fetch(`http://127.0.0.1:${ports()[0].port}/v1/models`);
    assert.equal(stranger.status, 401);
    assert.ok(!h.log.join('\n').includes(env.LLAMA_API_KEY));
    assert.ok(lives(pid));
    await h.terminate();
    assert.ok(!lives(pid), 'it ends with the service');
});

test('a model of vectors embeds and does not chat; one of text the other way round', async (t) => {
    const { dev, starts } = await startRunner(t, { 'tiny.gguf': chatModel, 'vectors.gguf': vectorModel });
    const embed = (model) => dev('POST', '/sdk/llm/embed', { input: ['one', 'two'], provider: 'llamacpp', model });
    const embedded = await embed('vectors');
    assert.equal(embedded.status, 200, embedded.text);
    assert.deepEqual([embedded.body.embeddings.length, embedded.body.provider], [2, 'llamacpp']);
    assert.deepEqual(starts()[0].argv.slice(-5), ['--embeddings', '--batch-size', '2048', '--ubatch-size', '2048']);
    for (const [reply, rule] of [[await chatWith(dev, 'vectors'), /makes embeddings and has no chats/], [await embed('tiny'), /has chats but no embeddings/],
        [await chatWith(dev, 'nobody'), /There is no model nobody in .*\/models; there are: tiny, vectors\./]]) {
        assert.deepEqual([reply.status, reply.body.code], [400, 'INVALID_MODEL'], reply.text);
        assert.match(reply.body.error, rule);
    }
    assert.equal(starts().length, 1);
});

test('a model that this service runs gets no address of an image', async (t) => {
    const { dev, starts } = await startRunner(t, { 'tiny.gguf': chatModel });
    const image = { type: 'image_url', image_url: { url: 'http://169.254.169.254/latest/meta-data' } };
    const reply = await dev('POST', '/sdk/llm/chat', { provider: 'llamacpp', model: 'tiny', messages: [{ role: 'user', content: [image] }] });
    assert.deepEqual([reply.status, reply.body.code, reply.body.reason], [400, 'FILE_NOT_FETCHED', 'ADDRESS_REFUSED'], reply.text);
    assert.deepEqual(starts(), []);
});

test('an idle model is ended; a stream keeps it until it ends', async (t) => {
    const { h, dev, starts } = await startRunner(t, { 'tiny.gguf': chatModel }, { 'llamacpp.idle_s': 0.3 });
    const body = { messages: [{ role: 'user', content: 'speak slowly' }] };
    const stream = await h.sse('/sdk/llm/chat/stream', { method: 'POST', body, headers: { 'x-api-key': await h.key() } });
    await stream.ended;
    assert.ok(stream.events.length * 30 > 700, 'the stream took longer than the idle time: there are 30 ms between its pieces');
    assert.equal(stream.events.at(-1).data, '[DONE]');
    assert.match(stream.text(), /"close":true/);
    const [{ pid }] = starts();
    await until(() => !lives(pid), { what: 'the idle process ended' });
    const again = await dev('POST', '/sdk/llm/chat', say);
    assert.equal(again.status, 200, again.text);
    assert.equal(starts().length, 2);
});

// A model that crashes rests for a second, then for longer: how often it may have been started by now.
const mostStartsSince = (began) => () => 1 + Math.floor((Date.now() - began) / 1000);

test('one that crashes rests, and says why and for how long', async (t) => {
    const { dev, starts } = await startRunner(t, { 'crashing.gguf': chatModel, 'crashing-once.gguf': chatModel });
    const mostStarts = mostStartsSince(Date.now());
    const replies = await Promise.all([chatWith(dev, 'crashing'), chatWith(dev, 'crashing')]);
    for (const reply of replies) {
        assert.deepEqual([reply.status, reply.body.code], [503, 'PROVIDER_UNAVAILABLE'], reply.text);
        assert.match(reply.body.error, /^The model crashing cannot be asked now; it is tried again in \d s\. llama-server ended with code 1\. Its last words: .*failed to load model, unknown tensor type 77/);
        assert.equal(reply.headers['retry-after'], /tried again in (\d+) s/.exec(reply.body.error)[1]);
    }
    assert.equal((await chatWith(dev, 'crashing')).status, 503);
    assert.ok(starts().length <= mostStarts(), 'it is not started while it rests');
    assert.equal((await chatWith(dev, 'crashing-once')).status, 503);
    await until(async () => (await chatWith(dev, 'crashing-once')).status === 200, { what: 'the second start', everyMs: 100 });
    await until(async () => {
        const { body, headers } = await chatWith(dev, 'crashing');
        assert.equal(headers['retry-after'], /tried again in (\d+) s/.exec(body.error)[1]);
        return /in [2-9] s/.test(body.error);
    }, { what: 'a longer rest', everyMs: 100 });
    assert.ok(starts().filter(({ model }) => model === 'crashing').length >= 2);
});

test('one that does not get ready in time is ended', async (t) => {
    const { dev, starts } = await startRunner(t, { 'hanging.gguf': chatModel }, { 'llamacpp.start_s': 1 });
    const reply = await chatWith(dev, 'hanging');
    assert.equal(reply.status, 503, reply.text);
    assert.match(reply.body.error, /did not load it in the time of the setting llamacpp\.start_s/);
    await until(() => starts().every(({ pid }) => !lives(pid)), { what: 'its end' });
});

test('one that dies later is started again', async (t) => {
    const { dev, starts } = await startRunner(t, { 'dying.gguf': chatModel });
    assert.equal((await chatWith(dev, 'dying')).status, 200);
    const [{ pid }] = starts(), rested = Date.now() + 1000;
    process.kill(pid, 'SIGUSR2');
    await until(() => !lives(pid), { what: 'its death' });
    // A request may still meet the closed port before the service has read how the process ended.
    const resting = await until(async () => {
        const reply = await chatWith(dev, 'dying');
        return reply.body.reason !== 'CONNECT_FAILED' && reply;
    }, { what: 'the service knows of its death' });
    if (Date.now() < rested) {
        assert.equal(resting.status, 503, resting.text);
        assert.match(resting.body.error, /GGML_ASSERT: out of memory/);
    }
    await until(async () => (await chatWith(dev, 'dying')).status === 200, { what: 'the next start', everyMs: 100 });
    assert.equal(starts().length, 2);
});

test('the one unused for longest makes room; while all answer another is refused', async (t) => {
    const { h, dev, starts } = await startRunner(t, { 'a.gguf': chatModel, 'b.gguf': chatModel, 'c.gguf': chatModel }, { 'llamacpp.processes': 2 });
    for (const model of ['a', 'b', 'a', 'c'])
        assert.equal((await chatWith(dev, model)).status, 200);
    assert.deepEqual(starts().map(({ model }) => model), ['a', 'b', 'c']);
    const pids = Object.fromEntries(starts().map(({ model, pid }) => [model, pid]));
    assert.deepEqual([lives(pids.a), lives(pids.b), lives(pids.c)], [true, false, true]);
    const headers = { 'x-api-key': await h.key() };
    const busy = ['a', 'c'].map((model) => h.sse('/sdk/llm/chat/stream',
        { method: 'POST', body: { model, messages: [{ role: 'user', content: 'go on and on' }] }, headers }));
    const streams = await Promise.all(busy);
    const refused = await chatWith(dev, 'b');
    assert.deepEqual([refused.status, refused.body.code], [503, 'OVERLOADED'], refused.text);
    assert.match(refused.body.error, /llamacpp\.processes/);
    streams.forEach((one) => one.close());
    await until(async () => (await chatWith(dev, 'b')).status === 200, { what: 'there is room' });
});

test('files are looked at before they are run', async (t) => {
    const large = gguf('llama', { context_length: 131072, block_count: 32, embedding_length: 4096, 'attention.head_count': 32, 'attention.head_count_kv': 8 }, 3 << 20);
    const { dev, starts } = await startRunner(t, { 'large.gguf': large, 'broken.gguf': 'PK\u0003\u0004', 'parted-00001-of-00002.gguf': chatModel },
        { 'llamacpp.memory_mb': 1000 });
    const expected = {
        large: ['MODEL_TOO_LARGE', /^The model large needs about 1\.00 GiB \(0\.00 GiB for its files, the rest for 8192 tokens of context\), and the setting llamacpp\.memory_mb allows 0\.98 GiB\.$/],
        broken: ['BAD_MODEL_FILE', /^The model file broken\.gguf is no GGUF file/],
        parted: ['BAD_MODEL_FILE', /^The model parted has 2 files, and 1 of them is missing/],
    };
    for (const [model, [code, rule]] of Object.entries(expected)) {
        const reply = await chatWith(dev, model);
        assert.deepEqual([reply.status, reply.body.code], [400, code], reply.text);
        assert.match(reply.body.error, rule);
    }
    assert.deepEqual(starts(), []);
});

test('without a program or a model it is not offered, and says what to do', async (t) => {
    const bare = await startRunner(t, {}, { 'llamacpp.server': 'no-such-llama-server' });
    assert.deepEqual((await listed(bare.dev)).llm, []);
    const reply = await chatWith(bare.dev, 'tiny');
    assert.deepEqual([reply.status, reply.body.code], [400, 'PROVIDER_UNAVAILABLE']);
    assert.equal((await bare.dev('POST', '/sdk/llm/embed', { input: 'x', provider: 'llamacpp', model: 'tiny' })).body.error, reply.body.error);
    assert.match(reply.body.error, /^llamacpp cannot run models yet\. There is no program no-such-llama-server on the PATH of the service\. Install llama\.cpp \(https:.*setting llamacpp\.server; and put a model file \(\.gguf\) into \/.*\/models\.$/);

    const { h, dev, folder, starts } = await startRunner(t, {}, { 'llamacpp.server': 'llama-server' }, {});
    assert.equal((await chatWith(dev, 'tiny')).status, 400, 'not on PATH');
    await h.stop();
    const found = await startHearth({ t, env: { PATH: `${folder}:${process.env.PATH}` }, settings: { 'llm.models_dir': join(folder, 'models'), 'llamacpp.server': 'llama-server' } });
    const again = await found.asKey();
    assert.match((await chatWith(again, 'tiny')).body.error, /^llamacpp has no model yet: put a model file \(\.gguf\) into \/.*\/models\.$/);
    writeFileSync(join(folder, 'models', 'tiny.gguf'), chatModel);
    const now = await chatWith(again, 'tiny');
    assert.equal(now.status, 200, now.text);
    assert.equal(starts().length, 1);
});

test('a server that does not ask for its key is not used', async (t) => {
    const { dev, starts } = await startRunner(t, { 'open.gguf': chatModel });
    const reply = await chatWith(dev, 'open');
    assert.equal(reply.status, 503, reply.text);
    assert.match(reply.body.error, /answers without asking for its key/);
    await until(() => !lives(starts()[0].pid), { what: 'its end' });
});

test('a client that leaves while a model loads does not end the start for others', async (t) => {
    const { h, dev, starts } = await startRunner(t, { 'slow.gguf': chatModel });
    const impatient = new AbortController();
    const left = fetch(`${h.url}/sdk/llm/chat`, { method: 'POST', signal: impatient.signal, headers: { 'x-api-key': await h.key(), 'content-type': 'application/json' },
        body: JSON.stringify({ ...say, model: 'slow' }) });
    await until(() => starts().length === 1, { what: 'the start' });
    const patient = chatWith(dev, 'slow');
    impatient.abort();
    await assert.rejects(left);
    process.kill(starts()[0].pid, 'SIGUSR2');
    assert.equal((await patient).status, 200);
    assert.equal(starts().length, 1);
});

test('as a fallback it takes part while its model is loaded, and a configured llamacpp is another server', async (t) => {
    const broken = await listen(t, (incoming, outgoing) => outgoing.writeHead(500).end('{}'));
    const { dev, starts } = await startRunner(t, { 'tiny.gguf': chatModel }, { 'llm.fallbacks': 'llamacpp', 'llm.retries': 0, 'llm.rest_after': 0 },
        { env: { GENERIC_OPENAI_BASE_URL: `http://127.0.0.1:${broken}/v1`, GENERIC_OPENAI_MODEL: 'x' } });
    assert.deepEqual((await listed(dev)).llm.map(({ provider }) => provider), ['generic-openai', 'llamacpp']);
    assert.equal((await dev('POST', '/sdk/llm/chat', say)).status, 502);
    assert.deepEqual(starts(), []);
    assert.equal((await chatWith(dev, 'tiny')).status, 200);
    assert.equal((await dev('POST', '/sdk/llm/chat', say)).body.response?.provider, 'llamacpp');

    const elsewhere = await startServer(t, 'llamacpp');
    const configured = await startRunner(t, { 'tiny.gguf': chatModel }, {}, { env: { LLAMACPP_BASE_URL: `http://127.0.0.1:${elsewhere.port}` } });
    const reply = await chatWith(configured.dev, 'gpt-4o');
    assert.equal(reply.body.response?.content, text, reply.text);
    assert.deepEqual(configured.starts(), []);
});

test('while its model cannot be run, the providers to fall back on answer', async (t) => {
    const other = await startServer(t, 'ollama');
    const { dev, starts } = await startRunner(t, { 'crashing.gguf': chatModel }, { 'llm.default_provider': 'llamacpp', 'llm.fallbacks': 'generic-openai' },
        { env: { GENERIC_OPENAI_BASE_URL: `http://127.0.0.1:${other.port}/v1`, GENERIC_OPENAI_MODEL: 'gpt-4o' } });
    const mostStarts = mostStartsSince(Date.now());
    for (let n = 0; n < 2; n++) {
        const reply = await dev('POST', '/sdk/llm/chat', say);
        assert.equal(reply.body.response?.provider, 'generic-openai', reply.text);
    }
    assert.ok(starts().length <= mostStarts());
    assert.equal((await chatWith(dev, 'crashing')).status, 503, 'who names it wants it');
});

test('models that are run stand before servers that are found', async (t) => {
    const server = await startServer(t, 'ollama');
    const { dev } = await startRunner(t, { 'tiny.gguf': chatModel }, await findingSettings({ ollama: server.port }));
    assert.deepEqual((await listed(dev)).llm.map(({ provider, active }) => [provider, active]), [['llamacpp', true], ['ollama', false]]);
});

test('provider list and test know both kinds', async (t) => {
    const server = await startServer(t, 'ollama');
    const { h, dev, starts } = await startRunner(t, { 'tiny.gguf': chatModel, 'vectors.gguf': vectorModel }, await findingSettings({ ollama: server.port }));
    const providers = await h.cliJson('provider', 'list');
    assert.deepEqual(providers.map(({ name, source, base_url: url }) => [name, source, url]),
        [['llamacpp', 'run', null], ['ollama', 'found', `http://127.0.0.1:${server.port}`]]);
    const tried = await h.cli('provider', 'test', 'llamacpp');
    assert.equal(tried.code, 0, tried.stderr);
    assert.match(tried.stdout, /llamacpp works: tiny answered/);
    const embeds = await h.socket('POST', '/api/providers/llamacpp/test', { capability: 'embed', model: 'vectors' });
    assert.match(embeds.body.message ?? embeds.text, /llamacpp works: .* made a vector/);
    assert.equal(starts().length, 2);
    assert.equal((await chatWith(dev, 'tiny')).status, 200);
    for (const [name, rule] of [['llamacpp', /runs the files of the models folder and is not stored/], ['ollama', /was found running on this machine/]])
        assert.match((await h.cli('provider', 'remove', name)).stderr, rule);
});

test('no process outlives a service that is killed', async (t) => {
    const { h, dev, starts } = await startRunner(t, { 'tiny.gguf': chatModel });
    assert.equal((await chatWith(dev, 'tiny')).status, 200);
    await h.kill();
    await until(() => !lives(starts()[0].pid), { what: 'its end' });
});

test('arguments may be added, but none that take the server out of the service\'s hands', async (t) => {
    const { h, dev, starts } = await startRunner(t, { 'tiny.gguf': chatModel }, { 'llamacpp.args': '--n-gpu-layers, 99' });
    assert.equal((await chatWith(dev, 'tiny')).status, 200);
    assert.deepEqual(starts()[0].argv.slice(-2), ['--n-gpu-layers', '99']);
    for (const args of ['--host,0.0.0.0', '--tools,all', '--api-key-file,/x', '--model-url,http://x', '--port=1'])
        assert.match((await h.cli('settings', 'set', 'llamacpp.args', ` ${args}`)).stderr, /llamacpp\.args must not have options that name the model/, args);
});
