/* How a backend learns of changes, table by table: the facts of the subscription monitor. Plain data, copied into the
 * caller's arena; any thread.
 *
 *     backend->ops->monitor(backend, arena, &monitor);
 */
#pragma once

#include "base/arena.h"

/* The state of the connection that events come by, and of one subscription. */
enum backend_link_state {
    BACKEND_LINK_CONNECTING, /* no connection yet, or it broke */
    BACKEND_LINK_JOINING,    /* asked for, not confirmed */
    BACKEND_LINK_LIVE,       /* changes arrive */
    BACKEND_LINK_FAILED      /* refused or lost; another attempt follows */
};
const char *backend_link_state_name(enum backend_link_state state); /* "connecting", "joining", "live", "failed" */

struct backend_subscription {
    const char *table;  /* as backend_table_name() returns it */
    const char *filter; /* NULL: every row */
    enum backend_link_state state;
    const char *last_event_at; /* ISO 8601, of this machine's clock; NULL: none since the start */
    int64_t lag_ms; /* from commit to arrival of the last event; includes what two clocks differ by; -1: not known */
    int64_t n_events, n_gaps, n_retries;
    const char *last_error, *last_error_at; /* NULL: none since the start */
};

struct backend_monitor {
    const char *way; /* how changes arrive: "change log", "outbox", "realtime" */
    enum backend_link_state state;
    int64_t n_connects, n_ignored; /* n_ignored: messages that nobody had asked for, or could read */
    const char *last_error, *last_error_at;
    struct backend_subscription *items; /* a table that is not here is followed like all, without a change so far */
    size_t n;
    bool is_whole; /* one stream brings all tables: the state of each is that of the connection */
};
