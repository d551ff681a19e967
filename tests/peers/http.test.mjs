// HTTP clients and a proxy no one here wrote: curl, nginx in front, wrk, Node's own fetch.
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { startHearth, until } from '../api/harness.mjs';
import { newKey } from '../api/kit.mjs';
import { freePort } from '../tools/ports.mjs';

const run = promisify(execFile);
const curl = async (...args) => (await run('curl', ['-sS', '--max-time', '120', ...args], { maxBuffer: 64 << 20 })).stdout;

// nginx that passes everything on, ended with the test.
async function startNginx(t, upstream) {
    const dir = mkdtempSync(join(tmpdir(), 'hearth-nginx-'));
    const port = await freePort();
    mkdirSync(join(dir, 'tmp'));
    writeFileSync(join(dir, 'nginx.conf'), `
        daemon off; worker_processes 1; pid ${dir}/pid; error_log stderr warn;
        ${process.getuid() === 0 ? 'user root;' : ''}
        events { worker_connections 256; }
        http {
            access_log off; client_max_body_size 64m;
            ${['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${dir}/tmp/${name};`).join(' ')}
            upstream hearth { server ${upstream}; keepalive 8; }
            server {
                listen 127.0.0.1:${port};
                location / { proxy_pass http://hearth; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host $http_host; proxy_buffering off; }
            }
        }`);
    const child = spawn('nginx', ['-p', dir, '-c', join(dir, 'nginx.conf')], { stdio: 'ignore' });
    const ended = new Promise((done) => child.once('exit', done));
    t.after(async () => {
        child.kill('SIGTERM');
        await ended;
        rmSync(dir, { recursive: true });
    });
    const url = `http://127.0.0.1:${port}`;
    await until(async () => (await fetch(`${url}/healthz`).catch(() => null))?.ok, { what: 'nginx answers' });
    return url;
}

test('curl keeps one connection for many requests', async (t) => {
    const h = await startHearth({ t });
    const asks = Array.from({ length: 20 }, () => ['-w', '%{num_connects} %{http_code}\n', '-o', '/dev/null', `${h.url}/healthz`, '--next']).flat();
    const lines = (await curl(...asks.slice(0, -1))).trim().split('\n');
    assert.equal(lines.length, 20);
    assert.ok(lines.every((line) => line.endsWith(' 200')), lines.join());
    assert.equal(lines.reduce((sum, line) => sum + Number(line.split(' ')[0]), 0), 1, 'one connection in all');
});

test('curl reads compressed answers, HEAD and a chunked upload that waits for 100 Continue', async (t) => {
    const h = await startHearth({ t });
    const { key } = await newKey(h);
    const auth = ['-H', `authorization: Bearer ${key}`];
    const plain = await curl(`${h.url}/openapi.json`);
    assert.equal(await curl('--compressed', `${h.url}/openapi.json`), plain);
    assert.match(await curl('-I', ...auth, `${h.url}/agents`), /^HTTP\/1\.1 200 OK\r\n/);
    const body = JSON.stringify({ raw_data: { text: 'x'.repeat(100_000) } });
    const file = join(h.dataDir, 'body.json');
    writeFileSync(file, body);
    const reply = JSON.parse(await curl(...auth, '-H', 'content-type: application/json', '-H', 'transfer-encoding: chunked',
        '-H', 'expect: 100-continue', '--data-binary', `@${file}`, `${h.url}/activities`));
    assert.equal(reply.data.raw_data.text.length, 100_000);
});

test('behind nginx every answer is the same', async (t) => {
    const h = await startHearth({ t });
    const { key } = await newKey(h);
    const url = await startNginx(t, new URL(h.url).host);
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
    const made = await (await fetch(`${url}/activities`, { method: 'POST', headers, body: '{"raw_data":{"n":1}}' })).json();
    const direct = await (await fetch(`${h.url}/activities/${made.data.id}`, { headers })).json();
    const proxied = await (await fetch(`${url}/activities/${made.data.id}`, { headers })).json();
    assert.deepEqual(proxied, direct);
    const missing = await fetch(`${url}/nowhere`, { headers });
    assert.deepEqual([missing.status, (await missing.json()).code], [404, 'NOT_FOUND']);
});

test('wrk finds no answer but 200 and no broken connection', async (t) => {
    const h = await startHearth({ t });
    const { key } = await newKey(h);
    const { stdout } = await run('wrk', ['-t1', '-c40', '-d1s', '--timeout', '60s', '-H', `authorization: Bearer ${key}`, `${h.url}/sdk/ping`]);
    assert.doesNotMatch(stdout, /Non-2xx|Socket errors/);
    assert.ok(Number(/(\d+) requests in/.exec(stdout)[1]) > 100, stdout);
});
