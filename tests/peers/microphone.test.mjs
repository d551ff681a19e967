// A microphone of PulseAudio: the monitor of a null sink, into which paplay speaks; Hearth reaches it through ALSA's plugin.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { startHearth, until } from '../api/harness.mjs';
import { changes, newKey, refused, speechWorkers } from '../api/kit.mjs';

const missing = ['pulseaudio', 'pactl', 'paplay', 'flite'].filter((program) => spawnSync('which', [program]).status !== 0);
const plugin = spawnSync('find', ['/usr/lib', '-name', 'libasound_module_pcm_pulse.so'], { encoding: 'utf8' }).stdout;
const skip = missing.length > 0 ? `missing: ${missing}` : plugin ? false : "ALSA's plugin for PulseAudio is missing (libasound2-plugins)";
const dir = mkdtempSync(join(tmpdir(), 'hearth-pulse-'));
const run = join(dir, 'run'), socket = join(dir, 'pulse.sock'), wav = join(dir, 'say.wav');
const pulse = { PULSE_SERVER: `unix:${socket}`, XDG_RUNTIME_DIR: run, HOME: dir };
const env = { ...pulse, PULSE_SOURCE: 'vmic.monitor' };
let server;

const inPulse = (program, ...args) => spawn(program, args, { env: { ...process.env, ...pulse }, stdio: 'ignore' });
const ended = (child) => new Promise((done) => (child.exitCode === null ? child.on('exit', done) : done(child.exitCode)));

before(async () => {
    if (skip)
        return;
    mkdirSync(run, { mode: 0o700 });
    writeFileSync(join(dir, 'test.pa'), `load-module module-native-protocol-unix socket=${socket} auth-anonymous=1
load-module module-null-sink sink_name=vmic rate=16000 channels=1 format=s16le
set-default-source vmic.monitor
set-default-sink vmic
`);
    server = inPulse('pulseaudio', '-n', '-F', join(dir, 'test.pa'), '--daemonize=no', '--exit-idle-time=-1', '--use-pid-file=no', '--disable-shm=yes');
    await until(() => existsSync(socket) && spawnSync('pactl', ['info'], { env: { ...process.env, ...pulse } }).status === 0, { what: 'PulseAudio is ready' });
    spawnSync('flite', ['-voice', 'rms', '-t', 'Please open the window and turn on the light.', '-o', wav]);
});
after(async () => {
    if (server) {
        server.kill();
        await ended(server);
    }
    rmSync(dir, { recursive: true, force: true });
});

const listen = (call, body) => call('POST', '/sdk/stt/listen', body);
// Through ALSA's default, which is PulseAudio where its plugin is installed, and by name.
for (const device of ['default', 'pulse'])
    test(`what is played into the microphone of PulseAudio is heard, through ALSA's ${device}`, { skip }, async (t) => {
        const h = await startHearth({ t, env, settings: { 'speech.microphone': device } });
        const events = await changes(t, h);
        const heard = listen((await newKey(h)).call, { timeout: 60000 });
        const opened = await events.next(({ event }) => event === 'microphone');
        assert.equal(opened.json.status, 'open');
        const player = inPulse('paplay', '--device=vmic', wav);
        const { status, body, text } = await heard;
        assert.equal(status, 200, text);
        assert.equal(body.text, 'please open the window and turn on the light');
        assert.equal(await ended(player), 0);
        await until(() => speechWorkers(h).length === 0, { what: 'no worker is left' });
    });

test('silence lasts as long as was asked', { skip }, async (t) => {
    const h = await startHearth({ t, env });
    const began = Date.now();
    const { body } = await listen((await newKey(h)).call, { timeout: 1500 });
    assert.equal(body.text, '');
    assert.ok(body.duration > 0.3 && body.duration <= 1.5, `${body.duration} s`);     // a server of sound that is slow to begin gives less
    assert.ok(Date.now() - began >= 1400, 'a microphone that is paced gives no second in less than one');
});

test('a server of sound that ends fails the request only', { skip }, async (t) => {
    const h = await startHearth({ t, env });
    const { call } = await newKey(h), events = await changes(t, h);
    const heard = listen(call, { timeout: 60000 });
    await events.next(({ event }) => event === 'microphone');
    server.kill('SIGKILL');
    await ended(server);
    const { status, body } = await heard;
    assert.ok(status === 502 || status === 503, `${status} ${JSON.stringify(body)}`);
    refused(await listen(call, {}), 503, 'NO_AUDIO_DEVICE');
    assert.equal((await call('GET', '/sdk/stt/providers')).status, 200);
});
