/* Large requests wait while all requests together use as much memory as they may (budget `memory`, settings
 * limits.memory_mb, limits.request_memory_mb).
 *
 * Loop thread only. No thread waits and no work has begun: the request is complete and holds only its body. Small
 * requests and the administrator always pass. A request that has waited LIMIT_LARGE_WAIT_MS, or that finds
 * LIMIT_LARGE_WAITING requests before it, is refused: 429 for the caller's own budget, 503 for the service's.
 */
#pragma once

#include "base/loop.h"
#include "http/http.h"

struct admission;

struct admission *admission_new(struct loop *l) MUST_CHECK;
/* Requests that still wait get -EPIPE SHUTTING_DOWN. NULL is fine; returns NULL. */
struct admission *admission_free(struct admission *a);
/* Calls fn once, now or later: r is 0 when there is memory for the request, which its purse then holds; else r is the
 * error. */
void admission_enter(struct admission *a, struct http_exchange *x, void (*fn)(void *arg, int r, struct err *e),
                     void *arg);
