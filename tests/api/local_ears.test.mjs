// Vosk and sherpa-onnx: libraries and models that a person puts into the data folder. No model can be had here, so what is heard comes from stand-ins of
// the libraries, compiled from C; that the real ones are loaded is seen where HEARTH_VOSK_LIBRARY (npm package vosk, lib/linux-x86_64/libvosk.so) and
// HEARTH_SHERPA_LIBRARY (npm package sherpa-onnx-linux-x64, libsherpa-onnx-c-api.so) name them.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { binary, startHearth } from './harness.mjs';
import { newKey, refused, refusedFields, silentWav } from './kit.mjs';
import { changed } from './sound.mjs';

const hasCompiler = spawnSync('cc', ['--version']).status === 0;
const realLibrary = process.env.HEARTH_VOSK_LIBRARY, realSherpa = process.env.HEARTH_SHERPA_LIBRARY;

// Says two words a segment, the second one the first phrase when there are phrases.
const source = `#include <stdio.h>
#include <string.h>
#include <stdlib.h>
static char phrases[200] = "there", said[500];
void vosk_set_log_level(int level) { }
void *vosk_model_new(const char *path) { if (strstr(path, "crash")) abort(); return strstr(path, "damaged") ? NULL : phrases; }
void *vosk_recognizer_new(void *model, float rate) { return rate == 16000 ? model : NULL; }
void *vosk_recognizer_new_grm(void *model, float rate, const char *json) { sscanf(json, "[\\"%199[^\\"]", phrases); return strstr(json, "xyzzy") ? NULL : model; }
void vosk_recognizer_set_words(void *r, int on) { }
int vosk_recognizer_accept_waveform_s(void *r, const short *samples, int n) { return n > 0; }
const char *vosk_recognizer_partial_result(void *r) { return "{ \\"partial\\" : \\"hello\\" }"; }
const char *vosk_recognizer_final_result(void *r)
{
    snprintf(said, sizeof(said), "{\\n  \\"result\\" : [{\\n      \\"conf\\" : 0.750000,\\n      \\"end\\" : 0.420000,\\n      \\"start\\" : 0.120000,\\n      \\"word\\" : \\"hello\\"\\n    }, {\\n"
        "      \\"conf\\" : 1.000000,\\n      \\"end\\" : 0.900000,\\n      \\"start\\" : 0.420000,\\n      \\"word\\" : \\"%s\\"\\n    }],\\n  \\"text\\" : \\"hello %s\\"\\n}", phrases, phrases);
    return said;
}
void vosk_recognizer_free(void *r) { }
`;

// Checks the beginning of its struct, and hears two words in three tokens.
const sherpaSource = `#include <stdint.h>
#include <string.h>
struct config { int32_t rate, n; const char *encoder, *decoder, *joiner, *paraformer, *nemo; struct { const char *encoder, *decoder, *language, *task; int32_t a, b, c; } whisper; const char *tdnn, *tokens; int32_t threads; };
struct result { const char *text; float *times; int32_t n; const char *joined; const char *const *tokens; };
static int has_times = 1;
static float times[] = { 0.1f, 0.3f, 0.6f };
static const char *const tokens[] = { "\\xe2\\x96\\x81hel", "lo", "\\xe2\\x96\\x81there" };
static struct result heard = { " hello there", times, 3, "", tokens };
const char *SherpaOnnxGetVersionStr(void) { return VERSION; }
void *SherpaOnnxCreateOfflineRecognizer(struct config *c) { has_times = !c->whisper.encoder; return c->rate == 16000 && c->threads == 1 && strstr(c->tokens, "tokens.txt") && (c->whisper.encoder || strstr(c->joiner, "joiner.int8.onnx")) ? c : NULL; }
void *SherpaOnnxCreateOfflineStream(void *r) { return r; }
void SherpaOnnxAcceptWaveformOffline(void *s, int32_t rate, const float *samples, int32_t n) { }
void SherpaOnnxDecodeOfflineStream(void *r, void *s) { }
const struct result *SherpaOnnxGetOfflineStreamResult(void *s) { heard.times = has_times ? times : NULL; return &heard; }
void SherpaOnnxDestroyOfflineRecognizerResult(const struct result *r) { }
void SherpaOnnxDestroyOfflineStream(void *s) { }
`;

function standIn(t, text = source, version = '1.13.8') {
    const dir = mkdtempSync(join(tmpdir(), 'vosk '));
    t.after(() => rmSync(dir, { recursive: true, force: true }));
    writeFileSync(join(dir, 'vosk.c'), text);
    const made = spawnSync('cc', ['-shared', '-fPIC', `-DVERSION="${version}"`, '-o', join(dir, 'libvosk.so'), join(dir, 'vosk.c')], { encoding: 'utf8' });
    assert.equal(made.status, 0, made.stderr);
    return join(dir, 'libvosk.so');
}

