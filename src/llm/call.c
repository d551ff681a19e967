#include "llm/call.h"

#include "base/clock.h"
#include "llm/format.h"

#include <string.h>

static void clear_answer(void *answer)
{
    llm_answer_clear(answer);
}

static int read_answer(const struct llm_plan *plan, struct slice body, struct arena *a, struct llm_outcome *out,
                       struct err *e)
{
    const struct llm_protocol *p = plan->picks.states[0]->account.preset->protocol;
    struct llm_answer *answer = out->answer;
    struct llm_sink sink = llm_answer_sink(answer);
    struct slice text;
    int r = p->on_whole(llm_plan_reader(plan, 0, a, &sink), body, e);

    if (r < 0)
        return answer->e ? err_set(e, r, answer->e->code, "%s", answer->e->text) : r;
    llm_answer_estimate(answer, plan->prompt_tokens, answer->text.n + answer->reasoning.n);
    text = buf_slice(&answer->text);
    if (!plan->of[0].must_check || answer->n_tools > 0)
        return 0;
    r = llm_format_check(&plan->rule, &text, e);
    if (r == 0 && text.n < answer->text.n) {
        memmove(answer->text.p, text.p, text.n);
        answer->text.n = text.n;
    }
    return r;
}

static int try_once(const struct llm_plan *plan, struct arena *a, const atomic_bool *is_gone, struct llm_outcome *out,
                    struct err *e)
{
    const struct llm_account *acc = &plan->picks.states[0]->account;
    struct http_answer answer = { 0 };
    int64_t began_us = clock_mono_us();
    int r = http_call(&plan->of[0].http, a, is_gone, &answer, e);

    out->answer_us = clock_mono_us() - began_us;
    if (r == 0 && answer.status / 100 != 2)
        r = llm_refusal(acc, answer.status, answer.body, e);
    if (r == 0)
        r = read_answer(plan, answer.body, a, out, e);
    return r < 0 ? llm_blame(acc, r, e) : 0;
}

static void begin(const struct llm_plan *plan, struct arena *a, struct llm_outcome *out)
{
    *out = (struct llm_outcome){ .answer = ARENA_NEW(a, struct llm_answer),
                                 .provider = plan->picks.states[0]->account.name,
                                 .model = plan->of[0].model };
    llm_answer_init(out->answer);
    arena_defer(a, clear_answer, out->answer);
}

int llm_call_once(const struct llm_plan *plan, struct arena *a, const atomic_bool *is_gone, struct llm_outcome *out,
                  struct err *e)
{
    int r;

    begin(plan, a, out);
    r = try_once(plan, a, is_gone, out, e);
    if (r == 0 && out->answer->model)
        out->model = out->answer->model;
    return r;
}
