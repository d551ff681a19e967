/* Counts of the last minute and of the UTC day, and how long until one of them is below a limit. Pure: the time is an
 * argument.
 *
 * A minute is kept to the second: an addition counts for 60 to 61 seconds, so that no 60 seconds hold more than the
 * limit. A clock that goes back does not change the minute; the day goes back with the clock only if the clock goes
 * back by more than one day, and then starts at zero.
 *
 *     window_move(&w, now);
 *     window_add(&w, WINDOW_REQUESTS, 1);
 *     wait_ms = window_minute_wait(&w, WINDOW_TOKENS, now, 5000);
 */
#pragma once

#include "base/util.h"

enum window_unit { WINDOW_REQUESTS, WINDOW_TOKENS, WINDOW_CHARACTERS, N_WINDOW_UNITS };
enum { WINDOW_SLOTS = 61, WINDOW_SLOT_MS = 1000, WINDOW_DAY_MS = 24 * 3600 * 1000 };

struct window_now {
    int64_t mono_ms, wall_ms;
};

struct window {                                  /* {0}: nothing was ever added */
    int64_t second;                              /* of the newest slot */
    int64_t minute[N_WINDOW_UNITS];              /* sums of the slots */
    int64_t slots[WINDOW_SLOTS][N_WINDOW_UNITS]; /* by second modulo WINDOW_SLOTS */
    int64_t day_number;
    int64_t day[N_WINDOW_UNITS];
};

/* To be called before the other functions that belong to this moment. */
void window_move(struct window *w, struct window_now now);
void window_add(struct window *w, enum window_unit unit, int64_t n);
/* Subtracts an addition that does not count after all; a part that no longer counts is not subtracted. */
void window_take_back(struct window *w, enum window_unit unit, int64_t n);
/* 0 while the sum is below the limit (which is above 0), else the milliseconds until enough of the sum has expired. */
int64_t window_minute_wait(const struct window *w, enum window_unit unit, struct window_now now, int64_t limit);
int64_t window_day_wait(const struct window *w, enum window_unit unit, struct window_now now, int64_t limit);
int64_t window_day_of(int64_t wall_ms);
