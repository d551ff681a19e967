#include "backend/postgres/postgres.h"
#include "backend/postgres/postgres_statements.h"
#include "backend/refusals.h"
#include "base/limits.h"
#include "base/uuid.h"

#define FREE " SET status = 'pending', locked_by = NULL, locked_at = NULL"

/* --- leases without a living holder --- */

int postgres_release_machine(struct backend *b, const char *table, const char *machine_id, size_t *ret_n, struct err *e)
{
    static const char sql[] = "UPDATE {table}" FREE " WHERE status IN ({leased}) AND locked_by = $1";
    struct postgres *pg = postgres_of(b);
    struct postgres_call c = { .params = { machine_id }, .n_params = 1, .repeat = POSTGRES_REPEATABLE };
    struct postgres_table *t;
    int r = postgres_find_table(pg, table, &t, e);

    if (r < 0)
        return r;
    r = postgres_call_on(pg, t, sql, &c, e);
    if (r == 0 && ret_n)
        *ret_n = (size_t)c.n_changed;
    return r;
}

/* Rows that another machine recovers at this moment are left to it. A list of rows that was lost with its connection
 * is no loss: the sweep finds the rows. */
int postgres_recover_stale(struct backend *b, const char *table, int64_t stale_after_ms, struct arena *a,
                           struct backend_rows *ret, struct err *e)
{
    static const char sql[] = "UPDATE {table}" FREE " WHERE id IN (SELECT id FROM {table} WHERE status IN ({leased})"
                              " AND " POSTGRES_IS_OLD("locked_at", "$1::bigint") " FOR UPDATE SKIP LOCKED)"
                                                                                 " RETURNING {columns}";
    struct postgres *pg = postgres_of(b);
    struct postgres_call c = { .params = { postgres_ms(a, stale_after_ms) }, .n_params = 1 };
    struct postgres_reader reader;
    struct postgres_table *t;
    int r = postgres_find_table(pg, table, &t, e);

    if (r < 0)
        return r;
    postgres_read_into(&c, &reader, postgres_table_name(t), a, SIZE_MAX);
    r = postgres_call_on(pg, t, sql, &c, e);
    if (r == 0)
        *ret = reader.rows;
    return r;
}

/* --- rearm and replay --- */

/* Changes the row; when it cannot be changed, *ret_row has it as it is. 1: changed, 0: not. */
static int change_again(struct postgres *pg, const char *table, const char *id, const char *template, struct arena *a,
                        struct backend_row *ret_row, struct err *e)
{
    struct postgres_call c = { .params = { id }, .n_params = 1 };
    struct postgres_table *t;
    int r = postgres_find_table(pg, table, &t, e);

    if (r == 0 && !uuid_is_valid(slice_of(id)))
        r = refusals_no_row(e);
    if (r < 0)
        return r;
    r = postgres_call_on(pg, t, template, &c, e);
    if (r < 0 || c.n_changed)
        return r < 0 ? r : 1;
    return postgres_read_row(pg, t, id, NULL, a, ret_row, e);
}

#define AGAIN                                                                                                          \
    "UPDATE {table} SET status = 'pending', attempted_by = '{}', retry_count = 0, error_message = NULL,"               \
    " completed_at = NULL"

int postgres_rearm(struct backend *b, const char *table, const char *id, struct err *e)
{
    static const char sql[] = AGAIN ", event_type = 'UPDATE' WHERE id = $1::uuid"
                                    " AND status IN ('completed', 'failed') AND handled_revision < revision";
    AUTO(arena_freep) struct arena *a = arena_new();
    struct backend_row row;
    int r = change_again(postgres_of(b), table, id, sql, a, &row, e);

    return r == 0 ? refusals_not_dirty(e) : MIN(r, 0);
}

int postgres_replay(struct backend *b, const char *table, const char *id, struct err *e)
{
    static const char sql[] = AGAIN " WHERE id = $1::uuid AND status NOT IN ({leased})";
    AUTO(arena_freep) struct arena *a = arena_new();
    struct backend_row row;
    int r = change_again(postgres_of(b), table, id, sql, a, &row, e);

    return r == 0 ? refusals_replay(&row, e) : MIN(r, 0);
}

/* --- claimable rows --- */

/* $1 machine, $2 ms until a lease is stale, $3 machines until quarantine, $4 limit, $5 and $6 the place. Each part
 * walks its index from the newest row, or from the place. */
