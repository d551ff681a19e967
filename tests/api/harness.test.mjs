// The harness's own parts.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { describe, test } from 'node:test';
import { Arrivals, sharedHearth, sseReader, stoppedHearth, until } from './harness.mjs';
import { isAlive } from './kit.mjs';

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

let first;

describe('a Hearth that tests share', () => {
    const shared = sharedHearth();

    test('is started for the test that asks first', async (t) => {
        first = await shared(t);
        assert.equal((await first.api('GET', '/healthz')).status, 200);
    });

    test('is the same one for the next', async (t) => assert.equal((await shared(t)).pid, first.pid));

    test('lets the test fail during which a stall or a sanitizer was reported', async () => {
        for (const said of ['the loop was held for 900 ms', 'ERROR: AddressSanitizer: heap-use-after-free']) {
            let end;
            const h = await shared({ after: (hook) => { end = hook; } });
            h.log.push(`2026-01-01T00:00:00.000Z warn  loop ${said}`);
            assert.throws(end, { code: 'ERR_ASSERTION' });
            await shared({ after: (hook) => { end = hook; } });
            end();
            h.log.pop();
        }
    });
});

test('a Hearth that tests shared is gone after the last', () => {
    assert.ok(!isAlive(first.pid));
    assert.ok(!existsSync(first.home));
});

describe('a Hearth that tests share, and that has ended', () => {
    const shared = sharedHearth({}, stoppedHearth);

    test('serves commands', async (t) => assert.deepEqual(await (await shared(t)).cliJson('app', 'list'), []));

    test('lets the test fail that starts it', async () => {
        let end;
        const h = await shared({ after: (hook) => { end = hook; } });
        await h.start();
        assert.throws(end, /must not end or restart/);
    });
});
