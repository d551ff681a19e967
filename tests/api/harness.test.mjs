// The harness's own parts that need no service.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Arrivals, sseReader, until } from './harness.mjs';

function readAll(...pieces) {
    const events = [];
    const comments = [];
    const read = sseReader((event) => events.push(event), (text) => comments.push(text));
    pieces.forEach(read);
    return { events, comments };
}

test('an event is read however its bytes are cut', () => {
    const whole = ': idle\n\nevent: task\nid: 7\ndata: {"a":\ndata: 1}\n\ndata: second\r\n\r\n';
    for (let cut = 0; cut <= whole.length; cut++) {
        const { events, comments } = readAll(whole.slice(0, cut), whole.slice(cut));
        assert.deepEqual(events, [{ event: 'task', data: '{"a":\n1}', id: '7' }, { event: 'message', data: 'second', id: undefined }], `cut at ${cut}`);
        assert.deepEqual(comments, ['idle']);
    }
});

test('an event without data is none', () => assert.deepEqual(readAll('event: x\n\n').events, []));

test('a wait is answered by what came before and by what comes later', async () => {
    const arrivals = new Arrivals();
    arrivals.push(1);
    assert.equal(await arrivals.wait((n) => n === 1), 1);
    const later = arrivals.wait((n) => n === 2);
    arrivals.push(2);
    assert.equal(await later, 2);
});

test('a wait ends with an error at its deadline, and when nothing more will come', async () => {
    const arrivals = new Arrivals();
    await assert.rejects(arrivals.wait(() => true, { deadlineMs: 5, what: 'anything' }), /not within 5 ms: anything/);
    const open = arrivals.wait(() => true, { what: 'anything' });
    arrivals.end('it ended');
    await assert.rejects(open, /it ended before anything/);
    await assert.rejects(arrivals.wait(() => true, { what: 'more' }), /it ended before more/);
});

test('until gives the value it waited for and names what did not come', async () => {
    let calls = 0;
    assert.equal(await until(() => ++calls === 3 && 'third'), 'third');
    await assert.rejects(until(() => false, { deadlineMs: 5, what: 'never' }), /not within 5 ms: never/);
});
