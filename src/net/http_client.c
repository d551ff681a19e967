/* Answers on the loop: plain HTTP on this machine by net/plain.h, everything else by libcurl. libcurl chooses sockets
 * and times. Its callbacks only record state or pass bytes on; handles are added and removed in posts. */
#include "net/http_client.h"

#include "base/clock.h"
#include "base/limits.h"
#include "base/stall.h"
#include "net/plain.h"
#include "net/transfer.h"

#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdlib.h>
#include <string.h>

enum {
    FETCH_BUFFER_BYTES = 1024, /* room for a few events; one buffer for each stream */
    MOST_KITS = 32
};

struct http_client {
    struct loop *loop;                   /* borrowed */
    CURLM *multi;                        /* owned; NULL: closed */
    struct loop_timer *timer;            /* owned; libcurl's timer */
    struct plain_pool *plain;            /* owned; NULL: closed */
    struct http_fetch *first;            /* running fetches */
    bool is_inside;                      /* libcurl is running: it takes no further handles */
    struct transfer_kit kits[MOST_KITS]; /* owned; of requests that have ended, the latest last */
    size_t n_kits;
    atomic_size_t n_refs; /* one of the owner, one of each fetch */
};

struct http_fetch {
    struct transfer transfer;   /* first; easy NULL: not started, ended, or is_plain */
    struct plain plain;         /* of is_plain */
    struct http_client *client; /* a reference */
    struct http_fetch *next, *previous;
    struct loop_timer *deadline; /* owned; first byte and idle */
    struct http_fetch_events events;
    void *arg;
    char *body;
    size_t n_body;        /* owned; the request's body; NULL: none, lent, or sent */
    bool is_lent;         /* the lent body may still be read */
    atomic_size_t n_refs; /* one of the caller, one while running, one of each pending post */
    atomic_bool is_cancelled;
    bool is_plain, is_ended; /* loop thread */
    struct played *played;   /* owned; NULL: the answer comes over the network */
};

/* An answer made inside this process, and how much of it was delivered. */
struct played {
    struct arena *arena; /* owned; holds this and the answer */
    struct http_inside answer;
    size_t n_pieces;
    int64_t next_ms; /* clock_mono_ms() of the next piece */
};

/* A socket that libcurl wants to be watched. */
struct watch {
    struct event event;
    struct http_client *client;
};

static struct http_client *client_unref(struct http_client *c)
{
    if (atomic_fetch_sub(&c->n_refs, 1) == 1)
        free(c);
    return NULL;
}

struct http_fetch *http_fetch_unref(struct http_fetch *f)
{
    if (!f || atomic_fetch_sub(&f->n_refs, 1) > 1)
        return NULL;
    plain_clear(&f->plain);
    transfer_clear(&f->transfer);
    client_unref(f->client);
    if (f->played)
        arena_free(f->played->arena);
    free(f->body);
    free(f);
    return NULL;
}

static void post_with_ref(struct http_fetch *f, void (*fn)(void *arg))
{
    atomic_fetch_add(&f->n_refs, 1);
    loop_post(f->client->loop, fn, f);
}

/* ---- the end of one fetch ---- */

static void unlink_fetch(struct http_fetch *f)
{
    struct http_client *c = f->client;

    if (f->previous)
        f->previous->next = f->next;
    else if (c->first == f)
        c->first = f->next;
    if (f->next)
        f->next->previous = f->previous;
    f->next = f->previous = NULL;
}

/* ---- handles for the next requests; loop thread ---- */

static void drop_kit(struct http_client *c, size_t i)
{
    memmove(&c->kits[i], &c->kits[i + 1], (--c->n_kits - i) * sizeof(*c->kits));
}

static void keep_kit(struct http_client *c, struct transfer *t)
{
    struct transfer_kit kit;

    if (!transfer_keep(t, &kit))
        return;
    if (c->n_kits == MOST_KITS) {
        transfer_kit_clear(&c->kits[0]);
        drop_kit(c, 0);
    }
    c->kits[c->n_kits++] = kit;
}

