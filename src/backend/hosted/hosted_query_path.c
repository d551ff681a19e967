/* The grammar of the REST interface (PostgREST, "Tables and Views"): names and values that hold a character with a
 * meaning are in double quotes. */
#include "backend/hosted/hosted_query.h"
#include "base/limits.h"

#include <string.h>

static const char *const op_names[] = { [QUERY_EQ] = "eq",       [QUERY_NEQ] = "neq",
                                        [QUERY_GT] = "gt",       [QUERY_GTE] = "gte",
                                        [QUERY_LT] = "lt",       [QUERY_LTE] = "lte",
                                        [QUERY_IN] = "in",       [QUERY_IS] = "is",
                                        [QUERY_LIKE] = "like",   [QUERY_ILIKE] = "ilike",
                                        [QUERY_CONTAINS] = "cs", [QUERY_CONTAINED] = "cd",
                                        [QUERY_OVERLAPS] = "ov", [QUERY_IS_DISTINCT] = "isdistinct" };

/* ---- names ---- */

static void put_name(struct buf *out, const char *name)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";

    if (*name && name[strspn(name, plain)] == '\0')
        buf_add_str(out, name);
    else
        hosted_quote(out, name);
}

/* An index may be negative: it counts from the end. */
static void put_step(struct buf *out, const char *step)
{
    bool is_index = *step == '-' && step[1] && step[1 + strspn(step + 1, "0123456789")] == '\0';

    if (is_index)
        buf_add_str(out, step);
    else
        put_name(out, step);
}

static int put_path(const struct hosted_query *w, const struct query_path *path, struct buf *out, struct err *e)
{
    const struct query_sql s = { .shape = w->shape, .arena = w->arena };
    struct query_operand of;
    int r = query_sql_operand(&s, path, &of, e);

    if (r < 0)
        return r;
    put_name(out, path->column);
    for (size_t i = 0; i < path->n_steps; i++) {
        buf_add_str(out, path->is_text && i + 1 == path->n_steps ? "->>" : "->");
        put_step(out, path->steps[i]);
    }
    return 0;
}

static int add_text(struct hosted_query *w, const char *name, struct buf *text, int r, struct err *e)
{
    if (r == 0)
        r = buf_check(text, e);
    if (r == 0)
        hosted_path_add(&w->path, name, buf_str(text));
    buf_clear(text);
    return r;
}

int hosted_put_columns(struct hosted_query *w, const char *name, const char *const *columns, size_t n, struct err *e)
{
    struct buf out;
    int r = 0;

    buf_init(&out, LIMIT_HOSTED_PATH);
    for (size_t i = 0; r == 0 && i < n; i++) {
        buf_add_str(&out, i ? "," : "");
        put_name(&out, columns[i]);
        if (!table_shape_column(w->shape, slice_of(columns[i])))
            r = query_refuse_column(w->shape, columns[i], e);
    }
    return add_text(w, name, &out, r, e);
}

/* ---- what is given back ---- */

static int put_item(const struct hosted_query *w, const struct query_item *item, struct buf *out, struct err *e)
{
    int r;

    if (item->alias || item->path.n_steps) {
        put_name(out, query_item_name(item));
        buf_add_char(out, ':');
    }
    r = put_path(w, &item->path, out, e);
    if (r == 0 && item->path.cast)
        buf_printf(out, "::%s", table_type_word(*item->path.cast));
    return r;
}

int hosted_put_items(struct hosted_query *w, struct err *e)
{
    size_t n = w->q->n_items ? w->q->n_items : w->shape->n_columns;
    struct buf out;
    int r = 0;

    if (!w->q->n_items && w->shape->has_own_columns)
        return 0; /* the interface gives all */
    buf_init(&out, LIMIT_HOSTED_PATH);
    for (size_t i = 0; r == 0 && i < n; i++) {
        struct query_item column = { 0 };

        buf_add_str(&out, i ? "," : "");
        if (!w->q->n_items)
            column.path.column = w->shape->columns[i].name;
        r = put_item(w, w->q->n_items ? &w->q->items[i] : &column, &out, e);
    }
    return add_text(w, "select", &out, r, e);
}

/* ---- conditions ---- */

/* A value with a character that has a meaning, or without any, is in quotes. */
static void put_text(struct buf *out, const char *text)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+:%";

    if (*text && text[strspn(text, plain)] == '\0')
        buf_add_str(out, text);
    else
        hosted_quote(out, text);
}

static int put_list(const struct query_condition *c, struct buf *out)
{
    buf_add_char(out, '(');
    for (size_t i = 0; i < c->n_values; i++) {
        buf_add_str(out, i ? "," : "");
        put_text(out, c->values[i]);
    }
    buf_add_char(out, ')');
    return 0;
}

static int put_value(const struct query_condition *c, struct buf *out, struct err *e)
{
    bool is_pattern = c->op == QUERY_LIKE || c->op == QUERY_ILIKE;

    if (c->op == QUERY_IN)
        return put_list(c, out);
    if (is_pattern && strchr(c->values[0], '*'))
        return err_set(e, -EINVAL, "BAD_OPERATOR",
                       "The hosted service's REST interface reads * in a pattern as %%, so a pattern cannot have one");
    if (c->op == QUERY_IS)
        buf_add_str(out, c->values[0]);
    else
        put_text(out, c->values[0]);
    return 0;
}

