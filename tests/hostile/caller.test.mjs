// Who is calling, really: ids that are only names, from another user of the machine, from outside of a launched app, from agents that have ended.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import http from 'node:http';
import { test } from 'node:test';
import { startHearth, until } from '../api/harness.mjs';
import { admin, insert, listeningApp, newApp, newKey, refused, rowBecomes, shellAgent, taskBecomes, tasksOfRow, unique } from '../api/kit.mjs';
import { canBeNeighbour, needsRoot, neighbourUid, nodeAsNeighbour, startProgram } from './kit.mjs';

const permissions = ['activities.read', 'activities.write', 'webhook.trigger', 'api.task'];

// Sends requests as the other user; [{status, body}].
async function sendAsNeighbour(h, requests) {
    const { json, stderr } = await nodeAsNeighbour(`
        const answers = [];
        for (const { method, path, body, headers } of ${JSON.stringify(requests)}) {
            const reply = await fetch(${JSON.stringify(h.url)} + path,
                { method, headers: { 'content-type': 'application/json', ...headers }, body: body && JSON.stringify(body) });
            answers.push({ status: reply.status, text: await reply.text() });
        }
        say(answers);`);
    assert.ok(json, stderr);
    return json.map((one) => ({ ...one, body: JSON.parse(one.text) }));
}

// An app that Hearth launches and that sends, from its own process, what it is told to: {id, call, secret(), stop()}.
async function launchedApp(h, more = {}) {
    const script = `
        const http = require('node:http');
        http.createServer((ask, answer) => {
            let text = '';
            ask.on('data', (piece) => { text += piece; }).on('end', async () => {
                const { method, path, body, headers } = JSON.parse(text);
                if (path === 'secret') return answer.end(JSON.stringify({ secret: process.env.SVC_APP_SECRET ?? null }));
                const reply = await fetch(process.env.SERVER_URL + path, { method, body: body && JSON.stringify(body),
                    headers: { 'content-type': 'application/json', 'x-app-id': process.env.SVC_APP_ID, ...headers } });
                answer.end(JSON.stringify({ status: reply.status, text: await reply.text() }));
            });
        }).listen(Number(process.env.SVC_PORT), '127.0.0.1');`;
    const name = unique('launched');
    const definition = { name, display_name: name, app_type: 'custom', permissions, config: { command: process.execPath, args: ['-e', script] }, ...more };
    const id = await newApp(h, definition, permissions);
    await admin(h, 'POST', `/api/apps/${id}/start`);
    const ask = async (what) => {
        const { port } = (await admin(h, 'GET', `/api/apps/${id}`)).app ?? await admin(h, 'GET', `/api/apps/${id}`);
        const reply = await until(() => fetch(`http://127.0.0.1:${port}/`, { method: 'POST', body: JSON.stringify(what) }).catch(() => null), { what: `${name} listens` });
        return reply.json();
    };
    return {
        id, name, definition,
        call: async (method, path, body, headers) => {
            const { status, text } = await ask({ method, path, body, headers });
            return { status, text, body: JSON.parse(text), headers: { 'content-type': 'application/json', 'x-request-id': '-' } };
        },
        secret: async () => (await ask({ path: 'secret' })).secret,
        stop: () => admin(h, 'POST', `/api/apps/${id}/stop`),
        start: () => admin(h, 'POST', `/api/apps/${id}/start`),
    };
}

function refusedHere({ status, body, text }, code) {
    assert.equal(status, 403, text);
    assert.equal(body.code, code, text);
    assert.match(body.error, /identity\.peers/, 'the sentence says what to do');
}

// ---- another user of the machine ----

