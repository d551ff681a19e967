// Every row of `hearth routes`: it succeeds as /openapi.json says, refuses as its permission says, knows no other method and no
// unknown id, and answers below /api when the SDK knows it (decision D2).
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { startHearth } from './harness.mjs';
import { env } from './provider.mjs';
import { admin, asEnvelope, confirming, newApp, newKey, nobodysId, refused, signIn } from './kit.mjs';
import { openSocket } from './realtime.mjs';
import { successOf, successes, makeWorld, unknownPath } from './success.mjs';

const h = await startHearth({ env });
const routes = (await admin(h, 'GET', '/api/routes')).routes;
const { body: openapi } = await h.api('GET', '/openapi.json');
let world, browser;

before(async () => {
    world = await makeWorld(h);
    browser = await signIn(h);
});
after(() => h.stop());

const named = (route) => `${route.method} ${route.path}`;
const isSpecial = (route) => ['public', 'identified', 'admin', 'body'].includes(route.permission);
const isForeign = (route) => /^\/mcp$|^\/(realtime|auth|rest)\/v1\/|^\/api\/backend\/keys$|^(\/api)?\/v1\/|^\/api\/(chat|generate|embed|embeddings|tags|ps|show|version|pull|push|create|copy|delete|blobs\/.*)$/.test(route.path);     // in another service's form
const inPlace = (path, value) => path.replace(/:\w+|\{\w+\*\}/g, value);             // of the parameters of a route
const template = (path) => path.replace(/:(\w+)|\{(\w+)\*\}/g, '{$1$2}');
const operationOf = (route) => openapi.paths[template(route.path)]?.[route.method.toLowerCase()];

// ---- schemas, made strict: no member may be undocumented ----

function closed(schema, isBranch = false) {
    if (Array.isArray(schema))
        return schema.map((one) => closed(one, isBranch));
    if (schema === null || typeof schema !== 'object')
        return schema;
    const copy = Object.fromEntries(Object.entries(schema).map(([name, value]) =>
        [name, name === 'enum' || name === 'const' || name === 'default' ? value
            : name === 'properties' ? Object.fromEntries(Object.entries(value).map(([member, one]) => [member, closed(one)]))
                : closed(value, name === 'allOf')]));
    if (schema.allOf)
        copy.unevaluatedProperties = false;
    else if (schema.properties && !isBranch)
        copy.additionalProperties = false;
    return copy;
}

const ajv = new Ajv2020({ strict: false, allErrors: true });
addFormats.default(ajv);
ajv.addSchema({ $id: 'hearth', components: openapi.components });

function checkAnswer(route, reply) {
    const answer = operationOf(route).responses[reply.status];
    assert.ok(answer, `${named(route)}: the description has no answer ${reply.status}`);
    if (answer.$ref || reply.status === 204)
        return;                         // a route that only refuses: its error has the form of errors; 204 has no body
    const type = reply.headers['content-type'].split(';')[0];
    assert.ok(answer.content && (type in answer.content || '*/*' in answer.content), `${named(route)}: ${type} is not described`);
    if (type !== 'application/json' || !answer.content[type].schema)
        return;
    const text = JSON.stringify(closed(answer.content[type].schema)).replaceAll('"#/components', '"hearth#/components');
    const validate = ajv.compile(JSON.parse(text));
    assert.ok(validate(reply.body), `${named(route)}: ${ajv.errorsText(validate.errors)}\n${reply.text.slice(0, 1000)}`);
}

function callerOf(route) {
    if (route.permission === 'admin')
        return confirming(h, browser.call);
    return ['public', 'body'].includes(route.permission) ? h.as({}) : world.call;
}

async function succeed(route) {
    const { make, prefix } = successOf(route);
    const { path, body, status = 200, type = 'application/json', call = callerOf(route), headers: more } = await make(world);
    if (type === 'text/event-stream') {
        const headers = { ...route.permission === 'admin' ? browser.headers : { 'x-app-id': world.app }, ...more };
        const stream = await h.sse(prefix + path, { method: route.method, body, headers });
        stream.close();
        return { status: stream.status, headers: stream.headers, text: '', expected: { status, type } };
    }
    if (type === 'websocket') {
        const socket = await openSocket(h, { path: prefix + path });
        socket.end();
        return { status: Number(socket.head.split(' ')[1]), headers: { 'content-type': type, 'x-request-id': /x-request-id: (\S+)/.exec(socket.head)[1] }, text: '', expected: { status, type } };
    }
    return { ...await call(route.method, prefix + path, body, more), expected: { status, type } };
}

test('the table of successes names no route that is gone', () => {
    const known = new Set(routes.map(named));
    for (const name of Object.keys(successes))
        assert.ok(known.has(name), name);
});

test('no route stands twice', () => assert.equal(new Set(routes.map(named)).size, routes.length));

test('the description has exactly the routes there are', () => {
    const described = Object.entries(openapi.paths).flatMap(([path, operations]) =>
        Object.keys(operations).map((method) => `${method.toUpperCase()} ${path}`));
    const real = new Set(routes.map((route) => named({ ...route, path: template(route.path) })));
    for (const name of described)
        assert.ok(real.has(name), `${name} is described but not there`);
    for (const route of routes)
        assert.ok(operationOf(route) || (route.path.startsWith('/api/') && real.has(`${route.method} ${template(route.path).slice(4)}`)), `${named(route)} is not described`);
});

