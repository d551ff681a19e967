#include "backend/postgres/postgres_query.h"
#include "backend/refusals.h"
#include "base/clock.h"
#include "base/limits.h"

#include <stdlib.h>

enum { SHAPE_COLUMNS = 7, MAX_COLUMNS = 1600 }; /* PostgreSQL, Appendix K */

struct reader {
    struct arena *arena;
    struct table_shape *shape;
};

/* --- names --- */

void postgres_put_name(struct buf *out, const char *name)
{
    AUTO(arena_freep) struct arena *a = arena_new_sized(512);
    const struct table_parts parts = backend_table_parts(a, name);

    query_sql_quote(out, parts.schema);
    buf_add_char(out, '.');
    query_sql_quote(out, parts.table);
}

/* --- columns --- */

static int read_text(struct reader *reader, const struct pg_row *row, int column, const char **ret, struct err *e)
{
    struct slice text = SLICE_LIT("");
    int r = pg_row_is_null(row, column) ? 0 : pg_row_text(row, column, LIMIT_STRING_DEFAULT, &text, e);

    *ret = r < 0 || pg_row_is_null(row, column) ? NULL : arena_slicedup(reader->arena, text);
    return r;
}

static int read_flag(const struct pg_row *row, int column, bool *ret, struct err *e)
{
    int64_t n = 0;
    int r = pg_row_int(row, column, 0, 1, &n, e);

    *ret = n != 0;
    return r;
}

static const char *default_of(const char *sql)
{
    return sql && strstr(sql, POSTGRES_DEFAULT_USER) ? TABLE_DEFAULT_USER : sql;
}

static int take_column(void *arg, const struct pg_row *row, struct err *e)
{
    struct reader *reader = arg;
    struct table_column *c = &reader->shape->columns[reader->shape->n_columns];
    bool is_not_null = false;
    int r = read_text(reader, row, 0, &c->name, e);

    if (r == 0)
        r = read_text(reader, row, 1, &c->type_name, e);
    if (r == 0)
        r = read_flag(row, 2, &is_not_null, e);
    if (r == 0)
        r = read_text(reader, row, 3, &c->default_text, e);
    if (r == 0)
        r = read_flag(row, 4, &c->is_key, e);
    if (r == 0)
        r = read_flag(row, 5, &c->is_unique, e);
    if (r == 0)
        r = read_flag(row, 6, &reader->shape->has_full_identity, e);
    if (r < 0 || !c->name || !c->type_name)
        return r < 0 ? r : pg_fault(e, "a column has no name");
    c->type = TABLE_OTHER;
    table_type_of(slice_of(c->type_name), &c->type);
    c->is_nullable = !is_not_null;
    c->default_text = default_of(c->default_text);
    reader->shape->n_columns++;
    return 0;
}

static void forget_columns(void *arg)
{
    ((struct reader *)arg)->shape->n_columns = 0;
}

#define COLUMNS                                                                                                        \
    "SELECT a.attname, t.typname, a.attnotnull::int, pg_get_expr(d.adbin, d.adrelid),"                                 \
    " EXISTS (SELECT 1 FROM pg_catalog.pg_index i WHERE i.indrelid = c.oid AND i.indisprimary"                         \
    "  AND a.attnum = ANY (i.indkey))::int,"                                                                           \
    " EXISTS (SELECT 1 FROM pg_catalog.pg_index i WHERE i.indrelid = c.oid AND i.indisunique AND NOT i.indisprimary"   \
    "  AND i.indnatts = 1 AND i.indkey[0] = a.attnum AND i.indpred IS NULL)::int,"                                     \
    " (c.relreplident = 'f')::int"                                                                                     \
    " FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"                             \
    " JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped"                    \
    " JOIN pg_catalog.pg_type t ON t.oid = a.atttypid"                                                                 \
    " LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum"                                   \
    " WHERE n.nspname = $1 AND c.relname = $2 AND c.relkind IN ('r', 'p')"

static int read_columns(struct postgres *pg, const char *template, const char *name, struct arena *a,
                        struct table_shape *ret, struct err *e)
{
    const struct table_parts parts = backend_table_parts(a, name);
    struct reader reader = { a, ret };
    struct postgres_table *any = postgres_table_activities(pg->tables);
    struct postgres_call c = { .sql = postgres_sql(any, template),
                               .params = { parts.schema, parts.table },
                               .n_params = 2,
                               .table = name,
                               .repeat = POSTGRES_REPEATABLE,
                               .n_columns = SHAPE_COLUMNS,
                               .max_rows = MAX_COLUMNS,
                               .on_row = take_column,
                               .on_begin = forget_columns,
                               .arg = &reader };

