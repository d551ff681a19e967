/* INSERT, UPDATE and DELETE of queries. Rows are named by their rowids, so that what is given back and what the rule of
 * only_user judges are the rows after the triggers. */
#include "backend/embedded/embedded_query.h"
#include "base/limits.h"

#include <sqlite3.h>

enum { NO_ROW = -1, IDS_BYTES = 24 * (LIMIT_QUERY_WRITE_ROWS + 1) };

struct change {
    struct sql_db *db;
    const struct query *q;
    const struct table_shape *shape;
    struct arena *arena;
    struct buf ids; /* "1,2,3" */
    int64_t n, n_inserted;
};

static void begin(struct change *c, struct query_sql *s)
{
    query_sql_init(s, &embedded_dialect, c->shape, c->arena);
}

static void put_table(struct change *c, struct query_sql *s)
{
    query_sql_quote(&s->text, c->shape->table);
}

static void put_ids(struct change *c, struct query_sql *s)
{
    buf_printf(&s->text, "(%s)", buf_str(&c->ids));
}

static void add_id(struct change *c, int64_t id)
{
    buf_printf(&c->ids, "%s%lld", c->n++ ? "," : "", (long long)id);
}

/* --- what the rule and the limits say --- */

static int check_affected(const struct change *c, struct err *e)
{
    int64_t max = LIMIT_QUERY_WRITE_ROWS;

    if (c->q->max_affected >= 0 && c->q->max_affected < max)
        max = c->q->max_affected;
    return c->n > max ? query_refuse_affected(max, e) : 0;
}

static int check_rule(struct change *c, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    const struct query_value user = { .kind = QUERY_VALUE_TEXT, .text = slice_of(c->q->only_user) };
    struct query_sql s;
    int r;

    if (!query_has_rule(c->q, c->shape) || c->n == 0)
        return 0;
    begin(c, &s);
    buf_add_str(&s.text, "SELECT 1 FROM ");
    put_table(c, &s);
    buf_add_str(&s.text, " WHERE user_id IS NOT ? AND _rowid_ IN ");
    query_sql_add_param(&s, &user);
    put_ids(c, &s);
    buf_add_str(&s.text, " LIMIT 1");
    r = embedded_query_run(c->db, &s, &rows, e);
    if (r == 0)
        r = sql_step(rows, e);
    query_sql_clear(&s);
    return r > 0 ? query_refuse_row(c->shape, e) : r;
}

/* The rows in the order of the change. */
static int give_rows(struct change *c, struct query_reply *ret, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    struct query_sql s;
    int r;

    if (!c->q->is_rows_wanted)
        return 0;
    begin(c, &s);
    buf_add_str(&s.text, "SELECT ");
    r = query_sql_items(&s, c->q, e);
    buf_printf(&s.text, " FROM json_each('[%s]') _i JOIN ", buf_str(&c->ids));
    put_table(c, &s);
    buf_add_str(&s.text, " AS _t ON _t._rowid_ = _i.value ORDER BY _i.key");
    if (r == 0)
        r = embedded_query_run(c->db, &s, &rows, e);
    if (r == 0)
        r = embedded_query_print(rows, &s, c->q, ret, e);
    query_sql_clear(&s);
    return r;
}

/* --- members of a row --- */

struct member {
    const struct table_column *column;
    struct query_value value;
};

struct members {
    struct member *items;
    size_t n;
};

static int add_member(struct change *c, struct members *m, struct slice name, struct json_value v, struct err *e)
{
    const struct table_column *column = table_shape_column(c->shape, name);

    if (!column)
        return query_refuse_column(c->shape, arena_slicedup(c->arena, name), e);
    for (size_t i = 0; i < m->n; i++)
        if (m->items[i].column == column)
            return 0;
    m->items[m->n].column = column;
    return embedded_stored_value(c->arena, c->shape, column, v, &m->items[m->n++].value, e);
}

static bool is_default_user(const struct table_column *c)
{
    return c->default_text && strcmp(c->default_text, TABLE_DEFAULT_USER) == 0;
}

