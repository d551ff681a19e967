// The TCP proxy of tests/tools/tcp_proxy.mjs before a PostgreSQL server. url() is of the database `work`, as its owner.
import { join } from 'node:path';
import { startTcpProxy } from '../tools/tcp_proxy.mjs';

export async function startProxy(t, pg, options) {
    const proxy = await startTcpProxy(t, () => join(pg.folder, '.s.PGSQL.5432'), options);
    proxy.url = (user = 'owner', database = 'work') => `host=127.0.0.1 port=${proxy.port} dbname=${database} user=${user}`;
    return proxy;
}
