/* A SQLite connection with its prepared statements, and the two calls that nearly every query needs.
 *
 * One thread at a time. Statements are prepared once for each connection (keyed by the address of the SQL literal:
 * always pass a literal or a string that lives as long as the connection). Each bind is a letter, in order:
 *   s const char * (NULL = NULL)   S struct slice   i int64_t (pass as int64_t)   d double
 *   b struct slice as BLOB         n NULL
 *
 *     r = sql_exec(db, e, "UPDATE api_keys SET revoked_at = ? WHERE id = ?", "ss", now, id);
 *     n = sql_changes(db);
 *
 *     AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
 *     r = sql_query(db, &rows, e, "SELECT id, name FROM apps WHERE enabled = ?", "i", (int64_t)1);
 *     while (r == 0 && (r = sql_step(rows, e)) > 0)
 *         name = sql_text(rows, arena, 1);
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"

#include <stdarg.h>

struct sql_db;
struct sql_rows;

struct sql_options {
    bool is_readonly;
    bool is_immutable; /* readonly, of a file that nobody changes meanwhile and that has no write-ahead log: makes no
                          file beside it */
    bool is_schema_trusted; /* checks and triggers of the file may use SQLite's JSON functions */
    int busy_timeout_ms;    /* 0: 5000 */
};

/* WAL, synchronous=FULL, foreign keys on, file mode 0600. */
int sql_open(const char *path, const struct sql_options *o, struct sql_db **ret, struct err *e) MUST_CHECK;
/* An empty database in memory, for comparisons. */
int sql_open_memory(struct sql_db **ret, struct err *e) MUST_CHECK;
struct sql_db *sql_close(struct sql_db *db);
struct sqlite3 *sql_handle(struct sql_db *db);

/* Additional SQL functions: boot_id() of the running kernel, boot_ms() since its start (clock_boot_ms()). */
int sql_exec(struct sql_db *db, struct err *e, const char *sql, const char *binds, ...) MUST_CHECK;
int sql_vexec(struct sql_db *db, struct err *e, const char *sql, const char *binds, va_list args) MUST_CHECK;
int64_t sql_changes(struct sql_db *db);
int64_t sql_last_id(struct sql_db *db);
/* Several statements without binds (schema). */
int sql_script(struct sql_db *db, const char *sql, struct err *e) MUST_CHECK;

int sql_query(struct sql_db *db, struct sql_rows **ret, struct err *e, const char *sql, const char *binds,
              ...) MUST_CHECK;
/* Begins the query of rows again with other values. */
int sql_again(struct sql_rows *rows, struct err *e, const char *binds, ...) MUST_CHECK;
/* 1: a row; 0: no more rows; negative: an error. */
int sql_step(struct sql_rows *rows, struct err *e) MUST_CHECK;
char *sql_text(struct sql_rows *rows, struct arena *a, int column); /* NULL for NULL */
struct slice sql_blob(struct sql_rows *rows, struct arena *a, int column);
int64_t sql_int(struct sql_rows *rows, int column);
bool sql_is_null(struct sql_rows *rows, int column);
void sql_rows_endp(struct sql_rows **rows);

/* For SQL whose text is built at run time (filters): the text is copied, the statement is not cached. */
int sql_query_text(struct sql_db *db, struct sql_rows **ret, struct err *e, const char *sql, const char *binds,
                   ...) MUST_CHECK;
int sql_exec_text(struct sql_db *db, struct err *e, const char *sql, const char *binds, ...) MUST_CHECK;

/* Values whose number is known at run time only; the letters of the binds above. */
struct sql_value {
    char letter;
    struct slice text; /* of S and b */
    int64_t i;
    double d;
};
int sql_query_values(struct sql_db *db, struct sql_rows **ret, struct err *e, const char *sql,
                     const struct sql_value *values, size_t n) MUST_CHECK;
enum sql_kind { SQL_NULL, SQL_INT, SQL_REAL, SQL_TEXT, SQL_BLOB };
enum sql_kind sql_kind_of(struct sql_rows *rows, int column); /* as it is stored */
double sql_double(struct sql_rows *rows, int column);
/* Borrowed until the next sql_step(). */
struct slice sql_peek(struct sql_rows *rows, int column);

/* Returns a SQLite failure as an errno: -EBUSY, -ENOSPC, -EEXIST (constraint), -EIO, ...; code STORE_ERROR (STORE_FULL
 * for a full disk). */
int sql_fail(struct sql_db *db, struct err *e, const char *what);
