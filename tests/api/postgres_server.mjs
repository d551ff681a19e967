// An own PostgreSQL of a test: made in a temporary folder, reached over a Unix socket only, never run by root.
//
//     const pg = await startPostgres(t);
//     pg.psql('work', 'SELECT 1')
import { execFile, spawn, spawnSync } from 'node:child_process';
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { until } from './harness.mjs';

const root = '/usr/lib/postgresql';
const nobody = 65534;

export const postgresPrograms = existsSync(root) && readdirSync(root).map((version) => join(root, version, 'bin')).find((folder) => existsSync(join(folder, 'initdb')));

export const asUser = process.getuid() === 0 ? { uid: nobody, gid: nobody } : {};

function run(program, args, cwd) {
    const { status, stdout, stderr } = spawnSync(join(postgresPrograms, program), args, { ...asUser, cwd, encoding: 'utf8', maxBuffer: 2 ** 28 });
    if (status !== 0)
        throw new Error(`${program} ${args.join(' ')}: ${stderr}`);
    return stdout.trimEnd();
}

// The database `work` belongs to the role `owner`, which is no superuser. settings: of the server, or a function of its folder.
export async function startPostgres(t, settings = {}) {
    const folder = mkdtempSync(join(tmpdir(), 'hearth-pg-'));
    if (asUser.uid)
        chownSync(folder, nobody, nobody);
    run('initdb', ['-D', join(folder, 'data'), '-U', 'root', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync'], folder);
    const set = { listen_addresses: '', fsync: 'off', port: 5432, ...typeof settings === 'function' ? settings(folder) : settings };
    const options = Object.entries(set).flatMap(([key, value]) => ['-c', `${key}=${value}`]);
    const start = () => spawn(join(postgresPrograms, 'postgres'), ['-D', join(folder, 'data'), '-k', folder, ...options], { ...asUser, cwd: folder, stdio: 'ignore' });
    const ended = (child) => new Promise((done) => child.exitCode !== null || child.signalCode !== null ? done() : child.on('exit', done));
    const pg = {
        folder,
        child: start(),
        url: (user = 'owner', database = 'work') => `host=${folder}${set.port === 5432 ? '' : ` port=${set.port}`} dbname=${database} user=${user}`,
        psql: (sql, user = 'owner', database = 'work') => run('psql', ['-XqAt', '-v', 'ON_ERROR_STOP=1', '-d', pg.url(user, database), '-c', sql], folder),
        // As psql(), for statements that may wait for what this process does meanwhile.
        later: (sql, user = 'owner') => promisify(execFile)(join(postgresPrograms, 'psql'), ['-XqAt', '-v', 'ON_ERROR_STOP=1', '-d', pg.url(user), '-c', sql], { ...asUser, cwd: folder }),
        // A session that stays open after these statements, until its stdin ends or it is killed.
        session: (sql, user = 'owner') => {
            const child = spawn(join(postgresPrograms, 'psql'), ['-XqAt', '-d', pg.url(user)], { ...asUser, cwd: folder, stdio: ['pipe', 'ignore', 'ignore'] });
            child.stdin.on('error', () => {});
            child.stdin.write(sql);
            return child;
        },
        ready: () => until(() => spawnSync(join(postgresPrograms, 'pg_isready'), ['-q', '-h', folder, '-p', `${set.port}`], asUser).status === 0, { what: 'PostgreSQL' }),
        // As after a crash: the server recovers at its next start. After a SIGKILL it starts when the last process of the old one has ended.
        async restart(signal = 'SIGQUIT') {
            pg.child.kill(signal);
            await ended(pg.child);
            await until(async () => {
                pg.child = start();
                await Promise.race([ended(pg.child), pg.ready()]);
                return pg.child.exitCode === null && pg.child.signalCode === null;
            }, { what: 'PostgreSQL again', everyMs: 100 });
        },
    };
    t.after(async () => {
        pg.child.kill('SIGQUIT');
        await ended(pg.child);
        rmSync(folder, { recursive: true, force: true });
    });
    await pg.ready();
    pg.psql('CREATE ROLE owner LOGIN', 'root', 'postgres');
    pg.psql('CREATE DATABASE work OWNER owner', 'root', 'postgres');
    return pg;
}
