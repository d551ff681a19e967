#include "pg/pg_row.h"

#include "base/limits.h"
#include "base/utf8.h"
#include "pg/pg_link.h"

#include <libpq-fe.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBER_CHARS = 40 };

int pg_fault(struct err *e, const char *fmt, ...)
{
    char text[sizeof(e->text)];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    return err_set(e, -EIO, "STORE_FAILED", "PostgreSQL: its answer is wrong: %s", text);
}

static PGresult *result_of(const struct pg_row *row)
{
    return (PGresult *)(uintptr_t)row;
}

static int check_columns(const struct pg_row *row, const struct pg_statement *st, struct err *e)
{
    int n = PQnfields(result_of(row));

    if (n != st->n_columns)
        return pg_fault(e, "a row has %d columns where %d were asked for", n, st->n_columns);
    for (int i = 0; i < n; i++)
        if (PQfformat(result_of(row), i) != 0)
            return pg_fault(e, "a column is binary where text was asked for");
    return 0;
}

size_t pg_row_size(const struct pg_row *row)
{
    size_t n = 0;

    for (int i = 0; i < PQnfields(result_of(row)); i++)
        n += (size_t)PQgetlength(result_of(row), 0, i);
    return n;
}

int pg_row_take(const struct pg_row *row, const struct pg_statement *st, struct pg_tally *tally, struct err *e)
{
    size_t max_bytes = st->max_bytes ? st->max_bytes : LIMIT_STORE_REPLY;
    int r = st->on_row ? check_columns(row, st, e) : 0;

    tally->n_bytes += pg_row_size(row);
    if (r == 0 && ++tally->n_rows > MAX(st->max_rows, (size_t)1))
        r = pg_fault(e, "it has more rows than the %zu that were asked for", st->max_rows);
    if (r == 0 && tally->n_bytes > max_bytes)
        r = pg_fault(e, "its rows have more than %zu bytes", max_bytes);
    return r < 0 || !st->on_row ? r : st->on_row(st->arg, row, e);
}

bool pg_row_is_null(const struct pg_row *row, int column)
{
    return column < PQnfields(result_of(row)) && PQntuples(result_of(row)) == 1 &&
           PQgetisnull(result_of(row), 0, column);
}

int pg_row_text(const struct pg_row *row, int column, size_t max, struct slice *ret, struct err *e)
{
    struct slice text;

    if (column >= PQnfields(result_of(row)) || PQntuples(result_of(row)) != 1)
        return pg_fault(e, "a row has no column %d", column);
    if (PQgetisnull(result_of(row), 0, column))
        return pg_fault(e, "column %d is NULL", column);
    text = (struct slice){ PQgetvalue(result_of(row), 0, column), (size_t)PQgetlength(result_of(row), 0, column) };
    if (text.n > max)
        return pg_fault(e, "column %d has more than %zu bytes", column, max);
    if (memchr(text.p, '\0', text.n) || !utf8_is_valid(text))
        return pg_fault(e, "column %d is no text in UTF-8", column);
    *ret = text;
    return 0;
}

int pg_row_int(const struct pg_row *row, int column, int64_t min, int64_t max, int64_t *ret, struct err *e)
{
    struct slice text = SLICE_LIT("");
    long long value;
    char *end;
    int r = pg_row_text(row, column, NUMBER_CHARS, &text, e);

    if (r < 0)
        return r;
    errno = 0;
    value = strtoll(text.p, &end, 10);
    if (text.n == 0 || *end || errno || value < min || value > max)
        return pg_fault(e, "column %d must be a whole number from %lld to %lld", column, (long long)min,
                        (long long)max);
    *ret = value;
    return 0;
}

int pg_row_double(const struct pg_row *row, int column, double *ret, struct err *e)
{
    struct slice text = SLICE_LIT("");
    double value;
    char *end;
    int r = pg_row_text(row, column, NUMBER_CHARS, &text, e);

    if (r < 0)
        return r;
    value = strtod(text.p, &end);
    if (text.n == 0 || *end)
        return pg_fault(e, "column %d must be a number", column);
    *ret = value;
    return 0;
}
