#include "http/connection.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/memory.h"
#include "http/served.h"
#include "http/server_state.h"

#include <event2/event.h>
#include <sys/socket.h>

static const struct slice continue_line = { "HTTP/1.1 100 Continue\r\n\r\n", 25 };

static void begin_request(struct http_connection *c)
{
    struct http_served *served = c->served;

    served->exchange.request.body = buf_slice(&served->body);
    http_connection_set_state(c, CONNECTION_WORKING, WAIT_NONE);
    http_served_begin(served);
}

/* An announced length reserves nothing: bytes count when they arrive (take_body). */
static enum http_refusal begin_body(struct http_connection *c, size_t limit, bool has_bytes_already)
{
    size_t most = c->framing.is_chunked ? limit : c->framing.content_length;

    if (most > limit)
        return REFUSE_BODY_BYTES;
    buf_init_soft(&c->served->body, most, MEMORY_SPARE_BYTES);
    c->chunked = (struct http_chunked){ 0 };
    c->body_since_ms = clock_mono_ms();
    c->n_paced = 0;
    http_connection_set_state(c, CONNECTION_BODY, WAIT_BODY);
    if (c->framing.expects_continue && !has_bytes_already &&
        send(c->fd, continue_line.p, continue_line.n, MSG_NOSIGNAL) != (ssize_t)continue_line.n)
        http_connection_close(c);
    return REFUSE_NONE;
}

static enum http_refusal parse_head(struct http_connection *c, struct slice head)
{
    struct http_served *served = c->served = http_served_new(c);
    struct http_request *request = &served->exchange.request;
    enum http_refusal why;

    c->framing = (struct http_framing){ 0 };
    why = http_head_parse(served->exchange.arena, arena_slicedup(served->exchange.arena, head), &c->scan, request,
                          &c->framing);
    if (!request->id[0])
        http_connection_make_id(c->server, request->id);
    request->arrived_us = clock_mono_us();
    served->is_http10 = c->framing.is_http10;
    served->keep_alive = c->framing.keep_alive;
    return why;
}

static bool is_kept_out(const struct http_connection *c)
{
    enum holder_kind kind = budget_holder_kind(c->served->exchange.purse.holder);

    return c->is_reserve && kind != HOLDER_ADMIN;
}

/* Decides by the head alone, before reading the body. Returns how many of the n bytes after the head were used: when a
 * refused request's body has already arrived, it is skipped, and the connection may continue. */
static size_t decide(struct http_connection *c, size_t n)
{
    struct http_server_config *config = &c->server->config;
    bool has_body = c->framing.content_length > 0 || c->framing.is_chunked;
    bool is_body_here = !c->framing.is_chunked && c->framing.content_length <= n;
    size_t length = c->framing.content_length, max_body = 0;
    enum http_refusal why = REFUSE_NONE;

    if (!config->on_head(config->arg, &c->served->exchange, &max_body)) {
        http_connection_set_state(c, CONNECTION_WORKING, WAIT_NONE);
        http_served_answer(c->served, has_body && !is_body_here);
        return is_body_here ? length : 0;
    }
    if (is_kept_out(c))
        why = REFUSE_CONNECTIONS;
    else if (has_body)
        why = begin_body(c, max_body, n > 0);
    else
        begin_request(c);
    if (why)
        http_connection_refuse(c, why);
    return why ? n : 0;
}

static size_t take_head(struct http_connection *c, struct slice bytes)
{
    size_t head_bytes;
    enum http_refusal why;

    if (c->scan.looked_at == 0 && bytes.p[0] == '\r' && (bytes.n == 1 || bytes.p[1] == '\n'))
        return bytes.n == 1 ? 0 : 2; /* RFC 9112 section 2.2: an empty line before the request line is ignored */
    why = http_head_scan(&c->scan, bytes, &head_bytes);
    if (!why && head_bytes == 0)
        return 0;
    if (!why)
        why = parse_head(c, (struct slice){ bytes.p, head_bytes });
    if (!why)
        return head_bytes + decide(c, bytes.n - head_bytes);
    http_connection_refuse(c, why);
    return bytes.n;
}

/* An upper bound of the JSON values in these bytes, counted on arrival: no later walk through a large body is needed to
 * know whether there is memory for it. */
static size_t count_values(struct slice bytes)
{
    size_t n = 0;

    for (size_t i = 0; i < bytes.n; i++)
        n += bytes.p[i] == ',' || bytes.p[i] == '[' || bytes.p[i] == '{';
    return n;
}

/* Charges the growth of the body since n bytes. False: beyond a budget, and refused. */
static bool charge_body(struct http_connection *c, size_t n)
{
    struct http_exchange *x = &c->served->exchange;
    const struct buf *body = &c->served->body;
    struct err e;
    int r = 0;

    err_init(&e);
    x->request.n_body_values += count_values((struct slice){ body->p + n, body->n - n });
    if (body->n > LIMIT_SMALL_BODY)
        r = purse_take(&x->purse, BUDGET_BODY, (int64_t)body->n - x->purse.held[BUDGET_BODY], &e);
    if (r < 0)
        http_connection_refuse_budget(c, r, &e);
    return r == 0;
}

