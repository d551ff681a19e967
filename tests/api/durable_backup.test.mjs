// Backups and restores that are killed, or lose the power, or meet a damaged archive.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { coldHearth, startHearth } from './harness.mjs';
import { admin, newApp } from './kit.mjs';
import { buildSteps } from './steps.mjs';

const upsert = { workspaceId: 'w', vectors: [{ id: 'a', vector: [1, 2, 3], metadata: {} }] };

// A backup `file`, and a stopped Hearth that has since become another in every file.
async function twoStates(t) {
    const h = await startHearth({ t });
    const dev = await h.asKey();
    const vectors = h.asApp(await newApp(h, {}, ['vectors.read', 'vectors.write']));
    await admin(h, 'POST', '/api/keys', { name: 'word-old' });
    h.file('data/hearth.conf', '# old\n');
    assert.equal((await dev('POST', '/activities', { raw_data: { word: 'old' } })).status, 201);
    assert.equal((await vectors('POST', '/sdk/llm/vectors/upsert', upsert)).status, 200);
    const file = join(h.home, 'b.tar.gz');
    await h.cliJson('backup', file);
    await admin(h, 'POST', '/api/keys', { name: 'word-new' });
    h.file('data/hearth.conf', '# new\n');
    assert.equal((await dev('POST', '/activities', { raw_data: { word: 'new' } })).status, 201);
    assert.equal((await vectors('POST', '/sdk/llm/vectors/upsert', { ...upsert, vectors: [{ ...upsert.vectors[0], id: 'b' }] })).status, 200);
    await h.terminate();
    return { h, file };
}

function all(path, sql) {
    const db = new DatabaseSync(path, { readOnly: true });
    try {
        return db.prepare(sql).all().map((row) => Object.values(row)[0]);
    } finally {
        db.close();
    }
}

// What each file says after a command of the command line has opened the folder.
async function stateOf(h) {
    const keys = (await h.cliJson('key', 'list')).map((key) => key.name).filter((name) => name.startsWith('word-'));
    return {
        store: keys.includes('word-new') ? 'new' : 'old',
        backend: all(join(h.dataDir, 'backend.db'), 'SELECT raw_data FROM svc_activities').length === 2 ? 'new' : 'old',
        vectors: all(join(h.dataDir, 'vectors.db'), 'SELECT id FROM vectors').length === 2 ? 'new' : 'old',
        settings: readFileSync(join(h.dataDir, 'hearth.conf'), 'utf8').includes('new') ? 'new' : 'old',
    };
}

const isWhole = (state) => new Set(Object.values(state)).size === 1;
const leftovers = (h) => readdirSync(h.dataDir).filter((name) => /^(backup|restore)[-.]/.test(name));

test('a restore that is killed before any of its steps leaves what was there or what the backup has, never a mix', async (t) => {
    const { h, file } = await twoStates(t);
    const steps = buildSteps(t);
    const before = join(h.home, 'before');
    cpSync(h.dataDir, before, { recursive: true });
    const seen = [];
    for (let step = 1; ; step++) {
        rmSync(h.dataDir, { recursive: true });
        cpSync(before, h.dataDir, { recursive: true });
        const { code, signal, stderr } = await h.cli('restore', '--force', file, { env: steps.killAt(step) });
        assert.ok(signal === 'SIGKILL' || code === 0, stderr);
        const state = await stateOf(h);
        assert.ok(isWhole(state), `killed at step ${step}: ${JSON.stringify(state)}`);
        assert.deepEqual(leftovers(h), [], `killed at step ${step}`);
        seen.push(state.store);
        if (signal === null)
            break;
    }
    t.diagnostic(`${seen.length} steps: ${seen.join(' ')}`);
    const switched = seen.indexOf('old');
    assert.ok(switched > 0 && seen.slice(switched).every((word) => word === 'old'), 'there is one switch');
    await h.start();
});

