// Providers of speech over HTTP: doubles written after the references of the field, aimock as an independent one, OpenAI's client before Hearth, and Hearth as
// the provider of another Hearth.
import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { LLMock } from '@copilotkit/aimock';
import OpenAI, { toFile } from 'openai';
import { startHearth, until } from '../api/harness.mjs';
import { admin, newApp, newKey, refused, refusedFields, silentWav } from '../api/kit.mjs';
import { encoded, judge, wordErrorRate, wordsOf } from '../api/sound.mjs';
import { freePort } from '../tools/ports.mjs';
import { addSpeech, kinds, parts, speechDouble, tone, wav } from './speech_double.mjs';

const text = 'This is the first one. And here is the second one.';
const command = 'please open the window and turn on the light';
let h, app, appId;

before(async () => {
    h = await startHearth();
    appId = await newApp(h, {}, ['tts.generate', 'stt.transcribe']);
    app = h.asApp(appId);
});
after(() => h?.stop());

// A server without a key.
const withoutKey = (request) => { request.headers.authorization = 'Bearer speech-key-0123456789'; };
const soxi = (bytes, type, flag) => Number(judge(bytes, `a.${type}`, 'soxi', (path) => [flag, path]).stdout);
const seconds = (bytes, type = 'wav') => soxi(bytes, type, '-D');
const loudness = (bytes) => Number(/RMS lev dB\s+(-?[\d.]+)/.exec(judge(bytes, 'a.wav', 'sox', (path) => [path, '-n', 'stats']).stderr)[1]);
const isNear = (value, wanted, share = 0.06) => assert.ok(Math.abs(value - wanted) <= wanted * share, `${value} is not near ${wanted}`);
const providerOf = async (id) => (await app('GET', '/sdk/tts/providers')).body.providers.find((one) => one.id === id);

const speaking = Object.keys(kinds).filter((kind) => kinds[kind].voices?.length > 0);
const names = { openai: 'house', 'openai-own': 'cloud', elevenlabs: 'elevenlabs', deepgram: 'deepgram', azure: 'azure-speech', piper: 'piper' };

for (const kind of speaking)
    test(`${kind}: every format, speed and voice, sentence by sentence`, async (t) => {
        const double = await speechDouble(t, kind), name = `${names[kind]}-${kind}`;
        await addSpeech(h, double, name);
        const provider = await providerOf(name);
        assert.deepEqual([provider.type, provider.configured, provider.supportsStreaming, provider.config.voices], ['remote', true, true, double.voices]);
        assert.equal(provider.note, null);

        const wanted = { text, provider: name, voice: double.voices.at(-1), language: kind === 'piper' ? 'de' : 'en' };
        const full = 0.04 * (text.length - 1);
        for (const speed of [1, 0.5, 2, 1.1]) {
            const { status, bytes, text: said } = await app('POST', '/sdk/tts', { ...wanted, speed });
            assert.equal(status, 200, said);
            isNear(seconds(bytes), full / speed);
            assert.equal(soxi(bytes, 'wav', '-r'), kind === 'piper' ? 22_050 : 24_000);
            assert.ok(Math.abs(loudness(bytes) - -23) < 4, `${loudness(bytes)} dB`);
        }
        const mp3 = await app('POST', '/sdk/tts', { ...wanted, format: 'mp3' });
        isNear(seconds(mp3.bytes, 'mp3'), full, 0.1);
        const pcm = await app('POST', '/sdk/tts', { ...wanted, format: 'pcm' });
        isNear(pcm.bytes.length / 2 / Number(pcm.headers['x-sample-rate']), full);

        const stream = await h.sse('/sdk/tts/stream', { method: 'POST', headers: { 'x-app-id': appId }, body: wanted });
        const chunks = [];
        for (let event; (event = await stream.next()).event !== 'done';)
            if (event.event === 'chunk')
                chunks.push(seconds(Buffer.from(event.json.audio, 'base64')));
        assert.equal(chunks.length, 2);
        stream.close();
    });

