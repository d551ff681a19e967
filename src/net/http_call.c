/* Blocking calls of workers. Each call has a multi handle of its own while it runs; afterwards the handle keeps its
 * connection for the next call to the same peer (net/idle.h). */
#include "base/buf.h"
#include "base/clock.h"
#include "base/limits.h"
#include "net/idle.h"
#include "net/pay.h"
#include "net/transfer.h"

#include <stdlib.h>
#include <unistd.h>

enum { CALL_BUFFER_BYTES = 32 << 10, GONE_POLL_MS = 50, LONGEST_POLL_MS = 1000, PAID_BYTES = 1 << 20, COST_A_BYTE = 4 };

struct call {
    struct transfer transfer; /* first */
    struct buf body;
    struct budget_holder *holder; /* borrowed */
    struct arena *arena;          /* of the answer */
    size_t n_paid;                /* bytes of the body paid so far */
};

struct wanted {
    const atomic_bool *is_gone, *is_moot;
};

/* Pays for the body, its copy and the parsed result. */
static int pay(struct call *call, struct err *e)
{
    int r = 0;

    while (r == 0 && call->holder && call->body.n >= call->n_paid + PAID_BYTES) {
        r = net_pay(call->holder, call->arena, (size_t)COST_A_BYTE * PAID_BYTES, e);
        call->n_paid += PAID_BYTES;
    }
    return r;
}

static size_t take_bytes(struct transfer *t, struct slice bytes)
{
    struct call *call = CONTAINER_OF(t, struct call, transfer);
    struct err why;

    err_init(&why);
    buf_add_slice(&call->body, bytes);
    if (!call->body.overflowed) {
        t->stop = pay(call, &why);
        if (t->stop < 0)
            *err_place(&t->why) = why;
        return t->stop < 0 ? 0 : bytes.n;
    }
    t->stop = err_set(err_place(&t->why), -EMSGSIZE, "UPSTREAM_TOO_LARGE", "%s answered with more than %zu bytes.",
                      t->peer, call->body.max);
    return 0;
}

/* `stop` of a call whose answer is complete with its head; no error of http_call(). */
enum { HEAD_SUFFICES = -EALREADY };

static void leave_body(struct transfer *t)
{
    if (t->head.status != 200)
        t->stop = HEAD_SUFFICES;
}

/* Milliseconds that poll may wait; -ETIMEDOUT, -ECANCELED. */
static int next_wait(struct transfer *t, const struct wanted *wanted, struct err *e)
{
    int64_t due_ms = transfer_due_ms(t), wait_ms = wanted->is_gone || wanted->is_moot ? GONE_POLL_MS : LONGEST_POLL_MS;

    if (wanted->is_gone && atomic_load(wanted->is_gone))
        return err_set(e, -ECANCELED, "SHUTTING_DOWN", "The client has left or the service is stopping.");
    if (wanted->is_moot && atomic_load(wanted->is_moot))
        return err_set(e, -ECANCELED, "SHUTTING_DOWN", "The answer is of no use any more.");
    if (due_ms == 0)
        return (int)wait_ms;
    due_ms -= clock_mono_ms();
    return due_ms <= 0 ? transfer_expire(t, e) : (int)MIN(wait_ms, due_ms);
}

static int run(CURLM *multi, struct transfer *t, const struct wanted *wanted, struct err *e)
{
    int n_running = 1, wait_ms;

    for (;;) {
        if (curl_multi_perform(multi, &n_running) != CURLM_OK)
            return err_set(e, -EIO, "INTERNAL_ERROR", "libcurl could not go on with a request.");
        if (n_running == 0)
            return transfer_result(t, transfer_code_of(multi), e);
        wait_ms = next_wait(t, wanted, e);
        if (wait_ms < 0)
            return wait_ms;
        curl_multi_poll(multi, NULL, 0, wait_ms, NULL);
    }
}

/* The connection of a failed call is not used again. */
static int run_call(struct transfer *t, const struct http_call_request *request, const atomic_bool *is_gone,
                    struct err *e)
{
    CURLM *multi = request->is_sent_once ? curl_multi_init() : idle_take(t->peer, request->guard);
    int r;

