#include "backend/postgres/postgres_pieces.h"
#include "backend/postgres/postgres_outbox_schema.h"
#include "backend/postgres/postgres_statements.h"

#include <stddef.h>

#define DECLARED "\"public\".\"{abbr}_declared\""
#define IS_TABLE(literal) "SELECT to_regclass(" literal ") IS NOT NULL"
#define FUNCTION(suffix)                                                                                               \
    "SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_proc WHERE pronamespace = 'public'::regnamespace"                      \
    " AND proname = '{abbr}_fn_" suffix "')"
#define TRIGGER(name) "SELECT " TRIGGER_EXISTS(name)
#define TRIGGER_EXISTS(name)                                                                                           \
    "EXISTS (SELECT 1 FROM pg_catalog.pg_trigger WHERE tgrelid = to_regclass(format('%I.%I', {schema_literal},"        \
    " {bare_literal})) AND tgname = '" name "' AND tgenabled <> 'D')"
#define INDEX(suffix) "SELECT to_regclass(format('%I.%I', {schema_literal}, '{index}_" suffix "')) IS NOT NULL"
#define HAS_PUBLICATION "EXISTS (SELECT 1 FROM pg_catalog.pg_publication WHERE pubname = '{abbr}_events')"
#define IS_PUBLISHED(schema, name)                                                                                     \
    "EXISTS (SELECT 1 FROM pg_catalog.pg_publication_tables WHERE pubname = '{abbr}_events'"                           \
    " AND schemaname = " schema " AND tablename = " name ")"
#define IS_FULL(schema, name)                                                                                          \
    "(SELECT relreplident = 'f' FROM pg_catalog.pg_class WHERE oid = to_regclass(format('%I.%I', " schema ", " name    \
    ")))"
#define SET_SCHEMA "current_setting('hearth.schema')"
#define SET_TABLE "current_setting('hearth.bare_table')"
#define CREATE_PUBLICATION "CREATE PUBLICATION \"{abbr}_events\""
/* Where the setting leaves the choice, the publication is made only when it can serve. */
#define CAN_PUBLISH "current_setting('wal_level') = 'logical' AND has_database_privilege(current_database(), 'CREATE')"
/* Every function: no name in it depends on the caller's search_path. */
#define FUNCTION_OPTIONS " SET search_path = pg_catalog, pg_temp"
/* The limits of a row are those of triggers, which a claim does not fire: a server evaluates a check for every change
 * of a row, and reads its expression anew for each statement. Of a writer with any search_path, so operators and types
 * are named with their schema. The final row is looked at, whatever other triggers have made of it. */
#define EQUAL " OPERATOR(pg_catalog.=) "
#define AT_MOST " OPERATOR(pg_catalog.<=) "
#define FITS_DATA                                                                                                      \
    "pg_catalog.jsonb_typeof(NEW.raw_data)" EQUAL "'object'\n"                                                         \
    "        AND pg_catalog.octet_length(NEW.raw_data::pg_catalog.text)" AT_MOST "{max_json}"
#define FITS_END                                                                                                       \
    "coalesce(pg_catalog.octet_length(NEW.result::pg_catalog.text), 0)" AT_MOST "{max_json}\n"                         \
    "        AND coalesce(pg_catalog.length(NEW.error_message), 0)" AT_MOST "{max_error}"
#define FIT_FUNCTION(name, fits)                                                                                       \
    "CREATE OR REPLACE FUNCTION {fn}" name "\"() RETURNS trigger LANGUAGE plpgsql AS $fn$\n"                           \
    "BEGIN\n"                                                                                                          \
    "    IF NOT (" fits ") THEN\n"                                                                                     \
    "        RAISE EXCEPTION 'new row for relation \"%\" violates check constraint \"hearth_sizes\"', TG_TABLE_NAME\n" \
    "            USING ERRCODE = 'check_violation', CONSTRAINT = 'hearth_sizes', SCHEMA = TG_TABLE_SCHEMA,\n"          \
    "            TABLE = TG_TABLE_NAME;\n"                                                                             \
    "    END IF;\n"                                                                                                    \
    "    RETURN NEW;\n"                                                                                                \
    "END $fn$;\n"
#define HAS_CHECK                                                                                                      \
    "EXISTS (SELECT 1 FROM pg_catalog.pg_constraint WHERE conrelid = to_regclass(format('%I.%I',"                      \
    " {schema_literal}, {bare_literal})) AND conname = 'hearth_sizes')"

