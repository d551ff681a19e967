/* Rows that no service can read. The checks of a table bound raw_data, result and error_message; whoever may write a
 * row may still put more into another column than a row may have (LIMIT_BACKEND_ROW_BYTES), or numbers that are short
 * as they are stored and have 131,072 digits as they are printed. Every list with such a row fails, so the row is no
 * work any more. */
#include "backend/postgres/postgres.h"
#include "backend/postgres/postgres_statements.h"
#include "base/limits.h"

#include <stdio.h>

#define SET_ASIDE_WHY "One of the row's columns is too large to be read; make it smaller and replay the row."

struct measure {
    int64_t n_bytes;
    bool is_there;
};

static int take_size(void *arg, const struct pg_row *row, struct err *e)
{
    struct measure *m = arg;

    m->is_there = true;
    return pg_row_int(row, 0, 0, INT64_MAX, &m->n_bytes, e);
}

static void forget_size(void *arg)
{
    *(struct measure *)arg = (struct measure){ 0 };
}

/* The server refuses to print what has more than 1 GiB. */
static int is_oversize(struct postgres *pg, struct postgres_table *t, const char *id, bool *ret, struct err *e)
{
    static const char sql[] = "SELECT (coalesce(octet_length(old_data::text), 0) + octet_length(attempted_by::text)"
                              " + octet_length(concat(app_id, status, locked_by, event_type, source_table)))::bigint"
                              " FROM {table} WHERE id = $1::uuid";
    struct measure m = { 0 };
    struct postgres_call c = { .params = { id },
                               .n_params = 1,
                               .repeat = POSTGRES_REPEATABLE,
                               .n_columns = 1,
                               .max_rows = 1,
                               .on_row = take_size,
                               .on_begin = forget_size,
                               .arg = &m };
    struct err why = { 0 };
    int r = postgres_call_on(pg, t, sql, &c, &why);

    *ret = r == -E2BIG || (r == 0 && m.is_there && m.n_bytes > LIMIT_BACKEND_REST_BYTES);
    if (r < 0 && !*ret && e)
        *e = why;
    return *ret ? 0 : r;
}

/* As if so many machines had failed the row: it is shown as stuck, and a person can replay it. */
static int set_aside(struct postgres *pg, struct postgres_table *t, const struct backend_claim *as, const char *id,
                     struct arena *a, struct err *e)
{
    static const char sql[] =
        "UPDATE {table} SET status = 'failed', locked_by = NULL, locked_at = NULL, handled_revision = revision,"
        " attempted_by = array_fill('-'::text, ARRAY[$2::int]), error_message = $3"
        " WHERE id = $1::uuid AND (status NOT IN ({leased}) OR " POSTGRES_IS_OLD("locked_at", "$4::bigint") ")";
    struct postgres_call c = { .params = { id, postgres_number(a, backend_max_machines(as)), SET_ASIDE_WHY,
                                           postgres_ms(a, as->stale_after_ms) },
                               .n_params = 4,
                               .repeat = POSTGRES_REPEATABLE };

    return postgres_call_on(pg, t, sql, &c, e);
}

int postgres_set_oversize_aside(struct postgres *pg, struct postgres_table *t, const struct backend_claim *as,
                                const struct postgres_ids *ids, struct arena *a, size_t *ret_n, struct err *e)
{
    bool is_too_large = false;
    int r = 0;

    *ret_n = 0;
    for (size_t i = 0; r == 0 && i < ids->n && *ret_n < LIMIT_BACKEND_SET_ASIDE; i++) {
        r = is_oversize(pg, t, ids->items[i], &is_too_large, e);
        if (r == 0 && is_too_large)
            r = set_aside(pg, t, as, ids->items[i], a, e);
        *ret_n += r == 0 && is_too_large;
    }
    return r;
}
