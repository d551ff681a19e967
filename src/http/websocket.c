#include "http/websocket.h"
#include "base/limits.h"
#include "http/connection.h"
#include "http/served.h"
#include "http/server_state.h"

#include <event2/event.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>

/* Pushers fill `pending` under the lock; the loop swaps it with its own `sending` and writes that without the lock.
 * Posts hold a reference each. */
struct http_websocket {
    atomic_uint n_refs;
    struct loop *loop; /* borrowed */
    struct http_websocket_user user;
    struct budget_holder *holder; /* owned reference */

    pthread_mutex_t lock; /* guards this paragraph */
    struct buf pending;
    size_t n_waiting; /* bytes in pending and sending: charged to the holder */
    bool is_posted;   /* the loop will look at pending */
    bool is_shut;     /* no more is pushed: closing, or the client has left */

    struct http_served *served; /* owned; NULL when the connection is gone. The rest is used only by the loop */
    struct websocket_reader *reader;
    struct buf sending;
    size_t sent;
    bool is_paused, is_ended;
};

struct http_websocket *http_websocket_ref(struct http_websocket *w)
{
    atomic_fetch_add(&w->n_refs, 1);
    return w;
}

struct http_websocket *http_websocket_unref(struct http_websocket *w)
{
    if (!w || atomic_fetch_sub(&w->n_refs, 1) > 1)
        return NULL;
    websocket_reader_free(w->reader);
    buf_clear(&w->pending);
    buf_clear(&w->sending);
    budget_holder_unref(w->holder);
    pthread_mutex_destroy(&w->lock);
    free(w);
    return NULL;
}

struct budget_holder *http_websocket_holder(struct http_websocket *w)
{
    return w->holder;
}

static bool on_message(void *arg, bool is_binary, struct slice message)
{
    struct http_websocket *w = arg;

    w->is_paused = !w->user.on_message(w->user.arg, is_binary, message);
    return !w->is_paused;
}

static struct http_websocket *make(struct http_exchange *x, const struct http_websocket_user *user)
{
    struct http_served *served = x->carrier_data;
    struct http_websocket *w = xcalloc(1, sizeof(*w));
    const struct websocket_reader_config config = { .on_message = on_message, .arg = w };

    atomic_init(&w->n_refs, 1);
    w->loop = served->loop;
    w->user = *user;
    w->holder = budget_holder_ref(x->purse.holder);
    w->served = served;
    pthread_mutex_init(&w->lock, NULL);
    buf_init(&w->pending, LIMIT_SOCKET_WAITING + LIMIT_HEADER_BYTES);
    buf_init(&w->sending, LIMIT_SOCKET_WAITING + LIMIT_HEADER_BYTES);
    w->reader = websocket_reader_new(&config);
    return w->reader ? w : http_websocket_unref(w);
}

int http_websocket_new(struct http_exchange *x, const struct http_websocket_user *user, struct http_websocket **ret,
                       struct err *e)
{
    struct http_websocket *w;
    int r;

    if (!x->request.connection || !x->purse.holder)
        return err_set(e, -ENOTSUP, "NOT_SERVING", "A WebSocket needs a connection to the running service.");
    r = purse_take(&x->purse, BUDGET_SOCKETS, 1, e);
    if (r < 0)
        return r;
    w = make(x, user);
    if (!w) {
        purse_give(&x->purse, BUDGET_SOCKETS);
        return err_set(e, -ENOMEM, "OUT_OF_MEMORY", "There is no memory for another WebSocket now.");
    }
    *ret = w;
    return 0;
}

/* ---- the end ---- */

static void shut(struct http_websocket *w)
{
    pthread_mutex_lock(&w->lock);
    w->is_shut = true;
    pthread_mutex_unlock(&w->lock);
}

