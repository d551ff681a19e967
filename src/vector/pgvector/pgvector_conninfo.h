/* The connection string of a PostgreSQL server that an app named: its allowed parameters, and a connection only to
 * addresses the guard allows.
 *
 * Allowed are host, port, database, user, password, TLS mode and a few harmless parameters. Refused is everything that
 * would lend the app the person's own rights: files (keys, password and service files), Unix sockets (whose peer
 * authentication is the person's), Kerberos tickets. For the same reason ~/.pgpass, ~/.postgresql and PGPASSWORD are
 * not used. Private to src/vector; any thread; connecting blocks.
 */
#pragma once

#include "net/guard.h"
#include "pg/pg_link.h"

/* -EINVAL VALIDATION_ERROR names the parameter and the rule, and quotes no secret. */
int pg_conninfo_check(const char *url, struct err *e) MUST_CHECK;
/* A connection to one of the addresses that the guard allows. -EAGAIN VECTOR_STORE_UNAVAILABLE: no server answers; -EIO
 * VECTOR_STORE_FAILED with libpq's message or the guard's. */
int pg_conninfo_open(const char *url, const struct guard *guard, const struct net_wait *wait, struct pg_link **ret,
                     struct err *e) MUST_CHECK;
