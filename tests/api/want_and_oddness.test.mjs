// Want of resources and rows of odd content: nothing spins, nobody is blamed, each oddness is told once (issue 8, section 6).
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { serviceUid, userOptions } from '../hostile/kit.mjs';
import { binary, coldHearth, startHearth, until } from './harness.mjs';
import { admin, backendFile, insert, listeningApp, rowBecomes, shellAgent, sqlite, taskBecomes, tasksOfRow } from './kit.mjs';

const brisk = { 'tasks.heartbeat_s': 0.2, 'tasks.sweep_s': 0.2, 'tasks.stale_after_s': 4, 'backend.poll_ms': 20 };
const skip = spawnSync('prlimit', ['--version']).error ? 'needs prlimit' : process.getuid() !== 0 && 'needs root, to see the descriptors of a service, which hides them';
const linesOf = (h, from) => h.log.slice(from).filter((line) => !/ info +api /.test(line));

test('without descriptors no agent starts, no row fails, and the log has one line of it', { skip }, async (t) => {
    const h = await startHearth({ t, settings: brisk });
    const { id: app, call } = await listeningApp(h, await shellAgent(h, 'echo {}'), { backend: { max_concurrent_tasks: 3 } });
    const { id: first } = await insert(call, {});
    await rowBecomes(call, first, 'completed');
    const from = h.log.length;
    const open = new Set(readdirSync(`/proc/${h.pid}/fd`).map(Number));
    const free = Array.from({ length: 4096 }, (_, fd) => fd).filter((fd) => !open.has(fd));
    const usual = /Max open files +(\d+)/.exec(readFileSync(`/proc/${h.pid}/limits`, 'utf8'))[1];
    execFileSync('prlimit', ['--pid', String(h.pid), `--nofile=${free[2]}:`]);
    const ids = (await sqlite(backendFile(h), `INSERT INTO svc_activities (app_id, raw_data) VALUES ${Array.from({ length: 5 }, () => `('${app}', '{}')`)} RETURNING id`)).map((row) => row.id);
    const told = () => linesOf(h, from).filter((line) => /no task can be started/.test(line));
    await until(() => told().length > 0, { what: 'the log says so' });
    const rows = await sqlite(backendFile(h), `SELECT DISTINCT status, attempted_by, attempt FROM svc_activities WHERE id IN ('${ids.join("','")}')`);
    assert.deepEqual(rows, [{ status: 'pending', attempted_by: '[]', attempt: 0 }], 'no attempt is counted');
    assert.equal(told().length, 1);
    execFileSync('prlimit', ['--pid', String(h.pid), `--nofile=${usual}:`]);
    for (const id of ids)
        await rowBecomes(call, id, 'completed');
    await h.logged(/can be started again/, { from });
});

// The shell that has the text in its command line, and the hearth-child above it: [shell, child]; undefined while there is none.
function shellAndChild(text) {
    for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
        try {
            if (readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(text) && readFileSync(`/proc/${pid}/comm`, 'utf8') === 'sh\n')
                return [pid, /PPid:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1]];
        } catch (error) {
            assert.ok(['ENOENT', 'ESRCH'].includes(error.code), error);            // it has ended meanwhile
        }
    }
    return undefined;
}

for (const sandbox of ['none', 'standard']) test(`an agent that gets no process of its own blames nobody and is started again (sandbox: ${sandbox})`, { skip }, async (t) => {
    const h = await startHearth({ t, settings: brisk, sandbox, ...userOptions() });
    const door = join(h.desk, 'door');
    execFileSync('mkfifo', ['-m', '666', door]);
    const { call } = await listeningApp(h, await shellAgent(h, `read go < ${door}; /bin/echo '{}' | /bin/cat`));
    const from = h.log.length;
    const { id } = await insert(call, {});
    const first = await until(() => shellAndChild(door), { what: 'the agent runs' });
    for (const pid of first)
        execFileSync('prlimit', ['--pid', pid, '--nproc=0:'], { uid: serviceUid, gid: serviceUid });     // `ulimit -u` of the service, when others have used it up
    writeFileSync(door, 'go\n');
    await until(() => h.log.slice(from).some((line) => /no task can be started now/.test(line)), { what: 'the log says so' });
    await until(() => shellAndChild(door)?.[0] !== first[0] && shellAndChild(door), { what: 'the agent runs again' });
    const [row] = await sqlite(backendFile(h), `SELECT attempted_by, retry_count FROM svc_activities WHERE id = '${id}'`);
    assert.deepEqual(row, { attempted_by: '[]', retry_count: 0 });
    writeFileSync(door, 'go\n');
    await rowBecomes(call, id, 'completed');
    await h.logged(/waits again.*fork/, { from, what: 'the agent\'s words in the log' });
});

