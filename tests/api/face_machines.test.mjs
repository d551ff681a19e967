// The retry broadcast between apps of the hosted service and the services of every machine (specification, "Retry broadcast").
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { startHearth, stoppedHearth, until } from './harness.mjs';
import { admin, backendFile, insert, newApp, rowBecomes, sqlite } from './kit.mjs';
import { postgresPrograms, startPostgres } from './postgres_server.mjs';
import { faceKeys, openSocket } from './realtime.mjs';

const topic = 'realtime:task-retry-shared';
const rare = { 'tasks.sweep_s': 3600, 'backend.poll_ms': 20 };

async function member(t, h, config = {}) {
    const socket = await openSocket(h, { key: (await faceKeys(h)).publishable });
    t.after(() => socket.end());
    const { status } = await socket.join(topic, config);
    assert.equal(status, 'ok');
    socket.say = (event, payload) => socket.send(topic, 'broadcast', { type: 'broadcast', event, payload }, '1');
    // Binary broadcasts of the service, as {event, payload}.
    socket.heard = async (event) => {
        const of = ({ opcode, payload }) => opcode === 2 && payload.subarray(5 + payload[1], 5 + payload[1] + payload[2]).toString() === event;
        const { payload } = await socket.frames.wait(of, { what: `the broadcast ${event}` });
        return JSON.parse(payload.subarray(5 + payload[1] + payload[2] + payload[3]));
    };
    socket.told = () => socket.events().filter((event) => event !== 'ready');
    socket.events = () => socket.frames.items.filter((f) => f.opcode === 2).map(({ payload }) => payload.subarray(5 + payload[1], 5 + payload[1] + payload[2]).toString());
    return socket;
}

async function joinIn(h, script) {
    await admin(h, 'POST', '/api/agents', { name: 'worker', command: '/bin/sh', args: ['-c', script, 'worker'] });
    const id = await newApp(h, { name: 'shared', config: {
        agentHandlers: [{ tableName: 'svc_activities', agentId: 'worker', eventTypes: ['INSERT'] }], backend: { enabled: true } } }, ['activities.read', 'activities.write']);
    return h.asApp(id);
}

test('apps hear what the service broadcasts', async (t) => {
    const h = await startHearth({ t, settings: { ...rare, 'identity.machine_id': 'm1' } });
    const call = await joinIn(h, 'exit 1'), one = await member(t, h);
    const { id } = await insert(call, {});
    await rowBecomes(call, id, 'failed');
    assert.deepEqual(await one.heard('task-available'), { task_id: id, table_name: 'svc_activities', failed_by: 'm1', retry_count: 1 });
});

test('the service obeys what an app broadcasts', async (t) => {
    const h = await startHearth({ t, settings: { ...rare, 'identity.machine_id': 'm1' } });
    const call = await joinIn(h, 'echo done'), one = await member(t, h);
    const { app_id: app } = (await admin(h, 'GET', '/api/apps')).apps.find(({ name }) => name === 'shared');
    const ids = [randomUUID(), randomUUID()];
    for (const id of ids)
        await sqlite(backendFile(h), `INSERT INTO svc_activities (id, app_id, raw_data, status, attempted_by, retry_count) VALUES ('${id}', '${app}', '{}', 'failed', '["m2"]', 1)`);
    one.say('task-available', { task_id: ids[0], table_name: 'svc_activities', failed_by: 'm2' });
    await rowBecomes(call, ids[0], 'completed');
    const { status } = await h.api('POST', '/realtime/v1/api/broadcast', { messages: [{ topic: 'task-retry-shared', event: 'task-available', payload: { task_id: ids[1], table_name: 'svc_activities' } }] },
        { apikey: (await faceKeys(h)).publishable });
    assert.equal(status, 202);
    await rowBecomes(call, ids[1], 'completed');
});

test('a broadcast reaches the apps of every machine once, and its sender only on wish', { skip: !postgresPrograms && 'there is no PostgreSQL' }, async (t) => {
    const pg = await startPostgres(t), settings = { ...rare, 'backend.kind': 'postgres', 'backend.url': pg.url() };
    const cold = await stoppedHearth({ t });
    assert.equal((await cold.cli('settings', 'set', 'backend.kind', 'postgres')).code, 0);
    assert.equal((await cold.cli('settings', 'set', 'backend.url', pg.url())).code, 0);
    const { code, stderr } = await cold.cli('backend', 'setup');
    assert.equal(code, 0, stderr);
    const a = await startHearth({ t, settings: { ...settings, 'identity.machine_id': 'm1' } });
    const b = await startHearth({ t, settings: { ...settings, 'identity.machine_id': 'm2' } });
    const sender = await member(t, a), own = await member(t, a, { broadcast: { self: true } }), beside = await member(t, a), far = await member(t, b);
    await until(() => {         // the channels may be heard a moment after they are joined
        sender.say('ready', {});
        far.say('ready', {});
        return far.events().includes('ready') && sender.events().includes('ready');
    }, { what: 'both machines' });
    for (const n of [1, 2, 3])
        sender.say(`note-${n}`, { n, text: 'Grüße' });
    assert.deepEqual(await far.heard('note-3'), { n: 3, text: 'Grüße' });
    own.say('own', {});
    for (const one of [sender, own, beside, far])
        await one.heard('own');
    far.say('back', { from: 'b' });
    for (const one of [sender, own, beside])
        assert.deepEqual(await one.heard('back'), { from: 'b' });
    own.say('last', {});        // after every echo of the above
    await far.heard('last');
    far.say('end', {});
    for (const one of [sender, own, beside])
        await one.heard('end');
    assert.deepEqual(far.told(), ['note-1', 'note-2', 'note-3', 'own', 'last']);
    assert.deepEqual(beside.told(), ['note-1', 'note-2', 'note-3', 'own', 'back', 'last', 'end']);
    assert.deepEqual(sender.told(), ['own', 'back', 'last', 'end']);
    assert.deepEqual(own.told(), ['note-1', 'note-2', 'note-3', 'own', 'back', 'last', 'end']);
});
