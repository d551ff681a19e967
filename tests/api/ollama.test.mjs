// Ollama's interface: bodies that break a rule, errors in its form, and who is let in without a key (docs/compatible-api.md). What its official
// client sees is tests/peers/ollama_client.test.mjs.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startHearth } from './harness.mjs';
import { admin, newApp, newKey } from './kit.mjs';
import { env } from './provider.mjs';

const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const hello = { model: 'said-model', messages: [{ role: 'user', content: 'Hello' }] };
let h, dev;

before(async () => {
    h = await startHearth({ env });
    dev = await h.asKey();
});
after(() => h.stop());

// The members of Ollama's error, and ours beside it.
function failed(reply, status, code, text = /./) {
    assert.equal(reply.status, status, reply.text);
    assert.equal(typeof reply.body.error, 'string', reply.text);
    assert.match(reply.body.error, text);
    assert.equal(reply.body.hearth_code, code, reply.text);
    assert.equal(reply.headers['content-type'], 'application/json');
    return reply.body;
}

const chat = (more) => dev('POST', '/api/chat', { ...hello, stream: false, ...more });
const generate = (more) => dev('POST', '/api/generate', { model: 'said-model', prompt: 'Hello', stream: false, ...more });

test('a stream is the default: one JSON object a line', async () => {
    const reply = await dev('POST', '/api/chat', hello);
    assert.equal(reply.headers['content-type'], 'application/x-ndjson');
    assert.equal(reply.headers['x-hearth-provider'], 'generic-openai');
    const lines = reply.text.trimEnd().split('\n').map((line) => JSON.parse(line));
    assert.equal(lines.map((line) => line.message.content).join(''), 'Hello.');
    assert.deepEqual(lines.map((line) => line.done), [...lines.slice(1).map(() => false), true]);
    assert.ok(reply.text.endsWith('}\n'));
});

test('bodies that break a rule are told every rule in Ollama\'s form', async () => {
    const body = failed(await dev('POST', '/api/chat', { messages: [{ role: 'nobody' }], options: { temperature: 3, num_predict: -3 } }), 400, 'VALIDATION_ERROR', /`model`/);
    assert.deepEqual(body.errors.map((one) => one.field).sort(), ['messages[0].role', 'model', 'options.num_predict', 'options.temperature']);
    const rest = failed(await chat({ format: 'xml', think: 'much', options: { stop: [1] } }), 400, 'VALIDATION_ERROR');
    assert.deepEqual(rest.errors.map((one) => one.field).sort(), ['format', 'options.stop', 'think']);
    failed(await dev('POST', '/api/chat', '{'), 400, 'INVALID_JSON');
    failed(await dev('GET', '/api/chat'), 405, 'METHOD_NOT_ALLOWED');
});

test('what needs a model\'s template is refused, empty members are not', async () => {
    for (const [member, value] of [['suffix', 'x'], ['template', '{{ .Prompt }}'], ['raw', true], ['context', [1, 2]]]) {
        const { errors } = failed(await generate({ [member]: value }), 400, 'VALIDATION_ERROR', /must be absent/);
        assert.deepEqual(errors.map((one) => one.field), [member]);
    }
    const reply = await generate({ suffix: '', template: '', raw: false, context: [], system: '', images: null, keep_alive: '5m', format: '' });
    assert.equal(reply.status, 200, reply.text);
    assert.equal(reply.body.response, 'Hello.');
});

test('images are base64 of a known kind, with users only, and at most so many', async () => {
    const withImages = (images, role = 'user') => chat({ messages: [{ role, content: 'See', images }] });
    assert.equal((await withImages([png, `data:image/png;base64,${png}`])).status, 200);
    for (const bad of ['', 'x', 'https://h.example/x.png', `${png}!`, 7, null])
        failed(await withImages([bad]), 400, 'VALIDATION_ERROR', /messages\[0\]\.images\[0\]/);
    failed(await withImages([png], 'system'), 400, 'VALIDATION_ERROR', /images/);
    assert.equal((await withImages(Array(999).fill('R0lGODdh'))).status, 200);
    failed(await withImages(Array(1000).fill('R0lGODdh')), 400, 'VALIDATION_ERROR', /at most 999/);
});

