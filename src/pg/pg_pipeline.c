/* Several statements in one round trip. */
#include "pg/pg_private.h"

#include <stdlib.h>

static int send_piped(struct pg_link *l, const struct net_wait *wait, const struct pg_statement *st, const char *name,
                      struct err *e)
{
    AUTO(freep) Oid *types = pg_text_types(st->n_params);
    int n = (int)st->n_params;
    int is_sent = *name ? PQsendQueryPrepared(l->conn, name, n, st->params, NULL, NULL, 0)
                        : PQsendQueryParams(l->conn, st->sql, n, types, st->params, NULL, NULL, 0);

    return pg_flush(l, wait, is_sent == 1 && PQpipelineSync(l->conn) == 1, e);
}

/* The mark after the results of each statement: it has been committed, or rolled back. */
static int take_mark(struct pg_link *l, const struct net_wait *wait, struct err *e)
{
    PGresult *result = NULL;
    int r = pg_next_result(l, wait, &result, e);

    if (r == 0 && PQresultStatus(result) != PGRES_PIPELINE_SYNC)
        r = pg_fault(e, "a statement ends without a mark");
    PQclear(result);
    return r;
}

static int take_piped(struct pg_link *l, const struct net_wait *wait, const struct pg_statement *st, int *ret,
                      struct err *e)
{
    struct err refusal = { 0 };
    int r = pg_take_results(l, wait, st, &refusal, e);

    if (r == 0)
        r = take_mark(l, wait, e);
    *ret = refusal.text[0] ? -EIO : 0;
    return r;
}

/* Statements are prepared before: in the pipeline that would take a mark of its own. */
static int find_names(struct pg_link *l, const struct net_wait *wait, const struct pg_statement *statements, size_t n,
                      char (*ret)[PG_NAME_SIZE], struct err *e)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < n; i++)
        if (!l->is_pooled && statements[i].is_prepared)
            r = pg_find_name(l, wait, &statements[i], ret[i], e);
    return r;
}

static int run_piped(struct pg_link *l, const struct net_wait *wait, const struct pg_statement *statements, size_t n,
                     char (*names)[PG_NAME_SIZE], int *ret, struct err *e)
{
    int r = PQenterPipelineMode(l->conn) == 1 ? 0 : pg_notify_error(PQerrorMessage(l->conn), e);

    for (size_t i = 0; r == 0 && i < n; i++)
        r = send_piped(l, wait, &statements[i], names[i], e);
    for (size_t i = 0; r == 0 && i < n; i++)
        r = take_piped(l, wait, &statements[i], &ret[i], e);
    if (r == 0 && PQexitPipelineMode(l->conn) != 1)
        r = pg_notify_error(PQerrorMessage(l->conn), e);
    return r;
}

int pg_link_run_all(struct pg_link *l, const struct net_wait *wait, const struct pg_statement *statements, size_t n,
                    int *ret, struct err *e)
{
    char(*names)[PG_NAME_SIZE] = xcalloc(n, sizeof(*names));
    int r = find_names(l, wait, statements, n, names, e);

    if (r == 0) {
        r = run_piped(l, wait, statements, n, names, ret, e);
        l->is_broken = l->is_broken || r < 0;
    }
    free(names);
    return r;
}
