// Damages planted one by one: what the start says and does, what --accept-loss makes of them, what `hearth doctor` finds.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chmodSync, copyFileSync, cpSync, existsSync, mkdirSync, openSync, closeSync, readdirSync, readFileSync, rmSync, statSync, truncateSync, unlinkSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { startHearth } from './harness.mjs';
import { admin, newApp, newKey } from './kit.mjs';

// A Hearth with a key, an app, a row and a vector; stopped, or killed so that all of it is in the write-ahead logs.
async function filled(t, { isKilled = false } = {}) {
    const h = await startHearth({ t });
    const { call } = await newKey(h, 'kept');
    const vectors = h.asApp(await newApp(h, {}, ['vectors.read', 'vectors.write']));
    assert.equal((await call('POST', '/activities', { raw_data: { n: 1 } })).status, 201);
    assert.equal((await vectors('POST', '/sdk/llm/vectors/upsert', { vectors: [{ id: 'a', vector: [1, 2, 3] }] })).status, 200);
    await (isKilled ? h.kill() : h.terminate());
    return h;
}

const rows = (path, sql) => {
    const db = new DatabaseSync(path);
    try {
        return db.prepare(sql).all();
    } finally {
        db.close();
    }
};
const write = (path, at, bytes) => {
    const fd = openSync(path, 'r+');
    writeSync(fd, Buffer.from(bytes), 0, bytes.length, at);
    closeSync(fd);
};
const change = (path, sql) => {
    const db = new DatabaseSync(path);
    db.exec(`PRAGMA busy_timeout = 60000; ${sql}`);                        // the service that runs may be writing
    db.close();
};
const without = (path) => ['', '-wal', '-shm'].forEach((ending) => rmSync(path + ending, { force: true }));

// Each: which file, what is done to it while the service is stopped, what the start says. `other` is the data folder of another Hearth.
const lost = [
    ['hearth.db is missing', 'hearth.db', (path) => without(path), /is missing/],
    ['hearth.db has no length', 'hearth.db', (path) => truncateSync(path), /is empty/],
    ['hearth.db is another instance\'s', 'hearth.db', (path, other) => copyFileSync(join(other, 'hearth.db'), path), /another instance/],
    ['hearth.db is an old copy', 'hearth.db', (path, _, old) => copyFileSync(join(old, 'hearth.db'), path), /older than/],
    ['hearth.db is no database', 'hearth.db', (path) => writeFileSync(path, 'x'.repeat(8192)), /is damaged/],
    ['hearth.db is cut in half', 'hearth.db', (path) => truncateSync(path, Math.floor(statSync(path).size / 8192) * 4096), /is damaged|cannot be used/],
    ['hearth.db is a folder', 'hearth.db', (path) => { without(path); mkdirSync(path); }, /it is no file/],
    ['backend.db is missing', 'backend.db', (path) => without(path), /is missing/],
    ['backend.db is another instance\'s', 'backend.db', (path, other) => copyFileSync(join(other, 'backend.db'), path), /another instance/],
    ['backend.db is no database', 'backend.db', (path) => writeFileSync(path, 'x'.repeat(8192)), /is damaged/],
    ['vectors.db is missing', 'vectors.db', (path) => without(path), /is missing/],
    ['vectors.db has no length', 'vectors.db', (path) => truncateSync(path), /is empty/],
    ['vectors.db is another instance\'s', 'vectors.db', (path, other) => copyFileSync(join(other, 'vectors.db'), path), /another instance/],
    ['vectors.db has a broken head', 'vectors.db', (path) => write(path, 0, 'garbage in the head'), /is damaged/],
    ['vectors.db has broken first pages', 'vectors.db', (path) => write(path, 100, 'x'.repeat(30000)), /is damaged/],
    ['vectors.db is cut to one page', 'vectors.db', (path) => truncateSync(path, 8192), /is damaged/],
    ['vectors.db is cut within its first page', 'vectors.db', (path) => truncateSync(path, 700), /is damaged/],
    ['vectors.db is a folder', 'vectors.db', (path) => { without(path); mkdirSync(path); }, /it is no file/],
    ['vectors.db is text', 'vectors.db', (path) => writeFileSync(path, 'hello'), /is damaged/],
    ['vectors.db has lost its tables', 'vectors.db', (path) => change(path, 'DROP TABLE spaces; DROP TABLE vectors; PRAGMA user_version = 1'), /cannot be used/],
    ['hearth.instance is damaged', 'hearth.instance', (path) => writeFileSync(path, 'hearth-instance 1 nonsense\n'), /is damaged/],
];

