// Custom Mode over the hosted backend: claims, rows and events of tests/unit/backend/test_custom_{claim,rows}.c against our own face over the embedded
// backend, with its realtime.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { startHearth } from '../api/harness.mjs';
import { faceKeys } from '../api/realtime.mjs';

const folder = join(dirname(process.env.HEARTH_BIN ?? 'build/debug/hearth'), 'tests/unit');

async function passes(t, program) {
    const h = await startHearth({ t }), { secret } = await faceKeys(h);
    const env = { ...process.env, HEARTH_TEST_PROVIDER: 'hosted', HEARTH_TEST_HOSTED_URL: h.url, HEARTH_TEST_HOSTED_KEY: secret,
        HEARTH_TEST_HOSTED_FILE: join(h.dataDir, 'backend.db'), HEARTH_TEST_HOSTED_REALTIME: '1' };
    const child = spawn(join(folder, program), { env });
    let said = '';
    for (const stream of [child.stdout, child.stderr])
        stream.on('data', (bytes) => { said += bytes; });
    const code = await new Promise((done) => child.once('close', done));
    assert.equal(code, 0, said);
    return said;
}

test('claims, leases and ends of an app\'s own table hold over the hosted backend', async (t) => {
    assert.match(await passes(t, 'test_custom_claim'), /OK \] hosted: each_row_is_won_by_one_machine/);
});

test('an app\'s own rows are recovered, listed, counted and told by realtime over the hosted backend', async (t) => {
    assert.match(await passes(t, 'test_custom_rows'), /OK \] hosted: changes_are_work_when_the_row_waits/);
});