static bool take_kit(struct http_client *c, const struct http_call_request *request, long buffer_bytes,
                     struct transfer_kit *ret)
{
    for (size_t i = loop_is_current(c->loop) ? c->n_kits : 0; i-- > 0;)
        if (transfer_kit_fits(&c->kits[i], request, buffer_bytes)) {
            *ret = c->kits[i];
            drop_kit(c, i);
            return true;
        }
    return false;
}

static void clear_kits(struct http_client *c)
{
    for (size_t i = 0; i < c->n_kits; i++)
        transfer_kit_clear(&c->kits[i]);
    c->n_kits = 0;
}

/* Must not be called inside a callback of libcurl. */
static void end_fetch(struct http_fetch *f, int r, const struct err *e)
{
    if (f->is_ended)
        return;
    f->is_ended = true;
    if (f->client->multi && f->transfer.easy)
        curl_multi_remove_handle(f->client->multi, f->transfer.easy);
    plain_stop(&f->plain);
    unlink_fetch(f);
    f->deadline = loop_timer_free(f->deadline);
    if (r == 0 && f->client->multi && !f->is_plain)
        keep_kit(f->client, &f->transfer);
    transfer_clear(&f->transfer);
    f->events.on_end(f->arg, r, e);
    http_fetch_unref(f);
}

static void cancel_now(struct http_fetch *f)
{
    struct err e;

    err_init(&e);
    end_fetch(f, err_set(&e, -ECANCELED, "SHUTTING_DOWN", "The request was cancelled."), &e);
}

static void end_finished(struct http_client *c)
{
    CURLMsg *message;
    int n_left;

    while (c->multi && (message = curl_multi_info_read(c->multi, &n_left))) {
        CURLcode code = message->data.result;
        struct transfer *t = NULL;
        struct err e;
        int r;

        if (message->msg != CURLMSG_DONE)
            continue;
        err_init(&e);
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&t);
        r = transfer_result(t, code, &e);
        end_fetch(CONTAINER_OF(t, struct http_fetch, transfer), r, &e);
    }
}

/* ---- libcurl's sockets and clock ---- */

static void act(struct http_client *c, curl_socket_t fd, int what)
{
    int n_running;

    c->is_inside = true;
    curl_multi_socket_action(c->multi, fd, what, &n_running);
    c->is_inside = false;
    end_finished(c);
}

static void on_socket(evutil_socket_t fd, short what, void *arg)
{
    struct watch *w = arg;
    struct stall_span span = stall_begin();

    act(w->client, fd, (what & EV_READ ? CURL_CSELECT_IN : 0) | (what & EV_WRITE ? CURL_CSELECT_OUT : 0));
    loop_measure(&span, "an upstream", NULL);
}

static void on_timer(void *arg)
{
    act(arg, CURL_SOCKET_TIMEOUT, 0);
}

static int set_timer(CURLM *multi, long after_ms, void *arg)
{
    struct http_client *c = arg;

    if (after_ms < 0)
        loop_timer_cancel(c->timer);
    else
        loop_timer_set(c->timer, after_ms);
    return 0;
}

static void drop_watch(struct http_client *c, curl_socket_t fd, struct watch *w)
{
    if (!w)
        return;
    event_del(&w->event);
    free(w);
    curl_multi_assign(c->multi, fd, NULL);
}

static int set_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *socket_arg)
{
    struct http_client *c = arg;
    struct watch *w = socket_arg;
    short wanted = (short)((what & CURL_POLL_IN ? EV_READ : 0) | (what & CURL_POLL_OUT ? EV_WRITE : 0) | EV_PERSIST);

    if (what == CURL_POLL_REMOVE) {
        drop_watch(c, fd, w);
        return 0;
    }
    if (w) {
        event_del(&w->event);
    } else {
        w = xcalloc(1, sizeof(*w));
        w->client = c;
        curl_multi_assign(c->multi, fd, w);
    }
    event_assign(&w->event, loop_base(c->loop), fd, wanted, on_socket, w);
    event_add(&w->event, NULL);
    return 0;
}

