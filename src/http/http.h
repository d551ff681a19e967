/* HTTP/1.1 for the rest of the program: what a request and a response are, whoever carries them.
 *
 * src/http is the only folder that reads and writes HTTP on sockets. The server (http/server.h) makes one exchange a request, on the loop
 * thread, once the whole request has arrived. The exchange goes to one worker at a time, which reads `request`, fills
 * `response` and finishes it exactly once: http_exchange_send() for a whole answer, or http_stream_start() and later
 * http_stream_end() for a streamed one. Those calls are for any thread. After them the exchange is not touched again.
 * http/local.h makes exchanges without a socket: the command line uses the same handlers when no service runs.
 */
#pragma once

#include "base/arena.h"
#include "base/budget.h"
#include "base/buf.h"
#include "base/uuid.h"
#include "http/peer.h"
#include <stdatomic.h>

/* In this order in every mask and metric. HEAD is answered as GET without the body by the server. */
enum http_method { HTTP_GET, HTTP_POST, HTTP_PUT, HTTP_PATCH, HTTP_DELETE, HTTP_OPTIONS, HTTP_METHODS };

const char *http_method_name(enum http_method m);
const char *http_status_text(int status);

enum http_origin_kind { HTTP_FROM_TCP, HTTP_FROM_UNIX, HTTP_FROM_PROCESS };

struct http_header { const char *name, *value; };

struct http_request {
    enum http_method method;
    bool is_head;
    const char *path;                   /* percent-decoded once, valid UTF-8, starts with '/', no '.' or '..' segment */
    size_t escaped_slash_at;            /* in path: the first slash that came as %2F; 0: none did. Few routes take one */
    const char *query;                  /* raw text behind '?', "" when none */
    struct http_header *headers;        /* names in lower case, in order of arrival */
    size_t n_headers;
    struct slice body;
    size_t n_body_values;               /* commas and opening brackets in it: at most so many JSON values; counted while it arrives */
    char id[65];                        /* x-request-id: the client's when it is 1..64 of [A-Za-z0-9._-], else a new one */
    enum http_origin_kind from;
    char peer[64];                      /* address text; "unix" */
    struct http_peer *connection;       /* shared, the exchange holds a reference; NULL: the request came from this process */
    int64_t arrived_us;                 /* clock_mono_us() when the head was complete */
};

/* All strings are copied on the call. */
struct http_response {
    int status;                         /* 200 until set */
    const char *content_type;           /* borrowed literal; application/json until set */
    struct http_header headers[16];
    size_t n_headers;
    struct buf body;                    /* max LIMIT_REPLY */
};

struct http_exchange {
    struct arena *arena;                /* owned; lives until the exchange ends */
    struct arena *body_arena;           /* owned; what was made of the body; NULL: nothing, or forgotten */
    struct http_request request;
    struct http_response response;
    struct budget_purse purse;          /* who pays for it, and what it holds */
    atomic_bool is_gone;                /* the client left or the service is stopping: give up soon */
    int64_t deadline_ms;                /* clock_mono_ms() by which the answer must be there; 0 = none */
    const struct http_carrier *carrier; /* borrowed: who sends it */
    void *carrier_data;                 /* the carrier's */
    void *owner_data;                   /* free for the layer above (dispatch) */
    void (*on_gone)(struct http_exchange *x, void *arg);        /* called once, on the loop thread */
    void *on_gone_arg;
};

/* Value of the first header of that name (lower case), or NULL. */
const char *http_header(const struct http_request *req, const char *name);
/* Adds a header; value loses CR, LF and NUL. */
void http_response_header(struct http_exchange *x, const char *name, const char *value);
bool http_has_response_header(const struct http_exchange *x, const char *name);
/* Cookie of that name out of the Cookie header, or NULL (RFC 6265 section 4.2). */
const char *http_cookie(struct arena *a, const struct http_request *req, const char *name);

/* On the loop, before the request is handed out: this caller pays for the request and for its connection. -EBUSY BUDGET_EXCEEDED, -EAGAIN
 * OVERLOADED when that is one connection too many. */
int http_exchange_charge(struct http_exchange *x, struct budget_holder *holder, struct err *e) MUST_CHECK;

/* The body_arena, made when there is none. */
struct arena *http_exchange_body_arena(struct http_exchange *x);
/* The body is not needed any more, nor what was made of it. */
void http_exchange_forget_body(struct http_exchange *x);

/* Sends the response and ends the exchange. */
void http_exchange_send(struct http_exchange *x);

/* Calls fn on the loop thread as soon as the client has left; at once if it already has. One a time; NULL fn removes,
 * and after that call returns fn is not running and will not run. Remove it before the exchange ends. A worker waits for the
 * loop here: hold no lock that fn takes. */
void http_exchange_on_gone(struct http_exchange *x, void (*fn)(struct http_exchange *x, void *arg), void *arg);

/* Starts a streamed answer with the status and headers set so far. Answer through the stream from then on; the request, the
 * arena, is_gone and on_gone stay until its end. */
struct http_stream;
struct http_stream *http_stream_start(struct http_exchange *x) MUST_CHECK;
/* Of a stream that has started: request and arenas end now, so that a long answer does not hold what it was asked. */
void http_exchange_forget_request(struct http_exchange *x);
/* Queues bytes. 0; -EPIPE when the client has left; -E2BIG above LIMIT_STREAM_PUSH. On a worker it waits while LIMIT_STREAM_BUFFER bytes are unsent;
 * on the loop thread it never waits and says -EAGAIN instead (nothing queued). */
int http_stream_push(struct http_stream *s, struct slice bytes) MUST_CHECK;
/* Calls fn on the loop thread when the buffer is below half again after an -EAGAIN, and when the client leaves
 * (at once if it already has); never inside a push. NULL fn removes. */
void http_stream_on_change(struct http_stream *s, void (*fn)(struct http_stream *s, void *arg), void *arg);
bool http_stream_is_gone(const struct http_stream *s);
size_t http_stream_unsent(const struct http_stream *s);
struct http_stream *http_stream_ref(struct http_stream *s);
struct http_stream *http_stream_unref(struct http_stream *s);   /* the last one ends the answer */
