#include "vector/vector_filter.h"
#include "base/limits.h"

enum order { ORDER_LESS = 1, ORDER_EQUAL = 2, ORDER_GREATER = 4, ORDER_NONE = 8 /* of different types */ };

/* The orders of the row's value relative to the filter's that an operator accepts. */
static const struct op {
    const char *name;
    enum vector_op op;
    unsigned accepts;
} ops[] = {
    { "$eq", VECTOR_EQ, ORDER_EQUAL },   { "$ne", VECTOR_NE, ORDER_LESS | ORDER_GREATER | ORDER_NONE },
    { "$gt", VECTOR_GT, ORDER_GREATER }, { "$gte", VECTOR_GTE, ORDER_GREATER | ORDER_EQUAL },
    { "$lt", VECTOR_LT, ORDER_LESS },    { "$lte", VECTOR_LTE, ORDER_LESS | ORDER_EQUAL },
    { "$in", VECTOR_IN, ORDER_EQUAL },
};

static const struct op *op_of(enum vector_op op)
{
    size_t i = 0;

    while (ops[i].op != op)
        i++;
    return &ops[i];
}

static const struct op *find_op(struct slice name)
{
    for (size_t i = 0; i < ARRAY_SIZE(ops); i++)
        if (slice_eq_str(name, ops[i].name))
            return &ops[i];
    return NULL;
}

/* --- parsing --- */

static int refuse(struct err *e, const char *key, const char *rule)
{
    char field[80];

    snprintf(field, sizeof(field), "filter.%s", key);
    return err_add_field(e, field, "%s", rule);
}

static bool is_scalar(struct json_value v)
{
    return json_type(v) != JSON_ARRAY && json_type(v) != JSON_OBJECT;
}

static int check_choices(const char *key, struct json_value choices, struct err *e)
{
    struct json_value item;

    if (json_type(choices) != JSON_ARRAY)
        return refuse(e, key, "must give $in an array");
    if (json_length(choices) > LIMIT_VECTOR_CHOICES)
        return refuse(e, key, "must give $in at most 1000 values");
    for (struct json_iter it = json_iter(choices); json_next(&it, NULL, &item);)
        if (!is_scalar(item))
            return refuse(e, key, "must give $in strings, numbers, booleans or null");
    return 0;
}

static int check_value(const char *key, enum vector_op op, struct json_value value, struct err *e)
{
    enum json_type type = json_type(value);

    if (op == VECTOR_IN)
        return check_choices(key, value, e);
    if (!is_scalar(value))
        return refuse(e, key, "must be a string, a number, a boolean, null or an object of operators");
    if (op != VECTOR_EQ && op != VECTOR_NE && type != JSON_STRING && type != JSON_INT && type != JSON_DOUBLE)
        return refuse(e, key, "must compare with a number or a string");
    return 0;
}

static int add_condition(struct vector_filter *f, const char *key, enum vector_op op, struct json_value value,
                         struct err *e)
{
    if (f->n == LIMIT_VECTOR_CONDITIONS)
        return err_add_field(e, "filter", "must have at most %d conditions", LIMIT_VECTOR_CONDITIONS);
    f->items[f->n++] = (struct vector_condition){ key, op, value };
    return check_value(key, op, value, e);
}

static int add_operators(struct vector_filter *f, const char *key, struct json_value operators, struct err *e)
{
    struct json_value value;
    struct slice name;
    int r = 0;

    if (json_length(operators) == 0)
        return refuse(e, key, "must name an operator");
    for (struct json_iter it = json_iter(operators); r == 0 && json_next(&it, &name, &value);) {
        const struct op *op = find_op(name);

        r = op ? add_condition(f, key, op->op, value, e)
               : refuse(e, key, "must use $eq, $ne, $gt, $gte, $lt, $lte or $in");
    }
    return r;
}

int vector_filter_parse(struct arena *a, struct json_value filter, struct vector_filter *ret, struct err *e)
{
    struct vector_filter f = { arena_array(a, LIMIT_VECTOR_CONDITIONS, sizeof(*f.items)), 0 };
    struct json_value value;
    struct slice name;
    int r = 0;

    if (!json_is_absent(filter) && json_type(filter) != JSON_OBJECT)
        return err_add_field(e, "filter", "must be an object");
    for (struct json_iter it = json_iter(filter); r == 0 && json_next(&it, &name, &value);) {
        const char *key = arena_slicedup(a, name);

        if (strlen(key) != name.n || key[0] == '$')
            r = err_add_field(e, "filter", "must name members of the metadata: no $ in front, no NUL inside");
        else if (json_type(value) == JSON_OBJECT)
            r = add_operators(&f, key, value, e);
        else
            r = add_condition(&f, key, VECTOR_EQ, value, e);
    }
    if (r == 0)
        *ret = f;
    return r;
}

/* --- matching --- */

#define ORDER_OF(a, b) ((a) < (b) ? ORDER_LESS : (a) > (b) ? ORDER_GREATER : ORDER_EQUAL)

static bool is_number(enum json_type type)
{
    return type == JSON_INT || type == JSON_DOUBLE;
}

/* Integers compare exactly; long double holds every int64 and every double. */
static enum order compare_numbers(struct json_value a, struct json_value b)
{
    long double x, y;

    if (json_type(a) == JSON_INT && json_type(b) == JSON_INT)
        return ORDER_OF(json_int(a), json_int(b));
    x = json_type(a) == JSON_INT ? (long double)json_int(a) : (long double)json_double(a);
    y = json_type(b) == JSON_INT ? (long double)json_int(b) : (long double)json_double(b);
    return ORDER_OF(x, y);
}

/* The order of UTF-8 bytes is the order of code points. */
static enum order compare_strings(struct slice a, struct slice b)
{
    int difference = MIN(a.n, b.n) ? memcmp(a.p, b.p, MIN(a.n, b.n)) : 0;

    return difference ? ORDER_OF(difference, 0) : ORDER_OF(a.n, b.n);
}

static enum order compare(struct json_value row, struct json_value filter)
{
    enum json_type type = json_type(row);

    if (json_is_absent(row) || json_is_absent(filter))
        return json_is_absent(row) && json_is_absent(filter) ? ORDER_EQUAL : ORDER_NONE;
    if (is_number(type) && is_number(json_type(filter)))
        return compare_numbers(row, filter);
    if (type != json_type(filter))
        return ORDER_NONE;
    if (type == JSON_STRING)
        return compare_strings(json_string(row), json_string(filter));
    if (type == JSON_BOOL)
        return ORDER_OF((int)json_bool(row), (int)json_bool(filter));
    return ORDER_NONE;
}

static bool is_among(struct json_value value, struct json_value choices)
{
    struct json_value choice;

    for (struct json_iter it = json_iter(choices); json_next(&it, NULL, &choice);)
        if (compare(value, choice) == ORDER_EQUAL)
            return true;
    return false;
}

bool vector_condition_holds(const struct vector_condition *c, struct json_value value)
{
    if (c->op == VECTOR_IN)
        return is_among(value, c->value);
    return op_of(c->op)->accepts & compare(value, c->value);
}

bool vector_filter_matches(const struct vector_filter *f, struct json_value metadata)
{
    for (size_t i = 0; i < f->n; i++)
        if (!vector_condition_holds(&f->items[i], json_get(metadata, f->items[i].key)))
            return false;
    return true;
}
