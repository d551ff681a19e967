// Settings can never lock a person out (issue 8, section 1).
import assert from 'node:assert/strict';
import { symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { startHearth } from './harness.mjs';
import { admin, refused, sqlite } from './kit.mjs';

// What a value in the database does to commands and service while it stands there, and that it can be taken back.
for (const [key, value, said] of [['tasks.stale_after_s', '2', /stale_after_s must be above/], ['tasks.sweep_s', 'soon', /tasks\.sweep_s must be/],
    ['of.a_newer_version', '1', /of\.a_newer_version/], ['backend.file', '/nowhere/at/all.db', /all\.db/]])
    test(`with ${key}=${value} in the database, repair commands work and name it, others refuse, and it can be unset`, async (t) => {
        const h = await startHearth({ t });
        await admin(h, 'POST', '/api/keys', { name: 'before' });
        await h.terminate();
        await sqlite(join(h.dataDir, 'hearth.db'), `INSERT INTO settings_rows (key, value, updated_at) VALUES ('${key}', '${value}', '2026-01-01T00:00:00.000Z')`);
        for (const args of [['settings'], ['settings', 'tasks.sweep_s'], ['settings', 'set', 'log.level', 'info'], ['backup', join(h.home, 'b.tar.gz')]]) {
            const done = await h.cli(...args);
            assert.equal(done.code, 0, `${args}: ${done.stderr}`);
            assert.match(done.stderr, said);
            assert.match(done.stderr, new RegExp(`hearth settings unset ${key.replace('.', '\\.')}`));
        }
        const doctor = await h.cli('doctor');
        assert.equal(doctor.code, 1);
        assert.match(doctor.stdout + doctor.stderr, said);
        const other = await h.cli('key', 'list');
        assert.notEqual(other.code, 0);
        assert.match(other.stderr, new RegExp(`hearth settings unset ${key.replace('.', '\\.')}`));
        await assert.rejects(h.start(), new RegExp(`hearth settings unset ${key.replace('.', '\\.')}`));
        const unset = await h.cli('settings', 'unset', key);
        assert.equal(unset.code, 0, unset.stderr);
        await h.start();
        assert.equal((await admin(h, 'GET', '/api/keys')).keys[0].name, 'before');
    });

test('a backend.file that could not be opened, or that holds something else, is not kept', async (t) => {
    const h = await startHearth({ t });
    const set = (value) => h.socket('PUT', '/api/settings/backend.file', { value });
    writeFileSync(join(h.home, 'notes.txt'), 'These are notes, and no database; they are not to be put aside as a damaged one.'.repeat(10));
    symlinkSync(join(h.dataDir, 'hearth.db'), join(h.home, 'link.db'));
    for (const [value, said] of [['work.db', /whole path/], ['/nowhere/at/all.db', /\/nowhere\/at/], ['/proc/work.db', /\/proc/], [h.home, /no file/], [join(h.home, 'notes.txt'), /no database/],
        [join(h.dataDir, 'hearth.db'), /Hearth's own/], [join(h.dataDir, 'vectors.db'), /Hearth's own/], [join(h.home, 'link.db'), /Hearth's own/]])
        refused(await set(value), 400, 'BAD_SETTING', said);
    const cli = await h.cli('settings', 'set', 'backend.file', join(h.home, 'notes.txt'));
    assert.equal(cli.code, 2, cli.stderr);
    await sqlite(join(h.home, 'theirs.db'), 'CREATE TABLE theirs (n INTEGER)');
    for (const value of [join(h.home, 'new.db'), join(h.home, 'theirs.db'), join(h.dataDir, 'backend.db'), ''])
        assert.equal((await set(value)).status, 200, value);
    await set(join(h.home, 'theirs.db'));
    await h.terminate();
    await h.start();
    assert.deepEqual(await sqlite(join(h.home, 'theirs.db'), "SELECT count(*) n FROM sqlite_schema WHERE name IN ('theirs', 'svc_activities')"), [{ n: 2 }]);
});

test('a service does not take one of its own databases for the backend', async (t) => {
    const h = await startHearth({ t });
    await h.terminate();
    const { code, stderr } = await h.cli('serve', '--listen', '127.0.0.1:0', '--set', `backend.file=${join(h.dataDir, 'hearth.db')}`, { deadlineMs: 30_000 });
    assert.notEqual(code, 0);
    assert.match(stderr, /Hearth's own/);
    await h.start();
});

test('a value that only the flags of this start allow is not kept', async (t) => {
    const h = await startHearth({ t, settings: { 'tasks.heartbeat_s': 0.5 } });
    const set = (key, value) => h.socket('PUT', `/api/settings/${key}`, { value });
    refused(await set('tasks.stale_after_s', 2), 400, 'BAD_SETTING', /2 \(database\) and 120 \(default\)/);
    refused(await set('http.listen', '0.0.0.0:0'), 400, 'BAD_SETTING', /http\.allow_remote/);
    assert.equal((await set('tasks.stale_after_s', 200)).status, 200);
    await h.terminate();
    await h.start();
});
