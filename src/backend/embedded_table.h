/* The tables of an embedded backend: their schema and triggers, and SQL text for each made from templates.
 *
 * A template stands beside the function that asks and is a literal (its address is the key). In it {table} is the quoted
 * name, {name} the bare one, {deletions} the quoted table of tombstones, {now} the database's clock as ISO text, {columns}
 * the columns of struct backend_row in order. Tables live until embedded_tables_free(), which comes after the last
 * connection is closed, so their texts may be cached. Any thread.
 *
 *     r = embedded_table_find(b->tables, b->readers, name, &t, e);
 *     r = sql_query(db, &rows, e, embedded_sql(t, "SELECT {columns} FROM {table} WHERE id = ?1"), "s", id);
 */
#pragma once

#include "backend/backend.h"
#include "store/readers.h"
#include "store/writer.h"

#define EMBEDDED_NOW "strftime('%Y-%m-%dT%H:%M:%fZ', 'now')"
/* A sign of life is a wall time for people and other hosts, and the same moment by the clock of this host's boot, bound to that wall time so
 * that a program which writes only the former is judged by it. No step of the wall clock makes it older or younger. */
#define EMBEDDED_SIGN(at, mark, ms)                                                                                    \
    at " = " EMBEDDED_NOW ", " mark " = boot_id() || ' ' || " EMBEDDED_NOW ", " ms " = boot_ms()"
#define EMBEDDED_LEASE EMBEDDED_SIGN("locked_at", "lease_mark", "lease_ms")
/* Older than `age` ms. One in the future (of another boot: by more than that), of no time at all or missing is old. */
#define EMBEDDED_IS_OLD(at, mark, ms, age)                                                                             \
    "(CASE WHEN " mark " = boot_id() || ' ' || " at " THEN " ms " NOT BETWEEN boot_ms() - " age " AND boot_ms()"       \
    " WHEN " at " GLOB '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]*' AND julianday(" at ") IS NOT NULL"                \
    " THEN (julianday('now') - julianday(" at ")) * 86400000.0 NOT BETWEEN -" age " AND " age " ELSE 1 END)"
#define EMBEDDED_IS_STALE(age) EMBEDDED_IS_OLD("locked_at", "lease_mark", "lease_ms", age)

/* Before the database's clock by as much as a modifier such as '-300.000 seconds' says. */
#define EMBEDDED_BEFORE(modifier) "strftime('%Y-%m-%dT%H:%M:%fZ', 'now', " modifier ")"

struct embedded_table;
struct embedded_tables;

struct embedded_tables *embedded_tables_new(const char *abbr) MUST_CHECK;
/* Makes the file's schema. A schema newer than this program: -EPROTO SCHEMA_TOO_NEW. */
int embedded_tables_make(struct embedded_tables *ts, struct writer *w, struct err *e) MUST_CHECK;
struct embedded_tables *embedded_tables_free(struct embedded_tables *ts);
int embedded_table_ensure(struct embedded_tables *ts, struct readers *readers, struct writer *w, const char *declared,
                          struct err *e) MUST_CHECK;
/* -ENOENT UNKNOWN_TABLE when nobody made it. */
int embedded_table_find(struct embedded_tables *ts, struct readers *readers, const char *name,
                        struct embedded_table **ret, struct err *e) MUST_CHECK;
struct embedded_table *embedded_table_deletions(struct embedded_tables *ts);
const char *embedded_table_activities(const struct embedded_tables *ts);

const char *embedded_table_name(const struct embedded_table *t);
const char *embedded_sql(struct embedded_table *t, const char *template);
