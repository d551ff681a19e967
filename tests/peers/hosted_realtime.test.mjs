// The realtime client of the hosted backend and the official client of the hosted service, both on our own face, in both versions of the protocol.
// No realtime server of another project exists here: the server is ours, checked by the official client (realtime.test.mjs); the client is checked crosswise.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import tls from 'node:tls';
import { createClient } from '@supabase/supabase-js';
import { Arrivals, startHearth, until } from '../api/harness.mjs';
import { faceKeys, insertAs, token } from '../api/realtime.mjs';
import { hostedClient } from '../tools/hosted_client.mjs';
import { freePort } from '../tools/ports.mjs';

const versions = ['1.0.0', '2.0.0'];

function official(t, h, key, vsn) {
    const made = createClient(h.url, key, { realtime: { vsn }, auth: { persistSession: false, autoRefreshToken: false } });
    t.after(() => made.realtime.disconnect());
    return made;
}

function joined(channel) {
    return new Promise((done, failed) => channel.subscribe((state, error) => (state === 'SUBSCRIBED' ? done(channel) : failed(error ?? new Error(state)))));
}

for (const vsn of versions) {
    const other = versions.find((v) => v !== vsn);

    test(`a table is followed: first a gap, then changes with their records (vsn ${vsn})`, async (t) => {
        const h = await startHearth({ t });
        const { secret } = await faceKeys(h);
        const call = await h.asKey();
        const c = hostedClient(t, h.url, secret, vsn);
        await c.run('watch svc_activities');
        await c.run('watch svc_activities status=eq.completed');
        await c.run('settle');
        assert.equal(c.reports.items.filter((r) => r.is === 'gap').length, 2);
        const row = (await call('POST', '/activities', { raw_data: { n: 1, deep: ['ü', null] } })).body.data;
        const inserted = await c.reports.wait((r) => r.is === 'change' && r.op === 'INSERT');
        assert.equal(inserted.table, 'svc_activities');
        assert.deepEqual(inserted.record.raw_data, { n: 1, deep: ['ü', null] });
        assert.equal(inserted.old, null);
        assert.ok(Math.abs(inserted.ms - Date.now()) < 60_000);
        await call('PATCH', `/activities/${row.id}`, { status: 'completed', result: { ok: true } });
        await until(() => c.reports.items.filter((r) => r.is === 'change' && r.op === 'UPDATE').length === 2, { what: 'the update comes to both subscriptions' });
        await call('DELETE', `/activities/${row.id}`);
        assert.equal((await c.reports.wait((r) => r.is === 'change' && r.op === 'DELETE')).old.id, row.id);
        const { state, connects, tables } = await c.run('monitor');
        assert.deepEqual([state, connects], ['live', 1]);
        assert.deepEqual(tables.map((x) => [x.table, x.state, x.gaps, x.error]), [['svc_activities', 'live', 1, null], ['svc_activities', 'live', 1, null]]);
        assert.equal(tables[0].events, 3);
        assert.ok(tables[0].lag >= 0);
    });

    test(`broadcasts pass between both clients and both versions, joined or not (vsn ${vsn})`, async (t) => {
        const h = await startHearth({ t });
        const { publishable } = await faceKeys(h);
        const heard = new Arrivals();
        const channel = official(t, h, publishable, other).channel('task-retry-triage');
        channel.on('broadcast', { event: '*' }, (m) => heard.push(m));
        await joined(channel);
        const c = hostedClient(t, h.url, publishable, vsn);
        await c.run('listen task-retry-triage');
        await c.run('settle');
        await channel.send({ type: 'broadcast', event: 'task-available', payload: { task_id: '7', retry_count: 1 } });
        const got = await c.reports.wait((r) => r.is === 'broadcast');
        assert.deepEqual([got.topic, got.event, got.payload], ['task-retry-triage', 'task-available', { task_id: '7', retry_count: 1 }]);
        await c.run('say task-retry-triage task-available {"task_id":"8","words":"Grüße"}');
        assert.deepEqual((await heard.wait((m) => m.payload.task_id === '8')).payload, { task_id: '8', words: 'Grüße' });
        await c.reports.wait((r) => r.is === 'broadcast' && r.payload.task_id === '8', { what: 'the own broadcast' });
        const outsider = hostedClient(t, h.url, publishable, vsn);
        await outsider.run('say task-retry-triage task-available {"task_id":"9"}');
        await heard.wait((m) => m.payload.task_id === '9');
        await c.reports.wait((r) => r.is === 'broadcast' && r.payload.task_id === '9');
        await c.run('unlisten task-retry-triage');
        await channel.send({ type: 'broadcast', event: 'late', payload: {} });
        await c.run('monitor');
        assert.ok(!c.reports.items.some((r) => r.event === 'late'));
    });

    test(`presence of both clients: record of the contract, list, leave (vsn ${vsn})`, async (t) => {
        const h = await startHearth({ t });
        const { publishable } = await faceKeys(h);
        const channel = official(t, h, publishable, other).channel('svc_presence', { config: { presence: { key: 'mac-b' } } });
        channel.on('presence', { event: 'sync' }, () => {});
        await joined(channel);
        assert.equal(await channel.track({ machine_id: 'mac-b', hostname: 'beta' }), 'ok');
        const c = hostedClient(t, h.url, publishable, vsn);
        await c.run('track lin-a alpha');
        await c.run('settle');
        await until(() => channel.presenceState()['lin-a']?.[0]?.hostname === 'alpha', { what: 'the official client sees the machine' });
        const seen = async () => (await c.run('list')).machines.map((m) => m.machine_id).sort().join();
        await until(async () => await seen() === 'lin-a,mac-b', { what: 'our client sees both' });
        await c.run('track lin-a gamma');
        await until(() => channel.presenceState()['lin-a']?.length === 1 && channel.presenceState()['lin-a'][0].hostname === 'gamma', { what: 'the changed record' });
        assert.equal(await channel.untrack(), 'ok');
        await until(async () => await seen() === 'lin-a', { what: 'the leave' });
        await c.run('untrack');
        await until(() => !channel.presenceState()['lin-a'], { what: 'the leave of our client' });
    });

    test(`a user's token: private channels, own rows, another token, signing out (vsn ${vsn})`, async (t) => {
        const h = await startHearth({ t });
        const { publishable, jwt_secret: secret } = await faceKeys(h);
        const anna = randomUUID();
        const c = hostedClient(t, h.url, publishable, vsn);
        await c.run('watch svc_activities');
        await c.run(`private user:${anna}`);
        await c.run('settle');
        const refused = await c.run('monitor');
        assert.match(refused.tables[0].error, /401: Unauthorized/);
        assert.match(refused.error, /Unauthorized/);
        await c.run(`token ${token(secret, anna)}`);
        await until(async () => (await c.run('monitor')).tables[0].state === 'live', { what: 'the table is live for the user' });
        const id = insertAs(h, anna, { of: 'anna' });
        insertAs(h, randomUUID(), { of: 'ben' });
        assert.equal((await c.reports.wait((r) => r.is === 'change')).record.id, id);
        const last = insertAs(h, anna);
        await c.reports.wait((r) => r.is === 'change' && r.record.id === last);
        assert.equal(c.reports.items.filter((r) => r.is === 'change').length, 2, 'the own rows only');
        await c.run('signout');
        await until(async () => /401: Unauthorized/.test((await c.run('monitor')).tables[0].error), { what: 'the refusal of the anonymous' });
    });
}

