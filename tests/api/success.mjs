// One request that succeeds for every route of the service, and the things it needs: every_route.test.mjs and bad_input.test.mjs
// walk over it. A new route needs its line here, else every_route.test.mjs fails.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { admin, decide, insert, listeningApp, newApp, newKey, nobodysId, shellAgent, signIn, silentWav, sqlite, storeFile, taskBecomes, tasksOfRow, unique } from './kit.mjs';
import { faceKeys, faceUser } from './realtime.mjs';
import { formOf, formType } from './sound.mjs';
import { accountDouble } from '../peers/account_double.mjs';
import { loginServer } from './login_server.mjs';
import { until } from './harness.mjs';
import { meta, session, stateless } from './mcp.mjs';
import { env } from './provider.mjs';

// What the requests below are about. `app` is an app with every permission.
export async function makeWorld(h) {
    const { permissions } = await admin(h, 'GET', '/api/permissions/known');
    const app = await newApp(h, { name: 'every-route', app_type: 'custom', config: { command: '/bin/sleep', args: ['600'] } });
    await decide(h, app, permissions.map((one) => one.name));
    const agent = await shellAgent(h, 'exit 0');
    await admin(h, 'POST', '/api/workspaces', { slug: 'desk', name: 'Desk' });
    return { h, app, agent, call: h.asApp(app) };
}

let hosted;
async function hostedService(w) {
    hosted ??= await accountDouble();
    await admin(w.h, 'PUT', '/api/settings/backend.account_api', { value: hosted.url });
    return hosted;
}
async function loggedIn(w) {
    await admin(w.h, 'POST', '/api/backend/account/token', { token: (await hostedService(w)).newToken() });
}

async function waitingTask(w) {
    const { body } = await w.h.api('POST', '/webhooks/svc', { event: 'trigger-agent', app_id: w.app, payload: { raw_data: { n: 1 }, agent_name: w.agent } });
    return body;
}

async function failedTask(w) {
    const { body } = await w.h.api('POST', '/webhooks/svc', { event: 'trigger-agent', app_id: w.app, payload: { raw_data: {} } });
    await w.h.api('POST', '/webhooks/svc', { event: 'task-fail', app_id: w.app, payload: { task_uuid: body.task_uuid, error: 'no' } });
    return body;
}

const taskPath = (word) => async (w) => ({ path: `/api/tasks/${(await waitingTask(w)).task_uuid}${word}`, body: {} });
const calendarPath = (word, body) => async (w) => ({ path: `/api/calendar/${(await waitingTask(w)).calendar_event_uuid}${word}`, body });
const aChat = { messages: [{ role: 'user', content: 'Say hello.' }] };      // needs the provider of provider.mjs
const aProvider = () => ({ preset: 'generic-openai', name: unique('provider'), base_url: env.GENERIC_OPENAI_BASE_URL, api_key: 'key-of-a-provider', model: 'said-model' });
const newProvider = async (w) => (await admin(w.h, 'POST', '/api/providers', aProvider(), 201)).name;
const aMessage = { ...aChat, max_tokens: 9 };
async function newFact(w) {
    const provider = unique('provider');
    await sqlite(storeFile(w.h), `INSERT INTO model_facts VALUES ('${provider}', 'm', 'tools', 'schema', '${new Date().toISOString()}')`);
    return provider;
}
// The end of a task of an app in Custom Mode, whose app has refused it.
async function newDelivery(w) {
    const [id, now] = [crypto.randomUUID(), new Date().toISOString()];
    await sqlite(storeFile(w.h), `INSERT INTO app_deliveries (id, app_id, table_name, row_id, machine_id, attempt, action, body, n_bytes, state, created_at, updated_at)
        VALUES ('${id}', '${nobodysId}', 'no_such_table', '${unique('row')}', 'm', 1, 'complete', '{}', 2, 'dead', '${now}', '${now}')`);
    return id;
}
async function newRule(w) {
    const rule = { agent: '@agent', tool: 'write_file' };
    await admin(w.h, 'POST', '/api/approvals/rules', { ...rule, decision: 'always' });
    return rule;
}
async function waitingApproval(w) {
    const provider = unique('stand-in'), agent = unique('clerk'), { key, call } = await newKey(w.h);
    await admin(w.h, 'POST', '/api/providers', { preset: 'stand-in', name: provider });
    await admin(w.h, 'POST', '/api/agents', { kind: 'model', name: agent, provider, tools: ['builtin/write_file'] });
    const { body } = await call('POST', '/sdk/agent/session', { agent_name: agent });
    const stream = await w.h.sse(`/sdk/agent/session/${body.session.session_id}/chat/stream`, { method: 'POST', headers: { authorization: `Bearer ${key}` },
        body: { message: 'call write_file {"path":"a.txt","content":"x"}', detached: true } });
    const { id } = await until(async () => (await admin(w.h, 'GET', '/api/approvals')).approvals.find((one) => one.agent === agent), { what: 'a question' });
    stream.close();         // the turn goes on waiting, without a connection
    await admin(w.h, 'DELETE', `/api/providers/${provider}`);
    return id;
}
const plain = (path) => () => ({ path });
const asService = (path, more) => async (w) => ({ path, headers: { apikey: (await faceKeys(w.h)).secret }, ...more });
const notDone = (path) => () => ({ path, body: {}, status: 501 });          // told what to do instead

