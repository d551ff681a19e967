/* One small chat that a worker waits for: the test of a provider. All other chats are turns (llm/turn.h).
 *
 *     r = llm_call_once(&plan, arena, is_gone, &outcome, e);     outcome.answer->text
 */
#pragma once

#include "llm/answer.h"
#include "llm/plan.h"

struct llm_outcome { /* owned by the arena */
    struct llm_answer *answer;
    const char *provider, *model; /* of the account that answered or failed */
    int64_t answer_us;            /* time spent waiting, also on failure */
};

/* Asks the first account of the plan once, even if it rests; the circuit breaker does not count the outcome. */
int llm_call_once(const struct llm_plan *plan, struct arena *a, const atomic_bool *is_gone, struct llm_outcome *out,
                  struct err *e) MUST_CHECK;
