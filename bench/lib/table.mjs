// Prints what the benches wrote (one JSON object a line) as one table, with the machine named.
//   {what, unit, hearth: [samples], peer?: [samples], peer_name?, better: 'more'|'less', target?: {of: 'ratio'|'value', at: number}}
import { readFileSync } from 'node:fs';
import { cpus, release, totalmem } from 'node:os';
import { median } from './measure.mjs';

console.log(`${cpus().length} x ${cpus()[0].model}, ${Math.round(totalmem() / 2 ** 30)} GB, Linux ${release()}, Node ${process.versions.node}; medians of rounds taken in turns\n`);

const rows = readFileSync(process.argv[2], 'utf8').split('\n').filter(Boolean).map((line) => JSON.parse(line));

function figure(n) {
    return n >= 100 ? String(Math.round(n)) : n >= 10 ? n.toFixed(1) : n.toPrecision(2);
}

function verdict(row, value, ratio) {
    if (!row.target)
        return '';
    const seen = row.target.of === 'ratio' ? ratio : value;
    const isMet = row.better === 'more' ? seen >= row.target.at : seen <= row.target.at;
    return `${row.better === 'more' ? '>=' : '<='} ${row.target.at}${row.target.of === 'ratio' ? ' x' : ''} ${isMet ? 'met' : 'MISSED'}`;
}

const table = [['what', 'unit', 'hearth', 'beside', 'figure', 'ratio', 'target']];
for (const row of rows) {
    const value = median([row.hearth].flat());
    const peer = row.peer === undefined ? null : median([row.peer].flat());
    const ratio = peer === null ? null : value / peer;
    table.push([row.what, row.unit, figure(value), row.peer_name ?? '', peer === null ? '' : figure(peer), ratio === null ? '' : ratio.toFixed(2), verdict(row, value, ratio)]);
}
const widths = table[0].map((_, i) => Math.max(...table.map((row) => row[i].length)));
for (const row of table)
    console.log(row.map((cell, i) => (i === 0 || i === 3 || i === 6 ? cell.padEnd(widths[i]) : cell.padStart(widths[i]))).join('  ').trimEnd());