test('a provider that sends MP3, Ogg or FLAC, whatever it is asked for, is spoken', async (t) => {
    const said = 'One sentence in a format of its own.', plain = wav(tone(said)), full = 0.04 * said.length;
    const files = { 'audio/mpeg': encoded(plain, 'a.mp3'), 'audio/ogg': encoded(plain, 'a.ogg', '-ac', '2', '-c:a', 'libvorbis'), 'audio/flac': encoded(plain, 'a.flac', '-ar', '16000') };
    for (const [type, bytes] of Object.entries(files)) {
        const double = await speechDouble(t, 'openai', { change: ({ method }, outgoing) => method === 'POST' && outgoing.writeHead(200, { 'content-type': type }).end(bytes) });
        const name = type.slice(6);
        await addSpeech(h, double, name);
        for (const [speed, format] of [[1, 'wav'], [2, 'wav'], [1, 'mp3']]) {
            const reply = await app('POST', '/sdk/tts', { text: said, provider: name, voice: 'alloy', speed, format });
            assert.equal(reply.status, 200, `${type}: ${reply.text}`);
            isNear(seconds(reply.bytes, format), full, 0.15);           // at the speed of 2 too, which the double leaves aside
            assert.equal(soxi(reply.bytes, format, '-r'), type === 'audio/flac' ? 16_000 : 24_000);
        }
        assert.deepEqual(JSON.parse(double.asked.at(-1).bytes).response_format, 'wav');
    }
});

test('what is known is not said again, a voice goes by its name and its language, and the setting chooses it', async (t) => {
    const double = await speechDouble(t, 'azure');
    await addSpeech(h, double, 'cloud');
    const spoken = () => double.asked.filter(({ method }) => method === 'POST').length;
    const say = async (more) => {
        const reply = await app('POST', '/sdk/tts', { text: 'One sentence alone.', provider: 'cloud', ...more });
        assert.equal(reply.status, 200, reply.text);
        return /voice name='([^']+)'/.exec(double.asked.at(-1).bytes)?.[1];
    };
    assert.equal(await say({}), 'en-US-AvaNeural');
    await say({});
    assert.equal(spoken(), 1);
    assert.equal(await say({ language: 'de' }), 'de-DE-KatjaNeural');
    assert.equal(await say({ voice: 'katja' }), 'de-DE-KatjaNeural');
    assert.equal(await say({ text: 'She said "one" & 1 < 2.' }), 'en-US-AvaNeural');
    assert.match(String(double.asked.at(-1).bytes), /She said (&#34;|\u201c)one.*&#38; 1 &#60; 2\./);
    assert.equal(double.asked.filter(({ url }) => url.endsWith('/list')).length, 1, 'the list is kept');
    refusedFields(await app('POST', '/sdk/tts', { text, provider: 'cloud', voice: 'nobody' }), 'voice');
    refusedFields(await app('POST', '/sdk/tts', { text, provider: 'cloud', language: 'fr' }), 'language');
    refusedFields(await app('POST', '/sdk/tts', { text, provider: 'nowhere' }), 'provider');

    await admin(h, 'PUT', '/api/settings/speech.voices', { value: 'de=cloud/de-DE-KatjaNeural' });
    assert.equal((await app('POST', '/sdk/tts', { text: 'Guten Tag, und auf Wiedersehen.', language: 'de' })).status, 200);
    assert.match(String(double.asked.at(-1).bytes), /xml:lang='de'.*KatjaNeural/);
    const faults = async (value) => {
        await admin(h, 'PUT', '/api/settings/speech.voices', { value });
        return (await admin(h, 'GET', '/api/doctor')).checks.filter((check) => check.name === 'speech' && !check.ok).map((check) => check.text);
    };
    assert.match((await faults('fr=cloud/fr-FR-Nobody')).join(), /^the setting speech\.voices has fr=cloud\/fr-FR-Nobody, and cloud has no voice fr-FR-Nobody$/);
    assert.deepEqual(await faults('de=cloud/de-DE-KatjaNeural'), []);
    assert.match((await admin(h, 'DELETE', '/api/providers/cloud')).note, /speech\.voices still names it/);
    refusedFields(await app('POST', '/sdk/tts', { text: 'Guten Tag.', language: 'de' }), 'provider');
    await addSpeech(h, double, 'cloud');
    await admin(h, 'DELETE', '/api/settings/speech.voices');
    const before = double.asked.length;
    assert.equal((await app('POST', '/sdk/tts', { text: 'Nothing leaves this machine.' })).status, 200);
    assert.equal(double.asked.length, before);
    const { totals } = await admin(h, 'GET', `/api/usage?kind=speech&provider=cloud&app=${appId}`);
    assert.ok(totals.characters > 100 && totals.requests >= 6, JSON.stringify(totals));
});

