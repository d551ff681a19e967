// What the tests of the realtime protocol share: keys, tokens of users, rows of users, and a WebSocket whose frames the test writes itself.
import { createHmac, randomBytes, randomUUID } from 'node:crypto';
import net from 'node:net';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { Arrivals } from './harness.mjs';
import { admin } from './kit.mjs';

// {publishable, secret, jwt_secret}
export function faceKeys(h) { return admin(h, 'GET', '/api/backend/keys'); }

// A user of the face, and the headers of that user's requests.
export async function faceUser(h) {
    const { publishable, jwt_secret: secret } = await faceKeys(h);
    const password = randomUUID(), { user } = await admin(h, 'POST', '/api/backend/users', { email: `${randomUUID()}@example.org`, password }, 201);
    return { user, password, headers: { apikey: publishable, authorization: `Bearer ${token(secret, user.id)}` } };
}

const part = (value) => Buffer.from(JSON.stringify(value)).toString('base64url');

// A token of HS256. `more` replaces claims; a claim that is undefined is left out.
export function token(secret, subject, more = {}, header = { alg: 'HS256', typ: 'JWT' }) {
    const now = Math.floor(Date.now() / 1000);
    const text = `${part(header)}.${part({ role: 'authenticated', aud: 'authenticated', sub: subject, iat: now, exp: now + 3600, ...more })}`;
    return `${text}.${createHmac('sha256', secret).update(text).digest('base64url')}`;
}

// A row as a program of the user writes it; its id.
export function insertAs(h, userId, rawData = {}) {
    const db = new DatabaseSync(join(h.dataDir, 'backend.db'), { timeout: 20_000 });
    const id = randomUUID();
    db.prepare('INSERT INTO svc_activities (id, user_id, raw_data) VALUES (?, ?, ?)').run(id, userId, JSON.stringify(rawData));
    db.close();
    return id;
}

// One frame as a client writes it. mask: false leaves the payload as it is and the bit unset.
export function frame(opcode, payload = '', { fin = true, mask = true, rsv = 0, length } = {}) {
    const bytes = Buffer.from(payload);
    const n = length ?? bytes.length;
    const head = [(fin ? 0x80 : 0) | rsv << 4 | opcode];
    const bit = mask ? 0x80 : 0;
    if (n < 126)
        head.push(bit | n);
    else if (n < 65536)
        head.push(bit | 126, n >> 8, n & 255);
    else
        head.push(bit | 127, ...[7, 6, 5, 4, 3, 2, 1, 0].map((i) => Number(BigInt(n) >> BigInt(8 * i) & 255n)));
    if (!mask)
        return Buffer.concat([Buffer.from(head), bytes]);
    const key = randomBytes(4);
    return Buffer.concat([Buffer.from(head), key, bytes.map((byte, i) => byte ^ key[i % 4])]);
}

export const text = 1, binary = 2, close = 8, ping = 9, pong = 10;

// The frames of a server out of bytes that come in pieces; `bytes` is the whole frame as it came.
export function frameReader(onFrame) {
    let rest = Buffer.alloc(0);
    return (piece) => {
        rest = Buffer.concat([rest, piece]);
        for (;;) {
            if (rest.length < 2)
                return;
            const short = rest[1] & 127;
            const head = short === 126 ? 4 : short === 127 ? 10 : 2;
            if (rest.length < head)
                return;
            const n = short === 126 ? rest.readUInt16BE(2) : short === 127 ? Number(rest.readBigUInt64BE(2)) : short;
            if (rest.length < head + n)
                return;
            onFrame({ opcode: rest[0] & 15, fin: rest[0] >> 7 === 1, isMasked: rest[1] >> 7 === 1, payload: rest.subarray(head, head + n), bytes: rest.subarray(0, head + n) });
            rest = rest.subarray(head + n);
        }
    };
}

export function handshake(h, path, headers = {}) {
    const all = { Host: `127.0.0.1:${h.port}`, Connection: 'Upgrade', Upgrade: 'websocket', 'Sec-WebSocket-Version': '13',
        'Sec-WebSocket-Key': randomBytes(16).toString('base64'), ...headers };
    const lines = Object.entries(all).filter(([, value]) => value !== undefined).map(([name, value]) => `${name}: ${value}\r\n`);
    return `GET ${path} HTTP/1.1\r\n${lines.join('')}\r\n`;
}

// A connection after its upgrade: {tcp, frames, messages, ended, write, send, ask}. `messages` are arrays [join_ref, ref, topic, event, payload], whatever
// the version; ended resolves with {code, reason} of the close frame, or null without one.
export async function openSocket(h, { key, vsn = '2.0.0', headers, path } = {}) {
    const tcp = net.connect(h.port, '127.0.0.1');
    const frames = new Arrivals(), messages = new Arrivals();
    let ending = null, head = Buffer.alloc(0), isUpgraded = false, ref = 0;
    const read = frameReader((f) => {
        frames.push(f);
        if (f.opcode === close)
            ending = { code: f.payload.length ? f.payload.readUInt16BE(0) : 1005, reason: f.payload.subarray(2).toString() };
        if (f.opcode !== text)
            return;
        const m = JSON.parse(f.payload);
        messages.push(Array.isArray(m) ? m : [m.join_ref, m.ref, m.topic, m.event, m.payload]);
    });
    const ended = new Promise((done) => tcp.on('close', () => {
        frames.end('the socket ended');
        messages.end('the socket ended');
        done(ending);
    }));
    tcp.on('error', () => {});
    tcp.on('end', () => tcp.end());
    await new Promise((done, failed) => {
        tcp.on('data', (piece) => {
            if (isUpgraded)
                return read(piece);
            head = Buffer.concat([head, piece]);
            const at = head.indexOf('\r\n\r\n');
            if (at < 0)
                return;
            isUpgraded = head.subarray(0, 12).toString() === 'HTTP/1.1 101';
            if (!isUpgraded)
                return failed(Object.assign(new Error(head.toString()), { head: head.toString() }));
            done();
            read(head.subarray(at + 4));
        });
        tcp.on('close', () => failed(new Error(`closed before the upgrade: ${head}`)));
        tcp.write(handshake(h, path ?? `/realtime/v1/websocket?apikey=${key}&vsn=${vsn}`, headers));
    });
    const socket = {
        tcp, frames, messages, ended, head: head.toString(),
        write: (...bytes) => new Promise((done) => tcp.write(Buffer.concat(bytes.map((b) => Buffer.from(b))), done)),
        send(topic, event, payload, joinRef = null, own = String(++ref)) {
            const m = vsn === '2.0.0' ? [joinRef, own, topic, event, payload] : { topic, event, payload, ref: own, join_ref: joinRef };
            tcp.write(frame(text, JSON.stringify(m)));
            return own;
        },
        // Sends and waits for the reply.
        async ask(topic, event, payload, joinRef) {
            const own = socket.send(topic, event, payload, joinRef);
            return (await messages.wait(([, to, , name]) => to === own && name === 'phx_reply', { what: `the reply to ${event} of ${topic}` }))[4];
        },
        join(topic, config = {}, more = {}) { return socket.ask(topic, 'phx_join', { config, ...more }, String(ref + 1)); },
        next: (topic, event, options) => messages.wait((m) => m[2] === topic && m[3] === event, { what: `${event} of ${topic}`, ...options }),
        end: () => tcp.destroy(),
    };
    return socket;
}
