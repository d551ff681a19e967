// Tables that apps declare, in a project that is reached by its own address: https://REF.supabase.co is a TLS server of this test, behind a proxy of the
// environment, and leads to the hosted service's own small server (@supabase/lite) over PostgreSQL. The account's SQL runs on that PostgreSQL.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import tls from 'node:tls';
import { coldHearth, startHearth, until } from '../api/harness.mjs';
import { admin, refused } from '../api/kit.mjs';
import { postgresPrograms } from '../api/postgres_server.mjs';
import { accountDouble, aProject, someKeys } from './account_double.mjs';
import { hostedProject } from './hosted_project.mjs';
import { startLite } from './lite_server.mjs';

const skip = postgresPrograms ? false : 'no PostgreSQL is installed';
const [ada, bob] = ['6f9619ff-8b86-4d01-b42d-00c04fc964a1', '6f9619ff-8b86-4d01-b42d-00c04fc964b2'];
const id = { type: 'uuid', key: true, default: 'gen_random_uuid()' };
const orders = { id, user_id: { type: 'uuid', default: 'auth.uid()' }, name: { type: 'text', nullable: false } };

function serve(t, server) {
    const open = new Set();
    server.on('connection', (socket) => open.add(socket.on('error', () => {}).on('close', () => open.delete(socket))));
    t.after(() => {
        server.close();
        open.forEach((socket) => socket.destroy());
    });
    return new Promise((done) => server.listen(0, '127.0.0.1', () => done(server.address().port)));
}

function pipeBoth(one, other) {
    for (const socket of [one, other])
        socket.on('error', () => {}).on('close', () => [one, other].forEach((s) => s.destroy()));
    one.pipe(other).pipe(one);
}

