#include "store/sql_private.h"
#include "store/vectors/vectors_db_private.h"
#include <sqlite3.h>

static int damaged(int64_t row, struct err *e)
{
    return err_set(e, -EUCLEAN, "STORE_DAMAGED", "vector %lld has no metadata, or another length than its namespace's",
                   (long long)row);
}

static struct sql_db *reader_of(struct vectors_db *db)
{
    return readers_get(db->readers);
}

int vectors_db_begin(struct vectors_db *db, struct err *e)
{
    return sql_exec(reader_of(db), e, "BEGIN", NULL);
}

void vectors_db_end(struct vectors_db *db)
{
    struct err ignored = { 0 };

    if (sql_exec(reader_of(db), &ignored, "COMMIT", NULL) < 0)
        readers_thread_end(db->readers); /* the next use opens a fresh connection */
}

/* The statement owns the bytes, which are valid until its next step. */
static const void *borrow_vector(struct sql_rows *rows, const struct vectors_db_space *space)
{
    sqlite3_stmt *stmt = rows->use.stmt;
    const void *bytes = sqlite3_column_blob(stmt, 1);

    return (size_t)sqlite3_column_bytes(stmt, 1) == (size_t)space->n_dimensions * sizeof(float) ? bytes : NULL;
}

/* Columns row, vector. */
static int visit_vector(struct sql_rows *rows, const struct vectors_db_space *space, vectors_db_visit *visit, void *arg,
                        struct err *e)
{
    const void *vector = borrow_vector(rows, space);

    return vector ? visit(arg, sql_int(rows, 0), vector, e) : damaged(sql_int(rows, 0), e);
}

static int visit_vectors(struct sql_rows *rows, const struct vectors_db_space *space, vectors_db_visit *visit,
                         void *arg, struct err *e)
{
    int r, r_visit = 0;

    while (r_visit == 0 && (r = sql_step(rows, e)) > 0)
        r_visit = visit_vector(rows, space, visit, arg, e);
    return r_visit < 0 ? r_visit : MIN(r, 0);
}

int vectors_db_load(struct vectors_db *db, const struct vectors_db_space *space, int64_t after_row,
                    vectors_db_visit *visit, void *arg, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r;

    r = sql_query(reader_of(db), &rows, e, "SELECT row, vector FROM vectors WHERE row BETWEEN ? AND ? ORDER BY row",
                  "ii", MAX(after_row + 1, vectors_db_first_row(space->id)), vectors_db_last_row(space->id));
    return r < 0 ? r : visit_vectors(rows, space, visit, arg, e);
}

int vectors_db_each_row(struct vectors_db *db, int64_t space_id, vectors_db_visit_row *visit, void *arg, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r, r_visit = 0;

    r = sql_query(reader_of(db), &rows, e, "SELECT row FROM vectors INDEXED BY vectors_by_id WHERE space = ?", "i",
                  space_id);
    while (r == 0 && r_visit == 0 && (r = sql_step(rows, e)) > 0) {
        r_visit = visit(arg, sql_int(rows, 0), e);
        r = 0;
    }
    return r_visit < 0 ? r_visit : r;
}

/* Columns row, vector, id, metadata. */
static int visit_item(struct sql_rows *rows, const struct vectors_db_space *space, vectors_db_visit_item *visit,
                      void *arg, struct err *e)
{
    struct vectors_db_item text = { .id = sql_peek(rows, 2).p, .metadata = sql_peek(rows, 3).p };
    const void *vector = borrow_vector(rows, space);

    return vector && text.id && text.metadata ? visit(arg, sql_int(rows, 0), &text, vector, e)
                                              : damaged(sql_int(rows, 0), e);
}

/* Begins the query, or begins it again for another row. */
static int query_item(struct vectors_db *db, int64_t row, struct sql_rows **rows, struct err *e)
{
    return *rows ? sql_again(*rows, e, "i", row)
                 : sql_query(reader_of(db), rows, e, "SELECT row, vector, id, metadata FROM vectors WHERE row = ?", "i",
                             row);
}

