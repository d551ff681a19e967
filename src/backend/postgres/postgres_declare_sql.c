#include "backend/postgres/postgres_declare_sql.h"

#include "backend/postgres/postgres_query.h"
#include "backend/query_declare.h"

#include <string.h>

struct writer {
    struct buf *out;
    const struct table_shape *declared;
    const char *user;
};

/* --- columns --- */

static void put_default(struct writer *w, const struct table_column *c)
{
    if (!c->default_text)
        return;
    buf_add_str(w->out, " DEFAULT ");
    if (strcmp(c->default_text, TABLE_DEFAULT_USER) == 0)
        buf_printf(w->out, "(%s)::%s", w->user, table_type_word(c->type));
    else if (query_default_is_word(c->default_text))
        buf_printf(w->out, "(%s)::%s", c->default_text, table_type_word(c->type));
    else
        query_sql_literal(w->out, c->default_text);
}

static void put_check(struct writer *w, const struct table_column *c)
{
    if (!c->n_allowed)
        return;
    buf_add_str(w->out, " CHECK (");
    query_sql_quote(w->out, c->name);
    buf_add_str(w->out, " IN (");
    for (size_t i = 0; i < c->n_allowed; i++) {
        buf_add_str(w->out, i ? ", " : "");
        query_sql_literal(w->out, c->allowed[i]);
    }
    buf_add_str(w->out, "))");
}

static void put_column(struct writer *w, const struct table_column *c)
{
    query_sql_quote(w->out, c->name);
    buf_printf(w->out, " pg_catalog.\"%s\"%s", table_type_word(c->type),
               c->is_nullable && !c->is_key ? "" : " NOT NULL");
    put_default(w, c);
    put_check(w, c);
    if (c->is_unique && !c->is_key)
        buf_add_str(w->out, " UNIQUE");
}

static void put_key(struct writer *w)
{
    const char *comma = ", PRIMARY KEY (", *end = "";

    for (size_t i = 0; i < w->declared->n_columns; i++) {
        if (!w->declared->columns[i].is_key)
            continue;
        buf_add_str(w->out, comma);
        query_sql_quote(w->out, w->declared->columns[i].name);
        comma = ", ";
        end = ")";
    }
    buf_add_str(w->out, end);
}

static void put_schema(struct writer *w)
{
    AUTO(arena_freep) struct arena *a = arena_new_sized(512);
    const char *schema = backend_table_parts(a, w->declared->table).schema;

    if (strcmp(schema, "public") == 0)
        return;
    buf_add_str(w->out, "CREATE SCHEMA IF NOT EXISTS ");
    query_sql_quote(w->out, schema);
    buf_add_str(w->out, ";\n");
}

static void put_create(struct writer *w)
{
    put_schema(w);
    buf_add_str(w->out, "CREATE TABLE ");
    postgres_put_name(w->out, w->declared->table);
    for (size_t i = 0; i < w->declared->n_columns; i++) {
        buf_add_str(w->out, i ? ", " : " (");
        put_column(w, &w->declared->columns[i]);
    }
    put_key(w);
    buf_add_str(w->out, ");\n");
}

static void put_additions(struct writer *w, const struct table_shape *existing)
{
    for (size_t i = 0; i < w->declared->n_columns; i++) {
        const struct table_column *c = &w->declared->columns[i];

        if (table_shape_column(existing, slice_of(c->name)))
            continue;
        buf_add_str(w->out, "ALTER TABLE ");
        postgres_put_name(w->out, existing->table);
        buf_add_str(w->out, " ADD COLUMN ");
        put_column(w, c);
        buf_add_str(w->out, ";\n");
    }
}

void postgres_declare_put_table(struct buf *out, const struct table_shape *declared, const struct table_shape *existing,
                                const char *user)
{
    struct writer w = { out, declared, user };

    if (existing->n_columns)
        put_additions(&w, existing);
    else
        put_create(&w);
}

/* --- the list --- */

void postgres_declare_put_list(struct buf *out, const char *abbr, const char *name)
{
    AUTO(arena_freep) struct arena *a = arena_new_sized(512);
    const struct table_parts parts = backend_table_parts(a, name);

    buf_printf(
        out,
        "CREATE TABLE IF NOT EXISTS \"public\".\"%s_declared\" (name text PRIMARY KEY, schema_name text NOT NULL,"
        " table_name text NOT NULL);\nINSERT INTO \"public\".\"%s_declared\" VALUES (",
        abbr, abbr);
    query_sql_literal(out, name);
    buf_add_str(out, ", ");
    query_sql_literal(out, parts.schema);
    buf_add_str(out, ", ");
    query_sql_literal(out, parts.table);
    buf_add_str(out, ") ON CONFLICT DO NOTHING;\n");
}
