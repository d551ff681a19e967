// The embedded engine on one thread over a file of rows, beside the indexes of hnswlib and faiss at equal recall.
//
//     BENCH_SETS=text:100,low-rank:100x768 script/bench vectors      kind of data, thousands of rows, dimensions (384)
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { emit, interleave, quantile } from './measure.mjs';
import { buildFolder, diskFolder, program, root } from './programs.mjs';
import { sets, writeSet } from './vector_sets.mjs';
import { hnswlibIndex, topK } from './vector_yardsticks.mjs';

const queries = 200;
const equalRecall = 0.99;               // what graphs and inverted files are tuned to; fewer of them reach that of sketches
const efforts = [32, 64, 128, 256, 512, 1024, 2048];
const rounds = 5;
const python = '/usr/bin/python3';      // Debian's, which has Debian's faiss

const listAboveRows = 1_000_000;        // the setting vectors.list_above_rows; lists that lose nothing begin at a quarter of it

const command = join(buildFolder, 'bench/bench_vector');
const argumentsOf = (file, { n, dimensions, queries, answers, listAbove = listAboveRows, batch = 1000 }) =>
    ['-i', file, '-n', n, '-d', dimensions, '-b', batch, '-q', queries, '-t', 2, '-l', listAbove, ...(answers ? ['-e', answers] : [])].map(String);

// Its figures (bench/vector.c).
export const engine = (file, options) => JSON.parse(execFileSync(command, [...argumentsOf(file, options), diskFolder('engine')], { encoding: 'utf8' }));

// {figures, turn(), close()}: the same, and then a round of queries at each call of turn().
async function engineInTurns(file, options) {
    const child = program(command, [...argumentsOf(file, options), '-T', diskFolder('engine')], { stdio: ['pipe', 'pipe', 'pipe'] });
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    const next = async () => {
        const { value, done } = await lines.next();
        if (done)
            throw new Error(`bench_vector ended: ${child.said()}`);
        return JSON.parse(value);
    };
    const figures = await next();
    const turn = () => {
        child.stdin.write('\n');
        return next();
    };
    const close = async () => {
        child.stdin.end();
        await once(child, 'close');
    };
    return { figures, turn, close };
}

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

const rowOf = (all, i, dimensions) => all.subarray(i * dimensions, (i + 1) * dimensions);
const linesOf = (path) => readFileSync(path, 'utf8').trim().split('\n').map((line) => JSON.parse(line));

const cpuMs = () => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1000;
};

// A round of queries of hnswlib: {ms, cpu, recall}. What its binding does to the numbers of a query counts, as it does for the program that asks.
function graphRound({ index, all, truth, spec: { n, dimensions } }, ef) {
    const ms = [];
    const cpu = [];
    let found = 0;
    index.setEf(ef);
    for (let i = 0; i < queries; i++) {
        const vector = Array.from(rowOf(all, n + i, dimensions));
        const began = performance.now();
        const before = cpuMs();
        const { neighbors } = index.searchKnn(vector, topK);
        cpu.push(cpuMs() - before);
        ms.push(performance.now() - began);
        found += neighbors.filter((id) => truth[i].includes(id)).length;
    }
    return { ms: quantile(ms, 0.5), cpu: quantile(cpu, 0.5), recall: found / (queries * topK) };
}

// The least effort that reaches each recall, or the most.
function effortsFor(graph, recalls) {
    const known = {};
    const recallOf = (ef) => (known[ef] ??= graphRound(graph, ef).recall);
    return [...new Set(recalls.map((recall) => efforts.find((ef) => recallOf(ef) >= recall) ?? efforts.at(-1)))];
}

