/* The tables of a PostgreSQL backend: quoted names and the SQL texts of each table, made from templates.
 *
 * A template is a literal in the file that uses it (its address is the key). In a template {table} is the quoted
 * schema and name, {name} the name as a literal, {index} the beginning of the names of its indexes, {activities},
 * {deletions}, {tables}, {presence} and {schema} the quoted tables of the backend, {outbox} and {outbox_triggers} the
 * SQL of postgres_outbox_schema.h, {fn} the beginning of the names of its functions, {role} the role that gets rights,
 * {now} the database's clock, {columns} the columns of struct backend_row as text, {bounded} the same, but of the rows
 * in $6 (an array of ids) without what may be too large to be read, {record} the columns of the row `o` as a JSON
 * object, {statuses}, {claimable} and {leased} the quoted words of status.h, {max_...} limits. Every identifier is
 * quoted: any name that PostgreSQL takes is one. Tables live until postgres_tables_free().
 *
 *     t = postgres_table_of(tables, "sales.orders");
 *     sql = postgres_sql(t, "SELECT {columns} FROM {table} WHERE id = $1::uuid");
 */
#pragma once

#include "backend/backend.h"

/* Shown as the error of a row that is too large to be read. */
#define POSTGRES_OVERSIZE_WHY "A column of the row is too large to be read; make it smaller and replay the row."

struct postgres_table;
struct postgres_tables;

/* Older than the milliseconds of `age`. A time is also old when it is missing, or more than `age` in the future. Only
 * the database's clock is used, and the clock of the moment: the transaction may have waited for a lock. */
#define POSTGRES_IS_OLD(at, age)                                                                                       \
    "(" at " IS NULL OR " at " NOT BETWEEN clock_timestamp() - " age " * interval '1 millisecond'"                     \
    " AND clock_timestamp() + " age " * interval '1 millisecond')"

/* role: of the services, for {role}; NULL: none. */
struct postgres_tables *postgres_tables_new(const char *abbr, const char *role) MUST_CHECK;
struct postgres_tables *postgres_tables_free(struct postgres_tables *ts);
/* The table of that name as backend_table_name() returns it; made known when it was not. */
struct postgres_table *postgres_table_of(struct postgres_tables *ts, const char *name);
struct postgres_table *postgres_table_deletions(struct postgres_tables *ts);
struct postgres_table *postgres_table_activities(struct postgres_tables *ts);
/* Whether the table is known to exist in the database. */
bool postgres_table_is_made(struct postgres_tables *ts, const char *name);
void postgres_table_set_made(struct postgres_tables *ts, struct postgres_table *t, bool is_made);

const char *postgres_table_name(const struct postgres_table *t);
const char *postgres_sql(struct postgres_table *t, const char *template);
/* The same, not kept. */
void postgres_sql_put(struct buf *out, const struct postgres_table *t, const char *template);
char *postgres_sql_once(struct arena *a, const struct postgres_table *t, const char *template);
