// A TCP proxy before a PostgreSQL server: it passes bytes, swallows them, breaks connections, or is not there.
//
//     const proxy = await startProxy(t, pg);
//     proxy.url();             // of the database `work`, as its owner
//     proxy.hang();            // whatever comes is swallowed, also of new connections
//     proxy.pass();            // bytes pass again; connections that lost some are cut
//     proxy.cut();             // breaks every connection
//     await proxy.close();     // connections are refused
//     await proxy.open();      // on the same port
import net from 'node:net';
import { join } from 'node:path';

export async function startProxy(t, pg, { isOpen = true } = {}) {
    const pairs = new Set();
    let isHanging = false, port = 0;

    const relay = (from, to, pair) => from.on('data', (bytes) => {
        if (!isHanging)
            return to.write(bytes);
        pair.hasLost = true;
    });
    const accept = (client) => {
        const server = net.connect(join(pg.folder, '.s.PGSQL.5432'));
        const pair = { client, server, hasLost: false };
        const end = () => {
            pairs.delete(pair);
            client.destroy();
            server.destroy();
        };
        pairs.add(pair);
        for (const socket of [client, server])
            socket.on('error', end).on('close', end);
        relay(client, server, pair);
        relay(server, client, pair);
    };
    let listener = null;
    const proxy = {
        url: (user = 'owner', database = 'work') => `host=127.0.0.1 port=${port} dbname=${database} user=${user}`,
        hang() { isHanging = true; },
        pass() {
            isHanging = false;
            for (const { client, hasLost } of pairs)
                if (hasLost)
                    client.destroy();
        },
        cut: () => pairs.forEach(({ client }) => client.destroy()),
        open: () => new Promise((done, failed) => {
            listener = net.createServer(accept).on('error', failed);
            listener.listen(port, '127.0.0.1', () => done(port = listener.address().port));
        }),
        close: () => new Promise((done) => {
            listener.close(done);
            proxy.cut();
        }),
    };
    await proxy.open();
    if (!isOpen)
        await proxy.close();
    t.after(() => listener.listening && proxy.close());
    return proxy;
}
