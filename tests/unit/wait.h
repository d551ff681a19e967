/* Waiting in tests: for a condition to become true, with a deadline; never for a fixed time. */
#pragma once

#include "base/clock.h"
#include <time.h>

enum { WAIT_MS = 60000 }; /* far more than a loaded machine needs */

/* True as soon as is_so(arg); false when the deadline has passed. */
static inline bool wait_until(bool (*is_so)(void *arg), void *arg)
{
    const struct timespec pause = { .tv_nsec = 1000000 };
    int64_t deadline_ms = clock_mono_ms() + WAIT_MS;

    while (!is_so(arg)) {
        if (clock_mono_ms() > deadline_ms)
            return false;
        nanosleep(&pause, NULL);
    }
    return true;
}
