#include "llm/relay_private.h"

#include "base/clock.h"
#include "base/pool.h"
#include "llm/format.h"

#include <stdlib.h>
#include <string.h>

/* ---- the turn's sink: writes `out` and `answer` only ---- */

static void begin_answer(struct llm_relay *r)
{
    if (r->has_events)
        return;
    r->has_events = true;
    if (r->start.form->begin)
        r->start.form->begin(&r->out, &r->progress);
}

static int on_text(void *arg, struct slice text)
{
    struct llm_relay *r = arg;
    size_t at;

    begin_answer(r);
    r->n_text_bytes += text.n;
    if (llm_turn_planned(&r->turn)->must_check)
        buf_add_slice(&r->answer.text, text);
    at = relay_begin_event(r);
    r->start.form->text(&r->out, &r->progress, text);
    relay_end_event(r, at);
    return 0;
}

static int report_large(struct llm_relay *r, int result)
{
    return err_set(llm_turn_err(&r->turn), result, r->answer.e->code, "%s", r->answer.e->text);
}

static int on_reasoning(void *arg, struct slice text)
{
    struct llm_relay *r = arg;
    const struct llm_sink gathered = llm_answer_sink(&r->answer);
    int result = r->start.form->keeps_thoughts ? gathered.on_reasoning(gathered.arg, text) : 0;
    size_t at;

    begin_answer(r);
    r->n_text_bytes += text.n;
    if (result < 0)
        return report_large(r, result);
    if (!r->start.form->reasoning)
        return 0;
    at = relay_begin_event(r);
    r->start.form->reasoning(&r->out, &r->progress, text);
    relay_end_event(r, at);
    return 0;
}

static int on_tool(void *arg, size_t index, const char *id, const char *name, struct slice arguments)
{
    struct llm_relay *r = arg;
    size_t at;
    int result;

    begin_answer(r);
    result = llm_answer_add_tool(&r->answer, index, id, name, arguments);
    if (result < 0)
        return report_large(r, result);
    if (!r->start.form->tool)
        return 0;
    at = relay_begin_event(r);
    r->start.form->tool(&r->out, &r->progress, index, id, name, arguments);
    relay_end_event(r, at);
    return 0;
}

static int on_signature(void *arg, bool is_hidden, struct slice signature)
{
    struct llm_relay *r = arg;
    const struct llm_sink gathered = llm_answer_sink(&r->answer);
    int result = r->start.form->keeps_thoughts ? gathered.on_signature(gathered.arg, is_hidden, signature) : 0;
    size_t at;

    begin_answer(r);
    if (result < 0)
        return report_large(r, result);
    if (!r->start.form->signature)
        return 0;
    at = relay_begin_event(r);
    r->start.form->signature(&r->out, &r->progress, is_hidden, signature);
    relay_end_event(r, at);
    return 0;
}

static int on_extra(void *arg, size_t index, struct slice extra)
{
    struct llm_relay *r = arg;
    size_t at;

    if (!r->start.form->extra)
        return 0;
    at = relay_begin_event(r);
    r->start.form->extra(&r->out, &r->progress, index, extra);
    relay_end_event(r, at);
    return 0;
}

/* ---- large last events: printed by a worker ---- */

static void end_printed(void *arg)
{
    struct llm_relay *r = arg;
    size_t at;

    r->is_printing = false;
    relay_take_out(r);
    at = r->out.n;
    buf_add_slice(&r->out, buf_slice(&r->last));
    r->out.overflowed |= r->last.overflowed;
    buf_clear(&r->last);
    relay_end_event(r, at);
    r->is_over = true;
    relay_notify_ended(r, true, true);
    (void)!relay_flush(r);
    relay_free_when_done(r);
}

/* Reads `progress` and `answer`, which do not change any more, and the form's state. */
static void print_end(void *arg)
{
    struct llm_relay *r = arg;

    r->start.form->end(&r->last, &r->progress);
    loop_post(r->owner->loop, end_printed, r);
}

/* False: the caller prints the last events. */
static bool print_on_worker(struct llm_relay *r)
{
    const struct llm_form *form = r->start.form;
    struct pool *workers = r->owner->turns ? llm_turns_workers(r->owner->turns) : NULL;

    if (!workers || !form->n_end_bytes || form->n_end_bytes(&r->progress) <= LIMIT_LLM_READ_ON_LOOP ||
        !loop_is_current(r->owner->loop))
        return false;
    buf_init(&r->last, LIMIT_STREAM_PUSH);
    relay_write_id(r, &r->last);
    r->is_printing = true;
    if (pool_submit(workers, print_end, r) == 0)
        return true;
    r->is_printing = false;
    buf_clear(&r->last);
    return false;
}

static void end_answer(struct llm_relay *r)
{
    size_t at = relay_begin_event(r);

    r->start.form->end(&r->out, &r->progress);
    relay_end_event(r, at);
    r->is_over = true;
}

static int check(void *arg, struct err *e)
{
    struct llm_relay *r = arg;
    struct slice text = buf_slice(&r->answer.text);

    return llm_format_check(&r->start.plan->rule, &text, e);
}

