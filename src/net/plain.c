#include "net/plain.h"

#include "base/clock.h"
#include "base/limits.h"
#include "base/stall.h"

#include <event2/event.h>
#include <event2/event_struct.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
    READ_BYTES = 16 << 10,
    KEPT_MS = 118000 /* libcurl's maximum age of an idle connection */
};

struct plain_connection {
    struct event event; /* of reading; while connecting or sending, of writing too */
    struct plain_pool *pool;
    struct plain *user;                       /* NULL: idle */
    struct plain_connection *next, *previous; /* of the pool's idle ones, the latest first */
    struct plain_address to;
    int64_t since_ms; /* idle since */
    int fd;           /* owned */
    bool is_connected;
    short watched; /* EV_READ | EV_WRITE; 0: nothing */
};

struct plain_pool {
    struct loop *loop;                        /* borrowed */
    struct plain *first;                      /* running requests */
    struct plain_connection *latest, *oldest; /* idle ones */
    size_t n_idle;
    struct loop_timer *timer; /* owned; at due_ms or earlier than any limit of a request */
    int64_t due_ms;           /* 0: the timer is not set */
    char bytes[READ_BYTES];
};

static void on_event(evutil_socket_t fd, short what, void *arg);

/* ---- connections ---- */

static void watch(struct plain_connection *c, short wanted)
{
    if (wanted == c->watched)
        return;
    if (c->watched)
        event_del(&c->event);
    c->watched = wanted;
    if (!wanted)
        return;
    event_assign(&c->event, loop_base(c->pool->loop), c->fd, (short)(wanted | EV_PERSIST), on_event, c);
    event_add(&c->event, NULL);
}

static void unlink_idle(struct plain_connection *c)
{
    struct plain_pool *pool = c->pool;

    *(c->previous ? &c->previous->next : &pool->latest) = c->next;
    *(c->next ? &c->next->previous : &pool->oldest) = c->previous;
    c->next = c->previous = NULL;
    pool->n_idle--;
}

static void close_connection(struct plain_connection *c)
{
    watch(c, 0);
    close(c->fd);
    free(c);
}

static void close_idle(struct plain_connection *c)
{
    unlink_idle(c);
    close_connection(c);
}

static void keep_connection(struct plain_connection *c)
{
    struct plain_pool *pool = c->pool;

    if (pool->n_idle == LIMIT_UPSTREAM_IDLE)
        close_idle(pool->oldest);
    c->user = NULL;
    c->since_ms = clock_mono_ms();
    c->next = pool->latest;
    *(c->next ? &c->next->previous : &pool->oldest) = c;
    pool->latest = c;
    pool->n_idle++;
    watch(c, EV_READ);
}

static bool is_same(const struct plain_address *a, const struct plain_address *b)
{
    return a->n == b->n && memcmp(&a->at, &b->at, a->n) == 0;
}

static struct plain_connection *take_idle(struct plain_pool *pool, const struct plain_address *to)
{
    int64_t oldest_ms = clock_mono_ms() - KEPT_MS;

    while (pool->oldest && pool->oldest->since_ms < oldest_ms)
        close_idle(pool->oldest);
    for (struct plain_connection *c = pool->latest; c; c = c->next)
        if (is_same(&c->to, to)) {
            unlink_idle(c);
            return c;
        }
    return NULL;
}

