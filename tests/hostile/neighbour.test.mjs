// Another user of the machine (uid 65534), and another program of the service's own user: files, the socket, /proc, ptrace, signals, public
// answers, temporary files, the service's port taken by somebody else. Needs root, to be somebody else; skips itself otherwise.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { chmodSync, chownSync, existsSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { coldHearth, startHearth, until } from '../api/harness.mjs';
import { admin, insert, isAlive, listeningApp, newApp, newKey, shellAgent, signIn, tasksOfRow } from '../api/kit.mjs';
import { env } from '../api/provider.mjs';
import { canBeNeighbour, converse, hostileServer, needsRoot, neighbourUid, nodeAs, nodeAsNeighbour, runAs, runAsNeighbour, serviceUid, startHearthAsUser, userOptions } from './kit.mjs';

const skip = canBeNeighbour ? false : needsRoot;
const providerKey = 'canary-key-of-a-provider';

// Every file below a folder: {path, mode, isFolder}.
function filesBelow(folder) {
    return readdirSync(folder, { recursive: true, withFileTypes: true }).map((entry) => {
        const path = join(entry.parentPath, entry.name);
        return { path, mode: lstatSync(path).mode & 0o777, isFolder: entry.isDirectory() };
    });
}

// A service at work, whose every name and value is a canary: an app that runs, an agent with an activity too large for its environment, a
// stored provider, vectors, a backup. umask 0: no mode may depend on it.
async function serviceAtWork(t, options = {}) {
    const umask = process.umask(0);
    t.after(() => process.umask(umask));
    const h = await startHearthAsUser({ t, env: { ...env, CANARY_API_KEY: 'canary-environment' }, settings: { 'log.level': 'debug' }, ...options });
    const agent = await shellAgent(h, 'exec sleep 600', { name: 'canary-agent' });
    const { call } = await listeningApp(h, agent, { name: 'canary-app' });
    const row = await insert(call, { text: `canary-activity ${'x'.repeat(200_000)}` });
    const [{ uuid }] = await tasksOfRow(h, row.id);
    const agentPid = await until(async () => (await h.socket('GET', `/api/tasks/${uuid}`)).body.runs?.at(-1)?.pid, { what: 'the agent runs' });
    const app = await newApp(h, { name: 'canary-running', app_type: 'custom', config: { command: '/bin/sleep', args: ['600'] } }, ['llm.vectors', 'llm.embed']);
    await admin(h, 'POST', `/api/apps/${app}/start`);
    await admin(h, 'POST', '/api/providers', { preset: 'generic-openai', name: 'canary-provider', base_url: env.GENERIC_OPENAI_BASE_URL, api_key: providerKey, model: 'said-model' }, 201);
    const key = await newKey(h, 'canary-key');
    await admin(h, 'POST', '/api/backup', { path: join(h.home, 'backup.tar.gz') });
    await h.cli('open');
    return { h, app, key, agentPid, taskUuid: uuid };
}

test('every file Hearth makes is private, whatever the umask is', { skip }, async (t) => {
    const { h } = await serviceAtWork(t);
    const files = filesBelow(h.home);
    for (const name of ['hearth.db', 'hearth.db-wal', 'hearth.db-shm', 'backend.db-wal', 'vectors.db', 'master.key', 'hearth.lock', 'hearth.sock', 'run', 'local-apps'])
        assert.ok(files.some(({ path }) => path === join(h.dataDir, name)), `${name} was not made, so nothing was tested`);
    for (const { path, mode, isFolder } of files)
        assert.equal(mode & 0o077, 0, `${path} has mode ${mode.toString(8)}`);
    assert.equal(statSync(h.dataDir).mode & 0o777, 0o700);
    assert.ok(files.some(({ path }) => path.includes('/run/') ), 'a large activity lies in run/');
});