int vectors_db_each(struct vectors_db *db, const struct vectors_db_space *space, const int64_t *rows, size_t n,
                    vectors_db_visit_item *visit, void *arg, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *found = NULL;
    int r = 0;

    for (size_t i = 0; r == 0 && i < n; i++) {
        r = query_item(db, rows[i], &found, e);
        if (r == 0)
            r = sql_step(found, e);
        if (r > 0)
            r = visit_item(found, space, visit, arg, e);
    }
    return r;
}

/* Columns row, metadata. */
static int visit_metadata(struct sql_rows *rows, vectors_db_visit_metadata *visit, void *arg, struct err *e)
{
    int r, r_visit = 0;

    while (r_visit == 0 && (r = sql_step(rows, e)) > 0) {
        const char *metadata = (const char *)sqlite3_column_text(rows->use.stmt, 1);

        r_visit = metadata ? visit(arg, sql_int(rows, 0), metadata, e) : damaged(sql_int(rows, 0), e);
    }
    return r_visit < 0 ? r_visit : MIN(r, 0);
}

int vectors_db_each_metadata(struct vectors_db *db, int64_t space_id, int64_t after_row,
                             vectors_db_visit_metadata *visit, void *arg, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r;

    r = sql_query(reader_of(db), &rows, e, "SELECT row, metadata FROM vectors WHERE row BETWEEN ? AND ? ORDER BY row",
                  "ii", MAX(after_row + 1, vectors_db_first_row(space_id)), vectors_db_last_row(space_id));
    return r < 0 ? r : visit_metadata(rows, visit, arg, e);
}

int vectors_db_each_of_document(struct vectors_db *db, int64_t space_id, const char *document_id,
                                vectors_db_visit_metadata *visit, void *arg, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r;

    r = sql_query(reader_of(db), &rows, e, "SELECT row, metadata FROM vectors WHERE space = ? AND document_id = ?",
                  "is", space_id, document_id);
    return r < 0 ? r : visit_metadata(rows, visit, arg, e);
}

/* Columns id, metadata, vector or NULL. */
static struct vectors_db_item read_item(struct sql_rows *rows, struct arena *a)
{
    struct slice vector = sql_blob(rows, a, 2);

    return (struct vectors_db_item){ sql_text(rows, a, 0), sql_text(rows, a, 1), (const void *)vector.p,
                                     vector.n / sizeof(float) };
}

int vectors_db_get(struct vectors_db *db, int64_t row, bool with_vector, struct arena *a, struct vectors_db_item *ret,
                   struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r;

    r = sql_query(reader_of(db), &rows, e,
                  "SELECT id, metadata, CASE WHEN ? THEN vector END FROM vectors WHERE row = ?", "ii",
                  (int64_t)with_vector, row);
    if (r == 0)
        r = sql_step(rows, e);
    if (r < 0)
        return r;
    if (r == 0)
        return err_set(e, -ENOENT, "VECTOR_NOT_FOUND", "There is no vector %lld.", (long long)row);
    *ret = read_item(rows, a);
    return 0;
}

int vectors_db_list(struct vectors_db *db, const struct vectors_db_list_request *request, struct arena *a,
                    struct vectors_db_item **ret, size_t *ret_n, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    struct vectors_db_item *items = arena_array(a, (size_t)request->limit, sizeof(*items));
    size_t n = 0;
    int r;

    r = sql_query(reader_of(db), &rows, e,
                  "SELECT id, metadata, CASE WHEN ? THEN vector END FROM vectors WHERE row IN"
                  " (SELECT row FROM vectors WHERE space = ? ORDER BY id LIMIT ? OFFSET ?) ORDER BY id",
                  "iiii", (int64_t)request->with_vectors, request->space_id, request->limit, request->offset);
    while (r == 0 && n < (size_t)request->limit && (r = sql_step(rows, e)) > 0) {
        items[n++] = read_item(rows, a);
        r = 0;
    }
    if (r < 0)
        return r;
    *ret = items;
    *ret_n = n;
    return 0;
}
