/* Turns filters into SQL. */
#include "vector/pgvector/pgvector.h"

/* Keys and values travel as one JSON parameter, [{k, v}]; the SQL contains only their indexes. */
char *pgvector_filter_param(struct arena *a, const struct vector_filter *f)
{
    struct json_writer w;
    struct buf out;

    buf_init(&out, LIMIT_BODY_CHAT);
    json_write_init(&w, &out);
    json_begin_array(&w);
    for (size_t i = 0; i < f->n; i++) {
        json_begin_object(&w);
        json_add_string(&w, "k", f->items[i].key);
        json_add_value(&w, "v", f->items[i].value);
        json_end(&w);
    }
    json_end(&w);
    return buf_to_arena(&out, a);
}

static const char *order_of(enum vector_op op)
{
    static const char *const signs[] = {
        [VECTOR_GT] = ">", [VECTOR_GTE] = ">=", [VECTOR_LT] = "<", [VECTOR_LTE] = "<="
    };

    return signs[op];
}

/* As in src/vector/vector_filter.h: numbers compare with numbers, strings by code point, null equals a missing key. */
static char *condition_sql(struct arena *a, const struct vector_condition *c, int param, size_t i)
{
    const char *key = arena_printf(a, "(metadata -> ($%d::jsonb->%zu->>'k'))", param, i),
               *value = arena_printf(a, "($%d::jsonb->%zu->'v')", param, i);
    const char *given = arena_printf(a, "coalesce(%s, 'null'::jsonb)", key);

    if (c->op == VECTOR_EQ)
        return arena_printf(a, "%s = %s", given, value);
    if (c->op == VECTOR_NE)
        return arena_printf(a, "%s <> %s", given, value);
    if (c->op == VECTOR_IN)
        return arena_printf(a, "EXISTS (SELECT 1 FROM jsonb_array_elements(%s) AS one WHERE one = %s)", value, given);
    if (json_type(c->value) == JSON_STRING)
        return arena_printf(
            a, "CASE WHEN jsonb_typeof(%s) = 'string' THEN (%s #>> '{}') COLLATE \"C\" %s (%s #>> '{}') ELSE false END",
            key, key, order_of(c->op), value);
    return arena_printf(a, "CASE WHEN jsonb_typeof(%s) = 'number' THEN %s::numeric %s %s::numeric ELSE false END", key,
                        key, order_of(c->op), value);
}

char *pgvector_filter_sql(struct arena *a, const struct vector_filter *f, int param)
{
    char *sql = arena_strdup(a, "");

    for (size_t i = 0; i < f->n; i++)
        sql = arena_printf(a, "%s AND %s", sql, condition_sql(a, &f->items[i], param, i));
    return sql;
}
