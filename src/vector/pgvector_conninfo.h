/* The connection string of a PostgreSQL that an app named: what it may say, and a connection that goes only where the guard allows.
 *
 * Allowed are host, port, database, user, password, TLS mode and a few harmless parameters. Refused is what would lend the app something of
 * the person's: files (keys, password and service files), Unix sockets (whose peer authentication is the person's own), Kerberos tickets.
 * For the same reason nothing of ~/.pgpass, ~/.postgresql and PGPASSWORD is used. Private to src/vector; any thread; connecting blocks.
 */
#pragma once

#include "net/guard.h"
#include "vector/pgvector_link.h"

/* -EINVAL VALIDATION_ERROR names the parameter and the rule, and quotes no secret. */
int pg_conninfo_check(const char *url, struct err *e) MUST_CHECK;
/* A connection to one of the addresses that the guard allows. -EIO VECTOR_STORE_FAILED in libpq's words, or the guard's. */
int pg_conninfo_open(const char *url, const struct guard *guard, const struct net_wait *wait, struct pg_link **ret, struct err *e) MUST_CHECK;