static size_t take_body(struct http_connection *c, struct slice bytes)
{
    struct buf *body = &c->served->body;
    enum http_refusal why = REFUSE_NONE;
    size_t used = bytes.n, before = body->n;
    bool is_whole;

    if (c->framing.is_chunked) {
        why = http_chunked_feed(&c->chunked, bytes, body, &used);
        is_whole = http_chunked_is_done(&c->chunked);
    } else {
        used = MIN(bytes.n, c->framing.content_length - body->n);
        buf_add(body, bytes.p, used);
        is_whole = body->n == c->framing.content_length;
    }
    if (body->is_starved)
        why = REFUSE_MEMORY;
    if (why)
        http_connection_refuse(c, why);
    else if (charge_body(c, before) && is_whole)
        begin_request(c);
    return used;
}

static size_t leave_for_later(struct http_connection *c, struct slice bytes)
{
    return c->is_poisoned ? bytes.n : 0;
}

/* Further bytes stay in the kernel, whose window closes; the client still has the time of WAIT_LINGER to read the
 * answer.
 */
static size_t drop(struct http_connection *c, struct slice bytes)
{
    c->linger_left -= MIN(bytes.n, c->linger_left);
    if (c->linger_left == 0)
        event_del(&c->readable);
    return bytes.n;
}

static size_t take_frames(struct http_connection *c, struct slice bytes)
{
    return http_websocket_take(c->served->socket, bytes);
}

/* Each function consumes bytes from the front and returns how many; 0: it needs more bytes, or another state must
 * follow first. */
static size_t (*const takers[])(struct http_connection *c, struct slice bytes) = {
    [CONNECTION_HEAD] = take_head,           [CONNECTION_BODY] = take_body,
    [CONNECTION_WORKING] = leave_for_later,  [CONNECTION_STREAMING] = leave_for_later,
    [CONNECTION_REPLYING] = leave_for_later, [CONNECTION_LINGERING] = drop,
    [CONNECTION_SOCKET] = take_frames,
};

/* Stops at LIMIT_PIPELINED_A_TURN heads; *ret_is_cut: the rest is left for the next turn of the loop. */
static size_t take_all(struct http_connection *c, struct slice bytes, bool *ret_is_cut)
{
    size_t used = 0, n_heads = 0;

    while (used < bytes.n && !c->is_closing && n_heads < LIMIT_PIPELINED_A_TURN) {
        bool is_head = c->state == CONNECTION_HEAD;
        size_t n = takers[c->state](c, (struct slice){ bytes.p + used, bytes.n - used });

        if (n == 0)
            return used;
        n_heads += is_head;
        used += n;
    }
    *ret_is_cut = used < bytes.n && c->state == CONNECTION_HEAD;
    return used;
}

/* Keeps the bytes not yet used. When a client pipelines more than the size of a head after a running request, the
 * excess is dropped and the connection is closed after that request's answer (RFC 9112 section 9.3.2 lets the client
 * send the requests again). */
static void keep_rest(struct http_connection *c, struct slice rest)
{
    bool was_kept = c->in.n > 0;

    if (rest.n > LIMIT_HEADER_BYTES && c->state != CONNECTION_HEAD) {
        c->is_poisoned = true;
        if (c->linger_left == 0)
            c->linger_left = LIMIT_LINGER_BYTES;
        drop(c, rest);
        if (c->served)
            atomic_store(&c->served->must_close, true);
        rest.n = 0;
    }
    if (rest.n == 0)
        buf_clear(&c->in);
    else if (was_kept)
        buf_consume(&c->in, c->in.n - rest.n);
    else
        buf_add_slice(&c->in, rest);
}

void http_connection_feed(struct http_connection *c, struct slice fresh)
{
    struct slice bytes = fresh;
    bool is_cut = false;
    size_t used;

    if (c->in.n > 0) {
        buf_add_slice(&c->in, fresh);
        bytes = buf_slice(&c->in);
    }
    c->is_busy = true;
    used = take_all(c, bytes, &is_cut);
    c->is_busy = false;
    if (c->is_closing) {
        http_connection_close(c);
        return;
    }
    keep_rest(c, (struct slice){ bytes.p + used, bytes.n - used });
    if (is_cut)
        http_connection_wait(c, WAIT_TURN);
    else if (c->state == CONNECTION_HEAD && c->in.n > 0 && c->deadline.wait != WAIT_HEAD)
        http_connection_wait(c, WAIT_HEAD);
}

void http_connection_go_on(struct http_connection *c)
{
    http_connection_feed(c, (struct slice){ NULL, 0 });
}

void http_connection_next(struct http_connection *c)
{
    c->scan = (struct http_head_scan){ 0 };
    http_connection_set_state(c, CONNECTION_HEAD, WAIT_IDLE);
    if (!c->is_busy && c->in.n > 0)
        http_connection_go_on(c);
}

/* The client sends no more bytes. A complete answer is still delivered (a client may close only its sending side); in
 * every other state the client counts as gone. */
static void end_of_input(struct http_connection *c)
{
    if (c->state != CONNECTION_REPLYING) {
        http_connection_close(c);
        return;
    }
    c->keep_alive = false;
    event_del(&c->readable);
}

void http_connection_on_readable(int fd, short what, void *arg)
{
    struct http_connection *c = arg;
    char *scratch = c->server->scratch;
    ssize_t n;

    if (c->deadline.wait == WAIT_TURN) { /* the kernel keeps further bytes until the kept ones are read */
        http_connection_go_on(c);
        return;
    }
    n = recv(fd, scratch, c->state == CONNECTION_SOCKET ? (size_t)LIMIT_SOCKET_READ : HTTP_SCRATCH_BYTES, 0);
    if (n > 0)
        http_connection_feed(c, (struct slice){ scratch, (size_t)n });
    else if (n == 0)
        end_of_input(c);
    else if (errno != EAGAIN && errno != EINTR)
        http_connection_close(c);
}