int http_client_new(struct loop *l, struct http_client **ret, struct err *e)
{
    struct http_client *c = xcalloc(1, sizeof(*c));

    transfer_setup();
    c->loop = l;
    atomic_init(&c->n_refs, 1);
    c->multi = curl_multi_init();
    if (!c->multi) {
        free(c);
        return err_set(e, -EIO, "INTERNAL_ERROR", "libcurl could not be started.");
    }
    c->timer = loop_timer_new(l, on_timer, c);
    c->plain = plain_pool_new(l);
    curl_multi_setopt(c->multi, CURLMOPT_SOCKETFUNCTION, set_socket);
    curl_multi_setopt(c->multi, CURLMOPT_SOCKETDATA, c);
    curl_multi_setopt(c->multi, CURLMOPT_TIMERFUNCTION, set_timer);
    curl_multi_setopt(c->multi, CURLMOPT_TIMERDATA, c);
    curl_multi_setopt(c->multi, CURLMOPT_MAXCONNECTS, (long)LIMIT_UPSTREAM_IDLE);
    *ret = c;
    return 0;
}

struct http_client *http_client_free(struct http_client *c)
{
    if (!c)
        return NULL;
    while (c->first)
        cancel_now(c->first);
    clear_kits(c);
    curl_multi_cleanup(c->multi);
    c->multi = NULL;
    c->plain = plain_pool_free(c->plain);
    c->timer = loop_timer_free(c->timer);
    return client_unref(c);
}

/* ---- one fetch ---- */

static bool has_sent_body(const struct http_fetch *f)
{
    curl_off_t n_sent = 0;

    if (f->is_plain)
        return plain_has_sent(&f->plain);
    curl_easy_getinfo(f->transfer.easy, CURLINFO_SIZE_UPLOAD_T, &n_sent);
    return n_sent >= (curl_off_t)f->n_body;
}

/* Frees the body when all of it was sent: once an answer begins, it is not read again. */
static void forget_body(struct http_fetch *f)
{
    if (!has_sent_body(f))
        return;
    free(f->body);
    f->body = NULL;
    f->is_lent = false;
}

bool http_fetch_has_sent(const struct http_fetch *f)
{
    return f->is_ended || !f->is_lent;
}

static void notify_head(struct transfer *t)
{
    struct http_fetch *f = CONTAINER_OF(t, struct http_fetch, transfer);

    f->events.on_head(f->arg, &t->head);
    t->head = (struct http_answer){ .status = t->head.status };
    t->arena = arena_free(t->arena);
    forget_body(f);
}

static size_t notify_bytes(struct transfer *t, struct slice bytes)
{
    struct http_fetch *f = CONTAINER_OF(t, struct http_fetch, transfer);
    int r;

    if (t->is_paused)
        return CURL_WRITEFUNC_PAUSE; /* libcurl keeps the bytes */
    r = f->events.on_bytes(f->arg, bytes);
    if (r == -EAGAIN)
        t->is_paused = true;
    else if (r < 0)
        t->stop = r;
    return t->stop < 0 ? 0 : bytes.n;
}

/* Sets the timer once and checks the deadline when it fires, so that the bytes of a stream do not reset the timer. */
static void watch_deadline(struct http_fetch *f)
{
    const struct transfer *t = &f->transfer;
    int64_t due_ms = transfer_due_ms(t), wait_ms = due_ms ? MAX(due_ms - clock_mono_ms(), (int64_t)0) : INT64_MAX;

    if (!t->is_answered && t->idle_ms) /* after the head only the idle limit applies */
        wait_ms = MIN(wait_ms, t->idle_ms);
    if (wait_ms < INT64_MAX)
        loop_timer_set(f->deadline, wait_ms);
}

static void on_deadline(void *arg)
{
    struct http_fetch *f = arg;
    int64_t due_ms;
    struct err e = { 0 };

    if (f->transfer.is_paused)
        f->transfer.heard_ms = clock_mono_ms();
    due_ms = transfer_due_ms(&f->transfer);
    if (due_ms && due_ms <= clock_mono_ms())
        end_fetch(f, transfer_expire(&f->transfer, &e), &e);
    else
        watch_deadline(f);
}

