// Providers as the administrator configures them: adding, showing without secrets, defaults, apps with their own, removing. What a provider
// that fails says is tests/peers/providers.test.mjs.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import http from 'node:http';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { startHearth } from './harness.mjs';
import { admin, newApp, newKey, refused, refusedFields, sqlite, storeFile, timeForm, unique } from './kit.mjs';

const secret = 'sk-very-secret-key-0123456789';
const headerSecret = 'organisation-secret-42';

// A provider that tells who was asked: its name and model are in the text, its dimension in vectors. It lists `models`; those named
// "broken" answer 503.
async function provider(name, models = ['one', 'two']) {
    const asked = [];
    let isMended = false;
    const server = http.createServer(async (incoming, outgoing) => {
        const pieces = [];
        for await (const piece of incoming)
            pieces.push(piece);
        const body = pieces.length ? JSON.parse(Buffer.concat(pieces)) : {};
        asked.push({ path: incoming.url, headers: incoming.headers, body });
        outgoing.setHeader('content-type', 'application/json');
        if (body.model === 'broken' && !isMended)
            outgoing.writeHead(503).end('{"error":{"message":"broken"}}');
        else if (incoming.url.endsWith('/models'))
            outgoing.end(JSON.stringify({ data: models.map((id) => ({ id })) }));
        else if (incoming.url.endsWith('/embeddings'))
            outgoing.end(JSON.stringify({ model: body.model, data: [body.input].flat().map((_, index) => ({ index, embedding: [1, 0] })), usage: { prompt_tokens: 1 } }));
        else
            outgoing.end(JSON.stringify({ model: body.model, choices: [{ message: { content: `${name}/${body.model}` }, finish_reason: 'stop' }], usage: { prompt_tokens: 3, completion_tokens: 2 } }));
    }).listen(0, '127.0.0.1').unref();
    await once(server, 'listening');
    return { name, asked, url: `http://127.0.0.1:${server.address().port}/v1`, last: () => asked.at(-1), mend: () => { isMended = true; },
        close: () => { server.close(); server.closeAllConnections(); } };
}

const generic = (p, more = {}) => ({ preset: 'generic-openai', name: p.name, base_url: p.url, model: 'one', ...more });
const chat = (call, more = {}) => call('POST', '/sdk/llm/chat', { messages: [{ role: 'user', content: 'Who?' }], ...more });
const answered = async (call, more) => {
    const reply = await chat(call, more);
    assert.equal(reply.status, 200, reply.text);
    return reply.body.response.content;
};
const listed = async (h) => admin(h, 'GET', '/api/providers');
const entry = async (h, name) => (await listed(h)).providers.find((one) => one.name === name);
const active = async (call, kind) => (await call('GET', `/sdk/llm/providers/${kind}`)).body.providers.filter((one) => one.active).map((one) => one.provider);

