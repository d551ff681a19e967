#include "base/limits.h"
#include "http/connection.h"
#include "http/served.h"
#include "http/server_state.h"

#include <event2/event.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

/* The server's stream: pushers fill `pending` under the lock; the loop swaps it with its own `sending` and writes that
 * without the lock. Every change by another thread is posted in order, so when the end runs, which the last holder
 * posts, all bytes have arrived and no post follows. */
struct served_stream {
    struct http_stream stream;  /* first */
    struct http_served *served; /* owned: keeps request and arena until the end */
    struct loop *loop;          /* borrowed */
    bool is_chunked, is_mute;   /* mute: the answer to HEAD has no body */
    bool is_sse;
    bool keep_alive;
    atomic_bool is_gone;
    atomic_size_t n_unsent; /* bytes in pending and sending not yet passed to the kernel */

    pthread_mutex_t lock; /* guards the rest of this paragraph */
    pthread_cond_t room;
    struct buf pending;
    bool is_posted;    /* the loop will process pending */
    bool wants_change; /* a push on the loop returned -EAGAIN */

    void (*on_change)(struct http_stream *s, void *arg); /* the rest is used only by the loop */
    void *on_change_arg;
    struct buf sending;
    size_t sent;
    bool is_ended, is_counted;
};

enum { CHUNK_HEAD_BYTES = 2 * sizeof(size_t) + 2 };

static const struct http_stream_carrier served_stream_carrier;

static struct served_stream *free_stream(struct served_stream *s)
{
    buf_clear(&s->pending);
    buf_clear(&s->sending);
    pthread_cond_destroy(&s->room);
    pthread_mutex_destroy(&s->lock);
    s->served = http_served_free(s->served);
    free(s);
    return NULL;
}

/* Writes the length in hexadecimal digits and a line end; returns the number of bytes. */
static size_t write_chunk_head(char out[CHUNK_HEAD_BYTES], size_t n)
{
    size_t at = CHUNK_HEAD_BYTES;

    out[--at] = '\n';
    out[--at] = '\r';
    do
        out[--at] = "0123456789abcdef"[n % 16];
    while ((n /= 16) > 0);
    memmove(out, out + at, CHUNK_HEAD_BYTES - at);
    return CHUNK_HEAD_BYTES - at;
}

/* RFC 9112 section 7.1. */
static void add_chunk(struct served_stream *s, struct slice bytes)
{
    size_t before = s->pending.n;
    char head[CHUNK_HEAD_BYTES];

    if (s->is_chunked)
        buf_add(&s->pending, head, write_chunk_head(head, bytes.n));
    buf_add_slice(&s->pending, bytes);
    if (s->is_chunked)
        buf_add(&s->pending, "\r\n", 2);
    atomic_fetch_add(&s->n_unsent, s->pending.n - before);
}

/* Wakes pushers that wait for room, also when the client has left. Must be the caller's last action: on_change may do
 * anything. */
static void notify_change(struct served_stream *s)
{
    bool was_wanted;

    pthread_mutex_lock(&s->lock);
    was_wanted = s->wants_change || atomic_load(&s->is_gone);
    s->wants_change = false;
    pthread_cond_broadcast(&s->room);
    pthread_mutex_unlock(&s->lock);
    if (was_wanted && s->on_change)
        s->on_change(&s->stream, s->on_change_arg);
}

static void set_counted(struct served_stream *s, bool is_counted)
{
    if (is_counted != s->is_counted)
        atomic_fetch_add(&s->served->server->n_streams, is_counted ? 1 : (size_t)-1);
    s->is_counted = is_counted;
}

/* Frees the stream: no holder and no client is left. */
static void discard(struct served_stream *s)
{
    set_counted(s, false);
    http_served_finish(s->served);
    free_stream(s);
}

void http_served_stream_lose(struct served_stream *s)
{
    atomic_store(&s->is_gone, true);
    set_counted(s, false);
    if (s->is_ended)
        discard(s);
    else
        notify_change(s);
}

/* Moves the bytes left to send to `sending`. False: none. */
static bool refill(struct served_stream *s)
{
    if (s->sent < s->sending.n)
        return true;
    buf_clear(&s->sending);
    s->sent = 0;
    pthread_mutex_lock(&s->lock);
    s->sending = s->pending;
    buf_init(&s->pending, LIMIT_REPLY);
    s->is_posted = false;
    pthread_mutex_unlock(&s->lock);
    return s->sending.n > 0;
}

/* Sends until everything is sent (0) or the socket is full (-EAGAIN); -EPIPE: the connection is closed. */
static int pump(struct served_stream *s, struct http_connection *c)
{
    while (refill(s)) {
        size_t left = s->sending.n - s->sent;
        ssize_t n = send(c->fd, s->sending.p + s->sent, left, MSG_NOSIGNAL);

        if (n < 0 && errno != EAGAIN && errno != EINTR)
            return -EPIPE;
        if (n > 0) {
            s->sent += (size_t)n;
            atomic_fetch_sub(&s->n_unsent, (size_t)n);
        }
        if (n > 0 || c->deadline.wait != WAIT_WRITE)
            http_connection_wait(c, WAIT_WRITE);
        if (n < (ssize_t)left)
            return -EAGAIN;
    }
    return 0;
}

