/* Which account gets the next attempt, and when: retries before the first byte of an answer, then the accounts to fall
 * back on. Pure bookkeeping for llm/turn.c; one thread at a time.
 *
 *     at = llm_attempts_next(&t, &e);              below 0: give up, e says why
 *     wait_ms = llm_attempts_failed(&t, r, retry_after_ms);     -1: give up; else wait, then llm_attempts_next()
 */
#pragma once

#include "llm/plan.h"

struct llm_attempts {
    const struct llm_plan *plan; /* borrowed */
    size_t at;                   /* index into the plan's picks */
    unsigned n_tries;            /* with that account */
    unsigned most_retries, rest_after;
    int64_t retry_after_max_ms, deadline_ms;
};

/* Reads the settings. deadline_ms: clock_mono_ms(). */
void llm_attempts_init(struct llm_attempts *t, const struct llm_plan *plan, struct settings *settings,
                       int64_t deadline_ms);
/* The place in the plan of the account for the next attempt; accounts that rest, or whose model rests, are skipped.
 * -EAGAIN PROVIDER_UNAVAILABLE when all rest; the error says how long until the first rest ends. */
int llm_attempts_next(struct llm_attempts *t, struct err *e) MUST_CHECK;
/* Call when the request to the present account failed before the first byte of an answer. */
int64_t llm_attempts_failed(struct llm_attempts *t, int r, const char *why, int64_t retry_after_ms) MUST_CHECK;
void llm_attempts_succeeded(struct llm_attempts *t);

/* Retry-After in seconds or as a date (RFC 9110 section 10.2.3), in milliseconds from now; 0 when there is none. */
int64_t llm_retry_after_ms(const struct http_answer *answer);
