// A microphone without a sound card: ALSA's plugin `file`, which gives what lies in a file or comes through a FIFO. It is not paced: ten seconds are read
// at once, so time counts in samples.
//
//     const mic = fileMicrophone();                       // one a test file; `after` removes it
//     const h = await startHearth({ t, env: mic.env });
//     mic.plays(samples);                                 // what the next request hears: a Buffer of 16-bit samples at 16 kHz
//     const voice = mic.holds();                          // or: the device stays open; await voice.says(samples), voice.leaves()
import { closeSync, constants, mkdtempSync, openSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { spawnSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';
import { until } from './harness.mjs';

export const rate = 16000;
export const silence = (seconds) => Buffer.alloc(2 * Math.round(rate * seconds));

export function noise(seconds, loudest = 3000) {
    const samples = silence(seconds);
    for (let at = 0, n = 1; at < samples.length; at += 2) {
        n = (Math.imul(n, 1664525) + 1013904223) >>> 0;
        samples.writeInt16LE(n / 2 ** 32 * 2 * loudest - loudest | 0, at);
    }
    return samples;
}

// What the program flite says, not Hearth's own voice.
export function spoken(text) {
    const dir = mkdtempSync(join(tmpdir(), 'spoken '));
    try {
        const file = join(dir, 'a.wav'), made = spawnSync('flite', ['-voice', 'rms', '-t', text, '-o', file], { encoding: 'utf8' });
        if (made.status !== 0)
            throw new Error(`flite: ${made.error ?? made.stderr}`);
        return spawnSync('sox', [file, '-t', 'raw', '-e', 'signed', '-b', '16', '-r', String(rate), '-c', '1', '-'], { maxBuffer: 1 << 26 }).stdout;
    } finally {
        rmSync(dir, { recursive: true, force: true });
    }
}

export function fileMicrophone() {
    const dir = mkdtempSync(join(tmpdir(), 'hearth-mic-')), config = join(dir, 'asound.conf'), still = join(dir, 'sound.raw'), fifo = join(dir, 'sound.fifo');
    const use = (infile) => writeFileSync(config, `</usr/share/alsa/alsa.conf>\npcm.!default { type file slave.pcm "null" file "/dev/null" infile "${infile}" format "raw" }\n`);
    let held = null;
    // A FIFO takes 64 KiB at once; the rest follows as the service reads.
    const says = async (samples) => {
        for (let at = 0; at < samples.length;)
            at += await until(() => {
                try {
                    return writeSync(held, samples, at);
                } catch (e) {
                    if (e.code !== 'EAGAIN')
                        throw e;
                    return 0;
                }
            }, { what: 'the microphone is read' });
    };
    const leave = () => {
        if (held !== null)
            closeSync(held);
        held = null;
    };
    after(() => {
        leave();
        rmSync(dir, { recursive: true, force: true });
    });
    spawnSync('mkfifo', [fifo]);
    use(still);
    return {
        env: { ALSA_CONFIG_PATH: config },
        plays(...samples) {
            writeFileSync(still, Buffer.concat(samples));
            use(still);
        },
        holds() {
            leave();
            held = openSync(fifo, constants.O_RDWR | constants.O_NONBLOCK);
            use(fifo);
            return { says, leaves: leave };
        },
    };
}
