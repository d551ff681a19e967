#include "backend/embedded/embedded.h"
#include "backend/refusals.h"
#include "base/limits.h"

/* --- insert --- */

struct row_insert {
    struct embedded_table *table;
    const struct backend_new_row *in;
    struct arena *arena;
    struct backend_row row;
};

static int insert_row(struct sql_db *db, void *arg, struct err *e)
{
    static const char with_id[] =
        "INSERT INTO {table} (app_id, user_id, raw_data, id) VALUES (?, ?, ?, ?) RETURNING {columns}";
    static const char without[] =
        "INSERT INTO {table} (app_id, user_id, raw_data) VALUES (?, ?, ?) RETURNING {columns}";
    struct row_insert *c = arg;
    const struct backend_new_row *in = c->in;
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r;

    if (in->id)
        r = sql_query(db, &rows, e, embedded_sql(c->table, with_id), "ssss", in->app_id, in->user_id, in->raw_data,
                      in->id);
    else
        r = sql_query(db, &rows, e, embedded_sql(c->table, without), "sss", in->app_id, in->user_id, in->raw_data);
    if (r == 0)
        r = embedded_read_one(rows, c->table, c->arena, &c->row, e);
    return MIN(r, 0);
}

int embedded_insert(struct backend *b, const struct backend_new_row *in, struct arena *a, struct backend_row *ret,
                    struct err *e)
{
    struct embedded *em = embedded_of(b);
    struct row_insert c = { .in = in, .arena = a };
    int r;

    r = embedded_table_find(em->tables, em->readers, in->table, &c.table, e);
    if (r == 0)
        r = refusals_check_new_row(in, e);
    if (r == 0)
        r = writer_run(em->writer, insert_row, &c, e);
    if (r == 0)
        *ret = c.row;
    return r;
}

/* --- reading --- */

int embedded_read_row(struct sql_db *db, struct embedded_table *t, const char *id, const char *app_id, struct arena *a,
                      struct backend_row *ret, struct err *e)
{
    static const char sql[] = "SELECT {columns} FROM {table} WHERE id = ?1 AND (?2 IS NULL OR app_id = ?2)";
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r = sql_query(db, &rows, e, embedded_sql(t, sql), "ss", id, app_id);

    if (r == 0)
        r = embedded_read_one(rows, t, a, ret, e);
    if (r < 0)
        return r;
    return r > 0 ? 0 : refusals_no_row(e);
}

int embedded_get(struct backend *b, const char *table, const char *id, const char *app_id, struct arena *a,
                 struct backend_row *ret, struct err *e)
{
    struct embedded *em = embedded_of(b);
    struct embedded_table *t;
    int r = embedded_table_find(em->tables, em->readers, table, &t, e);

    return r < 0 ? r : embedded_read_row(readers_get(em->readers), t, id, app_id, a, ret, e);
}

/* A separate statement for each case, so that each case has its index (+ keeps a column from choosing an index). ?1
 * app, ?2 status, ?5 user. */
static const char *list_sql(const struct backend_query *q)
{
    static const char of_all[] =
        "SELECT {columns} FROM {table} ORDER BY created_at DESC, rowid DESC LIMIT ?3 OFFSET ?4";
    static const char of_app[] =
        "SELECT {columns} FROM {table} WHERE app_id = ?1 ORDER BY created_at DESC, rowid DESC LIMIT ?3 OFFSET ?4";
    static const char of_status[] =
        "SELECT {columns} FROM {table} WHERE status = ?2 ORDER BY created_at DESC, rowid DESC LIMIT ?3 OFFSET ?4";
    static const char of_both[] = "SELECT {columns} FROM {table} WHERE status = ?2 AND +app_id = ?1"
                                  " ORDER BY created_at DESC, rowid DESC LIMIT ?3 OFFSET ?4";

    static const char of_user[] = "SELECT {columns} FROM {table} WHERE lower(user_id) = ?5"
                                  " AND (?1 IS NULL OR +app_id = ?1) AND (?2 IS NULL OR +status = ?2)"
                                  " ORDER BY created_at DESC, rowid DESC LIMIT ?3 OFFSET ?4";

    if (q->user_id)
        return of_user;
    if (q->app_id)
        return q->status ? of_both : of_app;
    return q->status ? of_status : of_all;
}

int embedded_list(struct backend *b, const struct backend_query *q, struct arena *a, struct backend_rows *ret,
                  struct err *e)
{
    struct embedded *em = embedded_of(b);
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int64_t limit = q->limit > 0 ? MIN(q->limit, LIMIT_LIST) : LIMIT_LIST_DEFAULT;
    struct backend_rows list;
    struct embedded_table *t;
    int r;

