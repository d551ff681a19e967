#include "base/json_schema.h"

#include "base/json_names.h"
#include "base/limits.h"
#include "base/utf8.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { PATH_SIZE = sizeof(((struct err_field *)0)->field), BYTES_A_STEP = 64 };

struct check {
    struct json_value root; /* of the schema */
    struct err *e;          /* NULL: the first violation is enough */
    unsigned depth;         /* of nested schemas: a $ref may point at itself */
    size_t *n_steps;        /* taken so far, one for each element visited: the work is schemas times values */
    struct json_index *index;
};

static int check_value(struct check *c, struct json_value schema, struct json_value v, const char *path);

/* Counts n steps. False: the check exceeded its limit and ends. */
static bool take_steps(struct check *c, size_t n)
{
    *c->n_steps += MIN(n, (size_t)LIMIT_SCHEMA_STEPS + 1);
    return *c->n_steps <= LIMIT_SCHEMA_STEPS;
}

static bool take_bytes(struct check *c, size_t n)
{
    return take_steps(c, 1 + n / BYTES_A_STEP);
}

/* Once no further violation can be stored, the rest is not read. */
static bool is_enough(const struct check *c, int r)
{
    return *c->n_steps > LIMIT_SCHEMA_STEPS || (r < 0 && (!c->e || c->e->n_fields >= ERR_MAX_FIELDS));
}

static struct json_value get(struct check *c, struct json_value object, const char *name)
{
    return json_type(object) == JSON_OBJECT ? json_index_get(c->index, object, slice_of(name))
                                            : (struct json_value){ 0 };
}

static bool is_number(struct json_value v)
{
    return json_type(v) == JSON_INT || json_type(v) == JSON_DOUBLE;
}

static bool has_type(struct json_value v, struct slice name)
{
    static const struct {
        const char *name;
        enum json_type type;
    } types[] = {
        { "string", JSON_STRING }, { "boolean", JSON_BOOL }, { "object", JSON_OBJECT },
        { "array", JSON_ARRAY },   { "null", JSON_NULL },
    };

    if (slice_eq_str(name, "number"))
        return is_number(v);
    if (slice_eq_str(name, "integer"))
        return json_type(v) == JSON_INT || (json_type(v) == JSON_DOUBLE && json_double(v) == floor(json_double(v)));
    for (size_t i = 0; i < ARRAY_SIZE(types); i++)
        if (slice_eq_str(name, types[i].name))
            return json_type(v) == types[i].type;
    return true;
}

/* Adds the violation, with the value that the schema wants. */
static int refuse(struct check *c, const char *path, const char *rule, struct json_value wanted)
{
    AUTO(arena_freep) struct arena *a = arena_new();

    return c->e ? err_add_field(c->e, path, "%s %s", rule, json_to_str(a, wanted)) : -EINVAL;
}

static int check_type(struct check *c, struct json_value schema, struct json_value v, const char *path)
{
    struct json_value type = get(c, schema, "type"), name;
    struct json_iter it = json_iter(type);

    if (json_type(type) == JSON_STRING && has_type(v, json_string(type)))
        return 0;
    while (json_type(type) == JSON_ARRAY && take_steps(c, 1) && json_next(&it, NULL, &name))
        if (has_type(v, json_string(name)))
            return 0;
    if (json_type(type) != JSON_STRING && json_type(type) != JSON_ARRAY)
        return 0;
    return refuse(c, path, "must be of type", type);
}

static bool is_same(struct check *c, struct json_value one, struct json_value other)
{
    AUTO(arena_freep) struct arena *a = NULL;
    struct slice text, other_text;

    if (is_number(one) && is_number(other))
        return json_double(one) == json_double(other);
    if (json_type(one) != json_type(other))
        return false;
    a = arena_new();
    text = json_type(one) == JSON_STRING ? json_string(one) : slice_of(json_to_str(a, one));
    other_text = json_type(one) == JSON_STRING ? json_string(other) : slice_of(json_to_str(a, other));
    return take_bytes(c, text.n + other_text.n) && slice_eq(text, other_text);
}

