/* Tables with columns of their own: how they are made, listed and watched. */
#include "backend/postgres/postgres_declare_sql.h"
#include "backend/postgres/postgres_outbox_schema.h"
#include "backend/postgres/postgres_pieces.h"
#include "backend/postgres/postgres_query.h"
#include "backend/postgres/postgres_schema.h"
#include "backend/query_declare.h"
#include "base/limits.h"

struct declaration {
    struct postgres *pg;
    const struct table_shape *declared;
    struct buf sql;
};

#define USER "nullif(current_setting('hearth.user', true), '')"

/* Nothing of it depends on the settings of the session; two services that declare the same wait for each other. */
static const char script_begin[] = "BEGIN;\n"
                                   "SET LOCAL client_min_messages = warning;\n"
                                   "SET LOCAL search_path = pg_catalog, pg_temp;\n"
                                   "SET LOCAL lock_timeout = '30s';\n"
                                   "SET LOCAL standard_conforming_strings = on;\n"
                                   "SELECT pg_advisory_xact_lock(1751478114, 1);\n";

/* --- the trigger --- */

static void put_trigger(struct declaration *d)
{
    buf_add_str(&d->sql, "CREATE OR REPLACE TRIGGER hearth_2_recorded AFTER INSERT OR UPDATE OR DELETE ON ");
    postgres_put_name(&d->sql, d->declared->table);
    buf_printf(&d->sql, " FOR EACH ROW EXECUTE FUNCTION \"public\".\"%s_outbox_record\"(", d->pg->abbr);
    query_sql_literal(&d->sql, d->declared->table);
    for (size_t i = 0; i < d->declared->n_columns; i++) {
        if (!d->declared->columns[i].is_key)
            continue;
        buf_add_str(&d->sql, ", ");
        query_sql_literal(&d->sql, d->declared->columns[i].name);
    }
    buf_add_str(&d->sql, ");\nALTER TABLE ");
    postgres_put_name(&d->sql, d->declared->table);
    buf_add_str(&d->sql, " REPLICA IDENTITY FULL;\n");
}

/* --- the publication --- */

/* The SQL of a template; the table is none of those with work. */
static char *sql_of(struct declaration *d, struct arena *a, const char *template)
{
    struct postgres_tables *tables = postgres_tables_new(d->pg->abbr, NULL);
    char *sql = postgres_sql_once(a, postgres_table_of(tables, d->declared->table), template);

    postgres_tables_free(tables);
    return sql;
}

static int take_answer(void *arg, const struct pg_row *row, struct err *e)
{
    struct slice text = SLICE_LIT("");
    int r = pg_row_text(row, 0, 1, &text, e);

    *(bool *)arg = slice_eq_str(text, "t");
    return r;
}

/* Also when nothing is published at all. */
static bool is_published(struct declaration *d, struct arena *a)
{
    bool is_so = false;
    struct postgres_call c = { .sql = sql_of(d, a, postgres_published_pieces[0].probe),
                               .table = d->declared->table,
                               .repeat = POSTGRES_REPEATABLE,
                               .n_columns = 1,
                               .max_rows = 1,
                               .on_row = take_answer,
                               .arg = &is_so };

    return postgres_call(d->pg, &c, NULL) == 0 && is_so;
}

static int put_table(struct declaration *d, struct arena *a, bool *ret_is_done, struct err *e)
{
    struct table_shape existing = { 0 };
    size_t n;
    int r = postgres_shape_any(d->pg, d->declared->table, a, &existing, e);

    if (r == 0 && existing.n_columns)
        r = query_declare_compare(d->declared, &existing, e);
    if (r < 0)
        return r;
    n = d->sql.n;
    postgres_declare_put_table(&d->sql, d->declared, &existing, USER);
    *ret_is_done = existing.n_columns && d->sql.n == n;
    return 0;
}