test('a backup that was told is on disk: its bytes before it has a name, its name before the answer', async (t) => {
    const h = coldHearth({ t });
    await h.cliJson('key', 'new');
    const steps = buildSteps(t);
    mkdirSync(join(h.home, 'out'));
    const file = join(h.home, 'out', 'b.tar.gz');
    assert.equal((await h.cli('backup', file, { env: steps.tell() })).code, 0);
    const told = steps.told();
    const named = told.findIndex((line) => line.trim().endsWith(` ${file}`));
    assert.match(told[named], /^(link|rename) /);
    const nameless = told[named].startsWith('link') ? /^fsync .*\/out\/#\d+ \(deleted\)$/ : /^fsync .*b\.tar\.gz\.\w{6}$/;
    assert.ok(told.slice(0, named).some((line) => nameless.test(line)), told.join('\n'));
    assert.ok(told.slice(named).some((line) => line === `fsync ${join(h.home, 'out')}`), told.join('\n'));
});

test('a backup that is killed leaves no archive of half, and its copies are gone at the next start', async (t) => {
    const h = coldHearth({ t });
    await h.cliJson('key', 'new', '--name', 'kept');
    const steps = buildSteps(t);
    const out = join(h.home, 'out');
    mkdirSync(out);
    let nWithCopies = 0;
    for (let step = 1; ; step++) {
        const { code, signal } = await h.cli('backup', join(out, `${step}.tar.gz`), { env: steps.killAt(step) });
        nWithCopies += leftovers(h).length > 0;
        if (signal === null) {
            assert.equal(code, 0);
            break;
        }
    }
    assert.ok(nWithCopies > 0);
    for (const name of readdirSync(out)) {
        const fresh = coldHearth({ t });
        const { code, stderr } = await fresh.cli('restore', join(out, name));
        assert.equal(code, 0, `${name}: ${stderr}`);
    }
    await h.start();
    assert.deepEqual(leftovers(h), []);
});

// Unpacks a backup, lets `change` alter its files, packs them again.
function repack(h, file, change) {
    const folder = join(h.home, 'unpacked');
    mkdirSync(folder);
    assert.equal(spawnSync('tar', ['xzf', file, '-C', folder]).status, 0);
    const names = spawnSync('tar', ['tzf', file], { encoding: 'utf8' }).stdout.trim().split('\n');
    const kept = change(folder, names) ?? names;
    const made = join(h.home, 'repacked.tar.gz');
    assert.equal(spawnSync('tar', ['czf', made, '-C', folder, '--owner=0', '--group=0', '--format=ustar', ...kept]).status, 0);
    rmSync(folder, { recursive: true });
    return made;
}

test('a member that is not what the manifest says is refused, and so is an archive that lost its digest', async (t) => {
    const h = coldHearth({ t });
    await h.cliJson('key', 'new');
    h.file('data/hearth.conf', '# mine\n');
    const file = join(h.home, 'b.tar.gz');
    await h.cliJson('backup', file);
    const changed = repack(h, file, (folder) => writeFileSync(join(folder, 'hearth.conf'), '# ours\n'));
    const fresh = coldHearth({ t });
    const one = await fresh.cli('restore', changed);
    assert.equal(one.code, 1);
    assert.match(one.stderr, /is damaged/);
    const bare = repack(h, file, (_, names) => names.filter((name) => name !== 'hearth-backup.blake2b'));
    const two = await fresh.cli('restore', bare);
    assert.equal(two.code, 1);
    assert.match(two.stderr, /lacks its digest/);
    assert.deepEqual(readdirSync(fresh.dataDir), ['hearth.lock']);
});

test('a backup of before there were digests is restored, and the person is told what was not checked', async (t) => {
    const h = coldHearth({ t });
    await h.cliJson('key', 'new', '--name', 'kept');
    const file = join(h.home, 'b.tar.gz');
    await h.cliJson('backup', file);
    const old = repack(h, file, (folder, names) => {
        writeFileSync(join(folder, 'hearth-backup.json'), JSON.stringify({ format: 1, files: ['hearth.db'] }));
        return names.filter((name) => name !== 'hearth-backup.blake2b');
    });
    const fresh = coldHearth({ t });
    const { code, stderr } = await fresh.cli('restore', old);
    assert.equal(code, 0, stderr);
    assert.match(stderr, /no digests/);
    assert.deepEqual((await fresh.cliJson('key', 'list')).map((key) => key.name), ['kept']);
    assert.ok(!existsSync(join(fresh.dataDir, 'restore.ready')));
});
