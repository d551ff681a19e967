/* Reads a schema into nodes, by a table of keywords. References are resolved once everything is read. */
#include "base/json_schema_private.h"

#include "base/limits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_BYTES = 120 }; /* of a list within a violation */

/* ---- failures ---- */

void schema_refuse(struct schema_compiler *c, const char *fmt, ...)
{
    char rule[2 * sizeof(((struct err_field *)0)->rule)];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(rule, sizeof(rule), fmt, ap);
    va_end(ap);
    c->r = err_add_field(c->e, c->path.text, "%s", rule);
    if (!c->e || c->e->n_fields >= ERR_MAX_FIELDS)
        c->is_over = true;
}

static bool take(struct schema_compiler *c, size_t n)
{
    if (!c->is_over && !schema_take(&c->budget, n)) {
        schema_refuse(c, "has more than the %d elements that a schema may have", LIMIT_SCHEMA_VALUES);
        c->is_over = true;
    }
    return !c->is_over;
}

struct json_value schema_get(struct json_index *index, struct json_value object, const char *name)
{
    return json_type(object) == JSON_OBJECT ? json_index_get(index, object, slice_of(name)) : (struct json_value){ 0 };
}

/* ---- texts of violations ---- */

/* Appends an element of a list; false: the text is full. */
static bool add_element(struct buf *text, struct slice element, const char *separator)
{
    if (text->n + element.n + strlen(separator) > TEXT_BYTES) {
        buf_add_str(text, text->n > 0 ? ", …" : "…");
        return false;
    }
    if (text->n > 0)
        buf_add_str(text, separator);
    buf_add_slice(text, element);
    return true;
}

static const char *text_of_choices(struct schema_compiler *c, struct json_value list)
{
    struct json_value item;
    struct buf text, element;
    bool is_room = true;

    buf_init(&text, (size_t)2 * TEXT_BYTES);
    buf_init(&element, TEXT_BYTES + 1);
    for (struct json_iter it = json_iter(list); is_room && json_next(&it, NULL, &item);) {
        buf_reset(&element);
        json_print(&element, item);
        is_room = !element.overflowed && add_element(&text, buf_slice(&element), ", ");
        if (element.overflowed)
            buf_add_str(&text, text.n > 0 ? ", …" : "…");
    }
    buf_clear(&element);
    return buf_to_arena(&text, c->arena);
}

static const char *text_of_names(struct schema_compiler *c, const struct schema_members *members)
{
    struct buf text;
    bool is_room = true;

    if (members->n == 0)
        return "";
    buf_init(&text, (size_t)2 * TEXT_BYTES);
    for (size_t i = 0; i < members->n && is_room; i++)
        is_room = add_element(&text, members->items[i].name, ", ");
    return arena_printf(c->arena, "; known are %s", buf_to_arena(&text, c->arena));
}

/* ---- keywords of one shape each: v has the type that the keyword's row names ---- */

struct keyword;
typedef void (*read_keyword)(struct schema_compiler *c, struct schema_node *node, struct json_value v, void *field);

static const struct {
    const char *name, *text;
    enum schema_type type;
} types[] = {
    { "string", "a string", SCHEMA_STRING },
    { "number", "a number", SCHEMA_NUMBER },
    { "integer", "an integer", SCHEMA_INTEGER },
    { "boolean", "true or false", SCHEMA_BOOLEAN },
    { "object", "an object", SCHEMA_OBJECT },
    { "array", "an array", SCHEMA_ARRAY },
    { "null", "null", SCHEMA_NULL },
};

static void add_type(struct schema_compiler *c, struct schema_node *node, struct json_value name)
{
    for (size_t i = 0; i < ARRAY_SIZE(types); i++)
        if (slice_eq_str(json_string(name), types[i].name)) {
            if (!(node->types & types[i].type))
                node->types_text =
                    node->types ? arena_printf(c->arena, "%s or %s", node->types_text, types[i].text) : types[i].text;
            node->types |= types[i].type;
            return;
        }
    schema_refuse(c, "must be one of string, number, integer, boolean, object, array, null; not %.*s",
                  (int)MIN(json_string(name).n, (size_t)60), json_string(name).p);
}

static void read_type(struct schema_compiler *c, struct schema_node *node, struct json_value v, void *field)
{
    struct json_value name;

    if (json_type(v) == JSON_STRING)
        return add_type(c, node, v);
    if (json_type(v) != JSON_ARRAY || json_length(v) == 0)
        return schema_refuse(c, "must be a type or a list of types");
    for (struct json_iter it = json_iter(v); take(c, 1) && json_next(&it, NULL, &name);)
        add_type(c, node, name);
}

