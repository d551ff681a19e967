#include "api/admission.h"

#include "base/clock.h"
#include "base/limits.h"
#include "base/memory.h"

#include <stdlib.h>
#include <sys/queue.h>

enum { LOOK_EVERY_MS = 50, REFUSED_A_TURN = 8, COPIES_OF_BODY = 2, BYTES_OF_VALUE = 32, ADDRESSES_OF_BODY = 24 };

struct waiter {
    TAILQ_ENTRY(waiter) links;
    struct http_exchange *x; /* borrowed: it is not answered before fn */
    int64_t until_ms, n_bytes;
    size_t n_addresses; /* address space, in bytes, that reading the body needs; most of it is never touched */
    void (*fn)(void *arg, int r, struct err *e);
    void *arg;
};

TAILQ_HEAD(waiters, waiter);

struct admission {
    struct waiters waiters; /* owned; in order of arrival */
    size_t n;
    struct loop_timer *timer; /* owned */
};

/* The most memory that a body needs while it is parsed (base/json.h). */
static int64_t bytes_needed(const struct http_request *request)
{
    return (int64_t)request->body.n * COPIES_OF_BODY + (int64_t)request->n_body_values * BYTES_OF_VALUE;
}

/* Bodies and answers in transfer, plus the larger of two sums: what running requests were promised, and what they have
 * taken. */
static int64_t memory_taken(void)
{
    return MAX((int64_t)arena_total(), budget_total(BUDGET_MEMORY)) + budget_total(BUDGET_BODY) +
           budget_total(BUDGET_REPLIES);
}

/* One large request always proceeds, however much is taken, so that waiting requests do not wait for each other. */
static bool has_memory(const struct budget_holder *h, int64_t n, bool *ret_is_own)
{
    int64_t limit = budget_total_limit(BUDGET_MEMORY);

    if (!budget_has_room(h, BUDGET_MEMORY, n, ret_is_own))
        return false;
    return budget_holder_kind(h) == HOLDER_ADMIN || budget_total(BUDGET_MEMORY) == 0 ||
           n <= limit - MIN(memory_taken(), limit);
}

/* Running requests may still take what was promised to them. The unit is address space, because a memory limit (ulimit
 * -v) counts that. */
static bool has_room(const struct waiter *w)
{
    return !w || memory_has_room(w->n_addresses + http_promised());
}

/* State of one pass over the waiters: the kernel is asked for room only until its first refusal, and at most
 * REFUSED_A_TURN waiters are refused. */
struct turn {
    bool is_full;
    size_t n_refused;
};

/* True when fn has been called. */
static bool try_now(const struct waiter *w, struct turn *turn)
{
    struct budget_purse *purse = &w->x->purse;
    struct err e = { 0 };
    bool is_own = false, is_allowed = has_memory(purse->holder, w->n_bytes, &is_own);
    int r;

    if (atomic_load(&w->x->is_gone)) {
        r = err_set(&e, -ECANCELED, "SHUTTING_DOWN", "The client has left or the service is stopping.");
    } else if (is_allowed && !turn->is_full && has_room(w)) {
        purse_force(purse, BUDGET_MEMORY, w->n_bytes);
        http_exchange_promise(w->x, w->n_addresses);
        r = 0;
    } else if (clock_mono_ms() >= w->until_ms && turn->n_refused < REFUSED_A_TURN) {
        turn->n_refused++;
        r = is_allowed ? memory_refuse(&e) : budget_refuse(purse->holder, BUDGET_MEMORY, is_own, &e);
    } else {
        turn->is_full = turn->is_full || is_allowed;
        return false;
    }
    w->fn(w->arg, r, &e);
    return true;
}

static void leave(struct admission *a, struct waiter *w)
{
    TAILQ_REMOVE(&a->waiters, w, links);
    a->n--;
    free(w);
}

/* No request is running and the first waiter has no room: the bodies of the waiters take the memory. The last waiter is
 * refused. */
static void make_room(struct admission *a)
{
    struct waiter *last = TAILQ_LAST(&a->waiters, waiters);
    struct err e = { 0 };
    int r;

    if (!last || http_promised() > 0 || has_room(TAILQ_FIRST(&a->waiters)))
        return;
    r = memory_refuse(&e);
    last->fn(last->arg, r, &e);
    leave(a, last);
}

static void look(void *arg)
{
    struct admission *a = arg;
    struct waiter *w, *next;
    struct turn turn = { .n_refused = 0 };

    for (w = TAILQ_FIRST(&a->waiters); w; w = next) {
        next = TAILQ_NEXT(w, links);
        if (try_now(w, &turn))
            leave(a, w);
    }
    if (a->n > 0)
        make_room(a);
    if (a->n == 0)
        loop_timer_cancel(a->timer);
}

struct admission *admission_new(struct loop *l)
{
    struct admission *a = xcalloc(1, sizeof(*a));

    TAILQ_INIT(&a->waiters);
    a->timer = loop_timer_new(l, look, a);
    return a;
}

struct admission *admission_free(struct admission *a)
{
    struct waiter *w;

    if (!a)
        return NULL;
    while ((w = TAILQ_FIRST(&a->waiters))) {
        struct err e = { 0 };
        int r = err_set(&e, -EPIPE, "SHUTTING_DOWN", "The service is stopping.");

        w->fn(w->arg, r, &e);
        leave(a, w);
    }
    loop_timer_free(a->timer);
    free(a);
    return NULL;
}

void admission_enter(struct admission *a, struct http_exchange *x, void (*fn)(void *arg, int r, struct err *e),
                     void *arg)
{
    bool is_full = a->n >= LIMIT_LARGE_WAITING;
    struct turn turn = { .n_refused = 0 };
    struct waiter now = {
        .x = x,
        .until_ms = is_full ? 0 : clock_mono_ms() + LIMIT_LARGE_WAIT_MS,
        .n_bytes = bytes_needed(&x->request),
        .n_addresses = x->request.body.n * ADDRESSES_OF_BODY + x->request.n_body_values * BYTES_OF_VALUE,
        .fn = fn,
        .arg = arg,
    };
    struct waiter *w;

    if (try_now(&now, &turn))
        return;
    w = xcalloc(1, sizeof(*w));
    *w = now;
    TAILQ_INSERT_TAIL(&a->waiters, w, links);
    if (a->n++ == 0)
        loop_timer_every(a->timer, LOOK_EVERY_MS);
}
