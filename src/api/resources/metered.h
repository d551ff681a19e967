/* Requests that use models: the request as a call of models/, and the headers of their answers.
 *
 * For handlers, on their worker; a stream writes its headers on the loop.
 *
 *     r = provider_choose(metered_call(req), PROVIDER_CHAT, body->provider, body->model, &choice, e);
 */
#pragma once

#include "api/route.h"
#include "models/models.h"

/* Additional members of this service's own RATE_LIMIT errors. */
#define METERED_ERROR_SHAPE                                                                                            \
    SHAPE_STRING("limit", .flags = FIELD_OPTIONAL,                                                                     \
                 .help = "of a 429 of this service: which limit is reached, named as in /api/limits"),                 \
        SHAPE_STRING("of", .flags = FIELD_OPTIONAL, .help = "of a 429 of this service: whose limit it is, app or key")

/* In the request's arena; the grant was checked by the route's row. */
struct models_call *metered_call(const struct request *req) MUST_CHECK;
/* x-hearth-provider; x-hearth-queue-ms: from the head of the request to its handler; x-hearth-overhead-ms: this
 * service's part of the rest. */
void metered_headers(struct http_exchange *x, const char *provider, int64_t handled_us, int64_t overhead_us);
/* Sets the header Retry-After, in whole seconds, for RATE_LIMIT errors only. */
void metered_retry_after(struct http_exchange *x, const struct err *e, int64_t retry_after_ms);