#define PUBLISHED_PIECE                                                                                                                 \
    {                                                                                                                                   \
        "publication of {table} and its whole old rows",                                                                                \
            "SELECT NOT " HAS_PUBLICATION                                                                                               \
            " OR (" IS_PUBLISHED("{schema_literal}", "{bare_literal}") " AND " IS_FULL("{schema_literal}",                              \
                                                                                       "{bare_literal}") ")",                           \
            "SET hearth.schema = {schema_literal};\n" /* a name may contain the end of a quoted block */                                \
            "SET hearth.bare_table = {bare_literal};\n"                                                                                 \
            "DO $do$ BEGIN\n"                                                                                                           \
            "    IF " HAS_PUBLICATION " AND NOT " IS_FULL(                                                                              \
                SET_SCHEMA,                                                                                                             \
                SET_TABLE) " THEN\n"                                                                                                    \
                           "        EXECUTE format('ALTER TABLE %I.%I REPLICA IDENTITY FULL', " SET_SCHEMA                              \
                           ", " SET_TABLE ");\n"                                                                                        \
                           "    END IF;\n"                                                                                              \
                           "    IF " HAS_PUBLICATION " AND NOT " IS_PUBLISHED(                                                          \
                               SET_SCHEMA,                                                                                              \
                               SET_TABLE) " THEN\n"                                                                                     \
                                          "        EXECUTE format('ALTER PUBLICATION %I ADD TABLE %I.%I', '{abbr}_events', " SET_SCHEMA \
                                          ", " SET_TABLE ");\n"                                                                         \
                                          "    END IF;\n"                                                                               \
                                          "EXCEPTION WHEN insufficient_privilege THEN\n"                                                \
                                          "    RAISE WARNING 'hearth: a table is not in the publication {abbr}_events: %', SQLERRM;\n"  \
                                          "END $do$;\n",                                                                                \
            .is_of_service = true                                                                                                       \
    }

/* Tables with columns of their own have the trigger of the outbox. */
#define UNPUBLISHED                                                                                                    \
    "SELECT n.nspname, c.relname FROM pg_catalog.pg_trigger g JOIN pg_catalog.pg_proc f ON f.oid = g.tgfoid"           \
    " JOIN pg_catalog.pg_class c ON c.oid = g.tgrelid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"        \
    " WHERE f.proname = '{abbr}_outbox_record' AND f.pronamespace = 'public'::regnamespace AND NOT (" IS_PUBLISHED(    \
        "n.nspname", "c.relname") " AND c.relreplident = 'f')"
#define DECLARED_PIECE                                                                                                                      \
    {                                                                                                                                       \
        "declared tables in the publication {abbr}_events",                                                                                 \
            "SELECT NOT " HAS_PUBLICATION " OR NOT EXISTS (" UNPUBLISHED ")",                                                               \
            "DO $do$ DECLARE\n"                                                                                                             \
            "    t record;\n"                                                                                                               \
            "BEGIN\n"                                                                                                                       \
            "    FOR t IN " UNPUBLISHED " AND " HAS_PUBLICATION " LOOP\n"                                                                   \
            "        EXECUTE format('ALTER TABLE %I.%I REPLICA IDENTITY FULL', t.nspname, t.relname);\n"                                    \
            "        IF NOT " IS_PUBLISHED(                                                                                                 \
                "t.nspname",                                                                                                                \
                "t.relname") " THEN\n"                                                                                                      \
                             "            EXECUTE format('ALTER PUBLICATION %I ADD TABLE %I.%I', '{abbr}_events', t.nspname, t.relname);\n" \
                             "        END IF;\n"                                                                                            \
                             "    END LOOP;\n"                                                                                              \
                             "END $do$;\n"                                                                                                  \
    }

const struct postgres_piece postgres_published_pieces[] = { PUBLISHED_PIECE, { NULL, NULL, NULL } };