test('whisper, Deepgram and OpenAI hear, with the times of words', async (t) => {
    for (const kind of ['openai', 'deepgram', 'whispercpp']) {
        const double = await speechDouble(t, kind), name = `ears-${kind}`;
        await addSpeech(h, double, name);
        const { providers } = (await app('GET', '/sdk/stt/providers')).body, mine = providers.find(({ id }) => id === name);
        assert.ok(mine.configured && mine.models.length > 0 && mine.models[0].recommended, JSON.stringify(mine));
        const reply = await app('POST', `/sdk/stt/transcribe?provider=${name}&language=en`, silentWav);
        assert.equal(reply.status, 200, reply.text);
        assert.deepEqual([reply.body.text, reply.body.duration], [command, 2.5]);
        const words = reply.body.segments.flatMap((segment) => segment.words);
        assert.deepEqual(words.map(({ word }) => word), command.split(' '), kind);
        assert.ok(words.every(({ start, end, confidence }) => start < end && end <= 2.5 && confidence > 0 && confidence <= 1), JSON.stringify(words));
        const key = await newKey(h);
        const client = new OpenAI({ apiKey: key.key, baseURL: `${h.url}/v1`, maxRetries: 0 });
        assert.equal((await client.audio.transcriptions.create({ model: name, file: await toFile(silentWav, 'a.wav') })).text, command);
        refusedFields(await app('POST', `/sdk/stt/transcribe?provider=${name}&phrases=open`, silentWav), 'phrases');
    }
});

test('Groq hears with its own models, and is not asked to speak', async (t) => {
    const double = await speechDouble(t, 'groq');
    await addSpeech(h, double, 'groq');
    assert.equal(await providerOf('groq'), undefined);
    const { providers } = (await app('GET', '/sdk/stt/providers')).body;
    assert.deepEqual(providers.find(({ id }) => id === 'groq').models.map(({ id }) => id), ['whisper-large-v3-turbo', 'whisper-large-v3']);
    for (const model of ['', 'whisper-large-v3-turbo', 'whisper-large-v3']) {
        const reply = await app('POST', `/sdk/stt/transcribe?provider=groq${model && `&model=${model}`}`, silentWav);
        assert.equal(reply.status, 200, reply.text);
        assert.deepEqual([reply.body.text, reply.body.duration, reply.body.segments.length], [command, 2.5, 1]);
        assert.deepEqual(reply.body.segments[0].words.map(({ word }) => word), command.split(' '));
        assert.equal(parts(double.asked.at(-1)).model[0].data.toString(), model || 'whisper-large-v3-turbo');
    }
    const key = await newKey(h), client = new OpenAI({ apiKey: key.key, baseURL: `${h.url}/v1`, maxRetries: 0 });
    assert.match(await client.audio.transcriptions.create({ model: 'groq', file: await toFile(silentWav, 'a.wav'), response_format: 'srt' }), /^1\n00:00:00,000 --> 00:00:02,200\n/);
});

test('LocalAI speaks and hears: a speed that it does not have is made here, and its nanoseconds are seconds', async (t) => {
    const double = await speechDouble(t, 'localai'), said = 'One sentence at a speed of its own.';
    await addSpeech(h, double, 'house-ai', { model: 'voice-en-us-amy-low' });
    assert.deepEqual((await providerOf('house-ai')).config.voices, []);
    for (const speed of [1, 2]) {
        const reply = await app('POST', '/sdk/tts', { text: said, provider: 'house-ai', speed });
        assert.equal(reply.status, 200, reply.text);
        isNear(seconds(reply.bytes), 0.04 * said.length / speed);
        assert.equal(JSON.parse(double.asked.at(-1).bytes).speed, undefined);
    }
    const { status, body, text: why } = await app('POST', '/sdk/stt/transcribe?provider=house-ai', silentWav);
    assert.equal(status, 200, why);
    assert.deepEqual(body.segments.map(({ start, end }) => [start, end]), [[0, 1.2], [1.25, 2.5]]);
    assert.equal(body.text, command);
});

test('a voice of OpenAI is that of the provider that `model` names, where it has it', async (t) => {
    const own = await newKey(h), client = new OpenAI({ apiKey: own.key, baseURL: `${h.url}/v1`, maxRetries: 0 });
    const voices = { openai: ['nova', 'compatible/nova'], azure: ['nova', 'cloudy/en-US-AvaNeural'] };
    for (const [kind, [voice, spoke]] of Object.entries(voices)) {
        const model = spoke.split('/')[0];
        await addSpeech(h, await speechDouble(t, kind), model);
        const speech = await client.audio.speech.create({ model, voice, input: 'It works.', response_format: 'wav' });
        assert.equal(speech.headers.get('x-hearth-voice'), spoke);
        await speech.arrayBuffer();
    }
    const local = await client.audio.speech.create({ model: 'flite_local', voice: 'nova', input: 'It works.', response_format: 'wav' });
    assert.equal(local.headers.get('x-hearth-voice'), 'flite_local/rms');
    await local.arrayBuffer();
});

