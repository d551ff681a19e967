// One kept connection that sends whole requests and reads answers with a content-length: a client that costs less than what it measures.
import { createConnection } from 'node:net';
import { atEnd } from './programs.mjs';

export class RawCaller {
    #socket;
    #rest = Buffer.alloc(0);
    #done = null;

    // headers: lines of every request
    constructor(url, headers) {
        this.url = new URL(url);
        this.headers = headers;
    }

    async open() {
        this.#socket = createConnection({ port: Number(this.url.port), host: '127.0.0.1', noDelay: true });
        this.#socket.on('data', (piece) => this.#read(piece));
        this.#socket.on('error', (error) => this.#done?.failed(error));
        await new Promise((done) => this.#socket.once('connect', done));
        atEnd(() => this.#socket.destroy());
        return this;
    }

    // The bytes of a request, to be sent many times.
    request(method, path, body) {
        const text = JSON.stringify(body);
        return Buffer.from(`${method} ${path} HTTP/1.1\r\nHost: ${this.url.host}\r\n${this.headers.join('\r\n')}\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`);
    }

    // The body of the answer; anything but 200 is an error.
    send(bytes) {
        return new Promise((done, failed) => {
            this.#done = { done, failed };
            this.#socket.write(bytes);
        });
    }

    #read(piece) {
        this.#rest = this.#rest.length ? Buffer.concat([this.#rest, piece]) : piece;
        const end = this.#rest.indexOf('\r\n\r\n');
        if (end < 0)
            return;
        const head = this.#rest.toString('latin1', 0, end), length = Number(/\r\ncontent-length: (\d+)/i.exec(head)[1]);
        if (this.#rest.length < end + 4 + length)
            return;
        const body = this.#rest.toString('utf8', end + 4, end + 4 + length);
        this.#rest = this.#rest.subarray(end + 4 + length);
        const { done, failed } = this.#done;
        if (head.startsWith('HTTP/1.1 200 '))
            done(body);
        else
            failed(new Error(`${head}\n${body}`));
    }
}