test('ids of apps and tasks open nothing to another uid', { skip: !canBeNeighbour && needsRoot }, async (t) => {
    const h = await startHearth({ t });
    const id = await newApp(h, {}, permissions);
    const app = h.asApp(id);
    const row = await insert(app, { secret: 'only for the app' });
    const { body: { task_uuid: task } } = await app('POST', '/webhooks/svc', { event: 'trigger-agent', app_id: id, payload: { raw_data: {} } });
    await app('POST', '/sdk/auth/sync-backend-token', { token: 'token-of-the-user' });
    const byHeader = { 'x-app-id': id };
    const answers = await sendAsNeighbour(h, [
        { method: 'GET', path: '/sdk/ping', headers: byHeader },
        { method: 'GET', path: '/api/sdk/ping', headers: byHeader },
        { method: 'GET', path: `/activities/${row.id}`, headers: byHeader },
        { method: 'PATCH', path: `/activities/${row.id}`, headers: byHeader, body: { status: 'completed' } },
        { method: 'GET', path: '/sdk/auth/token', headers: byHeader },
        { method: 'POST', path: '/sdk/auth/sync-backend-token', headers: byHeader, body: { token: '' } },
        { method: 'GET', path: '/sdk/local-apps/data-dir', headers: byHeader },
        { method: 'POST', path: '/webhooks/svc', body: { event: 'trigger-agent', app_id: id, payload: { raw_data: {} } } },
        { method: 'POST', path: '/webhooks/svc', body: { event: 'task-complete', app_id: id, payload: { task_uuid: task, result: { forged: true } } } },
        { method: 'POST', path: '/sdk/register', body: { app_id: id, permissions: ['llm.chat'] } },
        { method: 'POST', path: '/api/local-apps/request-permission', body: { app_id: id, permission: 'llm.chat' } },
        { method: 'POST', path: `/api/external-tasks/${task}/webhook`, body: { action: 'completed', data: { result: { forged: true } } } },
        { method: 'POST', path: `/api/external-tasks/${task}/webhook`, headers: { authorization: 'Bearer nothing' }, body: { action: 'failed', data: {} } },
    ]);
    for (const answer of answers)
        refusedHere(answer, 'PEER_NOT_ALLOWED');
    assert.equal((await taskBecomes(h, task, 'pending')).task.status, 'pending');
    assert.equal((await app('GET', '/sdk/auth/token')).body.token, 'token-of-the-user');
    assert.deepEqual((await admin(h, 'GET', '/api/permissions/pending')).pending, [], 'nobody is asked on behalf of the app');
});

test('a developer key works from another uid, and what is public stays public', { skip: !canBeNeighbour && needsRoot }, async (t) => {
    const h = await startHearth({ t });
    const id = await newApp(h, {}, permissions);
    const { key } = await newKey(h);
    const answers = await sendAsNeighbour(h, [
        { method: 'GET', path: '/healthz' },
        { method: 'POST', path: '/webhooks/svc', body: { event: 'ping' } },
        { method: 'GET', path: '/sdk/ping', headers: { authorization: `Bearer ${key}` } },
        { method: 'GET', path: '/sdk/ping', headers: { 'x-api-key': key, 'x-app-id': id } },
        { method: 'GET', path: '/sdk/ping', headers: { authorization: 'Bearer wrong', 'x-app-id': id } },
    ]);
    assert.deepEqual(answers.map((one) => one.status), [200, 200, 200, 200, 401]);
    assert.equal(answers[4].body.code, 'INVALID_API_KEY', 'neither the key nor the id of this uid is valid');
    assert.match(answers[4].body.error, /The app id was not taken either: /);
    assert.equal(answers[3].body.appId, id);
});

test('identity.peers any takes ids from everybody again', { skip: !canBeNeighbour && needsRoot }, async (t) => {
    const h = await startHearth({ t, settings: { 'identity.peers': 'any' } });
    const id = await newApp(h, {}, permissions);
    const [ping] = await sendAsNeighbour(h, [{ method: 'GET', path: '/sdk/ping', headers: { 'x-app-id': id } }]);
    assert.equal(ping.status, 200, ping.text);
});

test('another uid finds no activity data in the command line of an agent', async (t) => {
    const h = await startHearth({ t });
    const agent = await shellAgent(h, 'sleep 60; :');
    const app = await listeningApp(h, agent);
    const row = await insert(app.call, { secret: 'not-for-the-neighbour' });
    const [task] = await tasksOfRow(h, row.id);
    const { runs } = await until(async () => {
        const { body } = await h.socket('GET', `/api/tasks/${task.uuid}`);
        return body.runs?.[0]?.pid > 0 && body;
    });
    const commandLine = readFileSync(`/proc/${runs[0].pid}/cmdline`, 'latin1');
    assert.ok(!commandLine.includes('not-for-the-neighbour'), commandLine);
    assert.ok(commandLine.includes('60') || commandLine.includes(task.uuid));
});

// ---- one id named by another ----

