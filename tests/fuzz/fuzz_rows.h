/* Rows of a PostgreSQL from text: one line per row, its columns between tabs (\N: NULL; a line that begins with ! has
 * binary columns). */
#pragma once

#include "base/buf.h"

#include <assert.h>
#include <libpq-fe.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS_MAX = 24 };

static struct slice take_until(struct slice *rest, char separator)
{
    const char *found = rest->n > 0 ? memchr(rest->p, separator, rest->n) : NULL;
    struct slice part = { rest->p, found ? (size_t)(found - rest->p) : rest->n };
    size_t n = part.n + (found ? 1 : 0);

    *rest = (struct slice){ rest->p + n, rest->n - n };
    return part;
}

/* A row in the form in which libpq returns it in single-row mode. */
static PGresult *row_of(struct slice line)
{
    bool is_binary = line.n > 0 && line.p[0] == '!';
    PGresult *row = PQmakeEmptyPGresult(NULL, PGRES_SINGLE_TUPLE);
    PGresAttDesc columns[COLUMNS_MAX] = { 0 };
    struct slice values[COLUMNS_MAX], rest = line;
    int n = 0, r = 1;

    while (rest.n > 0 && n < COLUMNS_MAX) {
        columns[n] = (PGresAttDesc){ .name = (char *)(uintptr_t) "c", .format = is_binary };
        values[n++] = take_until(&rest, '\t');
    }
    if (n > 0)
        r = PQsetResultAttrs(row, n, columns);
    for (int i = 0; r && i < n; i++) {
        bool is_null = slice_eq_str(values[i], "\\N");

        r = PQsetvalue(row, 0, i, (char *)(uintptr_t)values[i].p, is_null ? -1 : (int)values[i].n);
    }
    assert(r);
    return row;
}