// The environment in which this host's name leads to a server of this machine.
async function asHost(t, name, port) {
    const folder = mkdtempSync(join(tmpdir(), 'hearth-tls-'));
    t.after(() => rmSync(folder, { recursive: true, force: true }));
    const [key, cert] = [join(folder, 'key'), join(folder, 'cert')];
    execFileSync('openssl', ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-keyout', key, '-out', cert, '-days', '2', '-subj', `/CN=${name}`, '-addext', `subjectAltName=DNS:${name}`], { stdio: 'ignore' });
    const inner = await serve(t, tls.createServer({ key: readFileSync(key), cert: readFileSync(cert) }, (client) => pipeBoth(client, net.connect(port, '127.0.0.1'))));
    const proxy = http.createServer().on('connect', (request, client) => {
        if (request.url !== `${name}:443`)
            return client.end('HTTP/1.1 403 Forbidden\r\n\r\n');
        const to = net.connect(inner, '127.0.0.1', () => client.write('HTTP/1.1 200 OK\r\n\r\n'));
        pipeBoth(client, to);
    });
    return { https_proxy: `http://127.0.0.1:${await serve(t, proxy)}`, SSL_CERT_FILE: cert };
}

// The account runs SQL as the project's owner, one request as one transaction.
function runSql(pg) {
    return (sql) => {
        pg.psql(`BEGIN;\n${sql}\nCOMMIT;`);
        return [];
    };
}

async function project(t) {
    const pg = await hostedProject(t), lite = await startLite(t, pg);
    const key = (type) => ({ ...someKeys.find((one) => one.type === type), api_key: lite[type] });
    const service = await accountDouble(t, { keys: [key('publishable'), key('secret')], runSql: runSql(pg) });
    const env = { ...await asHost(t, `${aProject.ref}.supabase.co`, new URL(lite.url).port), HEARTH_BACKEND_ACCOUNT_API: service.url };
    const cold = coldHearth({ t, env });
    for (const [args, input] of [[['login', '--token'], service.newToken()], [['use', 'Orders']]]) {
        const done = await cold.cli('backend', ...args, { input });
        assert.equal(done.code, 0, done.stderr);
    }
    const h = await startHearth({ t, dataDir: cold.dataDir, env, settings: { 'backend.kind': 'hosted' } });
    // lite has put its own auth.uid() in the place of the project's.
    const as = (role, sub, sql) => pg.psql(`BEGIN; SET LOCAL ROLE ${role}; SET LOCAL request.jwt.claim.sub = '${sub ?? ''}'; ${sql}; COMMIT`);
    return { pg, service, h, as };
}

const app = (name, schema) => ({ name, config: { backend: { schema } } });
const isThere = (pg, table) => until(() => pg.psql(`SELECT to_regclass('${table}') IS NOT NULL`) === 't', { what: `the table ${table} is made`, everyMs: 50 });

test('what an app declares is made in the project by its account: table, row-level security, rights, realtime', { skip }, async (t) => {
    const { pg, service, h, as } = await project(t);
    await admin(h, 'POST', '/api/apps', app('shop', { orders: { columns: orders }, notes: { columns: { id } } }), 201);
    await isThere(pg, 'orders');
    await isThere(pg, 'notes');
    assert.equal(pg.psql(`SELECT string_agg(tablename, ' ' ORDER BY tablename) FROM pg_publication_tables WHERE pubname = 'supabase_realtime' AND tablename IN ('orders', 'notes')`), 'notes orders');
    assert.equal(pg.psql(`SELECT count(*) FROM pg_class WHERE relname IN ('orders', 'notes') AND relreplident = 'f' AND relrowsecurity`), '2');
    assert.equal(pg.psql(`SELECT string_agg(name, ' ' ORDER BY name) FROM svc_declared`), 'notes orders');

    as('authenticated', ada, `INSERT INTO orders (name) VALUES ('first')`);
    assert.equal(pg.psql('SELECT user_id FROM orders', 'root'), ada);
    assert.deepEqual(['authenticated', 'service_role'].map((role) => as(role, bob, 'SELECT count(*) FROM orders')), ['0', '1']);
    assert.throws(() => as('authenticated', bob, `INSERT INTO orders (name, user_id) VALUES ('x', '${ada}')`), /row-level security/);
    assert.throws(() => as('anon', ada, `INSERT INTO orders (name) VALUES ('x')`), /permission denied|row-level security/);
    as('authenticated', ada, 'INSERT INTO notes DEFAULT VALUES');
    assert.equal(as('authenticated', bob, 'SELECT count(*) FROM notes'), '1', 'a table without user_id is of all who are signed in');
    assert.throws(() => as('authenticated', ada, `INSERT INTO svc_declared VALUES ('x', 'public', 'pg_class')`), /permission denied|row-level security/);

    // Again, with a column more; then by an account that may not write.
    await admin(h, 'POST', '/api/apps', app('shop', { orders: { columns: { ...orders, note: { type: 'text' } } } }), 201);
    await until(() => pg.psql(`SELECT count(*) FROM information_schema.columns WHERE table_name = 'orders' AND column_name = 'note'`) === '1', { what: 'the column is there', everyMs: 50 });
    assert.equal(pg.psql(`SELECT count(*) FROM pg_policy WHERE polrelid = 'orders'::regclass`), '1');
    service.mayWrite = false;
    refused(await h.socket('POST', '/api/apps', app('other', { letters: { columns: { id } } })), 403, 'HOSTED_DENIED', /no table letters .*Access Denied/);
    assert.equal(pg.psql(`SELECT to_regclass('letters') IS NULL`), 't');
});

test('a table that was there before keeps the rules of its owner', { skip }, async (t) => {
    const { pg, h, as } = await project(t);
    pg.psql(`CREATE TABLE orders (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), user_id uuid, name text NOT NULL); REVOKE ALL ON orders FROM authenticated; INSERT INTO orders (name) VALUES ('old')`);
    await admin(h, 'POST', '/api/apps', app('shop', { orders: { columns: { ...orders, note: { type: 'text' } } } }), 201);
    await until(() => pg.psql('SELECT count(*) FROM svc_declared') === '1', { what: 'the table is listed', everyMs: 50 });
    assert.deepEqual(pg.psql(`SELECT relrowsecurity, relreplident FROM pg_class WHERE oid = 'orders'::regclass`).split('|'), ['f', 'f']);
    assert.throws(() => as('authenticated', ada, 'SELECT count(*) FROM orders'), /permission denied/);
    assert.equal(as('service_role', null, 'SELECT count(note IS NULL) FROM orders'), '1');
});