test('an app cannot ask, or trigger, in the name of another app', async (t) => {
    const h = await startHearth({ t, settings: { 'consent.wait_s': 0.1 } });
    const mine = await newApp(h, {}, permissions), others = await newApp(h, {}, permissions);
    for (const [path, body] of [['/sdk/register', { permissions: ['llm.chat'] }], ['/api/local-apps/request-permission', { permission: 'llm.chat' }]])
        refused(await h.asApp(mine)('POST', path, { app_id: others, ...body }), 403, 'APP_ID_MISMATCH');
    assert.deepEqual((await admin(h, 'GET', '/api/permissions/pending')).pending, []);
});

// ---- outside of the tree of a launched app ----

test('with identity.peers launched only the app\'s own process tree uses its id', async (t) => {
    const h = await startHearth({ t, settings: { 'identity.peers': 'launched' } });
    const app = await launchedApp(h);
    for (const path of ['/sdk/ping', '/activities', '/sdk/local-apps/data-dir']) {
        const inside = await app.call('GET', path);
        assert.equal(inside.status, 200, inside.text);
        refusedHere(await h.asApp(app.id)('GET', path), 'PEER_NOT_ALLOWED');
    }
    refusedHere(await h.api('POST', '/webhooks/svc', { event: 'trigger-agent', app_id: app.id, payload: { raw_data: {} } }), 'PEER_NOT_ALLOWED');
    const other = await launchedApp(h);
    const posing = await app.call('GET', '/sdk/ping', undefined, { 'x-app-id': other.id });
    refusedHere(posing, 'PEER_NOT_ALLOWED');
    const secret = await app.secret();
    assert.equal((await h.api('GET', '/sdk/ping', undefined, { 'x-app-secret': secret })).body.appId, app.id);
    await app.stop();
    refusedHere(await h.asApp(app.id)('GET', '/sdk/ping'), 'PEER_NOT_ALLOWED');
    const elsewhere = await newApp(h);
    assert.equal((await h.asApp(elsewhere)('GET', '/sdk/ping')).status, 200, 'an app that Hearth does not start has no tree');
});

test('with identity.peers launched an agent reports from its own process, and nobody else of the same user does', async (t) => {
    const h = await startHearth({ t, settings: { 'identity.peers': 'launched' } });
    const report = `fetch(process.env.SERVER_URL + '/api/external-tasks/' + process.env.TASK_UUID + '/webhook', { method: 'POST',
        headers: { 'content-type': 'application/json' }, body: JSON.stringify({ action: 'completed', data: { result: { by: 'the agent' } } }) })`;
    const script = `process.stdin.resume(); const wait = setInterval(() => require('fs').existsSync(${JSON.stringify(`${h.home}/go`)}) && (clearInterval(wait),
        ${report}.then(() => process.exit(0))), 20);`;
    const { name } = await admin(h, 'POST', '/api/agents', { name: unique('agent'), command: process.execPath, args: ['-e', script] });
    const { id: appId } = await listeningApp(h, name);
    const { call: dev } = await newKey(h);
    const row = await insert((method, path, body) => dev(method, path, body, { 'x-app-id': appId }), {});
    const [task] = await tasksOfRow(h, row.id);
    await taskBecomes(h, task.uuid, 'claimed', 'processing');
    refusedHere(await h.api('POST', `/api/external-tasks/${task.uuid}/webhook`, { action: 'completed', data: { result: { by: 'a forger' } } }), 'PEER_NOT_ALLOWED');
    h.file('go', '');
    assert.deepEqual((await taskBecomes(h, task.uuid, 'completed', 'failed')).task.result, { by: 'the agent' });
});

test('a program that Hearth did not start and that uses the id of an app is shown once', async (t) => {
    const h = await startHearth({ t });
    const app = await launchedApp(h);
    assert.equal((await app.call('GET', '/sdk/ping')).status, 200);
    // The program is looked for while its connection is open, and of the connections of a second one is looked at: each stays open.
    const agents = [];
    t.after(() => agents.forEach((agent) => agent.destroy()));
    const pingOnce = () => new Promise((done, failed) => {
        agents.push(new http.Agent({ keepAlive: true }));
        http.get({ agent: agents.at(-1), port: h.port, host: '127.0.0.1', path: '/sdk/ping', headers: { 'x-app-id': app.id } },
            (reply) => reply.resume().on('end', () => done(reply.statusCode))).on('error', failed);
    });
    const seen = () => admin(h, 'GET', '/api/audit?limit=500').then(({ entries }) => entries.filter((entry) => entry.action === 'app.contact'));
    await until(async () => {
        assert.equal(await pingOnce(), 200);
        return (await seen()).length > 0;
    }, { what: 'the entry of the audit log', everyMs: 300 });
    const [entry, ...more] = await seen();
    assert.equal(entry.subject, app.id);
    assert.equal(entry.detail.program, process.execPath);
    assert.deepEqual(more, []);
    await h.logged(new RegExp(`a program that Hearth did not start, .*${process.execPath}.*, uses the id of .*${app.name}`));
    const doctor = await admin(h, 'GET', '/api/doctor');
    assert.ok(doctor.checks.some((check) => check.text.includes(process.execPath) && check.text.includes(app.name)), JSON.stringify(doctor.checks));
});

