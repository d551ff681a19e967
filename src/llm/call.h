/* A whole chat on a worker: asked, tried again where that may help, fallen back, gathered (issue: retries, fallbacks).
 *
 *     r = llm_call(&plan, settings, arena, is_gone, &outcome, e);     outcome.answer.text
 */
#pragma once

#include "llm/answer.h"
#include "llm/plan.h"

struct llm_outcome {                    /* in the arena's keeping */
    struct llm_answer *answer;
    const char *provider, *model;       /* who answered, or failed last; NULL: nobody was asked */
    struct llm_usage lost;              /* of attempts before whose answers were read and could not be used */
    int64_t upstream_us;                /* time spent waiting for upstreams, also on failure */
    int64_t answer_us;                  /* of it, for the answer itself */
    int64_t retry_after_ms;             /* also on failure: what the upstream asks for; 0: nothing */
};

/* The first account of the plan once, whatever it is known for; nothing is noted about it. */
int llm_call_once(const struct llm_plan *plan, struct arena *a, const atomic_bool *is_gone, struct llm_outcome *out, struct err *e) MUST_CHECK;

int llm_call(const struct llm_plan *plan, struct settings *settings, struct arena *a, const atomic_bool *is_gone, struct llm_outcome *out,
             struct err *e) MUST_CHECK;
