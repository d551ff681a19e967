/* What a route is: a row of a const table, one table per resource (api/resources/<resource>.c).
 *
 * Dispatch (api/dispatch.h) does, from the row alone: matching, Host and Origin, identity, permission, reading query
 * and body into the structs, where the handler runs, the envelope of errors, metrics, one log line. The OpenAPI text is
 * made from the same rows. A handler reads req, writes res, returns 0 or -E with e filled; it never parses JSON, checks
 * permission or formats an error.
 *
 *     static const struct field new_key_fields[] = {
 *         FIELD_STRING(struct new_key_body, name, "name", .max = LIMIT_NAME_CHARS, .def_str = ""), FIELD_END
 *     };
 *     static const struct field new_key_answer[] = {
 *         SHAPE_BOOL("success"), SHAPE_STRING("id"), SHAPE_STRING("key"), FIELD_END
 *     };
 *     const struct route key_routes[] = {
 *         { .method = HTTP_POST, .path = "/api/keys", .permission = PERM_ADMIN, .status = 201,
 *           ROUTE_BODY(new_key_fields, struct new_key_body), .answer = new_key_answer, .handler = create_key,
 *           .summary = "Make a developer key", .tag = "Keys" },
 *         ROUTE_END
 *     };
 */
#pragma once

#include "base/fields.h"
#include "http/match.h"
#include "identity/identity.h"
#include "identity/permissions.h"

struct api; /* api/api.h: the modules a handler may use */

enum route_kind {
    ROUTE_SHORT,  /* default: short pool; needs_long may move a request to the long one */
    ROUTE_INLINE, /* on the loop; memory only, never blocks: no store, so PERM_PUBLIC or cached identity only */
    ROUTE_LONG,   /* long pool; OVERLOADED with Retry-After beyond its limit */
    ROUTE_RELAY,  /* short pool prepares, then the loop streams; the handler takes the exchange with
                     request_take_events() or request_defer() */
};

struct request {
    struct api *api;
    struct arena *arena;
    const struct route *route;
    const struct caller *caller;
    const void *body, *query;    /* structs of the row's tables, checked; never NULL when the row has a table */
    struct json_value body_json; /* the body as received (object), for routes that keep unknown members */
    const char *params[LIMIT_ROUTE_PARAMS];
    struct http_exchange *exchange; /* for headers, cancellation, streams */
    const unsigned char *key_hash;  /* private to dispatch, for struct credentials */
    bool is_by_key_alone;           /* private to dispatch: on the loop, no other credential is looked at */
    const struct trace *trace;      /* private to dispatch */
    int64_t trigger_depth;          /* of the task that this request triggers; 0: it comes from outside */
};

struct response {
    struct json_writer
        json; /* dispatch opened the object and, on 2xx, wrote "success": true; the handler adds members */
    struct http_exchange *exchange;
    bool is_streamed; /* the handler has taken the exchange: dispatch does nothing more */
    bool is_deferred; /* streamed, and not yet answered */
    bool is_raw;      /* the handler has written exchange->response itself (HTML, metrics, redirect) */
};

/* The form of a route's errors, for routes in the form of another service. */
struct error_form {
    const char *name; /* used in the OpenAPI text */
    const struct field *answer;
    /* Writes the members; returns the status that this form uses for `status`. May add headers. */
    int (*write)(struct json_writer *w, struct http_exchange *x, int status, const struct err *e);
};

typedef int route_handler(struct request *req, struct response *res, struct err *e);