/* ---- an answer made inside this process ---- */

static struct played *copy_inside(const struct http_inside *from)
{
    struct arena *a = arena_new_sized(sizeof(struct played) + from->n_pieces * sizeof(struct slice));
    struct played *p = ARENA_NEW(a, struct played);
    struct http_call_header *headers = arena_array(a, from->n_headers, sizeof(*headers));
    struct slice *pieces = arena_array(a, from->n_pieces, sizeof(*pieces));

    *p = (struct played){ .arena = a, .answer = *from };
    for (size_t i = 0; i < from->n_headers; i++)
        headers[i] = (struct http_call_header){ arena_strdup(a, from->headers[i].name),
                                                arena_strdup(a, from->headers[i].value) };
    for (size_t i = 0; i < from->n_pieces; i++)
        pieces[i] = (struct slice){ arena_slicedup(a, from->pieces[i]), from->pieces[i].n };
    p->answer.headers = headers;
    p->answer.pieces = pieces;
    return p;
}

static void end_played(struct http_fetch *f, int r)
{
    struct err e;

    err_init(&e);
    if (r == -ETIMEDOUT)
        r = transfer_expire(&f->transfer, &e);
    else if (r == 0 && f->played->answer.is_cut)
        r = transfer_result(&f->transfer, CURLE_RECV_ERROR, &e);
    end_fetch(f, r, &e);
}

static void play_piece(struct http_fetch *f)
{
    struct transfer *t = &f->transfer;
    struct played *p = f->played;
    int r = 0;

    t->heard_ms = clock_mono_ms();
    p->next_ms = t->heard_ms + p->answer.piece_ms;
    if (!t->is_answered) {
        t->is_answered = true;
        f->events.on_head(f->arg, &(struct http_answer){ .status = p->answer.status,
                                                         .headers = (struct http_call_header *)p->answer.headers,
                                                         .n_headers = p->answer.n_headers });
    }
    if (p->n_pieces < p->answer.n_pieces)
        r = f->events.on_bytes(f->arg, p->answer.pieces[p->n_pieces++]);
    f->transfer.is_paused = r == -EAGAIN;
    if (r < 0 && r != -EAGAIN)
        end_played(f, r);
    else if (r == 0)
        loop_timer_set(f->deadline, 0);
}

/* One piece for each turn of the loop. A piece that was due before the limit comes in time, however late the loop. */
static void play(void *arg)
{
    struct http_fetch *f = arg;
    int64_t due_ms = transfer_due_ms(&f->transfer), now_ms = clock_mono_ms();

    if (f->transfer.is_paused)
        return;
    if (f->transfer.is_answered && f->played->n_pieces == f->played->answer.n_pieces)
        end_played(f, 0);
    else if (due_ms && due_ms <= now_ms && due_ms < f->played->next_ms)
        end_played(f, -ETIMEDOUT);
    else if (now_ms < f->played->next_ms)
        loop_timer_set(f->deadline, (due_ms ? MIN(due_ms, f->played->next_ms) : f->played->next_ms) - now_ms);
    else
        play_piece(f);
}

static void add_played(struct http_fetch *f)
{
    f->deadline = loop_timer_new(f->client->loop, play, f);
    f->played->next_ms = clock_mono_ms() + f->played->answer.piece_ms;
    loop_timer_set(f->deadline, 0);
}

static void on_plain_end(struct plain *p, int r, const struct err *e)
{
    end_fetch(CONTAINER_OF(p, struct http_fetch, plain), r, e);
}

/* Adding calls none of the fetch's events: libcurl begins at its next turn. */
static void add_fetch(struct http_fetch *f)
{
    struct http_client *c = f->client;

    f->next = c->first;
    if (c->first)
        c->first->previous = f;
    c->first = f;
    f->transfer.began_ms = clock_mono_ms();
    if (f->played) {
        add_played(f);
        return;
    }
    if (f->is_plain) {
        plain_start(c->plain, &f->plain);
        return;
    }
    f->deadline = loop_timer_new(c->loop, on_deadline, f);
    watch_deadline(f);
    curl_multi_add_handle(c->multi, f->transfer.easy);
}

