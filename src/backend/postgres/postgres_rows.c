#include "backend/postgres/postgres.h"
#include "backend/refusals.h"
#include "base/limits.h"
#include "base/uuid.h"

#include <string.h>

/* --- tables --- */

static int count_row(void *arg, const struct pg_row *row, struct err *e)
{
    ++*(size_t *)arg;
    return 0;
}

static void forget_count(void *arg)
{
    *(size_t *)arg = 0;
}

int postgres_find_table(struct postgres *pg, const char *name, struct postgres_table **ret, struct err *e)
{
    struct postgres_table *any = postgres_table_activities(pg->tables);
    size_t n = 0;
    struct postgres_call c = { .sql = postgres_sql(any, "SELECT 1 FROM {tables} WHERE name = $1"),
                               .params = { name },
                               .n_params = 1,
                               .repeat = POSTGRES_REPEATABLE,
                               .n_columns = 1,
                               .max_rows = 1,
                               .on_row = count_row,
                               .on_begin = forget_count,
                               .arg = &n };
    int r = 0;

    if (!postgres_table_is_made(pg->tables, name)) {
        r = postgres_call(pg, &c, e);
        if (r == 0 && n == 0)
            r = refusals_no_table(name, e);
        if (r < 0)
            return r;
        postgres_table_set_made(pg->tables, postgres_table_of(pg->tables, name), true);
    }
    *ret = postgres_table_of(pg->tables, name);
    return 0;
}

int postgres_read_names(struct postgres *pg, const char *sql, const char *table, struct postgres_texts *names,
                        struct err *e)
{
    struct postgres_call c = {
        .sql = postgres_sql(postgres_table_activities(pg->tables), sql),
        .table = table,
        .repeat = POSTGRES_REPEATABLE,
    };

    names->max_bytes = LIMIT_TABLE_NAME;
    postgres_read_texts(&c, names, LIMIT_ITEMS_DEFAULT);
    return postgres_call(pg, &c, e);
}

int postgres_table_names(struct postgres *pg, struct arena *a, const char ***ret, size_t *ret_n, struct err *e)
{
    struct postgres_texts names = { .arena = a, .items = arena_array(a, LIMIT_ITEMS_DEFAULT, sizeof(*names.items)) };
    int r =
        postgres_read_names(pg, "SELECT name FROM {tables} ORDER BY name COLLATE \"C\" LIMIT 10000", NULL, &names, e);

    if (r == 0) {
        *ret = names.items;
        *ret_n = names.n;
    }
    return r;
}

/* --- one row --- */

int postgres_insert(struct backend *b, const struct backend_new_row *in, struct arena *a, struct backend_row *ret,
                    struct err *e)
{
    static const char sql[] = "INSERT INTO {table} (id, app_id, user_id, raw_data)"
                              " VALUES (coalesce($1::uuid, gen_random_uuid()), $2, $3::uuid, $4::jsonb)"
                              " RETURNING {columns}";
    struct postgres *pg = postgres_of(b);
    struct postgres_call c = { .params = { in->id, in->app_id, in->user_id, in->raw_data }, .n_params = 4 };
    struct postgres_reader reader;
    struct postgres_table *t;
    int r = postgres_find_table(pg, in->table, &t, e);

    if (r == 0)
        r = refusals_check_new_row(in, e);
    if (r == 0 && in->user_id && !uuid_is_valid(slice_of(in->user_id)))
        r = err_add_field(e, "user_id", "must be a UUID");
    if (r < 0)
        return r;
    postgres_read_into(&c, &reader, postgres_table_name(t), a, 1);
    r = postgres_call_on(pg, t, sql, &c, e);
    if (r == 0 && reader.rows.n == 0) /* a trigger of the app has taken the row */
        r = err_set(e, -EIO, "STORE_REFUSED", "The database inserted no row into %.100s", c.table);
    if (r == 0)
        *ret = reader.rows.items[0];
    return r;
}

int postgres_read_row(struct postgres *pg, struct postgres_table *t, const char *id, const char *app_id,
                      struct arena *a, struct backend_row *ret, struct err *e)
{
    static const char sql[] = "SELECT {columns} FROM {table} WHERE id = $1::uuid AND ($2 IS NULL OR app_id = $2)";
    struct postgres_call c = { .sql = postgres_sql(t, sql),
                               .params = { id, app_id },
                               .n_params = 2,
                               .table = postgres_table_name(t),
                               .repeat = POSTGRES_REPEATABLE };
    struct postgres_reader reader;
    int r;

