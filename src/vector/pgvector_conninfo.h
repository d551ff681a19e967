/* The connection string of a PostgreSQL that an app named: what it may say, and a connection that goes only where the guard allows.
 *
 * Allowed are host, port, database, user, password, TLS mode and a few harmless parameters. Refused is what would lend the app something of
 * the person's: files (keys, password and service files), Unix sockets (whose peer authentication is the person's own), Kerberos tickets.
 * For the same reason nothing of ~/.pgpass, ~/.postgresql and PGPASSWORD is used. Private to src/vector; any thread; connecting blocks.
 */
#pragma once

#include "net/guard.h"

/* -EINVAL VALIDATION_ERROR names the parameter and the rule, and quotes no secret. */
int pg_conninfo_check(const char *url, struct err *e) MUST_CHECK;
/* guard NULL: every address. -EIO VECTOR_STORE_FAILED in libpq's words, or the guard's. ret: a PGconn. */
int pg_conninfo_connect(const char *url, const struct guard *guard, void **ret, struct err *e) MUST_CHECK;
/* A message of libpq: its first line. Returns -EIO. */
int pg_tell(const char *message, struct err *e);