/* A socket that is connecting to the checked address; a negative errno. */
static int open_socket(struct transfer *t, const struct plain_address *to)
{
    static const int on = 1;
    struct err why;
    int fd;

    err_init(&why);
    if (guard_check_self(t->peer, &to->at.any, &why) < 0) {
        *err_place(&t->refusal) = why;
        return -EPERM;
    }
    fd = socket(to->at.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    if (connect(fd, &to->at.any, to->n) < 0 && errno != EINPROGRESS) {
        int r = -errno;

        close(fd);
        return r;
    }
    return fd;
}

/* ---- the end ---- */

static void unlink_running(struct plain *p)
{
    *(p->previous ? &p->previous->next : &p->pool->first) = p->next;
    if (p->next)
        p->next->previous = p->previous;
    p->next = p->previous = NULL;
}

static void leave_connection(struct plain *p, bool may_keep)
{
    struct plain_connection *c = TAKE(p->connection);

    if (c && may_keep)
        keep_connection(c);
    else if (c)
        close_connection(c);
}

void plain_stop(struct plain *p)
{
    if (!p->pool)
        return;
    leave_connection(p, false);
    unlink_running(p);
    p->pool = NULL;
}

/* The request may be gone afterwards. */
static void end(struct plain *p, CURLcode code)
{
    struct err e;
    int r;

    err_init(&e);
    r = transfer_result(p->transfer, code, &e);
    plain_stop(p);
    p->on_end(p, r, &e);
}

/* ---- time limits ---- */

static int64_t due_of(const struct plain *p)
{
    const struct transfer *t = p->transfer;
    int64_t due_ms = transfer_due_ms(t);

    if (p->has_failed)
        return t->began_ms;
    due_ms = due_ms ? due_ms : INT64_MAX;
    if (p->total_ms)
        due_ms = MIN(due_ms, t->began_ms + p->total_ms);
    return t->is_connected ? due_ms : MIN(due_ms, p->connecting_ms + p->connect_ms);
}

static void expire(struct plain *p, int64_t now_ms)
{
    struct transfer *t = p->transfer;
    int64_t due_ms = transfer_due_ms(t);

    if (p->has_failed) {
        end(p, CURLE_COULDNT_CONNECT);
        return;
    }
    if (due_ms && due_ms <= now_ms && t->stop == 0)
        t->stop = transfer_expire(t, err_place(&t->why));
    end(p, CURLE_OPERATION_TIMEDOUT);
}

/* When the timer has to look at the request: the head, whose arrival sets no timer, begins the idle limit. */
static int64_t look_of(const struct plain *p)
{
    const struct transfer *t = p->transfer;
    int64_t due_ms = due_of(p);

    return t->is_answered || !t->idle_ms ? due_ms : MIN(due_ms, clock_mono_ms() + t->idle_ms);
}

/* The timer is set for the first limit and looked at again only when it fires: requests that end before cost nothing.
 */
static void watch_due(struct plain_pool *pool, int64_t due_ms)
{
    if (due_ms == INT64_MAX || (pool->due_ms && pool->due_ms <= due_ms))
        return;
    pool->due_ms = due_ms;
    loop_timer_set(pool->timer, MAX(due_ms - clock_mono_ms(), (int64_t)0));
}

static struct plain *first_due(struct plain_pool *pool, int64_t now_ms)
{
    for (struct plain *p = pool->first; p; p = p->next) {
        if (p->transfer->is_paused)
            p->transfer->heard_ms = now_ms;
        if (due_of(p) <= now_ms)
            return p;
    }
    return NULL;
}

static void on_timer(void *arg)
{
    struct plain_pool *pool = arg;
    int64_t now_ms = clock_mono_ms(), next_ms = INT64_MAX;
    struct plain *p;

    while ((p = first_due(pool, now_ms)))
        expire(p, now_ms);
    pool->due_ms = 0;
    for (p = pool->first; p; p = p->next)
        next_ms = MIN(next_ms, look_of(p));
    watch_due(pool, next_ms);
}

/* ---- sending ---- */

bool plain_has_sent(const struct plain *p)
{
    return p->n_sent == p->head.n + p->body.n;
}

static int send_more(struct plain *p)
{
    size_t of_head = MIN(p->n_sent, p->head.n), of_body = p->n_sent - of_head;
    struct iovec parts[] = {
        { p->head.p + of_head, p->head.n - of_head },
        { (void *)(uintptr_t)(p->body.p + of_body), p->body.n - of_body },
    };
    struct msghdr message = { .msg_iov = parts, .msg_iovlen = p->body.n > 0 ? 2 : 1 };
    ssize_t n = sendmsg(p->connection->fd, &message, MSG_NOSIGNAL);

    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -errno;
    p->n_sent += (size_t)n;
    return 0;
}

/* Reads as well while it sends: a peer may refuse a request before it has read all of it. */
static void set_watch(struct plain *p)
{
    struct plain_connection *c = p->connection;
    bool must_write = !c->is_connected || (!plain_has_sent(p) && !p->is_broken);

    watch(c, (short)((c->is_connected && !p->transfer->is_paused ? EV_READ : 0) | (must_write ? EV_WRITE : 0)));
}

/* ---- connecting ---- */

static void use(struct plain *p, struct plain_connection *c)
{
    c->user = p;
    p->connection = c;
    p->n_sent = 0;
    p->is_broken = false;
}

/* Opens a connection to the next address that takes one. -ECONNREFUSED when none is left. */
static int connect_next(struct plain *p)
{
    struct plain_connection *c;

    for (; p->at < p->n_addresses; p->at++) {
        int fd = open_socket(p->transfer, &p->addresses[p->at]);

        if (fd < 0)
            continue;
        c = xcalloc(1, sizeof(*c));
        *c = (struct plain_connection){ .pool = p->pool, .to = p->addresses[p->at], .fd = fd };
        use(p, c);
        set_watch(p);
        return 0;
    }
    return -ECONNREFUSED;
}

static int connect_anew(struct plain *p)
{
    leave_connection(p, false);
    plain_reader_init(&p->reader, p->transfer);
    p->is_reused = p->transfer->is_connected = false;
    p->connecting_ms = clock_mono_ms();
    p->at = 0;
    return connect_next(p);
}

static int finish_connect(struct plain_connection *c)
{
    int error = 0;
    socklen_t n = sizeof(error);

    if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &n) < 0)
        return -errno;
    if (error)
        return -error;
    c->is_connected = true;
    return 0;
}

