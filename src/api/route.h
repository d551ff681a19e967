/* What a route is: a row of a const table, one table a resource (api/<resource>.c).
 *
 * Dispatch (api/dispatch.h) does, from the row alone: matching, Host and Origin, identity, permission, reading query and
 * body into the structs, where the handler runs, the envelope of errors, metrics, one log line. The OpenAPI text
 * is made from the same rows. A handler reads req, writes res, returns 0 or -E with e filled; it never parses
 * JSON, checks permission or formats an error.
 *
 *     static const struct field new_key_fields[] = { FIELD_STRING(struct new_key_body, name, "name", .max = LIMIT_NAME_CHARS, .def_str = ""), FIELD_END };
 *     static const struct field new_key_answer[] = { SHAPE_BOOL("success"), SHAPE_STRING("id"), SHAPE_STRING("key"), FIELD_END };
 *     const struct route key_routes[] = {
 *         { .method = HTTP_POST, .path = "/api/keys", .permission = PERM_ADMIN, ROUTE_BODY(new_key_fields, struct new_key_body),
 *           .status = 201, .answer = new_key_answer, .handler = create_key, .summary = "Make a developer key", .tag = "Keys" },
 *         ROUTE_END
 *     };
 */
#pragma once

#include "base/fields.h"
#include "http/match.h"
#include "identity/identity.h"
#include "identity/permissions.h"

struct api;                             /* api/api.h: the modules a handler may use */

enum route_kind {
    ROUTE_SHORT,                        /* default: short pool; needs_long may move a request to the long one */
    ROUTE_INLINE,                       /* on the loop; memory only, never blocks: no store, so PERM_PUBLIC or cached identity only */
    ROUTE_LONG,                         /* long pool; OVERLOADED with Retry-After beyond its limit */
    ROUTE_RELAY,                        /* short pool prepares, then the loop streams: the handler takes the exchange: request_take_events(), request_defer() */
};

struct request {
    struct api *api;
    struct arena *arena;
    const struct route *route;
    const struct caller *caller;
    const void *body, *query;           /* structs of the row's tables, checked; never NULL when the row has a table */
    struct json_value body_json;        /* the body as it came (object), for routes that keep unknown members */
    const char *params[LIMIT_ROUTE_PARAMS];
    struct http_exchange *exchange;     /* for headers, cancel, streams */
    const unsigned char *key_hash;      /* dispatch's own, for struct credentials */
    const struct trace *trace;          /* dispatch's own */
};

struct response {
    struct json_writer json;            /* dispatch opened the object and, on 2xx, wrote "success": true; the handler adds members */
    struct http_exchange *exchange;
    bool is_streamed;                   /* the handler took the exchange: dispatch does nothing more */
    bool is_deferred;                   /* streamed, and not yet answered */
    bool is_raw;                        /* the handler wrote exchange->response itself (HTML, metrics, redirect) */
};

/* How a route's clients read errors, for routes that are written in another service's form. */
struct error_form {
    const char *name;                   /* in the OpenAPI text */
    const struct field *answer;
    /* Writes the members; gives the status that stands for this one in that form. May add headers. */
    int (*write)(struct json_writer *w, struct http_exchange *x, int status, const struct err *e);
};

typedef int route_handler(struct request *req, struct response *res, struct err *e);

struct route {
    enum http_method method;
    const char *path;                   /* ":name" parameters; "{token}" stands for the setting identity.token and also answers as "svc" */
    const char *permission;             /* a PERM_ constant; a row without one is refused at start-up */
    enum route_kind kind;
    const struct field *query, *body, *answer;
    size_t query_size, body_size;
    /* Rules of the body that its table cannot say; runs also after broken field rules, so that all are told at once. */
    int (*check_body)(const struct request *req, const void *body, struct err *e);
    /* For ROUTE_SHORT whose requests differ: true when this one, its body read, waits for somebody else (a provider) and belongs to the long pool. */
    bool (*needs_long)(const struct request *req);
    /* It defines what runs, or where data goes: a browser session needs a fresh confirmation (identity/sessions.h), and the handler audits the full
     * values (audit_append_values()). defines_when, when there is one, says which requests need the confirmation. */
    bool defines;
    bool (*defines_when)(const struct request *req);
    bool is_body_optional;              /* an empty body reads as {} */
    size_t max_body;                    /* 0: LIMIT_BODY_DEFAULT */
    int status;                         /* of success; 0: 200 */
    bool is_bare;                       /* answer is not the envelope: no "success" member is written */
    bool is_sdk;                        /* also answers below /api (decision D2) */
    bool takes_escaped_slash;           /* %2F within a parameter is a slash of it; elsewhere it is refused */
    bool stores;                        /* refused to an app whose data folder is above its budget `disk` */
    bool may_stream;                    /* the answer may as well be text/event-stream, as the body wishes */
    const struct error_form *error_form;        /* NULL: the envelope (api/envelope.h) */
    const char *answer_type;            /* content type of raw and streamed answers for OpenAPI; NULL: application/json */
    route_handler *handler;
    const char *summary, *tag;
};

extern const struct field api_nothing[];                 /* the answer that says only "success" */

#define ROUTE_BODY(table, type) .body = (table), .body_size = sizeof(type)
#define ROUTE_QUERY(table, type) .query = (table), .query_size = sizeof(type)
#define ROUTE_END { .path = NULL }

/* For answers that are no JSON: empties what dispatch began, sets the content type (a literal) and res->is_raw, and gives the body. */
struct buf *response_start_raw(struct response *res, const char *content_type) MUST_CHECK;

/* Starts Server-Sent Events (http/sse.h; status and headers of req->exchange->response) and takes the exchange out of dispatch's hands: sets
 * res->is_streamed. From then on req->exchange and req->arena are not touched any more: copy what the stream needs before. */
struct http_stream *request_take_events(struct request *req, struct response *res) MUST_CHECK;

/* For answers that begin later, on the loop (ROUTE_RELAY): takes the exchange out of dispatch's hands unanswered, as above. Exactly one of the
 * two calls below ends the waiting: the stream, or the envelope of an error. The handler returns 0 and touches nothing more. */
struct deferred;
struct deferred *request_defer(struct request *req, struct response *res) MUST_CHECK;
struct http_stream *deferred_events(struct deferred *d) MUST_CHECK;
void deferred_fail(struct deferred *d, int r, const struct err *e);

/* On PERM_BODY routes the caller may be CALLER_NOBODY. This says whether somebody is known: 0, -EACCES MISSING_APP_ID or
 * INVALID_APP_ID. A handler that needs a grant for some of its bodies goes on with identity_require(). */
int request_need_caller(const struct request *req, struct err *e) MUST_CHECK;
/* For what only the app itself may have: -EPERM APP_ONLY for a key that names an app, PEER_NOT_ALLOWED also when identity.peers is any. */
int request_need_proof(const struct request *req, struct err *e) MUST_CHECK;
/* Of who brings no more than the task's uuid: -EPERM PEER_NOT_ALLOWED, -EACCES TASK_TOKEN_REQUIRED. */
int request_check_reporter(const struct request *req, const char *task_uuid, struct err *e) MUST_CHECK;
