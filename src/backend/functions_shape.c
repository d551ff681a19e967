#include "backend/functions_shape.h"
#include "backend/query_sql.h"
#include "base/fields.h"
#include "base/limits.h"

#include <string.h>

const char *const functions_shape_arguments[] = { "schema_name", "table_name", NULL };

struct shape_args {
    const char *schema_name, *table_name;
};

static const struct field shape_fields[] = {
    FIELD_STRING(struct shape_args, schema_name, "schema_name", FIELD_REQUIRED, .max = LIMIT_TABLE_NAME_PART),
    FIELD_STRING(struct shape_args, table_name, "table_name", FIELD_REQUIRED, .max = LIMIT_TABLE_NAME_PART), FIELD_END
};

bool functions_shape_is(const struct backend *b, const char *function)
{
    size_t n = strlen(b->abbr);

    return strncmp(function, b->abbr, n) == 0 && strcmp(function + n, "_fn_shape") == 0;
}

static void write_column(struct json_writer *w, const struct table_column *c)
{
    json_begin_object(w);
    json_add_string(w, "name", c->name);
    json_add_string(w, "type", c->type_name);
    json_add_bool(w, "nullable", c->is_nullable);
    json_add_string(w, "default", c->default_text);
    json_add_bool(w, "key", c->is_key);
    json_add_bool(w, "unique", c->is_unique);
    json_end(w);
}

static void write_shape(struct json_writer *w, const struct table_shape *shape)
{
    json_begin_array_as(w, "columns");
    for (size_t i = 0; i < shape->n_columns; i++)
        write_column(w, &shape->columns[i]);
    json_end(w);
    json_add_bool(w, "is_work", !shape->has_own_columns);
    json_add_bool(w, "is_declared", shape->has_own_columns);
    json_add_bool(w, "has_full_identity", shape->has_full_identity);
    json_add_bool(w, "is_published", shape->is_published);
}

static char *print(const struct table_shape *shape, struct arena *a)
{
    struct json_writer w;
    struct buf out;

    buf_init(&out, LIMIT_REPLY);
    json_write_init(&w, &out);
    json_begin_object(&w);
    if (shape)
        write_shape(&w, shape);
    json_end(&w);
    return buf_to_arena(&out, a);
}

static const char *name_of(const struct shape_args *args, struct arena *a)
{
    struct buf out;

    buf_init(&out, 4 * (size_t)LIMIT_TABLE_NAME);
    query_sql_quote(&out, args->schema_name);
    buf_add_char(&out, '.');
    query_sql_quote(&out, args->table_name);
    return buf_to_arena(&out, a);
}

int functions_shape_call(struct backend *b, struct json_value arguments, struct arena *a, char **ret_json,
                         struct err *e)
{
    struct shape_args args = { 0 };
    struct table_shape shape = { 0 };
    struct err why = { 0 };
    int r = fields_read(shape_fields, arguments, &args, a, "", e);

    if (r < 0)
        return r;
    r = b->ops->shape(b, name_of(&args, a), a, &shape, &why);
    if (r < 0 && r != -ENOENT) {
        if (e)
            *e = why;
        return r;
    }
    *ret_json = print(r == 0 ? &shape : NULL, a);
    return 0;
}