describe('adding', () => {
    let h, key, p;
    before(async () => {
        p = await provider('mine');
        h = await startHearth({ env: { OPENAI_API_KEY: 'sk-of-the-environment', OPENAI_BASE_URL: p.url } });
        key = await newKey(h);
    });
    after(() => h?.stop());

    test('a provider counts at once, before those of the environment', async () => {
        assert.equal((await listed(h)).defaults.chat.provider, 'openai');
        const made = await admin(h, 'POST', '/api/providers', generic(p), 201);
        assert.equal(made.name, 'mine');
        assert.equal(made.note, null);
        assert.equal(await answered(key.call), 'mine/one');
        assert.deepEqual((await listed(h)).defaults.chat, { provider: 'mine', model: null, origin: 'order' });
        assert.deepEqual(await active(key.call, 'chat'), ['mine']);
    });

    test('what was given is used, and shown without secrets', async () => {
        await admin(h, 'POST', '/api/providers', generic(p, { api_key: secret, headers: { 'X-Org': headerSecret }, embed_model: 'bge', models: ['hand-1', 'two'] }));
        assert.equal(await answered(key.call, { provider: 'mine' }), 'mine/one');
        assert.equal(p.last().headers.authorization, `Bearer ${secret}`);
        assert.equal(p.last().headers['x-org'], headerSecret);
        const shown = await entry(h, 'mine');
        assert.match(shown.created_at, timeForm);
        assert.deepEqual({ ...shown, created_at: 0, updated_at: 0 }, {
            name: 'mine', preset: 'generic-openai', label: 'OpenAI-compatible service', protocol: 'openai-chat', source: 'stored', base_url: p.url,
            key: '****6789', headers: [{ name: 'X-Org', value: '****' }], model: 'one', embed_model: 'bge', models: ['hand-1', 'two'], can_chat: true,
            can_embed: true, can_speak: false, can_hear: false, for: 'models', stand_in: false, default_for: ['chat', 'embed'], state: 'ok', resting_models: [], last_error: null, last_error_at: null, reason: null, created_at: 0, updated_at: 0,
        });
    });

    test('models written by hand are listed behind the own one and before those of the provider', async () => {
        const { body } = await key.call('GET', '/sdk/llm/providers/chat');
        assert.deepEqual(body.providers.find((one) => one.provider === 'mine').models.map((one) => one.id), ['one', 'hand-1', 'two']);
    });

    test('a stored provider hides the one of the environment until it is removed', async () => {
        const made = await admin(h, 'POST', '/api/providers', { preset: 'openai', base_url: p.url, api_key: secret }, 201);
        assert.match(made.note, /instead of the one of that name that the environment configures/);
        assert.equal((await entry(h, 'openai')).source, 'stored');
        const gone = await admin(h, 'DELETE', '/api/providers/openai');
        assert.match(gone.note, /environment configures counts again/);
        assert.equal((await entry(h, 'openai')).source, 'environment');
        refused(await h.socket('DELETE', '/api/providers/openai'), 409, 'PROVIDER_NOT_STORED', /comes from the environment/);
        refused(await h.socket('DELETE', '/api/providers/nobody'), 404, 'PROVIDER_NOT_FOUND', /configured are: /);
    });

    test('a provider at the own address is refused instead of waiting for itself', async () => {
        const name = unique('self');
        await admin(h, 'POST', '/api/providers', { preset: 'generic-openai', name, base_url: `${h.url}/v1`, api_key: key.key, model: 'one' });
        for (const route of ['/sdk/llm/chat', '/sdk/llm/chat/stream']) {
            const { reason } = refused(await key.call('POST', route, { messages: [{ role: 'user', content: 'Who?' }], provider: name }), 502, 'LLM_ERROR');
            assert.equal(reason, 'CONNECT_FAILED');
        }
        const tried = await admin(h, 'POST', `/api/providers/${name}/test`, {});
        assert.match(tried.text, /is this service itself/);
        await admin(h, 'DELETE', `/api/providers/${name}`);
    });

    test('a short key is not shown in part', async () => {
        const name = unique('short');
        await admin(h, 'POST', '/api/providers', generic(p, { name, api_key: 'abc4' }));
        assert.equal((await entry(h, name)).key, '****');
    });

    test('parameters of an address are not shown', async () => {
        const name = unique('url');
        await admin(h, 'POST', '/api/providers', generic(p, { name, base_url: `${p.url}?token=hidden-in-url` }));
        assert.equal((await entry(h, name)).base_url, `${p.url}?****`);
        await answered(key.call, { provider: name });
        assert.match(p.last().path, /token=hidden-in-url/);
    });

    const base = { preset: 'generic-openai', name: 'x', base_url: 'http://127.0.0.1:1/v1' };
    const bad = [
        ['no preset', { base_url: 'http://127.0.0.1:1/v1' }, 'preset'],
        ['a preset nobody knows', { preset: 'acme' }, 'preset'],
        ['no key where one is needed', { preset: 'anthropic' }, 'api_key'],
        ['no address where one is needed', { preset: 'azure', api_key: 'k' }, 'base_url'],
        ['an address that is none', { ...base, base_url: 'nonsense' }, 'base_url'],
        ['an address of another scheme', { ...base, base_url: 'file:///etc/passwd' }, 'base_url'],
        ['a password in the address', { ...base, base_url: 'http://a:b@127.0.0.1/v1' }, 'base_url'],
        ['a key of two words', { ...base, api_key: 'a b' }, 'api_key'],
        ['a key with a line break', { ...base, api_key: 'a\nb' }, 'api_key'],
        ['a name with a comma', { ...base, name: 'a,b' }, 'name'],
        ['the name of the built-in embeddings', { ...base, name: 'builtin' }, 'name'],
        ['the name of a route', { ...base, name: 'default' }, 'name'],
        ['a long name', { ...base, name: 'x'.repeat(65) }, 'name'],
        ['a header of no name', { ...base, headers: { 'a b': 'x' } }, 'headers.a b'],
        ['a header of HTTP itself', { ...base, headers: { Host: 'x' } }, 'headers.Host'],
        ['a header on two lines', { ...base, headers: { a: 'x\r\nb: y' } }, 'headers.a'],
        ['too many headers', { ...base, headers: Object.fromEntries(Array.from({ length: 21 }, (_, n) => [`h${n}`, 'x'])) }, 'headers'],
        ['a model without a name', { ...base, models: [''] }, 'models'],
        ['too many models', { ...base, models: Array.from({ length: 201 }, (_, n) => `m${n}`) }, 'models'],
    ];
    for (const [what, body, field] of bad)
        test(`${what} is refused by field and rule`, async () => {
            refusedFields(await h.socket('POST', '/api/providers', body), field);
        });

    test('every broken field is told at once', async () => {
        refusedFields(await h.socket('POST', '/api/providers', { preset: 'azure', name: '-', headers: { Host: 'x' } }), 'name', 'api_key', 'base_url', 'headers.Host');
    });

    test('as many headers, models and characters as the limits say', async () => {
        const name = 'x'.repeat(64);
        await admin(h, 'POST', '/api/providers', generic(p, { name, models: Array.from({ length: 200 }, (_, n) => `m${n}`), api_key: 'k'.repeat(8192),
            headers: Object.fromEntries(Array.from({ length: 20 }, (_, n) => [`h${n}`, 'x'])) }), 201);
        await answered(key.call, { provider: name });
        refusedFields(await h.socket('POST', '/api/providers', { ...base, api_key: 'k'.repeat(8193) }), 'api_key');
    });

    test('only the administrator may look and change', async () => {
        for (const [method, path] of [['GET', '/api/providers'], ['POST', '/api/providers'], ['DELETE', '/api/providers/mine'], ['POST', '/api/providers/mine/test']])
            refused(await key.call(method, path, method === 'POST' ? {} : undefined), 401, 'ADMIN_REQUIRED');
    });

    test('the presets say what each needs', async () => {
        const { presets } = await admin(h, 'GET', '/api/providers/presets');
        const by = Object.fromEntries(presets.map((one) => [one.id, one]));
        assert.ok(presets.length >= 38);
        assert.deepEqual(by.openai.needs, ['api_key']);
        assert.deepEqual(by.azure.needs, ['base_url', 'api_key']);
        assert.deepEqual(by.ollama.needs, []);
        assert.equal(by.voyageai.can_chat, false);
        assert.ok(by.bedrock.variables.includes('AWS_BEDROCK_LLM_REGION'));
    });
});

