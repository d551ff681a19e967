/* Time: wall clock as ISO 8601 text and milliseconds, monotonic clock for durations. Any thread. */
#pragma once

#include "base/slice.h"

enum { TIME_TEXT_SIZE = 25 }; /* "2026-11-20T09:32:05.682Z" and NUL */

int64_t clock_wall_ms(void); /* since 1970, UTC */
int64_t clock_mono_ms(void);
int64_t clock_mono_us(void);
int64_t clock_work_ms(void); /* the processor time of the calling thread; asking costs a call of the kernel */
int64_t clock_boot_ms(void); /* since the host's start, sleep included; the same clock for all programs of the host */
const char *clock_boot_id(void); /* of the running kernel: the same for all its programs, new after each boot */
void clock_format(int64_t wall_ms, char out[TIME_TEXT_SIZE]);
void clock_now_text(char out[TIME_TEXT_SIZE]);
/* ISO 8601: date, or date and time with optional fraction and Z or +hh:mm (without a zone it is UTC). -EINVAL
 * otherwise. */
int clock_parse(struct slice text, int64_t *ret_wall_ms) MUST_CHECK;
