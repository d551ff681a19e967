#include "llm/relay_private.h"

#include "base/clock.h"
#include "llm/format.h"

#include <stdlib.h>
#include <string.h>

enum { REFUSAL_BYTES = 64 << 10, READER_BYTES = 600 };

static void try_next(void *arg);

/* ---- from the reader ---- */

static int on_text(void *arg, struct slice text)
{
    struct relay *r = arg;
    size_t at;

    relay_begin_stream(r);
    r->n_text_bytes += text.n;
    if (relay_planned(r)->must_check)
        buf_add_slice(&r->answer.text, text);
    at = relay_begin_event(r);
    r->start.form->text(&r->out, &r->told, text);
    relay_end_event(r, at);
    return 0;
}

static int tell_large(struct relay *r, int result)
{
    return err_set(err_place(&r->e), result, r->answer.e->code, "%s", r->answer.e->text);
}

static int on_reasoning(void *arg, struct slice text)
{
    struct relay *r = arg;
    const struct llm_sink gathered = llm_answer_sink(&r->answer);
    int result = r->start.form->keeps_thoughts ? gathered.on_reasoning(gathered.arg, text) : 0;
    size_t at;

    relay_begin_stream(r);
    r->n_text_bytes += text.n;
    if (result < 0)
        return tell_large(r, result);
    if (!r->start.form->reasoning)
        return 0;
    at = relay_begin_event(r);
    r->start.form->reasoning(&r->out, &r->told, text);
    relay_end_event(r, at);
    return 0;
}

static int on_tool(void *arg, size_t index, const char *id, const char *name, struct slice arguments)
{
    struct relay *r = arg;
    size_t at;
    int result;

    relay_begin_stream(r);
    result = llm_answer_add_tool(&r->answer, index, id, name, arguments);
    if (result < 0)
        return tell_large(r, result);
    if (!r->start.form->tool)
        return 0;
    at = relay_begin_event(r);
    r->start.form->tool(&r->out, &r->told, index, id, name, arguments);
    relay_end_event(r, at);
    return 0;
}

static int on_seal(void *arg, bool is_hidden, struct slice seal)
{
    struct relay *r = arg;
    const struct llm_sink gathered = llm_answer_sink(&r->answer);
    int result = r->start.form->keeps_thoughts ? gathered.on_seal(gathered.arg, is_hidden, seal) : 0;
    size_t at;

    relay_begin_stream(r);
    if (result < 0)
        return tell_large(r, result);
    if (!r->start.form->seal)
        return 0;
    at = relay_begin_event(r);
    r->start.form->seal(&r->out, &r->told, is_hidden, seal);
    relay_end_event(r, at);
    return 0;
}

static int on_extra(void *arg, size_t index, struct slice extra)
{
    struct relay *r = arg;
    size_t at;

    if (!r->start.form->extra)
        return 0;
    at = relay_begin_event(r);
    r->start.form->extra(&r->out, &r->told, index, extra);
    relay_end_event(r, at);
    return 0;
}

static int on_answer_end(void *arg, enum llm_finish why, const struct llm_usage *usage, const char *model)
{
    struct relay *r = arg;
    struct slice text = buf_slice(&r->answer.text);
    size_t at;
    int result = 0;

    relay_begin_stream(r);
    llm_answer_end(&r->answer, why, usage, model);
    llm_answer_estimate(&r->answer, r->start.plan->prompt_tokens, r->n_text_bytes);
    if (relay_planned(r)->must_check && r->answer.n_tools == 0)
        result = llm_format_check(&r->start.plan->rule, &text, err_place(&r->e));
    if (result < 0)
        return result;
    if (r->answer.model)
        r->told.model = r->answer.model;
    r->told.duration_s = (double)(clock_mono_us() - r->told.began_us) / 1e6;
    at = relay_begin_event(r);
    r->start.form->end(&r->out, &r->told);
    relay_end_event(r, at);
    r->is_over = true;
    relay_tell_ended(r, true, true);
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
        return err_set(err_place(&r->e), -EMSGSIZE, "UPSTREAM_TOO_LARGE", "The answer has more than %zu bytes.", r->body.max);
    return 0;
}

static int on_bytes(void *arg, struct slice bytes)
{
    struct relay *r = arg;
    struct err e;
    int result;

    err_init(&e);
    if (r->is_over)                     /* what comes behind the end is of no use; behind a stop of our own it would be much */
        return relay_planned(r)->must_stop ? -ECANCELED : 0;
    if (r->status / 100 != 2 || relay_planned(r)->is_whole)
        return keep_body(r, bytes);
    relay_take_out(r);
    result = relay_account(r)->preset->protocol->on_bytes(r->reader, bytes, &e);
    if (*e.code)
        *err_place(&r->e) = e;
    if (result == 0)
        result = relay_flush(r);
    if (result == 0 && r->is_kept && llm_ring_is_full(&r->ring))
        result = -EAGAIN;               /* nobody is there: nothing may be lost either */
    r->is_paused = result == -EAGAIN;
    return result;
}

