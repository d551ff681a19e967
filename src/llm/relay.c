#include "llm/relay.h"

#include "base/clock.h"
#include "llm/attempts.h"
#include "llm/format.h"

#include <stdlib.h>
#include <string.h>

enum { REFUSAL_BYTES = 64 << 10, KEPT_BYTES = 8 << 10 };

struct llm_relays {
    struct loop *loop;                  /* borrowed */
    struct settings *settings;          /* borrowed */
    struct http_client *client;         /* owned; NULL: closed */
    struct relay *first;                /* running ones */
    atomic_size_t n_refs;               /* the owner's, and one a relay */
};

struct relay {
    struct llm_relays *owner;
    struct relay *next, *previous;
    struct llm_relay_start start;       /* arena owned */
    struct llm_attempts attempts;
    struct llm_told told;
    struct llm_answer answer;
    size_t n_text_bytes;

    /* the client; exchange NULL: it has its answer, or has left */
    struct http_exchange *exchange;
    struct http_stream *stream;         /* a reference; NULL before the first delta */
    struct buf out;                     /* events on their way */
    bool is_over;                       /* the last event is in out, or the failure is told */

    /* the present attempt */
    size_t at;                          /* of the plan's picks */
    struct http_fetch *fetch;           /* a reference; NULL: none runs */
    struct arena *attempt_arena;        /* owned; the reader's */
    struct llm_reader *reader;
    struct buf body;                    /* of a refusal, or of an answer that is not streamed */
    int status;
    int64_t retry_after_ms;
    struct err e;                       /* of the reader */
    bool is_paused;
    struct loop_timer *timer;           /* owned; the wait before the next attempt */
};

static void try_next(void *arg);

static const struct llm_planned *planned(const struct relay *r)
{
    return &r->start.plan->of[r->at];
}

static const struct llm_account *account_of(const struct relay *r)
{
    return &r->start.plan->picks.seats[r->at]->account;
}

/* ---- the end of a relay ---- */

static void unlink_relay(struct relay *r)
{
    if (r->previous)
        r->previous->next = r->next;
    else
        r->owner->first = r->next;
    if (r->next)
        r->next->previous = r->previous;
}

static void relays_unref(struct llm_relays *relays)
{
    if (atomic_fetch_sub(&relays->n_refs, 1) == 1)
        free(relays);
}

/* The client's side and the upstream's both end in their own time. */
static void free_when_done(struct relay *r)
{
    if (r->exchange || r->stream || r->fetch)
        return;
    unlink_relay(r);
    relays_unref(r->owner);
    loop_timer_free(r->timer);
    llm_answer_clear(&r->answer);
    buf_clear(&r->out);
    buf_clear(&r->body);
    arena_free(r->attempt_arena);
    arena_free(r->start.arena);
    free(r);
}

static void drop_stream(struct relay *r)
{
    if (r->exchange)
        http_exchange_on_gone(r->exchange, NULL, NULL);
    http_stream_on_change(r->stream, NULL, NULL);
    r->exchange = NULL;
    r->stream = http_stream_unref(r->stream);
}

/* Nothing was told yet: an ordinary error. */
static void fail(struct relay *r, int result, const struct err *e)
{
    http_exchange_on_gone(r->exchange, NULL, NULL);
    r->exchange = NULL;
    r->is_over = true;
    r->start.host->fail(r->start.host_arg, result, e, r->retry_after_ms);
}

static void cancel_upstream(struct relay *r)
{
    if (r->timer)
        loop_timer_cancel(r->timer);
    if (r->fetch)
        http_fetch_cancel(r->fetch);
}

static void on_gone(struct http_exchange *x, void *arg)
{
    struct relay *r = arg;
    struct err e = { 0 };

    cancel_upstream(r);
    if (r->stream)
        drop_stream(r);
    else
        fail(r, err_set(&e, -ECANCELED, "SHUTTING_DOWN", "The client has left or the service is stopping."), &e);
    r->is_over = true;
    free_when_done(r);
}

/* ---- towards the client ---- */

/* 0: all is with the stream; -EAGAIN: it is full; -EPIPE: the client has left, on_gone comes. */
static int flush(struct relay *r)
{
    int result;

    if (!r->stream || r->out.n == 0)
        return 0;
    result = r->out.overflowed ? -E2BIG : http_stream_push(r->stream, buf_slice(&r->out));
    if (result < 0)
        return result;
    if (r->out.cap > KEPT_BYTES)
        buf_clear(&r->out);
    else
        buf_reset(&r->out);
    return 0;
}