static int check_test(const struct query_condition *c, struct err *e)
{
    static const char *const words[] = { "null", "not_null", "true", "false", "unknown" };

    if (c->op != QUERY_IN && c->n_values != 1)
        return err_set(e, -EINVAL, "BAD_OPERATOR", "This operator takes one value");
    if (c->path.cast)
        return err_set(e, -EINVAL, "BAD_OPERATOR",
                       "The hosted service's REST interface has no casts in conditions: %.63s", c->path.column);
    for (size_t i = 0; c->op == QUERY_IS && i <= ARRAY_SIZE(words); i++) {
        if (i == ARRAY_SIZE(words))
            return err_set(e, -EINVAL, "BAD_OPERATOR", "IS takes null, not_null, true, false or unknown");
        if (strcmp(c->values[0], words[i]) == 0)
            break;
    }
    return 0;
}

static int put_test(const struct hosted_query *w, const struct query_condition *c, struct buf *out, struct err *e)
{
    static const char *const null[] = { "null" };
    struct query_condition test = *c;
    int r = put_path(w, &c->path, out, e);

    if (r == 0)
        r = check_test(c, e);
    if (r < 0)
        return r;
    if (c->op == QUERY_IS && strcmp(c->values[0], "not_null") == 0) {
        test.values = null;
        test.is_not = !c->is_not;
    }
    buf_printf(out, ".%s%s.", test.is_not ? "not." : "", op_names[c->op]);
    return put_value(&test, out, e);
}

/* No condition stands for true, none of several for false: any column is null or is not. */
static void put_constant(const struct hosted_query *w, bool is_true, struct buf *out)
{
    const char *column = w->shape->columns[0].name;

    buf_add_str(out, is_true ? "or(" : "and(");
    put_name(out, column);
    buf_add_str(out, ".is.null,");
    put_name(out, column);
    buf_add_str(out, ".not.is.null)");
}

static int put_condition(const struct hosted_query *w, const struct query_condition *c, struct buf *out, struct err *e)
{
    int r = 0;

    if (c->junction == QUERY_TEST)
        return put_test(w, c, out, e);
    if (c->n_items == 0) {
        put_constant(w, (c->junction == QUERY_AND) != c->is_not, out);
        return 0;
    }
    buf_printf(out, "%s%s(", c->is_not ? "not." : "", c->junction == QUERY_AND ? "and" : "or");
    for (size_t i = 0; r == 0 && i < c->n_items; i++) {
        buf_add_str(out, i ? "," : "");
        r = put_condition(w, &c->items[i], out, e);
    }
    buf_add_char(out, ')');
    return r;
}

int hosted_put_where(struct hosted_query *w, struct err *e)
{
    const struct query_condition mine = {
        .path = { .column = "user_id" }, .op = QUERY_EQ, .values = &w->q->only_user, .n_values = 1
    };
    bool has_rule = query_has_rule(w->q, w->shape);
    struct buf out;
    int r = 0;

    if (!w->q->where && !has_rule && w->q->kind == QUERY_SELECT)
        return 0;
    buf_init(&out, LIMIT_HOSTED_PATH);
    buf_add_char(&out, '(');
    if (has_rule)
        r = put_condition(w, &mine, &out, e);
    if (r == 0 && w->q->where) {
        buf_add_str(&out, has_rule ? "," : "");
        r = put_condition(w, w->q->where, &out, e);
    }
    if (!w->q->where && !has_rule) /* a change without a condition is refused there */
        put_constant(w, true, &out);
    buf_add_char(&out, ')');
    return add_text(w, "and", &out, r, e);
}

/* ---- order, limit and offset ---- */

static int put_order(const struct hosted_query *w, const struct query_order *o, struct buf *out, struct err *e)
{
    bool is_first = o->nulls == QUERY_NULLS_FIRST || (o->nulls == QUERY_NULLS_DEFAULT && o->is_descending);
    int r = put_path(w, &o->path, out, e);

    buf_printf(out, ".%s.%s", o->is_descending ? "desc" : "asc", is_first ? "nullsfirst" : "nullslast");
    return r;
}

int hosted_put_range(struct hosted_query *w, int64_t max_rows, struct err *e)
{
    const struct query *q = w->q;
    struct buf out;
    int r = 0;

    buf_init(&out, LIMIT_HOSTED_PATH);
    for (size_t i = 0; r == 0 && i < q->n_order; i++) {
        buf_add_str(&out, i ? "," : "");
        r = put_order(w, &q->order[i], &out, e);
    }
    if (q->n_order)
        r = add_text(w, "order", &out, r, e);
    hosted_path_number(&w->path, "limit", q->limit < 0 ? max_rows : MIN(q->limit, max_rows));
    if (q->offset > 0)
        hosted_path_number(&w->path, "offset", q->offset);
    return r;
}
