// Speech to text: what flite says, PocketSphinx hears. Few recordings and short ones: hearing takes processor time.
import assert from 'node:assert/strict';
import { existsSync, readFileSync, readdirSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { test } from 'node:test';
import { sharedHearth, startHearth, until } from './harness.mjs';
import { awayFromMidnight, isAlive, newApp, newKey, refused, refusedFields, silentWav, speechWorkers } from './kit.mjs';
import { changed, encoded, formOf, formType, spoken, wordErrorRate, wordsOf } from './sound.mjs';

const shared = sharedHearth();
const order = 'Please open the window and turn on the light.';
const sentences = [order, 'The weather is very nice today.', 'She went to the market to buy some fresh bread.', 'We will meet again on Monday morning at nine.',
    'My brother works in a large hospital.', 'Can you tell me the way to the station?', 'He read a book about the history of music.', 'The children are playing in the garden.',
    'I would like a cup of coffee and a piece of cake.', 'The train leaves in ten minutes.', 'My sister has a small house near the river.', 'It will be cold and dark in the winter.'];

let command;
const spokenCommand = (call) => (command ??= spoken(call, order));

// One of twelve: as exact as words of any kind, and heard in half the time.
const oneOfTwelve = `?phrases=${encodeURIComponent(sentences.map((one) => one.slice(0, -1)).join('\n'))}`;
const heardOrder = order.slice(0, -1).toLowerCase();

// What is said at length is heard for minutes where other suites have the processors.
const transcribe = (call, bytes, query = '') => call('POST', `/sdk/stt/transcribe${query}`, bytes, undefined, { timeoutMs: 600_000 });
const part = (...args) => args, form = formOf;

test('the engines name their models', async (t) => {
    const h = await shared(t);
    const { status, body } = await h.asApp(await newApp(h))('GET', '/sdk/stt/providers');
    assert.equal(status, 200);
    assert.equal(body.default, 'pocketsphinx_local');
    const [sphinx] = body.providers;
    assert.deepEqual([sphinx.id, sphinx.configured, sphinx.note], ['pocketsphinx_local', true, null]);
    assert.deepEqual(sphinx.models.map(({ id, language, recommended }) => [id, language, recommended]), [['en-us', 'en', true]]);
    assert.ok(sphinx.name && sphinx.description);
});

// Longer than 30 s without a pause that divides it: the engine hears it in two parts, and the times go on.
test('twelve sentences that flite says are heard with at most one wrong word in ten', async (t) => {
    const h = await shared(t);
    const { call } = await newKey(h);
    const wav = await spoken(call, sentences.join(' '), { speed: 0.95 });
    const { status, body, text } = await transcribe(call, wav);
    assert.equal(status, 200, text);
    const rate = wordErrorRate(wordsOf(sentences.join(' ')), wordsOf(body.text));
    assert.ok(rate <= 0.1, `${rate}: ${body.text}`);
    assert.ok(Math.abs(body.duration - (wav.length - 44) / 32000) < 0.1);
    assert.ok(body.duration > 30 && body.segments.length > 1, `${body.duration} s, ${body.segments.length} segments`);
    assert.equal(body.segments.map((segment) => segment.text).join(' '), body.text);
    let last = 0;
    for (const segment of body.segments) {
        assert.equal(segment.words.map(({ word }) => word).join(' '), segment.text);
        for (const { start, end, confidence } of segment.words) {
            assert.ok(last <= start && start < end && start >= segment.start && end <= segment.end + 0.02, `${last} ${start} ${end} of ${segment.start} to ${segment.end}`);
            assert.ok(confidence >= 0 && confidence <= 1);
            last = end;
        }
    }
    assert.ok(last <= body.duration);
});

test('every format, rate and number of channels is heard', async (t) => {
    const h = await shared(t);
    const { call } = await newKey(h);
    const wav = await spokenCommand(call);
    const seconds = (wav.length - 44) / 32000;
    const recordings = { flac: changed(wav, 'a.flac', []), vorbis: changed(wav, 'a.ogg', ['-C', '6']), mp3: (await call('POST', '/sdk/tts', { text: order, voice: 'rms', format: 'mp3' })).bytes,
        'stereo, 96 kHz': changed(wav, 'b.wav', ['-r', '96000', '-c', '2']), 'floating point': changed(wav, 'c.wav', ['-e', 'floating-point', '-b', '32']) };
    const heard = await Promise.all(Object.entries(recordings).map(async ([name, bytes]) => [name, await transcribe(call, bytes, oneOfTwelve)]));
    for (const [name, { status, body, text }] of heard) {
        assert.equal(status, 200, `${name}: ${text}`);
        assert.equal(body.text, heardOrder, name);
        assert.ok(Math.abs(body.duration - seconds) < 0.4, `${name}: ${body.duration} s of ${seconds}`);
    }
});

test('recordings in containers are heard, damaged ones as far as they go', async (t) => {
    const h = await shared(t);
    const { call } = await newKey(h);
    const wav = await spokenCommand(call);
    const seconds = (wav.length - 44) / 32000;
    const picture = ['-f', 'lavfi', '-i', 'color=black:s=32x32:d=2', '-map', '0:a', '-map', '1:v', '-c:v', 'mpeg4'];
    const recordings = { 'opus in webm': encoded(wav, 'a.webm', '-c:a', 'libopus'), 'vorbis in matroska': encoded(wav, 'b.mka', '-c:a', 'libvorbis'), 'aac in m4a': encoded(wav, 'c.m4a'),
        'aac in mp4 with pictures': encoded(wav, 'd.mp4', ...picture), 'aac alone, stereo': encoded(wav, 'e.aac', '-ac', '2', '-ar', '44100'), 'alac in m4a': encoded(wav, 'f.m4a', '-c:a', 'alac') };
    recordings['fragments of mp4'] = encoded(wav, 'g.mp4', '-movflags', 'frag_keyframe+empty_moov');
    for (const [name, { status, body, text }] of await Promise.all(Object.entries(recordings).map(async ([name, bytes]) => [name, await transcribe(call, bytes, oneOfTwelve)]))) {
        assert.equal(status, 200, `${name}: ${text}`);
        assert.equal(body.text, heardOrder, name);
        assert.ok(Math.abs(body.duration - seconds) < 0.4, `${name}: ${body.duration} s of ${seconds}`);
    }
    const half = (bytes) => transcribe(call, bytes.subarray(0, bytes.length / 2));
    const { body } = await half(recordings['opus in webm']);
    assert.ok(body.duration > seconds / 4 && body.duration < seconds * 0.75, `${body.duration} s of ${seconds}`);
    refused(await half(recordings['aac in m4a']), 400, 'AUDIO_UNREADABLE');                   // its table of contents is at its end
    refused(await transcribe(call, encoded(wav, 'h.mp4', ...picture, '-an')), 400, 'AUDIO_UNREADABLE');
    refused(await transcribe(call, Buffer.concat([recordings['opus in webm'].subarray(0, 40), Buffer.alloc(5000, 7)])), 400, 'AUDIO_UNREADABLE');
});

test('where nobody speaks nothing is heard, and a damaged recording as far as it goes', async (t) => {
    const h = await shared(t);
    const { call } = await newKey(h);
    const wav = await spokenCommand(call);
    const quiet = { silence: silentWav, noise: changed(silentWav, 'n.wav', [], ['pad', '0', '2', 'synth', 'whitenoise', 'vol', '0.2']), tone: changed(silentWav, 't.wav', [], ['pad', '0', '2', 'synth', 'sine', '440']) };
    for (const [name, bytes] of Object.entries(quiet)) {
        const { status, body, text } = await transcribe(call, bytes);
        assert.deepEqual([status, body.text, body.segments], [200, '', []], `${name}: ${text}`);
    }
    for (const bytes of [wav.subarray(0, wav.length / 2), changed(wav, 'l.wav', [], ['gain', '30']), changed(wav, 'e.wav', ['-r', '8000'])])
        assert.equal((await transcribe(call, bytes)).status, 200);
});

test('what is no recording is refused', async (t) => {
    const h = await shared(t);
    const { call } = await newKey(h);
    const wav = await spoken(call, 'Hello.');
    for (const bytes of Object.values({ nothing: '', text: 'hello', json: '{"a": 1}', 'half a header': wav.subarray(0, 20), 'a header alone': wav.subarray(0, 12), 'no frame of MP3': Buffer.alloc(5000, 0xff),
        '65535 channels': Buffer.concat([wav.subarray(0, 22), Buffer.from([0xff, 0xff]), wav.subarray(24)]), 'a rate of 1': Buffer.concat([wav.subarray(0, 24), Buffer.from([1, 0, 0, 0]), wav.subarray(28)]) }))
        refused(await transcribe(call, bytes), 400, 'AUDIO_UNREADABLE');
    for (const [query, field] of [['provider=nobody', 'provider'], ['model=large', 'model'], ['language=de', 'language'], ['phrases=xyzzy', 'phrases'], ['phrases=%23JSGF', 'phrases'], [`phrases=${'a'.repeat(257)}`, 'phrases'], ['phrases=a%3Bb', 'phrases']])
        refusedFields(await transcribe(call, wav, `?${query}`), field);
});

test('a recording has at most 25 MiB, in a form too', async (t) => {
    const h = await shared(t);
    const { call } = await newKey(h);
    const large = Buffer.alloc(25 * 1024 * 1024 + 1);
    refused(await transcribe(call, large), 413, 'BODY_TOO_LARGE');
    refused(await call('POST', '/sdk/stt/transcribe', form(part('file', large, 'a.wav')), formType), 413, 'BODY_TOO_LARGE');
    silentWav.copy(large);
    assert.equal((await transcribe(call, large.subarray(0, -1))).status, 200);
});

test('a form has the recording and the fields', async (t) => {
    const h = await shared(t);
    const { call } = await newKey(h);
    const post = (body, headers = formType) => call('POST', '/sdk/stt/transcribe', body, headers);
    const { status, body, text } = await post(form(part('language', 'en-US'), part('file', silentWav, 'a.wav'), part('model', 'en-us')));
    assert.deepEqual([status, body.text], [200, ''], text);
    refusedFields(await post(form(part('language', 'en'))), 'file');
    refusedFields(await post(form(part('language', 'de'), part('file', silentWav, 'a.wav'))), 'language');
    for (const [bytes, headers] of [['', formType], ['--edge', formType], [form(part('file', silentWav)).subarray(0, -10), formType], [form(part('', 'x')), formType],
        [form(part('file', silentWav)), { 'content-type': 'multipart/form-data' }], [form(...Array.from({ length: 65 }, () => part('a', 'b'))), formType]])
        refused(await post(bytes, headers), 400, 'BAD_FORM');
});

test('with phrases nothing else is heard', async (t) => {
    const h = await shared(t);
    const { call } = await newKey(h);
    const wav = await spoken(call, 'Close the door.');
    const heard = async (phrases) => (await transcribe(call, wav, `?phrases=${encodeURIComponent(phrases)}`)).body.text;
    assert.equal(await heard('Open the window, close the door,\n turn off the light'), 'close the door');
    assert.equal(await heard('#JSGF V1.0; grammar doors; public <order> = (open | close) the (door | window);'), 'close the door');
});

test('a stream has each segment, then the whole text', async (t) => {
    const h = await shared(t);
    const { call, key } = await newKey(h);
    const two = changed(await spokenCommand(call), 'two.wav', [], ['pad', '0', '2', 'repeat', '1']);
    const stream = await h.sse('/sdk/stt/transcribe', { method: 'POST', headers: { 'x-api-key': key }, body: two });
    await stream.ended;
    assert.deepEqual(stream.events.map(({ event }) => event), ['segment', 'segment', 'final']);
    const [first, second, whole] = stream.events.map(({ json }) => json);
    assert.match(first.text, /window/);
    assert.ok(second.start > first.end);
    assert.equal(whole.text, `${first.text} ${second.text}`);
    assert.ok(whole.duration > second.end - 0.1);
    refused(await h.as({ 'x-api-key': key, accept: 'text/event-stream' })('POST', '/sdk/stt/transcribe', 'hello'), 400, 'AUDIO_UNREADABLE');
});

test('what is heard is counted in requests and seconds, and limits of requests hold', async (t) => {
    await awayFromMidnight();
    const h = await shared(t);
    const { call, id, key } = await newKey(h);
    const recording = await spokenCommand(call), sent = formOf(part('file', recording, 'a.wav'), part('model', 'whisper-1'));
    const { duration } = (await transcribe(call, recording)).body;
    await (await h.sse('/sdk/stt/transcribe', { method: 'POST', headers: { 'x-api-key': key }, body: recording })).ended;
    assert.equal((await call('POST', '/v1/audio/transcriptions', sent, formType)).status, 200);
    refused(await transcribe(call, Buffer.from('hello')), 400, 'AUDIO_UNREADABLE');
    const counted = async () => (await h.socket('GET', `/api/usage?group=provider,model,kind&kind=hearing&key=${id}`)).body.usage;
    await until(async () => (await counted())[0]?.requests === 3, { what: 'three requests are counted' });
    const [{ provider, model, failed, audio_seconds: seconds }] = await counted();
    assert.deepEqual([provider, model, failed], ['pocketsphinx_local', 'en-us', 0]);
    assert.ok(Math.abs(seconds - 3 * duration) < 0.02, `${seconds} s`);
    assert.equal((await call('POST', '/sdk/tts', { text: 'Hello.' })).status, 200);
    await h.cli('limit', 'set', 'key', id, '--characters-a-day', '1');          // of texts, not of sound
    refused(await call('POST', '/sdk/tts', { text: 'Hello.' }), 429, 'RATE_LIMIT');
    assert.equal((await transcribe(call, recording)).status, 200);
    await h.cli('limit', 'set', 'key', id, '--requests-a-day', '1');
    refused(await transcribe(call, recording), 429, 'RATE_LIMIT');
});

test('a recording is kept when the request says so, in the folder of its caller alone', async (t) => {
    const h = await shared(t);
    const app = await newApp(h, {}, ['stt.transcribe']), call = h.asApp(app), folder = join(h.dataDir, 'local-apps', app);
    const kept = () => (existsSync(folder) ? readdirSync(folder).filter((name) => /^recording-/.test(name)) : []);
    const usual = await transcribe(call, silentWav);
    refused(await transcribe(call, 'RIFF', '?keep=true'), 400, 'AUDIO_UNREADABLE');
    assert.deepEqual([usual.status, usual.body.path, kept()], [200, undefined, []]);
    const { body, text } = await call('POST', '/sdk/stt/transcribe', form(part('keep', 'true'), part('file', silentWav, '../a.wav')), formType);
    assert.deepEqual([dirname(body.path), kept()], [folder, [basename(body.path)]], text);
    assert.match(body.path, /\.wav$/);
    assert.ok(readFileSync(body.path).equals(silentWav));
    assert.equal(statSync(body.path).mode & 0o777, 0o600);
    const stream = await h.sse('/sdk/stt/transcribe?keep=true', { method: 'POST', headers: { 'x-app-id': app }, body: changed(silentWav, 'a.flac', []) });
    await stream.ended;
    assert.match(stream.events.at(-1).json.path, /\.flac$/);
    assert.equal(kept().length, 2);
});

test('an app needs the permission stt.transcribe, but none for the list', async (t) => {
    const h = await shared(t);
    refused(await transcribe(h.asApp(await newApp(h)), silentWav), 403, 'PERMISSION_REQUIRED');
    assert.equal((await h.asApp(await newApp(h, {}, ['stt.transcribe']))('POST', '/api/sdk/stt/transcribe', silentWav)).status, 200);
});

test('a client that leaves ends the worker, and one that crashes fails its request only', async (t) => {
    const h = await startHearth({ t });
    const { call, key } = await newKey(h);
    const long = changed(await spokenCommand(call), 'long.wav', [], ['repeat', '200']);
    const ears = () => speechWorkers(h).find(({ name }) => name.endsWith('ears'))?.pid;
    const begin = async () => {
        const stream = await h.sse('/sdk/stt/transcribe', { method: 'POST', headers: { 'x-api-key': key }, body: long });
        return { stream, pid: await until(ears, { what: 'a worker that hears' }) };
    };
    const left = await begin();
    left.stream.close();
    await until(() => !isAlive(left.pid), { what: 'the worker is killed' });
    const crashed = await begin();
    process.kill(crashed.pid, 'SIGSEGV');
    assert.equal((await crashed.stream.next(({ event }) => event === 'error')).json.code, 'SPEECH_FAILED');
    assert.equal((await transcribe(call, silentWav)).status, 200);
    await until(() => !ears(), { what: 'no worker is left' });
});

test('without the worker the service runs and says what is missing', async (t) => {
    const h = await startHearth({ t, settings: { 'speech.folder': '/nonexistent' } });
    const { call } = await newKey(h);
    const { body } = await call('GET', '/sdk/stt/providers');
    assert.equal(body.providers[0].configured, false);
    assert.match(body.providers[0].note, /apt install libpocketsphinx3 pocketsphinx-en-us/);
    refused(await transcribe(call, silentWav), 503, 'SPEECH_UNAVAILABLE');
    refused(await transcribe(call, Buffer.from('\x1a\x45\xdf\xa3', 'latin1')), 503, 'SPEECH_UNAVAILABLE');
    const { checks } = (await h.socket('GET', '/api/doctor')).body;
    assert.deepEqual(checks.filter(({ name, text }) => name === 'hearing' && /pocketsphinx/.test(text)).map(({ ok, advice }) => [ok, /install/.test(advice)]), [[true, true]]);
});
