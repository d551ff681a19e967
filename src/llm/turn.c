#include "llm/turn.h"

#include "base/clock.h"
#include "base/pool.h"
#include "net/pay.h"

#include <stdlib.h>
#include <string.h>

enum { REFUSAL_BYTES = 64 << 10, READER_BYTES = 600, PAID_BYTES = 1 << 20, COST_A_BYTE = 4 };

struct llm_turns {
    struct loop *loop;          /* borrowed */
    struct settings *settings;  /* borrowed */
    struct pool *workers;       /* borrowed; NULL: none */
    struct http_client *client; /* owned; NULL: closed */
    struct llm_turn *first;     /* running ones */
    size_t n_refs;              /* the owner's, and one for each turn; loop thread */
};

static void try_next(void *arg);

struct loop *llm_turns_loop(const struct llm_turns *turns)
{
    return turns->loop;
}

struct pool *llm_turns_workers(const struct llm_turns *turns)
{
    return turns->workers;
}

static void unref_turns(struct llm_turns *turns)
{
    if (--turns->n_refs == 0)
        free(turns);
}

/* ---- the end ---- */

static void unlink_turn(struct llm_turn *t)
{
    if (t->previous)
        t->previous->next = t->next;
    else
        t->turns->first = t->next;
    if (t->next)
        t->next->previous = t->previous;
}

static void end_turn(struct llm_turn *t, int r, const struct err *e)
{
    const struct llm_turn_events *events = t->start.events;
    struct llm_turns *turns = t->turns;
    struct err *own = TAKE(t->e);

    unlink_turn(t);
    t->state = LLM_TURN_ENDED;
    t->timer = loop_timer_free(t->timer);
    t->reader = NULL;
    t->attempt_arena = arena_free(t->attempt_arena);
    buf_clear(&t->body);
    events->on_end(t->start.arg, r, r < 0 && !e ? own : e); /* t may have been freed */
    free(own);
    unref_turns(turns);
}

static void end_cancelled(struct llm_turn *t)
{
    struct err e;

    err_init(&e);
    end_turn(t, err_set(&e, -ECANCELED, "SHUTTING_DOWN", "The client has left or the service is stopping."), &e);
}

static void wait_and_try(struct llm_turn *t, int64_t wait_ms)
{
    if (!t->timer)
        t->timer = loop_timer_new(t->turns->loop, try_next, t);
    t->state = LLM_TURN_WAITS;
    loop_timer_set(t->timer, wait_ms);
}

static void fail_attempt(struct llm_turn *t, int r)
{
    int64_t wait_ms;

    llm_blame(t->account, r, err_place(&t->e));
    if (t->is_committed || t->is_cancelled) {
        end_turn(t, r, NULL);
        return;
    }
    wait_ms = llm_attempts_failed(&t->attempts, r, err_place(&t->e)->text, t->retry_after_ms);
    if (wait_ms < 0) {
        end_turn(t, r, NULL);
        return;
    }
    t->lost_us += clock_mono_us() - t->began_us;
    wait_and_try(t, wait_ms);
}

/* ---- from the upstream ---- */

static const struct llm_protocol *protocol_of(const struct llm_turn *t)
{
    return t->account->preset->protocol;
}

/* An error of the reader replaces that of the sink. */
static void take_words(struct llm_turn *t, const struct err *e)
{
    if (*e->code)
        *err_place(&t->e) = *e;
}

static int after_read(struct llm_turn *t)
{
    return t->start.events->after_read ? t->start.events->after_read(t->start.arg) : 0;
}

static void on_head(void *arg, const struct http_answer *head)
{
    struct llm_turn *t = arg;

    t->status = head->status;
    if (head->status / 100 != 2)
        t->retry_after_ms = llm_retry_after_ms(head);
}

/* Charges for the body and its parsed form. */
static int pay(struct llm_turn *t)
{
    int r = 0;

    while (r == 0 && t->start.holder && t->body.n >= t->n_paid + PAID_BYTES) {
        r = net_pay(t->start.holder, t->attempt_arena, (size_t)COST_A_BYTE * PAID_BYTES, err_place(&t->e));
        t->n_paid += PAID_BYTES;
    }
    return r;
}

static int keep_body(struct llm_turn *t, struct slice bytes)
{
    bool is_refusal = t->status / 100 != 2;

    buf_add_slice(&t->body, bytes);
    if (is_refusal)
        return 0;
    if (t->body.overflowed)
        return err_set(err_place(&t->e), -EMSGSIZE, "UPSTREAM_TOO_LARGE", "The answer has more than %zu bytes.",
                       t->body.max);
    return pay(t);
}

