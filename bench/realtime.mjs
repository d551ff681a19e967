// Changes of rows delivered to apps of the hosted service: 200 subscribers, 100 rows a second, every one to all.
import { setTimeout as pause } from 'node:timers/promises';
import { until } from '../tests/api/harness.mjs';
import { admin } from '../tests/api/kit.mjs';
import { openSocket } from '../tests/api/realtime.mjs';
import { emit, quantile } from './lib/measure.mjs';
import { bench, hearth, residentBytes } from './lib/programs.mjs';

const subscribers = 200, perSecond = 100, seconds = 5, rounds = 5, settleMs = 700;
const mark = '"at":', digits = 24;

async function subscribe(h, key) {
    const socket = await openSocket(h, { key });
    const { status } = await socket.join('realtime:rows', { postgres_changes: [{ event: 'INSERT', schema: 'public', table: 'svc_activities' }] });
    if (status !== 'ok')
        throw new Error('a subscription was refused');
    await socket.next('realtime:rows', 'system');
    return socket;
}

// Reads only the time that each row carries: the readers share one core with nothing to spare for parsing. times gets what each row took.
function readTimes({ tcp }, times) {
    let rest = Buffer.alloc(0);
    tcp.removeAllListeners('data');
    tcp.on('data', (piece) => {
        const now = performance.now(), bytes = Buffer.concat([rest, piece]);
        let end = 0;
        for (let at; (at = bytes.indexOf(mark, end)) >= 0 && at + digits <= bytes.length; end = at + digits)
            times.push(now - parseFloat(bytes.latin1Slice(at + mark.length, at + digits)));
        rest = bytes.subarray(Math.max(end, bytes.length - digits));
    });
}

async function run(call, times) {
    const n = seconds * perSecond, requests = [], began = performance.now();
    times.length = 0;
    for (let i = 0; i < n; i++) {
        await pause(Math.max(0, began + i * 1000 / perSecond - performance.now()));
        requests.push(call('POST', '/activities', { raw_data: { at: performance.now(), pad: 'x'.repeat(digits) } }));
    }
    await Promise.all(requests);
    await until(() => times.length === n * subscribers, { what: 'every change at every subscriber', everyMs: 5 });
    return { rate: times.length / ((performance.now() - began) / 1000), p99: quantile(times, 0.99) };
}

await bench(async () => {
    const h = await hearth(), call = await h.asKey(), times = [], sockets = [], samples = [];
    const { secret } = await admin(h, 'GET', '/api/backend/keys');
    (await subscribe(h, secret)).end();
    await pause(settleMs);
    const before = residentBytes(h.pid);
    for (let i = 0; i < subscribers; i++)
        sockets.push(await subscribe(h, secret));
    await pause(settleMs);
    const memory = (residentBytes(h.pid) - before) / subscribers;
    sockets.forEach((one) => readTimes(one, times));
    for (let i = 0; i < rounds; i++)
        samples.push(await run(call, times));
    sockets.forEach((one) => one.end());
    const what = `${subscribers} subscribers, ${perSecond} rows a second`;
    emit({ what: `changes delivered, ${what}`, unit: '1/s', better: 'more', hearth: samples.map((s) => s.rate) });
    emit({ what: `request of a row to its arrival, p99, ${what}`, unit: 'ms', better: 'less', hearth: samples.map((s) => s.p99) });
    emit({ what: 'memory of a subscriber', unit: 'bytes', better: 'less', hearth: memory });
});