const oneVector = { vectors: [{ id: 'one', vector: [0, 1, 0], metadata: { text: 'x' } }] };
const vectorPath = (word, body) => async (w) => {
    assert.equal((await w.call('POST', '/sdk/llm/vectors/upsert', oneVector)).status, 200);
    return { path: `/sdk/llm/vectors/${word}`, body };
};

const newSession = async (w) => (await w.call('POST', '/sdk/agent/session', {})).body.session;
const sessionPath = (word, body) => async (w) => ({ path: `/sdk/agent/session/${(await newSession(w)).session_id}${word}`, body });
const threadPath = (word, body) => async (w) => {
    const { session_id: id, thread } = await newSession(w);
    assert.equal((await w.call('POST', `/sdk/agent/session/${id}/chat`, { message: 'Say hello.' })).status, 200);
    return { path: `/api/workspaces/default/threads/${thread.slug}${word}`, body };
};
const toolServer = fileURLToPath(new URL('./mcp_tool_server.mjs', import.meta.url));
const aServer = () => ({ name: unique('server'), command: process.execPath, args: [toolServer] });
let login;
async function remoteServer(w) {
    login ??= await loginServer();
    return (await admin(w.h, 'POST', '/api/mcp/servers', { name: unique('remote'), url: login.url }, 201)).server.name;
}
const newServer = async (w) => (await admin(w.h, 'POST', '/api/mcp/servers?accept=true', aServer(), 201)).server.name;
const serverPath = (before, word, body) => async (w) => ({ path: `${before}/${await newServer(w)}${word}`, body });

