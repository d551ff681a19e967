// A hostile provider of speech behind an app of ordinary grants: whatever it says, the answer is an error that names it, the service lives, holds little and
// tells nobody its keys (docs/security.md, "Peer"). Its double, which does as it should, is tests/peers/speech_double.mjs.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startHearth, until } from '../api/harness.mjs';
import { admin, newApp, refused, silentWav } from '../api/kit.mjs';
import { changed } from '../api/sound.mjs';
import { tone, wav } from '../peers/speech_double.mjs';
import { hostileHttp, residentKib, responseBytes } from './kit.mjs';

const isSanitized = (process.env.HEARTH_BIN ?? 'debug').includes('debug');
const key = 'key-hostile-speech-0123456789';
const sound = wav(tone('Hello.'));
const presets = { 'generic-openai': '/v1', openai: '/v1', elevenlabs: '', deepgram: '', 'azure-speech': '', piper: '' };
const text = 'Say this one sentence.';

// What the present provider answers to requests for sound, for a transcript and for a list.
let speak = (socket) => socket.end(responseBytes(sound, { type: 'audio/wav' }));
let list = (socket) => socket.end(responseBytes('{"error":"no list"}', { status: 404 }));
let h, call, server, endServer;

before(async () => {
    h = await startHearth({ settings: { 'llm.rest_after': 0, 'llm.models_ttl_s': 0, 'speech.cache_mb': 0 } });
    await waitFor(60);
    server = await hostileHttp({ after: (end) => { endServer = end; } }, (request, socket) => (request.method === 'GET' ? list : speak)(socket));
    for (const [preset, base] of Object.entries(presets))
        await admin(h, 'POST', '/api/providers', { preset, name: preset, for: 'speech', base_url: `${server.url}${base}`, api_key: key });
    await admin(h, 'POST', '/api/providers', { preset: 'whispercpp', name: 'whispercpp', base_url: server.url });
    call = h.asApp(await newApp(h, {}, ['tts.generate', 'stt.transcribe']));
});
after(async () => {
    await h?.stop();
    endServer?.();
});

// The limit is short only where a provider is silent: elsewhere a busy machine would meet it too.
const waitFor = (seconds) => admin(h, 'PUT', '/api/settings/speech.timeout_s', { value: seconds });
const impatient = async (work) => { await waitFor(2); return work().finally(() => waitFor(60)); };

const say = (provider, more = {}) => call('POST', '/sdk/tts', { text, provider, voice: provider === 'openai' ? 'nova' : 'some-voice', ...more });
const transcribe = (provider) => call('POST', `/sdk/stt/transcribe?provider=${provider}`, silentWav);

function failed(reply, provider, what) {
    assert.equal(reply.status, 502, `${provider}: ${what}: ${reply.status} ${reply.text.slice(0, 300)}`);
    refused(reply, 502, 'SPEECH_FAILED');
    assert.match(reply.body.error, new RegExp(provider), what);
    assert.equal(reply.text.includes(key), false, 'a key stands in an answer');
    assert.equal(/127\.0\.0\.1/.test(reply.text), false, `an address stands in an answer: ${reply.text}`);
}

// Writes for ever, as fast as it is read.
function pour(socket, head, piece) {
    const write = () => {
        while (!socket.destroyed && socket.write(piece))
            ;
    };
    socket.on('drain', write);
    socket.write(head);
    write();
}