/* Like flush(), and lets the client go once it has all. */
static int flush_and_end(struct relay *r)
{
    int result = flush(r);

    if (r->stream && r->is_over && result != -EAGAIN)
        drop_stream(r);
    return result;
}

static void on_change(struct http_stream *s, void *arg)
{
    struct relay *r = arg;

    if (http_stream_is_gone(s) || flush_and_end(r) < 0)
        return;
    if (r->is_paused && r->fetch) {
        r->is_paused = false;
        http_fetch_resume(r->fetch);
    }
    free_when_done(r);
}

/* With the first delta. */
static void begin_stream(struct relay *r)
{
    if (r->stream || r->is_over)
        return;
    llm_attempts_succeeded(&r->attempts);
    r->stream = r->start.host->start(r->start.host_arg, &r->told);
    http_stream_on_change(r->stream, on_change, r);
    if (r->start.form->begin)
        r->start.form->begin(&r->out, &r->told);
}

static int on_text(void *arg, struct slice text)
{
    struct relay *r = arg;

    begin_stream(r);
    r->n_text_bytes += text.n;
    if (planned(r)->must_check)
        buf_add_slice(&r->answer.text, text);
    r->start.form->text(&r->out, &r->told, text);
    return 0;
}

static int on_reasoning(void *arg, struct slice text)
{
    struct relay *r = arg;

    begin_stream(r);
    r->n_text_bytes += text.n;
    if (r->start.form->reasoning)
        r->start.form->reasoning(&r->out, &r->told, text);
    return 0;
}

static int on_tool(void *arg, size_t index, const char *id, const char *name, struct slice arguments)
{
    struct relay *r = arg;
    int result;

    begin_stream(r);
    result = llm_answer_add_tool(&r->answer, index, id, name, arguments);
    if (result < 0)
        return err_set(&r->e, result, r->answer.e.code, "%s", r->answer.e.text);
    if (r->start.form->tool)
        r->start.form->tool(&r->out, &r->told, index, id, name, arguments);
    return 0;
}

static int on_answer_end(void *arg, enum llm_finish why, const struct llm_usage *usage, const char *model)
{
    struct relay *r = arg;
    struct slice text = buf_slice(&r->answer.text);
    int result = 0;

    begin_stream(r);
    llm_answer_end(&r->answer, why, usage, model);
    llm_answer_estimate(&r->answer, r->start.plan->prompt_tokens, r->n_text_bytes);
    if (planned(r)->must_check && r->answer.n_tools == 0)
        result = llm_format_check(r->start.plan->ask, &text, &r->e);
    if (result < 0)
        return result;
    if (r->answer.model)
        r->told.model = r->answer.model;
    r->told.duration_s = (double)(clock_mono_us() - r->told.began_us) / 1e6;
    r->start.form->end(&r->out, &r->told);
    r->is_over = true;
    return 0;
}

/* ---- from the upstream ---- */

static void on_head(void *arg, const struct http_answer *head)
{
    struct relay *r = arg;

    r->status = head->status;
    if (head->status / 100 != 2)
        r->retry_after_ms = llm_retry_after_ms(head);
}

static int keep_body(struct relay *r, struct slice bytes)
{
    bool is_refusal = r->status / 100 != 2;

    buf_add_slice(&r->body, bytes);
    if (r->body.overflowed && !is_refusal)
        return err_set(&r->e, -EMSGSIZE, "UPSTREAM_TOO_LARGE", "The answer has more than %zu bytes.", r->body.max);
    return 0;
}

static int on_bytes(void *arg, struct slice bytes)
{
    struct relay *r = arg;
    int result;

    if (r->is_over)                     /* what comes behind the end is of no use */
        return 0;
    if (r->status / 100 != 2 || planned(r)->is_whole)
        return keep_body(r, bytes);
    result = account_of(r)->preset->protocol->on_bytes(r->reader, bytes, &r->e);
    if (result == 0)
        result = flush_and_end(r);
    r->is_paused = result == -EAGAIN;
    return result;
}

/* The upstream has said all it will say: is that an answer? */
static int conclude(struct relay *r, int result, const struct err *e)
{
    const struct llm_protocol *p = account_of(r)->preset->protocol;

    if (result < 0 && *e->code)         /* without words it was the reader, whose own stand in r->e */
        return err_set(&r->e, result, e->code, "%s", e->text);
    if (result < 0)
        return result;
    if (r->status / 100 != 2)
        return llm_refusal(account_of(r), r->status, buf_slice(&r->body), &r->e);
    return planned(r)->is_whole ? p->on_whole(r->reader, buf_slice(&r->body), &r->e) : p->on_close(r->reader, &r->e);
}

