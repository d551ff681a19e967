#include "net/http_pull.h"

#include "base/clock.h"
#include "net/idle.h"
#include "net/transfer.h"

#include <pthread.h>
#include <stdlib.h>

enum {
    PULL_BUFFER_BYTES = 32 << 10,
    HELD_BYTES = 64 << 10, /* arrived and not read yet; beyond it the transfer is paused */
    FLAG_POLL_MS = 50,     /* interval at which the flags of the wait are checked */
    LONGEST_POLL_MS = 1000
};

struct http_pull {
    struct transfer transfer;  /* first */
    pthread_mutex_t lock;      /* of multi, against http_pull_cancel() */
    CURLM *multi;              /* owned; NULL before http_pull_open() */
    const struct guard *guard; /* borrowed */
    struct buf held;
    size_t n_body, max_body; /* max_body 0: no limit */
    bool is_lent;            /* the bytes in held were returned by the last call */
    bool has_ended;
    CURLcode code; /* of the end */
    atomic_bool is_cancelled;
};

struct http_pull *http_pull_new(void)
{
    struct http_pull *s = xcalloc(1, sizeof(*s));

    pthread_mutex_init(&s->lock, NULL);
    buf_init(&s->held, HELD_BYTES + PULL_BUFFER_BYTES);
    return s;
}

/* ---- the transfer's bytes ---- */

static size_t hold_bytes(struct transfer *t, struct slice bytes)
{
    struct http_pull *s = CONTAINER_OF(t, struct http_pull, transfer);
    bool is_above;

    if (s->held.n > 0 && s->held.n + bytes.n > HELD_BYTES) {
        t->is_paused = true;
        return CURL_WRITEFUNC_PAUSE; /* libcurl keeps the bytes */
    }
    s->n_body += bytes.n;
    is_above = s->max_body && s->n_body > s->max_body;
    if (!is_above) /* what is above the limit is not read either */
        buf_add_slice(&s->held, bytes);
    if (is_above || s->held.overflowed) {
        t->stop = err_set(err_place(&t->why), -EMSGSIZE, "UPSTREAM_TOO_LARGE", "%s answered with more than %zu bytes.",
                          t->peer, s->max_body);
        return 0;
    }
    return bytes.n;
}

/* ---- waiting ---- */

/* Milliseconds that poll may wait; the errors of net_wait_left() and transfer_expire(). */
static int64_t next_wait(struct http_pull *s, const struct net_wait *wait, struct err *e)
{
    int64_t due_ms = transfer_due_ms(&s->transfer), left_ms = net_wait_left(wait, e);
    int64_t poll_ms = wait->is_gone || wait->is_leaving ? FLAG_POLL_MS : LONGEST_POLL_MS;

    if (left_ms < 0)
        return left_ms;
    if (atomic_load(&s->is_cancelled))
        return err_set(e, -ECANCELED, "SHUTTING_DOWN", "The request was cancelled.");
    if (due_ms && due_ms <= clock_mono_ms())
        return transfer_expire(&s->transfer, e);
    poll_ms = MIN(poll_ms, left_ms);
    return due_ms ? MIN(poll_ms, MAX(due_ms - clock_mono_ms(), (int64_t)1)) : poll_ms;
}

static int go_on(struct http_pull *s, struct err *e)
{
    int n_running = 1;

    if (curl_multi_perform(s->multi, &n_running) != CURLM_OK)
        return err_set(e, -EIO, "INTERNAL_ERROR", "libcurl could not go on with a request.");
    if (n_running == 0) {
        s->has_ended = true;
        s->code = transfer_code_of(s->multi);
    }
    return 0;
}

/* One step: whatever can be done now, or one wait for the peer. */
static int step(struct http_pull *s, const struct net_wait *wait, struct err *e)
{
    bool was_answered = s->transfer.is_answered;
    int64_t wait_ms;
    int r = go_on(s, e);

    if (r < 0 || s->has_ended || s->held.n > 0 || s->transfer.is_answered != was_answered)
        return r;
    wait_ms = next_wait(s, wait, e);
    if (wait_ms < 0)
        return (int)wait_ms;
    curl_multi_poll(s->multi, NULL, 0, (int)wait_ms, NULL);
    return 0;
}

