/* Idle connections of http_call(), shared by all threads: a helper thread that lives for one call reuses the connection
 * of an earlier one. Private to src/net.
 *
 * Each is a multi handle with one connection, for one peer and one guard: a guarded request never uses a connection
 * that was opened without its guard. At most LIMIT_CALL_IDLE are kept; any thread.
 *
 *     multi = idle_take("api.example.org:443", guard);
 *     ...
 *     idle_give(multi, "api.example.org:443", guard);
 */
#pragma once

#include "net/guard.h"

#include <curl/curl.h>

/* An idle connection's handle, the latest first; a new handle when there is none. */
CURLM *idle_take(const char *peer, const struct guard *guard);
/* Takes ownership. Above the limit the oldest connection is closed. */
void idle_give(CURLM *multi, const char *peer, const struct guard *guard);
/* Closes the connections that were given at least this long ago. */
void idle_close(int64_t age_ms);
