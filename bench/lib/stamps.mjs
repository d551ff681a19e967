// Agents that write when they began (bench/stamp.c), and the inserts that start them.
import { closeSync, openSync, readSync } from 'node:fs';
import http from 'node:http';
import { join } from 'node:path';
import { until } from '../../tests/api/harness.mjs';
import { atEnd, buildFolder } from './programs.mjs';

export const stamp = join(buildFolder, 'bench/bench_stamp');
const now = () => Number(process.hrtime.bigint());

// What the agents wrote: activity number -> nanoseconds. Reads on where it stopped.
export class Stamps {
    #seen = new Map();
    #rest = '';
    #at = 0;

    constructor(path) {
        this.fd = openSync(path, 'a+');
        this.bytes = Buffer.alloc(65536);
        atEnd(() => closeSync(this.fd));
    }

    get(n) {
        const got = readSync(this.fd, this.bytes, 0, this.bytes.length, this.#at);
        this.#at += got;
        const lines = (this.#rest + this.bytes.toString('utf8', 0, got)).split('\n');
        this.#rest = lines.pop();
        for (const line of lines) {
            const cut = line.indexOf(' ');
            const activity = JSON.parse(line.slice(cut + 1));
            this.#seen.set((activity.raw_data ?? activity).n, Number(line.slice(0, cut)));
        }
        return this.#seen.get(n);
    }
}

// insert(n) resolves when the insert is answered. Milliseconds from before it to the agent, and from the answer to the agent.
export async function measure(stamps, from, perRound, insert) {
    const samples = [];
    for (let n = from; n < from + perRound; n++) {
        const sent = now();
        await insert(n);
        const answered = now();
        const began = await until(() => stamps.get(n), { everyMs: 2, what: `the agent of activity ${n}` });
        samples.push({ whole: (began - sent) / 1e6, fromAnswer: (began - answered) / 1e6 });
    }
    return samples;
}

export function poster(h, key) {
    const agent = new http.Agent({ keepAlive: true });
    const { port } = new URL(h.url);
    atEnd(() => agent.destroy());
    return (n) => new Promise((done, failed) => {
        const body = JSON.stringify({ raw_data: { n } });
        const headers = { authorization: `Bearer ${key}`, 'x-app-id': h.benchApp, 'content-type': 'application/json', 'content-length': body.length };
        const request = http.request({ port, host: '127.0.0.1', method: 'POST', path: '/activities', headers, agent }, (reply) => {
            reply.resume();
            reply.on('end', () => (reply.statusCode === 201 ? done() : failed(new Error(`POST /activities: ${reply.statusCode}`))));
        });
        request.on('error', failed);
        request.end(body);
    });
}