// ---- secrets of a start ----

test('the secret of an app is its own, is needed when the person says so, and ends with the process', async (t) => {
    const h = await startHearth({ t, settings: { 'identity.require_secret': true } });
    const app = await launchedApp(h), other = await launchedApp(h);
    const secret = await app.secret(), { key } = await newKey(h);
    assert.match(secret, /^hearth_app_[\w-]{43}$/);
    const ping = (headers) => h.api('GET', '/sdk/ping', undefined, headers);
    refused(await ping({ 'x-app-id': app.id }), 401, 'APP_SECRET_REQUIRED', /identity\.require_secret/);
    refused(await h.api('POST', '/sdk/register', { app_id: app.id, permissions: [] }), 401, 'APP_SECRET_REQUIRED');
    for (const headers of [
        { 'x-app-secret': secret },
        { authorization: `Bearer ${secret}` },
        { 'x-app-id': app.id, 'x-app-secret': secret },
        { 'x-app-id': app.id, authorization: `bearer ${secret}` },
    ]) {
        const reply = await ping(headers);
        assert.equal(reply.body.appId, app.id, reply.text);
        assert.equal(reply.body.mode, 'production');
    }
    const withKey = await ping({ 'x-app-id': app.id, 'x-app-secret': 'wrong', authorization: `Bearer ${key}` });
    assert.equal(withKey.body.mode, 'development', 'a developer key is not affected');
    refused(await ping({ 'x-app-id': other.id, 'x-app-secret': secret }), 401, 'INVALID_APP_SECRET');
    refused(await ping({ 'x-app-id': other.id, authorization: `Bearer ${secret}` }), 401, 'INVALID_APP_SECRET');
    refused(await ping({ 'x-app-id': app.id, 'x-app-secret': `${secret.slice(0, -1)}${secret.endsWith('A') ? 'B' : 'A'}` }), 401, 'INVALID_APP_SECRET');
    refused(await ping({ 'x-app-id': app.id, 'x-app-secret': 'guess' }), 401, 'INVALID_APP_SECRET');
    await app.stop();
    refused(await ping({ 'x-app-secret': secret }), 401, 'INVALID_APP_SECRET');
    await app.start();
    refused(await ping({ 'x-app-secret': secret }), 401, 'INVALID_APP_SECRET');
    assert.notEqual(await app.secret(), secret);
});

test('a secret is in no answer, no log line and no file of the service', async (t) => {
    const h = await startHearth({ t, settings: { 'log.level': 'debug' } });
    const app = await launchedApp(h), secret = await app.secret();
    await h.api('GET', '/sdk/ping', undefined, { 'x-app-secret': secret });
    for (const path of [`/api/apps/${app.id}`, '/api/apps', '/api/audit', '/api/doctor'])
        assert.ok(!(await h.socket('GET', path)).text.includes(secret), path);
    assert.ok(!h.log.join('\n').includes(secret));
    for (const file of ['hearth.db', 'hearth.db-wal'])
        assert.ok(!readFileSync(`${h.dataDir}/${file}`, 'latin1').includes(secret), file);
});

// An agent that writes its token to a file, and works until the file `leave` is there: {uuid, token, leave()}.
async function workingAgent(h, more = {}) {
    const place = `${h.home}/${unique('agent')}`;
    const agent = await shellAgent(h, `printf '%s' "$HEARTH_TASK_TOKEN" > ${place}.part; mv ${place}.part ${place}; while [ ! -e ${place}.leave ]; do sleep 0.05; done; exit \${STATUS:-0}`, more);
    const { call } = await listeningApp(h, agent);
    const row = await insert(call, {});
    const [{ uuid }] = await tasksOfRow(h, row.id);
    const token = await until(() => { try { return readFileSync(place, 'utf8'); } catch { return null; } }, { what: 'the token' });
    return { uuid, token, call, row, leave: () => h.file(`${place.slice(h.home.length + 1)}.leave`, '') };
}

