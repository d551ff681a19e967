/* INSERT, UPDATE and DELETE of queries, each as one statement. */
#include "backend/postgres/postgres_query.h"
#include "base/json_write.h"
#include "base/limits.h"

/* Of the rows of a change, beside the table's own columns: whether an INSERT made it. */
#define IS_NEW "\"~new\""

struct members {
    const struct table_column **items;
    bool *is_everywhere;
    size_t n;
};

/* --- the rows as the statement takes them --- */

static bool has_name(const char *const *names, size_t n, struct slice name)
{
    for (size_t i = 0; i < n; i++)
        if (slice_eq_str(name, names[i]))
            return true;
    return false;
}

static int note_member(const struct query_sql *s, struct members *m, struct slice name, bool is_first, struct err *e)
{
    const struct table_column *c = table_shape_column(s->shape, name);
    size_t i = 0;

    if (!c)
        return query_refuse_column(s->shape, arena_slicedup(s->arena, name), e);
    while (i < m->n && m->items[i] != c)
        i++;
    if (i < m->n)
        return 0;
    m->items[m->n] = c;
    m->is_everywhere[m->n++] = is_first;
    return 0;
}

static bool is_default_user(const struct table_column *c)
{
    return c->default_text && strcmp(c->default_text, TABLE_DEFAULT_USER) == 0;
}

/* The members that the database would fill with the user of the session. */
static int put_users(const struct query_sql *s, const struct query *q, struct json_value row, struct members *m,
                     bool is_first, struct json_writer *w, struct err *e)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < s->shape->n_columns; i++) {
        const struct table_column *c = &s->shape->columns[i];

        if (!is_default_user(c) || json_type(json_get(row, c->name)) != JSON_ABSENT)
            continue;
        r = note_member(s, m, slice_of(c->name), is_first, e);
        json_add_string(w, c->name, q->only_user);
    }
    return r;
}

static int put_row(const struct query_sql *s, const struct query *q, struct json_value row, struct members *m,
                   bool is_first, struct json_writer *w, struct err *e)
{
    struct json_iter it = json_iter(row);
    struct json_value v;
    struct slice name;
    int r = 0;

    if (json_type(row) != JSON_OBJECT)
        return err_add_field(e, "rows", "must be objects");
    json_begin_object(w);
    while (r == 0 && json_next(&it, &name, &v)) {
        if (q->n_columns && !has_name(q->columns, q->n_columns, name))
            continue;
        r = note_member(s, m, name, is_first, e);
        json_add_value(w, arena_slicedup(s->arena, name), v);
    }
    if (r == 0 && q->kind == QUERY_INSERT && q->only_user)
        r = put_users(s, q, row, m, is_first, w, e);
    json_end(w);
    for (size_t i = 0; i < m->n; i++)
        if (json_type(json_get(row, m->items[i]->name)) == JSON_ABSENT && !is_default_user(m->items[i]))
            m->is_everywhere[i] = false;
    return r;
}

static int put_rows(const struct query_sql *s, const struct query *q, struct members *m, struct json_writer *w,
                    struct err *e)
{
    struct json_iter it = json_iter(q->rows);
    struct json_value row;
    bool is_first = true;
    int r = 0;

    if (q->kind == QUERY_UPDATE)
        return put_row(s, q, q->rows, m, true, w, e);
    if (json_type(q->rows) != JSON_ARRAY)
        return err_add_field(e, "rows", "must be an array of objects");
    json_begin_array(w);
    for (; r == 0 && json_next(&it, NULL, &row); is_first = false)
        r = put_row(s, q, row, m, is_first, w, e);
    if (r == 0)
        json_end(w);
    return r;
}

/* A row without members: one column gets its default by name. */
static void note_default(const struct query_sql *s, struct members *m)
{
    for (size_t i = 0; i < s->shape->n_columns && m->n == 0; i++)
        if (s->shape->columns[i].default_text)
            m->items[m->n++] = &s->shape->columns[i];
}

/* *ret: the rows with only the members that are written. */
static int read_rows(const struct query_sql *s, const struct query *q, struct members *m, char **ret, struct err *e)
{
    struct json_writer w;
    struct buf out;
    int r = 0;

    m->items = arena_array(s->arena, s->shape->n_columns + 1, sizeof(const struct table_column *));
    m->is_everywhere = arena_array(s->arena, s->shape->n_columns + 1, sizeof(*m->is_everywhere));
    for (size_t i = 0; r == 0 && q->is_null_for_missing && i < q->n_columns; i++)
        r = note_member(s, m, slice_of(q->columns[i]), false, e);
    buf_init(&out, LIMIT_REPLY);
    json_write_init(&w, &out);
    if (r == 0)
        r = put_rows(s, q, m, &w, e);
    if (r == 0)
        r = buf_check(&out, e);
    *ret = buf_to_arena(&out, s->arena);
    if (r == 0 && q->kind == QUERY_INSERT && m->n == 0)
        note_default(s, m);
    return r;
}

/* --- INSERT --- */

