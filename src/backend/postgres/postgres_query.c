#include "backend/postgres/postgres_query.h"
#include "backend/refusals.h"
#include "backend/refusals_sql.h"
#include "base/json_text.h"
#include "base/limits.h"

#include <stdlib.h>

enum { REPLY_COLUMNS = 4 }; /* rows or count, new rows, the guard, a row as JSON */

/* --- refusals --- */

/* The server's own words. */
static const char *words_of(const struct err *why)
{
    static const char prefix[] = "PostgreSQL: ";

    return strncmp(why->text, prefix, strlen(prefix)) == 0 ? why->text + strlen(prefix) : why->text;
}

static int refuse(const struct postgres_call *c, const char *sqlstate, const struct err *why, struct err *e)
{
    const struct table_shape *shape = c->refuse_arg;
    const char *words = words_of(why);
    int r;

    if (strcmp(sqlstate, "22P02") == 0 && strstr(words, "TOO_MANY_ROWS"))
        return err_set(e, -E2BIG, "TOO_MANY_ROWS", "The change affects more rows than it may");
    if (strcmp(sqlstate, "22P02") == 0 && strstr(words, "ROW_REFUSED"))
        return query_refuse_row(shape, e);
    r = query_refuse_sqlstate(sqlstate, words, e);
    return r < 0 ? r : refusals_sqlstate(sqlstate, shape->table, why, e);
}

/* --- rows --- */

struct reading {
    struct query_reply reply;
    struct buf rows;
    int64_t n;
    bool is_select;
};

/* Whatever the server sent stays in its place in the answer. */
static int add_row(struct reading *reading, struct slice text, struct err *e)
{
    char *to;
    size_t n;

    buf_add_char(&reading->rows, reading->n++ ? ',' : '[');
    to = buf_reserve(&reading->rows, text.n);
    if (!to)
        return refusals_list_too_large(e);
    n = json_text_compact(text, to);
    if (n == 0 || *to != '{')
        return pg_fault(e, "a row is no JSON object");
    reading->rows.n += n;
    return 0;
}

static int take_row(void *arg, const struct pg_row *row, struct err *e)
{
    struct reading *reading = arg;
    struct slice text = SLICE_LIT("");
    int r = pg_row_int(row, 0, -1, INT64_MAX, &reading->reply.count, e);

    if (r == 0)
        r = pg_row_int(row, 1, 0, INT64_MAX, &reading->reply.n_inserted, e);
    if (r < 0 || pg_row_is_null(row, 3))
        return r;
    r = pg_row_text(row, 3, LIMIT_BACKEND_ROW_BYTES, &text, e);
    return r < 0 ? r : add_row(reading, text, e);
}

static void forget_rows(void *arg)
{
    struct reading *reading = arg;

    buf_reset(&reading->rows);
    reading->n = 0;
}

static void finish(struct reading *reading, struct arena *a, struct query_reply *ret)
{
    buf_add_str(&reading->rows, reading->n ? "]" : "[]");
    ret->rows.n = reading->rows.n;
    ret->rows.p = buf_to_arena(&reading->rows, a);
    ret->n_rows = reading->is_select ? reading->n : reading->reply.count;
    ret->n_inserted = reading->reply.n_inserted;
    ret->count = reading->is_select ? reading->reply.count : -1;
}

static int run(struct postgres *pg, struct query_sql *s, const struct query *q, struct query_reply *ret, struct err *e)
{
    const char **params = arena_array(s->arena, s->n_params + 1, sizeof(*params));
    struct reading reading = { .is_select = q->kind == QUERY_SELECT };
    struct postgres_call c = { .sql = buf_str(&s->text),
                               .many_params = params,
                               .n_params = s->n_params,
                               .table = s->shape->table,
                               .repeat = q->kind == QUERY_SELECT ? POSTGRES_REPEATABLE : POSTGRES_ONCE,
                               .is_one_off = true,
                               .n_columns = REPLY_COLUMNS,
                               .max_rows = LIMIT_QUERY_WRITE_ROWS + 1,
                               .on_row = take_row,
                               .on_begin = forget_rows,
                               .arg = &reading,
                               .refuse = refuse,
                               .refuse_arg = s->shape };
    int r;

    for (size_t i = 0; i < s->n_params; i++)
        params[i] = arena_slicedup(s->arena, s->params[i].text);
    buf_init(&reading.rows, LIMIT_REPLY);
    r = postgres_call(pg, &c, e);
    if (r == 0)
        finish(&reading, s->arena, ret);
    buf_clear(&reading.rows);
    return r;
}

static int run_with(struct postgres *pg, const struct query *q, const struct table_shape *shape, struct arena *a,
                    struct query_reply *ret, struct err *e)
{
    struct query_sql s;
    int r;

    query_sql_init(&s, &postgres_dialect, shape, a);
    r = q->kind == QUERY_SELECT ? postgres_put_select(&s, q, e) : postgres_put_change(&s, q, e);
    if (r == 0)
        r = buf_check(&s.text, e);
    if (r == 0)
        r = run(pg, &s, q, ret, e);
    query_sql_clear(&s);
    return r;
}

/* Whether the table may have changed since its shape was read: neither refusal has changed a row. */
static bool may_be_outdated(const struct table_shape *shape, int r, const struct err *why)
{
    static const char *const codes[] = { "UNKNOWN_COLUMN", "UNKNOWN_TABLE", "BAD_OPERATOR", "BAD_CONFLICT" };

    for (size_t i = 0; r < 0 && shape->has_own_columns && i < ARRAY_SIZE(codes); i++)
        if (strcmp(why->code, codes[i]) == 0)
            return true;
    return false;
}

int postgres_query(struct backend *b, const struct query *q, struct arena *a, struct query_reply *ret, struct err *e)
{
    struct postgres *pg = postgres_of(b);
    struct table_shape shape = { 0 };
    struct err why = { 0 };
    int r = query_check(q, e);

    if (r == 0)
        r = postgres_shape(b, q->table, a, &shape, e);
    if (r < 0)
        return r;
    r = run_with(pg, q, &shape, a, ret, &why);
    if (may_be_outdated(&shape, r, &why) && postgres_shape_now(pg, q->table, a, &shape, NULL) == 0) {
        err_init(&why);
        r = run_with(pg, q, &shape, a, ret, &why);
    }
    if (r < 0 && e)
        *e = why;
    return r;
}
