// sherpa-onnx-offline-tts as a program of this machine. The program cannot be had here, so a double stands for it, written in C after the reference of its
// options (sherpa-onnx/csrc: sherpa-onnx-offline-tts.cc, parse-options.cc, wave-writer.cc). It takes the text as an argument, which other users must not read.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { after, before, test } from 'node:test';
import { binary, startHearth, until } from '../api/harness.mjs';
import { admin, newApp, refused, refusedFields } from '../api/kit.mjs';
import { judge } from '../api/sound.mjs';

// A tone of 20 ms a byte of the text; the rate tells the speaker. Folders of models say what goes wrong.
const source = String.raw`#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>
static const char *const known[] = { "vits-model", "vits-tokens", "vits-data-dir", "vits-lexicon", "vits-dict-dir", "vits-length-scale",
    "matcha-acoustic-model", "matcha-vocoder", "matcha-tokens", "matcha-data-dir", "matcha-lexicon", "matcha-dict-dir", "matcha-length-scale",
    "kokoro-model", "kokoro-voices", "kokoro-tokens", "kokoro-data-dir", "kokoro-lexicon", "kokoro-dict-dir", "kokoro-length-scale",
    "kitten-model", "kitten-voices", "kitten-tokens", "kitten-data-dir", "kitten-length-scale", "tts-rule-fsts", "sid", "num-threads", "output-filename" };
static const char *values[sizeof(known) / sizeof(known[0])];
static void fail(const char *why) { fprintf(stderr, "%s\n", why); exit(1); }
static const char *value(const char *end)
{
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (values[i] && strlen(known[i]) >= strlen(end) && strcmp(known[i] + strlen(known[i]) - strlen(end), end) == 0)
            return values[i];
    return NULL;
}
static void take(const char *argument)
{
    const char *equals = strchr(argument, '=');
    for (size_t i = 0; equals && i < sizeof(known) / sizeof(known[0]); i++)
        if (strlen(known[i]) == (size_t)(equals - argument - 2) && strncmp(known[i], argument + 2, strlen(known[i])) == 0) {
            values[i] = equals + 1;
            return;
        }
    fprintf(stderr, "Invalid option %s\n", argument);
    exit(1);
}
static void write_wav(FILE *out, uint32_t rate, uint32_t n)
{
    const uint32_t head[] = { 0x46464952, 36 + 2 * n, 0x45564157, 0x20746d66, 16, 0x10001, rate, 2 * rate, 0x100002, 0x61746164, 2 * n };
    fwrite(head, 1, sizeof(head), out);
    for (uint32_t i = 0; i < n && !ferror(out); i++) {
        int16_t sample = i / 20 % 2 ? 8000 : -8000;
        fwrite(&sample, 2, 1, out);
    }
}
int main(int argc, char **argv)
{
    int i = 1;
    for (; i < argc && strncmp(argv[i], "--", 2) == 0; i++) {
        if (!argv[i][2]) {
            i++;
            break;
        }
        take(argv[i]);
    }
    if (argc - i != 1)
        fail(argc == i ? "Error: Please provide the text to generate audio." : "Error: Accept only one positional argument.");
    const char *text = argv[i], *model = value("model"), *output = value("output-filename");
    prctl(PR_SET_NAME, "speaking");
    printf("what is printed is no sound\n");
    fflush(stdout);
    if (!model || access(model, R_OK) || !value("tokens") || access(value("tokens"), R_OK) || (value("data-dir") && access(value("data-dir"), R_OK)))
        fail("Errors in config!");
    if (getenv("LD_PRELOAD") || getenv("LD_LIBRARY_PATH"))
        fail("a library is preloaded into whatever this program starts");
    if (strstr(model, "hangs"))
        pause();
    if (strstr(model, "silent"))
        return 0;
    if (strstr(model, "curious") && (open("/etc/hostname2", O_CREAT | O_WRONLY, 0600) >= 0 || open("/root", O_RDONLY) >= 0))
        fail("it sees what is none of its business");
    if (strstr(model, "leaks")) {
        fprintf(stderr, "parse-options.cc:Read:361 %s --sid=0 '%s'\nThe text is: %s. Speaker ID: 0\nthe model is damaged\n", argv[0], text, text);
        return 1;
    }
    if (strstr(model, "starts")) {
        execl("/bin/sleep", "sleep", "1000", text, (char *)NULL);
        fail(strerror(errno));
    }
    FILE *out = fopen(output, "wb");
    if (!out)
        fail("it cannot write");
    if (strstr(model, "tells"))
        fwrite(text, 1, strlen(text), out);
    else
        write_wav(out, 16000 + 1000 * (uint32_t)atoi(value("sid")), strstr(model, "endless") ? 1u << 30 : (uint32_t)(strlen(text) * 0.02 * 16000 * atof(value("length-scale"))));
    return fclose(out) != 0;
}
`;

