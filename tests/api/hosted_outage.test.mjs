// A service of backend.kind = hosted whose project, the face of another service, is away and comes back.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { startTcpProxy } from '../tools/tcp_proxy.mjs';
import { coldHearth, startHearth } from './harness.mjs';
import { listeningApp, rowBecomes, shellAgent } from './kit.mjs';
import { faceKeys, token } from './realtime.mjs';

test('a service starts without its project, says so, and goes on by itself when it is there', async (t) => {
    const face = await startHearth({ t }), { publishable, secret, jwt_secret: signer } = await faceKeys(face);
    const proxy = await startTcpProxy(t, () => face.port), cold = coldHearth({ t });
    const used = await cold.cli('backend', 'use', `http://127.0.0.1:${proxy.port}`, '--key', publishable, '--secret', { input: `${secret}\n` });
    assert.equal(used.code, 0, used.stderr);
    await proxy.close();
    const h = await startHearth({ t, dataDir: cold.dataDir, settings: { 'backend.kind': 'hosted', 'tasks.sweep_s': 0.5, 'tasks.presence_s': 0.2 } });
    await h.logged(/the project of backend\.project cannot be reached now/);
    assert.equal((await h.socket('GET', '/healthz')).status, 200);
    const { call } = await listeningApp(h, await shellAgent(h, 'printf \'{"done":true}\''), { require_user_auth: true });
    await call('POST', '/sdk/auth/sync-supabase-token', { token: token(signer, randomUUID()) });
    const refused = await call('POST', '/activities', { raw_data: {} });
    assert.equal(refused.status, 503, refused.text);
    assert.equal(refused.body.code, 'STORE_UNAVAILABLE');

    await proxy.open();
    const made = await call('POST', '/activities', { raw_data: {} });
    assert.equal(made.status, 201, made.text);
    assert.deepEqual((await rowBecomes(call, made.body.data.id, 'completed')).result, { done: true });
});