/* Texts are found through the index; numbers and containers, rare in such lists, by a linear search. */
static bool is_among(struct check *c, struct json_value choices, struct json_value v)
{
    struct json_iter it = json_iter(choices);
    struct json_value choice;

    if (json_type(v) == JSON_STRING)
        return json_type(json_index_get(c->index, choices, json_string(v))) != JSON_ABSENT;
    while (take_steps(c, 1) && json_next(&it, NULL, &choice))
        if (is_same(c, choice, v))
            return true;
    return false;
}

static int check_choice(struct check *c, struct json_value schema, struct json_value v, const char *path)
{
    struct json_value choices = get(c, schema, "enum"), only = get(c, schema, "const");

    if (json_type(only) != JSON_ABSENT && !is_same(c, only, v))
        return refuse(c, path, "must be", only);
    if (json_type(choices) != JSON_ARRAY || is_among(c, choices, v))
        return 0;
    return refuse(c, path, "must be one of", choices);
}

/* Checks one bound; an absent bound always holds. */
static int check_bound(struct check *c, struct json_value schema, const char *name, double n, bool is_least,
                       const char *path)
{
    struct json_value bound = get(c, schema, name);
    char text[NUMBER_TEXT_SIZE];

    if (!is_number(bound) || (is_least ? n >= json_double(bound) : n <= json_double(bound)))
        return 0;
    return err_add_field(c->e, path, "breaks %s: %s", name, number_text(text, json_double(bound)));
}

static int worse(int r, int r_more)
{
    return r_more < 0 ? r_more : r;
}

static int check_bounds(struct check *c, struct json_value schema, struct json_value v, const char *path)
{
    int r = 0;

    if (is_number(v)) {
        r = check_bound(c, schema, "minimum", json_double(v), true, path);
        r = worse(r, check_bound(c, schema, "maximum", json_double(v), false, path));
    } else if (json_type(v) == JSON_STRING && take_bytes(c, json_string(v).n)) {
        r = check_bound(c, schema, "minLength", (double)utf8_length(json_string(v)), true, path);
        r = worse(r, check_bound(c, schema, "maxLength", (double)utf8_length(json_string(v)), false, path));
    } else if (json_type(v) == JSON_ARRAY) {
        r = check_bound(c, schema, "minItems", (double)json_length(v), true, path);
        r = worse(r, check_bound(c, schema, "maxItems", (double)json_length(v), false, path));
    }
    return r;
}

static void member_path(char *out, const char *path, struct slice name)
{
    snprintf(out, PATH_SIZE, "%s%s%.*s", path, *path ? "." : "", (int)MIN(name.n, (size_t)PATH_SIZE), name.p);
}

static int check_required(struct check *c, struct json_value schema, struct json_value v, const char *path)
{
    struct json_value name;
    char below[PATH_SIZE];
    int r = 0;

    for (struct json_iter it = json_iter(get(c, schema, "required"));
         !is_enough(c, r) && json_next(&it, NULL, &name);) {
        if (!take_steps(c, 1) || json_type(name) != JSON_STRING ||
            json_type(json_index_get(c->index, v, json_string(name))) != JSON_ABSENT)
            continue;
        member_path(below, path, json_string(name));
        r = err_add_field(c->e, below, "is required");
    }
    return r;
}

static int check_object(struct check *c, struct json_value schema, struct json_value v, const char *path)
{
    struct json_value properties = get(c, schema, "properties"), other = get(c, schema, "additionalProperties"), item;
    int r = check_required(c, schema, v, path);
    struct slice name;
    char below[PATH_SIZE];

    for (struct json_iter it = json_iter(v); !is_enough(c, r) && take_steps(c, 1) && json_next(&it, &name, &item);) {
        struct json_value rule = json_type(properties) == JSON_OBJECT ? json_index_get(c->index, properties, name)
                                                                      : (struct json_value){ 0 };

        member_path(below, path, name);
        if (json_type(rule) != JSON_ABSENT)
            r = worse(r, check_value(c, rule, item, below));
        else if (json_type(other) == JSON_BOOL && !json_bool(other))
            r = err_add_field(c->e, below, "is not a member that is known");
        else if (json_type(other) == JSON_OBJECT)
            r = worse(r, check_value(c, other, item, below));
    }
    return r;
}

