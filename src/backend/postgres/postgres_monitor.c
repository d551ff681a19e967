#include "backend/monitor.h"
#include "backend/postgres/postgres.h"
#include "backend/postgres/postgres_events.h"

void postgres_monitor(struct backend *b, struct arena *a, struct backend_monitor *ret)
{
    const struct postgres_events_status status = postgres_events_status(postgres_of(b)->events);

    postgres_events_monitor(postgres_of(b)->events, a, ret);
    ret->way = status.is_logical ? "logical stream" : "outbox";
    ret->state = status.state == POSTGRES_EVENTS_LIVE ? BACKEND_LINK_LIVE : BACKEND_LINK_CONNECTING;
    ret->n_connects = status.n_connects;
    ret->is_whole = true;
}
