/* What has to be tidied now and then: answers kept for repeated webhook deliveries. At the start and once an hour, on a worker. */
#include "service/private.h"

#include "base/log.h"
#include "store/deliveries.h"

enum { UPKEEP_EVERY_MS = 3600 * 1000, DELIVERY_KEPT_DAYS = 7 };

static void tidy(void *arg)
{
    struct service *s = arg;
    struct err e = { 0 };
    int64_t n;

    if (store_deliveries_trim(s->store, (int64_t)DELIVERY_KEPT_DAYS * 24 * 3600 * 1000, &n, &e) < 0)
        log_warn("service", NULL, "old webhook answers could not be removed: %s", e.text);
}

static void tidy_on_worker(void *arg)
{
    struct service *s = arg;

    if (pool_submit(s->short_pool, tidy, s) < 0)
        log_debug("service", NULL, "no worker is free for upkeep; the next hour will do");
}

int service_start_upkeep(struct service *s, struct err *e)
{
    int r = store_deliveries_release_all(s->store, e);

    if (r < 0)
        return r;
    s->upkeep = loop_timer_new(s->loop, tidy_on_worker, s);
    loop_timer_every(s->upkeep, UPKEEP_EVERY_MS);
    tidy_on_worker(s);
    return 0;
}

void service_stop_upkeep(void *service)
{
    struct service *s = service;

    s->upkeep = loop_timer_free(s->upkeep);
}
