// hearth say: into files, and through an aplay of the test, which keeps what it is to play.
import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { sharedHearth, startHearth } from './harness.mjs';

const shared = sharedHearth();
const text = 'Good day to you. How are you this fine morning?';

function folder(t) {
    const dir = mkdtempSync(join(tmpdir(), 'say '));
    t.after(() => rmSync(dir, { recursive: true, force: true }));
    return dir;
}

// As h.cli(), with a PATH whose only programs are those given: {name: script}.
async function say(h, t, scripts, args, input) {
    const dir = folder(t), bin = join(dir, 'bin');
    mkdirSync(bin);
    for (const [name, script] of Object.entries(scripts)) {
        writeFileSync(join(bin, name), `#!/bin/sh\n${script}\n`);
        chmodSync(join(bin, name), 0o755);
    }
    for (const tool of ['cat', 'sh'])
        symlinkSync(`/bin/${tool}`, join(bin, tool));
    return { dir, ...await h.cli('say', ...args, { input, env: { PATH: bin, OUT: dir } }) };
}
const keeping = { aplay: 'echo "$@" >"$OUT/args"; cat >"$OUT/samples"' };

test('hearth say saves what is spoken, in the format of the name or of --format', async (t) => {
    const h = await shared(t), dir = folder(t);
    for (const [name, begins, more] of [['a.wav', 'RIFF', []], ['a', 'RIFF', []], ['a.mp3', '\xff\xf3', []], ['b', '\xff\xf3', ['--format', 'mp3']], ['c.wav', '\xff\xf3', ['--format', 'mp3', '--voice', 'espeak_local/de+f2', '--speed', '1.5']]]) {
        const { code, stdout, stderr } = await h.cli('say', text, '--out', join(dir, name), ...more);
        assert.equal(code, 0, stderr);
        assert.match(stdout, /^\d+ bytes of audio are in .+\.\n$/);
        assert.equal(readFileSync(join(dir, name)).subarray(0, begins.length).toString('latin1'), begins, name);
    }
});

test('hearth say plays through aplay, at the rate of the voice', async (t) => {
    const h = await shared(t);
    for (const [voice, rate] of [['slt', 16000], ['espeak_local/en-gb', 22050]]) {
        const { code, dir, stderr } = await say(h, t, keeping, ['--voice', voice], text);
        assert.equal(code, 0, stderr);
        assert.equal(readFileSync(join(dir, 'args'), 'utf8'), `-q -t raw -f S16_LE -c 1 -r ${rate}\n`);
        const seconds = readFileSync(join(dir, 'samples')).length / 2 / rate;
        assert.ok(seconds > 2 && seconds < 6, `${seconds} s`);
    }
});

test('hearth say tells what is missing', async (t) => {
    const h = await shared(t);
    const refusals = [[{}, [text], /aplay is missing \(Debian: apt install alsa-utils\).+--out FILE/], [{ aplay: 'echo "no card" >&2; exit 1' }, [`${text} `.repeat(40)], /no card[\s\S]+there may be no sound card/],
        [keeping, [], /nothing to say/], [keeping, [text, '--speed', 'fast'], /--speed must be a number/], [keeping, [text, '--speed', '3'], /speed must be/],
        [keeping, [text, '--voice', 'nobody'], /voice/], [keeping, [text, '--format', 'mp3'], /needs --out FILE/]];
    for (const [scripts, args, reason] of refusals) {
        const { code, stderr } = await say(h, t, scripts, args, '');
        assert.notEqual(code, 0, stderr);
        assert.match(stderr, reason);
    }
    const mute = await startHearth({ t, settings: { 'speech.folder': '/nonexistent' } });
    assert.match((await say(mute, t, keeping, [text], '')).stderr, /apt install libespeak-ng1/);
});
