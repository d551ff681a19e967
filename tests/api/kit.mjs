// What the files of this folder share beside the harness: the administrator's calls, small agents, the envelope of errors, a
// signed-in browser. Everything goes over the service's Unix socket or over HTTP; no command line is started.
import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, readdirSync, readlinkSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { until } from './harness.mjs';

const run = promisify(execFile);
let n = 0;

export const uuidForm = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
export const timeForm = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/;
export const nobodysId = '00000000-0000-4000-8000-000000000000';

// A name no other thing of this process has.
export function unique(word) { return `${word}-${++n}`; }

// An administrator's request that must succeed; its body.
export async function admin(h, method, path, body, status) {
    const reply = await h.socket(method, path, body);
    assert.ok(reply.status < 300 && (status === undefined || reply.status === status), `${method} ${path}: ${reply.status} ${reply.text}`);
    return reply.body;
}

// Registers an app with grants; its id.
export async function newApp(h, config = {}, permissions = []) {
    const name = config.name ?? unique('app');
    const { app_id: id } = await admin(h, 'POST', '/api/apps', { name, display_name: `The ${name}`, ...config });
    if (permissions.length)
        await decide(h, id, permissions);
    return id;
}

export function decide(h, appId, permissions, more = {}) {
    return admin(h, 'POST', '/api/permissions/decide', { app_id: appId, permissions: [permissions].flat(), allow: true, ...more });
}

// A fresh developer key: {id, key, call}; call() is api() with it.
export async function newKey(h, name = unique('key')) {
    const { id, key } = await admin(h, 'POST', '/api/keys', { name });
    return { id, key, call: h.as({ authorization: `Bearer ${key}` }) };
}

// An agent that is one shell script; $1 is the task id. Its name.
export async function shellAgent(h, script, more = {}) {
    const { name } = await admin(h, 'POST', '/api/agents',
        { name: unique('agent'), command: '/bin/sh', args: ['-c', script, 'agent'], ...h.isSandboxed && { sandbox: { write: [h.desk] } }, ...more });
    return name;
}

// An app whose rows go to an agent: {id, call}.
export async function listeningApp(h, agentName, { backend = {}, handler = {}, ...config } = {}) {
    const handlers = agentName ? [{ tableName: 'svc_activities', agentId: agentName, eventTypes: ['INSERT'], ...handler }] : [];
    const id = await newApp(h, { config: { agentHandlers: handlers, backend: { enabled: true, ...backend } }, ...config },
        ['activities.read', 'activities.write', 'api.task', 'webhook.trigger']);
    return { id, call: h.asApp(id) };
}

export async function insert(call, rawData) {
    const reply = await call('POST', '/activities', { raw_data: rawData });
    assert.equal(reply.status, 201, reply.text);
    return reply.body.data;
}

// The row once its status is one of those given.
export function rowBecomes(call, id, ...statuses) {
    return until(async () => {
        const { body } = await call('GET', `/activities/${id}`);
        return statuses.includes(body.data?.status) && body.data;
    }, { what: `activity ${id} becomes ${statuses}` });
}

// {task, runs, log} once the task is in one of those statuses.
export function taskBecomes(h, uuid, ...statuses) {
    return until(async () => {
        const { body } = await h.socket('GET', `/api/tasks/${uuid}`);
        return statuses.includes(body.task?.status) && body;
    }, { what: `task ${uuid} becomes ${statuses}` });
}

// The tasks of one row, as soon as there are `count`.
export function tasksOfRow(h, rowId, count = 1) {
    return until(async () => {
        const { body } = await h.socket('GET', '/api/tasks?limit=500');
        const found = body.tasks.filter((task) => task.row_id === rowId);
        return found.length >= count && found;
    }, { what: `${count} tasks of row ${rowId}` });
}

// Routes in OpenAI's, Anthropic's and Ollama's form tell errors in it (docs/compatible-api.md); this is the same in the words of the envelope.
export function asEnvelope(reply) {
    if (reply.body?.hearth_code && (reply.body.message ?? reply.body.msg)) {    // the hosted service's
        const { hearth_code: code, message, msg, ...rest } = reply.body;
        return { ...reply, body: { ...rest, success: false, error: message ?? msg, code } };
    }
    const inner = reply.body?.error;
    if (typeof inner === 'string' && reply.body.hearth_code) {          // Ollama's form
        const { hearth_code: code, ...rest } = reply.body;
        return { ...reply, body: { ...rest, success: false, code } };
    }
    if (inner === null || typeof inner !== 'object')
        return reply;
    if (inner.data?.hearth_code)                                        // JSON-RPC's
        return { ...reply, body: { ...inner.data, success: false, error: inner.message, code: inner.data.hearth_code } };
    const { message, hearth_code: code, ...rest } = inner;
    return { ...reply, body: { ...rest, success: false, error: message, code } };
}

// The envelope of specification section "Errors".
export function refused(answer, status, code, text) {
    const reply = asEnvelope(answer);
    const told = `${reply.status} ${reply.text}`;
    assert.equal(reply.status, status, told);
    assert.equal(reply.headers['content-type']?.split(';')[0], 'application/json', told);
    assert.equal(reply.body?.success, false, told);
    assert.equal(reply.body.code, code, told);
    assert.equal(typeof reply.body.error, 'string', told);
    assert.ok(reply.body.error.length > 0, told);
    assert.ok(reply.headers['x-request-id'], 'every reply carries x-request-id');
    if (text !== undefined)
        assert.match(reply.body.error, text instanceof RegExp ? text : new RegExp(`^${text}$`), told);
    return reply.body;
}

