/* Large requests wait while requests need as much memory as they may (budget `memory`, settings limits.memory_mb, limits.request_memory_mb).
 *
 * Loop thread only. No thread waits and no work has begun: the request is whole, its body is the only thing it holds. Small ones and the
 * administrator always pass. Who has waited LIMIT_LARGE_WAIT_MS, or finds LIMIT_LARGE_WAITING before it, is refused: 429 for the caller's own
 * budget, 503 for the service's.
 */
#pragma once

#include "base/loop.h"
#include "http/http.h"

struct admission;

struct admission *admission_new(struct loop *l) MUST_CHECK;
/* Who still waits gets -EPIPE SHUTTING_DOWN. NULL is fine; returns NULL. */
struct admission *admission_free(struct admission *a);
/* Calls fn once, now or later: r 0 when there is memory for the request, which its purse holds then, else the error. */
void admission_enter(struct admission *a, struct http_exchange *x, void (*fn)(void *arg, int r, struct err *e), void *arg);
