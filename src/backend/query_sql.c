#include "backend/query_sql.h"
#include "base/limits.h"

/* --- refusals --- */

int query_refuse_column(const struct table_shape *shape, const char *column, struct err *e)
{
    return err_set(e, -EINVAL, "UNKNOWN_COLUMN", "column %.130s.%.130s does not exist", shape->table, column);
}

int query_refuse_operator(const char *type_name, const char *op, struct err *e)
{
    err_add_extra(e, "hint",
                  "No operator matches the given name and argument types. You might need to add explicit type casts.");
    return err_set(e, -EINVAL, "BAD_OPERATOR", "operator does not exist: %s %s unknown", type_name, op);
}

int query_refuse_row(const struct table_shape *shape, struct err *e)
{
    return err_set(e, -EPERM, "ROW_REFUSED", "new row violates row-level security policy for table \"%.130s\"",
                   shape->table);
}

int query_refuse_affected(int64_t max, struct err *e)
{
    return err_set(e, -E2BIG, "TOO_MANY_ROWS", "The change affects more than %lld rows", (long long)max);
}

int query_refuse_conflict(struct err *e)
{
    return err_set(e, -EINVAL, "BAD_CONFLICT",
                   "there is no unique or exclusion constraint matching the ON CONFLICT specification");
}

static const struct {
    const char *begin, *code;
    int r;
} refusals[] = {
    { "23505", "NOT_UNIQUE", -EEXIST },       { "23502", "NOT_NULL", -EINVAL },
    { "23", "CHECK_FAILED", -EINVAL },        { "22", "BAD_VALUE", -EINVAL },
    { "42703", "UNKNOWN_COLUMN", -EINVAL },   { "42P10", "BAD_CONFLICT", -EINVAL },
    { "21000", "BAD_CONFLICT", -EINVAL },     { "42883", "BAD_OPERATOR", -EINVAL },
    { "42725", "BAD_OPERATOR", -EINVAL },     { "42804", "BAD_OPERATOR", -EINVAL },
    { "42846", "BAD_OPERATOR", -EINVAL },     { "428C9", "BAD_VALUE", -EINVAL },
    { "57014", "QUERY_TIMEOUT", -ETIMEDOUT }, { "54", "TOO_LARGE", -E2BIG },
};

/* Codes whose SQLSTATE the caller knows from the code. */
static bool is_plain(const char *sqlstate)
{
    static const char *const plain[] = { "23505", "23502", "23514", "22P02", "42703", "42P10", "42883", "57014" };

    for (size_t i = 0; i < ARRAY_SIZE(plain); i++)
        if (strcmp(sqlstate, plain[i]) == 0)
            return true;
    return false;
}

int query_refuse_sqlstate(const char *sqlstate, const char *words, struct err *e)
{
    for (size_t i = 0; i < ARRAY_SIZE(refusals); i++) {
        if (strncmp(sqlstate, refusals[i].begin, strlen(refusals[i].begin)) != 0)
            continue;
        if (!is_plain(sqlstate))
            err_add_extra(e, "sqlstate", sqlstate);
        return err_set(e, refusals[i].r, refusals[i].code, "%s", words);
    }
    return 0;
}

static int refuse_number(const char *what, int max, struct err *e)
{
    return err_set(e, -E2BIG, "TOO_LARGE", "A query may have at most %d %s", max, what);
}

/* --- limits --- */

struct tally {
    size_t n_conditions, n_values;
};

static int check_path(const struct query_path *p, struct err *e)
{
    if (p->n_steps > LIMIT_FILTER_PATH)
        return refuse_number("steps in a path", LIMIT_FILTER_PATH, e);
    return 0;
}

static int check_test(const struct query_condition *c, struct err *e)
{
    bool is_pattern = c->op == QUERY_LIKE || c->op == QUERY_ILIKE;

    if (is_pattern && c->n_values && strlen(c->values[0]) > LIMIT_QUERY_PATTERN)
        return err_set(e, -E2BIG, "TOO_LARGE", "A pattern may have at most %d bytes", LIMIT_QUERY_PATTERN);
    return check_path(&c->path, e);
}