const audioHead = 'HTTP/1.1 200 OK\r\ncontent-type: audio/wav\r\n\r\n';
const header = (change) => { const bytes = Buffer.from(sound); change(bytes); return bytes; };
const lies = [
    ['a page in place of audio', (socket) => socket.end(responseBytes('<html>Welcome</html>', { type: 'text/html' }))],
    ['JSON in place of audio', (socket) => socket.end(responseBytes({ audio: 'x' }))],
    ['nothing', (socket) => socket.end(responseBytes('', { type: 'audio/wav' }))],
    ['the end of the connection', (socket) => socket.end()],
    ['a length that is not kept', (socket) => socket.end(`HTTP/1.1 200 OK\r\ncontent-type: audio/wav\r\ncontent-length: 100000\r\n\r\n${sound.subarray(0, 500).toString('latin1')}`)],
    ['a redirect to the service itself', (socket) => socket.end(responseBytes('', { status: 302, headers: { location: `${h.url}/healthz` } }))],
    ['a redirect to a file', (socket) => socket.end(responseBytes('', { status: 301, headers: { location: 'file:///etc/passwd' } }))],
    ['an error that repeats the key', (socket) => socket.end(responseBytes({ error: { message: `the key ${key} is wrong` } }, { status: 401 }))],
    ['a failure', (socket) => socket.end(responseBytes('out of order', { status: 500 }))],
    ['audio without an end', (socket) => pour(socket, audioHead, Buffer.alloc(65_536, 1))],
    ['a head without an end', (socket) => pour(socket, 'HTTP/1.1 200 OK\r\n', `x: ${'y'.repeat(1000)}\r\n`)],
    ['bytes that are no HTTP', (socket) => socket.end(Buffer.alloc(5000, 0x80))],
    ['silence', () => {}],
    ['silence after the head', (socket) => socket.write(audioHead)],
];
const falseWavs = [
    ['bytes that are no WAV', Buffer.alloc(5000, 7)],
    ['a WAV that is cut in its header', sound.subarray(0, 30)],
    ['a WAV that breaks off', sound.subarray(0, 2000)],
    ['a WAV without sound', sound.subarray(0, 44)],
    ['a WAV of no channels', header((bytes) => bytes.writeUInt16LE(0, 22))],
    ['a WAV of 65,535 channels', header((bytes) => bytes.writeUInt16LE(65_535, 22))],
    ['a WAV of a rate of 0', header((bytes) => bytes.writeUInt32LE(0, 24))],
    ['a WAV of a rate of 4 GHz', header((bytes) => bytes.writeUInt32LE(0xffffffff, 24))],
    ['a WAV of 3 bits', header((bytes) => bytes.writeUInt16LE(3, 34))],
    ['a WAV whose chunk has 4 GiB', header((bytes) => bytes.writeUInt32LE(0xffffffff, 16))],
    ['a FLAC that grows above 16 MiB', changed(sound, 'a.flac', [], ['pad', '0', '400'])],
    ['a FLAC of 96 kHz', changed(sound, 'a.flac', ['-r', '96000'])],
    ['an Ogg that ends in its head', changed(sound, 'a.ogg', []).subarray(0, 100)],
    ['an MP3 of zeros', Buffer.concat([Buffer.from([0xff, 0xf3, 0x44, 0xc4]), Buffer.alloc(4000)])],
];

for (const provider of Object.keys(presets))
    test(`${provider}: each lie is an error that names the provider`, async () => {
            for (const [what, answer] of lies) {
            if (/silence/.test(what) && provider !== 'generic-openai')
                continue;                   // the deadline is the same for all
            speak = answer;
            const lie = async () => failed(await say(provider), provider, what);
            await (/silence/.test(what) ? impatient(lie) : lie());
        }
        const isRaw = provider === 'elevenlabs' || provider === 'openai';
        for (const [what, bytes] of isRaw ? [['half a sample', Buffer.alloc(4001)]] : falseWavs) {
            speak = (socket) => socket.end(responseBytes(bytes, { type: 'audio/wav' }));
            failed(await say(provider), provider, what);
        }
        speak = (socket) => socket.end(responseBytes(isRaw ? tone('Hello.') : sound, { type: isRaw ? 'audio/pcm' : 'audio/wav' }));
        assert.equal((await say(provider)).status, 200, 'the next one is heard');
    });