test('as many providers as the limit says', async (t) => {
    const h = await startHearth({ t });
    const body = (name) => ({ preset: 'ollama', name, base_url: 'http://127.0.0.1:1' });
    for (let n = 0; n < 50; n++)
        await admin(h, 'POST', '/api/providers', body(`p${n}`), 201);
    refused(await h.socket('POST', '/api/providers', body('one-more')), 409, 'TOO_MANY_ACCOUNTS', /There are 50 providers already/);
    await admin(h, 'POST', '/api/providers', body('p7'), 201);
});

test('a model that fails rests, its provider does not, until its test succeeds, which is counted as use', async (t) => {
    const p = await provider('tired', ['one', 'broken']);
    const h = await startHearth({ t, settings: { 'llm.rest_after': 2, 'llm.retries': 0 } });
    const key = await newKey(h);
    const metric = async (of) => Number((await h.api('GET', '/metrics')).text.match(new RegExp(`hearth_llm_resting\\{of="${of}"\\} (\\d+)`))[1]);
    await admin(h, 'POST', '/api/providers', generic(p));
    for (let i = 0; i < 2; i++)
        refused(await chat(key.call, { model: 'broken' }), 502, 'LLM_ERROR');
    const shown = await entry(h, 'tired');
    assert.deepEqual([shown.state, shown.resting_models], ['ok', ['broken']]);
    assert.deepEqual([await metric('account'), await metric('model')], [0, 1]);
    const asked = p.asked.length;
    const body = refused(await chat(key.call, { model: 'broken' }), 503, 'PROVIDER_UNAVAILABLE', /^The model broken of tired has failed several times in a row and rests; try again in \d+ seconds\.$/);
    assert.equal(body.code, 'PROVIDER_UNAVAILABLE');
    refused(await key.call('POST', '/sdk/llm/chat/stream', { messages: [{ role: 'user', content: 'Who?' }], model: 'broken' }), 503, 'PROVIDER_UNAVAILABLE', /model broken of tired/);
    assert.equal(p.asked.length, asked, 'a model that rests is not asked');
    assert.equal(await answered(key.call), 'tired/one');
    const { checks } = await admin(h, 'GET', '/api/doctor');
    assert.ok(checks.some((one) => !one.ok && one.text === 'the model broken of tired has failed several times in a row and rests'));
    assert.match((await h.cli('provider', 'list')).stdout, /rests +broken of tired/);
    const failed = await admin(h, 'POST', '/api/providers/tired/test', { model: 'broken' });
    assert.deepEqual([failed.works, failed.text], [false, 'tired fails (503): broken']);
    assert.equal((await admin(h, 'POST', '/api/providers/tired/test')).works, true);
    assert.deepEqual((await entry(h, 'tired')).resting_models, ['broken'], 'another model\'s success wakes it not');
    p.mend();
    assert.equal((await admin(h, 'POST', '/api/providers/tired/test', { model: 'broken' })).works, true);
    assert.deepEqual((await entry(h, 'tired')).resting_models, []);
    assert.equal(await answered(key.call, { model: 'broken' }), 'tired/broken');
    assert.equal((await admin(h, 'POST', '/api/providers/tired/test', { capability: 'embed', model: 'vec' })).works, true);
    const { usage } = await admin(h, 'GET', '/api/usage?group=kind');
    assert.deepEqual(Object.fromEntries(usage.map((one) => [one.kind, one.requests])), { chat: 7, embed: 1 }, 'requests while it rested came to no provider');
});

