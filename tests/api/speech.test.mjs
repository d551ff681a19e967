// Text to speech: shapes of decision D11, audio judged by sox and file, and workers that crash, hang or are missing.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { binary, sharedHearth, startHearth, until } from './harness.mjs';
import { admin, awayFromMidnight, isAlive, newApp, newKey, refused, refusedFields, residentKib, speechWorkers as workers } from './kit.mjs';

const shared = sharedHearth();
const sentence = 'Please open the window and turn on the light, it is a fine day in the north of the country.';
const twoSentences = 'Good day to you. How are you this fine morning?';
const voices = [['flite_local', 'slt'], ['flite_local', 'rms'], ['flite_local', 'awb'], ['flite_local', 'kal16'], ['espeak_local', 'en-us'], ['espeak_local', 'de+f3']];

// What sox and file say of audio: seconds, rate, level (RMS in dB), type.
function judged(t, bytes, type) {
    const dir = mkdtempSync(join(tmpdir(), 'speech '));
    t.after(() => rmSync(dir, { recursive: true, force: true }));
    const path = join(dir, `a.${type}`);
    writeFileSync(path, bytes);
    const said = spawnSync('sox', [path, '-n', 'stats'], { encoding: 'utf8' });
    assert.equal(said.status, 0, said.stderr);
    const number = (name) => Number(new RegExp(`^${name}\\s+(-?[\\d.]+)`, 'm').exec(said.stderr)[1]);
    const rate = Number(spawnSync('soxi', ['-r', path], { encoding: 'utf8' }).stdout);
    return { seconds: number('Length s'), level: number('RMS lev dB'), rate, type: spawnSync('file', ['-b', path], { encoding: 'utf8' }).stdout };
}

const workerOf = (h, engine) => workers(h).find(({ name }) => name.endsWith(engine))?.pid;

test('the providers name their voices, languages and speeds', async (t) => {
    const h = await shared(t);
    const { status, body } = await h.asApp(await newApp(h))('GET', '/sdk/tts/providers');
    assert.equal(status, 200);
    const [flite, espeak] = body.providers;
    assert.deepEqual([flite.id, espeak.id, body.default], ['flite_local', 'espeak_local', 'flite_local']);
    for (const provider of body.providers) {
        assert.equal(provider.configured, true, provider.note);
        assert.equal(provider.supportsStreaming, true);
        assert.deepEqual(provider.config.speed, { min: 0.5, max: 2, default: 1 });
    }
    assert.deepEqual(flite.config.voices, ['slt', 'rms', 'awb', 'kal16']);
    assert.deepEqual(flite.config.languages, ['en']);
    assert.ok(espeak.config.voices.length > 90);
    for (const language of ['de', 'ar', 'hi', 'cmn', 'en-us'])
        assert.ok(espeak.config.languages.includes(language), language);
});

test('every engine speaks, and all are about as loud', async (t) => {
    const h = await shared(t);
    const { call } = await newKey(h);
    const levels = [];
    for (const [provider, voice] of voices) {
        const reply = await call('POST', '/sdk/tts', { text: sentence, provider, voice });
        assert.equal(reply.status, 200, reply.text);
        assert.equal(reply.headers['content-type'], 'audio/wav');
        const audio = judged(t, reply.bytes, 'wav');
        assert.match(audio.type, /WAVE audio, Microsoft PCM, 16 bit, mono/);
        assert.equal(audio.rate, provider === 'flite_local' ? 16000 : 22050);
        assert.ok(audio.seconds > 3 && audio.seconds < 9, `${voice}: ${audio.seconds} s`);
        levels.push(audio.level);
    }
    assert.ok(Math.max(...levels) - Math.min(...levels) <= 3, levels.join(' '));
});

