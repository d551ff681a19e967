#include "http/connection.h"
#include "base/limits.h"
#include "base/stall.h"
#include "http/served.h"
#include "http/server_state.h"

#include <event2/event.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static void free_connection(struct http_connection *c)
{
    close(c->fd);
    http_peer_unref(c->peer);
    buf_clear(&c->in);
    http_reply_clear(&c->out);
    free(c);
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
    struct stall_span span = stall_begin();

    http_connection_on_readable(fd, what, arg);
    loop_measure(&span, "client", NULL);
}

static void on_writable(evutil_socket_t fd, short what, void *arg)
{
    struct stall_span span = stall_begin();

    http_connection_on_writable(fd, what, arg);
    loop_measure(&span, "client that takes its answer", NULL);
}

void http_connection_open(struct http_server *s, int fd, struct http_peer *peer)
{
    struct http_connection *c;

    if (s->n_refused >= LIMIT_REFUSED_CONNECTIONS) {
        close(fd);
        http_peer_unref(peer);
        return;
    }
    c = xcalloc(1, sizeof(*c));
    c->server = s;
    c->fd = fd;
    c->is_unix = peer->remote.any.sa_family == AF_UNIX;
    c->peer = peer;
    buf_init(&c->in, LIMIT_HEADER_BYTES + HTTP_SCRATCH_BYTES);
    http_reply_init(&c->out);
    event_assign(&c->readable, loop_base(s->loop), fd, EV_READ | EV_PERSIST, on_readable, c);
    event_assign(&c->writable, loop_base(s->loop), fd, EV_WRITE, on_writable, c);
    if (event_add(&c->readable, NULL) < 0) {
        free_connection(c);
        return;
    }
    TAILQ_INSERT_TAIL(&s->connections, c, links);
    c->is_refused = atomic_load(&s->n_connections) - s->n_refused >= s->config.max_connections;
    s->n_refused += c->is_refused;
    atomic_fetch_add(&s->n_connections, 1);
    http_connection_wait(c, WAIT_IDLE);
    if (c->is_refused)
        http_connection_refuse(c, REFUSE_CONNECTIONS);
}

static void lose_request(struct http_connection *c)
{
    struct http_served *served = TAKE(c->served);
    bool is_handed_out = c->state == CONNECTION_WORKING || c->state == CONNECTION_STREAMING;

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
        http_connection_release_claim(c);
        s->n_refused -= c->is_refused;
        atomic_fetch_sub(&s->n_connections, 1);
        TAILQ_REMOVE(&s->connections, c, links);
        lose_request(c);
    }
    if (!c->is_busy)
        free_connection(c);
}

void http_connection_release_claim(struct http_connection *c)
{
    c->server->body_bytes -= c->body_claim;
    c->body_claim = 0;
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

void http_connection_expired(struct http_deadline *d, enum http_wait wait)
{
    struct http_connection *c = CONTAINER_OF(d, struct http_connection, deadline);

    if (wait == WAIT_HEAD)
        http_connection_refuse(c, REFUSE_HEAD_SLOW);
    else if (wait == WAIT_BODY)
        http_connection_refuse(c, REFUSE_BODY_SLOW);
    else if (wait == WAIT_COMMENT)
        http_served_stream_comment(c->served->stream);
    else
        http_connection_close(c);
}

/* Unique in this process by the count, across processes by the prefix; cheaper than random bytes a request. */
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
