#include "llm/relay_private.h"

#include "base/clock.h"

#include <stdlib.h>
#include <string.h>

enum { KEPT_BYTES = 8 << 10 };

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

void relays_unref(struct llm_relays *relays)
{
    if (atomic_fetch_sub(&relays->n_refs, 1) > 1)
        return;
    buf_clear(&relays->spare);
    free(relays);
}

void relay_free_when_done(struct relay *r)
{
    if (r->exchange || r->stream || r->fetch || r->is_kept || r->is_attaching)
        return;
    unlink_relay(r);
    relays_unref(r->owner);
    loop_timer_free(r->timer);
    loop_timer_free(r->keep_timer);
    llm_ring_clear(&r->ring);
    arena_free(r->resume_arena);
    llm_answer_clear(&r->answer);
    buf_clear(&r->out);
    buf_clear(&r->body);
    free(r->e);
    arena_free(r->attempt_arena);
    arena_free(r->start.arena);
    free(r);
}

static void cancel_upstream(struct relay *r)
{
    if (r->timer)
        loop_timer_cancel(r->timer);
    if (r->fetch)
        http_fetch_cancel(r->fetch);
}

static void set_kept(struct relay *r, bool is_kept)
{
    r->owner->n_kept += is_kept && !r->is_kept ? 1 : !is_kept && r->is_kept ? (size_t)-1 : 0;
    r->is_kept = is_kept;
}

void relay_tell_ended(struct relay *r, bool has_answered, bool is_whole)
{
    if (r->is_counted)
        return;
    r->is_counted = true;
    if (has_answered && !r->answer.has_ended)
        llm_answer_estimate(&r->answer, r->start.plan->prompt_tokens, r->n_text_bytes);
    if (r->start.host->ended)
        r->start.host->ended(r->start.host_arg, &r->told, is_whole);
}

/* Nobody comes back, or may come back. */
static void give_up(struct relay *r)
{
    relay_tell_ended(r, r->fetch != NULL, false);
    r->start.scope = NULL;
    set_kept(r, false);
    cancel_upstream(r);
    r->is_over = true;
}

void relay_stop_keeping(void *arg)
{
    struct relay *r = arg;

    give_up(r);
    relay_free_when_done(r);
}

static int64_t keep_ms(const struct relay *r)
{
    return settings_ms(r->owner->settings, SETTING_LLM_RESUME_S);
}

static bool may_resume(const struct relay *r)
{
    return r->start.scope && r->has_begun && !r->owner->is_closing && keep_ms(r) > 0 &&
           r->owner->n_kept < LIMIT_KEPT_STREAMS;
}

static void keep(struct relay *r)
{
    if (!r->keep_timer)
        r->keep_timer = loop_timer_new(r->owner->loop, relay_stop_keeping, r);
    loop_timer_set(r->keep_timer, keep_ms(r));
    set_kept(r, true);
}

static void go_on(struct relay *r)
{
    if (r->is_paused && r->fetch)
        http_fetch_resume(r->fetch);
    r->is_paused = false;
}

static void drop_stream(struct relay *r)
{
    if (r->exchange)
        http_exchange_on_gone(r->exchange, NULL, NULL);
    http_stream_on_change(r->stream, NULL, NULL);
    r->exchange = NULL;
    r->stream = http_stream_unref(r->stream);
}

void relay_fail(struct relay *r, int result, const struct err *e)
{
    relay_tell_ended(r, false, false);
    http_exchange_on_gone(r->exchange, NULL, NULL);
    r->exchange = NULL;
    r->is_over = true;
    r->start.host->fail(r->start.host_arg, result, e, r->retry_after_ms);
}

void relay_on_gone(struct http_exchange *x, void *arg)
{
    struct relay *r = arg;
    struct err e = { 0 };

    if (may_resume(r)) {
        drop_stream(r);
        buf_reset(&r->out);             /* the ring has it all */
        keep(r);
        go_on(r);
        return;
    }
    give_up(r);
    if (r->stream)
        drop_stream(r);
    else
        relay_fail(r, err_set(&e, -ECANCELED, "SHUTTING_DOWN", "The client has left or the service is stopping."), &e);
    relay_free_when_done(r);
}

/* ---- towards the client ---- */

void relay_take_out(struct relay *r)
{
    if (!r->out.p) {
        r->out = r->owner->spare;
        r->owner->spare.p = NULL;
        buf_clear(&r->owner->spare);
    }
}

static void hand_back_out(struct relay *r)
{
    struct buf *spare = &r->owner->spare;

    buf_reset(&r->out);
    if (!spare->p && r->out.cap <= KEPT_BYTES) {
        *spare = r->out;
        r->out.p = NULL;
    }
    buf_clear(&r->out);
}

