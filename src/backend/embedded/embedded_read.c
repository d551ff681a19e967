#include "backend/embedded/embedded.h"
#include "backend/backend_columns.h"
#include "base/limits.h"

/* Adds the row's bytes to *n_bytes. */
static void read_row(struct sql_rows *rows, const struct embedded_table *t, struct arena *a, struct backend_row *ret,
                     size_t *n_bytes)
{
    *ret = (struct backend_row){ .table = arena_strdup(a, embedded_table_name(t)) };
    for (int i = 0; i < BACKEND_N_COLUMNS; i++) {
        const struct backend_column *c = &backend_columns[i];

        if (c->kind == COLUMN_INT || c->kind == COLUMN_BOOL) {
            backend_row_set_int(ret, c, sql_int(rows, i));
        } else {
            const char *text = sql_text(rows, a, i);

            backend_row_set_text(ret, c, text);
            *n_bytes += text ? strlen(text) : 0;
        }
    }
}

int embedded_read_one(struct sql_rows *rows, const struct embedded_table *t, struct arena *a, struct backend_row *ret,
                      struct err *e)
{
    struct backend_row row;
    size_t n_bytes = 0;
    int r = sql_step(rows, e);

    if (r <= 0)
        return r;
    read_row(rows, t, a, &row, &n_bytes);
    r = sql_step(rows, e);
    if (r < 0)
        return r;
    *ret = row;
    return 1;
}

static void grow(struct arena *a, struct backend_rows *list, size_t *capacity)
{
    struct backend_row *items;

    if (list->n < *capacity)
        return;
    *capacity = *capacity ? 2 * *capacity : 16;
    items = arena_array(a, *capacity, sizeof(*items));
    if (list->n)
        memcpy(items, list->items, list->n * sizeof(*items));
    list->items = items;
}

int embedded_read_all(struct sql_rows *rows, const struct embedded_table *t, struct arena *a, struct backend_rows *ret,
                      struct err *e)
{
    struct backend_rows list = { 0 };
    size_t capacity = 0, n_bytes = 0;
    int r;

    while ((r = sql_step(rows, e)) > 0 && n_bytes <= LIMIT_REPLY) {
        grow(a, &list, &capacity);
        read_row(rows, t, a, &list.items[list.n++], &n_bytes);
    }
    if (r >= 0)
        *ret = list;
    return r;
}

/* What a program makes by SQLite's JSON functions stays JSON in a trigger, where a text becomes a string. */
static const char *text_of(struct arena *a, struct json_value v)
{
    return json_type(v) == JSON_STRING ? json_cstr(v) : json_to_str(a, v);
}

int embedded_read_json(struct arena *a, const char *json, const char *table, struct backend_row *ret, struct err *e)
{
    struct backend_row row = { .table = table };
    struct json_value object, value;
    int r = json_parse(a, slice_of(json), &object, e);

    if (r < 0)
        return r;
    for (size_t i = 0; i < BACKEND_N_COLUMNS; i++) {
        const struct backend_column *c = &backend_columns[i];

        value = json_get(object, c->name);
        if (json_is_absent(value))
            continue;
        if (c->kind == COLUMN_INT || c->kind == COLUMN_BOOL)
            backend_row_set_int(&row, c, json_int(value));
        else
            backend_row_set_text(&row, c, text_of(a, value));
    }
    *ret = row;
    return 0;
}