// What OpenAI's events may lie: each of them in a whole sentence, and after sound that was heard.
const event = (value) => `data: ${typeof value === 'string' ? value : JSON.stringify(value)}\n\n`;
const delta = (audio) => event({ type: 'speech.audio.delta', audio: Buffer.isBuffer(audio) ? audio.toString('base64') : audio });
const spoken = delta(tone('x'.repeat(50))), done = event({ type: 'speech.audio.done', usage: {} });
const falseEvents = [
    ['nothing', ''],
    ['no end', spoken],
    ['an end alone', done],
    ['an event that is cut', spoken + delta(tone('Hello.')).slice(0, 200)],
    ['no JSON', `${spoken}data: {"type":"speech\n\n${done}`],
    ['a list', `${spoken}data: [1,2]\n\n${done}`],
    ['200,000 levels', `${spoken}data: ${'{"audio":'.repeat(100_000)}\n\n${done}`],
    ['sound that is no base64', spoken + delta('%%%%') + done],
    ['base64 without its padding', spoken + delta('AAA') + done],
    ['sound that is a number', spoken + delta(7) + done],
    ['sound that is absent', spoken + event({ type: 'speech.audio.delta' }) + done],
    ['half a sample', spoken + delta(Buffer.alloc(3)) + done],
    ['an event above 1 MiB', spoken + delta(Buffer.alloc(1 << 20)) + done],
    ['a line without an end', `${spoken}data: ${'x'.repeat(2 << 20)}`],
    ['an error that repeats the key', spoken + event({ type: 'error', error: { message: `the key ${key} is spent`, code: 'x' } }) + done],
    ['an error of text', spoken + event({ error: 'out of order' }) + done],
];
const eventsHead = 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n';
const openStream = async (body) => fetch(`${h.url}/v1/audio/speech`, { method: 'POST', headers: { 'content-type': 'application/json', 'x-app-id': await newApp(h, {}, ['tts.generate']) },
    body: JSON.stringify({ input: text, voice: 'openai/nova', response_format: 'pcm', ...body }) });

test('each lie of events is an error that names the provider, also after sound that was heard', async () => {
    for (const [what, events] of falseEvents) {
        speak = (socket) => socket.end(eventsHead + events);
        failed(await say('openai'), 'openai', what);
        const streamed = await openStream({ stream_format: 'sse' }), said = await streamed.text();
        assert.ok(!said.includes(key) && !said.includes('speech.audio.done'), what);
        assert.match(said, /"code":"speech_failed"/, what);
        assert.match(said, /openai: it /, what);
        if (!events.startsWith(spoken))
            continue;
        assert.match(said, /speech\.audio\.delta/, what);
        await assert.rejects(openStream({}).then((reply) => reply.arrayBuffer()), what);
    }
    speak = (socket) => socket.end(eventsHead + spoken + event({ type: 'speech.audio.unknown', audio: 'AAAA' }) + done + delta('%%%') + event('[DONE]') + done);
    const { bytes, status } = await say('openai', { format: 'pcm' });
    assert.deepEqual([status, bytes.length], [200, tone('x'.repeat(50)).length], 'what follows the end is not read');
});

test('events without an end are ended: sound above 16 MiB, comments, an open connection after the last event', async () => {
    const before = residentKib(h.pid), big = delta(Buffer.alloc(700_000));
    speak = (socket) => pour(socket, eventsHead, big);
    failed(await say('openai'), 'openai', 'sound without an end');
    assert.match(await (await openStream({ stream_format: 'sse' })).text(), /it sent more than 16 MiB of sound/);
    speak = (socket) => pour(socket, eventsHead, ': ping\n\n'.repeat(1000));
    failed(await say('openai'), 'openai', 'comments without an end');
    speak = (socket) => socket.write(eventsHead + spoken + done);
    assert.equal((await say('openai')).status, 200, 'the connection stays open after the last event');
    if (!isSanitized)
        assert.ok(residentKib(h.pid) - before < 128 * 1024, `${residentKib(h.pid) - before} KiB`);
});

test('the events of a sentence have at most 24 MiB', async () => {
    const line = `:${'.'.repeat(1022)}\n`, n = (24 << 20) - spoken.length - done.length, nLines = Math.floor(n / line.length) - 1;
    const comments = (more) => `:${'.'.repeat(n - nLines * line.length - 2 + more)}\n${line.repeat(nLines)}`;
    speak = (socket) => socket.end(eventsHead + spoken + comments(0) + done);
    const reply = await say('openai');
    assert.equal(reply.status, 200, reply.text.slice(0, 300));
    speak = (socket) => socket.end(eventsHead + spoken + comments(1) + done);
    failed(await say('openai'), 'openai', 'one byte more');
});

