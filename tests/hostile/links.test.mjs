// A sandboxed program that plants links in the folders it may write, for its next start, and for the service.
import assert from 'node:assert/strict';
import { existsSync, lstatSync, mkdirSync, readFileSync, symlinkSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { startHearth, until } from '../api/harness.mjs';
import { admin, newApp } from '../api/kit.mjs';

async function hasNamespaces(h) {
    const { checks } = await admin(h, 'GET', '/api/doctor');
    return checks.some(({ name, ok, text }) => name === 'sandbox' && ok && /namespaces|bubblewrap/.test(text));
}

// A home with a secret, a folder the app may write, and within it what its definition names too.
async function makeHome(t) {
    const h = await startHearth({ t });
    const out = join(h.home, 'out'), named = join(out, 'named'), secrets = join(h.home, 'secrets');
    for (const folder of [out, named, secrets])
        mkdirSync(folder, { mode: 0o700 });
    writeFileSync(join(secrets, 'id'), 'secret-of-the-person', { mode: 0o600 });
    return { h, out, named, secrets };
}

// Starts the app until its script has left a note of what it found.
async function runApp(h, out, more, script) {
    const note = join(out, 'note');
    rmSync(note, { force: true });
    const id = await newApp(h, { app_type: 'custom', config: { command: '/bin/sh', args: ['-c', `${script} > ${note}.part 2>&1; mv ${note}.part ${note}; exec sleep 60`], ...more } });
    const started = await h.socket('POST', `/api/apps/${id}/start`);
    if (started.status !== 200)
        return { refused: started.text };
    await until(() => existsSync(note), { what: 'the app has looked around' });
    await admin(h, 'POST', `/api/apps/${id}/stop`);
    return { found: readFileSync(note, 'utf8') };
}

test('a program that moves the folder around one it may read, and plants a link, reads no more at its next start', async (t) => {
    const w = await makeHome(t);
    if (!await hasNamespaces(w.h))
        return t.skip('needs bubblewrap and user namespaces');
    const inner = join(w.named, 'in');
    mkdirSync(inner);
    mkdirSync(join(w.secrets, 'in'));
    writeFileSync(join(w.secrets, 'in/id'), 'secret-of-the-person');
    const more = { sandbox: { profile: 'standard', write: [w.out], read: [inner] } };
    await runApp(w.h, w.out, more, `mv ${w.named} ${w.named}2; ln -s ../secrets ${w.named}`);
    assert.ok(lstatSync(w.named).isSymbolicLink(), 'the program has planted its link');
    const after = await runApp(w.h, w.out, more, `cat ${inner}/id`);
    assert.match(after.refused ?? after.found, /SANDBOX_FOLDER/);
});

for (const [name, more] of [
    ['a folder of its own to write', ({ out, named }) => ({ sandbox: { profile: 'standard', write: [out, named] } })],
    ['a folder of its own to read', ({ out, named }) => ({ sandbox: { profile: 'standard', write: [out], read: [named] } })],
    ['its working folder', ({ out, named }) => ({ sandbox: { profile: 'standard', write: [out] }, working_dir: named })],
])
    test(`a link that a program plants in place of ${name} opens nothing at its next start`, async (t) => {
        const w = await makeHome(t);
        if (!await hasNamespaces(w.h))
            return t.skip('needs bubblewrap and user namespaces');
        const look = `cat ${w.secrets}/id ${w.named}/id`;
        const before = await runApp(w.h, w.out, more(w), look);
        assert.doesNotMatch(before.found ?? before.refused, /secret-of-the-person/);
        rmSync(w.named, { recursive: true });
        symlinkSync('../secrets', w.named);
        const after = await runApp(w.h, w.out, more(w), look);
        assert.doesNotMatch(after.found ?? after.refused, /secret-of-the-person/);
        assert.match(after.refused ?? '', /SANDBOX_FOLDER/);
    });