const kinds = { vosk: { file: 'libvosk.so', id: 'vosk_local', parts: ['am/final.mdl'] }, 'sherpa-onnx': { file: 'libsherpa-onnx-c-api.so', id: 'sherpa_local', parts: ['tokens.txt', 'encoder.int8.onnx', 'decoder.onnx', 'joiner.onnx', 'joiner.int8.onnx'] } };

async function withLibrary(t, library, models, { kind = 'vosk', parts = kinds[kind].parts, settings = {} } = {}) {
    const h = await startHearth({ t, settings });
    const folder = join(h.dataDir, 'speech', kind), { id: provider, file } = kinds[kind];
    mkdirSync(folder, { recursive: true });
    if (library)
        copyFileSync(library, join(folder, file));
    for (const path of models.flatMap((name) => parts.map((part) => join(folder, name, part)))) {
        mkdirSync(dirname(path), { recursive: true });
        writeFileSync(path, 'no model');
    }
    const { call } = await newKey(h);
    return { h, folder, call, provider: async () => (await call('GET', '/sdk/stt/providers')).body.providers.find(({ id }) => id === provider), hear: (query = '', bytes = speech) => call('POST', `/sdk/stt/transcribe?provider=${provider}${query}`, bytes) };
}
// Noise that comes and goes like syllables: there is a voice, as far as the detector knows.
const speech = changed(silentWav, 'a.wav', [], ['pad', '0', '1', 'synth', 'brownnoise', 'tremolo', '4', '90', 'pad', '0.5', '0.7']);

test('without library and model the provider says where to put them', async (t) => {
    const { h, folder, provider: vosk, hear } = await withLibrary(t, null, []);
    const { configured, note, models } = await vosk();
    assert.deepEqual([configured, models], [false, []]);
    assert.ok(note.includes('libvosk.so') && note.includes(folder), note);
    const reply = await hear();
    refused(reply, 503, 'SPEECH_UNAVAILABLE');
    assert.ok(reply.body.error.includes(folder));
    const { checks } = (await h.socket('GET', '/api/doctor')).body;
    assert.ok(checks.some(({ name, ok, text }) => name === 'hearing' && ok && text.includes('libvosk.so')));
});

test('at most 32 models are listed', async (t) => {
    const { provider: vosk } = await withLibrary(t, null, Array.from({ length: 33 }, (_, i) => `vosk-model-${i}`));
    assert.equal((await vosk()).models.length, 32);
});

test('what the library hears has words and times, in the language of the model', { skip: !hasCompiler && 'there is no C compiler' }, async (t) => {
    const { provider: vosk, hear } = await withLibrary(t, standIn(t), ['vosk-model-small-de-0.15', 'vosk-model-en-us-0.22', 'other']);
    const { configured, note, models } = await vosk();
    assert.deepEqual([configured, note], [true, null]);
    assert.deepEqual(models.map(({ id, language }) => [id, language]), [['other', ''], ['vosk-model-en-us-0.22', 'en-us'], ['vosk-model-small-de-0.15', 'de']]);
    const { status, body, text } = await hear('&language=de-AT');
    assert.deepEqual([status, body.text], [200, 'hello there'], text);
    const [{ start, words }] = body.segments;
    assert.deepEqual(words.map(({ word, confidence }) => [word, confidence]), [['hello', 0.75], ['there', 1]]);
    assert.ok(Math.abs(words[0].start - start - 0.12) < 0.002 && words[1].end > words[1].start);
    assert.equal((await hear('&phrases=world')).body.text, 'hello world');
    refusedFields(await hear('&phrases=xyzzy'), 'phrases');
    refusedFields(await hear(`&phrases=${encodeURIComponent('#JSGF V1.0; grammar a; public <p> = hello;')}`), 'phrases');
    refusedFields(await hear('&model=vosk-model-fr'), 'model');
    refusedFields(await hear('&language=zh&model=vosk-model-en-us-0.22'), 'language');
});

test('a library or model that is damaged, crashes or could be replaced by others fails its request only', { skip: !hasCompiler && 'there is no C compiler' }, async (t) => {
    const { folder, call, provider: vosk, hear } = await withLibrary(t, standIn(t), ['damaged', 'crash']);
    const damaged = await hear('&model=damaged');
    refused(damaged, 503, 'SPEECH_UNAVAILABLE');
    assert.match(damaged.body.error, /Vosk cannot load the model in .*damaged/);
    refused(await hear('&model=crash'), 503, 'SPEECH_UNAVAILABLE');
    for (const { body } of [damaged, await hear('&model=crash')])
        assert.match(body.error, /Put a library and a model that fit each other into the data folder\.$/, 'no package is missing');
    chmodSync(join(folder, 'libvosk.so'), 0o666);
    assert.match((await vosk()).note, /nobody else may write/);
    refused(await hear('&model=crash'), 503, 'SPEECH_UNAVAILABLE');
    chmodSync(join(folder, 'libvosk.so'), 0o600);
    writeFileSync(join(folder, 'libvosk.so'), 'no library');
    assert.match((await hear('&model=damaged')).body.error, /library cannot be loaded/);
    assert.equal((await call('POST', '/sdk/stt/transcribe', silentWav)).status, 200);
});

