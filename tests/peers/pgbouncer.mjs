// pgbouncer in transaction mode before a test's PostgreSQL, reached over a Unix socket only, never run by root.
import { spawn } from 'node:child_process';
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { asUser } from '../api/postgres_server.mjs';
import { until } from '../api/harness.mjs';

const program = '/usr/sbin/pgbouncer', socketNumber = 6432;

export const hasPgbouncer = existsSync(program);

// Few sessions for many clients, so that statements of one client meet sessions of others.
export async function startPgbouncer(t, pg, { sessions = 3, mode = 'transaction' } = {}) {
    const path = (name) => join(pg.folder, name);
    writeFileSync(path('pgbouncer.users'), '"owner" ""\n');
    writeFileSync(path('pgbouncer.ini'), `[databases]
work = host='${pg.folder}' dbname=work
[pgbouncer]
listen_port = ${socketNumber}
unix_socket_dir = ${pg.folder}
auth_type = trust
auth_file = ${path('pgbouncer.users')}
pool_mode = ${mode}
default_pool_size = ${sessions}
max_client_conn = 200
stats_users = owner
`);
    const socket = path(`.s.PGSQL.${socketNumber}`);
    let child;
    const start = async () => {
        child = spawn(program, ['-q', path('pgbouncer.ini')], { ...asUser, cwd: pg.folder, stdio: 'ignore' });
        await until(() => existsSync(socket), { what: 'pgbouncer' });
    };
    const stop = async () => {
        const ended = new Promise((done) => child.on('exit', done));
        child.kill('SIGQUIT');
        await ended;
        rmSync(socket, { force: true });
    };
    await start();
    t.after(stop);
    return {
        url: `${pg.url()} port=${socketNumber}`,
        async restart() {
            await stop();
            await start();
        },
    };
}
