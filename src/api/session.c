/* The local administrator's browser: a one-time link becomes a session cookie. */
#include "identity/sessions.h"

#include "api/api.h"
#include "api/errors.h"
#include "api/routes.h"

/* A policy that names the style by its SHA-256 (CSP3, section 2.3.1): nothing else may be loaded or run. */
#define PAGE_STYLE \
    "body{margin:0 auto;max-width:40rem;padding:2.5rem 1.5rem;font:1.05rem/1.6 system-ui,sans-serif}h1{line-height:1.2}code{white-space:nowrap}"
#define PAGE_POLICY \
    "default-src 'none'; style-src 'sha256-zx8aU/khMBhxC4gxrTzhSwc2vwz6Iq/2xDKM/BvckAw='; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
#define COOKIE_RULES "; Path=/; HttpOnly; SameSite=Strict"

struct open_query { const char *token; };

static const struct field open_query_fields[] = {
    FIELD_STRING(struct open_query, token, "token", FIELD_REQUIRED, .min = 1, .max = SESSION_TOKEN_SIZE - 1),
    FIELD_END,
};

static const struct field link_answer[] = {
    SHAPE_STRING("url", .help = "works once"),
    SHAPE_INT("expires_in_s"),
    FIELD_END,
};

static const struct field session_answer[] = { SHAPE_STRING("actor"), FIELD_END };

static int make_link(struct request *req, struct response *res, struct err *e)
{
    char token[SESSION_TOKEN_SIZE];
    int r;

    if (!*req->api->base_url)
        return err_set(e, -EAGAIN, "NOT_SERVING", "No service runs that a link could open; start it with `hearth serve`.");
    r = session_link_new(req->api->identity, token, e);
    if (r < 0)
        return r;
    json_add_string(&res->json, "url", arena_printf(req->arena, "%s/session/open?token=%s", req->api->base_url, token));
    json_add_int(&res->json, "expires_in_s", SESSION_LINK_S);
    return 0;
}

/* The address of this page holds the used token: it goes to no other site and into no cache. */
static void write_page(struct response *res, const char *title, const char *sentences)
{
    struct buf *out = response_start_raw(res, "text/html; charset=utf-8");

    http_response_header(res->exchange, "content-security-policy", PAGE_POLICY);
    http_response_header(res->exchange, "referrer-policy", "no-referrer");
    buf_printf(out,
               "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
               "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
               "<meta name=\"color-scheme\" content=\"light dark\">\n<title>%s - Hearth</title>\n"
               "<style>" PAGE_STYLE "</style>\n</head>\n"
               "<body>\n<main>\n<h1>%s</h1>\n%s</main>\n</body>\n</html>\n",
               title, title, sentences);
}

static void welcome(struct response *res)
{
    write_page(res, "You are signed in",
               "<p>This browser may now manage Hearth on this machine for 30 days.</p>\n"
               "<p>Until there is a page for it, the terminal shows what waits for you:</p>\n<ul>\n"
               "<li><code>hearth permission watch</code> asks you as apps ask for permissions.</li>\n"
               "<li><code>hearth permission list</code> shows what you decided.</li>\n"
               "<li><code>hearth task list</code> shows the work of your agents.</li>\n</ul>\n");
}

static int open_session(struct request *req, struct response *res, struct err *e)
{
    const struct open_query *query = req->query;
    char session[SESSION_TOKEN_SIZE];
    int r;

    r = session_open(req->api->identity, query->token, session, e);
    if (r == -EACCES) {
        req->exchange->response.status = api_error_status(r, e);
        write_page(res, "This link is no longer valid",
                   "<p>It has been used or has expired. <code>hearth open</code> in a terminal prints a new one.</p>\n");
        return 0;
    }
    if (r < 0)
        return r;
    http_response_header(req->exchange, "set-cookie",
                         arena_printf(req->arena, SESSION_COOKIE "=%s; Max-Age=%d" COOKIE_RULES, session, SESSION_S));
    welcome(res);
    return 0;
}

static int show_session(struct request *req, struct response *res, struct err *e)
{
    json_add_string(&res->json, "actor", req->caller->actor);
    return 0;
}

static int close_session(struct request *req, struct response *res, struct err *e)
{
    const char *session = http_cookie(req->arena, &req->exchange->request, SESSION_COOKIE);
    int r = 0;

    if (session)
        r = session_close(req->api->identity, session, e);
    http_response_header(req->exchange, "set-cookie", SESSION_COOKIE "=; Max-Age=0" COOKIE_RULES);
    return r;
}

const struct route session_routes[] = {
    { .method = HTTP_POST, .path = "/api/session/link", .permission = PERM_ADMIN, .status = 201, .answer = link_answer,
      .handler = make_link, .summary = "Make a one-time link that signs a browser in", .tag = "Session" },
    { .method = HTTP_GET, .path = "/session/open", .permission = PERM_PUBLIC, ROUTE_QUERY(open_query_fields, struct open_query),
      .answer_type = "text/html", .handler = open_session, .summary = "Follow the one-time link", .tag = "Session" },
    { .method = HTTP_GET, .path = "/api/session", .permission = PERM_ADMIN, .answer = session_answer, .handler = show_session,
      .summary = "Is this browser signed in", .tag = "Session" },
    { .method = HTTP_DELETE, .path = "/api/session", .permission = PERM_ADMIN, .answer = api_nothing, .handler = close_session,
      .summary = "Sign this browser out", .tag = "Session" },
    ROUTE_END,
};