struct route {
    enum http_method method;
    const char
        *path; /* ":name" parameters; "{token}" stands for the setting identity.token and also answers as "svc" */
    const char *permission; /* a PERM_ constant; a row without one is refused at start-up */
    enum route_kind kind;
    const struct field *query, *body, *answer;
    size_t query_size, body_size;
    const struct field *own_body; /* of a handler that reads the body itself: describes it for OpenAPI */
    const char *body_type;        /* content type of bytes whose first line is own_body; NULL: application/json */
    bool takes_form;              /* own_body is a form (api/form.h); any other body is for the handler to recognise */
    /* Rules of the body that its table cannot express; runs also when field rules are violated, so that one answer
     * reports all violations. */
    int (*check_body)(const struct request *req, const void *body, struct err *e);
    /* For a ROUTE_SHORT whose requests differ: true when this request, with its body read, waits for another service (a
     * provider) and belongs in the long pool. */
    bool (*needs_long)(const struct request *req);
    bool uses_rows; /* the handler may call the backend: long pool where the rows are remote (api.has_remote_rows) */
    /* A small request of a developer key, which needs no store, is handled on the loop without a worker: the handler
     * uses memory only and returns -ENEEDSWORKER, with nothing done, when it would have to wait. */
    bool tries_loop;
    /* The route defines what runs or where data goes: a browser session needs a fresh confirmation
     * (identity/sessions.h), and the handler audits the full values (audit_append_values()). defines_when, if set, says
     * which requests need the confirmation. */
    bool defines;
    bool (*defines_when)(const struct request *req);
    bool is_body_optional;    /* an empty body reads as {} */
    bool takes_permission;    /* the handler takes the permission: which part of it is needed depends on the request */
    size_t max_body;          /* 0: LIMIT_BODY_DEFAULT */
    int status;               /* of success; 0: 200 */
    bool is_bare;             /* the answer has no envelope: no "success" member is written */
    bool is_sdk;              /* also answers below /api (decision D2) */
    bool takes_escaped_slash; /* %2F within a parameter is a slash of the parameter; elsewhere %2F is refused */
    bool stores;              /* refused to an app whose data folder is above its budget `disk` */
    bool may_stream;          /* the answer is a stream when the body says so ... */
    const char *stream_type;  /* ... of this content type; NULL: text/event-stream */
    bool takes_anonymous; /* the setting llm.ollama_open admits programs without a credential (identity/local_program.h)
                           */
    bool is_refused;      /* not supported: `status` and the handler's error say what to do instead */
    const struct error_form *error_form; /* NULL: the envelope (api/envelope.h) */
    const char *answer_type; /* content type of raw and streamed answers for OpenAPI; NULL: application/json */
    route_handler *handler;
    const char *summary, *tag;
};

extern const struct field api_nothing[]; /* the answer with "success" only */

#define ROUTE_BODY(table, type) .body = (table), .body_size = sizeof(type)
#define ROUTE_QUERY(table, type) .query = (table), .query_size = sizeof(type)
#define ROUTE_END                                                                                                      \
    {                                                                                                                  \
        .path = NULL                                                                                                   \
    }

/* For answers that are not JSON: clears the body that dispatch began, sets the content type (a literal) and
 * res->is_raw, and returns the body. */
struct buf *response_start_raw(struct response *res, const char *content_type) MUST_CHECK;

/* Starts Server-Sent Events (http/sse.h; status and headers of req->exchange->response) and takes the exchange from
 * dispatch: sets res->is_streamed. After the call req->exchange and req->arena must not be touched: copy what the
 * stream needs before it. */
struct http_stream *request_take_events(struct request *req, struct response *res) MUST_CHECK;
/* The same for another content type (a literal). */
struct http_stream *request_take_stream(struct request *req, struct response *res, const char *content_type) MUST_CHECK;

/* For answers that begin later (api/deferred.c): takes the exchange, unanswered, from dispatch as above. Exactly one of
 * the three calls below must follow: the stream, the whole answer, or the error in the route's form. The handler
 * returns 0 and touches nothing more. Those calls are for any thread, one at a time. */
struct deferred;
struct deferred *request_defer(struct request *req, struct response *res) MUST_CHECK;
struct http_stream *deferred_stream(struct deferred *d,
                                    const char *content_type /* NULL: Server-Sent Events */) MUST_CHECK;
void deferred_fail(struct deferred *d, int r, const struct err *e);
/* write adds the members, as a handler does. */
void deferred_answer(struct deferred *d, void (*write)(struct json_writer *w, const void *arg), const void *arg);

/* For check_body of a PATCH: -EINVAL when the body has none of the row's members, so that nothing would change. */
int request_check_patch(const struct request *req, struct err *e) MUST_CHECK;

/* For a handler that reads the body itself. -ENOTSUP UNSUPPORTED_ENCODING for a compressed one. */
int request_check_coding(const struct request *req, struct err *e) MUST_CHECK;

/* On PERM_BODY routes the caller may be CALLER_NOBODY. This checks that the caller is known: 0, -EACCES MISSING_APP_ID
 * or INVALID_APP_ID. A handler that needs a grant for some of its bodies then calls identity_require(). */
int request_need_caller(const struct request *req, struct err *e) MUST_CHECK;
/* For data that only the app itself may have: -EPERM APP_ONLY for a key that names an app; -EPERM PEER_NOT_ALLOWED even
 * when identity.peers is any. */
int request_need_proof(const struct request *req, struct err *e) MUST_CHECK;
/* Checks a sender that has no credential but the task's uuid: -EPERM PEER_NOT_ALLOWED, -EACCES TASK_TOKEN_REQUIRED. */
int request_check_reporter(const struct request *req, const char *task_uuid, struct err *e) MUST_CHECK;
