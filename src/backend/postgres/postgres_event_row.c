#include "backend/postgres/postgres_event_row.h"
#include "backend/backend_columns.h"
#include "backend/postgres/postgres.h"

static void read_text(struct arena *a, const struct backend_column *c, struct json_value value, struct backend_row *row)
{
    const char *text = json_cstr(value);

    if (text && c->kind == COLUMN_JSON)
        text = postgres_compact_json(a, slice_of(text));
    backend_row_set_text(row, c, text);
}

int postgres_event_row_read(struct arena *a, struct slice image, const char *table, struct backend_row *ret,
                            struct err *e)
{
    struct backend_row row = { .table = table };
    struct json_value object, value;
    int r = json_parse(a, image, &object, e);

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
            read_text(a, c, value, &row);
    }
    if (!row.id || !row.status)
        return err_set(e, -EINVAL, "INVALID_JSON", "The row of an event lacks its id or its status");
    *ret = row;
    return 0;
}
