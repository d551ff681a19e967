/* One request to the management API of the hosted service. Blocks; any thread. Redirects are not followed: the token
 * goes to the address that it was made for and to no other. */
#pragma once

#include "base/slice.h"
#include "net/wait.h"

struct account_api {
    const char *address; /* of the API */
    const char *token;   /* NULL: none is sent */
    const struct net_wait *wait;
    int64_t step_ms; /* of one request */
    struct arena *arena;
};

/* path: below the address, percent-encoded, without a slash at the beginning. body {NULL, 0}: GET; else POST of JSON.
 * -EACCES HOSTED_LOGIN_REQUIRED: the token does not count; -EPERM HOSTED_DENIED: Access Denied; -ENOENT
 * HOSTED_NOT_FOUND; -EBUSY HOSTED_BUSY: too many requests; -EREMOTEIO HOSTED_REFUSED: another refusal, in the service's
 * words, as of SQL; -EPROTO HOSTED_INVALID: no answer of such a service; the errors of http_call(). */
int account_call(const struct account_api *api, const char *path, struct slice body, struct slice *ret,
                 struct err *e) MUST_CHECK;
