// An app that wants more speech than its person allows it: at once, by every route, by leaving, by texts that are kept.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startHearth } from '../api/harness.mjs';
import { admin, awayFromMidnight, newApp, newKey, refused, residentKib, speechWorkers } from '../api/kit.mjs';

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

// Whole, such a text would take gigabytes in flite. The service's share is what it grows by: under ASan it is large from the start, and memory that was freed counts
// until it leaves ASan's quarantine.
for (const [provider, voice] of [['espeak_local', 'en-us'], ['flite_local', 'kal16']])
    test(`the longest text, spoken by ${provider}, comes from its start on and takes less than 200 MB of service and worker`, async (t) => {
        const h = await startHearth({ t, settings: { 'speech.cache_mb': 0 }, env: { ASAN_OPTIONS: 'detect_leaks=1:quarantine_size_mb=8' } });
        const { key, call } = await newKey(h);
        assert.equal((await call('POST', '/sdk/tts', { text: 'Hello.', provider, voice })).status, 200);
        const used = () => residentKib(h.pid) + speechWorkers(h).reduce((sum, { pid }) => sum + residentKib(pid), 0), before = residentKib(h.pid);
        const text = 'All work and no play makes Jack a dull boy, as they say in the north of the country. '.repeat(300).slice(0, 20000);
        const stream = await h.sse('/sdk/tts/stream', { method: 'POST', headers: { 'x-api-key': key }, body: { text, provider, voice, speed: 2 } });
        const { json: { total } } = await stream.next(({ event }) => event === 'chunk');
        assert.ok(stream.events.length < total / 2, `${stream.events.length} of ${total} had come at the first one`);
        let most = 0;
        for (let i = 10; i < total; i += 10) {
            await stream.next(({ json }) => json?.index >= i);
            most = Math.max(most, used());
        }
        await stream.ended;
        assert.equal(stream.events.length, total + 2);
        t.diagnostic(`${most - before} KiB, and ${before} KiB of the idle service`);
        assert.ok(most - before < 200_000, `${most - before} KiB more than the ${before} of the idle service`);
    });
