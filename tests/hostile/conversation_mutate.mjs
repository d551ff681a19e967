// What the fuzzer does to requests and conversations. Everything is chosen by the random numbers of one seed, so that a seed is a conversation.

import { randomNumbers } from '../tools/random.mjs';

export function randomOf(seed) {
    const next = randomNumbers(seed);
    const below = (n) => Math.floor(next() * n);
    return { below, pick: (list) => list[below(list.length)], chance: (share) => next() < share, bytes: (n) => Buffer.from(Array.from({ length: n }, () => below(256))) };
}

// ---- heads ----

const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'CONNECT', 'PRI', 'get', 'GE T', 'P\0ST', '', 'X'.repeat(300)];
const versions = ['HTTP/1.0', 'HTTP/2.0', 'HTTP/1.2', 'HTTP/1.1 ', 'http/1.1', 'HTTP/11', '', 'HTTP/1.1\r\nx-smuggled: 1', 'HTTP/9999999999.1'];
const targets = [
    (target) => `${target}?limit=-1`, (target) => `${target}?limit=99999999999999999999&offset=1e9`, (target) => target.replace(/\//g, '//'), (target) => `${target}%00`, (target) => `${target}/../../healthz`,
    (target) => `${target}/%2e%2e/%2e%2e/api/keys`, (target) => `${target}%`, (target) => `${target}%zz`, (target) => `${target}%c0%af`, (target) => `${target}\xff\xfe`, (target) => `${target}#fragment`,
    (target) => `http://evil.example${target}`, () => '*', () => '', (target) => `${target}?${'a=b&'.repeat(2000)}`, (target) => `${target}/${'a'.repeat(70_000)}`, (target) => `${target}?x=${'%41'.repeat(3000)}`,
    (target) => target.replace(/[0-9a-f]{8}-/, '../../'), (target) => `${target}\t`, (target) => `/api${target}`, (target) => target.toUpperCase(), (target) => `${target};jsessionid=1`, (target) => `${target}?filter=%7B%22a%22:`,
];
const extraHeaders = [
    ['host', 'evil.example'], ['host', '127.0.0.1:1'], ['host', ''], ['host', 'localhost\0'], ['origin', 'http://evil.example'], ['origin', 'null'], ['origin', 'http://127.0.0.1:9'], ['expect', '100-continue'],
    ['expect', 'a-miracle'], ['connection', 'close'], ['connection', 'upgrade, keep-alive'], ['upgrade', 'h2c'], ['upgrade', 'websocket'], ['content-encoding', 'gzip'], ['accept-encoding', 'gzip'], ['accept', 'text/event-stream'],
    ['content-type', 'text/plain'], ['content-type', 'application/json; charset=utf-16'], ['content-type', ''], ['x-request-id', 'a'.repeat(5000)], ['x-request-id', '"><script>'], ['x-request-id', '\x01\x02'], ['x-forwarded-for', '127.0.0.1'],
    ['cookie', 'a=b; '.repeat(500)], ['cookie', '=;;='], ['authorization', 'Bearer '], ['authorization', 'Basic Og=='], ['authorization', `Bearer ${'x'.repeat(20_000)}`], ['x-app-id', ''], ['x-app-id', '../../etc'], ['x-app-id', '\xff'],
    ['idempotency-key', 'same'], ['last-event-id', '99999999999999999999'], ['last-event-id', '-1'], ['range', 'bytes=0-'], ['te', 'trailers'], ['trailer', 'x-app-id'], ['bad name', 'x'], ['bad\0name', 'x'], ['', 'x'], [' folded', 'x'],
    ['x-http-method-override', 'DELETE'], ['sec-fetch-site', 'cross-site'], ['content-length', '0'], ['content-length', '-1'], ['content-length', '+5'], ['content-length', '0x10'], ['content-length', '5, 5'], ['content-length', '99999999999999999999'],
    ['content-length', '4294967297'], ['transfer-encoding', 'chunked'], ['transfer-encoding', 'gzip, chunked'], ['transfer-encoding', 'chunked, identity'], ['transfer-encoding', 'xchunked'], ['transfer-encoding', ' chunked'],
];

const headMutations = [
    (request, r) => { request.method = r.pick(methods); },
    (request, r) => { request.version = r.pick(versions); },
    (request, r) => { request.target = r.pick(targets)(request.target); },
    (request, r) => { request.target = r.pick(targets)(r.pick(targets)(request.target)); },
    (request, r) => { request.headers.splice(r.below(request.headers.length + 1), 0, r.pick(extraHeaders)); },
    (request, r) => { for (let i = r.below(6); i >= 0; i--) request.headers.push(r.pick(extraHeaders)); },
    (request, r) => { request.headers.splice(r.below(request.headers.length), 1); },
    (request, r) => { request.headers.push(...Array.from({ length: 20 + r.below(300) }, (_, i) => [`x-${i}`, 'y'.repeat(r.below(300))])); },
    (request, r) => { if (request.headers.length) request.headers.push(r.pick(request.headers)); },
    (request, r) => { request.headers = request.headers.map(([name, value]) => [r.chance(0.5) ? name.toUpperCase() : name, r.chance(0.1) ? ` \t${value} ` : value]); },
    (request, r) => { request.lineEnd = r.pick(['\n', '\r', '\r\r\n', '\n\r']); },
    (request, r) => { request.framing = r.pick(['chunked', 'chunked', 'short', 'long', 'none', 'both', 'badChunk', 'hugeChunk', 'trailer', 'extension', 'unfinished']); },
];

// ---- bodies ----

const values = [
    null, true, 0, -1, 1e308, 9007199254740993, -0.5, '', 'a', '\0', '\ud800', '\u202e', '\x9b2J', '../../x', 'x'.repeat(70_000), '日本語', [], {}, [[]], Array(3000).fill(0), Array(200).fill({ a: 1 }), { __proto__x: 1 }, '{{app}}', '00000000-0000-4000-8000-000000000000',
    'http://127.0.0.1:1/', 'file:///etc/passwd', '${IFS}', "'; DROP TABLE tasks; --", '%s%s%n', 'NaN',
];
const rawValues = ['1e400', '-', '01', 'NaN', 'tru', '"\\u12"', '"\\ud800"', '"\xff"', '[1,]', '{"a":1,"a":2}', '"unfinished', '999999999999999999999999', '-9223372036854775809', '18446744073709551616', '1.7976931348623159e308'];

// Every place of a JSON value: [holder, name].
function places(value, found = []) {
    if (value !== null && typeof value === 'object')
        for (const name of Object.keys(value)) {
            found.push([value, name]);
            places(value[name], found);
        }
    return found;
}

function changedJson(body, r, change) {
    let value;
    try {
        value = JSON.parse(body);
    } catch {
        return body;
    }
    const found = places(value);
    if (found.length === 0)
        return body;
    return change(value, r.pick(found), found);
}

const deep = (n, open, close) => `${open.repeat(n)}${close.repeat(n)}`;
const bodyMutations = [
    (body, r) => changedJson(body, r, (value, [holder, name]) => { holder[name] = r.pick(values); return JSON.stringify(value); }),
    (body, r) => changedJson(body, r, (value, [holder, name]) => { holder[name] = r.pick(values); return JSON.stringify(value); }),
    (body, r) => changedJson(body, r, (value, [holder, name]) => { if (Array.isArray(holder)) holder.splice(Number(name), 1); else delete holder[name]; return JSON.stringify(value); }),
    (body, r) => changedJson(body, r, (value, [holder, name], found) => { const [other, its] = r.pick(found); holder[name] = structuredClone(other[its]); return JSON.stringify(value); }),
    (body, r) => changedJson(body, r, (value, [holder, name]) => { holder[name] = 'RAW-VALUE'; return JSON.stringify(value).replace('"RAW-VALUE"', () => r.pick(rawValues)); }),
    (body, r) => changedJson(body, r, (value, [holder, name]) => { holder[`${name}2`] = holder[name]; return JSON.stringify(value).replace(`${name}2`, name); }),
    (body, r) => changedJson(body, r, (value, [holder, name]) => { holder[name] = 'RAW-VALUE'; return JSON.stringify(value).replace('"RAW-VALUE"', deep(10 + r.below(3000), r.pick(['[', '{"a":']), '')); }),
    (body, r) => changedJson(body, r, (value, [holder, name]) => { holder[name] = 'RAW-VALUE'; return JSON.stringify(value).replace('"RAW-VALUE"', deep(10 + r.below(3000), '[', ']')); }),
    (body, r) => changedJson(body, r, (value, [holder, name]) => { holder[name] = Array.isArray(holder[name]) ? Array.from({ length: 500 }, () => holder[name][0]) : [holder[name]]; return JSON.stringify(value); }),
    (body, r) => changedJson(body, r, (value) => { for (let i = 0; i < 2000; i++) value[`m${i}`] = i; return JSON.stringify(value); }),
    (body) => `\ufeff${body}`, (body) => `${body}${body}`, () => '', () => '[]', () => 'null', () => '"text"',
    (body, r) => { const bytes = Buffer.from(body); for (let i = 1 + r.below(4); i > 0 && bytes.length; i--) bytes[r.below(bytes.length)] ^= 1 << r.below(8); return bytes; },
    (body, r) => { const at = r.below(body.length + 1); return Buffer.concat([body.subarray(0, at), r.bytes(1 + r.below(20)), body.subarray(at)]); },
    (body, r) => body.subarray(0, r.below(body.length + 1)),
    (body, r) => { const at = r.below(body.length + 1); return Buffer.concat([body.subarray(0, at), body.subarray(at + r.below(8))]); },
    (body, r) => Buffer.concat([body, Buffer.alloc(r.below(200_000), 0x20)]),
];

// ---- one request ----

export function mutateRequest(request, r, source) {
    const changed = { ...request, headers: [...request.headers] };
    for (let i = 1 + r.below(3); i > 0; i--) {
        const what = r.below(10);
        if (what < 4)
            r.pick(headMutations)(changed, r);
        else if (what < 8 && changed.body)
            changed.body = Buffer.from(r.pick(bodyMutations)(changed.body, r));
        else if (what < 9)
            changed.headers = [...changed.headers.filter(([name]) => !/^(x-app-id|x-api-key|authorization|cookie|x-hearth-proof)$/i.test(name)), ...Object.entries(r.pick(Object.values(source.callers)))];
        else
            changed.body = r.pick(source.plain).body ?? Buffer.from('{}');
    }
    return changed;
}

function chunksOf(body, r, kind) {
    const pieces = [];
    for (let at = 0; at < body.length;) {
        const n = Math.min(body.length - at, 1 + r.below(body.length));
        const size = n.toString(16) + (kind === 'extension' ? `;x="${'y'.repeat(r.below(50))}"` : '');
        pieces.push(Buffer.from(`${size}\r\n`), body.subarray(at, at + n), Buffer.from('\r\n'));
        at += n;
    }
    const ends = { badChunk: r.pick(['g\r\n', '-1\r\n\r\n', ' 5\r\nhello\r\n0\r\n\r\n', '5\nhello\n0\n\n', '0x5\r\n']), hugeChunk: r.pick(['FFFFFFFFFFFFFFFF\r\n', '7FFFFFFF\r\n', '10000000000000000\r\n', `${'0'.repeat(5000)}5\r\n`]),
        trailer: '0\r\nx-app-id: forged\r\ncontent-length: 5\r\n\r\n', unfinished: '' };
    return Buffer.concat([...pieces, Buffer.from(ends[kind] ?? '0\r\n\r\n')]);
}

export function bytesOf(request, r) {
    const { method, target, version, headers, body, framing, lineEnd } = request;
    const chunked = ['chunked', 'badChunk', 'hugeChunk', 'trailer', 'extension', 'unfinished', 'both'].includes(framing);
    const length = { length: body?.length, short: Math.max(0, (body?.length ?? 0) - 1 - r.below(9)), long: (body?.length ?? 0) + 1 + r.below(99), both: body?.length ?? 0 }[framing];
    const all = [...headers];
    if (length !== undefined)
        all.push(['content-length', String(length)]);
    if (chunked)
        all.push(['transfer-encoding', 'chunked']);
    const head = `${method} ${target} ${version}${lineEnd}${all.map(([name, value]) => `${name}: ${value}${lineEnd}`).join('')}${lineEnd}`;
    return Buffer.concat([Buffer.from(head, 'latin1'), chunked ? chunksOf(body ?? Buffer.alloc(0), r, framing) : body ?? Buffer.alloc(0)]);
}

// ---- whole conversations ----

// One connection: requests one after another or all at once, whole or in pieces, and how it ends.
function makeConnection(source, r) {
    const requests = Array.from({ length: 1 + (r.chance(0.4) ? r.below(6) : 0) }, () => {
        const plain = r.pick(source.plain);
        return bytesOf(r.chance(0.25) ? plain : mutateRequest(plain, r, source), r);
    });
    const sent = r.chance(0.3) ? [Buffer.concat(requests)] : requests;
    const actions = [];
    for (let bytes of sent) {
        if (r.chance(0.05))
            bytes = Buffer.from(bytes.map((byte) => r.chance(0.01) ? r.below(256) : byte));
        const cuts = r.chance(0.3) ? Array.from({ length: 1 + r.below(4) }, () => r.below(bytes.length + 1)).sort((a, b) => a - b) : [];
        for (const [i, at] of [0, ...cuts].entries()) {
            actions.push(['send', bytes.subarray(at, cuts[i] ?? bytes.length)]);
            if (r.chance(0.2))
                actions.push(['pause', r.below(12)]);
        }
        if (r.chance(0.3))
            actions.push(['answer']);
    }
    const end = r.below(10);
    if (end < 2)
        actions.splice(r.below(actions.length + 1), actions.length, ['reset']);
    else if (end < 4)
        actions.push(['end']);
    else if (end < 5)
        actions.unshift(['deaf']);
    return actions;
}

// The conversation of a seed: {seed, connections: [actions], turns: [index of a connection]}.
export function makeConversation(source, seed) {
    const r = randomOf(seed);
    const connections = Array.from({ length: 1 + (r.chance(0.3) ? r.below(3) : 0) }, () => makeConnection(source, r));
    const turns = connections.flatMap((actions, i) => actions.map(() => i));
    for (let i = turns.length - 1; i > 0; i--) {
        const other = r.below(i + 1);
        [turns[i], turns[other]] = [turns[other], turns[i]];
    }
    return { seed, connections, turns };
}
