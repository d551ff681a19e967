/* The schema of a PostgreSQL backend as a list of pieces: each has a probe, which finds it in the catalog, and the SQL
 * that makes it. All of it may be run again; an owner of the database may run it, a superuser is not needed.
 *
 *     text = postgres_schema_sql(arena, &(struct postgres_schema){ .abbr = "svc" });
 *     r = postgres_schema_apply(&place, &schema, e);
 *     r = postgres_schema_check(&place, &schema, arena, &missing, e);
 */
#pragma once

#include "backend/postgres/postgres_events.h"
#include "backend/postgres/postgres_pool.h"

enum { POSTGRES_SCHEMA_VERSION = 5 };

struct postgres_schema {
    const char *abbr;
    const char *const
        *tables; /* the apps' own, as backend_table_name() returns them; <abbr>_activities is always one */
    size_t n_tables;
    enum postgres_events_mode events; /* whether there is to be a publication */
    const char *role; /* the role of the services, which gets the rights they need; NULL: the owner runs them */
};

/* One transaction for psql. */
char *postgres_schema_sql(struct arena *a, const struct postgres_schema *s);
/* -EACCES STORE_DENIED when the role of the connection may not; other errors of the database as STORE_... */
int postgres_schema_apply(const struct postgres_place *place, const struct postgres_schema *s,
                          struct err *e) MUST_CHECK;

/* A script of changes to the schema, which may be run again, on a connection of its own; the same errors. It is run
 * again when a deadlock ended it. */
int postgres_schema_run(const struct postgres_place *place, const char *sql, struct err *e) MUST_CHECK;

struct postgres_missing {
    const char *what, *sql;
};
struct postgres_missings {
    struct postgres_missing *items;
    size_t n;
};
int postgres_schema_check(const struct postgres_place *place, const struct postgres_schema *s, struct arena *a,
                          struct postgres_missings *ret, struct err *e) MUST_CHECK;
