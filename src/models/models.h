/* Models for a caller, with or without an HTTP request: chats (models/chat.h), embeddings (models/embed_texts.h),
 * vectors (models/vector_space.h), and the choice of their provider (models/provider_choice.h).
 *
 * `struct models` names the modules and belongs to service/. A `struct models_call` is one piece of work for one
 * caller: a plain value, used by one thread at a time, with strings in its arena. A call checks the caller's grant
 * itself, unless the row of a route has done so.
 *
 *     struct models_call call = { .models = models, .caller = &caller, .arena = a, .is_gone = &is_cancelled };
 *     r = embed_texts(&call, &job, &made, e);
 */
#pragma once

#include "identity/meter.h"
#include "llm/accounts.h"

struct models { /* all borrowed */
    struct loop *loop;
    struct settings *settings;
    struct store *store;
    struct identity *identity;
    struct meter *meter;
    struct llm_accounts *llm_accounts;
    struct llm_turns *llm_turns; /* NULL without a service, like llm_relays */
    struct llm_relays *llm_relays;
    struct vector_stores *vector_stores;
    const struct guard *file_guard; /* for files that callers name by address */
    const atomic_bool *is_leaving;  /* the service is stopping; NULL: never */
};

struct models_call {
    const struct models *models;
    const struct caller *caller;
    struct arena *arena;          /* results, and everything made on the way */
    const atomic_bool *is_gone;   /* set by the caller to cancel the work; NULL: never */
    struct budget_holder *holder; /* borrowed; pays for the memory of peers' answers; NULL: no charge */
    bool is_permitted;            /* the grants for this call's work were checked and used before it */
    int64_t retry_after_ms;       /* set when the call fails with RATE_LIMIT: the time to wait; 0: unknown */
};

/* Checks the caller's grant for a permission of identity/permissions.h and uses it (identity_require()). For the
 * functions of this folder that begin a piece of work. -EPERM PERMISSION_REQUIRED, PERMISSION_DENIED. */
int models_permit(const struct models_call *call, const char *permission, struct err *e) MUST_CHECK;
/* The caller's limits, before the work: the ticket must be counted or given back exactly once (identity/meter.h).
 * expected_tokens: of prompt and answer. -EBUSY RATE_LIMIT. */
int models_admit(struct models_call *call, int64_t expected_tokens, struct meter_ticket *ret, struct err *e) MUST_CHECK;