// flite gives silence for them.
test('a text in another script is spoken in a language of that script, unless the request or a setting says otherwise', async (t) => {
    const h = await startHearth({ t });
    const { call } = await newKey(h);
    const spoken = async (body) => {
        const reply = await call('POST', '/sdk/tts', body);
        assert.equal(reply.status, 200, reply.text);
        return judged(t, reply.bytes, 'wav');
    };
    for (const text of ['Привет, как дела?', '你好，今天天气很好。', 'Γειά σου Κόσμε', 'مرحبا بالعالم']) {
        const { rate, level, seconds } = await spoken({ text });
        assert.deepEqual([rate, level > -30, seconds > 0.7], [22050, true, true], `${text}: ${level} dB, ${seconds} s`);
    }
    assert.equal((await spoken({ text: 'Hello there, Привет.' })).rate, 16000);
    assert.equal((await spoken({ text: 'Привет', provider: 'flite_local' })).rate, 16000);
    assert.equal((await spoken({ text: 'Привет', voice: 'rms' })).rate, 16000);
    assert.equal((await spoken({ text: 'Привет', language: 'en' })).rate, 16000);
    const { headers } = await call('POST', '/v1/audio/speech', { model: 'tts-1', voice: 'alloy', input: 'Привет, как дела?' });
    assert.equal(headers['x-hearth-voice'], 'espeak_local/ru');
    await admin(h, 'PUT', '/api/settings/speech.voices', { value: 'ru=espeak_local/ru+f2' });
    assert.equal((await call('POST', '/v1/audio/speech', { model: 'tts-1', voice: 'alloy', input: 'Привет, как дела?' })).headers['x-hearth-voice'], 'espeak_local/ru+f2');
});

test('the speed changes the duration', async (t) => {
    const h = await shared(t);
    const { call } = await newKey(h);
    for (const provider of ['flite_local', 'espeak_local']) {
        const seconds = async (speed) => judged(t, (await call('POST', '/sdk/tts', { text: sentence, provider, speed })).bytes, 'wav').seconds;
        const usual = await seconds(undefined);
        assert.ok(Math.abs(await seconds(0.5) / usual - 2) < 0.2, provider);
        assert.ok(Math.abs(await seconds(2) / usual - 0.5) < 0.1, provider);
    }
});

test('the format is that of the body, else of Accept, else WAV', async (t) => {
    const h = await shared(t);
    const { key } = await newKey(h);
    const ask = (body, accept) => h.as({ 'x-api-key': key, accept })('POST', '/sdk/tts', { text: 'Good day. How are you?', language: 'de', ...body });
    for (const [body, accept, type] of [[{}, '*/*', 'audio/wav'], [{}, 'audio/mpeg', 'audio/mpeg'], [{}, 'text/html, audio/MP3;q=0.5', 'audio/mpeg'],
        [{ format: 'mp3' }, 'audio/wav', 'audio/mpeg'], [{ format: 'pcm' }, '*/*', 'audio/pcm'], [{ format: 'wav' }, 'audio/mpeg', 'audio/wav']])
        assert.equal((await ask(body, accept)).headers['content-type'], type, `${JSON.stringify(body)} ${accept}`);
    const mp3 = judged(t, (await ask({ format: 'mp3' }, '*/*')).bytes, 'mp3');
    assert.match(mp3.type, /MPEG ADTS, layer III, v2,\s+48 kbps, 22\.05 kHz, Monaural/);
    const wav = judged(t, (await ask({}, '*/*')).bytes, 'wav');
    assert.ok(Math.abs(mp3.seconds - wav.seconds) < 0.5, 'two sentences in one MP3');
    const pcm = await ask({ format: 'pcm' }, '*/*');
    assert.equal(pcm.headers['x-sample-rate'], '22050');
    assert.ok(Math.abs(pcm.bytes.length / 2 / 22050 - wav.seconds) < 0.1);
});

for (const [format, mimeType] of [['wav', 'audio/wav'], ['mp3', 'audio/mpeg']])
    test(`a stream of ${format} has one chunk a sentence, and each plays by itself`, async (t) => {
        const h = await shared(t);
        const { key } = await newKey(h);
        const stream = await h.sse('/sdk/tts/stream', { method: 'POST', headers: { 'x-api-key': key }, body: { text: '# Title\nDr. Smith said *hello*. It is 3.50. Bye!', format } });
        await stream.ended;
        assert.deepEqual(stream.events.map(({ event }) => event), ['info', 'chunk', 'chunk', 'chunk', 'chunk', 'done']);
        assert.deepEqual(stream.events[0].json, { totalChunks: 4, mimeType });
        stream.events.slice(1, 5).forEach(({ json }, index) => {
            assert.deepEqual([json.index, json.total, json.mimeType, json.sampleRate], [index, 4, mimeType, 16000]);
            assert.ok(judged(t, Buffer.from(json.audio, 'base64'), format).seconds > 0.2);
        });
        assert.match(stream.text(), /^(event: \w+\ndata: [^\n]+\n\n)+$/);
    });

