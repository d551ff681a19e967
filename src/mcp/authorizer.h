/* Where an HTTP transport gets the value of its header Authorization, and whom it asks when the server refuses that
 * value. Implemented by OAuth (mcp/oauth.h); the transports know nothing of tokens.
 *
 * Both functions block their thread and are called by any number of threads at once.
 */
#pragma once

#include "base/arena.h"
#include "net/wait.h"

struct mcp_refusal {
    int status;            /* 401, or 403 with a challenge */
    const char *challenge; /* the values of WWW-Authenticate, joined by ", "; "" when there is none */
    const char *used;      /* the refused value of Authorization; NULL: none was sent */
};

struct mcp_authorizer {
    /* The value for the next request, in the arena; NULL: none. May refresh a token that is about to expire. */
    int (*value)(void *arg, const struct net_wait *wait, struct arena *a, const char **ret, struct err *e);
    /* 0: value() now gives another value, and the request is sent once more. -EACCES MCP_LOGIN_REQUIRED: a person has
     * to log in. */
    int (*refused)(void *arg, const struct mcp_refusal *refusal, const struct net_wait *wait, struct err *e);
    /* Neither function is called any more. NULL: nobody has to know. */
    void (*release)(void *arg);
    void *arg;
};
