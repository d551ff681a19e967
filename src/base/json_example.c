#include "base/json_example.h"

#include "base/json_names.h"
#include "base/limits.h"

#include <math.h>

enum { EXAMPLE_DEPTH = 32 };

struct example {
    struct json_writer *w;
    struct json_value root; /* of the schema */
    struct json_index *index;
    size_t n_steps; /* taken so far: members and elements visited */
    unsigned depth; /* a $ref may point at itself */
};

static void write_value(struct example *x, const char *name, struct json_value schema);

static bool may_go_on(struct example *x)
{
    return ++x->n_steps <= LIMIT_SCHEMA_STEPS && !x->w->out->overflowed;
}

static struct json_value get(const struct example *x, struct json_value object, const char *name)
{
    return json_type(object) == JSON_OBJECT ? json_index_get(x->index, object, slice_of(name))
                                            : (struct json_value){ 0 };
}

static bool has(const struct example *x, struct json_value object, const char *name)
{
    return json_type(get(x, object, name)) != JSON_ABSENT;
}

static struct json_value first_of(struct json_value list)
{
    struct json_iter it = json_iter(list);
    struct json_value item = { 0 };

    return json_type(list) == JSON_ARRAY && json_next(&it, NULL, &item) ? item : (struct json_value){ 0 };
}

/* ---- the schema that counts ---- */

/* "#/$defs/name" */
static struct json_value follow(struct example *x, struct slice reference)
{
    struct json_value at = x->root;
    const char *end = reference.p + reference.n, *slash = memchr(reference.p, '/', reference.n), *next;
    struct slice part;

    for (; slash && may_go_on(x); slash = next) {
        next = memchr(slash + 1, '/', (size_t)(end - slash - 1));
        part = (struct slice){ slash + 1, (size_t)((next ? next : end) - slash - 1) };
        at = json_type(at) == JSON_OBJECT ? json_index_get(x->index, at, part) : (struct json_value){ 0 };
    }
    return at;
}

static struct json_value next_schema(struct example *x, struct json_value schema)
{
    static const char *const lists[] = { "anyOf", "oneOf", "allOf" };
    struct json_value reference = get(x, schema, "$ref");

    if (json_type(reference) == JSON_STRING)
        return follow(x, json_string(reference));
    for (size_t i = 0; i < ARRAY_SIZE(lists) && !has(x, schema, "properties"); i++)
        if (json_type(get(x, schema, lists[i])) == JSON_ARRAY)
            return first_of(get(x, schema, lists[i]));
    return (struct json_value){ 0 };
}

static const char *type_of(const struct example *x, struct json_value schema)
{
    struct json_value type = get(x, schema, "type");

    if (json_type(type) == JSON_ARRAY)
        type = first_of(type);
    if (json_cstr(type))
        return json_cstr(type);
    return has(x, schema, "properties") ? "object" : has(x, schema, "items") ? "array" : "null";
}

/* ---- one type each ---- */

static void write_string(struct example *x, const char *name, struct json_value schema)
{
    static const struct {
        const char *format, *text;
    } formats[] = {
        { "date-time", "1970-01-01T00:00:00Z" },
        { "date", "1970-01-01" },
        { "time", "00:00:00Z" },
        { "email", "nobody@example.org" },
        { "uuid", "00000000-0000-0000-0000-000000000000" },
        { "uri", "https://example.org/" },
    };
    struct json_value format = get(x, schema, "format");
    double n_least = json_double(get(x, schema, "minLength"));
    struct buf text;

    buf_init(&text, x->w->out->max);
    for (size_t i = 0; i < ARRAY_SIZE(formats); i++)
        if (slice_eq_str(json_string(format), formats[i].format))
            buf_add_str(&text, formats[i].text);
    while ((double)text.n < n_least && !text.overflowed)
        buf_add_char(&text, 'x');
    json_add_string(x->w, name, buf_str(&text));
    buf_clear(&text);
}

