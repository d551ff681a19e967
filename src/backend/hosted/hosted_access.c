#include "backend/hosted/hosted_access.h"

#include <stddef.h>

#define OID "to_regclass(format('%I.%I', {schema_literal}, {bare_literal}))"
#define MAY(role, right) "has_table_privilege('" role "', " OID ", '" right "')"
#define POLICY(relation, name)                                                                                         \
    "EXISTS (SELECT 1 FROM pg_catalog.pg_policy WHERE polrelid = " relation " AND polname = '" name "')"

/* The subquery has the user's id looked up once a statement, not once a row. */
#define OWN "(user_id = (SELECT auth.uid()))"

const struct postgres_piece hosted_access_pieces[] = {
    { "row-level security of {table}",
      "SELECT coalesce((SELECT relrowsecurity FROM pg_catalog.pg_class WHERE oid = " OID
      "), false) AND " POLICY(OID, "hearth_own_rows"),
      "ALTER TABLE {table} ENABLE ROW LEVEL SECURITY;\n"
      "ALTER TABLE {table} ALTER COLUMN user_id SET DEFAULT auth.uid();\n"
      "DROP POLICY IF EXISTS hearth_own_rows ON {table};\n"
      "CREATE POLICY hearth_own_rows ON {table} FOR ALL TO authenticated USING " OWN " WITH CHECK " OWN ";\n" },
    { "rights of users and the service role on {table}",
      "SELECT " MAY("authenticated", "SELECT") " AND " MAY("authenticated", "INSERT") " AND " MAY("authenticated", "UPDATE") " AND " MAY(
          "authenticated",
          "DELETE") " AND " MAY("service_role",
                                "SELECT") " AND " MAY("service_role",
                                                      "INSERT") " AND " MAY("service_role",
                                                                            "UPDATE") " AND " MAY("service_role",
                                                                                                  "DELETE"),
      "GRANT USAGE ON SCHEMA {table_schema} TO authenticated, service_role;\n"
      "GRANT SELECT, INSERT, UPDATE, DELETE ON {table} TO authenticated, service_role;\n" },
    { NULL, NULL, NULL },
};

/* ---- tables with columns of their own ---- */

#define RULE(condition)                                                                                                \
    "ALTER TABLE {table} ENABLE ROW LEVEL SECURITY;\n"                                                                 \
    "CREATE POLICY hearth_own_rows ON {table} FOR ALL TO authenticated USING (" condition ") WITH CHECK (" condition   \
    ");\n"

/* The rule of the offline face: of a table without user_id every signed-in user sees the rows. */
const char *hosted_declared_rule(const struct table_shape *declared)
{
    const struct table_column *user = table_shape_column(declared, SLICE_LIT("user_id"));

    if (!user)
        return RULE("true");
    return user->type == TABLE_UUID ? RULE(OWN) : RULE("user_id::text = (SELECT auth.uid())::text");
}

/* ---- lists ---- */

/* A list that everybody with a token may read, and nobody write over the REST interface. */
#define LIST_PIECE(list)                                                                                               \
    {                                                                                                                  \
        "rights on " list,                                                                                             \
            "SELECT coalesce((SELECT relrowsecurity FROM pg_catalog.pg_class WHERE oid = to_regclass('" list           \
            "')), false) AND " POLICY("to_regclass('" list "')",                                                       \
                                      "hearth_read") " AND has_table_privilege('authenticated', to_regclass('" list    \
                                                     "'), 'SELECT') AND has_table_privilege('service_role', "          \
                                                     "to_regclass('" list "'), 'SELECT')",                             \
            "ALTER TABLE " list " ENABLE ROW LEVEL SECURITY;\n"                                                        \
            "DROP POLICY IF EXISTS hearth_read ON " list ";\n"                                                         \
            "CREATE POLICY hearth_read ON " list " FOR SELECT TO authenticated USING (true);\n"                        \
            "GRANT SELECT ON " list " TO authenticated, service_role;\n"                                               \
    }

const struct postgres_piece hosted_list_access_pieces[] = {
    LIST_PIECE("{tables}"),
    LIST_PIECE("\"public\".\"{abbr}_declared\""),
    { NULL, NULL, NULL },
};

#define IS_PUBLISHED                                                                                                   \
    "EXISTS (SELECT 1 FROM pg_catalog.pg_publication_tables WHERE pubname = 'supabase_realtime'"                       \
    " AND schemaname = {schema_literal} AND tablename = {bare_literal})"

const struct postgres_piece hosted_publication_pieces[] = {
    { "replica identity of {table}",
      "SELECT coalesce((SELECT relreplident = 'f' FROM pg_catalog.pg_class WHERE oid = " OID "), false)",
      "ALTER TABLE {table} REPLICA IDENTITY FULL;\n" },
    { "{table} in the publication supabase_realtime", "SELECT " IS_PUBLISHED,
      "DO $do$ BEGIN\n"
      "    IF NOT EXISTS (SELECT 1 FROM pg_catalog.pg_publication WHERE pubname = 'supabase_realtime') THEN\n"
      "        CREATE PUBLICATION supabase_realtime;\n"
      "    END IF;\n"
      "    IF NOT " IS_PUBLISHED " THEN\n"
      "        ALTER PUBLICATION supabase_realtime ADD TABLE {table};\n"
      "    END IF;\n"
      "EXCEPTION WHEN duplicate_object THEN NULL;\n"
      "END $do$;\n" },
    { NULL, NULL, NULL },
};

const struct postgres_piece hosted_reload_pieces[] = {
    { "the service's view of the schema", "SELECT true", "NOTIFY pgrst, 'reload schema';\n" },
    { NULL, NULL, NULL },
};
