#include "backend/hosted/hosted_pieces.h"
#include "backend/hosted/hosted_access.h"
#include "backend/postgres/postgres_table.h"

#include <stddef.h>

/* A condition of the REST interface compares a column with a value, not with another column. */
const struct postgres_piece hosted_table_pieces[] = {
    { "column is_dirty of {table}",
      "SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_attribute WHERE attrelid = to_regclass(format('%I.%I',"
      " {schema_literal}, {bare_literal})) AND attname = 'is_dirty' AND NOT attisdropped)",
      "ALTER TABLE {table} ADD COLUMN IF NOT EXISTS is_dirty boolean\n"
      "    GENERATED ALWAYS AS (handled_revision < revision AND status <> 'pending') STORED;\n" },
    { NULL, NULL, NULL },
};

/* Of tables that the caller may read. What is no table has no columns. */
#define COLUMNS                                                                                                        \
    "SELECT jsonb_agg(jsonb_build_object('name', a.attname, 'type', t.typname, 'nullable', NOT a.attnotnull,"          \
    " 'default', pg_get_expr(d.adbin, d.adrelid), 'key', EXISTS (SELECT 1 FROM pg_index i WHERE i.indrelid = c.oid"    \
    "   AND i.indisprimary AND a.attnum = ANY (i.indkey)), 'unique', EXISTS (SELECT 1 FROM pg_index i"                 \
    "   WHERE i.indrelid = c.oid AND i.indisunique AND NOT i.indisprimary AND i.indnatts = 1"                          \
    "   AND i.indkey[0] = a.attnum AND i.indpred IS NULL)) ORDER BY a.attnum)\n"                                       \
    "  FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid"                                                       \
    " LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum"                                              \
    " WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped"

#define LISTED(list) "EXISTS (SELECT 1 FROM " list " l WHERE l.schema_name = n.nspname AND l.table_name = c.relname)"

#define SHAPE                                                                                                                                          \
    "SELECT coalesce((SELECT jsonb_build_object('columns', (" COLUMNS "),\n"                                                                           \
    "  'is_work', " LISTED("{tables}") ", 'is_declared', " LISTED(                                                                                     \
        "\"public\".\"{abbr}_declared\"") ",\n"                                                                                                        \
                                          "  'has_full_identity', c.relreplident = 'f', 'is_published', EXISTS (SELECT 1 FROM pg_publication_tables p" \
                                          "   WHERE p.pubname = 'supabase_realtime' AND p.schemaname = n.nspname AND p.tablename = c.relname))\n"      \
                                          " FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace\n"                                           \
                                          " WHERE n.nspname = $1 AND c.relname = $2 AND c.relkind IN ('r', 'p')"                                       \
                                          " AND has_any_column_privilege(c.oid, 'SELECT')), '{}')\n"

const struct postgres_piece hosted_database_pieces[] = {
    { "function {abbr}_fn_now: the database's clock",
      "SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_proc WHERE pronamespace = 'public'::regnamespace"
      " AND proname = '{abbr}_fn_now')",
      "CREATE OR REPLACE FUNCTION {fn}now\"() RETURNS timestamptz LANGUAGE sql"
      " SET search_path = pg_catalog, pg_temp AS $fn$\n"
      "    SELECT clock_timestamp()\n"
      "$fn$;\n" },
    { "table {abbr}_declared: the tables with columns of their own",
      "SELECT to_regclass('\"public\".\"{abbr}_declared\"') IS NOT NULL",
      "CREATE TABLE IF NOT EXISTS \"public\".\"{abbr}_declared\" (name text PRIMARY KEY, schema_name text NOT NULL,"
      " table_name text NOT NULL);\n" },
    { "function {abbr}_fn_shape: the columns of a table",
      "SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_proc WHERE pronamespace = 'public'::regnamespace"
      " AND proname = '{abbr}_fn_shape')",
      "CREATE OR REPLACE FUNCTION {fn}shape\"(schema_name text, table_name text) RETURNS jsonb LANGUAGE sql STABLE"
      " SET search_path = pg_catalog, pg_temp AS $fn$\n" SHAPE "$fn$;\n" },
    { NULL, NULL, NULL },
};

const char *hosted_publish_sql(const char *abbr, const char *table, struct arena *a)
{
    struct postgres_tables *ts = postgres_tables_new(abbr, NULL);
    const struct postgres_table *t = postgres_table_of(ts, table);
    const char *sql = "";

    for (const struct postgres_piece *piece = hosted_publication_pieces; piece->what; piece++)
        sql = arena_printf(a, "%s%s", sql, postgres_sql_once(a, t, piece->make));
    postgres_tables_free(ts);
    return sql;
}
