#include "base/limits.h"
#include "store/vectors/vectors_db_private.h"

static int mismatch(const struct vectors_db_change *c, struct err *e)
{
    return err_set(e, -EINVAL, "DIMENSION_MISMATCH",
                   "The namespace %s holds vectors of %lld dimensions; these have %zu.", c->space,
                   (long long)c->found.n_dimensions, c->n_dimensions);
}

/* ret_next may be NULL. */
static int find_space(struct sql_db *db, struct vectors_db_change *c, int64_t *ret_next, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r;

    r = sql_query(
        db, &rows, e,
        "SELECT id, n_dimensions, n_rows, next_row, coalesce(text_row, -1), n_bytes FROM spaces WHERE name = ?", "s",
        c->space);
    if (r == 0)
        r = sql_step(rows, e);
    if (r <= 0)
        return r;
    c->found = (struct vectors_db_space){ sql_int(rows, 0), sql_int(rows, 1), sql_int(rows, 2), sql_int(rows, 5) };
    c->text_row = sql_int(rows, 4);
    if (ret_next)
        *ret_next = sql_int(rows, 3);
    return 0;
}

static int check_room(struct sql_db *db, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r;

    r = sql_query(db, &rows, e, "SELECT (SELECT count(*) FROM spaces), (SELECT max(seq) FROM sqlite_sequence)", NULL);
    if (r == 0)
        r = sql_step(rows, e);
    if (r < 0)
        return r;
    if (sql_int(rows, 0) >= LIMIT_VECTOR_NAMESPACES || sql_int(rows, 1) >= VECTORS_DB_MAX_SPACE)
        return err_set(e, -E2BIG, "TOO_MANY_NAMESPACES", "there are %d vector namespaces already: delete one",
                       LIMIT_VECTOR_NAMESPACES);
    return 0;
}

static int make_space(struct sql_db *db, struct vectors_db_change *c, int64_t *ret_next, struct err *e)
{
    int r;

    r = check_room(db, e);
    if (r == 0)
        r = sql_exec(
            db, e,
            "INSERT INTO spaces (name, n_dimensions, n_rows, next_row, used_at) VALUES (?, ?, 0, 0, unixepoch())", "si",
            c->space, (int64_t)c->n_dimensions);
    if (r < 0)
        return r;
    c->found = (struct vectors_db_space){ sql_last_id(db), (int64_t)c->n_dimensions, 0, 0 };
    c->is_new = true;
    *ret_next = vectors_db_first_row(c->found.id);
    return 0;
}

static int save_space(struct sql_db *db, const struct vectors_db_change *c, int64_t next_row, struct err *e)
{
    return sql_exec(db, e,
                    "UPDATE spaces SET n_rows = ?, n_bytes = ?, next_row = ?, used_at = unixepoch() WHERE id = ?",
                    "iiii", c->found.n_rows, c->found.n_bytes, next_row, c->found.id);
}

static int forget_text(struct sql_db *db, struct sql_rows *rows, const struct vectors_db_change *c, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();

    return vectors_db_text_remove(db, c->found.id, sql_int(rows, 0), sql_text(rows, a, 1), e);
}

#define SELECT_ROW "SELECT row, metadata, " VECTORS_DB_ROW_BYTES " FROM vectors "

/* Removes the row that the query finds, if any. Not by DELETE with RETURNING: at the end of each such statement SQLite
 * walks through its copies of all pages that the change has touched so far. */
static int remove_found(struct sql_db *db, struct sql_rows *rows, struct vectors_db_change *c, struct err *e)
{
    int r = sql_step(rows, e);

    if (r <= 0)
        return r;
    c->removed[c->n_removed++] = sql_int(rows, 0);
    c->found.n_rows--;
    c->found.n_bytes -= sql_int(rows, 2);
    r = sql_int(rows, 0) > c->text_row ? 0 : forget_text(db, rows, c, e);
    return r < 0 ? r : sql_exec(db, e, "DELETE FROM vectors WHERE row = ?", "i", sql_int(rows, 0));
}

static int remove_id(struct sql_db *db, struct vectors_db_change *c, const char *id, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r;

    r = sql_query(db, &rows, e, SELECT_ROW "WHERE space = ? AND id = ?", "is", c->found.id, id);
    return r < 0 ? r : remove_found(db, rows, c, e);
}

static int remove_row(struct sql_db *db, struct vectors_db_change *c, int64_t row, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r;

    r = sql_query(db, &rows, e, SELECT_ROW "WHERE row = ? AND space = ?", "ii", row, c->found.id);
    return r < 0 ? r : remove_found(db, rows, c, e);
}

static int insert_row(struct sql_db *db, const struct vectors_db_change *c, const struct vectors_db_put *put,
                      int64_t row, struct err *e)
{
    struct slice vector = { (const char *)put->vector, c->n_dimensions * sizeof(float) };

    return sql_exec(db, e,
                    "INSERT INTO vectors (row, space, id, document_id, metadata, vector) VALUES (?, ?, ?, ?, ?, ?)"
                    " ON CONFLICT (space, id) DO NOTHING",
                    "iisssb", row, c->found.id, put->id, put->document_id, put->metadata, vector);
}

static int put_row(struct sql_db *db, struct vectors_db_change *c, const struct vectors_db_put *put, int64_t row,
                   struct err *e)
{
    int r;

    r = insert_row(db, c, put, row, e);
    if (r == 0 && sql_changes(db) == 0) {
        r = remove_id(db, c, put->id, e);
        if (r == 0)
            r = insert_row(db, c, put, row, e);
    }
    if (r == 0) {
        c->found.n_rows++;
        c->found.n_bytes += (int64_t)(strlen(put->id) + strlen(put->metadata) + c->n_dimensions * sizeof(float));
    }
    return r;
}

