/* A struct query as the parts of an SQL statement: paths, conditions, order and lists of columns, for any dialect.
 *
 * The statement's table has the alias _t. Names are quoted and values become parameters, so nothing of a query is read
 * as SQL. The writer lives on the stack; query_sql_clear() frees its text. One thread at a time.
 *
 *     query_sql_init(&s, &dialect, &shape, arena);
 *     buf_add_str(&s.text, "SELECT ");
 *     r = query_sql_items(&s, q, e);
 *     ...
 *     r = query_sql_where(&s, q, e);
 */
#pragma once

#include "backend/query_values.h"
#include "base/buf.h"

struct query_sql;

/* What a path or a column yields. */
struct query_operand {
    const struct query_path *path;
    const struct table_column *column;
    enum table_type type;  /* of the value */
    const char *type_name; /* for messages */
};

struct query_dialect {
    /* Writes the operand's expression. */
    int (*put_operand)(struct query_sql *s, const struct query_operand *of, struct err *e);
    /* The same where it is compared with a value, and where it orders rows. */
    int (*put_compared)(struct query_sql *s, const struct query_operand *of, struct err *e);
    int (*put_ordered)(struct query_sql *s, const struct query_operand *of, struct err *e);
    /* Writes the placeholder of a value that is compared with the operand. */
    int (*put_value)(struct query_sql *s, const struct query_operand *of, const char *text, struct err *e);
    /* Writes a test with LIKE, ILIKE, CONTAINS, CONTAINED, OVERLAPS or IS_DISTINCT. */
    int (*put_special)(struct query_sql *s, const struct query_operand *of, const struct query_condition *c,
                       struct err *e);
};

struct query_sql {
    const struct query_dialect *dialect;
    const struct table_shape *shape;
    struct arena *arena;
    struct buf text;
    struct query_value *params; /* in the arena */
    size_t n_params, capacity;
};

/* Checks what needs no database: the limits on numbers, depths and names. -E2BIG TOO_LARGE, -EINVAL. */
int query_check(const struct query *q, struct err *e) MUST_CHECK;

void query_sql_init(struct query_sql *s, const struct query_dialect *dialect, const struct table_shape *shape,
                    struct arena *a);
void query_sql_clear(struct query_sql *s);
/* Adds a parameter; the caller writes the placeholder. */
void query_sql_add_param(struct query_sql *s, const struct query_value *v);
/* In double quotes. */
void query_sql_quote(struct buf *out, const char *name);
/* In single quotes; for texts of declarations, which are part of the schema. */
void query_sql_literal(struct buf *out, const char *text);

/* The operand of a path; -EINVAL UNKNOWN_COLUMN, BAD_OPERATOR when a path goes into a column that is no JSON. */
int query_sql_operand(const struct query_sql *s, const struct query_path *path, struct query_operand *ret,
                      struct err *e) MUST_CHECK;
/* The name of an item in the reply. */
const char *query_item_name(const struct query_item *item);
/* expression AS "name", ... ; without items every column of the shape. */
int query_sql_items(struct query_sql *s, const struct query *q, struct err *e) MUST_CHECK;
/* " WHERE ..." with the rule of only_user, or nothing. */
int query_sql_where(struct query_sql *s, const struct query *q, struct err *e) MUST_CHECK;
/* " ORDER BY ...", or nothing. */
int query_sql_order(struct query_sql *s, const struct query *q, struct err *e) MUST_CHECK;

/* Whether the rule of only_user concerns this table. */
bool query_has_rule(const struct query *q, const struct table_shape *shape);

/* Refusals in PostgreSQL's words. */
int query_refuse_column(const struct table_shape *shape, const char *column, struct err *e);
int query_refuse_operator(const char *type_name, const char *op, struct err *e);
int query_refuse_row(const struct table_shape *shape, struct err *e);
int query_refuse_affected(int64_t max, struct err *e);
int query_refuse_conflict(struct err *e);
/* The refusal that a SQLSTATE of PostgreSQL means for a query; 0: none of its own. */
int query_refuse_sqlstate(const char *sqlstate, const char *words, struct err *e) MUST_CHECK;
