// `slowest.mjs FILE`: the five files of a suite that took longest, out of the lines of tests/tools/per_file.mjs.
import { existsSync, readFileSync } from 'node:fs';

const path = process.argv[2];
const rows = (existsSync(path) ? readFileSync(path, 'utf8') : '').split('\n').filter(Boolean).map((line) => line.split('\t'));
const slowest = rows.sort((a, b) => b[2] - a[2]).slice(0, 5).filter(([, , ms]) => ms >= 5000);
if (slowest.length > 0)
    console.log(`slowest: ${slowest.map(([file, , ms]) => `${file} ${Math.round(ms / 1000)} s`).join(', ')}`);
