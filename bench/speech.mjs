// Speech: the first audio of /sdk/tts/stream with warm workers, the share of real time, eight at once; recordings to text, their share of real time and
// the worker's memory; beside the engines' own programs in the same run (Debian: espeak-ng, flite, pocketsphinx), and the first audio of espeak-ng beside the bare
// library, kept warm, which shows what of the slowest percent is the machine's own noise.
import { spawn, spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { speechWorkers } from '../tests/api/kit.mjs';
import { emit, median, quantile } from './lib/measure.mjs';
import { atEnd, bench, buildFolder, diskFolder, hearth } from './lib/programs.mjs';

const rounds = 5, firsts = 200;
const sentences = ['Please open the window and turn on the light.', 'It is a fine day in the north of the country, and nobody is in a hurry.', 'The invoice is in the queue, where it has been since Monday.',
    'Somebody ought to look at it before the end of the month.', 'Then the office may close early.'];
let n = 0;
const text = () => `Number ${++n}. ${sentences.join(' ')}`;      // never the same twice
const engines = [
    { name: 'espeak-ng', provider: 'espeak_local', voice: 'en-us', target: 10, library: true, program: (words) => ['espeak-ng', ['-v', 'en-us', '--stdout', words]] },
    { name: 'flite', provider: 'flite_local', voice: 'rms', target: 130, program: (words) => ['flite', ['-voice', 'rms', '-t', words, '-o', '/dev/null']] },
];

// Milliseconds until the first chunk has come, and the connection is then closed.
function firstAudio(url, key, body) {
    return new Promise((done, fail) => {
        const began = performance.now();
        const asked = request(`${url}/sdk/tts/stream`, { method: 'POST', headers: { 'content-type': 'application/json', 'x-api-key': key } }, (reply) => {
            let seen = '', ms = 0;
            reply.on('data', (piece) => {
                seen += piece;
                if (!ms && seen.includes('event: chunk'))
                    ms = performance.now() - began;
            });
            reply.on('end', () => (ms ? done(ms) : fail(new Error(seen.slice(0, 300)))));
        });
        asked.on('error', fail).end(JSON.stringify(body));
    });
}

// Runs a program: the milliseconds to its first output, which of flite is the whole, and to its end.
function ran([command, args], watch) {
    return new Promise((done, fail) => {
        const began = performance.now();
        const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'ignore'] });
        let first;
        child.on('error', fail);
        child.stdout.on('data', () => { first ??= performance.now() - began; });
        child.on('close', () => { const ms = performance.now() - began; done({ first: first ?? ms, ms }); });
        watch?.(child.pid);
    });
}

const hasProgram = (name) => spawnSync('which', [name]).status === 0;
const secondsOf = (wav) => wav.readUInt32LE(40) / wav.readUInt32LE(28);
const timed = async (what) => { const began = performance.now(); return [await what(), performance.now() - began]; };

// bench/espeak.c: milliseconds until it has spoken a sentence.
function bareLibrary(voice) {
    const child = spawn(join(buildFolder, 'bench/bench_espeak'), [voice], { stdio: ['pipe', 'pipe', 'inherit'] });
    let done, n = 0, nWanted = Infinity;
    atEnd(() => child.stdin.end());
    child.stdout.on('data', (piece) => {
        if (n === 0)
            nWanted = 4 + piece.readUInt32LE(0);
        n += piece.length;
        if (n < nWanted)
            return;
        n = 0;
        done();
    });
    return (words) => {
        const began = performance.now();
        return new Promise((fulfil, fail) => {
            child.once('error', fail).once('exit', fail);
            done = () => { child.removeAllListeners('exit').removeAllListeners('error'); fulfil(performance.now() - began); };
            child.stdin.write(`${words}\n`);
        });
    };
}

// The first chunk is the first sentence: the sentences take turns, all sides speak the same.
async function measureFirst(url, key, { name, provider, voice, target, program, library }) {
    const ours = [], sides = [];
    if (hasProgram(name))
        sides.push({ peer: `${name}, the program`, ms: [], say: async (first, rest) => (await ran(program(`${first} ${rest}`))).first });
    if (library)
        sides.push({ peer: `${name}, the library`, ms: [], say: bareLibrary(voice) });
    for (let i = 0; i < firsts; i++) {
        const first = sentences[i % sentences.length], rest = `${++n}.`;
        ours.push(await firstAudio(url, key, { text: `${first} ${rest}`, provider, voice }));
        for (const side of sides)
            side.ms.push(await side.say(first, rest));
    }
    for (const { peer, ms } of sides.length ? sides : [{}])
        for (const [which, of] of [['median', median], ['99 %', (all) => quantile(all, 0.99)]])
            emit({ what: `${name}: first audio of a stream, ${which}`, unit: 'ms', better: 'less', hearth: [of(ours)], ...(ms ? { peer: [of(ms)], peer_name: peer } : {}),
                target: { of: 'value', at: target } });
}

