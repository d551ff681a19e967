/* Turns texts into vectors: checks the grant and the limits, chooses the provider, sends the request, counts the usage
 * once.
 *
 * embed_texts() blocks a worker; results are in the call's arena. embed_waits() tells whether it would wait for a
 * provider: the built-in model belongs in the short pool, requests to providers in the long pool.
 *
 *     r = embed_texts(call, &(struct embed_job){ .texts = texts.items, .n = texts.n, .model = "bge-m3" }, &made, e);
 */
#pragma once

#include "embed/embed.h"
#include "models/models.h"

struct embed_job {
    const struct slice *texts;
    size_t n;
    const char *provider, *model; /* NULL or "": as configured */
    enum embed_purpose purpose;
    int64_t n_dimensions; /* 0: the model's default */
};

struct embed_made {
    const float *items; /* n * n_dimensions */
    size_t n, n_dimensions;
    const char *provider, *model;
    int64_t n_tokens;
    bool is_estimated;   /* the provider sent no count */
    int64_t upstream_us; /* time spent waiting for the provider */
};

bool embed_waits(const struct models_call *call, const char *provider, const char *model);
/* -EPERM as models_permit(); -EBUSY RATE_LIMIT; -EINVAL PROVIDER_UNAVAILABLE, INVALID_MODEL, INPUT_TOO_LONG; -EAGAIN
 * PROVIDER_UNAVAILABLE; -ECANCELED SHUTTING_DOWN; or the error for the provider's refusal. */
int embed_texts(struct models_call *call, const struct embed_job *job, struct embed_made *ret,
                struct err *e) MUST_CHECK;
/* Embeds one text in one attempt, whatever the account's state; the outcome does not change that state. */
struct embed_limits {
    int64_t load_ms, connect_ms, total_ms;
}; /* load_ms: the part of total_ms for starting a model that this service runs */
int embed_try(struct models_call *call, struct llm_account_state *state, const char *model,
              const struct embed_limits *most, struct embed_vectors *ret, struct err *e) MUST_CHECK;
/* The account's own embedding model; NULL when there is none. */
const char *embed_own_model(const struct llm_account *acc);
