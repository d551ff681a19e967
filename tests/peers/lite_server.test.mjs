// The helper that starts the hosted service's own small server.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';

const helper = join(import.meta.dirname, 'lite_server.mjs');

test('a server that cannot be started leaves nothing open, and the process ends with its words', { timeout: 60_000 }, async (t) => {
    const script = `import { startLite } from ${JSON.stringify(helper)}; await startLite({ after() {} }, { folder: '/nowhere' }, { program: '/nowhere/lite.js' }).catch((error) => console.error(error.message));`;
    const child = spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: ['ignore', 'ignore', 'pipe'] });
    let said = '';
    child.stderr.on('data', (bytes) => { said += bytes; });
    t.after(() => child.kill('SIGKILL'));
    const [code, signal] = await new Promise((done) => child.once('close', (...how) => done(how)));
    assert.deepEqual([code, signal], [0, null]);
    assert.match(said, /lite ended: [^]*Cannot find module '\/nowhere\/lite\.js'/);
});