test('what cannot be spoken is refused with the field and its rule', async (t) => {
    const h = await shared(t);
    const { call } = await newKey(h);
    for (const path of ['/sdk/tts', '/sdk/tts/stream']) {
        for (const [body, field] of [[{}, 'text'], [{ text: '' }, 'text'], [{ text: ' ... *** ' }, 'text'], [{ text: 'x'.repeat(20001) }, 'text'],
            [{ text: 'a', speed: 0.49 }, 'speed'], [{ text: 'a', speed: 2.01 }, 'speed'], [{ text: 'a', voice: 'nobody' }, 'voice'],
            [{ text: 'a', provider: 'flite_local', voice: 'de' }, 'voice'], [{ text: 'a', provider: 'espeak_local', voice: 'de+../x' }, 'voice'],
            [{ text: 'a', provider: 'nobody' }, 'provider'], [{ text: 'a', language: 'xx' }, 'language'],
            [{ text: 'a', provider: 'flite_local', language: 'de' }, 'language'], [{ text: 'a', format: 'ogg' }, 'format']])
            refusedFields(await call('POST', path, body), field);
    }
    assert.equal((await call('POST', '/sdk/tts', { text: `${' '.repeat(19998)}a.`, provider: 'espeak_local' })).status, 200);
});

test('an app needs the permission tts.generate, but none for the list', async (t) => {
    const h = await shared(t);
    const call = h.asApp(await newApp(h));
    for (const path of ['/sdk/tts', '/sdk/tts/stream'])
        refused(await call('POST', path, { text: 'Hello.' }), 403, 'PERMISSION_REQUIRED');
    const allowed = h.asApp(await newApp(h, {}, ['tts.generate']));
    assert.equal((await allowed('POST', '/api/sdk/tts', { text: 'Hello.', num_inference_steps: 5, model: 'any' })).status, 200);
});

test('the setting speech.voices chooses the voice of a language', async (t) => {
    const h = await startHearth({ t, settings: { 'speech.voices': 'de=espeak_local/de+f2,en=espeak_local/en-gb' } });
    const { call } = await newKey(h);
    const rate = async (body) => judged(t, (await call('POST', '/sdk/tts', { text: 'Hello.', ...body })).bytes, 'wav').rate;
    assert.equal((await call('GET', '/sdk/tts/providers')).body.default, 'espeak_local');
    assert.equal(await rate({}), 22050);
    assert.equal(await rate({ language: 'de-AT' }), 22050);
    assert.equal(await rate({ provider: 'flite_local' }), 16000);
    assert.equal(await rate({ voice: 'slt' }), 16000);
});

