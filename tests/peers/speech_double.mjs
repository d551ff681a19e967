// Doubles of providers of speech, strict about what they are asked, written after the published references: OpenAI (and servers in its form), ElevenLabs,
// Deepgram, Azure, Piper's HTTP server, whisper.cpp's server. Each takes what its reference takes and refuses the rest with 400 and a reason.
import { once } from 'node:events';
import http from 'node:http';
import { admin } from '../api/kit.mjs';

const key = 'speech-key-0123456789';
export const rate = 24_000;

// A tone: 40 ms for each character of the text, so that its length tells what was said.
export function tone(text, speed = 1, sampleRate = rate) {
    const samples = Math.round(text.length * 0.04 * sampleRate / speed);
    const bytes = Buffer.alloc(samples * 2);
    for (let i = 0; i < samples; i++)
        bytes.writeInt16LE(Math.round(8000 * Math.sin(2 * Math.PI * 440 * i / sampleRate)), 2 * i);
    return bytes;
}

export function wav(pcm, sampleRate = rate, length = pcm.length) {
    const head = Buffer.alloc(44);
    head.write('RIFF', 0);
    head.writeUInt32LE((length + 36) % 2 ** 32, 4);
    head.write('WAVEfmt ', 8);
    head.writeUInt32LE(16, 16);
    head.writeUInt16LE(1, 20);
    head.writeUInt16LE(1, 22);
    head.writeUInt32LE(sampleRate, 24);
    head.writeUInt32LE(sampleRate * 2, 28);
    head.writeUInt16LE(2, 32);
    head.writeUInt16LE(16, 34);
    head.write('data', 36);
    head.writeUInt32LE(length, 40);
    return Buffer.concat([head, pcm]);
}

class Refusal extends Error {}
function must(condition, reason) {
    if (!condition)
        throw new Refusal(reason);
}
const only = (body, names) => must(Object.keys(body).every((name) => names.includes(name)), `unknown member of ${Object.keys(body)}`);
const sends = (outgoing, type, bytes) => outgoing.writeHead(200, { 'content-type': type, 'content-length': bytes.length }).end(bytes);
const sendsJson = (outgoing, value) => sends(outgoing, 'application/json', Buffer.from(JSON.stringify(value)));

// The bytes in these pieces, chunked; pace(i) is awaited before each.
async function sendsPieces(outgoing, type, pieces, pace) {
    outgoing.writeHead(200, { 'content-type': type });
    for (const [i, piece] of pieces.entries()) {
        await pace(i);
        outgoing.write(piece);
    }
    outgoing.end();
}

// Of an odd number of bytes, as networks cut them.
export function halves(bytes) {
    const at = (bytes.length >> 1) | 1;
    return [bytes.subarray(0, at), bytes.subarray(at)];
}

// The parts of a form by name; a name that comes again makes a list.
export function parts(request) {
    const boundary = /^multipart\/form-data; boundary=(\S+)$/.exec(request.headers['content-type'] ?? '')?.[1];
    must(boundary, 'no form');
    const found = {};
    for (const part of request.bytes.toString('latin1').split(`--${boundary}`).slice(1, -1)) {
        const [head, ...rest] = part.split('\r\n\r\n');
        const data = rest.join('\r\n\r\n').slice(0, -2), name = / name="([^"]+)"/.exec(head)[1];
        (found[name] ??= []).push({ data: Buffer.from(data, 'latin1'), fileName: /filename="([^"]+)"/.exec(head)?.[1] });
    }
    return found;
}

const heard = 'please open the window and turn on the light';
const words = heard.split(' ').map((word, i) => ({ word, start: i * 0.25, end: i * 0.25 + 0.2 }));

