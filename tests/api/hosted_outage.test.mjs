// A service of backend.kind = hosted whose project, the face of another service, is away and comes back, or does not answer claims.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { startTcpProxy } from '../tools/tcp_proxy.mjs';
import { coldHearth, startHearth } from './harness.mjs';
import { listeningApp, rowBecomes, shellAgent } from './kit.mjs';
import { faceKeys, token } from './realtime.mjs';

// A service that is not started yet, whose project is the face behind a proxy: {face, keys, proxy, dataDir}.
async function throughProxy(t, reader) {
    const face = await startHearth({ t }), keys = await faceKeys(face);
    const proxy = await startTcpProxy(t, () => face.port, { reader }), cold = coldHearth({ t });
    const used = await cold.cli('backend', 'use', `http://127.0.0.1:${proxy.port}`, '--key', keys.publishable, '--secret', { input: `${keys.secret}\n` });
    assert.equal(used.code, 0, used.stderr);
    return { face, keys, proxy, dataDir: cold.dataDir };
}

const settings = { 'backend.kind': 'hosted', 'tasks.sweep_s': 0.5, 'tasks.presence_s': 0.2 };

test('a service starts without its project, says so, and goes on by itself when it is there', async (t) => {
    const { keys: { jwt_secret: signer }, proxy, dataDir } = await throughProxy(t);
    await proxy.close();
    const h = await startHearth({ t, dataDir, settings });
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

test('claims that get no answer are told in the log, blame nobody, and the row is done later', async (t) => {
    let isBad = true;
    const cutClaims = (cut) => ({
        toServer(bytes) {
            if (isBad && /svc_fn_claim_task|"status":"claimed"/.test(bytes.toString('latin1')))
                cut();
            return bytes;
        },
    });
    const { dataDir } = await throughProxy(t, cutClaims), h = await startHearth({ t, dataDir, settings });
    const { id: app } = await listeningApp(h, await shellAgent(h, 'printf \'{"done":true}\''));
    const made = await h.socket('POST', '/activities', { raw_data: {}, app });
    assert.equal(made.status, 201, made.text);
    await h.logged(/no task can be started now, tasks wait: "The hosted service: /);
    isBad = false;
    const row = await rowBecomes((...request) => h.socket(...request), made.body.data.id, 'completed');
    assert.deepEqual([row.result, row.attempted_by], [{ done: true }, []]);
});