static int on_checked(void *arg)
{
    struct llm_relay *r = arg;

    if (r->answer.model)
        r->progress.model = r->answer.model;
    r->progress.duration_s = (double)(clock_mono_us() - r->progress.began_us) / 1e6;
    if (!print_on_worker(r))
        end_answer(r);
    llm_turn_answered(&r->turn);
    return 0;
}

static int on_answer_end(void *arg, enum llm_finish why, const struct llm_usage *usage, const char *model)
{
    struct llm_relay *r = arg;
    int result;

    begin_answer(r);
    llm_answer_end(&r->answer, why, usage, model);
    llm_answer_estimate(&r->answer, r->start.plan->prompt_tokens, r->n_text_bytes);
    result = r->answer.n_tools == 0 ? llm_turn_check(&r->turn) : 0;
    if (result == -EINPROGRESS)
        return 0;
    return result < 0 ? result : on_checked(r);
}

/* ---- the turn's events ---- */

static void on_attempt(void *arg)
{
    struct llm_relay *r = arg;

    r->progress.provider = r->turn.account->name;
    r->progress.model = llm_turn_planned(&r->turn)->model;
    r->progress.began_us = r->turn.began_us;
    r->progress.lost_us = r->turn.lost_us;
}

static void before_read(void *arg)
{
    relay_take_out(arg);
}

static int after_read(void *arg)
{
    struct llm_relay *r = arg;
    int result;

    if (r->has_events && !r->has_begun && r->has_client)
        relay_open_client(r);
    if (r->is_over)
        relay_notify_ended(r, true, true);
    result = relay_flush(r);
    if (result == 0 && r->is_kept && !r->is_over && llm_ring_is_full(&r->ring))
        result = -EAGAIN; /* without a client the stream pauses rather than lose events */
    return result;
}

static void emit_failure(struct llm_relay *r, const struct err *e)
{
    struct err *shown = err_place(&r->answer.e);
    size_t at;

    *shown = *e;
    err_strip_hidden(shown);
    at = relay_begin_event(r);
    r->start.form->error(&r->out, &r->progress, shown);
    relay_end_event(r, at);
    r->is_over = true;
    relay_notify_ended(r, true, false);
}

static void on_turn_end(void *arg, int result, const struct err *e)
{
    struct llm_relay *r = arg;

    r->has_turn = false;
    if (result < 0 && !r->is_over && r->has_begun)
        emit_failure(r, e);
    else if (result < 0 && r->has_client && !r->has_begun) {
        relay_notify_ended(r, r->turn.is_cancelled, false); /* cancelled: the client left while the answer was read */
        relay_fail(r, result, e);
    }
    relay_free_requests(r);
    (void)!relay_flush(r);
    relay_free_when_done(r);
}

/* ---- the beginning ---- */

static void start_turn(struct llm_relay *r)
{
    static const struct llm_turn_events events = {
        on_attempt, before_read, after_read, check, on_checked, on_turn_end
    };
    const struct llm_turn_start start = {
        .plan = r->start.plan,
        .sink = { on_text, on_reasoning, on_tool, on_signature, on_extra, on_answer_end, r },
        .events = &events,
        .arg = r,
    };

    r->has_turn = true;
    llm_turn_start(r->owner->turns, &r->turn, &start);
}

static void begin(void *arg)
{
    struct llm_relay *r = arg;
    struct err e;

    r->next = r->owner->first;
    if (r->next)
        r->next->previous = r;
    r->owner->first = r;
    if (r->owner->turns && !r->client->is_gone(r->client_arg)) {
        r->client->watch(r->client_arg, r);
        start_turn(r);
        return;
    }
    err_init(&e);
    relay_fail(r, err_set(&e, -ECANCELED, "SHUTTING_DOWN", "The client has left or the service is stopping."), &e);
    relay_free_when_done(r);
}

void llm_relay_start(struct llm_relays *relays, const struct llm_relay_start *start)
{
    struct llm_relay *r = xcalloc(1, sizeof(*r));

    r->owner = relays;
    atomic_fetch_add(&relays->n_refs, 1);
    r->start = *start;
    r->client = start->client;
    r->client_arg = start->client_arg;
    r->has_client = true;
    uuid_v4(r->progress.uuid);
    r->progress.began_wall_ms = clock_wall_ms();
    r->progress.answer = &r->answer;
    r->progress.state = start->state;
    r->progress.prompt_tokens = start->plan->prompt_tokens;
    llm_answer_init(&r->answer);
    buf_init(&r->out, LIMIT_STREAM_PUSH);
    loop_post(relays->loop, begin, r);
}

struct llm_relays *llm_relays_new(struct llm_turns *turns, struct settings *settings)
{
    struct llm_relays *relays = xcalloc(1, sizeof(*relays));

    relays->loop = llm_turns_loop(turns);
    relays->settings = settings;
    relays->turns = turns;
    buf_init(&relays->spare, LIMIT_STREAM_PUSH);
    atomic_init(&relays->n_refs, 1);
    return relays;
}

struct llm_relays *llm_relays_free(struct llm_relays *relays)
{
    if (!relays)
        return NULL;
    relays->is_closing = true;
    for (struct llm_relay *r = relays->first, *next; r; r = next) {
        next = r->next;
        if (r->has_client)
            llm_relay_on_gone(r);
        else if (r->is_kept)
            relay_stop_keeping(r);
    }
    relays->turns = NULL;
    relays_unref(relays);
    return NULL;
}
