/* The hosted provider: a project that a test outside has started (tests/peers/hosted_contract.test.mjs), named by the
 * environment: HEARTH_TEST_HOSTED_URL and _KEY of its REST interface; _PG, its database as the owner reaches it, or
 * _FILE, the file of a service with the embedded backend; _REALTIME when it has a realtime part. A place is that one
 * project, emptied. */
#pragma once

#include "fixture_embedded.h"
#include "fixture_postgres.h"
#include "backend/hosted/hosted.h"
#include "backend/hosted/hosted_access.h"
#include "backend/hosted/hosted_pieces.h"
#include "backend/postgres/postgres_declare_sql.h"
#include "backend/postgres/postgres_table.h"
#include "backend/query.h"
#include "net/wait.h"

#include <stdlib.h>

struct hosted_place {
    const char *url, *key, *pg; /* borrowed; pg NULL: the project's rows are in a file */
    struct folder file;         /* only its file is used */
};

static inline bool hosted_is_there(void)
{
    return getenv("HEARTH_TEST_HOSTED_URL") != NULL;
}

static inline bool hosted_has_realtime(void)
{
    return getenv("HEARTH_TEST_HOSTED_REALTIME") != NULL;
}

/* ---- an empty project ---- */

static const char empty_database[] =
    "DO $$ DECLARE t record; BEGIN\n"
    "  FOR t IN SELECT schema_name, table_name FROM svc_tables WHERE name <> 'svc_activities'\n"
    "    UNION SELECT schema_name, table_name FROM svc_declared LOOP\n"
    "    EXECUTE format('DROP TABLE IF EXISTS %I.%I CASCADE', t.schema_name, t.table_name);\n"
    "  END LOOP;\n"
    "END $$;\n"
    "DELETE FROM svc_tables WHERE name <> 'svc_activities'; DELETE FROM svc_declared;"
    "TRUNCATE svc_activities, svc_deletions, svc_outbox, svc_presence;";

/* A project that sees no table which is made later keeps those that it has (HEARTH_TEST_HOSTED_FIXED). */
static const char empty_tables[] = "DO $$ DECLARE t record; BEGIN\n"
                                   "  FOR t IN SELECT schema_name, table_name FROM svc_declared LOOP\n"
                                   "    EXECUTE format('TRUNCATE %I.%I', t.schema_name, t.table_name);\n"
                                   "  END LOOP;\n"
                                   "END $$;\n"
                                   "TRUNCATE svc_activities, svc_deletions, svc_outbox, svc_presence;";

static inline void empty_file(const char *file)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    struct sql_db *db = NULL;
    const char *sql = "BEGIN IMMEDIATE; DELETE FROM svc_activities; DELETE FROM svc_deletions;";
    struct err e = { 0 };

    must(sql_open(file, NULL, &db, &e), &e);
    must(sql_script(db, "PRAGMA trusted_schema = ON; PRAGMA synchronous = OFF", &e), &e);
    must(sql_query_text(db, &rows, &e,
                        "SELECT format('DROP TABLE \"%w\";', name) FROM (SELECT name FROM _tables"
                        " UNION SELECT name FROM _declared) WHERE name NOT IN ('svc_activities', 'svc_deletions')",
                        NULL),
         &e);
    while (sql_step(rows, &e) == 1)
        sql = arena_printf(a, "%s %s", sql, sql_text(rows, a, 0));
    sql_rows_endp(&rows);
    rows = NULL;
    sql = arena_printf(a,
                       "%s DELETE FROM _tables WHERE name NOT IN ('svc_activities', 'svc_deletions');"
                       " DELETE FROM _declared; COMMIT",
                       sql);
    must(sql_script(db, sql, &e), &e);
    sql_close(db);
}

static inline void *hosted_make(void)
{
    struct hosted_place *p = xcalloc(1, sizeof(*p));

    p->url = getenv("HEARTH_TEST_HOSTED_URL");
    p->key = getenv("HEARTH_TEST_HOSTED_KEY");
    p->pg = getenv("HEARTH_TEST_HOSTED_PG");
    if (p->pg) {
        cluster_exec(p->pg, getenv("HEARTH_TEST_HOSTED_FIXED") ? empty_tables : empty_database);
    } else {
        snprintf(p->file.file, sizeof(p->file.file), "%s", getenv("HEARTH_TEST_HOSTED_FILE"));
        empty_file(p->file.file);
    }
    return p;
}

