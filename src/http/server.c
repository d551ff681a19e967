#include "http/server.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/metrics.h"
#include "http/connection.h"
#include "http/crowd.h"
#include "http/served.h"
#include "http/server_state.h"

#include <stdlib.h>
#include <string.h>

enum {
    DEFAULT_HEAD_MS = 10000,
    DEFAULT_BODY_MS = 30000,
    DEFAULT_IDLE_MS = 75000,
    DEFAULT_WRITE_MS = 60000,
    DEFAULT_COMMENT_MS = 15000, /* decision D8 */
    SOCKET_SILENCE_MS = 60000,  /* clients of the realtime protocol send a heartbeat each 25 s */
    LINGER_MS = 5000,
    TURN_MS = 1,
};

static int or_default(int value, int fallback)
{
    return value > 0 ? value : fallback;
}

static void set_timeouts(struct http_server *s)
{
    const struct http_server_config *c = &s->config;
    int *timeout_ms = s->deadlines.timeout_ms;

    timeout_ms[WAIT_HEAD] = or_default(c->head_timeout_ms, DEFAULT_HEAD_MS);
    s->body_timeout_ms = or_default(c->body_timeout_ms, DEFAULT_BODY_MS);
    timeout_ms[WAIT_BODY] = MIN(s->body_timeout_ms, HTTP_PACE_MS);
    timeout_ms[WAIT_FIRST] = or_default(c->idle_timeout_ms, DEFAULT_IDLE_MS);
    timeout_ms[WAIT_IDLE] = or_default(c->idle_timeout_ms, DEFAULT_IDLE_MS);
    timeout_ms[WAIT_WRITE] = or_default(c->write_timeout_ms, DEFAULT_WRITE_MS);
    timeout_ms[WAIT_COMMENT] = or_default(c->comment_every_ms, DEFAULT_COMMENT_MS);
    timeout_ms[WAIT_SOCKET] = or_default(c->socket_silence_ms, SOCKET_SILENCE_MS);
    timeout_ms[WAIT_LINGER] = LINGER_MS;
    timeout_ms[WAIT_TURN] = TURN_MS;
}

static double gauge(void *count)
{
    return (double)atomic_load((atomic_size_t *)count);
}

static void show_gauges(struct http_server *s)
{
    metric_gauge_fn("hearth_http_connections", "Open client connections", "", gauge, &s->n_connections);
    metric_gauge_fn("hearth_http_in_flight", "Requests not yet answered, streams included", "", gauge, &s->n_in_flight);
    metric_gauge_fn("hearth_http_streams", "Open streamed answers", "", gauge, &s->n_streams);
}

static void hide_gauges(struct http_server *s)
{
    metric_gauge_fn_forget(&s->n_connections);
    metric_gauge_fn_forget(&s->n_in_flight);
    metric_gauge_fn_forget(&s->n_streams);
}

static bool is_between_requests(const struct http_connection *c)
{
    return c->state == CONNECTION_HEAD && c->in.n == 0;
}

/* Closes the connections between requests, LIMIT_CLOSED_A_TURN in one turn of the loop. */
static void close_idle(void *arg)
{
    struct http_server *s = arg;
    struct http_connection *c, *next;
    size_t n = 0;

    for (c = TAILQ_FIRST(&s->connections); c && n < LIMIT_CLOSED_A_TURN; c = next) {
        next = TAILQ_NEXT(c, links);
        if (!is_between_requests(c))
            continue;
        http_connection_close(c);
        n++;
    }
    if (n == LIMIT_CLOSED_A_TURN)
        loop_timer_set(s->drain_on, 0);
}

int http_server_start(struct loop *l, const struct http_server_config *c, struct http_server **ret, struct err *e)
{
    struct http_server *s = xcalloc(1, sizeof(*s));
    unsigned char prefix[6];

    s->loop = l;
    s->config = *c;
    if (s->config.max_connections == 0)
        s->config.max_connections = LIMIT_CONNECTIONS;
    s->config.max_connections = http_crowd_maximum(s->config.max_connections);
    s->spare_fd = -1;
    http_spare_keep(s);
    TAILQ_INIT(&s->listeners);
    TAILQ_INIT(&s->connections);
    TAILQ_INIT(&s->in_flight);
    random_bytes(prefix, sizeof(prefix));
    hash_hex(prefix, sizeof(prefix), s->id_prefix);
    http_deadlines_init(&s->deadlines, l, http_connection_expired);
    set_timeouts(s);
    s->accept_again = loop_timer_new(l, http_listeners_resume, s);
    s->drain_on = loop_timer_new(l, close_idle, s);
    show_gauges(s);
    *ret = s;
    return 0;
}

void http_server_drain(struct http_server *s)
{
    struct http_served *served;

    s->is_draining = true;
    http_listeners_close(s);
    TAILQ_FOREACH(served, &s->in_flight, links)
    atomic_store(&served->must_close, true);
    close_idle(s);
}

bool http_server_close_some(struct http_server *s)
{
    for (size_t n = 0; n < LIMIT_CLOSED_A_TURN && !TAILQ_EMPTY(&s->connections); n++)
        http_connection_close(TAILQ_FIRST(&s->connections));
    return !TAILQ_EMPTY(&s->connections);
}

size_t http_server_in_flight(const struct http_server *s)
{
    return atomic_load(&s->n_in_flight);
}

struct http_server *http_server_stop(struct http_server *s)
{
    if (!s)
        return NULL;
    hide_gauges(s);
    http_listeners_close(s);
    while (http_server_close_some(s)) {
    }
    while (!TAILQ_EMPTY(&s->in_flight))
        http_served_finish(TAILQ_FIRST(&s->in_flight));
    s->accept_again = loop_timer_free(s->accept_again);
    s->drain_on = loop_timer_free(s->drain_on);
    http_deadlines_clear(&s->deadlines);
    http_spare_give_up(s);
    free(s);
    return NULL;
}