test('another user reads no file of the data folder, even when the folders above it are open', { skip }, async (t) => {
    const { h } = await serviceAtWork(t);
    const paths = filesBelow(h.home).map(({ path }) => path);
    chmodSync(h.home, 0o755);
    chmodSync(h.dataDir, 0o755);
    const { json } = await nodeAsNeighbour(`
        const fs = require('fs');
        const attempts = { list: (path) => fs.readdirSync(path), read: (path) => fs.readFileSync(path), write: (path) => fs.appendFileSync(path, 'x'),
            create: (path) => fs.writeFileSync(path + '/x', 'x'), remove: (path) => fs.unlinkSync(path), link: (path) => fs.linkSync(path, '/tmp/link-' + process.pid) };
        const won = [];
        for (const path of ${JSON.stringify(paths)})
            for (const [name, attempt] of Object.entries(attempts)) {
                try { attempt(path); won.push(name + ' ' + path); } catch { }
            }
        say(won);`);
    assert.deepEqual(json, [`list ${h.dataDir}`], 'names only, and those because the test opened the folder');
});

test('the Unix socket answers nobody but its own user and root, even when its mode and folders are open', { skip }, async (t) => {
    const h = await startHearthAsUser({ t });
    const socket = join(h.dataDir, 'hearth.sock');
    for (const [path, mode] of [[h.home, 0o755], [h.dataDir, 0o755], [socket, 0o777]])
        chmodSync(path, mode);
    const script = `const socket = require('net').connect(${JSON.stringify(socket)});
        let got = '';
        socket.on('connect', () => socket.write('GET /api/keys HTTP/1.1\\r\\nhost: localhost\\r\\n\\r\\n'));
        socket.on('data', (piece) => { got += piece; socket.end(); });
        socket.on('error', () => {});
        socket.on('close', () => say(got));`;
    assert.equal((await nodeAsNeighbour(script)).json, '');
    assert.match((await nodeAs(serviceUid, script)).json, /^HTTP\/1\.1 200 /, 'the test itself must be able to fail');
});

// What a uid can open of /proc/<pid>; each is tried by a process of its own.
function tryProc(uid, pid) {
    return nodeAs(uid, `
        const fs = require('fs');
        const won = [];
        for (const name of ['environ', 'mem', 'maps', 'auxv', 'stack', 'io', 'pagemap', 'syscall', 'smaps'])
            try { const fd = fs.openSync('/proc/${pid}/' + name); const b = Buffer.alloc(4096); const n = name === 'mem' ? 1 : fs.readSync(fd, b, 0, 4096, null); if (n > 0) won.push(name); } catch { }
        for (const name of ['fd', 'map_files', 'task/${pid}/fd'])
            try { fs.readdirSync('/proc/${pid}/' + name); won.push(name); } catch { }
        for (const name of ['cwd', 'root', 'exe'])
            try { fs.readlinkSync('/proc/${pid}/' + name); won.push(name); } catch { }
        say(won);`);
}

test('another user reads nothing of the service, its apps and agents in /proc but names of programs', { skip }, async (t) => {
    const { h, agentPid } = await serviceAtWork(t);
    const children = readdirSync('/proc').filter((name) => /^\d+$/.test(name) && ownerOf(name) === serviceUid && Number(name) !== h.pid);
    assert.ok(children.length >= 2 && children.includes(String(agentPid)), 'an app and an agent run');
    for (const pid of [h.pid, ...children].map(Number)) {
        assert.deepEqual((await tryProc(neighbourUid, pid)).json, [], `process ${pid}`);
        const { stdout } = await runAsNeighbour('/bin/cat', [`/proc/${pid}/cmdline`]);
        assert.doesNotMatch(stdout, /canary-(activity|key|environment)/, `the command line of ${pid}`);
    }
});

function ownerOf(pid) {
    try {
        return statSync(`/proc/${pid}`).uid === 0 ? Number(/^Uid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) : statSync(`/proc/${pid}`).uid;
    } catch {
        return -1;
    }
}

test('another program of the same user reads no memory and no environment of the service', { skip }, async (t) => {
    const h = await startHearthAsUser({ t, env: { ...env, CANARY_API_KEY: 'canary-environment' } });
    assert.deepEqual((await tryProc(serviceUid, h.pid)).json, []);
    const traced = await runAs(serviceUid, '/usr/bin/python3', ['-c', `
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
r = libc.ptrace(16, ${h.pid}, 0, 0)      # PTRACE_ATTACH
print(r, ctypes.get_errno())
`]);
    assert.equal(traced.stdout.trim(), '-1 1', traced.stderr);
});

