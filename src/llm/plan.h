/* The plan of a chat: its accounts in order, and for each the finished upstream request. A worker makes the plan, so
 * that preparation errors occur before anything is sent.
 *
 * The plan lives in one arena, with references to the account states; it keeps no pointers into the original request.
 * Read-only after creation; any thread.
 *
 *     r = llm_plan_make(accounts, "openai", &request, arena, is_gone, &plan, e);
 */
#pragma once

#include "llm/accounts.h"
#include "llm/format.h"

struct llm_planned {
    struct http_call_request http;
    const char *model;
    bool must_check; /* check the answer against the plan's rule */
    bool is_whole;   /* the upstream request does not stream */
    bool must_stop;  /* the model takes no stop sequences: this service ends the answer */
};

struct llm_plan {
    struct llm_picks picks;
    struct llm_planned of[LIMIT_LLM_FALLBACKS + 1]; /* by place in picks */
    struct arena **requests;     /* owned by the arena: the memory of `of[].http`; *requests NULL: freed */
    struct llm_format_rule rule; /* for must_check */
    struct field_strings stop;   /* the request's, for must_stop */
    int64_t prompt_tokens;       /* an estimate */
    int64_t total_ms;
};

/* request->model NULL: the account's model. The accounts to fall back on use their own models. No further account is
 * planned once the requests take LIMIT_LLM_PLAN_BYTES. On the loop -ENEEDSWORKER when the plan needs more than
 * memory. */
int llm_plan_make(struct llm_accounts *accounts, const char *provider, const struct llm_request *request,
                  struct arena *a, const atomic_bool *is_gone, struct llm_plan *ret, struct err *e) MUST_CHECK;

/* Would llm_plan_make() wait for a list of models, for a model to load, or for a search of this machine? */
bool llm_plan_waits(struct llm_accounts *accounts, const char *provider, const char *model);

/* Frees the upstream requests; none is sent after this. */
void llm_plan_free_requests(const struct llm_plan *plan);

/* A reader for the answer of account `at` that feeds the sink (copied). */
struct llm_reader *llm_plan_reader(const struct llm_plan *plan, size_t at, struct arena *a,
                                   const struct llm_sink *sink);

/* Rewrites a failure in the terms of D8: a transport's code becomes LLM_ERROR, the old code becomes `reason`; the
 * account's secrets are removed, its host is hidden (base/err.h). Returns r. */
int llm_blame(const struct llm_account *acc, int r, struct err *e);
