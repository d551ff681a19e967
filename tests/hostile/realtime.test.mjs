// The WebSocket of the realtime protocol against clients that mean harm. After each attack another client is served.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { startHearth, until } from '../api/harness.mjs';
import { backendFile, sqlite } from '../api/kit.mjs';
import { binary, close, faceKeys, frame, handshake, openSocket, ping, pong, text, token } from '../api/realtime.mjs';

const heartbeat = JSON.stringify([null, '1', 'phoenix', 'heartbeat', {}]);
const path = (key) => `/realtime/v1/websocket?apikey=${key}&vsn=2.0.0`;

// The code of the server's close frame; 1005 when it has none.
async function closeCode(socket, what = '') {
    const { payload } = await socket.frames.wait((f) => f.opcode === close, { what: `a close frame after ${what}` });
    return payload.length ? payload.readUInt16BE(0) : 1005;
}

async function isServed(h, key) {
    const socket = await openSocket(h, { key });
    assert.deepEqual(await socket.ask('phoenix', 'heartbeat', {}), { status: 'ok', response: {} });
    socket.end();
}

async function start(t, settings = {}) {
    const h = await startHearth({ t, settings });
    return { h, keys: await faceKeys(h) };
}

test('handshakes that break RFC 6455 are refused with the rule', async (t) => {
    const { h, keys } = await start(t);
    const cases = [
        [{ 'Sec-WebSocket-Version': '12' }, 426, 'UPGRADE_REQUIRED'], [{ 'Sec-WebSocket-Version': undefined }, 426, 'UPGRADE_REQUIRED'],
        [{ Upgrade: undefined }, 426, 'UPGRADE_REQUIRED'], [{ Connection: 'keep-alive' }, 426, 'UPGRADE_REQUIRED'],
        [{ 'Sec-WebSocket-Key': undefined }, 400, 'BAD_HANDSHAKE'], [{ 'Sec-WebSocket-Key': 'c2hvcnQ=' }, 400, 'BAD_HANDSHAKE'],
        [{ 'Sec-WebSocket-Key': '*'.repeat(24) }, 400, 'BAD_HANDSHAKE'],
    ];
    for (const [headers, status, code] of cases) {
        const { head } = await openSocket(h, { key: keys.publishable, headers }).catch((error) => error);
        assert.match(head, new RegExp(`^HTTP/1\\.1 ${status} `), JSON.stringify(headers));
        assert.ok(head.includes('\r\n\r\n'));
        const reply = await h.raw(handshake(h, path(keys.publishable), { ...headers }).replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n'), { quietMs: 200 });
        assert.ok(reply.includes(code), reply);
    }
    await isServed(h, keys.publishable);
});

test('a page of another site, and a name pointed at this machine, get no socket', async (t) => {
    const { h, keys } = await start(t);
    for (const headers of [{ Origin: 'https://evil.example' }, { Origin: 'null' }, { Host: 'evil.example' }]) {
        const { head } = await openSocket(h, { key: keys.publishable, headers }).catch((error) => error);
        assert.match(head, /^HTTP\/1\.1 403 /, JSON.stringify(headers));
    }
    const own = await openSocket(h, { key: keys.publishable, headers: { Origin: h.url } });
    own.end();
});

test('no key, a wrong key, and a developer key of Hearth open no socket', async (t) => {
    const { h } = await start(t);
    for (const key of ['', 'sb_publishable_AAAAAAAAAAAAAAAAAAAAAA_AAAAAAAA', 'x'.repeat(4000), await h.key()]) {
        const { head } = await openSocket(h, { key }).catch((error) => error);
        assert.match(head, /^HTTP\/1\.1 401 /);
    }
});

test('a closed face serves nobody', async (t) => {
    const { h, keys } = await start(t, { 'face.enabled': false });
    const { head } = await openSocket(h, { key: keys.publishable }).catch((error) => error);
    assert.match(head, /^HTTP\/1\.1 404 /);
    assert.equal((await h.api('POST', '/realtime/v1/api/broadcast/a/events/b', {}, { apikey: keys.publishable })).body.code, 'FACE_OFF');
});

test('frames that break the protocol end their own socket, with its code', async (t) => {
    const { h, keys } = await start(t);
    const long = Buffer.alloc(126);
    const cases = {
        'an unmasked frame': [frame(text, heartbeat, { mask: false }), 1002],
        'a reserved bit': [frame(text, heartbeat, { rsv: 4 }), 1002],
        'an unknown opcode': [frame(3, 'x'), 1002],
        'a continuation of nothing': [frame(0, 'x'), 1002],
        'a message within a message': [Buffer.concat([frame(text, 'a', { fin: false }), frame(text, 'b')]), 1002],
        'a fragmented ping': [frame(ping, 'x', { fin: false }), 1002],
        'a ping of 126 bytes': [frame(ping, long), 1002],
        'a close of one byte': [frame(close, 'x'), 1005],
        'a close with a code that is none': [frame(close, Buffer.from([0, 5])), 1002],
        'text that is no UTF-8': [frame(text, Buffer.from([0xff, 0xfe])), 1007],
        'text that is no JSON': [frame(text, '{'), 1007],
        'JSON of another form': [frame(text, '{"a":1}'), 1007],
        'an array of four': [frame(text, '[null,"1","phoenix","heartbeat"]'), 1007],
        'a topic that is a number': [frame(text, '[null,"1",7,"heartbeat",{}]'), 1007],
        'a binary frame of another type': [frame(binary, Buffer.from([0, 0, 0, 0, 0, 0, 0])), 1007],
        'a binary frame cut short': [frame(binary, Buffer.from([3, 1, 1, 200, 5, 0, 1, 65, 65])), 1007],
        'binary JSON that is none': [frame(binary, Buffer.concat([Buffer.from([3, 0, 0, 1, 1, 0, 1]), Buffer.from('te{')])), 1007],
        'a message announced above the limit': [frame(text, 'x', { length: 5_000_001 }), 1009],
        'a message of 2^63 bytes': [frame(text, 'x', { length: 2 ** 62 }), 1009],
    };
    for (const [what, [bytes, code]] of Object.entries(cases)) {
        const socket = await openSocket(h, { key: keys.publishable });
        await socket.write(bytes);
        assert.equal(await closeCode(socket, what), code, what);
        socket.end();
    }
    await isServed(h, keys.publishable);
});

test('a message of 5,000,000 bytes is read, one of 1,025 frames is not', async (t) => {
    const { h, keys } = await start(t);
    const socket = await openSocket(h, { key: keys.publishable });
    const empty = JSON.stringify([null, '7', 'phoenix', 'heartbeat', { pad: '' }]);
    await socket.write(frame(text, empty.replace('""', `"${'x'.repeat(5_000_000 - empty.length)}"`)));
    await socket.messages.wait((m) => m[1] === '7');
    const parts = (n) => Buffer.concat([frame(text, heartbeat[0], { fin: false }),
        ...Array.from({ length: n - 2 }, (_, i) => frame(0, heartbeat[i + 1] ?? ' ', { fin: false })), frame(0, heartbeat.slice(n - 1))]);
    await socket.write(parts(1024));
    await socket.messages.wait((m) => m[1] === '1');
    await socket.write(parts(1025));
    assert.equal(await closeCode(socket), 1008);
    socket.end();
});

test('a flood of fragments and of pings holds nobody up', async (t) => {
    const { h, keys } = await start(t);
    const flood = await openSocket(h, { key: keys.publishable });
    const pings = Buffer.concat(Array.from({ length: 20_000 }, (_, i) => frame(ping, String(i))));
    flood.tcp.write(pings);
    await isServed(h, keys.publishable);
    await flood.frames.wait((f) => f.opcode === pong && f.payload.toString() === '19999');
    flood.tcp.write(frame(text, '[', { fin: false }));
    flood.tcp.write(Buffer.concat(Array.from({ length: 20_000 }, () => frame(0, '', { fin: false }))));
    await isServed(h, keys.publishable);
    assert.equal(await closeCode(flood), 1008);
    flood.end();
});

test('a client that never reads is closed; the other members receive everything', async (t) => {
    const { h, keys } = await start(t);
    const silent = await openSocket(h, { key: keys.publishable }), member = await openSocket(h, { key: keys.publishable });
    for (const socket of [silent, member])
        assert.equal((await socket.join('realtime:room')).status, 'ok');
    silent.tcp.pause();
    const body = { pad: 'x'.repeat(500_000) };
    for (let i = 0; i < 40; i++)
        assert.equal((await h.api('POST', `/realtime/v1/api/broadcast/room/events/n${i}`, body, { apikey: keys.publishable })).status, 202);
    await member.frames.wait((f) => f.opcode === binary && f.payload.includes('n39'));
    const open = async () => Number(/^hearth_http_connections (\d+)/m.exec((await h.api('GET', '/metrics')).text)[1]);
    await until(async () => await open() <= 2, { what: 'the silent one is closed' });
    silent.end();
    member.end();
});

test('a client that sends faster than it is served is not read further, and is served in the end', async (t) => {
    const { h, keys } = await start(t);
    const socket = await openSocket(h, { key: keys.publishable });
    const many = Buffer.concat(Array.from({ length: 5_000 }, (_, i) => frame(text, JSON.stringify([null, String(i), 'phoenix', 'heartbeat', {}]))));
    socket.tcp.write(many);
    await isServed(h, keys.publishable);
    await socket.messages.wait((m) => m[1] === '4999');
    assert.deepEqual(socket.messages.items.map((m) => m[1]), Array.from({ length: 5_000 }, (_, i) => String(i)), 'each once, in order');
    socket.end();
});

test('another user\'s private channel, forged and expired tokens are refused; nothing of the channel is heard', async (t) => {
    const { h, keys } = await start(t);
    const anna = randomUUID(), ben = randomUUID();
    const now = Math.floor(Date.now() / 1000);
    const socket = await openSocket(h, { key: keys.publishable });
    const join = (topic, accessToken) => socket.join(topic, { private: true }, { access_token: accessToken });
    const good = token(keys.jwt_secret, ben);
    const refusals = [
        [`realtime:user:${anna}`, good, /^Unauthorized/], [`realtime:user:${anna}:x`, good, /^Unauthorized/], ['realtime:user:', good, /^Unauthorized/],
        ['realtime:room', undefined, /^Unauthorized/], ['realtime:room', keys.publishable, /^Unauthorized/],
        ['realtime:room', token('another-secret', anna), /^JwtSignatureError/],
        ['realtime:room', token(keys.jwt_secret, anna, { exp: now - 31 }), /^InvalidJWTToken/], ['realtime:room', token(keys.jwt_secret, anna, { nbf: now + 90 }), /^InvalidJWTToken/],
        ['realtime:room', token(keys.jwt_secret, anna, { exp: undefined }), /^MalformedJWT/], ['realtime:room', token(keys.jwt_secret, anna, { role: 'postgres' }), /^MalformedJWT/],
        ['realtime:room', token(keys.jwt_secret, anna, {}, { alg: 'none' }), /^MalformedJWT/], ['realtime:room', `${good}.x`, /^MalformedJWT/],
        ['realtime:room', 'x'.repeat(10_000), /^MalformedJWT/],
    ];
    for (const [topic, accessToken, reason] of refusals) {
        const reply = await join(topic, accessToken);
        assert.equal(reply.status, 'error', topic);
        assert.match(reply.response.reason, reason);
    }
    assert.equal((await join('realtime:room', token(keys.jwt_secret, ben, { exp: Math.floor(Date.now() / 1000) - 20 }))).status, 'ok', '20 s are within the skew');
    const refused = await h.api('POST', `/realtime/v1/api/broadcast/user:${anna}/events/x?private=true`, {}, { apikey: keys.publishable, authorization: `Bearer ${good}` });
    assert.equal(refused.status, 403);
    assert.equal(refused.body.code, 'CHANNEL_NOT_ALLOWED');

    const public_ = await openSocket(h, { key: keys.publishable });
    assert.equal((await public_.join('realtime:room')).status, 'ok');
    await h.api('POST', '/realtime/v1/api/broadcast/room/events/secret?private=true', {}, { apikey: keys.secret });
    await h.api('POST', '/realtime/v1/api/broadcast/room/events/open', {}, { apikey: keys.publishable });
    await public_.frames.wait((f) => f.opcode === binary && f.payload.includes('open'));
    assert.ok(!public_.frames.items.some((f) => f.payload.includes('secret')), 'a public channel of the same name is another channel');
    socket.end();
    public_.end();
});

test('channels, subscriptions, filters and presence beyond their limits are refused with the limit', async (t) => {
    const { h, keys } = await start(t);
    const socket = await openSocket(h, { key: keys.secret });
    const change = { event: '*', schema: 'public', table: 'svc_activities' };
    const changes = (n, more = {}) => ({ postgres_changes: Array.from({ length: n }, () => ({ ...change, ...more })) });
    assert.equal((await socket.join('realtime:many', changes(100))).status, 'ok');
    assert.match((await socket.join('realtime:more', changes(101))).response.reason, /at most 100/);
    for (const [filter, what] of [['status=like.x', /operator/], ['nothing=eq.1', /column/], [`status=in.(${'a,'.repeat(100)}a)`, /100/], [`status=eq.${'x'.repeat(20_000)}`, /bytes/]]) {
        const topic = `realtime:${what.source}`;
        assert.equal((await socket.join(topic, changes(1, { filter }))).status, 'ok');
        const [, , , , system] = await socket.next(topic, 'system');
        assert.equal(system.status, 'error');
        assert.match(system.message, what);
    }
    assert.equal((await socket.join('realtime:nowhere', { postgres_changes: [{ ...change, table: 'nope' }] })).status, 'ok');
    assert.match((await socket.next('realtime:nowhere', 'system'))[4].message, /Unable to subscribe to changes .*table: nope/);
    assert.match((await socket.join(`realtime:${'x'.repeat(246)}`)).status, /ok/);
    assert.match((await socket.join('realtime:')).response.reason, /^TopicNameRequired/);

    assert.match((await socket.ask('realtime:many', 'presence', { event: 'track', payload: { pad: 'x'.repeat(17_000) } })).response.reason, /16384/);
    assert.match((await socket.ask('realtime:many', 'presence', { event: 'track', payload: [] })).response.reason, /must be a map/);
    for (let i = 0; i < 48; i++)
        socket.send('realtime:many', 'presence', { event: 'track', payload: { i } });
    socket.send('realtime:many', 'presence', { event: 'track', payload: { last: true } });
    assert.equal((await socket.next('realtime:many', 'system', { from: socket.messages.items.length - 1 }))[4].message, 'Client presence rate limit exceeded');
    await socket.next('realtime:many', 'phx_close');
    socket.end();

    const wide = await openSocket(h, { key: keys.publishable });
    for (let i = 0; i < 100; i++)
        assert.equal((await wide.join(`realtime:${i}`)).status, 'ok');
    assert.match((await wide.join('realtime:100')).response.reason, /^ChannelRateLimitReached/);
    assert.equal((await wide.ask('realtime:0', 'phx_leave', {}, '1')).status, 'ok');
    assert.equal((await wide.join('realtime:100')).status, 'ok');
    wide.end();
});

test('a member of a subscription that is no text is refused, and is not taken for none', async (t) => {
    const { h, keys } = await start(t);
    const socket = await openSocket(h, { key: keys.secret });
    const change = { event: '*', schema: 'public', table: 'svc_activities', filter: 'status=eq.pending' };
    const wrong = ['filter', 'event', 'schema', 'table'].flatMap((name) => [5, true, {}, ['status=eq.none'], '\0', 'status=eq.none\0'].map((value) => [name, value]));
    for (const [i, [name, value]] of wrong.entries()) {
        const topic = `realtime:wrong ${i}`;
        assert.equal((await socket.join(topic, { postgres_changes: [{ ...change, [name]: value }] })).status, 'ok');
        const [, , , , system] = await socket.next(topic, 'system');
        assert.deepEqual([system.status, system.message.slice(0, name.length + 2)], ['error', `\`${name}\``], JSON.stringify([name, value, system]));
    }
    for (const value of [null, '']) {
        assert.equal((await socket.join(`realtime:none ${value}`, { postgres_changes: [{ ...change, filter: value }] })).status, 'ok');
        assert.equal((await socket.next(`realtime:none ${value}`, 'system'))[4].status, 'ok');
    }
    assert.equal((await (await h.asKey())('POST', '/activities', { raw_data: {} })).status, 201);
    await socket.next('realtime:none null', 'postgres_changes');
    await socket.next('realtime:none ', 'postgres_changes');
    assert.deepEqual(socket.messages.items.filter((m) => m[3] === 'postgres_changes' && m[2].startsWith('realtime:wrong')), []);
    socket.end();
});

test('names with quotes, dots, other letters and 63 bytes are tables and columns like any other; 64 bytes are refused', async (t) => {
    const { h, keys } = await start(t);
    // The embedded backend names its tables by the whole quoted name.
    const quoted = (name) => `"${name.replaceAll('"', '""')}"`;
    const names = ['a "b".c', 'Käse', 'x; DROP TABLE svc_activities; --', `${'ü'.repeat(31)}x`];
    const columns = Object.fromEntries([['id', { type: 'int8', key: true }], ...names.map((name) => [name, { type: 'int4' }])]);
    const register = (table, of = columns) => h.socket('POST', '/api/apps', { name: 'named', config: { backend: { schema: { [table]: { columns: of } } } } });
    for (const name of names)
        assert.equal((await register(quoted(name))).status, 201, name);
    assert.equal((await register(quoted('x'.repeat(64)))).status, 400);
    assert.equal((await register('plain', { ...columns, ['y'.repeat(64)]: { type: 'int4' } })).status, 400);

    const socket = await openSocket(h, { key: keys.secret });
    t.after(() => socket.end());
    for (const name of names)
        for (const column of names) {
            const topic = `realtime:${names.indexOf(name)}-${names.indexOf(column)}`;
            assert.equal((await socket.join(topic, { postgres_changes: [{ event: '*', schema: 'public', table: name, filter: `${column}=gt.1` }] })).status, 'ok');
            assert.equal((await socket.next(topic, 'system'))[4].message, 'Subscribed to PostgreSQL', `${name} by ${column}`);
        }
    for (const name of names) {
        const all = names.map(quoted).join();
        await sqlite(backendFile(h), `INSERT INTO ${quoted(quoted(name))} (id, ${all}) VALUES (1, 1, 1, 1, 1), (2, 2, 2, 2, 2)`);
        for (const column of names) {
            const [, , , , { data }] = await socket.next(`realtime:${names.indexOf(name)}-${names.indexOf(column)}`, 'postgres_changes');
            assert.deepEqual([data.table, data.record.id, data.record[column]], [name, 2, 2]);
            assert.ok(data.columns.some((c) => c.name === column && c.type === 'int4'));
        }
    }
    await isServed(h, keys.publishable);
});

// What all callers hold of a budget.
async function held(h, budget) {
    return Number(new RegExp(`^hearth_budget_held\\{[^}]*budget="${budget}"[^}]*\\} (\\d+)`, 'm').exec((await h.api('GET', '/metrics')).text)?.[1] ?? 0);
}

test('2,000 subscriptions: a change reaches every one, and all is given back', async (t) => {
    const { h, keys } = await start(t);
    const call = await h.asKey();
    const config = { presence: { enabled: false }, postgres_changes: [{ event: '*', schema: 'public', table: 'svc_activities' }] };
    const sockets = [];
    for (let i = 0; i < 40; i++) {
        const socket = await openSocket(h, { key: keys.secret });
        sockets.push(socket);
        const replies = await Promise.all(Array.from({ length: 50 }, (_, n) => socket.join(`realtime:${n}`, config)));
        assert.ok(replies.every((reply) => reply.status === 'ok'));
    }
    assert.equal(await held(h, 'subscriptions'), 40 * 50 * 2, 'a channel and its subscription');
    const { id } = (await call('POST', '/activities', { raw_data: {} })).body.data;
    const changes = (socket) => socket.messages.items.filter((m) => m[3] === 'postgres_changes' && m[4].data.record.id === id);
    await Promise.all(sockets.map((socket) => until(() => changes(socket).length === 50, { what: 'the change on 50 channels' })));
    sockets.forEach((socket) => socket.end());
    await until(async () => await held(h, 'subscriptions') + await held(h, 'sockets') === 0, { what: 'everything is given back' });
});

test('a change has 4 MiB at most: of a larger one the small values are sent, with the error of the original', async (t) => {
    const { h, keys } = await start(t), socket = await openSocket(h, { key: keys.secret });
    await socket.join('realtime:large', { postgres_changes: [{ event: '*', schema: 'public', table: 'svc_activities' }] });
    const nth = async (n) => { await until(() => socket.messages.items.filter((m) => m[3] === 'postgres_changes').length >= n, { what: `change ${n}` });
        return socket.messages.items.filter((m) => m[3] === 'postgres_changes')[n - 1][4].data; };
    const put = (n) => sqlite(backendFile(h), `INSERT INTO svc_activities (raw_data) VALUES (json_object('pad', printf('%.*c', ${n}, 'x')))`);
    await put(1);
    const room = (4 << 20) - Buffer.byteLength(JSON.stringify(await nth(1))) + 1;
    await put(room);
    const whole = await nth(2);
    assert.deepEqual([whole.errors, whole.record.raw_data?.pad.length], [null, room]);
    await put(room + 1);
    const cut = await nth(3);
    assert.deepEqual(cut.errors, ['Error 413: Payload Too Large']);
    assert.deepEqual([cut.record.status, 'raw_data' in cut.record, cut.type], ['pending', false, 'INSERT']);
    await sqlite(backendFile(h), `UPDATE svc_activities SET raw_data = json('{"n":1}') WHERE id = '${cut.record.id}'`);
    const smaller = await nth(4);
    assert.deepEqual([smaller.errors, smaller.record.raw_data, 'raw_data' in smaller.old_record], [['Error 413: Payload Too Large'], { n: 1 }, false]);
    assert.ok(!socket.messages.items.some((m) => m[3] === 'system' && m[4].status === 'error'), 'nothing was lost');
    socket.end();
});

test('of a large change of a table with columns of its own the small values are sent, too', async (t) => {
    const { h, keys } = await start(t), socket = await openSocket(h, { key: keys.secret });
    const columns = { id: { type: 'int8', key: true }, title: { type: 'text' }, body: { type: 'text' } };
    assert.equal((await h.socket('POST', '/api/apps', { name: 'notes', config: { backend: { schema: { notes: { columns } } } } })).status, 201);
    await socket.join('realtime:notes', { postgres_changes: [{ event: '*', schema: 'public', table: 'notes' }] });
    await sqlite(backendFile(h), `INSERT INTO notes VALUES (1, printf('%.*c', 62, 'x'), printf('%.*c', ${5 << 20}, 'x')), (2, printf('%.*c', 63, 'x'), printf('%.*c', ${5 << 20}, 'x'))`);
    const changes = () => socket.messages.items.filter((m) => m[3] === 'postgres_changes').map((m) => m[4].data);
    await until(() => changes().length === 2, { what: 'two changes' });
    const [first, second] = changes();
    assert.deepEqual([first.errors, first.record], [['Error 413: Payload Too Large'], { id: 1, title: 'x'.repeat(62) }]);
    assert.deepEqual([second.errors, second.record], [['Error 413: Payload Too Large'], { id: 2 }]);
    socket.end();
});

test('subscriptions and sockets beyond the budget of a caller are refused, and places are given back', async (t) => {
    const { h, keys } = await start(t, { 'limits.sockets': 5, 'limits.subscriptions': 10 });
    const sockets = [];
    for (let i = 0; i < 5; i++)
        sockets.push(await openSocket(h, { key: keys.publishable }));
    const { head } = await openSocket(h, { key: keys.publishable }).catch((error) => error);
    assert.match(head, /^HTTP\/1\.1 429 /);
    for (let i = 0; i < 10; i++)
        assert.equal((await sockets[0].join(`realtime:${i}`)).status, 'ok');
    assert.match((await sockets[1].join('realtime:x')).response.reason, /^ChannelRateLimitReached: .*subscriptions/);
    sockets[0].end();
    await until(async () => (await sockets[1].join('realtime:x')).status === 'ok', { what: 'the places of the one that left' });
    sockets.forEach((socket) => socket.end());
    await until(async () => await held(h, 'sockets') === 0, { what: 'all is given back' });
});

test('a broadcast has 3 MiB at most, over HTTP and over a socket, and who asks is told', async (t) => {
    const h = await startHearth({ t });
    const { publishable: key } = await faceKeys(h), socket = await openSocket(h, { key, vsn: '1.0.0' });
    t.after(() => socket.end());
    await socket.join('realtime:room', { broadcast: { ack: true } });
    const limit = 3 << 20;
    const post = (n) => h.api('POST', '/realtime/v1/api/broadcast/room/events/e', JSON.stringify('x'.repeat(n - 2)), { apikey: key, 'content-type': 'application/json' });
    assert.equal((await post(limit)).status, 202);
    assert.equal((await post(limit + 1)).status, 413);
    const around = JSON.stringify({ type: 'broadcast', event: 'e', payload: '' }).length;
    const say = (n) => socket.ask('realtime:room', 'broadcast', { type: 'broadcast', event: 'e', payload: 'x'.repeat(n - around) }, '1');
    assert.equal((await say(limit)).status, 'ok');
    assert.deepEqual(await say(limit + 1), { status: 'error', response: { reason: 'payload_size_exceeded' } });
});

test('what the members of a channel say of themselves has 4 MiB at most', async (t) => {
    const h = await startHearth({ t });
    const { publishable: key } = await faceKeys(h), socket = await openSocket(h, { key });
    t.after(() => socket.end());
    const name = 'k'.repeat(699_000), room = (4 << 20) - 6 * name.length - 64;     // a key may be escaped: six bytes a character
    await socket.join('realtime:room', { presence: { key: name } });
    const track = (n) => socket.ask('realtime:room', 'presence', { type: 'presence', event: 'track', payload: { a: 'x'.repeat(n - '"a":""'.length) } }, '1');
    const reply = await track(room + 1);
    assert.equal(reply.status, 'error');
    assert.match(reply.response.reason, /track too much together/);
    assert.equal((await track(room)).status, 'ok');
});

test('the metrics count subscribers and what they were sent', async (t) => {
    const h = await startHearth({ t });
    const { secret: key } = await faceKeys(h), call = await h.asKey(), socket = await openSocket(h, { key });
    const metric = async (name) => Number(new RegExp(`^${name} (\\S+)$`, 'm').exec((await h.api('GET', '/metrics')).text)[1]);
    assert.equal(await metric('hearth_realtime_subscribers'), 0);
    await socket.join('realtime:rows', { postgres_changes: [{ event: '*', schema: 'public', table: 'svc_activities' }] });
    assert.equal(await metric('hearth_realtime_subscribers'), 1);
    await call('POST', '/activities', { raw_data: {} });
    await socket.next('realtime:rows', 'postgres_changes');
    assert.equal(await metric('hearth_realtime_delivered_total'), 1);
    assert.equal(await metric('hearth_realtime_dropped_total'), 0);
    socket.end();
    await until(async () => await metric('hearth_realtime_subscribers') === 0, { what: 'the subscriber is gone' });
});