    curl_multi_add_handle(multi, t->easy);
    r = run(multi, t, &(struct wanted){ is_gone, request->is_moot }, e);
    curl_multi_remove_handle(multi, t->easy);
    if (r == 0 && !request->is_sent_once)
        idle_give(multi, t->peer, request->guard);
    else
        curl_multi_cleanup(multi);
    return r;
}

/* ---- an answer made inside this process ---- */

static int wait_until(struct transfer *t, const struct wanted *wanted, int64_t due_ms, struct err *e)
{
    int64_t left_ms = due_ms - clock_mono_ms();

    while (left_ms > 0) {
        int wait_ms = next_wait(t, wanted, e);

        if (wait_ms < 0)
            return wait_ms;
        usleep((useconds_t)MIN(left_ms, (int64_t)wait_ms) * 1000);
        left_ms = due_ms - clock_mono_ms();
    }
    return 0;
}

static int play(struct call *call, const struct http_call_request *request, const atomic_bool *is_gone, struct err *e)
{
    const struct http_inside *inside = request->inside;
    const struct wanted wanted = { is_gone, request->is_moot };
    struct transfer *t = &call->transfer;
    int r;

    transfer_init_inside(t, request);
    r = wait_until(t, &wanted, t->began_ms + (inside->n_pieces ? 0 : inside->piece_ms), e);
    for (size_t i = 0; r == 0 && i < inside->n_pieces; i++) {
        r = wait_until(t, &wanted, clock_mono_ms() + inside->piece_ms, e);
        t->is_answered = true;
        t->heard_ms = clock_mono_ms();
        if (r == 0 && take_bytes(t, inside->pieces[i]) < inside->pieces[i].n)
            r = transfer_result(t, CURLE_OK, e);
    }
    t->head = (struct http_answer){ .status = inside->status,
                                    .headers = (struct http_call_header *)inside->headers,
                                    .n_headers = inside->n_headers };
    return r == 0 && inside->is_cut ? transfer_result(t, CURLE_RECV_ERROR, e) : r;
}

static int copy_answer(struct arena *a, struct call *call, struct http_answer *ret, struct err *e)
{
    const struct http_answer *head = &call->transfer.head;
    struct http_call_header *headers;

    if (!arena_has_room(a, call->body.n + 2 * (size_t)LIMIT_UPSTREAM_HEAD))
        return err_set(e, -EMSGSIZE, "UPSTREAM_TOO_LARGE", "%s answered with more than one request may hold.",
                       call->transfer.peer);
    headers = arena_array(a, head->n_headers + 1, sizeof(*headers));
    for (size_t i = 0; i < head->n_headers; i++)
        headers[i] = (struct http_call_header){ arena_strdup(a, head->headers[i].name),
                                                arena_strdup(a, head->headers[i].value) };
    *ret = (struct http_answer){
        head->status, { arena_slicedup(a, buf_slice(&call->body)), call->body.n }, headers, head->n_headers
    };
    return 0;
}

static int perform(struct call *call, const struct http_call_request *request, const atomic_bool *is_gone,
                   struct err *e)
{
    int r;

    transfer_setup();
    r = transfer_init(&call->transfer, curl_easy_init(), request, CALL_BUFFER_BYTES, e);
    if (r == 0)
        r = run_call(&call->transfer, request, is_gone, e);
    return r == HEAD_SUFFICES ? 0 : r;
}

int http_call(const struct http_call_request *request, struct arena *a, const atomic_bool *is_gone,
              struct http_answer *ret, struct err *e)
{
    struct call call = { .transfer = { .on_bytes = take_bytes }, .holder = request->holder, .arena = a };
    int r;

    if (request->reads_only_ok)
        call.transfer.on_head = leave_body;
    buf_init(&call.body, request->max_reply ? request->max_reply : LIMIT_REPLY);
    r = request->inside ? play(&call, request, is_gone, e) : perform(&call, request, is_gone, e);
    if (r == 0)
        r = copy_answer(a, &call, ret, e);
    buf_clear(&call.body);
    transfer_clear(&call.transfer);
    return r;
}

void http_call_close_idle(int64_t age_ms)
{
    idle_close(age_ms);
}