static void read_enum(struct schema_compiler *c, struct schema_node *node, struct json_value v, void *field)
{
    const struct schema_walk walk = { &c->budget, c->index };
    struct schema_set *set = ARENA_NEW(c->arena, struct schema_set);

    *set = schema_set_of(&walk, c->arena, v);
    node->choices = set;
    if (take(c, 0))
        node->choices_text = text_of_choices(c, v);
}

static void read_const(struct schema_compiler *c, struct schema_node *node, struct json_value v, void *field)
{
    struct buf text;

    node->only = v;
    buf_init(&text, TEXT_BYTES);
    json_print(&text, v);
    node->only_text = text.overflowed ? "the value of const" : buf_to_arena(&text, c->arena);
    buf_clear(&text);
}

static void read_value(struct schema_compiler *c, struct schema_node *node, struct json_value v, void *field)
{
    *(struct json_value *)field = v;
}

static void read_positive(struct schema_compiler *c, struct schema_node *node, struct json_value v, void *field)
{
    if (json_double(v) <= 0)
        return schema_refuse(c, "must be greater than 0");
    node->multiple_of = v;
}

static void read_flag(struct schema_compiler *c, struct schema_node *node, struct json_value v, void *field)
{
    *(bool *)field = json_bool(v);
}

static void read_count(struct schema_compiler *c, struct schema_node *node, struct json_value v, void *field)
{
    double d = json_double(v);

    if (!schema_is_integer(v) || d < 0)
        return schema_refuse(c, "must be a whole number of at least 0");
    if (json_type(v) == JSON_INT)
        *(uint64_t *)field = (uint64_t)json_int(v);
    else
        *(uint64_t *)field = d < 0x1p63 ? (uint64_t)d : UINT64_MAX;
}

static void read_pattern(struct schema_compiler *c, const struct pattern **ret, struct slice source)
{
    char why[PATTERN_WHY_SIZE];

    if (++c->n_patterns > LIMIT_SCHEMA_PATTERNS) {
        schema_refuse(c, "is one of more than the %d patterns that a schema may have", LIMIT_SCHEMA_PATTERNS);
        c->is_over = true;
    }
    if (!take(c, 1 + source.n / SCHEMA_BYTES_A_STEP))
        return;
    *ret = pattern_new(c->arena, source, why);
    if (!*ret)
        schema_refuse(c, "is not a pattern that can be used: it %s", why);
}

static void read_pattern_text(struct schema_compiler *c, struct schema_node *node, struct json_value v, void *field)
{
    read_pattern(c, field, json_string(v));
}

static void read_node(struct schema_compiler *c, struct schema_node *node, struct json_value v, void *field)
{
    *(const struct schema_node **)field = schema_node_of(c, v, node->resource);
}

static void read_list(struct schema_compiler *c, struct schema_node *node, struct json_value v, void *field)
{
    struct schema_list *list = field;
    struct json_value item;

    if (!take(c, json_length(v)))
        return;
    list->n = 0;
    list->items = arena_array(c->arena, json_length(v) + 1, sizeof(struct schema_node *));
    for (struct json_iter it = json_iter(v); !c->is_over && json_next(&it, NULL, &item);) {
        size_t n = schema_path_add_item(&c->path, list->n);

        list->items[list->n++] = schema_node_of(c, item, node->resource);
        schema_path_cut(&c->path, n);
    }
}

static void read_full_list(struct schema_compiler *c, struct schema_node *node, struct json_value v, void *field)
{
    if (json_length(v) == 0)
        return schema_refuse(c, "must hold at least one schema");
    read_list(c, node, v, field);
}

static int by_name(const void *one, const void *other)
{
    struct slice a = ((const struct schema_member *)one)->name, b = ((const struct schema_member *)other)->name;
    int order = a.n && b.n ? memcmp(a.p, b.p, MIN(a.n, b.n)) : 0;

    return order ? order : a.n < b.n ? -1 : a.n > b.n;
}

static void read_members(struct schema_compiler *c, struct schema_node *node, struct json_value v, void *field)
{
    struct schema_members *members = field;
    struct json_value item;
    struct slice name;

    if (!take(c, json_length(v)))
        return;
    members->items = arena_array(c->arena, json_length(v) + 1, sizeof(*members->items));
    for (struct json_iter it = json_iter(v); !c->is_over && json_next(&it, &name, &item);) {
        size_t n = schema_path_add_member(&c->path, name);

        members->items[members->n++] = (struct schema_member){ name, schema_node_of(c, item, node->resource) };
        schema_path_cut(&c->path, n);
    }
    qsort(members->items, members->n, sizeof(*members->items), by_name);
}

