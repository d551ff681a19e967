// What the attackers of this folder share, beside the harness and the kit of tests/api: another uid, raw conversations, hostile servers, and
// what a process holds.
//
//     const h = await startHearthAsUser({ t });                        // under an unprivileged uid when the test runs as root
//     if (!canBeNeighbour) return t.skip(needsRoot);
//     const { code, stdout } = await runAsNeighbour('/bin/cat', [join(h.dataDir, 'hearth.db')]);
//     const { json } = await nodeAsNeighbour(`say(require('fs').readdirSync(${JSON.stringify(h.dataDir)}))`);
//
//     const talk = await converse(h);                                  // a TCP connection, bytes as they are
//     await talk.send('GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n');
//     const { status, headers, body } = await talk.response();
//     talk.reset();
//
//     const server = await hostileServer(t, (socket) => socket.end('nonsense'));       // server.url, server.port, server.sockets
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, copyFileSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, statSync } from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { binary, runProgram, startHearth } from '../api/harness.mjs';

export { residentKib } from '../api/kit.mjs';

export const isRoot = process.getuid() === 0;
export const serviceUid = 61_234;       // nobody's account: root is refused nothing, so a service of root's shows nothing
export const neighbourUid = 65_534;
export const canBeNeighbour = isRoot;
export const needsRoot = 'needs root, to act as another user of the machine';

// ---- another uid ----

function othersMayReach(path) {
    for (let folder = dirname(path); ; folder = dirname(folder)) {
        if (!(statSync(folder).mode & 0o001))
            return false;
        if (folder === '/')
            return (statSync(path).mode & 0o005) === 0o005;
    }
}

// The program under test where every user may execute it; a copy when its folder is private.
function reachableProgram() {
    if (othersMayReach(binary))
        return binary;
    const folder = mkdtempSync(join(tmpdir(), 'hearth-program-'));
    process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
    const copy = join(folder, basename(binary));
    copyFileSync(binary, copy);
    chmodSync(folder, 0o755);
    chmodSync(copy, 0o755);
    return copy;
}

let program;

// The options that put a Hearth under serviceUid; none when the test is not root.
export function userOptions() {
    return isRoot ? { uid: serviceUid, program: program ??= reachableProgram() } : {};
}

export function startHearthAsUser(options = {}) {
    return startHearth({ ...userOptions(), ...options });
}

// Runs a program that every user may execute; {code, signal, stdout, stderr, json}.
export function runAs(uid, command, args = [], options = {}) {
    return runProgram(command, args, { cwd: '/', env: { PATH: '/usr/bin:/bin' }, uid, gid: uid, ...options });
}

export function runAsNeighbour(command, args, options) { return runAs(neighbourUid, command, args, options); }

// Runs a script of Node (CommonJS, built-in modules only) as that uid; say(value) is its answer, in `json`. Node starts as root and steps
// down, because its program may lie where that uid does not reach.
export function nodeAs(uid, script, options = {}) {
    const step = isRoot && uid !== 0 ? `process.setgroups([]); process.setgid(${uid}); process.setuid(${uid});` : '';
    const source = `${step} const say = (value) => console.log(JSON.stringify(value));\n(async () => {\n${script}\n})();`;
    return runProgram(process.execPath, ['-e', source], { cwd: '/', env: { PATH: '/usr/bin:/bin' }, ...options });
}

export function nodeAsNeighbour(script, options) { return nodeAs(neighbourUid, script, options); }

// ---- raw conversations ----

const headEnd = '\r\n\r\n';

// Takes one whole response off the front of `bytes`; undefined when it is not there yet. Throws on what is no HTTP.
export function takeResponse(bytes, { isHead = false, isClosed = false } = {}) {
    const end = bytes.indexOf(headEnd);
    if (end < 0)
        return undefined;
    const [first, ...lines] = bytes.subarray(0, end).toString('latin1').split('\r\n');
    const status = Number(/^HTTP\/1\.1 (\d{3}) [ -~]+$/.exec(first)?.[1]);
    assert.ok(status, `no status line: ${JSON.stringify(first.slice(0, 200))}`);
    const headers = {};
    for (const line of lines) {
        const [, name, value] = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+): ?([\t -~\x80-\xff]*)$/.exec(line) ?? [];
        assert.ok(name, `no header: ${JSON.stringify(line.slice(0, 200))}`);
        headers[name.toLowerCase()] = value;
    }
    const taken = takeBody(bytes.subarray(end + headEnd.length), { status, headers, isHead, isClosed });
    return taken && { status, headers, ...taken, ...unpacked(headers, taken) };
}

