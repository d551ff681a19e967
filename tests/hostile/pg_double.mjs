// A server of PostgreSQL's wire protocol (version 3) that answers what a test says, lies included.
//
//     const pg = await startPgDouble(t, (statement) => /count/.test(statement.sql) ? { columns: ['n'], rows: [[null]] } : undefined);
//
// answer(statement, socket) with statement {sql, params, n} returns a result {columns, rows, tag}, {error}, bytes that are sent as they are, or SILENCE.
// options.tls {key, cert} offers TLS. undefined: what an honest server would say of Hearth's preparations, and an empty result for the rest.
import tls from 'node:tls';
import { hostileServer } from './kit.mjs';

export const SILENCE = Symbol('silence');

const sslRequest = 80877103, protocol3 = 196608, textOid = 25;

const int16 = (n) => { const b = Buffer.alloc(2); b.writeInt16BE(n); return b; };
const int32 = (n) => { const b = Buffer.alloc(4); b.writeInt32BE(n); return b; };
const cstring = (text) => Buffer.concat([Buffer.from(text), Buffer.from([0])]);

export function message(type, ...parts) {
    const body = Buffer.concat(parts);
    return Buffer.concat([Buffer.from(type), int32(body.length + 4), body]);
}

export const ready = (state = 'I') => message('Z', Buffer.from(state));
export const described = (columns, format = 0) => message('T', int16(columns.length),
    ...columns.map((name) => Buffer.concat([cstring(name), int32(0), int16(0), int32(textOid), int16(-1), int32(-1), int16(format)])));
export const row = (values) => message('D', int16(values.length), ...values.map((value) => {
    if (value === null)
        return int32(-1);
    const bytes = Buffer.isBuffer(value) ? value : Buffer.from(String(value));
    return Buffer.concat([int32(bytes.length), bytes]);
}));
export const complete = (tag) => message('C', cstring(tag));
export const parameter = (name, value) => message('S', cstring(name), cstring(value));
export const begun = Buffer.concat([message('1'), message('2')]);       // Parse and Bind are through

export function resultBytes({ columns = [], rows = [], tag = `SELECT ${rows.length}`, error }) {
    if (error)
        return message('E', cstring('SERROR'), cstring('C42000'), cstring(`M${error}`), Buffer.from([0]));
    return Buffer.concat([...(columns.length ? [described(columns)] : []), ...rows.map(row), complete(tag)]);
}

const welcome = Buffer.concat([message('R', int32(0)), parameter('server_version', '15.0'), parameter('client_encoding', 'UTF8'),
    parameter('integer_datetimes', 'on'), parameter('standard_conforming_strings', 'on'), message('K', int32(1), int32(2)), ready()]);

function honest({ sql }) {
    if (/LIMIT 0$/.test(sql))
        return { columns: ['namespace', 'id', 'n_dimensions', 'embedding', 'metadata'] };
    return /^(SET|CREATE|BEGIN|COMMIT|ROLLBACK)/.test(sql) ? { tag: sql.split(' ')[0] } : { columns: ['x'] };
}

// The parameters of a Bind message, all sent as text.
function bound(body) {
    let at = body.indexOf(0) + 1;
    at = body.indexOf(0, at) + 1;
    at += 2 + 2 * body.readInt16BE(at);
    const n = body.readInt16BE(at);
    const params = [];
    at += 2;
    for (let i = 0; i < n; i++) {
        const length = body.readInt32BE(at);
        params.push(length < 0 ? null : body.subarray(at + 4, at + 4 + length).toString());
        at += 4 + Math.max(length, 0);
    }
    return params;
}

function parsed(body) {
    const from = body.indexOf(0) + 1;
    return body.subarray(from, body.indexOf(0, from)).toString();
}

class Session {
    statement = { sql: '', params: [] };
    bytes = Buffer.alloc(0);
    isStarted = false;

    constructor(socket, server) {
        this.socket = socket;
        this.server = server;
    }

    take(piece) {
        this.bytes = Buffer.concat([this.bytes, piece]);
        while (this.isStarted ? this.#takeMessage() : this.#takeStartup());
    }

    #takeStartup() {
        if (this.bytes.length < 8 || this.bytes.length < this.bytes.readInt32BE(0))
            return false;
        const code = this.bytes.readInt32BE(4);
        this.bytes = this.bytes.subarray(this.bytes.readInt32BE(0));
        if (code === sslRequest && this.server.tls) {
            this.#encrypt();
        } else if (code === sslRequest) {
            this.socket.write('N');
        } else if (code === protocol3) {
            this.isStarted = true;
            this.socket.write(this.server.welcome ?? welcome);
        }
        return true;
    }

    #encrypt() {
        this.socket.removeAllListeners('data');
        this.socket.write('S');
        this.socket = new tls.TLSSocket(this.socket, { isServer: true, secureContext: tls.createSecureContext(this.server.tls) });
        this.socket.on('error', () => {});
        this.socket.on('data', (piece) => this.take(piece));
    }

    #takeMessage() {
        if (this.bytes.length < 5 || this.bytes.length < 1 + this.bytes.readInt32BE(1))
            return false;
        const type = String.fromCharCode(this.bytes[0]), end = 1 + this.bytes.readInt32BE(1);
        const body = this.bytes.subarray(5, end);
        this.bytes = this.bytes.subarray(end);
        if (type === 'Q')
            this.#answer({ sql: body.subarray(0, -1).toString(), params: [] }, Buffer.alloc(0));
        else if (type === 'P')
            this.statement.sql = parsed(body);
        else if (type === 'B')
            this.statement.params = bound(body);
        else if (type === 'S')
            this.#answer({ ...this.statement }, begun);
        return true;
    }

    #answer(statement, before) {
        this.server.statements.push(statement);
        const said = this.server.answer({ ...statement, n: this.server.statements.length }, this.socket) ?? honest(statement);
        if (said === SILENCE)
            return;
        this.socket.write(Buffer.isBuffer(said) ? said : Buffer.concat([before, resultBytes(said), ready()]));
    }
}

// options: welcome (the bytes after the startup message), isSilent (takes connections and says nothing).
export async function startPgDouble(t, answer = () => undefined, options = {}) {
    const state = { answer, statements: [], ...options };
    const server = await hostileServer(t, (socket) => {
        const session = new Session(socket, state);
        if (!state.isSilent)
            socket.on('data', (piece) => session.take(piece));
        socket.on('end', () => socket.destroy());
    });
    const url = `postgresql://postgres:s3cret@127.0.0.1:${server.port}/postgres?sslmode=${options.tls ? 'require' : 'disable'}`;
    return { ...server, state, statements: state.statements, url, provider: 'pgvector', config: { connectionString: url, tableName: 'hostile' } };
}
