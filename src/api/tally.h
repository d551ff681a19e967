/* The metrics of one route: hearth_http_requests_total{route,method,status} and
 * hearth_http_request_seconds{route,method}.
 *
 * Embedded in a route's entry. Labels come from the tables and the few statuses of the program, never from a request.
 * Any thread; no lock is taken after the first answer with a status.
 */
#pragma once

#include "base/metrics.h"
#include "base/util.h"
#include <stdatomic.h>

enum { TALLY_STATUSES = 12 };

struct tally {
    const char *route, *method; /* borrowed: label values */
    struct metric *seconds;
    struct {
        int status;
        struct metric *_Atomic count;
    } known[TALLY_STATUSES];
};

void tally_init(struct tally *t, const char *route, const char *method);
void tally_add(struct tally *t, int status, int64_t took_us);
