// Speech: the first audio of /sdk/tts/stream with warm workers, the share of real time, eight at once; beside the engines' own programs (Debian: espeak-ng, flite).
import { execFileSync, spawnSync } from 'node:child_process';
import { request } from 'node:http';
import { join } from 'node:path';
import { emit, median, quantile } from './lib/measure.mjs';
import { bench, diskFolder, hearth } from './lib/programs.mjs';

const rounds = 5, firsts = 20;
const sentences = ['Please open the window and turn on the light.', 'It is a fine day in the north of the country, and nobody is in a hurry.', 'The invoice is in the queue, where it has been since Monday.',
    'Somebody ought to look at it before the end of the month.', 'Then the office may close early.'];
let n = 0;
const text = () => `Number ${++n}. ${sentences.join(' ')}`;      // never the same twice
const engines = [
    { name: 'espeak-ng', provider: 'espeak_local', voice: 'en-us', target: 10, run: (path, words) => ['espeak-ng', ['-v', 'en-us', '-w', path, words]] },
    { name: 'flite', provider: 'flite_local', voice: 'rms', target: 130, run: (path, words) => ['flite', ['-voice', 'rms', '-t', words, '-o', path]] },
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

const hasProgram = (name) => spawnSync('which', [name]).status === 0;
const secondsOf = (wav) => wav.readUInt32LE(40) / wav.readUInt32LE(28);

await bench(async () => {
    const h = await hearth({ settings: { 'speech.cache_mb': 0 } });
    const key = await h.key(), call = h.as({ 'x-api-key': key }), folder = diskFolder('speech');
    for (const { name, provider, voice, target, run } of engines) {
        const ask = (more) => call('POST', '/sdk/tts', { text: text(), provider, voice, ...more });
        await ask();
        const first = [];
        for (let i = 0; i < firsts; i++)
            first.push(await firstAudio(h.url, key, { text: sentences[0] + ` ${++n}.`, provider, voice }));
        emit({ what: `${name}: first audio of a stream, median`, unit: 'ms', better: 'less', hearth: [median(first)], target: { of: 'value', at: target } });
        emit({ what: `${name}: first audio of a stream, 99 %`, unit: 'ms', better: 'less', hearth: [quantile(first, 0.99)] });
        const ours = [], theirs = [], together = [], isThere = hasProgram(name);
        for (let round = 0; round < rounds; round++) {
            let began = performance.now();
            const seconds = secondsOf((await ask()).bytes);
            ours.push(seconds * 1000 / (performance.now() - began));
            if (isThere) {
                began = performance.now();
                execFileSync(...run(join(folder, 'a.wav'), text()), { stdio: 'ignore' });
                theirs.push(seconds * 1000 / (performance.now() - began));
            }
            began = performance.now();
            const all = await Promise.all(Array.from({ length: 8 }, () => ask()));
            together.push(all.reduce((sum, { bytes }) => sum + secondsOf(bytes), 0) * 1000 / (performance.now() - began));
        }
        emit({ what: `${name}: a text of six sentences, times real time`, unit: 'x', better: 'more', hearth: ours, ...(isThere ? { peer: theirs, peer_name: `${name}, the program` } : {}) });
        emit({ what: `${name}: eight such texts at once`, unit: 'x', better: 'more', hearth: together });
    }
});