/* ---- one answer ---- */

static void set_multi(struct http_pull *s, CURLM *multi)
{
    pthread_mutex_lock(&s->lock);
    s->multi = multi;
    pthread_mutex_unlock(&s->lock);
}

int http_pull_open(struct http_pull *s, const struct http_call_request *request, const struct net_wait *wait,
                   struct err *e)
{
    int r;

    transfer_setup();
    s->transfer.on_bytes = hold_bytes;
    s->guard = request->guard;
    s->max_body = request->max_reply;
    r = transfer_init(&s->transfer, curl_easy_init(), request, PULL_BUFFER_BYTES, e);
    if (r < 0)
        return r;
    set_multi(s, idle_take(s->transfer.peer, s->guard));
    curl_multi_add_handle(s->multi, s->transfer.easy);
    while (r == 0 && !s->transfer.is_answered && !s->has_ended)
        r = step(s, wait, e);
    return r == 0 && !s->transfer.is_answered ? transfer_result(&s->transfer, s->code, e) : r;
}

const struct http_answer *http_pull_head(const struct http_pull *s)
{
    return &s->transfer.head;
}

/* The waiting time of a reader that did not read does not count as the peer's silence. */
static void unpause(struct http_pull *s)
{
    s->transfer.is_paused = false;
    s->transfer.heard_ms = clock_mono_ms();
    curl_easy_pause(s->transfer.easy, CURLPAUSE_CONT);
}

int http_pull_read(struct http_pull *s, const struct net_wait *wait, struct slice *ret, struct err *e)
{
    int r = 0;

    if (s->is_lent)
        buf_reset(&s->held);
    s->is_lent = false;
    if (s->held.n == 0 && s->transfer.is_paused)
        unpause(s);
    while (r == 0 && s->held.n == 0 && !s->has_ended)
        r = step(s, wait, e);
    if (r == 0 && s->held.n == 0)
        r = transfer_result(&s->transfer, s->code, e);
    if (r < 0)
        return r;
    s->is_lent = s->held.n > 0;
    *ret = buf_slice(&s->held);
    return 0;
}

int http_pull_read_all(struct http_pull *s, const struct net_wait *wait, struct buf *out, struct err *e)
{
    struct slice bytes = { NULL, 1 };
    int r = 0;

    while (r == 0 && bytes.n > 0) {
        r = http_pull_read(s, wait, &bytes, e);
        if (r == 0)
            buf_add_slice(out, bytes);
        if (r == 0 && out->overflowed)
            r = err_set(e, -EMSGSIZE, "UPSTREAM_TOO_LARGE", "%s answered with more than %zu bytes.", s->transfer.peer,
                        out->max);
    }
    return r;
}

void http_pull_cancel(struct http_pull *s)
{
    atomic_store(&s->is_cancelled, true);
    pthread_mutex_lock(&s->lock);
    if (s->multi)
        curl_multi_wakeup(s->multi);
    pthread_mutex_unlock(&s->lock);
}

/* An answer whose end has arrived, or arrives with the bytes that wait in the socket, leaves its connection to others.
 */
static void give_back(struct http_pull *s)
{
    CURLM *multi = s->multi;

    if (!s->has_ended && s->transfer.is_answered && !s->transfer.is_paused && s->transfer.stop == 0)
        (void)!go_on(s, NULL);
    set_multi(s, NULL);
    curl_multi_remove_handle(multi, s->transfer.easy);
    if (s->has_ended && s->code == CURLE_OK)
        idle_give(multi, s->transfer.peer, s->guard);
    else
        curl_multi_cleanup(multi);
}

struct http_pull *http_pull_free(struct http_pull *s)
{
    if (!s)
        return NULL;
    if (s->multi)
        give_back(s);
    transfer_clear(&s->transfer);
    buf_clear(&s->held);
    pthread_mutex_destroy(&s->lock);
    free(s);
    return NULL;
}