test('the doctor names what the setting speech.voices has and nobody speaks', async (t) => {
    const h = await startHearth({ t });
    const choose = (value) => admin(h, 'PUT', '/api/settings/speech.voices', { value });
    const faults = async () => (await admin(h, 'GET', '/api/doctor')).checks.filter(({ name, ok }) => name === 'speech' && !ok);
    await choose('de=nobody/x,fr=espeak_local/no-such,en=flite_local/slt');
    const [provider, voice, ...others] = await faults();
    assert.deepEqual(others, []);
    assert.match(provider.text, /speech\.voices has de=nobody\/x, and there is no provider nobody that speaks/);
    assert.match(provider.advice, /`hearth provider add`.*`hearth settings set speech\.voices/);
    assert.match(voice.text, /fr=espeak_local\/no-such, and espeak_local has no voice no-such/);
    assert.match(voice.advice, /GET \/sdk\/tts\/providers/);
    await choose('de=espeak_local/de');
    assert.deepEqual(await faults(), []);
});

test('fifty requests at once are all spoken, by one worker', async (t) => {
    const h = await shared(t);
    const keys = [await newKey(h), await newKey(h)];
    const replies = await Promise.all(Array.from({ length: 50 }, (_, i) => keys[i % 2].call('POST', '/sdk/tts', { text: `Number ${i}.`, provider: 'espeak_local' })));
    assert.deepEqual(replies.filter(({ status }) => status !== 200).map(({ text }) => text), []);
    assert.equal(workers(h).filter(({ name }) => name.endsWith('espeak')).length, 1);
});

test('a worker that crashes fails one request only', async (t) => {
    const h = await startHearth({ t, settings: { 'speech.cache_mb': 0 } });
    const { call, key } = await newKey(h);
    const long = `${sentence} `.repeat(60);
    const failure = await until(async () => {
        const stream = await h.sse('/sdk/tts/stream', { method: 'POST', headers: { 'x-api-key': key }, body: { text: long, voice: 'slt' } });
        await stream.next(({ event }) => event === 'chunk');
        process.kill(workerOf(h, 'flite'), 'SIGSEGV');               // between two sentences, the service starts another worker unnoticed
        const last = await Promise.race([stream.next(({ event }) => event === 'error' || event === 'done'), stream.next(({ json }) => json?.index > 8)]);
        stream.close();
        return last.event === 'error' && last;
    });
    assert.equal(failure.json.code, 'SPEECH_FAILED');
    assert.equal((await call('POST', '/sdk/tts', { text: 'Hello.', voice: 'slt' })).status, 200);
});

test('a client that leaves ends its worker, or gives up its place in the queue', async (t) => {
    const h = await startHearth({ t });
    const { call, key } = await newKey(h);
    await call('POST', '/sdk/tts', { text: 'Hello.', voice: 'rms' });
    const pid = workerOf(h, 'flite');
    process.kill(pid, 'SIGSTOP');
    const open = () => h.sse('/sdk/tts/stream', { method: 'POST', headers: { 'x-api-key': key }, body: { text: sentence, voice: 'rms' } });
    const streams = [await open(), await open()];                     // one waits for the worker, the other for its turn
    await Promise.all(streams.map((stream) => stream.next(({ event }) => event === 'info')));
    streams.forEach((stream) => stream.close());
    await until(() => !isAlive(pid), { what: 'the worker is killed' });
    assert.equal((await call('POST', '/sdk/tts', { text: 'Hello again.', voice: 'rms' })).status, 200);
    await until(() => workers(h).length === 1, { what: 'one worker is left' });          // the one that was begun for the second stream ends too
});

test('a long text streams from the start, and its worker stays small', async (t) => {
    const h = await startHearth({ t, settings: { 'speech.cache_mb': 0 } });
    const { key } = await newKey(h);
    const text = `${'All work and no play makes Jack a dull boy, as they say. '.repeat(350)}`.slice(0, 20000);
    const stream = await h.sse('/sdk/tts/stream', { method: 'POST', headers: { 'x-api-key': key }, body: { text, provider: 'espeak_local', speed: 2 } });
    const first = await stream.next(({ event }) => event === 'chunk');
    assert.ok(stream.events.length < first.json.total, `${stream.events.length} of ${first.json.total} had come at the first one`);
    await stream.next(({ json }) => json?.index === first.json.total - 1);
    assert.ok(residentKib(workerOf(h, 'espeak')) < 100_000);
    await stream.ended;
    assert.equal(stream.events.length, first.json.total + 2);
});

test('what was just spoken is kept for the same caller, as long as the setting allows it', async (t) => {
    const h = await startHearth({ t });
    const [one, other] = [await newKey(h), await newKey(h)];
    const ask = async ({ call }, more) => (await call('POST', '/sdk/tts', { text: twoSentences, voice: 'slt', ...more })).bytes;
    const first = await ask(one);                                     // slt has noise in it, so no two syntheses are alike
    assert.ok(first.equals(await ask(one)));
    assert.ok(!first.equals(await ask(other)));
    assert.ok(!first.equals(await ask(one, { speed: 1.5 })));
    const pid = workerOf(h, 'flite');
    process.kill(pid, 'SIGSTOP');
    assert.ok(first.equals(await ask(one)), 'without a worker');
    process.kill(pid, 'SIGCONT');
    await h.socket('PUT', '/api/settings/speech.cache_mb', { value: '0' });
    assert.ok(!first.equals(await ask(one)));
});

test('an idle worker ends', async (t) => {
    const h = await startHearth({ t, settings: { 'speech.idle_s': 1 } });
    const { call } = await newKey(h);
    assert.equal((await call('POST', '/sdk/tts', { text: 'Hello.' })).status, 200);
    await until(() => workers(h).length === 0, { what: 'the worker has ended' });
    assert.equal((await call('POST', '/sdk/tts', { text: 'Hello again.' })).status, 200);
});

test('speech is counted in requests, characters and seconds', async (t) => {
    await awayFromMidnight();
    const h = await startHearth({ t, settings: { 'limits.tokens_a_day': 1 } });
    const { call, id } = await newKey(h);
    const audio = judged(t, (await call('POST', '/sdk/tts', { text: twoSentences, voice: 'slt' })).bytes, 'wav');
    assert.equal((await call('POST', '/v1/audio/speech', { input: 'Guten Tag, \u{1F600} Welt.', language: 'de' })).status, 200);
    refused(await call('POST', '/sdk/tts', { text: twoSentences, voice: 'nobody' }), 400, 'VALIDATION_ERROR');
    const { usage, totals } = (await h.socket('GET', `/api/usage?group=provider,model,kind&key=${id}`)).body;
    assert.deepEqual(usage.map(({ provider, model, kind, requests, characters, failed }) => [provider, model, kind, requests, characters, failed]).sort(),
        [['espeak_local', 'de', 'speech', 1, [...'Guten Tag, \u{1F600} Welt.'].length, 0], ['flite_local', 'slt', 'speech', 1, twoSentences.length, 0]]);
    const { audio_seconds: seconds } = usage.find(({ model }) => model === 'slt');
    assert.ok(Math.abs(seconds - audio.seconds) < 0.02, `${seconds} s`);
    assert.equal(totals.total_tokens, 0);
    assert.match((await h.cli('usage', '--by', 'kind')).stdout, /CHARACTERS/);
    await h.cli('limit', 'set', 'key', id, '--characters-a-day', '10');
    refused(await call('POST', '/sdk/tts', { text: 'Hello.' }), 429, 'RATE_LIMIT');
});

test('with speech.workers 0 no worker stays', async (t) => {
    const h = await startHearth({ t, settings: { 'speech.workers': 0 } });
    const { call } = await newKey(h);
    assert.equal((await call('POST', '/sdk/tts', { text: 'Hello.' })).status, 200);
    await until(() => workers(h).length === 0, { what: 'the worker has ended' });
});

test('without workers the service runs and says what is missing', async (t) => {
    const h = await startHearth({ t, settings: { 'speech.folder': '/nonexistent' } });
    const { call } = await newKey(h);
    const { body } = await call('GET', '/sdk/tts/providers');
    assert.deepEqual(body.providers.map(({ configured }) => configured), [false, false]);
    assert.match(body.providers[0].note, /apt install libflite1/);
    const reply = await call('POST', '/sdk/tts', { text: 'Hello.' });
    refused(reply, 503, 'SPEECH_UNAVAILABLE');
    assert.equal(reply.headers['x-should-retry'], 'false');
    const { checks } = (await h.socket('GET', '/api/doctor')).body;
    const found = checks.filter(({ name }) => name === 'speech');
    assert.deepEqual(found.map(({ ok }) => ok), [true, true], 'speech is optional');
    assert.ok(found.every(({ text, advice }) => /apt install/.test(text) && /install the packages/.test(advice)));
    const { stdout } = await h.cli('doctor');
    assert.match(stdout, /ok {4}speech[^\n]+apt install libflite1[^\n]+\n +-> install the packages/);
});

// As an upgrade of the package does, or a build.
test('a service whose program file is replaced while it runs finds its workers', async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'speech ')), program = join(folder, 'hearth');
    t.after(() => rmSync(folder, { recursive: true, force: true }));
    for (const name of ['hearth', 'hearth-speech-espeak'])
        copyFileSync(join(dirname(binary), name), join(folder, name));
    const h = await startHearth({ t, program });
    copyFileSync(program, `${program}.new`);
    renameSync(`${program}.new`, program);
    const reply = await (await newKey(h)).call('POST', '/sdk/tts', { text: 'Hello.', provider: 'espeak_local' });
    assert.equal(reply.status, 200, reply.text);
});

// ---- in OpenAI's form ----

// Of an answer in pieces: when each piece of its body came is not looked at, only that it came at all.
const spoken = (h, key, body) => fetch(`${h.url}/v1/audio/speech`, { method: 'POST', headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' }, body: JSON.stringify(body) });
const bytesOf = async (reply) => Buffer.from(await reply.arrayBuffer());

test('POST /v1/audio/speech speaks MP3, WAV and PCM of 24 kHz', async (t) => {
    const h = await shared(t);
    const { key } = await newKey(h);
    const ask = async (body) => {
        const reply = await spoken(h, key, { model: 'tts-1', voice: 'alloy', input: twoSentences, ...body });
        assert.equal(reply.status, 200);
        return reply;
    };
    const mp3 = await ask({});
    assert.deepEqual([mp3.headers.get('content-type'), mp3.headers.get('x-hearth-voice'), mp3.headers.get('x-hearth-ignored')], ['audio/mpeg', 'flite_local/rms', null]);
    const { seconds } = judged(t, await bytesOf(mp3), 'mp3');
    assert.ok(seconds > 2 && seconds < 6, `${seconds} s`);
    const wav = await ask({ response_format: 'wav', voice: { id: 'espeak_local/en-gb' }, instructions: 'Speak softly.' });
    assert.deepEqual([wav.headers.get('x-hearth-voice'), wav.headers.get('x-hearth-ignored')], ['espeak_local/en-gb', 'instructions']);
    assert.equal(judged(t, await bytesOf(wav), 'wav').rate, 22050);
    const open = await bytesOf(await ask({ response_format: 'wav', stream_format: 'audio' }));   // of no known length
    assert.deepEqual([open.readUInt32LE(4), open.readUInt32LE(40)], [0xffffffff, 0xffffffff - 36]);
    for (const model of ['flite_local', 'espeak_local']) {
        const pcm = await bytesOf(await ask({ response_format: 'pcm', model, input: sentence }));
        const whole = judged(t, await bytesOf(await ask({ response_format: 'wav', model, input: sentence })), 'wav');
        assert.ok(Math.abs(pcm.length / 2 / 24000 - whole.seconds) < 0.2, model);
    }
});

test('POST /v1/audio/speech as events gives pieces of one file, and then the usage', async (t) => {
    const h = await shared(t);
    const { key } = await newKey(h);
    const stream = await h.sse('/v1/audio/speech', { method: 'POST', headers: { 'x-api-key': key }, body: { input: twoSentences, model: 'gpt-4o-mini-tts', voice: 'nova', stream_format: 'sse', language: 'de' } });
    await stream.ended;
    assert.deepEqual(stream.events.map(({ json }) => json.type), ['speech.audio.delta', 'speech.audio.delta', 'speech.audio.done']);
    const audio = Buffer.concat(stream.events.slice(0, 2).map(({ json }) => Buffer.from(json.audio, 'base64')));
    assert.ok(judged(t, audio, 'mp3').seconds > 2);
    const { usage } = stream.events.at(-1).json;
    assert.equal(usage.total_tokens, usage.input_tokens + usage.output_tokens);
});

test('what /v1/audio/speech cannot do is refused in the form of OpenAI', async (t) => {
    const h = await shared(t);
    const { key } = await newKey(h);
    for (const [body, param] of [[{ input: undefined }, 'input'], [{ input: 'x'.repeat(20001) }, 'input'], [{ input: '***' }, 'input'], [{ voice: 'nobody' }, 'voice'], [{ voice: 5 }, 'voice'],
        [{ voice: { id: 'espeak_local/nobody' } }, 'voice'], [{ voice: 'x'.repeat(500) }, 'voice'], [{ response_format: 'opus' }, 'response_format'], [{ stream_format: 'x' }, 'stream_format'], [{ speed: 4 }, 'speed']]) {
        const reply = await spoken(h, key, { model: 'tts-1', voice: 'alloy', input: 'Hello.', ...body });
        const { error } = await reply.json();
        assert.deepEqual([reply.status, error.type, error.param], [400, 'invalid_request_error', param], JSON.stringify(body));
    }
    const poor = h.asApp(await newApp(h));
    assert.equal((await poor('POST', '/v1/audio/speech', { input: 'Hello.' })).status, 403);
    const { body } = await poor('GET', '/v1/audio/voices');
    for (const id of ['flite_local/rms', 'espeak_local/de'])
        assert.ok(body.voices.some((voice) => voice.id === id), id);
});

for (const stream_format of ['audio', 'sse'])
    test(`a worker that crashes in a stream of ${stream_format} breaks it off`, async (t) => {
        const h = await startHearth({ t, settings: { 'speech.cache_mb': 0 } });
        const { key } = await newKey(h);
        const broken = await until(async () => {
            const reply = await spoken(h, key, { input: `${sentence} `.repeat(100), model: 'flite_local', voice: 'slt', stream_format });
            const reader = reply.body.getReader();
            await reader.read();
            process.kill(workerOf(h, 'flite'), 'SIGSEGV');           // between two sentences, the service starts another worker unnoticed
            let text = '';
            try {
                for (let n = 0; n < 400_000;) {
                    const { done, value } = await reader.read();
                    if (done)
                        return stream_format === 'sse' && /"hearth_code":"SPEECH_FAILED"/.test(text);
                    n += value.length;
                    text += Buffer.from(value).toString('latin1').slice(-2000);
                }
                await reader.cancel();
                return false;
            } catch {
                return stream_format === 'audio';                    // the connection ended without the end of the body
            }
        });
        assert.ok(broken);
    });
