#include "llm/whole.h"

#include "base/clock.h"
#include "llm/format.h"

#include <stdlib.h>
#include <string.h>

static struct llm_whole *whole_of(void *answer)
{
    return CONTAINER_OF((struct llm_answer *)answer, struct llm_whole, answer);
}

static int tapped(struct llm_whole *w, int r)
{
    if (r == 0)
        return 0;
    return err_set(llm_turn_err(&w->turn), -ECANCELED, "SHUTTING_DOWN",
                   "The receiver of the chat has left or the service is stopping.");
}

/* Removes from the text what the check cut away. */
static int check(void *arg, struct err *e)
{
    struct llm_whole *w = arg;
    struct slice text = buf_slice(&w->answer.text);
    int r = llm_format_check(&w->start.plan->rule, &text, e);

    if (r == 0 && text.n < w->answer.text.n) {
        memmove(w->answer.text.p, text.p, text.n);
        w->answer.text.n = text.n;
    }
    return r;
}

static int on_checked(void *arg)
{
    struct llm_whole *w = arg;
    const struct llm_sink *tap = w->start.tap;

    llm_turn_answered(&w->turn);
    if (!tap || !tap->on_end)
        return 0;
    return tapped(w, tap->on_end(tap->arg, w->answer.why, &w->answer.usage, w->answer.model));
}

static int on_answer_end(void *answer, enum llm_finish why, const struct llm_usage *usage, const char *model)
{
    struct llm_whole *w = whole_of(answer);
    int r;

    llm_answer_end(&w->answer, why, usage, model);
    llm_answer_estimate(&w->answer, w->start.plan->prompt_tokens, w->answer.text.n + w->answer.reasoning.n);
    r = w->answer.n_tools == 0 ? llm_turn_check(&w->turn) : 0;
    if (r == -EINPROGRESS)
        return 0;
    return r < 0 ? r : on_checked(w);
}

/* Discards the previous attempt's answer but keeps the tokens it cost. */
static void on_attempt(void *arg)
{
    struct llm_whole *w = arg;

    llm_usage_add(&w->lost, &w->answer.usage);
    llm_answer_clear(&w->answer);
    llm_answer_init(&w->answer);
    w->progress.provider = w->turn.account->name;
    w->progress.model = llm_turn_planned(&w->turn)->model;
    w->progress.began_us = w->turn.began_us;
    w->progress.lost_us = w->turn.lost_us;
}

/* The answer's own error is more precise than the reader's. What was passed on cannot be taken back. */
static int after_read(void *arg)
{
    struct llm_whole *w = arg;

    if (w->is_tapped)
        llm_turn_commit(&w->turn);
    if (w->answer.e)
        *llm_turn_err(&w->turn) = *w->answer.e;
    return 0;
}

static void on_end(void *arg, int r, const struct err *e)
{
    struct llm_whole *w = arg;
    int64_t answer_us = w->turn.account ? clock_mono_us() - w->turn.began_us : 0;

    w->upstream_us = w->turn.lost_us + answer_us;
    w->retry_after_ms = w->turn.retry_after_ms;
    w->progress.duration_s = (double)answer_us / 1e6;
    if (w->is_tapped && !w->answer.has_ended)
        llm_answer_estimate(&w->answer, w->start.plan->prompt_tokens, w->answer.text.n + w->answer.reasoning.n);
    if (r == 0 && w->answer.model)
        w->progress.model = w->answer.model;
    llm_plan_free_requests(w->start.plan);
    w->start.done(w->start.arg, w, r, e);
}

/* ---- the tap ---- */

/* r: what gathering the delta returned. */
static const struct llm_sink *tap_of(void *answer, int r)
{
    struct llm_whole *w = whole_of(answer);

    w->is_tapped = w->is_tapped || r == 0;
    return r == 0 ? w->start.tap : NULL;
}

static int tap_text(void *answer, struct slice text)
{
    int r = llm_answer_sink(answer).on_text(answer, text);
    const struct llm_sink *tap = tap_of(answer, r);

    return tap && tap->on_text ? tapped(whole_of(answer), tap->on_text(tap->arg, text)) : r;
}

static int tap_reasoning(void *answer, struct slice text)
{
    int r = llm_answer_sink(answer).on_reasoning(answer, text);
    const struct llm_sink *tap = tap_of(answer, r);

    return tap && tap->on_reasoning ? tapped(whole_of(answer), tap->on_reasoning(tap->arg, text)) : r;
}

static int tap_tool(void *answer, size_t index, const char *id, const char *name, struct slice arguments)
{
    int r = llm_answer_sink(answer).on_tool(answer, index, id, name, arguments);
    const struct llm_sink *tap = tap_of(answer, r);

    return tap && tap->on_tool ? tapped(whole_of(answer), tap->on_tool(tap->arg, index, id, name, arguments)) : r;
}

static int tap_signature(void *answer, bool is_hidden, struct slice signature)
{
    int r = llm_answer_sink(answer).on_signature(answer, is_hidden, signature);
    const struct llm_sink *tap = tap_of(answer, r);

    return tap && tap->on_signature ? tapped(whole_of(answer), tap->on_signature(tap->arg, is_hidden, signature)) : r;
}

static int tap_extra(void *answer, size_t index, struct slice extra)
{
    int r = llm_answer_sink(answer).on_extra(answer, index, extra);
    const struct llm_sink *tap = tap_of(answer, r);

    return tap && tap->on_extra ? tapped(whole_of(answer), tap->on_extra(tap->arg, index, extra)) : r;
}

static struct llm_sink sink_of(struct llm_whole *w)
{
    struct llm_sink sink = llm_answer_sink(&w->answer);

    if (w->start.tap)
        sink = (struct llm_sink){ tap_text, tap_reasoning, tap_tool, tap_signature, tap_extra, NULL, &w->answer };
    sink.on_end = on_answer_end;
    return sink;
}

void llm_whole_start(struct llm_turns *turns, const struct llm_whole_start *start, struct llm_whole **ret)
{
    static const struct llm_turn_events events = {
        .on_attempt = on_attempt, .after_read = after_read, .check = check, .on_checked = on_checked, .on_end = on_end
    };
    struct llm_whole *w = xcalloc(1, sizeof(*w));

    w->start = *start;
    uuid_v4(w->progress.uuid);
    w->progress.began_wall_ms = clock_wall_ms();
    w->progress.prompt_tokens = start->plan->prompt_tokens;
    w->progress.answer = &w->answer;
    w->progress.state = start->state;
    llm_answer_init(&w->answer);
    *ret = w;
    llm_turn_start(turns, &w->turn,
                   &(struct llm_turn_start){
                       .plan = start->plan, .sink = sink_of(w), .events = &events, .arg = w, .holder = start->holder });
}

void llm_whole_cancel(struct llm_whole *w)
{
    llm_turn_cancel(&w->turn);
}

struct llm_whole *llm_whole_free(struct llm_whole *w)
{
    if (!w)
        return NULL;
    llm_answer_clear(&w->answer);
    arena_free(w->start.arena);
    free(w);
    return NULL;
}

struct llm_usage llm_whole_usage(const struct llm_whole *w)
{
    struct llm_usage sum = w->lost;

    llm_usage_add(&sum, &w->answer.usage);
    return sum;
}
