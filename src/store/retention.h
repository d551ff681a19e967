/* Limits the age of data that grows with use: finished tasks with their runs, output of runs, past calendar events of
 * tasks, answers kept for repeated deliveries, usage, turns of conversations. The audit log has its own function
 * (store/tables/audit.h). Any thread.
 *
 *     r = store_retention_trim(store, KEPT_TASKS, clock_wall_ms() - 365 * DAY_MS, &n, e);      again while n > 0
 */
#pragma once

#include "base/clock.h"
#include "store/store.h"

/* Rows that wait for a person (quarantined, for review), repeat or are unfinished never count as old. */
enum kept { KEPT_TASKS, KEPT_RUN_LOGS, KEPT_EVENTS, KEPT_DELIVERIES, KEPT_USAGE, KEPT_TURNS, N_KEPT };

struct kept_sum {
    int64_t n, bytes;            /* bytes: only of the large columns */
    char oldest[TIME_TEXT_SIZE]; /* "" when there is none */
};

/* Removes a few rows that ended before that time; only a few, so that other writers need not wait. *ret_n 0: none are
 * left. */
int store_retention_trim(struct store *s, enum kept what, int64_t before_ms, int64_t *ret_n, struct err *e) MUST_CHECK;
/* Reads many rows: only for requests of a person. */
int store_retention_sum(struct store *s, enum kept what, struct kept_sum *ret, struct err *e) MUST_CHECK;