test('an embedding model that fails rests alone', async (t) => {
    const p = await provider('vague');
    const h = await startHearth({ t, settings: { 'llm.rest_after': 1, 'llm.retries': 0 } });
    const key = await newKey(h);
    await admin(h, 'POST', '/api/providers', generic(p));
    const embed = (model) => key.call('POST', '/sdk/llm/embed', { input: 'x', provider: 'vague', model });
    refused(await embed('broken'), 502, 'LLM_ERROR');
    refused(await embed('broken'), 503, 'PROVIDER_UNAVAILABLE', /The model broken of vague/);
    assert.equal((await embed('vec')).status, 200);
    assert.equal(await answered(key.call), 'vague/one');
});

test('a provider that cannot be reached rests with all its models', async (t) => {
    const p = await provider('gone');
    const h = await startHearth({ t, settings: { 'llm.rest_after': 1, 'llm.retries': 0 } });
    const key = await newKey(h);
    await admin(h, 'POST', '/api/providers', generic(p));
    p.close();
    refused(await chat(key.call), 502, 'LLM_ERROR');
    const shown = await entry(h, 'gone');
    assert.deepEqual([shown.state, shown.resting_models], ['resting', []]);
    refused(await chat(key.call, { model: 'two' }), 503, 'PROVIDER_UNAVAILABLE', /^gone has failed/);
});

// ---- lists ----

describe('the lists of providers', () => {
    let h, key, first, second;
    const lists = async (call = key.call) => {
        const { llm, embedding } = (await call('GET', '/sdk/llm/providers')).body;
        assert.deepEqual((await call('GET', '/sdk/llm/providers/chat')).body.providers, llm);
        assert.deepEqual((await call('GET', '/sdk/llm/providers/embed')).body.providers, embedding);
        const short = (list) => list.map((one) => `${one.provider}: ${one.models.map((model) => model.id).join(' ')}`);
        return { llm: short(llm), embedding: short(embedding).map((one) => one.replace(/lexical\S*/, 'lexical')) };
    };
    before(async () => {
        first = await provider('first', ['one', 'two', 'nomic-embed-text']);
        second = await provider('second', ['three', 'four', 'bge-m3', 'shared']);
        h = await startHearth();
        key = await newKey(h);
        await admin(h, 'POST', '/api/providers', generic(first, { model: 'two' }));
        await admin(h, 'POST', '/api/providers', generic(second, { model: 'four', embed_model: 'own-vectors' }));
    });
    after(() => h?.stop());

    test('the own model stands first, embedding models stand in their list alone', async () => {
        const { llm, embedding } = await lists();
        assert.deepEqual(llm, ['first: two one', 'second: four three shared']);
        assert.deepEqual(embedding.toSorted(), ['builtin: lexical', 'first: nomic-embed-text', 'second: own-vectors bge-m3'].toSorted());
    });

    test('the default provider stands first in both', async () => {
        await admin(h, 'POST', '/api/providers/second/default', {});
        await admin(h, 'POST', '/api/providers/first/default', { capability: 'embed', model: 'nomic-embed-text' });
        let told = await lists();
        assert.deepEqual([told.llm[0], told.embedding[0]], ['second: four three shared', 'first: nomic-embed-text']);
        await admin(h, 'POST', '/api/providers/builtin/default', { capability: 'embed' });
        told = await lists();
        assert.deepEqual([told.llm[0], told.embedding[0]], ['second: four three shared', 'builtin: lexical']);
        const app = await newApp(h, {}, ['llm.providers']);
        await admin(h, 'POST', '/api/providers/first/default', { app });
        await admin(h, 'POST', '/api/providers/second/default', { app, capability: 'embed' });
        told = await lists(h.asApp(app));
        assert.deepEqual([told.llm[0], told.embedding[0]], ['first: two one', 'second: own-vectors bge-m3'], 'an app\'s own');
    });

    test('a model alone finds its provider', async () => {
        await admin(h, 'POST', '/api/providers/first/default', {});
        await admin(h, 'POST', '/api/providers/builtin/default', { capability: 'embed' });
        for (const [model, who] of [['three', 'second'], ['four', 'second'], ['one', 'first'], ['two', 'first'], ['unheard-of', 'first']])
            assert.equal(await answered(key.call, { model }), `${who}/${model}`);
        const streamed = await key.call('POST', '/sdk/llm/chat/stream', { messages: [{ role: 'user', content: 'Who?' }], model: 'shared' });
        assert.equal(streamed.headers['x-hearth-provider'], 'second', streamed.text);
        const embed = async (model) => (await key.call('POST', '/sdk/llm/embed', { input: 'x', model })).body.provider;
        assert.deepEqual([await embed('own-vectors'), await embed('bge-m3'), await embed('nomic-embed-text')], ['second', 'second', 'first']);
        refused(await key.call('POST', '/sdk/llm/embed', { input: 'x', model: 'unheard-of' }), 400, 'INVALID_MODEL');
        const app = await newApp(h, {}, ['llm.chat']);
        await admin(h, 'POST', '/api/providers/second/default', { app });
        assert.equal(await answered(h.asApp(app), { model: 'one' }), 'first/one');
        assert.equal(await answered(h.asApp(app), { model: 'unheard-of' }), 'second/unheard-of');
    });

    test('what is set up for embeddings alone has no place among the chats', async () => {
        const p = await provider('vectors-only', ['bge-large']);
        await admin(h, 'POST', '/api/providers', generic(p, { model: undefined, embed_model: 'bge-large' }));
        const { llm, embedding } = await lists();
        assert.ok(!llm.some((one) => one.startsWith('vectors-only')), llm.join());
        assert.ok(embedding.includes('vectors-only: bge-large'));
    });
});

