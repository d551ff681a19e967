/* What only a session can give: LISTEN, advisory locks, a replication stream, settings. A pooler that passes each
 * transaction to any of its sessions (pgbouncer's pool_mode transaction) gives none of it, and nothing fails: it is
 * found out by asking which process of the server answers.
 *
 *     r = postgres_session_check(link, connect, arg, &wait, e);
 */
#pragma once

#include "backend/postgres/postgres_schema.h"

typedef int postgres_connect_fn(void *arg, bool is_replication, const struct net_wait *wait, struct pg_link **ret,
                                struct err *e);

/* Whether the connection is a session of its own; where its server tells another process id than the one that answers,
 * a second connection is made beside it. -EOPNOTSUPP STORE_UNAVAILABLE: it is not; errors of pg_link_run() and of
 * connect. */
int postgres_session_check(struct pg_link *link, postgres_connect_fn *connect, void *arg, const struct net_wait *wait,
                           struct err *e) MUST_CHECK;
/* Adds what the connections of statements and events lack: a session, times in UTC. */
int postgres_session_lacks(const struct postgres_place *place, struct arena *a, struct postgres_missings *missings,
                           struct err *e) MUST_CHECK;
/* The connection of the events; arg: a const struct postgres_place. */
postgres_connect_fn postgres_session_connect;
