// Custom Mode over the hosted backend: the claims of tests/unit/backend/test_custom_claim.c against our own face over the embedded backend.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { startHearth } from '../api/harness.mjs';
import { faceKeys } from '../api/realtime.mjs';

const program = join(dirname(process.env.HEARTH_BIN ?? 'build/debug/hearth'), 'tests/unit/test_custom_claim');

test('claims, leases and ends of an app\'s own table hold over the hosted backend', async (t) => {
    const h = await startHearth({ t }), { secret } = await faceKeys(h);
    const env = { ...process.env, HEARTH_TEST_PROVIDER: 'hosted', HEARTH_TEST_HOSTED_URL: h.url, HEARTH_TEST_HOSTED_KEY: secret,
        HEARTH_TEST_HOSTED_FILE: join(h.dataDir, 'backend.db') };
    const child = spawn(program, { env });
    let said = '';
    for (const stream of [child.stdout, child.stderr])
        stream.on('data', (bytes) => { said += bytes; });
    const code = await new Promise((done) => child.once('close', done));
    assert.equal(code, 0, said);
    assert.match(said, /hosted: each_row_is_won_by_one_machine/);
});
