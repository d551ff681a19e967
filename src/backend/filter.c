#include "backend/filter.h"
#include "backend/backend_columns.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/utf8.h"

enum order { ORDER_LESS = 1, ORDER_EQUAL = 2, ORDER_GREATER = 4, ORDER_NONE = 8 /* of different types */ };

static const struct filter_op {
    const char *name;
    unsigned accepts;
} filter_ops[] = {
    { "eq", ORDER_EQUAL },   { "neq", ORDER_LESS | ORDER_GREATER | ORDER_NONE },
    { "gt", ORDER_GREATER }, { "gte", ORDER_GREATER | ORDER_EQUAL },
    { "lt", ORDER_LESS },    { "lte", ORDER_LESS | ORDER_EQUAL },
};

/* The value, read as each type it could be; the type of the row's value decides which reading counts. */
struct filter {
    const char *name;                    /* of the column */
    const struct backend_column *column; /* NULL: of a table with columns of its own */
    const char **path;                   /* members below a JSON column */
    size_t n_path;
    const struct filter_op *op;
    struct slice text;
    struct json_value json; /* when the text is a number, true or false; else absent */
    bool has_time;
    int64_t time_ms;
};

/* --- parsing --- */

#define FORM "write column=operator.value, for example status=eq.pending or raw_data->>amount=gt.100"

static int invalid(struct err *e, const char *what)
{
    return err_set(e, -EINVAL, "INVALID_FILTER", "filter %s: " FORM, what);
}

/* Splits off the part of *rest before `mark`; false when *rest does not contain the mark. */
static bool cut(struct slice *rest, const char *mark, struct slice *ret_before)
{
    const char *at = rest->n ? memmem(rest->p, rest->n, mark, strlen(mark)) : NULL;

    if (!at)
        return false;
    *ret_before = (struct slice){ rest->p, (size_t)(at - rest->p) };
    rest->n -= ret_before->n + strlen(mark);
    rest->p = at + strlen(mark);
    return true;
}

static int add_member(struct arena *a, struct filter *f, struct slice member, struct err *e)
{
    member = slice_trim(member);
    if (f->n_path == LIMIT_FILTER_PATH)
        return err_set(e, -EINVAL, "INVALID_FILTER", "filter path must have at most %d members", LIMIT_FILTER_PATH);
    if (member.n == 0)
        return invalid(e, "names an empty member");
    if (memchr("'\"", member.p[0], 2))
        return err_set(e, -EINVAL, "INVALID_FILTER",
                       "filter members stand without quotes: write raw_data->>key, not raw_data->>'key'");
    f->path[f->n_path++] = arena_slicedup(a, member);
    return 0;
}

/* "->a->>b" after the column's name: every step is -> except the last, which is ->>. */
static int parse_path(struct arena *a, struct filter *f, struct slice rest, struct err *e)
{
    struct slice member;
    int r = 0;

    f->path = arena_array(a, LIMIT_FILTER_PATH, sizeof(const char *));
    while (r == 0 && cut(&rest, "->", &member)) {
        if (member.n && member.p[0] == '>')
            return invalid(e, "uses ->> before the end of its path");
        r = add_member(a, f, member, e);
    }
    if (r < 0)
        return r;
    if (rest.n == 0 || rest.p[0] != '>')
        return invalid(e, "must end its path with ->>");
    return add_member(a, f, (struct slice){ rest.p + 1, rest.n - 1 }, e);
}

static int find_column(struct filter *f, struct slice name, bool has_path, struct err *e)
{
    f->column = backend_column_find(name);
    if (!f->column)
        return err_set(
            e, -EINVAL, "INVALID_FILTER",
            "filter column \"%.*s\" does not exist: name a column of the activities table, or a member as in "
            "raw_data->>key",
            (int)MIN(name.n, 64), name.p);
    if (has_path != (f->column->kind == COLUMN_JSON))
        return err_set(e, -EINVAL, "INVALID_FILTER", "filter column %s %s", f->column->name,
                       has_path ? "has no members: use -> and ->> on raw_data, old_data, result or attempted_by"
                                : "holds JSON: name one of its members, as in raw_data->>key");
    return 0;
}

