/* Filters of subscriptions: of the columns of the Activities table, and of a table's own columns, which are compared as
 * their types ask for. */
#include "face/realtime_private.h"

#include "backend/query_values.h"

/* ---- reading ---- */

/* The next of the values between commas; a value in double quotes may have commas. */
static struct slice next_value(struct slice *rest)
{
    bool is_quoted = false;
    size_t n = 0;
    struct slice value;

    for (; n < rest->n && (is_quoted || rest->p[n] != ','); n++) {
        if (rest->p[n] == '\\' && is_quoted)
            n += n + 1 < rest->n;
        else if (rest->p[n] == '"')
            is_quoted = !is_quoted;
    }
    value = (struct slice){ rest->p, n };
    *rest = n < rest->n ? (struct slice){ rest->p + n + 1, rest->n - n - 1 } : (struct slice){ NULL, 0 };
    return value;
}

/* What is wrong for tables of activities alone is kept: which table is meant, is known later. */
static int add_test(struct arena *a, struct rt_filter *f, const char *text, struct err *e)
{
    struct err why = { 0 };
    int r = filter_parse_own(a, text, &f->own[f->n], e);

    if (r < 0 || !f->own[f->n])
        return r;
    if (filter_parse(a, text, &f->activity[f->n], &why) < 0 && !f->activity_fault)
        f->activity_fault = arena_strdup(a, why.text);
    f->n++;
    return 0;
}

/* column=in.(a,b): one condition for each value. */
static int read_in(struct arena *a, struct rt_filter *f, struct slice column, struct slice values, struct err *e)
{
    int r = 0;

    while (r == 0 && values.p) {
        struct slice value = next_value(&values);

        if (f->n == LIMIT_FILTER_VALUES)
            return err_set(e, -EINVAL, "INVALID_FILTER", "in.(...) must have at most %d values", LIMIT_FILTER_VALUES);
        r = add_test(a, f, arena_printf(a, "%.*s=eq.%.*s", (int)column.n, column.p, (int)value.n, value.p), e);
    }
    return r;
}

int rt_filter_read(struct arena *a, struct slice text, struct rt_filter *f, struct err *e)
{
    const char *at = text.n ? memmem(text.p, text.n, "=in.(", 5) : NULL;
    size_t n = at ? LIMIT_FILTER_VALUES : 1;

    *f = (struct rt_filter){ .text = arena_slicedup(a, text) };
    if (text.n == 0)
        return 0;
    if (text.n > LIMIT_FILTER_BYTES)
        return err_set(e, -EINVAL, "INVALID_FILTER", "filter must be at most %d bytes", LIMIT_FILTER_BYTES);
    f->activity = arena_array(a, n, sizeof(struct filter *));
    f->own = arena_array(a, n, sizeof(struct filter *));
    if (!at || text.p[text.n - 1] != ')')
        return add_test(a, f, f->text, e);
    return read_in(a, f, (struct slice){ text.p, (size_t)(at - text.p) },
                   (struct slice){ at + 5, (size_t)(text.p + text.n - 1 - (at + 5)) }, e);
}

/* ---- checking ---- */

static int check_test(struct arena *a, const struct filter *test, const struct table_shape *shape, struct err *e)
{
    const struct table_column *c = table_shape_column(shape, slice_of(filter_column(test)));
    struct query_value value;
    struct err why = { 0 };

    if (!c)
        return err_set(e, -EINVAL, "INVALID_FILTER", "filter column \"%.64s\" does not exist in table %.130s",
                       filter_column(test), shape->table);
    if (filter_has_path(test) != table_type_is_json(c->type))
        return err_set(e, -EINVAL, "INVALID_FILTER", "filter column %.64s %s", c->name,
                       filter_has_path(test) ? "has no members: use -> and ->> on columns of JSON"
                                             : "holds JSON: name one of its members, as in data->>key");
    if (!filter_has_path(test) && query_value_read(a, c->type, filter_value(test), &value, &why) < 0)
        return err_set(e, -EINVAL, "INVALID_FILTER", "filter value of column %.64s: %.200s", c->name, why.text);
    return 0;
}

int rt_filter_check(const struct rt_filter *f, const struct table_shape *shape, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    int r = 0;

    if (!shape->has_own_columns)
        return f->activity_fault ? err_set(e, -EINVAL, "INVALID_FILTER", "%s", f->activity_fault) : 0;
    for (size_t i = 0; r == 0 && i < f->n; i++)
        r = check_test(a, f->own[i], shape, e);
    return r;
}

/* ---- matching ---- */

#define SIGN_OF(a, b) ((a) < (b) ? -1 : (a) > (b))

static int compare_texts(struct slice a, struct slice b)
{
    int difference = MIN(a.n, b.n) ? memcmp(a.p, b.p, MIN(a.n, b.n)) : 0;

    return difference ? difference : SIGN_OF(a.n, b.n);
}

/* Long double holds every int64 and every double. */
static long double number_of(const struct query_value *v)
{
    return v->kind == QUERY_VALUE_INT ? (long double)v->i : (long double)v->d;
}

static bool matches_column(const struct filter *test, enum table_type type, struct json_value column)
{
    AUTO(arena_freep) struct arena *a = arena_new_sized(512);
    struct query_value value, wanted;

    if (query_value_of_json(a, type, column, &value, NULL) < 0 ||
        query_value_read(a, type, filter_value(test), &wanted, NULL) < 0)
        return false;
    if (value.kind == QUERY_VALUE_NULL || wanted.kind == QUERY_VALUE_NULL)
        return false;
    if (value.kind == QUERY_VALUE_TEXT || wanted.kind == QUERY_VALUE_TEXT)
        return value.kind == wanted.kind && filter_accepts(test, compare_texts(value.text, wanted.text));
    return filter_accepts(test, SIGN_OF(number_of(&value), number_of(&wanted)));
}

/* A NULL matches nothing, as in SQL. */
static bool matches_own(const struct filter *test, const struct rt_change *c)
{
    const struct table_column *column = table_shape_column(&c->shape->of, slice_of(filter_column(test)));
    struct json_value value = json_get(c->record, filter_column(test));

    if (!column || json_is_absent(value) || filter_has_path(test) != table_type_is_json(column->type))
        return false;
    return filter_has_path(test) ? filter_matches_member(test, value) : matches_column(test, column->type, value);
}

bool rt_filter_passes(const struct rt_filter *f, const struct rt_change *c)
{
    const struct backend_row *row = c->new_row ? c->new_row : c->old_row;

    for (size_t i = 0; i < f->n; i++)
        if (c->shape ? matches_own(f->own[i], c) : f->activity[i] && filter_matches(f->activity[i], row))
            return true;
    return f->n == 0;
}
