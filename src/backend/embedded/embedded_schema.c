#include "backend/embedded/embedded_schema.h"
#include "backend/embedded/embedded_table.h"

#define JSON_OBJECT_CHECK(column) "CASE WHEN json_valid(" column ") THEN json_type(" column ") = 'object' ELSE 0 END"
#define JSON_CHECK(column) column " IS NULL OR json_valid(" column ")"

/* AUTOINCREMENT: a number is never reused, even after the log was emptied, so a reader detects every gap. */
const char embedded_schema_common[] =
    "PRAGMA user_version = 2;" /* EMBEDDED_SCHEMA_VERSION */
    "CREATE TABLE IF NOT EXISTS _tables (name TEXT NOT NULL PRIMARY KEY COLLATE NOCASE) WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS _declared (name TEXT NOT NULL PRIMARY KEY COLLATE NOCASE) WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS _changes ("
    " seq INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER NOT NULL DEFAULT (unixepoch()), name TEXT NOT NULL,"
    " op INTEGER NOT NULL, is_lease_only INTEGER NOT NULL DEFAULT 0, old TEXT, new TEXT, work TEXT);"
    "CREATE TABLE IF NOT EXISTS _presence ("
    " machine_id TEXT NOT NULL PRIMARY KEY, user_email TEXT, hostname TEXT, app_name TEXT,"
    " online_at TEXT NOT NULL DEFAULT (" EMBEDDED_NOW "), seen_at TEXT NOT NULL DEFAULT (" EMBEDDED_NOW
    ")) WITHOUT ROWID;";

/* The service that wrote the record (a machine id may be copied), and the time by the clock of the host's boot. */
const char embedded_schema_presence_columns[] =
    "ALTER TABLE _presence ADD COLUMN instance TEXT; ALTER TABLE _presence ADD COLUMN seen_mark TEXT;"
    "ALTER TABLE _presence ADD COLUMN seen_ms INTEGER";

/* Every column but raw_data has a default, so that any program can insert work with one value. */
const char embedded_schema_table[] =
    "CREATE TABLE IF NOT EXISTS {table} ("
    " id TEXT NOT NULL PRIMARY KEY DEFAULT (" EMBEDDED_NEW_UUID "),"
    " app_id TEXT, user_id TEXT,"
    " raw_data TEXT NOT NULL CHECK (" JSON_OBJECT_CHECK(
        "raw_data") " AND length(raw_data) <= {max_raw_data}),"
                    " old_data TEXT CHECK (" JSON_CHECK(
                        "old_data") "),"
                                    " status TEXT NOT NULL DEFAULT 'pending',"
                                    " locked_by TEXT, locked_at TEXT, completed_at TEXT,"
                                    " lease_mark TEXT, lease_ms INTEGER," /* locked_at by the clock of the host's boot,
                                                                             see EMBEDDED_SIGN */
                                    " error_message TEXT CHECK (coalesce(length(error_message), 0) <= {max_error}),"
                                    " attempted_by TEXT NOT NULL DEFAULT '[]'"
                                    "  CHECK (CASE WHEN json_valid(attempted_by) THEN json_type(attempted_by) = 'array' ELSE 0 END),"
                                    " retry_count INTEGER NOT NULL DEFAULT 0,"
                                    " result TEXT CHECK ((" JSON_CHECK(
                                        "result") ") AND coalesce(length(result), 0) <= {max_result}),"
                                                  " created_at TEXT NOT NULL DEFAULT (" EMBEDDED_NOW "),"
                                                  " attempt INTEGER NOT NULL DEFAULT 0,"
                                                  " claimed_by TEXT," /* the attempt's machine; stays when locked_by is
                                                                         cleared */
                                                  " event_type TEXT NOT NULL DEFAULT 'INSERT',"
                                                  " source_table TEXT,"
                                                  " revision INTEGER NOT NULL DEFAULT 0," /* raised by every change of
                                                                                             raw_data */
                                                  " handled_revision INTEGER NOT NULL DEFAULT 0," /* the revision the
                                                                                                     last claim took up
                                                                                                   */
                                                  " is_dirty INTEGER GENERATED ALWAYS AS (handled_revision < revision AND status <> 'pending') VIRTUAL)";

const char embedded_schema_indexes[] =
    "CREATE INDEX IF NOT EXISTS {prefix}_by_status\" ON {table} (status, created_at);"
    "CREATE INDEX IF NOT EXISTS {prefix}_by_app\" ON {table} (app_id, created_at);"
    "CREATE INDEX IF NOT EXISTS {prefix}_by_time\" ON {table} (created_at);"
    "CREATE INDEX IF NOT EXISTS {prefix}_changed_again\" ON {table} (created_at) WHERE handled_revision < revision;";

/* The second UPDATE names columns that no trigger watches, so nothing recurses. The row of a deletion's work is logged
 * as a whole. */
const char embedded_schema_triggers[] =
    "CREATE TRIGGER IF NOT EXISTS {prefix}_inserted\" AFTER INSERT ON {table} BEGIN"
    "  INSERT INTO _changes (name, op, new) VALUES ({literal}, 1, {new_row});"
    " END;"
    "CREATE TRIGGER IF NOT EXISTS {prefix}_updated\" AFTER UPDATE OF raw_data, app_id, user_id ON {table}"
    " WHEN new.raw_data IS NOT old.raw_data OR new.app_id IS NOT old.app_id OR new.user_id IS NOT old.user_id BEGIN"
    "  UPDATE {table} SET old_data = old.raw_data, revision = old.revision + 1"
    "   WHERE rowid = new.rowid AND new.raw_data IS NOT old.raw_data;"
    "  INSERT INTO _changes (name, op, old, new)"
    "   SELECT {literal}, 2, {old_row}, {row} FROM {table} WHERE rowid = new.rowid;"
    " END;"
    "CREATE TRIGGER IF NOT EXISTS {prefix}_deleted\" AFTER DELETE ON {table} BEGIN"
    "  INSERT INTO {deletions} (app_id, user_id, raw_data, old_data, event_type, source_table)"
    "   VALUES (old.app_id, old.user_id, old.raw_data, {old_record}, 'DELETE', {literal});"
    "  INSERT INTO _changes (name, op, old, work)"
    "   SELECT {literal}, 4, {old_row}, {row} FROM {deletions} WHERE rowid = last_insert_rowid();"
    " END;";

/* A heartbeat sets only locked_at, so it is not logged. */
const char embedded_schema_lease_trigger[] =
    "CREATE TRIGGER IF NOT EXISTS {prefix}_leased\" AFTER UPDATE OF"
    " status, locked_by, completed_at, error_message, attempted_by, retry_count, result, attempt, event_type ON {table}"
    " WHEN new.raw_data IS old.raw_data AND new.app_id IS old.app_id AND new.user_id IS old.user_id BEGIN"
    "  INSERT INTO _changes (name, op, is_lease_only, old, new)"
    "   VALUES ({literal}, 2, 1, {old_slim}, {new_slim});"
    " END;";
