// `hearth user`, with a service and without one.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startHearth, stoppedHearth } from './harness.mjs';
import { faceKeys } from './realtime.mjs';

async function walk(h) {
    const ok = async (said, input, ...args) => {
        const { code, stdout, stderr } = await h.cli(...args, { input });
        assert.equal(code, 0, stderr);
        assert.match(stdout, said);
        assert.ok(!stdout.includes('a password'));
    };
    const email = 'anna@example.org';
    await ok(/No user has signed up\./, '', 'user', 'list');
    await ok(/^anna@example\.org can sign in now\.\n$/, 'a password\n', 'user', 'add', 'Anna@example.org');
    await ok(/E-MAIL[^]*anna@example\.org/, '', 'user', 'list');
    await ok(/signs in with the new password/, 'a password 2\n', 'user', 'password', email);
    const again = await h.cli('user', 'add', email, { input: 'a password\n' });
    assert.equal(again.code, 1);
    assert.match(again.stderr, /already registered/);
    return async () => ok(/is removed/, '', 'user', 'remove', email);
}

test('users are listed, added, given passwords and removed without a service', async (t) => {
    await (await walk(await stoppedHearth({ t })))();
});

test('the same of a running service, where they sign in', async (t) => {
    const h = await startHearth({ t });
    const remove = await walk(h);
    const signIn = async (password) => (await h.api('POST', '/auth/v1/token?grant_type=password', { email: 'anna@example.org', password },
        { apikey: (await faceKeys(h)).publishable })).status;
    assert.equal(await signIn('a password'), 400);
    assert.equal(await signIn('a password 2'), 200);
    await remove();
    assert.equal(await signIn('a password 2'), 400);
});
