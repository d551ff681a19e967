/* The local administrator's browser: a one-time link becomes a session, which is a cookie and a proof
 * (identity/sessions.h). */
#include "identity/peers.h"
#include "identity/sessions.h"

#include "api/api.h"
#include "api/routes.h"
#include "api/resources/session_page.h"

#define SESSION_PAGE "/session"
#define COOKIE_RULES "; Path=/; HttpOnly; SameSite=Strict"

struct open_query {
    const char *token;
};

static const struct field open_query_fields[] = {
    FIELD_STRING(struct open_query, token, "token", FIELD_REQUIRED, .min = 1, .max = SESSION_TOKEN_SIZE - 1),
    FIELD_END,
};

static const struct field link_answer[] = {
    SHAPE_STRING("url", .help = "works once"),
    SHAPE_INT("expires_in_s"),
    FIELD_END,
};

static const struct field session_answer[] = {
    SHAPE_STRING("actor"),
    SHAPE_BOOL("browser", .help = "a session of a browser; else the service's own socket"),
    SHAPE_INT("confirmed_for_s",
              .help = "of a browser: how long it may go on changing what runs; 0: that needs `hearth confirm`"),
    FIELD_END,
};

struct confirm_body {
    const char *code;
};

static const struct field confirm_fields[] = {
    FIELD_STRING(struct confirm_body, code, "code", FIELD_REQUIRED, .min = 1, .max = 64,
                 .help = "as CONFIRMATION_REQUIRED told the browser"),
    FIELD_END,
};

static const struct field confirm_answer[] = {
    SHAPE_STRING("what", .help = "what the browser asked for"),
    SHAPE_INT("expires_in_s"),
    FIELD_END,
};

static int make_link(struct request *req, struct response *res, struct err *e)
{
    char token[SESSION_TOKEN_SIZE];
    int r;

    if (!*req->api->base_url)
        return err_set(e, -EAGAIN, "NOT_SERVING",
                       "No service runs that a link could open; start it with `hearth serve`.");
    r = session_link_new(req->api->identity, token, e);
    if (r < 0)
        return r;
    json_add_string(&res->json, "url", arena_printf(req->arena, "%s/session/open?token=%s", req->api->base_url, token));
    json_add_int(&res->json, "expires_in_s", SESSION_LINK_S);
    return 0;
}

/* The last step of every way to open a browser session: the cookie, and the page that takes the proof from the fragment
 * of its address. A fragment is never sent to a server, nor in a Referer. */
static void begin_session(struct request *req, struct response *res, const struct session_tokens *fresh)
{
    struct buf *body = response_start_raw(res, "text/plain; charset=utf-8");

    buf_add_str(body, "This browser is being signed in.\n");
    req->exchange->response.status = 303;
    http_response_header(req->exchange, "set-cookie",
                         arena_printf(req->arena, SESSION_COOKIE "=%s; Max-Age=%d" COOKIE_RULES, fresh->cookie,
                                      SESSION_S));
    http_response_header(req->exchange, "location", arena_printf(req->arena, SESSION_PAGE "#proof=%s", fresh->proof));
    http_response_header(req->exchange, "referrer-policy", "no-referrer");
}

static int refuse_link(struct request *req, struct response *res, const struct page *page)
{
    req->exchange->response.status = 403;
    page_write(res, page);
    return 0;
}

/* True when a person follows the link as a top-level page (Fetch Metadata, section 2.1). Prefetches and previews do not
 * use up the link. */
static bool is_person(const struct http_request *in)
{
    const char *purpose = http_header(in, "sec-purpose"), *dest = http_header(in, "sec-fetch-dest");

    return !in->is_head && !(purpose && strstr(purpose, "prefetch")) && (!dest || strcmp(dest, "document") == 0);
}

static int open_session(struct request *req, struct response *res, struct err *e)
{
    const struct open_query *query = req->query;
    struct session_tokens fresh;
    int r;

    if (!is_person(&req->exchange->request) ||
        !peers_may_be_admin(req->api->identity, req->exchange->request.connection))
        return refuse_link(req, res, &unfollowed_link_page);
    r = session_open(req->api->identity, query->token, &fresh, e);
    if (r == -EACCES)
        return refuse_link(req, res, &dead_link_page);
    if (r == 0)
        begin_session(req, res, &fresh);
    return r;
}

static int show_page(struct request *req, struct response *res, struct err *e)
{
    page_write(res, &session_page);
    return 0;
}

static int show_session(struct request *req, struct response *res, struct err *e)
{
    json_add_string(&res->json, "actor", req->caller->actor);
    json_add_bool(&res->json, "browser", req->caller->session != NULL);
    json_add_int(&res->json, "confirmed_for_s", session_confirmed_for_s(req->api->identity, req->caller));
    return 0;
}

static int confirm(struct request *req, struct response *res, struct err *e)
{
    const struct confirm_body *body = req->body;
    const char *what = NULL;
    int r = session_confirm(req->api->identity, req->caller, body->code, req->arena, &what, e);

    if (r < 0)
        return r;
    json_add_string(&res->json, "what", what);
    json_add_int(&res->json, "expires_in_s", CONFIRM_S);
    return 0;
}

static int close_session(struct request *req, struct response *res, struct err *e)
{
    int r = session_close(req->api->identity, req->caller, e);

    http_response_header(req->exchange, "set-cookie", SESSION_COOKIE "=; Max-Age=0" COOKIE_RULES);
    return r;
}

const struct route session_routes[] = {
    { .method = HTTP_POST,
      .path = "/api/session/link",
      .permission = PERM_ADMIN,
      .status = 201,
      .answer = link_answer,
      .handler = make_link,
      .summary = "Make a one-time link that signs a browser in",
      .tag = "Session" },
    { .method = HTTP_GET,
      .path = "/session/open",
      .permission = PERM_PUBLIC,
      ROUTE_QUERY(open_query_fields, struct open_query),
      .status = 303,
      .answer_type = "text/plain",
      .handler = open_session,
      .summary = "Follow the one-time link",
      .tag = "Session" },
    { .method = HTTP_GET,
      .path = SESSION_PAGE,
      .permission = PERM_PUBLIC,
      .answer_type = "text/html",
      .handler = show_page,
      .summary = "The page that keeps the proof of a session, and says whether this browser is signed in",
      .tag = "Session" },
    { .method = HTTP_GET,
      .path = "/api/session",
      .permission = PERM_ADMIN,
      .answer = session_answer,
      .handler = show_session,
      .summary = "Is this browser signed in",
      .tag = "Session" },
    { .method = HTTP_DELETE,
      .path = "/api/session",
      .permission = PERM_ADMIN,
      .answer = api_nothing,
      .handler = close_session,
      .summary = "Sign this browser out",
      .tag = "Session" },
    { .method = HTTP_POST,
      .path = "/api/session/confirm",
      .permission = PERM_ADMIN,
      ROUTE_BODY(confirm_fields, struct confirm_body),
      .answer = confirm_answer,
      .handler = confirm,
      .summary = "Confirm in a terminal that a browser may change what runs, for five minutes",
      .tag = "Session" },
    ROUTE_END,
};
