/* What a table lacks for Custom Mode, told with what mends it. Nothing is changed here: the table is the app's. */
#include "backend/custom/custom_private.h"

#include "backend/backend_providers.h"
#include "backend/query_sql.h"

struct check {
    struct arena *arena;
    struct table_probe probe;
    struct buf name; /* the table as SQL names it */
    struct backend_lacks lacks;
};

enum { MAX_LACKS = CUSTOM_N_REQUIRED + 4 };

/* ---- texts ---- */

static void add(struct check *k, const char *what, const char *remedy)
{
    k->lacks.items[k->lacks.n++] = (struct backend_lack){ what, remedy };
}

static const char *type_for(enum custom_column column)
{
    return column == CUSTOM_LOCKED_AT ? "timestamptz" : "text";
}

static const char *sql_name(struct check *k, const char *column)
{
    const char *text;
    struct buf out;

    buf_init(&out, LIMIT_TABLE_NAME);
    query_sql_quote(&out, column);
    text = arena_strdup(k->arena, buf_str(&out));
    buf_clear(&out);
    return text;
}

/* Of an app's configuration, for databases whose tables are declared there. */
static const char *schema_text(struct check *k, const char *columns)
{
    struct buf quoted;
    const char *text;

    buf_init(&quoted, LIMIT_STRING_DEFAULT);
    json_quote(&quoted, slice_of(k->probe.shape.table));
    text = arena_printf(k->arena, "In the app's configuration: config.backend.schema = {%s: {\"columns\": {%s}}}",
                        buf_str(&quoted), columns);
    buf_clear(&quoted);
    return text;
}

#define ALL_COLUMNS                                                                                                    \
    "\"id\": {\"type\": \"uuid\", \"key\": true, \"default\": \"gen_random_uuid()\"}, \"status\": {\"type\": "         \
    "\"text\", \"nullable\": false, \"default\": \"pending\"}, \"locked_by\": {\"type\": \"text\"}, \"locked_at\": "   \
    "{\"type\": \"timestamptz\"}"

/* ---- what may be missing ---- */

static void check_table(struct check *k)
{
    const char *what = arena_printf(k->arena, "the table %s", k->probe.shape.table);

    if (k->probe.is_sql)
        add(k, what,
            arena_printf(k->arena,
                         "CREATE TABLE %s (\"id\" uuid PRIMARY KEY DEFAULT gen_random_uuid(), \"status\" text NOT NULL "
                         "DEFAULT 'pending', \"locked_by\" text, \"locked_at\" timestamptz, \"created_at\" timestamptz "
                         "NOT NULL DEFAULT now());\n",
                         buf_str(&k->name)));
    else
        add(k, what, schema_text(k, ALL_COLUMNS ", the app's own columns"));
}

static void check_key(struct check *k)
{
    size_t n = 0;
    const char *what;

    for (size_t i = 0; i < k->probe.shape.n_columns; i++)
        n += k->probe.shape.columns[i].is_key;
    if (n == 1)
        return;
    what = arena_printf(k->arena, n ? "a primary key of one column on %s: it has %zu" : "a primary key on %s",
                        k->probe.shape.table, n);
    if (!k->probe.is_sql)
        add(k, what, schema_text(k, "\"id\": {\"type\": \"uuid\", \"key\": true, \"default\": \"gen_random_uuid()\"}"));
    else if (n)
        add(k, what,
            arena_printf(k->arena,
                         "-- a key of several columns is no task_id: a new key, and the old one as a constraint\n"
                         "ALTER TABLE %s DROP CONSTRAINT the_old_key, ADD COLUMN \"task_id\" uuid PRIMARY KEY DEFAULT "
                         "gen_random_uuid();\n",
                         buf_str(&k->name)));
    else
        add(k, what,
            arena_printf(k->arena, "ALTER TABLE %s ADD COLUMN \"id\" uuid PRIMARY KEY DEFAULT gen_random_uuid();\n",
                         buf_str(&k->name)));
}