static int parse_column(struct arena *a, struct filter *f, struct slice text, bool is_own, struct err *e)
{
    struct slice name = text, rest = text;
    bool has_path = cut(&rest, "->", &name);
    int r;

    name = slice_trim(name);
    f->name = arena_slicedup(a, name);
    r = is_own ? 0 : find_column(f, name, has_path, e);
    return r < 0 || !has_path ? r : parse_path(a, f, rest, e);
}

static int parse_op(struct filter *f, struct slice name, struct err *e)
{
    name = slice_trim(name);
    for (size_t i = 0; i < ARRAY_SIZE(filter_ops); i++)
        if (slice_eq_str(name, filter_ops[i].name))
            f->op = &filter_ops[i];
    if (!f->op)
        return err_set(e, -EINVAL, "INVALID_FILTER",
                       "filter operator \"%.*s\" does not exist: use eq, neq, gt, gte, lt or lte", (int)MIN(name.n, 32),
                       name.p);
    return 0;
}

/* The text between double quotes; a backslash escapes the next character. */
static int unquote(struct arena *a, struct slice quoted, struct slice *ret, struct err *e)
{
    char *out = arena_alloc(a, quoted.n + 1);
    size_t n = 0, i = 1;

    for (; i < quoted.n && quoted.p[i] != '"'; i++) {
        if (quoted.p[i] == '\\' && ++i == quoted.n)
            break;
        out[n++] = quoted.p[i];
    }
    if (i + 1 != quoted.n)
        return invalid(e, i < quoted.n ? "has text after the closing quote" : "misses the closing quote of its value");
    *ret = (struct slice){ out, n };
    return 0;
}

static void read_types(struct arena *a, struct filter *f)
{
    struct json_value value;

    f->has_time = clock_parse(f->text, &f->time_ms) == 0;
    if (json_parse(a, f->text, &value, NULL) == 0 && json_type(value) != JSON_NULL && json_type(value) <= JSON_DOUBLE)
        f->json = value;
}

static int parse_value(struct arena *a, struct filter *f, struct slice text, struct err *e)
{
    int r = 0;

    text = slice_trim(text);
    if (text.n && text.p[0] == '"')
        r = unquote(a, text, &f->text, e);
    else
        f->text = (struct slice){ arena_slicedup(a, text), text.n };
    if (r == 0)
        read_types(a, f);
    return r;
}

static int parse(struct arena *a, const char *text, bool is_own, struct filter **ret, struct err *e)
{
    struct slice rest = slice_trim(slice_of(text)), column, op;
    struct filter *f;
    int r;

    if (rest.n == 0) {
        *ret = NULL;
        return 0;
    }
    if (rest.n > LIMIT_FILTER_BYTES)
        return err_set(e, -EINVAL, "INVALID_FILTER", "filter must be at most %d bytes", LIMIT_FILTER_BYTES);
    if (!utf8_is_valid(rest))
        return err_set(e, -EINVAL, "INVALID_FILTER", "filter must be UTF-8");
    if (!cut(&rest, "=", &column) || !cut(&rest, ".", &op))
        return invalid(e, "is not one condition");
    f = ARENA_NEW(a, struct filter);
    r = parse_column(a, f, column, is_own, e);
    if (r == 0)
        r = parse_op(f, op, e);
    if (r == 0)
        r = parse_value(a, f, rest, e);
    if (r == 0)
        *ret = f;
    return r;
}

int filter_parse(struct arena *a, const char *text, struct filter **ret, struct err *e)
{
    return parse(a, text, false, ret, e);
}

int filter_parse_own(struct arena *a, const char *text, struct filter **ret, struct err *e)
{
    return parse(a, text, true, ret, e);
}

const char *filter_column(const struct filter *f)
{
    return f->name;
}

bool filter_has_path(const struct filter *f)
{
    return f->n_path > 0;
}

struct slice filter_value(const struct filter *f)
{
    return f->text;
}

/* --- matching --- */

