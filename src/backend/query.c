#include "backend/query.h"
#include "base/util.h"

/* The first word of a type is that of the catalog, the second that of messages. */
static const struct {
    enum table_type type;
    const char *words[5];
} types[] = {
    { TABLE_TEXT, { "text", "text", "varchar", "character varying", "string" } },
    { TABLE_UUID, { "uuid", "uuid" } },
    { TABLE_INT2, { "int2", "smallint" } },
    { TABLE_INT4, { "int4", "integer", "int" } },
    { TABLE_INT8, { "int8", "bigint" } },
    { TABLE_FLOAT4, { "float4", "real" } },
    { TABLE_FLOAT8, { "float8", "double precision", "float" } },
    { TABLE_NUMERIC, { "numeric", "numeric", "decimal" } },
    { TABLE_BOOL, { "bool", "boolean" } },
    { TABLE_TIMESTAMP, { "timestamp", "timestamp without time zone" } },
    { TABLE_TIMESTAMPTZ, { "timestamptz", "timestamp with time zone" } },
    { TABLE_DATE, { "date", "date" } },
    { TABLE_TIME, { "time", "time without time zone" } },
    { TABLE_JSON, { "json", "json" } },
    { TABLE_JSONB, { "jsonb", "jsonb" } },
    { TABLE_TEXT_ARRAY, { "_text", "text[]" } },
    { TABLE_INT4_ARRAY, { "_int4", "integer[]", "int4[]", "int[]" } },
};

bool table_type_of(struct slice word, enum table_type *ret)
{
    for (size_t i = 0; i < ARRAY_SIZE(types); i++)
        for (size_t k = 0; k < ARRAY_SIZE(types[i].words) && types[i].words[k]; k++)
            if (slice_eq_str(word, types[i].words[k])) {
                *ret = types[i].type;
                return true;
            }
    return false;
}

const char *table_type_word(enum table_type type)
{
    return type < ARRAY_SIZE(types) ? types[type].words[0] : "unknown";
}

const char *table_type_name(enum table_type type)
{
    return type < ARRAY_SIZE(types) ? types[type].words[1] : "unknown";
}

bool table_type_is_json(enum table_type type)
{
    return type == TABLE_JSON || type == TABLE_JSONB;
}

bool table_type_is_array(enum table_type type)
{
    return type == TABLE_TEXT_ARRAY || type == TABLE_INT4_ARRAY;
}

#define COLUMN(column, table_type, word, ...)                                                                          \
    {                                                                                                                  \
        .name = (column), .type = (table_type), .type_name = (word), __VA_ARGS__                                       \
    }

/* clang-format off */
const struct table_column table_activity_columns[TABLE_N_ACTIVITY_COLUMNS] = {
    COLUMN("id",            TABLE_UUID,        "uuid", .is_key = true, .is_unique = true, .default_text = TABLE_DEFAULT_UUID),
    COLUMN("app_id",        TABLE_TEXT,        "text", .is_nullable = true),
    COLUMN("user_id",       TABLE_UUID,        "uuid", .is_nullable = true),
    COLUMN("raw_data",      TABLE_JSONB,       "jsonb", .is_nullable = false),
    COLUMN("old_data",      TABLE_JSONB,       "jsonb", .is_nullable = true),
    COLUMN("status",        TABLE_TEXT,        "text", .default_text = "pending"),
    COLUMN("locked_by",     TABLE_TEXT,        "text", .is_nullable = true),
    COLUMN("locked_at",     TABLE_TIMESTAMPTZ, "timestamptz", .is_nullable = true),
    COLUMN("completed_at",  TABLE_TIMESTAMPTZ, "timestamptz", .is_nullable = true),
    COLUMN("error_message", TABLE_TEXT,        "text", .is_nullable = true),
    COLUMN("attempted_by",  TABLE_TEXT_ARRAY,  "_text", .default_text = "{}"),
    COLUMN("retry_count",   TABLE_INT4,        "int4", .default_text = "0"),
    COLUMN("result",        TABLE_JSONB,       "jsonb", .is_nullable = true),
    COLUMN("created_at",    TABLE_TIMESTAMPTZ, "timestamptz", .default_text = TABLE_DEFAULT_NOW),
};
/* clang-format on */

void table_deletions_shape(struct arena *a, const char *name, struct table_shape *ret)
{
    static const struct table_column more[] = {
        COLUMN("event_type", TABLE_TEXT, "text", .default_text = "DELETE"),
        COLUMN("source_table", TABLE_TEXT, "text", .is_nullable = true),
    };

    *ret = (struct table_shape){ .table = name,
                                 .columns = arena_array(a, TABLE_N_ACTIVITY_COLUMNS + 2, sizeof(*ret->columns)),
                                 .n_columns = TABLE_N_ACTIVITY_COLUMNS + 2,
                                 .is_published = true,
                                 .has_full_identity = true,
                                 .is_internal = true };
    memcpy(ret->columns, table_activity_columns, sizeof(table_activity_columns));
    memcpy(ret->columns + TABLE_N_ACTIVITY_COLUMNS, more, sizeof(more));
}

const struct table_column *table_shape_column(const struct table_shape *shape, struct slice name)
{
    for (size_t i = 0; i < shape->n_columns; i++)
        if (slice_eq_str(name, shape->columns[i].name))
            return &shape->columns[i];
    return NULL;
}
