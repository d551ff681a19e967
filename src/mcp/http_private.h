/* What the files of both HTTP transports share. A connection is its origin, its headers and what is in flight; one
 * lock. Private to mcp/http*.c and mcp/sse*.c. */
#pragma once

#include "base/json_rpc.h"
#include "base/limits.h"
#include "mcp/http.h"
#include "net/http_pull.h"
#include "net/sse_reader.h"

#include <pthread.h>

enum { MCP_VERSION_CHARS = 32, MCP_EVENT_ID_CHARS = 128, MCP_LEAST_RETRY_MS = 100 };

/* One HTTP request in flight, on the list of its connection so that closing ends it. */
struct mcp_flight {
    struct http_pull *pull; /* owned; under the connection's lock */
    struct mcp_flight *next, *previous;
};

struct mcp_http {
    struct mcp_link link; /* first */
    struct arena *arena;  /* owned; of url and headers, constant after the opening */
    const char *url;
    const struct http_call_header *headers;
    size_t n_headers;
    bool has_authorization;           /* among the headers */
    struct mcp_authorizer authorizer; /* released at the end, also when it is not asked */
    bool has_authorizer;
    const struct guard *guard;
    struct mcp_link_events on;

    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned n_senders;                        /* threads inside send() */
    struct mcp_flight *flights;                /* in flight */
    char *target;                              /* owned; where to POST when it is not url; NULL: url */
    char session[LIMIT_MCP_SESSION_BYTES + 1]; /* "": none */
    char version[MCP_VERSION_CHARS];           /* of listen() */
    bool is_closing, has_reported;             /* has_reported: on_closed was called */
    pthread_t listener;
    bool has_listener, has_listened; /* has_listened: its first GET was answered, or failed */
    bool has_gap;                    /* it has no stream, or had none when the first calls were made */
};

/* One request to the server. */
struct mcp_http_request {
    const char *method; /* "POST" */
    const char *url;
    struct slice body;
    const char *version, *rpc_method, *rpc_name; /* of mcp_send; may be NULL */
    const struct http_call_header *params;       /* of mcp_send */
    size_t n_params;
    const char *last_event; /* Last-Event-ID; NULL or "": none */
    const char *accept;     /* NULL: none */
    const struct net_wait *wait;
};

/* ---- http_headers.c ---- */

/* In the arena. authorization NULL: none. */
struct http_call_header *mcp_http_headers(struct arena *a, const struct mcp_http *h, const struct mcp_http_request *q,
                                          const char *session, const char *authorization, size_t *ret_n);
/* Text as the value of a header: itself, or in base64 between marks (2026-07-28, "Value Encoding"). */
const char *mcp_http_value(struct arena *a, const char *text);
bool mcp_http_is_token(const char *name);           /* RFC 9110 section 5.6.2 */
bool mcp_version_is_stateless(const char *version); /* 2026-07-28 and later */

/* ---- http_flight.c ---- */

/* Sends the request and waits for the head; asks the authorizer and follows redirects of the origin. Ends with
 * mcp_flight_end() in every case. -EPIPE MCP_CLOSED, -EACCES MCP_LOGIN_REQUIRED, the errors of http_pull_open(). */
int mcp_flight_begin(struct mcp_http *h, const struct mcp_http_request *q, struct mcp_flight *f, struct arena *a,
                     struct err *e) MUST_CHECK;
void mcp_flight_end(struct mcp_http *h, struct mcp_flight *f);
/* Around every use of the connection by a sender: closing waits for it. -EPIPE MCP_CLOSED. */
int mcp_http_enter(struct mcp_http *h, struct err *e) MUST_CHECK;
void mcp_http_leave(struct mcp_http *h);
/* -EPIPE MCP_CLOSED instead of an error that comes from the closing. */
int mcp_http_error(struct mcp_http *h, int r, struct err *e);
/* The address that frames are posted to, in the arena. */
const char *mcp_http_target(struct mcp_http *h, struct arena *a);
bool mcp_http_is_same_origin(struct arena *a, const char *one, const char *other);

/* ---- http_events.c ---- */

/* A stream of events of the server. */
struct mcp_events {
    struct mcp_http *http;
    struct json_rpc_id awaited;          /* absent: no response is waited for */
    char last_event[MCP_EVENT_ID_CHARS]; /* of the last whole event; "": none */
    int64_t retry_ms;                    /* -1: not said */
    bool is_done;                        /* the awaited response has come */
    bool has_batch;                      /* a batch came, which may have held it */
    size_t n_events;
    /* HTTP with SSE: an event of another name; negative ends the stream. NULL: such events are skipped. */
    int (*on_other)(struct mcp_events *s, const struct sse_event *ev);
    struct err why; /* of a negative result inside */
};

/* Reads until the response has come (0), the stream has ended (0) or broken. Restart with the next pull. */
int mcp_events_read(struct mcp_events *s, struct http_pull *pull, const struct net_wait *wait,
                    struct err *e) MUST_CHECK;
bool mcp_http_is_events(const struct http_answer *head);
/* Waits until the moment, the end of the wait or the closing. */
int mcp_http_pause(struct mcp_http *h, int64_t ms, const struct net_wait *wait, struct err *e) MUST_CHECK;

/* ---- http_answer.c ---- */

/* The response of a request: a JSON body, a stream with its resumptions, or an error. */
int mcp_http_take_answer(struct mcp_http *h, struct mcp_flight *f, const struct mcp_send *s, struct arena *a,
                         struct err *e) MUST_CHECK;
/* A status that is no success, for a request (its error may come as a frame: returns 0 then) or another frame. */
int mcp_http_take_refusal(struct mcp_http *h, struct mcp_flight *f, const struct mcp_send *s, bool had_session,
                          struct arena *a, struct err *e) MUST_CHECK;

/* ---- http.c ---- */

int mcp_http_init(struct mcp_http *h, const struct mcp_link_ops *ops, const struct mcp_http_config *c,
                  struct err *e) MUST_CHECK;
void mcp_http_clear(struct mcp_http *h);
void mcp_http_report_closed(struct mcp_http *h, const struct err *why); /* once; later calls do nothing */
/* Ends everything in flight and the listener; no event comes afterwards. */
void mcp_http_end(struct mcp_http *h);
/* Copies the session id; false when there is none. */
bool mcp_http_session(struct mcp_http *h, char ret[LIMIT_MCP_SESSION_BYTES + 1]);
