// Addresses of images in chats. A model server on this machine would fetch them itself, around the guard: Hearth fetches them and sends the bytes.
// A provider elsewhere gets the address; here it is a name that only the proxy of the environment (the same double) can reach.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import http from 'node:http';
import net from 'node:net';
import { after, before, describe, test } from 'node:test';
import { startHearth } from '../api/harness.mjs';
import { newKey, refused } from '../api/kit.mjs';
import { envOf, startRecorded } from './recorded.mjs';

const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const dataUrl = `data:image/png;base64,${png}`;
const elsewhere = 'http://models.example';

let upstream, images, inner, near, far;

async function listen(server) {
    server.listen(0, '127.0.0.1').unref();
    await once(server, 'listening');
    return server.address().port;
}

// A server of images; asked: the paths.
async function startImages() {
    const asked = [];
    const server = http.createServer((incoming, outgoing) => {
        asked.push(incoming.url);
        if (incoming.url === '/inward')
            outgoing.writeHead(302, { location: inner.url }).end();
        else if (incoming.url === '/page')
            outgoing.writeHead(200, { 'content-type': 'text/html' }).end('<h1>router</h1>');
        else if (incoming.url === '/named.png')
            outgoing.writeHead(200, { 'content-type': 'application/pdf' }).end('%PDF-1.4');
        else
            outgoing.writeHead(200, { 'content-type': 'application/octet-stream' }).end(Buffer.from(png, 'base64'));
    });
    const host = `127.0.0.1:${await listen(server)}`;
    return { asked, host, url: `http://${host}`, stop: () => { server.closeAllConnections(); server.close(); } };
}

// A listener that nobody may reach.
async function startInner() {
    const state = { nConnections: 0 };
    const server = net.createServer((socket) => { state.nConnections++; socket.destroy(); });
    return Object.assign(state, { url: `http://127.0.0.1:${await listen(server)}/latest`, stop: () => server.close() });
}

async function open(env, settings = {}, t) {
    const h = await startHearth({ t, env, settings: { 'llm.rest_after': 0, 'llm.retries': 0, 'net.private_hosts': images.host, ...settings } });
    return { h, call: (await newKey(h)).call };
}

before(async () => {
    upstream = await startRecorded();
    images = await startImages();
    inner = await startInner();
    upstream.say('m', (wire, body) => (body.stream ? [wire.text('Seen.'), wire.end([1, 1])] : [wire.whole('Seen.', [1, 1])]));
    near = await open(envOf(upstream.url));
    far = await open({ ...envOf(elsewhere), http_proxy: upstream.url });
});
after(async () => {
    await near?.h.stop();
    await far?.h.stop();
    for (const one of [upstream, images, inner])
        one?.stop();
});

const sent = () => upstream.askedFor('m').at(-1).body;
const sdk = (url, detail) => [{ role: 'user', content: [{ type: 'text', text: 'look' }, { type: 'image_url', image_url: { url, ...detail && { detail } } }] }];

// How each face of the service names an image by address.
const faces = {
    '/sdk/llm/chat': (provider, url, detail) => ({ provider, model: 'm', messages: sdk(url, detail) }),
    '/sdk/llm/chat/stream': (provider, url, detail) => ({ provider, model: 'm', messages: sdk(url, detail) }),
    '/v1/chat/completions': (provider, url, detail) => ({ model: `${provider}/m`, messages: sdk(url, detail) }),
    '/v1/responses': (provider, url, detail) => ({ model: `${provider}/m`, input: [{ role: 'user', content: [{ type: 'input_image', image_url: url, ...detail && { detail } }] }] }),
    '/v1/messages': (provider, url) => ({ model: `${provider}/m`, max_tokens: 9, messages: [{ role: 'user', content: [{ type: 'image', source: { type: 'url', url } }] }] }),
};

// What each protocol calls the image of the last message.
const imageSent = {
    openai: () => sent().input.at(-1).content.at(-1),
    anthropic: () => sent().messages.at(-1).content.at(-1),
    ollama: () => sent().messages.at(-1).images,
    'generic-openai': () => sent().messages.at(-1).content.at(-1),
};
const asData = (detail) => ({
    openai: { type: 'input_image', image_url: dataUrl, ...detail && { detail } },
    anthropic: { type: 'image', source: { type: 'base64', media_type: 'image/png', data: png } },
    ollama: [png],
    'generic-openai': { type: 'image_url', image_url: { url: dataUrl, ...detail && { detail } } },
});
const asAddress = (url, detail) => ({
    openai: { type: 'input_image', image_url: url, ...detail && { detail } },
    anthropic: { type: 'image', source: { type: 'url', url } },
    'generic-openai': { type: 'image_url', image_url: { url, ...detail && { detail } } },
});