const struct postgres_piece postgres_database_pieces[] = {
    { "table {schema}: the version of the schema", IS_TABLE("'{schema}'"),
      "CREATE TABLE IF NOT EXISTS {schema} (version integer NOT NULL);\n", .is_of_service = true },
    { "table {tables}: the tables with work", IS_TABLE("'{tables}'"),
      "CREATE TABLE IF NOT EXISTS {tables} (name text PRIMARY KEY, schema_name text NOT NULL,"
      " table_name text NOT NULL);\n" },
    { "table {abbr}_declared: the tables with columns of their own", IS_TABLE("'" DECLARED "'"),
      "CREATE TABLE IF NOT EXISTS " DECLARED " (name text PRIMARY KEY, schema_name text NOT NULL,"
      " table_name text NOT NULL);\n",
      .is_of_service = true },
    { "table {presence}: the machines", IS_TABLE("'{presence}'"),
      "CREATE TABLE IF NOT EXISTS {presence} (machine_id text PRIMARY KEY, user_email text, hostname text,"
      " app_name text, online_at timestamptz NOT NULL DEFAULT {now}, seen_at timestamptz NOT NULL DEFAULT {now},"
      " instance text);\n",
      .is_of_service = true },
    { "function {abbr}_fn_changed: keeps the old data and counts the revision of a row", FUNCTION("changed"),
      "CREATE OR REPLACE FUNCTION {fn}changed\"() RETURNS trigger LANGUAGE plpgsql" FUNCTION_OPTIONS " AS $fn$\n"
      "BEGIN\n"
      "    NEW.old_data := OLD.raw_data;\n"
      "    NEW.revision := OLD.revision + 1;\n"
      "    RETURN NEW;\n"
      "EXCEPTION WHEN OTHERS THEN\n"
      "    RAISE WARNING 'hearth: a change is not marked: %', SQLERRM;\n"
      "    RETURN NEW;\n"
      "END $fn$;\n" },
    { "function {abbr}_fn_fit: refuses a row beyond the limits", FUNCTION("fit"),
      FIT_FUNCTION("fit", FITS_DATA " AND " FITS_END) },
    { "function {abbr}_fn_fit_end: refuses an end of work beyond the limits", FUNCTION("fit_end"),
      FIT_FUNCTION("fit_end", FITS_END) },
    { "table {abbr}_outbox: the changes that services are sent, and its functions",
      "SELECT to_regclass('\"public\".\"{abbr}_outbox\"') IS NOT NULL"
      " AND to_regclass('\"public\".\"{abbr}_outbox_mark\"') IS NOT NULL"
      " AND (SELECT count(*) = 6 FROM pg_catalog.pg_proc WHERE pronamespace = 'public'::regnamespace AND proname IN"
      " ('{abbr}_outbox_lost', '{abbr}_outbox_inserted', '{abbr}_outbox_updated',"
      " '{abbr}_outbox_deleted', '{abbr}_outbox_truncated', '{abbr}_outbox_record'))"
      " AND EXISTS (SELECT 1 FROM pg_catalog.pg_proc WHERE pronamespace = 'public'::regnamespace"
      " AND proname = '{abbr}_outbox_updated' AND strpos(prosrc, '" POSTGRES_SAYS_LEASES "') > 0)"
      " AND EXISTS (SELECT 1 FROM pg_catalog.pg_attribute WHERE attrelid ="
      " to_regclass('\"public\".\"{abbr}_outbox\"') AND attname = 'new_rest' AND NOT attisdropped)",
      "{outbox}", .is_of_service = true },
    { NULL, NULL, NULL },
};

const struct postgres_piece postgres_publication_pieces[] = {
    { "publication {abbr}_events: the tables of the logical stream", "SELECT " HAS_PUBLICATION,
      "DO $do$ BEGIN\n"
      "    IF NOT " HAS_PUBLICATION " THEN\n"
      "        " CREATE_PUBLICATION ";\n"
      "    END IF;\n"
      "END $do$;\n" },
    DECLARED_PIECE,
    { NULL, NULL, NULL },
};

const struct postgres_piece postgres_auto_publication_pieces[] = {
    { "publication {abbr}_events: the tables of the logical stream", "SELECT NOT (" CAN_PUBLISH ") OR " HAS_PUBLICATION,
      "DO $do$ BEGIN\n"
      "    IF " CAN_PUBLISH " AND NOT " HAS_PUBLICATION " THEN\n"
      "        " CREATE_PUBLICATION ";\n"
      "    END IF;\n"
      "END $do$;\n" },
    DECLARED_PIECE,
    { NULL, NULL, NULL },
};

const struct postgres_piece postgres_logical_conditions[] = {
    { "wal_level = logical, which the server needs for the logical stream",
      "SELECT current_setting('wal_level') = 'logical'",
      "ALTER SYSTEM SET wal_level = 'logical'; -- and a restart of the server\n" },
    { "right of replication of the role of backend.url",
      "SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_roles WHERE rolname = {role_literal}"
      " AND (rolreplication OR rolsuper))",
      "ALTER ROLE {role} REPLICATION; -- as a superuser\n" },
    { NULL, NULL, NULL },
};