static int read_bytes(struct llm_turn *t, struct slice bytes, int *ret_after)
{
    struct err e;
    int r;

    err_init(&e);
    if (t->start.events->before_read)
        t->start.events->before_read(t->start.arg);
    r = protocol_of(t)->on_bytes(t->reader, bytes, &e);
    take_words(t, &e);
    *ret_after = after_read(t); /* even on failure, deltas read before it are passed on */
    return r;
}

static int on_bytes(void *arg, struct slice bytes)
{
    struct llm_turn *t = arg;
    int after = 0;

    if (t->is_cancelled)
        return -ECANCELED;
    if (t->is_answered) /* bytes after the end are ignored; after our own stop there may be many, so the fetch is
                           cancelled */
        return llm_turn_planned(t)->must_stop ? -ECANCELED : 0;
    t->n_bytes += bytes.n;
    if (t->status / 100 != 2 || llm_turn_planned(t)->is_whole)
        t->result = keep_body(t, bytes);
    else
        t->result = read_bytes(t, bytes, &after);
    if (t->result < 0) /* -EAGAIN, which means that another attempt may help, would pause the fetch */
        return -EBADMSG;
    t->is_paused = after == -EAGAIN;
    return after;
}

/* ---- the upstream's answer has ended: is it complete? ---- */

static void read_rest(struct llm_turn *t)
{
    struct err e;

    err_init(&e);
    t->result = llm_turn_planned(t)->is_whole ? protocol_of(t)->on_whole(t->reader, buf_slice(&t->body), &e)
                                              : protocol_of(t)->on_close(t->reader, &e);
    take_words(t, &e);
}

static void conclude(struct llm_turn *t, int r)
{
    if (r < 0) {
        fail_attempt(t, r);
        return;
    }
    llm_turn_commit(t);
    end_turn(t, 0, NULL);
}

static void finish_reading(void *arg)
{
    struct llm_turn *t = arg;

    if (t->is_checking) {
        t->state = LLM_TURN_READS;
        return;
    }
    if (t->is_cancelled) {
        end_cancelled(t);
        return;
    }
    (void)!after_read(t);
    conclude(t, t->result);
}

/* ---- the check of an answer: by a worker, since a schema may take tens of milliseconds ---- */

static void accept_answer(struct llm_turn *t)
{
    const struct llm_turn_events *events = t->start.events;

    if (events->before_read)
        events->before_read(t->start.arg);
    t->result = events->on_checked(t->start.arg);
    (void)!after_read(t);
}

/* An error of the reader, which called for the check, is older. */
static void take_check(struct llm_turn *t)
{
    struct err *e = TAKE(t->check_error);

    if (t->result >= 0 && t->check_result < 0) {
        t->result = t->check_result;
        *err_place(&t->e) = *e;
    }
    free(e);
}

/* While the fetch runs, its end concludes the attempt. */
static void finish_check(void *arg)
{
    struct llm_turn *t = arg;

    t->is_checking = false;
    take_check(t);
    if (t->result >= 0 && !t->is_cancelled)
        accept_answer(t);
    t->is_answered = t->result >= 0 && !t->is_cancelled;
    if (!t->fetch)
        finish_reading(t);
    else if (!t->is_answered)
        http_fetch_cancel(t->fetch);
}

/* Meanwhile the loop may set the turn's result and error. */
static void check_on_worker(void *arg)
{
    struct llm_turn *t = arg;

    t->check_result = t->start.events->check(t->start.arg, err_place(&t->check_error));
    loop_post(t->turns->loop, finish_check, t);
}

int llm_turn_check(struct llm_turn *t)
{
    if (!llm_turn_planned(t)->must_check)
        return 0;
    t->is_checking =
        t->turns->workers && loop_is_current(t->turns->loop) && pool_submit(t->turns->workers, check_on_worker, t) == 0;
    if (!t->is_checking)
        return t->start.events->check(t->start.arg, llm_turn_err(t));
    llm_turn_answered(t);
    return -EINPROGRESS;
}

static void read_on_worker(void *arg)
{
    struct llm_turn *t = arg;

    read_rest(t);
    loop_post(t->turns->loop, finish_reading, t);
}

/* A committed answer was passed on in pieces, so nothing large is left to read. */
static bool is_large(const struct llm_turn *t)
{
    return !t->is_committed && t->n_bytes > LIMIT_LLM_READ_ON_LOOP;
}

static void read_answer(struct llm_turn *t)
{
    if (t->turns->workers && is_large(t)) {
        t->state = LLM_TURN_READS;
        if (pool_submit(t->turns->workers, read_on_worker, t) == 0)
            return;
    }
    if (t->start.events->before_read)
        t->start.events->before_read(t->start.arg);
    read_rest(t);
    finish_reading(t);
}