/* Schemas that only references apply. */
static void read_definitions(struct schema_compiler *c, struct schema_node *node, struct json_value v, void *field)
{
    struct schema_members unused = { 0 };

    read_members(c, node, v, &unused);
}

static void read_patterned(struct schema_compiler *c, struct schema_node *node, struct json_value v, void *field)
{
    struct json_value item;
    struct slice name;

    if (!take(c, json_length(v)))
        return;
    node->patterns = arena_array(c->arena, json_length(v) + 1, sizeof(*node->patterns));
    for (struct json_iter it = json_iter(v); !c->is_over && json_next(&it, &name, &item);) {
        struct schema_patterned *patterned = &node->patterns[node->n_patterns];
        size_t n = schema_path_add_member(&c->path, name);

        patterned->node = schema_node_of(c, item, node->resource);
        read_pattern(c, &patterned->pattern, name);
        node->n_patterns += patterned->pattern != NULL;
        schema_path_cut(&c->path, n);
    }
}

static void read_names(struct schema_compiler *c, struct schema_node *node, struct json_value v, void *field)
{
    struct json_value name;

    for (struct json_iter it = json_iter(v); take(c, 1) && json_next(&it, NULL, &name);)
        if (json_type(name) != JSON_STRING)
            return schema_refuse(c, "must be a list of names");
    *(struct json_value *)field = v;
}

static void read_dependency(struct schema_compiler *c, struct schema_node *node, struct json_value v, bool is_list)
{
    struct schema_dependency *dependency = &node->dependencies[node->n_dependencies++];

    dependency->name = json_name_of(v);
    if (is_list)
        read_names(c, node, v, &dependency->required);
    else
        dependency->node = schema_node_of(c, v, node->resource);
}

/* dependencies, dependentRequired, dependentSchemas: of one schema together. */
static void read_dependencies(struct schema_compiler *c, struct schema_node *node, struct json_value v, void *field)
{
    struct schema_dependency *old = node->dependencies;
    struct json_value item;
    struct slice name;

    if (!take(c, json_length(v)))
        return;
    node->dependencies = arena_array(c->arena, node->n_dependencies + json_length(v) + 1, sizeof(*node->dependencies));
    if (node->n_dependencies)
        memcpy(node->dependencies, old, node->n_dependencies * sizeof(*old));
    for (struct json_iter it = json_iter(v); !c->is_over && json_next(&it, &name, &item);) {
        size_t n = schema_path_add_member(&c->path, name);

        read_dependency(c, node, item, json_type(item) == JSON_ARRAY);
        schema_path_cut(&c->path, n);
    }
}

/* A list of schemas is draft-07's tuple, which many schemas without $schema have; draft 2020-12 gives it no meaning. */
static void read_items(struct schema_compiler *c, struct schema_node *node, struct json_value v, void *field)
{
    node->is_tuple = json_type(v) == JSON_ARRAY;
    if (node->is_tuple)
        read_list(c, node, v, &node->prefix);
    else
        read_node(c, node, v, &node->items);
}

static void read_additional_items(struct schema_compiler *c, struct schema_node *node, struct json_value v, void *field)
{
    const struct schema_node *items = schema_node_of(c, v, node->resource);

    if (node->is_tuple)
        node->items = items;
}

static void read_reference(struct schema_compiler *c, struct schema_node *node, struct json_value v, void *field)
{
    schema_add_reference(c, node, json_string(v), field == &node->dynamic_reference);
}

static void refuse_recursive(struct schema_compiler *c, struct schema_node *node, struct json_value v, void *field)
{
    schema_refuse(c, "is of draft 2019-09 and not supported; draft 2020-12 has $dynamicRef");
}

static void read_nothing(struct schema_compiler *c, struct schema_node *node, struct json_value v, void *field)
{
}

/* ---- the table ---- */

enum shape { ANYTHING, A_SCHEMA, A_NUMBER, A_FLAG, A_TEXT, A_LIST, AN_OBJECT };

static bool has_shape(struct json_value v, enum shape shape)
{
    static const enum json_type types_of[] = {
        [A_FLAG] = JSON_BOOL, [A_TEXT] = JSON_STRING, [A_LIST] = JSON_ARRAY, [AN_OBJECT] = JSON_OBJECT
    };

    if (shape == A_NUMBER)
        return schema_is_number(v);
    return shape == ANYTHING || shape == A_SCHEMA || json_type(v) == types_of[shape];
}

