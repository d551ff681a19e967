/* Statements about the rows of any table, with the columns that the table has: the language between those who ask
 * (the face's /rest/v1, Custom Mode) and the backends (SQLite, PostgreSQL, the hosted service's REST interface).
 *
 * A query is data; nothing in it is SQL. Values are texts, which the backend reads as the column's type. One query is
 * one transaction. Texts and arrays are borrowed until the call returns; a reply is in the caller's arena.
 *
 *     const struct query q = { .kind = QUERY_SELECT, .table = "orders", .where = &cond, .limit = 10 };
 *     r = backend_query(b, &q, arena, &reply, e);
 */
#pragma once

#include "backend/backend.h"

/* ---- tables ---- */

enum table_type {
    TABLE_TEXT,
    TABLE_UUID,
    TABLE_INT2,
    TABLE_INT4,
    TABLE_INT8,
    TABLE_FLOAT4,
    TABLE_FLOAT8,
    TABLE_NUMERIC,
    TABLE_BOOL,
    TABLE_TIMESTAMP,
    TABLE_TIMESTAMPTZ,
    TABLE_DATE,
    TABLE_TIME,
    TABLE_JSON,
    TABLE_JSONB,
    TABLE_TEXT_ARRAY,
    TABLE_INT4_ARRAY,
    TABLE_OTHER /* of PostgreSQL only: shown and compared as text */
};

struct table_column {
    const char *name;
    enum table_type type;
    const char *type_name; /* of PostgreSQL's catalog: int4, timestamptz, _text */
    bool is_nullable, is_key, is_unique;
    /* Only in a declaration, NULL for none. The default is a literal, or one of the words gen_random_uuid(), now() and
     * auth.uid(). allowed: the values that a CHECK permits. */
    const char *default_text;
    const char *const *allowed;
    size_t n_allowed;
};

struct table_shape {
    const char *table; /* as backend_table_name() returns it */
    struct table_column *columns;
    size_t n_columns;
    bool has_own_columns; /* false: the columns of the Activities table */
    bool is_published;    /* its changes are reported as events */
    bool has_full_identity;
    bool is_internal; /* a table of the backend itself, for the service role alone */
};

/* A table as the database has it (struct backend_ops, probe). */
struct table_probe {
    struct table_shape shape; /* n_columns 0: there is no such table */
    bool is_sql;              /* SQL changes tables here; false: config.backend.schema of an app does */
    const char *publish;      /* SQL by which its changes are reported; NULL: none is known */
};

/* NULL: no such column. */
const struct table_column *table_shape_column(const struct table_shape *shape, struct slice name);

/* The type that this word of PostgreSQL names: "int4", "integer", "text[]", "_text", "timestamptz". */
bool table_type_of(struct slice word, enum table_type *ret);
const char *table_type_word(enum table_type type); /* as in PostgreSQL's catalog: "int4", "_text" */
const char *table_type_name(enum table_type type); /* as in PostgreSQL's messages: "integer", "text[]" */
bool table_type_is_json(enum table_type type);
bool table_type_is_array(enum table_type type);

/* Default texts that are no literals. */
#define TABLE_DEFAULT_UUID "gen_random_uuid()"
#define TABLE_DEFAULT_NOW "now()"
#define TABLE_DEFAULT_USER "auth.uid()" /* only_user of the query that inserts the row */

/* The columns of the Activities table that others see (specification, Activities table). Constant. */
enum { TABLE_N_ACTIVITY_COLUMNS = 14 };
extern const struct table_column table_activity_columns[TABLE_N_ACTIVITY_COLUMNS];

/* <abbr>_deletions, the work that deleted rows left: the columns of the Activities table, event_type and source_table.
 */
void table_deletions_shape(struct arena *a, const char *name, struct table_shape *ret);

/* ---- statements ---- */

enum query_kind { QUERY_SELECT, QUERY_INSERT, QUERY_UPDATE, QUERY_DELETE };

/* column, or column->step->>step: a member of a JSON column. */
struct query_path {
    const char *column;
    const char *const *steps; /* names or indices */
    size_t n_steps;
    bool is_text;                /* the last step is ->> */
    const enum table_type *cast; /* NULL: none */
};

enum query_op {
    QUERY_EQ,
    QUERY_NEQ,
    QUERY_GT,
    QUERY_GTE,
    QUERY_LT,
    QUERY_LTE,
    QUERY_IN,
    QUERY_IS, /* values[0]: null, not_null, true, false or unknown */
    QUERY_LIKE,
    QUERY_ILIKE,     /* % and _, as in SQL */
    QUERY_CONTAINS,  /* @> of an array or of jsonb; values[0] as PostgreSQL writes it */
    QUERY_CONTAINED, /* <@ */
    QUERY_OVERLAPS,  /* && of arrays */
    QUERY_IS_DISTINCT
};

