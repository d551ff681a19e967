#include "face/rest_condition.h"

#include <strings.h>

static const struct {
    const char *name;
    enum query_op op;
} served_ops[] = {
    { "eq", QUERY_EQ },       { "neq", QUERY_NEQ },
    { "gt", QUERY_GT },       { "gte", QUERY_GTE },
    { "lt", QUERY_LT },       { "lte", QUERY_LTE },
    { "in", QUERY_IN },       { "is", QUERY_IS },
    { "like", QUERY_LIKE },   { "ilike", QUERY_ILIKE },
    { "cs", QUERY_CONTAINS }, { "cd", QUERY_CONTAINED },
    { "ov", QUERY_OVERLAPS }, { "isdistinct", QUERY_IS_DISTINCT },
};

static const char *const other_ops[] = { "match", "imatch", "fts", "plfts", "phfts", "wfts",
                                         "sl",    "sr",     "nxr", "nxl",   "adj" };

static const char *const is_words[] = { "null", "not_null", "true", "false", "unknown" };

/* and, or, not.and and not.or before a parenthesis. */
static const struct junction {
    const char *name;
    enum query_junction junction;
    bool is_not;
} junctions[] = {
    { "and", QUERY_AND, false },
    { "or", QUERY_OR, false },
    { "not.and", QUERY_AND, true },
    { "not.or", QUERY_OR, true },
};

struct reading {
    struct rest_text *t;
    struct rest_counts *counts;
    bool is_nested; /* a value ends before a comma or a parenthesis */
};

/* ---- operators ---- */

static int refuse_op(const struct rest_text *t, struct slice name, struct err *e)
{
    for (size_t i = 0; i < ARRAY_SIZE(other_ops); i++)
        if (slice_eq_str(name, other_ops[i]))
            return rest_refuse(t, e, "uses the operator %s, which this service does not serve", other_ops[i]);
    return rest_refuse(t, e,
                       "needs an operator where \"%.*s\" stands: eq, neq, gt, gte, lt, lte, in, is, like, ilike, cs, "
                       "cd, ov or isdistinct, as in eq.5 or not.eq.5",
                       REST_SHOWN(name));
}

static int read_op(struct rest_text *t, enum query_op *ret, struct err *e)
{
    struct slice name = rest_until(t, ".(,)");

    for (size_t i = 0; i < ARRAY_SIZE(served_ops); i++) {
        if (!slice_eq_str(name, served_ops[i].name))
            continue;
        if (rest_is_next(t, "("))
            return rest_refuse(t, e, "uses %s(any) or %s(all), which this service does not serve", served_ops[i].name,
                               served_ops[i].name);
        if (!rest_skip(t, "."))
            return rest_refuse(t, e, "needs a value after %s, as in %s.5", served_ops[i].name, served_ops[i].name);
        *ret = served_ops[i].op;
        return 0;
    }
    return refuse_op(t, name, e);
}

/* ---- values ---- */

/* "{a,"b}"}": an array as PostgreSQL writes it; its braces are part of the value. */
static struct slice take_array(struct rest_text *t)
{
    struct slice array = { t->rest.p, 0 };
    bool is_quoted = false;
    size_t depth = 0;

    while (array.n < t->rest.n) {
        char c = t->rest.p[array.n++];

        if (c == '\\' && array.n < t->rest.n)
            array.n++;
        else if (c == '"')
            is_quoted = !is_quoted;
        else if (!is_quoted && c == '{')
            depth++;
        else if (!is_quoted && c == '}' && --depth == 0)
            break;
    }
    t->rest = (struct slice){ t->rest.p + array.n, t->rest.n - array.n };
    return array;
}

static int check_end_of_value(const struct rest_text *t, struct err *e)
{
    if (t->rest.n == 0 || t->rest.p[0] == ',' || t->rest.p[0] == ')')
        return 0;
    return rest_refuse(t, e, "has text after the end of a value at \"%.*s\"", REST_SHOWN(t->rest));
}

/* A value between commas and parentheses. */
static int read_part(struct rest_text *t, const char **ret, struct err *e)
{
    int r = 0;

    if (rest_is_next(t, "\""))
        r = rest_read_quoted(t, ret, e);
    else
        *ret = arena_slicedup(t->arena, rest_is_next(t, "{") ? take_array(t) : rest_until(t, ",)"));
    return r < 0 ? r : check_end_of_value(t, e);
}

static int read_value(const struct reading *in, const char **ret, struct err *e)
{
    struct rest_text *t = in->t;

    if (in->is_nested)
        return read_part(t, ret, e);
    *ret = arena_slicedup(t->arena, t->rest);
    t->rest.n = 0;
    return 0;
}

static int add_value(const struct reading *in, const char ***values, struct query_condition *c, struct err *e)
{
    if (in->counts->n_values == LIMIT_REST_VALUES)
        return rest_refuse(in->t, e, "may have at most %d values of in.(...) in one request", LIMIT_REST_VALUES);
    in->counts->n_values++;
    *values = rest_room(in->t->arena, *values, c->n_values, sizeof(**values));
    return read_part(in->t, &(*values)[c->n_values++], e);
}

/* "(a,b)"; "()" has no value. */
static int read_list(const struct reading *in, struct query_condition *c, struct err *e)
{
    const char **values = NULL;
    int r = 0;

    if (!rest_skip(in->t, "("))
        return rest_refuse(in->t, e, "needs a list after in, as in in.(a,b)");
    if (rest_skip(in->t, ")"))
        return 0;
    do
        r = add_value(in, &values, c, e);
    while (r == 0 && rest_skip(in->t, ","));
    c->values = values;
    if (r == 0 && !rest_skip(in->t, ")"))
        r = rest_refuse(in->t, e, "misses the closing parenthesis of a list");
    return r;
}

