#include "backend/embedded/embedded_query.h"
#include "backend/embedded/embedded_functions.h"
#include "base/clock.h"
#include "base/limits.h"

#include <sqlite3.h>

enum { STEPS_BETWEEN_LOOKS = 20 }; /* few: one of them may compare for as long as LIMIT_QUERY_STEPS takes */

/* --- refusals --- */

/* "UNIQUE constraint failed: orders.name, orders.city" -> the first column */
static const char *column_of(struct arena *a, const char *message)
{
    const char *dot = strchr(message, '.');

    return dot ? arena_strndup(a, dot + 1, strcspn(dot + 1, ",")) : "";
}

static int refuse_double(const struct table_shape *shape, const char *column, bool is_key, struct err *e)
{
    if (is_key)
        return err_set(e, -EEXIST, "NOT_UNIQUE", "duplicate key value violates unique constraint \"%.64s_pkey\"",
                       shape->table);
    return err_set(e, -EEXIST, "NOT_UNIQUE", "duplicate key value violates unique constraint \"%.64s_%.64s_key\"",
                   shape->table, column);
}

/* A CHECK of a declared table has a name; the one of another is told by its text. */
static int refuse_check(const struct table_shape *shape, const char *message, struct err *e)
{
    const char *colon = strstr(message, ": ");

    return err_set(e, -EINVAL, "CHECK_FAILED", "new row for relation \"%.64s\" violates check constraint \"%.130s\"",
                   shape->table, colon ? colon + 2 : "");
}

static int translate(struct sql_db *db, const struct table_shape *shape, int r, const struct err *why, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new_sized(512);
    int code = sqlite3_extended_errcode(sql_handle(db));
    const char *message = sqlite3_errmsg(sql_handle(db)), *column = column_of(a, message);

    if (strncmp(why->code, "STORE_", 6) != 0 && strcmp(why->code, "ALREADY_EXISTS") != 0)
        code = SQLITE_OK; /* told by us */
    if (code == SQLITE_CONSTRAINT_UNIQUE || code == SQLITE_CONSTRAINT_PRIMARYKEY)
        return refuse_double(shape, column, code == SQLITE_CONSTRAINT_PRIMARYKEY, e);
    if (code == SQLITE_CONSTRAINT_NOTNULL)
        return err_set(e, -EINVAL, "NOT_NULL",
                       "null value in column \"%.64s\" of relation \"%.64s\" violates not-null constraint", column,
                       shape->table);
    if (code == SQLITE_CONSTRAINT_CHECK)
        return refuse_check(shape, message, e);
    if (code == SQLITE_INTERRUPT || strcmp(message, EMBEDDED_TOO_MUCH_WORK) == 0)
        return err_set(e, -ETIMEDOUT, "QUERY_TIMEOUT", "canceling statement due to statement timeout");
    if (code != SQLITE_OK && strncmp(message, EMBEDDED_BAD_CAST, strlen(EMBEDDED_BAD_CAST)) == 0)
        return err_set(e, -EINVAL, "BAD_VALUE", "%s", message + strlen(EMBEDDED_BAD_CAST));
    if (e)
        *e = *why;
    return r;
}

/* --- one query on a connection --- */

struct work {
    struct embedded *em;
    const struct query *q;
    struct arena *arena;
    struct query_reply reply;
    int64_t until_ms, until_work_ms; /* clock_mono_ms(), clock_work_ms() */
};

/* The limit is computing time, because a machine that stands still must not refuse a query. The clock that is asked
 * first costs little, and work takes as long at least. */
static int is_late(void *arg)
{
    const struct work *w = arg;

    return clock_mono_ms() > w->until_ms && clock_work_ms() > w->until_work_ms;
}

static void limit_work(struct work *w, int64_t ms)
{
    w->until_ms = clock_mono_ms() + ms;
    w->until_work_ms = clock_work_ms() + ms;
}

