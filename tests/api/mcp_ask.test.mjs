// Requests of the server to the client of a session, in the stream of a call's answer: before the service that has the fixtures of the conformance suite,
// which hold tools that ask (tests/unit/api/mcp_fixtures.c).
import assert from 'node:assert/strict';
import { dirname, join } from 'node:path';
import { after, before, test } from 'node:test';
import { binary, startHearth } from './harness.mjs';
import { session } from './mcp.mjs';

let h, key, dev;
before(async () => {
    h = await startHearth({ program: join(dirname(binary), 'tests/unit/mcp_fixtures') });
    key = await h.key();
    dev = await h.asKey();
});
after(() => h.stop());

const accept = 'application/json, text/event-stream';
const call = (id) => ({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'test_elicitation', arguments: { message: 'Who are you?' } } });

// The stream of a call that asks, and the question.
async function begin(s, id = 1) {
    const one = await h.sse('/mcp', { method: 'POST', body: call(id), headers: { authorization: `Bearer ${key}`, accept, 'content-type': 'application/json', ...s.headers } });
    const next = (predicate, what) => one.next((event) => predicate(JSON.parse(event.data)), { what }).then((event) => JSON.parse(event.data));
    const question = await next((frame) => frame.method === 'elicitation/create', 'the question');
    return { one, question, answered: () => next((frame) => frame.id === id && frame.result, 'the answer') };
}

const able = () => session(dev, undefined, { elicitation: {}, sampling: {} });

test('the client is asked in the stream, and its answer goes to the tool', async () => {
    const s = await able();
    const { question, answered } = await begin(s);
    assert.equal(question.params.message, 'Who are you?');
    assert.equal((await s.raw({ jsonrpc: '2.0', id: question.id, result: { action: 'accept', content: { username: 'Ada' } } })).status, 202);
    assert.deepEqual(JSON.parse((await answered()).result.content[0].text), { action: 'accept', content: { username: 'Ada' } });
});

test('an error of the client is the tool\'s failure', async () => {
    const s = await able();
    const { question, answered } = await begin(s);
    await s.raw({ jsonrpc: '2.0', id: question.id, error: { code: -1, message: 'I do not want to' } });
    const { result } = await answered();
    assert.equal(result.isError, true);
    assert.match(result.content[0].text, /I do not want to/);
    assert.equal(result._meta['hearth/error'].code, 'CLIENT_ERROR');
});

test('answers of another session, with another id or a second time change nothing', async () => {
    const s = await able(), other = await able();
    const { question, answered } = await begin(s);
    const answer = (id, name) => ({ jsonrpc: '2.0', id, result: { action: 'accept', content: { username: name } } });
    await other.raw(answer(question.id, 'other session'));
    await s.raw(answer(question.id + 1, 'other id'));
    await s.raw(answer(String(question.id), 'other type'));
    await s.raw(answer(question.id, 'Ada'));
    await s.raw(answer(question.id, 'second'));
    assert.match((await answered()).result.content[0].text, /Ada/);
});

test('several calls ask at once, each gets its own answer', async () => {
    const s = await able();
    const calls = await Promise.all(Array.from({ length: 8 }, (_, i) => begin(s, i + 1)));
    assert.equal(new Set(calls.map((one) => one.question.id)).size, 8);
    for (const [i, { question }] of [...calls.entries()].reverse())
        await s.raw({ jsonrpc: '2.0', id: question.id, result: { action: 'accept', content: { n: i } } });
    for (const [i, { answered }] of calls.entries())
        assert.equal(JSON.parse((await answered()).result.content[0].text).content.n, i);
});

test('a client that did not declare it is not asked', async () => {
    const s = await session(dev);
    const reply = await s.tool('test_elicitation', { message: 'x' });
    assert.equal(reply.isError, true);
    assert.equal(reply._meta['hearth/error'].code, 'CLIENT_CANNOT');
});

test('the question ends with the call, when it is cancelled or the client leaves', async () => {
    const s = await able();
    const cancelled = await begin(s, 'a');
    await s.notify('notifications/cancelled', { requestId: 'a' });
    await cancelled.one.ended;
    assert.equal((await s.raw({ jsonrpc: '2.0', id: cancelled.question.id, result: {} })).status, 202);
    const left = await begin(s, 'b');
    left.one.close();
    assert.equal((await s.raw({ jsonrpc: '2.0', id: left.question.id, result: {} })).status, 202);
});
