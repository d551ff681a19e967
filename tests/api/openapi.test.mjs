// The description against a validator no one here wrote, and against what the service really answers on every route.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Validator } from '@seriousme/openapi-schema-validator';
import Ajv2020 from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { sharedHearth, startHearth } from './harness.mjs';

const shared = sharedHearth();
const methods = ['get', 'post', 'put', 'patch', 'delete'];

async function described(h) {
    const reply = await h.api('GET', '/openapi.json');
    assert.equal(reply.status, 200);
    return reply.body;
}

function* operations(document) {
    for (const [path, item] of Object.entries(document.paths))
        for (const method of methods)
            if (item[method])
                yield { path, method: method.toUpperCase(), operation: item[method] };
}

// Checks of one answer by the description: a documented status, the documented type, a body that fits its schema.
class Book {
    #ajv = addFormats(new Ajv2020({ strict: false, allErrors: true }));
    #document;

    constructor(document) { this.#document = document; }

    #responseOf(operation, status) {
        const found = operation.responses[status] ?? operation.responses.default;
        return found.$ref ? this.#document.components.responses[found.$ref.split('/').at(-1)] : found;
    }

    check({ path, method, operation }, reply) {
        const said = `${method} ${path} ${reply.status} ${reply.text.slice(0, 300)}`;
        const isSuccess = reply.status < 400;
        assert.ok(!isSuccess || operation.responses[reply.status], `this status of success is not described: ${said}`);
        const content = this.#responseOf(operation, reply.status).content;
        const type = reply.headers['content-type'].split(';')[0];
        assert.ok(content[type], `the type ${type} is not described: ${said}`);
        if (!content[type].schema)
            return;
        const fits = this.#ajv.compile({ ...content[type].schema, components: this.#document.components });
        assert.ok(fits(reply.body), `${said}\n${JSON.stringify(fits.errors)}`);
    }
}

const isStream = ({ operation }) => 'text/event-stream' in (operation.responses[200]?.content ?? {});
const filled = (path) => path.replaceAll(/\{[^}]+\}/g, '00000000-0000-4000-8000-000000000000');
const hasPlaces = (path) => path.includes('{');

test('a validator of OpenAPI 3.1 has nothing to say', async (t) => {
    const h = await shared(t);
    const result = await new Validator().validate(await described(h));
    assert.ok(result.valid, JSON.stringify(result.errors, null, 1));
});

test('every operation has a summary, a tag, a unique id and describes its errors', async (t) => {
    const h = await shared(t);
    const ids = new Set();
    for (const { path, method, operation } of operations(await described(h))) {
        assert.ok(operation.summary && operation.tags.length === 1, `${method} ${path}`);
        assert.ok(!ids.has(operation.operationId), operation.operationId);
        ids.add(operation.operationId);
        assert.ok(operation.responses.default.$ref, `${method} ${path}`);
    }
});

test('routes that ask a provider describe its refusals and the limits', async (t) => {
    const h = await shared(t);
    const asking = ['/sdk/llm/chat', '/sdk/llm/chat/stream', '/sdk/llm/embed', '/v1/chat/completions', '/v1/completions', '/v1/responses', '/v1/embeddings', '/v1/messages', '/v1/audio/speech', '/sdk/tts', '/sdk/tts/stream',
        '/chat', '/generate', '/embed', '/embeddings'];             // Ollama's, below /api
    for (const { path, operation } of operations(await described(h)))
        for (const status of [429, 502])
            assert.equal(Boolean(operation.responses[status]), asking.includes(path.replace(/^\/api/, '')), `${path} ${status}`);
});

test('a stranger gets described answers on every route', async (t) => {
    const h = await shared(t);
    const document = await described(h);
    const book = new Book(document);
    for (const entry of operations(document)) {
        const reply = await h.api(entry.method, filled(entry.path), entry.operation.requestBody ? {} : undefined);
        book.check(entry, reply);
        if (!entry.operation.security.some((choice) => Object.keys(choice).length === 0))
            assert.equal(reply.status, 401, `${entry.method} ${entry.path}`);
    }
});

test('the administrator gets described answers on every route', async (t) => {
    const h = await startHearth({ t, settings: { 'consent.wait_s': 0.05 } });
    const document = await described(h);
    const book = new Book(document);
    for (const entry of operations(document)) {
        if (isStream(entry))
            continue;
        const reply = await h.socket(entry.method, filled(entry.path), entry.operation.requestBody ? {} : undefined);
        book.check(entry, reply);
        if (entry.method === 'GET' && !hasPlaces(entry.path) && !entry.path.startsWith('/session/') && !entry.path.endsWith('/sdk/auth/token') &&
            entry.path !== '/api/mcp/callback' &&      // answers a login that was begun only
            !/^\/api\/backend\/(projects|check)$/.test(entry.path) &&  // of the hosted service: need a login, a project
            !entry.path.startsWith('/auth/v1/') &&     // needs a key of the face
            !/^\/realtime\/v1\/websocket$|\/socket$/.test(entry.path))   // answer an upgrade only
            assert.equal(reply.status, 200, `${entry.method} ${entry.path} ${reply.text}`);
        assert.notEqual(reply.status, 500, `${entry.method} ${entry.path} ${reply.text}`);
    }
});

test('SDK routes answer under /api as well', async (t) => {
    const h = await shared(t);
    const { paths } = await described(h);
    for (const path of Object.keys(paths).filter((path) => path.startsWith('/sdk/')))
        assert.ok(paths[`/api${path}`], path);
});
