#include "backend/query_declare.h"
#include "backend/query_values.h"
#include "base/limits.h"
#include "base/utf8.h"

#include <string.h>

bool query_default_is_word(const char *text)
{
    return text && (strcmp(text, TABLE_DEFAULT_UUID) == 0 || strcmp(text, TABLE_DEFAULT_NOW) == 0 ||
                    strcmp(text, TABLE_DEFAULT_USER) == 0);
}

static int refuse(const struct table_column *c, const char *member, const char *rule, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new_sized(512);

    return err_add_field(e, arena_printf(a, "columns.%.63s.%s", c->name, member), "%s", rule);
}

static int check_name(const struct table_column *c, struct err *e)
{
    size_t n = strlen(c->name);

    if (n == 0 || n > LIMIT_TABLE_NAME_PART || !utf8_is_valid(slice_of(c->name)))
        return err_add_field(e, "columns", "must have names of 1 to %d bytes", LIMIT_TABLE_NAME_PART);
    if (strcasecmp(c->name, "_rowid_") == 0)
        return err_add_field(e, "columns", "must not have the name _rowid_");
    return 0;
}

static bool is_time(enum table_type type)
{
    return type == TABLE_TIMESTAMP || type == TABLE_TIMESTAMPTZ || type == TABLE_DATE;
}

static int check_default(const struct table_column *c, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new_sized(512);
    struct query_value v;
    struct err why = { 0 };

    if (!c->default_text)
        return 0;
    if (strcmp(c->default_text, TABLE_DEFAULT_UUID) == 0 && c->type != TABLE_UUID && c->type != TABLE_TEXT)
        return refuse(c, "default", "gen_random_uuid() is for columns of the types uuid and text", e);
    if (strcmp(c->default_text, TABLE_DEFAULT_NOW) == 0 && !is_time(c->type))
        return refuse(c, "default", "now() is for columns of the types timestamptz, timestamp and date", e);
    if (strcmp(c->default_text, TABLE_DEFAULT_USER) == 0 && c->type != TABLE_UUID && c->type != TABLE_TEXT)
        return refuse(c, "default", "auth.uid() is for columns of the types uuid and text", e);
    if (!query_default_is_word(c->default_text) &&
        query_value_read(a, c->type, slice_of(c->default_text), &v, &why) < 0)
        return refuse(c, "default", why.text, e);
    return 0;
}

static int check_choices(const struct table_column *c, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new_sized(512);
    struct query_value v;
    struct err why = { 0 };

    if (c->n_allowed > LIMIT_TABLE_CHOICES)
        return refuse(c, "check.in", "must have at most 100 values", e);
    if (c->n_allowed && (table_type_is_json(c->type) || table_type_is_array(c->type)))
        return refuse(c, "check.in", "is not for JSON and arrays", e);
    for (size_t i = 0; i < c->n_allowed; i++)
        if (query_value_read(a, c->type, slice_of(c->allowed[i]), &v, &why) < 0)
            return refuse(c, "check.in", why.text, e);
    return 0;
}

static int check_column(const struct table_shape *declared, size_t at, struct err *e)
{
    const struct table_column *c = &declared->columns[at];
    int r = check_name(c, e);

    for (size_t i = 0; r == 0 && i < at; i++)
        if (strcasecmp(declared->columns[i].name, c->name) == 0)
            r = err_add_field(e, "columns", "must have different names, whatever the case: %.63s", c->name);
    if (r == 0 && c->type == TABLE_OTHER)
        r = refuse(c, "type",
                   "must be a known type: text, uuid, int4, int8, float8, numeric, bool, timestamptz, date, "
                   "jsonb, text[], ...",
                   e);
    if (r == 0 && (c->is_key || c->is_unique) && (table_type_is_json(c->type) || table_type_is_array(c->type)))
        r = refuse(c, c->is_key ? "key" : "unique", "is not for JSON and arrays", e);
    if (r == 0)
        r = check_default(c, e);
    return r == 0 ? check_choices(c, e) : r;
}

int query_declare_check(const struct table_shape *declared, struct err *e)
{
    int r = 0;

    if (declared->n_columns == 0 || declared->n_columns > LIMIT_TABLE_COLUMNS)
        return err_add_field(e, "columns", "must be 1 to %d columns", LIMIT_TABLE_COLUMNS);
    for (size_t i = 0; r == 0 && i < declared->n_columns; i++)
        r = check_column(declared, i, e);
    return r;
}

static bool is_addable(const struct table_column *c)
{
    return c->is_nullable && !c->is_key && !c->is_unique && !query_default_is_word(c->default_text);
}

int query_declare_compare(const struct table_shape *declared, const struct table_shape *existing, struct err *e)
{
    for (size_t i = 0; i < declared->n_columns; i++) {
        const struct table_column *c = &declared->columns[i], *there = table_shape_column(existing, slice_of(c->name));

        if (there && there->type != c->type)
            return err_set(e, -EEXIST, "TABLE_DIFFERS", "Column %.63s of table %.130s has the type %.63s, not %.63s",
                           c->name, existing->table, there->type_name, table_type_word(c->type));
        if (!there && !is_addable(c))
            return err_set(e, -EEXIST, "TABLE_DIFFERS",
                           "Table %.130s lacks column %.63s, which can be added only as a nullable one without key, "
                           "unique and computed default",
                           existing->table, c->name);
    }
    return 0;
}
