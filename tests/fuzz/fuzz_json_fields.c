/* JSON text through the parser, the printer and a table with a row of every kind. Printed text must read back the same.
 */
#include "base/fields.h"

#include <assert.h>
#include <math.h>

struct item {
    const char *label;
    int64_t weight;
    struct json_value extra;
};

struct inner {
    const char *command;
    struct field_strings args;
};

struct body {
    const char *name, *id, *choice;
    int64_t i;
    double d;
    bool b, was_b_given;
    struct json_value object, array, any, map;
    struct field_strings strings;
    struct json_floats floats;
    struct inner inner;
    struct field_list list;
};

static const char *const choices[] = { "INSERT", "UPDATE", NULL };

static const struct field item_fields[] = {
    FIELD_STRING(struct item, label, "label", FIELD_REQUIRED, .min = 1, .max = 8),
    FIELD_INT(struct item, weight, "weight", .min = -5, .max = 5), FIELD_ANY(struct item, extra, "extra"), FIELD_END
};

static const struct field inner_fields[] = { FIELD_STRING(struct inner, command, "command", FIELD_REQUIRED),
                                             FIELD_STRINGS(struct inner, args, "args", .max = 4), FIELD_END };

static const struct field body_fields[] = { FIELD_STRING(struct body, name, "name", .max = 16, .def_str = "none"),
                                            FIELD_STRING(struct body, id, "id", .format = "uuid"),
                                            FIELD_STRING(struct body, choice, "choice", .one_of = choices),
                                            FIELD_INT(struct body, i, "i", .min = -1000),
                                            FIELD_DOUBLE(struct body, d, "d", .min = -1e300),
                                            FIELD_BOOL(struct body, b, "b",
                                                       .present_offset = offsetof(struct body, was_b_given)),
                                            FIELD_OBJECT(struct body, object, "object"),
                                            FIELD_ARRAY(struct body, array, "array", .max = 8),
                                            FIELD_ANY(struct body, any, "any"),
                                            FIELD_STRING_MAP(struct body, map, "map", .max = 8),
                                            FIELD_STRINGS(struct body, strings, "strings", .one_of = choices),
                                            FIELD_FLOATS(struct body, floats, "floats", .max = 8),
                                            FIELD_STRUCT(struct body, inner, "inner", inner_fields),
                                            FIELD_LIST(struct body, list, "list", item_fields, struct item, .max = 8),
                                            FIELD_END };

static void use_strings(struct field_strings strings)
{
    for (size_t i = 0; i < strings.n; i++)
        assert(strlen(strings.items[i]) < SIZE_MAX);
}

static void use_body(const struct body *body)
{
    const struct item *items = body->list.items;

    assert(body->name && strlen(body->name) <= 64);
    assert(!body->id || strlen(body->id) == 36);
    assert(body->i >= -1000);
    use_strings(body->strings);
    use_strings(body->inner.args);
    assert(body->inner.args.n <= 4 && body->list.n <= 8);
    assert(body->floats.n <= 8);
    for (size_t i = 0; i < body->floats.n; i++)
        assert(isfinite(body->floats.items[i]));
    for (size_t i = 0; i < body->list.n; i++)
        assert(*items[i].label && items[i].weight >= -5 && items[i].weight <= 5);
}

static void print_twice(struct arena *a, struct json_value v)
{
    const char *first = json_to_str(a, v), *second;
    struct json_value again;

    if (json_parse(a, slice_of(first), &again, NULL) < 0)
        assert(!"what was printed is no JSON");
    second = json_to_str(a, again);
    assert(strcmp(first, second) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct body body = { 0 };
    struct json_value v;
    struct err e = { 0 };
    int r = json_parse(a, (struct slice){ (const char *)data, size }, &v, &e);

    if (r == 0) {
        print_twice(a, v);
        r = fields_read(body_fields, v, &body, a, "", &e);
    }
    if (r == 0)
        use_body(&body);
    else
        assert(*e.code && *e.text);
    return 0;
}
