/* What a chat will send: the accounts to ask, in order, and for each the finished upstream request. Made on a worker, so that all that can
 * fail before the first byte fails here.
 *
 * In one arena, references to the seats with it; nothing of the request it was made of is needed any more. Read-only afterwards; any thread.
 *
 *     r = llm_plan_make(accounts, "openai", &ask, arena, is_gone, &plan, e);
 */
#pragma once

#include "llm/accounts.h"
#include "llm/format.h"

struct llm_planned {
    struct http_ask http;
    const char *model;
    bool must_check;                    /* the answer against the plan's rule */
    bool is_whole;                      /* the upstream is not asked to stream */
    bool must_stop;                     /* the model takes no stop sequences: this service ends the answer */
};

struct llm_plan {
    struct llm_picks picks;
    struct llm_planned of[LIMIT_LLM_FALLBACKS + 1];     /* by place in picks */
    struct arena **asks;                /* owned by the arena: what `of[].http` points at; NULL inside: forgotten */
    struct llm_format_rule rule;        /* for must_check */
    struct field_strings stop;          /* the ask's, for must_stop */
    int64_t prompt_tokens;              /* by estimate */
    int64_t total_ms;
};

/* ask->model NULL: the account's. The accounts to fall back on take their own models; of a chat whose
 * requests take much memory only as many as one request may hold (LIMIT_LLM_PLAN_BYTES before the last of them). */
int llm_plan_make(struct llm_accounts *accounts, const char *provider, const struct llm_ask *ask, struct arena *a, const atomic_bool *is_gone,
                  struct llm_plan *ret, struct err *e) MUST_CHECK;

/* Nobody is asked any more: the upstream requests end now. */
void llm_plan_forget_asks(const struct llm_plan *plan);

/* The reader of what place `at` answers, in front of the sink (copied). */
struct llm_reader *llm_plan_reader(const struct llm_plan *plan, size_t at, struct arena *a, const struct llm_sink *sink);

/* A failure in the words of D8: a transport's code becomes LLM_ERROR, the old one `reason`; the account's secrets are left out, its host is
 * hidden (base/err.h). Returns r. */
int llm_blame(const struct llm_account *acc, int r, struct err *e);