/* Columns that a table made by the hosted service's set-up lacks are added. jsonb may print a number with more digits
 * than it was given with, so the check is wider than what a service accepts. */
const struct postgres_piece postgres_table_pieces[] = {
    { "schema {table_schema}", "SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = {schema_literal})",
      "SET hearth.schema = {schema_literal};\n" /* a name may contain the end of a quoted block */
      "DO $do$ BEGIN\n"
      "    IF NOT EXISTS (SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = current_setting('hearth.schema')) THEN\n"
      "        EXECUTE format('CREATE SCHEMA %I', current_setting('hearth.schema'));\n"
      "    END IF;\n"
      "END $do$;\n" },
    { "table {table}", "SELECT to_regclass(format('%I.%I', {schema_literal}, {bare_literal})) IS NOT NULL",
      "CREATE TABLE IF NOT EXISTS {table} (\n"
      "    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),\n"
      "    user_id uuid,\n"
      "    raw_data jsonb NOT NULL,\n"
      "    old_data jsonb,\n"
      "    status text NOT NULL DEFAULT 'pending',\n"
      "    locked_by text,\n"
      "    locked_at timestamptz,\n"
      "    completed_at timestamptz,\n"
      "    error_message text,\n"
      "    attempted_by text[] NOT NULL DEFAULT '{}',\n"
      "    retry_count integer NOT NULL DEFAULT 0,\n"
      "    result jsonb,\n"
      "    created_at timestamptz NOT NULL DEFAULT {now}\n"
      ");\n" },
    { "columns of {table}",
      "SELECT count(*) = 22 FROM pg_catalog.pg_attribute WHERE attrelid = to_regclass(format('%I.%I', {schema_literal},"
      " {bare_literal})) AND NOT attisdropped AND attname IN ('id', 'user_id', 'raw_data', 'old_data', 'status',"
      " 'locked_by', 'locked_at', 'completed_at', 'error_message', 'attempted_by', 'retry_count', 'result',"
      " 'created_at', 'app_id', 'attempt', 'claimed_by', 'event_type', 'source_table', 'deleted_id', 'revision',"
      " 'handled_revision', 'seq')",
      "ALTER TABLE {table}\n"
      "    ADD COLUMN IF NOT EXISTS app_id text,\n"
      "    ADD COLUMN IF NOT EXISTS attempt bigint NOT NULL DEFAULT 0,\n"
      "    ADD COLUMN IF NOT EXISTS claimed_by text,\n"
      "    ADD COLUMN IF NOT EXISTS event_type text NOT NULL DEFAULT 'INSERT',\n"
      "    ADD COLUMN IF NOT EXISTS source_table text,\n"
      "    ADD COLUMN IF NOT EXISTS deleted_id uuid,\n"
      "    ADD COLUMN IF NOT EXISTS revision bigint NOT NULL DEFAULT 0,\n"
      "    ADD COLUMN IF NOT EXISTS handled_revision bigint NOT NULL DEFAULT 0,\n"
      "    ADD COLUMN IF NOT EXISTS seq bigint GENERATED ALWAYS AS IDENTITY,\n"
      "    ALTER COLUMN status SET DEFAULT 'pending', ALTER COLUMN attempted_by SET DEFAULT '{}',\n"
      "    ALTER COLUMN retry_count SET DEFAULT 0;\n"
      "UPDATE {table} SET status = coalesce(status, 'pending'), attempted_by = coalesce(attempted_by, '{}'),\n"
      "    retry_count = coalesce(retry_count, 0), created_at = coalesce(created_at, {now}),\n"
      "    raw_data = coalesce(raw_data, '{}')\n"
      "    WHERE status IS NULL OR attempted_by IS NULL OR retry_count IS NULL OR created_at IS NULL OR raw_data IS "
      "NULL;\n"
      "ALTER TABLE {table} ALTER COLUMN status SET NOT NULL, ALTER COLUMN attempted_by SET NOT NULL,\n"
      "    ALTER COLUMN retry_count SET NOT NULL, ALTER COLUMN created_at SET NOT NULL,\n"
      "    ALTER COLUMN raw_data SET NOT NULL;\n" },
    { "triggers hearth_0_sizes on {table}: the limits of its rows",
      TRIGGER("hearth_0_sizes") " AND " TRIGGER_EXISTS("hearth_0_sizes_end") " AND NOT " HAS_CHECK,
      "CREATE OR REPLACE TRIGGER hearth_0_sizes AFTER INSERT OR UPDATE OF raw_data ON {table} FOR EACH ROW\n"
      "    EXECUTE FUNCTION {fn}fit\"();\n"
      "CREATE OR REPLACE TRIGGER hearth_0_sizes_end AFTER UPDATE OF result, error_message ON {table} FOR EACH ROW\n"
      "    EXECUTE FUNCTION {fn}fit_end\"();\n"
      "ALTER TABLE {table} ENABLE ALWAYS TRIGGER hearth_0_sizes, ENABLE ALWAYS TRIGGER hearth_0_sizes_end,\n"
      "    DROP CONSTRAINT IF EXISTS hearth_sizes;\n" },
    { "index of {table} by status", INDEX("by_status"),
      "CREATE INDEX IF NOT EXISTS \"{index}_by_status\" ON {table} (status, created_at, seq);\n" },
    { "index of {table} by app", INDEX("of_app"),
      "CREATE INDEX IF NOT EXISTS \"{index}_of_app\" ON {table} (app_id, created_at, seq) WHERE app_id IS NOT NULL;\n"
      "DROP INDEX IF EXISTS {table_schema}.\"{index}_by_app\";\n" },
    { "index of {table} by time", INDEX("by_time"),
      "CREATE INDEX IF NOT EXISTS \"{index}_by_time\" ON {table} (created_at, seq);\n" },
    { "index of {table}'s changed rows", INDEX("changed_again"),
      "CREATE INDEX IF NOT EXISTS \"{index}_changed_again\" ON {table} (created_at, seq)"
      " WHERE handled_revision < revision;\n" },
    PUBLISHED_PIECE,
    { "triggers hearth_2_... on {table}", TRIGGER("hearth_2_updated"), "{outbox_triggers}", .is_of_service = true },
    { NULL, NULL, NULL },
};