async function serveOnce(h, ...args) {
    return h.cli('serve', '--listen', '127.0.0.1:0', ...args, { deadlineMs: 60_000 });
}

test('a database that is missing, damaged, old or another one refuses the start, and says how to go on', async (t) => {
    const h = await filled(t);
    const other = await filled(t);
    const before = join(h.home, 'before');
    const old = join(h.home, 'old');
    cpSync(h.dataDir, old, { recursive: true });
    await h.start();
    await newKey(h, 'later');
    await h.terminate();
    cpSync(h.dataDir, before, { recursive: true });
    for (const [name, file, damage, sentence] of lost) {
        rmSync(h.dataDir, { recursive: true });
        cpSync(before, h.dataDir, { recursive: true });
        damage(join(h.dataDir, file), other.dataDir, old);
        const bytes = existsSync(join(h.dataDir, file)) && statSync(join(h.dataDir, file)).isFile() && readFileSync(join(h.dataDir, file));
        const { code, stderr } = await serveOnce(h);
        assert.equal(code, 1, name);
        assert.match(stderr, sentence, name);
        assert.match(stderr, /hearth restore FILE/, name);
        assert.match(stderr, /--accept-loss/, name);
        if (bytes)
            assert.ok(readFileSync(join(h.dataDir, file)).equals(bytes), `${name}: a refused start changes nothing`);
        const listed = file === 'vectors.db' ? await h.cli('doctor') : await h.cli('key', 'list');
        assert.equal(listed.code, 1, `${name}: the command line says it too`);
        assert.match(listed.stdout + listed.stderr, /hearth restore FILE/, name);
    }
});

test('--accept-loss goes on with what is there, keeps what it cannot read, and the next start is an ordinary one', async (t) => {
    const h = await filled(t);
    const other = await filled(t);
    const before = join(h.home, 'before');
    cpSync(h.dataDir, before, { recursive: true });
    const options = { t, dataDir: h.dataDir };
    for (const [name, file, damage] of lost.filter(([which]) => !/old copy/.test(which))) {
        rmSync(h.dataDir, { recursive: true });
        cpSync(before, h.dataDir, { recursive: true });
        damage(join(h.dataDir, file), other.dataDir);
        const first = await startHearth({ ...options, args: ['--accept-loss'] });
        if (file !== 'hearth.instance')
            await first.logged(/the loss is accepted/, { what: `that the loss is accepted: ${name}` });
        if (/no database|folder|broken|cut|text/.test(name))
            assert.ok(readdirSync(h.dataDir).some((entry) => entry.startsWith(`${file}.damaged-`)), name);
        const keys = (await admin(first, 'GET', '/api/keys')).keys.map((key) => key.name);
        assert.deepEqual(keys, file === 'hearth.db' && !/another/.test(name) ? [] : ['kept'], name);
        await first.kill();
        const second = await startHearth(options);
        await second.terminate();
    }
});

test('after a kill, a database whose write-ahead log is gone is refused', async (t) => {
    for (const file of ['hearth.db', 'backend.db', 'vectors.db']) {
        const h = await filled(t, { isKilled: true });
        assert.ok(statSync(join(h.dataDir, `${file}-wal`)).size > 0);
        unlinkSync(join(h.dataDir, `${file}-wal`));
        rmSync(join(h.dataDir, `${file}-shm`), { force: true });
        const { code, stderr } = await serveOnce(h);
        assert.equal(code, 1, file);
        assert.match(stderr, new RegExp(`${file}.*write-ahead log`), file);
    }
});