static void add_user(struct change *c, struct members *m)
{
    const struct query_value user = { .kind = QUERY_VALUE_TEXT, .text = slice_of(c->q->only_user) };
    size_t n = m->n;

    for (size_t i = 0; c->q->only_user && i < c->shape->n_columns; i++) {
        const struct table_column *column = &c->shape->columns[i];
        bool is_given = !is_default_user(column);

        for (size_t k = 0; k < n && !is_given; k++)
            is_given = m->items[k].column == column;
        if (!is_given)
            m->items[m->n++] = (struct member){ column, user };
    }
}

/* The members of `row` that are written. names NULL: all of them. */
static int read_members(struct change *c, struct json_value row, const char *const *names, size_t n_names,
                        struct members *ret, struct err *e)
{
    bool is_nulled = c->q->is_null_for_missing && c->q->kind == QUERY_INSERT;
    struct json_iter it = json_iter(row);
    struct json_value v;
    struct slice name;
    int r = 0;

    *ret = (struct members){ .items = arena_array(c->arena, c->shape->n_columns + 1, sizeof(*ret->items)) };
    if (json_type(row) != JSON_OBJECT)
        return err_add_field(e, "rows", "must be objects");
    for (size_t i = 0; r == 0 && i < n_names; i++) {
        v = json_get(row, names[i]);
        if (json_type(v) != JSON_ABSENT || is_nulled)
            r = add_member(c, ret, slice_of(names[i]), v, e);
    }
    while (r == 0 && !names && json_next(&it, &name, &v))
        r = add_member(c, ret, name, v, e);
    return r;
}

/* --- INSERT --- */

/* NULL: without a conflict clause. */
static const char *const *conflict_columns(struct change *c, size_t *ret_n)
{
    const char **names = arena_array(c->arena, c->shape->n_columns + 1, sizeof(*names));

    *ret_n = c->q->n_conflict_columns;
    if (c->q->conflict == QUERY_CONFLICT_REFUSED)
        return NULL;
    if (c->q->n_conflict_columns)
        return c->q->conflict_columns;
    for (size_t i = 0; i < c->shape->n_columns; i++)
        if (c->shape->columns[i].is_key)
            names[(*ret_n)++] = c->shape->columns[i].name;
    return *ret_n ? names : NULL;
}

static int check_conflict_columns(const struct change *c, const char *const *names, size_t n, struct err *e)
{
    const struct table_column *column = NULL;
    size_t n_key = 0, n_of_key = 0;

    for (size_t i = 0; i < c->shape->n_columns; i++)
        n_key += c->shape->columns[i].is_key;
    for (size_t i = 0; i < n; i++) {
        column = table_shape_column(c->shape, slice_of(names[i]));
        if (!column)
            return query_refuse_column(c->shape, names[i], e);
        n_of_key += column->is_key;
    }
    return (n_of_key == n && n == n_key) || (n == 1 && column->is_unique) ? 0 : query_refuse_conflict(e);
}

static void put_names(struct query_sql *s, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        buf_add_str(&s->text, i ? ", " : "");
        query_sql_quote(&s->text, names[i]);
    }
}

static void put_merge(struct change *c, struct query_sql *s, const struct members *m)
{
    const struct query_value user = { .kind = QUERY_VALUE_TEXT, .text = slice_of(c->q->only_user) };

    buf_add_str(&s->text, " DO UPDATE SET ");
    for (size_t i = 0; i < m->n; i++) {
        buf_add_str(&s->text, i ? ", " : "");
        query_sql_quote(&s->text, m->items[i].column->name);
        buf_add_str(&s->text, " = excluded.");
        query_sql_quote(&s->text, m->items[i].column->name);
    }
    if (query_has_rule(c->q, c->shape)) {
        query_sql_add_param(s, &user);
        buf_add_str(&s->text, " WHERE _t.user_id = ?");
    }
}