test('aimock speaks and hears', async (t) => {
    const mock = new LLMock({ port: 0, host: '127.0.0.1' });
    mock.onSpeech?.(/./, { audio: wav(tone('Twelve chars')).toString('base64'), format: 'wav' });
    mock.onTranscription?.({ transcription: { text: command } });
    const url = await mock.start();
    t.after(() => mock.stop());
    await admin(h, 'POST', '/api/providers', { preset: 'generic-openai', name: 'mock', for: 'speech', base_url: `${url}/v1`, api_key: 'mock-key-12345', model: 'tts-1' });
    const reply = await app('POST', '/sdk/tts', { text: 'Twelve chars', provider: 'mock', voice: 'alloy' });
    assert.equal(reply.status, 200, reply.text);
    isNear(seconds(reply.bytes), 0.48);
    const heard = await app('POST', '/sdk/stt/transcribe?provider=mock&model=whisper-1', silentWav);
    assert.equal(heard.status, 200, heard.text);
    assert.equal(heard.body.text, command);
});

test('Hearth is the provider of another Hearth: what the one speaks the other one hears', async (t) => {
    const second = await startHearth({ t });
    const { key } = await newKey(second);
    await admin(h, 'POST', '/api/providers', { preset: 'generic-openai', name: 'neighbour', for: 'speech', base_url: `${second.url}/v1`, api_key: key });
    const provider = await providerOf('neighbour');
    assert.ok(provider.config.voices.includes('flite_local/rms'), JSON.stringify(provider.config.voices.slice(0, 9)));
    const sound = await app('POST', '/sdk/tts', { text: `${command}.`, provider: 'neighbour', voice: 'flite_local/rms' });
    assert.equal(sound.status, 200, sound.text);
    assert.equal(soxi(sound.bytes, 'wav', '-r'), 16_000);
    const heard = await app('POST', '/sdk/stt/transcribe?provider=neighbour', sound.bytes);
    assert.equal(heard.status, 200, heard.text);
    assert.ok(wordErrorRate(wordsOf(command), wordsOf(heard.body.text)) <= 0.2, heard.body.text);

    const own = await newKey(h);
    const client = new OpenAI({ apiKey: own.key, baseURL: `${h.url}/v1`, maxRetries: 0 });
    const speech = await client.audio.speech.create({ model: 'tts-1', voice: 'neighbour/flite_local/slt', input: 'It works.', response_format: 'wav' });
    assert.equal(speech.headers.get('x-hearth-voice'), 'neighbour/flite_local/slt');
    assert.ok(seconds(Buffer.from(await speech.arrayBuffer())) > 0.3);
});

test('added, listed, tested and removed by the command line; a key is never shown', async (t) => {
    const double = await speechDouble(t, 'elevenlabs');
    const added = await h.cli('provider', 'add', 'elevenlabs', '--name', 'eleven', '--base-url', double.url, '--api-key', double.key, '--for', 'speech');
    assert.equal(added.code, 0, added.stderr);
    const listed = await h.cli('provider', 'list', '--json');
    const row = JSON.parse(listed.stdout).find(({ name }) => name === 'eleven');
    assert.deepEqual([row.can_chat, row.can_embed, row.can_speak, row.can_hear, row.for, row.protocol], [false, false, true, false, 'speech', 'speech']);
    assert.ok(!listed.stdout.includes(double.key));
    const tested = await h.cli('provider', 'test', 'eleven');
    assert.equal(tested.code, 0, tested.stderr);
    assert.match(tested.stdout, /eleven works: its voice 21m00Tcm4TlvDq8ikWAM spoke for/);
    assert.equal((await h.cli('provider', 'remove', 'eleven')).code, 0);
    refusedFields(await app('POST', '/sdk/tts', { text, provider: 'eleven' }), 'provider');
});

