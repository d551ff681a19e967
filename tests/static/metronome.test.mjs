// Pauses of the machine that excuse a report of a stall.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { pausedMs, processors } from '../tools/metronome.mjs';

test('processors are read from the kernel\'s list', () => {
    assert.deepEqual(processors('0-2,5'), [0, 1, 2, 5]);
});

test('of the pauses the longest stretch within the report counts', () => {
    const text = '1000 1060\n1100 1130\n';
    assert.equal(pausedMs(text, 990, 1070), 60);
    assert.equal(pausedMs(text, 1010, 1120), 50);
    assert.equal(pausedMs(text, 1061, 1099), 0);
    assert.equal(pausedMs('', 0, 1), 0);
});

test('a player that is stopped and goes on notes a pause', async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'hearth-metronome-')), file = join(folder, 'pauses.log');
    const player = spawn(process.execPath, ['tests/tools/metronome.mjs', '--beat', file], { stdio: ['pipe', 'ignore', 'inherit'] });
    t.after(() => rmSync(folder, { recursive: true, force: true }));
    const deadline = Date.now() + 60_000;
    while (!existsSync(file) && Date.now() < deadline) {
        player.kill('SIGSTOP');
        await sleep(100);
        player.kill('SIGCONT');
        await sleep(20);
    }
    player.stdin.end();
    await new Promise((done) => player.on('exit', done));
    const [from, until] = readFileSync(file, 'utf8').split('\n')[0].split(' ').map(Number);
    assert.ok(until - from > 25, `${from} ${until}`);
});