/* Whether the table is listed and complete: then the service needs no rights of an owner. */
static bool is_listed(struct declaration *d, struct arena *a)
{
    struct table_shape shape = { 0 };

    return postgres_shape_now(d->pg, d->declared->table, a, &shape, NULL) == 0 && shape.has_own_columns;
}

/* What has the changes of a table reported; the table itself stays as it is. */
static void put_reports(struct declaration *d)
{
    postgres_declare_put_list(&d->sql, d->pg->abbr, d->declared->table);
    put_trigger(d);
}

static int run(struct declaration *d, struct arena *a, struct err *e)
{
    bool is_done = false;
    int r;

    buf_add_str(&d->sql, script_begin);
    r = put_table(d, a, &is_done, e);
    is_done = r == 0 && is_done && is_listed(d, a);
    if (r < 0 || (is_done && is_published(d, a)))
        return r;
    if (!is_done)
        put_reports(d);
    buf_add_str(&d->sql, sql_of(d, a, postgres_published_pieces[0].make));
    buf_add_str(&d->sql, "COMMIT;\n");
    r = buf_check(&d->sql, e);
    return r < 0 ? r : postgres_schema_run(&d->pg->place, buf_str(&d->sql), e);
}

static int check_name(struct postgres *pg, const char *name, struct err *e)
{
    static const char *const own[] = {
        "deletions", "tables", "presence", "schema", "outbox", "outbox_mark", "outbox_lease", "outbox_rest", "declared",
    };
    AUTO(arena_freep) struct arena *a = arena_new_sized(512);
    struct postgres_table *t;
    bool is_own = name[0] == '_';

    for (size_t i = 0; i < ARRAY_SIZE(own); i++)
        is_own = is_own || strcmp(name, arena_printf(a, "%s_%s", pg->abbr, own[i])) == 0;
    if (is_own)
        return err_set(e, -EINVAL, "VALIDATION_ERROR", "Table name %s is reserved", name);
    if (postgres_find_table(pg, name, &t, NULL) == 0)
        return err_set(e, -EEXIST, "TABLE_DIFFERS", "Table %.130s has the columns of the Activities table", name);
    return 0;
}

int postgres_declare(struct backend *b, const struct table_shape *declared, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct table_shape named = *declared;
    struct declaration d = { .pg = postgres_of(b), .declared = &named };
    char *name = NULL;
    int r = backend_table_name(a, declared->table, &name, e);

    if (r == 0)
        r = check_name(d.pg, name, e);
    if (r == 0)
        r = query_declare_check(declared, e);
    named.table = name;
    if (r < 0)
        return r;
    buf_init(&d.sql, MIB(4));
    r = run(&d, a, e);
    buf_clear(&d.sql);
    postgres_shapes_forget(d.pg->shapes, name);
    return r;
}

/* --- tables of others --- */

static const char *publish_text(struct declaration *d, struct arena *a)
{
    const char *text;

    buf_init(&d->sql, MIB(4));
    buf_add_str(&d->sql, script_begin);
    put_reports(d);
    buf_add_str(&d->sql, sql_of(d, a, postgres_published_pieces[0].make));
    buf_add_str(&d->sql, "COMMIT;\n");
    text = arena_strdup(a, buf_str(&d->sql));
    buf_clear(&d->sql);
    return text;
}

int postgres_probe(struct backend *b, const char *table, struct arena *a, struct table_probe *ret, struct err *e)
{
    struct declaration d = { .pg = postgres_of(b), .declared = &ret->shape };
    char *name = NULL;
    int r = backend_table_name(a, table, &name, e);

    *ret = (struct table_probe){ .is_sql = true };
    if (r == 0)
        r = postgres_shape_any(d.pg, name, a, &ret->shape, e);
    if (r < 0 || ret->shape.n_columns == 0)
        return r;
    ret->shape.is_published = is_listed(&d, a) && is_published(&d, a);
    ret->publish = publish_text(&d, a);
    return 0;
}