const struct postgres_piece postgres_listed_pieces[] = {
    { "trigger hearth_0_changed on {table}", TRIGGER("hearth_0_changed"),
      "CREATE OR REPLACE TRIGGER hearth_0_changed BEFORE UPDATE OF raw_data ON {table} FOR EACH ROW\n"
      "    WHEN (NEW.raw_data IS DISTINCT FROM OLD.raw_data) EXECUTE FUNCTION {fn}changed\"();\n" },
    { "trigger hearth_1_deleted on {table}", TRIGGER("hearth_1_deleted"),
      "CREATE OR REPLACE TRIGGER hearth_1_deleted AFTER DELETE ON {table} REFERENCING OLD TABLE AS old_rows\n"
      "    FOR EACH STATEMENT EXECUTE FUNCTION {fn}deleted\"({name});\n" },
    { "entry of {table} in {tables}", "SELECT EXISTS (SELECT 1 FROM {tables} WHERE name = {name})",
      "INSERT INTO {tables} (name, schema_name, table_name) VALUES ({name}, {schema_literal}, {bare_literal})\n"
      "    ON CONFLICT DO NOTHING;\n" },
    { NULL, NULL, NULL },
};

/* No failure here may abort the program that deletes: when the rows cannot be kept together, each is tried alone. */
#define TOMBSTONES                                                                                                     \
    "INSERT INTO {deletions} (app_id, user_id, raw_data, old_data, event_type, source_table, deleted_id)\n"            \
    "        SELECT o.app_id, o.user_id, o.raw_data, {record}, 'DELETE', TG_ARGV[0], o.id"

#define ARGUMENTS_BEGIN "(task_id uuid DEFAULT NULL, machine_id text DEFAULT NULL"
#define BODY_BEGIN(declared)                                                                                           \
    " RETURNS jsonb LANGUAGE plpgsql" FUNCTION_OPTIONS " AS $fn$\n"                                                    \
    "DECLARE\n"                                                                                                        \
    "    t text := {fn}table\"(table_name);\n"                                                                         \
    "    task uuid := coalesce(task_id, target_task_id);\n" declared "BEGIN\n"                                         \
    "    IF task IS NULL OR machine_id IS NULL THEN\n"                                                                 \
    "        RAISE EXCEPTION 'task_id and machine_id are required' USING ERRCODE = 'invalid_parameter_value';\n"       \
    "    END IF;\n"                                                                                                    \
    "    IF t IS NULL THEN\n"                                                                                          \
    "        RETURN {fn}refused\"('unknown_table', format('There is no table %s', table_name));\n"                     \
    "    END IF;\n"
