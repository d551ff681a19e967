/* Queries over the tables of a PostgreSQL database (backend/query.h), for the postgres_*.c files only.
 *
 * A query is one statement, which commits by itself: what must not happen (too many rows, rows of another user) makes
 * it fail by a cast of a word that is no number, so nothing depends on a session. Declared tables are listed in
 * <abbr>_declared; their changes are recorded in the outbox by a trigger a row. A session has the time zone UTC, unless
 * a pooler refuses the option: then the database or role should have it.
 */
#pragma once

#include "backend/postgres/postgres.h"
#include "backend/query_sql.h"

/* postgres_shape.c */
int postgres_shape(struct backend *b, const char *table, struct arena *a, struct table_shape *ret, struct err *e);
/* The same as the database tells it now, not as it was a moment ago. */
int postgres_shape_now(struct postgres *pg, const char *table, struct arena *a, struct table_shape *ret,
                       struct err *e) MUST_CHECK;
/* The shape of any table of the database; n_columns 0: there is none. */
int postgres_shape_any(struct postgres *pg, const char *name, struct arena *a, struct table_shape *ret,
                       struct err *e) MUST_CHECK;
/* The names of all tables whose changes are events, in order. */
int postgres_published_names(struct postgres *pg, struct arena *a, const char ***ret, size_t *ret_n,
                             struct err *e) MUST_CHECK;
/* "schema"."table" */
void postgres_put_name(struct buf *out, const char *name);
/* The default of a column that is to hold the user of the query. */
#define POSTGRES_DEFAULT_USER "NULLIF(current_setting('hearth.user'::text, true), ''::text)"

/* postgres_declare.c */
int postgres_declare(struct backend *b, const struct table_shape *declared, struct err *e);
int postgres_probe(struct backend *b, const char *table, struct arena *a, struct table_probe *ret, struct err *e);

/* postgres_query_sql.c */
extern const struct query_dialect postgres_dialect;
/* Adds a text as a parameter and writes its placeholder. */
void postgres_put_param(struct query_sql *s, const char *text);
void postgres_put_param_as(struct query_sql *s, const char *text, const char *type_name);
int postgres_put_select(struct query_sql *s, const struct query *q, struct err *e) MUST_CHECK;

/* postgres_query_write.c: a statement whose columns are those of a SELECT. */
int postgres_put_change(struct query_sql *s, const struct query *q, struct err *e) MUST_CHECK;

/* postgres_query.c */
int postgres_query(struct backend *b, const struct query *q, struct arena *a, struct query_reply *ret, struct err *e);
