// What stands between an app and its model elsewhere: nginx as a plain proxy, and Portkey's gateway. Both before the same provider, each on one core.
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { buildFolder, diskFolder, freePort, hearth, listening, pin, program, root } from './programs.mjs';

const chat = { messages: [{ role: 'user', content: 'Say something.' }] };
const openaiPath = '/v1/chat/completions';

const nginxHead = (folder) => `
daemon off; master_process off; worker_processes 1; pid ${folder}/pid; error_log stderr error;
events { worker_connections 4096; }`;
const nginxPaths = (folder) => `access_log off; keepalive_requests 1000000000; keepalive_timeout 600;
    client_body_temp_path ${folder}/body; proxy_temp_path ${folder}/proxy; fastcgi_temp_path ${folder}/fastcgi;
    uwsgi_temp_path ${folder}/uwsgi; scgi_temp_path ${folder}/scgi;`;

async function nginx(core, http) {
    const folder = diskFolder('nginx');
    const port = await freePort();
    mkdirSync(join(folder, 'logs'));
    writeFileSync(join(folder, 'nginx.conf'), `${nginxHead(folder)}\nhttp { ${nginxPaths(folder)} ${http(port)} }`);
    const child = program('nginx', ['-p', folder, '-c', join(folder, 'nginx.conf')]);
    await listening(child, { port, host: '127.0.0.1' });
    pin(child.pid, core);
    return { port, pid: child.pid };
}

// Answers every chat with the same whole completion: nginx again, as the provider.
export const wholeProvider = (core, completion) => nginx(core, (port) => `default_type application/json;
    server { listen 127.0.0.1:${port}; location / { return 200 '${completion}'; } }`);

// {name, port, pid, path, body, headers} of each way to the provider at providerPort.
export const direct = (providerPort) => ({ port: providerPort, path: openaiPath, headers: {}, body: { ...chat, model: 'bench' } });

export async function nginxProxy(core, providerPort) {
    const proxy = await nginx(core, (port) => `
    upstream provider { server 127.0.0.1:${providerPort}; keepalive 64; }
    server { listen 127.0.0.1:${port}; location / { proxy_pass http://provider; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off; } }`);
    return { ...direct(providerPort), ...proxy };
}

export async function portkey(core, providerPort) {
    const port = await freePort();
    const child = program(process.execPath, [join(root, 'bench/node_modules/@portkey-ai/gateway/build/start-server.js'), '--headless', `--port=${port}`],
        { env: { PATH: process.env.PATH, NODE_ENV: 'production', TRUSTED_CUSTOM_HOSTS: '127.0.0.1,localhost' }, stdio: ['ignore', 'ignore', 'pipe'] });
    await listening(child, { port, host: '127.0.0.1' });
    pin(child.pid, core);
    const headers = { 'x-portkey-provider': 'openai', 'x-portkey-custom-host': `http://127.0.0.1:${providerPort}/v1`, authorization: 'Bearer bench' };
    return { ...direct(providerPort), port, pid: child.pid, headers };
}

export async function hearthBefore(core, providerPort, options = {}) {
    const h = await hearth({ ...options, env: { GENERIC_OPENAI_BASE_URL: `http://127.0.0.1:${providerPort}/v1`, GENERIC_OPENAI_MODEL: 'bench' } });
    const headers = { authorization: `Bearer ${await h.key()}` };
    pin(h.pid, core);
    return { port: Number(new URL(h.url).port), pid: h.pid, path: '/sdk/llm/chat', headers, body: chat };
}

// The provider of streamed chats (bench/stream.c), on a core.
export async function streamProvider(core, options) {
    const child = program(join(buildFolder, 'bench/bench_stream'), [...options, 'provide']);
    const port = await new Promise((done) => child.stdout.once('data', (line) => done(Number(line))));
    pin(child.pid, core);
    return port;
}

export function pinned(core, command, args, options) {
    return execFileSync('taskset', ['-c', String(core), command, ...args], { encoding: 'utf8', ...options });
}