static inline void hosted_unmake(void *place)
{
    free(place);
}

/* ---- its tables ---- */

/* What the set-up makes of a table, without the roles of the service. */
static inline void hosted_run_pieces(const struct hosted_place *p, const char *table,
                                     const struct postgres_piece *pieces)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct postgres_tables *ts = postgres_tables_new("svc", NULL);

    for (; pieces->what; pieces++)
        cluster_exec(p->pg, postgres_sql_once(a, postgres_table_of(ts, table), pieces->make));
    postgres_tables_free(ts);
}

static inline int hosted_add_table(void *arg, const char *table, const struct net_wait *wait, struct err *e)
{
    const struct hosted_place *p = arg;
    const struct postgres_place place = { .url = p->pg, .n_connections = 1 };
    struct backend *b;
    int r;

    if (!p->pg) {
        b = embedded_open(&((struct hosted_place *)arg)->file);
        r = b->ops->ensure_table(b, table, e);
        backend_close(b);
        return r;
    }
    r = postgres_schema_apply(&place, &(struct postgres_schema){ .abbr = "svc", .tables = &table, .n_tables = 1 }, e);
    if (r == 0) {
        hosted_run_pieces(p, table, hosted_table_pieces);
        hosted_run_pieces(p, table, hosted_publication_pieces);
        hosted_run_pieces(p, table, hosted_reload_pieces);
    }
    return r;
}

static inline int hosted_declare_table(void *arg, const struct table_shape *declared,
                                       const struct table_shape *existing, const struct net_wait *wait, struct err *e)
{
    const struct hosted_place *p = arg;
    struct backend *b;
    struct buf sql;
    int r;

    if (!p->pg) {
        b = embedded_open(&((struct hosted_place *)arg)->file);
        r = backend_declare(b, declared, e);
        backend_close(b);
        return r;
    }
    buf_init(&sql, MIB(1));
    postgres_declare_put_table(&sql, declared, existing, "auth.uid()");
    postgres_declare_put_list(&sql, "svc", declared->table);
    cluster_exec(p->pg, buf_str(&sql));
    buf_clear(&sql);
    hosted_run_pieces(p, declared->table, hosted_publication_pieces);
    hosted_run_pieces(p, declared->table, hosted_reload_pieces);
    return 0;
}

/* What was subscribed to is joined; of other providers it is at once. */
static inline void hosted_settle(struct backend *b)
{
    const struct net_wait wait = net_wait_of(60000, NULL, NULL);
    struct err e = { 0 };

    if (strcmp(b->ops->name, "hosted") == 0 && hosted_has_realtime())
        must(hosted_realtime_settle(hosted_of(b)->realtime, &wait, &e), &e);
}

static inline struct backend *hosted_open(void *place)
{
    const struct hosted_place *p = place;
    const struct backend_hosted_config config = { .url = p->url,
                                                  .key = p->key,
                                                  .abbr = "svc",
                                                  .has_no_realtime = !hosted_has_realtime(),
                                                  .make_table = hosted_add_table,
                                                  .declare = hosted_declare_table,
                                                  .arg = place };
    struct backend *b = NULL;
    struct err e = { 0 };

    must(backend_hosted_open(&config, &b, &e), &e);
    hosted_settle(b);
    return b;
}

static inline void hosted_write(void *place, const struct foreign_write *w)
{
    struct hosted_place *p = place;
    struct cluster_place database = { 0 };

    if (!p->pg) {
        embedded_write(&p->file, w);
        return;
    }
    snprintf(database.url, sizeof(database.url), "%s", p->pg);
    postgres_write(&database, w);
}

static inline void hosted_lose(void *place)
{
    const struct hosted_place *p = place;

    embedded_lose_in(p->file.file); /* the one with realtime */
}
