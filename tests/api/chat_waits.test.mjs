// Chats that wait for a provider hold no worker, and those whose preparation waits hold none of the workers that serve the store.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import http from 'node:http';
import { availableParallelism } from 'node:os';
import { test } from 'node:test';
import { startHearth, until } from './harness.mjs';
import { env } from './provider.mjs';

const says = [{ role: 'user', content: 'Hello' }];
const whole = (content) => JSON.stringify({ choices: [{ message: { content }, finish_reason: 'stop' }], usage: { prompt_tokens: 3, completion_tokens: 2 } });
const chunk = (delta, finish = null) => `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;

// A provider that keeps every request waiting until the test answers it.
async function silentProvider(t) {
    const waiting = [];
    let nLeft = 0;
    const server = http.createServer((incoming, outgoing) => {
        incoming.resume();
        waiting.push(outgoing);
        outgoing.on('close', () => { nLeft += !outgoing.writableFinished; });
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    t.after(() => { server.closeAllConnections(); server.close(); });
    const answer = (text, type = 'application/json') => waiting.splice(0).forEach((outgoing) => outgoing.writeHead(200, { 'content-type': type }).end(text));
    return { url: `http://127.0.0.1:${server.address().port}/v1`, waiting, answer, nLeft: () => nLeft };
}

const busy = async (h, pool) => Number((await h.api('GET', '/metrics')).text.match(new RegExp(`^hearth_pool_busy\\{pool="${pool}"\\} (\\d+)$`, 'm'))[1]);
const workers = availableParallelism() * 2;

const preparing = [
    ['/sdk/llm/chat', {}],
    ['/sdk/llm/chat/stream', {}],
    ['/v1/chat/completions', { model: 'some-model' }],
    ['/v1/chat/completions', { model: 'some-model', stream: true }],
    ['/v1/messages', { model: 'some-model', stream: true, max_tokens: 5 }],
];

for (const [path, more] of preparing)
    test(`${path} ${more.stream ? '(stream) ' : ''}waits for a list of models, and activities are listed meanwhile`, async (t) => {
        const provider = await silentProvider(t);
        const h = await startHearth({ t });
        for (const name of ['one', 'two'])
            await h.cliJson('provider', 'add', 'generic-openai', '--name', name, '--base-url', provider.url);
        const dev = await h.asKey();
        let nAnswered = 0;
        const chats = Array.from({ length: workers + 2 }, () => dev('POST', path, { messages: says, ...more }).then(() => { nAnswered++; }));
        await until(() => provider.waiting.length > 0);
        await until(async () => await busy(h, 'long') > workers);
        assert.equal((await dev('GET', '/activities')).status, 200);
        assert.equal(nAnswered, 0);
        const answering = setInterval(() => provider.answer(JSON.stringify({ data: [] })), 20);
        await Promise.all(chats);
        clearInterval(answering);
    });

const faces = [['/sdk/llm/chat', {}, (body) => body.response.content], ['/v1/chat/completions', {}, (body) => body.choices[0].message.content],
    ['/v1/messages', { max_tokens: 5 }, (body) => body.content[0].text]];

for (const [path, more, textOf] of faces)
    test(`whole chats at ${path} wait by the hundred, and no worker does`, async (t) => {
        const provider = await silentProvider(t);
        const h = await startHearth({ t, env: { GENERIC_OPENAI_BASE_URL: provider.url, GENERIC_OPENAI_MODEL: 'm' } });
        const dev = await h.asKey();
        const chats = Array.from({ length: 200 }, () => dev('POST', path, { messages: says, ...more }));
        await until(() => provider.waiting.length === chats.length);
        await until(async () => await busy(h, 'long') === 0 && await busy(h, 'short') <= 1);
        assert.equal((await dev('GET', '/activities')).status, 200);
        provider.answer(whole('At last.'));
        for (const reply of await Promise.all(chats)) {
            assert.equal(reply.status, 200, reply.text);
            assert.equal(textOf(reply.body), 'At last.');
        }
    });

const jobs = async (h) => Number((await h.api('GET', '/metrics')).text.match(/^hearth_pool_wait_seconds_count\{pool="short"\} (\d+)$/m)[1]);

