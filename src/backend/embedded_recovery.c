#include "backend/embedded.h"
#include "base/limits.h"

struct row_recovery {
    struct embedded_table *table;
    const char *id;                     /* or the machine */
    int64_t stale_ms;
    struct arena *arena;
    struct backend_rows rows;
    int64_t n_changed;
};

static int start(struct embedded *em, const char *table, struct row_recovery *c, struct err *e)
{
    return embedded_table_find(em->tables, em->readers, table, &c->table, e);
}

/* --- leases nobody looks after any more --- */

static int release_all(struct sql_db *db, void *arg, struct err *e)
{
    static const char sql[] = "UPDATE {table} SET status = 'pending', locked_by = NULL, locked_at = NULL"
                              " WHERE status IN ('claimed', 'processing') AND locked_by = ?1";
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

#define IS_STALE                                                                                                       \
    "status IN ('claimed', 'processing') AND " EMBEDDED_IS_STALE("?1")

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

/* Most sweeps find nothing: that is seen without a transaction of the writer. */
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

/* --- once more --- */

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
    return r < 0 ? r : err_set(e, -ESTALE, "NOT_DIRTY", "The row holds nothing new to work on");
}

static int replay_row(struct sql_db *db, void *arg, struct err *e)
{
    static const char sql[] = "UPDATE {table} SET status = 'pending', attempted_by = '[]', retry_count = 0,"
                              " error_message = NULL, completed_at = NULL"
                              " WHERE id = ?1 AND status NOT IN ('claimed', 'processing')";
    struct row_recovery *c = arg;
    struct backend_row row;
    int r = change_again(db, c, embedded_sql(c->table, sql), e);

    if (r < 0 || c->n_changed)
        return r;
    r = embedded_read_row(db, c->table, c->id, NULL, c->arena, &row, e);
    if (r < 0)
        return r;
    err_add_extra(e, "locked_by", row.locked_by ? row.locked_by : "");
    return err_set(e, -EBUSY, "ALREADY_LOCKED", "The row is being worked on by %s",
                   row.locked_by ? row.locked_by : "nobody known");
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

/* --- what could be claimed --- */

/* ?1 machine, ?2 ms until a lease is stale, ?3 machines until quarantine, ?4 limit. Each part walks its index from the newest row;
 * the last one that of changed rows, not that of the status (+). */
#define NEWEST(condition)                                                                                              \
    "SELECT * FROM (SELECT rowid FROM {table} WHERE " condition " ORDER BY created_at DESC, rowid DESC LIMIT ?4)"
#define MAY_TRY                                                                                                        \
    " AND (attempted_by = '[]' OR (json_array_length(attempted_by) < ?3"                                               \
    "  AND NOT EXISTS (SELECT 1 FROM json_each(attempted_by) WHERE value = ?1)))"
#define WENT_STALE " AND " EMBEDDED_IS_STALE("?2")

static const char claimable_sql[] =
    "SELECT {columns} FROM (SELECT {columns}, rowid AS place FROM {table} WHERE rowid IN ("
    NEWEST("status = 'pending'" MAY_TRY) " UNION "
    NEWEST("status = 'failed'" MAY_TRY) " UNION "
    NEWEST("status = 'claimed'" WENT_STALE MAY_TRY) " UNION "
    NEWEST("status = 'processing'" WENT_STALE MAY_TRY) " UNION "
    NEWEST("handled_revision < revision AND +status IN ('completed', 'failed')")
    ") ORDER BY created_at DESC, rowid DESC LIMIT ?4) ORDER BY created_at, place";

int embedded_claimable(struct backend *b, const char *table, const struct backend_claim *as, int64_t limit,
                       struct arena *a, struct backend_rows *ret, struct err *e)
{
    struct embedded *em = embedded_of(b);
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int64_t max_machines = as->max_machines > 0 ? as->max_machines : LIMIT_ATTEMPT_MACHINES;
    struct row_recovery c = { .arena = a };
    int r = start(em, table, &c, e);

    if (r == 0)
        r = sql_query(readers_get(em->readers), &rows, e, embedded_sql(c.table, claimable_sql), "siii", as->machine_id,
                      as->stale_after_ms, max_machines, limit);
    if (r == 0)
        r = embedded_read_all(rows, c.table, a, ret, e);
    return MIN(r, 0);
}

int embedded_owners(struct backend *b, const char *table, struct arena *a, struct backend_owners *ret, struct err *e)
{
    static const char sql[] = "SELECT app_id, count(*) FROM {table} WHERE status = 'pending' GROUP BY app_id ORDER BY 2 DESC LIMIT ?";
    struct embedded *em = embedded_of(b);
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    struct backend_owners owners = { .items = arena_array(a, LIMIT_LIST, sizeof(struct backend_owner)) };
    struct row_recovery c = { 0 };
    int r = start(em, table, &c, e);

    if (r == 0)
        r = sql_query(readers_get(em->readers), &rows, e, embedded_sql(c.table, sql), "i", (int64_t)LIMIT_LIST);
    while (r >= 0 && (r = sql_step(rows, e)) > 0)
        owners.items[owners.n++] = (struct backend_owner){ sql_text(rows, a, 0), sql_int(rows, 1) };
    if (r == 0)
        *ret = owners;
    return r;
}