test('an agent\'s token reports about its own task and attempt, and dies with the process', async (t) => {
    const h = await startHearth({ t });
    const one = await workingAgent(h), two = await workingAgent(h);
    assert.match(one.token, /^hearth_task_[\w-]{43}$/);
    const send = (uuid, body, headers) => h.api('POST', `/api/external-tasks/${uuid}/webhook`, body, headers);
    const bearer = { authorization: `Bearer ${one.token}` }, done = { action: 'completed', data: { result: { ok: true } } };
    for (const headers of [bearer, { 'x-app-secret': one.token }]) {
        refused(await send(two.uuid, done, headers), 403, 'TASK_TOKEN_MISMATCH');
        refused(await send(one.uuid, { ...done, attempt: 2 }, headers), 403, 'TASK_TOKEN_MISMATCH');
    }
    const hook = (event, payload) => h.api('POST', '/webhooks/svc', { event, payload }, bearer);
    refused(await hook('task-complete', { task_uuid: two.uuid, result: {} }), 403, 'TASK_TOKEN_MISMATCH');
    refused(await hook('trigger-agent', { raw_data: {} }), 403, 'TASK_TOKEN_MISMATCH');
    assert.equal((await hook('task-start', { task_uuid: one.uuid })).status, 200, 'a task event of its own task needs no grant');
    for (const [method, path] of [['GET', '/sdk/ping'], ['GET', '/activities'], ['GET', '/sdk/auth/token']])
        refused(await h.api(method, path, undefined, bearer), 401, 'INVALID_API_KEY');
    refused(await h.api('POST', '/sdk/register', { app_id: await newApp(h), permissions: ['llm.chat'] }, bearer), 403, 'APP_ID_MISMATCH');
    assert.equal((await send(one.uuid, done, bearer)).status, 200);
    one.leave();
    await until(async () => (await send(one.uuid, done, bearer)).body.code === 'INVALID_TASK_TOKEN', { what: 'the token ends with the process' });
    refused(await send(two.uuid, done, bearer), 403, 'INVALID_TASK_TOKEN');
    two.leave();
});

test('a token of an earlier attempt is worth nothing in the next one', async (t) => {
    const h = await startHearth({ t });
    const first = await workingAgent(h, { env: { STATUS: '1' } });
    first.leave();
    await taskBecomes(h, first.uuid, 'failed', 'pending');
    refused(await h.api('POST', `/api/external-tasks/${first.uuid}/webhook`, { action: 'completed', data: {} }, { authorization: `Bearer ${first.token}` }),
        403, 'INVALID_TASK_TOKEN');
});

test('another uid reports with a token only', { skip: !canBeNeighbour && needsRoot }, async (t) => {
    const h = await startHearth({ t });
    const { uuid, token, leave } = await workingAgent(h);
    const path = `/api/external-tasks/${uuid}/webhook`, body = { action: 'completed', data: { result: {} } };
    const [bare, wrong, proven] = await sendAsNeighbour(h, [
        { method: 'POST', path, body }, { method: 'POST', path, body, headers: { authorization: 'Bearer hearth_task_guess' } },
        { method: 'POST', path, body, headers: { authorization: `Bearer ${token}` } },
    ]);
    refusedHere(bare, 'PEER_NOT_ALLOWED');
    assert.equal(wrong.body.code, 'INVALID_TASK_TOKEN', wrong.text);
    assert.equal(proven.status, 200, 'the token is the proof');
    leave();
});

test('identity.require_secret takes reports with the token only', async (t) => {
    const h = await startHearth({ t, settings: { 'identity.require_secret': true } });
    const { call } = await newKey(h);
    const app = await newApp(h, {}, permissions);
    const trigger = await call('POST', '/webhooks/svc', { event: 'trigger-agent', payload: { raw_data: {} } }, { 'x-app-id': app });
    assert.equal(trigger.status, 200, trigger.text);
    const path = `/api/external-tasks/${trigger.body.task_uuid}/webhook`, body = { action: 'completed', data: { result: {} } };
    refused(await h.api('POST', path, body), 401, 'TASK_TOKEN_REQUIRED');
    assert.equal((await call('POST', path, body)).status, 200, 'a developer key is not affected');
});

// ---- the app's token ----

