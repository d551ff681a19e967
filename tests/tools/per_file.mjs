// A reporter of Node's test runner: a line `FILE<TAB>TESTS<TAB>MS` for every file of which no test failed, for tests/tools/stamps.mjs. A failure that lies in no
// file that was run counts against all.
import { relative, resolve } from 'node:path';

const root = resolve(import.meta.dirname, '../..');

export default async function* perFile(source) {
    const passed = [];
    const failed = new Set();
    for await (const { type, data } of source) {
        if (type === 'test:fail' && data.todo === undefined)
            failed.add(data.file);
        if (type === 'test:summary' && data.file && data.success)
            passed.push(data);
    }
    const isKnown = (file) => file && (file.endsWith('.test.mjs'));
    if (![...failed].every(isKnown))
        return;
    for (const { file, counts, duration_ms: ms } of passed)
        if (!failed.has(file))
            yield `${relative(root, file)}\t${counts.passed}\t${Math.round(ms)}\n`;
}
