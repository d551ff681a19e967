// Spoken audio judged by programs of others: ffprobe, ffmpeg (EBU R128), file and sox; espeak-ng's and flite's own programs as the measure of length and language.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sharedHearth } from '../api/harness.mjs';
import { newKey } from '../api/kit.mjs';
import { judge } from '../api/sound.mjs';

const shared = sharedHearth();
const text = 'Please open the window and turn on the light, it is a fine day in the north of the country.';
const german = 'Bitte das Fenster öffnen und das Licht einschalten, es ist ein schöner Tag im Norden des Landes.';
const voices = [['flite_local', 'slt'], ['flite_local', 'rms'], ['flite_local', 'awb'], ['flite_local', 'kal16'], ['espeak_local', 'en-us'], ['espeak_local', 'en-gb+f3']];

async function speaker(t) {
    const h = await shared(t);
    const { call, key } = await newKey(h);
    return { h, key, say: async (body, path = '/sdk/tts') => {
        const reply = await call('POST', path, body);
        assert.equal(reply.status, 200, reply.text);
        return reply.bytes;
    } };
}

// What ffprobe says; ffmpeg must decode all of it without a complaint.
function probed(bytes, name, raw = []) {
    const { stderr } = judge(bytes, name, 'ffmpeg', (path) => ['-v', 'error', '-xerror', ...raw, '-i', path, '-f', 'null', '-']);
    assert.equal(stderr, '', name);
    const { streams, format } = JSON.parse(judge(bytes, name, 'ffprobe', (path) => ['-v', 'error', ...raw, '-of', 'json', '-show_streams', '-show_format', path]).stdout);
    assert.equal(streams.length, 1);
    return { codec: streams[0].codec_name, rate: Number(streams[0].sample_rate), channels: streams[0].channels, seconds: Number(format.duration) };
}

const raw = (rate) => ['-f', 's16le', '-ar', String(rate), '-ac', '1'];
const loudness = (bytes) => Number(/I:\s+(-?[\d.]+) LUFS\s+Threshold/.exec(judge(bytes, 'a.wav', 'ffmpeg', (path) => ['-nostats', '-i', path, '-af', 'ebur128', '-f', 'null', '-']).stderr)[1]);

test('ffprobe, file and ffmpeg agree about every format of both engines', async (t) => {
    const { say } = await speaker(t);
    for (const [provider, rate] of [['flite_local', 16000], ['espeak_local', 22050]]) {
        const wav = await say({ text, provider }), mp3 = await say({ text, provider, format: 'mp3' }), pcm = await say({ text, provider, format: 'pcm' });
        const { seconds, ...kind } = probed(wav, 'a.wav');
        assert.deepEqual(kind, { codec: 'pcm_s16le', rate, channels: 1 });
        assert.ok(Math.abs(seconds - (wav.length - 44) / 2 / rate) < 0.001);
        for (const [bytes, name, codec, more] of [[mp3, 'a.mp3', 'mp3'], [pcm, 'a.raw', 'pcm_s16le', raw(rate)]]) {
            const other = probed(bytes, name, more);
            assert.deepEqual([other.codec, other.rate, other.channels], [codec, rate, 1]);
            assert.ok(Math.abs(other.seconds - seconds) < 0.3, `${name}: ${other.seconds} s, ${seconds} s`);
        }
        assert.match(judge(wav, 'a.wav', 'file', (path) => ['-b', path]).stdout, new RegExp(`WAVE audio, Microsoft PCM, 16 bit, mono ${rate} Hz`));
        assert.match(judge(mp3, 'a.mp3', 'file', (path) => ['-b', path]).stdout, /MPEG ADTS, layer III, v2,\s+48 kbps/);
    }
});

test('ffprobe and ffmpeg agree about the formats of OpenAI\'s form, whole and in pieces', async (t) => {
    const { say } = await speaker(t);
    const ask = (more) => say({ input: text, voice: 'alloy', model: 'tts-1', ...more }, '/v1/audio/speech');
    assert.deepEqual({ ...probed(await ask({}), 'a.mp3'), seconds: 0 }, { codec: 'mp3', rate: 16000, channels: 1, seconds: 0 });
    const { seconds } = probed(await ask({ response_format: 'wav' }), 'a.wav');
    const pcm = probed(await ask({ response_format: 'pcm' }), 'a.raw', raw(24000));
    assert.ok(Math.abs(pcm.seconds - seconds) < 0.2);
});

test('each chunk of a stream decodes alone, and all of them have the length of the whole', async (t) => {
    const { h, key, say } = await speaker(t);
    for (const [format, slack] of [['wav', 0.05], ['mp3', 0.5]]) {
        const body = { text: `${text} ${text} Once more: ${text}`, provider: 'espeak_local', format };
        const stream = await h.sse('/sdk/tts/stream', { method: 'POST', headers: { 'x-api-key': key }, body });
        await stream.ended;
        const chunks = stream.events.filter(({ event }) => event === 'chunk').map(({ json }) => probed(Buffer.from(json.audio, 'base64'), `a.${format}`));
        assert.equal(chunks.length, 3);
        const whole = probed(await say(body), `a.${format}`).seconds;
        assert.ok(Math.abs(chunks.reduce((sum, { seconds }) => sum + seconds, 0) - whole) < slack + whole * 0.02, format);
    }
});

test('all voices are within 3 LU, measured by ffmpeg as EBU R128 says', async (t) => {
    const { say } = await speaker(t);
    const levels = [];
    for (const [provider, voice] of voices)
        levels.push(loudness(await say({ text, provider, voice })));
    assert.ok(Math.max(...levels) - Math.min(...levels) <= 3, levels.join(' '));
});

// In another language, or at another speed, the same text takes a different time.
test('a text takes as long as in the engine\'s own program, in its language and at its speed', async (t) => {
    const { say } = await speaker(t);
    const espeak = (voice, words, wpm) => probed(judge(words, 'a.txt', 'espeak-ng', (path, out) => ['-v', voice, '-s', String(wpm), '-f', path, '-w', out], 'b.wav').bytes, 'b.wav').seconds;
    const flite = (voice, words) => probed(judge(words, 'a.txt', 'flite', (path, out) => ['-voice', voice, '-f', path, '-o', out], 'b.wav').bytes, 'b.wav').seconds;
    const said = async (body) => probed(await say(body), 'a.wav').seconds;
    const isLike = (ours, theirs, what, slack = 0.06) => assert.ok(Math.abs(ours / theirs - 1) < slack, `${what}: ${ours} s, ${theirs} s`);
    for (const [voice, words] of [['de', german], ['en-us', german], ['en-us', text], ['nl', text]])
        isLike(await said({ text: words, provider: 'espeak_local', voice }), espeak(voice, words, 175), voice);
    isLike(await said({ text: german, language: 'de', speed: 1.5 }), espeak('de', german, 262), 'de, 1.5');
    for (const voice of ['rms', 'kal16'])
        isLike(await said({ text, voice }), flite(voice, text), voice, 0.15);
});