for (const path of ['/sdk/llm/chat', '/sdk/llm/chat/stream', '/v1/chat/completions', '/v1/messages'])
    test(`${path} of a developer key is prepared without a worker, that of an app, or a long one, by a worker`, async (t) => {
        const h = await startHearth({ t, env });
        const dev = await h.asKey();
        const app = { 'x-app-id': await h.app({}, ['llm.chat']) };
        const used = async (n, caller, text) => {
            const before = await jobs(h);
            for (let i = 0; i < n; i++) {
                const reply = await caller({ messages: [{ role: 'user', content: text }], ...(path === '/v1/messages' ? { model: 'default', max_tokens: 50 } : {}) });
                assert.equal(reply.status, 200, reply.text);
                assert.match(reply.text, /Hello\.|lo\./);
            }
            return await jobs(h) - before;
        };
        const n = 40;
        const byKey = await used(n, (body) => dev('POST', path, body), 'Hello');
        assert.ok(byKey < n / 2, `${byKey} jobs`); // at times a worker looks for models on this machine
        assert.ok(await used(5, (body) => h.api('POST', path, body, app), 'Hello') >= 5);
        assert.ok(await used(5, (body) => dev('POST', path, body, app), 'Hello') >= 5);
        assert.ok(await used(5, (body) => dev('POST', path, body), 'a'.repeat(17 << 10)) >= 5);
    });

test('a chat that a loop refuses is answered as by a worker', async (t) => {
    const h = await startHearth({ t, env });
    const dev = await h.asKey();
    const wrong = await dev('POST', '/sdk/llm/chat', { messages: [{ role: 'nobody', content: 1 }] });
    assert.equal(wrong.status, 400);
    assert.equal(wrong.body.code, 'VALIDATION_ERROR');
    assert.match(wrong.text, /messages\[0\]\.role/);
    const unknown = await dev('POST', '/sdk/llm/chat', { messages: says, provider: 'llamacpp' });
    assert.equal(unknown.status, 400);
    assert.match(unknown.body.error, /llamacpp cannot run models yet|llamacpp has no model yet/);
});

test('two hundred streams may start at once', async (t) => {
    const provider = await silentProvider(t);
    const h = await startHearth({ t, env: { GENERIC_OPENAI_BASE_URL: provider.url, GENERIC_OPENAI_MODEL: 'm' } });
    const dev = await h.asKey();
    const streams = Array.from({ length: 200 }, () => dev('POST', '/sdk/llm/chat/stream', { messages: says }));
    await until(() => provider.waiting.length === streams.length);
    provider.answer(`${chunk({ content: 'Hel' })}${chunk({ content: 'lo.' }, 'stop')}data: [DONE]\n\n`, 'text/event-stream');
    for (const reply of await Promise.all(streams)) {
        assert.equal(reply.status, 200, reply.text);
        assert.match(reply.text, /"textResponse":"lo\."/);
    }
});

test('a client that leaves its whole chat leaves the provider too', async (t) => {
    const provider = await silentProvider(t);
    const h = await startHearth({ t, env: { GENERIC_OPENAI_BASE_URL: provider.url, GENERIC_OPENAI_MODEL: 'm' } });
    const impatient = new AbortController();
    const headers = { authorization: `Bearer ${await h.key()}`, 'content-type': 'application/json' };
    const left = fetch(`${h.url}/sdk/llm/chat`, { method: 'POST', headers, body: JSON.stringify({ messages: says }), signal: impatient.signal }).catch((e) => e.name);
    await until(() => provider.waiting.length === 1);
    impatient.abort();
    assert.equal(await left, 'AbortError');
    await until(() => provider.nLeft() === 1);
});

for (const [path, more, textOf] of faces)
    test(`an answer of some megabytes arrives whole at ${path}, compressed or not`, async (t) => {
        const provider = await silentProvider(t);
        const h = await startHearth({ t, env: { GENERIC_OPENAI_BASE_URL: provider.url, GENERIC_OPENAI_MODEL: 'm' } });
        const headers = { authorization: `Bearer ${await h.key()}`, 'content-type': 'application/json' };
        const text = 'Sömething löng. '.repeat(200_000);
        for (const encoding of ['identity', 'gzip']) {
            const chat = fetch(`${h.url}${path}`, { method: 'POST', headers: { ...headers, 'accept-encoding': encoding }, body: JSON.stringify({ messages: says, ...more }) });
            await until(() => provider.waiting.length === 1);
            provider.answer(whole(text));
            const reply = await chat;
            assert.equal(reply.status, 200);
            assert.equal(reply.headers.get('content-encoding'), encoding === 'gzip' ? 'gzip' : null);
            assert.ok(textOf(await reply.json()) === text);
        }
    });
