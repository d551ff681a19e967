#include "base/percent.h"
#include "mcp/oauth_private.h"
#include "net/url.h"

struct mcp_fetch mcp_fetch_of(const struct mcp_oauth_config *c, const struct mcp_oauth_target *t,
                              const struct net_wait *wait, struct arena *a)
{
    return (struct mcp_fetch){
        .config = c, .server_url = t->url, .wait = wait, .arena = a, .private_key = t->private_key, .key_id = t->key_id
    };
}

static bool is_own_origin(const struct mcp_fetch *f, const char *url)
{
    return mcp_is_same_origin(f->arena, url, f->server_url);
}

int mcp_fetch_check(const struct mcp_fetch *f, const char *url, struct err *e)
{
    struct url to;
    int r = url_parse(f->arena, url, &to, e);

    if (r < 0 || to.is_tls || to.is_loopback || is_own_origin(f, url))
        return r;
    return err_set(e, -EPROTO, "MCP_LOGIN_FAILED", "The login leads to %.200s, which is not https.", url);
}

/* The person named the server's own origin; what else the server names is judged by where the server itself is. */
static const struct guard *guard_for(const struct mcp_fetch *f, const char *url)
{
    struct url server;

    if (is_own_origin(f, url))
        return NULL;
    if (url_parse(f->arena, f->server_url, &server, NULL) == 0 && server.is_loopback)
        return f->config->guard;
    return f->config->public_guard;
}

static int call(const struct mcp_fetch *f, struct http_call_request *request, struct http_answer *ret, struct err *e)
{
    int64_t left_ms = net_wait_left(f->wait, e);
    int r;

    if (left_ms < 0)
        return (int)left_ms;
    r = mcp_fetch_check(f, request->url, e);
    if (r < 0)
        return r;
    request->total_ms = MIN(left_ms, (int64_t)MCP_OAUTH_STEP_MS);
    request->max_reply = LIMIT_MCP_OAUTH_REPLY;
    request->is_moot = f->wait->is_leaving;
    request->guard = guard_for(f, request->url);
    return http_call(request, f->arena, f->wait->is_gone, ret, e);
}

int mcp_fetch_get(const struct mcp_fetch *f, const char *url, struct http_answer *ret, struct err *e)
{
    static const struct http_call_header headers[] = { { "Accept", "application/json" } };
    struct http_call_request request = { .method = "GET", .url = url, .headers = headers, .n_headers = 1 };

    return call(f, &request, ret, e);
}

int mcp_fetch_post(const struct mcp_fetch *f, const char *url, const char *type, struct slice body,
                   const char *authorization, struct http_answer *ret, struct err *e)
{
    const struct http_call_header headers[] = { { "Accept", "application/json" },
                                                { "Content-Type", type },
                                                { "Authorization", authorization } };
    struct http_call_request request = {
        .method = "POST", .url = url, .headers = headers, .n_headers = authorization ? 3 : 2, .body = body
    };

    return call(f, &request, ret, e);
}

void mcp_form_add(struct buf *form, const char *name, const char *value)
{
    if (!value)
        return;
    buf_printf(form, "%s%s=", form->n > 0 ? "&" : "", name);
    percent_encode(form, slice_of(value));
}