static int check_condition(const struct query_condition *c, size_t depth, struct tally *tally, struct err *e)
{
    int r = 0;

    if (depth > LIMIT_QUERY_DEPTH)
        return refuse_number("conditions within each other", LIMIT_QUERY_DEPTH, e);
    if (++tally->n_conditions > LIMIT_QUERY_CONDITIONS)
        return refuse_number("conditions", LIMIT_QUERY_CONDITIONS, e);
    tally->n_values += c->junction == QUERY_TEST ? c->n_values : 0;
    if (tally->n_values > LIMIT_QUERY_VALUES)
        return refuse_number("values in conditions", LIMIT_QUERY_VALUES, e);
    if (c->junction == QUERY_TEST)
        return check_test(c, e);
    for (size_t i = 0; r == 0 && i < c->n_items; i++)
        r = check_condition(&c->items[i], depth + 1, tally, e);
    return r;
}

static int check_item(const struct query_item *item, struct err *e)
{
    const char *name = query_item_name(item);

    if (strlen(name) > LIMIT_TABLE_NAME_PART)
        return err_set(e, -E2BIG, "TOO_LARGE", "The name %.64s... is longer than %d bytes", name,
                       LIMIT_TABLE_NAME_PART);
    return check_path(&item->path, e);
}

int query_check(const struct query *q, struct err *e)
{
    struct tally tally = { 0 };
    int r = q->where ? check_condition(q->where, 1, &tally, e) : 0;

    if (r == 0 && q->n_items > LIMIT_QUERY_ITEMS)
        r = refuse_number("columns", LIMIT_QUERY_ITEMS, e);
    if (r == 0 && q->n_order > LIMIT_QUERY_ORDER)
        r = refuse_number("columns in its order", LIMIT_QUERY_ORDER, e);
    if (r == 0 && (q->n_columns > LIMIT_TABLE_COLUMNS || q->n_conflict_columns > LIMIT_TABLE_COLUMNS))
        r = refuse_number("columns to write", LIMIT_TABLE_COLUMNS, e);
    if (r == 0 && q->kind == QUERY_INSERT && json_length(q->rows) > LIMIT_QUERY_WRITE_ROWS)
        r = query_refuse_affected(LIMIT_QUERY_WRITE_ROWS, e);
    for (size_t i = 0; r == 0 && i < q->n_items; i++)
        r = check_item(&q->items[i], e);
    for (size_t i = 0; r == 0 && i < q->n_order; i++)
        r = check_path(&q->order[i].path, e);
    return r;
}

/* --- the writer --- */

void query_sql_init(struct query_sql *s, const struct query_dialect *dialect, const struct table_shape *shape,
                    struct arena *a)
{
    *s = (struct query_sql){ .dialect = dialect, .shape = shape, .arena = a };
    buf_init(&s->text, LIMIT_REPLY);
}

void query_sql_clear(struct query_sql *s)
{
    buf_clear(&s->text);
}

void query_sql_add_param(struct query_sql *s, const struct query_value *v)
{
    struct query_value *grown;

    if (s->n_params == s->capacity) {
        s->capacity = s->capacity ? 2 * s->capacity : 16;
        grown = arena_array(s->arena, s->capacity, sizeof(*grown));
        if (s->n_params)
            memcpy(grown, s->params, s->n_params * sizeof(*grown));
        s->params = grown;
    }
    s->params[s->n_params++] = *v;
}

static void put_quoted(struct buf *out, const char *text, char quote)
{
    buf_add_char(out, quote);
    for (; *text; text++) {
        if (*text == quote)
            buf_add_char(out, quote);
        buf_add_char(out, *text);
    }
    buf_add_char(out, quote);
}

void query_sql_quote(struct buf *out, const char *name)
{
    put_quoted(out, name, '"');
}

