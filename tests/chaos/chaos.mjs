// What every chaos test needs: chance that can be repeated, a ledger outside of Hearth, and the questions asked at the end.
import assert from 'node:assert/strict';
import { appendFileSync, existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { until } from '../api/harness.mjs';
import { randomNumbers } from '../tools/random.mjs';

// CHAOS_SEED (1; a new one each night) decides a run's choices, not its timing.
export class Chance {
    constructor(t) {
        this.seed = Number(process.env.CHAOS_SEED ?? 1);
        this.unit = randomNumbers(this.seed);
        t.diagnostic(`CHAOS_SEED=${this.seed}`);
    }

    between(low, high) { return low + Math.floor(this.unit() * (high - low + 1)); }
    one(list) { return list[this.between(0, list.length - 1)]; }
    // {name: weight}
    weighted(weights) {
        let left = this.unit() * Object.values(weights).reduce((sum, weight) => sum + weight, 0);
        return Object.keys(weights).find((name) => (left -= weights[name]) < 0) ?? Object.keys(weights)[0];
    }
}

// One JSON object a line, appended by many processes at once (O_APPEND; a line is one write). A process killed in its write leaves a torn
// line; it stands by itself because every entry begins with a line end, and counts as not written.
export class Ledger {
    constructor(path) {
        this.path = path;
        appendFileSync(path, '');
    }

    add(entry) { appendFileSync(this.path, `\n${JSON.stringify({ ...entry, at: monotonicMs() })}\n`); }
    read() { return readFileSync(this.path, 'utf8').split('\n').map(parseWhole).filter(Boolean); }
}

function parseWhole(line) {
    try {
        return JSON.parse(line);
    } catch {
        return null;
    }
}

// The same clock in every process of the machine.
export function monotonicMs() {
    return Number(process.hrtime.bigint() / 1000n) / 1000;
}

export function query(file, sql, ...values) {
    const db = new DatabaseSync(file, { readOnly: true });
    try {
        return db.prepare(sql).all(...values);
    } finally {
        db.close();
    }
}

export function databases(dataDir) {
    return readdirSync(dataDir).filter((name) => name.endsWith('.db')).map((name) => join(dataDir, name));
}

export function assertIntact(file) {
    assert.deepEqual(query(file, 'PRAGMA integrity_check').map((row) => ({ ...row })), [{ integrity_check: 'ok' }], file);
    assert.deepEqual(query(file, 'PRAGMA foreign_key_check'), [], file);
}

function environment(pid) {
    try {
        return readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0');
    } catch {
        return [];                      // it has ended, or is not ours
    }
}

function state(pid) {
    try {
        return readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/^.*\) /s, '')[0];
    } catch {
        return 'gone';
    }
}

// Processes, zombies aside, that the service of this data folder started, by the mark in their environment.
export function children(dataDir) {
    const { dev, ino } = statSync(dataDir);
    const mark = `HEARTH_INSTANCE=${dev.toString(16)}:${ino.toString(16)}:`;
    return readdirSync('/proc').filter((name) => /^\d+$/.test(name)).map(Number)
        .filter((pid) => environment(pid).some((line) => line.startsWith(mark)) && state(pid) !== 'Z');
}

export function isRunOf(pid, taskUuid) {
    return environment(pid).includes(`TASK_UUID=${taskUuid}`);
}

// The process of a run; the agent itself knows its number inside its sandbox only. undefined: it has ended.
export function pidOfRun({ task, machine, attempt }) {
    const marks = [`TASK_UUID=${task}`, `MACHINE_ID=${machine}`, `TASK_ATTEMPT=${attempt}`];
    return readdirSync('/proc').filter((name) => /^\d+$/.test(name)).map(Number)
        .find((pid) => marks.every((mark) => environment(pid).includes(mark)) && state(pid) !== 'Z');
}

export async function assertNoChildren(dataDir, deadlineMs = 30_000) {
    if (existsSync(join(dataDir, 'hearth.db')))
        await until(() => children(dataDir).length === 0, { deadlineMs, what: `no process of ${dataDir} is left`, everyMs: 50 });
}