test('a refusal is read as far as 64 KiB', async () => {
    const body = (n) => { const end = '","error":{"message":"out of ink"}}'; return `{"pad":"${'.'.repeat(n - 8 - end.length)}${end}`; };
    for (const [n, isRead] of [[64 << 10, true], [(64 << 10) + 1, false]]) {
        speak = (socket) => socket.end(responseBytes(body(n), { status: 400 }));
        const reply = await say('openai');
        failed(reply, 'openai', `a refusal of ${n} bytes`);
        assert.equal(reply.body.error.includes('out of ink'), isRead, reply.body.error);
    }
});

test('events that were not asked for, and samples in place of events', async () => {
    speak = (socket) => socket.end(eventsHead + spoken + done);
    for (const provider of ['generic-openai', 'elevenlabs'])
        failed(await say(provider), provider, 'events');
    failed(await say('openai', { model: 'tts-1' }), 'openai', 'events of tts-1');
    speak = (socket) => socket.end(responseBytes(tone('Hello.'), { type: 'audio/pcm' }));
    assert.equal((await say('openai')).status, 200);
});

test('a sentence has at most 16 MiB', async () => {
    const most = 16 << 20, bytes = wav(Buffer.alloc(most - 44));
    speak = (socket) => socket.end(responseBytes(bytes, { type: 'audio/wav' }));
    const reply = await say('generic-openai');
    assert.equal(reply.status, 200, reply.text.slice(0, 300));
    assert.equal(reply.bytes.length, most);
    speak = (socket) => socket.end(responseBytes(Buffer.concat([bytes, Buffer.alloc(1)]), { type: 'audio/wav' }));
    failed(await say('generic-openai'), 'generic-openai', 'one byte more');
});

test('a failure in the midst of a stream ends it with an event', async () => {
    let n = 0;
    speak = (socket) => { n += 1; socket.end(n === 1 ? responseBytes(sound, { type: 'audio/wav' }) : responseBytes('<html>', { type: 'text/html' })); };
    const stream = await h.sse('/sdk/tts/stream', { method: 'POST', headers: { 'x-app-id': await newApp(h, {}, ['tts.generate']) }, body: { text: 'One sentence. Another sentence.', provider: 'generic-openai', voice: 'x' } });
    const last = await stream.next(({ event }) => event === 'error' || event === 'done');
    assert.deepEqual([last.event, last.json.code], ['error', 'SPEECH_FAILED']);
    assert.match(last.json.error, /generic-openai: it sent text\/html/);
    stream.close();
});