/* An attempt that has ended so already: a repeated call is a success. */
#define ENDED(word, value)                                                                                             \
    "    EXECUTE format($q$" value "$q$, t) USING task, machine_id, coalesce(attempt, -1), given;\n"                   \
    "    GET DIAGNOSTICS n = ROW_COUNT;\n"                                                                             \
    "    IF n = 0 THEN\n"                                                                                              \
    "        EXECUTE format($q$SELECT count(*) FROM %1$s WHERE id = $1 AND claimed_by = $2\n"                          \
    "            AND (attempt = $3 OR $3 = -1) AND status = '" word "'$q$, t)\n"                                       \
    "            INTO n USING task, machine_id, coalesce(attempt, -1);\n"                                              \
    "    END IF;\n"                                                                                                    \
    "    IF n = 0 THEN\n"                                                                                              \
    "        RETURN {fn}refused\"('lease_lost', format('Machine %s does not hold this row any more', machine_id));\n"  \
    "    END IF;\n"                                                                                                    \
    "    RETURN jsonb_build_object('success', true, 'task_id', task, 'status', '" word "');\n"                         \
    "END $fn$;\n"

const struct postgres_piece postgres_function_pieces[] = {
    { "function {abbr}_fn_deleted: keeps the work of deleted rows", FUNCTION("deleted"),
      "CREATE OR REPLACE FUNCTION {fn}deleted\"() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER" FUNCTION_OPTIONS
      " AS $fn$\n"
      "DECLARE\n"
      "    o record;\n"
      "BEGIN\n"
      "    " TOMBSTONES " FROM old_rows o ORDER BY o.seq;\n"
      "    RETURN NULL;\n"
      "EXCEPTION WHEN OTHERS THEN\n"
      "    FOR o IN SELECT * FROM old_rows LOOP\n"
      "        BEGIN\n"
      "            " TOMBSTONES ";\n"
      "        EXCEPTION WHEN OTHERS THEN\n"
      "            RAISE WARNING 'hearth: a deleted row of % leaves no work: %', TG_ARGV[0], SQLERRM;\n"
      "        END;\n"
      "    END LOOP;\n"
      "    RETURN NULL;\n"
      "END $fn$;\n"
      "REVOKE ALL ON FUNCTION {fn}deleted\"() FROM PUBLIC;\n" },
    { "function {abbr}_fn_table: the table of a name", FUNCTION("table"),
      "CREATE OR REPLACE FUNCTION {fn}table\"(named text) RETURNS text LANGUAGE sql STABLE" FUNCTION_OPTIONS
      " AS $fn$\n"
      "    SELECT format('%I.%I', schema_name, table_name) FROM {tables}\n"
      "        WHERE coalesce(named, '{abbr}_activities') IN (name,\n"
      "            CASE WHEN schema_name = 'public' THEN 'public.' || name END,\n"
      "            CASE WHEN schema_name = 'public' THEN format('\"%s\"', replace(table_name, '\"', '\"\"')) END,\n"
      "            format('\"%s\".\"%s\"', replace(schema_name, '\"', '\"\"'), replace(table_name, '\"', '\"\"')))\n"
      "$fn$;\n" },
    { "function {abbr}_fn_refused: the answer of a refused call", FUNCTION("refused"),
      "CREATE OR REPLACE FUNCTION {fn}refused\"(reason text, error text, locked_by text DEFAULT NULL) RETURNS jsonb"
      " LANGUAGE sql IMMUTABLE" FUNCTION_OPTIONS " AS $fn$\n"
      "    SELECT jsonb_build_object('success', false, 'reason', reason, 'error', error)\n"
      "        || CASE WHEN reason = 'already_locked' THEN jsonb_build_object('locked_by', locked_by)\n"
      "            ELSE '{}' END\n"
      "$fn$;\n" },
    { "function {abbr}_fn_claim_task", FUNCTION("claim_task"),
      "CREATE OR REPLACE FUNCTION {fn}claim_task\"" ARGUMENTS_BEGIN ",\n"
      "    table_name text DEFAULT NULL, target_task_id uuid DEFAULT NULL)" BODY_BEGIN("    r record;\n") //
      "    EXECUTE format($q$" POSTGRES_CLAIM(
          "%1$s") " RETURNING id, status, locked_by, locked_at, attempt,"
                  " raw_data$q$, t) INTO r USING task, machine_id, 300000::bigint, {max_machines}::bigint;\n"
                  "    IF r.id IS NOT NULL THEN\n"
                  "        RETURN jsonb_build_object('success', true, 'task_id', r.id, 'status', r.status,\n"
                  "            'locked_by', r.locked_by, 'locked_at', r.locked_at, 'attempt', r.attempt,\n"
                  "            'raw_data', r.raw_data);\n"
                  "    END IF;\n"
                  "    EXECUTE format('SELECT id, status, locked_by, attempted_by FROM %s WHERE id = $1', t) INTO r USING task;\n"
                  "    RETURN CASE\n"
                  "        WHEN r.id IS NULL THEN {fn}refused\"('not_found', 'Activity not found')\n"
                  "        WHEN r.status IN ({leased})\n"
                  "            THEN {fn}refused\"('already_locked', format('The row is held by %s', r.locked_by), r.locked_by)\n"
                  "        WHEN r.status NOT IN ({claimable})\n"
                  "            THEN {fn}refused\"('not_claimable', format('The row is %s', r.status))\n"
                  "        WHEN cardinality(r.attempted_by) >= {max_machines} THEN {fn}refused\"('quarantined',\n"
                  "            format('%s machines failed this row: it waits for a person', cardinality(r.attempted_by)))\n"
                  "        WHEN machine_id = ANY (r.attempted_by) THEN {fn}refused\"('already_attempted',\n"
                  "            format('Machine %s has failed this row before', machine_id))\n"
                  "        ELSE {fn}refused\"('not_claimable', 'The row cannot be claimed now') END;\n"
                  "END $fn$;\n" },
    { "function {abbr}_fn_complete_task", FUNCTION("complete_task"),
      "CREATE OR REPLACE FUNCTION {fn}complete_task\"" ARGUMENTS_BEGIN ",\n"
      "    result jsonb DEFAULT NULL, table_name text DEFAULT NULL, attempt bigint DEFAULT NULL,\n"
      "    target_task_id uuid DEFAULT NULL, result_data jsonb DEFAULT NULL)" BODY_BEGIN(
          "    n bigint;\n    given jsonb := coalesce(result, result_data);\n")
          ENDED("completed", POSTGRES_COMPLETE("%1$s")) },
    { "function {abbr}_fn_fail_task", FUNCTION("fail_task"),
      "CREATE OR REPLACE FUNCTION {fn}fail_task\"" ARGUMENTS_BEGIN ",\n"
      "    error text DEFAULT NULL, table_name text DEFAULT NULL, attempt bigint DEFAULT NULL,\n"
      "    target_task_id uuid DEFAULT NULL, error_msg text DEFAULT NULL)" BODY_BEGIN(
          "    n bigint;\n    given text := coalesce(error, error_msg, '');\n")
          ENDED("failed", POSTGRES_FAIL("%1$s")) },
    { "function get_publications_full",
      "SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_proc WHERE pronamespace = 'public'::regnamespace"
      " AND proname = 'get_publications_full')",
      "CREATE OR REPLACE FUNCTION \"public\".get_publications_full() RETURNS jsonb LANGUAGE sql STABLE" FUNCTION_OPTIONS
      " AS $fn$\n"
      "    SELECT coalesce(jsonb_agg(jsonb_build_object('pubname', p.pubname, 'system_id', p.oid::bigint,\n"
      "        'pubinsert', p.pubinsert, 'pubupdate', p.pubupdate, 'pubdelete', p.pubdelete,\n"
      "        'pubtruncate', p.pubtruncate, 'tables', (\n"
      "            SELECT coalesce(jsonb_agg(jsonb_build_object('schema', s.nspname, 'table', s.relname)\n"
      "                ORDER BY s.nspname, s.relname), '[]') FROM (\n"
      "                SELECT DISTINCT n.nspname, c.relname FROM pg_publication_tables pt\n"
      "                JOIN pg_class c ON c.oid = coalesce(pg_partition_root(to_regclass(format('%I.%I',\n"
      "                    pt.schemaname, pt.tablename))), to_regclass(format('%I.%I', pt.schemaname,\n"
      "                    pt.tablename)))\n"
      "                JOIN pg_namespace n ON n.oid = c.relnamespace WHERE pt.pubname = p.pubname) s))\n"
      "        ORDER BY p.pubname), '[]') FROM pg_publication p\n"
      "$fn$;\n" },
    { NULL, NULL, NULL },
};

