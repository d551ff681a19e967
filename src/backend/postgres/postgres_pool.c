#include "backend/postgres/postgres_pool.h"
#include "base/clock.h"
#include "base/cond.h"
#include "base/limits.h"
#include "base/util.h"
#include "pg/pg_params.h"

#include <libpq-fe.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { PAUSE_FIRST_MS = 50, PAUSE_MAX_MS = 5000, WAKE_MS = 100 };

struct postgres_pool {
    char *url, *events_url, *password; /* owned */
    struct postgres_place place;
    size_t max;

    pthread_mutex_t lock; /* guards the members below */
    pthread_cond_t freed;
    struct pg_link *idle[LIMIT_BACKEND_CONNECTIONS]; /* owned */
    size_t n_idle, n_links;                          /* n_links: idle, in use and being opened */
    int64_t pause_ms, connect_at_ms;                 /* no attempt before; pause_ms 0: the last one succeeded */
    char why[200];                                   /* the last attempt failed */
};

/* ---- connecting ---- */

/* Of equal names the later one counts. statement_timeout ends a statement whose service is gone; poolers know no
 * options. */
static void add_defaults(struct pg_params *p, bool has_options)
{
    pg_params_add(p, "application_name", "hearth");
    pg_params_add(p, "keepalives_idle", "30");
    pg_params_add(p, "tcp_user_timeout", "30000");
    if (has_options)
        pg_params_add(p, "options", "-c statement_timeout=60000 -c TimeZone=UTC -c DateStyle=ISO");
}

/* The server is there and will go on refusing: the login, the database, the right to connect. */
static int refuse_login(const char *sqlstate, int r, const struct err *why, struct err *e)
{
    static const char *const lasting[] = { "28", "3D000", "42501" };

    for (size_t i = 0; i < ARRAY_SIZE(lasting); i++)
        if (strncmp(sqlstate, lasting[i], strlen(lasting[i])) == 0)
            return err_set(e, -EACCES, "STORE_DENIED", "%s", why->text);
    if (e)
        *e = *why;
    return r;
}

static int connect_as(const struct postgres_place *place, bool has_options, const struct net_wait *wait,
                      struct pg_link **ret, struct err *e)
{
    PQconninfoOption *given = PQconninfoParse(place->url, NULL);
    struct pg_params p = { .n = 0 }; /* ended by NULL */
    char sqlstate[PG_SQLSTATE_SIZE] = "";
    struct err why = { 0 };
    char stream_options[160];
    int r;

    add_defaults(&p, has_options);
    for (const PQconninfoOption *o = given; o && o->keyword; o++)
        if (o->val && *o->val)
            pg_params_add(&p, o->keyword, o->val);
    if (place->password)
        pg_params_add(&p, "password", place->password);
    pg_params_add(&p, "client_encoding", "UTF8");
    if (place->is_replication) {
        snprintf(
            stream_options, sizeof(stream_options),
            "-c TimeZone=UTC -c DateStyle=ISO -c IntervalStyle=postgres -c bytea_output=hex -c extra_float_digits=1"
            " -c lock_timeout=%d",
            LIMIT_LOGICAL_SLOT_MS);
        pg_params_add(&p, "replication", "database");
        pg_params_add(&p, "options", stream_options);
    }
    r = pg_link_open(p.names, p.values, wait, sqlstate, ret, &why);
    PQconninfoFree(given);
    return r < 0 ? refuse_login(sqlstate, r, &why, e) : r;
}

int postgres_pool_connect(const struct postgres_place *place, const struct net_wait *wait, struct pg_link **ret,
                          struct err *e)
{
    struct net_wait connecting = net_wait_part(wait, LIMIT_STORE_CONNECT_MS);
    struct err why = { 0 };
    int r = connect_as(place, !place->is_replication, &connecting, ret, &why);

    if (r < 0 && !place->is_replication && strstr(why.text, "unsupported startup parameter")) {
        why = (struct err){ 0 };
        r = connect_as(place, false, &connecting, ret, &why);
    }
    if (r == -EIO) /* nothing was asked yet */
        r = err_set(e, -EAGAIN, "STORE_UNAVAILABLE", "%s", why.text);
    else if (r < 0 && e)
        *e = why;
    if (r == 0)
        pg_link_allow(*ret, LIMIT_BACKEND_ROW_BYTES);
    return r;
}

/* ---- the pool ---- */

static void note_failure(struct postgres_pool *p, const struct err *why)
{
    p->pause_ms = p->pause_ms ? MIN(2 * p->pause_ms, (int64_t)PAUSE_MAX_MS) : PAUSE_FIRST_MS;
    p->connect_at_ms = clock_mono_ms() + p->pause_ms;
    snprintf(p->why, sizeof(p->why), "%s", why->text);
}

