// Counts what ran: `count.mjs node FILE.tap` reads the summary of Node's test runner, `count.mjs meson testlog.json...` the TAP
// lines inside Meson's log. Prints "PASSED FAILED". A program that died without a failing line counts as one failure.
import { existsSync, readFileSync } from 'node:fs';

const [kind, ...files] = process.argv.slice(2);

function countNode(text) {
    const figure = (word) => Number(text.match(new RegExp(`^# ${word} (\\d+)$`, 'm'))?.[1] ?? 0);
    return { passed: figure('pass'), failed: figure('fail') + figure('cancelled') };
}

function countMeson(text) {
    const total = { passed: 0, failed: 0 };
    for (const line of text.split('\n').filter(Boolean)) {
        const run = JSON.parse(line);
        const lines = (run.stdout ?? '').split('\n');
        const failed = lines.filter((l) => /^not ok\b/.test(l)).length;
        total.passed += lines.filter((l) => /^ok\b/.test(l)).length;
        total.failed += failed || (run.result === 'OK' || run.result === 'EXPECTEDFAIL' ? 0 : 1);
    }
    return total;
}

const total = { passed: 0, failed: 0 };
for (const file of files) {
    const counts = existsSync(file) ? (kind === 'node' ? countNode : countMeson)(readFileSync(file, 'utf8')) : { passed: 0, failed: 1 };
    total.passed += counts.passed;
    total.failed += counts.failed;
}
console.log(`${total.passed} ${total.failed}`);
