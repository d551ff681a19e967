// A hostile provider of language models and embeddings behind an app of ordinary grants: whatever it says, the service lives, holds little, serves others
// and tells nobody its keys (docs/security.md, "Peer").
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { startHearth, until } from '../api/harness.mjs';
import { hostileHttp, residentKib, responseBytes } from './kit.mjs';

const isSanitized = (process.env.HEARTH_BIN ?? 'debug').includes('debug');
const keys = { OPENAI_API_KEY: 'sk-hostile-openai-0123456789', ANTHROPIC_API_KEY: 'sk-hostile-anthropic-0123456789', GENERIC_OPENAI_API_KEY: 'sk-hostile-generic-0123456789', OLLAMA_API_KEY: 'sk-hostile-ollama-0123456789' };
const schema = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'], additionalProperties: false };
const format = { type: 'json_schema', json_schema: { name: 'answer', schema } };
const json = { 'content-type': 'application/json' };
const message = [{ role: 'user', content: 'hello' }];

const eventHead = 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n';
const sse = (value) => `data: ${typeof value === 'string' ? value : JSON.stringify(value)}\n\n`;

// The same four answers in each protocol: how a request is addressed, and how a text and an end are streamed.
const protocols = {
    openai: {
        text: (text) => sse({ type: 'response.output_text.delta', delta: text }),
        end: () => sse({ type: 'response.completed', response: { status: 'completed', model: 'm', usage: { input_tokens: 1, output_tokens: 1 } } }),
    },
    anthropic: {
        text: (text) => sse({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } }),
        end: () => sse({ type: 'message_stop' }),
    },
    ollama: {
        text: (text) => `${JSON.stringify({ model: 'm', message: { role: 'assistant', content: text }, done: false })}\n`,
        end: () => `${JSON.stringify({ model: 'm', message: { role: 'assistant', content: '' }, done: true, done_reason: 'stop' })}\n`,
    },
    'generic-openai': {
        text: (text) => sse({ model: 'm', choices: [{ index: 0, delta: { content: text } }] }),
        end: () => `${sse({ model: 'm', choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] })}${sse('[DONE]')}`,
    },
};

// The present provider: a test says how requests are answered.
let answer;
const provider = await hostileHttp({ after }, (request, socket) => answer(request, socket));
const env = { ...keys, OPENAI_BASE_URL: `${provider.url}/v1`, ANTHROPIC_BASE_URL: provider.url, OLLAMA_HOST: provider.url, OLLAMA_MODEL: 'm',
    GENERIC_OPENAI_BASE_URL: `${provider.url}/v1`, GENERIC_OPENAI_MODEL: 'm' };
const h = await startHearth({ env, settings: { 'llm.retries': 0, 'llm.rest_after': 0, 'llm.retry_after_max_s': 0, 'llm.models_ttl_s': 1 } });
const appId = await h.app({}, ['llm.chat', 'llm.embed', 'llm.providers']);
const app = h.asApp(appId);

after(async () => {
    for (const secret of Object.values(keys))
        assert.equal(h.log.filter((line) => line.includes(secret)).length, 0, 'a key stands in the log');
    await h.stop();
});

async function othersAreServed() {
    assert.equal((await h.api('GET', '/healthz')).status, 200);
    assert.equal((await app('GET', '/sdk/auth/token')).status < 500, true);
}

const chat = (name, more = {}) => ({ provider: name, model: 'm', messages: message, ...more });

// ---- takeover of resumable streams ----

// A stream whose deltas the test sends: {socket} of the provider's side, {client} of the app's.
async function heldStream(name, more = {}, first = '{"n":') {
    const asked = new Promise((done) => {
        answer = (request, socket) => {
            socket.write(eventHead);
            done(socket);
        };
    });
    const opening = h.sse('/sdk/llm/chat/stream', { method: 'POST', headers: { ...json, 'x-app-id': appId, 'x-hearth-resumable': '1' }, body: chat(name, more) });
    const socket = await asked;
    if (first !== null)
        socket.write(protocols[name].text(first));
    return { socket, opening, client: first === null ? null : await opening };
}

const comeBack = (id, name, more = {}) => h.sse('/sdk/llm/chat/stream', { method: 'POST', headers: { ...json, 'x-app-id': appId, 'last-event-id': id, 'x-hearth-resumable': '1' }, body: chat(name, more) });
const isLast = (event) => event.json?.close === true || event.event === 'error' || event.data === '[DONE]';

