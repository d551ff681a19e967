/* Tables with columns of their own: how they are made, and the triggers that report their changes. */
#include "backend/embedded/embedded_query.h"
#include "backend/embedded/embedded_schema.h"
#include "backend/query_declare.h"
#include "base/json_write.h"
#include "base/limits.h"

#define NOW_OF(form) "rtrim(rtrim(strftime('" form "', 'now'), '0'), '.')"
#define NOW "%Y-%m-%dT%H:%M:%f"

struct declaration {
    const struct table_shape *declared;
    struct arena *arena;
    struct buf sql;
};

/* --- columns --- */

/* The second word gives the affinity where the first one does not. */
static const char *declared_type(enum table_type type)
{
    static const char *const types[] = { [TABLE_TEXT] = "text",
                                         [TABLE_UUID] = "uuid text",
                                         [TABLE_INT2] = "int2",
                                         [TABLE_INT4] = "int4",
                                         [TABLE_INT8] = "int8",
                                         [TABLE_FLOAT4] = "float4",
                                         [TABLE_FLOAT8] = "float8",
                                         [TABLE_NUMERIC] = "numeric",
                                         [TABLE_BOOL] = "bool",
                                         [TABLE_TIMESTAMP] = "timestamp text",
                                         [TABLE_TIMESTAMPTZ] = "timestamptz text",
                                         [TABLE_DATE] = "date text",
                                         [TABLE_TIME] = "time text",
                                         [TABLE_JSON] = "json text",
                                         [TABLE_JSONB] = "jsonb text",
                                         [TABLE_TEXT_ARRAY] = "_text",
                                         [TABLE_INT4_ARRAY] = "_int4 text",
                                         [TABLE_OTHER] = "text" };

    return types[type];
}

static int put_literal(struct declaration *d, enum table_type type, const char *text, struct err *e)
{
    struct query_value v;
    char number[NUMBER_TEXT_SIZE] = "";
    int r = query_value_read(d->arena, type, slice_of(text), &v, e);

    if (r < 0)
        return r;
    if (v.kind == QUERY_VALUE_INT) {
        buf_printf(&d->sql, "%lld", (long long)v.i);
    } else if (v.kind == QUERY_VALUE_REAL) {
        number[json_format_double(number, v.d)] = '\0';
        buf_add_str(&d->sql, number);
    } else {
        query_sql_literal(&d->sql, arena_slicedup(d->arena, v.text));
    }
    return 0;
}

static const char *default_of_word(const struct table_column *c)
{
    if (strcmp(c->default_text, TABLE_DEFAULT_UUID) == 0)
        return EMBEDDED_NEW_UUID;
    if (strcmp(c->default_text, TABLE_DEFAULT_USER) == 0)
        return EMBEDDED_DEFAULT_USER;
    if (c->type == TABLE_DATE)
        return "date('now')";
    return c->type == TABLE_TIMESTAMPTZ ? NOW_OF(NOW) " || '+00:00'" : NOW_OF(NOW);
}

static int put_default(struct declaration *d, const struct table_column *c, struct err *e)
{
    if (!c->default_text)
        return 0;
    if (query_default_is_word(c->default_text)) {
        buf_printf(&d->sql, " DEFAULT (%s)", default_of_word(c));
        return 0;
    }
    buf_add_str(&d->sql, " DEFAULT ");
    return put_literal(d, c->type, c->default_text, e);
}

static void put_check_name(struct declaration *d, const struct table_column *c)
{
    buf_add_str(&d->sql, " CONSTRAINT ");
    query_sql_quote(&d->sql, arena_printf(d->arena, "%s_%s_check", d->declared->table, c->name));
    buf_add_str(&d->sql, " CHECK (");
}

static int put_checks(struct declaration *d, const struct table_column *c, struct err *e)
{
    int r = 0;

    if (table_type_is_json(c->type) || table_type_is_array(c->type)) {
        put_check_name(d, c);
        query_sql_quote(&d->sql, c->name);
        buf_add_str(&d->sql, " IS NULL OR json_valid(");
        query_sql_quote(&d->sql, c->name);
        buf_add_str(&d->sql, "))");
    }
    if (!c->n_allowed)
        return 0;
    put_check_name(d, c);
    query_sql_quote(&d->sql, c->name);
    buf_add_str(&d->sql, " IN (");
    for (size_t i = 0; r == 0 && i < c->n_allowed; i++) {
        buf_add_str(&d->sql, i ? ", " : "");
        r = put_literal(d, c->type, c->allowed[i], e);
    }
    buf_add_str(&d->sql, "))");
    return r;
}

static int put_column(struct declaration *d, const struct table_column *c, struct err *e)
{
    int r;

    query_sql_quote(&d->sql, c->name);
    buf_printf(&d->sql, " %s%s", declared_type(c->type), c->is_nullable && !c->is_key ? "" : " NOT NULL");
    r = put_default(d, c, e);
    if (r == 0)
        r = put_checks(d, c, e);
    if (c->is_unique && !c->is_key)
        buf_add_str(&d->sql, " UNIQUE");
    return r;
}

