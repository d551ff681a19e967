// A file that says it is a backup: it writes nothing outside the folder, fills no disk, and changes nothing when it is refused.
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { coldHearth } from '../api/harness.mjs';

const mib = 1024 * 1024;
const manifest = { name: 'hearth-backup.json', data: JSON.stringify({ format: 1, files: [] }) };

// One member of a tar (POSIX ustar); size may lie.
function member({ name, data = '', type = '0', link = '', size, mode = '0000600' }) {
    const bytes = Buffer.from(data);
    const head = Buffer.alloc(512);
    const octal = (number) => number.toString(8).padStart(11, '0');
    head.write(name, 0, 100);
    head.write(`${mode}\0${'0'.repeat(7)}\0${'0'.repeat(7)}\0${octal(size ?? bytes.length)}\0${octal(0)}\0        ${type}`, 100);
    head.write(link, 157, 100);
    head.write('ustar\x0000', 257);
    head.write(`${[...head].reduce((sum, byte) => sum + byte, 0).toString(8).padStart(6, '0')}\0 `, 148);
    return Buffer.concat([head, bytes, Buffer.alloc((512 - bytes.length % 512) % 512)]);
}

const tar = (members) => Buffer.concat([...members.map(member), Buffer.alloc(1024)]);

async function restore(t, bytes, ...options) {
    const h = coldHearth({ t });
    const file = h.file('evil.tar.gz', bytes);
    const result = await h.cli('restore', file, ...options);
    return { h, file, ...result };
}

async function isRefused(t, bytes, why, ...options) {
    const { h, code, stderr, stdout } = await restore(t, bytes, ...options);
    assert.equal(code, 1, stdout);
    assert.match(stderr, why);
    assert.deepEqual(readdirSync(h.dataDir), ['hearth.lock'], 'nothing is left of it');
    assert.deepEqual(readdirSync(h.home).filter((name) => name !== 'desk').sort(), ['data', 'evil.tar.gz']);
}

test('0.6 MB that become 623 MB are refused, unless the person allows as much', async (t) => {
    const bomb = gzipSync(tar([manifest, { name: 'hearth.db', data: Buffer.alloc(623 * mib) }]));
    assert.ok(bomb.length < mib);
    await isRefused(t, bomb, /take more than 64 MB, .*--max-mb/);
    await isRefused(t, bomb, /take more than 622 MB/, '--max-mb', '622');
    for (const wrong of ['0', '-1', 'x', '1x', '99999999999999999999'])
        assert.equal((await restore(t, bomb, '--max-mb', wrong)).code, 2);
});

test('the limit of all files counts in sum: at 64 MB they are read, one byte more is refused', async (t) => {
    const files = (more) => gzipSync(tar([manifest, { name: 'backend.db', data: Buffer.alloc(40 * mib) },
        { name: 'hearth.db', data: Buffer.alloc(24 * mib - Buffer.byteLength(manifest.data) + more) }]), { level: 9 });
    await isRefused(t, files(0), /^(?!.*take more)/s);
    await isRefused(t, files(1), /take more than 64 MB/);
});

test('manifest, settings file and key have small limits of their own', async (t) => {
    const withFile = (name, n) => gzipSync(tar([manifest, { name, data: Buffer.alloc(n, 'x') }]));
    for (const [name, max] of [['hearth.conf', mib], ['master.key', 4096]]) {
        await isRefused(t, withFile(name, max), /hearth\.db is missing/);
        await isRefused(t, withFile(name, max + 1), new RegExp(`its ${name} is larger than ${max} bytes`));
    }
    await isRefused(t, gzipSync(tar([{ ...manifest, data: Buffer.alloc(mib + 1, ' ') }])), /its hearth-backup\.json is larger/);
});

test('a member that is no plain file of a known name is refused', async (t) => {
    for (const evil of [
        { name: 'hearth.db', type: '2', link: '/etc/passwd' }, { name: 'hearth.db', type: '1', link: 'master.key' }, { name: 'hearth.db', type: '3' },
        { name: 'hearth.db', type: '4' }, { name: 'hearth.db', type: '5' }, { name: 'hearth.db', type: '6' },
        { name: '/tmp/hearth.db' }, { name: '../hearth.db' }, { name: './hearth.db' }, { name: 'a/../hearth.db' }, { name: 'local-apps/x' },
        { name: 'hearth.db/' }, { name: '' }, { name: 'x'.repeat(100) }, { name: 'hearth.sock' }, { name: 'HEARTH.DB' },
    ])
        await isRefused(t, gzipSync(tar([manifest, evil])), /is no backup of Hearth/);
});

test('a member that stands twice is refused, so there are never more files than names', async (t) => {
    await isRefused(t, gzipSync(tar([manifest, { name: 'master.key', data: 'a' }, { name: 'master.key', data: 'b' }])), /holds a file twice/);
    await isRefused(t, gzipSync(tar(Array.from({ length: 10_000 }, () => manifest))), /holds a file twice/);
});

test('an archive compressed twice, cut off, or with a size that lies is refused', async (t) => {
    const bytes = tar([manifest, { name: 'hearth.db', data: Buffer.alloc(4096) }]);
    await isRefused(t, gzipSync(gzipSync(bytes)), /is no backup of Hearth/);
    await isRefused(t, gzipSync(bytes.subarray(0, 1800)), /is no backup of Hearth/);
    await isRefused(t, gzipSync(tar([manifest, { name: 'hearth.db', data: 'x', size: 8 ** 11 - 1 }])), /take more|disk/);
    await isRefused(t, Buffer.alloc(0), /is no backup of Hearth/);
    await isRefused(t, Buffer.from('no archive'), /is no backup of Hearth/);
});

test('what is no file is no archive: a folder, a device, a pipe', async (t) => {
    const h = coldHearth({ t });
    mkdirSync(join(h.home, 'folder'));
    symlinkSync('/dev/zero', join(h.home, 'zero'));
    for (const path of [join(h.home, 'folder'), join(h.home, 'zero')]) {
        const { code, stderr } = await h.cli('restore', path);
        assert.equal(code, 1);
        assert.match(stderr, /it is no file/);
    }
});

test('a refused archive changes no data that is there, forced or not', async (t) => {
    const h = coldHearth({ t });
    await h.cliJson('key', 'new', '--name', 'kept');
    const before = readdirSync(h.dataDir).sort();
    const file = join(h.home, 'evil.tar.gz');
    writeFileSync(file, gzipSync(tar([manifest, { name: 'master.key', data: 'mine now' }, { name: 'hearth.db', data: Buffer.alloc(65 * mib) }])));
    assert.equal((await h.cli('restore', file, '--force')).code, 1);
    assert.deepEqual(readdirSync(h.dataDir).sort(), before);
    assert.deepEqual((await h.cliJson('key', 'list')).map((key) => key.name), ['kept']);
    assert.ok(!existsSync(join(h.home, 'outside')));
});