// The program with so many descriptors.
function withFiles(t, n) {
    const folder = mkdtempSync(join(tmpdir(), 'hearth-few-')), path = join(folder, 'hearth');
    writeFileSync(path, `#!/bin/sh\nulimit -n ${n}\nexec '${binary}' "$@"\n`, { mode: 0o755 });
    t.after(() => rmSync(folder, { recursive: true, force: true }));
    return path;
}

test('a service with 64 descriptors works again when a burst of connections and agents is over', async (t) => {
    const h = await startHearth({ t, settings: brisk, program: withFiles(t, 64) });
    h.mayStall = true;                  // threads come and go with their connections to the databases
    const { id: app, call } = await listeningApp(h, await shellAgent(h, 'echo {}'), { backend: { max_concurrent_tasks: 16 } });
    const insertAll = `INSERT INTO svc_activities (app_id, raw_data) VALUES ${Array.from({ length: 30 }, () => `('${app}', '{}')`)}`;
    const rowsWhere = async (condition) => (await sqlite(backendFile(h), `SELECT id, status, attempted_by FROM svc_activities WHERE ${condition}`));
    for (let round = 0; round < 3; round++) {
        await sqlite(backendFile(h), insertAll);
        const burst = await Promise.all(Array.from({ length: 100 }, (_, i) => (i % 10 ? call('GET', '/activities') : call('POST', '/activities', { raw_data: {} }))));
        for (const { status, body, headers } of burst.filter(({ status }) => status > 299))
            assert.ok(status === 503 && ['OVERLOADED', 'TOO_FEW_FILES'].includes(body.code) && Number(headers['retry-after']) >= 1, `${status} ${JSON.stringify(body)} ${headers['retry-after']}`);
        await until(async () => (await rowsWhere("status != 'completed'")).length === 0, { what: 'every row is done' });
        for (let i = 0; i < 40; i++) {                          // each starts an agent
            const { status, body } = await call('POST', '/activities', { raw_data: {} });
            assert.equal(status, 201, `the ${i}th of round ${round}: ${JSON.stringify(body)}`);
        }
    }
    await until(async () => (await rowsWhere("status != 'completed'")).length === 0, { what: 'every row is done' });
    assert.deepEqual(await rowsWhere("attempted_by != '[]'"), [], 'no machine is blamed');
    assert.equal((await h.cli('doctor')).stderr, '');
});

test('with fewer descriptors than the service itself needs it does not start, and says so', async (t) => {
    const h = coldHearth({ t, program: withFiles(t, 63) });          // 64 suffice: the test above
    const { code, stderr } = await h.cli('serve', '--listen', '127.0.0.1:0', { deadlineMs: 60_000 });
    assert.equal(code, 1);
    assert.match(stderr, /63 open files.*ulimit -n/);
});

