// A PostgreSQL cluster of the bench's own: temporary folder, Unix socket only, never as root.
import { execFileSync, spawnSync } from 'node:child_process';
import { chownSync, existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { until } from '../../tests/api/harness.mjs';
import { diskFolder, listening, program } from './programs.mjs';

const port = 5432;                      // names the socket file in the cluster's own folder; no TCP
const versions = '/usr/lib/postgresql';

function binaries() {
    if (!existsSync(versions))
        throw new Error('PostgreSQL is not installed: script/bootstrap bench');
    return join(versions, readdirSync(versions).sort((a, b) => a - b).at(-1), 'bin');
}

// PostgreSQL refuses root: its package made an account.
function account(folder) {
    if (process.getuid() !== 0)
        return {};
    const id = (flag) => Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }));
    const owner = { uid: id('-u'), gid: id('-g') };
    chownSync(folder, owner.uid, owner.gid);
    return owner;
}

// {host, port, user, database} as `pg` wants them; settings of the server by name. Durable as Debian sets it up: fsync, synchronous_commit.
export async function postgres(settings = {}) {
    const folder = diskFolder('postgres');
    const owner = { ...account(folder), cwd: folder, env: { PATH: process.env.PATH, LC_ALL: 'C.UTF-8', PGTZ: 'UTC' } };
    const data = join(folder, 'data');
    const made = spawnSync(join(binaries(), 'initdb'), ['-D', data, '-U', 'bench', '-A', 'trust', '-E', 'UTF8'], { ...owner, encoding: 'utf8' });
    if (made.status !== 0)
        throw new Error(`initdb: ${made.stderr}`);
    const options = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
    const child = program(join(binaries(), 'postgres'), ['-D', data, '-p', String(port), '-k', folder, '-c', 'listen_addresses=', ...options], owner);
    child.stop = () => child.end('SIGINT');
    await listening(child, { path: join(folder, `.s.PGSQL.${port}`) });
    await until(() => spawnSync(join(binaries(), 'pg_isready'), ['-q', '-h', folder, '-p', String(port)], owner).status === 0, { what: 'PostgreSQL is ready' });
    return { host: folder, port, user: 'bench', database: 'postgres' };
}
