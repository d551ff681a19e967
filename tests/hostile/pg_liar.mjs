// A PostgreSQL that lies now and then: a proxy before a real server that passes everything on, except the statements for which the test says a lie.
//
//     const db = await startLiar(t, pg);                                   // db.url() of the database `work`, as its owner
//     db.lies.push([/ORDER BY created_at/, Buffer.concat([begun, described(['x']), row([1]), ready()])]);
//     db.inject(message('N', ...));                                        // to every connection, unasked
//
// A lie is bytes, SILENCE, or a function (socket) that writes itself.
import net from 'node:net';
import { join } from 'node:path';
import { SILENCE } from './pg_double.mjs';
import { hostileServer } from './kit.mjs';

const sslRequest = 80877103;

const textAt = (bytes, at) => bytes.subarray(at, bytes.indexOf(0, at)).toString();

class Talk {
    names = new Map();          // of prepared statements
    group = [];                 // the messages since the last Sync
    bytes = Buffer.alloc(0);
    isStarted = false;
    sql = '';

    constructor(client, upstream, state) {
        Object.assign(this, { client, upstream, state });
    }

    take(piece) {
        this.bytes = Buffer.concat([this.bytes, piece]);
        while (this.isStarted ? this.#takeMessage() : this.#takeStartup());
    }

    #cut(n) {
        const cut = this.bytes.subarray(0, n);
        this.bytes = this.bytes.subarray(n);
        return cut;
    }

    #takeStartup() {
        if (this.bytes.length < 8 || this.bytes.length < this.bytes.readInt32BE(0))
            return false;
        const isTls = this.bytes.readInt32BE(4) === sslRequest, startup = this.#cut(this.bytes.readInt32BE(0));
        this.isStarted = !isTls;
        if (isTls)
            this.client.write('N');
        else
            this.upstream.write(startup);
        return true;
    }

    #takeMessage() {
        if (this.bytes.length < 5 || this.bytes.length < 1 + this.bytes.readInt32BE(1))
            return false;
        const m = this.#cut(1 + this.bytes.readInt32BE(1)), type = String.fromCharCode(m[0]);
        if (type === 'P')
            this.names.set(textAt(m, 5), this.sql = textAt(m, m.indexOf(0, 5) + 1));
        if (type === 'B')
            this.sql = this.names.get(textAt(m, m.indexOf(0, 5) + 1)) ?? '';
        if (type === 'Q')
            this.sql = textAt(m, 5);
        this.group.push(m);
        if (type === 'S' || type === 'Q' || 'XdcfpH'.includes(type))
            this.#decide(type);
        return true;
    }

    // The preparation of a statement is left alone.
    #decide(type) {
        const runs = type === 'Q' || (type === 'S' && this.group.some((m) => m[0] === 0x45));
        const lie = runs && this.state.lies.find(([pattern]) => pattern.test(this.sql))?.[1], group = this.group;
        this.group = [];
        if (!lie)
            return this.upstream.write(Buffer.concat(group));
        this.state.told.push(this.sql);
        if (typeof lie === 'function')
            lie(this.client);
        else if (lie !== SILENCE)
            this.client.write(lie);
    }
}

export async function startLiar(t, pg) {
    const state = { lies: [], told: [], clients: new Set() };
    const server = await hostileServer(t, (client) => {
        const upstream = net.connect(join(pg.folder, '.s.PGSQL.5432')), talk = new Talk(client, upstream, state);
        state.clients.add(client);
        client.on('data', (piece) => talk.take(piece));
        client.on('close', () => { state.clients.delete(client); upstream.destroy(); });
        client.on('error', () => {});
        upstream.on('error', () => client.destroy());
        upstream.on('close', () => client.destroy());
        upstream.on('data', (piece) => client.writable && client.write(piece));
    });
    return {
        ...state, port: server.port,
        url: (user = 'owner') => `host=127.0.0.1 port=${server.port} dbname=work user=${user} sslmode=disable`,
        inject: (bytes) => state.clients.forEach((client) => client.write(bytes)),
    };
}
