// Programs a bench starts: pinned to a core, known by their own pid, ended when the bench ends. Hearth itself comes from the
// harness of the api tests, in its release build.
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createConnection, createServer } from 'node:net';
import { join, resolve } from 'node:path';
import { startHearth, until } from '../../tests/api/harness.mjs';

export const root = resolve(import.meta.dirname, '../..');
export const buildFolder = join(root, 'build/release');

const ticksPerSecond = 100;             // USER_HZ, the same on every Linux
const endings = [];

// fn runs when the bench is over, the newest first.
export function atEnd(fn) {
    endings.push(fn);
}

// Runs the bench's body and what atEnd() collected, also when the body fails.
export async function bench(body) {
    try {
        await body();
    } finally {
        for (const ending of endings.reverse())
            await ending();
    }
}

// A folder on a disk (/tmp may be memory), removed at the end.
export function diskFolder(name) {
    const folder = mkdtempSync(`/var/tmp/hearth-bench-${name}-`);
    atEnd(() => rmSync(folder, { recursive: true, force: true }));
    return folder;
}

// All threads of a process on one core.
export function pin(pid, core) {
    execFileSync('taskset', ['-a', '-c', '-p', String(core), String(pid)], { stdio: 'ignore' });
}

export async function hearth(options = {}) {
    const service = await startHearth({ ...options, settings: { 'log.level': 'warn', ...options.settings } });
    atEnd(() => service.stop());
    return service;
}

// Starts a yardstick; its standard error is kept and shown only when it fails. Ended by SIGTERM.
export function program(command, args, options = {}) {
    const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], ...options });
    const ended = new Promise((done) => child.on('close', done));
    const said = [];
    child.stdout?.on('data', (piece) => said.push(piece));
    child.stderr?.on('data', (piece) => said.push(piece));
    child.on('error', (error) => said.push(String(error)));
    child.said = () => said.join('');
    child.end = async (signal = 'SIGTERM') => {
        child.kill(signal);
        await ended;
    };
    atEnd(() => child.exitCode === null && child.signalCode === null ? child.end() : undefined);
    return child;
}

// Yardsticks that cannot pick a port themselves.
export function freePort() {
    return new Promise((done) => {
        const server = createServer().listen(0, '127.0.0.1', () => {
            const { port } = server.address();
            server.close(() => done(port));
        });
    });
}

function answers(where) {
    return new Promise((done) => {
        const socket = createConnection(where, () => done(true));
        socket.on('error', () => done(false));
        socket.on('connect', () => socket.destroy());
    });
}

// Waits until a yardstick accepts connections at {port} or {path}.
export function listening(child, where) {
    return until(async () => {
        if (child.exitCode !== null)
            throw new Error(`${child.spawnfile} ended: ${child.said()}`);
        return answers(where);
    }, { what: `${child.spawnfile} listens`, everyMs: 20 });
}

// Bytes of memory a process holds: VmRSS.
export function residentBytes(pid) {
    return Number(readFileSync(`/proc/${pid}/status`, 'utf8').match(/VmRSS:\s+(\d+) kB/)[1]) * 1024;
}

// Seconds of processor time a process has used, all threads, in user and kernel.
export function cpuSeconds(pid) {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/^.*\) /s, '').split(' ');
    return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
}
