/* Requests to the token endpoint (OAuth 2.1 section 3.2, RFC 8707 section 2.2, RFC 7009). */
#include "base/base64.h"
#include "base/clock.h"
#include "base/percent.h"
#include "base/secret.h"
#include "mcp/oauth_private.h"

#include <string.h>

enum { FORM_BYTES = 128 << 10 };

static const char form_type[] = "application/x-www-form-urlencoded";

/* OAuth 2.1 section 2.4.1: id and secret are form-encoded before they are joined. */
static const char *basic_of(struct arena *a, const struct mcp_grant *grant)
{
    struct buf plain, out;

    buf_init(&plain, 2 * 12 * LIMIT_MCP_CLIENT_BYTES + 1); /* characters of a definition, of at most four bytes */
    percent_encode(&plain, slice_of(grant->client_id));
    buf_add_char(&plain, ':');
    percent_encode(&plain, slice_of(grant->client_secret));
    buf_init(&out, 2 * plain.n + 16);
    buf_add_str(&out, "Basic ");
    base64_encode(&out, buf_slice(&plain));
    buf_clear(&plain);
    return buf_to_arena(&out, a);
}

/* *ret_authorization: the header's value; NULL: none. */
static void add_client(struct buf *form, struct arena *a, const struct mcp_grant *grant, const char **ret_authorization)
{
    *ret_authorization = NULL;
    if (grant->client_secret && grant->auth_method == MCP_AUTH_BASIC) {
        *ret_authorization = basic_of(a, grant);
        return;
    }
    mcp_form_add(form, "client_id", grant->client_id);
    if (grant->auth_method == MCP_AUTH_POST)
        mcp_form_add(form, "client_secret", grant->client_secret);
}

static int err_refused(const struct mcp_fetch *f, const struct http_answer *answer, struct err *e)
{
    struct mcp_oauth_error why;

    mcp_oauth_error_read(f->arena, answer->body, &why);
    return err_set(e, answer->status < 500 && why.error ? -EACCES : -EPROTO,
                   answer->status < 500 && why.error ? "MCP_LOGIN_DENIED" : "MCP_LOGIN_FAILED",
                   "The authorization server gave no token (HTTP status %d%s%s%s%s).", answer->status,
                   why.error ? ", " : "", why.error ? why.error : "", why.description ? ": " : "",
                   why.description ? why.description : "");
}

static void take_tokens(const struct mcp_tokens *tokens, struct mcp_grant *grant)
{
    grant->access_token = tokens->access_token;
    if (tokens->refresh_token) /* OAuth 2.1 section 4.3.3: without a new one the old one stays */
        grant->refresh_token = tokens->refresh_token;
    if (tokens->scope)
        grant->scope = tokens->scope;
    grant->expires_ms = tokens->expires_in_s ? clock_wall_ms() + 1000 * tokens->expires_in_s : 0;
}

int mcp_token_request(const struct mcp_fetch *f, struct buf *form, struct mcp_grant *grant, struct err *e)
{
    const char *authorization;
    struct http_answer answer = { 0 };
    struct mcp_tokens tokens = { 0 };
    int r;

    mcp_form_add(form, "resource", grant->resource);
    add_client(form, f->arena, grant, &authorization);
    r = buf_check(form, e);
    if (r == 0)
        r = mcp_fetch_post(f, grant->token_endpoint, form_type, buf_slice(form), authorization, &answer, e);
    if (r < 0)
        return r;
    if (answer.status != 200)
        return err_refused(f, &answer, e);
    r = mcp_tokens_read(f->arena, answer.body, &tokens, e);
    if (r == 0)
        take_tokens(&tokens, grant);
    return r;
}

void mcp_token_revoke(const struct mcp_fetch *f, const struct mcp_grant *grant)
{
    bool is_refresh = grant->refresh_token != NULL;
    const char *authorization;
    struct http_answer answer;
    struct buf form;

    if (!grant->revocation_endpoint || !grant->access_token)
        return;
    buf_init(&form, FORM_BYTES);
    mcp_form_add(&form, "token", is_refresh ? grant->refresh_token : grant->access_token);
    mcp_form_add(&form, "token_type_hint", is_refresh ? "refresh_token" : "access_token");
    add_client(&form, f->arena, grant, &authorization);
    (void)!mcp_fetch_post(f, grant->revocation_endpoint, form_type, buf_slice(&form), authorization, &answer, NULL);
    buf_clear(&form);
}
