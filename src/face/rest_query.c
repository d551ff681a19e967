#include "face/rest_query.h"

#include "base/percent.h"
#include "face/rest_condition.h"

#include <stdlib.h>

/* ---- parameters ---- */

static struct slice cut_at(struct slice *rest, char separator)
{
    const char *end = rest->n ? memchr(rest->p, separator, rest->n) : NULL;
    struct slice before = { rest->p, end ? (size_t)(end - rest->p) : rest->n };
    size_t n = before.n + (end != NULL);

    *rest = (struct slice){ rest->p + n, rest->n - n };
    return before;
}

static int decode(struct arena *a, struct slice text, const char **ret, struct err *e)
{
    char *decoded;

    if (percent_decode(a, text, true, &decoded, NULL) < 0)
        return err_set(e, -EINVAL, "BAD_REST_QUERY", "The query must be percent-encoded UTF-8 without NUL.");
    *ret = decoded;
    return 0;
}

int rest_params_read(struct arena *a, const char *query, struct rest_param **ret, size_t *ret_n, struct err *e)
{
    struct slice rest = slice_of(query);
    struct rest_param *params = NULL;
    size_t n = 0;
    int r = 0;

    if (rest.n > LIMIT_TARGET_BYTES)
        return err_set(e, -EINVAL, "BAD_REST_QUERY", "The query must have at most %d bytes.", LIMIT_TARGET_BYTES);
    while (r == 0 && rest.n > 0) {
        struct slice value = cut_at(&rest, '&'), name = cut_at(&value, '=');
        struct rest_param *param;

        if (name.n == 0 && value.n == 0)
            continue;
        params = rest_room(a, params, n, sizeof(*params));
        param = &params[n];
        r = decode(a, name, &param->name, e);
        if (r == 0)
            r = decode(a, value, &param->value, e);
        n += r == 0 && strcmp(param->name, "apikey") != 0;
    }
    *ret = params;
    *ret_n = n;
    return r;
}

/* ---- select ---- */

static int read_cast(struct rest_text *t, struct query_path *path, struct err *e)
{
    enum table_type *type;
    struct slice name;

    if (!rest_skip(t, "::"))
        return 0;
    type = ARENA_NEW(t->arena, enum table_type);
    name = rest_until(t, ",()");
    if (!table_type_of(name, type))
        return rest_refuse(t, e, "casts to \"%.*s\", which is none of the types that this service casts to",
                           REST_SHOWN(name));
    path->cast = type;
    return 0;
}

/* "alias:path"; a colon that is doubled begins a cast. */
static int read_alias(struct rest_text *t, const char **ret, struct err *e)
{
    struct rest_text ahead = *t;
    const char *name;

    if (rest_is_next(t, ":") || rest_read_name(&ahead, &name, NULL) < 0 || !rest_is_next(&ahead, ":") ||
        rest_is_next(&ahead, "::"))
        return 0;
    (void)rest_skip(&ahead, ":");
    *t = ahead;
    *ret = name;
    return 0;
}

static bool is_index(const char *step)
{
    return step[strspn(step, "-0123456789")] == '\0';
}

/* The name of a member of JSON: the last step that is no index. */
static const char *name_of_path(const struct query_path *path)
{
    for (size_t i = path->n_steps; i > 0; i--)
        if (!is_index(path->steps[i - 1]))
            return path->steps[i - 1];
    return path->column;
}

static int check_table(const struct rest_text *t, struct err *e)
{
    if (rest_is_next(t, "(") || rest_is_next(t, "!"))
        return rest_refuse(t, e,
                           "embeds another table or calls a function, which this service does not serve: \"%.*s\"",
                           REST_SHOWN(t->rest));
    if (rest_is_next(t, "."))
        return rest_refuse(t, e, "uses an aggregate or a member of another table, which this service does not serve");
    return 0;
}

static int read_item(struct rest_text *t, struct query_item *ret, struct err *e)
{
    int r;

    if (rest_skip(t, "*"))
        return 0;
    if (rest_is_next(t, "..."))
        return rest_refuse(t, e, "spreads another table, which this service does not serve");
    r = read_alias(t, &ret->alias, e);
    if (r == 0)
        r = rest_read_path(t, &ret->path, e);
    if (r == 0)
        r = check_table(t, e);
    if (r == 0)
        r = read_cast(t, &ret->path, e);
    if (r == 0)
        r = check_table(t, e);
    if (r == 0 && !ret->alias && ret->path.n_steps > 0)
        ret->alias = name_of_path(&ret->path);
    return r;
}

static int too_many(const struct rest_text *t, int limit, struct err *e)
{
    return rest_refuse(t, e, "may have at most %d elements", limit);
}

static int read_select(struct rest_text *t, struct rest_query *q, struct err *e)
{
    struct query_item *items = NULL;
    size_t n = 0;
    int r = 0;

    if (t->rest.n == 0)
        return 0;
    do {
        if (n == LIMIT_TABLE_COLUMNS)
            return too_many(t, LIMIT_TABLE_COLUMNS, e);
        items = rest_room(t->arena, items, n, sizeof(*items));
        r = read_item(t, &items[n++], e);
    } while (r == 0 && rest_skip(t, ","));
    if (r == 0)
        r = rest_need_end(t, e);
    q->items = items;
    q->n_items = n == 1 && !items[0].path.column ? 0 : n;
    return r;
}

/* ---- order, limit, lists of columns ---- */

