// A hostile provider of language models and embeddings behind an app of ordinary grants: whatever it says, the service lives, holds little, serves others
// and tells nobody its keys (docs/security.md, "Peer").
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { after, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { startHearth, until } from '../api/harness.mjs';
import { converse, hostileHttp, residentKib, responseBytes } from './kit.mjs';

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

// ---- what a provider may say ----

const chunked = 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n';
const names = Object.keys(protocols);
const paths = { whole: '/sdk/llm/chat', stream: '/sdk/llm/chat/stream' };
// What a whole answer of this protocol looks like with other members.
const whole = {
    openai: (more) => ({ output: [{ type: 'message', content: [{ type: 'output_text', text: 'x' }] }], model: 'm', ...more }),
    anthropic: (more) => ({ content: [{ type: 'text', text: 'x' }], model: 'm', stop_reason: 'end_turn', ...more }),
    ollama: (more) => ({ message: { content: 'x' }, done: true, model: 'm', ...more }),
    'generic-openai': (more) => ({ choices: [{ message: { content: 'x' }, finish_reason: 'stop' }], model: 'm', ...more }),
};
const calls = {
    openai: (n, text) => sse({ type: 'response.output_item.done', output_index: n, item: { type: 'function_call', call_id: text, name: 'f', arguments: text } }),
    anthropic: (n, text) => sse({ type: 'content_block_start', index: n, content_block: { type: 'tool_use', id: text, name: 'f', input: { text } } }),
    ollama: (n, text) => `${JSON.stringify({ message: { tool_calls: [{ id: text, function: { name: 'f', arguments: { text } } }] } })}\n`,
    'generic-openai': (n, text) => sse({ choices: [{ delta: { tool_calls: [{ index: n, id: text, function: { name: 'f', arguments: text } }] } }] }),
};

// Writes for ever, as fast as it is read; calls back with how much when the other side leaves.
function pour(socket, head, piece) {
    let n = 0;
    return new Promise((done) => {
        socket.on('close', () => done(n));
        socket.on('error', () => done(n));
        const write = () => {
            while (!socket.destroyed) {
                n += 1;
                if (!socket.write(typeof piece === 'function' ? piece(n) : piece))
                    break;
            }
        };
        socket.on('drain', write);
        socket.write(head);
        write();
    });
}

// Both ways of asking; each reply must be whole HTTP, and none may hold a key.
async function askBoth(name, more = {}) {
    const replies = await Promise.all(Object.values(paths).map((path) => app('POST', path, chat(name, more))));
    for (const reply of replies)
        assertNoKey(reply.text);
    return replies;
}

function assertNoKey(text) {
    for (const secret of Object.values(keys))
        assert.equal(text.includes(secret), false, 'a key stands in an answer');
}

const failed = (reply) => reply.status >= 400 || /"error":true|event: error|LLM_STREAM_ERROR/.test(reply.text);

async function assertFails(name, what, more = {}) {
    for (const reply of await askBoth(name, more))
        assert.equal(failed(reply), true, `${name}: ${what}: ${reply.status} ${reply.text.slice(0, 300)}`);
}

const bomb = gzipSync(Buffer.alloc(64 << 20, ' '));
const deep = '{"a":'.repeat(200_000);
const oddities = [
    ['a line without an end', (socket) => pour(socket, eventHead, 'x'.repeat(65_536))],
    ['an event without an end', (socket) => pour(socket, eventHead, `data: ${'x'.repeat(60_000)}\n`)],
    ['a body without an end', (socket) => pour(socket, 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n{"x":"', 'x'.repeat(65_536))],
    ['chunks without an end', (socket) => pour(socket, `${chunked}a\r\n{"x":"xxxx\r\n`, `10000\r\n${'x'.repeat(65_536)}\r\n`)],
    ['a head without an end', (socket) => pour(socket, 'HTTP/1.1 200 OK\r\n', (n) => `x-${n}: ${'y'.repeat(1000)}\r\n`)],
    ['one header without an end', (socket) => pour(socket, 'HTTP/1.1 200 OK\r\nx: ', 'y'.repeat(60_000))],
    ['interim answers without an end', (socket) => pour(socket, '', 'HTTP/1.1 100 Continue\r\n\r\n'.repeat(1000))],
    ['a length beyond 64 bits', (socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 99999999999999999999999\r\n\r\n{}')],
    ['a length that is negative', (socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n{}')],
    ['a length that is not kept', (socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{')],
    ['a chunk of 2^64 bytes', (socket) => socket.end(`${chunked}ffffffffffffffff1\r\nx`)],
    ['JSON of 200,000 levels', (socket) => socket.end(responseBytes(deep))],
    ['an event of 200,000 levels', (socket) => socket.end(`${eventHead}data: ${deep}\n\n`)],
    ['JSON that breaks off', (socket) => socket.end(responseBytes('{"choices":[{"message":{"content":"x'))],
    ['bytes that are no UTF-8', (socket) => socket.end(responseBytes(Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x7d])))],
    ['a compressed bomb', (socket) => socket.end(responseBytes(bomb, { headers: { 'content-encoding': 'gzip' } }))],
    ['a compressed bomb of events', (socket) => socket.end(responseBytes(bomb, { type: 'text/event-stream', headers: { 'content-encoding': 'gzip' } }))],
    ['nothing at all', (socket) => socket.end()],
    ['bytes that are no HTTP', (socket) => socket.end(Buffer.alloc(10_000, 0x80))],
    ['a list in place of an object', (socket) => socket.end(responseBytes('[1,2,3]'))],
    ['an answer that is null', (socket) => socket.end(responseBytes('null'))],
    ...['-1', '0', '99', '1000', '2000', '99999999999', '+200', 'abc', '', '20', '2 00'].map((status) => [`the status "${status}"`, (socket) => socket.end(`HTTP/1.1 ${status} OK\r\ncontent-length: 2\r\n\r\n{}`)]),
    ['a switch of protocols', (socket) => socket.end('HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\nxxxx')],
];

for (const name of names)
    test(`${name}: what is no answer becomes an error, whoever asks`, async () => {
        const before = residentKib(h.pid);
        for (const [what, say] of oddities) {
            answer = (request, socket) => void say(socket);
            await assertFails(name, what);
        }
        await othersAreServed();
        if (!isSanitized)
            await until(() => residentKib(h.pid) - before < 64 << 10, { what: 'what it cost is given back' });
    });

test('members of other types than they should be of are nothing, never a crash', async () => {
    const wrong = [null, true, 0, -1, 1e300, 'text', [], {}, [[]], [null], [{}], { a: { a: {} } }];
    for (const name of names)
        for (const value of wrong) {
            answer = (request, socket) => {
                const members = Object.fromEntries(['choices', 'output', 'content', 'message', 'usage', 'model', 'error', 'delta', 'item', 'response', 'index', 'type', 'stop_reason', 'done', 'x_groq',
                    'prompt_eval_count', 'output_index', 'content_block', 'tool_calls'].map((key) => [key, value]));
                const nested = [members, whole[name](members), { choices: [{ delta: members, message: members }], ...members }, { type: 'content_block_delta', delta: members, index: value }];
                socket.end(request.body?.stream ? `${eventHead}${nested.map((event) => (name === 'ollama' ? `${JSON.stringify(event)}\n` : sse(event))).join('')}` : responseBytes(nested[request.n % nested.length]));
            };
            await askBoth(name);
        }
    await othersAreServed();
});

test('usage beyond 64 bits and below zero is counted within limits', async () => {
    const values = ['18446744073709551615', '9223372036854775807', '-9223372036854775808', '-1', '1e308', '4611686018427387904', '"7"', 'null'];
    const usages = (v) => ({ openai: `{"input_tokens":${v},"output_tokens":${v}}`, anthropic: `{"input_tokens":${v},"output_tokens":${v},"cache_creation_input_tokens":${v},"cache_read_input_tokens":${v}}`,
        'generic-openai': `{"prompt_tokens":${v},"completion_tokens":${v}}` });
    for (const name of names)
        for (const value of values) {
            answer = (request, socket) => {
                const text = JSON.stringify(whole[name]({}));
                const usage = name === 'ollama' ? `"prompt_eval_count":${value},"eval_count":${value}` : `"usage":${usages(value)[name]}`;
                socket.end(responseBytes(`${text.slice(0, -1)},${usage}}`));
            };
            for (const reply of await askBoth(name)) {
                const metrics = reply.body?.response?.metrics;
                if (metrics)
                    assert.ok(metrics.prompt_tokens >= 0 && metrics.total_tokens <= 2 ** 33, JSON.stringify(metrics));
            }
        }
    const { body } = await h.socket('GET', '/api/usage');
    assert.ok(body, 'usage can be read');
    await othersAreServed();
});

test('a flood of tool calls, and calls with names and arguments of megabytes, end at their limits', async () => {
    const large = 'c'.repeat(1 << 20), before = residentKib(h.pid);
    for (const name of names) {
        answer = (request, socket) => void pour(socket, eventHead, (n) => calls[name](n, `call_${n}`));
        assert.equal(failed(await app('POST', paths.stream, chat(name))), true);
        answer = (request, socket) => void pour(socket, eventHead, (n) => calls[name](n, large));
        assert.equal(failed(await app('POST', paths.stream, chat(name))), true);
    }
    if (!isSanitized)
        await until(() => residentKib(h.pid) - before < 64 << 10, { what: 'what it cost is given back' });
    await othersAreServed();
});

test('a redirect is not followed, wherever it points', async () => {
    let n = 0;
    const other = await hostileHttp({ after }, (request, socket) => { n += 1; socket.end(responseBytes('{}')); });
    for (const to of [`${other.url}/v1/x`, 'file:///etc/passwd', 'http://169.254.169.254/latest/meta-data/', `http://127.0.0.1:${h.port}/api/keys`])
        for (const status of [301, 302, 303, 307, 308]) {
            answer = (request, socket) => socket.end(responseBytes('{}', { status, headers: { location: to } }));
            await assertFails(names[status % names.length], `a redirect to ${to}`);
        }
    assert.equal(n, 0);
});

test('an error that repeats the key, or hides control characters, is told without them', async () => {
    const evil = 'bad\u202e\u2066\u0000\u0007\u001b]0;x\u0007\u009b31m\r\nset-cookie: a=b';
    for (const name of names) {
        const secret = Object.values(keys).find((key) => key.includes(name === 'generic-openai' ? 'generic' : name));
        for (const status of [400, 401, 404, 429, 500, 599]) {
            answer = (request, socket) => socket.end(responseBytes({ error: { message: `${evil} ${secret} ${secret.slice(0, -2)}`, code: secret, type: evil } }, { status, headers: { 'retry-after': '99999999999999999999' } }));
            for (const reply of await askBoth(name)) {
                assert.equal(reply.status >= 400, true);
                assert.equal(reply.headers['set-cookie'], undefined);
                assert.equal(/[\u0000-\u0009\u000b-\u001f\u007f]/.test(reply.text), false, 'a control character as it is');
            }
        }
    }
    assert.equal(h.log.some((line) => /[\u0000-\u0008\u000b-\u001f\u007f]/.test(line)), false, 'a control character stands in the log');
});

test('silence in each phase, and a drip, hold no one but who waits for it; who leaves cancels the upstream', async () => {
    const phases = { 'before the head': '', 'in the head': 'HTTP/1.1 200 OK\r\ncontent-ty', 'behind the head': eventHead, 'in an event': `${eventHead}data: {"choi`, 'behind an event': null };
    for (const name of names)
        for (const [phase, bytes] of Object.entries(phases))
            for (const path of Object.values(paths)) {
                const asked = new Promise((done) => {
                    answer = (request, socket) => {
                        socket.write(bytes ?? `${eventHead}${protocols[name].text('x')}`);
                        done(socket);
                    };
                });
                const client = await converse(h);
                const body = JSON.stringify(chat(name));
                await client.send(`POST ${path} HTTP/1.1\r\nhost: localhost\r\nx-app-id: ${appId}\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
                const socket = await asked;
                const cancelled = Promise.race([once(socket, 'end'), once(socket, 'close')]);
                client.destroy();
                await cancelled;
                socket.destroy();
            }
    answer = (request, socket) => {                     // one byte at a time is an answer too
        const text = responseBytes(whole['generic-openai']({}));
        let at = 0;
        const drip = setInterval(() => (at < text.length ? socket.write(text.subarray(at, ++at)) : clearInterval(drip)), 1);
        socket.on('close', () => clearInterval(drip));
    };
    const slow = app('POST', paths.whole, chat('generic-openai'));
    await othersAreServed();
    assert.equal((await slow).status, 200);
});

test('lists of a million models, of wrong types and of endless names are cut, and no list costs the others theirs', async (t) => {
    const lists = [
        (key) => `{"${key}":[${'{"id":"m","name":"m"},'.repeat(1_000_000)}{}]}`,
        (key) => `{"${key}":[${Array.from({ length: 5000 }, (_, n) => `{"id":"m${n}","name":"m${n}"}`)}]}`,
        (key) => `{"${key}":[{"id":"${'x'.repeat(8 << 20)}"},{"id":7},{"id":"\\u0000"},null,[],"x"]}`,
        (key) => `{"${key}":${deep}`,
        (key) => `{"${key}":{"id":"m"}}`,
        () => '',
    ];
    const makers = ['LMSTUDIO', 'LOCALAI', 'LLAMACPP', 'KOBOLDCPP', 'OLLAMA', 'ANTHROPIC'];     // one list each: a failure is kept for a while
    const server = await hostileHttp(t, (request, socket) => socket.end(responseBytes(lists[Number(request.path.split('/')[1])](request.path.includes('tags') ? 'models' : 'data'))));
    const own = Object.fromEntries(makers.map((maker, i) => [maker === 'OLLAMA' ? 'OLLAMA_HOST' : `${maker}_BASE_URL`, `${server.url}/${i}${i < 4 ? '/v1' : ''}`]));
    const listing = await startHearth({ t, env: { ...own, ANTHROPIC_API_KEY: keys.ANTHROPIC_API_KEY } });
    const dev = await listing.asKey();
    for (const path of ['/sdk/llm/providers', '/sdk/llm/providers/chat', '/v1/models']) {
        const reply = await dev('GET', path);
        assert.equal(reply.status, 200, reply.text.slice(0, 200));
        assert.ok(reply.text.length < 4 << 20, `${path}: ${reply.text.length} bytes`);
        assert.ok(reply.text.includes('"m4"'), `${path}: a list of 5,000 is there`);
        assertNoKey(reply.text);
    }
});

test('vectors of wrong length, place, type and number become an error; what is too much is cut', async () => {
    const replies = [
        { data: [] }, { data: [{ embedding: [] }] }, { data: [{ embedding: [1, 'x'] }] }, { data: [{ embedding: [1], index: 7 }] }, { data: [{ embedding: [1], index: -1 }] },
        { data: [{ embedding: 'not base64!' }] }, { data: [{ embedding: 'AAAAAAAA' }] }, { data: [{ embedding: 'AADAfw==' }] }, { data: [{ embedding: new Array(8193).fill(0.5) }] },
        { data: { embedding: [1] } }, { embeddings: [[1], [2]] }, { embeddings: [] }, { embeddings: [{}] }, { data: null }, [], 'x', deep, '{"data":[{"embedding":[1e400]}]}', '',
        '{"data":[{"embedding":[1,NaN]}]}',
    ];
    for (const name of ['generic-openai', 'openai', 'ollama'])
        for (const reply of replies) {
            answer = (request, socket) => socket.end(responseBytes(reply));
            const { status, text } = await app('POST', '/sdk/llm/embed', { input: 'one text', provider: name, model: 'm' });
            assert.equal(status, 502, `${name}: ${JSON.stringify(reply).slice(0, 100)}: ${text.slice(0, 200)}`);
            assertNoKey(text);
        }
    const before = residentKib(h.pid);
    answer = (request, socket) => void pour(socket, 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n{"data":[{"embedding":[0', ',0'.repeat(32_768));
    assert.equal((await app('POST', '/sdk/llm/embed', { input: 'one text', provider: 'generic-openai', model: 'm' })).status, 502);
    if (!isSanitized)
        await until(() => residentKib(h.pid) - before < 64 << 10, { what: 'what it cost is given back' });
    answer = (request, socket) => socket.end(responseBytes(`{"data":[{"embedding":[0.5,0.25]}],"usage":{"prompt_tokens":9223372036854775807},"model":"${'m'.repeat(1 << 20)}"}`));
    const good = await app('POST', '/v1/embeddings', { input: ['a', 'b'].slice(0, 1), model: 'generic-openai/m' });
    assert.equal(good.status, 200, good.text.slice(0, 200));
    assert.ok(good.text.length < 10_000 && good.body.usage.prompt_tokens <= 2 ** 30);
    await othersAreServed();
});

test('system texts of many messages are joined once: 2,000 of 8 KB do not end the service', async () => {
    answer = (request, socket) => socket.end(responseBytes(whole.anthropic({})));
    const messages = [...Array.from({ length: 1999 }, () => ({ role: 'system', content: 'r'.repeat(8000) })), ...message];
    const reply = await app('POST', paths.whole, chat('anthropic', { messages }));
    assert.equal(reply.status, 200, reply.text.slice(0, 300));
    await othersAreServed();
});

test('references to a large item cost what the item costs: a short id many times does not end the service', async () => {
    const large = 'r'.repeat(3 << 20);
    answer = (request, socket) => socket.end(responseBytes({ model: 'm', choices: [{ index: 0, message: { role: 'assistant', content: large, reasoning_content: large }, finish_reason: 'stop' }] }));
    const made = await app('POST', '/v1/responses', { input: 'hello', model: 'generic-openai/m' });
    assert.equal(made.status, 200, made.text.slice(0, 300));
    answer = (request, socket) => socket.end(responseBytes({ model: 'm', choices: [{ index: 0, message: { role: 'assistant', content: 'short' }, finish_reason: 'stop' }] }));
    for (const { id } of made.body.output)
        for (const [n, status] of [[1, 200], [12, 413], [1900, 413]]) {
            const reply = await app('POST', '/v1/responses', { model: 'generic-openai/m', store: false, input: [...Array(n).fill({ type: 'item_reference', id }), { role: 'user', content: 'x' }] });
            assert.equal(reply.status, status, `${n} of ${id}: ${reply.text.slice(0, 300)}`);
        }
    await othersAreServed();
});

const long = '\u0001"\n'.repeat(16 << 10), nLong = 48;
const toolCall = { tool_calls: [{ index: 0, id: 'c1', type: 'function', function: { name: 'f', arguments: '{}' } }] };

for (const [what, first, then, ended, textOf] of [
    ['a thought before a text', { reasoning_content: long }, { content: 'told' }, ['response.reasoning_summary_text.done', 'response.reasoning_summary_part.done'], (item) => item.summary[0].text],
    ['a text before a call', { content: long }, toolCall, ['response.output_text.done', 'response.content_part.done'], (item) => item.content[0].text],
])
    test(`/v1/responses: ${what}, many megabytes as JSON, holds nobody up and ends before what follows`, async () => {
        const delta = (more) => sse({ model: 'm', choices: [{ index: 0, delta: more }] });
        answer = (request, socket) => socket.end(eventHead + delta(first).repeat(nLong) + delta(then) + protocols['generic-openai'].end());
        const body = { input: 'hello', model: 'generic-openai/m', stream: true, store: false, tools: [{ type: 'function', name: 'f', parameters: { type: 'object' } }] };
        const stream = await h.sse('/v1/responses', { method: 'POST', headers: { ...json, 'x-app-id': appId }, body });
        await stream.ended;
        const events = stream.events.map((event) => event.json), at = (type) => events.findIndex((event) => event.type === type);
        const from = at(ended[0]);
        assert.deepEqual(events.slice(from, from + 4).map((event) => event.type), [...ended, 'response.output_item.done', 'response.output_item.added']);
        assert.equal(events.at(-1).type, 'response.completed');
        const whole = long.repeat(nLong);
        for (const text of [events[from].text, events[from + 1].part.text, textOf(events[from + 2].item), textOf(events.at(-1).response.output[0])])
            assert.ok(text === whole, `${text?.length} characters`);
        await othersAreServed();
    });
