/* The PostgreSQL backend: rows in a database that services on several machines share, and that other programs may use.
 * The schema must have been made before (postgres_schema.h, `hearth backend setup`). The caller closes it with
 * backend_close().
 *
 *     r = backend_postgres_open(&(struct backend_postgres_config){ .url = url, .abbr = "svc" }, &backend, e);
 */
#pragma once

#include "backend/backend.h"
#include "backend/postgres/postgres_events.h"

struct backend_postgres_config {
    const char *url;                  /* a connection string of libpq: URI or name=value pairs */
    const char *events_url;           /* the same database, without a pooler, for the events; NULL: url */
    const char *password;             /* NULL: of the URL, PGPASSWORD or ~/.pgpass */
    const char *abbr;                 /* names the tables and functions */
    enum postgres_events_mode events; /* where the events come from */
    int64_t n_connections;            /* at most this many for statements; 0: 8 */
    int64_t call_ms;                  /* a call waits for the database so long, in all; 0: 20 s */
};
/* Succeeds while the database cannot be reached, which is logged: calls return STORE_UNAVAILABLE until it can. -EINVAL
 * BAD_SETTING, -EACCES STORE_DENIED, -ENOENT SCHEMA_MISSING, -EPROTONOSUPPORT SCHEMA_TOO_OLD or SCHEMA_TOO_NEW; calls
 * return the last four when the database is found so later. */
int backend_postgres_open(const struct backend_postgres_config *c, struct backend **ret, struct err *e) MUST_CHECK;
/* Only whether libpq can read the text. -EINVAL BAD_SETTING, which quotes no secret. */
int backend_postgres_check(const char *url, const char *data_dir, struct err *e) MUST_CHECK;
