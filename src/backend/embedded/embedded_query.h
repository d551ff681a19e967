/* Queries over the tables of an embedded file (backend/query.h), for the embedded_*.c files only.
 *
 * A declared table is one of SQLite whose columns have the types of PostgreSQL's catalog as declared types; its values
 * are stored in the form of query_values.h, so other programs of the host can read the file. The times of the
 * Activities table are stored as embedded_table.h says and shown as PostgreSQL shows them. numeric keeps 15 digits;
 * texts are ordered by their bytes, ILIKE folds ASCII letters only.
 */
#pragma once

#include "backend/embedded/embedded.h"
#include "backend/query_sql.h"

/* embedded_shape.c */
int embedded_shape_read(struct sql_db *db, const char *table, struct arena *a, struct table_shape *ret,
                        struct err *e) MUST_CHECK;
/* The same, and <abbr>_deletions. */
int embedded_shape_of(struct embedded *em, struct sql_db *db, const char *table, struct arena *a,
                      struct table_shape *ret, struct err *e) MUST_CHECK;
int embedded_shape(struct backend *b, const char *table, struct arena *a, struct table_shape *ret, struct err *e);
/* The names of all tables whose changes are events, in order. */
int embedded_published_list(struct sql_db *db, struct arena *a, const char ***ret, size_t *ret_n,
                            struct err *e) MUST_CHECK;

/* embedded_declare.c */
#define EMBEDDED_DEFAULT_USER "nullif('auth.uid()', 'auth.uid()')"
int embedded_declare(struct backend *b, const struct table_shape *declared, struct err *e);
/* Makes or alters the table, its triggers included. */
int embedded_declare_on(struct sql_db *db, const struct table_shape *declared, struct err *e) MUST_CHECK;

/* embedded_query_sql.c */
extern const struct query_dialect embedded_dialect;
/* A value as a column of the table stores it. */
int embedded_stored_value(struct arena *a, const struct table_shape *shape, const struct table_column *c,
                          struct json_value v, struct query_value *ret, struct err *e) MUST_CHECK;
/* Runs the statement; rows NULL: to its end. */
int embedded_query_run(struct sql_db *db, struct query_sql *s, struct sql_rows **ret, struct err *e) MUST_CHECK;

/* embedded_query_print.c: the rows of a statement with the query's items as a JSON array. */
int embedded_query_print(struct sql_rows *rows, const struct query_sql *s, const struct query *q,
                         struct query_reply *ret, struct err *e) MUST_CHECK;

/* embedded_query_write.c: within the writer's savepoint. */
int embedded_query_write(struct sql_db *db, const struct query *q, const struct table_shape *shape, struct arena *a,
                         struct query_reply *ret, struct err *e) MUST_CHECK;

/* embedded_query.c */
int embedded_query(struct backend *b, const struct query *q, struct arena *a, struct query_reply *ret, struct err *e);
