// The realtime client of the hosted backend against servers that mean harm, or are only out of order: a scripted server whose handshake and frames the test
// writes itself. After each attack the client lives, and is served again when the server behaves.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import net from 'node:net';
import { test } from 'node:test';
import { Arrivals, until } from '../api/harness.mjs';
import { binary, close, frame, ping, pong, text } from '../api/realtime.mjs';
import { hostedClient } from '../tools/hosted_client.mjs';

const accept = (key) => createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64');
const topicOf = (table) => `realtime:svc:${table}`;
const bare = (opcode, payload, more = {}) => frame(opcode, payload, { mask: false, ...more });
const say = (joinRef, ref, topic, event, payload) => bare(text, JSON.stringify([joinRef, ref, topic, event, payload]));
const change = (id, data = {}, at = '2026-11-23T10:00:00.000Z') => say(null, null, topicOf('orders'), 'postgres_changes',
    { ids: [7], data: { schema: 'public', table: 'orders', type: 'INSERT', commit_timestamp: at, columns: [], record: { id }, errors: null, ...data } });

// The frames of the client: {opcode, payload, isMasked}.
function reader(onFrame) {
    let rest = Buffer.alloc(0);
    return (piece) => {
        rest = Buffer.concat([rest, piece]);
        for (;;) {
            const short = rest.length >= 2 ? rest[1] & 127 : 0, head = short === 126 ? 4 : short === 127 ? 10 : 2;
            if (rest.length < head)
                return;
            const n = short === 126 ? rest.readUInt16BE(2) : short === 127 ? Number(rest.readBigUInt64BE(2)) : short;
            const masked = rest[1] >> 7 === 1, from = head + (masked ? 4 : 0);
            if (rest.length < from + n)
                return;
            const key = rest.subarray(head, head + 4);
            const payload = Buffer.from(rest.subarray(from, from + n)).map((byte, i) => (masked ? byte ^ key[i % 4] : byte));
            onFrame({ opcode: rest[0] & 15, isMasked: masked, payload: Buffer.from(payload) });
            rest = rest.subarray(from + n);
        }
    };
}

// A server for one test. on.head(key, tcp) gives the bytes that answer the upgrade; on.message(m, tcp) those that answer a message; undefined: as a good
// server does.
async function serve(t, on = {}) {
    const seen = { frames: new Arrivals(), messages: new Arrivals(), sockets: [], heads: [] };
    const good = {
        head: (key) => `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept(key)}\r\n\r\n`,
        message: ([joinRef, ref, topic, event, payload]) => {
            if (event === 'phx_join') {
                const changes = payload.config.postgres_changes.map((c) => ({ id: 7, ...c }));
                return [say(joinRef, ref, topic, 'phx_reply', { status: 'ok', response: { postgres_changes: changes } }),
                    ...payload.config.presence.enabled ? [say(null, null, topic, 'presence_state', {})] : [],
                    ...changes.length ? [say(null, null, topic, 'system', { extension: 'postgres_changes', status: 'ok', message: 'Subscribed to PostgreSQL' })] : []];
            }
            return event === 'access_token' || event === 'broadcast' ? [] : [say(joinRef, ref, topic, 'phx_reply', { status: 'ok', response: {} })];
        },
    };
    const server = net.createServer((tcp) => {
        let head = Buffer.alloc(0), isUpgraded = false;
        seen.sockets.push(tcp);
        const answer = (bytes) => [bytes].flat().forEach((b) => tcp.writable && tcp.write(b));
        const read = reader((f) => {
            seen.frames.push(f);
            if (f.opcode === close)
                tcp.end(bare(close, f.payload.subarray(0, 2)));
            if (f.opcode !== text)
                return;
            const m = JSON.parse(f.payload);
            seen.messages.push(m);
            answer(on.message?.(m, tcp) ?? good.message(m));
        });
        tcp.on('error', () => {});
        tcp.on('data', (piece) => {
            if (isUpgraded)
                return read(piece);
            head = Buffer.concat([head, piece]);
            if (!head.includes('\r\n\r\n'))
                return;
            isUpgraded = true;
            seen.heads.push(head.toString());
            answer(on.head?.(/sec-websocket-key: (\S+)/i.exec(head)?.[1], tcp) ?? good.head(/sec-websocket-key: (\S+)/i.exec(head)[1]));
        });
    });
    await new Promise((done) => server.listen(0, '127.0.0.1', done));
    t.after(() => { seen.sockets.forEach((s) => s.destroy()); server.close(); });
    return { ...seen, on, url: `http://127.0.0.1:${server.address().port}`, last: () => seen.sockets.at(-1), good };
}

async function watching(t, on, options) {
    const server = await serve(t, on);
    const c = hostedClient(t, server.url, 'key&1', '2.0.0', options);
    await c.run('watch orders');
    return { server, c };
}

// The gap is reported a moment after the table has become live.
const isLive = (c) => until(async () => {
    const { state, gaps } = (await c.run('monitor')).tables[0];
    return state === 'live' && c.reports.items.filter((r) => r.is === 'gap').length === gaps;
}, { what: 'the table is live, and its gaps are reported' });

