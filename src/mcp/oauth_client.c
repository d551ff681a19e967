/* The client id (2026-07-28, "Client Registration"): configured, the address of a metadata document, or registered. */
#include "base/clock.h"
#include "base/json_write.h"
#include "mcp/oauth_key.h"
#include "mcp/oauth_private.h"

#include <string.h>

/* RFC 8414 section 2: without a list, client_secret_basic. */
int64_t mcp_client_method(const struct mcp_issuer_metadata *m, const char *secret, unsigned registered)
{
    unsigned offered = m->auth_methods;

    if (!secret)
        return MCP_AUTH_NONE;
    if (registered & (MCP_AUTH_BASIC | MCP_AUTH_POST))
        return registered;
    return offered & MCP_AUTH_BASIC || !(offered & MCP_AUTH_POST) ? MCP_AUTH_BASIC : MCP_AUTH_POST;
}

static const char *wanted_method(unsigned offered)
{
    if (offered == 0 || offered & MCP_AUTH_NONE)
        return "none";
    return offered & MCP_AUTH_BASIC ? "client_secret_basic" : "client_secret_post";
}

/* RFC 7591 section 2; a native application, whose redirect goes to loopback. */
static void write_registration(struct buf *out, const struct mcp_place *place, const char *redirect_uri,
                               const char *scope)
{
    static const char *const grants[] = { "authorization_code", "refresh_token" }, *const codes[] = { "code" };
    struct json_writer w;

    json_write_init(&w, out);
    json_begin_object(&w);
    json_add_string(&w, "client_name", "Hearth");
    json_add_strings(&w, "redirect_uris", &redirect_uri, 1);
    json_add_strings(&w, "grant_types", grants, ARRAY_SIZE(grants));
    json_add_strings(&w, "response_types", codes, ARRAY_SIZE(codes));
    json_add_string(&w, "token_endpoint_auth_method", wanted_method(place->issuer.auth_methods));
    json_add_string(&w, "application_type", "native");
    if (scope)
        json_add_string(&w, "scope", scope);
    json_end(&w);
}

static int err_refused(const struct mcp_fetch *f, const struct http_answer *answer, struct err *e)
{
    struct mcp_oauth_error why;

    mcp_oauth_error_read(f->arena, answer->body, &why);
    return err_set(e, -EPROTO, "MCP_LOGIN_FAILED",
                   "The authorization server does not register this client (HTTP status %d%s%s%s%s).", answer->status,
                   why.error ? ", " : "", why.error ? why.error : "", why.description ? ": " : "",
                   why.description ? why.description : "");
}

static int register_client(const struct mcp_fetch *f, const struct mcp_place *place, const char *redirect_uri,
                           struct mcp_grant *grant, struct err *e)
{
    struct mcp_registration registered;
    struct http_answer answer;
    struct buf body;
    int r;

    buf_init(&body, LIMIT_MCP_OAUTH_REPLY);
    write_registration(&body, place, redirect_uri, grant->scope);
    r = mcp_fetch_post(f, place->issuer.registration_endpoint, "application/json", buf_slice(&body), NULL, &answer, e);
    buf_clear(&body);
    if (r < 0)
        return r;
    if (answer.status != 200 && answer.status != 201)
        return err_refused(f, &answer, e);
    r = mcp_registration_read(f->arena, answer.body, &registered, e);
    if (r < 0)
        return r;
    grant->client_id = registered.client_id;
    grant->client_secret = registered.client_secret;
    grant->secret_expires_s = registered.secret_expires_s;
    grant->auth_method = mcp_client_method(&place->issuer, registered.client_secret, registered.auth_method);
    grant->redirect_uri = redirect_uri;
    return 0;
}

/* A registration belongs to one issuer and one redirect. */
static bool is_registered(const struct mcp_grant *old, const struct mcp_place *place, const char *redirect_uri)
{
    return old->client_id && old->redirect_uri && old->issuer && strcmp(old->issuer, place->issuer.issuer) == 0 &&
           strcmp(old->redirect_uri, redirect_uri) == 0 &&
           (old->secret_expires_s == 0 || old->secret_expires_s > clock_wall_ms() / 1000);
}

static void keep_registration(const struct mcp_grant *old, struct mcp_grant *grant)
{
    grant->client_id = old->client_id;
    grant->client_secret = old->client_secret;
    grant->secret_expires_s = old->secret_expires_s;
    grant->auth_method = old->auth_method;
    grant->redirect_uri = old->redirect_uri;
}

/* private_key_jwt, where the metadata was read: its issuer is the audience. */
static int use_key(const struct mcp_oauth_target *t, const struct mcp_place *place, struct mcp_grant *grant,
                   struct err *e)
{
    unsigned offered = place->issuer.auth_methods;

    if (place->is_assumed)
        return err_set(e, -EPROTO, "MCP_LOGIN_FAILED",
                       "%.200s has no metadata of an authorization server, which a private_key needs.", t->url);
    if (offered && !(offered & MCP_AUTH_KEY))
        return err_set(e, -EPROTO, "MCP_LOGIN_FAILED",
                       "The authorization server %.200s takes no private_key (private_key_jwt): give the server a "
                       "client_secret instead.",
                       place->issuer.issuer);
    grant->auth_method = MCP_AUTH_KEY;
    return mcp_key_choose(t->private_key, place->issuer.signing_algs, &grant->signing_alg, e);
}

static int use_configured(const struct mcp_oauth_target *t, const struct mcp_place *place, const char *client_id,
                          struct mcp_grant *grant, struct err *e)
{
    grant->client_id = client_id;
    if (t->private_key)
        return use_key(t, place, grant, e);
    grant->client_secret = client_id == t->client_id ? t->client_secret : NULL;
    grant->auth_method = mcp_client_method(&place->issuer, grant->client_secret, 0);
    return 0;
}

int mcp_client_identify(const struct mcp_fetch *f, const struct mcp_oauth_target *t, const struct mcp_place *place,
                        const struct mcp_grant *old, const char *redirect_uri, struct mcp_grant *grant, struct err *e)
{
    if (t->client_id && old->client_id && strcmp(t->client_id, old->client_id) == 0 && old->issuer &&
        strcmp(old->issuer, place->issuer.issuer) != 0)
        return err_set(
            e, -EPROTO, "MCP_LOGIN_FAILED",
            "The MCP server now names the authorization server %.200s, but its client_id was used at %.200s: "
            "log out first if that is right.",
            place->issuer.issuer, old->issuer);
    if (t->client_id)
        return use_configured(t, place, t->client_id, grant, e);
    if (place->issuer.takes_documents && t->client_metadata_url)
        return use_configured(t, place, t->client_metadata_url, grant, e);
    if (redirect_uri && is_registered(old, place, redirect_uri)) {
        keep_registration(old, grant);
        return 0;
    }
    if (redirect_uri && place->issuer.registration_endpoint)
        return register_client(f, place, redirect_uri, grant, e);
    return err_set(e, -EPROTO, "MCP_LOGIN_FAILED",
                   "The authorization server %.200s registers no clients: register Hearth there, and give the server a "
                   "client_id.",
                   place->issuer.issuer);
}
