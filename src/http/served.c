#include "http/served.h"
#include "base/limits.h"
#include "http/connection.h"
#include "http/server_state.h"

#include <stdlib.h>
#include <string.h>

static const struct http_carrier server_carrier;

struct http_served *http_served_new(struct http_connection *c)
{
    struct http_served *served = xcalloc(1, sizeof(*served));
    struct http_exchange *x = &served->exchange;

    served->loop = c->server->loop;
    served->server = c->server;
    served->connection = c;
    buf_init(&served->body, 0);
    http_reply_init(&served->reply);
    x->arena = arena_new();
    x->carrier = &server_carrier;
    x->carrier_data = served;
    x->request.from = c->is_unix ? HTTP_FROM_UNIX : HTTP_FROM_TCP;
    x->request.connection = http_peer_ref(c->peer);
    memcpy(x->request.peer, c->peer_text, sizeof(x->request.peer));
    x->response.status = 200;
    x->response.content_type = "application/json";
    buf_init_soft(&x->response.body, LIMIT_REPLY, 0);
    purse_open(&x->purse, c->purse.holder);
    return served;
}

/* Frees everything except the reply: all that an owner could use. Any thread. */
static void clear_exchange(struct http_served *served)
{
    served->exchange.body_arena = arena_free(served->exchange.body_arena);
    served->exchange.arena = arena_free(served->exchange.arena);
    buf_clear(&served->exchange.response.body);
    buf_clear(&served->body);
    purse_give(&served->exchange.purse, BUDGET_BODY);
    purse_give(&served->exchange.purse, BUDGET_MEMORY);
    http_exchange_promise(&served->exchange, 0);
}

struct http_served *http_served_free(struct http_served *served)
{
    if (!served)
        return NULL;
    clear_exchange(served);
    http_reply_clear(&served->reply);
    purse_close(&served->exchange.purse);
    http_peer_unref(served->exchange.request.connection);
    free(served);
    return NULL;
}

static void count_in(struct http_served *served)
{
    TAILQ_INSERT_TAIL(&served->server->in_flight, served, links);
    atomic_fetch_add(&served->server->n_in_flight, 1);
}

void http_served_begin(struct http_served *served)
{
    struct http_server *s = served->server;

    count_in(served);
    atomic_store(&served->must_close, s->is_draining);
    s->config.on_request(s->config.arg, &served->exchange);
}

void http_served_answer(struct http_served *served, bool must_close)
{
    count_in(served);
    atomic_store(&served->must_close, must_close || served->server->is_draining);
    http_exchange_send(&served->exchange);
}

void http_served_finish(struct http_served *served)
{
    if (!served->server)
        return;
    TAILQ_REMOVE(&served->server->in_flight, served, links);
    atomic_fetch_sub(&served->server->n_in_flight, 1);
    served->server = NULL;
}

void http_served_lose(struct http_served *served)
{
    struct http_exchange *x = &served->exchange;
    struct served_stream *stream = served->stream;
    struct http_websocket *socket = served->socket;
    void (*fn)(struct http_exchange * x, void *arg) = x->on_gone;

    served->connection = NULL;
    if (atomic_exchange(&x->is_gone, true))
        return;
    x->on_gone = NULL;
    if (fn)
        fn(x, x->on_gone_arg);
    if (stream)
        http_served_stream_lose(stream);
    else if (socket)
        http_websocket_lose(socket);
}

struct http_reply_way http_served_way(const struct http_served *served)
{
    return (struct http_reply_way){
        .keep_alive = served->keep_alive && !atomic_load(&served->must_close),
        .is_http10 = served->is_http10,
        .may_compress = !loop_is_current(served->loop),
    };
}

static void deliver(void *arg)
{
    struct http_served *served = arg;
    struct http_connection *c = served->connection;

    http_served_finish(served);
    if (c) {
        c->served = NULL;
        http_connection_reply(c, &served->reply, served->keep_alive);
    }
    http_served_free(served);
}

/* The answering thread formats the answer, so that the loop only moves bytes. */
static void send_served(struct http_exchange *x)
{
    struct http_served *served = x->carrier_data;
    struct http_reply_way way = http_served_way(served);

    served->keep_alive = way.keep_alive;
    if (!atomic_load(&x->is_gone))
        http_reply_write(&served->reply, x, &way);
    clear_exchange(served);
    if (loop_is_current(served->loop))
        deliver(served);
    else
        loop_post(served->loop, deliver, served);
}

struct gone_change {
    struct http_exchange *x;
    void (*fn)(struct http_exchange *x, void *arg);
    void *arg;
};

static void change_on_gone(void *arg)
{
    const struct gone_change *change = arg;
    struct http_exchange *x = change->x;
    bool is_gone = atomic_load(&x->is_gone);

    x->on_gone = is_gone ? NULL : change->fn;
    x->on_gone_arg = change->arg;
    if (is_gone && change->fn)
        change->fn(x, change->arg);
}

/* Changes fn on the loop, where fn runs, so fn cannot be running when this returns. */
static void served_on_gone(struct http_exchange *x, void (*fn)(struct http_exchange *x, void *arg), void *arg)
{
    struct http_served *served = x->carrier_data;
    struct gone_change change = { x, fn, arg };

    loop_call(served->loop, change_on_gone, &change);
}

static void forget_body(struct http_exchange *x)
{
    struct http_served *served = x->carrier_data;

    buf_clear(&served->body);
}

static int charge_connection(struct http_exchange *x, struct budget_holder *holder, struct err *e)
{
    struct http_served *served = x->carrier_data;

    return http_connection_charge(served->connection, holder, e);
}

static const struct http_carrier server_carrier = {
    .send = send_served,
    .on_gone = served_on_gone,
    .start_stream = http_served_start_stream,
    .forget_body = forget_body,
    .charge = charge_connection,
};
