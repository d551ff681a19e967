// A TCP proxy of a test's own, before any server: it passes bytes, or does to a connection what networks and their middle boxes do.
//
//     const proxy = await startTcpProxy(t, () => '/run/x/.s.PGSQL.5432');     // a path or a port, asked anew for each connection
//     proxy.port;
//     proxy.hang();            // whatever comes is swallowed, also of new connections
//     proxy.pass();            // bytes pass again; connections that lost some are cut
//     proxy.cut();             // breaks every connection
//     await proxy.close();     // connections are refused
//     await proxy.open();      // on the same port
//     proxy.storm(fateOf);     // until calm(): each connection, also of those that are open, has the fate that fateOf() gives
//     proxy.calm();            // no fates any more; connections that lost some bytes, or are half-closed, are cut
//
// A fate is {is, isToServer, after, ms}: it meets the bytes of one direction when `after` of them have passed.
//     cut        both ends are reset, in the middle of a message when it comes so
//     halfClose  the receiver is told that the sender has ended; the other direction goes on
//     lose       what follows is swallowed, and nobody is told
//     delay      each piece is held for ms
//     double     a second connection to the server is sent the same bytes, and its answers are swallowed: each request arrives twice. Decided when the
//                connection begins. (Bytes within one connection are not repeated: TCP does not, and no protocol without a checksum could tell.)
import net from 'node:net';
import { freePort } from './ports.mjs';

//
// Bytes may be changed on their way: reader(cut) is asked for each connection and gives {toServer, toClient}, functions of the bytes that came, which
// give those that go on; cut() breaks the connection.

export async function startTcpProxy(t, target, { isOpen = true, reader = () => ({}) } = {}) {
    const pairs = new Set(), counts = {};
    const port = await freePort();
    let isHanging = false, fateOf = null, listener = null;

    const strike = {
        cut: (pair) => pair.end(),
        halfClose(pair, to) {
            pair.hasLost = true;
            to.end();
        },
        lose(pair) { pair.hasLost = true; },
        delay: () => {},
        double: () => {},
    };
    // Whether the fate has met this direction of the connection.
    const isMet = ({ fate }, isToServer, nBytes) => Boolean(fate) && fate.isToServer === isToServer && nBytes > fate.after;
    const meet = (pair, to) => {
        if (!pair.isStruck) {
            pair.isStruck = true;
            counts[pair.fate.is] = (counts[pair.fate.is] ?? 0) + 1;
            strike[pair.fate.is](pair, to);
        }
        return pair.fate.is;
    };
    const relay = (from, to, pair, isToServer) => {
        let nBytes = 0;
        const pass = (bytes) => {
            if (!to.destroyed && !to.writableEnded && !to.write(bytes)) {
                from.pause();
                to.once('drain', () => from.resume());
            }
            if (isToServer && pair.double && !pair.double.destroyed)
                pair.double.write(bytes);
        };
        from.on('data', (bytes) => {
            if (isHanging) {
                pair.hasLost = true;
                return;
            }
            nBytes += bytes.length;
            bytes = (isToServer ? pair.reader.toServer : pair.reader.toClient)?.(bytes) ?? bytes;
            if (!bytes.length || !pairs.has(pair))
                return;
            const what = isMet(pair, isToServer, nBytes) ? meet(pair, to) : 'pass';
            if (what === 'pass' || what === 'double')
                return pass(bytes);
            if (what === 'delay') {
                from.pause();
                setTimeout(() => {
                    pass(bytes);
                    from.resume();
                }, pair.fate.ms);
            } else if (what === 'cut') {
                pass(bytes.subarray(0, bytes.length >> 1));
            }
        });
        from.on('end', () => to.end());
    };
    const giveFate = (pair, isNew) => {
        pair.fate = fateOf?.(isNew) ?? null;
        pair.isStruck = false;
    };
    const connect = () => {
        const to = target();
        return net.connect({ allowHalfOpen: true, ...typeof to === 'string' ? { path: to } : { port: to, host: '127.0.0.1' } });
    };
    const accept = (client) => {
        const server = connect();
        const pair = { client, server, hasLost: false, double: null };
        pair.end = () => {
            pairs.delete(pair);
            [client, server, pair.double].forEach((socket) => socket?.destroy());
        };
        pair.reader = reader(() => pair.end());
        pairs.add(pair);
        giveFate(pair, true);
        if (pair.fate?.is === 'double') {
            pair.double = connect();
            pair.double.on('error', () => {}).on('data', () => {});
        }
        for (const socket of [client, server])
            socket.on('error', pair.end).on('close', pair.end);
        relay(client, server, pair, true);
        relay(server, client, pair, false);
    };
    const cutThose = (which) => [...pairs].filter(which).forEach((pair) => pair.end());
    const proxy = {
        counts, port,
        hang() { isHanging = true; },
        pass() {
            isHanging = false;
            cutThose(({ hasLost }) => hasLost);
        },
        cut: () => cutThose(() => true),
        storm(fates) {
            fateOf = fates;
            pairs.forEach((pair) => giveFate(pair, false));
        },
        calm() {
            fateOf = null;
            pairs.forEach((pair) => giveFate(pair, false));
            cutThose(({ hasLost, double }) => hasLost || double);
        },
        open: () => new Promise((done, failed) => {
            listener = net.createServer({ allowHalfOpen: true }, accept).on('error', failed);
            listener.listen(port, '127.0.0.1', done);
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

// Fates as networks deal them, one connection in three, by a Chance of tests/chaos/chaos.mjs.
export function badWeather(chance) {
    return (isNew) => {
        const is = chance.weighted({ none: 10, cut: 3, halfClose: 2, lose: 1, delay: 2, double: isNew ? 1 : 0 });
        // 1 byte to 64 KiB, each order of magnitude as often as the other.
        const after = is === 'double' ? 0 : Math.floor(2 ** (chance.unit() * 16));
        return is === 'none' ? null : { is, isToServer: is === 'double' || chance.unit() < 0.5, after, ms: chance.between(1, 60) };
    };
}
