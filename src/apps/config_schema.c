#include "apps/config_schema.h"

#include "backend/query_declare.h"
#include "base/limits.h"

struct reader {
    struct arena *arena;
    struct err *e;
};

static int refuse(const struct reader *x, const char *path, const char *member, const char *rule)
{
    return err_add_field(x->e, arena_printf(x->arena, "%s.%s", path, member), "%s", rule);
}

/* *ret stays as it is when there is no such member. */
static int read_flag(const struct reader *x, struct json_value column, const char *path, const char *name, bool *ret)
{
    struct json_value v = json_get(column, name);

    if (json_is_absent(v))
        return 0;
    if (json_type(v) != JSON_BOOL)
        return refuse(x, path, name, "must be true or false");
    *ret = json_bool(v);
    return 0;
}

/* A value as a text: a string as it is, anything else as JSON. */
static const char *text_of(const struct reader *x, struct json_value v)
{
    return json_type(v) == JSON_STRING ? json_cstr(v) : json_to_str(x->arena, v);
}

static int read_choices(const struct reader *x, struct json_value check, const char *path, struct table_column *c)
{
    struct json_value list = json_get(check, "in"), v;
    struct json_iter it = json_iter(list);
    const char **choices;

    if (json_is_absent(check))
        return 0;
    if (json_type(list) != JSON_ARRAY || json_length(list) == 0 || json_length(check) != 1)
        return refuse(x, path, "check", "must be {\"in\": [...]} with at least one value");
    if (json_length(list) > LIMIT_TABLE_CHOICES)
        return err_add_field(x->e, arena_printf(x->arena, "%s.check.in", path), "must have at most %d values",
                             LIMIT_TABLE_CHOICES);
    choices = arena_array(x->arena, json_length(list), sizeof(*choices));
    while (json_next(&it, NULL, &v)) {
        choices[c->n_allowed] = text_of(x, v);
        if (json_is_absent(v) || !choices[c->n_allowed])
            return refuse(x, path, "check.in", "must be values of the column's type");
        c->n_allowed++;
    }
    c->allowed = choices;
    return 0;
}

static int check_members(const struct reader *x, struct json_value object, const char *path, const char *const *known)
{
    struct json_iter it = json_iter(object);
    struct json_value v;
    struct slice name;

    while (json_next(&it, &name, &v)) {
        size_t i = 0;

        while (known[i] && !slice_eq_str(name, known[i]))
            i++;
        if (!known[i])
            return refuse(x, path, arena_slicedup(x->arena, name), "is not known");
    }
    return 0;
}

static int read_column(const struct reader *x, struct slice name, struct json_value v, const char *table_path,
                       struct table_column *ret)
{
    static const char *const known[] = { "type", "nullable", "default", "key", "unique", "check", NULL };
    const char *path = arena_printf(x->arena, "%s.columns.%.63s", table_path, name.p);
    struct json_value type = json_get(v, "type"), standard = json_get(v, "default");
    int r;

    *ret = (struct table_column){ .name = arena_slicedup(x->arena, name), .is_nullable = true };
    if (json_type(v) != JSON_OBJECT)
        return err_add_field(x->e, path, "must be an object");
    r = check_members(x, v, path, known);
    if (r == 0 && (json_type(type) != JSON_STRING || !table_type_of(json_string(type), &ret->type)))
        r = refuse(
            x, path, "type",
            "must be one of text, uuid, int2, int4, int8, float4, float8, numeric, bool, timestamp, timestamptz, "
            "date, time, json, jsonb, text[], int4[]");
    if (r == 0)
        r = read_flag(x, v, path, "nullable", &ret->is_nullable);
    if (r == 0)
        r = read_flag(x, v, path, "key", &ret->is_key);
    if (r == 0)
        r = read_flag(x, v, path, "unique", &ret->is_unique);
    if (r == 0)
        r = read_choices(x, json_get(v, "check"), path, ret);
    ret->is_nullable = ret->is_nullable && !ret->is_key;
    ret->type_name = table_type_word(ret->type);
    ret->default_text = json_is_absent(standard) ? NULL : text_of(x, standard);
    return r;
}

/* The violations of a declaration, below the table's path. */
static int check_table(const struct reader *x, const struct table_shape *t, const char *path)
{
    struct err why = { 0 };
    int r = query_declare_check(t, &why);

    for (unsigned i = 0; i < MIN(why.n_fields, (unsigned)ERR_MAX_FIELDS); i++)
        err_add_field(x->e, arena_printf(x->arena, "%s.%s", path, why.fields[i].field), "%s", why.fields[i].rule);
    return r;
}

static int read_table(const struct reader *x, struct slice name, struct json_value v, const char *schema_path,
                      struct table_shape *ret)
{
    static const char *const known[] = { "columns", NULL };
    const char *path = arena_printf(x->arena, "%s.%.130s", schema_path, name.p);
    struct json_value columns = json_get(v, "columns"), column;
    struct json_iter it = json_iter(columns);
    struct slice column_name;
    char *table = NULL;
    int r;

    if (backend_table_name(x->arena, name.p, &table, NULL) < 0)
        return err_add_field(x->e, path, "must be " BACKEND_TABLE_RULE, LIMIT_TABLE_NAME_PART);
    if (json_type(columns) != JSON_OBJECT || json_length(columns) > LIMIT_TABLE_COLUMNS)
        return err_add_field(x->e, arena_printf(x->arena, "%s.columns", path), "must be an object of 1 to %d columns",
                             LIMIT_TABLE_COLUMNS);
    r = check_members(x, v, path, known);
    *ret = (struct table_shape){ .table = table, .has_own_columns = true };
    ret->columns = arena_array(x->arena, json_length(columns) + 1, sizeof(*ret->columns));
    while (r == 0 && json_next(&it, &column_name, &column))
        r = read_column(x, column_name, column, path, &ret->columns[ret->n_columns++]);
    return r == 0 ? check_table(x, ret, path) : r;
}

int app_schema_read(struct arena *a, struct json_value schema, const char *path, struct app_schema *ret, struct err *e)
{
    const struct reader x = { a, e };
    struct app_schema read = { 0 };
    struct json_iter it = json_iter(schema);
    struct json_value v;
    struct slice name;
    int r = 0, r_table;

    if (json_length(schema) > LIMIT_APP_TABLES)
        return err_add_field(e, path, "must have at most %d tables", LIMIT_APP_TABLES);
    read.tables = arena_array(a, json_length(schema) + 1, sizeof(*read.tables));
    while (json_next(&it, &name, &v)) {
        r_table = read_table(&x, name, v, path, &read.tables[read.n++]);
        r = r < 0 ? r : r_table;
    }
    if (r == 0)
        *ret = read;
    return r;
}

int app_schema_declare(struct backend *b, const struct app_config *config, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct app_schema schema = { 0 };
    int r = app_schema_read(a, config->backend.schema, "config.backend.schema", &schema, e);

    for (size_t i = 0; r == 0 && i < schema.n; i++)
        r = backend_declare(b, &schema.tables[i], e);
    return r;
}
