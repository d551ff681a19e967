#include "backend/postgres/postgres_outbox_schema.h"
#include "backend/postgres/postgres_outbox_image.h"
#include "backend/sql_template.h"
#include "base/hash.h"
#include "base/limits.h"

/* --- words --- */

static const struct postgres_outbox_table *table_of(const void *of)
{
    return of;
}

static void put_literal(struct buf *out, const char *text)
{
    buf_add_char(out, '\'');
    for (; *text; text++) {
        if (*text == '\'')
            buf_add_char(out, '\'');
        buf_add_char(out, *text);
    }
    buf_add_char(out, '\'');
}

static void put_abbr(struct buf *out, const void *of)
{
    buf_add_str(out, table_of(of)->abbr);
}

static void put_outbox(struct buf *out, const void *of)
{
    buf_printf(out, "\"public\".\"%s_outbox\"", table_of(of)->abbr);
}

static void put_fn(struct buf *out, const void *of)
{
    buf_printf(out, "\"public\".\"%s_outbox_", table_of(of)->abbr);
}

static void put_deletions(struct buf *out, const void *of)
{
    buf_printf(out, "\"public\".\"%s_deletions\"", table_of(of)->abbr);
}

static void put_lock(struct buf *out, const void *of)
{
    int32_t key[2];

    postgres_outbox_lock_key(table_of(of)->abbr, key);
    buf_printf(out, "%d, %d", key[0], key[1]);
}

/* Of another class: readers hold it as long as they are connected. */
static void put_attended(struct buf *out, const void *of)
{
    int32_t key[2];

    postgres_outbox_lock_key(table_of(of)->abbr, key);
    buf_printf(out, "%d, %d", key[0] + 1, key[1]);
}

static void put_table(struct buf *out, const void *of)
{
    buf_add_str(out, table_of(of)->quoted);
}

static void put_name(struct buf *out, const void *of)
{
    put_literal(out, table_of(of)->name);
}

static void put_max(struct buf *out, const void *of)
{
    buf_printf(out, "%d", LIMIT_EVENT_IMAGE);
}

/* {new}, {old_rest}, ...: the composite value of the row with that letter. */
#define IMAGE(word, part, put, row)                                                                                    \
    static void put_##word(struct buf *out, const void *of)                                                            \
    {                                                                                                                  \
        put(out, part, row);                                                                                           \
        buf_printf(out, "::\"public\".\"%s_outbox_%s\"", table_of(of)->abbr,                                           \
                   (part) == POSTGRES_IMAGE_LEASE ? "lease" : "rest");                                                 \
    }
