// What the tests of speech share: recordings, programs that judge audio, and how much of what was said is heard.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export const wordsOf = (text) => text.toLowerCase().replace(/[^a-z' ]/g, '').split(' ').filter(Boolean);

// The fewest words to insert, leave out and replace, as a share of those that were said.
export function wordErrorRate(said, heard) {
    let row = heard.map((_, i) => i + 1);
    row.unshift(0);
    said.forEach((word, i) => {
        const next = [i + 1];
        heard.forEach((other, j) => next.push(Math.min(next[j] + 1, row[j + 1] + 1, row[j] + (word === other ? 0 : 1))));
        row = next;
    });
    return row.at(-1) / said.length;
}

// What flite says, as a WAV; call: of a key.
export async function spoken(call, text, more = {}) {
    const reply = await call('POST', '/sdk/tts', { text, voice: 'rms', ...more });
    assert.equal(reply.status, 200, reply.text);
    return reply.bytes;
}

// Runs a program on the bytes in a file of this name; what it printed. `args` is made from the paths of the file and of one to write.
export function judge(bytes, name, program, args, made) {
    const dir = mkdtempSync(join(tmpdir(), 'sound '));
    try {
        const path = join(dir, name), out = join(dir, made ?? 'unused');
        writeFileSync(path, bytes);
        const { status, stdout, stderr } = spawnSync(program, args(path, out), { encoding: 'utf8' });
        assert.equal(status, 0, `${program}: ${stderr}`);
        return { stdout, stderr, bytes: made && readFileSync(out) };
    } finally {
        rmSync(dir, { recursive: true, force: true });
    }
}

// What sox, or ffmpeg, makes of a WAV.
export const changed = (wav, name, options, effects = []) => judge(wav, 'in.wav', 'sox', (from, to) => [from, ...options, to, ...effects], name).bytes;
export const encoded = (wav, name, ...options) => judge(wav, 'in.wav', 'ffmpeg', (from, to) => ['-v', 'error', '-i', from, ...options, to], name).bytes;

// A form with these parts: [name, data, file name].
export const formType = { 'content-type': 'multipart/form-data; boundary=edge' };
export const formOf = (...parts) => Buffer.concat([...parts.flatMap(([name, data, file = '']) =>
    [Buffer.from(`--edge\r\ncontent-disposition: form-data; name="${name}"${file && `; filename="${file}"`}\r\n\r\n`), Buffer.from(data), Buffer.from('\r\n')]), Buffer.from('--edge--\r\n')]);