#define ORDER_OF(a, b) ((a) < (b) ? ORDER_LESS : (a) > (b) ? ORDER_GREATER : ORDER_EQUAL)

/* Integers compare exactly; long double holds every int64 and every double. */
static enum order compare_int(const struct filter *f, int64_t value)
{
    enum json_type type = json_type(f->json);

    if (type == JSON_INT)
        return ORDER_OF(value, json_int(f->json));
    return type == JSON_DOUBLE ? ORDER_OF((long double)value, (long double)json_double(f->json)) : ORDER_NONE;
}

static enum order compare_double(const struct filter *f, double value)
{
    enum json_type type = json_type(f->json);

    if (type == JSON_INT)
        return ORDER_OF((long double)value, (long double)json_int(f->json));
    return type == JSON_DOUBLE ? ORDER_OF(value, json_double(f->json)) : ORDER_NONE;
}

static enum order compare_bool(const struct filter *f, bool value)
{
    return json_type(f->json) == JSON_BOOL ? ORDER_OF((int)value, (int)json_bool(f->json)) : ORDER_NONE;
}

/* The order of UTF-8 bytes is the order of code points. */
static enum order compare_text(const struct filter *f, struct slice value)
{
    int64_t time_ms;
    int difference;

    if (f->has_time && clock_parse(value, &time_ms) == 0)
        return ORDER_OF(time_ms, f->time_ms);
    difference = MIN(value.n, f->text.n) ? memcmp(value.p, f->text.p, MIN(value.n, f->text.n)) : 0;
    return difference ? ORDER_OF(difference, 0) : ORDER_OF(value.n, f->text.n);
}

static struct json_value item_at(struct json_value array, const char *index)
{
    struct json_value item;
    struct slice key;
    char *end;
    unsigned long at = strtoul(index, &end, 10);

    if (*end != '\0' || index[0] < '0' || index[0] > '9')
        return (struct json_value){ 0 };
    for (struct json_iter it = json_iter(array); json_next(&it, &key, &item);)
        if (at-- == 0)
            return item;
    return (struct json_value){ 0 };
}

static struct json_value walk(const struct filter *f, struct json_value value)
{
    for (size_t i = 0; i < f->n_path; i++)
        value = json_type(value) == JSON_ARRAY ? item_at(value, f->path[i]) : json_get(value, f->path[i]);
    return value;
}

static enum order compare_value(const struct filter *f, struct arena *a, struct json_value value)
{
    switch (json_type(value)) {
    case JSON_BOOL:
        return compare_bool(f, json_bool(value));
    case JSON_INT:
        return compare_int(f, json_int(value));
    case JSON_DOUBLE:
        return compare_double(f, json_double(value));
    case JSON_STRING:
        return compare_text(f, json_string(value));
    default:
        return compare_text(f, slice_of(json_to_str(a, value)));
    }
}

bool filter_matches_member(const struct filter *f, struct json_value column)
{
    AUTO(arena_freep) struct arena *a = arena_new_sized(512);
    struct json_value value = walk(f, column);

    return !json_is_absent(value) && f->op->accepts & compare_value(f, a, value);
}

static bool matches_json(const struct filter *f, const char *text)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct json_value value;

    return json_parse(a, slice_of(text), &value, NULL) == 0 && filter_matches_member(f, value);
}

bool filter_accepts(const struct filter *f, int difference)
{
    return f->op->accepts & ORDER_OF(difference, 0);
}

bool filter_matches(const struct filter *f, const struct backend_row *row)
{
    const char *text;

    if (!f)
        return true;
    if (f->column->kind == COLUMN_INT)
        return f->op->accepts & compare_int(f, backend_row_int(row, f->column));
    if (f->column->kind == COLUMN_BOOL)
        return f->op->accepts & compare_bool(f, backend_row_int(row, f->column));
    text = backend_row_text(row, f->column);
    if (!text)
        return false;
    if (f->column->kind == COLUMN_JSON)
        return matches_json(f, text);
    return f->op->accepts & compare_text(f, slice_of(text));
}