static int check_items(struct check *c, struct json_value schema, struct json_value v, const char *path)
{
    struct json_value rule = get(c, schema, "items"), item;
    char below[PATH_SIZE];
    size_t n = 0;
    int r = 0;

    if (json_type(rule) != JSON_OBJECT)
        return 0;
    for (struct json_iter it = json_iter(v); !is_enough(c, r) && json_next(&it, NULL, &item); n++) {
        snprintf(below, sizeof(below), "%s[%zu]", path, n);
        r = worse(r, check_value(c, rule, item, below));
    }
    return r;
}

/* How many schemas of a list v satisfies, counted up to `enough`. */
static size_t count_kept(struct check *c, struct json_value schemas, struct json_value v, size_t enough)
{
    struct check quiet = *c;
    struct json_value schema;
    size_t n = 0;

    quiet.e = NULL;
    for (struct json_iter it = json_iter(schemas); n < enough && take_steps(c, 1) && json_next(&it, NULL, &schema);)
        n += check_value(&quiet, schema, v, "") == 0;
    return n;
}

static int check_combined(struct check *c, struct json_value schema, struct json_value v, const char *path)
{
    struct json_value any = get(c, schema, "anyOf"), one = get(c, schema, "oneOf"), part;
    int r = 0;

    for (struct json_iter it = json_iter(get(c, schema, "allOf")); !is_enough(c, r) && json_next(&it, NULL, &part);)
        r = worse(r, check_value(c, part, v, path));
    if (json_type(any) == JSON_ARRAY && count_kept(c, any, v, 1) == 0)
        r = err_add_field(c->e, path, "keeps to none of the schemas of anyOf");
    if (json_type(one) == JSON_ARRAY && count_kept(c, one, v, 2) != 1)
        r = err_add_field(c->e, path, "must keep to exactly one of the schemas of oneOf");
    return r;
}

/* The schema that a reference like "#/$defs/name" points to; absent when there is none. */
static struct json_value resolve(struct check *c, struct slice reference)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct json_value at = c->root;
    char *rest, *part;

    if (!take_bytes(c, reference.n))
        return (struct json_value){ 0 };
    rest = arena_slicedup(a, reference);
    if (strtok_r(rest, "/", &rest) == NULL || rest == NULL)
        return (struct json_value){ 0 };
    while (take_steps(c, 1) && (part = strtok_r(NULL, "/", &rest)))
        at = get(c, at, part);
    return at;
}

static int check_value(struct check *c, struct json_value schema, struct json_value v, const char *path)
{
    struct json_value reference;
    int r;

    if (json_type(schema) != JSON_OBJECT || c->depth >= LIMIT_JSON_DEPTH || !take_steps(c, 1))
        return 0;
    reference = get(c, schema, "$ref");
    c->depth++;
    r = check_type(c, schema, v, path);
    if (r == 0)
        r = check_choice(c, schema, v, path);
    r = worse(r, check_bounds(c, schema, v, path));
    if (json_type(v) == JSON_OBJECT)
        r = worse(r, check_object(c, schema, v, path));
    if (json_type(v) == JSON_ARRAY)
        r = worse(r, check_items(c, schema, v, path));
    r = worse(r, check_combined(c, schema, v, path));
    if (json_type(reference) == JSON_STRING && json_string(reference).n > 1 && json_string(reference).p[0] == '#')
        r = worse(r, check_value(c, resolve(c, json_string(reference)), v, path));
    c->depth--;
    return r;
}

int json_schema_check(struct json_value schema, struct json_value v, const char *path, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    size_t n_steps = 0;
    struct check c = { .root = schema, .e = e, .n_steps = &n_steps, .index = json_index_new(a) };
    int r = check_value(&c, schema, v, path);

    if (n_steps > LIMIT_SCHEMA_STEPS)
        r = err_add_field(e, path, "takes more than the %d steps of checking that are allowed", LIMIT_SCHEMA_STEPS);
    return r;
}
