// The same answer from nginx (`return 200`) and from Express, each on one core.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { diskFolder, freePort, listening, pin, program, root } from './programs.mjs';

const nginxConf = (port, folder, body) => `
daemon off; master_process off; worker_processes 1; pid ${folder}/pid; error_log stderr error;
events { worker_connections 4096; }
http {
    access_log off; keepalive_requests 1000000000; keepalive_timeout 600; default_type application/json;
    client_body_temp_path ${folder}/body; proxy_temp_path ${folder}/proxy; fastcgi_temp_path ${folder}/fastcgi;
    uwsgi_temp_path ${folder}/uwsgi; scgi_temp_path ${folder}/scgi;
    server { listen 127.0.0.1:${port}; location = /sdk/ping { return 200 '${body}'; } }
}`;

export async function nginx(core, body) {
    const folder = diskFolder('nginx');
    const port = await freePort();
    mkdirSync(join(folder, 'logs'));
    writeFileSync(join(folder, 'nginx.conf'), nginxConf(port, folder, body));
    const child = program('nginx', ['-p', folder, '-c', join(folder, 'nginx.conf')]);
    await listening(child, { port, host: '127.0.0.1' });
    pin(child.pid, core);
    return { url: `http://127.0.0.1:${port}`, pid: child.pid };
}

export async function express(core) {
    const port = await freePort();
    const child = program(process.execPath, [join(root, 'bench/lib/express_app.mjs'), String(port)], { env: { PATH: process.env.PATH, NODE_ENV: 'production' } });
    await listening(child, { port, host: '127.0.0.1' });
    pin(child.pid, core);
    return { url: `http://127.0.0.1:${port}`, pid: child.pid };
}
