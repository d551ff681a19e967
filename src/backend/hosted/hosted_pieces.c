#include "backend/hosted/hosted_pieces.h"

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

const struct postgres_piece hosted_database_pieces[] = {
    { "function {abbr}_fn_now: the database's clock",
      "SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_proc WHERE pronamespace = 'public'::regnamespace"
      " AND proname = '{abbr}_fn_now')",
      "CREATE OR REPLACE FUNCTION {fn}now\"() RETURNS timestamptz LANGUAGE sql"
      " SET search_path = pg_catalog, pg_temp AS $fn$\n"
      "    SELECT clock_timestamp()\n"
      "$fn$;\n" },
    { NULL, NULL, NULL },
};
