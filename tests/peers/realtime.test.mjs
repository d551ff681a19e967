// The realtime part of the face, driven by the official client of the hosted service in both versions of its protocol.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { createClient } from '@supabase/supabase-js';
import { Arrivals, startHearth, until } from '../api/harness.mjs';
import { admin } from '../api/kit.mjs';
import { freePort } from '../tools/ports.mjs';
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

const goods = { id: { type: 'int8', key: true }, n: { type: 'int4' }, big: { type: 'int8' }, price: { type: 'numeric' }, at: { type: 'timestamptz' }, day: { type: 'date' },
    code: { type: 'uuid' }, ok: { type: 'bool' }, word: { type: 'text' }, data: { type: 'jsonb' } };

// Tables with columns of their own, as an app declares them.
function declare(h, schema) { return admin(h, 'POST', '/api/apps', { name: 'shop', config: { backend: { schema } } }, 201); }

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

    test(`changes of a table with columns of its own are filtered by the types of its columns (vsn ${vsn})`, async (t) => {
        const h = await startHearth({ t });
        const keys = await faceKeys(h);
        await declare(h, { goods: { columns: goods } });
        const service = client(t, h, keys.secret, vsn);
        const on = (filter, event = '*') => ({ event, schema: 'public', table: 'goods', ...(filter && { filter }) });
        const all = await watch(service, 'all', [on()]);
        const filters = { n: 'n=gt.9', big: 'big=eq.9007199254740993', price: 'price=lte.1.5', at: 'at=lt.2026-11-20T11:30:18+02:00', day: 'day=gte.2026-11-20',
            code: 'code=eq.6FA459EA-EE8A-4CA4-894E-DB77E160355E', ok: 'ok=eq.true', word: 'word=neq.10', list: 'n=in.(10,11)', deep: 'data->>size=gt.9' };
        const got = {};
        for (const [name, filter] of Object.entries(filters))
            got[name] = await watch(client(t, h, keys.secret, vsn), name, [on(filter)]);

        const high = { id: 1, n: 10, big: '9007199254740993', price: 1.5, at: '2026-11-20T09:30:17.9Z', day: '2026-11-21', code: '6fa459ea-ee8a-4ca4-894e-db77e160355e', ok: true, word: '9', data: { size: 10 } };
        const low = { id: 2, n: 9, big: '9007199254740992', price: 1.51, at: '2026-11-20T09:30:18Z', day: '2026-11-19', code: null, ok: null, word: null, data: { size: 9 } };
        for (const row of [high, low, { id: 3 }])
            assert.equal((await service.from('goods').insert(row)).error, null);
        const last = await all.wait((e) => e.new.id === 3);
        assert.deepEqual(last.old, {});
        const { errors, eventType, new: record } = all.items[0];
        assert.deepEqual({ errors, eventType }, { errors: null, eventType: 'INSERT' });
        assert.deepEqual([record.n, record.ok, record.data, record.at], [10, true, { size: 10 }, '2026-11-20T09:30:17.9+00:00']);
        assert.equal((await service.from('goods').delete().gte('id', 1)).error, null); // whole old records: the table has no users
        await all.wait((e) => e.eventType === 'DELETE' && e.old.id === 3);
        for (const [name, list] of Object.entries(got)) {
            await list.wait((e) => e.eventType === 'DELETE', { what: `the deletion for ${name}` });
            assert.deepEqual(list.items.map((e) => [e.eventType, e.new.id ?? e.old.id]), [['INSERT', 1], ['DELETE', 1]], name);
        }
        assert.equal(all.items.find((e) => e.eventType === 'DELETE').old.word, '9');
    });

    test(`a filter that does not fit the table is told, and a table without users is every signed-in user's (vsn ${vsn})`, async (t) => {
        const h = await startHearth({ t });
        const keys = await faceKeys(h);
        await declare(h, { goods: { columns: goods }, notes: { columns: { id: { type: 'int8', key: true }, user_id: { type: 'uuid' }, text: { type: 'text' } } } });
        const service = client(t, h, keys.secret, vsn);
        for (const [table, filter, what] of [['goods', 'weight=gt.1', /"weight" does not exist in table goods/], ['goods', 'n=gt.many', /value of column n: invalid input syntax for type integer/],
            ['goods', 'data=eq.1', /holds JSON/], ['goods', 'n->>x=eq.1', /has no members/], ['goods', 'n=near.1', /operator "near"/], ['svc_activities', 'n=gt.1', /column "n" does not exist/]]) {
            const { system } = await subscribed(service.channel(filter), (c) => c.on('postgres_changes', { event: '*', schema: 'public', table, filter }, () => assert.fail()));
            const { status, message } = await system.wait((m) => m.extension === 'postgres_changes');
            assert.equal(status, 'error');
            assert.match(message, what);
        }
        const anna = randomUUID(), ben = randomUUID(), both = [{ event: '*', schema: 'public', table: 'goods' }, { event: '*', schema: 'public', table: 'notes' }];
        const forService = await watch(service, 'both', both);
        const forAnna = await watch(await userClient(t, h, keys, vsn, anna), 'both', both);
        const forBen = await watch(await userClient(t, h, keys, vsn, ben), 'both', both);
        for (const [id, user] of [[1, anna], [2, ben], [3, null]])
            assert.equal((await service.from('notes').insert({ id, user_id: user, text: 'hers' })).error, null);
        assert.equal((await service.from('notes').update({ text: 'changed' }).eq('id', 1)).error, null);
        assert.equal((await service.from('notes').delete().gte('id', 1)).error, null);
        assert.equal((await service.from('goods').insert({ id: 9 })).error, null);
        for (const list of [forService, forAnna, forBen])
            await list.wait((e) => e.table === 'goods');
        const seen = (list) => list.items.filter((e) => e.table === 'notes').map((e) => [e.eventType, e.new.id ?? e.old.id]);
        assert.deepEqual(seen(forAnna), [['INSERT', 1], ['UPDATE', 1], ['DELETE', 1]]);
        assert.deepEqual(seen(forBen), [['INSERT', 2], ['DELETE', 2]]);
        assert.equal(seen(forService).length, 7);
        assert.deepEqual(forAnna.items.find((e) => e.eventType === 'UPDATE').old, { id: 1, user_id: anna, text: 'hers' });
        assert.deepEqual(forAnna.items.find((e) => e.eventType === 'DELETE').old, { id: 1 }); // with users: the key alone
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