#define MAY(right)                                                                                                     \
    "has_table_privilege({role_literal}, to_regclass(format('%I.%I', {schema_literal}, {bare_literal})), '" right "')"

const struct postgres_piece postgres_right_pieces[] = {
    { "rights of {role} on {table}",
      "SELECT has_schema_privilege({role_literal}, {schema_literal}, 'USAGE') AND " MAY("SELECT") " AND " MAY(
          "INSERT") " AND " MAY("UPDATE") " AND " MAY("DELETE"),
      "GRANT USAGE ON SCHEMA {table_schema} TO {role};\n"
      "GRANT SELECT, INSERT, UPDATE, DELETE ON {table} TO {role};\n" },
    { NULL, NULL, NULL },
};

/* Declared tables that the role may not use; a table that was dropped stays listed. */
#define CLOSED_TABLES(role)                                                                                            \
    "SELECT n.nspname, c.relname FROM " DECLARED " d"                                                                  \
    " JOIN pg_catalog.pg_namespace n ON n.nspname = d.schema_name"                                                     \
    " JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relname = d.table_name AND c.relkind IN ('r', 'p')"   \
    " WHERE NOT (has_schema_privilege(" role ", n.oid, 'USAGE') AND has_table_privilege(" role ", c.oid, 'SELECT')"    \
    " AND has_table_privilege(" role ", c.oid, 'INSERT') AND has_table_privilege(" role ", c.oid, 'UPDATE')"           \
    " AND has_table_privilege(" role ", c.oid, 'DELETE'))"
