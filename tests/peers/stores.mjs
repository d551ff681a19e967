// Peers that keep vectors, each private to one test: PGlite with pgvector, Chroma's own server, and a double of Qdrant.
//
//     const { h, dev } = await registered(t, await startChroma(t));
import { PGlite } from '@electric-sql/pglite';
import { vector } from '@electric-sql/pglite-pgvector';
import { PGLiteSocketServer } from '@electric-sql/pglite-socket';
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { startHearth, until } from '../api/harness.mjs';
import { freePort } from '../tools/ports.mjs';

export const base = '/sdk/llm/vectors';

export const register = (dev, { provider, config }) => dev('POST', `${base}/register`, { provider, config });

// Hearth with that store: {h, dev, reply}; dev() is api() with a developer key, reply is the registering's.
export async function registered(t, store) {
    const h = await startHearth({ t });
    const dev = await h.asKey();
    const reply = await register(dev, store);
    assert.equal(reply.status, 200, reply.text);
    return { h, dev, reply };
}

export async function startPostgres(t) {
    const db = await PGlite.create({ extensions: { vector } });
    const port = await freePort();
    const server = new PGLiteSocketServer({ db, port, host: '127.0.0.1', maxConnections: 20 });
    await server.start();
    t.after(async () => {
        await server.stop();
        await db.close();
    });
    const url = `postgresql://postgres:s3cret@127.0.0.1:${port}/postgres`;
    return { db, url, provider: 'pgvector', config: { connectionString: url, tableName: 'test_vectors' } };
}

// `chroma run` of the npm package chromadb. Its newer bindings want a newer C library than Debian 12 has: they are pinned to 1.0.1.
export async function startChroma(t) {
    const folder = mkdtempSync(join(tmpdir(), 'hearth-chroma-'));
    const port = await freePort();
    const program = resolve(import.meta.dirname, '../node_modules/chromadb/dist/cli.mjs');
    const child = spawn(process.execPath, [program, 'run', '--path', folder, '--host', '127.0.0.1', '--port', String(port)],
        { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'], env: { PATH: process.env.PATH, HOME: folder, ANONYMIZED_TELEMETRY: 'False' } });
    const said = [];
    for (const stream of [child.stdout, child.stderr])
        stream.on('data', (bytes) => said.push(String(bytes)));
    const ended = new Promise((done) => child.once('exit', done));
    t.after(async () => {
        child.kill('SIGKILL');
        await ended;
        rmSync(folder, { recursive: true, force: true });
    });
    const url = `http://127.0.0.1:${port}`;
    await until(async () => {
        assert.equal(child.exitCode, null, said.join(''));
        return fetch(`${url}/api/v2/heartbeat`).then((reply) => reply.ok, () => false);
    }, { deadlineMs: 60_000, what: 'Chroma answers', everyMs: 50 });
    return { url, provider: 'chroma', config: { url } };
}