static void start(struct vectors_db_change *c, size_t max_removed)
{
    c->removed = xcalloc(max_removed, sizeof(*c->removed));
    c->n_removed = 0;
    c->found = (struct vectors_db_space){ 0 };
    c->text_row = -1;
    c->is_new = c->is_dropped = false;
}

static int finish(struct vectors_db_change *c, int r)
{
    if (r == 0 && c->on_stored)
        c->on_stored(c);
    return r;
}

static int put_rows(struct sql_db *db, void *arg, struct err *e)
{
    struct vectors_db_change *c = arg;
    int64_t next_row = 0;
    int r;

    start(c, c->n_puts);
    r = find_space(db, c, &next_row, e);
    if (r == 0 && c->found.id == 0)
        r = make_space(db, c, &next_row, e);
    if (r == 0 && c->found.n_dimensions != (int64_t)c->n_dimensions)
        r = mismatch(c, e);
    if (r == 0 && c->found.n_rows + (int64_t)c->n_puts > LIMIT_VECTOR_ROWS)
        r = err_set(e, -E2BIG, "TOO_MANY_VECTORS", "a namespace holds at most %d vectors", LIMIT_VECTOR_ROWS);
    c->first_row = next_row;
    for (size_t i = 0; r == 0 && i < c->n_puts; i++)
        r = put_row(db, c, &c->puts[i], next_row++, e);
    if (r == 0)
        r = save_space(db, c, next_row, e);
    return finish(c, r);
}

/* Removes the space with its name and dimensions; vectors_db_sweep() deletes its rows later. */
static int forget_space(struct sql_db *db, struct vectors_db_change *c, struct err *e)
{
    int r = sql_exec(db, e, "INSERT INTO dropped_spaces (id) VALUES (?)", "i", c->found.id);

    if (r == 0)
        r = sql_exec(db, e, "DELETE FROM spaces WHERE id = ?", "i", c->found.id);
    c->is_dropped = r == 0;
    return r;
}

static int remove_rows(struct sql_db *db, void *arg, struct err *e)
{
    struct vectors_db_change *c = arg;
    int64_t next_row = 0;
    int r;

    start(c, c->n_ids + c->n_rows);
    r = find_space(db, c, &next_row, e);
    if (r == 0 && c->found.id == 0)
        return finish(c, 0);
    for (size_t i = 0; r == 0 && i < c->n_ids; i++)
        r = remove_id(db, c, c->ids[i], e);
    for (size_t i = 0; r == 0 && i < c->n_rows; i++)
        r = remove_row(db, c, c->rows[i], e);
    if (r == 0 && c->found.n_rows == 0)
        r = forget_space(db, c, e);
    else if (r == 0 && c->n_removed > 0)
        r = save_space(db, c, next_row, e);
    return finish(c, r);
}

static int drop_space(struct sql_db *db, void *arg, struct err *e)
{
    struct vectors_db_change *c = arg;
    int r;

    start(c, 0);
    r = find_space(db, c, NULL, e);
    if (r == 0 && c->found.id != 0)
        r = forget_space(db, c, e);
    return finish(c, r);
}

int vectors_db_put(struct vectors_db *db, struct vectors_db_change *c, struct err *e)
{
    return writer_run(db->writer, put_rows, c, e);
}

int vectors_db_remove(struct vectors_db *db, struct vectors_db_change *c, struct err *e)
{
    return writer_run(db->writer, remove_rows, c, e);
}

int vectors_db_drop(struct vectors_db *db, struct vectors_db_change *c, struct err *e)
{
    return writer_run(db->writer, drop_space, c, e);
}

void vectors_db_change_clear(struct vectors_db_change *c)
{
    free(c->removed);
    c->removed = NULL;
    c->n_removed = 0;
}

/* --- rows of dropped spaces --- */

struct sweep {
    int64_t max_rows;
    bool has_more;
};

static int first_dropped(struct sql_db *db, int64_t *ret_id, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r;

    r = sql_query(db, &rows, e, "SELECT id FROM dropped_spaces ORDER BY id LIMIT 1", NULL);
    if (r == 0)
        r = sql_step(rows, e);
    if (r > 0)
        *ret_id = sql_int(rows, 0);
    return MIN(r, 0);
}

static int sweep_rows(struct sql_db *db, void *arg, struct err *e)
{
    struct sweep *sweep = arg;
    int64_t id = 0;
    int r;

    sweep->has_more = false;
    r = first_dropped(db, &id, e);
    if (r < 0 || id == 0)
        return r;
    sweep->has_more = true;
    r = sql_exec(db, e, "DELETE FROM vectors WHERE row IN (SELECT row FROM vectors WHERE row BETWEEN ? AND ? LIMIT ?)",
                 "iii", vectors_db_first_row(id), vectors_db_last_row(id), sweep->max_rows);
    if (r < 0 || sql_changes(db) == sweep->max_rows)
        return r;
    r = vectors_db_text_drop(db, id, e);
    return r < 0 ? r : sql_exec(db, e, "DELETE FROM dropped_spaces WHERE id = ?", "i", id);
}

int vectors_db_sweep(struct vectors_db *db, int64_t max_rows, bool *ret_has_more, struct err *e)
{
    struct sweep sweep = { .max_rows = max_rows };
    int r;

    r = writer_run(db->writer, sweep_rows, &sweep, e);
    if (r == 0)
        *ret_has_more = sweep.has_more;
    return r;
}
