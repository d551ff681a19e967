#include "vector/pgvector/pgvector_session.h"

#include "vector/pgvector/pgvector_conninfo.h"

#include <stdlib.h>

void pg_pool_init(struct pg_pool *p, const char *url, const struct guard *guard)
{
    *p = (struct pg_pool){ .url = xstrdup(url), .guard = guard };
    pthread_mutex_init(&p->lock, NULL);
}

void pg_pool_clear(struct pg_pool *p)
{
    while (p->n_idle > 0)
        pg_link_close(p->idle[--p->n_idle]);
    pthread_mutex_destroy(&p->lock);
    free(p->url);
}

/* A server that lacks a setting refuses it but works without it. */
static int prepare(struct pg_session *s, struct err *e)
{
    static const char *const settings[] = { "SET statement_timeout = '60s'", "SET hnsw.iterative_scan = strict_order",
                                            "SET hnsw.ef_search = 100" };
    int r = 0;

    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(settings); i++) {
        r = pg_link_run(s->link, s->wait, &(struct pg_statement){ .sql = settings[i] }, e);
        if (r == -EIO && !pg_link_is_broken(s->link))
            r = 0;
    }
    return r;
}

int pg_session_open(struct pg_pool *p, const struct net_wait *wait, bool must_be_fresh, struct pg_session *ret,
                    struct err *e)
{
    int r;

    *ret = (struct pg_session){ .pool = p, .wait = wait };
    pthread_mutex_lock(&p->lock);
    if (!must_be_fresh && p->n_idle > 0)
        ret->link = p->idle[--p->n_idle];
    pthread_mutex_unlock(&p->lock);
    ret->was_idle = ret->link != NULL;
    if (ret->was_idle)
        return 0;
    r = pg_conninfo_open(p->url, p->guard, wait, &ret->link, e);
    if (r == 0)
        r = prepare(ret, e);
    if (r < 0)
        ret->link = pg_link_close(ret->link);
    return r;
}

static void give_back(struct pg_pool *p, struct pg_link **link)
{
    pthread_mutex_lock(&p->lock);
    if (p->n_idle < PG_IDLE_MAX)
        p->idle[p->n_idle++] = TAKE(*link);
    pthread_mutex_unlock(&p->lock);
}

/* Rolls back a transaction that was left open, unless its connection is closed anyway. */
void pg_session_close(struct pg_session *s)
{
    struct err ignored = { 0 };

    if (!s->link)
        return;
    if (!pg_link_is_broken(s->link) && !pg_link_is_reusable(s->link))
        (void)!pg_link_run(s->link, s->wait, &(struct pg_statement){ .sql = "ROLLBACK" }, &ignored);
    if (pg_link_is_reusable(s->link))
        give_back(s->pool, &s->link);
    s->link = pg_link_close(s->link);
}

bool pg_session_is_stale(const struct pg_session *s)
{
    return s->was_idle && s->link && pg_link_is_dead(s->link);
}

bool pg_session_is_broken(const struct pg_session *s)
{
    return !s->link || pg_link_is_broken(s->link);
}

int pg_run(struct pg_session *s, const struct pg_statement *st, struct err *e)
{
    return pg_link_run(s->link, s->wait, st, e);
}