test('the routes of the specification are there, with the permission it names', () => {
    const specified = {
        'GET /sdk/ping': 'identified', 'GET /sdk/local-apps/data-dir': 'identified', 'POST /webhooks/svc': 'body', 'GET /task/:uuid': 'api.task',
        'GET /agents': 'api.agents', 'GET /workspaces': 'api.workspaces', 'GET /workspaces/:slug/threads': 'api.threads',
        'POST /activities': 'activities.write', 'GET /activities': 'activities.read', 'GET /activities/:id': 'activities.read',
        'PATCH /activities/:id': 'activities.write', 'DELETE /activities/:id': 'activities.write', 'GET /sdk/database/config': 'database.config',
        'POST /sdk/register': 'body', 'POST /api/local-apps/request-permission': 'body', 'POST /api/external-tasks/:taskUuid/webhook': 'body',
        'POST /sdk/llm/chat': 'llm.chat', 'POST /sdk/llm/chat/stream': 'llm.chat', 'GET /sdk/llm/providers': 'llm.providers',
        'GET /sdk/tts/providers': 'identified', 'POST /sdk/tts': 'tts.generate', 'POST /sdk/tts/stream': 'tts.generate',
        'GET /sdk/llm/providers/chat': 'llm.providers', 'POST /sdk/auth/sync-backend-token': 'identified', 'GET /sdk/auth/token': 'identified',
    };
    const real = Object.fromEntries(routes.map((route) => [named(route), route.permission]));
    for (const [name, permission] of Object.entries(specified)) {
        assert.equal(real[name], permission, name);
        const [method, path] = name.split(' ');
        if (!path.startsWith('/api/'))
            assert.equal(real[`${method} /api${path}`], permission, `${name} below /api`);
    }
});

for (const route of routes) {
    test(`${named(route)} succeeds as it is described`, async () => {
        const reply = await succeed(route);
        assert.equal(reply.status, reply.expected.status, reply.text);
        if (reply.status !== 204)
            assert.equal(reply.headers['content-type'].split(';')[0], reply.expected.type);
        assert.ok(reply.headers['x-request-id']);
        if (reply.expected.type === 'application/json' && route.path !== '/openapi.json' && !isForeign(route))
            assert.equal(reply.body.success, true);
        if (reply.expected.type === 'websocket')
            return;                     // no answer but the socket
        const described = operationOf(route) ? route : { ...route, path: route.path.slice(4) };
        checkAnswer(described, reply);
    });

    if (!['public', 'body'].includes(route.permission))
        test(`${named(route)} is nobody's without credentials`, async () => {
            const path = inPlace(route.path, nobodysId);
            const code = route.permission === 'admin' ? 'ADMIN_REQUIRED' : 'MISSING_APP_ID';
            refused(await h.api(route.method, path, {}), 401, code);
            if (route.permission !== 'admin')
                refused(await h.asApp(nobodysId)(route.method, path, {}), 401, 'INVALID_APP_ID');
        });

    if (route.permission === 'admin')
        test(`${named(route)} is neither an app's nor a developer key's`, async () => {
            const path = inPlace(route.path, nobodysId);
            refused(await world.call(route.method, path, {}), 401, 'ADMIN_REQUIRED');
            refused(await (await newKey(h)).call(route.method, path, {}), 401, 'ADMIN_REQUIRED');
        });

    if (!isSpecial(route))
        test(`${named(route)} needs ${route.permission}`, async () => {
            const poor = h.asApp(await newApp(h));
            const body = refused(await poor(route.method, inPlace(route.path, nobodysId), {}), 403, 'PERMISSION_REQUIRED');
            assert.equal(body.permission, route.permission);
        });

    if (unknownPath(route))
        test(`${named(route)} knows no id that nothing has`, async () => {
            const { make } = successOf(route);
            const { body } = await make(world);
            const reply = asEnvelope(await callerOf(route)(route.method, unknownPath(route), body));
            if (reply.status === 501)
                return;                 // not done here, whatever its id
            assert.equal(reply.status, 404, reply.text);
            assert.equal(reply.body.success, false);
            assert.ok(reply.body.code.endsWith('NOT_FOUND') || reply.body.code === 'INVALID_MODEL', reply.text);
        });
}

const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];
const asPattern = (path) => new RegExp(`^${path.replace(/:\w+/g, '[^/]+').replace(/\/\{\w+\*\}/, '(/.*)?')}$`);

for (const path of new Set(routes.map((route) => route.path)))
    test(`${path} refuses other methods and says which it knows`, async () => {
        const real = inPlace(path, nobodysId);
        const known = new Set(routes.filter((route) => asPattern(route.path).test(real)).map((route) => route.method));
        for (const method of methods.filter((one) => !known.has(one))) {
            const reply = await h.api(method, real, method === 'GET' ? undefined : {});
            refused(reply, 405, 'METHOD_NOT_ALLOWED');
            assert.deepEqual(reply.headers.allow.split(', ').sort(), [...known].sort());
        }
    });

test('the check of answers finds what is undocumented, missing and of another type', () => {
    const route = routes.find((one) => named(one) === 'GET /sdk/ping');
    const headers = { 'content-type': 'application/json' };
    const good = { success: true, message: 'pong', mode: 'production', timestamp: '2026-01-01T00:00:00Z' };
    checkAnswer(route, { status: 200, headers, body: good, text: '' });
    for (const bad of [{ ...good, extra: 1 }, { ...good, mode: undefined }, { ...good, message: 1 }, { ...good, timestamp: 'noon' }])
        assert.throws(() => checkAnswer(route, { status: 200, headers, body: JSON.parse(JSON.stringify(bad)), text: '' }));
    assert.throws(() => checkAnswer(route, { status: 299, headers, body: good, text: '' }));
});
