/* The hosted provider: a project that a test outside has started (by hand so far, docs/hosted.md), named by the
 * environment: HEARTH_TEST_HOSTED_URL and _KEY of its REST interface, and _PG, its database as the owner reaches it. A
 * place is that one project, emptied. */
#pragma once

#include "fixture_postgres.h"
#include "backend/hosted/hosted_open.h"
#include "backend/hosted/hosted_pieces.h"

#include <stdlib.h>

struct hosted_place {
    const char *url, *key, *pg; /* borrowed */
};

static inline bool hosted_is_there(void)
{
    return getenv("HEARTH_TEST_HOSTED_URL") != NULL;
}

static const char empty_project[] =
    "DO $$ DECLARE t record; BEGIN\n"
    "  FOR t IN SELECT schema_name, table_name FROM svc_tables WHERE name <> 'svc_activities' LOOP\n"
    "    EXECUTE format('DROP TABLE IF EXISTS %I.%I CASCADE', t.schema_name, t.table_name);\n"
    "  END LOOP;\n"
    "END $$;\n"
    "DELETE FROM svc_tables WHERE name <> 'svc_activities'; TRUNCATE svc_activities, svc_deletions, svc_outbox;";

static inline void *hosted_make(void)
{
    struct hosted_place *p = xcalloc(1, sizeof(*p));

    p->url = getenv("HEARTH_TEST_HOSTED_URL");
    p->key = getenv("HEARTH_TEST_HOSTED_KEY");
    p->pg = getenv("HEARTH_TEST_HOSTED_PG");
    cluster_exec(p->pg, empty_project);
    return p;
}

static inline void hosted_unmake(void *place)
{
    free(place);
}

static inline int hosted_add_table(void *arg, const char *table, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct hosted_place *p = arg;
    const struct postgres_place place = { .url = p->pg, .n_connections = 1 };
    int r =
        postgres_schema_apply(&place, &(struct postgres_schema){ .abbr = "svc", .tables = &table, .n_tables = 1 }, e);

    if (r == 0)
        cluster_exec(p->pg, arena_printf(a,
                                         "ALTER TABLE %s ADD COLUMN IF NOT EXISTS is_dirty boolean GENERATED ALWAYS AS"
                                         " (handled_revision < revision AND status <> 'pending') STORED;"
                                         " NOTIFY pgrst, 'reload schema'",
                                         table));
    return r;
}

static inline struct backend *hosted_open(void *place)
{
    const struct hosted_place *p = place;
    const struct backend_hosted_config config = { .url = p->url,
                                                  .key = p->key,
                                                  .abbr = "svc",
                                                  .has_no_realtime = getenv("HEARTH_TEST_HOSTED_REALTIME") == NULL,
                                                  .make_table = hosted_add_table,
                                                  .arg = place };
    struct backend *b = NULL;
    struct err e = { 0 };

    must(backend_hosted_open(&config, &b, &e), &e);
    return b;
}

static inline void hosted_write(void *place, const struct foreign_write *w)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct hosted_place *p = place;

    cluster_exec(p->pg,
                 arena_printf(a, "BEGIN; %s; %s", postgres_foreign_sql(a, w), w->is_undone ? "ROLLBACK" : "COMMIT"));
}