test('an account for speech alone neither chats nor embeds, and one of chats is not made into it unasked', async (t) => {
    const double = await speechDouble(t, 'openai');
    await addSpeech(h, double, 'voice-only');
    const { defaults, providers } = await admin(h, 'GET', '/api/providers'), mine = providers.find(({ name }) => name === 'voice-only');
    assert.deepEqual([mine.can_chat, mine.can_embed, defaults.chat.provider], [false, false, null]);
    refused(await h.socket('POST', '/sdk/llm/chat', { provider: 'voice-only', messages: [{ role: 'user', content: 'hello' }] }), 503, 'PROVIDER_UNAVAILABLE');
    await admin(h, 'POST', '/api/providers', { preset: 'generic-openai', name: 'both', base_url: double.url, api_key: double.key });
    assert.equal(await providerOf('both'), undefined);
    refusedFields(await h.socket('POST', '/api/providers', { preset: 'generic-openai', name: 'both', for: 'speech', base_url: double.url }), 'name');
    refusedFields(await h.socket('POST', '/api/providers', { preset: 'anthropic', for: 'speech', api_key: 'sk-ant-0123456789' }), 'for');
    refusedFields(await h.socket('POST', '/api/providers', { preset: 'deepgram', for: 'models', api_key: 'key-0123456789' }), 'for');
    await admin(h, 'POST', '/api/providers', { preset: 'generic-openai', name: 'both', for: 'all', base_url: double.url, api_key: double.key });
    assert.ok((await providerOf('both')).configured);
    await h.terminate();
    await h.start();
    assert.ok((await providerOf('both')).configured, 'it is the same after a restart');
    await admin(h, 'DELETE', '/api/providers/both');
});

test('servers of speech on this machine are found, offered, and used once they are accepted', async (t) => {
    const doubles = {};
    for (const kind of ['openai', 'piper', 'whispercpp'])
        doubles[kind] = await speechDouble(t, kind, kind === 'openai' ? { change: withoutKey, port: await freePort() } : {});        // one that will be left
    const { port } = await speechDouble(t, 'piper', { change: (_, outgoing) => Boolean(outgoing.writeHead(404).end()) });
    const ports = { kokoro: doubles.openai.port, piper: doubles.piper.port, whispercpp: doubles.whispercpp.port, ollama: port, lmstudio: port, llamacpp: port, localai: port };
    const own = await startHearth({ t, settings: { 'llm.find_local': true, 'llm.find_local_s': 0, 'llm.find_local_wait_s': 30,
        'llm.local_ports': Object.entries(ports).map(([name, at]) => `${name}=${at}`).join(',') } });
    const call = own.asApp(await newApp(own, {}, ['tts.generate', 'stt.transcribe', 'llm.chat']));
    const found = async () => (await call('GET', '/sdk/tts/providers')).body.providers.map(({ id }) => id);
    assert.ok(!(await found()).includes('kokoro'));
    const { waiting } = await admin(own, 'GET', '/api/providers');
    assert.deepEqual(waiting.map(({ name }) => name).sort(), ['kokoro', 'piper', 'whispercpp']);
    for (const { name } of waiting)
        await admin(own, 'POST', `/api/providers/${name}/accept`);
    assert.deepEqual((await found()).slice(2).sort(), ['kokoro', 'piper']);
    assert.equal((await call('POST', '/sdk/tts', { text, provider: 'kokoro', voice: 'alloy' })).status, 200);
    assert.equal((await call('POST', '/sdk/tts', { text, provider: 'piper', language: 'de' })).status, 200);
    assert.equal((await call('POST', '/sdk/stt/transcribe?provider=whispercpp', silentWav)).body.text, command);
    refused(await call('POST', '/sdk/llm/chat', { messages: [{ role: 'user', content: 'hello' }] }), 503, 'PROVIDER_UNAVAILABLE', /No provider of language models/);
    doubles.openai.close();
    assert.deepEqual((await found()).slice(2), ['piper']);
});

