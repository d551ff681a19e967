#include "vector/pgvector_session.h"

#include "vector/pgvector_conninfo.h"

#include <libpq-fe.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_OID = 25, PARAMS_MAX = 8 };

static PGconn *conn_of(struct pg_conn *c) { return (PGconn *)c; }
static PGresult *result_of(const struct pg_result *r) { return (PGresult *)(uintptr_t)r; }

void pg_pool_init(struct pg_pool *p, const char *url, const struct guard *guard)
{
    *p = (struct pg_pool){ .url = xstrdup(url), .guard = guard };
    pthread_mutex_init(&p->lock, NULL);
}

void pg_pool_clear(struct pg_pool *p)
{
    while (p->n_idle > 0)
        PQfinish(conn_of(p->idle[--p->n_idle]));
    pthread_mutex_destroy(&p->lock);
    free(p->url);
}

static void quiet(void *arg, const PGresult *notice)
{
}

static int connect_fresh(const struct pg_pool *p, PGconn **ret, struct err *e)
{
    void *fresh = NULL;
    PGconn *conn;
    int r = pg_conninfo_connect(p->url, p->guard, &fresh, e);

    if (r < 0)
        return r;
    conn = fresh;
    PQsetNoticeReceiver(conn, quiet, NULL);
    /* Servers without them say no, and work all the same. */
    PQclear(PQexec(conn, "SET statement_timeout = '60s'"));
    PQclear(PQexec(conn, "SET hnsw.iterative_scan = strict_order"));
    PQclear(PQexec(conn, "SET hnsw.ef_search = 100"));
    *ret = conn;
    return 0;
}

int pg_session_open(struct pg_pool *p, bool must_be_fresh, struct pg_session *ret, struct err *e)
{
    PGconn *conn = NULL;
    int r;

    *ret = (struct pg_session){ .pool = p };
    pthread_mutex_lock(&p->lock);
    if (!must_be_fresh && p->n_idle > 0)
        ret->conn = p->idle[--p->n_idle];
    pthread_mutex_unlock(&p->lock);
    ret->was_idle = ret->conn != NULL;
    if (ret->was_idle)
        return 0;
    r = connect_fresh(p, &conn, e);
    if (r == 0)
        ret->conn = (struct pg_conn *)conn;
    return r;
}

static bool is_usable(PGconn *conn)
{
    return PQstatus(conn) == CONNECTION_OK && PQtransactionStatus(conn) == PQTRANS_IDLE;
}

void pg_session_close(struct pg_session *s)
{
    struct pg_pool *p = s->pool;

    if (!s->conn)
        return;
    if (PQstatus(conn_of(s->conn)) == CONNECTION_OK && !is_usable(conn_of(s->conn)))
        PQclear(PQexec(conn_of(s->conn), "ROLLBACK"));
    pthread_mutex_lock(&p->lock);
    if (is_usable(conn_of(s->conn)) && p->n_idle < PG_IDLE_MAX) {
        p->idle[p->n_idle++] = s->conn;
        s->conn = NULL;
    }
    pthread_mutex_unlock(&p->lock);
    if (s->conn)
        PQfinish(conn_of(s->conn));
    s->conn = NULL;
}

bool pg_session_is_stale(const struct pg_session *s)
{
    return s->was_idle && s->conn && PQstatus(conn_of(s->conn)) != CONNECTION_OK;
}

int pg_run(struct pg_session *s, struct pg_result **ret, struct err *e, const char *sql, const char *const *params, size_t n_params)
{
    static const Oid types[PARAMS_MAX] = { TEXT_OID, TEXT_OID, TEXT_OID, TEXT_OID, TEXT_OID, TEXT_OID, TEXT_OID, TEXT_OID };
    PGresult *result = PQexecParams(conn_of(s->conn), sql, (int)n_params, types, params, NULL, NULL, 0);
    ExecStatusType status = PQresultStatus(result);
    const char *message;
    int r = 0;

    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
        message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
        r = pg_tell(message ? message : PQerrorMessage(conn_of(s->conn)), e);
    }
    if (r < 0 || !ret)
        PQclear(result);
    else
        *ret = (struct pg_result *)result;
    return r;
}

size_t pg_rows(const struct pg_result *r)
{
    return (size_t)PQntuples(result_of(r));
}

char *pg_text(const struct pg_result *r, struct arena *a, size_t row, int column)
{
    if (PQgetisnull(result_of(r), (int)row, column))
        return NULL;
    return arena_strdup(a, PQgetvalue(result_of(r), (int)row, column));
}

size_t pg_bytes(const struct pg_result *r, size_t row)
{
    size_t n = 0;

    for (int column = 0; column < PQnfields(result_of(r)); column++)
        n += (size_t)PQgetlength(result_of(r), (int)row, column);
    return n;
}

int64_t pg_int(const struct pg_result *r, size_t row, int column)
{
    return strtoll(PQgetvalue(result_of(r), (int)row, column), NULL, 10);
}

double pg_double(const struct pg_result *r, size_t row, int column)
{
    return strtod(PQgetvalue(result_of(r), (int)row, column), NULL);
}

int64_t pg_changes(const struct pg_result *r)
{
    return strtoll(PQcmdTuples(result_of(r)), NULL, 10);
}

void pg_result_freep(struct pg_result **r)
{
    PQclear(result_of(*r));
}