    if (!uuid_is_valid(slice_of(id)))
        return refusals_no_row(e);
    postgres_read_into(&c, &reader, c.table, a, 1);
    r = postgres_call(pg, &c, e);
    if (r == 0 && reader.rows.n == 0)
        r = refusals_no_row(e);
    if (r == 0)
        *ret = reader.rows.items[0];
    return r;
}

int postgres_get(struct backend *b, const char *table, const char *id, const char *app_id, struct arena *a,
                 struct backend_row *ret, struct err *e)
{
    struct postgres *pg = postgres_of(b);
    struct postgres_table *t;
    int r = postgres_find_table(pg, table, &t, e);

    return r < 0 ? r : postgres_read_row(pg, t, id, app_id, a, ret, e);
}

/* --- lists --- */

/* A separate statement for each case, so that each case has its index. $1 app, $2 status, $5 user. */
#define LIST(columns, where)                                                                                           \
    "SELECT " columns " FROM {table}" where " ORDER BY created_at DESC, seq DESC LIMIT $3::bigint OFFSET $4::bigint"
#define LISTS(columns)                                                                                                 \
    {                                                                                                                  \
        .of_all = LIST(columns, ""), .of_app = LIST(columns, " WHERE app_id = $1"),                                    \
        .of_status = LIST(columns, " WHERE status = $2"),                                                              \
        .of_both = LIST(columns, " WHERE status = $2 AND app_id = $1"),                                                \
        .of_user = LIST(columns, " WHERE user_id = $5::uuid AND ($1::text IS NULL OR app_id = $1)"                     \
                                 " AND ($2::text IS NULL OR status = $2)"),                                            \
    }

struct lists {
    const char *of_all, *of_app, *of_status, *of_both, *of_user;
};
static const struct lists whole_lists = LISTS("{columns}"), id_lists = LISTS("id::text"),
                          bounded_lists = LISTS("{bounded}");

static const char *list_sql(const struct lists *of, const struct backend_query *q)
{
    if (q->user_id)
        return of->of_user;
    if (q->app_id)
        return q->status ? of->of_both : of->of_app;
    return q->status ? of->of_status : of->of_all;
}

struct list {
    struct postgres *pg;
    struct postgres_table *table;
    const struct backend_query *query;
    struct arena *arena;
    size_t limit;
};

/* oversize NULL: every row is read whole. */
static struct postgres_call list_call(const struct list *l, const struct postgres_texts *oversize)
{
    const struct backend_query *q = l->query;
    struct arena *a = l->arena;

    return (struct postgres_call){ .params = { q->app_id, q->status, postgres_number(a, (int64_t)l->limit),
                                               postgres_number(a, MAX(q->offset, 0)), q->user_id,
                                               oversize ? postgres_array(a, oversize->items, oversize->n) : NULL },
                                   .n_params = oversize ? 6 : 5,
                                   .repeat = POSTGRES_REPEATABLE };
}

static int read_list(const struct list *l, const struct postgres_texts *oversize, struct backend_rows *ret,
                     struct err *e)
{
    const struct lists *of = oversize ? &bounded_lists : &whole_lists;
    struct postgres_call c = list_call(l, oversize);
    struct postgres_reader reader;
    int r;

    postgres_read_into(&c, &reader, postgres_table_name(l->table), l->arena, l->limit);
    r = postgres_call_on(l->pg, l->table, list_sql(of, l->query), &c, e);
    if (r == 0 && reader.is_full)
        r = refusals_list_too_large(e);
    if (r == 0)
        *ret = reader.rows;
    return r;
}

/* Which rows made the list unreadable. */
static int find_oversize(const struct list *l, struct postgres_texts *ret, struct err *e)
{
    struct postgres_texts ids = { .items = arena_array(l->arena, l->limit + 1, sizeof(*ids.items)),
                                  .arena = l->arena,
                                  .max_bytes = UUID_LEN };
    struct postgres_call c = list_call(l, NULL);
    int r;

    postgres_read_texts(&c, &ids, l->limit);
    r = postgres_call_on(l->pg, l->table, list_sql(&id_lists, l->query), &c, e);
    return r < 0 ? r : postgres_find_oversize(l->pg, l->table, &ids, ret, e);
}