test('the backend token is for the app itself', async (t) => {
    const h = await startHearth({ t, settings: { 'identity.peers': 'any' } });
    const id = await newApp(h), { call } = await newKey(h);
    await h.asApp(id)('POST', '/sdk/auth/sync-backend-token', { token: 'token-of-the-user' });
    assert.equal((await h.asApp(id)('GET', '/sdk/auth/token')).body.token, 'token-of-the-user');
    refused(await call('GET', '/sdk/auth/token', undefined, { 'x-app-id': id }), 403, 'APP_ONLY');
    if (canBeNeighbour) {
        const [reply] = await sendAsNeighbour(h, [{ method: 'GET', path: '/sdk/auth/token', headers: { 'x-app-id': id } }]);
        refusedHere(reply, 'PEER_NOT_ALLOWED');
    }
});

// ---- another program under an app's grants ----

test('a changed command asks again and shows the difference', async (t) => {
    const h = await startHearth({ t });
    const definition = { name: 'ledger', permissions: ['llm.chat'], config: { command: '/bin/true', args: ['--quiet'], env: { MODE: 'a' } } };
    const put = (more = {}) => admin(h, 'POST', '/api/apps', { ...definition, ...more, config: { ...definition.config, ...more.config } });
    const { app_id: id } = await put();
    const isAllowed = async () => (await admin(h, 'GET', `/api/permissions?app_id=${id}`)).grants.find((grant) => grant.permission === 'llm.chat').in_force;
    const pending = async () => (await admin(h, 'GET', '/api/permissions/pending')).pending;
    await admin(h, 'POST', '/api/permissions/decide', { app_id: id, permissions: ['llm.chat'], allow: true });
    await put();
    await put({ description: 'another text', config: { env: { MODE: 'b' } } });
    assert.equal(await isAllowed(), true, 'the same program keeps its grants');
    assert.deepEqual(await pending(), []);

    await put({ config: { command: '/bin/sh', args: ['-c', 'true'], env: { MODE: 'a', LD_PRELOAD: '/tmp/x.so' } } });
    assert.equal(await isAllowed(), false);
    const [question] = await pending();
    assert.equal(question.permission, 'llm.chat');
    for (const part of ['/bin/true', '/bin/sh', '--quiet', 'LD_PRELOAD'])
        assert.ok(question.change?.includes(part), `${part}: ${question.change}`);
    refused(await h.asApp(id)('POST', '/sdk/llm/chat', { messages: [{ role: 'user', content: 'hi' }] }), 403, 'PERMISSION_REQUIRED');
    assert.match((await h.cli('permission', 'list')).stdout, /ledger asks for llm\.chat again .*\/bin\/sh.*before .*\/bin\/true/);

    await put();
    assert.equal(await isAllowed(), true, 'the program it was granted to may go on');
    assert.deepEqual(await pending(), []);
    await put({ config: { command: '/bin/sh' } });
    await admin(h, 'POST', '/api/permissions/decide', { app_id: id, permissions: ['llm.chat'], allow: true });
    assert.equal(await isAllowed(), true);
    assert.deepEqual(await pending(), []);
});

test('a denial holds whatever the command is', async (t) => {
    const h = await startHearth({ t });
    const put = (command) => admin(h, 'POST', '/api/apps', { name: 'denied', permissions: ['llm.chat'], config: { command } });
    const { app_id: id } = await put('/bin/true');
    await admin(h, 'POST', '/api/permissions/decide', { app_id: id, permissions: ['llm.chat'], allow: false });
    await put('/bin/sh');
    refused(await h.asApp(id)('POST', '/sdk/llm/chat', { messages: [{ role: 'user', content: 'hi' }] }), 403, 'PERMISSION_DENIED');
});

// ---- model servers of the machine ----

const finding = (port) => ({ 'llm.find_local': true, 'llm.find_local_s': 0, 'llm.find_local_wait_s': 30, 'llm.local_ports': `ollama=${port},lmstudio=1,llamacpp=1,localai=1,kokoro=1,piper=1,whispercpp=1` });
const posing = `require('node:http').createServer((ask, answer) => {
    answer.setHeader('content-type', 'application/json').end(JSON.stringify(ask.url === '/api/version' ? { version: '0.12.3' } : { models: [{ name: 'm', model: 'm' }] }));
}).listen(0, '127.0.0.1', function () { console.log(this.address().port); });`;