/* The request may be gone afterwards. */
static void fail_connect(struct plain *p)
{
    leave_connection(p, false);
    p->at++;
    if (connect_next(p) < 0)
        end(p, CURLE_COULDNT_CONNECT);
}

/* ---- a connection that its peer has closed ---- */

/* A server closes an idle connection when it likes, maybe while a request is on its way. As nothing of an answer has
 * come, the request is sent once more, on a new connection (RFC 9112 section 9.3.1); on that one it may not fail so. */
static void connect_again(struct plain *p)
{
    p->has_failed = connect_anew(p) < 0;
    watch_due(p->pool, look_of(p));
}

/* The request may be gone afterwards. is_clean: by FIN, which may end an answer. */
static void on_closed(struct plain *p, bool is_clean)
{
    if (p->is_reused) {
        connect_again(p);
        return;
    }
    if (is_clean)
        plain_reader_end(&p->reader);
    end(p, p->reader.is_complete ? CURLE_OK : CURLE_GOT_NOTHING);
}

/* The connection is open and takes bytes. */
static void send_request(struct plain *p)
{
    int r = send_more(p);

    if (r < 0 && p->is_reused) {
        connect_again(p);
        return;
    }
    if (r < 0) /* what the peer has answered is still to be read */
        p->is_broken = true;
    set_watch(p);
}

/* ---- reading ---- */

/* The answer is complete or refused. */
static void finish(struct plain *p, bool is_all_read)
{
    bool may_keep = p->transfer->stop == 0 && is_all_read && plain_has_sent(p) && plain_reader_may_keep(&p->reader);

    leave_connection(p, may_keep);
    end(p, CURLE_OK);
}