// The programs use all processors, a worker uses one: with two workers the service may use two.
async function measureWhole(ask, askTwo, { name, program }) {
    const one = { ours: [], theirs: [] }, eight = { ours: [], two: [], theirs: [] }, isThere = hasProgram(name);
    const all = (what) => timed(() => Promise.all(Array.from({ length: 8 }, what)));
    const allSeconds = async (what) => {
        const [replies, ms] = await all(what);
        return replies.reduce((total, { bytes }) => total + secondsOf(bytes), 0) * 1000 / ms;
    };
    await all(() => askTwo());                                  // both are warm
    for (let round = 0; round < rounds; round++) {
        const [reply, ms] = await timed(() => ask());
        const seconds = secondsOf(reply.bytes);
        one.ours.push(seconds * 1000 / ms);
        eight.ours.push(await allSeconds(() => ask()));
        eight.two.push(await allSeconds(() => askTwo()));
        if (isThere) {
            one.theirs.push(seconds * 1000 / (await ran(program(text()))).ms);
            eight.theirs.push(8 * seconds * 1000 / (await all(() => ran(program(text()))))[1]);
        }
    }
    const beside = (peer) => (isThere ? { peer, peer_name: `${name}, the program` } : {});
    emit({ what: `${name}: a text of six sentences, times real time`, unit: 'x', better: 'more', hearth: one.ours, ...beside(one.theirs) });
    emit({ what: `${name}: eight such texts at once`, unit: 'x', better: 'more', hearth: eight.ours, ...beside(eight.theirs) });
    emit({ what: `${name}: the same with speech.workers 2`, unit: 'x', better: 'more', hearth: eight.two, ...beside(eight.theirs) });
}

// The most memory that a process had, as long as it can be asked; the function ends the watching.
function watchMemory(pidOf) {
    let most = 0, goes = true;
    const watching = (async () => {
        for (; goes; await pause(20))
            try {
                most = Math.max(most, Number(/^VmHWM:\s+(\d+)/m.exec(readFileSync(`/proc/${pidOf()}/status`, 'utf8'))[1]) / 1024);
            } catch { /* not yet, or no more */ }
    })();
    return async () => { goes = false; await watching; return most; };
}

async function measureHearing(h, call, wav, path) {
    const seconds = secondsOf(wav), ours = [], theirs = [], memory = [], theirMemory = [], isThere = hasProgram('pocketsphinx_continuous');
    writeFileSync(path, wav);
    for (let round = 0; round < 3; round++) {
        const watched = watchMemory(() => speechWorkers(h).find(({ name }) => name.endsWith('ears'))?.pid);
        const [reply, ms] = await timed(() => call('POST', '/sdk/stt/transcribe', wav));
        if (reply.status !== 200)
            throw new Error(reply.text);
        ours.push(seconds * 1000 / ms);
        memory.push(await watched());
        if (!isThere)
            continue;
        let pid;
        const theirsWatched = watchMemory(() => pid);
        theirs.push(seconds * 1000 / (await ran(['pocketsphinx_continuous', ['-infile', path, '-logfn', '/dev/null']], (started) => { pid = started; })).ms);
        theirMemory.push(await theirsWatched());
    }
    const beside = (peer) => (isThere ? { peer, peer_name: 'pocketsphinx_continuous' } : {});
    emit({ what: `a recording of ${Math.round(seconds)} s to text, times real time`, unit: 'x', better: 'more', hearth: ours, ...beside(theirs) });
    emit({ what: 'a recording to text: memory of the worker', unit: 'MiB', better: 'less', hearth: memory, ...beside(theirMemory) });
}

await bench(async () => {
    const h = await hearth({ settings: { 'speech.cache_mb': 0 } }), two = await hearth({ settings: { 'speech.cache_mb': 0, 'speech.workers': 2 } });
    const key = await h.key(), call = h.as({ 'x-api-key': key }), callTwo = two.as({ 'x-api-key': await two.key() }), folder = diskFolder('speech');
    let wav;
    for (const engine of engines) {
        const { provider, voice } = engine, askBy = (by) => () => by('POST', '/sdk/tts', { text: text(), provider, voice });
        wav = (await askBy(call)()).bytes;                      // the worker is warm, and the last recording is flite's
        await measureFirst(h.url, key, engine);
        await measureWhole(askBy(call), askBy(callTwo), engine);
    }
    await measureHearing(h, call, wav, join(folder, 'a.wav'));
});
