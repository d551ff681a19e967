// Ends a program before its n-th change of a name, tells all of them and its fsyncs, or refuses its writes to files without a name (steps.c).
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export function buildSteps(t) {
    const folder = mkdtempSync(join(tmpdir(), 'hearth-steps-'));
    const library = join(folder, 'steps.so');
    const log = join(folder, 'log');
    t.after(() => rmSync(folder, { recursive: true, force: true }));
    const { status, stderr } = spawnSync('cc', ['-shared', '-fPIC', '-O1', '-o', library, join(import.meta.dirname, 'steps.c')], { encoding: 'utf8' });
    assert.equal(status, 0, stderr);
    const base = { LD_PRELOAD: library, ASAN_OPTIONS: 'detect_leaks=0:verify_asan_link_order=0' };
    return {
        refuseWhile: (file) => ({ ...base, STEP_REFUSE: file }),
        killAt: (step) => ({ ...base, STEP_KILL: String(step) }),
        tell: () => {
            rmSync(log, { force: true });
            return { ...base, STEP_LOG: log };
        },
        told: () => (existsSync(log) ? readFileSync(log, 'utf8').trim().split('\n') : []),
    };
}
