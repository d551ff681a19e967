// The realtime part of the face, driven by the official client of the hosted service in both versions of its protocol.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { createClient } from '@supabase/supabase-js';
import { Arrivals, startHearth, until } from '../api/harness.mjs';
import { freePort } from './stores.mjs';
import { faceKeys, insertAs, token } from '../api/realtime.mjs';

const versions = ['1.0.0', '2.0.0'];

// A client of the official library; ended with the test.
function client(t, h, key, vsn) {
    const made = createClient(h.url, key, { realtime: { vsn }, auth: { persistSession: false, autoRefreshToken: false } });
    t.after(() => made.realtime.disconnect());
    return made;
}

// The same for a user who has signed in.
async function userClient(t, h, { publishable, jwt_secret: secret }, vsn, user) {
    const made = client(t, h, publishable, vsn);
    await made.realtime.setAuth(token(secret, user));
    return made;
}

// Subscribes and waits until it counts. bind adds the listeners; `system` are the system messages that came.
async function subscribed(channel, bind, { isWatching = false } = {}) {
    const system = new Arrivals(), states = new Arrivals();
    channel.on('system', {}, (message) => system.push(message));
    bind(channel);
    channel.subscribe((state, error) => states.push({ state, error }));
    const { state, error } = await states.wait(() => true, { what: 'a state of the channel' });
    assert.equal(state, 'SUBSCRIBED', error?.message);
    if (isWatching)
        assert.equal((await system.wait((m) => m.extension === 'postgres_changes')).status, 'ok');
    return { system, states };
}

async function watch(supabase, name, changes) {
    const got = new Arrivals();
    const channel = supabase.channel(name);
    await subscribed(channel, (c) => changes.forEach((change) => c.on('postgres_changes', change, (event) => got.push(event))), { isWatching: true });
    return got;
}

