#include "api/request.h"

#include "api/api.h"
#include "identity/local_program.h"
#include "identity/sessions.h"

#include <string.h>
#include <strings.h>

static bool is_this_machine(const struct http_request *req)
{
    return http_is_local(req) || strncmp(req->peer, "127.", 4) == 0 || strcmp(req->peer, "::1") == 0;
}

/* True for a program that does not identify itself. Pages do so by their headers, and this service by its user agent
 * when it sends requests: what the service finds on this machine must be another service. */
static bool is_anonymous(const struct http_request *in)
{
    const char *agent = http_header(in, "user-agent");

    return !http_header(in, "origin") && !http_header(in, "referer") && !http_header(in, "sec-fetch-site") &&
           !http_header(in, "cookie") && (!agent || strncmp(agent, "hearth/", 7) != 0);
}

static void read_credentials(const struct request *req, bool is_body_trusted, struct credentials *ret)
{
    const struct http_request *in = &req->exchange->request;
    bool is_inline = req->route->kind == ROUTE_INLINE;

    if (req->is_by_key_alone) {
        *ret = (struct credentials){ .key_hash = req->key_hash };
        return;
    }
    *ret = (struct credentials){
        .authorization = http_header(in, "authorization"),
        .x_api_key = http_header(in, "x-api-key"),
        .x_app_id = http_header(in, "x-app-id"),
        .x_app_secret = http_header(in, "x-app-secret"),
        .connection = in->connection,
        .key_hash = req->key_hash,
        .session_cookie = is_inline ? NULL : http_cookie(req->arena, in, SESSION_COOKIE),
        .session_proof = http_header(in, SESSION_PROOF_HEADER),
        .is_anonymous = req->route->takes_anonymous && is_anonymous(in),
        .is_local_admin = http_is_local(in),
    };
    if (is_body_trusted && is_this_machine(in))
        ret->body_app_id = json_cstr(json_get(req->body_json, "app_id"));
}

static bool has_permission(const struct route *route, const char *permission)
{
    return strcmp(route->permission, permission) == 0;
}

int request_read_claim(struct identity *id, const struct route *route, struct http_exchange *x, struct claim *ret,
                       struct err *e)
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
    if (r == -EACCES && identity_takes_anonymous(id, &given)) {
        err_init(e);
        return identity_claim_local(id, &given, ret, e);
    }
    return by_body ? 0 : r;
}

/* RFC 9110 section 15.5.16: the answer to a compressed body says that it must not be compressed. */
int request_check_coding(const struct request *req, struct err *e)
{
    const char *coding = http_header(&req->exchange->request, "content-encoding");

    if (!coding || strcasecmp(coding, "identity") == 0)
        return 0;
    http_response_header(req->exchange, "accept-encoding", "identity");
    return err_set(e, -ENOTSUP, "UNSUPPORTED_ENCODING", "The body has the content-encoding %.40s; send it without one.",
                   coding);
}

static int read_body_json(struct request *req, struct err *e)
{
    struct slice text = req->exchange->request.body;
    int r;

    if (!req->route->body)
        return 0;
    r = request_check_coding(req, e);
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
    if (r == -EACCES && identity_takes_anonymous(id, &given)) {
        err_init(e);
        r = identity_local_program(id, &given, caller, e);
    }
    if (by_body && is_this_machine(&req->exchange->request) && !given.x_app_secret)
        return 0;
    if (r < 0 || by_body || req->route->takes_permission || has_permission(req->route, PERM_NONE))
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
        if (req->route->takes_permission || has_permission(req->route, not_granted[i]))
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
        return err_set(e, -EPERM, "APP_ONLY",
                       "Only the app itself may read this; a developer key reads what was kept under the key alone.");
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
    const struct credentials given = { .x_app_id = http_header(&x->request, "x-app-id"),
                                       .connection = x->request.connection };

    return identity_has_to_wait(id, &given);
}

bool request_suits_loop(const struct route *route, const struct http_exchange *x, const struct claim *claim)
{
    const struct permission *permission = permission_find(route->permission);
    const char *app_id = http_header(&x->request, "x-app-id");

    return route->tries_loop && claim->kind == HOLDER_KEY && !(app_id && *app_id) && permission &&
           !permission->is_dangerous && x->request.body.n <= LIMIT_SMALL_BODY;
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

int request_check_patch(const struct request *req, struct err *e)
{
    const char *names = "";

    for (const struct field *f = req->route->body; f->kind != FIELD_KIND_END; f++) {
        if (!json_is_absent(json_get(req->body_json, f->name)))
            return 0;
        names = arena_printf(req->arena, "%s%s%s", names, *names ? ", " : "", f->name);
    }
    return err_add_field(e, "", "The body must have at least one of: %.150s.", names);
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
