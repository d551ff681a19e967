// TLS and passwords of the PostgreSQL backend: the sslmodes of libpq, ~/.pgpass and the sealed password; where the password is not to be seen.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chownSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { coldHearth, startHearth } from '../api/harness.mjs';
import { admin } from '../api/kit.mjs';
import { asUser, postgresPrograms, startPostgres } from '../api/postgres_server.mjs';
import { freePort } from '../tools/ports.mjs';

const skip = postgresPrograms ? false : 'no PostgreSQL is installed';
const password = 'hunter2-and-more';

// A certificate of "localhost" that no authority signed. PostgreSQL wants the key to be its own user's.
function makeCertificate(folder) {
    const { status, stderr } = spawnSync('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2', '-subj', '/CN=localhost',
        '-addext', 'subjectAltName=DNS:localhost', '-keyout', join(folder, 'server.key'), '-out', join(folder, 'server.crt')], { encoding: 'utf8' });
    assert.equal(status, 0, stderr);
    for (const name of ['server.key', 'server.crt'])
        asUser.uid && chownSync(join(folder, name), asUser.uid, asUser.gid);
}

// Over TCP: TLS and a password, nothing else.
const rules = 'local all all trust\nhostssl all all 127.0.0.1/32 scram-sha-256\n';

async function begin(t) {
    const port = await freePort();
    const pg = await startPostgres(t, (folder) => {
        makeCertificate(folder);
        writeFileSync(join(folder, 'rules'), rules);
        return { listen_addresses: '127.0.0.1', port, ssl: 'on', ssl_cert_file: join(folder, 'server.crt'), ssl_key_file: join(folder, 'server.key'), hba_file: join(folder, 'rules') };
    });
    pg.psql(`ALTER ROLE owner PASSWORD '${password}'`, 'root');
    const h = coldHearth({ t });
    assert.equal((await h.cli('key', 'new')).code, 0);
    const url = (host, more) => `postgresql://owner@${host}:${port}/work?${more}`;
    const env = (address, more = {}) => ({ HEARTH_BACKEND_KIND: 'postgres', HEARTH_BACKEND_URL: address, ...more });
    const check = (address, more) => h.cli('backend', 'check', { env: env(address, more) });
    return { pg, h, port, url, check, env, root: join(pg.folder, 'server.crt') };
}

// The place of libpq's password file is the home folder's owner's; the tests' service has a home of its own, so the file is named.
function writePgpass(h, port, secret = password) {
    const file = join(h.home, 'pgpass');
    writeFileSync(file, `127.0.0.1:${port}:work:owner:${secret}\nlocalhost:${port}:work:owner:${secret}\n`, { mode: 0o600 });
    return { PGPASSFILE: file };
}

const noSession = /missing: table/; // connected: the set-up is what is missing

test('the sslmodes of libpq decide what is checked', { skip }, async (t) => {
    const { h, port, url, check, root } = await begin(t), pgpass = writePgpass(h, port);
    const works = async (address) => assert.match((await check(address, pgpass)).stdout, noSession, address);
    const fails = async (address, why) => {
        const result = await check(address, pgpass);
        assert.notEqual(result.code, 0);
        assert.match(result.stderr, why, address);
        assert.doesNotMatch(result.stdout, noSession, address);
    };
    await works(url('127.0.0.1', 'sslmode=require'));
    await works(url('localhost', `sslmode=verify-full&sslrootcert=${root}`));
    await works(url('127.0.0.1', `sslmode=verify-ca&sslrootcert=${root}`));
    await fails(url('127.0.0.1', `sslmode=verify-full&sslrootcert=${root}`), /does not match host name/);
    await fails(url('localhost', 'sslmode=verify-full'), /root certificate file .* does not exist/);
    await fails(url('localhost', 'sslmode=disable'), /no pg_hba\.conf entry|no encryption/);
});

test('the password comes from the password file or the sealed one, and a wrong one is told', { skip }, async (t) => {
    const { h, port, url, check } = await begin(t), address = url('127.0.0.1', 'sslmode=require');
    assert.match((await check(address)).stderr, /no password supplied/);
    assert.match((await check(address, writePgpass(h, port, 'wrong'))).stderr, /password authentication failed/);
    assert.match((await check(address, writePgpass(h, port))).stdout, noSession);
    assert.match((await check(address, { PGPASSWORD: password })).stdout, noSession);
    assert.equal((await h.cli('backend', 'password', { input: `${password}\n` })).code, 0);
    assert.match((await check(address)).stdout, noSession);
    assert.match((await check(address, writePgpass(h, port, 'wrong'))).stdout, noSession); // the sealed one goes first
    const refused = await h.cli('settings', 'set', 'backend.url', url('127.0.0.1', `sslmode=require&sslpassword=${password}`));
    assert.match(refused.stderr, /must not hold a password/);
    assert.ok(!refused.stderr.includes(password));
});

test('~/.pgpass of the user is read', { skip }, async (t) => {
    const { h, port, url, check } = await begin(t), pgpass = join(h.home, '.pgpass');
    writeFileSync(pgpass, `127.0.0.1:${port}:work:owner:${password}\n`, { mode: 0o600 });
    assert.match((await check(url('127.0.0.1', 'sslmode=require'), { HOME: h.home })).stdout, noSession);
});

function allFiles(folder) {
    return readdirSync(folder, { withFileTypes: true, recursive: true }).filter((one) => one.isFile()).map((one) => join(one.parentPath ?? one.path, one.name));
}

test('a running service shows its password nowhere', { skip }, async (t) => {
    const { h, url, env } = await begin(t), address = url('127.0.0.1', 'sslmode=require');
    assert.equal((await h.cli('backend', 'password', { input: `${password}\n` })).code, 0);
    const setup = await h.cli('backend', 'setup', { env: env(address) });
    assert.equal(setup.code, 0, setup.stderr);
    const service = await startHearth({ t, dataDir: h.dataDir, settings: { 'backend.kind': 'postgres', 'backend.url': address, 'log.level': 'debug' } });
    const shown = [readFileSync(`/proc/${service.pid}/cmdline`, 'utf8'), readFileSync(`/proc/${service.pid}/environ`, 'utf8'), service.log.join('\n')];
    for (const path of ['/api/settings', '/api/backend/check', '/api/backend/monitor', '/api/status', '/api/audit', '/sdk/database/config', '/readyz'])
        shown.push(JSON.stringify((await service.socket('GET', path)).body ?? ''));
    shown.push((await service.cli('doctor')).stdout, (await service.cli('backend', 'sql')).stdout);
    for (const text of shown)
        assert.ok(!text.includes(password));
    for (const file of allFiles(h.dataDir))
        assert.ok(!readFileSync(file).includes(password), file);
    assert.equal((await admin(service, 'GET', '/api/backend/check')).missing?.length ?? 0, 0);
});