for (const [path, body] of Object.entries(faces))
    describe(path, () => {
        const detail = path === '/v1/messages' ? undefined : 'low';

        test('a model server on this machine gets the image, not its address', async () => {
            for (const provider of Object.keys(imageSent)) {
                images.asked.length = 0;
                const reply = await near.call('POST', path, body(provider, `${images.url}/x`, detail));
                assert.equal(reply.status, 200, reply.text);
                assert.deepEqual(imageSent[provider](), asData(detail)[provider], provider);
                assert.deepEqual(images.asked, ['/x']);
            }
        });

        test('an address that the guard refuses is told with its place, and nobody connects to it', async () => {
            const n = upstream.asked.length;
            const addresses = [inner.url, 'http://169.254.169.254/latest/meta-data', `${images.url}/inward`, `${near.h.url}/healthz`];
            for (const address of addresses) {
                const reply = await near.call('POST', path, body('generic-openai', address, detail));
                assert.equal(reply.status, 400, reply.text);
                assert.match(reply.text, /messages\[0\]\.content\[\d\]/);
                assert.match(reply.text, /could not be fetched/);
            }
            assert.equal(inner.nConnections, 0);
            assert.equal(upstream.asked.length, n);
        });

        test('what is no image does not go to the model', async () => {
            const n = upstream.asked.length;
            for (const where of ['/page', '/named.png']) {
                const reply = await near.call('POST', path, body('generic-openai', images.url + where, detail));
                assert.equal(reply.status, 400, reply.text);
                assert.match(reply.text, /must be an image/);
                assert.doesNotMatch(reply.text, /router/);
            }
            assert.equal(upstream.asked.length, n);
        });

        test('only http, https and data are taken', async () => {
            const n = upstream.asked.length;
            for (const one of [near, far])
                for (const url of ['file:///etc/passwd', 'FILE:///etc/passwd', ' http://h.example/x.png', 'ftp://h.example/x.png', '/etc/passwd', 'data:text/html;base64,QUJD'])
                    assert.equal((await one.call('POST', path, body('generic-openai', url, detail))).status, 400, url);
            assert.equal(upstream.asked.length, n);
        });

        test('a provider elsewhere gets the address', async () => {
            images.asked.length = 0;
            for (const provider of ['openai', 'anthropic', 'generic-openai']) {
                const reply = await far.call('POST', path, body(provider, `${images.url}/x`, detail));
                assert.equal(reply.status, 200, reply.text);
                assert.deepEqual(imageSent[provider](), asAddress(`${images.url}/x`, detail)[provider], provider);
            }
            assert.deepEqual(images.asked, []);
        });
    });

test('an address on Ollama\'s own face is no image', async () => {
    for (const image of ['file:///etc/passwd', inner.url])
        refused(await near.call('POST', '/api/chat', { model: 'ollama/m', messages: [{ role: 'user', content: 'look', images: [image] }] }), 400, 'VALIDATION_ERROR', /must be a PNG/);
    assert.equal(inner.nConnections, 0);
});

test('the refusal is FILE_NOT_FETCHED with the rule', async () => {
    const told = refused(await near.call('POST', '/sdk/llm/chat', faces['/sdk/llm/chat']('generic-openai', 'http://169.254.169.254/latest')), 400, 'FILE_NOT_FETCHED', /cloud metadata/);
    assert.equal(told.reason, 'ADDRESS_REFUSED');
});

test('files by address too are fetched for a server on this machine, whatever its protocol takes', async () => {
    const block = (file_url) => [{ role: 'user', content: [{ type: 'input_file', file_url }] }];
    const reply = await near.call('POST', '/sdk/llm/chat', { provider: 'openai', model: 'm', messages: block(`${images.url}/named.png`) });
    assert.equal(reply.status, 200, reply.text);
    assert.deepEqual(imageSent.openai(), { type: 'input_file', filename: 'named.png', file_data: `data:application/pdf;base64,${Buffer.from('%PDF-1.4').toString('base64')}` });
    refused(await near.call('POST', '/sdk/llm/chat', { provider: 'openai', model: 'm', messages: block(inner.url) }), 400, 'FILE_NOT_FETCHED');
    assert.equal(inner.nConnections, 0);
});

test('with a fallback on this machine the image is fetched before the first provider is asked', async (t) => {
    const env = { ...envOf(elsewhere), GENERIC_OPENAI_BASE_URL: `${upstream.url}/v1`, http_proxy: upstream.url };
    const both = await open(env, { 'llm.default_provider': 'openai', 'llm.fallbacks': 'generic-openai' }, t);
    images.asked.length = 0;
    const reply = await both.call('POST', '/sdk/llm/chat', { model: 'm', messages: sdk(`${images.url}/x`) });
    assert.equal(reply.status, 200, reply.text);
    assert.deepEqual(imageSent.openai(), asData().openai);
    assert.deepEqual(images.asked, ['/x']);
});