test('a client finds its way back after the service was restarted, and reports a gap', async (t) => {
    const h = await startHearth({ t, listen: `127.0.0.1:${await freePort()}` });
    const { secret } = await faceKeys(h);
    const c = hostedClient(t, h.url, secret, '2.0.0');
    await c.run('watch svc_activities');
    await c.run('track lin-a alpha');
    await c.run('settle');
    await h.kill();
    await until(async () => (await c.run('monitor')).state === 'connecting', { what: 'the loss is noticed' });
    assert.equal((await c.run('list')).code, 'STORE_UNAVAILABLE');
    const from = c.reports.items.length;
    await h.start();
    await c.reports.wait((r) => r.is === 'gap', { from, what: 'a gap after the return' });
    await until(async () => (await c.run('list')).machines.some((m) => m.machine_id === 'lin-a'), { what: 'the presence is tracked again' });
    const id = insertAs(h, null);
    await c.reports.wait((r) => r.is === 'change' && r.record.id === id);
});

test('a table that is not published is told with what mends it', async (t) => {
    const h = await startHearth({ t });
    const { secret } = await faceKeys(h);
    const c = hostedClient(t, h.url, secret, '2.0.0');
    await c.run('watch nowhere');
    await c.run('watch svc_activities');
    await c.run('settle');
    const { tables } = await c.run('monitor');
    assert.match(tables[0].error, /Please check Realtime is enabled.*hearth backend setup/);
    assert.equal(tables[1].state, 'live', 'one refusal concerns one table');
});

test('over TLS: the certificate is checked, and what comes in one record is read', async (t) => {
    const h = await startHearth({ t });
    const { secret } = await faceKeys(h);
    const folder = mkdtempSync(join(tmpdir(), 'hearth tls '));
    t.after(() => rmSync(folder, { recursive: true, force: true }));
    const [key, cert] = [join(folder, 'key'), join(folder, 'cert')];
    execFileSync('openssl', ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-keyout', key, '-out', cert, '-days', '2', '-subj', '/CN=localhost',
        '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1'], { stdio: 'ignore' });
    const sockets = new Set();
    const server = tls.createServer({ key: readFileSync(key), cert: readFileSync(cert) }, (client) => {
        const inner = net.connect(h.port, '127.0.0.1');
        for (const socket of [client, inner]) {
            sockets.add(socket);
            socket.on('error', () => {}).on('close', () => { client.destroy(); inner.destroy(); });
        }
        client.pipe(inner).pipe(client);
    });
    server.on('tlsClientError', () => {});
    await new Promise((done) => server.listen(0, '127.0.0.1', done));
    t.after(() => { sockets.forEach((s) => s.destroy()); server.close(); });
    const url = `https://localhost:${server.address().port}`;

    const distrustful = hostedClient(t, url, secret, '2.0.0', { env: { SSL_CERT_FILE: undefined } });
    await distrustful.run('watch svc_activities');
    await distrustful.run('settle');
    assert.match((await distrustful.run('monitor')).error, /its certificate is not trusted here/);

    const c = hostedClient(t, url, secret, '2.0.0', { env: { SSL_CERT_FILE: cert } });
    await c.run('watch svc_activities');
    await c.run('settle');
    const ids = Array.from({ length: 50 }, (_, i) => insertAs(h, null, { i, long: 'x'.repeat(40_000) }));
    await c.reports.wait((r) => r.is === 'change' && r.record.id === ids[49]);
    assert.deepEqual(c.reports.items.filter((r) => r.is === 'change').map((r) => r.record.id), ids);
});
