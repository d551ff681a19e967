// Static files: the parts of the service's own pages below /assets/, and a web interface in a folder below /ui/.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { gunzipSync, gzipSync } from 'node:zlib';
import { startHearth, until } from './harness.mjs';
import { admin, refused, signIn } from './kit.mjs';

const kib = 1024;
const large = Buffer.alloc(3 * kib * kib + 17, '0123456789abcdef-');
let home;
let h;
before(async () => {
    home = mkdtempSync(join(tmpdir(), 'hearth-ui-'));
    const at = (name) => join(home, 'dist', name);
    mkdirSync(at('assets'), { recursive: true });
    mkdirSync(at('.git'));
    writeFileSync(join(home, 'secret.txt'), 'secret');
    writeFileSync(at('.git/config'), 'secret');
    writeFileSync(at('index.html'), '<!doctype html><title>home</title>');
    writeFileSync(at('assets/app-1a2b.js'), 'console.log("plain");'.repeat(50));
    writeFileSync(at('assets/app-1a2b.js.gz'), gzipSync('console.log("plain");'.repeat(50)));
    writeFileSync(at('data.json'), JSON.stringify({ list: Array(3000).fill('x') }));
    writeFileSync(at('ä b.txt'), 'umlaut');
    writeFileSync(at('large.bin'), large);
    writeFileSync(at('huge.bin'), '');
    truncateSync(at('huge.bin'), 64 * kib * kib + 1);
    writeFileSync(at('limit.bin'), '');
    truncateSync(at('limit.bin'), 64 * kib * kib);
    symlinkSync('../secret.txt', at('link.txt'));
    symlinkSync('..', at('up'));
    h = await startHearth({ settings: { 'http.ui_folder': join(home, 'dist') } });
});
after(async () => {
    await h.stop();
    rmSync(home, { recursive: true, force: true });
});

const get = (path, headers, method = 'GET') => h.api(method, path, undefined, headers);

test('style and script of the session page are files of their own, which its policy allows and nothing else', async () => {
    const page = await get('/session');
    assert.match(page.headers['content-security-policy'], /^default-src 'none';.*style-src 'self'; script-src 'self'; connect-src 'self'$/);
    assert.doesNotMatch(page.text, /<style|<script>|\son\w+=/);
    const parts = [...page.text.matchAll(/(?:href|src)="([^"]+)"/g)].map(([, path]) => path);
    assert.deepEqual(parts.sort(), ['/assets/page.css', '/assets/session.js']);
    for (const [path, type] of [['/assets/page.css', 'text/css; charset=utf-8'], ['/assets/session.js', 'text/javascript; charset=utf-8']]) {
        const { status, headers, text } = await get(path);
        assert.deepEqual([status, headers['content-type'], headers['x-content-type-options'], headers['cache-control'], headers['cross-origin-resource-policy']],
            [200, type, 'nosniff', 'no-cache', 'same-origin']);
        const packed = await get(path, { 'accept-encoding': 'gzip' });
        assert.equal(packed.headers['content-encoding'], 'gzip');
        assert.equal(gunzipSync(packed.bytes).toString(), text);
        assert.notEqual(packed.headers.etag, headers.etag);
        const again = await get(path, { 'if-none-match': headers.etag });
        assert.deepEqual([again.status, again.text, again.headers.etag, again.headers['content-length']], [304, '', headers.etag, undefined]);
    }
    for (const path of ['/assets', '/assets/', '/assets/other.js', '/assets/page.css/', '/assets/Page.css', '/assets/../etc/passwd%20'])
        assert.ok([404, 400].includes((await get(path)).status), path);
});

test('a single-page app: its files, and its index for every other path', async () => {
    for (const path of ['/ui', '/ui/', '/ui/chat/7', '/ui/chat/7/', '/ui/index.html']) {
        const { status, headers, text } = await get(path);
        assert.deepEqual([status, headers['content-type'], headers['cache-control']], [200, 'text/html; charset=utf-8', 'no-cache'], path);
        assert.match(text, /<title>home/);
        assert.match(headers['content-security-policy'], /script-src 'self'.*frame-ancestors 'none'.*require-trusted-types-for 'script'/);
        assert.deepEqual([headers['referrer-policy'], headers['cross-origin-opener-policy'], headers['x-frame-options']], ['no-referrer', 'same-origin', 'DENY']);
    }
    const script = await get('/ui/assets/app-1a2b.js');
    assert.deepEqual([script.status, script.headers['content-type'], script.headers['cache-control'], script.headers.vary],
        [200, 'text/javascript; charset=utf-8', 'public, max-age=31536000, immutable', 'accept-encoding']);
    const packed = await get('/ui/assets/app-1a2b.js', { 'accept-encoding': 'br, gzip' });
    assert.equal(packed.headers['content-encoding'], 'gzip');
    assert.equal(gunzipSync(packed.bytes).toString(), script.text);
    assert.equal((await get('/ui/%C3%A4%20b.txt')).text, 'umlaut');
    for (const path of ['/ui/assets/app-0000.js', '/ui/favicon.ico', '/ui/nothing.png'])
        refused(await get(path), 404, 'NOT_FOUND');
    assert.equal((await get('/ui/data.json', { 'accept-encoding': 'gzip' })).headers['content-encoding'], undefined, 'its ETag names the plain bytes');
});