for (const name of Object.keys(protocols)) {
    for (const [kind, more] of [['a checked answer', { response_format: format }], ['a plain answer', {}]]) {
        const { text, end } = protocols[name];

        test(`${name}: ${kind} taken over between deltas ends with the second client`, async () => {
            const { socket, client } = await heldStream(name, more);
            const { id } = await client.next();
            const second = await comeBack(id, name, more);
            socket.write(text('1}'));
            socket.end(end());
            const last = await second.next(isLast);
            assert.equal(last.json?.close, true, JSON.stringify(last));
            assert.equal(second.text().includes('1}'), true);
            client.close();
        });

        test(`${name}: ${kind} taken over twice, by one who leaves and by one who stays`, async () => {
            const { socket, client } = await heldStream(name, more);
            const { id } = await client.next();
            const second = await comeBack(id, name, more);
            client.close();
            second.close();
            const third = await comeBack(id, name, more);
            const fourth = await comeBack(id, name, more);
            socket.write(text('1}'));
            socket.end(end());
            assert.equal((await fourth.next(isLast)).json?.close, true);
            third.close();
            const late = await comeBack(id, name, more);        // after the end: from what was kept
            assert.equal((await late.next(isLast)).json?.close, true);
        });

        test(`${name}: ${kind} taken over while the provider breaks off ends with an error`, async () => {
            const { socket, client } = await heldStream(name, more);
            const { id } = await client.next();
            const opening = comeBack(id, name, more);
            socket.destroy();
            const second = await opening;
            assert.equal((await second.next(isLast)).event, 'error');
            client.close();
        });

        test(`${name}: ${kind} taken over as the end arrives`, async () => {
            const { socket, client } = await heldStream(name, more);
            const { id } = await client.next();
            const opening = comeBack(id, name, more);
            socket.end(`${text('1}')}${end()}`);
            assert.equal((await (await opening).next(isLast)).json?.close, true);
            client.close();
        });
    }

    test(`${name}: a checked answer that breaks its schema is told to whoever took it over`, async () => {
        const { socket, client } = await heldStream(name, { response_format: { type: 'json_object' } }, 'no JSON ');
        const { id } = await client.next();
        const second = await comeBack(id, name, { response_format: { type: 'json_object' } });
        client.close();
        socket.end(`${protocols[name].text('at all')}${protocols[name].end()}`);
        const last = await second.next(isLast);
        assert.equal(last.event === 'error' || last.json?.close === true, true);
    });

    test(`${name}: before the first delta there is nothing to take over`, async () => {
        const { socket, opening } = await heldStream(name, { response_format: format }, null);
        const other = await comeBack('00000000-0000-4000-8000-000000000000:1', name, { response_format: format });
        assert.equal(other.status, 404);
        socket.end(`${protocols[name].text('{"n":1}')}${protocols[name].end()}`);
        assert.equal((await (await opening).next(isLast)).json?.close, true);
    });
}

// ---- memory of what waits ----

test('twelve chats of 8 MB that wait for a silent provider hold little more than their requests', async (t) => {
    if (isSanitized)
        return t.skip('the sanitizer keeps freed memory');
    const waiting = 12, bytes = 8 << 20;
    const shapes = [
        ['/sdk/llm/chat', chat('generic-openai', { messages: [{ role: 'user', content: 'x'.repeat(bytes) }] })],
        ['/sdk/llm/chat/stream', chat('anthropic', { messages: [{ role: 'user', content: 'x'.repeat(bytes) }], response_format: format })],
        ['/v1/chat/completions', { model: 'generic-openai/m', messages: message, tools: [{ type: 'function', function: { name: 'f', parameters: { type: 'object', enum: new Array(bytes / 2).fill(1) } } }] }],
        ['/v1/messages', { model: 'anthropic/m', max_tokens: 5, messages: [{ role: 'user', content: 'x'.repeat(bytes) }] }],
    ];
    const sockets = [];
    answer = (request, socket) => sockets.push(socket);
    const before = residentKib(h.pid), mostKib = 2 * waiting * bytes / 1024;
    const requests = shapes.flatMap(([path, body]) => {
        const text = JSON.stringify(body);
        return Array.from({ length: waiting / shapes.length }, () => app('POST', path, text, json));
    });
    await until(() => sockets.length === waiting, { what: `${waiting} requests at the provider` });
    await until(() => residentKib(h.pid) - before < mostKib, { what: `${waiting} waiting chats of ${bytes} bytes in ${mostKib} KiB` });
    sockets.forEach((socket) => socket.destroy());
    for (const reply of await Promise.all(requests))
        assert.equal(reply.status, 502);
    await othersAreServed();
});