#define FIELD(member) offsetof(struct schema_node, member)

/* Read in this order: what a row needs of others stands after them. */
static const struct keyword {
    const char *name;
    enum schema_dialect dialects;
    enum shape shape;
    read_keyword read;
    size_t field;
    bool is_logic;
} keywords[] = {
    { "$ref", DIALECT_ALL, A_TEXT, read_reference, FIELD(reference), true },
    { "$dynamicRef", DIALECT_2020, A_TEXT, read_reference, FIELD(dynamic_reference), true },
    { "$recursiveRef", DIALECT_2020, ANYTHING, refuse_recursive, 0, false },
    { "$id", DIALECT_ALL, A_TEXT, read_nothing, 0, false },
    { "$anchor", DIALECT_2020, A_TEXT, read_nothing, 0, false },
    { "$dynamicAnchor", DIALECT_2020, A_TEXT, read_nothing, 0, false },
    { "$defs", DIALECT_ALL, AN_OBJECT, read_definitions, 0, false },
    { "definitions", DIALECT_ALL, AN_OBJECT, read_definitions, 0, false },
    { "type", DIALECT_ALL, ANYTHING, read_type, 0, false },
    { "const", DIALECT_ALL, ANYTHING, read_const, 0, false },
    { "enum", DIALECT_ALL, A_LIST, read_enum, 0, false },
    { "minimum", DIALECT_ALL, A_NUMBER, read_value, FIELD(minimum), false },
    { "exclusiveMinimum", DIALECT_ALL, A_NUMBER, read_value, FIELD(exclusive_minimum), false },
    { "maximum", DIALECT_ALL, A_NUMBER, read_value, FIELD(maximum), false },
    { "exclusiveMaximum", DIALECT_ALL, A_NUMBER, read_value, FIELD(exclusive_maximum), false },
    { "multipleOf", DIALECT_ALL, A_NUMBER, read_positive, 0, false },
    { "minLength", DIALECT_ALL, A_NUMBER, read_count, FIELD(length.least), false },
    { "maxLength", DIALECT_ALL, A_NUMBER, read_count, FIELD(length.most), false },
    { "pattern", DIALECT_ALL, A_TEXT, read_pattern_text, FIELD(pattern), false },
    { "minItems", DIALECT_ALL, A_NUMBER, read_count, FIELD(items_range.least), false },
    { "maxItems", DIALECT_ALL, A_NUMBER, read_count, FIELD(items_range.most), false },
    { "uniqueItems", DIALECT_ALL, A_FLAG, read_flag, FIELD(are_unique), false },
    { "prefixItems", DIALECT_2020, A_LIST, read_list, FIELD(prefix), false },
    { "items", DIALECT_ALL, ANYTHING, read_items, 0, false },
    { "additionalItems", DIALECT_ALL, A_SCHEMA, read_additional_items, 0, false },
    { "contains", DIALECT_ALL, A_SCHEMA, read_node, FIELD(contains), false },
    { "minContains", DIALECT_2020, A_NUMBER, read_count, FIELD(contains_range.least), false },
    { "maxContains", DIALECT_2020, A_NUMBER, read_count, FIELD(contains_range.most), false },
    { "unevaluatedItems", DIALECT_2020, A_SCHEMA, read_node, FIELD(unevaluated_items), false },
    { "minProperties", DIALECT_ALL, A_NUMBER, read_count, FIELD(members_range.least), false },
    { "maxProperties", DIALECT_ALL, A_NUMBER, read_count, FIELD(members_range.most), false },
    { "required", DIALECT_ALL, A_LIST, read_names, FIELD(required), false },
    { "properties", DIALECT_ALL, AN_OBJECT, read_members, FIELD(properties), false },
    { "patternProperties", DIALECT_ALL, AN_OBJECT, read_patterned, 0, false },
    { "additionalProperties", DIALECT_ALL, A_SCHEMA, read_node, FIELD(additional), false },
    { "propertyNames", DIALECT_ALL, A_SCHEMA, read_node, FIELD(names), false },
    { "unevaluatedProperties", DIALECT_2020, A_SCHEMA, read_node, FIELD(unevaluated_members), false },
    { "dependencies", DIALECT_ALL, AN_OBJECT, read_dependencies, 0, false },
    { "dependentRequired", DIALECT_2020, AN_OBJECT, read_dependencies, 0, false },
    { "dependentSchemas", DIALECT_2020, AN_OBJECT, read_dependencies, 0, false },
    { "allOf", DIALECT_ALL, A_LIST, read_full_list, FIELD(all), true },
    { "anyOf", DIALECT_ALL, A_LIST, read_full_list, FIELD(any), true },
    { "oneOf", DIALECT_ALL, A_LIST, read_full_list, FIELD(one), true },
    { "not", DIALECT_ALL, A_SCHEMA, read_node, FIELD(denied), true },
    { "if", DIALECT_ALL, A_SCHEMA, read_node, FIELD(condition), true },
    { "then", DIALECT_ALL, A_SCHEMA, read_node, FIELD(when_true), true },
    { "else", DIALECT_ALL, A_SCHEMA, read_node, FIELD(when_false), true },
};