test('conditional requests, HEAD and Range', async () => {
    const { headers, text } = await get('/ui/index.html');
    assert.match(headers['last-modified'], /^\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT$/);
    for (const held of [{ 'if-none-match': headers.etag }, { 'if-none-match': `"x", W/${headers.etag}` }, { 'if-modified-since': headers['last-modified'] }])
        assert.equal((await get('/ui/', held)).status, 304, JSON.stringify(held));
    assert.equal((await get('/ui/', { 'if-none-match': '"x"', 'if-modified-since': headers['last-modified'] })).status, 200, 'tags come first');
    const head = await get('/ui/index.html', {}, 'HEAD');
    assert.deepEqual([head.status, head.text, head.headers['content-length'], head.headers.etag], [200, '', String(text.length), headers.etag]);
    const part = await get('/ui/index.html', { range: 'bytes=0-3' });
    assert.deepEqual([part.status, part.text, part.headers['accept-ranges']], [200, text, 'none']);
});

test('no path leads out of the folder', async () => {
    const attacks = ['/ui/../secret.txt', '/ui/%2e%2e/secret.txt', '/ui/..%2fsecret.txt', '/ui/assets/..%2f..%2fsecret.txt', '/ui/..%5csecret.txt', '/ui/..;/secret.txt',
        '/ui/%252e%252e/secret.txt', '/ui//etc/passwd', '/ui/%00/../secret.txt', '/ui/index.html%00.js', '/ui/link.txt', '/ui/up/secret.txt', '/ui/.git/config',
        '/ui/./.git/config', '/ui/assets/..', '/ui/proc/self/environ', '/assets/%2e%2e/session', '/assets/..%2f..%2fhearth.db', '/ui/\\..\\secret.txt', '/ui/%c0%ae%c0%ae/secret.txt'];
    for (const path of attacks) {
        const answer = await h.raw(`GET ${path} HTTP/1.1\r\nHost: ${new URL(h.url).host}\r\nConnection: close\r\n\r\n`);
        assert.doesNotMatch(answer, /secret\n|: secret|root:|\r\n\r\nsecret/, path);
        assert.match(answer, /^HTTP\/1\.1 (400|404) |<title>home/, path);
    }
});

test('a large file comes in chunks and whole, above the limit not at all', async () => {
    const { status, headers, bytes } = await get('/ui/large.bin');
    assert.deepEqual([status, headers['transfer-encoding'], headers['content-type'], headers['cache-control'], headers['x-content-type-options']],
        [200, 'chunked', 'application/octet-stream', 'no-cache', 'nosniff']);
    const sha = (data) => createHash('sha256').update(data).digest('hex');
    assert.equal(sha(bytes), sha(large));
    assert.equal((await get('/ui/large.bin', { 'if-none-match': headers.etag })).status, 304);
    const head = await get('/ui/limit.bin', {}, 'HEAD');
    assert.deepEqual([head.status, head.text], [200, '']);
    refused(await get('/ui/huge.bin'), 413, 'TOO_LARGE');
});

test('a client that does not read holds no worker and little memory; one that leaves ends the sending', async (t) => {
    const streams = async () => Number(/^hearth_http_streams (\d+)/m.exec((await get('/metrics')).text)?.[1]);
    const sockets = [];
    t.after(() => sockets.forEach((socket) => socket.destroy()));
    for (let n = 0; n < 40; n++) {
        const socket = net.connect(Number(new URL(h.url).port), '127.0.0.1');
        socket.on('error', () => {});
        socket.write(`GET /ui/limit.bin HTTP/1.1\r\nHost: ${new URL(h.url).host}\r\n\r\n`);
        await new Promise((done) => socket.once('readable', done));
        sockets.push(socket);
    }
    await until(async () => await streams() === 40, { what: 'all are being sent' });
    assert.equal((await get('/ui/')).status, 200);
    for (const socket of sockets)
        socket.destroy();
    await until(async () => await streams() === 0, { what: 'all have ended' });
});

test('a file that shrinks while it is sent ends the connection, so that nobody takes it for whole', async () => {
    const name = join(home, 'dist', 'shrinks.bin');
    writeFileSync(name, '');
    truncateSync(name, 60 * kib * kib);
    const ended = await new Promise((done, failed) => {
        http.get(`${h.url}/ui/shrinks.bin`, { agent: false }, (reply) => {
            reply.once('readable', () => truncateSync(name, 100));
            reply.once('readable', () => reply.resume());
            reply.on('error', (error) => done(error.code));
            reply.on('end', () => done(reply.complete ? 'complete' : 'cut'));
        }).on('error', failed);
    });
    assert.notEqual(ended, 'complete');
});

test('without a folder there is no interface; a change takes effect at once and needs a whole path', async (t) => {
    const other = await startHearth({ t });
    refused(await other.api('GET', '/ui/'), 404, 'NOT_FOUND', /http\.ui_folder/);
    refused(await other.socket('PUT', '/api/settings/http.ui_folder', { value: 'dist' }), 400, 'BAD_SETTING');
    await admin(other, 'PUT', '/api/settings/http.ui_folder', { value: join(home, 'nothing') });
    refused(await other.api('GET', '/ui/'), 404, 'NOT_FOUND');
    await admin(other, 'PUT', '/api/settings/http.ui_folder', { value: join(home, 'dist') });
    assert.equal((await other.api('GET', '/ui/')).status, 200);
    refused(await (await signIn(other)).call('PUT', '/api/settings/http.ui_folder', { value: home }), 403, 'CONFIRMATION_REQUIRED');
});