static void put_member(struct query_sql *s, const struct query *q, const struct table_column *c, bool is_everywhere)
{
    if (!is_everywhere && !q->is_null_for_missing) {
        buf_add_str(&s->text, "CASE WHEN _in.v ? ");
        postgres_put_param(s, c->name);
        buf_add_str(&s->text, " THEN ");
    }
    buf_add_str(&s->text, "_r.");
    query_sql_quote(&s->text, c->name);
    if (!is_everywhere && !q->is_null_for_missing)
        buf_printf(&s->text, " ELSE %s END", c->default_text && !is_default_user(c) ? c->default_text : "NULL");
}

static void put_names(struct query_sql *s, const struct members *m)
{
    for (size_t i = 0; i < m->n; i++) {
        buf_add_str(&s->text, i ? ", " : "");
        query_sql_quote(&s->text, m->items[i]->name);
    }
}

static void put_target(struct query_sql *s, const struct query *q)
{
    const char *comma = " ON CONFLICT (";

    for (size_t i = 0; i < q->n_conflict_columns; i++, comma = ", ") {
        buf_add_str(&s->text, comma);
        query_sql_quote(&s->text, q->conflict_columns[i]);
    }
    for (size_t i = 0; !q->n_conflict_columns && i < s->shape->n_columns; i++) {
        if (!s->shape->columns[i].is_key)
            continue;
        buf_add_str(&s->text, comma);
        query_sql_quote(&s->text, s->shape->columns[i].name);
        comma = ", ";
    }
    buf_add_char(&s->text, ')');
}

static bool has_target(const struct query_sql *s, const struct query *q)
{
    bool has_key = q->n_conflict_columns > 0;

    for (size_t i = 0; i < s->shape->n_columns && !has_key; i++)
        has_key = s->shape->columns[i].is_key;
    return q->conflict != QUERY_CONFLICT_REFUSED && has_key;
}

static void put_user(struct query_sql *s, const struct query *q)
{
    postgres_put_param_as(s, q->only_user, table_shape_column(s->shape, SLICE_LIT("user_id"))->type_name);
}

static void put_conflict(struct query_sql *s, const struct query *q, const struct members *m)
{
    if (!has_target(s, q))
        return;
    put_target(s, q);
    if (q->conflict == QUERY_CONFLICT_IGNORED || m->n == 0) {
        buf_add_str(&s->text, " DO NOTHING");
        return;
    }
    for (size_t i = 0; i < m->n; i++) {
        buf_add_str(&s->text, i ? ", " : " DO UPDATE SET ");
        query_sql_quote(&s->text, m->items[i]->name);
        buf_add_str(&s->text, " = EXCLUDED.");
        query_sql_quote(&s->text, m->items[i]->name);
    }
    if (query_has_rule(q, s->shape)) {
        buf_add_str(&s->text, " WHERE _t.\"user_id\" = ");
        put_user(s, q);
    }
}

static void put_insert(struct query_sql *s, const struct query *q, const struct members *m, const char *rows)
{
    buf_add_str(&s->text, "WITH _in AS (SELECT _e.v, _e.i FROM jsonb_array_elements(");
    postgres_put_param(s, rows);
    buf_add_str(&s->text, "::jsonb) WITH ORDINALITY _e(v, i)), _c AS (INSERT INTO ");
    postgres_put_name(&s->text, s->shape->table);
    buf_add_str(&s->text, " AS _t ");
    if (m->n == 0) {
        buf_add_str(&s->text, "DEFAULT VALUES");
    } else {
        buf_add_char(&s->text, '(');
        put_names(s, m);
        buf_add_str(&s->text, ") SELECT ");
        for (size_t i = 0; i < m->n; i++) {
            buf_add_str(&s->text, i ? ", " : "");
            put_member(s, q, m->items[i], m->is_everywhere[i]);
        }
        buf_add_str(&s->text, " FROM _in CROSS JOIN LATERAL jsonb_populate_record(NULL::");
        postgres_put_name(&s->text, s->shape->table);
        buf_add_str(&s->text, ", _in.v) _r ORDER BY _in.i");
    }
    put_conflict(s, q, m);
    buf_add_str(&s->text, " RETURNING _t.*, (_t.xmax = 0) AS " IS_NEW ")");
}

/* --- UPDATE and DELETE --- */

/* Rows that an order or a number chooses are locked first. */
static int put_chosen(struct query_sql *s, const struct query *q, struct err *e)
{
    int r;

    if (q->limit < 0 && q->offset <= 0)
        return query_sql_where(s, q, e);
    buf_add_str(&s->text, " WHERE _t.ctid = ANY (ARRAY(SELECT _t.ctid FROM ");
    postgres_put_name(&s->text, s->shape->table);
    buf_add_str(&s->text, " AS _t");
    r = query_sql_where(s, q, e);
    if (r == 0)
        r = query_sql_order(s, q, e);
    if (q->limit >= 0)
        buf_printf(&s->text, " LIMIT %lld", (long long)q->limit);
    buf_printf(&s->text, " OFFSET %lld FOR UPDATE))", (long long)MAX(q->offset, 0));
    return r;
}

