/* Rows as PostgreSQL's server sent them: every column is checked where it is read. A violation is -EIO
 * STORE_FAILED and names the rule. */
#pragma once

#include "base/arena.h"
#include "base/err.h"

struct pg_row; /* a PGresult of one row */
struct pg_statement;

/* Reports a wrong answer of the server; returns -EIO. */
int pg_fault(struct err *e, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* The rows and bytes a statement has taken so far. */
struct pg_tally {
    size_t n_rows, n_bytes;
};
/* Checks the columns, their format and the numbers of rows and bytes; then calls the statement's on_row. */
int pg_row_take(const struct pg_row *row, const struct pg_statement *st, struct pg_tally *tally,
                struct err *e) MUST_CHECK;

bool pg_row_is_null(const struct pg_row *row, int column);
/* Bytes of all columns. */
size_t pg_row_size(const struct pg_row *row);
/* Valid UTF-8 of at most max bytes, ended by a NUL that n does not count; NULL is an error. */
int pg_row_text(const struct pg_row *row, int column, size_t max, struct slice *ret, struct err *e) MUST_CHECK;
/* A whole number from min to max. */
int pg_row_int(const struct pg_row *row, int column, int64_t min, int64_t max, int64_t *ret, struct err *e) MUST_CHECK;
/* NaN and infinities too, as PostgreSQL writes them. */
int pg_row_double(const struct pg_row *row, int column, double *ret, struct err *e) MUST_CHECK;
