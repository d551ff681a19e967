/* The dialect of SQLite. */
#include "backend/embedded/embedded_functions.h"
#include "backend/embedded/embedded_query.h"
#include "base/json_write.h"
#include "base/limits.h"

#include <stdlib.h>

/* Times of the Activities table are stored as 2026-11-20T09:32:05.682Z. */
static bool has_other_times(const struct table_shape *shape, const struct table_column *c)
{
    return !shape->has_own_columns && c->type == TABLE_TIMESTAMPTZ;
}

static void put_column(struct query_sql *s, const struct table_column *c)
{
    buf_add_str(&s->text, "_t.");
    query_sql_quote(&s->text, c->name);
}

static void put_time(struct query_sql *s, const struct table_column *c)
{
    buf_add_str(&s->text, "coalesce(rtrim(rtrim(strftime('%Y-%m-%dT%H:%M:%f', ");
    put_column(s, c);
    buf_add_str(&s->text, "), '0'), '.') || '+00:00', ");
    put_column(s, c);
    buf_add_char(&s->text, ')');
}

static void put_stored(struct query_sql *s, const struct table_column *c)
{
    if (has_other_times(s->shape, c))
        put_time(s, c);
    else
        put_column(s, c);
}

static void add_text(struct query_sql *s, struct slice text)
{
    const struct query_value v = { .kind = QUERY_VALUE_TEXT, .text = text };

    query_sql_add_param(s, &v);
    buf_add_char(&s->text, '?');
}

static void put_member(struct query_sql *s, const struct query_operand *of)
{
    struct json_writer w;
    struct buf path;

    buf_init(&path, LIMIT_REPLY);
    json_write_init(&w, &path);
    json_begin_array(&w);
    for (size_t i = 0; i < of->path->n_steps; i++)
        json_add_string(&w, NULL, of->path->steps[i]);
    json_end(&w);
    buf_add_str(&s->text, "query_json(");
    put_stored(s, of->column);
    buf_add_str(&s->text, ", ");
    add_text(s, slice_of(buf_to_arena(&path, s->arena)));
    buf_add_str(&s->text, of->path->is_text ? ", 1)" : ", 0)");
}

static int put_operand(struct query_sql *s, const struct query_operand *of, struct err *e)
{
    enum table_type from = of->path->n_steps ? TABLE_TEXT : of->column->type;
    bool is_cast = of->path->cast && of->type != from;

    if (is_cast)
        buf_add_str(&s->text, "query_cast(");
    if (of->path->n_steps)
        put_member(s, of);
    else
        put_stored(s, of->column);
    if (is_cast)
        buf_printf(&s->text, ", %d, %d)", (int)from, (int)of->type);
    return 0;
}

static int put_compared(struct query_sql *s, const struct query_operand *of, struct err *e)
{
    if (!table_type_is_json(of->type))
        return put_operand(s, of, e);
    buf_add_str(&s->text, "query_key(");
    put_operand(s, of, e);
    buf_add_char(&s->text, ')');
    return 0;
}

/* The stored times order as the shown ones do, and have an index. */
static int put_ordered(struct query_sql *s, const struct query_operand *of, struct err *e)
{
    if (of->path->cast || !has_other_times(s->shape, of->column))
        return put_compared(s, of, e);
    put_column(s, of->column);
    return 0;
}

static int put_value(struct query_sql *s, const struct query_operand *of, const char *text, struct err *e)
{
    struct query_value v;
    struct json_value json;
    int r = query_value_read(s->arena, of->type, slice_of(text), &v, e);

    if (r == 0 && table_type_is_json(of->type)) {
        r = json_parse(s->arena, v.text, &json, e);
        if (r == 0)
            embedded_json_key(s->arena, json, &v);
    }
    if (r < 0)
        return r;
    query_sql_add_param(s, &v);
    buf_add_char(&s->text, '?');
    return 0;
}

/* --- special tests --- */

static int put_like(struct query_sql *s, const struct query_operand *of, const struct query_condition *c, struct err *e)
{
    if (of->type != TABLE_TEXT)
        return query_refuse_operator(of->type_name, c->op == QUERY_LIKE ? "~~" : "~~*", e);
    buf_add_str(&s->text, "query_like(");
    put_operand(s, of, e);
    buf_add_str(&s->text, ", ");
    add_text(s, slice_of(c->values[0]));
    buf_add_str(&s->text, c->op == QUERY_LIKE ? ", 0)" : ", 1)");
    return 0;
}