enum query_junction { QUERY_TEST, QUERY_AND, QUERY_OR };

struct query_condition {
    enum query_junction junction;
    bool is_not;
    const struct query_condition *items; /* of AND and OR; none: true for AND, false for OR */
    size_t n_items;
    struct query_path path; /* of TEST */
    enum query_op op;
    const char *const *values; /* IN: any number, else one */
    size_t n_values;
};

struct query_item {
    struct query_path path;
    const char *alias; /* NULL: the column's name, or the last step's */
};

enum query_nulls { QUERY_NULLS_DEFAULT, QUERY_NULLS_FIRST, QUERY_NULLS_LAST }; /* default: last, DESC first */

struct query_order {
    struct query_path path;
    bool is_descending;
    enum query_nulls nulls;
};

enum query_conflict { QUERY_CONFLICT_REFUSED, QUERY_CONFLICT_MERGED, QUERY_CONFLICT_IGNORED };

struct query {
    enum query_kind kind;
    const char *table;
    const struct query_item *items; /* columns of the reply; none: all, in their order */
    size_t n_items;
    const struct query_condition *where; /* NULL: every row */
    const struct query_order *order;
    size_t n_order;
    int64_t limit; /* < 0: none asked for; at most LIMIT_QUERY_ROWS are given */
    int64_t offset;
    /* INSERT: an array of objects; UPDATE: one object. columns (optional): the only members to be written. */
    struct json_value rows;
    const char *const *columns;
    size_t n_columns;
    enum query_conflict conflict;
    const char *const *conflict_columns; /* none: the key */
    size_t n_conflict_columns;
    /* Members that a row of INSERT lacks become NULL when `columns` or another row names them; false: their default. */
    bool is_null_for_missing;
    bool is_rows_wanted;  /* of INSERT, UPDATE and DELETE; a SELECT always gives them */
    bool is_count_wanted; /* of SELECT: all rows that match, whatever the limit */
    int64_t max_affected; /* more rows undo the change, -E2BIG TOO_MANY_ROWS; < 0: LIMIT_QUERY_WRITE_ROWS */
    /* Row-level security. NULL: no rule (service_role, the service itself). Else only rows whose column user_id equals
     * it are seen, changed, or left behind; a table without that column has no rule. */
    const char *only_user;
};

struct query_reply {
    struct slice rows;  /* a JSON array of objects, values as PostgreSQL's to_jsonb gives them */
    int64_t n_rows;     /* seen or changed */
    int64_t n_inserted; /* of these: new rows */
    int64_t count;      /* -1: not asked for */
};

/* Errors of both, beside those of every backend call; extras "details" and "hint" hold what PostgreSQL would say:
 *   -ENOENT UNKNOWN_TABLE, -EINVAL UNKNOWN_COLUMN (42703), -EINVAL BAD_VALUE (22P02, or the extra "sqlstate": 22003,
 *   22007, 22008), -EINVAL BAD_OPERATOR (42883), -EINVAL BAD_CONFLICT (42P10), -ETIMEDOUT QUERY_TIMEOUT (57014),
 *   -EEXIST NOT_UNIQUE (23505), -EINVAL NOT_NULL (23502), -EINVAL CHECK_FAILED (23514), -EPERM ROW_REFUSED (42501, by
 *   only_user), -EACCES STORE_DENIED (42501, by the database), -E2BIG TOO_LARGE, -E2BIG TOO_MANY_ROWS (PGRST124).
 * backend_shape: knows the tables of ensure_table and declare, the Activities table, and of the backend's own only
 *   <abbr>_deletions, as is_internal.
 * backend_declare: makes the table with these columns, or adds the nullable ones it lacks; -EEXIST TABLE_DIFFERS names
 *   the first column of another type. Idempotent. Its changes are reported as events whose rows carry raw_data with the
 *   whole record as JSON. */
static inline int backend_query(struct backend *b, const struct query *q, struct arena *a, struct query_reply *ret,
                                struct err *e)
{
    return b->ops->query(b, q, a, ret, e);
}

static inline int backend_shape(struct backend *b, const char *table, struct arena *a, struct table_shape *ret,
                                struct err *e)
{
    return b->ops->shape(b, table, a, ret, e);
}

static inline int backend_declare(struct backend *b, const struct table_shape *declared, struct err *e)
{
    return b->ops->declare(b, declared, e);
}