function unpacked(headers, { bytes, rest }) {
    return headers['content-encoding'] === 'gzip' && bytes.length > 0 ? bodyOf(gunzipSync(bytes), rest) : {};
}

function takeBody(rest, { status, headers, isHead, isClosed }) {
    const none = { bytes: Buffer.alloc(0), text: '', body: undefined, rest };
    if (isHead || status < 200 || status === 204 || status === 304)
        return none;
    if (headers['transfer-encoding'] === 'chunked')
        return takeChunks(rest);
    if (headers['content-length'] === undefined)
        return isClosed ? bodyOf(rest, Buffer.alloc(0)) : undefined;
    const length = Number(headers['content-length']);
    assert.ok(Number.isSafeInteger(length), `content-length ${headers['content-length']}`);
    return rest.length < length ? undefined : bodyOf(rest.subarray(0, length), rest.subarray(length));
}

function takeChunks(bytes) {
    const pieces = [];
    for (let at = 0; ;) {
        const end = bytes.indexOf('\r\n', at);
        if (end < 0)
            return undefined;
        const size = /^([0-9a-fA-F]+)$/.exec(bytes.subarray(at, end).toString('latin1'))?.[1];
        assert.ok(size, `no size of a chunk: ${JSON.stringify(bytes.subarray(at, end).toString('latin1'))}`);
        const length = parseInt(size, 16), next = end + 2 + length + 2;
        if (bytes.length < next)
            return undefined;
        pieces.push(bytes.subarray(end + 2, end + 2 + length));
        if (length === 0)
            return bodyOf(Buffer.concat(pieces), bytes.subarray(next));
        at = next;
    }
}

function bodyOf(bytes, rest) {
    const text = bytes.toString('utf8');
    try {
        return { bytes, text, body: JSON.parse(text), rest };
    } catch {
        return { bytes, text, body: undefined, rest };
    }
}

class Conversation {
    received = Buffer.alloc(0);
    isClosed = false;
    error = null;
    #wakers = new Set();

    constructor(socket) {
        this.socket = socket;
        socket.on('data', (piece) => {
            this.received = Buffer.concat([this.received, piece]);
            this.#wake();
        });
        socket.on('error', (error) => { this.error = error; });
        socket.on('close', () => {
            this.isClosed = true;
            this.#wake();
        });
    }

    #wake() {
        const woken = [...this.#wakers];
        this.#wakers.clear();
        woken.forEach((waker) => waker());
    }

    // Resolves when the bytes have left, or the connection is closed.
    send(bytes) {
        return new Promise((done) => this.isClosed || !this.socket.writable ? done() : this.socket.write(bytes, () => done()));
    }

    // Waits for the first truthy value of look(); throws after the deadline. A closed connection is looked at once more.
    async wait(look, { deadlineMs = 60_000, what = String(look) } = {}) {
        const end = performance.now() + deadlineMs;
        for (;;) {
            const value = look(this);
            if (value)
                return value;
            const leftMs = end - performance.now();
            if (this.isClosed || leftMs <= 0)
                throw new Error(`${this.isClosed ? 'closed' : `not within ${deadlineMs} ms`}: ${what}; received ${JSON.stringify(this.received.toString('latin1').slice(0, 300))}`);
            await new Promise((done) => {
                const timer = setTimeout(done, leftMs);
                this.#wakers.add(() => {
                    clearTimeout(timer);
                    done();
                });
            });
        }
    }

    // The next whole response, taken off what was received: {status, headers, bytes, text, body}.
    response(options = {}) {
        return this.wait(() => {
            const found = takeResponse(this.received, { ...options, isClosed: this.isClosed });
            if (found)
                this.received = found.rest;
            return found;
        }, { what: 'a response', ...options });
    }

    closed(options = {}) { return this.wait(() => this.isClosed, { what: 'the end of the connection', ...options }); }
    end() { this.socket.end(); }
    reset() { this.socket.resetAndDestroy(); }
    destroy() { this.socket.destroy(); }
}