describe('the first provider with an embedding model', () => {
    const setting = async (h) => (await listed(h)).defaults.embed;

    test('makes the embeddings while nothing is embedded yet, and says so', async (t) => {
        const p = await provider('vec'), q = await provider('later');
        const h = await startHearth({ t });
        assert.equal((await admin(h, 'POST', '/api/providers', generic(p))).note, null);
        assert.equal((await setting(h)).provider, 'builtin');
        const { note } = await admin(h, 'POST', '/api/providers', generic(p, { embed_model: 'vec-1' }));
        assert.match(note, /^Nothing is embedded yet: embeddings that name no provider are made by vec from now on\.$/);
        assert.equal((await setting(h)).provider, 'vec');
        const key = await newKey(h);
        const { body } = await key.call('POST', '/sdk/llm/embed', { input: 'x' });
        assert.deepEqual([body.provider, body.model], ['vec', 'vec-1']);
        assert.equal((await admin(h, 'POST', '/api/providers', generic(q, { embed_model: 'vec-2' }))).note, null, 'what a person or the first one has set stays');
        assert.equal((await setting(h)).provider, 'vec');
    });

    test('leaves them where they are once something is embedded', async (t) => {
        const p = await provider('vec');
        const h = await startHearth({ t });
        const key = await newKey(h);
        assert.equal((await key.call('POST', '/sdk/llm/embed', { input: 'x' })).body.provider, 'builtin');
        const result = await h.cli('provider', 'add', 'generic-openai', '--name', 'vec', '--base-url', p.url, '--embed-model', 'vec-1');
        assert.equal(result.code, 0, result.stderr);
        assert.match(result.stdout, /still made by builtin, which has made some already; `hearth provider default vec --for embed` changes that\./);
        assert.equal((await setting(h)).provider, 'builtin');
    });

    test('leaves alone what a person has chosen', async (t) => {
        const p = await provider('vec');
        const h = await startHearth({ t, settings: { 'embed.provider': 'builtin' } });
        assert.equal((await admin(h, 'POST', '/api/providers', generic(p, { embed_model: 'vec-1' }))).note, null);
        assert.equal((await setting(h)).provider, 'builtin');
    });
});

test('a provider of a kind that this version does not know is left out and shown', async (t) => {
    const p = await provider('newer');
    const h = await startHearth({ t });
    await admin(h, 'POST', '/api/providers', generic(p));
    await h.terminate();
    await sqlite(storeFile(h), "UPDATE provider_accounts SET preset = 'tomorrow'");
    await h.start();
    const shown = await entry(h, 'newer');
    assert.deepEqual([shown.state, shown.reason], ['unusable', 'newer is of a kind that this version does not know: tomorrow.']);
    await admin(h, 'DELETE', '/api/providers/newer');
    assert.deepEqual((await listed(h)).providers, []);
});

// ---- secrets ----

function everyFile(folder) {
    return readdirSync(folder).map((name) => join(folder, name)).flatMap((path) => statSync(path).isDirectory() ? everyFile(path) : statSync(path).isFile() ? [path] : []);
}

