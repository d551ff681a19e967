// A Hearth of a test's own: a private service on a port the system picks, with a temporary data folder, ended by its own pid.
//
//     import { startHearth, until } from './harness.mjs';
//     test('…', async (t) => {
//         const h = await startHearth({ t, settings: { 'tasks.sweep_s': 1 } });    // t: stopped when the test ends
//         const dev = await h.asKey();                                             // api() with a developer key
//         const reply = await dev('POST', '/activities', { raw_data: {} });        // {status, headers, body, text}
//     });
//
// stop() asserts a clean exit: code 0 and no sanitizer report. kill() is SIGKILL and keeps the data; start() begins again on the
// same data. Nothing here sleeps for a fixed time: wait with until(), logged(), or the stream's next(). Tests that only read, or
// whose writes cannot meet, take one Hearth together: sharedHearth().
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { chownSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import { networkInterfaces, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { after } from 'node:test';
import { pausedMs } from '../tools/metronome.mjs';

const root = resolve(import.meta.dirname, '../..');
export const binary = resolve(process.env.HEARTH_BIN
    ?? ['build/debug/hearth', 'build/release/hearth'].map((path) => join(root, path)).find(existsSync) ?? 'build/debug/hearth');

// For `skip`: false, or the reason.
export const needsIpv6 = Object.values(networkInterfaces()).flat().some(({ address }) => address === '::1') ? false : 'this machine has no IPv6';

// How long is waited for what must come. Generous: a busy machine takes seconds for what is done in milliseconds here, and no test waits for longer than it must.
const waitDeadlineMs = Number(process.env.WAIT_MS ?? 60_000);
const startDeadlineMs = 120_000;
const stopDeadlineMs = 120_000;
const sanitizerReport = /ERROR: \w+Sanitizer|WARNING: ThreadSanitizer|runtime error: /;
// base/loop and base/pool: the loop never waits, the short pool never waits on a peer. The program measures what its threads did, not for how long the
// machine left them without a processor, and counts a sanitizer's own time down (base/stall.h): every report fails the suite. `mayStall` is for a test
// that stops the process itself. Time in which the machine's host took a processor away counts as time that the thread ran: a report is excused
// when less than stallMs remain without the pauses that tests/tools/metronome.mjs noted.
const stallReport = /the loop was held for (\d+) ms|a job of the pool \w+ waited for (\d+) ms/;
const stallMs = 50;
const running = new Set();

function isStall(line, clockAheadMs) {
    const report = stallReport.exec(line);
    if (!report)
        return false;
    const ms = Number(report[1] ?? report[2]), until = Date.parse(line.split(' ')[0]) - clockAheadMs;
    const file = process.env.HEARTH_TEST_PAUSES;
    const paused = file && existsSync(file) ? pausedMs(readFileSync(file, 'utf8'), until - ms, until) : 0;
    return ms - paused >= stallMs;
}

process.on('exit', () => running.forEach((child) => child.kill('SIGKILL')));

// Resolves with the first truthy value of condition(), asked again every few milliseconds; throws when the deadline passes (of a clock that nobody sets).
export async function until(condition, { deadlineMs = waitDeadlineMs, what = String(condition), everyMs = 10 } = {}) {
    const end = performance.now() + deadlineMs;
    for (;;) {
        const value = await condition();
        if (value)
            return value;
        if (performance.now() > end)
            throw new Error(`not within ${deadlineMs} ms: ${what}`);
        await new Promise((done) => setTimeout(done, everyMs));
    }
}

// A list that others wait on: push() wakes every wait() whose predicate the new element fulfils.
export class Arrivals {
    items = [];
    #waits = new Set();
    #end = null;

    push(item) {
        this.items.push(item);
        for (const wait of this.#waits)
            wait.look(item);
    }

    // No more will come: those still waiting get an error.
    end(reason) {
        this.#end ??= reason;
        for (const wait of this.#waits)
            wait.fail(new Error(`${reason} before ${wait.what}`));
    }

    // First element at or behind `from` for which predicate holds.
    wait(predicate, { deadlineMs = waitDeadlineMs, from = 0, what = String(predicate) } = {}) {
        const found = this.items.slice(from).find(predicate);
        if (found !== undefined)
            return Promise.resolve(found);
        if (this.#end)
            return Promise.reject(new Error(`${this.#end} before ${what}`));
        return new Promise((done, failed) => {
            const wait = { what };
            const settle = (act, value) => {
                clearTimeout(timer);
                this.#waits.delete(wait);
                act(value);
            };
            const timer = setTimeout(() => wait.fail(new Error(`not within ${deadlineMs} ms: ${what}`)), deadlineMs);
            wait.look = (item) => predicate(item) && settle(done, item);
            wait.fail = (error) => settle(failed, error);
            this.#waits.add(wait);
        });
    }
}

// Server-sent events out of text that comes in pieces (HTML standard, section 9.2.6).
export function sseReader(onEvent, onComment = () => {}) {
    let rest = '';
    let fields = { event: 'message', data: [], id: undefined };

    function dispatch() {
        if (fields.data.length)
            onEvent({ event: fields.event, data: fields.data.join('\n'), id: fields.id });
        fields = { event: 'message', data: [], id: undefined };
    }

    function line(text) {
        if (text === '')
            return dispatch();
        const colon = text.indexOf(':');
        const name = colon < 0 ? text : text.slice(0, colon);
        const value = colon < 0 ? '' : text.slice(colon + 1).replace(/^ /, '');
        if (colon === 0)
            onComment(value);
        else if (name === 'data')
            fields.data.push(value);
        else if (name === 'event' || name === 'id')
            fields[name] = value;
    }

    return (piece) => {
        const lines = (rest + piece).split(/\r\n|\n|\r(?!$)/);
        rest = lines.pop();
        lines.forEach(line);
    };
}

function encodeBody(body, headers) {
    if (body === undefined)
        return undefined;
    if (typeof body === 'string' || Buffer.isBuffer(body))
        return body;
    headers['content-type'] ??= 'application/json';
    return JSON.stringify(body);
}

function parseJson(text) {
    try {
        return JSON.parse(text);
    } catch {
        return undefined;
    }
}

// One request; url is the service's, or {socketPath} for its Unix socket.
export function request(base, method, path, body, headers = {}, { timeoutMs = 120_000, signal } = {}) {
    const sent = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
    const bytes = encodeBody(body, sent);
    if (bytes !== undefined && sent['transfer-encoding'] === undefined)
        sent['content-length'] ??= Buffer.byteLength(bytes);
    const where = typeof base === 'string' ? { host: new URL(base).hostname.replace(/[[\]]/g, ''), port: new URL(base).port } : base;
    return new Promise((done, failed) => {
        const outgoing = http.request({ ...where, method, path, headers: sent, agent: false, timeout: timeoutMs, signal }, (incoming) => {
            const pieces = [];
            incoming.on('data', (piece) => pieces.push(piece));
            incoming.on('error', failed);
            incoming.on('end', () => {
                const bytes = Buffer.concat(pieces);
                const text = bytes.toString('utf8');
                done({ status: incoming.statusCode, headers: incoming.headers, bytes, text, body: parseJson(text) });
            });
        });
        outgoing.on('timeout', () => outgoing.destroy(new Error(`${method} ${path}: no answer within ${timeoutMs} ms`)));
        outgoing.on('error', failed);
        outgoing.end(bytes);
    });
}

// Opens a stream of events; resolves when the head of the answer is there. next() waits for an event, each event is given once.
function openStream(base, path, { method = 'GET', headers = {}, body } = {}) {
    const url = new URL(path, base);
    const sent = { accept: 'text/event-stream', ...headers };
    const bytes = encodeBody(body, sent);
    return new Promise((done, failed) => {
        const outgoing = http.request(url, { method, headers: sent, agent: false }, (incoming) => {
            const events = new Arrivals();
            const comments = new Arrivals();
            const read = sseReader((event) => events.push({ ...event, json: parseJson(event.data) }), (text) => comments.push(text));
            let given = 0;
            let text = '';
            incoming.setEncoding('utf8');
            incoming.on('data', (piece) => {
                text += piece;
                read(piece);
            });
            const ended = new Promise((closed) => incoming.on('close', () => {
                events.end('the stream ended');
                comments.end('the stream ended');
                closed();
            }));
            done({
                status: incoming.statusCode,
                headers: incoming.headers,
                events: events.items,
                comments,
                ended,
                text: () => text,
                async next(predicate = () => true, options = {}) {
                    const event = await events.wait(predicate, { from: given, ...options });
                    given = events.items.indexOf(event) + 1;
                    return event;
                },
                close: () => outgoing.destroy(),
            });
            incoming.on('error', () => {});
        });
        outgoing.on('error', failed);
        outgoing.end(bytes);
    });
}

// Sends bytes over TCP as they are and resolves with all that came back when the peer closes or falls silent for quietMs.
// `bytes` may be a list: each piece is written after the one before it has left; numbers in it are pauses in milliseconds.
function sendRaw(base, bytes, { quietMs = 0, deadlineMs = waitDeadlineMs, end = false } = {}) {
    const { hostname, port } = new URL(base);
    return new Promise((done, failed) => {
        const socket = net.connect(Number(port), hostname.replace(/[[\]]/g, ''));
        const pieces = [];
        let quiet = null;
        const finish = () => {
            clearTimeout(limit);
            clearTimeout(quiet);
            socket.destroy();
            done(Buffer.concat(pieces).toString('latin1'));
        };
        const limit = setTimeout(() => {
            socket.destroy();
            failed(new Error(`the peer kept the connection for ${deadlineMs} ms; it had sent: ${Buffer.concat(pieces).toString('latin1').slice(0, 300)}`));
        }, deadlineMs);
        socket.on('data', (piece) => {
            pieces.push(piece);
            if (quietMs) {
                clearTimeout(quiet);
                quiet = setTimeout(finish, quietMs);
            }
        });
        socket.on('close', finish);
        socket.on('error', finish);
        socket.on('connect', async () => {
            for (const piece of [bytes].flat()) {
                if (socket.destroyed)
                    return;
                if (typeof piece === 'number')
                    await new Promise((go) => setTimeout(go, piece));
                else
                    await new Promise((go) => socket.write(piece, go));
            }
            if (end)
                socket.end();
        });
    });
}

export function runProgram(program, args, options) {
    return new Promise((done, failed) => {
        const { input, deadlineMs = 180_000, ...rest } = options;
        const child = spawn(program, args, { ...rest, stdio: ['pipe', 'pipe', 'pipe'] });
        running.add(child);
        const timer = setTimeout(() => child.kill('SIGKILL'), deadlineMs);
        let stdout = '';
        let stderr = '';
        child.stdout.setEncoding('utf8').on('data', (piece) => { stdout += piece; });
        child.stderr.setEncoding('utf8').on('data', (piece) => { stderr += piece; });
        child.stdin.on('error', () => {});
        child.stdin.end(input);
        child.on('error', failed);
        child.on('close', (code, signal) => {
            clearTimeout(timer);
            running.delete(child);
            done({ code, signal, stdout, stderr, json: parseJson(stdout) });
        });
    });
}

class Hearth {
    #options;
    #child = null;
    #exited = null;
    #key = null;
    #homeIsOurs;

    constructor(options) {
        this.#options = options;
        this.#homeIsOurs = !options.dataDir;
        this.home = options.dataDir ? resolve(options.dataDir, '..') : mkdtempSync(join(tmpdir(), 'hearth-test-'));
        this.dataDir = options.dataDir ?? join(this.home, 'data');
        // A folder beside the data folder, into which the agents of shellAgent() may write in every profile.
        this.desk = join(this.home, 'desk');
        mkdirSync(this.desk, { recursive: true, mode: 0o700 });
        if (options.uid)
            [this.home, this.desk].forEach((folder) => chownSync(folder, options.uid, options.uid));
    }

    // How its programs are started: as the uid of the options, when they name one (root only).
    get #spawnOptions() {
        const { uid } = this.#options;
        return { env: this.env, cwd: this.home, ...uid && { uid, gid: uid } };
    }

    get #program() { return this.#options.program ?? binary; }

    // Nothing of the tester's own environment reaches the service, except where to find programs.
    get env() {
        return {
            PATH: process.env.PATH,
            HOME: this.home,
            TMPDIR: tmpdir(),
            ASAN_OPTIONS: 'detect_leaks=1:strict_string_checks=1',
            UBSAN_OPTIONS: 'print_stacktrace=1:halt_on_error=1',
            TSAN_OPTIONS: 'halt_on_error=0',
            // Models that happen to be on the tester's machine are none of a test's, which turns this on by its settings.
            HEARTH_LLM_FIND_LOCAL: 'false',
            HEARTH_LLAMACPP_SERVER: '/nowhere/llama-server',
            // Scripts of most tests note what they did beside the data folder, with the numbers of their processes as the test sees them. Where the
            // sandbox is the point, or nothing stands against it, a test says `sandbox: 'standard'`.
            HEARTH_SANDBOX_DEFAULT: this.#options.sandbox ?? 'none',
            ...this.#options.env,
        };
    }

    get isSandboxed() { return (this.#options.sandbox ?? 'none') !== 'none'; }
    get pid() { return this.#child?.pid; }
    get isRunning() { return this.#child !== null && this.#child.exitCode === null && this.#child.signalCode === null; }
    // Lines of standard error of the present (or last) process.
    get log() { return this.logLines.items; }

    async start() {
        const { settings = {}, args = [], listen = '127.0.0.1:0' } = this.#options;
        const set = Object.entries(settings).flatMap(([key, value]) => ['--set', `${key}=${value}`]);
        const child = spawn(this.#program, ['serve', '--data', this.dataDir, '--listen', listen, ...set, ...args],
            { ...this.#spawnOptions, stdio: ['ignore', 'pipe', 'pipe'] });
        running.add(child);
        this.#child = child;
        this.logLines = new Arrivals();
        this.outLines = new Arrivals();
        this.#feedLines(child.stdout, this.outLines);
        this.#feedLines(child.stderr, this.logLines);
        this.#exited = new Promise((done) => child.on('close', (code, signal) => {
            running.delete(child);
            this.outLines.end(`the service ended (${signal ?? `code ${code}`})`);
            this.logLines.end(`the service ended (${signal ?? `code ${code}`})`);
            done({ code, signal });
        }));
        child.on('error', (error) => this.outLines.end(`the service did not start (${error.message})`));
        try {
            const line = await this.outLines.wait(() => true, { deadlineMs: startDeadlineMs, what: 'its first line' });
            const listening = line.match(/^hearth: listening on (http:\/\/\S+)$/);
            assert.ok(listening, `the first line must say where it listens, it says: ${line}`);
            this.url = listening[1];
            this.port = Number(new URL(this.url).port);
        } catch (error) {
            child.kill('SIGKILL');
            await this.#exited;
            throw new Error(`${error.message}\n${this.log.join('\n')}`);
        }
        return this;
    }

    #feedLines(stream, lines) {
        let rest = '';
        stream.setEncoding('utf8');
        stream.on('data', (piece) => {
            const parts = (rest + piece).split('\n');
            rest = parts.pop();
            parts.forEach((line) => lines.push(line));
        });
        stream.on('end', () => rest && lines.push(rest));
    }

    api(method, path, body, headers, options) { return request(this.url, method, path, body, headers, options); }
    raw(bytes, options) { return sendRaw(this.url, bytes, options); }
    sse(path, options) { return openStream(this.url, path, options); }

    // The service's Unix socket, where the caller is the administrator.
    socket(method, path, body, headers, options) {
        return request({ socketPath: join(this.dataDir, 'hearth.sock') }, method, path, body, { host: 'localhost', ...headers }, options);
    }

    // hearth <args> --data <this folder>. An object as the last argument is options: {input, env, deadlineMs}.
    async cli(...args) {
        const options = typeof args.at(-1) === 'object' ? args.pop() : {};
        const end = args.includes('--') ? args.indexOf('--') : args.length; // what follows is another program's
        const result = await runProgram(this.#program, [...args.slice(0, end), '--data', this.dataDir, ...args.slice(end)],
            { ...options, ...this.#spawnOptions, env: { ...this.env, ...options.env } });
        assert.doesNotMatch(result.stderr, sanitizerReport);
        return result;
    }

    // As cli(), which must succeed; the parsed JSON of its answer.
    async cliJson(...args) {
        const options = typeof args.at(-1) === 'object' ? [args.pop()] : [];
        const result = await this.cli(...args, '--json', ...options);
        assert.equal(result.code, 0, `hearth ${args.join(' ')}: ${result.stderr}${result.stdout}`);
        assert.notEqual(result.json, undefined, `hearth ${args.join(' ')} did not print JSON: ${result.stdout}`);
        return result.json;
    }

    // A developer key; the same one each time.
    async key() {
        this.#key ??= this.#newKey();
        return this.#key;
    }

    // Without a start of the command line where that is possible.
    async #newKey() {
        if (!this.isRunning || this.#options.uid)
            return (await this.cliJson('key', 'new')).key;
        const reply = await this.socket('POST', '/api/keys', { name: 'of the harness' });
        assert.equal(reply.status, 201, reply.text);
        return reply.body.key;
    }

    // Registers an app and grants permissions; its id. `config` overrides the smallest valid configuration.
    async app(config = {}, permissions = []) {
        const n = Math.random().toString(36).slice(2, 10);
        const whole = { name: `app-${n}`, display_name: `App ${n}`, ...config };
        const { app_id: id } = await this.cliJson('app', 'add', this.file(`app-${n}.json`, whole));
        for (const permission of permissions)
            await this.grant(id, permission);
        return id;
    }

    async grant(appId, permission, ...how) {
        const result = await this.cli('permission', 'grant', appId, permission, ...how);
        assert.equal(result.code, 0, result.stderr);
    }

    // Registers an agent definition; its name.
    async agent(definition) {
        const { name } = await this.cliJson('agent', 'add', this.file(`agent-${definition.name}.json`, definition));
        return name;
    }

    // Writes a file into the test's own folder; its path. Anything but text or bytes becomes JSON.
    file(name, content) {
        const path = join(this.home, name);
        writeFileSync(path, typeof content === 'string' || Buffer.isBuffer(content) ? content : JSON.stringify(content), { mode: 0o600 });
        if (this.#options.uid)
            chownSync(path, this.#options.uid, this.#options.uid);
        return path;
    }

    // api() that always sends these headers.
    as(headers) {
        return (method, path, body, more, options) => this.api(method, path, body, { ...headers, ...more }, options);
    }

    async asKey() { return this.as({ authorization: `Bearer ${await this.key()}` }); }
    asApp(appId) { return this.as({ 'x-app-id': appId }); }

    // Waits for a line of the log that matches.
    logged(pattern, options) { return this.logLines.wait((line) => pattern.test(line), { what: `a log line ${pattern}`, ...options }); }

    signal(name) { process.kill(this.pid, name); }
    exited() { return this.#exited; }

    // SIGTERM and a clean end; the data stays for start(). Asserts code 0 and that no sanitizer spoke.
    async terminate() {
        if (this.isRunning)
            this.#child.kill('SIGTERM');
        let timer;
        const late = new Promise((done) => { timer = setTimeout(() => done('late'), stopDeadlineMs); });
        const outcome = await Promise.race([this.#exited, late]);
        clearTimeout(timer);
        if (outcome === 'late') {
            this.#child.kill('SIGKILL');
            await this.#exited;
            assert.fail(`the service did not end within ${stopDeadlineMs} ms of SIGTERM\n${this.log.slice(-40).join('\n')}`);
        }
        this.assertNoReport();
        assert.deepEqual(outcome, { code: 0, signal: null }, `the service must end with code 0\n${this.log.slice(-40).join('\n')}`);
    }

    // SIGKILL; the data stays.
    async kill() {
        if (this.isRunning)
            this.#child.kill('SIGKILL');
        await this.#exited;
        this.assertNoReport();
    }

    // Of the log's lines from `from` on.
    assertNoReport(from = 0) {
        const lines = this.log.slice(from), at = lines.findIndex((line) => sanitizerReport.test(line));
        assert.equal(at, -1, `a sanitizer spoke:\n${lines.slice(at, at + 60).join('\n')}`);
        if (!this.mayStall)
            assert.deepEqual(lines.filter((line) => isStall(line, this.#options.clockAheadMs ?? 0)), [], 'the loop or the short pool was held up');
    }

    // Ends the service (unless it is killed already) and removes the temporary folder.
    async stop() {
        try {
            if (this.isRunning)
                await this.terminate();
            else
                this.assertNoReport();
        } finally {
            if (this.#homeIsOurs)
                rmSync(this.home, { recursive: true, force: true });
        }
    }
}

// options: t (test context: stop() is called when it ends), settings {key: value}, dataDir (kept at the end), env, args, listen,
// uid (its processes and files are that user's; root only), program (another one than HEARTH_BIN), clockAheadMs (of its wall clock, by a fake one).
const ofTests = new WeakMap();

// At the end of the test the last one stops first: it may serve the folder of an earlier one, which stop() removes.
function stopAtEnd(t, hearth) {
    if (ofTests.has(t)) {
        ofTests.get(t).push(hearth);
        return;
    }
    ofTests.set(t, [hearth]);
    t.after(async () => {
        const ends = [];
        for (const one of ofTests.get(t).reverse())
            ends.push(await one.stop().catch((error) => error));
        const failed = ends.find((end) => end instanceof Error);
        if (failed)
            throw failed;
    });
}

export async function startHearth(options = {}) {
    const hearth = new Hearth(options);
    if (options.t)
        stopAtEnd(options.t, hearth);
    return hearth.start();
}

// A Hearth whose service has run and has ended: for the command line alone on its data folder.
export async function stoppedHearth(options = {}) {
    const hearth = await startHearth(options);
    await hearth.terminate();
    return hearth;
}

// One Hearth for several tests of a file, or of the describe() that calls this: begun for the first test that asks, stopped after the last as every other one.
//
//     const shared = sharedHearth({ settings: { 'tasks.sweep_s': 1 } });       // the options of startHearth(), without t
//     test('…', async (t) => {
//         const h = await shared(t);                                           // writes are below newKey(h), newApp(h), unique('name')
//     });
//
// For tests that only read, or whose writes cannot meet: below a key, an app and names of their own. A test that changes settings, ends or restarts the
// service, measures memory or time, fills what has a limit, or looks at whole lists, counters or the log has startHearth(). A test fails that leaves the
// service ended, and one during which a sanitizer or a stall was reported. `begin` is stoppedHearth for commands that need no service.
export function sharedHearth(options = {}, begin = startHearth) {
    let beginning = null;
    after(async () => {
        const hearth = await beginning?.catch(() => null);
        await hearth?.stop().catch((error) => { throw new Error(`the Hearth that ${process.argv[1]} shares: ${error.message}`); });
    });
    return async (t) => {
        const hearth = await (beginning ??= begin(options)), { pid, isRunning } = hearth, from = hearth.log.length;
        t.after(() => {
            assert.deepEqual([hearth.pid, hearth.isRunning], [pid, isRunning], 'a test must not end or restart a Hearth that it shares');
            hearth.assertNoReport(from);
        });
        return hearth;
    };
}

// A Hearth that is not started: for the command line alone, or to prepare the data folder first.
export function coldHearth(options = {}) {
    const hearth = new Hearth(options);
    hearth.logLines = new Arrivals();
    if (!options.isBare) {              // commands that only read make no data folder
        mkdirSync(hearth.dataDir, { recursive: true, mode: 0o700 });
        if (options.uid !== undefined)
            chownSync(hearth.dataDir, options.uid, options.uid);
    }
    if (options.t)
        stopAtEnd(options.t, hearth);
    return hearth;
}
