// hearth listen, with ALSA's file device as the microphone.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { test } from 'node:test';
import { binary, sharedHearth, startHearth, until } from './harness.mjs';
import { admin, speechWorkers } from './kit.mjs';
import { fileMicrophone, silence, spoken } from './microphone.mjs';

const mic = fileMicrophone();
const shared = sharedHearth({ env: mic.env });
const text = 'please open the window and turn on the light';
const voice = spoken('Please open the window and turn on the light.');

test('hearth listen prints what is said', async (t) => {
    const h = await shared(t);
    mic.plays(silence(0.5), voice, silence(10));
    const plain = await h.cli('listen');
    assert.deepEqual([plain.code, plain.stdout, plain.stderr], [0, `${text}\n`, '']);
    const { json, stderr } = await h.cli('listen', '--json', '--keep');
    assert.deepEqual([json.text, existsSync(json.path), stderr], [text, true, '']);
    const kept = await h.cli('listen', '--keep', '--phrases', 'open the window, please open the window and turn on the light');
    assert.equal(kept.stdout, `${text}\n`);
    assert.match(kept.stderr, /^The recording is in \/.+\.wav\.\n$/);
});

test('on a terminal it shows what it seems to be', async (t) => {
    const h = await shared(t);
    mic.plays(silence(0.5), voice, silence(10));
    const child = spawn('script', ['-qec', `"${binary}" listen --data "${h.dataDir}"`, '/dev/null'], { env: h.env });
    let shown = '';
    child.stdout.on('data', (piece) => { shown += piece; });
    const code = await new Promise((done) => child.on('close', done));
    assert.equal(code, 0, shown);
    assert.match(shown, /Listening \.\.\./);
    assert.ok(shown.split('\r\x1b[K').length > 4, shown);
    assert.match(shown, /\r\x1b\[Kplease open the window and turn on the light\r\n$/);
});

test('it tells what went wrong, and that nothing was heard', async (t) => {
    const h = await startHearth({ t, env: mic.env });
    mic.plays(silence(3));
    for (const [args, code, reason] of [[['--timeout', '1'], 1, /Nobody spoke/], [['--timeout', 'soon'], 2, /--timeout must be a number/], [['--provider', 'nobody'], 1, /provider/]]) {
        const done = await h.cli('listen', ...args);
        assert.equal(done.code, code, done.stderr);
        assert.match(done.stderr, reason);
        assert.equal(done.stdout, '');
    }
    await admin(h, 'PUT', '/api/settings/speech.microphone', { value: 'hw:77' });
    const { code, stderr } = await h.cli('listen');
    assert.equal(code, 1);
    assert.match(stderr, /no microphone that can be used.+hw:77/);
});

test('Ctrl-C ends it, and closes the microphone', async (t) => {
    const h = await shared(t);
    const held = mic.holds();
    const child = spawn(binary, ['listen', '--data', h.dataDir], { env: h.env, stdio: 'ignore' });
    await until(() => speechWorkers(h).some(({ name }) => name.endsWith('microphone')), { what: 'the microphone is open' });
    child.kill('SIGINT');
    await until(() => speechWorkers(h).length === 0, { what: 'no worker is left' });
    assert.equal(await new Promise((done) => (child.signalCode ? done(child.signalCode) : child.on('exit', (_, signal) => done(signal)))), 'SIGINT');
    held.leaves();
});
