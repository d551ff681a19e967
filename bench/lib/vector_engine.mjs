// The embedded engine on one thread over a file of rows, beside the indexes of hnswlib and faiss at equal recall.
//
//     BENCH_SETS=text:100,low-rank:100x768 script/bench vectors      kind of data, thousands of rows, dimensions (384)
import { execFileSync } from 'node:child_process';
import { closeSync, existsSync, openSync, readFileSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { emit, quantile } from './measure.mjs';
import { buildFolder, diskFolder, root } from './programs.mjs';
import { sets, writeSet } from './vector_sets.mjs';
import { hnswlibIndex, topK } from './vector_yardsticks.mjs';

const queries = 200;
const equalRecall = 0.99;               // what graphs and inverted files are tuned to; fewer of them reach that of sketches
const python = '/usr/bin/python3';      // Debian's, which has Debian's faiss

// Its figures (bench/vector.c).
export const engine = (file, { n, dimensions, queries, listAbove, answers, batch = 1000 }) => JSON.parse(execFileSync(join(buildFolder, 'bench/bench_vector'),
    ['-i', file, '-n', n, '-d', dimensions, '-b', batch, '-q', queries, '-t', 2, ...(listAbove ? ['-l', listAbove] : []), ...(answers ? ['-e', answers] : []), diskFolder('engine')].map(String),
    { encoding: 'utf8' }));

// The numbers of a file of rows, which may be larger than one read.
export function readRows(path, length) {
    const all = new Float32Array(length);
    const bytes = Buffer.from(all.buffer);
    const file = openSync(path);
    for (let at = 0; at < bytes.length;)
        at += readSync(file, bytes, at, Math.min(2 ** 28, bytes.length - at), at);
    closeSync(file);
    return all;
}

const linesOf = (path) => readFileSync(path, 'utf8').trim().split('\n').map((line) => JSON.parse(line));

// The least effort of hnswlib that reaches the recall, or the most.
async function hnswlibAt(file, truth, { n, dimensions }) {
    const all = readRows(file, (n + queries) * dimensions);
    const index = await hnswlibIndex(all, n, dimensions);
    if (!index)
        return null;
    for (const ef of [32, 64, 128, 256, 512, 1024, 2048]) {
        const ms = [];
        let found = 0;
        index.setEf(ef);
        for (let i = 0; i < queries; i++) {
            const vector = Array.from(all.subarray((n + i) * dimensions, (n + i + 1) * dimensions));
            const began = performance.now();
            const { neighbors } = index.searchKnn(vector, topK);
            ms.push(performance.now() - began);
            found += neighbors.filter((id) => truth[i].includes(id)).length;
        }
        const recall = found / (queries * topK);
        if (recall >= equalRecall || ef === 2048)
            return { name: `hnswlib ef=${ef}`, ms: quantile(ms, 0.5), recall };
    }
}

function faissAt(file, answers, { n, dimensions }) {
    try {
        execFileSync(python, ['-c', 'import faiss'], { stdio: 'ignore' });
    } catch {
        console.error('bench: faiss is left out (Debian: apt install python3-faiss)');
        return null;
    }
    const figures = JSON.parse(execFileSync(python, [join(root, 'bench/lib/faiss_peer.py'), file, dimensions, n, queries, answers, equalRecall].map(String), { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }));
    return { ...figures, name: `faiss IVF-flat ${figures.probes}` };
}

const targets = { 100: 0.2, 400: 0.6, 1000: 1.6 };      // ms, of 384 dimensions with structure, by thousands of rows

const ms = (us) => us / 1000;
const percent = (share) => `${(100 * share).toFixed(2).replace(/\.?0+$/, '')} %`;

function engineRows(what, spec, figures) {
    const row = (name, member, target) => emit({ what: `${what}: ${name}, recall ${percent(figures[`${member}recall`])}`, unit: 'ms', better: 'less', hearth: ms(figures[`${member}cpu_p50_us`]),
        peer: ms(figures[`${member}exact_cpu_p50_us`]), peer_name: 'the same by all codes', target });
    const isHard = spec.set === 'isotropic';
    const most = spec.dimensions === 384 && !isHard && targets[spec.thousands];
    row('engine', '', isHard ? { of: 'ratio', at: 1.11 } : most ? { of: 'value', at: most } : undefined);
    emit({ what: `${what}: recall`, unit: 'share', better: 'more', hearth: figures.recall, target: { of: 'value', at: 0.999 } });
    for (const [name, member] of [['top 100', 'top100_'], ['a filter of 50 %', 'filter50_'], ['a filter of 10 %', 'filter10_'], ['a filter of 1 %', 'filter1_']])
        row(name, member);
    emit({ what: `${what}: 16 at once, each`, unit: 'ms', better: 'less', hearth: ms(figures.sketch_pass_of_16_us / 16), peer: ms(figures.pass_of_16_us / 16), peer_name: 'the same by all codes' });
    emit({ what: `${what}: memory a 100k`, unit: 'MB', better: 'less', hearth: figures.memory_mb_per_100k });
    emit({ what: `${what}: sketch of a row`, unit: 'us', better: 'less', hearth: figures.encode_us });
    emit({ what: `${what}: loaded and first answer`, unit: 's', better: 'less', hearth: figures.load_seconds, target: spec.thousands === 1000 ? { of: 'value', at: 2 } : undefined });
}

async function measureSet(spec) {
    const what = `${spec.thousands}k x ${spec.dimensions} ${spec.set}`;
    const file = writeSet(spec.set, { ...spec, queries });
    if (!file) {
        console.error(`bench: ${what} is left out: this machine has too little documentation`);
        return;
    }
    const answers = join(diskFolder('answers'), 'answers');
    const figures = engine(file, { ...spec, queries, answers });
    engineRows(what, spec, figures);
    const peers = [faissAt(file, answers, spec), process.env.BENCH_HNSWLIB === 'all' ? await hnswlibAt(file, linesOf(answers), spec) : null];
    for (const peer of peers.filter(Boolean))
        emit({ what: `${what}: engine`, unit: 'ms', better: 'less', hearth: ms(figures.cpu_p50_us), peer: peer.ms, peer_name: `${peer.name}, recall ${percent(peer.recall)}`,
            target: spec.set === 'isotropic' ? undefined : { of: 'ratio', at: 1 } });
}

// set:thousands[xdimensions]
function specOf(text) {
    const [, set, thousands, dimensions] = /^([\w-]+):(\d+)(?:x(\d+))?$/.exec(text) ?? [];
    if (!sets.includes(set))
        throw new Error(`BENCH_SETS: '${text}' is not ${sets.join('|')}:THOUSANDS[xDIMENSIONS]`);
    return { set, thousands: Number(thousands), n: Number(thousands) * 1000, dimensions: Number(dimensions ?? 384) };
}

export async function measureSets() {
    for (const spec of (process.env.BENCH_SETS ?? sets.map((set) => `${set}:100`).join(',')).split(',').filter(Boolean).map(specOf))
        await measureSet(spec);
}