test('also when the log was folded into the file before, and only what came later is lost', async (t) => {
    const h = await filled(t);
    await h.start();
    const dev = await h.asKey();
    const wal = join(h.dataDir, 'backend.db-wal');
    const text = 'x'.repeat(200_000);
    do {                                // until the log begins anew
        assert.equal((await dev('POST', '/activities', { raw_data: { text } })).status, 201);
    } while (readFileSync(wal).subarray(12, 16).readUInt32BE() === 0);
    await dev('POST', '/activities', { raw_data: { last: true } });
    await h.kill();
    unlinkSync(wal);
    rmSync(join(h.dataDir, 'backend.db-shm'), { force: true });
    const { code, stderr } = await serveOnce(h);
    assert.equal(code, 1);
    assert.match(stderr, /backend\.db is older than what was stored last/);
});

test('a kill refuses nothing, nor does a program that reads the databases after it and folds their logs', async (t) => {
    const h = await filled(t, { isKilled: true });
    for (const file of ['hearth.db', 'backend.db', 'vectors.db']) {
        rows(join(h.dataDir, file), 'SELECT count(*) FROM sqlite_schema');
        assert.ok(!existsSync(join(h.dataDir, `${file}-wal`)), 'it was the last to close');
    }
    await h.start();
    for (let round = 0; round < 5; round++) {
        await newKey(h, `round-${round}`);
        await h.kill();
        await h.start();
    }
    assert.equal((await admin(h, 'GET', '/api/keys')).keys.length, 6);
});

test('a folder of before there were marks gets them at its first start', async (t) => {
    const h = await filled(t);
    unlinkSync(join(h.dataDir, 'hearth.instance'));
    for (const file of ['hearth.db', 'backend.db', 'vectors.db'])
        change(join(h.dataDir, file), 'DROP TABLE _instance');
    await h.start();
    await h.terminate();
    const ids = ['hearth.db', 'backend.db', 'vectors.db'].map((file) => rows(join(h.dataDir, file), 'SELECT id FROM _instance')[0].id);
    assert.equal(new Set(ids).size, 1);
    assert.ok(readFileSync(join(h.dataDir, 'hearth.instance'), 'utf8').includes(ids[0]));
    assert.equal(statSync(join(h.dataDir, 'hearth.instance')).mode & 0o777, 0o600);
});

// Rows whose index entries are gone: the pages are read, what is in them is not whole.
const swapRoots = (one, other) => (path) => {
    const [{ rootpage: first }] = rows(path, `SELECT rootpage FROM sqlite_schema WHERE name = '${one}'`);
    const [{ rootpage: second }] = rows(path, `SELECT rootpage FROM sqlite_schema WHERE name = '${other}'`);
    change(path, `PRAGMA writable_schema = ON;
        UPDATE sqlite_schema SET rootpage = CASE name WHEN '${one}' THEN ${second} ELSE ${first} END WHERE name IN ('${one}', '${other}')`);
};
const row = (column, value) => (path) => change(path, `UPDATE svc_activities SET ${column} = '${value}'`);