static void begin_fetch(void *arg)
{
    struct http_fetch *f = arg;

    if (!f->client->multi || atomic_load(&f->is_cancelled))
        cancel_now(f);
    else
        add_fetch(f);
    http_fetch_unref(f);
}

static int prepare(struct http_fetch *f, const struct http_call_request *request, struct err *e)
{
    long buffer_bytes = request->buffer_bytes ? (long)request->buffer_bytes : FETCH_BUFFER_BYTES;
    struct transfer_kit kit;
    int r;

    if (request->inside) {
        f->played = copy_inside(request->inside);
        transfer_init_inside(&f->transfer, request);
        return 0;
    }
    f->is_plain = plain_serves(request);
    if (f->is_plain)
        return plain_init(&f->plain, &f->transfer, request, e);
    r = take_kit(f->client, request, buffer_bytes, &kit)
            ? transfer_init_again(&f->transfer, &kit, request, e)
            : transfer_init(&f->transfer, curl_easy_init(), request, buffer_bytes, e);
    if (r == 0 && request->guard) { /* the loop's other connections were opened without the guard */
        curl_easy_setopt(f->transfer.easy, CURLOPT_FRESH_CONNECT, 1L);
        curl_easy_setopt(f->transfer.easy, CURLOPT_FORBID_REUSE, 1L);
    }
    return r;
}

int http_fetch_start(struct http_client *c, const struct http_call_request *request, const struct http_fetch_events *ev,
                     void *arg, struct http_fetch **ret, struct err *e)
{
    struct http_fetch *f = xcalloc(1, sizeof(*f));
    struct http_call_request own = *request;
    int r;

    f->client = c;
    atomic_fetch_add(&c->n_refs, 1);
    atomic_init(&f->n_refs, 1);
    f->events = *ev;
    f->arg = arg;
    f->n_body = request->body.n;
    f->is_lent = request->is_body_lent && request->body.n > 0;
    if (request->body.n > 0 && !request->is_body_lent) {
        f->body = xcalloc(1, request->body.n);
        memcpy(f->body, request->body.p, request->body.n);
        own.body.p = f->body;
    }
    f->transfer.on_head = notify_head;
    f->transfer.on_bytes = notify_bytes;
    f->plain.on_end = on_plain_end;
    r = prepare(f, &own, e);
    if (r < 0) {
        http_fetch_unref(f);
        return r;
    }
    *ret = f;
    atomic_fetch_add(&f->n_refs, 1); /* held until on_end */
    if (loop_is_current(c->loop) && c->multi && (!c->is_inside || f->is_plain))
        add_fetch(f);
    else
        post_with_ref(f, begin_fetch);
    return 0;
}

static void resume_now(void *arg)
{
    struct http_fetch *f = arg;

    if (!f->is_ended && f->played) {
        f->transfer.is_paused = false;
        f->transfer.heard_ms = clock_mono_ms();
        loop_timer_set(f->deadline, 0);
    } else if (!f->is_ended && f->is_plain) {
        f->transfer.is_paused = false;
        plain_resume(&f->plain);
    } else if (!f->is_ended) {
        f->transfer.is_paused = false;
        f->transfer.heard_ms = clock_mono_ms();
        f->client->is_inside = true;
        curl_easy_pause(f->transfer.easy, CURLPAUSE_CONT);
        f->client->is_inside = false;
        if (f->transfer.stop < 0) {
            struct err e = { 0 };
            int r = transfer_result(&f->transfer, CURLE_OK, &e);

            end_fetch(f, r, &e);
        }
    }
    http_fetch_unref(f);
}

void http_fetch_resume(struct http_fetch *f)
{
    post_with_ref(f, resume_now);
}

static void cancel_posted(void *arg)
{
    struct http_fetch *f = arg;

    cancel_now(f);
    http_fetch_unref(f);
}

void http_fetch_cancel(struct http_fetch *f)
{
    if (!atomic_exchange(&f->is_cancelled, true))
        post_with_ref(f, cancel_posted);
}