test('stops, messages and calls have their limits', async () => {
    assert.equal((await chat({ options: { stop: 'END' } })).status, 200);
    assert.equal((await chat({ options: { stop: Array(16).fill('x'.repeat(256)) } })).status, 200);
    failed(await chat({ options: { stop: Array(17).fill('x') } }), 400, 'VALIDATION_ERROR', /at most 16/);
    failed(await chat({ options: { stop: ['x'.repeat(257)] } }), 400, 'VALIDATION_ERROR', /256 bytes/);
    const call = { function: { name: 'f', arguments: {} } }, calls = (n) => [{ role: 'assistant', content: '', tool_calls: Array(n).fill(call) },
        ...Array(n).fill({ role: 'tool', content: 'done', tool_name: 'f' }), { role: 'user', content: 'Go on' }];
    assert.equal((await chat({ messages: calls(128) })).status, 200);
    failed(await chat({ messages: calls(129) }), 400, 'VALIDATION_ERROR');
    failed(await chat({ messages: Array(2001).fill({ role: 'user', content: 'x' }) }), 400, 'VALIDATION_ERROR');
});

test('embeddings refuse what is no text', async () => {
    failed(await dev('POST', '/api/embed', { model: 'lexical-384', input: [1] }), 400, 'VALIDATION_ERROR', /input\[0\]/);
    failed(await dev('POST', '/api/embed', { input: 'x' }), 400, 'VALIDATION_ERROR', /model/);
    failed(await dev('POST', '/api/embed', { model: 'no-such/model', input: 'x' }), 404, 'INVALID_MODEL');
    assert.deepEqual((await dev('POST', '/api/embeddings', { model: 'lexical-384', prompt: '' })).body, { embedding: [] });
});

test('HEAD / is answered, as Ollama\'s command line asks', async () => {
    assert.equal((await h.api('HEAD', '/')).status, 200);
    assert.match((await h.api('GET', '/api/version')).body.version, /^\d+\.\d+\.\d+$/);
});

// ---- without a key ----

const open = (is) => admin(h, 'PUT', '/api/settings/llm.ollama_open', { value: is });

test('without a credential nothing but the version is told, and the sentence says what to do', async () => {
    for (const [method, path] of [['GET', '/api/tags'], ['GET', '/api/ps'], ['POST', '/api/show'], ['POST', '/api/chat'], ['POST', '/api/generate'], ['POST', '/api/embed'],
        ['POST', '/api/embeddings'], ['POST', '/api/pull'], ['POST', '/api/push'], ['DELETE', '/api/delete']])
        failed(await h.api(method, path, method === 'GET' ? undefined : hello), 401, 'MISSING_APP_ID', /hearth key new.*llm\.ollama_open true/);
});

test('llm.ollama_open lets a program of this user in, for Ollama\'s interface alone', async () => {
    await open(true);
    const reply = await h.api('POST', '/api/chat', { ...hello, stream: false });
    assert.equal(reply.status, 200, reply.text);
    assert.ok((await h.api('GET', '/api/tags')).body.models.length > 0);
    assert.equal((await h.api('POST', '/api/embed', { model: 'lexical-384', input: 'x' })).status, 200);
    for (const [method, path, body] of [['GET', '/sdk/ping'], ['GET', '/activities'], ['POST', '/v1/chat/completions', hello], ['POST', '/sdk/llm/chat', hello], ['GET', '/v1/models'],
        ['GET', '/agents']])
        assert.equal((await h.api(method, path, body)).status, 401, path);
    assert.equal((await h.api('GET', '/api/keys')).status, 401);
    const { usage } = await admin(h, 'GET', '/api/usage?group=key');
    assert.ok(usage.some((one) => one.key === 'local' && one.requests > 0), JSON.stringify(usage));
    await open(false);
    failed(await h.api('POST', '/api/chat', hello), 401, 'MISSING_APP_ID');
});

test('with it a wrong key is still a wrong key, an app needs its grant, and a page is nobody', async () => {
    await open(true);
    const { id, key, call } = await newKey(h);
    assert.equal((await call('GET', '/api/tags')).status, 200);
    await admin(h, 'DELETE', `/api/keys/${id}`);
    const tags = (headers) => h.api('GET', '/api/tags', undefined, headers);
    assert.equal((await tags({ authorization: `Bearer ${key}` })).status, 401);
    assert.equal((await tags({ 'x-api-key': 'ollama' })).status, 401);
    assert.equal((await tags({ 'x-app-id': '11111111-2222-4333-8444-555555555555' })).status, 401);
    assert.equal((await tags({ 'x-app-id': await newApp(h) })).status, 403);
    assert.equal((await tags({ origin: 'https://example.org' })).status, 403);
    for (const headers of [{ origin: h.url }, { 'sec-fetch-site': 'cross-site' }, { referer: 'https://example.org/' }, { cookie: 'a=b' }, { 'user-agent': 'hearth/0.1.0' }])
        assert.equal((await tags(headers)).status, 401, JSON.stringify(headers));
    await open(false);
});