/* The answer is complete and sent: the connection continues without the stream. */
static void finish(struct served_stream *s)
{
    struct http_connection *c = s->served->connection;
    bool keep_alive = s->keep_alive && !atomic_load(&s->served->must_close);

    discard(s);
    c->served = NULL;
    http_connection_replied(c, keep_alive);
}

/* Sends as much as possible and sets the connection's wait for the rest. -EPIPE: the caller must close the
 * connection. */
static int advance(struct served_stream *s, struct http_connection *c)
{
    int r = pump(s, c);

    if (r == -EAGAIN)
        return http_connection_await_room(c);
    if (r == 0)
        http_connection_wait(c, s->is_sse ? WAIT_COMMENT : WAIT_NONE);
    return r;
}

void http_served_stream_send(struct served_stream *s)
{
    struct http_connection *c = s->served->connection;

    if (advance(s, c) < 0)
        http_connection_close(c);
    else if (s->is_ended && atomic_load(&s->n_unsent) == 0)
        finish(s);
    else if (atomic_load(&s->n_unsent) < LIMIT_STREAM_BUFFER / 2)
        notify_change(s);
}

/* False while the socket is full. */
static bool may_send(const struct http_connection *c)
{
    return c && !event_pending(&c->writable, EV_WRITE, NULL);
}

/* Posted after a push by a worker. */
static void flush(void *arg)
{
    struct served_stream *s = arg;

    if (may_send(s->served->connection))
        http_served_stream_send(s);
}

static void close_broken(void *arg)
{
    struct served_stream *s = arg;

    if (s->served->connection)
        http_connection_close(s->served->connection);
}

/* Runs after a push on the loop. The pusher is on the stack: a broken connection is reported later, not inside the
 * push. */
static void flush_quietly(struct served_stream *s)
{
    if (may_send(s->served->connection) && advance(s, s->served->connection) < 0)
        loop_post(s->loop, close_broken, s);
}

static void begin(void *arg)
{
    struct served_stream *s = arg;
    struct http_connection *c = s->served->connection;

    s->served->stream = s;
    if (!c) {
        http_served_stream_lose(s);
        return;
    }
    set_counted(s, true);
    http_connection_set_state(c, CONNECTION_STREAMING, WAIT_NONE);
    http_served_stream_send(s);
}

static void end(void *arg)
{
    struct served_stream *s = arg;
    static const struct slice last_chunk = { "0\r\n\r\n", 5 };

    s->is_ended = true;
    if (!s->served->connection) {
        discard(s);
        return;
    }
    pthread_mutex_lock(&s->lock);
    if (s->is_chunked) {
        buf_add_slice(&s->pending, last_chunk);
        atomic_fetch_add(&s->n_unsent, last_chunk.n);
    }
    pthread_mutex_unlock(&s->lock);
    flush(s);
}

static struct served_stream *stream_of(struct http_stream *stream)
{
    return CONTAINER_OF(stream, struct served_stream, stream);
}

/* Posted even on the loop: the posts of earlier pushes must run first. */
static void served_stream_end(struct http_stream *stream, bool is_complete)
{
    struct served_stream *s = stream_of(stream);

    if (!is_complete)
        loop_post(s->loop, close_broken, s);
    loop_post(s->loop, end, s);
}

/* The caller holds the lock. */
static int wait_for_room(struct served_stream *s, size_t n, bool is_on_loop)
{
    if (n > LIMIT_STREAM_PUSH)
        return -E2BIG;
    while (!atomic_load(&s->is_gone) && atomic_load(&s->n_unsent) >= LIMIT_STREAM_BUFFER) {
        if (is_on_loop) {
            s->wants_change = true;
            return -EAGAIN;
        }
        pthread_cond_wait(&s->room, &s->lock);
    }
    return atomic_load(&s->is_gone) ? -EPIPE : 0;
}

/* Keeps the bytes that the socket did not accept until it has room. */
static void keep_unsent(struct served_stream *s, const struct iovec *parts, size_t n_parts, size_t n_sent)
{
    for (size_t i = 0; i < n_parts; i++) {
        size_t n = MIN(n_sent, parts[i].iov_len);

        buf_add(&s->sending, (const char *)parts[i].iov_base + n, parts[i].iov_len - n);
        n_sent -= n;
    }
    atomic_fetch_add(&s->n_unsent, s->sending.n);
}

/* When no bytes are waiting: writes directly to the socket, past all buffers. -EPIPE: the caller must close the
 * connection. */