#define PART(condition, before)                                                                                        \
    "(SELECT id FROM {table} WHERE " condition before " ORDER BY created_at DESC, seq DESC LIMIT $4::bigint)"
#define TRY " AND " POSTGRES_MAY_TRY("$1", "$3::bigint")
#define STALE " AND " POSTGRES_IS_OLD("locked_at", "$2::bigint")
#define CLAIMABLE(columns, before)                                                                                                                            \
    "SELECT " columns " FROM {table} WHERE id IN (" PART("status = 'pending'" TRY, before) " UNION ALL " PART(                                                \
        "status = 'failed'" TRY,                                                                                                                              \
        before) " UNION ALL " PART("status = 'claimed'" STALE TRY,                                                                                            \
                                   before) " UNION ALL " PART("status = 'processing'" STALE TRY,                                                              \
                                                              before) " UNION ALL " PART("handled_revision < revision AND status IN ('completed', 'failed')", \
                                                                                         before) ") ORDER BY created_at DESC, seq DESC LIMIT $4::bigint"
#define BEFORE_PLACE                                                                                                   \
    " AND (created_at, seq) < ($5::timestamptz, coalesce((SELECT p.seq FROM {table} p WHERE p.id = $6::uuid),"         \
    " 9223372036854775807))"

static const char newest_claimable_sql[] = CLAIMABLE("{columns}", "");
static const char older_claimable_sql[] = CLAIMABLE("{columns}", BEFORE_PLACE);
static const char newest_ids_sql[] = CLAIMABLE("id::text", "");
static const char older_ids_sql[] = CLAIMABLE("id::text", BEFORE_PLACE);

struct claimable {
    struct postgres *pg;
    struct postgres_table *table;
    const struct backend_claim *as;
    const struct backend_position *before; /* NULL: from the newest row */
    int64_t limit;
    struct arena *arena;
};

static struct postgres_call call_of(const struct claimable *q)
{
    struct postgres_call c = { .params = { q->as->machine_id, postgres_ms(q->arena, q->as->stale_after_ms),
                                           postgres_number(q->arena, backend_max_machines(q->as)),
                                           postgres_number(q->arena, q->limit) },
                               .n_params = 4,
                               .repeat = POSTGRES_REPEATABLE };

    if (q->before) {
        c.params[4] = q->before->created_at;
        c.params[5] = uuid_is_valid(slice_of(q->before->id)) ? q->before->id : NULL;
        c.n_params = 6;
    }
    return c;
}

static void reverse(struct backend_rows *rows)
{
    for (size_t i = 0; i < rows->n / 2; i++) {
        struct backend_row row = rows->items[i];

        rows->items[i] = rows->items[rows->n - 1 - i];
        rows->items[rows->n - 1 - i] = row;
    }
}

/* Read from the newest row, so that rows beyond LIMIT_REPLY are older than the place of the first one returned. */
static int read_claimable(const struct claimable *q, struct backend_rows *ret, struct err *e)
{
    struct postgres_call c = call_of(q);
    struct postgres_reader reader;
    int r;

    postgres_read_into(&c, &reader, postgres_table_name(q->table), q->arena, (size_t)q->limit);
    r = postgres_call_on(q->pg, q->table, q->before ? older_claimable_sql : newest_claimable_sql, &c, e);
    if (r == 0) {
        *ret = reader.rows;
        reverse(ret);
    }
    return r;
}

/* 1: rows that made the list unreadable are work no more. */
static int set_oversize_aside(const struct claimable *q, struct err *e)
{
    struct postgres_texts ids = { .items = arena_array(q->arena, (size_t)q->limit + 1, sizeof(*ids.items)),
                                  .arena = q->arena,
                                  .max_bytes = UUID_LEN };
    struct postgres_call c = call_of(q);
    size_t n = 0;
    int r;

    postgres_read_texts(&c, &ids, (size_t)q->limit);
    r = postgres_call_on(q->pg, q->table, q->before ? older_ids_sql : newest_ids_sql, &c, e);
    if (r == 0)
        r = postgres_set_oversize_aside(q->pg, q->table, q->as, &ids, q->arena, &n, e);
    return r < 0 ? r : n > 0;
}

