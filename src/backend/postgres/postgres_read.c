#include "backend/backend_columns.h"
#include "backend/postgres/postgres.h"
#include "base/json_text.h"
#include "base/limits.h"

#include <string.h>

/* NULL: the text is no JSON. A database's jsonb may be nested more deeply than json_parse() goes. */
static char *compact(struct arena *a, struct slice text)
{
    char *out = arena_alloc(a, text.n + 1);
    size_t n = json_text_compact(text, out);

    out[n] = '\0';
    return n > 0 ? out : NULL;
}

char *postgres_compact_json(struct arena *a, struct slice json)
{
    char *out = compact(a, json);

    return out ? out : arena_strdup(a, "null");
}

static int read_text(const struct pg_row *row, int i, const struct backend_column *c, struct postgres_reader *reader,
                     struct backend_row *ret, struct err *e)
{
    struct slice text = SLICE_LIT("");
    char *value;
    int r;

    if (pg_row_is_null(row, i)) {
        backend_row_set_text(ret, c, NULL);
        return 0;
    }
    r = pg_row_text(row, i, LIMIT_BACKEND_ROW_BYTES, &text, e);
    if (r < 0)
        return r;
    value = c->kind == COLUMN_JSON ? compact(reader->arena, text) : arena_slicedup(reader->arena, text);
    if (!value)
        return pg_fault(e, "column %d is no JSON", i);
    reader->n_bytes += text.n;
    backend_row_set_text(ret, c, value);
    return 0;
}

int postgres_read_one(struct postgres_reader *reader, const struct pg_row *row, struct backend_row *ret, struct err *e)
{
    int64_t number = 0;
    int r = 0;

    *ret = (struct backend_row){ .table = reader->table };
    for (int i = 0; r == 0 && i < BACKEND_N_COLUMNS; i++) {
        const struct backend_column *c = &backend_columns[i];

        if (c->kind != COLUMN_INT && c->kind != COLUMN_BOOL) {
            r = read_text(row, i, c, reader, ret, e);
            continue;
        }
        r = pg_row_int(row, i, INT64_MIN, INT64_MAX, &number, e);
        backend_row_set_int(ret, c, number);
    }
    if (r == 0 && (!ret->id || !ret->status || !ret->raw_data || !ret->created_at || !ret->attempted_by))
        r = pg_fault(e, "a row lacks a value that every row has");
    return r;
}

static struct backend_row *next_row(struct postgres_reader *reader)
{
    struct backend_rows *rows = &reader->rows;

    if (rows->n == reader->capacity) {
        struct backend_row *items;

        reader->capacity = reader->capacity ? 2 * reader->capacity : 16;
        items = arena_array(reader->arena, reader->capacity, sizeof(*items));
        if (rows->n)
            memcpy(items, rows->items, rows->n * sizeof(*items));
        rows->items = items;
    }
    return &rows->items[rows->n];
}

/* Rows beyond LIMIT_REPLY are passed over, so that the connection stays in use. */
static int take_row(void *arg, const struct pg_row *row, struct err *e)
{
    struct postgres_reader *reader = arg;
    int r;

    reader->is_full = reader->n_bytes > LIMIT_REPLY;
    if (reader->is_full)
        return 0;
    if (pg_row_size(row) > LIMIT_BACKEND_ROW_BYTES)
        return err_set(e, -E2BIG, "STORE_FAILED", "PostgreSQL: a row has more than %d bytes", LIMIT_BACKEND_ROW_BYTES);
    r = postgres_read_one(reader, row, next_row(reader), e);
    if (r == 0)
        reader->rows.n++;
    return r;
}

/* --- texts --- */

static int take_text(void *arg, const struct pg_row *row, struct err *e)
{
    struct postgres_texts *texts = arg;
    struct slice text = SLICE_LIT("");
    int r = pg_row_text(row, 0, texts->max_bytes, &text, e);

    if (r == 0)
        texts->items[texts->n++] = arena_slicedup(texts->arena, text);
    return r;
}

static void forget_texts(void *arg)
{
    struct postgres_texts *texts = arg;

    texts->n = texts->n_before;
}

void postgres_read_texts(struct postgres_call *c, struct postgres_texts *texts, size_t max_rows)
{
    c->n_columns = 1;
    c->max_rows = max_rows;
    c->on_row = take_text;
    c->on_begin = forget_texts;
    c->arg = texts;
}

/* --- rows --- */

static void begin(void *arg)
{
    struct postgres_reader *reader = arg;

    reader->rows = (struct backend_rows){ 0 };
    reader->capacity = reader->n_bytes = 0;
    reader->is_full = false;
}

void postgres_read_into(struct postgres_call *c, struct postgres_reader *reader, const char *table, struct arena *a,
                        size_t max_rows)
{
    *reader = (struct postgres_reader){ .table = arena_strdup(a, table), .arena = a };
    c->n_columns = BACKEND_N_COLUMNS;
    c->max_rows = max_rows;
    c->on_row = take_row;
    c->on_begin = begin;
    c->arg = reader;
}