void query_sql_literal(struct buf *out, const char *text)
{
    put_quoted(out, text, '\'');
}

/* --- paths --- */

int query_sql_operand(const struct query_sql *s, const struct query_path *path, struct query_operand *ret,
                      struct err *e)
{
    const struct table_column *column = table_shape_column(s->shape, slice_of(path->column));

    if (!column)
        return query_refuse_column(s->shape, path->column, e);
    if (path->n_steps && !table_type_is_json(column->type))
        return query_refuse_operator(table_type_name(column->type), path->is_text ? "->>" : "->", e);
    *ret = (struct query_operand){ .path = path, .column = column, .type = column->type };
    if (path->n_steps)
        ret->type = path->is_text ? TABLE_TEXT : TABLE_JSONB;
    if (path->cast)
        ret->type = *path->cast;
    ret->type_name = ret->type == TABLE_OTHER ? column->type_name : table_type_name(ret->type);
    return 0;
}

const char *query_item_name(const struct query_item *item)
{
    const struct query_path *p = &item->path;

    if (item->alias)
        return item->alias;
    return p->n_steps ? p->steps[p->n_steps - 1] : p->column;
}

static int put_item(struct query_sql *s, const struct query_item *item, struct err *e)
{
    struct query_operand of;
    int r = query_sql_operand(s, &item->path, &of, e);

    if (r == 0)
        r = s->dialect->put_operand(s, &of, e);
    if (r < 0)
        return r;
    buf_add_str(&s->text, " AS ");
    query_sql_quote(&s->text, query_item_name(item));
    return 0;
}

int query_sql_items(struct query_sql *s, const struct query *q, struct err *e)
{
    size_t n = q->n_items ? q->n_items : s->shape->n_columns;
    int r = 0;

    for (size_t i = 0; r == 0 && i < n; i++) {
        struct query_item column = { 0 };

        if (i)
            buf_add_str(&s->text, ", ");
        if (!q->n_items)
            column.path.column = s->shape->columns[i].name;
        r = put_item(s, q->n_items ? &q->items[i] : &column, e);
    }
    return r;
}

/* --- conditions --- */

static int put_values(struct query_sql *s, const struct query_operand *of, const struct query_condition *c,
                      struct err *e)
{
    int r = 0;

    if (c->n_values == 0) { /* IN (): no value equals */
        buf_add_str(&s->text, " IN (NULL)");
        return 0;
    }
    buf_add_str(&s->text, " IN (");
    for (size_t i = 0; r == 0 && i < c->n_values; i++) {
        if (i)
            buf_add_str(&s->text, ", ");
        r = s->dialect->put_value(s, of, c->values[i], e);
    }
    buf_add_char(&s->text, ')');
    return r;
}

static int put_is(struct query_sql *s, const struct query_operand *of, const char *word, struct err *e)
{
    static const struct {
        const char *word, *sql;
        bool is_of_bool;
    } tests[] = { { "null", " IS NULL", false },
                  { "not_null", " IS NOT NULL", false },
                  { "true", " IS TRUE", true },
                  { "false", " IS FALSE", true },
                  { "unknown", " IS NULL", true } };
    int r;

    for (size_t i = 0; i < ARRAY_SIZE(tests); i++) {
        if (strcmp(word, tests[i].word) != 0)
            continue;
        if (tests[i].is_of_bool && of->type != TABLE_BOOL)
            return err_set(e, -EINVAL, "BAD_OPERATOR", "argument of IS %.8s must be type boolean, not type %s", word,
                           of->type_name);
        r = s->dialect->put_operand(s, of, e);
        buf_add_str(&s->text, tests[i].sql);
        return r;
    }
    return err_set(e, -EINVAL, "BAD_OPERATOR", "IS takes null, not_null, true, false or unknown");
}

