// hearth upgrade --check, and the copies of databases before their schema changes.
import assert from 'node:assert/strict';
import { appendFileSync, chmodSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, statSync, statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { binary, coldHearth, runProgram, startHearth, stoppedHearth } from './harness.mjs';
import { backendFile, smallDisk, sqlite, storeFile } from './kit.mjs';

const vectorsFile = (h) => join(h.dataDir, 'vectors.db');
const toOlderVectors = 'ALTER TABLE spaces DROP COLUMN n_bytes; ALTER TABLE spaces DROP COLUMN side_mark; PRAGMA user_version = 1';

async function check(h, options = {}) {
    const result = await h.cli('upgrade', '--check', '--json', options);
    assert.ok(result.json, result.stderr);
    return { ...result.json, code: result.code, states: Object.fromEntries(result.json.databases.map(({ name, state }) => [name, state])) };
}

// Names, times and bytes of all files.
function snapshot(folder) {
    return readdirSync(folder, { recursive: true }).sort().map((name) => {
        const stat = statSync(join(folder, name));
        return [name, stat.mtimeMs, stat.isFile() ? readFileSync(join(folder, name)).toString('base64') : ''];
    });
}

function copiesOf(h, name) {
    return readdirSync(h.dataDir).filter((entry) => entry.startsWith(name) && /\.v\d+-.*\.bak$/.test(entry));
}

test('a folder of this version: nothing is to be done, and nothing is changed', async (t) => {
    const h = await stoppedHearth({ t });
    const before = snapshot(h.dataDir);
    const now = await check(h);
    assert.deepEqual([now.code, now.due, now.service.running, now.settings, now.copies], [0, false, false, [], []]);
    assert.deepEqual(now.states, { 'hearth.db': 'current', 'backend.db': 'current', 'vectors.db': 'current' });
    assert.match((await h.cli('upgrade', '--check')).stdout, /Nothing is to be done\./);
    assert.deepEqual(snapshot(h.dataDir), before);
});

test('a folder that is not there is not made', async (t) => {
    const h = coldHearth({ t, isBare: true });
    assert.equal((await check(h)).code, 0);
    assert.equal(existsSync(h.dataDir), false);
});

test('a running service of this program needs no start; of another program it does', async (t) => {
    const h = await startHearth({ t });
    const same = await check(h);
    assert.deepEqual([same.code, same.service.pid, same.service.restart, same.service.build], [0, h.pid, false, same.build]);
    assert.match(same.build, /^[0-9a-f]{16,64}$/);
    assert.equal((await h.api('GET', '/healthz')).body.build, null, 'over TCP it is not told');

    const other = join(h.home, 'other');
    const bytes = readFileSync(binary);
    const id = Buffer.from(same.build, 'hex');
    for (let at = bytes.indexOf(id); at >= 0; at = bytes.indexOf(id, at + 1))
        bytes[at] ^= 1;
    writeFileSync(other, bytes);
    chmodSync(other, 0o755);
    const told = await runProgram(other, ['upgrade', '--check', '--data', h.dataDir], { env: h.env });
    assert.equal(told.code, 1, told.stderr);
    assert.match(told.stdout, /runs another program .* start it again/);
});

test('settings that this version cannot use are named, stored ones and those of the file', async (t) => {
    const h = await stoppedHearth({ t });
    await sqlite(storeFile(h), "INSERT INTO settings_rows VALUES ('gone.key', '1', ''), ('tasks.max_machines', '1000000', '')");
    const stored = await check(h);
    assert.equal(stored.code, 1);
    assert.match(stored.settings.join('\n'), /gone\.key[^]*tasks\.max_machines/);
    assert.match(stored.settings[0], /hearth settings unset gone\.key/);
    writeFileSync(join(h.dataDir, 'hearth.conf'), 'old.key = 1\n', { mode: 0o600 });
    assert.match((await check(h)).settings[0], /hearth\.conf:1: there is no setting old\.key/);
});

test('an older schema is told with the space of its copy; the start copies, migrates, logs and keeps one copy', async (t) => {
    const h = await stoppedHearth({ t });
    await sqlite(vectorsFile(h), toOlderVectors);
    await sqlite(backendFile(h), 'PRAGMA user_version = 1');
    writeFileSync(`${vectorsFile(h)}.v0-2020-01-01T00:00:00.000Z.bak`, 'of an upgrade before', { mode: 0o600 });
    const mine = `${vectorsFile(h)}.very-own.bak`;
    writeFileSync(mine, 'of a person', { mode: 0o600 });
    const before = await check(h);
    assert.deepEqual([before.code, before.states['vectors.db'], before.states['backend.db']], [1, 'migrates', 'migrates']);
    assert.equal(before.space.needed, statSync(vectorsFile(h)).size + statSync(backendFile(h)).size);
    assert.equal(before.space.enough, true);

    await h.start();
    for (const name of ['vectors.db', 'backend.db']) {
        const [copy, ...more] = copiesOf(h, name);
        assert.match(copy, /\.v1-.*\.bak$/);
        assert.deepEqual(more, [], 'the copy of the upgrade before is gone');
        assert.equal(statSync(join(h.dataDir, copy)).mode & 0o777, 0o600);
        assert.equal((await sqlite(join(h.dataDir, copy), 'SELECT user_version AS version FROM pragma_user_version'))[0].version, 1);
        await h.logged(new RegExp(`${copy.replaceAll('.', '\\.')} is a copy from before an upgrade`));
    }
    assert.ok(existsSync(mine), 'only copies of upgrades are removed');
    const after = await check(h);
    assert.deepEqual([after.code, after.copies.length, after.states['vectors.db']], [0, 2, 'current']);
    const doctor = (await h.cliJson('doctor')).filter(({ name }) => name === 'copy');
    assert.deepEqual(doctor.map(({ ok }) => ok), [true, true]);
});

test('a newer and an unreadable database are told', async (t) => {
    const h = await stoppedHearth({ t });
    await sqlite(storeFile(h), 'PRAGMA user_version = 999');
    writeFileSync(backendFile(h), 'no database at all '.repeat(500));
    const now = await check(h);
    assert.deepEqual([now.code, now.states['hearth.db'], now.states['backend.db']], [1, 'newer', 'unreadable']);
    assert.match((await h.cli('upgrade', '--check')).stdout, /schema 999, newer than this program's/);
});

test('without --check it says how to upgrade', async (t) => {
    const h = coldHearth({ t });
    const said = await h.cli('upgrade');
    assert.equal(said.code, 0);
    assert.match(said.stdout, /hearth backup FILE[^]*hearth service stop[^]*hearth upgrade --check/);
});

test('without room for the copy the start is refused with a sentence, and nothing is changed', async (t) => {
    const disk = smallDisk(t, 32);
    if (!disk)
        return t.skip('needs root and the right to mount a tmpfs');
    mkdirSync(join(disk, 'home'));
    const h = await startHearth({ dataDir: join(disk, 'home/data') });
    t.after(() => h.isRunning && h.stop());
    await h.terminate();
    // Pages that were used once are copied too; the service itself needs some room for its logs.
    await sqlite(vectorsFile(h), `INSERT INTO vectors VALUES (1, 1, 'x', NULL, '{}', zeroblob(8000000)); DELETE FROM vectors; ${toOlderVectors}`);
    const { bavail, bsize } = statfsSync(disk);
    writeFileSync(join(disk, 'filler'), Buffer.alloc(bavail * bsize - 2_000_000));
    const before = readFileSync(vectorsFile(h));
    const told = await check(h);
    assert.deepEqual([told.code, told.space.enough], [1, false]);
    const refused = await h.cli('serve', '--listen', '127.0.0.1:0');
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /changes the schema of .*vectors\.db, and a copy comes first; nothing was changed: .*full/);
    assert.deepEqual(readFileSync(vectorsFile(h)), before);
    assert.deepEqual(copiesOf(h, 'vectors.db'), []);
    appendFileSync(join(disk, 'filler'), Buffer.alloc(statfsSync(disk).bavail * bsize));
    const full = await h.cli('serve', '--listen', '127.0.0.1:0', '--accept-loss');
    assert.equal(full.code, 1);
    assert.doesNotMatch(full.stderr, /damaged/, 'a full disk is no damage');
    assert.deepEqual(readdirSync(h.dataDir).filter((name) => name.includes('damaged')), []);
    rmSync(join(disk, 'filler'));
    await h.start();
    assert.equal((await h.api('GET', '/readyz')).status, 200);
    await h.terminate();
});
