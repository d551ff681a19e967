/* Sessions with a PostgreSQL server that has the extension pgvector. Private to src/vector.
 *
 * A pool keeps a few idle connections; a session borrows one for an operation. When an idle connection turns out dead,
 * pg_session_is_stale() reports it, and the work is repeated on a fresh connection. Any thread; a session: one at a
 * time.
 */
#pragma once

#include "pg/pg_link.h"

#include <pthread.h>

struct guard;

enum { PG_IDLE_MAX = 4 };

struct pg_pool {
    char *url;                 /* owned */
    const struct guard *guard; /* borrowed */
    pthread_mutex_t lock;
    struct pg_link *idle[PG_IDLE_MAX]; /* owned */
    size_t n_idle;
};

struct pg_session {
    struct pg_pool *pool;
    const struct net_wait *wait; /* of the operation */
    struct pg_link *link;        /* owned */
    bool was_idle;
};

void pg_pool_init(struct pg_pool *p, const char *url, const struct guard *guard);
void pg_pool_clear(struct pg_pool *p);

/* Errors as pg_conninfo_open(). */
int pg_session_open(struct pg_pool *p, const struct net_wait *wait, bool must_be_fresh, struct pg_session *ret,
                    struct err *e) MUST_CHECK;
void pg_session_close(struct pg_session *s);
bool pg_session_is_stale(const struct pg_session *s);
bool pg_session_is_broken(const struct pg_session *s); /* an error was not just a refusal by the server */
int pg_run(struct pg_session *s, const struct pg_statement *st, struct err *e) MUST_CHECK;
