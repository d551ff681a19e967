#include "llm/relay_private.h"

#include "base/clock.h"

#include <stdlib.h>
#include <string.h>

enum { KEPT_BYTES = 8 << 10 };

/* ---- the end of a relay ---- */

static void unlink_relay(struct llm_relay *r)
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

void relay_free_when_done(struct llm_relay *r)
{
    if (r->has_client || r->is_open || r->has_turn || r->is_kept || r->is_attaching || r->is_printing)
        return;
    unlink_relay(r);
    relays_unref(r->owner);
    loop_timer_free(r->keep_timer);
    llm_ring_clear(&r->ring);
    arena_free(r->resume_arena);
    llm_answer_clear(&r->answer);
    buf_clear(&r->out);
    buf_clear(&r->last);
    arena_free(r->start.arena);
    free(r);
}

static void set_kept(struct llm_relay *r, bool is_kept)
{
    r->owner->n_kept += is_kept && !r->is_kept ? 1 : !is_kept && r->is_kept ? (size_t)-1 : 0;
    r->is_kept = is_kept;
}

void relay_notify_ended(struct llm_relay *r, bool has_answered, bool is_whole)
{
    if (r->is_counted)
        return;
    r->is_counted = true;
    if (has_answered && !r->answer.has_ended)
        llm_answer_estimate(&r->answer, r->start.plan->prompt_tokens, r->n_text_bytes);
    if (r->start.client->ended)
        r->start.client->ended(r->start.client_arg, &r->progress, is_whole);
}

/* No client comes back, or none may. */
static void give_up(struct llm_relay *r)
{
    relay_notify_ended(r, r->has_turn && r->turn.state == LLM_TURN_FETCHES, false);
    r->start.scope = NULL;
    set_kept(r, false);
    r->is_over = true;
    if (r->has_turn)
        llm_turn_cancel(&r->turn);
}

void relay_stop_keeping(void *arg)
{
    struct llm_relay *r = arg;

    give_up(r);
    relay_free_when_done(r);
}

static int64_t keep_ms(const struct llm_relay *r)
{
    return settings_ms(r->owner->settings, SETTING_LLM_RESUME_S);
}

static bool may_resume(const struct llm_relay *r)
{
    return r->start.scope && r->has_begun && !r->owner->is_closing && keep_ms(r) > 0 &&
           r->owner->n_kept < LIMIT_KEPT_STREAMS;
}

static void keep(struct llm_relay *r)
{
    if (!r->keep_timer)
        r->keep_timer = loop_timer_new(r->owner->loop, relay_stop_keeping, r);
    loop_timer_set(r->keep_timer, keep_ms(r));
    set_kept(r, true);
}

static void go_on(struct llm_relay *r)
{
    if (r->has_turn)
        llm_turn_resume(&r->turn);
}

static void drop_client(struct llm_relay *r)
{
    r->has_client = false;
    if (!r->is_open)
        return;
    r->is_open = false;
    r->client->close(r->client_arg);
}

void relay_fail(struct llm_relay *r, int result, const struct err *e)
{
    relay_notify_ended(r, false, false);
    r->client->watch(r->client_arg, NULL);
    r->has_client = false;
    r->is_over = true;
    r->client->fail(r->client_arg, result, e, r->turn.retry_after_ms);
}

static void lose_client(struct llm_relay *r)
{
    struct err e;

    give_up(r);
    if (r->is_open) {
        drop_client(r);
    } else {
        err_init(&e);
        relay_fail(r, err_set(&e, -ECANCELED, "SHUTTING_DOWN", "The client has left or the service is stopping."), &e);
    }
    relay_free_when_done(r);
}

void llm_relay_on_gone(struct llm_relay *r)
{
    if (r->has_turn &&
        r->turn.state == LLM_TURN_READS) { /* a worker reads the answer: on_turn_end() also ends the client's side */
        llm_turn_cancel(&r->turn);
    } else if (may_resume(r)) {
        drop_client(r);
        buf_reset(&r->out); /* the ring has every event */
        keep(r);
        go_on(r);
    } else {
        lose_client(r);
    }
}

/* ---- towards the client ---- */