test('lists of voices lie too: no provider hides the others, and a list has its limit', async () => {
    const million = JSON.stringify({ voices: Array.from({ length: 100_000 }, (_, i) => `voice-${i}`) });
    const lists = [
        ['no JSON', (socket) => socket.end(responseBytes('<html>'))],
        ['200,000 levels', (socket) => socket.end(responseBytes('{"voices":'.repeat(100_000)))],
        ['other types', (socket) => socket.end(responseBytes({ voices: [1, null, {}, [], { id: 5 }, { id: '' }, { id: 'a\nb' }, { id: 'ü' }, 'x'.repeat(65), 'good'], tts: 7 }))],
        ['a hundred thousand', (socket) => socket.end(responseBytes(million))],
        ['endless', (socket) => pour(socket, 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n{"voices":["', 'x'.repeat(65_536))],
        ['silence', () => {}],
    ];
    for (const [i, [what, answer]] of lists.entries()) {
        const name = `lists-${i}`;              // after a failure a provider is left alone for some seconds
        await admin(h, 'POST', '/api/providers', { preset: 'generic-openai', name, for: 'speech', base_url: server.url });
        list = answer;
        const ask = () => call('GET', '/sdk/tts/providers');
        const { status, body } = await (what === 'silence' ? impatient(ask) : ask());
        assert.equal(status, 200, what);
        const mine = body.providers.find(({ id }) => id === name);
        assert.ok(body.providers.find(({ id }) => id === 'flite_local').config.voices.includes('rms'), what);
        if (what === 'other types')
            assert.deepEqual(mine.config.voices, ['good']);
        else if (what === 'a hundred thousand')
            assert.equal(mine.config.voices.length, 2000);
        else
            assert.match(mine.note, /^Its voices are not known: lists-\d: /, what);
        await admin(h, 'DELETE', `/api/providers/${name}`);
    }
    list = (socket) => socket.end(responseBytes('{"error":"no list"}', { status: 404 }));
});

const transcripts = [
    ['no JSON', (socket) => socket.end(responseBytes('<html>'))],
    ['a list', (socket) => socket.end(responseBytes('[1,2,3]'))],
    ['no text', (socket) => socket.end(responseBytes({ words: [] }))],
    ['a text of another type', (socket) => socket.end(responseBytes({ text: 5, results: 5 }))],
    ['a text of 2 MiB', (socket) => socket.end(responseBytes({ text: 'word '.repeat(420_000) }))],
    ['200,000 levels', (socket) => socket.end(responseBytes('{"text":'.repeat(200_000)))],
    ['without an end', (socket) => pour(socket, 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n{"text":"', 'x'.repeat(65_536))],
    ['a length that is not kept', (socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{"text":"')],
    ['a redirect', (socket) => socket.end(responseBytes('', { status: 307, headers: { location: `${h.url}/healthz` } }))],
];

for (const provider of ['generic-openai', 'deepgram', 'whispercpp'])
    test(`${provider}: each lie about a recording is an error that names the provider`, async () => {
            for (const [what, answer] of transcripts) {
            if (provider === 'deepgram' && what === 'a text of 2 MiB')
                continue;
            speak = answer;
            failed(await transcribe(provider), provider, what);
        }
    });

test('a transcript has at most 1 MiB', async () => {
    const most = (1 << 20) - 1;
    speak = (socket) => socket.end(responseBytes({ text: 'x'.repeat(most) }));
    assert.equal((await transcribe('generic-openai')).body.text.length, most);
    speak = (socket) => socket.end(responseBytes({ text: 'x'.repeat(most + 1) }));
    failed(await transcribe('generic-openai'), 'generic-openai', 'one byte more');
});

test('times that no recording can have are brought into it', async () => {
    const words = [{ word: 'one', start: -5, end: 1e300 }, { word: 'two', start: 9, end: 3 }, { word: '', start: 0, end: 1 }, { word: 5 }, { word: 'three', start: 'x' }];
    speak = (socket) => socket.end(responseBytes({ text: 'one two', duration: 1e308, words, segments: [{ text: 'one two', start: 1e300, end: -1 }, { text: 7 }, 8] }));
    const { status, body } = await transcribe('generic-openai');
    assert.equal(status, 200);
    for (const { start, end, words: inside } of body.segments)
        for (const time of [start, end, body.duration, ...inside.flatMap((word) => [word.start, word.end])])
            assert.ok(time >= 0 && time <= 7200, JSON.stringify(body));
});

test('a client that leaves ends the request to the provider', async () => {
    let closed;
    const left = new Promise((done) => { closed = done; });
    const reached = new Promise((done) => { speak = (socket) => { socket.on('end', closed).on('close', closed); done(); }; });
    const app = await newApp(h, {}, ['tts.generate']);
    const gone = new AbortController();
    const request = fetch(`${h.url}/sdk/tts`, { method: 'POST', signal: gone.signal, headers: { 'content-type': 'application/json', 'x-app-id': app }, body: JSON.stringify({ text, provider: 'generic-openai', voice: 'x' }) }).catch(() => null);
    await reached;
    gone.abort();
    await request;
    await left;
});

test('sixteen requests to a silent provider hold no engine of this machine up, and leave nothing behind', () => impatient(async () => {
    const silent = [];
    speak = (socket) => { const one = { isOver: false }; silent.push(one); socket.on('end', () => { one.isOver = true; socket.end(); }); };
    const before = residentKib(h.pid), waiting = Array.from({ length: 16 }, () => say('generic-openai'));
    assert.equal((await call('POST', '/sdk/tts', { text })).status, 200);
    const replies = await Promise.all(waiting);
    assert.ok(replies.every(({ status }) => status >= 400), replies.map(({ status }) => status).join());
    await until(() => silent.length === 16 && silent.every(({ isOver }) => isOver), { what: 'the connections are closed' });
    if (!isSanitized)
        assert.ok(residentKib(h.pid) - before < 64 * 1024, `${residentKib(h.pid) - before} KiB`);
}));