static void put_key(struct declaration *d)
{
    const char *comma = ", PRIMARY KEY (";
    bool has_key = false;

    for (size_t i = 0; i < d->declared->n_columns; i++) {
        if (!d->declared->columns[i].is_key)
            continue;
        buf_add_str(&d->sql, comma);
        query_sql_quote(&d->sql, d->declared->columns[i].name);
        comma = ", ";
        has_key = true;
    }
    buf_add_str(&d->sql, has_key ? "));" : ");");
}

static int put_create(struct declaration *d, struct err *e)
{
    int r = 0;

    buf_add_str(&d->sql, "CREATE TABLE ");
    query_sql_quote(&d->sql, d->declared->table);
    for (size_t i = 0; r == 0 && i < d->declared->n_columns; i++) {
        buf_add_str(&d->sql, i ? ", " : " (");
        r = put_column(d, &d->declared->columns[i], e);
    }
    put_key(d);
    return r;
}

static int put_additions(struct declaration *d, const struct table_shape *existing, struct err *e)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < d->declared->n_columns; i++) {
        const struct table_column *c = &d->declared->columns[i];

        if (table_shape_column(existing, slice_of(c->name)))
            continue;
        buf_add_str(&d->sql, "ALTER TABLE ");
        query_sql_quote(&d->sql, existing->table);
        buf_add_str(&d->sql, " ADD COLUMN ");
        r = put_column(d, c, e);
        buf_add_char(&d->sql, ';');
    }
    return r;
}

/* --- triggers --- */

static void put_cell(struct buf *out, const char *row, const struct table_column *c)
{
    struct buf cell;

    buf_init(&cell, KIB(1));
    buf_printf(&cell, "%s.", row);
    query_sql_quote(&cell, c->name);
    if (c->type == TABLE_BOOL)
        buf_printf(out, "CASE WHEN %s IS NULL THEN 'null' WHEN %s THEN 'true' ELSE 'false' END", buf_str(&cell),
                   buf_str(&cell));
    else if (table_type_is_json(c->type) || table_type_is_array(c->type))
        buf_printf(out, "coalesce(%s, 'null')", buf_str(&cell));
    else
        buf_printf(out, "json_quote(%s)", buf_str(&cell));
    buf_clear(&cell);
}

/* The record as a text of JSON: a function takes too few arguments for all columns. */
static void put_record(struct declaration *d, const struct table_shape *shape, const char *row)
{
    struct buf name;

    for (size_t i = 0; i < shape->n_columns; i++) {
        buf_init(&name, KIB(1));
        buf_add_char(&name, i ? ',' : '{');
        json_quote(&name, slice_of(shape->columns[i].name));
        buf_add_char(&name, ':');
        buf_add_str(&d->sql, i ? " || " : "");
        query_sql_literal(&d->sql, buf_str(&name));
        buf_clear(&name);
        buf_add_str(&d->sql, " || ");
        put_cell(&d->sql, row, &shape->columns[i]);
    }
    buf_add_str(&d->sql, " || '}'");
}

/* The key's text; of several columns, a JSON array. */
static void put_id(struct declaration *d, const struct table_shape *shape, const char *row)
{
    const char *comma = "";
    size_t n_key = 0;

    for (size_t i = 0; i < shape->n_columns; i++)
        n_key += shape->columns[i].is_key;
    buf_add_str(&d->sql, n_key > 1 ? "'' || json_array(" : "CAST(");
    for (size_t i = 0; i < shape->n_columns; i++) {
        if (!shape->columns[i].is_key)
            continue;
        buf_printf(&d->sql, "%s%s.", comma, row);
        query_sql_quote(&d->sql, shape->columns[i].name);
        comma = ", ";
    }
    if (n_key == 0)
        buf_printf(&d->sql, "%s._rowid_", row);
    buf_add_str(&d->sql, n_key > 1 ? ")" : " AS TEXT)");
}

/* A row as embedded_read_json() reads it. */
static void put_image(struct declaration *d, const struct table_shape *shape, const char *row)
{
    static const char *const shared[] = { "user_id", "locked_by" };

    buf_add_str(&d->sql, "json_object('id', ");
    put_id(d, shape, row);
    for (size_t i = 0; i < ARRAY_SIZE(shared); i++)
        if (table_shape_column(shape, slice_of(shared[i])))
            buf_printf(&d->sql, ", '%s', CAST(%s.%s AS TEXT)", shared[i], row, shared[i]);
    if (table_shape_column(shape, SLICE_LIT("status")))
        buf_printf(&d->sql, ", 'status', coalesce(CAST(%s.status AS TEXT), '')", row);
    else
        buf_add_str(&d->sql, ", 'status', ''");
    buf_add_str(&d->sql, ", 'raw_data', ");
    put_record(d, shape, row);
    buf_add_char(&d->sql, ')');
}

