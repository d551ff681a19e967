// hearth backup and restore.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { coldHearth, startHearth } from './harness.mjs';

async function filled(t, make) {
    const h = await make({ t });
    await h.cli('key', 'new', '--name', 'kept');
    await h.app({ name: 'demo' }, ['llm.chat']);
    h.file('data/hearth.conf', 'tasks.sweep_s = 33\n');
    return h;
}

async function whatIs(h) {
    return {
        keys: (await h.cliJson('key', 'list')).map((key) => key.name),
        apps: (await h.cliJson('app', 'list')).map((app) => app.name),
        grants: (await h.cliJson('permission', 'list')).filter((one) => one.decision !== 'waiting').map((grant) => grant.permission),
        sweep: (await h.cli('settings', 'tasks.sweep_s')).stdout,
    };
}

const files = ['backend.db', 'hearth.conf', 'hearth.db', 'master.key'];

// A folder that never was served has no vectors yet.
for (const [form, make, held] of [['a running service', startHearth, [...files, 'vectors.db']], ['a folder alone', async (options) => coldHearth(options), files]])
    test(`what ${form} holds comes back in an empty folder`, async (t) => {
        const h = await filled(t, make);
        const file = join(h.home, 'backup.tar.gz');
        const made = await h.cliJson('backup', file);
        assert.equal(made.path, file);
        assert.deepEqual(made.files.sort(), held);
        assert.equal(statSync(file).mode & 0o777, 0o600);
        const fresh = coldHearth({ t });
        const restored = await fresh.cli('restore', file);
        assert.equal(restored.code, 0, restored.stderr);
        assert.match(restored.stdout, new RegExp(`^${held.length} files`));
        assert.deepEqual(await whatIs(fresh), { keys: ['kept'], apps: ['demo'], grants: ['llm.chat'], sweep: '33 (file)\n' });
        assert.deepEqual(readdirSync(h.dataDir).filter((name) => name.startsWith('backup-')), [], 'no working folder is left');
        assert.deepEqual(readdirSync(fresh.dataDir).filter((name) => name.startsWith('backup-')), []);
    });

test('rows of activities are in the backup', async (t) => {
    const h = await startHearth({ t });
    const dev = await h.asKey();
    const { body } = await dev('POST', '/activities', { raw_data: { kept: true } });
    const file = join(h.home, 'backup.tar.gz');
    await h.cliJson('backup', file);
    const fresh = coldHearth({ t });
    assert.equal((await fresh.cli('restore', file)).code, 0);
    await fresh.start();
    const reply = await fresh.api('GET', `/activities/${body.data.id}`, undefined, { 'x-api-key': await h.key() });
    assert.deepEqual(reply.body.data.raw_data, { kept: true });
});

test('a relative name means the folder the person is in', async (t) => {
    const h = await filled(t, startHearth);
    const result = await h.cli('backup', 'here.tar.gz');
    assert.equal(result.code, 0, result.stderr);
    assert.match(result.stdout, /files are in here\.tar\.gz/);
    assert.ok(existsSync(join(h.home, 'here.tar.gz')));
});

test('the archive is an ordinary tar', async (t) => {
    const h = await filled(t, startHearth);
    const file = join(h.home, 'backup.tar.gz');
    await h.cliJson('backup', file);
    const listed = spawnSync('tar', ['tzf', file], { encoding: 'utf8' });
    assert.deepEqual(listed.stdout.trim().split('\n'), ['hearth-backup.json', 'hearth.db', 'backend.db', 'vectors.db', 'hearth.conf', 'master.key', 'hearth-backup.blake2b']);
});

test('a file that exists is not written over', async (t) => {
    const h = await filled(t, startHearth);
    const file = h.file('backup.tar.gz', 'mine');
    const result = await h.cli('backup', file);
    assert.equal(result.code, 1);
    assert.match(result.stderr, /exists already/);
    assert.equal(readFileSync(file, 'utf8'), 'mine');
});

test('a folder that cannot be written to is told', async (t) => {
    const h = await filled(t, startHearth);
    const result = await h.cli('backup', join(h.home, 'no', 'such', 'folder.tar.gz'));
    assert.equal(result.code, 1);
    assert.match(result.stderr, /folder\.tar\.gz/);
});

test('restore refuses while a service runs, and over data unless forced; then it keeps what was there', async (t) => {
    const h = await filled(t, startHearth);
    const file = join(h.home, 'backup.tar.gz');
    await h.cliJson('backup', file);
    const running = await h.cli('restore', '--force', file);
    assert.equal(running.code, 1);
    assert.match(running.stderr, new RegExp(`pid ${h.pid}`));
    await h.cli('key', 'new', '--name', 'later');
    await h.terminate();
    const over = await h.cli('restore', file);
    assert.equal(over.code, 1);
    assert.match(over.stderr, /--force/);
    assert.deepEqual((await whatIs(h)).keys.sort(), ['kept', 'later']);
    const forced = await h.cli('restore', file, '--force');
    assert.equal(forced.code, 0, forced.stderr);
    assert.deepEqual((await whatIs(h)).keys, ['kept']);
    assert.ok(readdirSync(h.dataDir).some((name) => name.startsWith('hearth.db.before-restore-')));
});

const damages = [
    ['nothing of the kind', () => Buffer.from('hello')],
    ['an archive cut short', (bytes) => bytes.subarray(0, bytes.length / 2)],
    ['an archive with a broken byte', (bytes) => {
        const copy = Buffer.from(bytes);
        copy[copy.length >> 1] ^= 0xff;
        return copy;
    }],
];

for (const [name, damage] of damages)
    test(`${name} is refused and changes nothing`, async (t) => {
        const h = await filled(t, async (options) => coldHearth(options));
        const file = join(h.home, 'backup.tar.gz');
        await h.cliJson('backup', file);
        writeFileSync(file, damage(readFileSync(file)));
        const fresh = coldHearth({ t });
        const result = await fresh.cli('restore', file);
        assert.equal(result.code, 1, result.stdout);
        assert.deepEqual(readdirSync(fresh.dataDir), ['hearth.lock']);
        const forced = await h.cli('restore', file, '--force');
        assert.equal(forced.code, 1);
        assert.deepEqual((await whatIs(h)).keys, ['kept']);
    });

test('an archive of something else is refused', async (t) => {
    const h = coldHearth({ t });
    const evil = h.file('evil', 'x');
    const file = join(h.home, 'evil.tar.gz');
    assert.equal(spawnSync('tar', ['czf', file, '-P', '--transform', 's,.*,../outside,', evil]).status, 0);
    const result = await h.cli('restore', file);
    assert.equal(result.code, 1);
    assert.match(result.stderr, /no backup of Hearth/);
    assert.ok(!existsSync(join(h.home, 'outside')));
});
