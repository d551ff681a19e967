/* A broadcast as the text of a notification: a JSON array of three texts. Pure; any thread.
 *
 *     r = postgres_broadcast_write(&out, &(struct postgres_broadcast){ channel, event, payload }, e);
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"

struct postgres_broadcast {
    const char *channel, *event, *payload; /* payload: JSON */
};

/* `out` has the maximum LIMIT_NOTIFY_BYTES: -E2BIG TOO_LARGE beyond it. */
int postgres_broadcast_write(struct buf *out, const struct postgres_broadcast *in, struct err *e) MUST_CHECK;
/* False for a text that is no broadcast: anyone with an account may send notifications. */
bool postgres_broadcast_read(struct arena *a, const char *text, struct postgres_broadcast *ret) MUST_CHECK;
