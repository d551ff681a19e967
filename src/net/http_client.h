/* Outgoing HTTP through libcurl: whole answers for workers, streamed ones on the loop.
 *
 * http_call() blocks a worker; each thread keeps its connections. http_fetch_start() runs on the loop (multi + socket_action) and calls
 * back there; nothing waits. An ask is copied, but for a body that is lent. Redirects are not followed. TLS is verified. The proxy of the environment is not used for loopback.
 * Time limits: connecting, first byte, between bytes, in all. A cancelled or paused fetch stops reading at once.
 */
#pragma once

#include "base/arena.h"
#include "base/loop.h"
#include "net/guard.h"

#include <stdatomic.h>

struct http_ask_header { const char *name, *value; };

struct budget_holder;

struct http_ask {
    const char *method;                 /* "GET", "POST" */
    const char *url;
    const struct http_ask_header *headers; size_t n_headers;
    struct slice body;
    bool is_body_lent;                  /* of http_fetch_start(): the body is not copied; it stays until http_fetch_has_sent() or on_end */
    int64_t connect_ms, first_byte_ms, idle_ms, total_ms;       /* 0: none; connect_ms 0: 10 s */
    size_t max_reply;                   /* of http_call(); -EMSGSIZE above; 0: LIMIT_REPLY */
    const atomic_bool *is_moot;         /* of http_call(): -ECANCELED when it becomes true, as with is_gone; NULL: never */
    struct budget_holder *holder;       /* of http_call(): pays for an answer above 1 MiB while its arena lives; NULL: nobody */
    const struct guard *guard;          /* borrowed while it runs; NULL: the administrator named the address. Guarded asks use no proxy. */
};

struct http_answer { int status; struct slice body; struct http_ask_header *headers; size_t n_headers; };
const char *http_answer_header(const struct http_answer *a, const char *name);  /* lower case; NULL */

/* Errors say what a person can do about it: -EHOSTUNREACH DNS_FAILED, -ECONNREFUSED CONNECT_FAILED, -EPROTO TLS_FAILED, -ETIMEDOUT UPSTREAM_TIMEOUT,
 * -ECONNRESET UPSTREAM_CLOSED, -EBADMSG UPSTREAM_INVALID, -EMSGSIZE UPSTREAM_TOO_LARGE, -EINVAL BAD_URL, -EPERM ADDRESS_REFUSED, -ECANCELED, and of a holder -EBUSY
 * BUDGET_EXCEEDED and -EAGAIN OVERLOADED. is_gone may be NULL. */
int http_call(const struct http_ask *ask, struct arena *a, const atomic_bool *is_gone, struct http_answer *ret, struct err *e) MUST_CHECK;

struct http_client;                     /* the loop's multi handle */
struct http_fetch;

struct http_fetch_events {              /* all on the loop thread; none calls http_client_free() */
    /* Status and headers are there, until the return. */
    void (*on_head)(void *arg, const struct http_answer *head);
    /* Some bytes of the body. Return -EAGAIN (the bytes are taken) to pause before more comes; http_fetch_resume() goes on. Another
     * negative ends the fetch with it. */
    int (*on_bytes)(void *arg, struct slice bytes);
    /* Once, last. r 0: the whole answer came; else as http_call(), or what on_bytes said (e is then empty). */
    void (*on_end)(void *arg, int r, const struct err *e);
};

int http_client_new(struct loop *l, struct http_client **ret, struct err *e) MUST_CHECK;        /* loop thread, or before it runs */
struct http_client *http_client_free(struct http_client *c);    /* loop thread, or after it ended; running fetches end with -ECANCELED */
/* Any thread; always before the first callback. on_end comes also when starting fails later. The caller owns a reference. */
int http_fetch_start(struct http_client *c, const struct http_ask *ask, const struct http_fetch_events *ev, void *arg,
                     struct http_fetch **ret, struct err *e) MUST_CHECK;
/* Is the lent body of no use any more? True as well when none was lent. Loop thread. */
bool http_fetch_has_sent(const struct http_fetch *f);
void http_fetch_resume(struct http_fetch *f);           /* loop thread; the bytes come later, never inside */
void http_fetch_cancel(struct http_fetch *f);           /* any thread; on_end still comes, with -ECANCELED, never inside */
struct http_fetch *http_fetch_unref(struct http_fetch *f);
