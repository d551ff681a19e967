// A wall clock of a process of its own, by libfaketime.
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { binary } from '../api/harness.mjs';

const fakeClockLibrary = ['x86_64-linux-gnu', 'aarch64-linux-gnu'].map((arch) => `/usr/lib/${arch}/faketime/libfaketimeMT.so.1`).find(existsSync);

// For `skip`: false, or the reason. Both libraries want to be loaded first.
export const needsFakeClock = !fakeClockLibrary ? 'needs the package faketime'
    : readFileSync(binary).includes('__asan_init') ? 'libfaketime and AddressSanitizer do not go together' : false;

// The environment of a process whose wall clock FAKETIME or FAKETIME_TIMESTAMP_FILE sets; its monotonic clock stays. The last word is for this glibc: without
// it a wait with a deadline of the monotonic clock ends at once, and the process spins.
export const fakeClock = { LD_PRELOAD: fakeClockLibrary, FAKETIME_DONT_FAKE_MONOTONIC: '1', FAKETIME_FORCE_MONOTONIC_FIX: '0' };

// What the library keeps of a process that was killed.
export function forgetFakeClock(pid) {
    for (const name of [`faketime_shm_${pid}`, `sem.faketime_sem_${pid}`])
        rmSync(join('/dev/shm', name), { force: true });
}
