// A data folder that is copied while its service works: the copy's service leaves the original's processes alone.
import assert from 'node:assert/strict';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { startHearth, until } from './harness.mjs';
import { insert, listeningApp, shellAgent } from './kit.mjs';

function lives(pid) {
    try {
        return !/^[ZX]/.test(readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/^.*\) /s, ''));
    } catch {
        return false;
    }
}

// A service whose agent runs, with one process that left the agent's group: their numbers. `word` is in the names of what they write.
async function workingHearth(t, word) {
    const h = await startHearth({ t });
    const file = (name) => join(h.desk, `${word}-${name}`);
    const agent = await shellAgent(h, `setsid sh -c 'echo $$ >${file('left')}; exec sleep 1000' & echo $$ >${file('agent')}; wait`, { timeout_s: 600 });
    const { call } = await listeningApp(h, agent);
    await insert(call, { word });
    const pid = (name) => until(() => existsSync(file(name)) && Number(readFileSync(file(name), 'utf8')), { what: `${word} ${name} runs` });
    return { h, agent: await pid('agent'), left: await pid('left') };
}

const parentOf = (pid) => Number(readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/^.*\) /s, '').split(' ')[1]);

async function copyOf(t, h) {
    const home = mkdtempSync(join(tmpdir(), 'hearth-copy-'));
    t.after(() => rmSync(home, { recursive: true, force: true }));
    mkdirSync(join(home, 'data'), { mode: 0o700 });
    cpSync(h.dataDir, join(home, 'data'), { recursive: true, filter: (path) => !path.endsWith('.sock') });
    return startHearth({ t, dataDir: join(home, 'data'), settings: { 'identity.machine_id': 'the-copy' } });
}

test('a service on a copied folder ends nothing of the original, at its start and at its end', async (t) => {
    const { h, agent, left } = await workingHearth(t, 'original');
    const copy = await copyOf(t, h);
    assert.ok(lives(agent) && lives(left), 'after its start');
    assert.ok(!copy.log.some((line) => /left behind/.test(line)));
    await copy.terminate();
    assert.ok(lives(agent) && lives(left), 'after its end');
    await copy.start();
    await copy.kill();
    assert.ok(lives(agent) && lives(left), 'after it was killed');
});

test('what a killed service left is ended by the next on its folder, and by no other', async (t) => {
    const { h, agent, left } = await workingHearth(t, 'killed');
    const copy = await copyOf(t, h);
    h.signal('SIGSTOP');                // it sees nothing of what comes
    process.kill(parentOf(agent), 'SIGKILL');       // hearth-child, which would end what it stands around
    await h.kill();
    assert.ok(lives(left));
    await copy.terminate();
    await copy.start();
    assert.ok(lives(left), 'the copy is another folder');
    await h.start();
    await h.logged(/ended \d+ processes that an earlier run left behind/);
    assert.ok(!lives(left));
});