export const successes = {
    'GET /sdk/mcp/servers': plain('/sdk/mcp/servers'),
    'GET /sdk/mcp/servers/:server/tools': serverPath('/sdk/mcp/servers', '/tools'),
    'POST /sdk/mcp/servers/:server/tools/:tool/execute': serverPath('/sdk/mcp/servers', '/tools/greet/execute', { arguments: { name: 'Ada' } }),
    'GET /api/mcp/servers': plain('/api/mcp/servers'),
    'POST /api/mcp/servers': () => ({ path: '/api/mcp/servers', body: aServer(), status: 201 }),
    'GET /api/mcp/servers/:server': serverPath('/api/mcp/servers', ''),
    'DELETE /api/mcp/servers/:server': serverPath('/api/mcp/servers', ''),
    'POST /api/mcp/servers/:server/enable': serverPath('/api/mcp/servers', '/enable', {}),
    'POST /api/mcp/servers/:server/disable': serverPath('/api/mcp/servers', '/disable', { tool: 'greet' }),
    'POST /api/mcp/servers/:server/accept': serverPath('/api/mcp/servers', '/accept', {}),
    'POST /api/mcp/servers/:server/restart': serverPath('/api/mcp/servers', '/restart', {}),
    'GET /api/mcp/servers/:server/tools': serverPath('/api/mcp/servers', '/tools'),
    'GET /api/mcp/servers/:server/changes': serverPath('/api/mcp/servers', '/changes'),
    'POST /api/mcp/servers/:server/call': serverPath('/api/mcp/servers', '/call', { tool: 'greet', arguments: { name: 'Ada' } }),
    'GET /api/mcp/servers/:server/log': serverPath('/api/mcp/servers', '/log'),
    'GET /api/mcp/servers/:server/resources': serverPath('/api/mcp/servers', '/resources'),
    'GET /api/mcp/servers/:server/resource': serverPath('/api/mcp/servers', '/resource?uri=note://one'),
    'GET /api/mcp/servers/:server/prompts': serverPath('/api/mcp/servers', '/prompts'),
    'POST /api/mcp/servers/:server/prompt': serverPath('/api/mcp/servers', '/prompt', { name: 'haiku', arguments: { topic: 'rain' } }),
    'POST /api/mcp/servers/:server/login': async (w) => ({ path: `/api/mcp/servers/${await remoteServer(w)}/login`, body: {} }),
    'POST /api/mcp/servers/:server/logout': async (w) => ({ path: `/api/mcp/servers/${await remoteServer(w)}/logout`, body: {} }),
    'GET /api/mcp/callback': async (w) => {
        const { url } = await admin(w.h, 'POST', `/api/mcp/servers/${await remoteServer(w)}/login`);
        const asked = new URL(url);
        return { path: `/api/mcp/callback?state=${asked.searchParams.get('state')}&code=c&iss=${encodeURIComponent(asked.origin)}`, type: 'text/html' };
    },
    'POST /api/mcp/import': () => ({ path: '/api/mcp/import', body: { config: { mcpServers: { imported: { command: 'true' } } } } }),

    'GET /healthz': plain('/healthz'),
    'GET /readyz': plain('/readyz'),
    'GET /metrics': () => ({ path: '/metrics', type: 'text/plain' }),
    'GET /openapi.json': plain('/openapi.json'),
    'GET /api/routes': plain('/api/routes'),
    'GET /api/doctor': plain('/api/doctor'),
    'POST /api/backup': (w) => ({ path: '/api/backup', body: { path: join(w.h.home, `${unique('backup')}.tar.gz`) } }),

    'GET /sdk/ping': plain('/sdk/ping'),
    'GET /sdk/local-apps/data-dir': plain('/sdk/local-apps/data-dir'),
    'POST /sdk/auth/sync-backend-token': () => ({ path: '/sdk/auth/sync-backend-token', body: { token: 'a.b.c' } }),
    'POST /sdk/auth/sync-supabase-token': () => ({ path: '/sdk/auth/sync-supabase-token', body: { token: 'a.b.c' } }),
    'POST /sdk/logs': () => ({ path: '/sdk/logs', body: { logs: [{ level: 'info', message: 'hello' }] } }),
    'GET /sdk/capabilities': plain('/sdk/capabilities'),
    'GET /sdk/auth/token': async (w) => {
        await w.call('POST', '/sdk/auth/sync-backend-token', { token: 'a.b.c' });
        return { path: '/sdk/auth/token' };
    },
    'GET /sdk/database/config': plain('/sdk/database/config'),
    'POST /sdk/register': (w) => ({ path: '/sdk/register', body: { app_id: w.app, permissions: ['api.agents'] } }),
    'POST /api/local-apps/request-permission': (w) => ({ path: '/api/local-apps/request-permission', body: { app_id: w.app, permission: 'api.agents' } }),

    'POST /activities': () => ({ path: '/activities', body: { raw_data: { n: 1 } }, status: 201 }),
    'GET /activities': async (w) => {
        await insert(w.call, { n: 1 });
        return { path: '/activities?limit=2' };
    },
    'GET /activities/:id': async (w) => ({ path: `/activities/${(await insert(w.call, {})).id}` }),
    'PATCH /activities/:id': async (w) => ({ path: `/activities/${(await insert(w.call, {})).id}`, body: { status: 'completed', result: {} } }),
    'DELETE /activities/:id': async (w) => ({ path: `/activities/${(await insert(w.call, {})).id}` }),

    'POST /activities/functions/:name': () => ({ path: '/activities/functions/get_publications_full', body: {} }),

    'POST /webhooks/svc': (w) => ({ path: '/webhooks/svc', body: { event: 'trigger-agent', app_id: w.app, payload: { raw_data: {} } } }),
    'POST /api/external-tasks/:taskUuid/webhook': async (w) => ({
        path: `/api/external-tasks/${(await waitingTask(w)).task_uuid}/webhook`, body: { action: 'completed', data: { result: {} } } }),
    'GET /task/:uuid': async (w) => ({ path: `/task/${(await waitingTask(w)).task_uuid}` }),
    'GET /api/tasks': plain('/api/tasks'),
    'GET /api/tasks/:uuid': async (w) => {
        const { id: appId, call } = await listeningApp(w.h, w.agent);
        const [{ uuid }] = await tasksOfRow(w.h, (await insert(call, {})).id);
        await taskBecomes(w.h, uuid, 'completed');
        assert.ok(appId);
        return { path: `/api/tasks/${uuid}` };
    },
    'POST /api/tasks/:uuid/run': taskPath('/run'),
    'POST /api/tasks/:uuid/reject': taskPath('/reject'),
    'POST /api/tasks/:uuid/replay': async (w) => ({ path: `/api/tasks/${(await failedTask(w)).task_uuid}/replay` }),
    'POST /api/tasks/:uuid/cancel': taskPath('/cancel'),
    'POST /api/tasks/replay': plain('/api/tasks/replay'),
    'POST /api/tasks/sweep': plain('/api/tasks/sweep'),

    'GET /api/calendar': async (w) => {
        await waitingTask(w);
        return { path: '/api/calendar?limit=3' };
    },
    'POST /api/calendar-events': () => ({ path: '/api/calendar-events', body: { title: 'Look', start_date: '2030-01-02T03:04:05Z' }, status: 201 }),
    'GET /api/calendar/:uuid': calendarPath(''),
    'PATCH /api/calendar/:uuid': calendarPath('', { title: 'Look at it', all_day: true }),
    'DELETE /api/calendar/:uuid': calendarPath(''),
    'POST /api/calendar/:uuid/run': calendarPath('/run', {}),
    'POST /api/calendar/:uuid/reject': calendarPath('/reject', {}),

    'GET /agents': plain('/agents'),
    'GET /api/agents/:name': (w) => ({ path: `/api/agents/${w.agent}` }),
    'POST /api/agents': () => ({ path: '/api/agents', body: { name: unique('defined'), command: 'true' }, status: 201 }),
    'DELETE /api/agents/:name': async (w) => ({ path: `/api/agents/${await shellAgent(w.h, 'exit 0')}` }),
    'POST /sdk/agent/session': () => ({ path: '/sdk/agent/session', body: {} }),
    'GET /sdk/agent/session/:id': sessionPath(''),
    'DELETE /sdk/agent/session/:id': sessionPath(''),
    'POST /sdk/agent/session/:id/chat': sessionPath('/chat', { message: 'Say hello.' }),
    'POST /sdk/agent/session/:id/chat/stream': async (w) => ({ ...await sessionPath('/chat/stream', { message: 'Say hello.' })(w), type: 'text/event-stream' }),
    'GET /sdk/agent/session/:id/events': async (w) => ({ ...await sessionPath('/events')(w), type: 'text/event-stream' }),
    'GET /sdk/agent/session/:id/messages': sessionPath('/messages'),
    'POST /sdk/agent/session/:id/cancel': sessionPath('/cancel'),
    'GET /api/workspaces/:slug/threads/:thread/messages': threadPath('/messages'),
    'POST /api/workspaces/:slug/threads/:thread/edit': threadPath('/edit', { message: 'Say goodbye.' }),
    'POST /api/workspaces/:slug/threads/:thread/regenerate': threadPath('/regenerate', {}),
    'GET /workspaces': plain('/workspaces'),
    'GET /workspaces/:slug/threads': async (w) => {
        await admin(w.h, 'POST', '/api/workspaces/desk/threads', { name: unique('A thread') });
        return { path: '/workspaces/desk/threads' };
    },
    'POST /api/workspaces': () => ({ path: '/api/workspaces', body: { name: unique('Room') }, status: 201 }),
    'POST /api/workspaces/:slug/threads': () => ({ path: '/api/workspaces/desk/threads', body: { name: unique('Talk') }, status: 201 }),

    'GET /api/apps': plain('/api/apps'),
    'POST /api/apps': () => ({ path: '/api/apps', body: { name: unique('registered') }, status: 201 }),
    'GET /api/apps/:app': (w) => ({ path: `/api/apps/${w.app}` }),
    'DELETE /api/apps/:app': async (w) => ({ path: `/api/apps/${await newApp(w.h)}` }),
    'GET /api/apps/:app/webhook-secret': (w) => ({ path: `/api/apps/${w.app}/webhook-secret` }),
    'POST /api/apps/:app/start': (w) => ({ path: `/api/apps/${w.app}/start` }),
    'POST /api/apps/:app/stop': (w) => ({ path: `/api/apps/${w.app}/stop` }),
    'POST /api/apps/:app/restart': (w) => ({ path: `/api/apps/${w.app}/restart` }),
    'GET /api/apps/:app/logs': async (w) => {
        await admin(w.h, 'POST', `/api/apps/${w.app}/start`);
        return { path: `/api/apps/${w.app}/logs` };
    },
    'GET /api/events': () => ({ path: '/api/events', type: 'text/event-stream' }),
    'GET /api/presence': plain('/api/presence'),

    'GET /api/backend/keys': plain('/api/backend/keys'),
    'GET /api/backend/monitor': plain('/api/backend/monitor'),
    'GET /api/backend/deliveries': plain('/api/backend/deliveries'),
    'POST /api/backend/deliveries/:id/retry': async (w) => ({ path: `/api/backend/deliveries/${await newDelivery(w)}/retry` }),
    'DELETE /api/backend/deliveries/:id': async (w) => ({ path: `/api/backend/deliveries/${await newDelivery(w)}` }),
    'GET /api/backend/users': plain('/api/backend/users'),
    'POST /api/backend/users': () => ({ path: '/api/backend/users', body: { email: `${unique('user')}@example.org`, password: 'a password' }, status: 201 }),
    'DELETE /api/backend/users/:user': async (w) => ({ path: `/api/backend/users/${(await faceUser(w.h)).user.email}` }),
    'PUT /api/backend/users/:user/password': async (w) => ({ path: `/api/backend/users/${(await faceUser(w.h)).user.id}/password`, body: { password: 'a new password' } }),
    'POST /auth/v1/signup': async (w) => ({ path: '/auth/v1/signup', headers: { apikey: (await faceKeys(w.h)).publishable },
        body: { email: `${unique('person')}@example.org`, password: 'a password', data: { name: 'A' } } }),
    'POST /auth/v1/token': async (w) => {
        const { user, password, headers } = await faceUser(w.h);
        return { path: '/auth/v1/token?grant_type=password', headers, body: { email: user.email, password } };
    },
    'GET /auth/v1/user': async (w) => ({ path: '/auth/v1/user', headers: (await faceUser(w.h)).headers }),
    'PUT /auth/v1/user': async (w) => ({ path: '/auth/v1/user', headers: (await faceUser(w.h)).headers, body: { data: { name: 'B' } } }),
    'POST /auth/v1/logout': async (w) => ({ path: '/auth/v1/logout', headers: (await faceUser(w.h)).headers, status: 204 }),
    'GET /auth/v1/health': async (w) => ({ path: '/auth/v1/health', headers: (await faceUser(w.h)).headers }),
    'GET /auth/v1/settings': async (w) => ({ path: '/auth/v1/settings', headers: (await faceUser(w.h)).headers }),
    'GET /api/backend/account': plain('/api/backend/account'),
    'POST /api/backend/account/login': () => ({ path: '/api/backend/account/login' }),
    'POST /api/backend/account/code': async (w) => {
        const service = await hostedService(w);
        const { url } = await admin(w.h, 'POST', '/api/backend/account/login');
        return { path: '/api/backend/account/code', body: { code: service.visit(url) } };
    },
    'POST /api/backend/account/token': async (w) => ({ path: '/api/backend/account/token', body: { token: (await hostedService(w)).newToken() } }),
    'POST /api/backend/account/logout': () => ({ path: '/api/backend/account/logout' }),
    'GET /api/backend/projects': async (w) => {
        await loggedIn(w);
        return { path: '/api/backend/projects' };
    },
    'POST /api/backend/setup': async (w) => {
        await loggedIn(w);
        await admin(w.h, 'PUT', '/api/backend/project', { project: 'Orders' });
        return { path: '/api/backend/setup', body: { tables: ['shop.orders'] } };
    },
    'GET /api/backend/setup': plain('/api/backend/setup'),
    'GET /api/backend/check': async (w) => {
        await loggedIn(w);
        await admin(w.h, 'PUT', '/api/backend/project', { project: 'Orders' });
        return { path: '/api/backend/check?tables=shop.orders' };
    },
    'PUT /api/backend/project': async (w) => {
        await loggedIn(w);
        return { path: '/api/backend/project', body: { project: 'Orders' } };
    },
    'GET /rest/v1/:table': asService('/rest/v1/svc_activities?limit=1'),
    'POST /rest/v1/:table': asService('/rest/v1/svc_activities', { body: { raw_data: {}, status: 'kept' }, status: 201 }),
    'PATCH /rest/v1/:table': asService(`/rest/v1/svc_activities?id=eq.${nobodysId}`, { body: { status: 'kept' }, status: 204 }),
    'DELETE /rest/v1/:table': asService(`/rest/v1/svc_activities?id=eq.${nobodysId}`, { status: 204 }),
    'GET /rest/v1/rpc/:function': asService('/rest/v1/rpc/get_publications_full'),
    'POST /rest/v1/rpc/:function': asService('/rest/v1/rpc/get_publications_full', { body: {} }),
    'GET /realtime/v1/websocket': async (w) => ({ path: `/realtime/v1/websocket?apikey=${(await faceKeys(w.h)).publishable}`, status: 101, type: 'websocket' }),
    'POST /realtime/v1/api/broadcast': async (w) => ({ path: '/realtime/v1/api/broadcast', headers: { apikey: (await faceKeys(w.h)).publishable },
        body: { messages: [{ topic: 'room', event: 'hello', payload: {} }] }, status: 202 }),
    'POST /realtime/v1/api/broadcast/:topic/events/:event': async (w) => ({ path: '/realtime/v1/api/broadcast/room/events/hello',
        headers: { apikey: (await faceKeys(w.h)).publishable }, body: {}, status: 202 }),

    'POST /sdk/llm/chat': () => ({ path: '/sdk/llm/chat', body: aChat }),
    'POST /sdk/llm/chat/stream': () => ({ path: '/sdk/llm/chat/stream', body: aChat, type: 'text/event-stream' }),
    'GET /sdk/llm/providers': plain('/sdk/llm/providers'),
    'GET /sdk/llm/providers/chat': plain('/sdk/llm/providers/chat'),
    'GET /api/providers': async (w) => {
        await newProvider(w);
        return { path: '/api/providers' };
    },
    'GET /api/providers/presets': plain('/api/providers/presets'),
    'POST /api/providers': () => ({ path: '/api/providers', body: aProvider(), status: 201 }),
    'DELETE /api/providers/:name': async (w) => ({ path: `/api/providers/${await newProvider(w)}` }),
    'POST /api/providers/:name/test': async (w) => ({ path: `/api/providers/${await newProvider(w)}/test`, body: {} }),
    'POST /api/providers/:name/accept': () => ({ path: '/api/providers/ollama/accept' }),
    'POST /api/providers/:name/default': async (w) => ({ path: `/api/providers/${await newProvider(w)}/default`, body: {} }),
    'GET /api/models/facts': plain('/api/models/facts'),
    'DELETE /api/models/facts': async (w) => ({ path: `/api/models/facts?provider=${await newFact(w)}` }),
    'DELETE /api/providers/default': plain('/api/providers/default?capability=chat'),

    'GET /api/keys': plain('/api/keys'),
    'POST /api/keys': () => ({ path: '/api/keys', body: { name: 'one' }, status: 201 }),
    'POST /api/keys/import': (w) => ({ path: '/api/keys/import', body: { app: w.app, key: `key-of-${unique('elsewhere')}-0123456789` }, status: 201 }),
    'DELETE /api/keys/:id': async (w) => ({ path: `/api/keys/${(await newKey(w.h)).id}` }),
    'GET /api/permissions/known': plain('/api/permissions/known'),
    'GET /api/permissions/pending': async (w) => {
        await newApp(w.h, { permissions: ['api.agents'] });
        return { path: '/api/permissions/pending' };
    },
    'GET /api/permissions': (w) => ({ path: `/api/permissions?app_id=${w.app}` }),
    'POST /api/permissions/decide': (w) => ({ path: '/api/permissions/decide', body: { app_id: w.app, permissions: ['api.agents'], allow: true } }),
    'POST /api/permissions/revoke': async (w) => {
        const app_id = await newApp(w.h, {}, ['api.agents']);
        return { path: '/api/permissions/revoke', body: { app_id, permission: 'api.agents' } };
    },
    'POST /api/permissions/reset': async (w) => ({ path: '/api/permissions/reset', body: { app_id: await newApp(w.h) } }),
    'GET /api/approvals': plain('/api/approvals'),
    'POST /api/approvals/:id': async (w) => ({ path: `/api/approvals/${await waitingApproval(w)}`, body: { allow: false } }),
    'GET /api/approvals/rules': async (w) => {
        await newRule(w);
        return { path: '/api/approvals/rules' };
    },
    'POST /api/approvals/rules': () => ({ path: '/api/approvals/rules', body: { agent: '@agent', tool: 'now', decision: 'never' } }),
    'POST /api/approvals/rules/forget': async (w) => ({ path: '/api/approvals/rules/forget', body: await newRule(w) }),
    'POST /api/session/link': () => ({ path: '/api/session/link', status: 201 }),
    'GET /session/open': async (w) => {
        const url = new URL((await admin(w.h, 'POST', '/api/session/link')).url);
        return { path: url.pathname + url.search, status: 303, type: 'text/plain' };
    },
    'GET /assets/{path*}': () => ({ path: '/assets/page.css', type: 'text/css' }),
    'GET /ui/{path*}': async (w) => {
        writeFileSync(join(w.h.home, 'index.html'), '<!doctype html>');
        await admin(w.h, 'PUT', '/api/settings/http.ui_folder', { value: w.h.home });
        return { path: '/ui/any', type: 'text/html' };
    },
    'GET /session': () => ({ path: '/session', type: 'text/html' }),
    'POST /api/session/confirm': async (w) => {
        const { body } = await (await signIn(w.h)).call('DELETE', '/api/agents/nobody');
        return { path: '/api/session/confirm', body: { code: body.confirm.replace('hearth confirm ', '') }, call: w.h.socket.bind(w.h) };
    },
    'GET /api/session': plain('/api/session'),
    'DELETE /api/session': async (w) => ({ path: '/api/session', call: (await signIn(w.h)).call }),
    'GET /api/audit': plain('/api/audit?limit=3'),
    'GET /api/audit/verify': plain('/api/audit/verify'),
    'GET /api/usage': plain('/api/usage?group=day,app,key,provider,model,kind&days=7'),
    'GET /api/limits': async (w) => {
        await admin(w.h, 'PUT', `/api/limits/apps/${w.app}`, { requests_a_day: 1e6 });
        return { path: '/api/limits' };
    },
    'GET /api/limits/apps/:app': (w) => ({ path: `/api/limits/apps/${w.app}` }),
    'PUT /api/limits/apps/:app': (w) => ({ path: `/api/limits/apps/${w.app}`, body: { requests_a_day: 1e6, tokens_a_minute: 0 } }),
    'DELETE /api/limits/apps/:app': (w) => ({ path: `/api/limits/apps/${w.app}` }),
    'GET /api/limits/keys/:id': async (w) => ({ path: `/api/limits/keys/${(await newKey(w.h)).id}` }),
    'PUT /api/limits/keys/:id': async (w) => ({ path: `/api/limits/keys/${(await newKey(w.h)).id}`, body: { tokens_a_day: 5 } }),
    'DELETE /api/limits/keys/:id': async (w) => ({ path: `/api/limits/keys/${(await newKey(w.h)).id}` }),
    'GET /api/settings': plain('/api/settings'),
    'GET /api/settings/:key': plain('/api/settings/tasks.sweep_s'),
    'PUT /api/settings/:key': () => ({ path: '/api/settings/tasks.presence_s', body: { value: 20 } }),
    'DELETE /api/settings/:key': plain('/api/settings/tasks.presence_s'),

    'GET /v1/models': plain('/v1/models'),
    'GET /v1/models/:id': plain('/v1/models/said-model'),
    'GET /v1/models/:provider/:id': plain('/v1/models/generic-openai/said-model'),
    'GET /v1/models/:provider/:owner/:id': plain('/v1/models/generic-openai/lab/other-model'),
    'POST /v1/chat/completions': () => ({ path: '/v1/chat/completions', body: aChat }),
    'POST /v1/completions': () => ({ path: '/v1/completions', body: { prompt: 'Say hello.' } }),
    'POST /v1/responses': () => ({ path: '/v1/responses', body: { input: 'Say hello.' } }),
    'GET /v1/responses/:response_id': async (w) => ({ path: `/v1/responses/${(await w.call('POST', '/v1/responses', { input: 'Say hello.' })).body.id}` }),
    'DELETE /v1/responses/:response_id': async (w) => ({ path: `/v1/responses/${(await w.call('POST', '/v1/responses', { input: 'Say hello.' })).body.id}` }),
    'POST /v1/embeddings': () => ({ path: '/v1/embeddings', body: { input: ['red apples'] } }),
    'POST /v1/messages': () => ({ path: '/v1/messages', body: aMessage }),
    'POST /v1/messages/count_tokens': () => ({ path: '/v1/messages/count_tokens', body: aChat }),
    'POST /mcp': () => ({ path: '/mcp', body: { jsonrpc: '2.0', id: 1, method: 'server/discover', params: { _meta: meta() } },
        headers: { accept: 'application/json, text/event-stream', 'mcp-protocol-version': stateless, 'mcp-method': 'server/discover' } }),
    'GET /mcp': async (w) => ({ path: '/mcp', type: 'text/event-stream', headers: { accept: 'text/event-stream', ...(await session(w.call)).headers } }),
    'DELETE /mcp': async (w) => ({ path: '/mcp', headers: (await session(w.call)).headers }),
    'GET /': () => ({ path: '/', type: 'text/html' }),
    'GET /api/version': plain('/api/version'),
    'GET /api/tags': plain('/api/tags'),
    'GET /api/ps': plain('/api/ps'),
    'POST /api/show': () => ({ path: '/api/show', body: { model: 'said-model' } }),
    'POST /api/pull': () => ({ path: '/api/pull', body: { model: 'said-model', stream: false } }),
    'POST /api/chat': () => ({ path: '/api/chat', body: { ...aChat, model: 'said-model', stream: false } }),
    'POST /api/generate': () => ({ path: '/api/generate', body: { prompt: 'Say hello.', model: 'said-model', stream: false } }),
    'POST /api/embed': () => ({ path: '/api/embed', body: { input: ['red apples'], model: 'lexical-384' } }),
    'POST /api/embeddings': () => ({ path: '/api/embeddings', body: { prompt: 'red apples', model: 'lexical-384' } }),
    'POST /api/push': notDone('/api/push'),
    'POST /api/create': notDone('/api/create'),
    'POST /api/copy': notDone('/api/copy'),
    'DELETE /api/delete': notDone('/api/delete'),
    'POST /api/blobs/:digest': notDone('/api/blobs/sha256:0'),
    'POST /sdk/llm/embed': () => ({ path: '/sdk/llm/embed', body: { input: ['red apples'] } }),
    'GET /sdk/llm/providers/embed': plain('/sdk/llm/providers/embed'),
    'GET /sdk/stt/providers': plain('/sdk/stt/providers'),
    'POST /sdk/stt/listen': async (w) => {
        await admin(w.h, 'PUT', '/api/settings/speech.microphone', { value: 'null' });
        return { path: '/sdk/stt/listen', body: { timeout: 100 } };
    },
    'POST /sdk/stt/sessions': () => ({ path: '/sdk/stt/sessions', body: {}, status: 201 }),
    'GET /sdk/stt/sessions/:id/socket': async (w) => ({ path: (await w.h.socket('POST', '/sdk/stt/sessions', {})).body.path, status: 101, type: 'websocket' }),
    'POST /sdk/stt/transcribe': () => ({ path: '/sdk/stt/transcribe', body: silentWav }),
    'GET /sdk/tts/providers': plain('/sdk/tts/providers'),
    'POST /sdk/tts': () => ({ path: '/sdk/tts', body: { text: 'Hi.', provider: 'espeak_local' }, type: 'audio/wav' }),
    'POST /sdk/tts/stream': () => ({ path: '/sdk/tts/stream', body: { text: 'Hi.', provider: 'espeak_local' }, type: 'text/event-stream' }),
    'POST /v1/audio/speech': () => ({ path: '/v1/audio/speech', body: { model: 'espeak_local', voice: 'alloy', input: 'Hi.' }, type: 'audio/mpeg' }),
    'POST /v1/audio/transcriptions': () => ({ path: '/v1/audio/transcriptions', body: formOf(['file', silentWav, 'a.wav']), headers: formType }),
    'POST /v1/audio/translations': notDone('/v1/audio/translations'),
    'GET /v1/audio/voices': plain('/v1/audio/voices'),
    'POST /sdk/llm/vectors/upsert': () => ({ path: '/sdk/llm/vectors/upsert', body: oneVector }),
    'POST /sdk/llm/vectors/bulk': () => ({ path: '/sdk/llm/vectors/bulk', body: '{"ids":["one","two"],"workspaceId":"bulk"}\nAAAABBBBCCCCDDDD' }),     // two numbers a row
    'POST /sdk/llm/vectors/query': vectorPath('query', { vector: [0, 1, 0] }),
    'POST /sdk/llm/vectors/delete': vectorPath('delete', { deleteAll: true, workspaceId: 'to-be-emptied' }),
    'GET /sdk/llm/vectors/workspaces': vectorPath('workspaces'),
    'GET /sdk/llm/vectors/count': vectorPath('count'),
    'GET /sdk/llm/vectors/list': vectorPath('list?includeVectors=true'),
    'GET /sdk/llm/vectors/providers': plain('/sdk/llm/vectors/providers'),
    'POST /sdk/llm/vectors/register': () => ({ path: '/sdk/llm/vectors/register', body: { provider: 'embedded', config: {} } }),
    'GET /sdk/llm/vectors/config': plain('/sdk/llm/vectors/config'),
};

// The line of a route; one below /api that mirrors an SDK route has that route's.
export function successOf(route) {
    const name = `${route.method} ${route.path}`;
    const make = successes[name];
    if (make)
        return { make, prefix: '' };
    const mirrored = route.path.startsWith('/api/') && successes[`${route.method} ${route.path.slice(4)}`];
    assert.ok(mirrored, `success.mjs has no request for ${name}`);
    return { make: mirrored, prefix: '/api' };
}

// The same path with ids that nothing has; undefined when it has none. A channel of the realtime protocol needs no making; an unknown table has a code of its own.
export function unknownPath(route) {
    return route.path.includes('/:') && !/^\/(realtime|rest)\//.test(route.path) ? route.path.replace(/:\w+/g, nobodysId) : undefined;
}