    ret->columns = arena_array(a, MAX_COLUMNS, sizeof(*ret->columns));
    return postgres_call(pg, &c, e);
}

int postgres_shape_any(struct postgres *pg, const char *name, struct arena *a, struct table_shape *ret, struct err *e)
{
    *ret = (struct table_shape){ .table = name, .has_own_columns = true };
    return read_columns(pg, COLUMNS " ORDER BY a.attnum", name, a, ret, e);
}

/* The list of declared tables is made with the first of them. */
static int read_declared(struct postgres *pg, const char *name, struct arena *a, struct table_shape *ret, struct err *e)
{
    static const char sql[] = COLUMNS " AND EXISTS (SELECT 1 FROM \"public\".\"{abbr}_declared\" m"
                                      " WHERE m.schema_name = n.nspname AND m.table_name = c.relname)"
                                      " ORDER BY a.attnum";
    int r = read_columns(pg, sql, name, a, ret, e);

    return r == 0 && ret->n_columns == 0 ? refusals_no_table(name, e) : r;
}

static int read_own(struct postgres *pg, const char *name, struct arena *a, struct table_shape *ret, struct err *e)
{
    int64_t began_ms = clock_mono_ms();
    int r;

    *ret =
        (struct table_shape){ .table = name, .is_published = true, .has_own_columns = true, .has_full_identity = true };
    r = read_declared(pg, name, a, ret, e);
    if (r == 0)
        postgres_shapes_keep(pg->shapes, ret, began_ms);
    return r;
}

static void describe_activities(struct arena *a, const char *name, struct table_shape *ret)
{
    *ret = (struct table_shape){
        .table = name, .n_columns = TABLE_N_ACTIVITY_COLUMNS, .is_published = true, .has_full_identity = true
    };
    ret->columns = arena_array(a, TABLE_N_ACTIVITY_COLUMNS, sizeof(*ret->columns));
    memcpy(ret->columns, table_activity_columns, sizeof(table_activity_columns));
}

/* may_keep: a shape that was read a moment ago will do. */
static int find_shape(struct postgres *pg, const char *table, bool may_keep, struct arena *a, struct table_shape *ret,
                      struct err *e)
{
    struct postgres_table *t;
    char *name = NULL;

    if (backend_table_name(a, table, &name, NULL) < 0)
        return refusals_no_table(table, e);
    if (strcmp(name, postgres_table_name(postgres_table_deletions(pg->tables))) == 0) {
        table_deletions_shape(a, name, ret);
        return 0;
    }
    if (may_keep && postgres_shapes_find(pg->shapes, name, a, ret))
        return 0;
    if (postgres_find_table(pg, name, &t, NULL) < 0)
        return read_own(pg, name, a, ret, e);
    describe_activities(a, name, ret);
    return 0;
}

int postgres_shape(struct backend *b, const char *table, struct arena *a, struct table_shape *ret, struct err *e)
{
    return find_shape(postgres_of(b), table, true, a, ret, e);
}

int postgres_shape_now(struct postgres *pg, const char *table, struct arena *a, struct table_shape *ret, struct err *e)
{
    return find_shape(pg, table, false, a, ret, e);
}

/* --- published tables --- */

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int postgres_published_names(struct postgres *pg, struct arena *a, const char ***ret, size_t *ret_n, struct err *e)
{
    struct postgres_texts names = { .arena = a };
    const char **work = NULL;
    struct err why = { 0 };
    int r = postgres_table_names(pg, a, &work, &names.n_before, e);

    if (r < 0)
        return r;
    names.items = arena_array(a, names.n_before + LIMIT_ITEMS_DEFAULT, sizeof(*names.items));
    for (names.n = 0; names.n < names.n_before; names.n++)
        names.items[names.n] = work[names.n];
    r = postgres_read_names(pg, "SELECT name FROM \"public\".\"{abbr}_declared\" LIMIT 10000", "declared", &names,
                            &why);
    if (r < 0 && r != -ENOENT) { /* no table was ever declared */
        if (e)
            *e = why;
        return r;
    }
    qsort(names.items, names.n, sizeof(*names.items), compare_names);
    *ret = names.items;
    *ret_n = MIN(names.n, (size_t)LIMIT_ITEMS_DEFAULT);
    return 0;
}
