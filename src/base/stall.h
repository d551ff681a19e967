/* Measures what holds the loop or a worker up (architecture: the loop never waits, the short pool never waits on a peer).
 *
 *     struct stall_span span = stall_begin();
 *     fn(arg);
 *     held_us = stall_held_us(&span);          // above STALL_US: logged and counted by the caller
 *
 * Time in which the thread was ready to run and the machine had no processor for it (the kernel's schedstat, the hypervisor's steal) does
 * not count. It is known by upper bounds, so a busy machine hides a stall rather than reports a false one. A span costs two reads of the
 * clock; files of /proc are read when a span was long, and at most four times a second otherwise.
 */
#pragma once

#include "base/util.h"

enum { STALL_US = 50000 };

struct stall_span { int64_t began_us, excused_us; };

struct stall_span stall_begin(void);
/* Time since the beginning without what the machine had no processor for; 0 below STALL_US. Loop thread. */
int64_t stall_held_us(const struct stall_span *s);
/* The same, and without processor time and stall_excuse(): what remains was waiting for somebody. */
int64_t stall_waited_us(const struct stall_span *s);
/* This thread waited so long for the store, which a worker may. */
void stall_excuse(int64_t us);
/* What this thread works on, for stall_place(NULL): a literal or text that stays. */
void stall_set_label(const char *label);
/* Of a function's address "hearth+0x1a2b", for addr2line; of NULL the label. In a small thread-local buffer. */
const char *stall_place(const void *place);
