// Built-in embeddings: the model on one core, and through POST /sdk/llm/embed in calls of 256 short texts.
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { emit } from './lib/measure.mjs';
import { bench, buildFolder, hearth } from './lib/programs.mjs';

const rounds = 5;
const calls = 20;
const textsPerCall = 256;
const words = 'the vaccine arrived late because customs held every refrigerated lorry at the harbour over the long weekend'.split(' ');
const input = Array.from({ length: textsPerCall }, (_, i) => Array.from({ length: 12 }, (_, j) => words[(i * 7 + j * 3) % words.length]).join(' ') + ` ${i}`);

async function textsPerSecond(send) {
    const began = performance.now();
    for (let i = 0; i < calls; i++) {
        const reply = await send('POST', '/sdk/llm/embed', { input });
        if (reply.body.embeddings.length !== textsPerCall)
            throw new Error(reply.text.slice(0, 200));
    }
    return calls * textsPerCall / (performance.now() - began) * 1000;
}

await bench(async () => {
    const send = await (await hearth()).asKey();
    const engine = [];
    const http = [];
    for (let round = 0; round < rounds; round++) {
        engine.push(JSON.parse(execFileSync(join(buildFolder, 'bench/bench_lexical'), { encoding: 'utf8' })).texts_per_second);
        http.push(await textsPerSecond(send));
    }
    emit({ what: 'builtin lexical-384, one core', unit: 'texts/s', better: 'more', hearth: engine, target: { of: 'value', at: 20_000 } });
    emit({ what: `  through HTTP, ${textsPerCall} texts a call, client's parsing included`, unit: 'texts/s', better: 'more', hearth: http });
});
