/* What grows with every day of use, and how it is kept small: finished tasks with their runs, output of runs, past calendar events of tasks,
 * answers kept for repeated deliveries, usage. The audit log has its own way (store/audit.h). Any thread.
 *
 *     r = store_retention_trim(store, KEPT_TASKS, clock_wall_ms() - 365 * DAY_MS, &n, e);      again while n > 0
 */
#pragma once

#include "base/clock.h"
#include "store/store.h"

/* What waits for a person (quarantined, for review), repeats, or goes on is never old. */
enum kept { KEPT_TASKS, KEPT_RUN_LOGS, KEPT_EVENTS, KEPT_DELIVERIES, KEPT_USAGE, N_KEPT };

struct kept_sum {
    int64_t n, bytes;                   /* bytes: of the large columns */
    char oldest[TIME_TEXT_SIZE];        /* "" when there is none */
};

/* A few of those that ended before that moment, so that other writers need not wait; *ret_n 0: none is left. */
int store_retention_trim(struct store *s, enum kept what, int64_t before_ms, int64_t *ret_n, struct err *e) MUST_CHECK;
/* Reads much: for a person who asks. */
int store_retention_sum(struct store *s, enum kept what, struct kept_sum *ret, struct err *e) MUST_CHECK;
