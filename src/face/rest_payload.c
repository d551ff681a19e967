#include "face/rest_private.h"

/* The columns that a row names, as one flag for each column of the table. */
struct named {
    bool *is_named;
    size_t n;
};

static int refuse_column(const struct rest_work *w, struct slice name, struct err *e)
{
    return err_set(e, -EINVAL, "PAYLOAD_COLUMN", "Could not find the '%.*s' column of '%s' in the schema cache",
                   (int)utf8_head(name, 64).n, name.p, w->in->name);
}

static int check_columns(const struct rest_work *w, struct err *e)
{
    for (size_t i = 0; i < w->query.n_columns; i++)
        if (!table_shape_column(&w->shape, slice_of(w->query.columns[i])))
            return refuse_column(w, slice_of(w->query.columns[i]), e);
    return 0;
}

static int read_names(const struct rest_work *w, struct json_value row, struct named *ret, struct err *e)
{
    struct json_value value;
    struct slice name;

    ret->n = 0;
    memset(ret->is_named, 0, w->shape.n_columns);
    for (struct json_iter it = json_iter(row); json_next(&it, &name, &value);) {
        const struct table_column *column = table_shape_column(&w->shape, name);

        if (!column)
            return refuse_column(w, name, e);
        ret->n += !ret->is_named[column - w->shape.columns];
        ret->is_named[column - w->shape.columns] = true;
    }
    return 0;
}

static int check_row(const struct rest_work *w, struct json_value row, size_t at, struct named *first,
                     struct named *own, struct err *e)
{
    int r;

    if (json_type(row) != JSON_OBJECT)
        return err_set(e, -EINVAL, "BAD_REST_BODY", "The body must be an object, or an array of objects.");
    if (json_length(row) > LIMIT_TABLE_COLUMNS)
        return err_set(e, -EINVAL, "BAD_REST_BODY", "A row may have at most %d members.", LIMIT_TABLE_COLUMNS);
    if (w->query.n_columns)
        return 0;
    r = read_names(w, row, at ? own : first, e);
    if (r == 0 && at && memcmp(first->is_named, own->is_named, w->shape.n_columns) != 0)
        return err_set(e, -EINVAL, "BAD_REST_BODY", "All object keys must match");
    return r;
}

static int check_rows(const struct rest_work *w, struct json_value rows, struct err *e)
{
    struct named first = { .is_named = arena_alloc(w->arena, w->shape.n_columns + 1) };
    struct named own = { .is_named = arena_alloc(w->arena, w->shape.n_columns + 1) };
    struct json_value row;
    struct slice key;
    size_t at = 0;
    int r = check_columns(w, e);

    if (r == 0 && json_length(rows) > LIMIT_QUERY_WRITE_ROWS)
        r = err_set(e, -EINVAL, "BAD_REST_BODY", "A request may have at most %d rows.", LIMIT_QUERY_WRITE_ROWS);
    for (struct json_iter it = json_iter(rows); r == 0 && json_next(&it, &key, &row);)
        r = check_row(w, row, at++, &first, &own, e);
    return r;
}

static int in_array(struct rest_work *w, struct json_value *rows, struct err *e)
{
    struct slice body = w->in->body;

    return json_parse(w->arena, slice_of(arena_printf(w->arena, "[%.*s]", (int)body.n, body.p)), rows, e);
}

/* The only element of an array, for a PATCH. */
static int only_row(struct json_value rows, struct json_value *ret, struct err *e)
{
    struct json_iter it = json_iter(rows);
    struct slice key;

    if (json_length(rows) != 1 || !json_next(&it, &key, ret))
        return err_set(e, -EINVAL, "BAD_REST_BODY", "The body of a PATCH must be one object.");
    return 0;
}

int rest_read_rows(struct rest_work *w, struct err *e)
{
    struct json_value rows = { 0 };
    int r = rest_read_body(w, &rows, e);

    if (r == 0 && json_type(rows) == JSON_OBJECT)
        r = in_array(w, &rows, e);
    if (r == 0 && json_type(rows) != JSON_ARRAY)
        r = err_set(e, -EINVAL, "BAD_REST_BODY", "The body must be an object, or an array of objects.");
    if (r == 0)
        r = check_rows(w, rows, e);
    if (r == 0 && w->q.kind == QUERY_UPDATE)
        r = only_row(rows, &rows, e);
    w->q.rows = rows;
    w->q.columns = w->query.columns;
    w->q.n_columns = w->query.n_columns;
    return r;
}
