/* Texts into vectors for every route that embeds: whom to ask, asking, the answer's headers, what is counted.
 *
 * embed_texts() blocks a worker; results live in the request's arena. Routes are ROUTE_SHORT with a needs_long that says embed_waits(): the
 * built-in model is computed where the request is, a provider is waited for in the long pool.
 *
 *     r = embed_texts(req, &(struct embed_wish){ .texts = texts.items, .n = texts.n, .model = "bge-m3" }, &made, e);
 */
#pragma once

#include "api/route.h"
#include "embed/embed.h"
#include "llm/accounts.h"

struct embed_wish {
    const struct slice *texts; size_t n;
    const char *provider, *model;       /* NULL or "": as set */
    enum embed_purpose purpose;
    int64_t n_dimensions;               /* 0: as the model makes them */
};

struct embed_made {
    const float *items;                 /* n * n_dimensions */
    size_t n, n_dimensions;
    const char *provider, *model;
    int64_t n_tokens;
    bool is_estimated;                  /* the provider did not count */
};

bool embed_waits(const struct request *req, const char *provider);
/* -EINVAL PROVIDER_UNAVAILABLE, INVALID_MODEL, INPUT_TOO_LONG; -EAGAIN PROVIDER_UNAVAILABLE; what the provider's refusal means. */
int embed_texts(struct request *req, const struct embed_wish *wish, struct embed_made *ret, struct err *e) MUST_CHECK;
/* One text, asked once, whatever the provider is known for; nothing is noted about it. */
struct embed_limits { int64_t load_ms, connect_ms, total_ms; };      /* load: of the total, until a model that is run here is ready */
int embed_try(struct request *req, struct llm_seat *seat, const char *model, const struct embed_limits *most, struct embed_vectors *ret,
              struct err *e) MUST_CHECK;
/* The account's own embedding model; NULL when there is none. */
const char *embed_own_model(const struct llm_account *acc);

/* A string or 1 to LIMIT_EMBED_TEXTS of them: the rules of `input`, for route.check_body, and then the texts. */
int embed_check_input(struct json_value input, struct err *e) MUST_CHECK;
struct embed_input { const struct slice *items; size_t n; };
struct embed_input embed_read_input(struct arena *a, struct json_value input);