static void on_fetch_end(void *arg, int r, const struct err *e)
{
    struct llm_turn *t = arg;

    t->fetch = http_fetch_unref(t->fetch);
    if (t->is_checking) {
        t->state = LLM_TURN_READS;
        return;
    }
    if (t->is_answered) {
        conclude(t, 0);
        return;
    }
    if (t->result < 0) /* the reader failed, and its error is in t->e */
        r = t->result;
    else if (r < 0 && *e->code)
        err_set(err_place(&t->e), r, e->code, "%s", e->text);
    if (r == 0 && t->status / 100 != 2)
        r = llm_refusal(t->account, t->status, buf_slice(&t->body), err_place(&t->e));
    if (r < 0)
        fail_attempt(t, r);
    else
        read_answer(t);
}

/* ---- attempts ---- */

static void begin_attempt(struct llm_turn *t, size_t at)
{
    const struct llm_plan *plan = t->start.plan;

    t->at = at;
    t->account = &plan->picks.states[at]->account;
    arena_free(t->attempt_arena);
    t->attempt_arena = arena_new_sized(READER_BYTES);
    t->reader = llm_plan_reader(plan, at, t->attempt_arena, &t->start.sink);
    buf_clear(&t->body);
    buf_init(&t->body, plan->of[at].is_whole ? LIMIT_LLM_ANSWER : REFUSAL_BYTES);
    free(t->e);
    t->e = NULL;
    t->status = 0;
    t->retry_after_ms = 0;
    t->result = 0;
    t->n_bytes = t->n_paid = 0;
    t->began_us = clock_mono_us();
    t->start.events->on_attempt(t->start.arg);
}

static void try_next(void *arg)
{
    static const struct http_fetch_events events = { on_head, on_bytes, on_fetch_end };
    struct llm_turn *t = arg;
    struct err e;
    int at, r;

    if (t->is_cancelled || !t->turns->client) {
        end_cancelled(t);
        return;
    }
    err_init(&e);
    r = at = llm_attempts_next(&t->attempts, &e);
    if (at >= 0) {
        begin_attempt(t, (size_t)at);
        t->state = LLM_TURN_FETCHES;
        r = http_fetch_start(t->turns->client, &llm_turn_planned(t)->http, &events, t, &t->fetch, &e);
    }
    if (r < 0)
        end_turn(t, r, &e);
}

void llm_turn_start(struct llm_turns *turns, struct llm_turn *t, const struct llm_turn_start *start)
{
    *t = (struct llm_turn){ .turns = turns, .start = *start, .state = LLM_TURN_WAITS };
    turns->n_refs++;
    t->next = turns->first;
    if (t->next)
        t->next->previous = t;
    turns->first = t;
    buf_init(&t->body, REFUSAL_BYTES);
    llm_attempts_init(&t->attempts, start->plan, turns->settings, clock_mono_ms() + start->plan->total_ms);
    try_next(t);
}

void llm_turn_commit(struct llm_turn *t)
{
    if (t->is_committed)
        return;
    t->is_committed = true;
    llm_attempts_succeeded(&t->attempts);
}

bool llm_turn_has_sent(const struct llm_turn *t)
{
    return !t->fetch || http_fetch_has_sent(t->fetch);
}

void llm_turn_resume(struct llm_turn *t)
{
    if (t->is_paused && t->fetch)
        http_fetch_resume(t->fetch);
    t->is_paused = false;
}

void llm_turn_cancel(struct llm_turn *t)
{
    if (t->is_cancelled || t->state == LLM_TURN_ENDED)
        return;
    t->is_cancelled = true;
    if (t->state == LLM_TURN_WAITS)
        loop_timer_set(t->timer, 0);
    else if (t->fetch)
        http_fetch_cancel(t->fetch);
}

/* ---- the whole ---- */

int llm_turns_new(struct loop *l, struct settings *settings, struct pool *workers, struct llm_turns **ret,
                  struct err *e)
{
    struct llm_turns *turns = xcalloc(1, sizeof(*turns));
    int r;

    *turns = (struct llm_turns){ .loop = l, .settings = settings, .workers = workers, .n_refs = 1 };
    r = http_client_new(l, &turns->client, e);
    if (r < 0) {
        free(turns);
        return r;
    }
    *ret = turns;
    return 0;
}

struct llm_turns *llm_turns_free(struct llm_turns *turns)
{
    struct http_client *client;

    if (!turns)
        return NULL;
    client = TAKE(turns->client);
    for (struct llm_turn *t = turns->first, *next; t; t = next) {
        next = t->next;
        t->is_cancelled = true;
        if (t->state == LLM_TURN_WAITS)
            end_cancelled(t);
    }
    http_client_free(client); /* ends the turns that fetch */
    unref_turns(turns);
    return NULL;
}
