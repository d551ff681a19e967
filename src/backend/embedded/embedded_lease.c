#include "backend/embedded/embedded.h"
#include "backend/refusals.h"
#include "backend/status.h"

/* --- claim --- */

struct row_claim {
    struct embedded_table *table;
    const struct backend_claim *claim;
    struct arena *arena;
    struct backend_row row;
};

static int claim_row(struct sql_db *db, void *arg, struct err *e)
{
    static const char sql[] =
        "UPDATE {table} SET status = 'claimed', locked_by = ?2, claimed_by = ?2, " EMBEDDED_LEASE ","
        " completed_at = NULL, attempt = attempt + 1, handled_revision = revision"
        " WHERE id = ?1 AND (status IN ({claimable}) OR (status IN ({leased})"
        "  AND " EMBEDDED_IS_STALE("?3") "))"
                                         " AND (attempted_by = '[]' OR (json_array_length(attempted_by) < ?4"
                                         "  AND NOT EXISTS (SELECT 1 FROM json_each(attempted_by) WHERE value = ?2)))"
                                         " RETURNING {columns}";
    struct row_claim *c = arg;
    const struct backend_claim *in = c->claim;
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r;

    r = sql_query(db, &rows, e, embedded_sql(c->table, sql), "ssii", in->row_id, in->machine_id, in->stale_after_ms,
                  backend_max_machines(in));
    if (r == 0)
        r = embedded_read_one(rows, c->table, c->arena, &c->row, e);
    if (r != 0)
        return MIN(r, 0);
    r = embedded_read_row(db, c->table, in->row_id, NULL, c->arena, &c->row, e);
    return r < 0 ? r : refusals_claim(c->claim, &c->row, e);
}

int embedded_claim(struct backend *b, const struct backend_claim *in, struct arena *a, struct backend_row *ret,
                   struct backend_lease *ret_lease, struct err *e)
{
    struct embedded *em = embedded_of(b);
    struct row_claim c = { .claim = in, .arena = a };
    int r;

    r = embedded_table_find(em->tables, em->readers, in->table, &c.table, e);
    if (r == 0)
        r = writer_run(em->writer, claim_row, &c, e);
    if (r < 0)
        return r;
    *ret = c.row;
    *ret_lease = (struct backend_lease){ .table = c.row.table,
                                         .row_id = c.row.id,
                                         .machine_id = arena_strdup(a, in->machine_id),
                                         .attempt = c.row.attempt };
    return 0;
}

/* --- calls of the holder --- */

/* ?1 row, ?2 machine, ?3 attempt */
#define IS_HELD " WHERE id = ?1 AND locked_by = ?2 AND (attempt = ?3 OR ?3 = -1) AND status IN ({leased})"

static const char heartbeat_sql[] = "UPDATE {table} SET " EMBEDDED_LEASE IS_HELD;

static const char release_sql[] = "UPDATE {table} SET status = 'pending', locked_by = NULL, locked_at = NULL" IS_HELD;

static const char complete_sql[] =
    "UPDATE {table} SET status = 'completed', result = ?4, completed_at = {now}, error_message = NULL,"
    " locked_by = NULL, locked_at = NULL" IS_HELD;

static const char fail_sql[] =
    "UPDATE {table} SET status = 'failed', error_message = substr(?4, 1, {max_error}), locked_by = NULL, locked_at = NULL,"
    " retry_count = retry_count + 1,"
    " attempted_by = CASE WHEN EXISTS (SELECT 1 FROM json_each(attempted_by) WHERE value = ?2)"
    "  THEN attempted_by ELSE json_insert(attempted_by, '$[#]', ?2) END" IS_HELD;

struct row_change {
    struct embedded_table *table;
    const struct backend_lease *lease;
    const char *template;
    const char *binds;      /* of the first three or all four parameters */
    const char *value;      /* ?4 */
    const char *end_status; /* the status that a repeated call finds; NULL: a repeated call is refused */
};

static int check_repeat(struct sql_db *db, const struct row_change *c, struct err *e)
{
    static const char sql[] =
        "SELECT 1 FROM {table} WHERE id = ?1 AND claimed_by = ?2 AND (attempt = ?3 OR ?3 = -1) AND status = ?4";
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r = 0;

    if (c->end_status)
        r = sql_query(db, &rows, e, embedded_sql(c->table, sql), "ssis", c->lease->row_id, c->lease->machine_id,
                      c->lease->attempt, c->end_status);
    if (r == 0 && c->end_status)
        r = sql_step(rows, e);
    if (r != 0)
        return MIN(r, 0);
    return refusals_lease_lost(c->lease, e);
}

static int change_held(struct sql_db *db, void *arg, struct err *e)
{
    const struct row_change *c = arg;
    const struct backend_lease *l = c->lease;
    int r =
        sql_exec(db, e, embedded_sql(c->table, c->template), c->binds, l->row_id, l->machine_id, l->attempt, c->value);

    if (r < 0)
        return r;
    return sql_changes(db) ? 0 : check_repeat(db, c, e);
}

static int run_change(struct backend *b, struct row_change *c, struct err *e)
{
    struct embedded *em = embedded_of(b);
    int r = embedded_table_find(em->tables, em->readers, c->lease->table, &c->table, e);

    return r < 0 ? r : writer_run(em->writer, change_held, c, e);
}

int embedded_heartbeat(struct backend *b, const struct backend_lease *l, struct err *e)
{
    struct row_change c = { .lease = l, .template = heartbeat_sql, .binds = "ssi" };

    return run_change(b, &c, e);
}

int embedded_release(struct backend *b, const struct backend_lease *l, struct err *e)
{
    struct row_change c = { .lease = l, .template = release_sql, .binds = "ssi" };

    return run_change(b, &c, e);
}

int embedded_complete(struct backend *b, const struct backend_lease *l, const char *result_json, struct err *e)
{
    struct row_change c = {
        .lease = l, .template = complete_sql, .binds = "ssis", .value = result_json, .end_status = STATUS_COMPLETED
    };
    int r = refusals_check_result(result_json, e);

    return r < 0 ? r : run_change(b, &c, e);
}

int embedded_fail(struct backend *b, const struct backend_lease *l, const char *message, struct err *e)
{
    struct row_change c = {
        .lease = l, .template = fail_sql, .binds = "ssis", .value = message, .end_status = STATUS_FAILED
    };

    return run_change(b, &c, e);
}
