// Where the fuzzer of conversations begins: one real request for every route (tests/api/success.mjs), callers of each kind, and the canaries
// that nobody but their owner may see.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { admin, decide, newApp, newKey, signIn } from '../api/kit.mjs';
import { makeWorld, successOf } from '../api/success.mjs';

const permissionsOf = async (h) => (await admin(h, 'GET', '/api/permissions/known')).permissions.map((one) => one.name);

// An app whose prompt, vectors and token are canaries. They are sent again and again, so that freed memory holds them too.
async function newVictim(h, permissions) {
    const id = await newApp(h, { name: 'victim' });
    await decide(h, id, permissions);
    const call = h.asApp(id);
    const talk = async () => {
        await call('POST', '/sdk/llm/chat', { messages: [{ role: 'user', content: `canary-prompt ${'canary-prompt-filler '.repeat(200)}` }] });
        await call('POST', '/sdk/llm/vectors/upsert', { vectors: [{ id: 'canary-vector', vector: [1, 2, 3], metadata: { text: 'canary-metadata' } }] });
        await call('POST', '/sdk/auth/sync-backend-token', { token: 'canary.backend.token' });
    };
    await talk();
    return { id, talk };
}

function secretsOf(h, key, browser) {
    const master = readFileSync(join(h.dataDir, 'master.key'));
    return { always: ['canary-provider-key', master.toString('hex'), master.toString('base64'), master.toString('latin1'), key, browser.proof, browser.cookie.split('=')[1]],
        victims: ['canary-prompt', 'canary-vector', 'canary-metadata', 'canary.backend.token'] };
}

// {h, app, victim, callers: {name: headers}, requests: [{method, target, headers, body}], secrets, values}
export async function makeSource(h) {
    const world = await makeWorld(h);
    const permissions = await permissionsOf(h);
    const victim = await newVictim(h, permissions);
    const browser = await signIn(h);
    const key = await newKey(h);
    const poor = await newApp(h);
    await admin(h, 'POST', '/api/providers', { preset: 'generic-openai', name: 'canary-owner', base_url: process.env.CONVERSATION_PROVIDER, api_key: 'canary-provider-key', model: 'said-model' }, 201);
    const callers = {
        app: { 'x-app-id': world.app }, victim: { 'x-app-id': victim.id }, poor: { 'x-app-id': poor }, key: { authorization: `Bearer ${key.key}` },
        keyAsApp: { 'x-api-key': key.key, 'x-app-id': world.app }, admin: browser.headers, cookieAlone: { cookie: browser.cookie }, nobody: {},
        stranger: { 'x-app-id': '00000000-0000-4000-8000-000000000000' }, forger: { authorization: `Bearer ${'A'.repeat(43)}` },
    };
    const requests = await recordRequests(h, world, callers);
    return { h, world, victim, callers, requests, secrets: secretsOf(h, key.key, browser), values: valuesOf(h, { world, victim, key, browser, poor, requests }) };
}

// What makes each route succeed once. Requests that name their own credentials (a session to be ended) keep them.
async function recordRequests(h, world, callers) {
    const { routes } = await admin(h, 'GET', '/api/routes');
    const requests = [];
    for (const route of routes) {
        let own;
        const as = (headers) => { own = headers; return h.as(headers); };
        const spy = new Proxy(h, { get: (target, name) => name === 'as' ? as : typeof target[name] === 'function' ? target[name].bind(target) : target[name] });
        const { make, prefix } = successOf(route);
        const { path, body, call, headers } = await make({ ...world, h: spy });
        const usual = route.permission === 'admin' ? callers.admin : ['public', 'body'].includes(route.permission) ? {} : callers.app;
        requests.push({ method: route.method, target: prefix + path, credentials: { ...call ? own : usual, ...headers }, body });
    }
    assert.ok(requests.length > 100, 'every route has its request');
    return requests;
}

// Values that another service has others for, of the same length: a conversation that is kept has their names instead.
function valuesOf(h, { world, victim, key, browser, poor, requests }) {
    const values = { app: world.app, victim: victim.id, poor, key: key.key, proof: browser.proof, cookie: browser.cookie, home: h.home, port: String(h.port) };
    const known = new Set(Object.values(values));
    for (const [uuid] of JSON.stringify(requests).matchAll(/[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}/g)) {
        if (!known.has(uuid)) {
            known.add(uuid);
            values[`uuid${known.size}`] = uuid;
        }
    }
    delete values.port;
    return values;
}

export function withNames(text, values) {
    return Object.entries(values).reduce((whole, [name, value]) => whole.replaceAll(value, `{{${name}}}`), text);
}

export function withValues(text, values) {
    return text.replace(/\{\{(\w+)\}\}/g, (whole, name) => values[name] ?? '00000000-0000-4000-8000-000000000001');
}

// The bytes of one request as a well-behaved client sends it.
export function plainRequest({ method, target, credentials, body }) {
    const headers = [['host', 'localhost'], ...Object.entries(credentials)];
    const bytes = body === undefined ? undefined : Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
    if (bytes)
        headers.push(['content-type', 'application/json']);
    return { method, target, version: 'HTTP/1.1', headers, body: bytes, framing: 'length', lineEnd: '\r\n' };
}
