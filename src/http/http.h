/* HTTP/1.1 for the rest of the program: requests and responses, independent of their transport.
 *
 * src/http is the only folder that reads and writes HTTP on sockets. For each request the server (http/server.h) makes
 * one exchange, on the loop thread, once the complete request has arrived. The exchange goes to one worker at a time,
 * which reads `request`, fills `response` and finishes it exactly once: http_exchange_send() for a complete answer, or
 * http_stream_start() and later http_stream_end() for a streamed answer. Any thread may make these calls.
 * Afterwards the exchange must not be used. http/local.h makes exchanges without a socket: the command line uses the
 * same handlers when no service runs.
 */
#pragma once

#include "base/arena.h"
#include "base/budget.h"
#include "base/buf.h"
#include "base/uuid.h"
#include "http/peer.h"
#include <stdatomic.h>

/* Every mask and metric uses this order. The server answers HEAD like GET, without the body. */
enum http_method { HTTP_GET, HTTP_POST, HTTP_PUT, HTTP_PATCH, HTTP_DELETE, HTTP_OPTIONS, HTTP_METHODS };

const char *http_method_name(enum http_method m);
const char *http_status_text(int status);

enum http_origin_kind { HTTP_FROM_TCP, HTTP_FROM_UNIX, HTTP_FROM_PROCESS };

struct http_header {
    const char *name, *value;
};

struct http_request {
    enum http_method method;
    bool is_head;
    const char *path;            /* percent-decoded once, valid UTF-8, starts with '/', no '.' or '..' segment */
    size_t escaped_slash_at;     /* in path: the first slash that was sent as %2F; 0: none. Few routes accept one */
    const char *query;           /* raw text after '?'; "" when there is none */
    struct http_header *headers; /* names in lower case, in order of arrival */
    size_t n_headers;
    struct slice body;
    size_t n_body_values; /* commas and opening brackets in the body, an upper bound of its JSON values; counted on
                             arrival */
    char id[65]; /* x-request-id: the client's when it is 1..64 characters of [A-Za-z0-9._-], otherwise a new one */
    enum http_origin_kind from;
    char peer[64];                /* address text; "unix" */
    struct http_peer *connection; /* shared, the exchange holds a reference; NULL: the request came from this process */
    int64_t arrived_us;           /* clock_mono_us() when the head was complete */
};

/* Requests that did not come over TCP come from the administrator or from this process, never from a web page. */
static inline bool http_is_local(const struct http_request *req)
{
    return req->from != HTTP_FROM_TCP;
}

/* All strings are copied. */
struct http_response {
    int status;               /* 200 until set */
    const char *content_type; /* borrowed literal; application/json until set */
    struct http_header headers[16];
    size_t n_headers;
    struct buf body; /* max LIMIT_REPLY */
};

struct http_exchange {
    struct arena *arena;      /* owned; lives until the exchange ends */
    struct arena *body_arena; /* owned; data parsed from the body; NULL: none, or forgotten */
    struct http_request request;
    struct http_response response;
    size_t n_promised;                  /* bytes of address space promised to it (http_exchange_promise()) */
    struct budget_purse purse;          /* the payer of the request, and the amounts held */
    atomic_bool is_gone;                /* the client left or the service is stopping: give up soon */
    int64_t deadline_ms;                /* clock_mono_ms() by which the answer must be ready; 0 = none */
    const struct http_carrier *carrier; /* borrowed: sends the answer */
    void *carrier_data;                 /* private to the carrier */
    void *owner_data;                   /* free for the layer above (dispatch) */
    void (*on_gone)(struct http_exchange *x, void *arg); /* called once, on the loop thread */
    void *on_gone_arg;
};

/* Value of the first header of that name (lower case), or NULL. */
const char *http_header(const struct http_request *req, const char *name);
/* Adds a header; value loses CR, LF and NUL. */
void http_response_header(struct http_exchange *x, const char *name, const char *value);
bool http_has_response_header(const struct http_exchange *x, const char *name);
/* Value of the named cookie in the Cookie header, or NULL (RFC 6265 section 4.2). */
const char *http_cookie(struct arena *a, const struct http_request *req, const char *name);

/* On the loop, before the request is handed out: makes this caller pay for the request and its connection. -EBUSY
 * BUDGET_EXCEEDED, -EAGAIN OVERLOADED when the connection exceeds a limit. */
int http_exchange_charge(struct http_exchange *x, struct budget_holder *holder, struct err *e) MUST_CHECK;

/* Returns the body_arena and creates it when missing. */
struct arena *http_exchange_body_arena(struct http_exchange *x);
/* Promises n bytes of address space to the request, until its body is forgotten. http_promised() is the sum of all
 * promises, to check before a new one. Any thread. */
void http_exchange_promise(struct http_exchange *x, size_t n);
size_t http_promised(void);
/* Frees the body and the data parsed from it, which are no longer needed. */
void http_exchange_forget_body(struct http_exchange *x);

/* Sends the response and ends the exchange. */
void http_exchange_send(struct http_exchange *x);

/* Calls fn on the loop thread as soon as the client leaves; immediately if it has left. Only one fn at a time; NULL
 * removes fn, and after that call returns fn is not running and will not run. Remove fn before the exchange ends. A
 * worker waits for the loop here: hold no lock that fn takes. */
void http_exchange_on_gone(struct http_exchange *x, void (*fn)(struct http_exchange *x, void *arg), void *arg);

/* Starts a streamed answer with the status and headers set so far. From then on answer through the stream; the request,
 * the arena, is_gone and on_gone remain valid until its end. */
struct http_stream;
struct http_stream *http_stream_start(struct http_exchange *x) MUST_CHECK;
/* After the start of a stream: frees the request and the arenas now, so that a long answer does not hold the memory of
 * its request. */
void http_exchange_forget_request(struct http_exchange *x);
/* Queues bytes. 0; -EPIPE when the client has left; -E2BIG above LIMIT_STREAM_PUSH. On a worker the call waits while
 * LIMIT_STREAM_BUFFER bytes are unsent; on the loop thread it never waits and returns -EAGAIN instead (nothing
 * queued). */
int http_stream_push(struct http_stream *s, struct slice bytes) MUST_CHECK;
/* Calls fn on the loop thread when the buffer is below half again after an -EAGAIN, and when the client leaves
 * (immediately if it has left); never inside a push. NULL removes fn. */
void http_stream_on_change(struct http_stream *s, void (*fn)(struct http_stream *s, void *arg), void *arg);
bool http_stream_is_gone(const struct http_stream *s);
/* Whether a push by a worker would wait now, because the client reads slowly. */
bool http_stream_is_full(const struct http_stream *s);
/* Ends the answer; returns NULL. */
struct http_stream *http_stream_end(struct http_stream *s);
/* Ends an answer that cannot be completed: the connection closes, so that the client does not take it for complete.
 * Returns NULL. */
struct http_stream *http_stream_abort(struct http_stream *s);