/* False: the request may be gone. */
static bool read_bytes(struct plain *p, struct slice bytes)
{
    size_t n = plain_reader_feed(&p->reader, bytes);

    if (p->transfer->stop < 0 || p->reader.is_complete) {
        finish(p, n == bytes.n);
        return false;
    }
    if (n < bytes.n) { /* paused */
        struct slice rest = { bytes.p + n, bytes.n - n };

        buf_add_slice(&p->rest, rest);
    }
    return true;
}

static void receive(struct plain *p)
{
    struct plain_pool *pool = p->pool;
    ssize_t n = recv(p->connection->fd, pool->bytes, sizeof(pool->bytes), 0);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        on_closed(p, n == 0);
        return;
    }
    p->is_reused = false;
    p->transfer->heard_ms = clock_mono_ms();
    if (read_bytes(p, (struct slice){ pool->bytes, (size_t)n }) && p->transfer->is_paused)
        set_watch(p);
}

static void act(struct plain_connection *c, short what)
{
    struct plain *p = c->user;

    if (!c->is_connected) {
        if (finish_connect(c) < 0) {
            fail_connect(p);
            return;
        }
        p->transfer->is_connected = true;
    }
    if (what & EV_WRITE)
        send_request(p);
    if ((what & EV_READ) && p->connection == c)
        receive(p);
}

static void on_event(evutil_socket_t fd, short what, void *arg)
{
    struct plain_connection *c = arg;
    struct stall_span span = stall_begin();

    if (c->user)
        act(c, what);
    else /* closed, or bytes that no request asked for */
        close_idle(c);
    loop_measure(&span, "upstream", NULL);
}

/* ---- requests ---- */

int plain_init(struct plain *p, struct transfer *t, const struct http_call_request *request, struct err *e)
{
    const struct plain_place *place = plain_place_of(request->url);

    p->transfer = t;
    p->body = request->body;
    p->connect_ms = transfer_connect_ms(request);
    p->total_ms = request->total_ms;
    p->n_addresses = place->n_addresses;
    memcpy(p->addresses, place->addresses, sizeof(p->addresses));
    t->peer = xstrdup(place->peer);
    transfer_begin(t, request);
    plain_reader_init(&p->reader, t);
    buf_init(&p->rest, READ_BYTES);
    return plain_write_head(&p->head, request, place->head, e);
}

void plain_clear(struct plain *p)
{
    plain_stop(p);
    plain_reader_clear(&p->reader);
    buf_clear(&p->head);
    buf_clear(&p->rest);
}

static bool take_kept(struct plain *p)
{
    for (size_t i = 0; i < p->n_addresses; i++) {
        struct plain_connection *c = take_idle(p->pool, &p->addresses[i]);

        if (!c)
            continue;
        use(p, c);
        p->is_reused = p->transfer->is_connected = true;
        return true;
    }
    return false;
}

void plain_start(struct plain_pool *pool, struct plain *p)
{
    p->pool = pool;
    p->next = pool->first;
    if (p->next)
        p->next->previous = p;
    pool->first = p;
    if (take_kept(p))
        send_request(p);
    else
        p->has_failed = connect_anew(p) < 0;
    watch_due(pool, look_of(p));
}

void plain_resume(struct plain *p)
{
    struct buf rest = p->rest;
    bool is_running;

    p->transfer->heard_ms = clock_mono_ms();
    buf_init(&p->rest, READ_BYTES);
    is_running = read_bytes(p, buf_slice(&rest));
    buf_clear(&rest);
    if (is_running)
        set_watch(p);
}

struct plain_pool *plain_pool_new(struct loop *l)
{
    struct plain_pool *pool = xcalloc(1, sizeof(*pool));

    pool->loop = l;
    pool->timer = loop_timer_new(l, on_timer, pool);
    return pool;
}

struct plain_pool *plain_pool_free(struct plain_pool *pool)
{
    if (!pool)
        return NULL;
    while (pool->latest)
        close_idle(pool->latest);
    loop_timer_free(pool->timer);
    free(pool);
    return NULL;
}
