#include "backend/embedded/embedded.h"
#include "backend/refusals.h"
#include "base/limits.h"

struct row_recovery {
    struct embedded_table *table;
    const char *id; /* or the machine */
    int64_t stale_ms;
    struct arena *arena;
    struct backend_rows rows;
    int64_t n_changed;
};

static int start(struct embedded *em, const char *table, struct row_recovery *c, struct err *e)
{
    return embedded_table_find(em->tables, em->readers, table, &c->table, e);
}

/* --- leases without a living holder --- */

static int release_all(struct sql_db *db, void *arg, struct err *e)
{
    static const char sql[] = "UPDATE {table} SET status = 'pending', locked_by = NULL, locked_at = NULL"
                              " WHERE status IN ({leased}) AND locked_by = ?1";
    struct row_recovery *c = arg;
    int r = sql_exec(db, e, embedded_sql(c->table, sql), "s", c->id);

    c->n_changed = r < 0 ? 0 : sql_changes(db);
    return r;
}

int embedded_release_machine(struct backend *b, const char *table, const char *machine_id, size_t *ret_n, struct err *e)
{
    struct embedded *em = embedded_of(b);
    struct row_recovery c = { .id = machine_id };
    int r = start(em, table, &c, e);

    if (r == 0)
        r = writer_run(em->writer, release_all, &c, e);
    if (r == 0 && ret_n)
        *ret_n = (size_t)c.n_changed;
    return r;
}

#define IS_STALE "status IN ({leased}) AND " EMBEDDED_IS_STALE("?1")

static int recover_all(struct sql_db *db, void *arg, struct err *e)
{
    static const char sql[] = "UPDATE {table} SET status = 'pending', locked_by = NULL, locked_at = NULL"
                              " WHERE " IS_STALE " RETURNING {columns}";
    struct row_recovery *c = arg;
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r = sql_query(db, &rows, e, embedded_sql(c->table, sql), "i", c->stale_ms);

    if (r == 0)
        r = embedded_read_all(rows, c->table, c->arena, &c->rows, e);
    return MIN(r, 0);
}

/* Most sweeps find nothing: this check needs no transaction of the writer. */
static int is_any_stale(struct embedded *em, const struct row_recovery *c, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r = sql_query(readers_get(em->readers), &rows, e,
                      embedded_sql(c->table, "SELECT 1 FROM {table} WHERE " IS_STALE " LIMIT 1"), "i", c->stale_ms);

    return r < 0 ? r : sql_step(rows, e);
}

int embedded_recover_stale(struct backend *b, const char *table, int64_t stale_after_ms, struct arena *a,
                           struct backend_rows *ret, struct err *e)
{
    struct embedded *em = embedded_of(b);
    struct row_recovery c = { .arena = a, .stale_ms = stale_after_ms };
    int r = start(em, table, &c, e);

    if (r == 0)
        r = is_any_stale(em, &c, e);
    if (r > 0)
        r = writer_run(em->writer, recover_all, &c, e);
    if (r == 0)
        *ret = c.rows;
    return r;
}

/* --- rearm and replay --- */

static int change_again(struct sql_db *db, struct row_recovery *c, const char *sql, struct err *e)
{
    int r = sql_exec(db, e, sql, "s", c->id);

    c->n_changed = r < 0 ? 0 : sql_changes(db);
    return r;
}

static int rearm_row(struct sql_db *db, void *arg, struct err *e)
{
    static const char sql[] =
        "UPDATE {table} SET status = 'pending', event_type = 'UPDATE', attempted_by = '[]', retry_count = 0,"
        " error_message = NULL, completed_at = NULL"
        " WHERE id = ?1 AND status IN ('completed', 'failed') AND handled_revision < revision";
    struct row_recovery *c = arg;
    struct backend_row row;
    int r = change_again(db, c, embedded_sql(c->table, sql), e);

    if (r < 0 || c->n_changed)
        return r;
    r = embedded_read_row(db, c->table, c->id, NULL, c->arena, &row, e);
    return r < 0 ? r : refusals_not_dirty(e);
}

static int replay_row(struct sql_db *db, void *arg, struct err *e)
{
    static const char sql[] = "UPDATE {table} SET status = 'pending', attempted_by = '[]', retry_count = 0,"
                              " error_message = NULL, completed_at = NULL"
                              " WHERE id = ?1 AND status NOT IN ({leased})";
    struct row_recovery *c = arg;
    struct backend_row row;
    int r = change_again(db, c, embedded_sql(c->table, sql), e);

    if (r < 0 || c->n_changed)
        return r;
    r = embedded_read_row(db, c->table, c->id, NULL, c->arena, &row, e);
    return r < 0 ? r : refusals_replay(&row, e);
}

static int run_again(struct backend *b, const char *table, const char *id,
                     int (*fn)(struct sql_db *db, void *arg, struct err *e), struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct embedded *em = embedded_of(b);
    struct row_recovery c = { .id = id, .arena = a };
    int r = start(em, table, &c, e);

    return r < 0 ? r : writer_run(em->writer, fn, &c, e);
}

int embedded_rearm(struct backend *b, const char *table, const char *id, struct err *e)
{
    return run_again(b, table, id, rearm_row, e);
}

int embedded_replay(struct backend *b, const char *table, const char *id, struct err *e)
{
    return run_again(b, table, id, replay_row, e);
}

