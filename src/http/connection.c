#include "http/connection.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/stall.h"
#include "http/crowd.h"
#include "http/served.h"
#include "http/server_state.h"

#include <event2/event.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static void free_connection(struct http_connection *c)
{
    http_peer_leave(c->peer);
    close(c->fd);
    http_spare_keep(c->server);
    purse_close(&c->purse);
    http_peer_unref(c->peer);
    buf_clear(&c->in);
    http_reply_clear(&c->out);
    free(c);
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
    struct stall_span span = stall_begin();

    http_connection_on_readable(fd, what, arg);
    loop_measure(&span, "a client", NULL);
}

static void on_writable(evutil_socket_t fd, short what, void *arg)
{
    struct stall_span span = stall_begin();

    http_connection_on_writable(fd, what, arg);
    loop_measure(&span, "a client that takes its answer", NULL);
}

static struct http_connection *make_connection(struct http_server *s, int fd, struct http_peer *peer)
{
    struct http_connection *c = xcalloc(1, sizeof(*c));

    c->server = s;
    c->fd = fd;
    c->is_unix = peer->remote.any.sa_family == AF_UNIX;
    c->peer = peer;
    http_peer_text(peer, c->peer_text, sizeof(c->peer_text));
    buf_init(&c->in, LIMIT_HEADER_BYTES + HTTP_SCRATCH_BYTES);
    http_reply_init(&c->out);
    event_assign(&c->readable, loop_base(s->loop), fd, EV_READ | EV_PERSIST, on_readable, c);
    event_assign(&c->writable, loop_base(s->loop), fd, EV_WRITE, on_writable, c);
    return c;
}

void http_connection_open(struct http_server *s, int fd, struct http_peer *peer)
{
    struct http_connection *c = make_connection(s, fd, peer);
    struct budget_holder *holder = http_peer_holder(peer);
    struct err e;
    int r;

    err_init(&e);
    r = budget_check(holder, BUDGET_CONNECTIONS, 1, &e);
    purse_open(&c->purse, holder);
    purse_force(&c->purse, BUDGET_CONNECTIONS, 1);
    budget_holder_unref(holder);
    if (!http_crowd_enter(s, c)) {
        free_connection(c);
        return;
    }
    TAILQ_INSERT_TAIL(&s->connections, c, links);
    atomic_fetch_add(&s->n_connections, 1);
    http_connection_wait(c, WAIT_FIRST);
    if (event_add(&c->readable, NULL) < 0)
        http_connection_close(c);
    else if (r < 0)
        http_connection_refuse_budget(c, r, &e);
}

int http_connection_charge(struct http_connection *c, struct budget_holder *holder, struct err *e)
{
    int r = 0;

    if (holder != c->purse.holder)
        r = budget_check(holder, BUDGET_CONNECTIONS, 1, e);
    if (r == 0 && holder != c->purse.holder)
        purse_open(&c->purse, holder);
    return r < 0 ? r : budget_check(holder, BUDGET_REPLIES, 1, e);
}

static void lose_request(struct http_connection *c)
{
    struct http_served *served = TAKE(c->served);
    bool is_handed_out =
        c->state == CONNECTION_WORKING || c->state == CONNECTION_STREAMING || c->state == CONNECTION_SOCKET;

    if (served && is_handed_out)
        http_served_lose(served);
    else
        http_served_free(served);
}

void http_connection_close(struct http_connection *c)
{
    struct http_server *s = c->server;

    if (!c->is_closing) {
        c->is_closing = true;
        event_del(&c->readable);
        event_del(&c->writable);
        http_connection_wait(c, WAIT_NONE);
        http_crowd_leave(s, c);
        atomic_fetch_sub(&s->n_connections, 1);
        TAILQ_REMOVE(&s->connections, c, links);
        lose_request(c);
    }
    if (!c->is_busy)
        free_connection(c);
}

void http_connection_wait(struct http_connection *c, enum http_wait wait)
{
    http_deadline_set(&c->server->deadlines, &c->deadline, wait);
}

void http_connection_set_state(struct http_connection *c, enum http_connection_state state, enum http_wait wait)
{
    c->state = state;
    http_connection_wait(c, wait);
}

/* Whether enough bytes moved in time; a client that is too slow occupies a connection for too long. */
static bool keeps_pace(struct http_connection *c, size_t n)
{
    bool is_enough = n >= c->n_paced + LIMIT_PACE_BYTES;

    c->n_paced = n;
    return is_enough;
}

static void look_at_body(struct http_connection *c)
{
    bool is_over = clock_mono_ms() - c->body_since_ms >= c->server->body_timeout_ms;

    if (is_over || !keeps_pace(c, c->served->body.n))
        http_connection_refuse(c, REFUSE_BODY_SLOW);
    else
        http_connection_wait(c, WAIT_BODY);
}

static void look_at_reply(struct http_connection *c)
{
    if (c->state == CONNECTION_REPLYING && keeps_pace(c, c->out.sent))
        http_connection_wait(c, WAIT_WRITE);
    else
        http_connection_close(c);
}

void http_connection_expired(struct http_deadline *d, enum http_wait wait)
{
    struct http_connection *c = CONTAINER_OF(d, struct http_connection, deadline);

    if (wait == WAIT_HEAD)
        http_connection_refuse(c, REFUSE_HEAD_SLOW);
    else if (wait == WAIT_BODY)
        look_at_body(c);
    else if (wait == WAIT_WRITE)
        look_at_reply(c);
    else if (wait == WAIT_COMMENT)
        http_served_stream_comment(c->served->stream);
    else if (wait == WAIT_TURN)
        http_connection_go_on(c);
    else
        http_connection_close(c);
}

/* The counter makes ids unique in this process, the prefix across processes; cheaper than random bytes for each
 * request. */
void http_connection_make_id(struct http_server *s, char *id)
{
    static const char digits[] = "0123456789abcdef";
    uint64_t number = ++s->n_ids;
    size_t n = sizeof(s->id_prefix) - 1;

    memcpy(id, s->id_prefix, n);
    id[n] = '-';
    for (size_t i = 10; i > 0; i--, number >>= 4)
        id[n + i] = digits[number & 15];
    id[n + 11] = '\0';
}
