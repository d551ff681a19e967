/* What every request to a model passes: limits before it, counts after it (identity/meter.h), the headers that tell of both.
 *
 * For handlers, on their worker; a stream counts on the loop with its ticket.
 *
 *     r = metered_admit(req, expected_tokens, &ticket, e);     429 RATE_LIMIT with Retry-After
 */
#pragma once

#include "api/route.h"
#include "identity/meter.h"

/* What a RATE_LIMIT of ours tells besides. */
#define METERED_ERROR_SHAPE                                                                                                                     \
    SHAPE_STRING("limit", .flags = FIELD_OPTIONAL, .help = "of a 429 of this service: which limit is reached, named as in /api/limits"),          \
        SHAPE_STRING("of", .flags = FIELD_OPTIONAL, .help = "of a 429 of this service: whose limit it is, app or key")

int metered_admit(struct request *req, int64_t expected_tokens, struct meter_ticket *ret, struct err *e) MUST_CHECK;
/* x-hearth-provider; x-hearth-queue-ms: from the head of the request to its handler; x-hearth-overhead-ms: this service's part of the rest. */
void metered_headers(struct http_exchange *x, const char *provider, int64_t handled_us, int64_t overhead_us);
/* The header of a RATE_LIMIT, in whole seconds; of nothing else. */
void metered_retry_after(struct http_exchange *x, const struct err *e, int64_t retry_after_ms);