/* 0: all is with the stream; -EAGAIN: it is full; -EPIPE: the client has left, on_gone comes. */
static int flush(struct relay *r)
{
    int result;

    if (!r->stream || r->out.n == 0)
        return 0;
    result = r->out.overflowed ? -E2BIG : http_stream_push(r->stream, buf_slice(&r->out));
    if (result < 0)
        return result;
    hand_back_out(r);
    return 0;
}

int relay_flush(struct relay *r)
{
    int result = flush(r);

    if (r->stream && r->is_over && result != -EAGAIN) {
        drop_stream(r);
        if (may_resume(r))
            keep(r);
    }
    return result;
}

static void on_change(struct http_stream *s, void *arg)
{
    struct relay *r = arg;

    if (http_stream_is_gone(s) || relay_flush(r) < 0)
        return;
    go_on(r);
    relay_free_when_done(r);
}

/* The client may leave while its stream starts: on_gone comes last. */
static void open_stream(struct relay *r, const struct llm_relay_host *host, void *host_arg)
{
    http_exchange_on_gone(r->exchange, NULL, NULL);
    r->stream = host->start(host_arg, &r->told);
    http_exchange_forget_request(r->exchange);
    http_stream_on_change(r->stream, on_change, r);
    http_exchange_on_gone(r->exchange, relay_on_gone, r);
}

void relay_forget_asks(struct relay *r)
{
    if (r->has_begun && (!r->fetch || http_fetch_has_sent(r->fetch)))
        llm_plan_forget_asks(r->start.plan);
}

void relay_begin_stream(struct relay *r)
{
    if (r->has_begun || r->is_over)
        return;
    r->has_begun = true;
    llm_attempts_succeeded(&r->attempts);
    relay_forget_asks(r);
    open_stream(r, r->start.host, r->start.host_arg);
    if (r->start.form->begin)
        r->start.form->begin(&r->out, &r->told);
}

size_t relay_begin_event(struct relay *r)
{
    size_t at = r->out.n;

    if (r->start.scope)
        buf_printf(&r->out, "id: %s:%lld\n", r->told.uuid, (long long)r->ring.n_events + 1);
    return at;
}

void relay_end_event(struct relay *r, size_t at)
{
    if (r->start.scope)
        llm_ring_add(&r->ring, (struct slice){ r->out.p + at, r->out.n - at });
    if (!r->stream)
        r->out.n = at;
}

/* ---- a client that comes back ---- */

struct resuming { struct llm_relays *relays; struct llm_resume how; };

static struct relay *find_relay(const struct llm_relays *relays, const struct llm_resume *how)
{
    for (struct relay *r = relays->first; r; r = r->next)
        if (r->has_begun && r->start.scope && strcmp(r->start.scope, how->scope) == 0 && strcmp(r->told.uuid, how->uuid) == 0)
            return r;
    return NULL;
}

static void attach(struct relay *r, const struct llm_resume *how)
{
    if (r->stream)                      /* the one before has not noticed that it left */
        drop_stream(r);
    if (r->keep_timer)
        loop_timer_cancel(r->keep_timer);
    set_kept(r, false);
    arena_free(r->resume_arena);
    r->resume_arena = how->arena;
    r->exchange = how->exchange;
    r->is_attaching = true;
    open_stream(r, how->host, how->host_arg);
    if (relay_flush(r) != -EAGAIN)
        go_on(r);
    r->is_attaching = false;
    relay_free_when_done(r);
}

static void resume(void *arg)
{
    struct resuming *resuming = arg;
    const struct llm_resume *how = &resuming->how;
    struct relay *r = atomic_load(&how->exchange->is_gone) ? NULL : find_relay(resuming->relays, how);
    struct buf missed;
    struct err e = { 0 };
    int result;

    buf_init(&missed, LIMIT_STREAM_PUSH);
    result = r ? llm_ring_replay(&r->ring, how->after, &missed) : -ENOENT;
    if (result == 0) {
        buf_clear(&r->out);
        r->out = missed;
        attach(r, how);
    } else {
        err_set(&e, result, "STREAM_GONE", "This stream can no longer be resumed there: ask anew.");
        how->host->fail(how->host_arg, result, &e, 0);
        arena_free(how->arena);
    }
    relays_unref(resuming->relays);
    free(resuming);
}

void llm_relay_resume(struct llm_relays *relays, const struct llm_resume *how)
{
    struct resuming *resuming = xcalloc(1, sizeof(*resuming));

    *resuming = (struct resuming){ relays, *how };
    atomic_fetch_add(&relays->n_refs, 1);
    loop_post(relays->loop, resume, resuming);
}