/* The connection, if any, goes on without the socket. */
static void leave(struct http_websocket *w)
{
    struct http_served *served = TAKE(w->served);

    shut(w);
    budget_give(w->holder, BUDGET_REPLIES, (int64_t)w->n_waiting);
    w->n_waiting = 0;
    w->user.on_closed(w->user.arg);
    http_served_finish(served);
    http_served_free(served);
    http_websocket_unref(w);
}

void http_websocket_lose(struct http_websocket *w)
{
    leave(w);
}

/* The close frame is sent: our side is closed, and the client closes its own. */
static void finish(struct http_websocket *w)
{
    struct http_connection *c = w->served->connection;

    c->served = NULL;
    leave(w);
    http_connection_replied(c, false);
}

/* ---- bytes out ---- */

/* Moves the bytes left to send to `sending`. False: none. */
static bool refill(struct http_websocket *w)
{
    if (w->sent < w->sending.n)
        return true;
    buf_clear(&w->sending);
    w->sent = 0;
    pthread_mutex_lock(&w->lock);
    w->sending = w->pending;
    buf_init(&w->pending, LIMIT_SOCKET_WAITING + LIMIT_HEADER_BYTES);
    w->is_posted = false;
    pthread_mutex_unlock(&w->lock);
    return w->sending.n > 0;
}

static void count_sent(struct http_websocket *w, size_t n)
{
    w->sent += n;
    pthread_mutex_lock(&w->lock);
    w->n_waiting -= n;
    pthread_mutex_unlock(&w->lock);
    budget_give(w->holder, BUDGET_REPLIES, (int64_t)n);
}

/* 0: everything is sent; -EAGAIN: the socket is full; -EPIPE. */
static int pump(struct http_websocket *w, struct http_connection *c)
{
    while (refill(w)) {
        size_t left = w->sending.n - w->sent;
        ssize_t n = send(c->fd, w->sending.p + w->sent, left, MSG_NOSIGNAL);

        if (n < 0 && errno != EAGAIN && errno != EINTR)
            return -EPIPE;
        if (n > 0)
            count_sent(w, (size_t)n);
        if (n < (ssize_t)left)
            return -EAGAIN;
    }
    return 0;
}

void http_websocket_send(struct http_websocket *w)
{
    struct http_connection *c = w->served->connection;
    int r = pump(w, c);

    if (r == -EAGAIN)
        r = http_connection_await_room(c);
    else if (r == 0 && w->is_ended) {
        finish(w);
        return;
    }
    if (r < 0)
        http_connection_close(c);
}

static bool can_send(const struct http_websocket *w)
{
    struct http_connection *c = w->served ? w->served->connection : NULL;

    return c && c->state == CONNECTION_SOCKET && !event_pending(&c->writable, EV_WRITE, NULL);
}

/* Posted after a push. */
static void flush(void *arg)
{
    struct http_websocket *w = arg;

    if (can_send(w))
        http_websocket_send(w);
    http_websocket_unref(w);
}

/* The caller holds the lock. */
static int append(struct http_websocket *w, struct slice frames, bool *ret_is_news)
{
    struct err ignored;

    if (w->is_shut)
        return -EPIPE;
    err_init(&ignored);
    if (w->n_waiting + frames.n > LIMIT_SOCKET_WAITING ||
        budget_take(w->holder, BUDGET_REPLIES, (int64_t)frames.n, &ignored) < 0)
        return -EAGAIN;
    buf_add_slice(&w->pending, frames);
    w->n_waiting += frames.n;
    *ret_is_news = !w->is_posted;
    w->is_posted = true;
    return 0;
}

static void drop_connection(void *arg)
{
    struct http_websocket *w = arg;

    if (w->served && w->served->connection)
        http_connection_close(w->served->connection);
    http_websocket_unref(w);
}

int http_websocket_push(struct http_websocket *w, struct slice frames)
{
    bool is_news = false;
    int r;

    pthread_mutex_lock(&w->lock);
    r = append(w, frames, &is_news);
    w->is_shut = w->is_shut || r == -EAGAIN;
    pthread_mutex_unlock(&w->lock);
    if (r == -EAGAIN) /* a close frame would wait behind what the client does not read */
        loop_post(w->loop, drop_connection, http_websocket_ref(w));
    else if (is_news)
        loop_post(w->loop, flush, http_websocket_ref(w));
    return r;
}