// A program that takes what piper takes: a tone of 40 ms a character for the line that it reads. Voices whose name says so fail.
const piper = `#!/usr/bin/python3
import math, os, struct, sys, time
options = dict(zip(sys.argv[1::2], sys.argv[2::2]))
assert set(options) == {'--model', '--output_file', '--length_scale'} and options['--output_file'] == '-', options
assert open(options['--model']).read() == 'model' and open(options['--model'] + '.json').read() == '{}'
text = sys.stdin.read()
assert text.endswith('\\n') and '\\n' not in text[:-1]
if 'broken' in options['--model']:
    sys.exit('the model cannot be loaded')
if 'hangs' in options['--model']:
    time.sleep(1000)
if 'curious' in options['--model']:
    print(os.path.exists(os.environ.get('HOME', '/') + '/.ssh'), file=sys.stderr)
    open('/etc/hostname2', 'w')
n = round(len(text[:-1]) * 0.04 * 22050 * float(options['--length_scale']))
samples = b''.join(struct.pack('<h', round(8000 * math.sin(i / 8))) for i in range(n))
sys.stdout.buffer.write(b'RIFF' + struct.pack('<I', 36 + 2 * n) + b'WAVEfmt ' + struct.pack('<IHHIIHH', 16, 1, 1, 22050, 44100, 2, 16) + b'data' + struct.pack('<I', 2 * n) + samples)
`;

// Whose arguments name this file; python runs the program.
const processesOf = (path) => readdirSync('/proc').filter((pid) => {
    try {
        return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').slice(0, 2).includes(path);
    } catch {
        return false;
    }
});

test('piper as a program of this machine speaks, in the sandbox, one process for a sentence', async (t) => {
    const dir = mkdtempSync(join(tmpdir(), 'piper '));
    t.after(() => rmSync(dir, { recursive: true, force: true }));
    chmodSync(dir, 0o755);
    const folder = join(dir, 'voices'), program = join(dir, 'piper');
    mkdirSync(folder);
    writeFileSync(program, piper, { mode: 0o755 });
    for (const voice of ['de_DE-thorsten-low', 'en_US-lessac-low', 'en_US-broken-low', 'en_US-curious-low', 'en_US-hangs-low']) {
        writeFileSync(join(folder, `${voice}.onnx`), 'model');
        writeFileSync(join(folder, `${voice}.onnx.json`), '{}');
    }
    writeFileSync(join(folder, 'no_VOICE.onnx'), 'model');
    const own = await startHearth({ t, settings: { 'speech.piper': program, 'speech.timeout_s': 5 } });
    const appOfPiper = await newApp(own, {}, ['tts.generate']), call = own.asApp(appOfPiper);
    const mine = async () => (await call('GET', '/sdk/tts/providers')).body.providers.find(({ id }) => id === 'piper_local');
    const before = await mine();
    assert.deepEqual([before.configured, before.type], [false, 'local']);
    assert.match(before.note, /speech\.piper_voices/);
    await admin(own, 'PUT', '/api/settings/speech.piper_voices', { value: folder });
    assert.deepEqual((await mine()).config.voices, ['de_DE-thorsten-low', 'en_US-broken-low', 'en_US-curious-low', 'en_US-hangs-low', 'en_US-lessac-low']);
    for (const speed of [1, 2]) {
        const reply = await call('POST', '/sdk/tts', { text, voice: 'en_US-lessac-low', speed });
        assert.equal(reply.status, 200, reply.text);
        isNear(seconds(reply.bytes), 0.04 * (text.length - 1) / speed);
        assert.equal(soxi(reply.bytes, 'wav', '-r'), 22_050);
    }
    assert.equal((await call('POST', '/sdk/tts', { text: 'Guten Tag.', provider: 'piper_local', language: 'de' })).status, 200);
    refused(await call('POST', '/sdk/tts', { text, voice: 'en_US-broken-low' }), 502, 'SPEECH_FAILED', /piper_local: it sent nothing.*the model cannot be loaded/);
    refused(await call('POST', '/sdk/tts', { text, voice: 'en_US-curious-low' }), 502, 'SPEECH_FAILED', /piper_local: /);
    refused(await call('POST', '/sdk/tts', { text, voice: 'en_US-hangs-low' }), 502, 'SPEECH_FAILED', /piper_local: it took longer than 5 s/);
    const running = () => processesOf(program).length, gone = new AbortController();
    await until(() => running() === 0, { what: 'the program of the failed sentence has ended' });
    const left = fetch(`${own.url}/sdk/tts`, { method: 'POST', signal: gone.signal, headers: { 'content-type': 'application/json', 'x-app-id': appOfPiper },
        body: JSON.stringify({ text: 'Somebody leaves.', voice: 'en_US-hangs-low' }) }).catch(() => null);
    await until(() => running() > 0, { what: 'the program runs' });
    gone.abort();
    await left;
    await until(() => running() === 0, { what: 'the program has ended with its client' });
    refusedFields(await call('POST', '/sdk/tts', { text, provider: 'piper_local', voice: '../piper' }), 'voice');
});
