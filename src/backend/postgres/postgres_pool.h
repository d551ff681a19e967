/* Connections to one database, for the statements of any number of threads.
 *
 * At most `max` connections exist; a caller waits for one until its deadline. A connection is checked before its use,
 * and one whose server is gone takes all idle ones with it. After a failed attempt to connect, no further one is made
 * until a pause has passed, which doubles each time: callers are refused at once meanwhile. Any thread.
 *
 *     r = postgres_pool_take(pool, &wait, &link, e);
 *     ... pg_link_run(link, ...)
 *     postgres_pool_give(pool, &link);
 */
#pragma once

#include "pg/pg_link.h"

struct postgres_pool;

struct postgres_place {
    const char *url, *password; /* password NULL: not given */
    const char *events_url;     /* NULL: url */
    int64_t n_connections;
    bool is_replication; /* connections that stream the server's log: times in UTC, one statement at a time */
};

struct postgres_pool *postgres_pool_new(const struct postgres_place *place) MUST_CHECK;
struct postgres_place postgres_pool_place(const struct postgres_pool *p); /* borrowed */
struct postgres_pool *postgres_pool_free(struct postgres_pool *p);        /* after the last connection was given back */
/* -EAGAIN STORE_UNAVAILABLE; -EACCES STORE_DENIED: the server refuses this role; -ETIMEDOUT or -ECANCELED as
 * net_wait_left(). */
int postgres_pool_take(struct postgres_pool *p, const struct net_wait *wait, struct pg_link **ret,
                       struct err *e) MUST_CHECK;
/* Keeps a connection that can be used again, closes any other. */
void postgres_pool_give(struct postgres_pool *p, struct pg_link **link);
/* After a connection on which nothing was heard any more: the others may be as dead. */
void postgres_pool_close_idle(struct postgres_pool *p);
/* A connection of its own, outside the pool. */
int postgres_pool_connect(const struct postgres_place *place, const struct net_wait *wait, struct pg_link **ret,
                          struct err *e) MUST_CHECK;
