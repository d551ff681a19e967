/* Rows of a PostgreSQL through the readers of whole operations: the first line is the operation; then one line per row,
 * its columns between tabs (\N: NULL; a line that begins with ! has binary columns); an empty line ends a statement. */
#include "fuzz_rows.h"
#include "fuzz_stores.h"

#include "vector/pgvector/pgvector_session.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static const char *at, *end;

static struct slice next_line(void)
{
    struct slice rest = { at, (size_t)(end - at) }, line = take_until(&rest, '\n');

    at = rest.p;
    return line;
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
