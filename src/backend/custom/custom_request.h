/* One POST of JSON to an app in Custom Mode: to its own address only, signed, without redirects, bounded. Blocks; any
 * thread.
 *
 * The signature is that of Standard Webhooks 1.0.0: HMAC-SHA256 over "ID.TIMESTAMP.BODY" in the header
 * webhook-signature, beside webhook-id and webhook-timestamp. */
#pragma once

#include "backend/custom/custom_lock.h"
#include "net/http_client.h"

struct custom_request {
    const char *path;     /* "api/task-lock" */
    const char *event_id; /* UUID: the same for every repeat */
    struct slice body;
    int64_t total_ms;
    bool is_sent_once; /* also not by libcurl, on a kept connection that turns out to be closed */
};

/* Any status is an answer. -EHOSTUNREACH APP_UNREACHABLE: the app did not get the request; -ECANCELED SHUTTING_DOWN;
 * -EIO UPSTREAM_INVALID: it may have got it. */
int custom_request_send(const struct custom_net *n, const struct custom_place *at, const struct custom_request *in,
                        struct arena *a, struct http_answer *ret, struct err *e) MUST_CHECK;
