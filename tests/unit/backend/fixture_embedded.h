/* The embedded provider: a place is a folder with one SQLite file. */
#pragma once

#include "fixture.h"
#include "backend/embedded/embedded_open.h"
#include "store/sql.h"
#include "../store/folder.h"

static inline void *embedded_make(void)
{
    struct folder *f = xcalloc(1, sizeof(*f));

    *f = folder_make();
    return f;
}

static inline void embedded_remove(void *place)
{
    folder_remove(place);
    free(place);
}

static inline struct backend *embedded_open(void *place)
{
    const struct folder *f = place;
    const struct backend_embedded_config config = { .path = f->file, .abbr = "svc", .poll_ms = 5 };
    struct backend *b = NULL;
    struct err e = { 0 };

    must(backend_embedded_open(&config, &b, &e), &e);
    return b;
}

static inline const char *foreign_sql(struct arena *a, const struct foreign_write *w)
{
    const char *where = w->id ? arena_printf(a, " WHERE id = '%s'", w->id) : "";

    if (w->op == BACKEND_INSERT)
        return arena_printf(a,
                            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %zu)"
                            " INSERT INTO \"%s\" (raw_data) SELECT '%s' FROM n",
                            MAX(w->n, (size_t)1), w->table, w->raw_data);
    if (w->op == BACKEND_DELETE)
        return arena_printf(a, "DELETE FROM \"%s\"%s", w->table, where);
    return arena_printf(a, "UPDATE \"%s\" SET %s = %s%s", w->table, w->column,
                        w->value ? arena_printf(a, "'%s'", w->value) : "NULL", where);
}

static inline void embedded_write(void *place, const struct foreign_write *w)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct folder *f = place;
    struct sql_db *db = NULL;
    struct err e = { 0 };

    must(sql_open(f->file, NULL, &db, &e), &e);
    must(sql_script(db, "PRAGMA trusted_schema = ON; PRAGMA synchronous = OFF; BEGIN IMMEDIATE", &e), &e);
    must(sql_script(db, foreign_sql(a, w), &e), &e);
    must(sql_script(db, w->is_undone ? "ROLLBACK" : "COMMIT", &e), &e);
    sql_close(db);
}

/* The first change is gone from the log before anybody has read it. */
static inline void embedded_lose_in(const char *file)
{
    struct sql_db *db = NULL;
    struct err e = { 0 };

    must(sql_open(file, NULL, &db, &e), &e);
    must(sql_script(db,
                    "PRAGMA trusted_schema = ON; PRAGMA synchronous = OFF; BEGIN IMMEDIATE;"
                    " INSERT INTO svc_activities (raw_data) VALUES ('{\"n\":\"lost\"}');"
                    " INSERT INTO svc_activities (raw_data) VALUES ('{\"n\":\"seen\"}');"
                    " DELETE FROM _changes WHERE seq < (SELECT max(seq) FROM _changes); COMMIT",
                    &e),
         &e);
    sql_close(db);
}

static inline void embedded_lose(void *place)
{
    const struct folder *f = place;

    embedded_lose_in(f->file);
}
