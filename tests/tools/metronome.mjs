// Notes when a processor of this machine ran nothing of ours: `node tests/tools/metronome.mjs FILE`, ended by SIGTERM.
// A virtual machine's host takes processors away without always reporting it as steal; the kernel then counts that time as time in which the
// running thread ran. One program for each processor, pinned to it, wakes up every few milliseconds and appends a line `<from ms> <until ms>` (Unix time)
// to FILE when it was woken late. The kernel lets a thread that slept run before one that computes, so work of the service does not make it late.
import { spawn } from 'node:child_process';
import { appendFileSync, readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';

const beatMs = 4;
const lateMs = 25;

// "0-1,4" -> [0, 1, 4]
export function processors(list) {
    return list.split(',').flatMap((range) => {
        const [first, last = first] = range.split('-').map(Number);
        return Array.from({ length: last - first + 1 }, (_, i) => first + i);
    });
}

// How many of the milliseconds between from and until (Unix time) lie in pauses of the text that the metronome wrote.
export function pausedMs(text, from, until) {
    return text.split('\n').filter(Boolean).reduce((most, line) => {
        const [began, ended] = line.split(' ').map(Number);
        return Math.max(most, Math.min(ended, until) - Math.max(began, from));
    }, 0);
}

function beat(file) {
    let last = Date.now();
    setInterval(() => {
        const now = Date.now();
        if (now - last > lateMs)
            appendFileSync(file, `${last} ${now}\n`);
        last = now;
    }, beatMs);
    process.stdin.on('end', () => process.exit(0)).on('error', () => process.exit(0)).resume();     // the parent has ended
}

function conduct(file) {
    const allowed = /^Cpus_allowed_list:\s*(.*)$/m.exec(readFileSync('/proc/self/status', 'utf8'))[1];
    const players = processors(allowed).map((cpu) =>
        spawn('taskset', ['-c', String(cpu), process.execPath, import.meta.filename, '--beat', file], { stdio: ['pipe', 'ignore', 'inherit'] }));
    const end = () => {
        players.forEach((player) => player.kill());
        process.exit(0);
    };
    const suite = process.ppid;
    ['SIGTERM', 'SIGINT', 'SIGHUP'].forEach((signal) => process.on(signal, end));
    setInterval(() => process.ppid === suite || end(), 1000);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
    if (process.argv[2] === '--beat')
        beat(process.argv[3]);
    else
        conduct(process.argv[2]);
}
