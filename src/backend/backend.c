#include "backend/backend_columns.h"
#include "base/limits.h"

static const struct {
    enum backend_op op;
    const char *name;
} op_names[] = {
    { BACKEND_INSERT, "INSERT" },
    { BACKEND_UPDATE, "UPDATE" },
    { BACKEND_DELETE, "DELETE" },
};

const char *backend_op_name(enum backend_op op)
{
    for (size_t i = 0; i < ARRAY_SIZE(op_names); i++)
        if (op_names[i].op == op)
            return op_names[i].name;
    return "UNKNOWN";
}

enum backend_op backend_op_of_name(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(op_names); i++)
        if (name && strcmp(op_names[i].name, name) == 0)
            return op_names[i].op;
    return BACKEND_INSERT;
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_part(struct slice part)
{
    if (part.n == 0 || part.n > LIMIT_TABLE_NAME_PART || !is_letter(part.p[0]))
        return false;
    for (size_t i = 1; i < part.n; i++)
        if (!is_letter(part.p[i]) && !(part.p[i] >= '0' && part.p[i] <= '9'))
            return false;
    return true;
}

int backend_table_name(struct arena *a, const char *declared, char **ret, struct err *e)
{
    struct slice table = slice_of(declared ? declared : ""), schema = { 0 };
    const char *dot = memchr(table.p, '.', table.n);

    if (dot) {
        schema = (struct slice){ table.p, (size_t)(dot - table.p) };
        table = slice_of(dot + 1);
    }
    if (!is_part(table) || (dot && !is_part(schema)))
        return err_set(
            e, -EINVAL, "VALIDATION_ERROR",
            "a table name must be table or schema.table, each of at most %d letters, digits and underscores and "
            "not beginning with a digit",
            LIMIT_TABLE_NAME_PART);
    if (slice_eq_str(schema, "public"))
        schema = (struct slice){ 0 };
    *ret = schema.n ? arena_printf(a, "%.*s.%.*s", (int)schema.n, schema.p, (int)table.n, table.p)
                    : arena_slicedup(a, table);
    return 0;
}

size_t backend_count_machines(const char *attempted_by, const char *machine_id, bool *ret_has)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct json_value list = { 0 }, item;
    size_t n = 0;

    *ret_has = false;
    if (!attempted_by || json_parse(a, slice_of(attempted_by), &list, NULL) < 0)
        return 0;
    for (struct json_iter it = json_iter(list); json_next(&it, NULL, &item); n++)
        *ret_has = *ret_has || slice_eq_str(json_string(item), machine_id);
    return n;
}

int64_t backend_max_machines(const struct backend_claim *claim)
{
    return claim->max_machines > 0 ? claim->max_machines : LIMIT_ATTEMPT_MACHINES;
}