test('keys and headers are in no file, no log, no answer, no audit entry and no backup as they are', async (t) => {
    const p = await provider('leak');
    const h = await startHearth({ t, settings: { 'log.level': 'debug' } });
    const key = await newKey(h);
    const answers = [];
    const ask = async (method, path, body) => { answers.push((await h.socket(method, path, body)).text); };
    await ask('POST', '/api/providers', generic(p, { api_key: secret, base_url: `${p.url}?token=hidden-in-url`, headers: { 'X-Org': headerSecret } }));
    answers.push((await chat(key.call)).text);
    await ask('POST', '/api/providers/leak/default', { model: 'one' });
    await ask('POST', '/api/providers/leak/test', {});
    await ask('POST', '/api/providers', { preset: 'openai', name: '-', api_key: `${secret} `, headers: { Host: headerSecret } });
    for (const path of ['/api/providers', '/api/audit', '/api/settings', '/api/doctor', '/metrics', '/api/routes'])
        await ask('GET', path);
    const backup = join(h.home, 'backup.tar.gz');
    await ask('POST', '/api/backup', { path: backup });
    await h.terminate();
    const places = [...everyFile(h.dataDir).map((path) => [path, readFileSync(path)]), ['the backup', gunzipSync(readFileSync(backup))],
        ['the log', Buffer.from(h.log.join('\n'))], ['the answers', Buffer.from(answers.join('\n'))]];
    assert.ok(places.some(([path]) => path.endsWith('hearth.db')));
    for (const [where, bytes] of places)
        for (const word of [secret, headerSecret, 'hidden-in-url'])
            assert.equal(bytes.includes(word), false, `${word} stands in ${where}`);
    await h.start();
    assert.equal(await answered(key.call), 'leak/one');
    assert.equal(p.last().headers.authorization, `Bearer ${secret}`);
});

test('a database whose master.key is another one leaves its providers out and says so', async (t) => {
    const p = await provider('sealed');
    const h = await startHearth({ t });
    await admin(h, 'POST', '/api/providers', generic(p, { api_key: secret }));
    await h.terminate();
    h.file('data/master.key', createHash('sha256').update('another').digest());
    assert.ok(h.dataDir.endsWith('data'), h.dataDir);
    await h.start();
    await h.logged(/stored providers that cannot be used: 1/);
    const shown = await entry(h, 'sealed');
    assert.equal(shown.state, 'unusable');
    assert.match(shown.reason, /sealed under another master\.key/);
    const { checks } = await admin(h, 'GET', '/api/doctor');
    assert.match(checks.find((one) => one.name === 'provider' && !one.ok).text, /sealed cannot be used/);
    await admin(h, 'POST', '/api/providers', generic(p, { api_key: secret }), 201);
    assert.equal((await entry(h, 'sealed')).state, 'ok');
});

test('adding, removing and choosing stand in the audit log without secrets', async (t) => {
    const p = await provider('noted');
    const h = await startHearth({ t });
    await admin(h, 'POST', '/api/providers', generic(p, { api_key: secret }));
    await admin(h, 'POST', '/api/providers/noted/default', { model: 'two' });
    await admin(h, 'DELETE', '/api/providers/default?capability=chat');
    await admin(h, 'DELETE', '/api/providers/noted');
    const { entries } = await admin(h, 'GET', '/api/audit');
    assert.deepEqual(entries.filter((one) => one.action.startsWith('provider.')).map((one) => [one.action, one.subject, one.detail]).reverse(), [
        ['provider.add', 'noted', generic(p, { api_key: '****' })],
        ['provider.default', 'noted', { capability: 'chat', model: 'two', app_id: null }],
        ['provider.default_cleared', null, { capability: 'chat', model: null, app_id: null }],
        ['provider.remove', 'noted', null],
    ]);
});

// ---- who is asked ----