static void lack_column(struct check *k, enum custom_column i)
{
    const char *name = custom_column_names[i];
    const char *more = i == CUSTOM_STATUS ? " NOT NULL DEFAULT 'pending'" : "";

    add(k, arena_printf(k->arena, "the column %s of %s", name, k->probe.shape.table),
        k->probe.is_sql ? arena_printf(k->arena, "ALTER TABLE %s ADD COLUMN %s %s%s;\n", buf_str(&k->name),
                                       sql_name(k, name), type_for(i), more)
                        : schema_text(k, arena_printf(k->arena, "\"%s\": {\"type\": \"%s\"}", name, type_for(i))));
}

static void wrong_column(struct check *k, enum custom_column i, const char *type_name)
{
    const char *name = sql_name(k, custom_column_names[i]);

    add(k,
        arena_printf(k->arena, "the type %s of the column %s of %s: it is %s", type_for(i), custom_column_names[i],
                     k->probe.shape.table, type_name),
        k->probe.is_sql ? arena_printf(k->arena, "ALTER TABLE %s ALTER COLUMN %s TYPE %s USING %s::text::%s;\n",
                                       buf_str(&k->name), name, type_for(i), name, type_for(i))
                        : schema_text(k, arena_printf(k->arena, "\"%s\": {\"type\": \"%s\"}", custom_column_names[i],
                                                      type_for(i))));
}

static void check_columns(struct check *k)
{
    for (enum custom_column i = 0; i < CUSTOM_N_REQUIRED; i++) {
        const struct table_column *c = table_shape_column(&k->probe.shape, slice_of(custom_column_names[i]));

        if (!c)
            lack_column(k, i);
        else if (!custom_type_fits(i, c->type))
            wrong_column(k, i, c->type_name);
    }
}

static void check_reports(struct check *k)
{
    const char *table = k->probe.shape.table;

    if (!k->probe.shape.has_full_identity && k->probe.is_sql)
        add(k, arena_printf(k->arena, "the full replica identity of %s, for the old data of its changes", table),
            arena_printf(k->arena, "ALTER TABLE %s REPLICA IDENTITY FULL;\n", buf_str(&k->name)));
    if (!k->probe.shape.is_published)
        add(k, arena_printf(k->arena, "the place of %s among the tables whose changes are reported", table),
            k->probe.publish ? k->probe.publish : schema_text(k, ALL_COLUMNS));
}

/* ---- the check ---- */

static int probe(struct custom *c, const char *name, struct check *k, struct err *e)
{
    struct backend *inner = c->config.inner;
    struct err why = { 0 };
    int r;

    if (inner->ops->probe)
        return inner->ops->probe(inner, name, k->arena, &k->probe, e);
    r = backend_shape(inner, name, k->arena, &k->probe.shape, &why);
    if (r < 0 && strcmp(why.code, "UNKNOWN_TABLE") != 0)
        return err_set(e, r, why.code, "%s", why.text);
    return 0;
}

static void put_name(struct check *k)
{
    const struct table_parts parts = backend_table_parts(k->arena, k->probe.shape.table);

    query_sql_quote(&k->name, parts.schema);
    buf_add_char(&k->name, '.');
    query_sql_quote(&k->name, parts.table);
}

int custom_check(struct backend *b, const char *table, struct arena *a, struct backend_lacks *ret, struct err *e)
{
    struct check k = { .arena = a, .lacks = { arena_array(a, MAX_LACKS, sizeof(struct backend_lack)), 0 } };
    char *name = NULL;
    int r = backend_table_name(a, table, &name, e);

    if (r == 0)
        r = probe(custom_of(b), name, &k, e);
    if (r < 0)
        return r;
    k.probe.shape.table = name;
    buf_init(&k.name, 2 * LIMIT_TABLE_NAME);
    put_name(&k);
    if (k.probe.shape.n_columns == 0) {
        check_table(&k);
    } else {
        check_key(&k);
        check_columns(&k);
    }
    if (k.probe.shape.n_columns)
        check_reports(&k);
    buf_clear(&k.name);
    *ret = k.lacks;
    return 0;
}