// What any program may write into the table.
const odd = [
    `status = 'PENDING'`, `status = 'Claimed'`, `status = ''`, `status = 'claimed', locked_by = 'x', locked_at = 'garbage'`,
    `status = 'claimed', locked_by = 'x', locked_at = '2999-01-01T00:00:00.000Z'`, `status = 'claimed', locked_by = 'x', locked_at = ''`,
    `status = 'processing', locked_by = NULL, locked_at = 'now'`, `status = 'claimed', locked_by = 'x', locked_at = '2460000.5'`,
    `created_at = 'yesterday'`, `created_at = ''`, `attempted_by = '["a","b","c"]'`, `attempted_by = '[1,{"a":2},null]'`,
    `attempted_by = '["a","a","a","a"]', status = 'failed'`, `app_id = 'nobody at all'`, `app_id = ''`, `attempt = -5`, `attempt = 9007199254740993`,
    `retry_count = -1`, `event_type = 'SOMETHING'`, `event_type = 'delete'`, `source_table = 'elsewhere'`, `revision = 7, status = 'failed'`,
    `handled_revision = 99`, `completed_at = 'never'`, `error_message = ''`, `user_id = ''`, `status = 'failed', attempted_by = '["m1"]'`,
];

test('rows of odd content spin nothing, and what is odd about them is told once', async (t) => {
    const h = await startHearth({ t, settings: { ...brisk, 'identity.machine_id': 'm1' } });
    const door = join(h.home, 'door');
    const { id: app, call } = await listeningApp(h, await shellAgent(h, `while [ ! -e ${door} ]; do sleep 0.02; done; echo {}`), { backend: { max_concurrent_tasks: 2 } });
    const file = backendFile(h);
    const add = async (n) => (await sqlite(file, `INSERT INTO svc_activities (app_id, raw_data) VALUES ${Array.from({ length: n }, (_, i) => `('${app}', '{"i":${i}}')`)} RETURNING id`)).map((row) => row.id);
    const blockers = await add(2);
    for (const id of blockers)
        await rowBecomes(call, id, 'claimed');
    const waiting = await add(odd.length);
    for (const id of waiting)
        await tasksOfRow(h, id);
    const from = h.log.length;
    for (const [i, set] of odd.entries())
        await sqlite(file, `UPDATE svc_activities SET ${set} WHERE id = '${waiting[i]}'`);
    for (const set of odd) {
        const pairs = [['raw_data', `'{"fresh":true}'`], ...set.split(/, (?=[a-z_]+ = )/).map((pair) => pair.split(' = '))];
        if (!/app_id/.test(set))
            pairs.push(['app_id', `'${app}'`]);
        await sqlite(file, `INSERT INTO svc_activities (${pairs.map(([name]) => name)}) VALUES (${pairs.map(([, value]) => value)})`);
    }
    writeFileSync(door, '');
    const { id: last } = await insert(call, { last: true });
    await rowBecomes(call, last, 'completed');
    const at = h.log.length, known = [];
    for (let i = 0; i < 20; i++) {                              // rounds of the sweep, and rows that are done meanwhile
        const { id } = await insert(call, { i });
        await rowBecomes(call, id, 'completed');
        const [{ uuid }] = await tasksOfRow(h, id);
        await taskBecomes(h, uuid, 'completed');
        known.push(id, uuid);
        await admin(h, 'POST', '/api/tasks/sweep');
    }
    const lines = linesOf(h, from), late = linesOf(h, at).filter((line) => !known.some((id) => line.includes(id)));
    assert.ok(lines.length < 20 * odd.length, `${lines.length} lines, the last of them:\n${lines.slice(-40).join('\n')}`);
    const count = new Map();
    for (const line of late)
        count.set(line.replace(/^\S+ /, ''), (count.get(line.replace(/^\S+ /, '')) ?? 0) + 1);
    const repeated = [...count].filter(([, n]) => n > 2);
    assert.deepEqual(repeated, [], 'what was told is told again');
    const left = await until(async () => {
        await admin(h, 'POST', '/api/tasks/sweep');
        const rows = await sqlite(file, `SELECT id, status, locked_at, created_at, attempted_by, app_id FROM svc_activities WHERE status NOT IN ('completed', 'failed')`);
        return rows.every((row) => !['claimed', 'processing'].includes(row.status)) && rows;
    }, { what: 'leases of garbage time are taken back' });
    assert.ok(left.length < odd.length, JSON.stringify(left));
});
