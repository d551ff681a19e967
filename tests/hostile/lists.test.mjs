// What an app stores is listed by others: an app that stores much, or large things, neither ends the service nor takes the lists away from the person.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startHearth } from '../api/harness.mjs';
import { admin, newApp, refusedFields } from '../api/kit.mjs';

test('a calendar that an app fills with large events is still listed, and no event is larger than its limit', async (t) => {
    const h = await startHearth({ t });
    const app = h.asApp(await newApp(h, {}, ['webhook.trigger']));
    const put = (more) => app('POST', '/api/calendar-events', { title: 'x', start_date: '2026-11-20', ...more });
    const text = (n) => 'x'.repeat(n);
    refusedFields(await put({ reminders: [text(1_000_000)] }), 'reminders');
    refusedFields(await put({ metadata: { a: text(1_000_000) } }), 'metadata');
    const largest = { description: '\u0001'.repeat(65_536), reminders: [text(65_000)], metadata: { a: text(65_000) } };
    for (let i = 0; i < 60; i++)
        assert.equal((await put(largest)).status, 201);
    const { events, has_more: hasMore } = await admin(h, 'GET', '/api/calendar');
    assert.equal(hasMore, true);
    assert.ok(events.length >= 20 && events.length < 60, `${events.length} events`);
    assert.equal((await admin(h, 'GET', '/api/calendar?limit=5')).events.length, 5);
    assert.equal((await admin(h, 'GET', '/api/calendar?limit=5')).has_more, undefined);
});
