/* How work in the background gives way to queries: while some are under way, it computes for a share of the time only.
 * A share is enough for the work to end, and short turns leave the processors to threads that a query wakes.
 *
 * One thread works; any thread queries. The work calls pace_goes_on() every 0.1 ms or so, without any lock that a query
 * or a change may want.
 *
 *     pace_enter(&engine->pace);  ...  pace_leave(&engine->pace);        a query
 *     for (i = 0; i < n && pace_goes_on(&engine->pace); i++)             the work
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PACE_SHARE = 4,        /* beside queries, work may have one part in so many of a processor's time */
    PACE_TURN_US = 100,    /* it rests after so much */
    PACE_MOST_US = 1000,   /* a longer turn counts as this */
    PACE_LATE_US = 2000,   /* what a late end of a rest lets it catch up with */
    PACE_LINGER_US = 2000, /* queries count as under way for so long after the last one */
    PACE_GLANCE_US = 500,  /* a rest ends so soon after queries have stopped, or the store closes */
};

/* All zero at first. */
struct pace {
    atomic_bool is_stopping;
    atomic_size_t n_queries;
    atomic_int_least64_t left_at_us; /* when the last query ended */
    int64_t charged_us;              /* processor time of the thread that works, as of its last rest */
    int64_t due_us;                  /* when its turns so far are one part in PACE_SHARE of the time */
};

void pace_enter(struct pace *p);
void pace_leave(struct pace *p);
/* Rests if it is time, for less than PACE_SHARE * PACE_MOST_US; false: the store closes. NULL: nothing to give way to.
 */
bool pace_goes_on(struct pace *p);