static int put_update(struct query_sql *s, const struct query *q, const struct members *m, const char *row,
                      struct err *e)
{
    int r;

    buf_add_str(&s->text, "WITH _c AS (UPDATE ");
    postgres_put_name(&s->text, s->shape->table);
    for (size_t i = 0; i < m->n; i++) {
        buf_add_str(&s->text, i ? ", " : " AS _t SET ");
        query_sql_quote(&s->text, m->items[i]->name);
        buf_add_str(&s->text, " = _r.");
        query_sql_quote(&s->text, m->items[i]->name);
    }
    buf_add_str(&s->text, " FROM jsonb_populate_record(NULL::");
    postgres_put_name(&s->text, s->shape->table);
    buf_add_str(&s->text, ", ");
    postgres_put_param(s, row);
    buf_add_str(&s->text, "::jsonb) _r");
    r = put_chosen(s, q, e);
    buf_add_str(&s->text, " RETURNING _t.*, false AS " IS_NEW ")");
    return r;
}

/* Without a member to change: the rows as they are. */
static int put_nothing(struct query_sql *s, const struct query *q, struct err *e)
{
    int r;

    buf_add_str(&s->text, "WITH _c AS (SELECT _t.*, false AS " IS_NEW " FROM ");
    postgres_put_name(&s->text, s->shape->table);
    buf_add_str(&s->text, " AS _t");
    r = put_chosen(s, q, e);
    buf_add_char(&s->text, ')');
    return r;
}

static int put_delete(struct query_sql *s, const struct query *q, struct err *e)
{
    int r;

    buf_add_str(&s->text, "WITH _c AS (DELETE FROM ");
    postgres_put_name(&s->text, s->shape->table);
    buf_add_str(&s->text, " AS _t");
    r = put_chosen(s, q, e);
    buf_add_str(&s->text, " RETURNING _t.*, false AS " IS_NEW ")");
    return r;
}

/* --- what is given back --- */

/* The cast of the word fails, and with it the statement. */
static void put_guard(struct query_sql *s, const struct query *q)
{
    int64_t max = LIMIT_QUERY_WRITE_ROWS;
    bool has_rule = query_has_rule(q, s->shape) && q->kind != QUERY_DELETE;

    if (q->max_affected >= 0 && q->max_affected < max)
        max = q->max_affected;
    buf_printf(&s->text, "CASE WHEN _n.n > %lld THEN (_n.n || 'TOO_MANY_ROWS')::int", (long long)max);
    if (has_rule)
        buf_add_str(&s->text, " WHEN _n.is_bad THEN (_n.n || 'ROW_REFUSED')::int");
    if (has_rule && q->kind == QUERY_INSERT && q->conflict == QUERY_CONFLICT_MERGED)
        buf_add_str(&s->text, " WHEN _n.n < (SELECT count(*) FROM _in) THEN (_n.n || 'ROW_REFUSED')::int");
    buf_add_str(&s->text, " END");
}

static int put_end(struct query_sql *s, const struct query *q, struct err *e)
{
    int r = 0;

    buf_add_str(&s->text, ", _n AS (SELECT count(*) AS n, count(*) FILTER (WHERE " IS_NEW ") AS fresh, ");
    if (query_has_rule(q, s->shape)) {
        buf_add_str(&s->text, "bool_or(\"user_id\" IS DISTINCT FROM ");
        put_user(s, q);
        buf_add_char(&s->text, ')');
    } else {
        buf_add_str(&s->text, "false");
    }
    buf_add_str(&s->text, " AS is_bad FROM _c) SELECT _n.n, _n.fresh, ");
    put_guard(s, q);
    if (!q->is_rows_wanted) {
        buf_add_str(&s->text, ", NULL FROM _n");
        return 0;
    }
    buf_add_str(&s->text, ", _r.j FROM _n LEFT JOIN LATERAL (SELECT row_to_json(_x)::text AS j FROM (SELECT ");
    r = query_sql_items(s, q, e);
    buf_add_str(&s->text, " FROM _c AS _t) _x) _r ON true");
    return r;
}

int postgres_put_change(struct query_sql *s, const struct query *q, struct err *e)
{
    struct members m = { 0 };
    char *rows = NULL;
    int r = q->kind == QUERY_DELETE ? 0 : read_rows(s, q, &m, &rows, e);

    for (size_t i = 0; r == 0 && i < q->n_conflict_columns; i++)
        if (!table_shape_column(s->shape, slice_of(q->conflict_columns[i])))
            r = query_refuse_column(s->shape, q->conflict_columns[i], e);
    if (r < 0)
        return r;
    if (q->kind == QUERY_INSERT)
        put_insert(s, q, &m, rows);
    else if (q->kind == QUERY_DELETE)
        r = put_delete(s, q, e);
    else if (m.n)
        r = put_update(s, q, &m, rows, e);
    else
        r = put_nothing(s, q, e);
    return r == 0 ? put_end(s, q, e) : r;
}
