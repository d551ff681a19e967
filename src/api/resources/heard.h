/* What is heard, counted in usage: a request and its seconds of sound (docs/usage.md). For handlers, on their worker.
 *
 *     r = heard_begin(req->api, req->caller, &count, &retry_after_ms, e);
 *     ...
 *     heard_end(&count, hearing_who(h), hearing_duration(h), r);      once, however the request ended
 */
#pragma once

#include "api/route.h"
#include "identity/meter.h"
#include "speech/ears.h"

struct heard_count {
    struct meter *meter; /* NULL: not admitted */
    struct meter_ticket ticket;
};

/* -EBUSY RATE_LIMIT. */
int heard_begin(struct api *api, const struct caller *c, struct heard_count *ret, int64_t *ret_retry_after_ms,
                struct err *e) MUST_CHECK;
/* The same for a request, whose answer gets Retry-After. */
int heard_begin_request(struct request *req, struct heard_count *ret, struct err *e) MUST_CHECK;
/* who.provider NULL: nobody began to hear, and the request is given back. r: 0, or why there is no whole answer. */
void heard_end(struct heard_count *count, struct ears_who who, double seconds, int r);
