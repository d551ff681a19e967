#include "llm/call.h"

#include "base/clock.h"
#include "llm/attempts.h"
#include "llm/format.h"

#include <string.h>

enum { NAP_MS = 20 };

static void clear_answer(void *answer)
{
    llm_answer_clear(answer);
}

static int read_answer(const struct llm_plan *plan, size_t at, struct slice body, struct arena *a, struct llm_outcome *out, struct err *e)
{
    const struct llm_protocol *p = plan->picks.seats[at]->account.preset->protocol;
    struct llm_answer *answer = out->answer;
    struct llm_sink sink = llm_answer_sink(answer);
    struct slice text;
    int r = p->on_whole(llm_plan_reader(plan, at, a, &sink), body, e);

    if (r < 0)
        return answer->e ? err_set(e, r, answer->e->code, "%s", answer->e->text) : r;
    llm_answer_estimate(answer, plan->prompt_tokens, answer->text.n + answer->reasoning.n);
    text = buf_slice(&answer->text);
    if (!plan->of[at].must_check || answer->n_tools > 0)
        return 0;
    r = llm_format_check(&plan->rule, &text, e);
    if (r == 0 && text.n < answer->text.n) {
        memmove(answer->text.p, text.p, text.n);
        answer->text.n = text.n;
    }
    return r;
}

static int try_once(const struct llm_plan *plan, size_t at, struct arena *a, const atomic_bool *is_gone, struct llm_outcome *out, struct err *e)
{
    const struct llm_account *acc = &plan->picks.seats[at]->account;
    struct http_answer answer = { 0 };
    int64_t began_us = clock_mono_us();
    int r = http_call(&plan->of[at].http, a, is_gone, &answer, e);

    out->answer_us = clock_mono_us() - began_us;
    out->upstream_us += out->answer_us;
    if (r == 0 && answer.status / 100 != 2) {
        out->retry_after_ms = llm_retry_after_ms(&answer);
        r = llm_refusal(acc, answer.status, answer.body, e);
    }
    if (r == 0)
        r = read_answer(plan, at, answer.body, a, out, e);
    return r < 0 ? llm_blame(acc, r, e) : 0;
}

static int nap(int64_t wait_ms, const atomic_bool *is_gone, struct err *e)
{
    int64_t until_ms = clock_mono_ms() + wait_ms;
    const struct timespec pause = { .tv_nsec = NAP_MS * 1000000L };

    while (clock_mono_ms() < until_ms) {
        if (is_gone && atomic_load(is_gone))
            return err_set(e, -ECANCELED, "SHUTTING_DOWN", "The client has left or the service is stopping.");
        nanosleep(&pause, NULL);
    }
    return 0;
}

static void begin(struct arena *a, struct llm_outcome *out)
{
    *out = (struct llm_outcome){ .answer = ARENA_NEW(a, struct llm_answer) };
    arena_defer(a, clear_answer, out->answer);
}

/* Once per attempt what the one before left behind is forgotten, but for the tokens it cost. */
static void begin_attempt(const struct llm_plan *plan, size_t at, struct llm_outcome *out, struct err *e)
{
    llm_usage_add(&out->lost, &out->answer->usage);
    llm_answer_clear(out->answer);
    llm_answer_init(out->answer);
    out->retry_after_ms = 0;
    e->n_extras = 0;
    e->retry_after_ms = 0;
    e->hidden[0] = '\0';
    out->provider = plan->picks.seats[at]->account.name;
    out->model = plan->of[at].model;
}

int llm_call_once(const struct llm_plan *plan, struct arena *a, const atomic_bool *is_gone, struct llm_outcome *out, struct err *e)
{
    int r;

    begin(a, out);
    begin_attempt(plan, 0, out, e);
    r = try_once(plan, 0, a, is_gone, out, e);
    if (r == 0 && out->answer->model)
        out->model = out->answer->model;
    return r;
}

int llm_call(const struct llm_plan *plan, struct settings *settings, struct arena *a, const atomic_bool *is_gone, struct llm_outcome *out,
             struct err *e)
{
    struct llm_attempts attempts;
    int64_t wait_ms;
    int at, r;

    begin(a, out);
    llm_attempts_init(&attempts, &plan->picks, settings, clock_mono_ms() + plan->total_ms);
    for (;;) {
        at = llm_attempts_next(&attempts, e);
        if (at < 0)
            return at;
        begin_attempt(plan, (size_t)at, out, e);
        r = try_once(plan, (size_t)at, a, is_gone, out, e);
        if (r == 0)
            break;
        wait_ms = llm_attempts_failed(&attempts, r, out->retry_after_ms);
        if (wait_ms < 0 || nap(wait_ms, is_gone, e) < 0)
            return r;
    }
    llm_attempts_succeeded(&attempts);
    if (out->answer->model)
        out->model = out->answer->model;
    return 0;
}