void relay_take_out(struct llm_relay *r)
{
    if (!r->out.p) {
        r->out = r->owner->spare;
        r->owner->spare.p = NULL;
        buf_clear(&r->owner->spare);
    }
}

static void hand_back_out(struct llm_relay *r)
{
    struct buf *spare = &r->owner->spare;

    buf_reset(&r->out);
    if (!spare->p && r->out.cap <= KEPT_BYTES) {
        *spare = r->out;
        r->out.p = NULL;
    }
    buf_clear(&r->out);
}

/* 0: everything was passed on; -EAGAIN: the client's buffer is full; -EPIPE: the client has left, llm_relay_on_gone()
 * follows. */
static int flush(struct llm_relay *r)
{
    int result;

    if (!r->is_open || r->out.n == 0)
        return 0;
    result = r->out.overflowed ? -E2BIG : r->client->push(r->client_arg, buf_slice(&r->out));
    if (result < 0)
        return result;
    hand_back_out(r);
    return 0;
}

int relay_flush(struct llm_relay *r)
{
    int result = flush(r);

    if (r->is_open && r->is_over && result != -EAGAIN) {
        drop_client(r);
        if (may_resume(r))
            keep(r);
    }
    return result;
}

void llm_relay_on_room(struct llm_relay *r)
{
    if (relay_flush(r) < 0)
        return;
    go_on(r);
    relay_free_when_done(r);
}

void relay_free_requests(struct llm_relay *r)
{
    if (r->has_begun && (!r->has_turn || llm_turn_has_sent(&r->turn)))
        llm_plan_free_requests(r->start.plan);
}

/* The client may leave while its stream begins. */
static void open_client(struct llm_relay *r)
{
    r->is_open = true;
    r->client->open(r->client_arg, &r->progress);
}

void relay_open_client(struct llm_relay *r)
{
    r->has_begun = true;
    llm_turn_commit(&r->turn);
    relay_free_requests(r);
    open_client(r);
}

void relay_write_id(const struct llm_relay *r, struct buf *out)
{
    if (r->start.scope)
        buf_printf(out, "id: %s:%lld\n", r->progress.uuid, (long long)r->ring.n_events + 1);
}

size_t relay_begin_event(struct llm_relay *r)
{
    size_t at = r->out.n;

    relay_write_id(r, &r->out);
    return at;
}

void relay_end_event(struct llm_relay *r, size_t at)
{
    if (r->start.scope)
        llm_ring_add(&r->ring, (struct slice){ r->out.p + at, r->out.n - at });
    if (r->has_begun && !r->is_open) /* no client: the ring alone keeps the event */
        r->out.n = at;
}

/* ---- a client that comes back ---- */

struct resuming {
    struct llm_relays *relays;
    struct llm_resume how;
};

static struct llm_relay *find_relay(const struct llm_relays *relays, const struct llm_resume *how)
{
    for (struct llm_relay *r = relays->first; r; r = r->next)
        if (r->has_begun && r->start.scope && strcmp(r->start.scope, how->scope) == 0 &&
            strcmp(r->progress.uuid, how->uuid) == 0)
            return r;
    return NULL;
}

static void attach(struct llm_relay *r, const struct llm_resume *how)
{
    if (r->is_open) /* the previous client's end was not yet noticed */
        drop_client(r);
    if (r->keep_timer)
        loop_timer_cancel(r->keep_timer);
    set_kept(r, false);
    arena_free(r->resume_arena);
    r->resume_arena = how->arena;
    r->client = how->client;
    r->client_arg = how->client_arg;
    r->has_client = true;
    r->client->watch(r->client_arg, r);
    r->is_attaching = true;
    open_client(r);
    if (relay_flush(r) != -EAGAIN)
        go_on(r);
    r->is_attaching = false;
    relay_free_when_done(r);
}

static void resume(void *arg)
{
    struct resuming *resuming = arg;
    const struct llm_resume *how = &resuming->how;
    struct llm_relay *r = how->client->is_gone(how->client_arg) ? NULL : find_relay(resuming->relays, how);
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
        how->client->fail(how->client_arg, result, &e, 0);
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