describe('defaults', () => {
    let h, key, a, b;
    before(async () => {
        [a, b] = [await provider('a'), await provider('b')];
        h = await startHearth({});
        key = await newKey(h);
        await admin(h, 'POST', '/api/providers', generic(a, { embed_model: 'vec-a' }));
        await admin(h, 'POST', '/api/providers', generic(b, { embed_model: 'vec-b' }));
    });
    after(() => h?.stop());

    test('the default of chats has its provider and model', async () => {
        const set = await admin(h, 'POST', '/api/providers/b/default', { model: 'two' });
        assert.deepEqual({ ...set, success: 0 }, { success: 0, capability: 'chat', provider: 'b', model: 'two', app_id: null, note: null });
        assert.equal(await answered(key.call), 'b/two');
        assert.equal(await answered(key.call, { provider: 'b' }), 'b/two');
        assert.equal(await answered(key.call, { model: 'one' }), 'b/one');
        assert.equal(await answered(key.call, { provider: 'a' }), 'a/one');
        assert.deepEqual(await active(key.call, 'chat'), ['b']);
        assert.deepEqual((await entry(h, 'b')).default_for, ['chat']);
        await admin(h, 'POST', '/api/providers/b/default', {});
        assert.equal(await answered(key.call), 'b/one');
        assert.equal((await admin(h, 'DELETE', '/api/providers/default')).provider, 'a');
        assert.equal(await answered(key.call), 'a/one');
    });

    test('the default of embeddings is another one', async () => {
        await admin(h, 'POST', '/api/providers/b/default', { capability: 'embed' });
        const { body } = await key.call('POST', '/sdk/llm/embed', { input: 'x' });
        assert.deepEqual([body.provider, body.model], ['b', 'vec-b']);
        assert.deepEqual(await active(key.call, 'embed'), ['b']);
        assert.equal(await answered(key.call), 'a/one');
        const cleared = await admin(h, 'DELETE', '/api/providers/default?capability=embed');
        assert.equal(cleared.provider, 'builtin');
        await admin(h, 'POST', '/api/providers/builtin/default', { capability: 'embed', model: 'lexical-384' });
        refused(await h.socket('POST', '/api/providers/builtin/default', { capability: 'embed', model: 'x' }), 400, 'INVALID_MODEL');
        refused(await h.socket('POST', '/api/providers/builtin/default', {}), 404, 'PROVIDER_NOT_FOUND');
    });

    test('a provider without an embedding model is no default of embeddings until one is named', async () => {
        const bare = await provider('bare', ['one', 'text-embedding-x']);
        await admin(h, 'POST', '/api/providers', generic(bare));
        const to = (model) => h.socket('POST', '/api/providers/bare/default', { capability: 'embed', model });
        refused(await to(undefined), 400, 'INVALID_MODEL', /^bare has no embedding model of its own; name the one to use\.$/);
        assert.equal((await to('text-embedding-x')).status, 200);
        await admin(h, 'DELETE', '/api/providers/default?capability=embed');
        await admin(h, 'DELETE', '/api/providers/bare');
    });

    test('a model of embeddings is looked up among those, not among the models that chat', async () => {
        const to = (name, model) => h.socket('POST', `/api/providers/${name}/default`, { capability: 'embed', model });
        assert.equal((await to('b', 'vec-b')).body.model, 'vec-b');
        const untold = await to('b', 'bge-m3');
        assert.equal(untold.status, 200, untold.text);
        assert.match(untold.body.note, /^b gave no list of its models for embeddings, so nobody has looked whether it has this one; `hearth provider test b --for embed` does\.$/);
        const mixed = await provider('mixed', ['one', 'text-embedding-x']);
        await admin(h, 'POST', '/api/providers', generic(mixed));
        assert.equal((await to('mixed', 'text-embedding-x')).status, 200);
        refused(await to('mixed', 'bge-m3'), 400, 'INVALID_MODEL', /^mixed has no model bge-m3; it has: text-embedding-x\.$/);
        await admin(h, 'DELETE', '/api/providers/default?capability=embed');
        await admin(h, 'DELETE', '/api/providers/mixed');
    });

    test('the built-in embeddings do not chat, and say so', async () => {
        refused(await chat(key.call, { provider: 'builtin' }), 400, 'PROVIDER_UNAVAILABLE', /^The provider builtin makes embeddings and has no chats; `hearth provider list` shows those that have\.$/);
    });

    test('an unknown provider, model, capability or app is refused', async () => {
        refused(await h.socket('POST', '/api/providers/nobody/default', {}), 404, 'PROVIDER_NOT_FOUND', /The provider nobody is not configured; configured are: a, b/);
        refused(await h.socket('POST', '/api/providers/a/default', { model: 'three' }), 400, 'INVALID_MODEL', /^a has no model three; it has: one, two\.$/);
        refusedFields(await h.socket('POST', '/api/providers/a/default', { capability: 'speak' }), 'capability');
        refused(await h.socket('POST', '/api/providers/a/default', { app: 'nobody' }), 404, 'APP_NOT_FOUND');
        assert.equal((await listed(h)).defaults.chat.origin, 'order');
    });

    test('a model that nobody can look up is taken with a note', async () => {
        const mute = await provider('mute', []);
        await admin(h, 'POST', '/api/providers', generic(mute));
        const set = await admin(h, 'POST', '/api/providers/mute/default', { model: 'three' });
        assert.match(set.note, /mute gave no list of its models/);
        await admin(h, 'DELETE', '/api/providers/mute');
        await admin(h, 'DELETE', '/api/providers/default');
    });

    test('an app has its own, for chats and for embeddings', async () => {
        const name = unique('app');
        const id = await newApp(h, { name }, ['llm.chat', 'llm.embed', 'llm.providers']);
        const app = h.asApp(id);
        assert.equal((await admin(h, 'POST', '/api/providers/b/default', { app: name, model: 'two' })).app_id, id);
        await admin(h, 'POST', '/api/providers/a/default', { app: id, capability: 'embed' });
        assert.equal(await answered(app), 'b/two');
        assert.equal(await answered(app, { provider: 'a' }), 'a/one');
        assert.equal(await answered(key.call), 'a/one');
        assert.equal((await app('POST', '/sdk/llm/embed', { input: 'x' })).body.provider, 'a');
        assert.equal((await key.call('POST', '/sdk/llm/embed', { input: 'x' })).body.provider, 'builtin');
        assert.deepEqual([await active(app, 'chat'), await active(app, 'embed')], [['b'], ['a']]);
        assert.deepEqual([await active(key.call, 'chat'), await active(key.call, 'embed')], [['a'], ['builtin']]);
        const both = (await app('GET', '/sdk/llm/providers')).body;
        assert.equal(both.llm.find((one) => one.active).provider, 'b');
        assert.deepEqual((await listed(h)).apps, [
            { app_id: id, app: name, capability: 'chat', provider: 'b', model: 'two', configured: true },
            { app_id: id, app: name, capability: 'embed', provider: 'a', model: null, configured: true },
        ]);
        const withKey = h.as({ authorization: `Bearer ${key.key}`, 'x-app-id': id });
        assert.equal(await answered(withKey), 'b/two');
        assert.equal((await admin(h, 'DELETE', `/api/providers/default?app=${name}`)).provider, 'a');
        assert.equal(await answered(app), 'a/one');
        await admin(h, 'DELETE', `/api/apps/${id}`);
        assert.deepEqual((await listed(h)).apps, []);
    });

    test('an app whose provider failed is not sent to another one', async () => {
        const id = await newApp(h, {}, ['llm.chat']);
        const broken = await provider('broken', []);
        await admin(h, 'POST', '/api/providers', generic(broken, { model: 'broken' }));
        await admin(h, 'PUT', '/api/settings/llm.fallbacks', { value: 'a' });
        await admin(h, 'PUT', '/api/settings/llm.retries', { value: 0 });
        await admin(h, 'POST', '/api/providers/broken/default', { app: id });
        refused(await chat(h.asApp(id)), 502, 'LLM_ERROR', /broken/);
        await admin(h, 'POST', '/api/providers/broken/default', {});
        assert.equal(await answered(key.call), 'a/one');
        for (const path of ['/api/settings/llm.fallbacks', '/api/providers/default', '/api/providers/broken', `/api/apps/${id}`])
            await admin(h, 'DELETE', path);
    });
});

