// @supabase/lite, the hosted service's own small server (REST and sign-in in TypeScript), over a PostgreSQL of the test. It answers to the same client
// as the face, and has no realtime part.
//
//     const lite = await startLite(t, pg);      // {url, publishable, secret, jwt_secret}
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { until } from '../api/harness.mjs';
import { freePort } from '../tools/ports.mjs';

const installed = resolve(import.meta.dirname, '../node_modules/@supabase/lite/dist/cli/index.js');
const key = (kind) => `sb_${kind}_${randomBytes(16).toString('base64url')}_${randomBytes(6).toString('base64url')}`;

// The test's PostgreSQL listens on a socket of the file system only; its port on the loopback.
async function bridge(ends, pg) {
    const open = new Set();
    const server = net.createServer((from) => {
        const to = net.connect(join(pg.folder, '.s.PGSQL.5432'));
        from.pipe(to).pipe(from);
        for (const socket of [from, to]) {
            open.add(socket);
            socket.on('error', () => [from, to].forEach((one) => one.destroy()));
            socket.on('close', () => open.delete(socket));
        }
    });
    await new Promise((done) => server.listen(0, '127.0.0.1', done));
    ends.push(() => {
        server.close();
        open.forEach((socket) => socket.destroy());
    });
    return server.address().port;
}

async function endAll(ends) {
    while (ends.length)
        await ends.pop()();
}

// A server that cannot be started leaves nothing open: whoever waits for the end of the process gets the server's own words.
export async function startLite(t, pg, options = {}) {
    const ends = [];
    t.after(() => endAll(ends));
    try {
        return await start(ends, pg, options);
    } catch (error) {
        await endAll(ends);
        throw error;
    }
}

async function start(ends, pg, { schemas = ['public'], program = installed }) {
    const folder = mkdtempSync(join(tmpdir(), 'hearth-lite-'));
    ends.push(() => rmSync(folder, { recursive: true, force: true }));
    const port = await freePort(), keys = { publishable: key('publishable'), secret: key('secret'), jwt_secret: randomBytes(24).toString('hex') };
    mkdirSync(join(folder, 'supabase'));
    writeFileSync(join(folder, 'supabase/config.toml'), `[api]\nport = ${port}\nschemas = ${JSON.stringify(schemas)}\n[db]\ndriver = "postgres"\nurl = "postgres://root@127.0.0.1:${await bridge(ends, pg)}/work"\n` +
        `[auth]\nenabled = true\njwt_secret = "${keys.jwt_secret}"\npublishable_key = "${keys.publishable}"\nsecret_key = "${keys.secret}"\n`);
    const child = spawn(process.execPath, [program, '--no-telemetry', 'start', '--no-admin'],
        { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'], env: { PATH: process.env.PATH, HOME: folder, DO_NOT_TRACK: '1', NO_COLOR: '1' } });
    const said = [];
    for (const stream of [child.stdout, child.stderr])
        stream.on('data', (bytes) => said.push(String(bytes)));
    const ended = new Promise((done) => child.once('exit', done));
    ends.push(async () => {
        child.kill('SIGTERM');
        await ended;
    });
    const url = `http://127.0.0.1:${port}`;
    await until(async () => {
        if (child.exitCode !== null || child.signalCode !== null)
            throw new Error(`lite ended: ${said.join('')}`);
        return fetch(`${url}/rest/v1/`, { headers: { apikey: keys.secret } }).then(() => true, () => false);
    }, { what: 'lite', everyMs: 100 });
    return { url, ...keys, said };
}