test('the handshake is that of RFC 6455, and the frames are masked', async (t) => {
    const { server, c } = await watching(t);
    await isLive(c);
    assert.match(server.heads[0], /^GET \/realtime\/v1\/websocket\?apikey=key%261&vsn=2\.0\.0 HTTP\/1\.1\r\nHost: 127\.0\.0\.1:\d+\r\n/);
    assert.match(server.heads[0], /\r\nSec-WebSocket-Version: 13\r\n/);
    assert.doesNotMatch(server.heads[0], /Extensions/);
    assert.ok(server.frames.items.every((f) => f.isMasked));
    server.last().write(bare(ping, 'are you there'));
    assert.equal((await server.frames.wait((f) => f.opcode === pong)).payload.toString(), 'are you there');
    await c.quit();
    assert.equal((await server.frames.wait((f) => f.opcode === close)).payload.readUInt16BE(0), 1000);
});

test('answers that are no upgrade are told, and the client goes on trying', async (t) => {
    const good = 'HTTP/1.1 101 Switching Protocols\r\n', up = 'Upgrade: websocket\r\nConnection: Upgrade\r\n';
    const cases = [
        [() => 'HTTP/1.1 401 Unauthorized\r\nContent-Length: 25\r\n\r\n{"error":"Token expired"}', /status 401.*Token expired/],
        [() => 'HTTP/1.1 403 Forbidden\r\nConnection: close\r\n\r\n', /status 403|closed|did not/, true],
        [() => `${good}${up}\r\n`, /RFC 6455/],
        [() => `${good}${up}Sec-WebSocket-Accept: ${accept('another')}\r\n\r\n`, /RFC 6455/],
        [(key) => `${good}Connection: Upgrade\r\nUpgrade: h2c\r\nSec-WebSocket-Accept: ${accept(key)}\r\n\r\n`, /RFC 6455/],
        [(key) => `${good}${up}Sec-WebSocket-Extensions: permessage-deflate\r\nSec-WebSocket-Accept: ${accept(key)}\r\n\r\n`, /RFC 6455/],
        [(key) => `${good}${up}Sec-WebSocket-Protocol: x\r\nSec-WebSocket-Accept: ${accept(key)}\r\n\r\n`, /RFC 6455/],
        [() => 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n', /status 200/],
        [() => 'HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n', /status 302/],
        [() => `${good}${'x: y\r\n'.repeat(300)}\r\n`, /too many headers/],
        [() => `${good}x: ${'y'.repeat(70_000)}\r\n\r\n`, /too many headers/],
        [() => 'nonsense\r\n\r\n', /does not speak HTTP/],
        [(key, tcp) => { tcp.destroy(); return ''; }, /closed the connection/],
    ];
    for (const [head, wanted, ends] of cases) {
        const on = { head: (key, tcp) => { const answer = head(key, tcp); setImmediate(() => ends && tcp.end()); return answer; } };
        const { server, c } = await watching(t, on);
        const { error } = await until(async () => { const m = await c.run('monitor'); return m.error && m; }, { what: String(wanted) });
        assert.match(error, wanted);
        delete server.on.head;
        await isLive(c);
    }
});

test('frames that break RFC 6455 or a limit end the connection, and the client comes back with a gap', async (t) => {
    const cases = {
        'a masked frame': frame(text, '[]'),
        'reserved bits': bare(text, '[]', { rsv: 4 }),
        'an unknown opcode': bare(3, ''),
        'a continuation of nothing': bare(0, 'x'),
        'a text within a text': Buffer.concat([bare(text, 'x', { fin: false }), bare(text, 'x')]),
        'a long ping': bare(ping, 'x'.repeat(126)),
        'a ping in parts': bare(ping, 'x', { fin: false }),
        'text that is not UTF-8': bare(text, Buffer.from([0xff, 0xfe])),
        'a length of 2^63': bare(text, '', { length: 2n ** 63n }),
        'a message above the limit': bare(text, '', { length: 5_000_001 }),
        'a thousand fragments': Buffer.concat([bare(text, 'x', { fin: false }), ...Array.from({ length: 1100 }, () => bare(0, 'x', { fin: false }))]),
        'a close': bare(close, Buffer.from([3, 233])),
        'a close with a forbidden code': bare(close, Buffer.from([3, 237])),
        'nothing, and an end': null,
    };
    const { server, c } = await watching(t);
    for (const [what, bytes] of Object.entries(cases)) {
        await isLive(c);
        const from = c.reports.items.length, n = server.sockets.length;
        if (bytes)
            server.last().write(bytes);
        else
            server.last().destroy();
        await c.reports.wait((r) => r.is === 'gap', { from, what: `a gap after ${what}` });
        assert.ok(server.sockets.length > n, what);
        assert.ok((await c.run('monitor')).error, what);
    }
});

test('fragments are put together, in any pieces', async (t) => {
    const { server, c } = await watching(t);
    await isLive(c);
    const whole = JSON.stringify([null, null, topicOf('orders'), 'postgres_changes', { ids: [7], data: { schema: 'public', table: 'orders', type: 'INSERT', record: { id: 'ü€😀' } } }]);
    const bytes = Buffer.from(whole), parts = [];
    for (let i = 0; i < bytes.length; i += 7)
        parts.push(bare(i ? 0 : text, bytes.subarray(i, i + 7), { fin: i + 7 >= bytes.length }), bare(ping, 'x'));
    for (const byte of Buffer.concat(parts))
        server.last().write(Buffer.from([byte]));
    assert.equal((await c.reports.wait((r) => r.is === 'change')).record.id, 'ü€😀');
});

test('events that are repeated, unknown or malformed are counted and left out; those after them arrive', async (t) => {
    const { server, c } = await watching(t);
    await isLive(c);
    const odd = [change('a'), change('a'), bare(text, '{}'), bare(text, 'null'), bare(text, '[[[[[]]]]]'), bare(text, `${'['.repeat(2000)}${']'.repeat(2000)}`),
        bare(text, ''), bare(binary, ''), bare(binary, Buffer.from([4, 255, 255, 255, 1])), bare(binary, Buffer.from([3, 0, 0, 0, 0, 0, 0])),
        say(null, null, 'realtime:nobody', 'broadcast', {}), say(null, null, topicOf('orders'), 'presence_state', { x: 1 }),
        say(null, null, topicOf('orders'), 'postgres_changes', { ids: [8], data: {} }), say('1', '1', topicOf('orders'), 'phx_reply', { status: 'ok' }),
        say(null, '99', 'phoenix', 'phx_reply', {}), change('b', { type: 'TRUNCATE' }), change('c', { record: [] }), change('z')];
    server.last().write(Buffer.concat(odd));
    await c.reports.wait((r) => r.is === 'change' && r.record.id === 'z');
    assert.deepEqual(c.reports.items.filter((r) => r.is === 'change').map((r) => r.record.id), ['a', 'z']);
    const { ignored, state, connects } = await c.run('monitor');
    assert.deepEqual([state, connects], ['live', 1]);
    assert.ok(ignored >= 11, `${ignored} ignored`);
});

test('a server without replies to heartbeats is left', async (t) => {
    const { server, c } = await watching(t, { message: ([, , topic]) => (topic === 'phoenix' ? [] : undefined) });
    await isLive(c);
    await until(async () => server.sockets.length > 1, { what: 'another connection' });
    assert.match((await c.run('monitor')).error, /heartbeat without a reply/);
});

test('a server that says nothing, or ok to nothing, leaves the table without life but with a reason', async (t) => {
    const { c } = await watching(t, { message: ([joinRef, ref, topic, event]) => (event === 'phx_join' ? [say(joinRef, ref, topic, 'phx_reply', { status: 'ok', response: {} })] : undefined) });
    await c.run('settle');
    assert.match((await c.run('monitor')).tables[0].error, /does not match the subscription/);
    const silent = await watching(t, { message: ([, , , event]) => (event === 'phx_join' ? [] : undefined) });
    await silent.c.run('settle');
    assert.match((await silent.c.run('monitor')).tables[0].error, /did not reply to the subscription in time/);
});

test('a connection lost during a join is made anew', async (t) => {
    let n = 0;
    const { server, c } = await watching(t, { message: ([, , , event], tcp) => (event === 'phx_join' && n++ < 3 ? (tcp.destroy(), []) : undefined) });
    await isLive(c);
    assert.equal(server.sockets.length, 4);
});

test('presence that flaps, and more of it than is kept, is no harm', async (t) => {
    const server = await serve(t);
    const c = hostedClient(t, server.url, 'key', '2.0.0');
    await c.run('track lin-a alpha');
    await c.run('settle');
    const topic = 'realtime:svc_presence';
    const meta = (i) => ({ [`m${i}`]: { metas: [{ phx_ref: `r${i}`, machine_id: `m${i}` }] } });
    for (let round = 0; round < 200; round++)
        server.last().write(Buffer.concat([say(null, null, topic, 'presence_diff', { joins: meta(1), leaves: {} }), say(null, null, topic, 'presence_diff', { joins: {}, leaves: meta(1) })]));
    server.last().write(say(null, null, topic, 'presence_diff', { joins: Object.assign({}, ...Array.from({ length: 3000 }, (_, i) => meta(i))), leaves: {} }));
    await until(async () => (await c.run('list')).machines.length === 500, { what: 'as many as are kept' });
    server.last().write(say(null, null, topic, 'presence_state', meta(9)));
    await until(async () => (await c.run('list')).machines.map((m) => m.machine_id).join() === 'm9', { what: 'the state replaces all' });
    assert.equal(server.messages.items.filter(([, , , event, payload]) => event === 'presence' && payload.event === 'track').length, 1, 'tracked once');
});

test('a flood of large messages does not keep the client from closing', async (t) => {
    const { server, c } = await watching(t);
    await isLive(c);
    const large = change('x'.repeat(1 << 20));
    let isOver = false;
    const flood = () => { while (!isOver && server.last().write(large)); };
    server.last().on('drain', flood);
    flood();
    await c.reports.wait((r) => r.is === 'change');
    const { code } = await c.quit();
    isOver = true;
    assert.equal(code, 0);
});
