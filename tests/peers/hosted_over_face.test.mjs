// A service with backend.kind=hosted over the face of another service, on one machine as two: work, its end, the retry broadcast, presence and a machine that dies.
// An independent program writes and listens: the official client of the hosted service.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createClient } from '@supabase/supabase-js';
import { Arrivals, coldHearth, startHearth, until } from '../api/harness.mjs';
import { admin, newApp } from '../api/kit.mjs';
import { faceKeys } from '../api/realtime.mjs';

const brisk = { 'tasks.heartbeat_s': 0.2, 'tasks.stale_after_s': 300, 'tasks.sweep_s': 0.3, 'tasks.presence_s': 2, 'backend.poll_ms': 20 };
const appId = '99999999-0000-4000-8000-000000000002';

// The service whose face the others use: {h, keys, official}. It has no app, so it does no work.
async function faceService(t) {
    const h = await startHearth({ t, settings: { ...brisk, 'identity.machine_id': 'face' } }), keys = await faceKeys(h);
    const official = createClient(h.url, keys.secret, { auth: { persistSession: false, autoRefreshToken: false } });
    t.after(() => official.realtime.disconnect());
    return { h, keys, official };
}

// A service on "another machine", whose project is that face.
async function hostedService(t, { h: face, keys }, machine, script, settings = {}) {
    const h = coldHearth({ t, settings: { ...brisk, 'identity.machine_id': machine, ...settings } });
    const used = await h.cli('backend', 'use', face.url, '--key', keys.publishable, '--secret', { input: keys.secret });
    assert.equal(used.code, 0, used.stderr);
    assert.equal((await h.cli('settings', 'set', 'backend.kind', 'hosted')).code, 0);
    await h.start();
    await admin(h, 'POST', '/api/agents', { name: 'worker', command: '/bin/sh', args: ['-c', script, 'worker'] });
    await newApp(h, { app_id: appId, name: 'shared', config: {
        agentHandlers: [{ tableName: 'svc_activities', agentId: 'worker', eventTypes: ['INSERT', 'UPDATE', 'DELETE'] }], backend: { enabled: true } } }, ['activities.read']);
    return h;
}

async function insertRow(official, rawData) {
    const { data, error } = await official.from('svc_activities').insert({ raw_data: rawData }).select().single();
    assert.equal(error, null);
    return data.id;
}

function becomes(official, id, status) {
    return until(async () => {
        const { data } = await official.from('svc_activities').select().eq('id', id).single();
        return data?.status === status && data;
    }, { what: `row ${id} is ${status}` });
}

const machinesOf = async (h) => (await admin(h, 'GET', '/api/backend/monitor')).machines.map((m) => m.machine_id).sort();

function machinesAre(h, ...names) {
    return until(async () => JSON.stringify(await machinesOf(h)) === JSON.stringify(names), { what: `the monitor shows ${names}` });
}

test('a row is claimed, worked on and completed by a machine that is only a client of the face', async (t) => {
    const face = await faceService(t);
    await hostedService(t, face, 'guest', `printf '{"by":"%s"}' "$MACHINE_ID"`);
    const id = await insertRow(face.official, { n: 1 });
    const row = await becomes(face.official, id, 'completed');
    assert.deepEqual(row.result, { by: 'guest' });
    assert.deepEqual([row.locked_by, row.error_message, row.retry_count], [null, null, 0]);
    const { data: now, error } = await face.official.rpc('svc_fn_now');
    assert.equal(error, null);
    assert.ok(Math.abs(Date.parse(now) - Date.now()) < 60_000, now);
});

test('what one machine fails is broadcast and done by another', async (t) => {
    const face = await faceService(t), heard = new Arrivals();
    const channel = face.official.channel('task-retry-shared').on('broadcast', { event: 'task-available' }, ({ payload }) => heard.push(payload));
    await new Promise((done, failed) => channel.subscribe((state, error) => (state === 'SUBSCRIBED' ? done() : failed(error ?? new Error(state)))));
    await hostedService(t, face, 'guest-1', 'echo no >&2; exit 1');
    const id = await insertRow(face.official, {});
    const failed = await becomes(face.official, id, 'failed');
    assert.deepEqual([failed.attempted_by, failed.retry_count], [['guest-1'], 1]);
    await heard.wait((p) => p.task_id === id && p.failed_by === 'guest-1');
    await hostedService(t, face, 'guest-2', `printf '{"by":"%s"}' "$MACHINE_ID"`);
    assert.deepEqual((await becomes(face.official, id, 'completed')).result, { by: 'guest-2' });
});