/* fn(operand, value), or the other way round. */
static int put_relation(struct query_sql *s, const struct query_operand *of, const struct query_condition *c,
                        struct err *e)
{
    struct query_value v;
    int r = query_value_read(s->arena, of->type, slice_of(c->values[0]), &v, e);

    if (r < 0)
        return r;
    buf_add_str(&s->text, c->op == QUERY_OVERLAPS ? "query_overlaps(" : "query_contains(");
    if (c->op == QUERY_CONTAINED) {
        add_text(s, v.text);
        buf_add_str(&s->text, ", ");
    }
    put_operand(s, of, e);
    if (c->op != QUERY_CONTAINED) {
        buf_add_str(&s->text, ", ");
        add_text(s, v.text);
    }
    buf_add_char(&s->text, ')');
    return 0;
}

static int put_distinct(struct query_sql *s, const struct query_operand *of, const struct query_condition *c,
                        struct err *e)
{
    int r = put_compared(s, of, e);

    buf_add_str(&s->text, " IS NOT ");
    return r < 0 ? r : put_value(s, of, c->values[0], e);
}

static int put_special(struct query_sql *s, const struct query_operand *of, const struct query_condition *c,
                       struct err *e)
{
    static const char *const signs[] = { [QUERY_CONTAINS] = "@>", [QUERY_CONTAINED] = "<@", [QUERY_OVERLAPS] = "&&" };
    bool is_array = table_type_is_array(of->type);

    if (c->op == QUERY_LIKE || c->op == QUERY_ILIKE)
        return put_like(s, of, c, e);
    if (c->op == QUERY_IS_DISTINCT)
        return put_distinct(s, of, c, e);
    if (!is_array && (of->type != TABLE_JSONB || c->op == QUERY_OVERLAPS))
        return query_refuse_operator(of->type_name, signs[c->op], e);
    return put_relation(s, of, c, e);
}

const struct query_dialect embedded_dialect = { .put_operand = put_operand,
                                                .put_compared = put_compared,
                                                .put_ordered = put_ordered,
                                                .put_value = put_value,
                                                .put_special = put_special };

/* --- values that are stored --- */

/* 2026-11-20T09:32:05.68+00:00 -> 2026-11-20T09:32:05.680Z */
static struct slice activity_time(struct arena *a, struct slice shown)
{
    int n = (int)(shown.n - strlen("+00:00")), seconds = (int)strlen("2026-11-20T09:32:05");
    char millis[] = "000";

    for (int i = 0; i < 3 && seconds + 1 + i < n; i++)
        millis[i] = shown.p[seconds + 1 + i];
    return slice_of(arena_printf(a, "%.*s.%sZ", seconds, shown.p, millis));
}

int embedded_stored_value(struct arena *a, const struct table_shape *shape, const struct table_column *c,
                          struct json_value v, struct query_value *ret, struct err *e)
{
    int r = query_value_of_json(a, c->type, v, ret, e);

    if (r == 0 && ret->kind == QUERY_VALUE_TEXT && has_other_times(shape, c))
        ret->text = activity_time(a, ret->text);
    return r;
}

/* --- statements --- */

static struct sql_value bound(const struct query_value *v)
{
    static const char letters[] = {
        [QUERY_VALUE_NULL] = 'n', [QUERY_VALUE_TEXT] = 'S', [QUERY_VALUE_INT] = 'i', [QUERY_VALUE_REAL] = 'd'
    };
    struct slice text = v->kind == QUERY_VALUE_TEXT && !v->text.p ? SLICE_LIT("") : v->text;

    return (struct sql_value){ letters[v->kind], text, v->i, v->d };
}

int embedded_query_run(struct sql_db *db, struct query_sql *s, struct sql_rows **ret, struct err *e)
{
    struct sql_value *values = arena_array(s->arena, MAX(s->n_params, (size_t)1), sizeof(*values));
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r = buf_check(&s->text, e);

    for (size_t i = 0; i < s->n_params; i++)
        values[i] = bound(&s->params[i]);
    if (r == 0)
        r = sql_query_values(db, &rows, e, buf_str(&s->text), values, s->n_params);
    if (r == 0 && ret) {
        sql_rows_endp(ret);
        *ret = TAKE(rows);
        return 0;
    }
    while (r == 0 && (r = sql_step(rows, e)) > 0)
        r = 0;
    return r;
}