    r = embedded_table_find(em->tables, em->readers, q->table, &t, e);
    if (r == 0)
        r = sql_query(readers_get(em->readers), &rows, e, embedded_sql(t, list_sql(q)), q->user_id ? "ssiis" : "ssii",
                      q->app_id, q->status, limit, (int64_t)MAX(q->offset, 0), q->user_id);
    if (r == 0)
        r = embedded_read_all(rows, t, a, &list, e);
    if (r > 0)
        return refusals_list_too_large(e);
    if (r == 0)
        *ret = list;
    return r;
}

/* --- update --- */

struct row_update {
    struct embedded_table *table;
    const char *id, *app_id;
    const struct backend_patch *patch;
    struct arena *arena;
    struct backend_row row;
};

/* The attempt that a "failed" from outside counts against: the holder's, or the attempt that completed the row. */
#define IS_BLAMED "?6 = 'failed' AND claimed_by IS NOT NULL AND status IN ({leased}, 'completed')"

/* A status from outside ends the lease (the lease's holder gets -ESTALE) unless the status says that the work
 * continues. "failed" is the holder's own failure: its attempt number stays, so that a repeated report of the holder
 * still succeeds. */
static int update_row(struct sql_db *db, void *arg, struct err *e)
{
    static const char sql[] =
        "UPDATE {table} SET raw_data = coalesce(?3, raw_data), result = coalesce(?4, result),"
        " status = coalesce(?6, status),"
        " error_message = CASE WHEN ?5 IS NOT NULL THEN substr(?5, 1, {max_error})"
        "  WHEN ?6 = 'pending' THEN NULL"
        "  WHEN " IS_BLAMED " THEN 'The row was set to failed.' ELSE error_message END,"
        " attempt = attempt + coalesce(?6 NOT IN ({leased}, 'failed') AND status IN ({leased}), 0),"
        " locked_by = CASE WHEN ?6 IS NULL OR ?6 IN ({leased}) THEN locked_by END,"
        " locked_at = CASE WHEN ?6 IS NULL THEN locked_at"
        "  WHEN ?6 IN ({leased}) THEN coalesce(locked_at, {now}) END,"
        " completed_at = CASE ?6 WHEN 'completed' THEN {now} WHEN 'pending' THEN NULL ELSE completed_at END,"
        " attempted_by = CASE WHEN ?6 = 'pending' THEN '[]'"
        "  WHEN " IS_BLAMED " AND NOT EXISTS (SELECT 1 FROM json_each(attempted_by) WHERE value = claimed_by)"
        "  THEN json_insert(attempted_by, '$[#]', claimed_by) ELSE attempted_by END,"
        " retry_count = CASE WHEN ?6 = 'pending' THEN 0 WHEN " IS_BLAMED " THEN retry_count + 1 ELSE retry_count END"
        " WHERE id = ?1 AND (?2 IS NULL OR app_id = ?2)";
    struct row_update *c = arg;
    const struct backend_patch *p = c->patch;
    int r;

    r = sql_exec(db, e, embedded_sql(c->table, sql), "ssssss", c->id, c->app_id, p->raw_data, p->result,
                 p->error_message, p->status);
    if (r < 0)
        return r;
    return embedded_read_row(db, c->table, c->id, c->app_id, c->arena, &c->row,
                             e); /* with the changes of the triggers */
}

int embedded_update(struct backend *b, const struct backend_update_request *request, struct arena *a,
                    struct backend_row *ret, struct err *e)
{
    struct embedded *em = embedded_of(b);
    struct row_update c = { .id = request->id, .app_id = request->app_id, .patch = request->patch, .arena = a };
    int r;

    r = embedded_table_find(em->tables, em->readers, request->table, &c.table, e);
    if (r == 0)
        r = refusals_check_patch(request->patch, e);
    if (r == 0)
        r = writer_run(em->writer, update_row, &c, e);
    if (r == 0)
        *ret = c.row;
    return r;
}

/* --- remove --- */

struct row_remove {
    struct embedded_table *table;
    const char *id, *app_id;
};

static int remove_row(struct sql_db *db, void *arg, struct err *e)
{
    static const char sql[] = "DELETE FROM {table} WHERE id = ?1 AND (?2 IS NULL OR app_id = ?2)";
    struct row_remove *c = arg;
    int r = sql_exec(db, e, embedded_sql(c->table, sql), "ss", c->id, c->app_id);

    if (r < 0)
        return r;
    return sql_changes(db) ? 0 : refusals_no_row(e);
}

int embedded_remove(struct backend *b, const char *table, const char *id, const char *app_id, struct err *e)
{
    struct embedded *em = embedded_of(b);
    struct row_remove c = { .id = id, .app_id = app_id };
    int r = embedded_table_find(em->tables, em->readers, table, &c.table, e);

    return r < 0 ? r : writer_run(em->writer, remove_row, &c, e);
}