#define SET_ROLE "current_setting('hearth.role')"

const struct postgres_piece postgres_role_pieces[] = {
    { "rights of {role} on the service's own tables",
      "SELECT has_table_privilege({role_literal}, '{schema}', 'SELECT')"
      " AND has_table_privilege({role_literal}, '{tables}', 'SELECT')"
      " AND has_table_privilege({role_literal}, '{presence}', 'INSERT')"
      " AND has_table_privilege({role_literal}, '{presence}', 'UPDATE')"
      " AND has_table_privilege({role_literal}, '\"public\".\"{abbr}_outbox\"', 'SELECT')"
      " AND has_table_privilege({role_literal}, '\"public\".\"{abbr}_outbox\"', 'DELETE')"
      " AND has_table_privilege({role_literal}, '\"public\".\"{abbr}_outbox_mark\"', 'SELECT')"
      " AND has_table_privilege({role_literal}, '\"public\".\"{abbr}_outbox_mark\"', 'UPDATE')",
      "GRANT SELECT ON {schema}, {tables} TO {role};\n"
      "GRANT SELECT, INSERT, UPDATE, DELETE ON {presence} TO {role};\n"
      "GRANT SELECT, DELETE ON \"public\".\"{abbr}_outbox\" TO {role};\n"
      "GRANT SELECT, UPDATE ON \"public\".\"{abbr}_outbox_mark\" TO {role};\n" },
    { "rights of {role} on the declared tables",
      "SELECT has_table_privilege({role_literal}, '" DECLARED "', 'SELECT')"
      " AND NOT EXISTS (" CLOSED_TABLES("{role_literal}") ")",
      "GRANT SELECT ON " DECLARED " TO {role};\n"
      "SET hearth.role = {role_literal};\n" /* a name may contain the end of a quoted block */
      "DO $do$ DECLARE\n"
      "    t record;\n"
      "BEGIN\n"
      "    FOR t IN " CLOSED_TABLES(
          SET_ROLE) " LOOP\n"
                    "        EXECUTE format('GRANT USAGE ON SCHEMA %I TO %I', t.nspname, " SET_ROLE ");\n"
                    "        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I.%I TO %I', t.nspname, t.relname, " SET_ROLE
                    ");\n"
                    "    END LOOP;\n"
                    "EXCEPTION WHEN insufficient_privilege THEN\n"
                    "    RAISE WARNING 'hearth: the owner of a table of an app gives its rights: %', SQLERRM;\n"
                    "END $do$;\n" },
    { NULL, NULL, NULL },
};

const struct postgres_piece postgres_version_pieces[] = {
    { "version of the schema", "SELECT EXISTS (SELECT 1 FROM {schema} WHERE version >= {version})",
      "INSERT INTO {schema} (version) SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM {schema});\n"
      "UPDATE {schema} SET version = {version} WHERE version < {version};\n"
      "DO $do$ BEGIN\n" /* of schema 4; a table that this set-up does not name may still need it */
      "    DROP FUNCTION IF EXISTS {fn}fits\"(jsonb, jsonb, text);\n"
      "EXCEPTION WHEN dependent_objects_still_exist THEN NULL;\n"
      "END $do$;\n" },
    { NULL, NULL, NULL },
};