async function startPosing(t, drop = '') {
    const child = startProgram(t, process.execPath, ['-e', `${drop}${posing}`]);
    return Number(await new Promise((done) => child.stdout.setEncoding('utf8').once('data', done)));
}

test('another uid\'s program at the port of Ollama is not offered and is sent nothing', { skip: !canBeNeighbour && needsRoot }, async (t) => {
    const port = await startPosing(t, `process.setgid(${neighbourUid}); process.setuid(${neighbourUid});`);
    const h = await startHearth({ t, settings: { ...finding(port), 'llm.local_accepted': 'ollama' } });
    const { call } = await newKey(h);
    assert.deepEqual((await call('GET', '/sdk/llm/providers')).body.llm, []);
    refused(await call('POST', '/sdk/llm/chat', { messages: [{ role: 'user', content: 'secret' }] }), 503, 'PROVIDER_UNAVAILABLE');
    const { waiting } = await admin(h, 'GET', '/api/providers');
    assert.deepEqual(waiting.map(({ name, foreign }) => [name, foreign]), [['ollama', true]]);
    assert.match((await h.cli('doctor')).stdout, /another user's program/);
});

test('a model server that is found is used only after the person said yes', async (t) => {
    const port = await startPosing(t);
    const h = await startHearth({ t, settings: finding(port) });
    const { call } = await newKey(h);
    const chat = { messages: [{ role: 'user', content: 'secret' }] };
    refused(await call('POST', '/sdk/llm/chat', chat), 503, 'PROVIDER_UNAVAILABLE', /Ollama was found at 127\.0\.0\.1:\d+ and waits for your yes: `hearth provider accept ollama`/);
    refused(await call('POST', '/sdk/llm/chat', { ...chat, provider: 'ollama' }), 400, 'PROVIDER_UNAVAILABLE', /hearth provider accept ollama/);
    assert.deepEqual((await call('GET', '/sdk/llm/providers')).body.llm, []);
    assert.match((await h.cli('provider', 'list')).stdout, /waits for your yes: `hearth provider accept ollama`/);
    assert.equal((await h.cli('provider', 'accept', 'ollama')).code, 0);
    assert.deepEqual((await call('GET', '/sdk/llm/providers')).body.llm.map(({ provider }) => provider), ['ollama']);
    assert.notEqual((await h.cli('provider', 'accept', 'shop')).code, 0);
});

// ---- programs without a credential (llm.ollama_open) ----

const openSettings = { 'llm.ollama_open': 'true' };

test('llm.ollama_open lets no other user of the machine in, whatever identity.peers says', { skip: !canBeNeighbour && needsRoot }, async (t) => {
    for (const peers of ['same_user', 'any']) {
        const h = await startHearth({ t, settings: { ...openSettings, 'identity.peers': peers } });
        const answers = await sendAsNeighbour(h, [
            { method: 'GET', path: '/api/tags' },
            { method: 'POST', path: '/api/chat', body: { model: 'default', messages: [{ role: 'user', content: 'x' }] } },
            { method: 'POST', path: '/api/embed', body: { model: 'lexical-384', input: 'x' } },
        ]);
        for (const answer of answers) {
            assert.equal(answer.status, 403, answer.text);
            assert.equal(answer.body.hearth_code, 'PEER_NOT_ALLOWED');
        }
        assert.equal((await h.api('GET', '/api/tags')).status, 200, 'the user itself is let in');
    }
});

for (const sandbox of ['none', 'standard'])
    test(`with llm.ollama_open an app that Hearth started in the profile ${sandbox} is not let in without its id and its grants`, async (t) => {
        const h = await startHearth({ t, sandbox, settings: openSettings });
        const app = await launchedApp(h);
        const asNobody = { 'x-app-id': '' };
        const refusal = await app.call('POST', '/api/embed', { model: 'lexical-384', input: 'x' }, asNobody);
        assert.equal(refusal.status, 403, refusal.text);
        assert.equal(refusal.body.hearth_code, 'PEER_NOT_ALLOWED');
        assert.match(refusal.body.error, /id of its own/);
        const asItself = await app.call('POST', '/api/embed', { model: 'lexical-384', input: 'x' });
        assert.equal(asItself.body.hearth_code, 'PERMISSION_REQUIRED', asItself.text);
        assert.equal((await h.api('POST', '/api/embed', { model: 'lexical-384', input: 'x' })).status, 200, 'a program that Hearth did not start is let in');
    });