/* The upstream has said all it will say: is that an answer? */
static int conclude(struct relay *r, int result, const struct err *e)
{
    const struct llm_protocol *p = relay_account(r)->preset->protocol;

    if (result < 0 && *e->code)         /* without words it was the reader, whose own stand in r->e */
        return err_set(err_place(&r->e), result, e->code, "%s", e->text);
    if (result < 0)
        return result;
    if (r->status / 100 != 2)
        return llm_refusal(relay_account(r), r->status, buf_slice(&r->body), err_place(&r->e));
    return relay_planned(r)->is_whole ? p->on_whole(r->reader, buf_slice(&r->body), err_place(&r->e)) : p->on_close(r->reader, err_place(&r->e));
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
    size_t at;

    llm_blame(relay_account(r), result, err_place(&r->e));
    if (r->has_begun) {
        err_strip_hidden(r->e);
        at = relay_begin_event(r);
        r->start.form->error(&r->out, &r->told, r->e);
        relay_end_event(r, at);
        r->is_over = true;
        relay_tell_ended(r, true, false);
        return;
    }
    r->told.lost_us += clock_mono_us() - r->told.began_us;
    wait_ms = llm_attempts_failed(&r->attempts, result, r->retry_after_ms);
    if (wait_ms >= 0)
        wait_and_try(r, wait_ms);
    else
        relay_fail(r, result, r->e);
}

static void on_end(void *arg, int result, const struct err *e)
{
    struct relay *r = arg;

    if (!r->is_over) {
        result = conclude(r, result, e);
        if (result < 0)
            fail_attempt(r, result);
    }
    r->fetch = http_fetch_unref(r->fetch);      /* until here it holds the relay */
    relay_forget_asks(r);
    (void)!relay_flush(r);
    relay_free_when_done(r);
}

/* ---- attempts ---- */

static void begin_attempt(struct relay *r, size_t at)
{
    const struct llm_sink sink = { on_text, on_reasoning, on_tool, on_seal, on_extra, on_answer_end, r };

    r->at = at;
    arena_free(r->attempt_arena);
    r->attempt_arena = arena_new_sized(READER_BYTES);
    r->reader = llm_plan_reader(r->start.plan, at, r->attempt_arena, &sink);
    buf_clear(&r->body);
    buf_init(&r->body, relay_planned(r)->is_whole ? LIMIT_LLM_ANSWER : REFUSAL_BYTES);
    free(r->e);
    r->e = NULL;
    r->status = 0;
    r->retry_after_ms = 0;
    r->told.provider = relay_account(r)->name;
    r->told.model = relay_planned(r)->model;
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
        result = http_fetch_start(r->owner->client, &relay_planned(r)->http, &events, r, &r->fetch, &e);
    }
    if (result < 0)
        relay_fail(r, result, &e);
    relay_free_when_done(r);
}

static void begin(void *arg)
{
    struct relay *r = arg;

    r->next = r->owner->first;
    if (r->next)
        r->next->previous = r;
    r->owner->first = r;
    if (!r->owner->client || atomic_load(&r->exchange->is_gone)) {
        relay_on_gone(r->exchange, r);
        return;
    }
    http_exchange_on_gone(r->exchange, relay_on_gone, r);
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
    r->told.state = start->state;
    r->told.prompt_tokens = start->plan->prompt_tokens;
    llm_answer_init(&r->answer);
    buf_init(&r->out, LIMIT_STREAM_PUSH);
    buf_init(&r->body, REFUSAL_BYTES);
    llm_attempts_init(&r->attempts, &start->plan->picks, relays->settings, clock_mono_ms() + start->plan->total_ms);
    http_exchange_forget_body(start->exchange);         /* a long history does not wait for the answer: the plan has what is sent */
    loop_post(relays->loop, begin, r);
}

int llm_relays_new(struct loop *l, struct settings *settings, struct llm_relays **ret, struct err *e)
{
    struct llm_relays *relays = xcalloc(1, sizeof(*relays));
    int r;

    relays->loop = l;
    relays->settings = settings;
    buf_init(&relays->spare, LIMIT_STREAM_PUSH);
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
    relays->is_closing = true;
    for (struct relay *r = relays->first, *next; r; r = next) {
        next = r->next;
        if (r->exchange)
            relay_on_gone(r->exchange, r);
        else if (r->is_kept)
            relay_stop_keeping(r);
    }
    relays->client = http_client_free(relays->client);
    relays_unref(relays);
    return NULL;
}