// Opens a connection; `to` is a Hearth, {port}, {port, host} or {path} of a Unix socket.
export async function converse(to) {
    const where = to.path ? { path: to.path } : { port: to.port, host: to.host ?? '127.0.0.1' };
    const socket = net.connect({ ...where, allowHalfOpen: true });
    await once(socket, 'connect');
    return new Conversation(socket);
}

// ---- hostile servers ----

// A server on a port the system picks, for answers that no library would send: onConnection(socket, n) has the bytes. Closed with the test.
export async function hostileServer(t, onConnection) {
    const sockets = [];
    const server = net.createServer({ allowHalfOpen: true }, (socket) => {
        sockets.push(socket);
        socket.on('error', () => {});
        onConnection(socket, sockets.length - 1);
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    t.after(() => {
        sockets.forEach((socket) => socket.destroy());
        server.close();
    });
    const { port } = server.address();
    return { server, sockets, port, url: `http://127.0.0.1:${port}` };
}

// As hostileServer(), with each request read whole first: answer(request, socket), request {method, path, head, text, body, n}.
export function hostileHttp(t, answer) {
    let n = 0;
    return hostileServer(t, (socket) => {
        let bytes = Buffer.alloc(0);
        socket.on('data', (piece) => {
            bytes = Buffer.concat([bytes, piece]);
            for (let request; (request = takeRequest(bytes)); bytes = request.rest)
                answer({ ...request, n: n++ }, socket);
        });
    });
}

function takeRequest(bytes) {
    const end = bytes.indexOf(headEnd);
    if (end < 0)
        return undefined;
    const head = bytes.subarray(0, end).toString('latin1');
    const [, method, path] = /^(\S+) (\S+)/.exec(head);
    const length = Number(/^content-length: *(\d+)/im.exec(head)?.[1] ?? 0);
    const from = end + headEnd.length;
    return bytes.length < from + length ? undefined : { method, path, head, ...bodyOf(bytes.subarray(from, from + length), bytes.subarray(from + length)) };
}

// The bytes of a response with a body of JSON, or text as it is.
export function responseBytes(body, { status = 200, type = 'application/json', headers = {} } = {}) {
    const bytes = Buffer.from(typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body));
    const all = { 'content-type': type, 'content-length': bytes.length, ...headers };
    const head = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`).join('');
    return Buffer.concat([Buffer.from(`HTTP/1.1 ${status} X\r\n${head}\r\n`, 'latin1'), bytes]);
}

// ---- what a process holds ----

export function openDescriptors(pid) { return readdirSync(`/proc/${pid}/fd`).length; }

// What each descriptor is, counted: {socket: 12, '/dev/null': 1, ...}.
export function descriptorsByKind(pid) {
    const kinds = {};
    for (const fd of readdirSync(`/proc/${pid}/fd`)) {
        try {
            const kind = readlinkSync(`/proc/${pid}/fd/${fd}`).replace(/:?\[\d+\]$/, '');
            kinds[kind] = (kinds[kind] ?? 0) + 1;
        } catch {
            // Closed since it was listed.
        }
    }
    return kinds;
}

export function threadsOf(pid) { return readdirSync(`/proc/${pid}/task`).length; }

// Pids of the processes whose environment holds this text; none of those that cannot be read.
export function processesWithEnvironment(text) {
    return readdirSync('/proc').filter((name) => /^\d+$/.test(name)).map(Number).filter((pid) => {
        try {
            return readFileSync(`/proc/${pid}/environ`, 'latin1').includes(text);
        } catch {
            return false;
        }
    });
}

// A background program of the test's own, ended with it by its pid.
export function startProgram(t, command, args = [], options = {}) {
    const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], ...options });
    t.after(() => child.kill('SIGKILL'));
    return child;
}