// Each: where, what is done while the service is stopped, the check that finds it, its words.
const planted = [
    ['hearth.db', swapRoots('sqlite_autoindex_api_keys_1', 'sqlite_autoindex_api_keys_2'), 'store', /damaged/],
    ['hearth.db', (path) => change(path, 'DROP INDEX tasks_by_app'), 'store', /index tasks_by_app is missing/],
    ['hearth.db', (path) => change(path, 'DROP TRIGGER audit_no_update'), 'store', /trigger audit_no_update is missing/],
    ['hearth.db', (path) => change(path, 'CREATE TRIGGER mine AFTER INSERT ON apps BEGIN DELETE FROM grants; END'), 'store', /trigger mine is none of Hearth's/],
    ['hearth.db', (path) => change(path, 'ALTER TABLE apps ADD COLUMN mine TEXT'), 'store', /table apps has other columns/],
    ['backend.db', swapRoots('svc_activities_by_time', 'svc_activities_changed_again'), 'backend', /damaged/],
    ['backend.db', row('status', 'Pending'), 'rows', /1 row of svc_activities with the status "Pending"/],
    ['backend.db', row('attempted_by', '["a","b","c"]'), 'rows', /failed on so many machines/],
    ['backend.db', row('app_id', 'nobody-knows'), 'rows', /which is no registered app/],
    ['vectors.db', swapRoots('vectors_by_id', 'vectors_by_document'), 'vectors', /damaged/],
    ['vectors.db', (path) => change(path, 'DROP INDEX vectors_by_document'), 'vectors', /index vectors_by_document is missing/],
    ['master.key', (path) => chmodSync(path, 0o644), 'folder', /master\.key is open to others/],
    ['hearth.conf', (path) => writeFileSync(path, '', { mode: 0o640 }), 'folder', /hearth\.conf is open to others/],
    ['.hidden', (path) => writeFileSync(path, '', { mode: 0o604 }), 'folder', /\.hidden is open to others/],
    ['local-apps', (path) => chmodSync(path, 0o755), 'folder', /local-apps is open to others/],
    ['run/activities/a.json', (path) => writeFileSync(path, '', { mode: 0o644 }), 'folder', /a\.json is open to others/],
    ['hearth.sock', (path) => writeFileSync(path, '', { mode: 0o600 }), 'place', /hearth\.sock is not a socket/],
    ['run', (path) => { rmSync(path, { recursive: true }); writeFileSync(path, '', { mode: 0o600 }); }, 'place', /run is not a folder/],
    ['local-apps', (path) => { rmSync(path, { recursive: true }); writeFileSync(path, '', { mode: 0o600 }); }, 'place', /local-apps is not a folder/],
];

// cpSync() makes folders that others may read.
const copy = (from, to) => assert.equal(spawnSync('cp', ['-a', from, to]).status, 0);
const faults = (checks) => checks.filter((check) => !check.ok && !['hardening', 'sandbox', 'disk'].includes(check.name));

async function doctor(h) {
    const { stdout, stderr } = await h.cli('doctor', '--json');
    assert.match(stdout, /^\[/, stderr);
    return faults(JSON.parse(stdout));
}

test('hearth doctor finds each planted damage and nothing else, and says what to do', async (t) => {
    const h = await filled(t);
    mkdirSync(join(h.dataDir, 'local-apps'), { recursive: true, mode: 0o700 });
    change(join(h.dataDir, 'backend.db'), `UPDATE svc_activities SET app_id = '${rows(join(h.dataDir, 'hearth.db'), 'SELECT app_id FROM apps')[0].app_id}'`);
    assert.deepEqual(await doctor(h), []);
    const before = join(h.home, 'before');
    copy(h.dataDir, before);
    for (const [file, damage, name, words] of planted) {
        rmSync(h.dataDir, { recursive: true });
        copy(before, h.dataDir);
        damage(join(h.dataDir, file));
        const found = await doctor(h);
        assert.deepEqual(found.map((check) => check.name), [name], `${file} ${words}: ${JSON.stringify(found)}`);
        assert.match(found[0].text, words);
        assert.ok(found[0].advice.length > 0);
    }
});

test('hearth doctor finds what happens to the databases of a service that runs', async (t) => {
    const h = await filled(t);
    await h.start();
    change(join(h.dataDir, 'backend.db'), 'DROP TRIGGER svc_activities_inserted');
    rmSync(join(h.dataDir, 'vectors.db'));
    const found = faults((await h.socket('GET', '/api/doctor')).body.checks);
    assert.match(found.find((check) => check.name === 'backend').text, /trigger svc_activities_inserted is missing/);
    assert.match(found.find((check) => check.name === 'vectors').text, /vectors\.db is missing/);
});

test('what is in the way of the socket or of run refuses the start, and the sentence names it', async (t) => {
    const h = await filled(t);
    for (const name of ['hearth.sock', 'run']) {
        rmSync(join(h.dataDir, name), { recursive: true, force: true });
        writeFileSync(join(h.dataDir, name), 'mine', { mode: 0o600 });
        const { code, stderr } = await serveOnce(h);
        assert.equal(code, 1);
        assert.ok(stderr.includes(join(h.dataDir, name)), stderr);
        assert.equal(readFileSync(join(h.dataDir, name), 'utf8'), 'mine');
        rmSync(join(h.dataDir, name));
    }
    await h.start();
});
