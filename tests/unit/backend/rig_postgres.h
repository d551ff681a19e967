/* What is the PostgreSQL provider's own: SQL on its database. The rig is that of the contract.
 *
 *     struct rig *rig = *state;             with POSTGRES_TEST(name)
 */
#pragma once

#include "contract.h"

#define POSTGRES_TEST(name)                                                                                            \
    {                                                                                                                  \
#name, name, rig_open, rig_close, (void *)&fixtures[2]                                                         \
    }

static inline const struct cluster_place *rig_place(struct rig *rig)
{
    return rig->place;
}

/* As the owner of the database. */
static inline void rig_sql(struct rig *rig, const char *sql)
{
    cluster_exec(rig_place(rig)->url, sql);
}

/* The first column of the first row; NULL stays NULL. */
static inline const char *rig_value(struct rig *rig, const char *sql)
{
    PGconn *conn = PQconnectdb(rig_place(rig)->url);
    PGresult *result = PQexec(conn, sql);
    const char *value = NULL;

    if (PQresultStatus(result) != PGRES_TUPLES_OK || PQntuples(result) < 1)
        fail_msg("%.300s: %s", sql, PQerrorMessage(conn));
    if (!PQgetisnull(result, 0, 0))
        value = arena_strdup(rig->arena, PQgetvalue(result, 0, 0));
    PQclear(result);
    PQfinish(conn);
    return value;
}

static inline struct backend *rig_open_url(const char *url, int64_t n_connections)
{
    const struct backend_postgres_config config = { .url = url, .abbr = "svc", .n_connections = n_connections };
    struct backend *b = NULL;
    struct err e = { 0 };

    must(backend_postgres_open(&config, &b, &e), &e);
    return b;
}

/* The same place as another role. */
static inline const char *rig_url_as(struct rig *rig, const char *role)
{
    return arena_printf(rig->arena, "%s user=%s", rig_place(rig)->url, role);
}

static inline int postgres_run_tests(const struct CMUnitTest *tests, size_t n)
{
    if (!cluster_is_installed()) {
        print_message("1..0 # skipped: no PostgreSQL is installed\n");
        return 0;
    }
    return _cmocka_run_group_tests("postgres", tests, n, NULL, NULL);
}
