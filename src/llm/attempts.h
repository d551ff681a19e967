/* Which account is asked next, and when: retries before the first byte of an answer, then the accounts to fall back on. Pure bookkeeping
 * for llm/call.c (a worker) and llm/relay.c (the loop); one thread at a time.
 *
 *     seat = llm_attempts_next(&t, &e);            NULL: give up, e says why
 *     wait_ms = llm_attempts_failed(&t, r, retry_after_ms);     -1: give up; else wait, then llm_attempts_next()
 */
#pragma once

#include "llm/accounts.h"

struct llm_attempts {
    struct llm_picks picks;
    size_t at;                          /* of picks */
    unsigned n_tries;                   /* of that one */
    unsigned most_retries, rest_after;
    int64_t retry_after_max_ms, deadline_ms;
};

/* Reads the settings. deadline_ms: clock_mono_ms(). */
void llm_attempts_init(struct llm_attempts *t, const struct llm_picks *picks, struct settings *settings, int64_t deadline_ms);
/* The place in picks of the account to ask now, those that rest left out; -EAGAIN PROVIDER_UNAVAILABLE when all do, and when the first may be
 * asked again. */
int llm_attempts_next(struct llm_attempts *t, struct err *e) MUST_CHECK;
/* The request to the present account failed before its first byte. */
int64_t llm_attempts_failed(struct llm_attempts *t, int r, int64_t retry_after_ms) MUST_CHECK;
void llm_attempts_succeeded(struct llm_attempts *t);

/* Retry-After in seconds or as a date (RFC 9110 section 10.2.3), in milliseconds from now; 0 when there is none. */
int64_t llm_retry_after_ms(const struct http_answer *answer);