// Engine and hnswlib in turns.
async function besideGraph(what, file, truth, spec, asked) {
    if (process.env.BENCH_HNSWLIB === 'none' || (isHard(spec) && process.env.BENCH_HNSWLIB !== 'all'))
        return;
    const all = readRows(file, (spec.n + queries) * spec.dimensions);
    const built = await hnswlibIndex(all, spec.n, spec.dimensions);
    if (!built)
        return;
    const graph = { index: built.index, all, truth, spec };
    for (const ef of effortsFor(graph, [equalRecall, asked.figures.recall])) {
        const samples = await interleave(rounds, { hearth: asked.turn, peer: () => graphRound(graph, ef) });
        const row = (name, hearth, peer) => emit({ what: `${what}: ${name}, recall ${percent(asked.figures.recall)}`, unit: 'ms', better: 'less', hearth: samples.hearth.map(hearth), peer: samples.peer.map(peer),
            peer_name: `hnswlib ef=${ef}, recall ${percent(samples.peer[0].recall)}`, target: isHard(spec) ? undefined : { of: 'ratio', at: 1 } });
        row('engine', (s) => ms(s.p50_us), (s) => s.ms);
        row('its processor time', (s) => ms(s.cpu_p50_us), (s) => s.cpu);      // which other programs on the machine change less
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

const isHard = ({ set }) => set === 'isotropic';
const ms = (us) => us / 1000;
const percent = (share) => `${(100 * share).toFixed(2).replace(/\.?0+$/, '')} %`;

function engineRows(what, spec, figures) {
    const row = (name, member, target) => emit({ what: `${what}: ${name}, recall ${percent(figures[`${member}recall`])}`, unit: 'ms', better: 'less', hearth: ms(figures[`${member}cpu_p50_us`]),
        peer: ms(figures[`${member}exact_cpu_p50_us`]), peer_name: 'the same by all codes', target });
    const most = spec.dimensions === 384 && !isHard(spec) && targets[spec.thousands];
    row('engine', '', isHard(spec) ? { of: 'ratio', at: 1.11 } : most ? { of: 'value', at: most } : undefined);
    emit({ what: `${what}: recall`, unit: 'share', better: 'more', hearth: figures.recall, target: { of: 'value', at: 0.999 } });
    for (const [name, member] of [['top 100', 'top100_'], ['a filter of 50 %', 'filter50_'], ['a filter of 10 %', 'filter10_'], ['a filter of 1 %', 'filter1_']])
        row(name, member);
    emit({ what: `${what}: 16 at once, each`, unit: 'ms', better: 'less', hearth: ms(figures.sketch_pass_of_16_us / 16), peer: ms(figures.pass_of_16_us / 16), peer_name: 'the same by all codes' });
    emit({ what: `${what}: memory a 100k`, unit: 'MB', better: 'less', hearth: figures.memory_mb_per_100k });
    emit({ what: `${what}: sketch of a row`, unit: 'us', better: 'less', hearth: figures.encode_us });
    emit({ what: `${what}: loaded and first answer`, unit: 's', better: 'less', hearth: figures.load_seconds, target: spec.thousands === 1000 ? { of: 'value', at: 2 } : undefined });
}

function besideFaiss(what, file, answers, spec, figures) {
    const peer = faissAt(file, answers, spec);
    if (peer)
        emit({ what: `${what}: engine`, unit: 'ms', better: 'less', hearth: ms(figures.cpu_p50_us), peer: peer.ms, peer_name: `${peer.name}, recall ${percent(peer.recall)}`,
            target: isHard(spec) ? undefined : { of: 'ratio', at: 1 } });
}

async function measureSet(spec) {
    const what = `${spec.thousands}k x ${spec.dimensions} ${spec.set}`;
    const file = writeSet(spec.set, { ...spec, queries });
    if (!file) {
        console.error(`bench: ${what} is left out: this machine has too little documentation`);
        return;
    }
    if (process.env.BENCH_ONLY === 'indexes') {
        await hnswlibIndex(readRows(file, (spec.n + queries) * spec.dimensions), spec.n, spec.dimensions);
        return;
    }
    const answers = join(diskFolder('answers'), 'answers');
    const asked = await engineInTurns(file, { ...spec, queries, answers });
    engineRows(what, spec, asked.figures);
    if (process.env.BENCH_FAISS === 'all')
        besideFaiss(what, file, answers, spec, asked.figures);
    await besideGraph(what, file, linesOf(answers), spec, asked);
    await asked.close();
    if (spec.n >= listAboveRows)
        await measureLists(what, file, answers, spec);
}

// The same rows in inverted lists that need not be sure, as the service keeps those of a namespace that is one row larger.
async function measureLists(what, file, answers, spec) {
    const asked = await engineInTurns(file, { ...spec, queries, listAbove: spec.n - 1 });
    emit({ what: `${what}: engine with lists, recall ${percent(asked.figures.recall)}`, unit: 'ms', better: 'less', hearth: ms(asked.figures.cpu_p50_us) });
    await besideGraph(`${what} with lists`, file, linesOf(answers), spec, asked);
    await asked.close();
}

// set:thousands[xdimensions]
function specOf(text) {
    const [, set, thousands, dimensions] = /^([\w-]+):(\d+)(?:x(\d+))?$/.exec(text) ?? [];
    if (!sets.includes(set))
        throw new Error(`BENCH_SETS: '${text}' is not ${sets.join('|')}:THOUSANDS[xDIMENSIONS]`);
    return { set, thousands: Number(thousands), n: Number(thousands) * 1000, dimensions: Number(dimensions ?? 384) };
}

// Of the kinds of data and the sizes one of each, in about ten minutes.
const usual = 'clustered:10,text:100,low-rank:100,clustered:100,isotropic:100,low-rank:100x768,low-rank:100x1536,text:400,clustered:1000';

export async function measureSets() {
    for (const spec of (process.env.BENCH_SETS ?? usual).split(',').filter(Boolean).map(specOf))
        await measureSet(spec);
}
