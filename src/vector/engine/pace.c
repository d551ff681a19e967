#include "vector/engine/pace.h"
#include "base/clock.h"
#include "base/util.h"
#include <time.h>

void pace_enter(struct pace *p)
{
    atomic_fetch_add(&p->n_queries, 1);
}

void pace_leave(struct pace *p)
{
    atomic_store(&p->left_at_us, clock_mono_us());
    atomic_fetch_sub(&p->n_queries, 1);
}

static bool has_queries(const struct pace *p, int64_t now_us)
{
    return atomic_load(&p->n_queries) > 0 || now_us < atomic_load(&p->left_at_us) + PACE_LINGER_US;
}

/* The processor time of the calling thread. */
static int64_t work_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void rest(const struct pace *p)
{
    int64_t now_us = clock_mono_us();

    while (!atomic_load(&p->is_stopping) && now_us < p->due_us && has_queries(p, now_us)) {
        const struct timespec glance = { .tv_nsec = MIN(p->due_us - now_us, (int64_t)PACE_GLANCE_US) * 1000 };

        nanosleep(&glance, NULL);
        now_us = clock_mono_us();
    }
}

/* Rests once a turn is over. */
static void take_turns(struct pace *p, int64_t now_us)
{
    int64_t turn_us = work_us() - p->charged_us;

    if (turn_us < PACE_TURN_US)
        return;
    p->due_us = MAX(p->due_us, now_us - PACE_LATE_US) + PACE_SHARE * MIN(turn_us, (int64_t)PACE_MOST_US);
    rest(p);
    p->charged_us = work_us();
}

bool pace_goes_on(struct pace *p)
{
    int64_t now_us;

    if (!p)
        return true;
    now_us = clock_mono_us();
    if (has_queries(p, now_us))
        take_turns(p, now_us);
    return !atomic_load(&p->is_stopping);
}