static int read_count(struct sql_db *db, struct work *w, const struct table_shape *shape, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    struct query_sql s;
    int r;

    query_sql_init(&s, &embedded_dialect, shape, w->arena);
    buf_add_str(&s.text, "SELECT count(*) FROM ");
    query_sql_quote(&s.text, shape->table);
    buf_add_str(&s.text, " AS _t");
    r = query_sql_where(&s, w->q, e);
    if (r == 0)
        r = embedded_query_run(db, &s, &rows, e);
    if (r == 0)
        r = sql_step(rows, e);
    if (r > 0)
        w->reply.count = sql_int(rows, 0);
    query_sql_clear(&s);
    return MIN(r, 0);
}

static int read_rows(struct sql_db *db, struct work *w, const struct table_shape *shape, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int64_t limit = w->q->limit >= 0 ? MIN(w->q->limit, LIMIT_QUERY_ROWS) : LIMIT_QUERY_ROWS;
    struct query_sql s;
    int r;

    query_sql_init(&s, &embedded_dialect, shape, w->arena);
    buf_add_str(&s.text, "SELECT ");
    r = query_sql_items(&s, w->q, e);
    buf_add_str(&s.text, " FROM ");
    query_sql_quote(&s.text, shape->table);
    buf_add_str(&s.text, " AS _t");
    if (r == 0)
        r = query_sql_where(&s, w->q, e);
    if (r == 0)
        r = query_sql_order(&s, w->q, e);
    buf_printf(&s.text, " LIMIT %lld OFFSET %lld", (long long)limit, (long long)MAX(w->q->offset, 0));
    if (r == 0)
        r = embedded_query_run(db, &s, &rows, e);
    if (r == 0)
        r = embedded_query_print(rows, &s, w->q, &w->reply, e);
    query_sql_clear(&s);
    return r;
}

static int run(struct sql_db *db, struct work *w, struct err *e)
{
    struct table_shape shape = { 0 };
    struct err why = { 0 };
    int r = embedded_shape_of(w->em, db, w->q->table, w->arena, &shape, e);

    if (r < 0)
        return r;
    sqlite3_progress_handler(sql_handle(db), STEPS_BETWEEN_LOOKS, is_late, w);
    if (w->q->kind != QUERY_SELECT)
        r = embedded_query_write(db, w->q, &shape, w->arena, &w->reply, &why);
    if (w->q->kind == QUERY_SELECT && w->q->is_count_wanted)
        r = read_count(db, w, &shape, &why);
    if (r == 0 && w->q->kind == QUERY_SELECT)
        r = read_rows(db, w, &shape, &why);
    if (r < 0)
        r = translate(db, &shape, r, &why, e);
    sqlite3_progress_handler(sql_handle(db), 0, NULL, NULL);
    return r;
}

static int run_write(struct sql_db *db, void *arg, struct err *e)
{
    struct work *w = arg;

    limit_work(w, LIMIT_QUERY_WRITE_MS);
    return run(db, w, e);
}

/* Shape, count and rows are those of one moment. */
static int run_read(struct sql_db *db, struct work *w, struct err *e)
{
    int r = sql_exec(db, e, "BEGIN", NULL);

    if (r < 0)
        return r;
    limit_work(w, LIMIT_QUERY_READ_MS);
    r = run(db, w, e);
    (void)!sql_exec(db, NULL, "ROLLBACK", NULL);
    return r;
}

int embedded_query(struct backend *b, const struct query *q, struct arena *a, struct query_reply *ret, struct err *e)
{
    struct embedded *em = embedded_of(b);
    struct work w = { .em = em, .q = q, .arena = a, .reply = { .rows = SLICE_LIT("[]"), .count = -1 } };
    int r = query_check(q, e);

    if (r == 0 && q->kind == QUERY_SELECT)
        r = run_read(readers_get(em->readers), &w, e);
    else if (r == 0)
        r = writer_run(em->writer, run_write, &w, e);
    if (r == 0)
        *ret = w.reply;
    return r;
}