#define IMAGES(word, put, row)                                                                                         \
    IMAGE(word, POSTGRES_IMAGE_LEASE, put, row)                                                                        \
    IMAGE(word##_rest, POSTGRES_IMAGE_REST, put, row)
IMAGES(new, postgres_image_put_row, 'n')
IMAGES(old, postgres_image_put_row, 'o')
IMAGES(work, postgres_image_put_row, 'w')
IMAGES(new_record, postgres_image_put_record, 'n')
IMAGES(old_record, postgres_image_put_record, 'o')

static void put_lease_fields(struct buf *out, const void *of)
{
    postgres_image_put_fields(out, POSTGRES_IMAGE_LEASE);
}

static void put_rest_fields(struct buf *out, const void *of)
{
    postgres_image_put_fields(out, POSTGRES_IMAGE_REST);
}

static const struct sql_word words[] = {
    { "{abbr}", put_abbr },
    { "{outbox}", put_outbox },
    { "{fn}", put_fn },
    { "{deletions}", put_deletions },
    { "{lock}", put_lock },
    { "{attended}", put_attended },
    { "{table}", put_table },
    { "{name}", put_name },
    { "{max}", put_max },
    { "{new}", put_new },
    { "{new_rest}", put_new_rest },
    { "{old}", put_old },
    { "{old_rest}", put_old_rest },
    { "{work}", put_work },
    { "{work_rest}", put_work_rest },
    { "{new_record}", put_new_record },
    { "{new_record_rest}", put_new_record_rest },
    { "{old_record}", put_old_record },
    { "{old_record_rest}", put_old_record_rest },
    { "{lease_fields}", put_lease_fields },
    { "{rest_fields}", put_rest_fields },
    { NULL, NULL },
};

void postgres_outbox_lock_key(const char *abbr, int32_t ret[2])
{
    uint64_t hash = hash_fast(slice_of(abbr));

    ret[0] = 0x68726f62; /* the class of this program's locks */
    ret[1] = (int32_t)(uint32_t)(hash ^ hash >> 32);
}

/* --- the outbox --- */

/* xid is that of the transaction, not of a subtransaction. Of a change, `rest` is NULL where only the lease changed or
 * a row is too large. The mark is the snapshot whose changes the next pruning removes, `pruned` the one whose changes
 * are gone. Until wanted_until a reader may come back, so changes are recorded; those of transactions before
 * recorded_from may lack some. Schema 2 held texts instead: its changes are removed, which readers are told. */
static const char tables[] =
    "CREATE UNLOGGED TABLE IF NOT EXISTS {outbox} ("
    " seq bigint GENERATED ALWAYS AS IDENTITY,"
    " xid xid8 NOT NULL DEFAULT pg_current_xact_id(),"
    " name text NOT NULL, op smallint NOT NULL, is_lease_only boolean NOT NULL DEFAULT false,"
    " is_cut boolean NOT NULL DEFAULT false,"
    " PRIMARY KEY (xid, seq));\n"
    "CREATE TABLE IF NOT EXISTS \"public\".\"{abbr}_outbox_mark\" ("
    " is_one boolean PRIMARY KEY DEFAULT true CHECK (is_one), mark pg_snapshot NOT NULL, pruned pg_snapshot,"
    " marked_at timestamptz NOT NULL DEFAULT clock_timestamp(), wanted_until timestamptz,"
    " recorded_from xid8);\n"
    "ALTER TABLE \"public\".\"{abbr}_outbox_mark\" ADD COLUMN IF NOT EXISTS wanted_until timestamptz,"
    " ADD COLUMN IF NOT EXISTS recorded_from xid8;\n"
    "INSERT INTO \"public\".\"{abbr}_outbox_mark\" (mark) VALUES (pg_current_snapshot()) ON CONFLICT DO NOTHING;\n"
    "DO $do$ BEGIN\n"
    "    IF to_regtype('\"public\".\"{abbr}_outbox_lease\"') IS NULL THEN\n"
    "        CREATE TYPE \"public\".\"{abbr}_outbox_lease\" AS ({lease_fields});\n"
    "    END IF;\n"
    "    IF to_regtype('\"public\".\"{abbr}_outbox_rest\"') IS NULL THEN\n"
    "        CREATE TYPE \"public\".\"{abbr}_outbox_rest\" AS ({rest_fields});\n"
    "    END IF;\n"
    "    IF EXISTS (SELECT 1 FROM pg_catalog.pg_attribute WHERE attrelid = '{outbox}'::regclass AND attname = 'old'\n"
    "               AND atttypid = 'text[]'::regtype) THEN\n"
    "        TRUNCATE {outbox};\n"
    "        ALTER TABLE {outbox} DROP COLUMN old, DROP COLUMN new, DROP COLUMN work;\n"
    "        UPDATE \"public\".\"{abbr}_outbox_mark\" SET pruned = pg_current_snapshot();\n"
    "    END IF;\n"
    "END $do$;\n"
    "ALTER TABLE {outbox} ADD COLUMN IF NOT EXISTS old \"public\".\"{abbr}_outbox_lease\","
    " ADD COLUMN IF NOT EXISTS new \"public\".\"{abbr}_outbox_lease\","
    " ADD COLUMN IF NOT EXISTS work \"public\".\"{abbr}_outbox_lease\","
    " ADD COLUMN IF NOT EXISTS old_rest \"public\".\"{abbr}_outbox_rest\","
    " ADD COLUMN IF NOT EXISTS new_rest \"public\".\"{abbr}_outbox_rest\","
    " ADD COLUMN IF NOT EXISTS work_rest \"public\".\"{abbr}_outbox_rest\";\n";

/* In the functions without a search_path of their own, every name is qualified, also those of operators and types: they
 * run with the rights of their owner and the search_path of any writer. IS DISTINCT FROM cannot be qualified. */
#define EQUAL " OPERATOR(pg_catalog.=) "
#define ABOVE " OPERATOR(pg_catalog.>) "
#define BELOW " OPERATOR(pg_catalog.<) "
#define IS_UNPREPARED "pg_catalog.current_setting('max_prepared_transactions')" EQUAL "'0'"

/* The record of a change whose rows could not be recorded. */
static const char lost[] =
    "CREATE OR REPLACE FUNCTION {fn}lost\"(table_name text) RETURNS void LANGUAGE plpgsql AS $hearth$\n"
    "BEGIN\n"
    "  BEGIN\n"
    "    INSERT INTO {outbox} (name, op, is_cut) VALUES (table_name, 0, true);\n"
    "  EXCEPTION WHEN OTHERS THEN NULL;\n"
    "  END;\n"
    "  IF " IS_UNPREPARED " AND pg_catalog.pg_notification_queue_usage()" BELOW "0.9 THEN\n"
    "    PERFORM pg_catalog.pg_notify('{abbr}_events', 'lost');\n"
    "  END IF;\n"
    "EXCEPTION WHEN OTHERS THEN NULL;\n"
    "END $hearth$;\n";

/* Nothing is recorded when no reader is connected, and none was a moment ago. Without a query in it, the first
 * condition costs a writer little. */
#define IS_UNATTENDED "(pg_catalog.pg_try_advisory_lock({attended}) AND pg_catalog.pg_advisory_unlock({attended}))"
#define UNLESS_WANTED                                                                                                  \
    "  IF " IS_UNATTENDED " THEN\n"                                                                                    \
    "    IF NOT EXISTS (SELECT 1 FROM \"public\".\"{abbr}_outbox_mark\""                                               \
    " WHERE wanted_until" ABOVE "pg_catalog.clock_timestamp()) THEN\n"                                                 \
    "      RETURN NULL;\n"                                                                                             \
    "    END IF;\n"                                                                                                    \
    "  END IF;\n"
/* A reader that waits for a notification holds the lock in shared mode: nobody else can take it then. Both calls are
 * in one expression, so that no cancellation comes between them. NOTIFY makes the commit fail when the queue of
 * notifications is full, and makes PREPARE TRANSACTION fail: readers find such changes without it, later. */
#define NOTIFY_WAITING                                                                                                 \
    "  IF FOUND AND NOT (pg_catalog.pg_try_advisory_lock({lock}) AND pg_catalog.pg_advisory_unlock({lock})) THEN\n"    \
    "    IF " IS_UNPREPARED " AND pg_catalog.pg_notification_queue_usage()" BELOW "0.5 THEN\n"                         \
    "      PERFORM pg_catalog.pg_notify('{abbr}_events', '');\n"                                                       \
    "    END IF;\n"                                                                                                    \
    "  END IF;\n"
#define CATCH_ALL                                                                                                      \
    "EXCEPTION WHEN OTHERS THEN\n"                                                                                     \
    "  PERFORM {fn}lost\"(TG_ARGV[0]);\n"
#define BEGIN_FUNCTION(name)                                                                                           \
    "CREATE OR REPLACE FUNCTION {fn}" name                                                                             \
    "\"() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $hearth$\n"       \
    "BEGIN\n" UNLESS_WANTED
#define END_FUNCTION NOTIFY_WAITING "  RETURN NULL;\n" CATCH_ALL "  RETURN NULL;\nEND $hearth$;\n"
/* Columns that may be large, as they are stored: what is far too large is not even stored a second time. */
#define IS_LARGE(row)                                                                                                  \
    "greatest(pg_catalog.pg_column_size(" row ".raw_data), pg_catalog.pg_column_size(" row                             \
    ".old_data), pg_catalog.pg_column_size(" row ".result))" ABOVE "{max}"
#define UNLESS_LARGE(row, value) "CASE WHEN NOT (" IS_LARGE(row) ") THEN " value " END"

static const char inserted[] =
    BEGIN_FUNCTION("inserted") "  INSERT INTO {outbox} (name, op, new, new_rest)\n"
                               "  SELECT TG_ARGV[0], 1, {new}, " UNLESS_LARGE(
                                   "n", "{new_rest}") "\n  FROM hearth_new n;\n" END_FUNCTION;

#define IS_SAME(column) "coalesce(n." column EQUAL "o." column ", n." column " IS NULL AND o." column " IS NULL)"
#define IS_SAME_DATA "n.revision" EQUAL "o.revision AND " IS_SAME("app_id") " AND " IS_SAME("user_id")
/* A sign of life sets only locked_at, so it is no event. */
#define AND_SAME(column) " AND " IS_SAME(column)
#define IS_SIGN_OF_LIFE                                                                                                \
    "NOT " IS_SAME("locked_at") AND_SAME("status") AND_SAME("locked_by") AND_SAME("attempt") AND_SAME("retry_count")   \
        AND_SAME("completed_at") AND_SAME("error_message") AND_SAME("attempted_by") AND_SAME("event_type")             \
            AND_SAME("result")
#define REST(row, value) "CASE WHEN NOT (" IS_SAME_DATA ") AND NOT (" IS_LARGE(row) ") THEN " value " END"

/* Of a statement that says that it changes leases only, as claims and completions of a service do: their columns, of
 * few rows. Where it is wrong about a row, the change is a gap. A failure is the statement's: the service then makes it
 * without saying so. */
#define RECORD_LEASES                                                                                                  \
    "    INSERT INTO {outbox} (name, op, is_lease_only, is_cut, old, new)\n"                                           \
    "    SELECT TG_ARGV[0], 2, true, o.id IS NULL OR NOT (" IS_SAME_DATA "), {old}, {new}\n"                           \
    "    FROM hearth_new n LEFT JOIN hearth_old o ON o.id" EQUAL "n.id;\n"

/* The plan that statements of few rows leave in the session serves one of many rows later, so it must not be a nested
 * loop: a full join never is, as long as no condition is false for lack of a side. A row whose id changed has no other
 * side, and is a gap. */
#define IS_PAIR "n.id IS NOT NULL AND o.id IS NOT NULL"
#define IS_EVENT "NOT (" IS_PAIR " AND " IS_SAME_DATA " AND " IS_SIGN_OF_LIFE ")"
#define RECORD_CHANGES                                                                                                 \
    "    INSERT INTO {outbox} (name, op, is_lease_only, is_cut, old, new, old_rest, new_rest)\n"                       \
    "    SELECT TG_ARGV[0], 2, " IS_PAIR " AND " IS_SAME_DATA ", NOT (" IS_PAIR "), {old}, {new},\n"                   \
    "    " REST("o", "{old_rest}") ",\n"                                                                               \
                                   "    " REST("n", "{new_rest}") "\n" POSTGRES_OUTBOX_PAIRS "    WHERE " IS_EVENT     \
                                                                  ";\n"

/* An option of the function, or a block that catches errors, would cost a statement that changes leases more than the
 * call itself. */
static const char updated[] =
    "CREATE OR REPLACE FUNCTION {fn}updated\"() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $hearth$\n"
    "BEGIN\n"
    "  IF pg_catalog.starts_with(pg_catalog.current_query(), '" POSTGRES_SAYS_LEASES "') AND NOT " IS_UNATTENDED
    " THEN\n" RECORD_LEASES NOTIFY_WAITING "    RETURN NEW;\n" /* none: without an expression to compute */
    "  END IF;\n"
    "  BEGIN\n" UNLESS_WANTED RECORD_CHANGES NOTIFY_WAITING CATCH_ALL "  END;\n"
    "  RETURN NULL;\n"
    "END $hearth$;\n";

/* The work of a deletion is the newest row of that deletion, which another trigger has made before. */
static const char deleted[] = BEGIN_FUNCTION(
    "deleted") "  INSERT INTO {outbox} (name, op, old, old_rest, work, work_rest)\n"
               "  SELECT TG_ARGV[0], 4, {old}, " UNLESS_LARGE("o", "{old_rest}") ", t.image, " UNLESS_LARGE(
                   "o", "t.rest") "\n"
                                  "  FROM hearth_old o\n"
                                  "  LEFT JOIN LATERAL (SELECT {work} AS image, {work_rest} AS rest FROM {deletions} w"
                                  " WHERE w.deleted_id = o.id\n"
                                  "                     AND w.source_table = TG_ARGV[0] ORDER BY w.seq DESC LIMIT 1) t"
                                  " ON true;\n" END_FUNCTION;

static const char truncated[] = BEGIN_FUNCTION(
    "truncated") "  INSERT INTO {outbox} (name, op, is_cut) VALUES (TG_ARGV[0], 0, true);\n" END_FUNCTION;

/* Of tables with columns of their own, row by row. */
static const char recorder[] =
    "CREATE OR REPLACE FUNCTION {fn}record\"() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER"
    " SET search_path = pg_catalog, pg_temp SET TimeZone = 'UTC' AS $hearth$\n"
    "DECLARE\n"
    "  o jsonb; n jsonb; is_large boolean;\n"
    "BEGIN\n" UNLESS_WANTED "  IF TG_OP <> 'INSERT' THEN o := to_jsonb(OLD); END IF;\n"
    "  IF TG_OP <> 'DELETE' THEN n := to_jsonb(NEW); END IF;\n"
    "  is_large := coalesce(pg_column_size(o), 0) + coalesce(pg_column_size(n), 0) > {max};\n"
    "  INSERT INTO {outbox} (name, op, is_cut, old, new, old_rest, new_rest) VALUES (TG_ARGV[0],\n"
    "    CASE TG_OP WHEN 'INSERT' THEN 1 WHEN 'UPDATE' THEN 2 ELSE 4 END, is_large,\n"
    "    CASE WHEN o IS NOT NULL THEN {old_record} END,\n    CASE WHEN n IS NOT NULL THEN {new_record} END,\n"
    "    CASE WHEN o IS NOT NULL AND NOT is_large THEN {old_record_rest} END,\n"
    "    CASE WHEN n IS NOT NULL AND NOT is_large THEN {new_record_rest} END);\n" END_FUNCTION;

/* Only triggers call the functions. */
static const char rights[] =
    "REVOKE ALL ON FUNCTION {fn}lost\"(text), {fn}inserted\"(), {fn}updated\"(), {fn}deleted\"(),"
    " {fn}truncated\"(), {fn}record\"() FROM PUBLIC;\n";

void postgres_outbox_put(struct buf *out, const char *abbr)
{
    const struct postgres_outbox_table none = { .abbr = abbr, .quoted = "", .name = "" };
    const char *const templates[] = { tables, lost, inserted, updated, deleted, truncated, recorder, rights };

    for (size_t i = 0; i < ARRAY_SIZE(templates); i++)
        sql_template_expand(out, templates[i], words, &none);
}

/* --- a table's triggers --- */

static const char update_trigger[] =
    "CREATE OR REPLACE TRIGGER hearth_2_updated AFTER UPDATE ON {table} REFERENCING OLD TABLE AS hearth_old"
    " NEW TABLE AS hearth_new FOR EACH STATEMENT EXECUTE FUNCTION {fn}updated\"({name});\n";

static const char other_triggers[] =
    "CREATE OR REPLACE TRIGGER hearth_2_inserted AFTER INSERT ON {table} REFERENCING NEW TABLE AS hearth_new"
    " FOR EACH STATEMENT EXECUTE FUNCTION {fn}inserted\"({name});\n"
    "CREATE OR REPLACE TRIGGER hearth_2_deleted AFTER DELETE ON {table} REFERENCING OLD TABLE AS hearth_old"
    " FOR EACH STATEMENT EXECUTE FUNCTION {fn}deleted\"({name});\n"
    "CREATE OR REPLACE TRIGGER hearth_2_truncated AFTER TRUNCATE ON {table}"
    " FOR EACH STATEMENT EXECUTE FUNCTION {fn}truncated\"({name});\n";

void postgres_outbox_put_table(struct buf *out, const struct postgres_outbox_table *t)
{
    sql_template_expand(out, update_trigger, words, t);
    if (!t->is_deletions)
        sql_template_expand(out, other_triggers, words, t);
}