test('what names a removed provider is told, passed over or refused', async (t) => {
    const [a, b] = [await provider('a'), await provider('b')];
    const h = await startHearth({ t });
    const key = await newKey(h);
    const app = await newApp(h, { name: 'reader' }, ['llm.chat', 'llm.embed']);
    for (const one of [a, b])
        await admin(h, 'POST', '/api/providers', generic(one, { embed_model: 'vec' }));
    await admin(h, 'POST', '/api/providers/a/default', {});
    await admin(h, 'POST', '/api/providers/a/default', { capability: 'embed' });
    await admin(h, 'POST', '/api/providers/a/default', { app });
    await admin(h, 'PUT', '/api/settings/llm.fallbacks', { value: 'a,b' });
    const fine = await admin(h, 'GET', '/api/doctor');
    assert.deepEqual(fine.checks.filter((one) => one.name === 'provider'), []);

    const { note } = await admin(h, 'DELETE', '/api/providers/a');
    for (const words of [/default of chats: b is asked now/, /requests for them are refused/, /llm\.fallbacks still names it/, /Set to use it, .*: reader\./])
        assert.match(note, words);
    assert.equal(await answered(key.call), 'b/one');
    refused(await chat(h.asApp(app)), 400, 'PROVIDER_UNAVAILABLE', /The app The reader is set to use the provider a, which is not configured/);
    refused(await key.call('POST', '/sdk/llm/embed', { input: 'x' }), 400, 'PROVIDER_UNAVAILABLE');
    const shown = await listed(h);
    assert.deepEqual(shown.fallbacks, [{ provider: 'a', configured: false }, { provider: 'b', configured: true }]);
    assert.equal(shown.apps[0].configured, false);
    const { checks } = await admin(h, 'GET', '/api/doctor');
    assert.deepEqual(checks.filter((one) => one.name === 'provider').map((one) => one.text), [
        'llm.default_provider names a, which is not configured', 'embed.provider names a, which is not configured',
        'llm.fallbacks names a, which is not configured', 'the app reader names a, which is not configured']);

    await admin(h, 'POST', '/api/providers', generic(a, { embed_model: 'vec' }));
    assert.equal(await answered(h.asApp(app)), 'a/one');
    assert.equal((await key.call('POST', '/sdk/llm/embed', { input: 'x' })).body.provider, 'a');
});

test('providers, defaults and choices are there after a restart', async (t) => {
    const p = await provider('kept');
    const h = await startHearth({ t });
    const app = await newApp(h, {}, ['llm.chat']);
    await admin(h, 'POST', '/api/providers', generic(p, { api_key: secret, models: ['hand'] }));
    await admin(h, 'POST', '/api/providers/kept/default', { model: 'two' });
    await admin(h, 'POST', '/api/providers/kept/default', { model: 'one', app });
    const beforeRestart = await listed(h);
    await h.kill();
    await h.start();
    assert.deepEqual(await listed(h), beforeRestart);
    assert.equal(await answered(h.asApp(app)), 'kept/one');
    assert.equal((await sqlite(storeFile(h), 'SELECT count(*) AS n FROM provider_accounts'))[0].n, 1);
});
