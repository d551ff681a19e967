#include "http/deadline.h"
#include "base/clock.h"

static void arm(struct http_deadlines *all, int64_t at_ms, int64_t now_ms)
{
    all->armed_ms = at_ms;
    loop_timer_set(all->timer, MAX(at_ms - now_ms, (int64_t)0) + 1); /* the loop's clock may be slightly ahead */
}

static void expire_list(struct http_deadlines *all, enum http_wait wait, int64_t now_ms)
{
    struct http_deadline *d;

    while ((d = TAILQ_FIRST(&all->lists[wait])) && d->at_ms <= now_ms) {
        TAILQ_REMOVE(&all->lists[wait], d, links);
        d->wait = WAIT_NONE;
        all->on_expired(d, wait);
    }
}

static void on_timer(void *arg)
{
    struct http_deadlines *all = arg;
    int64_t now_ms = clock_mono_ms(), earliest_ms = INT64_MAX;

    all->armed_ms = INT64_MIN; /* deadlines set meanwhile are found below */
    for (enum http_wait wait = WAIT_NONE + 1; wait < WAITS; wait++)
        expire_list(all, wait, now_ms);
    for (enum http_wait wait = WAIT_NONE + 1; wait < WAITS; wait++)
        if (!TAILQ_EMPTY(&all->lists[wait]))
            earliest_ms = MIN(earliest_ms, TAILQ_FIRST(&all->lists[wait])->at_ms);
    all->armed_ms = INT64_MAX;
    if (earliest_ms < INT64_MAX)
        arm(all, earliest_ms, now_ms);
}

void http_deadlines_init(struct http_deadlines *all, struct loop *l,
                         void (*on_expired)(struct http_deadline *d, enum http_wait wait))
{
    for (enum http_wait wait = 0; wait < WAITS; wait++)
        TAILQ_INIT(&all->lists[wait]);
    all->on_expired = on_expired;
    all->armed_ms = INT64_MAX;
    all->timer = loop_timer_new(l, on_timer, all);
}

void http_deadlines_clear(struct http_deadlines *all)
{
    all->timer = loop_timer_free(all->timer);
}

void http_deadline_set(struct http_deadlines *all, struct http_deadline *d, enum http_wait wait)
{
    int64_t now_ms;

    if (d->wait != WAIT_NONE)
        TAILQ_REMOVE(&all->lists[d->wait], d, links);
    d->wait = wait;
    if (wait == WAIT_NONE)
        return;
    now_ms = clock_mono_ms();
    d->at_ms = now_ms + all->timeout_ms[wait];
    TAILQ_INSERT_TAIL(&all->lists[wait], d, links);
    if (d->at_ms < all->armed_ms)
        arm(all, d->at_ms, now_ms);
}
