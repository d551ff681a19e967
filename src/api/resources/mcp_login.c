/* Logins at remote MCP servers (mcp/oauth.h): where the browser goes, the redirect that it comes back with, logout. */
#include "api/api.h"
#include "api/page.h"
#include "api/resources/mcp.h"
#include "api/routes.h"
#include "base/limits.h"
#include "identity/audit.h"

#define CALLBACK "/api/mcp/callback"

struct callback_query {
    const char *state, *code, *iss, *error, *error_description;
};

struct login_body {
    const char *id_token;
};

static const struct field callback_fields[] = {
    FIELD_STRING(struct callback_query, state, "state", .max = LIMIT_TEXT_CHARS),
    FIELD_STRING(struct callback_query, code, "code", .max = LIMIT_PROVIDER_SECRET),
    FIELD_STRING(struct callback_query, iss, "iss", .max = LIMIT_TEXT_CHARS),
    FIELD_STRING(struct callback_query, error, "error", .max = LIMIT_TEXT_CHARS),
    FIELD_STRING(struct callback_query, error_description, "error_description", .max = LIMIT_TEXT_CHARS),
    FIELD_END,
};
static const struct field login_fields[] = {
    FIELD_STRING(struct login_body, id_token, "id_token", .min = 1, .max = LIMIT_MCP_TOKEN_BYTES,
                 .help = "of grant enterprise: one that the identity provider gave the person, instead of a browser"),
    FIELD_END,
};
static const struct field login_answer[] = {
    SHAPE_STRING("server"),
    SHAPE_STRING("url", .flags = FIELD_NULLABLE, .help = "for the person's browser; null: the login is done"),
    SHAPE_STRING("host", .flags = FIELD_NULLABLE, .help = "where the person logs in"),
    FIELD_END,
};

static int need_service(const struct request *req, struct err *e)
{
    return req->api->mcp_oauth ? 0 : err_set(e, -ENOTSUP, "NOT_SERVING", "Logins work only while the service runs.");
}

static int log_in(struct request *req, const struct mcp_oauth_target *target, struct mcp_oauth_login *ret,
                  struct err *e)
{
    const char *redirect = arena_printf(req->arena, "%s" CALLBACK, req->api->base_url);
    const struct login_body *body = req->body;
    const char *id_token = body ? body->id_token : NULL;
    int r;

    if (!id_token && target->way != MCP_OAUTH_MACHINE)
        return mcp_oauth_begin(req->api->mcp_oauth, target, redirect, mcp_call_of(req)->wait, req->arena, ret, e);
    r = mcp_oauth_obtain(req->api->mcp_oauth, target, id_token, mcp_call_of(req)->wait, e);
    return r < 0 ? r : mcp_host_restart(req->api->mcp_host, target->server, e);
}

/* A browser of this machine comes back over loopback, whichever addresses the service listens on. */
static int begin_login(struct request *req, struct response *res, struct err *e)
{
    struct mcp_oauth_target target;
    struct mcp_oauth_login login = { 0 };
    int r = need_service(req, e);

    if (r == 0)
        r = mcp_host_target(req->api->mcp_host, req->params[0], req->arena, &target, e);
    if (r == 0)
        r = audit_append(req->api->identity, req->caller->actor, "mcp.login", req->params[0], NULL, e);
    if (r == 0)
        r = log_in(req, &target, &login, e);
    if (r < 0)
        return r;
    json_add_string(&res->json, "server", req->params[0]);
    json_add_string(&res->json, "url", login.url);
    json_add_string(&res->json, "host", login.host);
    return 0;
}

static int end_login(struct request *req, struct response *res, struct err *e)
{
    struct mcp_oauth_target target;
    int r = need_service(req, e);

    if (r == 0)
        r = mcp_host_target(req->api->mcp_host, req->params[0], req->arena, &target, e);
    if (r == 0)
        r = audit_append(req->api->identity, req->caller->actor, "mcp.logout", req->params[0], NULL, e);
    if (r == 0)
        r = mcp_oauth_forget(req->api->mcp_oauth, &target, mcp_call_of(req)->wait, e);
    return r < 0 ? r : mcp_host_restart(req->api->mcp_host, req->params[0], e);
}

/* The query needs no credential: its state was made here, is secret and counts once. */
static int take_callback(struct request *req, struct response *res, struct err *e)
{
    static const struct page done = {
        .title = "Logged in", .body = "<h1>Logged in</h1><p>Hearth can use the MCP server now. Close this page.</p>"
    };
    const struct callback_query *query = req->query;
    const struct mcp_oauth_answer answer = { query->state, query->code, query->iss, query->error,
                                             query->error_description };
    const char *server = NULL;
    int r = need_service(req, e);

    if (r == 0)
        r = mcp_oauth_finish(req->api->mcp_oauth, &answer, mcp_call_of(req)->wait, req->arena, &server, e);
    if (r == 0)
        r = mcp_host_restart(req->api->mcp_host, server, e);
    if (r < 0)
        return r;
    page_write(res, &done);
    return 0;
}

const struct route mcp_login_routes[] = {
    { .method = HTTP_POST,
      .path = "/api/mcp/servers/:server/login",
      .permission = PERM_ADMIN,
      .kind = ROUTE_LONG,
      ROUTE_BODY(login_fields, struct login_body),
      .is_body_optional = true,
      .answer = login_answer,
      .handler = begin_login,
      .summary = "Begin a login at a remote MCP server; a browser goes on where a person is needed",
      .tag = "MCP" },
    { .method = HTTP_POST,
      .path = "/api/mcp/servers/:server/logout",
      .permission = PERM_ADMIN,
      .kind = ROUTE_LONG,
      .answer = api_nothing,
      .handler = end_login,
      .summary = "Forget the login at a remote MCP server, and revoke it where that is possible",
      .tag = "MCP" },
    { .method = HTTP_GET,
      .path = CALLBACK,
      .permission = PERM_PUBLIC,
      .kind = ROUTE_LONG,
      ROUTE_QUERY(callback_fields, struct callback_query),
      .answer = api_nothing,
      .answer_type = "text/html",
      .handler = take_callback,
      .summary = "Where a browser comes back to from a login at a remote MCP server",
      .tag = "MCP" },
    ROUTE_END,
};