test('a crash leaves no core file', { skip }, async (t) => {
    const h = await startHearthAsUser({ t });
    const limits = readFileSync(`/proc/${h.pid}/limits`, 'utf8');
    assert.match(limits, /^Max core file size +0 +0 /m);
    h.signal('SIGQUIT');
    const { signal } = await h.exited();
    assert.equal(signal, 'SIGQUIT');
    assert.deepEqual(filesBelow(h.home).filter(({ path }) => /core/.test(path)), []);
});

// Other tests have services of the same uid.
function descendants(pid) {
    const children = readdirSync(`/proc/${pid}/task`).flatMap((tid) => readFileSync(`/proc/${pid}/task/${tid}/children`, 'utf8').split(' ').filter(Boolean).map(Number));
    return children.flatMap((child) => [child, ...descendants(child)]);
}

test('another user cannot signal the service nor what it started', { skip }, async (t) => {
    const { h, agentPid } = await serviceAtWork(t);
    const pids = [h.pid, ...descendants(h.pid)];
    assert.ok(pids.includes(agentPid), 'its agent is one of them');
    const { json } = await nodeAsNeighbour(`const won = []; for (const pid of ${JSON.stringify(pids)}) for (const signal of ['SIGTERM', 'SIGSTOP', 'SIGKILL', 0])
        try { process.kill(pid, signal); won.push([pid, signal]); } catch { }
        say(won);`);
    assert.deepEqual(json, []);
    assert.ok(pids.every(isAlive));
});

test('public answers name no app, agent, task, key, file or address, however much happens', { skip }, async (t) => {
    const { h, app, key, taskUuid } = await serviceAtWork(t);
    await h.asApp(app)('GET', '/sdk/ping');
    await key.call('POST', '/sdk/llm/chat', { messages: [{ role: 'user', content: 'canary-prompt' }] });
    for (const path of ['/healthz', '/readyz', '/metrics', '/openapi.json']) {
        const { status, text } = await h.api('GET', path);
        assert.equal(status, 200, path);
        for (const secret of [/canary-(?!provider)/, new RegExp(app), new RegExp(taskUuid), new RegExp(key.id), new RegExp(h.home), /127\.0\.0\.1:(?!3001)\d/])
            assert.doesNotMatch(text, secret, path);
    }
});

test('metrics have no label that a caller could fill', { skip }, async (t) => {
    const { h } = await serviceAtWork(t);
    const { text } = await h.api('GET', '/metrics');
    const labels = new Set([...text.matchAll(/[{,]([a-z_]+)="/g)].map(([, name]) => name));
    const known = ['route', 'method', 'status', 'pool', 'db', 'provider', 'kind', 'result', 'direction', 'limit', 'le', 'budget', 'profile', 'work', 'of'];
    assert.deepEqual([...labels].filter((label) => !known.includes(label)), []);
});

test('a file that another user put where a backup is written does not receive it', { skip }, async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'hearth-sticky-'));
    chmodSync(folder, 0o1777);
    t.after(() => rmSync(folder, { recursive: true, force: true }));
    const h = await startHearthAsUser({ t });
    const path = join(folder, 'mine.tar.gz');
    const trap = `const fs = require('fs'); process.umask(0); for (const name of ['.part', '.tmp', '.new']) fs.writeFileSync(${JSON.stringify(path)} + name, '', { mode: 0o666 }); say(true);`;
    assert.equal((await nodeAsNeighbour(trap)).json, true);
    await h.socket('POST', '/api/backup', { path });
    for (const name of readdirSync(folder).filter((one) => one !== 'mine.tar.gz'))
        assert.equal(statSync(join(folder, name)).size, 0, `${name} belongs to the neighbour`);
    assert.equal(statSync(path).uid, serviceUid);
    assert.equal(statSync(path).mode & 0o777, 0o600);
});

test('a link that another user put where a backup is written is not followed', { skip }, async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'hearth-sticky-'));
    chmodSync(folder, 0o1777);
    t.after(() => rmSync(folder, { recursive: true, force: true }));
    const h = await startHearthAsUser({ t });
    const path = join(folder, 'mine.tar.gz'), victim = h.file('victim', 'precious');
    const trap = `const fs = require('fs'); for (const name of ['', '.part']) fs.symlinkSync(${JSON.stringify(victim)}, ${JSON.stringify(path)} + name); say(true);`;
    assert.equal((await nodeAsNeighbour(trap)).json, true);
    assert.equal((await h.socket('POST', '/api/backup', { path })).status, 409);
    assert.equal(readFileSync(victim, 'utf8'), 'precious');
});