/* The place of a new connection has been counted. */
static int open_link(struct postgres_pool *p, const struct net_wait *wait, struct pg_link **ret, struct err *e)
{
    struct err why = { 0 };
    int r = postgres_pool_connect(&p->place, wait, ret, &why);

    pthread_mutex_lock(&p->lock);
    if (r == 0)
        p->pause_ms = 0;
    else {
        p->n_links--;
        pthread_cond_signal(&p->freed);
    }
    if (r == -EAGAIN || r == -EACCES)
        note_failure(p, &why);
    pthread_mutex_unlock(&p->lock);
    if (r < 0 && e)
        *e = why;
    return r;
}

void postgres_pool_close_idle(struct postgres_pool *p)
{
    pthread_mutex_lock(&p->lock);
    for (; p->n_idle > 0; p->n_links--)
        pg_link_close(p->idle[--p->n_idle]);
    pthread_cond_broadcast(&p->freed);
    pthread_mutex_unlock(&p->lock);
}

enum taken { TAKEN_IDLE, TAKEN_PLACE, TAKEN_NOTHING };

/* Under the lock. */
static enum taken take_now(struct postgres_pool *p, struct pg_link **ret)
{
    if (p->n_idle > 0) {
        *ret = p->idle[--p->n_idle];
        return TAKEN_IDLE;
    }
    if (p->n_links >= p->max)
        return TAKEN_NOTHING;
    p->n_links++;
    return TAKEN_PLACE;
}

/* Waits for a connection or the place of one; another caller that gives one back wakes this one. */
static int await(struct postgres_pool *p, const struct net_wait *wait, struct pg_link **ret, enum taken *ret_taken,
                 struct err *e)
{
    int64_t left = 0;

    pthread_mutex_lock(&p->lock);
    while ((*ret_taken = take_now(p, ret)) == TAKEN_NOTHING && (left = net_wait_left(wait, e)) > 0)
        cond_wait_until(&p->freed, &p->lock, clock_mono_us() + MIN(left, (int64_t)WAKE_MS) * 1000);
    pthread_mutex_unlock(&p->lock);
    return *ret_taken == TAKEN_NOTHING ? (int)left : 0;
}

/* The place that was taken is given up again. */
static int refuse_pause(struct postgres_pool *p, struct err *e)
{
    int64_t left_ms;
    int r = 0;

    pthread_mutex_lock(&p->lock);
    left_ms = p->pause_ms ? p->connect_at_ms - clock_mono_ms() : 0;
    if (left_ms > 0) {
        p->n_links--;
        r = err_set(e, -EAGAIN, "STORE_UNAVAILABLE", "%s", p->why);
        if (e)
            e->retry_after_ms = left_ms;
    }
    pthread_mutex_unlock(&p->lock);
    return r;
}

int postgres_pool_take(struct postgres_pool *p, const struct net_wait *wait, struct pg_link **ret, struct err *e)
{
    enum taken taken;
    int r;

    while ((r = await(p, wait, ret, &taken, e)) == 0 && taken == TAKEN_IDLE) {
        if (pg_link_is_alive(*ret))
            return 0;
        postgres_pool_give(p, ret);
        postgres_pool_close_idle(p);
    }
    if (r == 0)
        r = refuse_pause(p, e);
    return r < 0 ? r : open_link(p, wait, ret, e);
}

void postgres_pool_give(struct postgres_pool *p, struct pg_link **link)
{
    struct pg_link *l = TAKE(*link);

    if (!pg_link_is_reusable(l))
        l = pg_link_close(l);
    pthread_mutex_lock(&p->lock);
    if (l)
        p->idle[p->n_idle++] = l;
    else
        p->n_links--;
    pthread_cond_signal(&p->freed);
    pthread_mutex_unlock(&p->lock);
}

struct postgres_pool *postgres_pool_new(const struct postgres_place *place)
{
    struct postgres_pool *p = xcalloc(1, sizeof(*p));

    p->url = xstrdup(place->url);
    p->password = place->password ? xstrdup(place->password) : NULL;
    p->events_url = place->events_url ? xstrdup(place->events_url) : NULL;
    p->place = (struct postgres_place){ .url = p->url, .events_url = p->events_url, .password = p->password };
    p->max = (size_t)(place->n_connections > 0 ? MIN(place->n_connections, LIMIT_BACKEND_CONNECTIONS)
                                               : LIMIT_BACKEND_CONNECTIONS_DEFAULT);
    pthread_mutex_init(&p->lock, NULL);
    cond_init(&p->freed);
    return p;
}

struct postgres_place postgres_pool_place(const struct postgres_pool *p)
{
    return p->place;
}

struct postgres_pool *postgres_pool_free(struct postgres_pool *p)
{
    if (!p)
        return NULL;
    postgres_pool_close_idle(p);
    pthread_cond_destroy(&p->freed);
    pthread_mutex_destroy(&p->lock);
    if (p->password)
        explicit_bzero(p->password, strlen(p->password));
    free(p->password);
    free(p->events_url);
    free(p->url);
    free(p);
    return NULL;
}