static void put_insert(struct change *c, struct query_sql *s, const struct members *m, const char *const *conflict,
                       size_t n_conflict)
{
    buf_add_str(&s->text, "INSERT INTO ");
    put_table(c, s);
    if (m->n == 0) {
        buf_add_str(&s->text, " DEFAULT VALUES");
    } else {
        buf_add_str(&s->text, " AS _t (");
        for (size_t i = 0; i < m->n; i++) {
            buf_add_str(&s->text, i ? ", " : "");
            query_sql_quote(&s->text, m->items[i].column->name);
            query_sql_add_param(s, &m->items[i].value);
        }
        buf_add_str(&s->text, ") VALUES (?");
        for (size_t i = 1; i < m->n; i++)
            buf_add_str(&s->text, ", ?");
        buf_add_char(&s->text, ')');
    }
    if (conflict && m->n) {
        buf_add_str(&s->text, " ON CONFLICT (");
        put_names(s, conflict, n_conflict);
        buf_add_char(&s->text, ')');
        if (c->q->conflict == QUERY_CONFLICT_MERGED)
            put_merge(c, s, m);
        else
            buf_add_str(&s->text, " DO NOTHING");
    }
    buf_add_str(&s->text, " RETURNING _rowid_");
}

/* No row comes back when the conflict was ignored, or when the rule hides the row that exists. */
static int run_insert(struct change *c, struct query_sql *s, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int64_t id = NO_ROW;
    int r;

    sqlite3_set_last_insert_rowid(sql_handle(c->db), NO_ROW);
    r = embedded_query_run(c->db, s, &rows, e);
    while (r == 0 && (r = sql_step(rows, e)) > 0) {
        id = sql_int(rows, 0);
        r = 0;
    }
    if (r < 0)
        return r;
    if (id == NO_ROW)
        return c->q->conflict == QUERY_CONFLICT_MERGED ? query_refuse_row(c->shape, e) : 0;
    c->n_inserted += sql_last_id(c->db) == id;
    add_id(c, id);
    return 0;
}

static int insert_row(struct change *c, struct json_value row, const char *const *names, size_t n_names, struct err *e)
{
    struct members m;
    const char *const *conflict;
    size_t n_conflict;
    struct query_sql s;
    int r = read_members(c, row, names, n_names, &m, e);

    if (r == 0)
        add_user(c, &m);
    conflict = conflict_columns(c, &n_conflict);
    if (r == 0 && conflict)
        r = check_conflict_columns(c, conflict, n_conflict, e);
    if (r < 0)
        return r;
    begin(c, &s);
    put_insert(c, &s, &m, conflict, n_conflict);
    r = run_insert(c, &s, e);
    query_sql_clear(&s);
    return r;
}

/* The names of all members of all rows, for rows that lack some of them. */
static int gather_names(struct change *c, const char *const **ret, size_t *ret_n, struct err *e)
{
    const char **names = arena_array(c->arena, c->shape->n_columns + 1, sizeof(*names));
    struct json_iter rows = json_iter(c->q->rows), it;
    struct json_value row, v;
    struct slice name;

    *ret_n = 0;
    while (json_next(&rows, NULL, &row))
        for (it = json_iter(row); json_next(&it, &name, &v);) {
            const struct table_column *column = table_shape_column(c->shape, name);
            bool is_known = false;

            if (!column)
                return query_refuse_column(c->shape, arena_slicedup(c->arena, name), e);
            for (size_t i = 0; i < *ret_n && !is_known; i++)
                is_known = names[i] == column->name;
            if (!is_known)
                names[(*ret_n)++] = column->name;
        }
    *ret = names;
    return 0;
}

static int run_inserts(struct change *c, struct err *e)
{
    const char *const *names = c->q->n_columns ? c->q->columns : NULL;
    struct json_iter it = json_iter(c->q->rows);
    size_t n_names = c->q->n_columns;
    struct json_value row;
    int r = 0;

    if (json_type(c->q->rows) != JSON_ARRAY)
        return err_add_field(e, "rows", "must be an array of objects");
    if (!names && c->q->is_null_for_missing)
        r = gather_names(c, &names, &n_names, e);
    while (r == 0 && json_next(&it, NULL, &row))
        r = insert_row(c, row, names, n_names, e);
    return r;
}

