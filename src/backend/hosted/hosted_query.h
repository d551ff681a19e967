/* Queries over a project's tables (backend/query.h), for the hosted_*.c files only.
 *
 * A query is one request of the REST interface, whose grammar has no SQL: conditions become `and=(...)`, what is to be
 * given back `select=`, and the rows of a change its body. What that interface cannot say (a pattern with an asterisk,
 * a change with a limit, a merge that leaves the rows of other users) is refused in words. The columns of a table are
 * what the project's function <abbr>_fn_shape says; only tables that are listed in <abbr>_declared or have the columns
 * of the Activities table are served.
 */
#pragma once

#include "backend/hosted/hosted.h"
#include "backend/query_sql.h"

/* ---- hosted_shape.c ---- */

int hosted_shape(struct backend *b, const char *table, struct arena *a, struct table_shape *ret, struct err *e);
/* The shape of any table that the key may read, by its canonical name, not older than the call; n_columns 0: there is
 * none. *ret_is_listed: the project lists it as declared. -ENOSYS SCHEMA_MISSING: the project has no such function. */
int hosted_shape_any(struct hosted *h, const char *name, struct arena *a, struct table_shape *ret, bool *ret_is_listed,
                     struct err *e) MUST_CHECK;
int hosted_probe(struct backend *b, const char *table, struct arena *a, struct table_probe *ret, struct err *e);
/* Queries and events know the table from now on, whoever made it. */
int hosted_follow(struct backend *b, const char *table, struct err *e);
/* The table has changed: its columns are asked for again. */
void hosted_shape_forget(struct hosted *h, const char *name);
/* One record of a table with columns of its own, as the event of a backend has it. False: no table of its own. */
bool hosted_shape_read(struct hosted *h, const char *table, struct json_value record, struct arena *a,
                       struct backend_row *ret);
void hosted_shapes_free(struct hosted *h);

/* The answer of <abbr>_fn_shape, which is foreign: at most LIMIT_HOSTED_COLUMNS columns, each with a name and a type.
 */
int hosted_shape_parse(const char *name, const char *text, struct arena *a, struct table_shape *ret,
                       bool *ret_is_listed, struct err *e) MUST_CHECK;

/* ---- hosted_declare.c ---- */

int hosted_declare(struct backend *b, const struct table_shape *declared, struct err *e);

/* ---- hosted_query_path.c ---- */

struct hosted_query {
    const struct query *q;
    const struct table_shape *shape;
    struct arena *arena;
    struct hosted_path path;
};

/* `select=`, `order=`, `limit=` and `offset=`, `and=(...)` with the rule of only_user. */
int hosted_put_items(struct hosted_query *w, struct err *e) MUST_CHECK;
int hosted_put_where(struct hosted_query *w, struct err *e) MUST_CHECK;
int hosted_put_range(struct hosted_query *w, int64_t max_rows, struct err *e) MUST_CHECK;
/* name=column,column */
int hosted_put_columns(struct hosted_query *w, const char *name, const char *const *columns, size_t n,
                       struct err *e) MUST_CHECK;

/* ---- hosted_query_rows.c ---- */

/* The members that a change writes, as JSON. */
struct hosted_members {
    const char **names;
    size_t n;
    char *json;         /* NULL: nothing to write */
    bool has_all;       /* every row has every member */
    bool is_of_another; /* a row would belong to another user than only_user */
};
int hosted_read_members(const struct hosted_query *w, struct hosted_members *ret, struct err *e) MUST_CHECK;

/* ---- hosted_query.c ---- */

int hosted_query(struct backend *b, const struct query *q, struct arena *a, struct query_reply *ret, struct err *e);
