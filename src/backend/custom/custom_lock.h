/* Takes the lock of a row of a Custom Mode app by asking the app: POST {base}/api/task-lock (specification, "Endpoints
 * a Custom Mode Local App must implement").
 *
 * Blocks; any thread. One request, never repeated here: what a request did whose answer is missing or wrong only the
 * app's table can tell, and the caller reads it there. Redirects are not followed, the answer is bounded, and the
 * address is judged by the guard, because an app named it.
 *
 *     r = custom_lock_take(&net, &place, &request, arena, &reply, e);
 *     if (r == 0 && !reply.is_success) ...another machine has the row, or the app refuses: reply.reason...
 *     if (r == -EIO) ...unknown: read the row before anything else...
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "base/slice.h"

#include <stdatomic.h>

struct guard;

/* How apps are called. Borrowed. */
struct custom_net {
    const struct guard *guard;
    const char *abbr;              /* "svc": names the header x-svc-event-id */
    const atomic_bool *is_leaving; /* the service stops; NULL: never */
    int64_t lock_ms, webhook_ms;   /* deadlines of one request */
};

/* Where the app answers now. */
struct custom_place {
    const char *app_id;
    const char *base_url; /* scheme, host and port; what follows is ignored. NULL: the app has no address now */
    const char *secret;   /* signs the request (docs/custom-mode.md); NULL: it is not signed */
};

struct custom_lock_request {
    const char *task_id, *table, *machine_id;
    const char *user_email; /* NULL: sent as "" */
};

/* Texts of the app: UTF-8, at most LIMIT_STRING_DEFAULT bytes; NULL when the app left them out. */
struct custom_lock_reply {
    bool is_success;
    const char *locked_by, *locked_at;
    const char *reason; /* of a refusal; "already_locked" is the specification's */
};

/* 0 with ret, also for success false, whatever the status.
 * Nothing is locked:
 *   -EHOSTUNREACH APP_UNREACHABLE   the app did not get the request: no address, no connection, a refused address
 *   -EPROTO       LOCK_INVALID      status 3xx or 4xx without an answer about a lock: there is no such route, for us
 * The fate is unknown:
 *   -EIO          LOCK_UNKNOWN      no answer in time, a cut or malformed one, a status that belies the answer
 *   -ECANCELED    SHUTTING_DOWN     the service stops
 * And -E2BIG TOO_LARGE, -ENOMEM before anything was sent. */
int custom_lock_take(const struct custom_net *n, const struct custom_place *at, const struct custom_lock_request *in,
                     struct arena *a, struct custom_lock_reply *ret, struct err *e) MUST_CHECK;
/* What an app answered: 0, LOCK_INVALID or LOCK_UNKNOWN as above. Pure. */
int custom_lock_read(int status, struct slice body, struct arena *a, struct custom_lock_reply *ret,
                     struct err *e) MUST_CHECK;