static void put_trigger(struct declaration *d, const struct table_shape *shape, enum backend_op op)
{
    const char *name = op == BACKEND_INSERT ? "inserted" : op == BACKEND_UPDATE ? "updated" : "deleted";
    const char *trigger = arena_printf(d->arena, "%s_%s", shape->table, name);

    buf_add_str(&d->sql, "DROP TRIGGER IF EXISTS ");
    query_sql_quote(&d->sql, trigger);
    buf_add_str(&d->sql, "; CREATE TRIGGER ");
    query_sql_quote(&d->sql, trigger);
    buf_printf(&d->sql, " AFTER %s ON ", backend_op_name(op));
    query_sql_quote(&d->sql, shape->table);
    buf_add_str(&d->sql, " BEGIN INSERT INTO _changes (name, op, old, new) VALUES (");
    query_sql_literal(&d->sql, shape->table);
    buf_printf(&d->sql, ", %d, ", (int)op);
    if (op == BACKEND_INSERT)
        buf_add_str(&d->sql, "NULL");
    else
        put_image(d, shape, "old");
    buf_add_str(&d->sql, ", ");
    if (op == BACKEND_DELETE)
        buf_add_str(&d->sql, "NULL");
    else
        put_image(d, shape, "new");
    buf_add_str(&d->sql, "); END;");
}

/* --- making --- */

static int run_sql(struct sql_db *db, struct declaration *d, struct err *e)
{
    int r = buf_check(&d->sql, e);

    if (r == 0)
        r = sql_script(db, buf_str(&d->sql), e);
    buf_reset(&d->sql);
    return r;
}

static int exists(struct sql_db *db, const char *name, bool *ret, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r = sql_query(db, &rows, e, "SELECT 1 FROM sqlite_master WHERE name = ? COLLATE NOCASE", "s", name);

    if (r == 0)
        r = sql_step(rows, e);
    *ret = r > 0;
    return MIN(r, 0);
}

static int make_or_alter(struct sql_db *db, struct declaration *d, bool is_there, struct err *e)
{
    struct table_shape existing = { 0 };
    int r = 0;

    if (!is_there) {
        r = put_create(d, e);
        if (r == 0)
            r = run_sql(db, d, e);
    }
    if (r == 0)
        r = sql_exec(db, e, "INSERT OR IGNORE INTO _declared (name) VALUES (?)", "s", d->declared->table);
    if (r == 0)
        r = embedded_shape_read(db, d->declared->table, d->arena, &existing, e);
    if (r == 0 && !existing.has_own_columns)
        r = err_set(e, -EEXIST, "TABLE_DIFFERS", "Table %.130s has the columns of the Activities table",
                    existing.table);
    if (r == 0 && is_there)
        r = query_declare_compare(d->declared, &existing, e);
    if (r == 0 && is_there)
        r = put_additions(d, &existing, e);
    return r == 0 ? run_sql(db, d, e) : r;
}

static int make_triggers(struct sql_db *db, struct declaration *d, struct err *e)
{
    static const enum backend_op ops[] = { BACKEND_INSERT, BACKEND_UPDATE, BACKEND_DELETE };
    struct table_shape shape = { 0 };
    int r = embedded_shape_read(db, d->declared->table, d->arena, &shape, e);

    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(ops); i++)
        put_trigger(d, &shape, ops[i]);
    return r == 0 ? run_sql(db, d, e) : r;
}

int embedded_declare_on(struct sql_db *db, const struct table_shape *declared, struct err *e)
{
    struct declaration d = { .declared = declared, .arena = arena_new() };
    bool is_there = false;
    int r = exists(db, declared->table, &is_there, e);

    buf_init(&d.sql, MIB(4));
    if (r == 0)
        r = make_or_alter(db, &d, is_there, e);
    if (r == 0)
        r = make_triggers(db, &d, e);
    buf_clear(&d.sql);
    arena_free(d.arena);
    return r;
}

static bool is_complete(struct embedded *em, struct arena *a, const struct table_shape *declared)
{
    struct table_shape existing = { 0 };
    bool is_so = embedded_shape_read(readers_get(em->readers), declared->table, a, &existing, NULL) == 0 &&
                 existing.has_own_columns && query_declare_compare(declared, &existing, NULL) == 0;

    for (size_t i = 0; is_so && i < declared->n_columns; i++)
        is_so = table_shape_column(&existing, slice_of(declared->columns[i].name)) != NULL;
    return is_so;
}

static int run_declare(struct sql_db *db, void *arg, struct err *e)
{
    return embedded_declare_on(db, arg, e);
}

int embedded_declare(struct backend *b, const struct table_shape *declared, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct embedded *em = embedded_of(b);
    struct table_shape named = *declared;
    char *name = NULL;
    int r = backend_table_name(a, declared->table, &name, e);

    if (r == 0 && embedded_table_is_reserved(em->tables, name))
        r = err_set(e, -EINVAL, "VALIDATION_ERROR", "Table name %s is reserved", name);
    if (r == 0)
        r = query_declare_check(declared, e);
    named.table = name;
    if (r < 0 || is_complete(em, a, &named))
        return r;
    return writer_run(em->writer, run_declare, &named, e);
}