static int read_order_item(struct rest_text *t, struct query_order *ret, struct err *e)
{
    int r = rest_read_path(t, &ret->path, e);

    if (r == 0 && rest_is_next(t, "("))
        return rest_refuse(t, e, "orders by another table, which this service does not serve");
    if (r < 0 || !rest_skip(t, "."))
        return r;
    ret->is_descending = rest_skip(t, "desc");
    if ((ret->is_descending || rest_skip(t, "asc")) && !rest_skip(t, "."))
        return 0;
    if (rest_skip(t, "nullsfirst"))
        ret->nulls = QUERY_NULLS_FIRST;
    else if (rest_skip(t, "nullslast"))
        ret->nulls = QUERY_NULLS_LAST;
    else
        return rest_refuse(t, e, "needs asc, desc, nullsfirst or nullslast where \"%.*s\" stands", REST_SHOWN(t->rest));
    return 0;
}

static int read_order(struct rest_text *t, struct rest_query *q, struct err *e)
{
    struct query_order *order = NULL;
    size_t n = 0;
    int r = 0;

    if (t->rest.n == 0)
        return 0;
    do {
        if (n == LIMIT_QUERY_ORDER)
            return too_many(t, LIMIT_QUERY_ORDER, e);
        order = rest_room(t->arena, order, n, sizeof(*order));
        r = read_order_item(t, &order[n++], e);
    } while (r == 0 && rest_skip(t, ","));
    q->order = order;
    q->n_order = n;
    return r < 0 ? r : rest_need_end(t, e);
}

static int read_number(const struct rest_text *t, int64_t *ret, struct err *e)
{
    const char *text = t->rest.p;
    size_t n = strspn(text, "0123456789");

    if (text[0] == '-' && text[1] && strspn(text + 1, "0123456789") == t->rest.n - 1)
        return err_set(e, -ERANGE, "BAD_RANGE", "`%s` must not be negative.", t->param);
    if (n == 0 || n != t->rest.n || n > 18)
        return rest_refuse(t, e, "must be a whole number");
    *ret = strtoll(text, NULL, 10);
    return 0;
}

static int read_limit(struct rest_text *t, struct rest_query *q, struct err *e)
{
    return read_number(t, &q->limit, e);
}

static int read_offset(struct rest_text *t, struct rest_query *q, struct err *e)
{
    return read_number(t, &q->offset, e);
}

static int read_names(struct rest_text *t, const char *const **ret, size_t *ret_n, struct err *e)
{
    const char **names = NULL;
    size_t n = 0;
    int r = 0;

    if (t->rest.n == 0)
        return 0;
    do {
        if (n == LIMIT_TABLE_COLUMNS)
            return too_many(t, LIMIT_TABLE_COLUMNS, e);
        names = rest_room(t->arena, names, n, sizeof(*names));
        r = rest_read_name(t, &names[n++], e);
    } while (r == 0 && rest_skip(t, ","));
    *ret = names;
    *ret_n = n;
    return r < 0 ? r : rest_need_end(t, e);
}

static int read_columns(struct rest_text *t, struct rest_query *q, struct err *e)
{
    return read_names(t, &q->columns, &q->n_columns, e);
}

static int read_on_conflict(struct rest_text *t, struct rest_query *q, struct err *e)
{
    return read_names(t, &q->on_conflict, &q->n_on_conflict, e);
}

/* ---- a whole query ---- */

static const struct reader {
    const char *name;
    int (*read)(struct rest_text *t, struct rest_query *q, struct err *e);
} readers[] = {
    { "select", read_select }, { "order", read_order },     { "limit", read_limit },
    { "offset", read_offset }, { "columns", read_columns }, { "on_conflict", read_on_conflict },
};

static const struct reader *reader_of(const char *name, size_t *ret_at)
{
    for (*ret_at = 0; *ret_at < ARRAY_SIZE(readers); ++*ret_at)
        if (strcmp(readers[*ret_at].name, name) == 0)
            return &readers[*ret_at];
    return NULL;
}

struct parsing {
    struct arena *arena;
    struct rest_query *query;
    struct rest_counts counts;
    struct query_condition *conditions;
    size_t n;
    bool is_read[ARRAY_SIZE(readers)];
};

static int read_param(struct parsing *p, const struct rest_param *param, struct err *e)
{
    struct rest_text t = { .arena = p->arena, .param = param->name, .rest = slice_of(param->value) };
    size_t at;
    const struct reader *reader = reader_of(param->name, &at);

    if (reader && p->is_read[at])
        return rest_refuse(&t, e, "stands twice");
    if (reader) {
        p->is_read[at] = true;
        return reader->read(&t, p->query, e);
    }
    p->conditions = rest_room(p->arena, p->conditions, p->n, sizeof(*p->conditions));
    return rest_is_logic(param->name) ? rest_read_logic(&t, &p->counts, &p->conditions[p->n++], e)
                                      : rest_read_filter(&t, &p->counts, &p->conditions[p->n++], e);
}

static const struct query_condition *all_of(const struct parsing *p)
{
    struct query_condition *all;

    if (p->n < 2)
        return p->n ? p->conditions : NULL;
    all = ARENA_NEW(p->arena, struct query_condition);
    *all = (struct query_condition){ .junction = QUERY_AND, .items = p->conditions, .n_items = p->n };
    return all;
}

int rest_query_parse(struct arena *a, const char *query, struct rest_query *ret, struct err *e)
{
    struct rest_query q = { .limit = -1 };
    struct parsing p = { .arena = a, .query = &q };
    struct rest_param *params = NULL;
    size_t n = 0;
    int r = rest_params_read(a, query, &params, &n, e);

    for (size_t i = 0; r == 0 && i < n; i++)
        r = read_param(&p, &params[i], e);
    if (r < 0)
        return r;
    q.where = all_of(&p);
    *ret = q;
    return 0;
}