static int check_is(const struct rest_text *t, const char **word, struct err *e)
{
    for (size_t i = 0; i < ARRAY_SIZE(is_words); i++)
        if (strcasecmp(*word, is_words[i]) == 0) {
            *word = is_words[i];
            return 0;
        }
    return rest_refuse(t, e, "needs null, not_null, true, false or unknown after is, not \"%.64s\"", *word);
}

/* * stands for %, which an address would have to escape. */
static const char *as_pattern(struct arena *a, const char *text)
{
    char *pattern = arena_strdup(a, text);

    for (char *at = strchr(pattern, '*'); at; at = strchr(at, '*'))
        *at = '%';
    return pattern;
}

static int read_single(const struct reading *in, struct query_condition *c, struct err *e)
{
    const char **value = ARENA_NEW(in->t->arena, const char *);
    int r = read_value(in, value, e);

    if (r == 0 && c->op == QUERY_IS)
        r = check_is(in->t, value, e);
    if (r == 0 && (c->op == QUERY_LIKE || c->op == QUERY_ILIKE))
        *value = as_pattern(in->t->arena, *value);
    c->values = value;
    c->n_values = 1;
    return r;
}

/* ---- conditions ---- */

static int count(const struct reading *in, struct err *e)
{
    if (in->counts->n_conditions++ < LIMIT_REST_CONDITIONS)
        return 0;
    return rest_refuse(in->t, e, "is one condition too many: a request may have %d", LIMIT_REST_CONDITIONS);
}

/* "not.eq.5" behind its path. */
static int read_test(const struct reading *in, struct query_condition *c, struct err *e)
{
    int r = count(in, e);

    c->is_not = rest_skip(in->t, "not.");
    if (r == 0)
        r = read_op(in->t, &c->op, e);
    if (r < 0)
        return r;
    return c->op == QUERY_IN ? read_list(in, c, e) : read_single(in, c, e);
}

static const struct junction *junction_of(struct rest_text *t)
{
    for (size_t i = 0; i < ARRAY_SIZE(junctions); i++) {
        size_t n = strlen(junctions[i].name);

        if (rest_is_next(t, junctions[i].name) && t->rest.n > n && t->rest.p[n] == '(') {
            (void)rest_skip(t, junctions[i].name);
            return &junctions[i];
        }
    }
    return NULL;
}

static int read_group(const struct reading *in, const struct junction *as, size_t depth, struct query_condition *ret,
                      struct err *e);

static int read_member(const struct reading *in, size_t depth, struct query_condition *ret, struct err *e)
{
    const struct junction *as = junction_of(in->t);
    int r;

    if (as)
        return read_group(in, as, depth + 1, ret, e);
    r = rest_read_path(in->t, &ret->path, e);
    if (r == 0 && !rest_skip(in->t, "."))
        r = rest_refuse(in->t, e, "needs column.operator.value where \"%.*s\" stands", REST_SHOWN(in->t->rest));
    return r < 0 ? r : read_test(in, ret, e);
}

static int read_group(const struct reading *in, const struct junction *as, size_t depth, struct query_condition *ret,
                      struct err *e)
{
    struct query_condition *items = NULL;
    size_t n = 0;
    int r = count(in, e);

    if (r == 0 && depth > LIMIT_REST_DEPTH)
        r = rest_refuse(in->t, e, "may nest and(...) and or(...) %d deep", LIMIT_REST_DEPTH);
    if (r == 0 && !rest_skip(in->t, "("))
        r = rest_refuse(in->t, e, "needs conditions in parentheses, as in (a.eq.1,b.gt.2)");
    while (r == 0) {
        items = rest_room(in->t->arena, items, n, sizeof(*items));
        r = read_member(in, depth, &items[n++], e);
        if (!rest_skip(in->t, ","))
            break;
    }
    if (r == 0 && !rest_skip(in->t, ")"))
        r = rest_refuse(in->t, e, "misses a closing parenthesis at \"%.*s\"", REST_SHOWN(in->t->rest));
    *ret = (struct query_condition){ .junction = as->junction, .is_not = as->is_not, .items = items, .n_items = n };
    return r;
}

/* ---- parameters ---- */

static const struct junction *logic_of(const char *param)
{
    for (size_t i = 0; i < ARRAY_SIZE(junctions); i++)
        if (strcmp(param, junctions[i].name) == 0)
            return &junctions[i];
    return NULL;
}

bool rest_is_logic(const char *param)
{
    return logic_of(param) != NULL;
}

int rest_read_logic(struct rest_text *t, struct rest_counts *counts, struct query_condition *ret, struct err *e)
{
    const struct reading in = { t, counts, true };
    int r = read_group(&in, logic_of(t->param), 1, ret, e);

    return r < 0 ? r : rest_need_end(t, e);
}

int rest_read_filter(struct rest_text *t, struct rest_counts *counts, struct query_condition *ret, struct err *e)
{
    struct rest_text name = { .arena = t->arena, .param = t->param, .rest = slice_of(t->param) };
    const struct reading in = { t, counts, false };
    int r = rest_read_path(&name, &ret->path, e);

    if (r == 0 && rest_is_next(&name, "."))
        return rest_refuse(t, e, "is a filter on another table, which this service does not serve");
    if (r == 0)
        r = rest_need_end(&name, e);
    if (r == 0)
        r = read_test(&in, ret, e);
    return r < 0 ? r : rest_need_end(t, e);
}
