#include "backend/postgres/postgres_event_row.h"
#include "backend/backend_columns.h"
#include "backend/postgres/postgres.h"

#include <stdlib.h>

static void set_column(struct arena *a, const struct backend_column *c, const char *text, struct backend_row *row)
{
    if (!text)
        return;
    if (c->kind == COLUMN_INT || c->kind == COLUMN_BOOL)
        backend_row_set_int(row, c, strtoll(text, NULL, 10));
    else
        backend_row_set_text(row, c, c->kind == COLUMN_JSON ? postgres_compact_json(a, slice_of(text)) : text);
}

static int refuse(struct err *e)
{
    return err_set(e, -EINVAL, "INVALID_JSON", "The row of an event is not the texts of its columns");
}

int postgres_event_row_read(struct arena *a, const struct postgres_event_image *image, struct backend_row *ret,
                            struct err *e)
{
    struct backend_row row = { .table = image->table };
    struct json_value list, item;
    size_t n = 0;
    int r = json_parse(a, image->json, &list, e);

    if (r < 0)
        return r;
    for (struct json_iter it = json_iter(list); json_next(&it, NULL, &item);) {
        if (n == BACKEND_N_COLUMNS || (!json_cstr(item) && !json_is_absent(item)))
            return refuse(e);
        set_column(a, &backend_columns[n++], json_cstr(item), &row);
    }
    if (n < BACKEND_N_COLUMNS || !row.id || !row.status)
        return refuse(e);
    *ret = row;
    return 0;
}