const text = 'The secret of Mrs. Robinson is here.', most = 4096;
const ready = 'hearth-speech-text 1\n';
const hasCompiler = spawnSync('cc', ['--version']).status === 0, skip = hasCompiler ? false : 'needs a C compiler';
const dir = mkdtempSync(join(tmpdir(), 'sherpa '));
const folder = join(dir, 'models'), program = join(dir, 'bin', 'sherpa-onnx-offline-tts'), workers = join(dir, 'workers');
let h, app, appId;

function compile(path, ...options) {
    const made = spawnSync('cc', ['-O1', ...options, '-o', path, '-x', 'c', '-'], { input: source, encoding: 'utf8' });
    assert.equal(made.status, 0, made.stderr);
    return path;
}

// The end of a file of ONNX: pairs of strings.
const metadata = (pairs) => Buffer.concat(Object.entries(pairs).map(([key, value]) => {
    const both = Buffer.concat([Buffer.from([0x0a, key.length]), Buffer.from(key), Buffer.from([0x12, value.length]), Buffer.from(value)]);
    return Buffer.concat([Buffer.from([0x72, both.length]), both]);
}));

function addModel(name, pairs = {}, ...files) {
    addFiles(join(folder, name), files, Buffer.concat([Buffer.alloc(100_000, 1), metadata({ sample_rate: '16000', ...pairs })]));
}

function addFiles(path, files, network) {
    mkdirSync(join(path, 'espeak-ng-data'), { recursive: true });
    for (const file of ['tokens.txt', ...files])
        writeFileSync(join(path, file), '');
    writeFileSync(join(path, `${basename(path)}.onnx`), network);
}

before(async () => {
    if (skip)
        return;
    chmodSync(dir, 0o755);
    mkdirSync(dirname(program));
    compile(program);
    for (const name of ['vits-piper-de_DE-thorsten-low', 'hangs', 'silent', 'curious', 'leaks', 'starts', 'endless'])
        addModel(name);
    addModel('vits-vctk', { n_speakers: '3' }, 'lexicon.txt');
    addModel('kokoro-en-v0_19', { n_speakers: '2' }, 'voices.bin');
    addModel('kitten-nano-en', {}, 'voices.bin');
    addModel('matcha-zh', {}, 'vocos-22khz-univ.onnx');
    mkdirSync(join(folder, 'no-model'));
    mkdirSync(workers);             // a path with spaces
    for (const file of ['hearth-speech-sound', 'hearth-speech-text.so'])
        copyFileSync(join(dirname(binary), file), join(workers, file));
    h = await startHearth({ settings: { 'speech.folder': workers, 'log.level': 'debug' } });
    await set('speech.sherpa', program);
    await set('speech.sherpa_voices', folder);
    appId = await newApp(h, {}, ['tts.generate']);
    app = h.asApp(appId);
});
after(async () => {
    await h?.stop();
    rmSync(dir, { recursive: true, force: true });
});

const set = (key, value) => admin(h, 'PUT', `/api/settings/${key}`, { value });
const listed = async () => (await app('GET', '/sdk/tts/providers')).body.providers.find(({ id }) => id === 'sherpa_local');
const say = (voice, more) => app('POST', '/sdk/tts', { text, provider: 'sherpa_local', voice, ...more });
const soxi = (bytes, flag) => Number(judge(bytes, 'a.wav', 'soxi', (path) => [flag, path]).stdout);
const read = (pid, file) => {
    try {
        return readFileSync(`/proc/${pid}/${file}`, 'utf8');
    } catch {
        return '';
    }
};
const processes = (file, words) => readdirSync('/proc').filter((pid) => /^\d+$/.test(pid) && read(pid, file).includes(words));
const running = () => processes('comm', 'speaking').filter((pid) => read(pid, 'cmdline').includes(folder));