/* --- claimable rows --- */

/* ?1 machine, ?2 ms until a lease is stale, ?3 machines until quarantine, ?4 limit, ?5 and ?6 the place. Each part
 * walks its index from the newest row, or from the place; the last part walks the index of changed rows, not that of
 * the status (+). */
#define PART(condition, before)                                                                                        \
    "SELECT * FROM (SELECT rowid FROM {table} WHERE " condition before " ORDER BY created_at DESC, rowid DESC LIMIT ?4)"
#define MAY_TRY                                                                                                        \
    " AND (attempted_by = '[]' OR (json_array_length(attempted_by) < ?3"                                               \
    "  AND NOT EXISTS (SELECT 1 FROM json_each(attempted_by) WHERE value = ?1)))"
#define WENT_STALE " AND " EMBEDDED_IS_STALE("?2")
#define CLAIMABLE(before)                                                                                                                          \
    "SELECT {columns} FROM {table} WHERE rowid IN (" PART("status = 'pending'" MAY_TRY, before) " UNION " PART(                                    \
        "status = 'failed'" MAY_TRY,                                                                                                               \
        before) " UNION " PART("status = 'claimed'" WENT_STALE MAY_TRY,                                                                            \
                               before) " UNION " PART("status = 'processing'" WENT_STALE MAY_TRY,                                                  \
                                                      before) " UNION " PART("handled_revision < revision AND +status IN ('completed', 'failed')", \
                                                                             before) ") ORDER BY created_at DESC, rowid DESC LIMIT ?4"
#define BEFORE_PLACE                                                                                                   \
    " AND (created_at, rowid) < (?5, coalesce((SELECT rowid FROM {table} WHERE id = ?6), 9223372036854775807))"

static const char newest_claimable_sql[] = CLAIMABLE("");
static const char older_claimable_sql[] = CLAIMABLE(BEFORE_PLACE);

static int query_claimable(struct sql_db *db, struct embedded_table *t, const struct backend_claim *as,
                           const struct backend_position *before, int64_t limit, struct sql_rows **ret, struct err *e)
{
    if (!before)
        return sql_query(db, ret, e, embedded_sql(t, newest_claimable_sql), "siii", as->machine_id, as->stale_after_ms,
                         backend_max_machines(as), limit);
    return sql_query(db, ret, e, embedded_sql(t, older_claimable_sql), "siiiss", as->machine_id, as->stale_after_ms,
                     backend_max_machines(as), limit, before->created_at, before->id);
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
int embedded_claimable(struct backend *b, const char *table, const struct backend_claim *as,
                       const struct backend_position *before, int64_t limit, struct arena *a, struct backend_rows *ret,
                       struct err *e)
{
    struct embedded *em = embedded_of(b);
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    struct row_recovery c = { .arena = a };
    int r = start(em, table, &c, e);

    if (r == 0)
        r = query_claimable(readers_get(em->readers), c.table, as, before, limit, &rows, e);
    if (r == 0)
        r = embedded_read_all(rows, c.table, a, ret, e);
    if (r == 0)
        reverse(ret);
    return MIN(r, 0);
}

#define ATTEMPTS "iif(json_valid(attempted_by), json_array_length(attempted_by), 1000)"

static int add_owners(struct embedded *em, const char *table, int64_t max_machines, struct arena *a,
                      struct backend_owners *ret, struct err *e)
{
    static const char sql[] = "SELECT app_id, status, CASE WHEN status NOT IN ({claimable}) THEN 2 WHEN " ATTEMPTS
                              " >= ?2 THEN 1 ELSE 0 END AS stuck, count(*) FROM {table}"
                              " WHERE status = 'pending' OR (status = 'failed' AND " ATTEMPTS " >= ?2)"
                              "  OR (status NOT IN ({statuses}) AND lower(trim(status)) IN ({statuses}))"
                              " GROUP BY app_id, status, stuck ORDER BY 4 DESC LIMIT ?1";
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    struct row_recovery c = { 0 };
    int r = start(em, table, &c, e);

    if (r == 0)
        r = sql_query(readers_get(em->readers), &rows, e, embedded_sql(c.table, sql), "ii",
                      (int64_t)(LIMIT_LIST - ret->n), max_machines);
    while (r >= 0 && (r = sql_step(rows, e)) > 0)
        ret->items[ret->n++] = (struct backend_owner){ .table = table,
                                                       .app_id = sql_text(rows, a, 0),
                                                       .status = sql_text(rows, a, 1),
                                                       .stuck = (enum backend_stuck)sql_int(rows, 2),
                                                       .n_waiting = sql_int(rows, 3) };
    return r;
}

int embedded_owners(struct backend *b, int64_t max_machines, struct arena *a, struct backend_owners *ret, struct err *e)
{
    struct embedded *em = embedded_of(b);
    struct backend_owners owners = { .items = arena_array(a, LIMIT_LIST, sizeof(struct backend_owner)) };
    const char **names = NULL;
    size_t n = 0;
    int r = embedded_tables_list(readers_get(em->readers), a, &names, &n, e);

    for (size_t i = 0; r == 0 && i < n && owners.n < LIMIT_LIST; i++)
        r = add_owners(em, names[i], max_machines, a, &owners, e);
    if (r == 0)
        *ret = owners;
    return r;
}
