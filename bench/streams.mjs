// Memory of idle event streams: GET /api/events of an administrator's session, against Express holding as many.
import { createConnection } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { emit } from './lib/measure.mjs';
import { express } from './lib/http_yardsticks.mjs';
import { bench, hearth, residentBytes } from './lib/programs.mjs';

const settleMs = 700;
const atATime = 100;

function openStream(url, credentials) {
    const { port, host } = new URL(url);
    return new Promise((done, failed) => {
        const socket = createConnection({ port, host: '127.0.0.1' });
        socket.write(`GET /api/events HTTP/1.1\r\nHost: ${host}\r\nAccept: text/event-stream\r\n${credentials}\r\n`);
        socket.once('data', (head) => (String(head).startsWith('HTTP/1.1 200') ? done(socket) : failed(new Error(String(head)))));
        socket.on('error', failed);
    });
}

async function openStreams(url, credentials, n) {
    const streams = [];
    while (streams.length < n)
        streams.push(...await Promise.all(Array.from({ length: Math.min(atATime, n - streams.length) }, () => openStream(url, credentials))));
    return streams;
}

// Bytes a stream, and whether all of them are still there afterwards.
async function bytesPerStream({ url, pid }, credentials, n) {
    await pause(settleMs);
    const before = residentBytes(pid);
    const streams = await openStreams(url, credentials, n);
    await pause(settleMs);
    const bytes = (residentBytes(pid) - before) / n;
    const lost = streams.filter((socket) => socket.destroyed || socket.readableEnded).length;
    streams.forEach((socket) => socket.destroy());
    if (lost)
        throw new Error(`${lost} of ${n} idle streams ended`);
    return bytes;
}

// The headers of an administrator's session, by the one-time link that the owner of the data folder may make.
async function administrator(h) {
    const link = await h.socket('POST', '/api/session/link', {});
    const opened = await h.api('GET', new URL(link.body.url).pathname + new URL(link.body.url).search);
    const proof = opened.headers.location.split('#proof=')[1];
    return `Cookie: ${opened.headers['set-cookie'][0].split(';')[0]}\r\nx-hearth-proof: ${proof}\r\n`;
}

// A process gives memory back late, so each sample is of a fresh one.
async function sample(n) {
    const h = await hearth();
    const ours = await bytesPerStream(h, await administrator(h), n);
    await h.terminate();
    const theirs = await bytesPerStream(await express(0), '', n);
    return { ours, theirs };
}

await bench(async () => {
    for (const [n, rounds] of [[2000, 5], [4000, 1]]) {
        const samples = [];
        for (let i = 0; i < rounds; i++)
            samples.push(await sample(n));
        emit({ what: `an idle event stream, ${n} of them`, unit: 'bytes', better: 'less', hearth: samples.map((s) => s.ours),
            peer: samples.map((s) => s.theirs), peer_name: 'Express 5' });
    }
});