static void wait_and_try(struct relay *r, int64_t wait_ms)
{
    if (!r->timer)
        r->timer = loop_timer_new(r->owner->loop, try_next, r);
    loop_timer_set(r->timer, wait_ms);
}

static void fail_attempt(struct relay *r, int result)
{
    int64_t wait_ms;

    llm_blame(account_of(r), result, &r->e);
    if (r->stream) {
        r->start.form->error(&r->out, &r->told, &r->e);
        r->is_over = true;
        return;
    }
    wait_ms = llm_attempts_failed(&r->attempts, result, r->retry_after_ms);
    if (wait_ms >= 0)
        wait_and_try(r, wait_ms);
    else
        fail(r, result, &r->e);
}

static void on_end(void *arg, int result, const struct err *e)
{
    struct relay *r = arg;

    r->fetch = http_fetch_unref(r->fetch);
    if (!r->is_over) {
        result = conclude(r, result, e);
        if (result < 0)
            fail_attempt(r, result);
    }
    (void)!flush_and_end(r);
    free_when_done(r);
}

/* ---- attempts ---- */

static void begin_attempt(struct relay *r, size_t at)
{
    const struct llm_sink sink = { on_text, on_reasoning, on_tool, on_answer_end, r };

    r->at = at;
    arena_free(r->attempt_arena);
    r->attempt_arena = arena_new();
    r->reader = account_of(r)->preset->protocol->reader(r->attempt_arena, &sink);
    buf_clear(&r->body);
    buf_init(&r->body, planned(r)->is_whole ? LIMIT_LLM_ANSWER : REFUSAL_BYTES);
    r->e = (struct err){ 0 };
    r->status = 0;
    r->retry_after_ms = 0;
    r->told.provider = account_of(r)->name;
    r->told.model = planned(r)->model;
    r->told.began_us = clock_mono_us();
}

static void try_next(void *arg)
{
    static const struct http_fetch_events events = { on_head, on_bytes, on_end };
    struct relay *r = arg;
    struct err e = { 0 };
    int at = llm_attempts_next(&r->attempts, &e), result = at;

    if (at >= 0) {
        begin_attempt(r, (size_t)at);
        result = http_fetch_start(r->owner->client, &planned(r)->http, &events, r, &r->fetch, &e);
    }
    if (result < 0)
        fail(r, result, &e);
    free_when_done(r);
}

static void begin(void *arg)
{
    struct relay *r = arg;

    r->next = r->owner->first;
    if (r->next)
        r->next->previous = r;
    r->owner->first = r;
    if (!r->owner->client || atomic_load(&r->exchange->is_gone)) {
        on_gone(r->exchange, r);
        return;
    }
    http_exchange_on_gone(r->exchange, on_gone, r);
    try_next(r);
}

void llm_relay_start(struct llm_relays *relays, const struct llm_relay_start *start)
{
    struct relay *r = xcalloc(1, sizeof(*r));

    r->owner = relays;
    atomic_fetch_add(&relays->n_refs, 1);
    r->start = *start;
    r->exchange = start->exchange;
    uuid_v4(r->told.uuid);
    r->told.began_wall_ms = clock_wall_ms();
    r->told.answer = &r->answer;
    llm_answer_init(&r->answer);
    buf_init(&r->out, LIMIT_STREAM_PUSH);
    buf_init(&r->body, REFUSAL_BYTES);
    llm_attempts_init(&r->attempts, &start->plan->picks, relays->settings, clock_mono_ms() + start->plan->total_ms);
    loop_post(relays->loop, begin, r);
}

int llm_relays_new(struct loop *l, struct settings *settings, struct llm_relays **ret, struct err *e)
{
    struct llm_relays *relays = xcalloc(1, sizeof(*relays));
    int r;

    relays->loop = l;
    relays->settings = settings;
    atomic_init(&relays->n_refs, 1);
    r = http_client_new(l, &relays->client, e);
    if (r < 0) {
        free(relays);
        return r;
    }
    *ret = relays;
    return 0;
}

struct llm_relays *llm_relays_free(struct llm_relays *relays)
{
    if (!relays)
        return NULL;
    for (struct relay *r = relays->first, *next; r; r = next) {
        next = r->next;
        if (r->exchange)
            on_gone(r->exchange, r);
    }
    relays->client = http_client_free(relays->client);
    relays_unref(relays);
    return NULL;
}
