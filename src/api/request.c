#include "api/request.h"

#include "api/api.h"
#include "identity/sessions.h"

#include <string.h>
#include <strings.h>

static bool is_local(const struct http_request *req)
{
    return req->from != HTTP_FROM_TCP;
}

static bool is_this_machine(const struct http_request *req)
{
    return is_local(req) || strncmp(req->peer, "127.", 4) == 0 || strcmp(req->peer, "::1") == 0;
}

static void read_credentials(const struct request *req, bool is_body_trusted, struct credentials *ret)
{
    const struct http_request *in = &req->exchange->request;
    bool is_inline = req->route->kind == ROUTE_INLINE;

    *ret = (struct credentials){
        .authorization = http_header(in, "authorization"),
        .x_api_key = http_header(in, "x-api-key"),
        .x_app_id = http_header(in, "x-app-id"),
        .x_app_secret = http_header(in, "x-app-secret"),
        .connection = in->connection,
        .key_hash = req->key_hash,
        .session_cookie = is_inline ? NULL : http_cookie(req->arena, in, SESSION_COOKIE),
        .session_proof = http_header(in, SESSION_PROOF_HEADER),
        .is_local_admin = is_local(in),
    };
    if (is_body_trusted && is_this_machine(in))
        ret->body_app_id = json_cstr(json_get(req->body_json, "app_id"));
}

static bool has_permission(const struct route *route, const char *permission)
{
    return strcmp(route->permission, permission) == 0;
}

int request_read_claim(struct identity *id, const struct route *route, struct http_exchange *x, struct claim *ret, struct err *e)
{
    const struct request req = { .route = route, .exchange = x, .arena = x->arena };
    bool by_body = has_permission(route, PERM_BODY);
    struct credentials given;
    int r;

    *ret = (struct claim){ .kind = HOLDER_NOBODY };
    if (has_permission(route, PERM_PUBLIC))
        return 0;
    read_credentials(&req, false, &given);
    r = identity_claim(id, &given, has_permission(route, PERM_ADMIN), ret, by_body ? NULL : e);
    return by_body ? 0 : r;
}

/* RFC 9110 section 15.5.16: who compressed the body is told that it should not be. */
static int check_coding(const struct request *req, struct err *e)
{
    const char *coding = http_header(&req->exchange->request, "content-encoding");

    if (!coding || strcasecmp(coding, "identity") == 0)
        return 0;
    http_response_header(req->exchange, "accept-encoding", "identity");
    return err_set(e, -ENOTSUP, "UNSUPPORTED_ENCODING", "The body has the content-encoding %.40s; send it without one.", coding);
}

static int read_body_json(struct request *req, struct err *e)
{
    struct slice text = req->exchange->request.body;
    int r;

    if (!req->route->body)
        return 0;
    r = check_coding(req, e);
    if (r < 0)
        return r;
    if (text.n == 0 && req->route->is_body_optional)
        text = SLICE_LIT("{}");
    r = json_parse(http_exchange_body_arena(req->exchange), text, &req->body_json, e);
    if (r == 0 && json_type(req->body_json) != JSON_OBJECT)
        r = err_set(e, -EINVAL, "VALIDATION_ERROR", "The body must be a JSON object.");
    return r;
}

int request_read_caller(struct identity *id, struct request *req, struct caller *caller, struct err *e)
{
    bool by_body = has_permission(req->route, PERM_BODY);
    struct credentials given;
    int r = 0;

    if (has_permission(req->route, PERM_PUBLIC))
        return 0;
    if (by_body)
        r = read_body_json(req, e);
    if (r < 0)
        return r;
    read_credentials(req, by_body, &given);
    if (has_permission(req->route, PERM_ADMIN))
        return identity_admin(id, &given, req->arena, caller, e);
    if (by_body)
        r = identity_agent(id, &given, req->arena, caller, e);
    if (r != 0)
        return r < 0 ? r : 0;
    r = identity_caller(id, &given, req->arena, caller, e);
    if (by_body && is_this_machine(&req->exchange->request) && !given.x_app_secret)
        return 0;
    if (r < 0 || by_body || has_permission(req->route, PERM_NONE))
        return r;
    return identity_check(id, caller, req->route->permission, e);
}

static bool needs_confirmation(const struct request *req)
{
    return req->route->defines && (!req->route->defines_when || req->route->defines_when(req));
}

int request_take_permission(struct identity *id, const struct request *req, const struct caller *caller, struct err *e)
{
    static const char *const not_granted[] = { PERM_PUBLIC, PERM_ADMIN, PERM_NONE, PERM_BODY };

    if (needs_confirmation(req))
        return session_need_confirmation(id, caller, req->route->summary, e);
    for (size_t i = 0; i < ARRAY_SIZE(not_granted); i++)
        if (has_permission(req->route, not_granted[i]))
            return 0;
    return identity_require(id, caller, req->route->permission, e);
}

int request_need_caller(const struct request *req, struct err *e)
{
    struct credentials given;
    struct caller caller;

    if (req->caller->kind != CALLER_NOBODY)
        return 0;
    read_credentials(req, true, &given);
    return identity_caller(req->api->identity, &given, req->arena, &caller, e);
}

int request_need_proof(const struct request *req, struct err *e)
{
    struct credentials given;
    struct caller caller;

    if (req->caller->kind == CALLER_KEY && req->caller->app_id)
        return err_set(e, -EPERM, "APP_ONLY", "Only the app itself may read this; a developer key reads what was kept under the key alone.");
    if (req->caller->kind != CALLER_APP)
        return 0;
    read_credentials(req, false, &given);
    given.needs_proof = true;
    return identity_caller(req->api->identity, &given, req->arena, &caller, e);
}

int request_check_reporter(const struct request *req, const char *task_uuid, struct err *e)
{
    struct credentials given;

    read_credentials(req, true, &given);
    return identity_check_reporter(req->api->identity, &given, task_uuid, e);
}

bool request_has_to_wait(struct identity *id, const struct http_exchange *x)
{
    const struct credentials given = { .x_app_id = http_header(&x->request, "x-app-id"), .connection = x->request.connection };

    return identity_has_to_wait(id, &given);
}

int request_read_query(struct request *req, struct err *e)
{
    void *query;

    if (!req->route->query)
        return 0;
    query = arena_alloc(req->arena, req->route->query_size);
    req->query = query;
    return fields_read_query(req->route->query, req->exchange->request.query, query, req->arena, e);
}

int request_read_body(struct request *req, struct err *e)
{
    int r = 0, further = 0;
    struct arena *a;
    void *body;

    if (!req->route->body)
        return 0;
    if (json_type(req->body_json) == JSON_ABSENT)
        r = read_body_json(req, e);
    if (r < 0)
        return r;
    a = http_exchange_body_arena(req->exchange);
    body = arena_alloc(a, req->route->body_size);
    req->body = body;
    r = fields_read(req->route->body, req->body_json, body, a, "", e);
    if (req->route->check_body && (r == 0 || r == -EINVAL))
        further = req->route->check_body(req, body, e);
    return r < 0 ? r : further;
}