test('packages are named where the worker itself lacks one', { skip: !hasCompiler && 'there is no C compiler' }, async (t) => {
    const workers = mkdtempSync(join(tmpdir(), 'workers '));
    t.after(() => rmSync(workers, { recursive: true, force: true }));
    writeFileSync(join(workers, 'hearth-speech-vosk'), '#!/bin/sh\nexec >&-\necho "$0: error while loading shared libraries: libsndfile.so.1: cannot open shared object file" >&2\nexit 127\n', { mode: 0o755 });
    const { hear, provider: vosk } = await withLibrary(t, standIn(t), ['vosk-model-de'], { settings: { 'speech.folder': workers } });
    refused(await hear(), 503, 'SPEECH_UNAVAILABLE', /libsndfile\.so\.1.*apt install libsndfile1 libsamplerate0/);
    copyFileSync(join(dirname(binary), 'hearth-speech-vosk'), join(workers, 'hearth-speech-vosk'));
    const video = Buffer.from('1a45dfa39f4286810142f7810142f2810442f381084282847765626d', 'hex');
    refused(await hear('', video), 503, 'SPEECH_UNAVAILABLE', /WebM, MP4 and AAC need ffmpeg's libraries.*apt install .* libavformat59/);
    rmSync(join(workers, 'hearth-speech-vosk'));
    assert.match((await vosk()).note, /does not exist.*apt install libsndfile1 libsamplerate0/);
});

test('the real library is loaded, and refuses what is no model', { skip: !realLibrary && 'HEARTH_VOSK_LIBRARY names no libvosk.so' }, async (t) => {
    const { provider: vosk, hear } = await withLibrary(t, realLibrary, ['vosk-model-small-en-us-0.15']);
    const { configured, note } = await vosk();
    assert.equal(configured, false);
    assert.match(note, /vosk-model-small-en-us-0\.15' does not contain model files/);
    refused(await hear(), 503, 'SPEECH_UNAVAILABLE');
});

test('what sherpa-onnx hears has words and times, by tokens or by their share of the text', { skip: !hasCompiler && 'there is no C compiler' }, async (t) => {
    const { provider: sherpa, hear } = await withLibrary(t, standIn(t, sherpaSource), ['zipformer-en'], { kind: 'sherpa-onnx' });
    const { configured, note, models } = await sherpa();
    assert.deepEqual([configured, note, models.map(({ id, language }) => [id, language])], [true, null, [['zipformer-en', '']]]);
    const { status, body, text } = await hear('&language=en');
    assert.deepEqual([status, body.text], [200, 'hello there'], text);
    const [{ start, words }] = body.segments;
    assert.deepEqual(words.map((word) => Math.round((word.start - start) * 10)), [1, 6]);
    refusedFields(await hear('&phrases=hello'), 'phrases');
    const whisper = await withLibrary(t, standIn(t, sherpaSource), ['tiny.en'], { kind: 'sherpa-onnx', parts: ['tiny.en-tokens.txt', 'tiny.en-encoder.onnx', 'tiny.en-decoder.onnx'] });
    const other = (await whisper.hear()).body;
    assert.equal(other.text, 'hello there');
    assert.ok(other.segments[0].words[1].start > other.segments[0].words[0].start);
});

test('a sherpa-onnx of another version, or a folder of another kind, is not used', { skip: !hasCompiler && 'there is no C compiler' }, async (t) => {
    const older = await withLibrary(t, standIn(t, sherpaSource, '1.12.0'), ['zipformer-en'], { kind: 'sherpa-onnx' });
    assert.match((await older.provider()).note, /version 1\.12\.0; 1\.13\.x is needed/);
    refused(await older.hear(), 503, 'SPEECH_UNAVAILABLE');
    const unknown = await withLibrary(t, standIn(t, sherpaSource), ['other'], { kind: 'sherpa-onnx', parts: ['tokens.txt', 'model.onnx'] });
    assert.match((await unknown.provider()).note, /cannot load the model in .*other/);
});

test('the real sherpa-onnx is loaded, and refuses what is no model', { skip: !realSherpa && 'HEARTH_SHERPA_LIBRARY names no libsherpa-onnx-c-api.so' }, async (t) => {
    const { provider: sherpa, hear, call, folder } = await withLibrary(t, realSherpa, ['zipformer-en'], { kind: 'sherpa-onnx' });
    copyFileSync(join(dirname(realSherpa), 'libonnxruntime.so'), join(folder, 'libonnxruntime.so'));
    const { configured, note } = await sherpa();
    assert.equal(configured, false);
    assert.match(note, /sherpa_local does not work/);
    refused(await hear(), 503, 'SPEECH_UNAVAILABLE');
    assert.equal((await call('POST', '/sdk/stt/transcribe', silentWav)).status, 200);
    t.diagnostic(note);
});
