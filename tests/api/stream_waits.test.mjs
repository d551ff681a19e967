// Streams that wait for a provider before their first byte hold none of the workers that serve the store.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import http from 'node:http';
import { availableParallelism } from 'node:os';
import { test } from 'node:test';
import { startHearth, until } from './harness.mjs';

// A provider that keeps silent about its models until release() is called.
async function silentProvider(t) {
    const waiting = [];
    const server = http.createServer((incoming, outgoing) => {
        incoming.resume();
        waiting.push(outgoing);
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    t.after(() => server.close());
    const release = () => waiting.splice(0).forEach((outgoing) => outgoing.end(JSON.stringify({ data: [] })));
    return { url: `http://127.0.0.1:${server.address().port}/v1`, waiting, release };
}

const workers = availableParallelism() * 2;
// How many requests wait at least: of those to /sdk the first one asks for the list and the others go on without it.
const streams = [
    ['/sdk/llm/chat/stream', {}, 1],
    ['/v1/chat/completions', { stream: true }, workers + 2],
    ['/v1/messages', { stream: true, max_tokens: 5 }, workers + 2],
];

for (const [path, more, nWaiting] of streams)
    test(`${path} waits for a list of models, and activities are listed meanwhile`, async (t) => {
        const provider = await silentProvider(t);
        const h = await startHearth({ t });
        for (const name of ['one', 'two'])
            await h.cliJson('provider', 'add', 'generic-openai', '--name', name, '--base-url', provider.url);
        const dev = await h.asKey();
        let n_answered = 0;
        const body = { messages: [{ role: 'user', content: 'Hello' }], model: 'some-model', ...more };
        const chats = Array.from({ length: workers + 2 }, () => dev('POST', path, body).then(() => { n_answered++; }));
        await until(() => provider.waiting.length > 0);
        const busy = async () => Number((await h.api('GET', '/metrics')).text.match(/^hearth_pool_busy\{pool="long"\} (\d+)$/m)[1]);
        await until(async () => await busy() >= nWaiting);
        assert.equal((await dev('GET', '/activities')).status, 200);
        assert.equal(n_answered, 0);
        const releasing = setInterval(provider.release, 20);
        await Promise.all(chats);
        clearInterval(releasing);
    });
