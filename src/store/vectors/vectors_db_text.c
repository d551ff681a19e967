#include "base/arena.h"
#include "base/json.h"
#include "base/limits.h"
#include "store/vectors/vectors_db_private.h"

/* The full-text index of metadata.text: one table for each space, made by the first hybrid search. The index stores no
 * texts: to remove a row's entry, the text it was made from must be supplied. Rows above spaces.text_row are not in the
 * index yet. */

enum { TEXT_ROWS_AT_ONCE = 500, TEXT_MAX_TERMS = 64 };

struct text_step {
    int64_t space_id;
    bool is_done;
};

/* NULL when the metadata has no text. In the arena. */
static const char *text_of(const char *metadata, struct arena *a)
{
    struct json_value value = { 0 };

    return json_parse(a, slice_of(metadata), &value, NULL) < 0 ? NULL : json_cstr(json_get(value, "text"));
}

static int add_row(struct sql_db *db, int64_t space_id, int64_t row, const char *metadata, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const char *text = text_of(metadata, a);

    if (!text)
        return 0;
    return sql_exec_text(db, e,
                         arena_printf(a, "INSERT INTO text_%lld (rowid, text) VALUES (?, ?)", (long long)space_id),
                         "is", row, text);
}

int vectors_db_text_remove(struct sql_db *db, int64_t space_id, int64_t row, const char *metadata, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const char *text = text_of(metadata, a);

    if (!text)
        return 0;
    return sql_exec_text(db, e,
                         arena_printf(a, "INSERT INTO text_%lld (text_%lld, rowid, text) VALUES ('delete', ?, ?)",
                                      (long long)space_id, (long long)space_id),
                         "is", row, text);
}

int vectors_db_text_drop(struct sql_db *db, int64_t space_id, struct err *e)
{
    char sql[80];

    snprintf(sql, sizeof(sql), "DROP TABLE IF EXISTS text_%lld", (long long)space_id);
    return sql_exec_text(db, e, sql, "");
}

/* --- updating the index --- */

/* Reads the last row in the index and the last existing row; *ret_text_row is -1 before the index is made. */
static int read_state(struct sql_db *db, int64_t space_id, int64_t *ret_text_row, int64_t *ret_last_row, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r;

    r = sql_query(db, &rows, e, "SELECT coalesce(text_row, -1), next_row - 1 FROM spaces WHERE id = ?", "i", space_id);
    if (r == 0)
        r = sql_step(rows, e);
    if (r < 0)
        return r;
    *ret_text_row = r > 0 ? sql_int(rows, 0) : 0; /* 0 and 0 when the space was dropped: nothing to do */
    *ret_last_row = r > 0 ? sql_int(rows, 1) : 0;
    return 0;
}

static int make_table(struct sql_db *db, int64_t space_id, int64_t *ret_text_row, struct err *e)
{
    char sql[160];

    snprintf(sql, sizeof(sql),
             "CREATE VIRTUAL TABLE text_%lld USING fts5(text, content='', tokenize='unicode61 remove_diacritics 2')",
             (long long)space_id);
    *ret_text_row = vectors_db_first_row(space_id) - 1;
    return sql_exec_text(db, e, sql, "");
}

/* Adds the next rows; *text_row becomes the last added row, or last_row when there are no more. */
static int add_rows(struct sql_db *db, int64_t space_id, int64_t *text_row, int64_t last_row, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int64_t from = *text_row + 1;
    int n = 0, r;

    r = sql_query(db, &rows, e, "SELECT row, metadata FROM vectors WHERE row BETWEEN ? AND ? ORDER BY row LIMIT ?",
                  "iii", from, last_row, (int64_t)TEXT_ROWS_AT_ONCE);
    while (r == 0 && (r = sql_step(rows, e)) > 0) {
        *text_row = sql_int(rows, 0);
        r = add_row(db, space_id, *text_row, sql_text(rows, a, 1), e);
        n++;
    }
    if (r == 0 && n < TEXT_ROWS_AT_ONCE)
        *text_row = last_row;
    return r;
}

static int step(struct sql_db *db, void *arg, struct err *e)
{
    struct text_step *s = arg;
    int64_t text_row = 0, last_row = 0;
    int r;

    r = read_state(db, s->space_id, &text_row, &last_row, e);
    if (r == 0 && text_row == -1)
        r = make_table(db, s->space_id, &text_row, e);
    if (r == 0 && text_row < last_row)
        r = add_rows(db, s->space_id, &text_row, last_row, e);
    if (r == 0)
        r = sql_exec(db, e, "UPDATE spaces SET text_row = ? WHERE id = ?", "ii", text_row, s->space_id);
    s->is_done = text_row >= last_row;
    return r;
}

int vectors_db_text_ready(struct vectors_db *db, int64_t space_id, struct err *e)
{
    struct text_step s = { .space_id = space_id };
    int64_t text_row = 0, last_row = 0;
    int r;

    r = read_state(readers_get(db->readers), space_id, &text_row, &last_row, e);
    s.is_done = r == 0 && text_row >= last_row;
    while (r == 0 && !s.is_done)
        r = writer_run(db->writer, step, &s, e);
    return r;
}

/* --- searching --- */

/* An expression that matches any of the words; each word is an FTS5 string, so that none is an operator. Empty when
 * there are no words. */
static char *expression_of(struct arena *a, const char *text)
{
    struct buf out;
    int n = 0;

    buf_init(&out, 8 * (size_t)LIMIT_VECTOR_TEXT_BYTES);
    while (*(text += strspn(text, " \t\r\n")) && n < TEXT_MAX_TERMS) {
        size_t length = strcspn(text, " \t\r\n");

        buf_add_str(&out, n++ > 0 ? " OR \"" : "\"");
        for (size_t i = 0; i < length; i++)
            buf_add_str(&out, text[i] == '"' ? "\"\"" : (char[]){ text[i], '\0' });
        buf_add_char(&out, '"');
        text += length;
    }
    return buf_to_arena(&out, a);
}

int vectors_db_text_search(struct vectors_db *db, int64_t space_id, const char *text, vectors_db_visit_row *visit,
                           void *arg, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    char *expression = expression_of(a, text), sql[120];
    int64_t text_row = 0, last_row = 0;
    int r;

    r = read_state(readers_get(db->readers), space_id, &text_row, &last_row, e);
    if (r < 0 || text_row <= 0 || !*expression)
        return r;
    snprintf(sql, sizeof(sql), "SELECT rowid FROM text_%lld WHERE text_%lld MATCH ? ORDER BY rank", (long long)space_id,
             (long long)space_id);
    r = sql_query_text(readers_get(db->readers), &rows, e, sql, "s", expression);
    while (r == 0 && (r = sql_step(rows, e)) > 0)
        r = visit(arg, sql_int(rows, 0), e);
    return r < 0 ? r : 0;
}
