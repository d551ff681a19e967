/* Requests to the token endpoint (OAuth 2.1 section 3.2, RFC 8707 section 2.2, RFC 7009). */
#include "base/base64.h"
#include "base/clock.h"
#include "base/percent.h"
#include "base/secret.h"
#include "mcp/oauth_key.h"
#include "mcp/oauth_private.h"

#include <string.h>

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

/* RFC 7523 section 2.2: the assertion names the client. It is for the issuer alone, and goes to the origin of its token
 * endpoint only: another receiver could show it there. */
static int add_assertion(struct buf *form, const struct mcp_fetch *f, const char *url, const struct mcp_grant *grant,
                         struct err *e)
{
    const struct mcp_assertion what = { .pem = f->private_key,
                                        .key_id = f->key_id,
                                        .alg = grant->signing_alg,
                                        .client_id = grant->client_id,
                                        .audience = grant->issuer,
                                        .now_s = clock_wall_ms() / 1000 };
    const char *jwt = NULL;
    int r;

    if (!f->private_key)
        return err_set(e, -EPROTO, "MCP_LOGIN_FAILED", "The private_key of this login is not configured any more.");
    if (!mcp_is_same_origin(f->arena, url, grant->token_endpoint))
        return err_set(e, -EPROTO, "MCP_LOGIN_FAILED", "An assertion for %.200s does not go to %.200s.", grant->issuer,
                       url);
    r = mcp_key_assert(f->arena, &what, &jwt, e);
    if (r < 0)
        return r;
    mcp_form_add(form, "client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer");
    mcp_form_add(form, "client_assertion", jwt);
    return 0;
}

/* url: where the form goes. *ret_authorization: the header's value; NULL: none. */
static int add_client(struct buf *form, const struct mcp_fetch *f, const char *url, const struct mcp_grant *grant,
                      const char **ret_authorization, struct err *e)
{
    *ret_authorization = NULL;
    if (grant->auth_method == MCP_AUTH_KEY)
        return add_assertion(form, f, url, grant, e);
    if (grant->client_secret && grant->auth_method == MCP_AUTH_BASIC) {
        *ret_authorization = basic_of(f->arena, grant);
        return 0;
    }
    mcp_form_add(form, "client_id", grant->client_id);
    if (grant->auth_method == MCP_AUTH_POST)
        mcp_form_add(form, "client_secret", grant->client_secret);
    return 0;
}

/* What a person can do about it; "" when that is not known. */
static const char *advice(const struct mcp_grant *grant, const char *error)
{
    if (!error || (strcmp(error, "invalid_client") != 0 && strcmp(error, "unauthorized_client") != 0))
        return "";
    if (grant->auth_method == MCP_AUTH_KEY)
        return " Register the public key of private_key there, for this client_id and this kind of grant.";
    return " Check the client_id and its secret, and what the client is registered for there.";
}

static int err_refused(const struct mcp_fetch *f, const struct mcp_grant *grant, const struct http_answer *answer,
                       struct err *e)
{
    struct mcp_oauth_error why;

    mcp_oauth_error_read(f->arena, answer->body, &why);
    return err_set(e, answer->status < 500 && why.error ? -EACCES : -EPROTO,
                   answer->status < 500 && why.error ? "MCP_LOGIN_DENIED" : "MCP_LOGIN_FAILED",
                   "The authorization server %.200s gave no token (HTTP status %d%s%s%s%s).%s", grant->issuer,
                   answer->status, why.error ? ", " : "", why.error ? why.error : "", why.description ? ": " : "",
                   why.description ? why.description : "", advice(grant, why.error));
}

static void take_tokens(const struct mcp_tokens *tokens, struct mcp_grant *grant)
{
    grant->access_token = tokens->access_token;
    if (tokens->refresh_token) /* OAuth 2.1 section 4.3.3: without a new one the old one stays */
        grant->refresh_token = tokens->refresh_token;
    if (!grant->resource) /* of an identity provider: nobody else's id token is of use */
        grant->id_token = tokens->id_token;
    if (tokens->scope)
        grant->scope = tokens->scope;
    grant->expires_ms = tokens->expires_in_s ? clock_wall_ms() + 1000 * tokens->expires_in_s : 0;
}

int mcp_token_post(const struct mcp_fetch *f, struct buf *form, const struct mcp_grant *grant, struct slice *ret_body,
                   struct err *e)
{
    const char *authorization;
    struct http_answer answer = { 0 };
    int r = add_client(form, f, grant->token_endpoint, grant, &authorization, e);

    if (r == 0)
        r = buf_check(form, e);
    if (r == 0)
        r = mcp_fetch_post(f, grant->token_endpoint, form_type, buf_slice(form), authorization, &answer, e);
    if (r < 0)
        return r;
    if (answer.status != 200)
        return err_refused(f, grant, &answer, e);
    *ret_body = answer.body;
    return 0;
}

int mcp_token_request(const struct mcp_fetch *f, struct buf *form, struct mcp_grant *grant, struct err *e)
{
    struct mcp_tokens tokens = { 0 };
    struct slice body = { 0 };
    int r;

    mcp_form_add(form, "resource", grant->resource);
    r = mcp_token_post(f, form, grant, &body, e);
    if (r == 0)
        r = mcp_tokens_read(f->arena, body, &tokens, e);
    if (r == 0)
        take_tokens(&tokens, grant);
    return r;
}

void mcp_token_revoke(const struct mcp_fetch *f, const struct mcp_grant *grant)
{
    bool is_refresh = grant->refresh_token != NULL;
    const char *authorization, *token = is_refresh ? grant->refresh_token : grant->access_token;
    struct http_answer answer;
    struct buf form;

    if (!grant->revocation_endpoint || !token)
        return;
    buf_init(&form, MCP_FORM_BYTES);
    mcp_form_add(&form, "token", token);
    mcp_form_add(&form, "token_type_hint", is_refresh ? "refresh_token" : "access_token");
    if (add_client(&form, f, grant->revocation_endpoint, grant, &authorization, NULL) == 0)
        (void)!mcp_fetch_post(f, grant->revocation_endpoint, form_type, buf_slice(&form), authorization, &answer, NULL);
    buf_clear(&form);
}
