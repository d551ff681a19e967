/* The PostgreSQL provider: a place is a database of the test program's own server. */
#pragma once

#include "cluster.h"
#include "backend/postgres/postgres_open.h"

static inline void *postgres_make(void)
{
    return cluster_place_make("replica");
}

static inline void postgres_remove(void *place)
{
    cluster_place_remove(place);
}

static inline struct backend *postgres_open(void *place)
{
    const struct cluster_place *p = place;
    const struct backend_postgres_config config = { .url = p->url, .abbr = "svc" };
    struct backend *b = NULL;
    struct err e = { 0 };

    must(backend_postgres_open(&config, &b, &e), &e);
    return b;
}

static inline void *postgres_make_logical(void)
{
    return cluster_place_make("logical");
}

static inline struct backend *postgres_open_logical(void *place)
{
    const struct cluster_place *p = place;
    const struct backend_postgres_config config = { .url = p->url, .abbr = "svc", .events = POSTGRES_EVENTS_LOGICAL };
    struct backend *b = NULL;
    struct err e = { 0 };

    must(backend_postgres_open(&config, &b, &e), &e);
    return b;
}

/* "sales"."orders" */
static inline const char *postgres_quoted(struct arena *a, const char *table)
{
    const char *dot = strchr(table, '.');

    return dot ? arena_printf(a, "\"%.*s\".\"%s\"", (int)(dot - table), table, dot + 1)
               : arena_printf(a, "\"public\".\"%s\"", table);
}

static inline const char *postgres_foreign_sql(struct arena *a, const struct foreign_write *w)
{
    const char *where = w->id ? arena_printf(a, " WHERE id = '%s'", w->id) : "";
    const char *table = postgres_quoted(a, w->table);

    if (w->op == BACKEND_INSERT)
        return arena_printf(a, "INSERT INTO %s (raw_data) SELECT '%s' FROM generate_series(1, %zu)", table, w->raw_data,
                            MAX(w->n, (size_t)1));
    if (w->op == BACKEND_DELETE)
        return arena_printf(a, "DELETE FROM %s%s", table, where);
    return arena_printf(a, "UPDATE %s SET %s = %s%s", table, w->column,
                        w->value ? arena_printf(a, "'%s'", w->value) : "NULL", where);
}

static inline void postgres_write(void *place, const struct foreign_write *w)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct cluster_place *p = place;

    cluster_exec(p->url,
                 arena_printf(a, "BEGIN; %s; %s", postgres_foreign_sql(a, w), w->is_undone ? "ROLLBACK" : "COMMIT"));
}

/* No session is left that a change could be told to; each is really gone when the statement ends. */
static inline void postgres_lose(void *place)
{
    const struct cluster_place *p = place;

    cluster_exec(p->url, "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
                         " WHERE datname = current_database() AND pid <> pg_backend_pid();"
                         " INSERT INTO svc_activities (raw_data) VALUES ('{\"n\":\"lost\"}')");
}