// The program with the library, without the service; its output is a pipe, as the service's.
function runWith(words, { of = program, model = 'tells' } = {}) {
    addModel(model);
    const args = [`--vits-model=${folder}/${model}/${model}.onnx`, `--vits-tokens=${folder}/${model}/tokens.txt`, '--sid=0', '--output-filename=/proc/self/fd/63', '--'];
    return spawnSync('bash', ['-c', 'set -o pipefail; LD_PRELOAD=hearth-speech-text.so LD_LIBRARY_PATH=$0 "$@" | cat', workers, of, ...args], { input: words, encoding: 'utf8' });
}

test('it is found, its speakers are voices, and every family of models speaks at the speed that was asked for', { skip }, async () => {
    const provider = await listed();
    assert.deepEqual([provider.configured, provider.type, provider.note], [true, 'local', null]);
    assert.deepEqual(provider.config.voices, ['curious', 'endless', 'hangs', 'kitten-nano-en', 'kokoro-en-v0_19:0', 'kokoro-en-v0_19:1', 'leaks', 'matcha-zh', 'silent', 'starts',
        'vits-piper-de_DE-thorsten-low', 'vits-vctk:0', 'vits-vctk:1', 'vits-vctk:2']);
    assert.deepEqual(provider.config.languages, ['en', 'zh', 'de_DE']);
    for (const [voice, speed, rate] of [['vits-vctk:2', 1, 18_000], ['kokoro-en-v0_19:1', 2, 17_000], ['kitten-nano-en', 0.5, 16_000], ['matcha-zh', 1, 16_000], ['curious', 1, 16_000]]) {
        const reply = await say(voice, { speed });
        assert.equal(reply.status, 200, reply.text.slice(0, 500));
        assert.equal(soxi(reply.bytes, '-r'), rate);
        assert.ok(Math.abs(soxi(reply.bytes, '-D') * rate / 16_000 - 0.02 * text.length / speed) < 0.05, voice);
    }
    assert.equal((await say(undefined, { language: 'de', text: 'Guten Tag.' })).status, 200);
    for (const voice of ['vits-vctk:3', 'no-model', '../models/vits-vctk', 'vits-vctk:0/../vits-vctk'])
        refusedFields(await say(voice), 'voice');
    const { checks } = await admin(h, 'GET', '/api/doctor');
    assert.match(JSON.stringify(checks), /sherpa_local speaks with 14 voices/);
});

test('the last 64 KiB of a file name its speakers, 32 models are listed, and a file that is none holds nothing up', { skip }, async (t) => {
    const other = join(dir, 'other'), pair = metadata({ n_speakers: '2' }).subarray(2), kept = 64 * 1024;
    t.after(() => set('speech.sherpa_voices', folder));
    addFiles(join(other, 'far'), [], Buffer.concat([pair, Buffer.alloc(kept - pair.length + 1)]));
    addFiles(join(other, 'near'), [], Buffer.concat([Buffer.alloc(9), pair, Buffer.alloc(kept - pair.length)]));
    addFiles(join(other, 'pipe'), [], '');
    rmSync(join(other, 'pipe', 'pipe.onnx'));
    assert.equal(spawnSync('mkfifo', [join(other, 'pipe', 'pipe.onnx')]).status, 0);
    await set('speech.sherpa_voices', other);
    assert.deepEqual((await listed()).config.voices, ['far', 'near:0', 'near:1', 'pipe']);
    const many = join(dir, 'many');
    for (let i = 0; i < 33; i++)
        addFiles(join(many, `model-${i}`), [], '');
    await set('speech.sherpa_voices', many);
    assert.equal((await listed()).config.voices.length, 32);
    rmSync(join(many, 'model-0'), { recursive: true });
    await set('speech.sherpa_voices', `${many}/../many`);
    assert.equal((await listed()).config.voices.length, 32);
    await set('speech.sherpa_voices', join(dir, 'missing'));
    const { configured, note } = await listed();
    assert.equal(configured, false);
    assert.match(note, /name a folder with folders of models .* by the setting speech\.sherpa_voices/);
});

