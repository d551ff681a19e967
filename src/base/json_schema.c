#include "base/json_schema.h"

#include "base/limits.h"
#include "base/utf8.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { PATH_SIZE = sizeof(((struct err_field *)0)->field), MOST_STEPS = 200000 };

struct check {
    struct json_value root;             /* of the schema */
    struct err *e;
    unsigned depth;                     /* of schemas inside schemas: a $ref may point at itself */
    unsigned *n_steps;                  /* taken so far: anyOf of such references would go on for ever */
};

static int check_value(struct check *c, struct json_value schema, struct json_value v, const char *path);

static bool is_number(struct json_value v)
{
    return json_type(v) == JSON_INT || json_type(v) == JSON_DOUBLE;
}

static bool has_type(struct json_value v, struct slice name)
{
    static const struct { const char *name; enum json_type type; } types[] = {
        { "string", JSON_STRING }, { "boolean", JSON_BOOL }, { "object", JSON_OBJECT }, { "array", JSON_ARRAY }, { "null", JSON_NULL },
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

static int check_type(struct check *c, struct json_value schema, struct json_value v, const char *path)
{
    struct json_value type = json_get(schema, "type"), name;
    struct json_iter it = json_iter(type);
    AUTO(arena_freep) struct arena *a = arena_new();

    if (json_type(type) == JSON_STRING && has_type(v, json_string(type)))
        return 0;
    while (json_type(type) == JSON_ARRAY && json_next(&it, NULL, &name))
        if (has_type(v, json_string(name)))
            return 0;
    if (json_type(type) != JSON_STRING && json_type(type) != JSON_ARRAY)
        return 0;
    return err_add_field(c->e, path, "must be of type %s", json_to_str(a, type));
}

static bool is_same(struct json_value a, struct json_value b)
{
    AUTO(arena_freep) struct arena *scratch = arena_new();

    if (is_number(a) && is_number(b))
        return json_double(a) == json_double(b);
    return strcmp(json_to_str(scratch, a), json_to_str(scratch, b)) == 0;
}

static int check_choice(struct check *c, struct json_value schema, struct json_value v, const char *path)
{
    struct json_value choices = json_get(schema, "enum"), only = json_get(schema, "const"), choice;
    struct json_iter it = json_iter(choices);
    AUTO(arena_freep) struct arena *a = arena_new();

    if (json_type(only) != JSON_ABSENT && !is_same(only, v))
        return err_add_field(c->e, path, "must be %s", json_to_str(a, only));
    if (json_type(choices) != JSON_ARRAY)
        return 0;
    while (json_next(&it, NULL, &choice))
        if (is_same(choice, v))
            return 0;
    return err_add_field(c->e, path, "must be one of %s", json_to_str(a, choices));
}

/* One bound: absent, or kept. */
static int check_bound(struct check *c, struct json_value schema, const char *name, double n, bool is_least, const char *path)
{
    struct json_value bound = json_get(schema, name);
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
    } else if (json_type(v) == JSON_STRING) {
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

    for (struct json_iter it = json_iter(json_get(schema, "required")); json_next(&it, NULL, &name);) {
        const char *text = json_cstr(name);

        if (!text || json_type(json_get(v, text)) != JSON_ABSENT)
            continue;
        member_path(below, path, json_string(name));
        r = err_add_field(c->e, below, "is required");
    }
    return r;
}

static int check_object(struct check *c, struct json_value schema, struct json_value v, const char *path)
{
    struct json_value properties = json_get(schema, "properties"), other = json_get(schema, "additionalProperties"), item;
    int r = check_required(c, schema, v, path);
    struct slice name;
    char below[PATH_SIZE];

    for (struct json_iter it = json_iter(v); json_next(&it, &name, &item);) {
        struct json_value rule = { 0 };

        if (!memchr(name.p, 0, name.n))
            rule = json_get(properties, name.p);
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
    struct json_value rule = json_get(schema, "items"), item;
    char below[PATH_SIZE];
    size_t n = 0;
    int r = 0;

    if (json_type(rule) != JSON_OBJECT)
        return 0;
    for (struct json_iter it = json_iter(v); json_next(&it, NULL, &item); n++) {
        snprintf(below, sizeof(below), "%s[%zu]", path, n);
        r = worse(r, check_value(c, rule, item, below));
    }
    return r;
}

/* How many of a list of schemas are kept. */
static size_t count_kept(struct check *c, struct json_value schemas, struct json_value v)
{
    struct check quiet = { .root = c->root, .depth = c->depth, .n_steps = c->n_steps };
    struct json_value schema;
    size_t n = 0;

    for (struct json_iter it = json_iter(schemas); json_next(&it, NULL, &schema);)
        n += check_value(&quiet, schema, v, "") == 0;
    return n;
}

static int check_combined(struct check *c, struct json_value schema, struct json_value v, const char *path)
{
    struct json_value any = json_get(schema, "anyOf"), one = json_get(schema, "oneOf"), part;
    int r = 0;

    for (struct json_iter it = json_iter(json_get(schema, "allOf")); json_next(&it, NULL, &part);)
        r = worse(r, check_value(c, part, v, path));
    if (json_type(any) == JSON_ARRAY && count_kept(c, any, v) == 0)
        r = err_add_field(c->e, path, "keeps to none of the schemas of anyOf");
    if (json_type(one) == JSON_ARRAY && count_kept(c, one, v) != 1)
        r = err_add_field(c->e, path, "must keep to exactly one of the schemas of oneOf");
    return r;
}

/* "#/$defs/name": the schema there, absent when the reference leads nowhere. */
static struct json_value resolve(struct json_value root, struct slice reference)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    char *rest = arena_slicedup(a, reference), *part;

    if (strtok_r(rest, "/", &rest) == NULL || rest == NULL)
        return (struct json_value){ 0 };
    while ((part = strtok_r(NULL, "/", &rest)))
        root = json_get(root, part);
    return root;
}

static int check_value(struct check *c, struct json_value schema, struct json_value v, const char *path)
{
    struct json_value reference = json_get(schema, "$ref");
    int r;

    if (json_type(schema) != JSON_OBJECT || c->depth >= LIMIT_JSON_DEPTH || ++*c->n_steps > MOST_STEPS)
        return 0;
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
        r = worse(r, check_value(c, resolve(c->root, json_string(reference)), v, path));
    c->depth--;
    return r;
}

int json_schema_check(struct json_value schema, struct json_value v, const char *path, struct err *e)
{
    unsigned n_steps = 0;
    struct check c = { .root = schema, .e = e, .n_steps = &n_steps };

    return check_value(&c, schema, v, path);
}