int postgres_list(struct backend *b, const struct backend_query *q, struct arena *a, struct backend_rows *ret,
                  struct err *e)
{
    struct list l = { .pg = postgres_of(b),
                      .query = q,
                      .arena = a,
                      .limit = (size_t)(q->limit > 0 ? MIN(q->limit, LIMIT_LIST) : LIMIT_LIST_DEFAULT) };
    struct postgres_texts oversize;
    struct err why = { 0 };
    int r = postgres_find_table(l.pg, q->table, &l.table, e);

    if (r < 0)
        return r;
    r = read_list(&l, NULL, ret, &why);
    if (r == -E2BIG && find_oversize(&l, &oversize, NULL) == 0 && oversize.n > 0)
        return read_list(&l, &oversize, ret, e);
    if (r < 0 && e)
        *e = why;
    return r;
}

/* --- update and remove --- */

/* The attempt that a "failed" from outside counts against: the holder's, or the attempt that completed the row. */
#define IS_BLAMED "$6 = 'failed' AND claimed_by IS NOT NULL AND status IN ({leased}, 'completed')"

/* A status from outside ends the lease (the lease's holder gets -ESTALE) unless the status says that the work
 * continues. "failed" is the holder's own failure: its attempt number stays, so that a repeated report of the holder
 * still succeeds. Repeating the statement after its success would count a failure twice. */
static const char update_sql[] =
    "UPDATE {table} SET raw_data = coalesce($3::jsonb, raw_data), result = coalesce($4::jsonb, result),"
    " status = coalesce($6, status),"
    " error_message = CASE WHEN $5 IS NOT NULL THEN left($5, {max_error})"
    "  WHEN $6 = 'pending' THEN NULL"
    "  WHEN " IS_BLAMED " THEN 'The row was set to failed.' ELSE error_message END,"
    " attempt = attempt + CASE WHEN $6 NOT IN ({leased}, 'failed') AND status IN ({leased}) THEN 1 ELSE 0 END,"
    " locked_by = CASE WHEN $6 IS NULL OR $6 IN ({leased}) THEN locked_by END,"
    " locked_at = CASE WHEN $6 IS NULL THEN locked_at"
    "  WHEN $6 IN ({leased}) THEN coalesce(locked_at, {now}) END,"
    " completed_at = CASE $6 WHEN 'completed' THEN {now} WHEN 'pending' THEN NULL ELSE completed_at END,"
    " attempted_by = CASE WHEN $6 = 'pending' THEN '{}'"
    "  WHEN " IS_BLAMED " AND NOT coalesce(claimed_by = ANY (attempted_by), false) THEN attempted_by || claimed_by"
    "  ELSE attempted_by END,"
    " retry_count = CASE WHEN $6 = 'pending' THEN 0 WHEN " IS_BLAMED " THEN retry_count + 1 ELSE retry_count END"
    " WHERE id = $1::uuid AND ($2 IS NULL OR app_id = $2) RETURNING {columns}";

int postgres_update(struct backend *b, const struct backend_update_request *request, struct arena *a,
                    struct backend_row *ret, struct err *e)
{
    const struct backend_patch *p = request->patch;
    struct postgres *pg = postgres_of(b);
    struct postgres_call c = {
        .params = { request->id, request->app_id, p->raw_data, p->result, p->error_message, p->status }, .n_params = 6
    };
    struct postgres_reader reader;
    struct postgres_table *t;
    int r = postgres_find_table(pg, request->table, &t, e);

    if (r == 0)
        r = refusals_check_patch(p, e);
    if (r == 0 && !uuid_is_valid(slice_of(request->id)))
        r = refusals_no_row(e);
    if (r < 0)
        return r;
    postgres_read_into(&c, &reader, postgres_table_name(t), a, 1);
    r = postgres_call_on(pg, t, update_sql, &c, e);
    if (r == 0 && reader.rows.n == 0)
        r = refusals_no_row(e);
    if (r == 0)
        *ret = reader.rows.items[0];
    return r;
}

int postgres_remove(struct backend *b, const char *table, const char *id, const char *app_id, struct err *e)
{
    static const char sql[] = "DELETE FROM {table} WHERE id = $1::uuid AND ($2 IS NULL OR app_id = $2)";
    struct postgres *pg = postgres_of(b);
    struct postgres_call c = { .params = { id, app_id }, .n_params = 2 };
    struct postgres_table *t;
    int r = postgres_find_table(pg, table, &t, e);

    if (r == 0 && !uuid_is_valid(slice_of(id)))
        r = refusals_no_row(e);
    if (r < 0)
        return r;
    r = postgres_call_on(pg, t, sql, &c, e);
    return r < 0 || c.n_changed ? r : refusals_no_row(e);
}