test('while it speaks, no process shows the text, and the program ends with its client', { skip }, async () => {
    const gone = new AbortController();
    const left = fetch(`${h.url}/sdk/tts`, { method: 'POST', signal: gone.signal, headers: { 'content-type': 'application/json', 'x-app-id': appId },
        body: JSON.stringify({ text, provider: 'sherpa_local', voice: 'hangs' }) }).catch(() => null);
    await until(() => running().length > 0, { what: 'the program has its text' });
    for (const file of ['cmdline', 'environ', 'comm'])
        assert.deepEqual(processes(file, 'Robinson'), [], file);
    gone.abort();
    await left;
    await until(() => running().length === 0, { what: 'the program has ended with its client' });
});

test('a text is one argument, whatever it looks like, and one that is too long or has a NUL is none', { skip }, () => {
    const texts = ['--output-filename=/tmp/x', '--', '-- --sid=1', '--help', 'two\nlines', '"quotes" \'and\' $(touch x)', 'x'.repeat(most)];
    for (const words of texts)
        assert.equal(runWith(words).stdout, ready + words);
    for (const words of ['', 'x'.repeat(most + 1), 'a\0b']) {
        const { status, stdout, stderr } = runWith(words);
        assert.deepEqual([status, stdout], [125, ready]);
        assert.match(stderr, /no text, or one that is too long or has a NUL/);
    }
});

test('a large program that was made for an older C library takes the text too', { skip }, () => {
    const script = 'console.log(JSON.stringify([process.argv.at(-1), require("fs").readFileSync("/proc/self/cmdline", "utf8")]))';
    const { stdout, stderr } = spawnSync(process.execPath, ['-e', script, '--'], { input: text, env: { LD_PRELOAD: 'hearth-speech-text.so', LD_LIBRARY_PATH: workers }, encoding: 'utf8' });
    const [argument, shown] = JSON.parse(stderr);
    assert.deepEqual([stdout, argument], [ready, text]);
    assert.ok(shown.includes('console.log') && !shown.includes('Robinson'));
});

test('options in a text are spoken', { skip }, async () => {
    for (const words of ['--output-filename=/tmp/x', 'Hello\n--sid=1\nthere.']) {
        const reply = await say('vits-vctk:0', { text: words });
        assert.equal(reply.status, 200, reply.text.slice(0, 500));
        assert.equal(soxi(reply.bytes, '-r'), 16_000);
        assert.ok(soxi(reply.bytes, '-D') > 0.15);
    }
});

test('a program that cannot take the text in secret is refused, and gets none', { skip }, async (t) => {
    t.after(() => set('speech.sherpa', program));
    const script = join(dir, 'script'), fixed = compile(join(dir, 'static'), '-static');
    writeFileSync(script, `#!/bin/sh\nexec '${program}' "$@"\n`, { mode: 0o755 });
    const silent = runWith(text, { of: script });
    assert.deepEqual([silent.status, silent.stdout], [125, '']);
    assert.ok(!runWith(text, { of: fixed }).stdout.includes(ready));
    for (const [path, why] of [[script, /must be linked with glibc dynamically, and be no script\. It says: hearth-speech-text: it is a script/], [fixed, /must be linked with glibc dynamically.*Please provide the text/]]) {
        await set('speech.sherpa', path);
        refused(await say('vits-vctk:1'), 503, 'SPEECH_UNAVAILABLE', why);
    }
});

test('a program that fails, starts another one or never ends is told from one that speaks, and its words do not repeat the text', { skip }, async (t) => {
    const leaks = await say('leaks');
    refused(leaks, 502, 'SPEECH_FAILED', /sherpa_local: it sent nothing\. It says: the model is damaged/);
    assert.ok(!leaks.text.includes('Robinson'));
    refused(await say('silent'), 502, 'SPEECH_FAILED', /it sent nothing/);
    refused(await say('starts'), 502, 'SPEECH_FAILED', /it sent nothing.*Operation not permitted/);
    refused(await say('endless'), 502, 'SPEECH_FAILED', /it sent more than 16 MiB for one sentence/);
    t.after(() => set('speech.timeout_s', 30));
    await set('speech.timeout_s', 1);
    refused(await say('hangs'), 502, 'SPEECH_FAILED', /it took longer than 1 s/);
    await until(() => running().length === 0, { what: 'the programs have ended' });
    await h.logged(/sherpa-onnx/);
    assert.deepEqual(h.logLines.items.filter((line) => line.includes('Robinson')), []);
});
