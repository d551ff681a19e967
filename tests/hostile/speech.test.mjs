// An app that wants more speech than its person allows it: at once, by every route, by leaving, by texts that are kept.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startHearth } from '../api/harness.mjs';
import { admin, awayFromMidnight, newApp, refused } from '../api/kit.mjs';

const permissions = ['tts.generate'];
const routes = [['/sdk/tts', 'text'], ['/sdk/tts/stream', 'text'], ['/v1/audio/speech', 'input']];
const ofApp = async (h, app) => (await admin(h, 'GET', `/api/usage?kind=speech&app=${app}`)).totals;

test('many requests at once get exactly what the limit allows, whichever route they take', async (t) => {
    await awayFromMidnight();
    const h = await startHearth({ t, settings: { 'speech.voices': 'en=espeak_local/en-us' } });
    const app = await newApp(h, {}, permissions), other = await newApp(h, {}, permissions);
    await admin(h, 'PUT', `/api/limits/apps/${app}`, { characters_a_day: 100 });
    const replies = await Promise.all(Array.from({ length: 30 }, (_, i) => {
        const [path, field] = routes[i % routes.length];
        return h.asApp(app)('POST', path, { [field]: `Ten digit ${i % 10}`.padEnd(20, '.') });
    }));
    const whole = replies.filter(({ status }) => status === 200), limited = replies.filter(({ status }) => status === 429);
    assert.deepEqual([whole.length, limited.length], [5, 25]);
    for (const { headers, body } of limited)
        assert.deepEqual([Number(headers['retry-after']) > 0, body.error.limit ?? body.limit], [true, 'characters_a_day']);
    const { requests, characters } = await ofApp(h, app);
    assert.deepEqual([requests, characters], [5, 100]);
    assert.equal((await h.asApp(other)('POST', '/sdk/tts', { text: 'Hello.' })).status, 200);
});

test('a client that leaves has used what it asked for, and a text that is kept counts again', async (t) => {
    await awayFromMidnight();
    const h = await startHearth({ t, settings: { 'speech.voices': 'en=espeak_local/en-us', 'limits.characters_a_day': 4000 } });
    const app = await newApp(h, {}, permissions);
    const stream = await h.sse('/sdk/tts/stream', { method: 'POST', headers: { 'x-app-id': app }, body: { text: 'One more sentence is here. '.repeat(140) } });
    await stream.next(({ event }) => event === 'chunk');
    stream.close();
    const call = h.asApp(app), text = 'Again and again. '.repeat(20);
    assert.equal((await call('POST', '/sdk/tts', { text })).status, 200);
    refused(await call('POST', '/sdk/tts', { text }), 429, 'RATE_LIMIT');
    refused(await call('POST', '/sdk/tts/stream', { text: 'x' }), 429, 'RATE_LIMIT');
    assert.ok((await ofApp(h, app)).characters >= text.length);
});
