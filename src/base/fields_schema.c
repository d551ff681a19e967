#include "base/fields_rules.h"

#include <math.h>

static const char *const type_names[] = {
    [FIELD_KIND_STRING] = "string",
    [FIELD_KIND_INT] = "integer",
    [FIELD_KIND_DOUBLE] = "number",
    [FIELD_KIND_BOOL] = "boolean",
    [FIELD_KIND_OBJECT] = "object",
    [FIELD_KIND_ARRAY] = "array",
    [FIELD_KIND_ANY] = NULL,
    [FIELD_KIND_STRINGS] = "array",
    [FIELD_KIND_STRING_MAP] = "object",
    [FIELD_KIND_STRUCT] = "object",
    [FIELD_KIND_LIST] = "array",
    [FIELD_KIND_FLOATS] = "array",
    [FIELD_KIND_FLOATS_B64] = "string",
};

static void write_type(const struct field *f, struct json_writer *w)
{
    const char *type = type_names[f->kind];

    if (!type)
        return;
    if (f->flags & FIELD_NULLABLE)
        json_add_strings(w, "type", (const char *const[]){ type, "null" }, 2);
    else
        json_add_string(w, "type", type);
}

static void write_choices(const struct field *f, bool is_nullable, struct json_writer *w)
{
    json_begin_array_as(w, "enum");
    for (const char *const *choice = f->one_of; *choice; choice++)
        json_add_string(w, NULL, *choice);
    if (is_nullable)
        json_add_null(w, NULL);
    json_end(w);
}

/* The two schema keywords for the bounds of a kind. */
static const struct bounds {
    const char *min, *max;
} bounds_of[] = {
    [FIELD_KIND_STRING] = { "minLength", "maxLength" }, [FIELD_KIND_INT] = { "minimum", "maximum" },
    [FIELD_KIND_DOUBLE] = { "minimum", "maximum" },     [FIELD_KIND_ARRAY] = { "minItems", "maxItems" },
    [FIELD_KIND_STRINGS] = { "minItems", "maxItems" },  [FIELD_KIND_STRING_MAP] = { "minProperties", "maxProperties" },
    [FIELD_KIND_LIST] = { "minItems", "maxItems" },     [FIELD_KIND_FLOATS] = { "minItems", "maxItems" },
};

static bool is_number(const struct field *f)
{
    return f->kind == FIELD_KIND_INT || f->kind == FIELD_KIND_DOUBLE;
}

/* Reading enforces the default bounds too; an answer promises only the bounds that its row sets. */
static void write_bounds(const struct field *f, bool is_answer, struct json_writer *w)
{
    const struct bounds *names = f->kind < ARRAY_SIZE(bounds_of) ? &bounds_of[f->kind] : &bounds_of[0];
    double max = is_answer && f->max == 0 ? HUGE_VAL : field_max(f);

    if (!names->min)
        return;
    if (f->min != 0 || (!is_answer && is_number(f)))
        json_add_double(w, names->min, f->min);
    if (!f->one_of && isfinite(max))
        json_add_double(w, names->max, max);
}

static void write_default(const struct field *f, struct json_writer *w)
{
    if (f->kind == FIELD_KIND_STRING && f->def_str)
        json_add_string(w, "default", f->def_str);
    else if (is_number(f) && f->def != 0)
        json_add_double(w, "default", f->def);
    else if (f->kind == FIELD_KIND_BOOL && f->def != 0)
        json_add_bool(w, "default", true);
}

static void write_string_schema(const struct field *f, struct json_writer *w, const char *name)
{
    json_begin_object_as(w, name);
    json_add_string(w, "type", "string");
    if (f->one_of)
        write_choices(f, false, w);
    if (f->format)
        json_add_string(w, "format", f->format);
    json_end(w);
}

static void write_table(const struct field *table, bool is_answer, struct json_writer *w);

/* Writes the schema of a container's content. */
static void write_content(const struct field *f, bool is_answer, struct json_writer *w)
{
    switch (f->kind) {
    case FIELD_KIND_STRINGS:
        write_string_schema(f, w, "items");
        break;
    case FIELD_KIND_FLOATS:
        json_begin_object_as(w, "items");
        json_add_string(w, "type", "number");
        json_end(w);
        break;
    case FIELD_KIND_STRING_MAP:
        write_string_schema(f, w, "additionalProperties");
        break;
    case FIELD_KIND_LIST:
        if (f->fields)
            fields_write_schema(f->fields, is_answer, w, "items");
        break;
    default:
        if (f->fields)
            write_table(f->fields, is_answer, w);
        break;
    }
}

void field_write_schema(const struct field *f, bool is_answer, struct json_writer *w, const char *name)
{
    json_begin_object_as(w, name);
    write_type(f, w);
    if (f->help)
        json_add_string(w, "description", f->help);
    if (f->kind == FIELD_KIND_STRING && f->one_of)
        write_choices(f, f->flags & FIELD_NULLABLE, w);
    if (f->kind == FIELD_KIND_STRING && f->format)
        json_add_string(w, "format", f->format);
    if (f->kind == FIELD_KIND_FLOATS_B64)
        json_add_string(w, "contentEncoding", "base64");
    write_bounds(f, is_answer, w);
    write_default(f, w);
    write_content(f, is_answer, w);
    json_end(w);
}

static bool is_required(const struct field *f, bool is_answer)
{
    return is_answer ? !(f->flags & FIELD_OPTIONAL) : (f->flags & FIELD_REQUIRED) != 0;
}

static bool has_required(const struct field *table, bool is_answer)
{
    for (const struct field *f = table; f->kind != FIELD_KIND_END; f++)
        if (is_required(f, is_answer))
            return true;
    return false;
}

static void write_required(const struct field *table, bool is_answer, struct json_writer *w)
{
    json_begin_array_as(w, "required");
    for (const struct field *f = table; f->kind != FIELD_KIND_END; f++)
        if (is_required(f, is_answer))
            json_add_string(w, NULL, f->name);
    json_end(w);
}

/* Writes the members "properties" and "required" of an object schema. */
static void write_table(const struct field *table, bool is_answer, struct json_writer *w)
{
    json_begin_object_as(w, "properties");
    for (const struct field *f = table; f->kind != FIELD_KIND_END; f++)
        field_write_schema(f, is_answer, w, f->name);
    json_end(w);
    if (has_required(table, is_answer))
        write_required(table, is_answer, w);
}

void fields_write_schema(const struct field *table, bool is_answer, struct json_writer *w, const char *name)
{
    json_begin_object_as(w, name);
    json_add_string(w, "type", "object");
    write_table(table, is_answer, w);
    json_end(w);
}
