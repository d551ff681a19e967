/* The SQL that makes a table with columns of its own in PostgreSQL, wherever that runs. Pure; any thread.
 *
 *     postgres_declare_put_table(&sql, &declared, &existing, "auth.uid()");
 */
#pragma once

#include "backend/query.h"
#include "base/buf.h"

/* CREATE TABLE with its schema, or the columns that the existing table lacks; existing without columns: there is none.
 * declared.table is a name as backend_table_name() returns it; user: the expression of TABLE_DEFAULT_USER. */
void postgres_declare_put_table(struct buf *out, const struct table_shape *declared, const struct table_shape *existing,
                                const char *user);
/* Lists the table in <abbr>_declared, which is made when it is missing. */
void postgres_declare_put_list(struct buf *out, const char *abbr, const char *name);