static void end(void *arg)
{
    struct http_websocket *w = arg;

    w->is_ended = true;
    if (can_send(w))
        http_websocket_send(w);
    http_websocket_unref(w);
}

void http_websocket_close(struct http_websocket *w, enum websocket_code code, const char *reason)
{
    bool is_news = false, was_shut;
    struct buf frame;

    buf_init(&frame, KIB(1));
    websocket_write_close(&frame, WEBSOCKET_SERVER, code, reason);
    pthread_mutex_lock(&w->lock);
    was_shut = w->is_shut;
    (void)!append(w, buf_slice(&frame), &is_news); /* without room, the connection ends without a word */
    w->is_shut = true;
    pthread_mutex_unlock(&w->lock);
    buf_clear(&frame);
    if (!was_shut)
        loop_post(w->loop, end, http_websocket_ref(w));
}

/* ---- bytes in ---- */

size_t http_websocket_take(struct http_websocket *w, struct slice bytes)
{
    struct buf answers;
    size_t used;

    http_connection_wait(w->served->connection, WAIT_SOCKET);
    if (w->is_ended)
        return bytes.n;
    if (w->is_paused)
        return 0;
    buf_init(&answers, LIMIT_SOCKET_WAITING);
    used = websocket_reader_feed(w->reader, bytes, &answers);
    if (answers.n > 0)
        (void)!http_websocket_push(w, buf_slice(&answers));
    buf_clear(&answers);
    if (websocket_reader_is_over(w->reader)) {
        shut(w);
        loop_post(w->loop, end, http_websocket_ref(w));
        return bytes.n;
    }
    if (w->is_paused)
        event_del(&w->served->connection->readable);
    return used;
}

static void resume(void *arg)
{
    struct http_websocket *w = arg;
    struct http_connection *c = w->served ? w->served->connection : NULL;

    if (w->is_paused && c && c->state == CONNECTION_SOCKET) {
        w->is_paused = false;
        websocket_reader_go_on(w->reader);
        if (event_add(&c->readable, NULL) < 0)
            http_connection_close(c);
        else
            http_connection_go_on(c);
    }
    http_websocket_unref(w);
}

void http_websocket_resume(struct http_websocket *w)
{
    loop_post(w->loop, resume, http_websocket_ref(w));
}

/* ---- the beginning ---- */

static void begin(void *arg)
{
    struct http_websocket *w = arg;
    struct http_served *served = w->served;
    struct http_connection *c = served->connection;

    if (!c) {
        http_websocket_lose(w);
        return;
    }
    http_exchange_forget_request(&served->exchange);
    served->socket = w;
    http_connection_set_state(c, CONNECTION_SOCKET, WAIT_SOCKET);
    if (c->is_poisoned) { /* frames were dropped that came before the answer */
        http_connection_close(c);
        return;
    }
    (void)!http_websocket_ref(w);
    http_websocket_send(w);
    if (w->served && w->served->connection)
        http_connection_go_on(w->served->connection);
    http_websocket_unref(w);
}

void http_websocket_begin(struct http_websocket *w)
{
    struct http_exchange *x = &w->served->exchange;
    const struct http_reply_way way = { .keep_alive = true };

    purse_give(&x->purse, BUDGET_REQUESTS);
    x->response.status = 101;
    pthread_mutex_lock(&w->lock);
    http_reply_write_upgrade_head(&w->pending, x, &way);
    w->n_waiting = w->pending.n;
    w->is_posted = true;
    pthread_mutex_unlock(&w->lock);
    budget_force(w->holder, BUDGET_REPLIES, (int64_t)w->n_waiting);
    loop_post(w->loop, begin, http_websocket_ref(w));
}
