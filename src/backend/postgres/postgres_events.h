/* The events and broadcasts of a PostgreSQL database: subscribe, unsubscribe, broadcast, listen and unlisten of
 * backend.h.
 *
 * Owned by the backend. One thread holds a connection of its own, follows the changes and calls the receivers. The
 * connection is made again after its loss, with growing pauses; a gap is reported then, and whenever changes may have
 * been missed. While the server is not reachable, everything but postgres_events_broadcast() still returns 0. Any
 * thread.
 *
 *     const struct postgres_events_config c = { .abbr = abbr, .poll_ms = 50, .connect = connect, .run = run, .arg =
 * pool }; r = postgres_events_open(&c, &events, e);
 *     ...
 *     events = postgres_events_close(events);
 */
#pragma once

#include "backend/backend.h"
#include "net/wait.h"

struct postgres_events;
struct pg_link;
struct pg_statement;

enum postgres_events_mode {
    POSTGRES_EVENTS_AUTO,   /* the logical stream where server and role allow it, else the outbox */
    POSTGRES_EVENTS_OUTBOX, /* the table that triggers write, and LISTEN */
    POSTGRES_EVENTS_LOGICAL
};
/* Of a value of the setting backend.events. */
enum postgres_events_mode postgres_events_mode_of(const char *name);

struct postgres_events_config {
    const char *abbr; /* copied */
    enum postgres_events_mode mode;
    int poll_ms;      /* between two looks while transactions of others are open; 0: 50 */
    int published_ms; /* between two looks at the tables of the publication, while the stream is read; 0: 10,000 */
    /* A session of its own, not through a transaction pooler; is_replication: with replication=database. Called on the
     * thread of the events. Errors of pg_link_open(). */
    int (*connect)(void *arg, bool is_replication, const struct net_wait *wait, struct pg_link **ret, struct err *e);
    /* One statement on any connection, for any thread. Errors of pg_link_run(). */
    int (*run)(void *arg, const struct pg_statement *st, struct err *e);
    void *arg; /* of both; lives until postgres_events_close() has returned */
};

enum postgres_events_state { POSTGRES_EVENTS_CONNECTING, POSTGRES_EVENTS_LIVE };
struct postgres_events_status {
    enum postgres_events_state state;
    bool is_logical; /* of the last connection that was made */
    char why[400];   /* why it is the outbox, what the stream lacks, or the last error; "": nothing to say */
    int64_t n_connects, n_events, n_gaps;
};

int postgres_events_open(const struct postgres_events_config *c, struct postgres_events **ret,
                         struct err *e) MUST_CHECK;
/* What waits for the server ends; nothing more is reported. */
void postgres_events_leave(struct postgres_events *ev);
struct postgres_events *postgres_events_close(struct postgres_events *ev); /* NULL is fine; returns NULL */
struct postgres_events_status postgres_events_status(struct postgres_events *ev);
/* Tables and the last fault (receivers_monitor()). */
void postgres_events_monitor(struct postgres_events *ev, struct arena *a, struct backend_monitor *ret);

/* As in backend.h. Only changes that commit after postgres_events_subscribe() has begun are reported, the first ones
 * without a gap when the server is reachable. -EEXIST ALREADY_EXISTS for an `arg` that has subscribed. */
int postgres_events_subscribe(struct postgres_events *ev, backend_event_fn *fn, backend_gap_fn *on_gap, void *arg,
                              struct err *e) MUST_CHECK;
void postgres_events_unsubscribe(struct postgres_events *ev, void *arg);
/* To the listeners of every service on the database, this one included. -E2BIG TOO_LARGE when the three texts exceed
 * LIMIT_NOTIFY_BYTES as JSON; errors of `run`. */
int postgres_events_broadcast(struct postgres_events *ev, const char *channel, const char *event,
                              const char *payload_json, struct err *e) MUST_CHECK;
/* Returns when the broadcasts that follow are heard, or when no connection can be made now. */
int postgres_events_listen(struct postgres_events *ev, const char *channel, backend_broadcast_fn *fn, void *arg,
                           struct err *e) MUST_CHECK;
void postgres_events_unlisten(struct postgres_events *ev, void *arg);