static int send_at_once(struct served_stream *s, struct slice bytes)
{
    struct http_connection *c = s->served->connection;
    char head[CHUNK_HEAD_BYTES];
    struct iovec parts[] = { { head, write_chunk_head(head, bytes.n) },
                             { (char *)bytes.p, bytes.n },
                             { (char *)"\r\n", 2 } };
    struct msghdr message = { .msg_iov = s->is_chunked ? parts : parts + 1, .msg_iovlen = s->is_chunked ? 3 : 1 };
    size_t total = bytes.n + (s->is_chunked ? parts[0].iov_len + parts[2].iov_len : 0);
    ssize_t n = sendmsg(c->fd, &message, MSG_NOSIGNAL);

    if (n < 0 && errno != EAGAIN && errno != EINTR)
        return -EPIPE;
    if (n == (ssize_t)total) {
        http_connection_wait(c, s->is_sse ? WAIT_COMMENT : WAIT_NONE);
        return 0;
    }
    s->sent = 0;
    buf_reset(&s->sending);
    keep_unsent(s, message.msg_iov, message.msg_iovlen, (size_t)MAX(n, (ssize_t)0));
    http_connection_wait(c, WAIT_WRITE);
    return http_connection_await_room(c);
}

/* On the loop, the only thread that sends. False: earlier bytes are unsent, or there is no connection. */
static bool push_at_once(struct served_stream *s, struct slice bytes)
{
    if (!s->served->connection || s->served->stream != s || s->is_mute || bytes.n > LIMIT_STREAM_PUSH ||
        atomic_load(&s->n_unsent) > 0)
        return false;
    if (send_at_once(s, bytes) < 0)
        loop_post(s->loop, close_broken, s);
    return true;
}

static int served_stream_push(struct http_stream *stream, struct slice bytes)
{
    struct served_stream *s = stream_of(stream);
    bool is_on_loop = loop_is_current(s->loop), is_news = false;
    int r;

    if (is_on_loop && push_at_once(s, bytes))
        return 0;
    pthread_mutex_lock(&s->lock);
    r = wait_for_room(s, bytes.n, is_on_loop);
    if (r == 0 && !s->is_mute) {
        add_chunk(s, bytes);
        is_news = !s->is_posted;
        s->is_posted = true;
    }
    pthread_mutex_unlock(&s->lock);
    if (is_news && is_on_loop)
        flush_quietly(s);
    else if (is_news)
        loop_post(s->loop, flush, s);
    return r;
}

struct change_request {
    struct served_stream *s;
    void (*fn)(struct http_stream *s, void *arg);
    void *arg;
};

static void set_on_change(void *arg)
{
    const struct change_request *change = arg;
    struct served_stream *s = change->s;

    s->on_change = change->fn;
    s->on_change_arg = change->arg;
    if (change->fn && atomic_load(&s->is_gone))
        change->fn(&s->stream, change->arg);
}

static void served_stream_on_change(struct http_stream *stream, void (*fn)(struct http_stream *s, void *arg), void *arg)
{
    struct served_stream *s = stream_of(stream);
    struct change_request change = { s, fn, arg };

    loop_call(s->loop, set_on_change, &change);
}

static bool served_stream_is_gone(const struct http_stream *stream)
{
    return atomic_load(&CONTAINER_OF(stream, const struct served_stream, stream)->is_gone);
}

static bool served_stream_is_full(const struct http_stream *stream)
{
    return atomic_load(&CONTAINER_OF(stream, const struct served_stream, stream)->n_unsent) >= LIMIT_STREAM_BUFFER;
}

void http_served_stream_comment(struct served_stream *s)
{
    if (http_stream_push(&s->stream, SLICE_LIT(":\n\n")) < 0)
        http_connection_wait(s->served->connection, WAIT_COMMENT);
}

struct http_stream *http_served_start_stream(struct http_exchange *x)
{
    struct http_served *served = x->carrier_data;
    struct http_reply_way way = http_served_way(served);
    struct served_stream *s = xcalloc(1, sizeof(*s));

    purse_give(&x->purse, BUDGET_REQUESTS);
    purse_force(&x->purse, BUDGET_STREAMS, 1);
    way.keep_alive &= !way.is_http10; /* the end of the stream is the end of the connection */
    http_stream_init(&s->stream, &served_stream_carrier);
    s->served = served;
    s->loop = served->loop;
    s->keep_alive = way.keep_alive;
    s->is_mute = x->request.is_head;
    s->is_chunked = !way.is_http10 && !s->is_mute;
    s->is_sse = strcmp(x->response.content_type, "text/event-stream") == 0;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->room, NULL);
    buf_init(&s->pending, LIMIT_REPLY);
    buf_init(&s->sending, LIMIT_REPLY);
    http_reply_write_stream_head(&s->pending, x, &way);
    atomic_store(&s->n_unsent, s->pending.n);
    s->is_posted = true;
    if (loop_is_current(s->loop))
        begin(s);
    else
        loop_post(s->loop, begin, s);
    return &s->stream;
}

static const struct http_stream_carrier served_stream_carrier = {
    .push = served_stream_push,
    .on_change = served_stream_on_change,
    .is_gone = served_stream_is_gone,
    .is_full = served_stream_is_full,
    .end = served_stream_end,
};