/* In draft-07 everything beside $ref is ignored, and definitions stay where references find them. */
static bool is_ignored(const struct keyword *keyword, const struct schema_node *node, bool has_reference)
{
    return !(keyword->dialects & node->resource->dialect) ||
           (has_reference && node->resource->dialect == DIALECT_07 && keyword->read != read_reference &&
            keyword->read != read_definitions);
}

static void read_row(struct schema_compiler *c, struct schema_node *node, const struct keyword *keyword,
                     struct json_value v)
{
    static const char *const shapes[] = { [A_NUMBER] = "a number",
                                          [A_FLAG] = "true or false",
                                          [A_TEXT] = "a string",
                                          [A_LIST] = "a list",
                                          [AN_OBJECT] = "an object" };
    size_t n = schema_path_add_member(&c->path, slice_of(keyword->name));

    if (!has_shape(v, keyword->shape))
        schema_refuse(c, "must be %s", shapes[keyword->shape]);
    else
        keyword->read(c, node, v, (char *)node + keyword->field);
    node->has_logic = node->has_logic || keyword->is_logic;
    node->has_rules = true;
    schema_path_cut(&c->path, n);
}

static void read_object(struct schema_compiler *c, struct schema_node *node, struct json_value v)
{
    bool has_reference = json_type(schema_get(c->index, v, "$ref")) == JSON_STRING;

    for (size_t i = 0; i < ARRAY_SIZE(keywords) && !c->is_over; i++) {
        struct json_value member = { 0 };

        if (!is_ignored(&keywords[i], node, has_reference))
            member = schema_get(c->index, v, keywords[i].name);
        if (member.doc)
            read_row(c, node, &keywords[i], member);
    }
    node->names_text = text_of_names(c, &node->properties);
}

static struct schema_node *new_node(struct schema_compiler *c)
{
    static const struct schema_range any = { 0, UINT64_MAX };
    struct schema_node *node = ARENA_NEW(c->arena, struct schema_node);

    node->length = node->items_range = node->members_range = any;
    node->contains_range = (struct schema_range){ 1, UINT64_MAX };
    return node;
}

const struct schema_node *schema_node_of(struct schema_compiler *c, struct json_value v,
                                         const struct schema_resource *resource)
{
    struct schema_node *node = schema_find_node(c->schema, v);

    if (node)
        return node;
    node = new_node(c);
    node->resource = resource;
    if (++c->n_nodes > LIMIT_SCHEMAS) {
        schema_refuse(c, "is one of more than the %d schemas that one schema may hold", LIMIT_SCHEMAS);
        c->is_over = true;
    }
    if (!take(c, 1 + json_length(v)))
        return node;
    if (json_type(v) == JSON_BOOL)
        node->is_false = !json_bool(v);
    else if (json_type(v) != JSON_OBJECT)
        schema_refuse(c, "must be a schema: an object, true or false");
    node->resource = schema_enter(c, v, resource);
    schema_add_node(c, v, node);
    schema_add_anchors(c, v, node);
    if (json_type(v) == JSON_OBJECT)
        read_object(c, node, v);
    return node;
}

int json_schema_compile(struct arena *a, struct json_value schema, const char *path, const struct json_schema **ret,
                        struct err *e)
{
    struct json_schema *compiled = ARENA_NEW(a, struct json_schema);
    struct schema_compiler c = {
        .arena = a, .budget = { .max = LIMIT_SCHEMA_VALUES }, .index = json_index_new(a), .schema = compiled, .e = e
    };

    c.last_reference = &c.references;
    schema_path_init(&c.path, path);
    arena_defer(a, schema_free_places, compiled);
    compiled->root = schema_node_of(&c, schema, NULL);
    schema_resolve_references(&c);
    (void)take(&c, 0);
    if (c.r == 0)
        *ret = compiled;
    return c.r;
}