const folders = [
    ['of another user', (path) => { mkdirSync(path, { mode: 0o700 }); chownSync(path, neighbourUid, neighbourUid); }, /belongs to another user/],
    ['that everybody may write to', (path) => { mkdirSync(path); chownSync(path, serviceUid, serviceUid); chmodSync(path, 0o777); }, /others may write files/],
    ['with a sticky bit that everybody may write to', (path) => { mkdirSync(path); chownSync(path, serviceUid, serviceUid); chmodSync(path, 0o1777); }, /others may write files/],
    ['that its group may write to', (path) => { mkdirSync(path); chownSync(path, serviceUid, serviceUid); chmodSync(path, 0o770); }, /others may write files/],
];
for (const [name, make, sentence] of folders)
    test(`a data folder ${name} is refused`, { skip }, async (t) => {
        const h = coldHearth({ t, isBare: true, ...userOptions() });
        make(h.dataDir);
        const { code, stderr } = await h.cli('key', 'new');
        assert.equal(code, 1, stderr);
        assert.match(stderr, sentence);
        assert.deepEqual(readdirSync(h.dataDir), []);
    });

test('a program on the port of the service is sent nothing by the command line, and the service says who is in its way', { skip }, async (t) => {
    const received = [];
    const squatter = await hostileServer(t, (socket) => socket.on('data', (piece) => received.push(piece.toString('latin1'))));
    const h = coldHearth({ t, ...userOptions() });
    const listen = `127.0.0.1:${squatter.port}`;
    await h.cli('settings', 'set', 'http.listen', listen);
    for (const command of [['key', 'new'], ['key', 'list'], ['app', 'list'], ['doctor'], ['open'], ['settings']])
        await h.cli(...command);
    const refused = await h.cli('serve', { deadlineMs: 60_000 });
    assert.equal(refused.code, 1, refused.stderr);
    assert.match(refused.stderr, /in use by another program/);
    assert.deepEqual(received, []);
});

// What a program that took the port while no service ran is sent by the tab that is still open: cookie and proof.
test('cookie and proof of the administrator, and a link, are worth nothing to another user', { skip }, async (t) => {
    const h = await startHearthAsUser({ t });
    const browser = await signIn(h);
    const { url } = await admin(h, 'POST', '/api/session/link');
    const script = (more) => `const http = require('http');
        const ask = (path, headers) => new Promise((done) => http.get({ port: ${h.port}, host: '127.0.0.1', path, headers, agent: false }, (reply) => { reply.resume(); reply.on('end', () => done([reply.statusCode, reply.headers['set-cookie'] ?? null])); }).on('error', (e) => done([e.code])));
        const headers = ${JSON.stringify(browser.headers)};
        say([await ask('/api/keys', headers), await ask('/api/session', headers), await ask('/api/settings', headers), ${more}]);`;
    const theirs = (await nodeAsNeighbour(script(`await ask('${new URL(url).pathname}${new URL(url).search}', {})`))).json;
    assert.deepEqual(theirs.map(([status]) => status), [401, 401, 401, 403]);
    assert.ok(theirs.every(([, cookie]) => !cookie), 'no cookie is handed out');
    const own = (await nodeAs(serviceUid, script('[200]'))).json;
    assert.deepEqual(own.map(([status]) => status), [200, 200, 200, 200], 'the same is the administrator as the service\'s own user');
    const { status } = await h.api('GET', new URL(url).pathname + new URL(url).search);
    assert.equal(status, 303, 'the neighbour did not use the link up');
});

test('a socket that another user left in an open data folder is not trusted', { skip }, async (t) => {
    const h = coldHearth({ t, isBare: true, ...userOptions() });
    mkdirSync(h.dataDir, { mode: 0o700 });
    const socket = join(h.dataDir, 'hearth.sock');
    const received = [];
    const server = net.createServer((peer) => peer.on('data', (piece) => received.push(piece))).listen(socket);
    await once(server, 'listening');
    t.after(() => server.close());
    chownSync(h.dataDir, serviceUid, serviceUid);
    chownSync(socket, neighbourUid, neighbourUid);
    const { code, stderr } = await h.cli('key', 'new');
    assert.equal(code, 0, stderr);
    assert.deepEqual(received, []);
});
