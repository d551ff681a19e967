/* Outgoing HTTP through libcurl: complete answers for workers, streamed answers on the loop.
 *
 * http_call() blocks a worker; all threads share the connections of earlier calls. A fetch of http_fetch_start() runs
 * on the loop (multi
 * + socket_action), calls back there and never blocks. The request is copied, except a lent body. Redirects are not
 * followed. TLS certificates are verified. The proxy of the environment is not used for loopback. Time limits:
 * connecting, first byte, between bytes, total. A cancelled or paused fetch stops reading immediately.
 */
#pragma once

#include "base/arena.h"
#include "base/loop.h"
#include "net/guard.h"

#include <stdatomic.h>

struct http_call_header {
    const char *name, *value;
};

struct budget_holder;

/* An answer that was made inside this process: nothing is sent, and it is delivered as if it came from a peer. */
struct http_inside {
    const char *peer; /* named in error texts */
    int status;
    const struct http_call_header *headers; /* names in lower case */
    size_t n_headers;
    const struct slice *pieces; /* of the body */
    size_t n_pieces;
    int64_t piece_ms; /* waited before each piece; before the end if there is none */
    bool is_cut;      /* the connection breaks after the last piece */
};

struct http_call_request {
    const char *method; /* "GET", "POST" */
    const char *url;    /* NULL with `inside` */
    const struct http_call_header *headers;
    size_t n_headers;
    struct slice body;
    bool is_body_lent; /* of http_fetch_start(): the body is not copied; the caller keeps it until http_fetch_has_sent()
                          or on_end */
    size_t buffer_bytes; /* of http_fetch_start(): size of one read; 0: 1 KiB, for streams */
    int64_t connect_ms, first_byte_ms, idle_ms, total_ms; /* 0: none; connect_ms 0: 10 s */
    size_t max_reply;                                     /* of http_call(); -EMSGSIZE above; 0: LIMIT_REPLY */
    bool is_sent_once;  /* of http_call(): on a new connection, because libcurl sends a request again when a kept
                           connection turns out to be closed */
    bool reads_only_ok; /* of http_call(): the body of an answer is not read unless its status is 200 */
    const atomic_bool *is_moot; /* of http_call(): -ECANCELED when it becomes true, like is_gone; NULL: never */
    struct budget_holder
        *holder; /* of http_call(): pays for an answer above 1 MiB until its arena ends; NULL: no holder pays */
    const struct guard *guard;        /* borrowed during the request; NULL: the administrator named the address. Guarded
                                         requests use no proxy. */
    const struct http_inside *inside; /* the answer; only the time limits, max_reply and holder count besides it. Copied
                                         by http_fetch_start(). NULL: the request goes to url */
};

struct http_answer {
    int status;
    struct slice body;
    struct http_call_header *headers;
    size_t n_headers;
};
const char *http_answer_header(const struct http_answer *a, const char *name); /* lower case; NULL */

/* Reads the certificate authorities that an https request needs, once a process: some 100 ms of a worker. A request
 * that is started on the loop is prepared on a worker first. */
void http_call_prepare(const struct http_call_request *request);
bool http_call_is_prepared(const char *url); /* or needs no authorities */
/* The error texts say what a person can do: -EHOSTUNREACH DNS_FAILED, -ECONNREFUSED CONNECT_FAILED, -EPROTO TLS_FAILED,
 * -ETIMEDOUT UPSTREAM_TIMEOUT, -ECONNRESET UPSTREAM_CLOSED, -EBADMSG UPSTREAM_INVALID, -EMSGSIZE UPSTREAM_TOO_LARGE,
 * -EINVAL BAD_URL, -EPERM ADDRESS_REFUSED, -ECANCELED, and with a holder -EBUSY BUDGET_EXCEEDED and -EAGAIN OVERLOADED.
 * is_gone may be NULL. */
int http_call(const struct http_call_request *request, struct arena *a, const atomic_bool *is_gone,
              struct http_answer *ret, struct err *e) MUST_CHECK;

/* Closes the connections of http_call() that were not used for so long; 0: all of them. Any thread; may send bytes. */
void http_call_close_idle(int64_t age_ms);

struct http_client; /* the loop's multi handle */
struct http_fetch;

struct http_fetch_events { /* all on the loop thread; none may call http_client_free() */
    /* Status and headers have arrived; valid until the return. */
    void (*on_head)(void *arg, const struct http_answer *head);
    /* Some bytes of the body. Return -EAGAIN (these bytes count as taken) to pause; http_fetch_resume() continues. Any
     * other negative value ends the fetch with that error. */
    int (*on_bytes)(void *arg, struct slice bytes);
    /* Called once, last. r 0: the answer is complete; otherwise an error of http_call(), or the value from on_bytes (e
     * is then empty). */
    void (*on_end)(void *arg, int r, const struct err *e);
};

int http_client_new(struct loop *l, struct http_client **ret,
                    struct err *e) MUST_CHECK; /* loop thread, or before the loop runs */
struct http_client *
http_client_free(struct http_client *c); /* loop thread, or after the loop ended; running fetches end with -ECANCELED */
/* Any thread; returns before the first callback. on_end is called also when the start fails later. The caller owns a
 * reference. */
int http_fetch_start(struct http_client *c, const struct http_call_request *request, const struct http_fetch_events *ev,
                     void *arg, struct http_fetch **ret, struct err *e) MUST_CHECK;
/* Whether the lent body is no longer needed; also true when none was lent. Loop thread. */
bool http_fetch_has_sent(const struct http_fetch *f);
void http_fetch_resume(struct http_fetch *f); /* loop thread; bytes are delivered later, never inside this call */
void http_fetch_cancel(
    struct http_fetch *f); /* any thread; on_end is still called, with -ECANCELED, never inside this call */
struct http_fetch *http_fetch_unref(struct http_fetch *f);
