// Model servers of this machine as other projects' HTTP servers would be them: nginx (kept connections) and Python's http.server (HTTP/1.0, closed, and HTTP/1.1 in chunks).
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { startHearth, until } from '../api/harness.mjs';
import { freePort } from '../tools/ports.mjs';

const completion = JSON.stringify({ id: 'c', object: 'chat.completion', created: 1, model: 'm', choices: [{ index: 0, message: { role: 'assistant', content: 'Well.' }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 } });

const python = (version) => `
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = '${version}'
    def log_message(self, *args): pass
    def do_GET(self): self.send_error(404)
    def do_POST(self):
        self.rfile.read(int(self.headers['content-length']))
        body = ${JSON.stringify(completion)}.encode()
        self.send_response(200)
        self.send_header('content-type', 'application/json')
        if self.protocol_version == 'HTTP/1.1': self.send_header('transfer-encoding', 'chunked')
        self.end_headers()
        for at in range(0, len(body), 50):
            piece = body[at:at + 50]
            self.wfile.write(b'%x\\r\\n%s\\r\\n' % (len(piece), piece) if self.protocol_version == 'HTTP/1.1' else piece)
        if self.protocol_version == 'HTTP/1.1': self.wfile.write(b'0\\r\\n\\r\\n')
http.server.ThreadingHTTPServer(('127.0.0.1', int(sys.argv[1])), Handler).serve_forever()`;

const nginx = (dir, port) => `
daemon off; master_process off; pid ${dir}/pid; error_log stderr error; events { worker_connections 64; }
http { access_log off; default_type application/json; keepalive_requests 2;
    ${['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${dir}/tmp/${name};`).join(' ')}
    server { listen 127.0.0.1:${port}; location / { return 200 '${completion}'; } } }`;

async function startUpstream(t, command) {
    const dir = mkdtempSync(join(tmpdir(), 'hearth-upstream-'));
    const port = await freePort();
    mkdirSync(join(dir, 'tmp'));
    const child = spawn(...command(dir, port), { stdio: 'ignore' });
    const ended = new Promise((done) => child.once('exit', done));
    t.after(async () => {
        child.kill('SIGKILL');
        await ended;
        rmSync(dir, { recursive: true });
    });
    await until(async () => fetch(`http://127.0.0.1:${port}/`).then(() => true, () => false), { what: 'the upstream answers' });
    return port;
}

const servers = {
    nginx: (dir, port) => {
        writeFileSync(join(dir, 'nginx.conf'), nginx(dir, port));
        return ['nginx', ['-p', dir, '-c', join(dir, 'nginx.conf')]];
    },
    'Python over HTTP/1.0': (_, port) => ['python3', ['-c', python('HTTP/1.0'), String(port)]],
    'Python in chunks': (_, port) => ['python3', ['-c', python('HTTP/1.1'), String(port)]],
};

for (const [name, command] of Object.entries(servers)) {
    test(`${name} answers chats in turn and at once`, async (t) => {
        const port = await startUpstream(t, command);
        const h = await startHearth({ t, env: { GENERIC_OPENAI_BASE_URL: `http://localhost:${port}/v1`, GENERIC_OPENAI_MODEL: 'm' }, settings: { 'llm.retries': 0 } });
        const dev = await h.asKey();
        const ask = async () => assert.equal((await dev('POST', '/sdk/llm/chat', { messages: [{ role: 'user', content: 'hi' }] })).status, 200);
        for (let i = 0; i < 5; i++)
            await ask();
        await Promise.all(Array.from({ length: 12 }, ask));
    });
}