test('the work of a deleted row is done by a client of the face, with the row as it was', async (t) => {
    const face = await faceService(t), watched = new Arrivals();
    const channel = face.official.channel('gone').on('postgres_changes', { event: 'INSERT', schema: 'public', table: 'svc_deletions' }, (e) => watched.push(e));
    await new Promise((done, failed) => channel.subscribe((state, error) => (state === 'SUBSCRIBED' ? done() : failed(error ?? new Error(state)))));
    await hostedService(t, face, 'guest', `printf '{"by":"%s"}' "$MACHINE_ID"`);
    const id = await insertRow(face.official, { n: 7 });
    await becomes(face.official, id, 'completed');
    assert.equal((await face.official.from('svc_activities').delete().eq('id', id)).error, null);
    const work = await watched.wait((e) => e.new.old_data.id === id);
    assert.deepEqual([work.new.source_table, work.new.old_data.raw_data], ['svc_activities', { n: 7 }]);
    const row = await until(async () => {
        const { data, error } = await face.official.from('svc_deletions').select().eq('id', work.new.id).single();
        assert.equal(error, null);
        return data.status === 'completed' && data;
    }, { what: 'the work of the deletion is done' });
    assert.deepEqual(row.result, { by: 'guest' });
});

test('machines of both sides see each other, and official clients see and join them', async (t) => {
    const face = await faceService(t);
    const guest = await hostedService(t, face, 'guest', 'echo done');
    await machinesAre(face.h, 'face', 'guest');
    await machinesAre(guest, 'face', 'guest');

    const official = face.official.channel('svc_presence', { config: { presence: { key: 'phone', enabled: true } } });
    official.on('presence', { event: 'sync' }, () => {});
    await new Promise((done, failed) => official.subscribe((state, error) => (state === 'SUBSCRIBED' ? done() : failed(error ?? new Error(state)))));
    await until(() => Object.keys(official.presenceState()).sort().join() === 'face,guest', { what: 'the official client sees both' });
    const [shown] = official.presenceState().face;
    assert.equal(shown.machine_id, 'face');
    assert.match(shown.online_at, /^\d{4}-/);
    assert.equal(await official.track({ machine_id: 'phone', user_email: 'anna@example.org', hostname: 'pocket', app_name: 'shared', online_at: new Date().toISOString() }), 'ok');
    await machinesAre(face.h, 'face', 'guest', 'phone');
    await machinesAre(guest, 'face', 'guest', 'phone');
    const { stdout } = await face.h.cli('backend', 'monitor');
    for (const name of ['face', 'guest', 'phone'])
        assert.match(stdout, new RegExp(`\\b${name}\\b`));
    await official.untrack();
    await machinesAre(face.h, 'face', 'guest');
    await guest.terminate();
    await machinesAre(face.h, 'face');
    await until(() => Object.keys(official.presenceState()).join() === 'face', { what: 'the official client sees the guest go' });
});

test('an anonymous client sees no machine, and what it tracks is none', async (t) => {
    const face = await faceService(t), anon = createClient(face.h.url, face.keys.publishable, { auth: { persistSession: false, autoRefreshToken: false } });
    t.after(() => anon.realtime.disconnect());
    const channels = [anon, face.official].map((client, i) => client.channel('svc_presence', { config: { presence: { key: `client-${i}`, enabled: true } } }));
    for (const channel of channels)
        await new Promise((done, failed) => channel.on('presence', { event: 'sync' }, () => {}).subscribe((state, error) => (state === 'SUBSCRIBED' ? done() : failed(error ?? new Error(state)))));
    assert.equal(await channels[0].track({ machine_id: 'intruder' }), 'ok');
    await until(() => Object.keys(channels[1].presenceState()).sort().join() === 'client-0,face', { what: 'the service role sees the machine and the client' });
    assert.deepEqual(Object.keys(channels[0].presenceState()), ['client-0']);
    assert.equal(await channels[1].track({ machine_id: 'face', instance: 'another' }), 'ok'); // a machine id that a service has
    assert.equal(await channels[1].track({ machine_id: 'tablet' }), 'ok');
    await machinesAre(face.h, 'face', 'tablet');
});

test('a machine dies at work: another one recovers its row', async (t) => {
    const face = await faceService(t), first = await hostedService(t, face, 'guest-1', 'exec sleep 60', { 'tasks.stale_after_s': 4 });
    const id = await insertRow(face.official, {});
    await becomes(face.official, id, 'claimed');
    await first.kill();
    await hostedService(t, face, 'guest-2', `printf '{"by":"%s"}' "$MACHINE_ID"`, { 'tasks.stale_after_s': 4 });
    assert.deepEqual((await becomes(face.official, id, 'completed')).result, { by: 'guest-2' });
});
