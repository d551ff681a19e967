#include "http/connection.h"
#include "base/limits.h"
#include "http/served.h"
#include "http/server_state.h"

#include <event2/event.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

/* A close with unread input would make the kernel send a reset, which can overtake the answer (RFC 9112 section 9.6).
 * So close our side and keep reading until the client closes its own. */
static void say_farewell(struct http_connection *c)
{
    if (shutdown(c->fd, SHUT_WR) < 0 || !event_pending(&c->readable, EV_READ, NULL)) {
        http_connection_close(c);
        return;
    }
    if (c->linger_left == 0)
        c->linger_left = LIMIT_LINGER_BYTES;
    http_connection_set_state(c, CONNECTION_LINGERING, WAIT_LINGER);
}

void http_connection_replied(struct http_connection *c, bool keep_alive)
{
    http_reply_clear(&c->out);
    purse_give(&c->purse, BUDGET_REPLIES);
    if (keep_alive && !c->is_poisoned)
        http_connection_next(c);
    else
        say_farewell(c);
}

static size_t unsent_parts(struct http_reply *out, struct iovec parts[2])
{
    size_t from_head = MIN(out->sent, out->head.n), from_body = out->sent - from_head;

    parts[0] = (struct iovec){ out->head.p + from_head, out->head.n - from_head };
    parts[1] = (struct iovec){ out->body.p ? out->body.p + from_body : NULL, out->body.n - from_body };
    return parts[0].iov_len + parts[1].iov_len;
}

void http_connection_send_out(struct http_connection *c)
{
    struct iovec parts[2];
    struct msghdr message = { .msg_iov = parts, .msg_iovlen = 2 };
    size_t unsent = unsent_parts(&c->out, parts);
    ssize_t n = sendmsg(c->fd, &message, MSG_NOSIGNAL);

    if (n < 0 && errno != EAGAIN && errno != EINTR) {
        http_connection_close(c);
        return;
    }
    if (n > 0)
        c->out.sent += (size_t)n;
    if (n == (ssize_t)unsent) {
        http_connection_replied(c, c->keep_alive);
        return;
    }
    if (c->deadline.wait != WAIT_WRITE) {
        c->n_paced = c->out.sent;
        purse_force(&c->purse, BUDGET_REPLIES, (int64_t)unsent);
        http_connection_wait(c, WAIT_WRITE);
    }
    if (http_connection_await_room(c) < 0)
        http_connection_close(c);
}

int http_connection_await_room(struct http_connection *c)
{
    return event_add(&c->writable, NULL) < 0 ? -EPIPE : 0;
}

void http_connection_on_writable(int fd, short what, void *arg)
{
    struct http_connection *c = arg;

    if (c->state == CONNECTION_STREAMING)
        http_served_stream_send(c->served->stream);
    else if (c->state == CONNECTION_SOCKET)
        http_websocket_send(c->served->socket);
    else
        http_connection_send_out(c);
}

void http_connection_reply(struct http_connection *c, struct http_reply *reply, bool keep_alive)
{
    http_reply_move(&c->out, reply);
    c->keep_alive = keep_alive;
    http_connection_set_state(c, CONNECTION_REPLYING, WAIT_NONE);
    http_connection_send_out(c);
}

static void write_own_form(struct http_connection *c, struct http_served *served, int status, const struct err *e,
                           struct buf *out)
{
    const struct http_server_config *config = &c->server->config;

    if (served && served->exchange.request.path && config->write_refusal)
        config->write_refusal(config->arg, &served->exchange, e, status, out);
}

static void refuse(struct http_connection *c, int status, const struct err *e)
{
    const struct http_refusal_row row = { status, e->code, e->text };
    struct http_server *s = c->server;
    struct http_served *served = TAKE(c->served);
    struct http_reply reply;
    char id[65];

    if (served)
        memcpy(id, served->exchange.request.id, sizeof(id));
    else
        http_connection_make_id(s, id);
    http_reply_init(&reply);
    write_own_form(c, served, status, e, &reply.body);
    http_refusal_write(&row, id, served && served->exchange.request.is_head, &reply);
    http_served_free(served);
    if (s->config.on_refused)
        s->config.on_refused(s->config.arg, id, status, e->code);
    http_connection_reply(c, &reply, false);
}

void http_connection_refuse(struct http_connection *c, enum http_refusal why)
{
    const struct http_refusal_row *row = http_refusal_row(why);
    struct err e = { 0 };

    err_set(&e, -EINVAL, row->code, "%s", row->text);
    if (why == REFUSE_CONNECTIONS) {
        budget_refuse(c->purse.holder, BUDGET_CONNECTIONS, false, NULL);
        err_add_extra(&e, "budget", budget_rules[BUDGET_CONNECTIONS].name);
    }
    refuse(c, row->status, &e);
}

void http_connection_refuse_budget(struct http_connection *c, int r, const struct err *e)
{
    refuse(c, r == -EBUSY ? 429 : 503, e);
}
