/* Measures delays of the loop or of a worker (architecture: the loop never waits, the short pool never waits on a
 * peer).
 *
 *     struct stall_span span = stall_begin();
 *     fn(arg);
 *     held_us = stall_held_us(&span);          // above STALL_US: logged and counted by the caller
 *
 * A stall is time in which the thread waited, or ran on a processor. Time in which it was ready and the machine had no
 * processor for it (the kernel's schedstat, the hypervisor's steal) does not count. Waits while other threads lacked a
 * processor (the kernel's cpu pressure) do not count either, because the holder of the awaited lock may have been one
 * of them: at most STALL_LOOP_STARVED_US or STALL_JOB_STARVED_US of a span, so that a longer wait shows on any machine.
 * A sanitizer's allocator locks where the program's does not (measured: 117 ms), so its builds get three times as much.
 * Only upper bounds of these times are known, so on a busy machine a stall may be missed. A build with a sanitizer is
 * slower than the program by STALL_SLOWNESS (pipelined requests in a debug build take seven times as long): its
 * processor time is divided by that. A span costs two reads of the clock; the thread's clock is read at most every
 * 10 ms, files of /proc after a long span and otherwise at most every 50 ms.
 */
#pragma once

#include "base/util.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#elif __has_feature(thread_sanitizer)
#define __SANITIZE_THREAD__ 1
#endif
#endif

#if defined(__SANITIZE_THREAD__)
enum { STALL_SLOWNESS = 10 };
#elif defined(__SANITIZE_ADDRESS__)
enum { STALL_SLOWNESS = 5 };
#else
enum { STALL_SLOWNESS = 1 };
#endif

enum { STALL_LOCKS = STALL_SLOWNESS > 1 ? 3 : 1 };
enum { STALL_US = 50000, STALL_LOOP_STARVED_US = 100000 * STALL_LOCKS, STALL_JOB_STARVED_US = 200000 * STALL_LOCKS };

struct stall_span {
    int64_t began_us, excused_us;
};

/* How a span was spent. held_us: what counts as a stall; 0: less than STALL_US. */
struct stall {
    int64_t held_us;
    int64_t ran_us, waited_us;
    int64_t ready_us, starved_us; /* ready without a processor; waited while other threads were */
};

/* Forgets the label of this thread. */
struct stall_span stall_begin(void);
/* Of the loop: running and waiting count. */
struct stall stall_held(const struct stall_span *s);
/* Of a worker: waiting counts, except for stall_excuse(). */
struct stall stall_waited(const struct stall_span *s);
/* Reports that this thread waited us microseconds for the store, which a worker may do. */
void stall_excuse(int64_t us);
/* What this thread has reported so far: who reports a time leaves out what was reported within it. */
int64_t stall_excused(void);
/* Sets what this thread works on in the span, for stall_place(NULL). The text is copied and cut at 79 bytes. */
void stall_set_label(const char *label);
/* For the address of a function "hearth+0x1a2b", as addr2line reads it; for NULL the label. The text lives in a small
 * thread-local buffer. */
const char *stall_place(const void *place);
