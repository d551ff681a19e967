// A client that leaves, in every phase of speaking and hearing, and callers who want speech at the same time. Stand-ins for workers, which stop at a
// phase, are shell scripts that speak the first frames of the protocol (src/speech/worker_frames.h).
import assert from 'node:assert/strict';
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { startHearth, until } from './harness.mjs';
import { isAlive, newKey, silentWav, speechWorkers } from './kit.mjs';
import { changed } from './sound.mjs';

const octal = (bytes) => [...bytes].map((byte) => `\\${byte.toString(8).padStart(3, '0')}`).join('');
function frame(kind, body) {
    const bytes = Buffer.alloc(8 + body.length);
    bytes.writeUInt32LE(kind, 0);
    bytes.writeUInt32LE(body.length, 4);
    body.copy(bytes, 8);
    return bytes;
}
const helloBody = Buffer.alloc(36);
helloBody[0] = 3;                       // SPEECH_FRAMES_VERSION
helloBody.write('stand-in', 4);
const hello = frame(16, helloBody), voicesFrame = frame(18, Buffer.from('rms\nslt\n')), done = frame(19, Buffer.from([0x80, 0x3e, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])), opened = frame(32, Buffer.from([0x80, 0x3e, 0, 0, 1, 0, 0, 0]));
const aWord = frame(33, Buffer.concat([Buffer.alloc(12), Buffer.from('hello')]));

// A folder of workers that run this script.
function standIns(t, script) {
    const folder = mkdtempSync(join(tmpdir(), 'workers '));
    t.after(() => rmSync(folder, { recursive: true, force: true }));
    for (const name of ['hearth-speech-flite', 'hearth-speech-espeak', 'hearth-speech-ears']) {
        writeFileSync(join(folder, name), `#!/bin/sh\n${script}\n`);
        chmodSync(join(folder, name), 0o755);
    }
    return folder;
}

function childrenOf(pid) {
    const found = [];
    for (const child of readdirSync('/proc').filter((name) => /^\d+$/.test(name)))
        try {
            const [, state, parent] = /^\d+ \(.*\) (\S) (\d+)/s.exec(readFileSync(`/proc/${child}/stat`, 'utf8'));
            if (Number(parent) === pid && state !== 'Z')
                found.push(Number(child));
        } catch { /* it has ended */ }
    return found;
}

// The script has reached its phase when it sleeps.
const say = (bytes) => `printf '${octal(bytes)}'`;
const skip = (n) => `head -c ${n} >/dev/null`;
const phases = {
    'while the worker starts': 'exec sleep 600',
    'while the worker takes the request': `${say(hello)}; exec sleep 600`,
    'while the worker works': `${say(hello)}; ${skip(8)}; exec sleep 600`,
};
// The list of voices is asked for first.
const speaking = { 'while a sentence is spoken': `${say(hello)}; ${skip(8)}; ${say(voicesFrame)}; ${say(done)}; ${skip(8)}; exec sleep 600` };
const hearing = { 'while the recording is read': `${say(hello)}; ${skip(20 + 9644)}; exec sleep 600`, 'between two words': `${say(hello)}; ${skip(20 + 9644)}; ${say(opened)}; ${say(aWord)}; exec sleep 600` };

async function leaves(t, script, path, body, headers = {}) {
    const h = await startHearth({ t, settings: { 'speech.folder': standIns(t, script) } });
    const { key } = await newKey(h);
    const before = childrenOf(h.pid), added = () => childrenOf(h.pid).filter((pid) => !before.includes(pid));
    const leaver = new AbortController();
    const asked = fetch(h.url + path, { method: 'POST', headers: { 'x-api-key': key, ...headers }, body, signal: leaver.signal }).catch((e) => e);
    const [child] = await until(() => added().length && added(), { what: 'a worker' });
    await until(() => /sleep/.test(readFileSync(`/proc/${child}/cmdline`, 'utf8')), { what: 'the phase' });
    leaver.abort();
    assert.ok(await asked instanceof Error);
    await until(() => !isAlive(child) && added().length === 0, { what: 'no child is left' });
}

for (const [phase, script] of Object.entries({ ...phases, ...hearing }))
    test(`hearing: a client that leaves ${phase} leaves no process behind`, (t) => leaves(t, script, '/sdk/stt/transcribe', silentWav));

for (const [phase, script] of Object.entries({ ...phases, ...speaking }))
    test(`speaking: a client that leaves ${phase} leaves no process behind`, (t) => leaves(t, script, '/sdk/tts', '{"text":"Hello.","provider":"flite_local","voice":"rms"}', { 'content-type': 'application/json' }));

test('a client that leaves the queue of recordings leaves it at once', async (t) => {
    const h = await startHearth({ t });
    const { key, call } = await newKey(h);
    const long = changed(silentWav, 'long.wav', [], ['repeat', '99', 'synth', 'brownnoise', 'tremolo', '4', '90']);
    const open = () => { const leaver = new AbortController(); return { leaver, asked: fetch(`${h.url}/sdk/stt/transcribe`, { method: 'POST', headers: { 'x-api-key': key }, body: long, signal: leaver.signal }).catch((e) => e) }; };
    const ears = () => speechWorkers(h).filter(({ name }) => name.endsWith('ears')).map(({ pid }) => pid);
    const busy = [open(), open()];
    const stopped = await until(() => ears().length === 2 && ears(), { what: 'two workers' });
    stopped.forEach((pid) => process.kill(pid, 'SIGSTOP'));
    const waiting = open();
    waiting.leaver.abort();
    assert.ok(await waiting.asked instanceof Error);
    busy.forEach(({ leaver }) => leaver.abort());
    await until(() => ears().length === 0, { what: 'no worker is left' });
    assert.equal((await call('POST', '/sdk/stt/transcribe', silentWav)).status, 200);
});

test('fifty requests at once take turns by caller: one of somebody else does not wait for forty-nine', async (t) => {
    const h = await startHearth({ t, settings: { 'speech.cache_mb': 0 } });
    const many = await newKey(h), one = await newKey(h);
    const text = (i) => `Number ${i} begins here. ${'And it goes on and on, as such texts do. '.repeat(10)}`;
    let n = 0;
    const replies = Array.from({ length: 49 }, (_, i) => many.call('POST', '/sdk/tts', { text: text(i), provider: 'espeak_local' }).then((reply) => { n++; return reply; }));
    const other = one.call('POST', '/sdk/tts', { text: 'Hello.', provider: 'espeak_local' }).then((reply) => ({ ...reply, before: n }));
    const { status, before } = await other;
    assert.equal(status, 200);
    assert.ok(before < 25, `${before} of 49 came before`);
    assert.deepEqual((await Promise.all(replies)).filter((reply) => reply.status !== 200), []);
});