for (const vsn of versions) {
    test(`changes of rows reach subscribers with their records, by table, event and filter (vsn ${vsn})`, async (t) => {
        const h = await startHearth({ t });
        const { secret } = await faceKeys(h);
        const call = await h.asKey();
        const everything = await watch(client(t, h, secret, vsn), 'everything', [{ event: '*', schema: 'public', table: 'svc_activities' }]);
        const inserts = await watch(client(t, h, secret, vsn), 'inserts', [{ event: 'INSERT', schema: 'public', table: 'svc_activities' }]);
        const done = await watch(client(t, h, secret, vsn), 'done',
            [{ event: 'UPDATE', schema: 'public', table: 'svc_activities', filter: 'status=in.(completed,failed)' }]);

        const row = (await call('POST', '/activities', { raw_data: { n: 1, deep: { list: [1, 'two', null] } } })).body.data;
        const inserted = await everything.wait((e) => e.eventType === 'INSERT' && e.new.id === row.id);
        assert.equal(inserted.schema, 'public');
        assert.equal(inserted.table, 'svc_activities');
        assert.equal(inserted.errors, null);
        assert.match(inserted.commit_timestamp, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
        assert.deepEqual(inserted.new.raw_data, { n: 1, deep: { list: [1, 'two', null] } });
        assert.equal(inserted.new.status, 'pending');
        assert.deepEqual(inserted.new.attempted_by, []);
        assert.match(inserted.new.created_at, /\+00:00$/);
        assert.deepEqual(inserted.old, {});

        await call('PATCH', `/activities/${row.id}`, { status: 'completed', result: { ok: true } });
        const updated = await done.wait((e) => e.new.id === row.id);
        assert.equal(updated.eventType, 'UPDATE');
        assert.equal(updated.new.status, 'completed');
        assert.deepEqual(updated.new.result, { ok: true });
        assert.deepEqual(updated.new.raw_data, { n: 1, deep: { list: [1, 'two', null] } });
        assert.equal(updated.old.status, 'pending');

        await call('DELETE', `/activities/${row.id}`);
        const deleted = await everything.wait((e) => e.eventType === 'DELETE' && e.old.id === row.id);
        assert.deepEqual(deleted.new, {});
        assert.deepEqual(Object.keys(deleted.old), ['id']);
        assert.deepEqual(inserts.items.map((e) => e.eventType), ['INSERT']);
        assert.deepEqual(done.items.map((e) => e.new.id), [row.id]);
        assert.deepEqual(everything.items.map((e) => e.eventType), ['INSERT', 'UPDATE', 'DELETE'], 'in the order of the commits');
    });

    test(`rows of a user are seen by that user and the service role only (vsn ${vsn})`, async (t) => {
        const h = await startHearth({ t });
        const keys = await faceKeys(h);
        const anna = randomUUID(), ben = randomUUID();
        const all = [{ event: '*', schema: 'public', table: 'svc_activities' }];
        const forAnna = await watch(await userClient(t, h, keys, vsn, anna), 'rows', all);
        const forBen = await watch(await userClient(t, h, keys, vsn, ben), 'rows', all);
        const forService = await watch(client(t, h, keys.secret, vsn), 'rows', all);
        const ids = [insertAs(h, anna, { of: 'anna' }), insertAs(h, ben, { of: 'ben' }), insertAs(h, null, { of: 'nobody' }), insertAs(h, anna), insertAs(h, ben)];

        await forService.wait((e) => e.new.id === ids[4]);
        await forAnna.wait((e) => e.new.id === ids[3]);
        await forBen.wait((e) => e.new.id === ids[4]);
        assert.deepEqual(forService.items.map((e) => e.new.id), ids);
        assert.deepEqual(forAnna.items.map((e) => e.new.id), [ids[0], ids[3]]);
        assert.deepEqual(forBen.items.map((e) => e.new.id), [ids[1], ids[4]]);
        assert.ok(forAnna.items.every((e) => e.new.user_id === anna));
    });

    test(`an anonymous subscriber is refused rows, and receives them once a user signs in (vsn ${vsn})`, async (t) => {
        const h = await startHearth({ t });
        const { publishable, secret, jwt_secret } = await faceKeys(h);
        const anna = randomUUID();
        const forService = await watch(client(t, h, secret, vsn), 'rows', [{ event: '*', schema: 'public', table: 'svc_activities' }]);
        const supabase = client(t, h, publishable, vsn);
        const got = new Arrivals();
        const { system } = await subscribed(supabase.channel('rows'),
            (c) => c.on('postgres_changes', { event: '*', schema: 'public', table: 'svc_activities' }, (event) => got.push(event)));
        const refusal = await system.wait((m) => m.extension === 'postgres_changes');
        assert.equal(refusal.status, 'error');
        assert.match(refusal.message, /401: Unauthorized/);
        const first = insertAs(h, anna);
        await forService.wait((e) => e.new.id === first);

        await supabase.realtime.setAuth(token(jwt_secret, anna));
        await system.wait((m) => m.extension === 'postgres_changes' && m.status === 'ok');
        const second = insertAs(h, anna);
        await got.wait((e) => e.new.id === second);
        assert.equal(got.items.length, 1, 'nothing of the time before');
    });

    test(`broadcasts reach every other member, both versions and HTTP together (vsn ${vsn})`, async (t) => {
        const h = await startHearth({ t });
        const { publishable } = await faceKeys(h);
        const other = versions.find((v) => v !== vsn);
        const heard = { own: new Arrivals(), same: new Arrivals(), other: new Arrivals() };
        const bind = (list) => (c) => c.on('broadcast', { event: '*' }, (m) => list.push(m));
        const speaker = client(t, h, publishable, vsn).channel('room', { config: { broadcast: { ack: true, self: false } } });
        await subscribed(speaker, bind(heard.own));
        await subscribed(client(t, h, publishable, vsn).channel('room'), bind(heard.same));
        await subscribed(client(t, h, publishable, other).channel('room'), bind(heard.other));

        assert.equal(await speaker.send({ type: 'broadcast', event: 'shout', payload: { text: 'Grüße', n: [1, 2.5, null] } }), 'ok');
        for (const list of [heard.same, heard.other])
            assert.deepEqual((await list.wait((m) => m.event === 'shout')).payload, { text: 'Grüße', n: [1, 2.5, null] });
        assert.equal(heard.own.items.length, 0, 'not the sender');

        const outsider = client(t, h, publishable, vsn).channel('room');
        assert.deepEqual(await outsider.httpSend('over-http', { by: 'POST' }), { success: true });
        for (const list of Object.values(heard))
            assert.deepEqual((await list.wait((m) => m.event === 'over-http')).payload, { by: 'POST' });
        const many = Array.from({ length: 50 }, (_, i) => ({ topic: 'room', event: 'count', payload: { i } }));
        const reply = await h.api('POST', '/realtime/v1/api/broadcast', { messages: many }, { apikey: publishable });
        assert.equal(reply.status, 202, reply.text);
        for (const list of Object.values(heard)) {
            await list.wait((m) => m.event === 'count' && m.payload.i === 49);
            assert.deepEqual(list.items.filter((m) => m.event === 'count').map((m) => m.payload.i), many.map((m) => m.payload.i), 'in order');
        }
    });

    test(`presence: state, joins, changes and leaves (vsn ${vsn})`, async (t) => {
        const h = await startHearth({ t });
        const { publishable } = await faceKeys(h);
        const first = client(t, h, publishable, vsn), second = client(t, h, publishable, vsn);
        const one = first.channel('room', { config: { presence: { key: 'one' } } });
        const two = second.channel('room', { config: { presence: { key: 'two' } } });
        const joins = new Arrivals(), leaves = new Arrivals();
        await subscribed(one, (c) => c.on('presence', { event: 'join' }, (m) => joins.push(m)).on('presence', { event: 'leave' }, (m) => leaves.push(m)));
        assert.equal(await one.track({ mood: 'calm' }), 'ok');
        await subscribed(two, (c) => c.on('presence', { event: 'sync' }, () => {}));
        await until(() => two.presenceState().one?.[0]?.mood === 'calm', { what: 'the state reaches a new member' });
        assert.equal(await two.track({ mood: 'glad' }), 'ok');
        assert.equal((await joins.wait((m) => m.key === 'two')).newPresences[0].mood, 'glad');
        assert.equal(await two.track({ mood: 'sad' }), 'ok');
        await until(() => one.presenceState().two?.length === 1 && one.presenceState().two[0].mood === 'sad', { what: 'the new meta replaces the old' });
        assert.equal(await one.untrack(), 'ok');
        await until(() => !two.presenceState().one, { what: 'untrack is told' });
        second.realtime.disconnect();
        await leaves.wait((m) => m.key === 'two' && m.leftPresences[0].mood === 'sad');
        await until(() => Object.keys(one.presenceState()).length === 0, { what: 'nobody is left' });
    });

    test(`a private channel is for signed-in users, and one user's channel for that user (vsn ${vsn})`, async (t) => {
        const h = await startHearth({ t });
        const keys = await faceKeys(h);
        const anna = randomUUID(), ben = randomUUID();
        const join = (supabase, name) => new Promise((done) => supabase.channel(name, { config: { private: true } })
            .subscribe((state, error) => done({ state, text: error?.message })));
        const asAnna = () => userClient(t, h, keys, vsn, anna), asBen = () => userClient(t, h, keys, vsn, ben);
        assert.equal((await join(await asAnna(), `user:${anna}`)).state, 'SUBSCRIBED');
        assert.equal((await join(await asBen(), 'team')).state, 'SUBSCRIBED');
        for (const [who, name] of [[await asBen(), `user:${anna}`], [await asBen(), `user:${anna}:notes`], [client(t, h, keys.publishable, vsn), 'team']]) {
            const refused = await join(who, name);
            assert.equal(refused.state, 'CHANNEL_ERROR');
            assert.match(refused.text, /Unauthorized: You do not have permissions to read from this Channel topic/);
        }
    });
}

test('a client finds its way back after the service was restarted', async (t) => {
    const h = await startHearth({ t, listen: `127.0.0.1:${await freePort()}` });
    const { secret } = await faceKeys(h);
    const got = new Arrivals();
    const { states } = await subscribed(client(t, h, secret, '2.0.0').channel('rows'),
        (c) => c.on('postgres_changes', { event: 'INSERT', schema: 'public', table: 'svc_activities' }, (event) => got.push(event)), { isWatching: true });
    await h.kill();
    await h.start();
    await states.wait(({ state }) => state === 'SUBSCRIBED', { from: 1, what: 'the channel is joined again' });
    const id = insertAs(h, null);
    await got.wait((e) => e.new.id === id);
});
