/* Rows that no service can read. The checks of a table bound raw_data, result and error_message; whoever may write a
 * row may still put more into another column than a row may have (LIMIT_BACKEND_ROW_BYTES), or numbers that are short
 * as they are stored and have 131,072 digits as they are printed. Every list with such a row fails, so the row is no
 * work any more. */
#include "backend/postgres/postgres.h"
#include "backend/postgres/postgres_statements.h"
#include "base/limits.h"
#include "base/uuid.h"

/* Adds the row's id when the row is too large. The server refuses to print what has more than 1 GiB, which takes it
 * seconds: a row that is refused is asked for once. */
static int measure(struct postgres *pg, struct postgres_table *t, const char *id, struct postgres_texts *found,
                   struct err *e)
{
    static const char sql[] = "SELECT id::text FROM {table} WHERE id = $1::uuid"
                              " AND coalesce(octet_length(old_data::text), 0) + octet_length(attempted_by::text)"
                              " + octet_length(concat(app_id, status, locked_by, event_type, source_table))"
                              " > $2::bigint";
    struct postgres_call c = { .params = { id, postgres_number(found->arena, LIMIT_BACKEND_REST_BYTES) },
                               .n_params = 2,
                               .repeat = POSTGRES_REPEATABLE };
    struct err why = { 0 };
    int r;

    found->n_before = found->n;
    postgres_read_texts(&c, found, 1);
    r = postgres_call_on(pg, t, sql, &c, &why);
    if (r == -E2BIG)
        found->items[found->n++] = id;
    else if (r < 0 && e)
        *e = why;
    return r == -E2BIG ? 0 : r;
}

int postgres_find_oversize(struct postgres *pg, struct postgres_table *t, const struct postgres_texts *ids,
                           struct postgres_texts *ret, struct err *e)
{
    int r = 0;

    *ret = (struct postgres_texts){ .items = arena_array(ids->arena, ids->n + 1, sizeof(*ret->items)),
                                    .arena = ids->arena,
                                    .max_bytes = UUID_LEN };
    for (size_t i = 0; r == 0 && i < ids->n && ret->n < LIMIT_BACKEND_SET_ASIDE; i++)
        r = measure(pg, t, ids->items[i], ret, e);
    return r;
}

/* As if so many machines had failed the row: it is shown as stuck, and a person can replay it. */
static int set_aside(struct postgres *pg, struct postgres_table *t, const struct backend_claim *as, const char *id,
                     struct arena *a, struct err *e)
{
    static const char sql[] =
        "UPDATE {table} SET status = 'failed', locked_by = NULL, locked_at = NULL, handled_revision = revision,"
        " attempted_by = array_fill('-'::text, ARRAY[$2::int]), error_message = $3"
        " WHERE id = $1::uuid AND (status NOT IN ({leased}) OR " POSTGRES_IS_OLD("locked_at", "$4::bigint") ")";
    struct postgres_call c = { .params = { id, postgres_number(a, backend_max_machines(as)), POSTGRES_OVERSIZE_WHY,
                                           postgres_ms(a, as->stale_after_ms) },
                               .n_params = 4,
                               .repeat = POSTGRES_REPEATABLE };

    return postgres_call_on(pg, t, sql, &c, e);
}

int postgres_set_oversize_aside(struct postgres *pg, struct postgres_table *t, const struct backend_claim *as,
                                const struct postgres_texts *ids, struct arena *a, size_t *ret_n, struct err *e)
{
    struct postgres_texts found;
    int r = postgres_find_oversize(pg, t, ids, &found, e);

    *ret_n = 0;
    for (size_t i = 0; r == 0 && i < found.n; i++) {
        r = set_aside(pg, t, as, found.items[i], a, e);
        *ret_n += r == 0;
    }
    return r;
}
