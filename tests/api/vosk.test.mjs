// Vosk: a library and models that a person puts into the data folder. No model can be had here, so what is heard comes from a stand-in of the library,
// compiled from C; that the real one is loaded is seen where HEARTH_VOSK_LIBRARY names it (npm package vosk, lib/linux-x86_64/libvosk.so).
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { startHearth } from './harness.mjs';
import { newKey, refused, refusedFields, silentWav } from './kit.mjs';
import { changed } from './sound.mjs';

const hasCompiler = spawnSync('cc', ['--version']).status === 0;
const realLibrary = process.env.HEARTH_VOSK_LIBRARY;

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

function standIn(t) {
    const dir = mkdtempSync(join(tmpdir(), 'vosk '));
    t.after(() => rmSync(dir, { recursive: true, force: true }));
    writeFileSync(join(dir, 'vosk.c'), source);
    const made = spawnSync('cc', ['-shared', '-fPIC', '-o', join(dir, 'libvosk.so'), join(dir, 'vosk.c')], { encoding: 'utf8' });
    assert.equal(made.status, 0, made.stderr);
    return join(dir, 'libvosk.so');
}

async function withLibrary(t, library, models) {
    const h = await startHearth({ t });
    const folder = join(h.dataDir, 'speech/vosk');
    mkdirSync(folder, { recursive: true });
    if (library)
        copyFileSync(library, join(folder, 'libvosk.so'));
    for (const name of models) {
        mkdirSync(join(folder, name, 'am'), { recursive: true });
        writeFileSync(join(folder, name, 'am/final.mdl'), 'no model');
    }
    const { call } = await newKey(h);
    return { h, folder, call, vosk: async () => (await call('GET', '/sdk/stt/providers')).body.providers.find(({ id }) => id === 'vosk_local'), hear: (query = '', bytes = speech) => call('POST', `/sdk/stt/transcribe?provider=vosk_local${query}`, bytes) };
}
// Noise that comes and goes like syllables: there is a voice, as far as the detector knows.
const speech = changed(silentWav, 'a.wav', [], ['pad', '0', '1', 'synth', 'brownnoise', 'tremolo', '4', '90', 'pad', '0.5', '0.7']);

test('without library and model the provider says where to put them', async (t) => {
    const { h, folder, vosk, hear } = await withLibrary(t, null, []);
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
    const { vosk } = await withLibrary(t, null, Array.from({ length: 33 }, (_, i) => `vosk-model-${i}`));
    assert.equal((await vosk()).models.length, 32);
});

test('what the library hears has words and times, in the language of the model', { skip: !hasCompiler && 'there is no C compiler' }, async (t) => {
    const { vosk, hear } = await withLibrary(t, standIn(t), ['vosk-model-small-de-0.15', 'vosk-model-en-us-0.22', 'other']);
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
    const { folder, call, vosk, hear } = await withLibrary(t, standIn(t), ['damaged', 'crash']);
    const damaged = await hear('&model=damaged');
    refused(damaged, 503, 'SPEECH_UNAVAILABLE');
    assert.match(damaged.body.error, /Vosk cannot load the model in .*damaged/);
    refused(await hear('&model=crash'), 503, 'SPEECH_UNAVAILABLE');
    chmodSync(join(folder, 'libvosk.so'), 0o666);
    assert.match((await vosk()).note, /nobody else may write/);
    refused(await hear('&model=crash'), 503, 'SPEECH_UNAVAILABLE');
    chmodSync(join(folder, 'libvosk.so'), 0o600);
    writeFileSync(join(folder, 'libvosk.so'), 'no library');
    assert.match((await hear('&model=damaged')).body.error, /library cannot be loaded/);
    assert.equal((await call('POST', '/sdk/stt/transcribe', silentWav)).status, 200);
});

test('the real library is loaded, and refuses what is no model', { skip: !realLibrary && 'HEARTH_VOSK_LIBRARY names no libvosk.so' }, async (t) => {
    const { vosk, hear } = await withLibrary(t, realLibrary, ['vosk-model-small-en-us-0.15']);
    const { configured, note } = await vosk();
    assert.equal(configured, false);
    assert.match(note, /vosk-model-small-en-us-0\.15' does not contain model files/);
    refused(await hear(), 503, 'SPEECH_UNAVAILABLE');
});