static int put_comparison(struct query_sql *s, const struct query_operand *of, const struct query_condition *c,
                          struct err *e)
{
    static const char *const signs[] = { [QUERY_EQ] = " = ",   [QUERY_NEQ] = " <> ", [QUERY_GT] = " > ",
                                         [QUERY_GTE] = " >= ", [QUERY_LT] = " < ",   [QUERY_LTE] = " <= " };
    int r;

    if (of->type == TABLE_JSON)
        return query_refuse_operator("json", signs[c->op == QUERY_IN ? QUERY_EQ : c->op], e);
    r = s->dialect->put_compared(s, of, e);
    if (r < 0)
        return r;
    if (c->op == QUERY_IN)
        return put_values(s, of, c, e);
    buf_add_str(&s->text, signs[c->op]);
    return s->dialect->put_value(s, of, c->values[0], e);
}

static int put_test(struct query_sql *s, const struct query_condition *c, struct err *e)
{
    struct query_operand of = { 0 };
    int r = query_sql_operand(s, &c->path, &of, e);

    if (r < 0)
        return r;
    if (c->op != QUERY_IN && c->n_values != 1)
        return err_set(e, -EINVAL, "BAD_OPERATOR", "This operator takes one value");
    if (c->op == QUERY_IS)
        return put_is(s, &of, c->values[0], e);
    return c->op <= QUERY_IN ? put_comparison(s, &of, c, e) : s->dialect->put_special(s, &of, c, e);
}

static int put_condition(struct query_sql *s, const struct query_condition *c, struct err *e)
{
    int r = 0;

    buf_add_str(&s->text, c->is_not ? "NOT (" : "(");
    if (c->junction == QUERY_TEST)
        r = put_test(s, c, e);
    else if (c->n_items == 0)
        buf_add_str(&s->text, c->junction == QUERY_AND ? "1 = 1" : "1 = 0");
    for (size_t i = 0; r == 0 && c->junction != QUERY_TEST && i < c->n_items; i++) {
        if (i)
            buf_add_str(&s->text, c->junction == QUERY_AND ? " AND " : " OR ");
        r = put_condition(s, &c->items[i], e);
    }
    buf_add_char(&s->text, ')');
    return r;
}

bool query_has_rule(const struct query *q, const struct table_shape *shape)
{
    return q->only_user && table_shape_column(shape, SLICE_LIT("user_id"));
}

static int put_rule(struct query_sql *s, const struct query *q, struct err *e)
{
    const struct query_condition mine = {
        .path = { .column = "user_id" }, .op = QUERY_EQ, .values = &q->only_user, .n_values = 1
    };

    return put_condition(s, &mine, e);
}

int query_sql_where(struct query_sql *s, const struct query *q, struct err *e)
{
    bool has_rule = query_has_rule(q, s->shape);
    int r = 0;

    if (q->where || has_rule)
        buf_add_str(&s->text, " WHERE ");
    if (has_rule)
        r = put_rule(s, q, e);
    if (r == 0 && q->where && has_rule)
        buf_add_str(&s->text, " AND ");
    return r == 0 && q->where ? put_condition(s, q->where, e) : r;
}

/* --- order --- */

static int put_order(struct query_sql *s, const struct query_order *o, struct err *e)
{
    bool is_first = o->nulls == QUERY_NULLS_FIRST || (o->nulls == QUERY_NULLS_DEFAULT && o->is_descending);
    struct query_operand of;
    int r = query_sql_operand(s, &o->path, &of, e);

    if (r == 0)
        r = s->dialect->put_ordered(s, &of, e);
    buf_add_str(&s->text, o->is_descending ? " DESC" : " ASC");
    buf_add_str(&s->text, is_first ? " NULLS FIRST" : " NULLS LAST");
    return r;
}

int query_sql_order(struct query_sql *s, const struct query *q, struct err *e)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < q->n_order; i++) {
        buf_add_str(&s->text, i ? ", " : " ORDER BY ");
        r = put_order(s, &q->order[i], e);
    }
    return r;
}
