/* The rows of a change as the REST interface takes them. */
#include "backend/hosted/hosted_query.h"
#include "base/limits.h"

#include <string.h>
#include <strings.h>

struct reading {
    const struct hosted_query *w;
    struct hosted_members *members;
    struct json_writer out;
};

static bool has_name(const char *const *names, size_t n, struct slice name)
{
    for (size_t i = 0; i < n; i++)
        if (slice_eq_str(name, names[i]))
            return true;
    return false;
}

static bool is_wanted(const struct query *q, struct slice name)
{
    return !q->n_columns || has_name(q->columns, q->n_columns, name);
}

static bool is_default_user(const struct table_column *c)
{
    return c->default_text && strcmp(c->default_text, TABLE_DEFAULT_USER) == 0;
}

/* ---- names ---- */

static int note_name(struct reading *in, struct slice name, struct err *e)
{
    const struct table_column *c = table_shape_column(in->w->shape, name);

    if (!c)
        return query_refuse_column(in->w->shape, arena_slicedup(in->w->arena, name), e);
    if (!has_name(in->members->names, in->members->n, name))
        in->members->names[in->members->n++] = c->name;
    return 0;
}

static int note_row(struct reading *in, struct json_value row, struct err *e)
{
    struct json_iter it = json_iter(row);
    struct json_value v;
    struct slice name;
    int r = json_type(row) == JSON_OBJECT ? 0 : err_add_field(e, "rows", "must be objects");

    while (r == 0 && json_next(&it, &name, &v))
        if (is_wanted(in->w->q, name))
            r = note_name(in, name, e);
    return r;
}

/* Columns that the database would fill with the user of the session. */
static int note_users(struct reading *in, struct err *e)
{
    const struct query *q = in->w->q;
    int r = 0;

    for (size_t i = 0; r == 0 && q->kind == QUERY_INSERT && q->only_user && i < in->w->shape->n_columns; i++)
        if (is_default_user(&in->w->shape->columns[i]))
            r = note_name(in, slice_of(in->w->shape->columns[i].name), e);
    return r;
}

static int note_names(struct reading *in, struct err *e)
{
    const struct query *q = in->w->q;
    struct json_iter it = json_iter(q->rows);
    struct json_value row;
    int r = 0;

    for (size_t i = 0; r == 0 && q->kind == QUERY_INSERT && q->is_null_for_missing && i < q->n_columns; i++)
        r = note_name(in, slice_of(q->columns[i]), e);
    if (r == 0 && q->kind == QUERY_UPDATE)
        r = note_row(in, q->rows, e);
    while (r == 0 && q->kind == QUERY_INSERT && json_next(&it, NULL, &row))
        r = note_row(in, row, e);
    return r == 0 ? note_users(in, e) : r;
}

/* ---- rows ---- */

static void put_missing(struct reading *in, const char *name)
{
    const struct query *q = in->w->q;
    bool is_user = q->only_user && is_default_user(table_shape_column(in->w->shape, slice_of(name)));

    if (q->kind == QUERY_INSERT && is_user)
        json_add_string(&in->out, name, q->only_user);
    else if (q->kind == QUERY_INSERT && q->is_null_for_missing)
        json_add_null(&in->out, name);
    else
        in->members->has_all = false;
}

/* Rows of a user: the column is the user's, or, left out, will be. */
static bool is_of_another(const struct reading *in, struct json_value row)
{
    const struct query *q = in->w->q;
    struct json_value user = json_get(row, "user_id");
    const struct table_column *c = table_shape_column(in->w->shape, SLICE_LIT("user_id"));
    bool is_given = json_type(user) != JSON_ABSENT && is_wanted(q, SLICE_LIT("user_id"));

    if (!query_has_rule(q, in->w->shape))
        return false;
    if (!is_given)
        return q->kind == QUERY_INSERT && !is_default_user(c);
    return !json_cstr(user) || strcasecmp(json_cstr(user), q->only_user) != 0;
}

static void put_row(struct reading *in, struct json_value row)
{
    json_begin_object(&in->out);
    for (size_t i = 0; i < in->members->n; i++) {
        const char *name = in->members->names[i];
        struct json_value v = json_get(row, name);

        if (json_type(v) == JSON_ABSENT || !is_wanted(in->w->q, slice_of(name)))
            put_missing(in, name);
        else
            json_add_value(&in->out, name, v);
    }
    json_end(&in->out);
    in->members->is_of_another |= is_of_another(in, row);
}

static void put_rows(struct reading *in)
{
    struct json_iter it = json_iter(in->w->q->rows);
    struct json_value row;

    if (in->w->q->kind == QUERY_UPDATE) {
        put_row(in, in->w->q->rows);
        return;
    }
    json_begin_array(&in->out);
    while (json_next(&it, NULL, &row))
        put_row(in, row);
    json_end(&in->out);
}

int hosted_read_members(const struct hosted_query *w, struct hosted_members *ret, struct err *e)
{
    struct hosted_members members = { .has_all = true };
    struct reading in = { .w = w, .members = &members };
    struct buf out;
    int r;

    members.names = arena_array(w->arena, w->shape->n_columns + 1, sizeof(*members.names));
    if (w->q->kind == QUERY_INSERT && json_type(w->q->rows) != JSON_ARRAY)
        return err_add_field(e, "rows", "must be an array of objects");
    r = note_names(&in, e);
    if (r < 0)
        return r;
    buf_init(&out, LIMIT_REPLY);
    json_write_init(&in.out, &out);
    put_rows(&in);
    r = buf_check(&out, e);
    if (members.n && (w->q->kind == QUERY_UPDATE || json_length(w->q->rows)))
        members.json = buf_to_arena(&out, w->arena);
    buf_clear(&out);
    *ret = members;
    return r;
}
