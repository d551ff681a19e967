/* The tables of an embedded backend: their schema and triggers, and each table's SQL texts, made from templates.
 *
 * A template is a literal in the function that uses it (its address is the key). In a template {table} is the quoted
 * name, {name} the bare name, {deletions} the quoted table of tombstones, {now} the database's clock as ISO text,
 * {columns} the columns of struct backend_row in order, {statuses}, {claimable} and {leased} the quoted words of
 * status.h. Tables live until embedded_tables_free(), which is called after the last connection is closed, so their
 * texts may be cached. Any thread.
 *
 *     r = embedded_table_find(b->tables, b->readers, name, &t, e);
 *     r = sql_query(db, &rows, e, embedded_sql(t, "SELECT {columns} FROM {table} WHERE id = ?1"), "s", id);
 */
#pragma once

#include "backend/backend.h"
#include "store/readers.h"
#include "store/writer.h"

#define EMBEDDED_NOW "strftime('%Y-%m-%dT%H:%M:%fZ', 'now')"
/* A sign of life is a wall time, for people and other hosts, and the same moment by the clock of this host's boot. The
 * latter is bound to the wall time, so that a sign from a program which writes only the wall time is judged by the wall
 * time. No step of the wall clock makes a sign older or younger. */
#define EMBEDDED_SIGN(at, mark, ms)                                                                                    \
    at " = " EMBEDDED_NOW ", " mark " = boot_id() || ' ' || " EMBEDDED_NOW ", " ms " = boot_ms()"
#define EMBEDDED_LEASE EMBEDDED_SIGN("locked_at", "lease_mark", "lease_ms")
/* Older than `age` ms. A sign is also old when it is in the future (of another boot: by more than `age`), is no time at
 * all, or is missing. */
#define EMBEDDED_IS_OLD(at, mark, ms, age)                                                                             \
    "(CASE WHEN " mark " = boot_id() || ' ' || " at " THEN " ms " NOT BETWEEN boot_ms() - " age " AND boot_ms()"       \
    " WHEN " at " GLOB '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]*' AND julianday(" at ") IS NOT NULL"                \
    " THEN (julianday('now') - julianday(" at ")) * 86400000.0 NOT BETWEEN -" age " AND " age " ELSE 1 END)"
#define EMBEDDED_IS_STALE(age) EMBEDDED_IS_OLD("locked_at", "lease_mark", "lease_ms", age)

/* The database's time shifted by a modifier such as '-300.000 seconds'. */
#define EMBEDDED_BEFORE(modifier) "strftime('%Y-%m-%dT%H:%M:%fZ', 'now', " modifier ")"

struct embedded_table;
struct embedded_tables;

struct embedded_tables *embedded_tables_new(const char *abbr) MUST_CHECK;
/* Makes the file's schema. -EPROTONOSUPPORT SCHEMA_TOO_NEW when the schema is newer than this program. */
int embedded_tables_make(struct embedded_tables *ts, struct writer *w, struct err *e) MUST_CHECK;
/* Names of the tables that have rows of work, as the file spells them. */
int embedded_tables_list(struct sql_db *db, struct arena *a, const char ***ret, size_t *ret_n,
                         struct err *e) MUST_CHECK;
/* Makes in an empty database the schema that the file should have. */
int embedded_tables_expect(struct embedded_tables *ts, struct sql_db *found, struct sql_db *into,
                           struct err *e) MUST_CHECK;
struct embedded_tables *embedded_tables_free(struct embedded_tables *ts);
int embedded_table_ensure(struct embedded_tables *ts, struct readers *readers, struct writer *w, const char *declared,
                          struct err *e) MUST_CHECK;
/* -ENOENT UNKNOWN_TABLE when the table was never made. */
int embedded_table_find(struct embedded_tables *ts, struct readers *readers, const char *name,
                        struct embedded_table **ret, struct err *e) MUST_CHECK;
bool embedded_table_is_reserved(const struct embedded_tables *ts, const char *name);
struct embedded_table *embedded_table_deletions(struct embedded_tables *ts);

const char *embedded_table_name(const struct embedded_table *t);
const char *embedded_sql(struct embedded_table *t, const char *template);
