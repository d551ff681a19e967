#include "base/cond.h"

#include <time.h>

void cond_init(pthread_cond_t *c)
{
    pthread_condattr_t monotonic;

    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(c, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

bool cond_wait_until(pthread_cond_t *c, pthread_mutex_t *lock, int64_t until_us)
{
    const struct timespec until = { .tv_sec = until_us / 1000000, .tv_nsec = until_us % 1000000 * 1000 };

    return pthread_cond_timedwait(c, lock, &until) == 0;
}