export const kinds = {
    openai: {
        preset: 'generic-openai', base: '/v1', hears: true,
        voices: ['alloy', 'nova'],
        answer(request, outgoing, { pace, sound }) {
            must(request.headers.authorization === `Bearer ${key}`, 'the key');
            if (request.url === '/v1/audio/voices')
                return sendsJson(outgoing, { voices: ['alloy', { id: 'nova', name: 'Nova', language: 'de' }] });
            if (request.url === '/v1/audio/transcriptions')
                return this.transcribe(request, outgoing);
            must(request.method === 'POST' && request.url === '/v1/audio/speech', 'the path');
            const body = JSON.parse(request.bytes);
            only(body, ['model', 'input', 'voice', 'response_format', 'speed', 'instructions', 'stream_format']);
            must(body.model && body.input && body.input.length <= 4096 && this.voices.includes(body.voice), 'model, input, voice');
            must(body.speed === undefined || (body.speed >= 0.25 && body.speed <= 4), 'speed');
            must(body.response_format === 'wav', 'response_format');
            return sendsPieces(outgoing, 'audio/wav', halves(wav(sound(body.input, body.speed), rate, 0xffffffff)), pace);
        },
        transcribe(request, outgoing) {
            const form = parts(request);
            only(form, ['file', 'model', 'language', 'prompt', 'response_format', 'temperature', 'timestamp_granularities[]']);
            must(/^recording\.(wav|mp3|ogg|flac|m4a|webm)$/.test(form.file?.[0].fileName), 'file');
            must(form.model && form.response_format[0].data.toString() === 'verbose_json', 'model, response_format');
            return sendsJson(outgoing, { task: 'transcribe', language: 'english', duration: 2.5, text: heard, words,
                segments: [{ id: 0, start: 0, end: 1.2, text: ' please open the window and' }, { id: 1, start: 1.25, end: 2.5, text: ' turn on the light' }] });
        },
    },
    // platform.openai.com/docs/api-reference/audio/createSpeech: gpt-4o-mini-tts sends events when it is asked for them, tts-1 and tts-1-hd refuse to.
    'openai-own': {
        preset: 'openai', base: '/v1', voices: ['alloy', 'ash', 'ballad', 'coral', 'echo', 'fable', 'nova', 'onyx', 'sage', 'shimmer', 'verse', 'marin', 'cedar'],
        answer(request, outgoing, { pace, sound }) {
            must(request.headers.authorization === `Bearer ${key}`, 'the key');
            must(request.method === 'POST' && request.url === '/v1/audio/speech', 'the path');
            const body = JSON.parse(request.bytes);
            only(body, ['model', 'input', 'voice', 'response_format', 'speed', 'instructions', 'stream_format']);
            must(['gpt-4o-mini-tts', 'tts-1', 'tts-1-hd'].includes(body.model), 'model');
            must(body.input && body.input.length <= 4096 && this.voices.includes(body.voice), 'input, voice');
            must(body.speed === undefined || (body.speed >= 0.25 && body.speed <= 4), 'speed');
            must(body.response_format === 'pcm', 'response_format');
            must([undefined, 'audio', 'sse'].includes(body.stream_format) && !(body.stream_format === 'sse' && /^tts-1/.test(body.model)), 'stream_format');
            const pieces = halves(sound(body.input, body.speed));
            if (body.stream_format !== 'sse')
                return sendsPieces(outgoing, 'audio/pcm', pieces, pace);
            const events = pieces.map((piece) => ({ type: 'speech.audio.delta', audio: piece.toString('base64') }));
            events.push({ type: 'speech.audio.done', usage: { input_tokens: 9, output_tokens: 60, total_tokens: 69 } });
            return sendsPieces(outgoing, 'text/event-stream; charset=utf-8', events.map((event) => `data: ${JSON.stringify(event)}\n\n`), pace);
        },
    },
    elevenlabs: {
        preset: 'elevenlabs', base: '', voices: ['21m00Tcm4TlvDq8ikWAM'],
        answer(request, outgoing, { pace, sound }) {
            must(request.headers['xi-api-key'] === key, 'the key');
            if (request.url === '/v1/voices')
                return sendsJson(outgoing, { voices: [{ voice_id: '21m00Tcm4TlvDq8ikWAM', name: 'Rachel', category: 'premade', labels: { accent: 'American' } }] });
            must(request.method === 'POST' && request.url === '/v1/text-to-speech/21m00Tcm4TlvDq8ikWAM/stream?output_format=pcm_24000', 'the path');
            const body = JSON.parse(request.bytes);
            only(body, ['text', 'model_id', 'voice_settings', 'language_code', 'seed']);
            must(body.text && body.model_id, 'text, model_id');
            const speed = body.voice_settings?.speed ?? 1;
            must(speed >= 0.7 && speed <= 1.2, 'voice_settings.speed');
            return sendsPieces(outgoing, 'audio/pcm', halves(sound(body.text, speed)), pace);
        },
    },
    deepgram: {
        preset: 'deepgram', base: '', hears: true, voices: ['aura-2-thalia-en', 'aura-2-viktoria-de'],
        answer(request, outgoing, { pace, sound }) {
            must(request.headers.authorization === `Token ${key}`, 'the key');
            const url = new URL(request.url, 'http://x');
            if (url.pathname === '/v1/models')
                return sendsJson(outgoing, { stt: [{ name: 'nova-3', canonical_name: 'nova-3' }], tts: [
                    { name: 'thalia', canonical_name: 'aura-2-thalia-en', languages: ['en', 'en-us'] }, { name: 'viktoria', canonical_name: 'aura-2-viktoria-de', languages: ['de'] }] });
            if (url.pathname === '/v1/listen')
                return this.listen(request, url, outgoing);
            must(request.method === 'POST' && url.pathname === '/v1/speak', 'the path');
            only(Object.fromEntries(url.searchParams), ['model', 'encoding', 'sample_rate', 'container', 'bit_rate']);
            must(this.voices.includes(url.searchParams.get('model')), 'model');
            must(url.searchParams.get('encoding') === 'linear16' && url.searchParams.get('container') === 'wav', 'encoding');
            const body = JSON.parse(request.bytes);
            only(body, ['text']);
            must(body.text && body.text.length <= 2000, 'text');
            return sendsPieces(outgoing, 'audio/wav', halves(wav(sound(body.text), rate, 0x7fffffff)), pace);
        },
        listen(request, url, outgoing) {
            only(Object.fromEntries(url.searchParams), ['model', 'language', 'detect_language', 'smart_format', 'utterances', 'punctuate']);
            must(/^audio\//.test(request.headers['content-type']) && request.bytes.length > 44, 'the recording');
            const spoken = words.map((word) => ({ ...word, confidence: 0.9, punctuated_word: word.word }));
            return sendsJson(outgoing, { metadata: { duration: 2.5, channels: 1 }, results: {
                channels: [{ alternatives: [{ transcript: heard, confidence: 0.9, words: spoken }] }],
                utterances: [{ start: 0, end: 2.5, confidence: 0.9, channel: 0, transcript: heard, words: spoken, id: 'x' }] } });
        },
    },
    azure: {
        preset: 'azure-speech', base: '', voices: ['en-US-AvaNeural', 'de-DE-KatjaNeural'],
        answer(request, outgoing) {
            must(request.headers['ocp-apim-subscription-key'] === key, 'the key');
            must(request.headers['user-agent'], 'user-agent');
            if (request.url === '/cognitiveservices/voices/list')
                return sendsJson(outgoing, [{ ShortName: 'en-US-AvaNeural', DisplayName: 'Ava', Locale: 'en-US' }, { ShortName: 'de-DE-KatjaNeural', DisplayName: 'Katja', Locale: 'de-DE' }]);
            must(request.method === 'POST' && request.url === '/cognitiveservices/v1', 'the path');
            must(request.headers['content-type'] === 'application/ssml+xml', 'content-type');
            must(request.headers['x-microsoft-outputformat'] === 'riff-24khz-16bit-mono-pcm', 'X-Microsoft-OutputFormat');
            const ssml = /^<speak version='1\.0' xmlns='http:\/\/www\.w3\.org\/2001\/10\/synthesis' xml:lang='([\w-]+)'><voice name='([\w-]+)'><prosody rate='([\d.]+)'>([^<>]+)<\/prosody><\/voice><\/speak>$/.exec(request.bytes);
            must(ssml && this.voices.includes(ssml[2]) && ssml[3] >= 0.5 && ssml[3] <= 2, 'the SSML');
            return sends(outgoing, 'audio/x-wav', wav(tone(ssml[4].replace(/&#\d+;/g, '.'), Number(ssml[3]))));
        },
    },
    piper: {
        preset: 'piper', base: '', voices: ['de_DE-thorsten-medium'],
        answer(request, outgoing) {
            if (request.url === '/voices')
                return sendsJson(outgoing, { 'de_DE-thorsten-medium': { audio: { sample_rate: 22050, quality: 'medium' }, language: { code: 'de_DE', family: 'de' } } });
            must(request.method === 'POST' && request.url === '/', 'the path');
            const body = JSON.parse(request.bytes);
            only(body, ['text', 'voice', 'speaker', 'speaker_id', 'length_scale', 'noise_scale', 'noise_w_scale']);
            must(body.text && this.voices.includes(body.voice), 'text, voice');
            return sends(outgoing, 'audio/wav', wav(tone(body.text, 1 / (body.length_scale ?? 1), 22_050), 22_050));
        },
    },
    // console.groq.com/docs/speech-to-text: hears only, with the models of that page.
    groq: {
        preset: 'groq', base: '/openai/v1', hears: true,
        answer(request, outgoing) {
            must(request.headers.authorization === `Bearer ${key}`, 'the key');
            must(request.method === 'POST' && request.url === '/openai/v1/audio/transcriptions', 'the path');
            const form = parts(request), value = (name) => form[name]?.[0].data.toString();
            only(form, ['file', 'url', 'model', 'language', 'prompt', 'response_format', 'temperature', 'timestamp_granularities[]']);
            must(/\.(flac|mp3|mp4|mpeg|mpga|m4a|ogg|wav|webm)$/.test(form.file?.[0].fileName), 'file');
            must(['whisper-large-v3', 'whisper-large-v3-turbo'].includes(value('model')), 'model');
            must(['json', 'text', 'verbose_json'].includes(value('response_format')), 'response_format');
            must(!form['timestamp_granularities[]'] || value('response_format') === 'verbose_json', 'timestamp_granularities');
            return sendsJson(outgoing, { task: 'transcribe', language: 'English', duration: 2.5, text: ` ${heard}`, words, x_groq: { id: 'req_01' },
                segments: [{ id: 0, seek: 0, start: 0, end: 2.5, text: ` ${heard}`, tokens: [50365], temperature: 0, avg_logprob: -0.1, compression_ratio: 1.1, no_speech_prob: 0 }] });
        },
    },
    // localai.io/features/text-to-audio and audio-to-text: no list of voices, no speed, times of segments in nanoseconds (Go's Duration), no duration of the whole.
    localai: {
        preset: 'localai', base: '/v1', hears: true, voices: [],
        answer(request, outgoing) {
            if (request.url === '/v1/audio/transcriptions') {
                const form = parts(request);
                must(form.file?.[0].data.length > 44 && form.model, 'file, model');
                const ns = (s) => Math.round(s * 1e9);
                return sendsJson(outgoing, { text: ` ${heard}`, segments: [
                    { id: 0, start: 0, end: ns(1.2), text: ' please open the window and', tokens: [50364] }, { id: 1, start: ns(1.25), end: ns(2.5), text: ' turn on the light', tokens: [50365] }] });
            }
            if (request.method !== 'POST' || request.url !== '/v1/audio/speech')
                return outgoing.writeHead(404, { 'content-type': 'application/json' }).end(JSON.stringify({ error: { code: 404, message: 'Not Found', type: '' } }));
            const body = JSON.parse(request.bytes);
            must(typeof body.input === 'string' && body.input && body.model === 'voice-en-us-amy-low', 'input, model');
            return sends(outgoing, 'audio/x-wav', wav(tone(body.input, 1, 16_000), 16_000));
        },
    },
    whispercpp: {
        preset: 'whispercpp', base: '', hears: true,
        answer(request, outgoing) {
            outgoing.setHeader('server', 'whisper.cpp');
            if (request.url === '/health')
                return sendsJson(outgoing, { status: 'ok' });
            must(request.method === 'POST' && request.url === '/inference', 'the path');
            must(parts(request).file?.[0].data.length > 44, 'file');
            return sendsJson(outgoing, { task: 'transcribe', duration: 2.5, text: ` ${heard}\n`, segments: [
                { id: 0, text: ` ${heard}`, start: 0, end: 2.5, words: words.map((word) => ({ ...word, probability: 0.5 })) }] });
        },
    },
};

// One of them: {url, preset, asked: [{method, url, headers, bytes, outgoing}], close}; port 0: any. change(request, outgoing) may answer instead. Of those that send while they
// speak, pace(i) is awaited before each piece, and sound(text, speed) makes the samples (24 kHz).
export async function speechDouble(t, kind, { port = 0, change = () => false, pace = () => {}, sound = tone } = {}) {
    const asked = [];
    const double = kinds[kind];
    const server = http.createServer(async (incoming, outgoing) => {
        const pieces = [];
        for await (const piece of incoming)
            pieces.push(piece);
        const request = { method: incoming.method, url: incoming.url, headers: incoming.headers, bytes: Buffer.concat(pieces), outgoing };
        asked.push(request);
        try {
            if (!change(request, outgoing))
                await double.answer(request, outgoing, { pace, sound });
        } catch (e) {
            outgoing.writeHead(e instanceof Refusal ? 400 : 500, { 'content-type': 'application/json' }).end(JSON.stringify({ error: { message: `double: ${e.message}` } }));
        }
    }).listen(port, '127.0.0.1').unref();
    await once(server, 'listening');
    const close = () => { server.close(); server.closeAllConnections(); };
    t?.after(close);
    return { ...double, asked, close, key, url: `http://127.0.0.1:${server.address().port}${double.base}`, port: server.address().port };
}

// Adds it to a Hearth under a name.
export function addSpeech(h, double, name, more = {}) {
    return admin(h, 'POST', '/api/providers', { preset: double.preset, name, for: 'speech', base_url: double.url, api_key: double.key, ...more });
}