/* The number nearest to 0 within the bounds. */
static double number_within(const struct example *x, struct json_value schema, double step)
{
    double least = -INFINITY, most = INFINITY;

    if (has(x, schema, "minimum"))
        least = json_double(get(x, schema, "minimum"));
    if (has(x, schema, "exclusiveMinimum"))
        least = fmax(least, json_double(get(x, schema, "exclusiveMinimum")) + step);
    if (has(x, schema, "maximum"))
        most = json_double(get(x, schema, "maximum"));
    if (has(x, schema, "exclusiveMaximum"))
        most = fmin(most, json_double(get(x, schema, "exclusiveMaximum")) - step);
    return least > 0 ? least : most < 0 ? most : 0;
}

static void write_number(struct example *x, const char *name, struct json_value schema)
{
    json_add_double(x->w, name, number_within(x, schema, 0.5));
}

static void write_integer(struct example *x, const char *name, struct json_value schema)
{
    double number = number_within(x, schema, 1);

    number = number > 0 ? ceil(number) : floor(number);
    json_add_int(x->w, name, (int64_t)fmax(fmin(number, 9e15), -9e15));
}

static void write_boolean(struct example *x, const char *name, struct json_value schema)
{
    json_add_bool(x->w, name, false);
}

static void write_array(struct example *x, const char *name, struct json_value schema)
{
    double n_least = json_double(get(x, schema, "minItems"));
    struct json_value items = get(x, schema, "items");

    json_begin_array_as(x->w, name);
    for (double n = 0; n < n_least && may_go_on(x); n++)
        write_value(x, NULL, items);
    json_end(x->w);
}

static void write_object(struct example *x, const char *name, struct json_value schema)
{
    struct json_value properties = get(x, schema, "properties"), required = get(x, schema, "required"), member;
    struct slice key;

    json_begin_object_as(x->w, name);
    for (struct json_iter it = json_iter(properties);
         json_type(properties) == JSON_OBJECT && may_go_on(x) && json_next(&it, &key, &member);)
        if (json_type(required) == JSON_ARRAY && json_type(json_index_get(x->index, required, key)) == JSON_STRING)
            write_value(x, key.p, member);
    for (struct json_iter it = json_iter(required); may_go_on(x) && json_next(&it, NULL, &member);)
        if (json_cstr(member) && !has(x, properties, json_cstr(member)))
            json_add_null(x->w, json_cstr(member));
    json_end(x->w);
}

static void write_null(struct example *x, const char *name, struct json_value schema)
{
    json_add_null(x->w, name);
}

/* ---- any ---- */

static void write_typed(struct example *x, const char *name, struct json_value schema)
{
    static const struct {
        const char *type;
        void (*write)(struct example *x, const char *name, struct json_value schema);
    } writers[] = {
        { "string", write_string },   { "number", write_number }, { "integer", write_integer },
        { "boolean", write_boolean }, { "array", write_array },   { "object", write_object },
        { "null", write_null },
    };
    const char *type = type_of(x, schema);
    size_t i = 0;

    while (i + 1 < ARRAY_SIZE(writers) && strcmp(writers[i].type, type) != 0)
        i++;
    writers[i].write(x, name, schema);
}

static void write_value(struct example *x, const char *name, struct json_value schema)
{
    struct json_value next = next_schema(x, schema), only = get(x, schema, "const");

    if (json_type(only) == JSON_ABSENT && json_type(get(x, schema, "enum")) == JSON_ARRAY)
        only = first_of(get(x, schema, "enum"));
    if (x->depth == EXAMPLE_DEPTH || !may_go_on(x)) {
        json_add_null(x->w, name);
        return;
    }
    x->depth++;
    if (json_type(only) != JSON_ABSENT)
        json_add_value(x->w, name, only);
    else if (json_type(next) != JSON_ABSENT)
        write_value(x, name, next);
    else
        write_typed(x, name, schema);
    x->depth--;
}

void json_example_write(struct json_writer *w, const char *name, struct json_value schema)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct example x = { .w = w, .root = schema, .index = json_index_new(a) };

    write_value(&x, name, schema);
}