// 400 VALIDATION_ERROR that names exactly these fields.
export function refusedFields(reply, ...fields) {
    const body = refused(reply, 400, 'VALIDATION_ERROR');
    assert.deepEqual(body.errors.map((one) => one.field).sort(), [...fields].sort(), reply.text);
    assert.ok(fields.some((field) => body.error.includes(field)), `"${body.error}" must name a field`);
    return body;
}

// What a browser gets for a one-time link: {reply, cookie, proof, headers}; headers are what makes a request the administrator's.
export async function followLink(h, url) {
    const reply = await h.api('GET', new URL(url).pathname + new URL(url).search);
    assert.equal(reply.status, 303, reply.text);
    const cookie = [reply.headers['set-cookie']].flat()[0].split(';')[0];
    const [, proof] = /^\/session#proof=([\w-]+)$/.exec(reply.headers.location);
    return { reply, cookie, proof, headers: { cookie, 'x-hearth-proof': proof } };
}

// A browser the administrator signed in: followLink(), and api() with its headers.
export async function signIn(h) {
    const { url } = await admin(h, 'POST', '/api/session/link', undefined, 201);
    const browser = await followLink(h, url);
    return { ...browser, url, call: h.as(browser.headers) };
}

// Runs what CONFIRMATION_REQUIRED told a browser, as the person does in a terminal.
export async function confirm(h, reply) {
    const { confirm: command } = refused(reply, 403, 'CONFIRMATION_REQUIRED', /terminal/);
    return admin(h, 'POST', '/api/session/confirm', { code: command.replace('hearth confirm ', '') });
}

// A browser's call whose person confirms what has to be confirmed.
export function confirming(h, call) {
    return async (...request) => {
        const reply = await call(...request);
        if (reply.body?.code !== 'CONFIRMATION_REQUIRED')
            return reply;
        await confirm(h, reply);
        return call(...request);
    };
}

// The stream of changes, from its first event on.
export async function changes(t, h) {
    const { headers } = await signIn(h);
    const stream = await h.sse('/api/events', { headers });
    t.after(() => stream.close());
    await stream.next();
    return stream;
}

// For tests of what belongs to a day of UTC: when the day is about to turn, the next one is waited for.
export async function awayFromMidnight(awayMs = 180_000) {
    const day = 86_400_000, leftMs = day - Date.now() % day;
    if (leftMs < awayMs)
        await pause(leftMs + 1000);
}

// Retry-After of a limit of a minute that a request at `began` (of performance.now()) or later has reached: 60 to 61 seconds after that request.
export function isRestOfMinute(seconds, began) {
    const passed = (performance.now() - began) / 1000;
    return seconds >= 60 - passed - 1 && seconds <= 61;
}

// A statement by the sqlite3 program, another process and nobody of ours; its rows.
export async function sqlite(file, sql) {
    const { stdout } = await run('sqlite3', ['-json', '-cmd', '.timeout 5000', file, sql]);
    return stdout ? JSON.parse(stdout) : [];
}

export function storeFile(h) { return join(h.dataDir, 'hearth.db'); }
export function backendFile(h) { return join(h.dataDir, 'backend.db'); }

export function isAlive(pid) {
    try {
        return !readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/^.*\) /s, '').startsWith('Z');
    } catch {
        return false;
    }
}

export function residentKib(pid) { return Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1]); }

// A small file system of its own, gone with the test. Null without the right to mount one.
export function smallDisk(t, megabytes) {
    const folder = mkdtempSync(join(tmpdir(), 'hearth-disk-'));
    const mounted = process.getuid() === 0
        && spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m,mode=700`, 'tmpfs', folder]).status === 0;
    t.after(() => {
        if (mounted)
            spawnSync('umount', ['-l', folder]);
        rmSync(folder, { recursive: true, force: true });
    });
    return mounted ? folder : null;
}

// The speech workers of a service: {pid, name}.
export function speechWorkers(h) {
    const found = [];
    for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name)))
        try {
            const name = /hearth-speech-\w+/.exec(readlinkSync(`/proc/${pid}/exe`))?.[0];
            const parent = Number(/^PPid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1]);
            if (name && parent === h.pid)
                found.push({ pid: Number(pid), name });
        } catch { /* it has ended, or belongs to somebody else */ }
    return found;
}

// A WAV of 0.3 s, 16 kHz, 16 bits, mono.
export const silentWav = (() => {
    const wav = Buffer.alloc(44 + 9600);
    wav.write('RIFF');
    wav.writeUInt32LE(wav.length - 8, 4);
    wav.write('WAVEfmt ', 8);
    [16, 1 | 1 << 16, 16000, 32000, 2 | 16 << 16].forEach((value, i) => wav.writeUInt32LE(value, 16 + 4 * i));
    wav.write('data', 36);
    wav.writeUInt32LE(9600, 40);
    return wav;
})();
