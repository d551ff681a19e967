/* The circuit breaker of one account: after several failures in a row the account, or only the failed model, gets no
 * requests for a while.
 *
 * A failure that concerns the whole account (no connection, no name, no TLS) rests the account; a failure after the
 * connection was made (5xx, no answer in time, a connection that breaks) rests the requested model. Every answer,
 * including a refusal, resets both counts. Model names come from callers: at most LIMIT_LLM_BROKEN_MODELS are kept.
 * Embedded in struct llm_account_state, whose lock guards it.
 *
 *     if (breaker_may_try(&b, "llama3"))  ...request...  breaker_failed(&b, "llama3", LLM_FAULT_OF_MODEL, 3);
 */
#pragma once

#include "base/limits.h"
#include "base/util.h"

enum llm_fault { LLM_NO_FAULT, LLM_FAULT_OF_MODEL, LLM_FAULT_OF_ACCOUNT };
/* r: a negative errno of net/http_client.h or of llm_refusal(). */
enum llm_fault llm_fault_of(int r);

struct breaker_state {
    unsigned n_failures;
    int64_t open_until_ms; /* clock_mono_ms(): no requests before this time; 0: not resting */
};
struct breaker_model {
    char *name; /* owned */
    struct breaker_state state;
    int64_t failed_ms;
};

struct breaker {
    struct breaker_state account;
    struct breaker_model *models; /* owned; NULL: no model has failed */
    size_t n_models;
};

void breaker_clear(struct breaker *b);
/* model NULL: only the account counts. After a rest this returns true for one request; the others wait for its outcome.
 */
bool breaker_may_try(struct breaker *b, const char *model);
/* The time left of the account's rest, or of the model's when the account does not rest; *ret_of says which. 0: neither
 * rests. */
int64_t breaker_rest_ms(const struct breaker *b, const char *model, enum llm_fault *ret_of);
void breaker_succeeded(struct breaker *b, const char *model);
/* rest_after: failures in a row until the rest begins; 0: never. */
void breaker_failed(struct breaker *b, const char *model, enum llm_fault fault, unsigned rest_after);
