/* Rows of a PostgreSQL through the readers of whole operations: the first line is the operation; then one line per row,
 * its columns between tabs (\N: NULL; a line that begins with ! has binary columns); an empty line ends a statement. */
#include "fuzz_stores.h"

#include "vector/pgvector/pgvector_session.h"

#include <libpq-fe.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

enum { COLUMNS_MAX = 8 };

static const char *at, *end;

static struct slice take_until(struct slice *rest, char separator)
{
    const char *found = rest->n > 0 ? memchr(rest->p, separator, rest->n) : NULL;
    struct slice part = { rest->p, found ? (size_t)(found - rest->p) : rest->n };
    size_t n = part.n + (found ? 1 : 0);

    *rest = (struct slice){ rest->p + n, rest->n - n };
    return part;
}

static struct slice next_line(void)
{
    struct slice rest = { at, (size_t)(end - at) }, line = take_until(&rest, '\n');

    at = rest.p;
    return line;
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

/* ---- replaces vector/pgvector/pgvector_session.c ---- */

void pg_pool_init(struct pg_pool *p, const char *url, const struct guard *guard)
{
    *p = (struct pg_pool){ 0 };
}
void pg_pool_clear(struct pg_pool *p)
{
}
void pg_session_close(struct pg_session *s)
{
}
bool pg_session_is_stale(const struct pg_session *s)
{
    return false;
}
bool pg_session_is_broken(const struct pg_session *s)
{
    return true;
}

int pg_session_open(struct pg_pool *p, const struct net_wait *wait, bool must_be_fresh, struct pg_session *ret,
                    struct err *e)
{
    *ret = (struct pg_session){ .pool = p, .wait = wait };
    return 0;
}

int pg_run(struct pg_session *s, const struct pg_statement *st, struct err *e)
{
    struct pg_tally tally = { 0 };
    struct slice line;
    int r = 0;

    while (r == 0 && (line = next_line()).n > 0) {
        PGresult *row = row_of(line);

        r = pg_row_take((const struct pg_row *)row, st, &tally, e);
        PQclear(row);
    }
    if (st->ret_changes)
        *st->ret_changes = 1;
    return r;
}

/* ---- the target ---- */

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    static struct vectors *v;
    AUTO(arena_freep) struct arena *a = arena_new();
    struct json_value config = { 0 };
    struct slice first;
    int r = json_parse(a, SLICE_LIT("{\"connectionString\":\"postgresql://u:p@127.0.0.1/d\"}"), &config, NULL);

    if (r == 0 && !v)
        r = vectors_provider_find("pgvector")->open("f", config, NULL, &v, NULL);
    assert(r == 0);
    at = (const char *)bytes;
    end = at + n;
    first = next_line();
    if (first.n == 1)
        try_store(v, first.p[0]);
    return 0;
}