int postgres_claimable(struct backend *b, const char *table, const struct backend_claim *as,
                       const struct backend_position *before, int64_t limit, struct arena *a, struct backend_rows *ret,
                       struct err *e)
{
    struct claimable q = { .pg = postgres_of(b), .as = as, .before = before, .limit = MAX(limit, 0), .arena = a };
    struct err why = { 0 };
    int r = postgres_find_table(q.pg, table, &q.table, e);

    if (r < 0)
        return r;
    r = read_claimable(&q, ret, &why);
    if (r == -E2BIG && set_oversize_aside(&q, NULL) == 1)
        return read_claimable(&q, ret, e);
    if (r < 0 && e)
        *e = why;
    return r;
}

/* --- owners of waiting rows --- */

struct owners {
    const char *table;
    struct arena *arena;
    struct backend_owners list;
    size_t n_before; /* of other tables */
};

static int text_or_null(const struct pg_row *row, int i, struct arena *a, const char **ret, struct err *e)
{
    struct slice text = SLICE_LIT("");
    int r = pg_row_is_null(row, i) ? 0 : pg_row_text(row, i, LIMIT_BACKEND_ROW_BYTES, &text, e);

    if (r == 0)
        *ret = pg_row_is_null(row, i) ? NULL : arena_slicedup(a, text);
    return r;
}

static int take_owner(void *arg, const struct pg_row *row, struct err *e)
{
    struct owners *owners = arg;
    struct backend_owner *o = &owners->list.items[owners->list.n];
    int64_t stuck = 0;
    int r;

    *o = (struct backend_owner){ .table = owners->table };
    r = text_or_null(row, 0, owners->arena, &o->app_id, e);
    if (r == 0)
        r = text_or_null(row, 1, owners->arena, &o->status, e);
    if (r == 0)
        r = pg_row_int(row, 2, BACKEND_NOT_STUCK, BACKEND_STUCK_STATUS, &stuck, e);
    if (r == 0)
        r = pg_row_int(row, 3, 0, INT64_MAX, &o->n_waiting, e);
    if (r == 0) {
        o->stuck = (enum backend_stuck)stuck;
        owners->list.n++;
    }
    return r;
}

static void forget_owners(void *arg)
{
    struct owners *owners = arg;

    owners->list.n = owners->n_before;
}

static int add_owners(struct postgres *pg, struct owners *owners, int64_t max_machines, struct err *e)
{
    static const char sql[] =
        "SELECT app_id, status, CASE WHEN status NOT IN ({claimable}) THEN 2"
        " WHEN cardinality(attempted_by) >= $2::bigint THEN 1 ELSE 0 END AS stuck, count(*) FROM {table}"
        " WHERE status = 'pending' OR (status = 'failed' AND cardinality(attempted_by) >= $2::bigint)"
        "  OR (status NOT IN ({statuses}) AND lower(btrim(status)) IN ({statuses}))"
        " GROUP BY 1, 2, 3 ORDER BY 4 DESC LIMIT $1::bigint";
    struct postgres_table *t = postgres_table_of(pg->tables, owners->table);
    struct postgres_call c = {
        .sql = postgres_sql(t, sql),
        .params = { postgres_number(owners->arena, (int64_t)(LIMIT_LIST - owners->list.n)),
                    postgres_number(owners->arena, max_machines) },
        .n_params = 2,
        .table = owners->table,
        .repeat = POSTGRES_REPEATABLE,
        .n_columns = 4,
        .max_rows = LIMIT_LIST - owners->list.n,
        .on_row = take_owner,
        .on_begin = forget_owners,
        .arg = owners,
    };

    owners->n_before = owners->list.n;
    return postgres_call(pg, &c, e);
}

int postgres_owners(struct backend *b, int64_t max_machines, struct arena *a, struct backend_owners *ret, struct err *e)
{
    struct owners owners = { .arena = a,
                             .list = { .items = arena_array(a, LIMIT_LIST, sizeof(struct backend_owner)) } };
    struct postgres *pg = postgres_of(b);
    const char **names = NULL;
    size_t n = 0;
    int r = postgres_table_names(pg, a, &names, &n, e);

    for (size_t i = 0; r == 0 && i < n && owners.list.n < LIMIT_LIST; i++) {
        owners.table = names[i];
        r = add_owners(pg, &owners, max_machines, e);
    }
    if (r == 0)
        *ret = owners.list;
    return r;
}
