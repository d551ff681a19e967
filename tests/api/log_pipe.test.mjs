// Standard error is a pipe that nobody reads.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { test } from 'node:test';
import { Arrivals, binary, coldHearth, request, until } from './harness.mjs';

// More log lines than the pipe (64 KiB) and the queue (1 MiB) hold.
const requests = 14_000;

function serveUnread(h) {
    const child = spawn(binary, ['serve', '--data', h.dataDir, '--listen', '127.0.0.1:0'], { env: h.env, cwd: h.home, stdio: ['ignore', 'pipe', 'pipe'] });
    const lines = new Arrivals();
    child.stdout.setEncoding('utf8').on('data', (text) => text.trim().split('\n').forEach((line) => lines.push(line)));
    child.stderr.pause();
    return { child, lines, exited: new Promise((done) => child.on('exit', (code, signal) => done({ code, signal }))) };
}

test('a log that nobody reads stops neither requests nor SIGTERM; lines that were dropped are counted', async (t) => {
    const h = coldHearth({ t });
    const { child, lines, exited } = serveUnread(h);
    t.after(() => child.kill('SIGKILL'));
    const url = (await lines.wait((line) => line.includes('listening on'))).split(' ').at(-1);
    for (let n = 0; n < requests; n += 200)
        await Promise.all(Array.from({ length: 200 }, async () => assert.equal((await request(url, 'GET', '/nowhere', undefined, {})).status, 404)));
    const dropped = async () => Number((await request(url, 'GET', '/metrics', undefined, {})).text.match(/^hearth_log_dropped_lines_total (\d+)$/m)?.[1]);
    await until(async () => await dropped() > 0);
    child.kill('SIGTERM');
    assert.deepEqual(await exited, { code: 0, signal: null });
});