/* --- UPDATE and DELETE --- */

static int find_rows(struct change *c, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int64_t limit = c->q->limit >= 0 ? MIN(c->q->limit, LIMIT_QUERY_WRITE_ROWS + 1) : LIMIT_QUERY_WRITE_ROWS + 1;
    struct query_sql s;
    int r;

    begin(c, &s);
    buf_add_str(&s.text, "SELECT _t._rowid_ FROM ");
    put_table(c, &s);
    buf_add_str(&s.text, " AS _t");
    r = query_sql_where(&s, c->q, e);
    if (r == 0)
        r = query_sql_order(&s, c->q, e);
    buf_printf(&s.text, " LIMIT %lld OFFSET %lld", (long long)limit, (long long)MAX(c->q->offset, 0));
    if (r == 0)
        r = embedded_query_run(c->db, &s, &rows, e);
    while (r == 0 && (r = sql_step(rows, e)) > 0) {
        add_id(c, sql_int(rows, 0));
        r = 0;
    }
    query_sql_clear(&s);
    return r;
}

static int update_rows(struct change *c, struct err *e)
{
    const char *const *names = c->q->n_columns ? c->q->columns : NULL;
    struct members m;
    struct query_sql s;
    int r = read_members(c, c->q->rows, names, c->q->n_columns, &m, e);

    if (r < 0 || m.n == 0 || c->n == 0)
        return r;
    begin(c, &s);
    buf_add_str(&s.text, "UPDATE ");
    put_table(c, &s);
    for (size_t i = 0; i < m.n; i++) {
        buf_add_str(&s.text, i ? ", " : " SET ");
        query_sql_quote(&s.text, m.items[i].column->name);
        buf_add_str(&s.text, " = ?");
        query_sql_add_param(&s, &m.items[i].value);
    }
    buf_add_str(&s.text, " WHERE _rowid_ IN ");
    put_ids(c, &s);
    r = embedded_query_run(c->db, &s, NULL, e);
    query_sql_clear(&s);
    return r;
}

static int delete_rows(struct change *c, struct err *e)
{
    struct query_sql s;
    int r;

    begin(c, &s);
    buf_add_str(&s.text, "DELETE FROM ");
    put_table(c, &s);
    buf_add_str(&s.text, " WHERE _rowid_ IN ");
    put_ids(c, &s);
    r = embedded_query_run(c->db, &s, NULL, e);
    query_sql_clear(&s);
    return r;
}

static int run_change(struct change *c, struct query_reply *ret, struct err *e)
{
    int r;

    if (c->q->kind == QUERY_INSERT)
        r = run_inserts(c, e);
    else
        r = find_rows(c, e);
    if (r == 0)
        r = check_affected(c, e);
    if (r == 0 && c->q->kind == QUERY_UPDATE)
        r = update_rows(c, e);
    if (r == 0 && c->q->kind != QUERY_DELETE)
        r = check_rule(c, e);
    if (r == 0)
        r = give_rows(c, ret, e);
    return r == 0 && c->q->kind == QUERY_DELETE ? delete_rows(c, e) : r;
}

int embedded_query_write(struct sql_db *db, const struct query *q, const struct table_shape *shape, struct arena *a,
                         struct query_reply *ret, struct err *e)
{
    struct change c = { .db = db, .q = q, .shape = shape, .arena = a };
    struct query_reply reply = { .rows = SLICE_LIT("[]"), .count = -1 };
    int r;

    buf_init(&c.ids, IDS_BYTES);
    r = run_change(&c, &reply, e);
    buf_clear(&c.ids);
    reply.n_rows = c.n;
    reply.n_inserted = c.n_inserted;
    if (r == 0)
        *ret = reply;
    return r;
}
