/* MCP's extension enterprise-managed-authorization: an identity provider vouches for a person who logged in there
 * (draft-ietf-oauth-identity-assertion-authz-grant): id token, by token exchange (RFC 8693) an ID-JAG for one
 * authorization server, there a token (RFC 7523 section 2.1). */
#include "base/clock.h"
#include "base/hash.h"
#include "mcp/oauth_jwt.h"
#include "mcp/oauth_private.h"

#include <string.h>
#include <strings.h>

struct mcp_fetch mcp_identity_fetch(const struct mcp_fetch *f, const struct mcp_oauth_target *t)
{
    return (struct mcp_fetch){
        .config = f->config, .server_url = t->identity_provider, .wait = f->wait, .arena = f->arena
    };
}

/* ---- the identity ---- */

int mcp_identity_begin(const struct mcp_fetch *f, const struct mcp_oauth_target *t, struct mcp_issuer_metadata *ret_m,
                       struct mcp_grant *ret, struct err *e)
{
    int r = mcp_discover_issuer(f, t->identity_provider, ret_m, e);

    if (r < 0)
        return r;
    *ret = (struct mcp_grant){ .url = t->identity_provider,
                               .issuer = ret_m->issuer,
                               .token_endpoint = ret_m->token_endpoint,
                               .revocation_endpoint = ret_m->revocation_endpoint,
                               .client_id = t->identity_client_id,
                               .client_secret = t->identity_client_secret,
                               .auth_method = mcp_client_method(ret_m, t->identity_client_secret, 0),
                               .scope = ret_m->has_offline_access ? "openid offline_access" : "openid" };
    return 0;
}

static bool is_over(int64_t expires_s)
{
    return expires_s <= clock_wall_ms() / 1000;
}

static bool is_same_text(const char *one, const char *other)
{
    size_t n = strlen(one);

    return strlen(other) == n && hash_equal(one, other, n);
}

/* OpenID Connect Core section 3.1.3.7, and 12.2 for one that comes later. */
static const char *rule_of_id_token(const struct mcp_jwt *jwt, const char *nonce, const struct mcp_grant *identity)
{
    if (strcmp(jwt->issuer, identity->issuer) != 0)
        return "is of another identity provider";
    if (!mcp_jwt_holds(jwt->audience, identity->client_id))
        return "is for another client than identity_client_id";
    if (is_over(jwt->expires_s))
        return "has expired: log in again";
    if (nonce && (!jwt->nonce || !is_same_text(jwt->nonce, nonce)))
        return "does not belong to this login";
    if (!*jwt->subject || (identity->subject && strcmp(identity->subject, jwt->subject) != 0))
        return "is not of the person who logged in";
    return NULL;
}

int mcp_identity_take(struct arena *a, const char *id_token, const char *nonce, struct mcp_grant *identity,
                      struct err *e)
{
    struct mcp_jwt jwt = { 0 };
    const char *rule;
    int r = mcp_jwt_read(a, "The id token", id_token, &jwt, e);

    if (r < 0)
        return r;
    rule = rule_of_id_token(&jwt, nonce, identity);
    if (rule)
        return err_set(e, -EPROTO, "MCP_LOGIN_FAILED", "The id token %s (%.200s).", rule, identity->issuer);
    identity->id_token = id_token;
    identity->subject = jwt.subject;
    identity->expires_ms = 1000 * jwt.expires_s;
    identity->access_token = NULL; /* of the provider itself: of no use here */
    return 0;
}

int mcp_identity_keep(struct mcp_oauth_entry *entry, const struct mcp_oauth_target *t, const struct mcp_grant *identity,
                      struct err *e)
{
    const struct mcp_grant grant = { .url = t->url, .identity = identity };
    int r;

    pthread_mutex_lock(&entry->busy); /* a renewal with the identity before would keep that one again */
    r = mcp_entry_keep(entry, &grant, e);
    pthread_mutex_unlock(&entry->busy);
    return r;
}

/* ---- a new id token ---- */

static int err_login_required(const struct mcp_oauth_target *t, struct err *e)
{
    return err_set(e, -EACCES, "MCP_LOGIN_REQUIRED",
                   "A person has to log in at the identity provider %.200s: hearth mcp login %s", t->identity_provider,
                   t->server);
}

static bool is_of_target(const struct mcp_grant *identity, const struct mcp_oauth_target *t)
{
    return identity && identity->id_token && identity->issuer && identity->token_endpoint && identity->url &&
           strcmp(identity->url, t->identity_provider) == 0 && identity->client_id &&
           strcmp(identity->client_id, t->identity_client_id) == 0;
}

static int refresh_identity(const struct mcp_fetch *f, struct mcp_grant *identity, struct err *e)
{
    struct buf form;
    int r;

    identity->id_token = NULL;
    buf_init(&form, MCP_FORM_BYTES);
    mcp_form_add(&form, "grant_type", "refresh_token");
    mcp_form_add(&form, "refresh_token", identity->refresh_token);
    r = mcp_token_request(f, &form, identity, e);
    buf_clear(&form);
    if (r == 0 && !identity->id_token)
        r = err_set(e, -EPROTO, "MCP_LOGIN_FAILED", "The identity provider %.200s sent no id token.", identity->issuer);
    return r == 0 ? mcp_identity_take(f->arena, identity->id_token, NULL, identity, e) : r;
}

/* Fills *ret with the identity of old, with an id token that is valid. */
static int fresh_identity(struct mcp_oauth_entry *entry, const struct mcp_fetch *f, const struct mcp_oauth_target *t,
                          const struct mcp_grant *old, struct mcp_grant *ret, struct err *e)
{
    const struct mcp_fetch there = mcp_identity_fetch(f, t);
    struct mcp_grant kept = *old;
    struct err why;
    int r;

    *ret = *old->identity;
    if (!is_over(ret->expires_ms / 1000))
        return 0;
    err_init(&why);
    r = ret->refresh_token ? refresh_identity(&there, ret, &why) : -EACCES;
    if (r == -EACCES)
        return err_login_required(t, e);
    if (r < 0)
        return err_set(e, r, why.code, "%s", why.text);
    kept.identity = ret;
    return mcp_entry_keep(entry, &kept, e); /* the provider may have changed its refresh token */
}

/* ---- the ID-JAG ---- */

static bool is_only(struct json_value audience, const char *text)
{
    return mcp_jwt_holds(audience, text) && json_length(audience) <= 1;
}

/* It is sent to nobody but the authorization server that it is for. */
static const char *rule_of_id_jag(const struct mcp_jwt *jwt, const struct mcp_grant *identity,
                                  const struct mcp_grant *grant)
{
    if (strcasecmp(jwt->type, "oauth-id-jag+jwt") != 0)
        return "is another kind of token";
    if (strcmp(jwt->issuer, identity->issuer) != 0)
        return "is of another identity provider";
    if (!is_only(jwt->audience, grant->issuer))
        return "is for another authorization server";
    if (is_over(jwt->expires_s))
        return "has expired";
    if (!json_is_absent(jwt->resource) && !mcp_jwt_holds(jwt->resource, grant->resource))
        return "is for another MCP server";
    if (jwt->client_id && strcmp(jwt->client_id, grant->client_id) != 0)
        return "is for another client: client_id must be the one that the identity provider knows for this server";
    return NULL;
}

static int check_id_jag(const struct mcp_fetch *f, const char *text, const struct mcp_grant *identity,
                        const struct mcp_grant *grant, struct err *e)
{
    struct mcp_jwt jwt = { 0 };
    const char *rule;
    int r = mcp_jwt_read(f->arena, "The ID-JAG of the identity provider", text, &jwt, e);

    if (r < 0)
        return r;
    rule = rule_of_id_jag(&jwt, identity, grant);
    return rule ? err_set(e, -EPROTO, "MCP_LOGIN_FAILED", "The ID-JAG of %.200s %s.", identity->issuer, rule) : 0;
}

/* RFC 8693 section 2.1; draft-ietf-oauth-identity-assertion-authz-grant section 4.3. f: of the identity provider. */
static int exchange(const struct mcp_fetch *f, const struct mcp_grant *identity, const struct mcp_grant *grant,
                    const char **ret, struct err *e)
{
    struct slice body = { 0 };
    struct buf form;
    int r;

    buf_init(&form, MCP_FORM_BYTES);
    mcp_form_add(&form, "grant_type", "urn:ietf:params:oauth:grant-type:token-exchange");
    mcp_form_add(&form, "requested_token_type", MCP_TYPE_ID_JAG);
    mcp_form_add(&form, "audience", grant->issuer);
    mcp_form_add(&form, "resource", grant->resource);
    mcp_form_add(&form, "scope", grant->scope);
    mcp_form_add(&form, "subject_token", identity->id_token);
    mcp_form_add(&form, "subject_token_type", "urn:ietf:params:oauth:token-type:id_token");
    r = mcp_token_post(f, &form, identity, &body, e);
    buf_clear(&form);
    if (r == 0)
        r = mcp_exchange_read(f->arena, body, ret, e);
    return r == 0 ? check_id_jag(f, *ret, identity, grant, e) : r;
}

/* ---- the token ---- */

static int present(const struct mcp_fetch *f, const char *id_jag, struct mcp_grant *grant, struct err *e)
{
    struct buf form;
    int r;

    buf_init(&form, MCP_FORM_BYTES);
    mcp_form_add(&form, "grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer");
    mcp_form_add(&form, "assertion", id_jag);
    mcp_form_add(&form, "scope", grant->scope);
    r = mcp_token_request(f, &form, grant, e);
    buf_clear(&form);
    grant->refresh_token = NULL; /* the provider is asked each time: it may have changed its mind */
    return r;
}

int mcp_renew_enterprise(struct mcp_oauth_entry *entry, const struct mcp_fetch *f, const struct mcp_oauth_target *t,
                         const struct mcp_challenge *wanted, const struct mcp_grant *old, struct err *e)
{
    const struct mcp_fetch there = mcp_identity_fetch(f, t);
    struct mcp_grant identity, grant = { 0 };
    struct mcp_place place;
    const char *id_jag = NULL;
    int r;

    if (!is_of_target(old->identity, t))
        return err_login_required(t, e);
    r = fresh_identity(entry, f, t, old, &identity, e);
    if (r == 0)
        r = mcp_grant_begin(f, t, wanted, old, NULL, &place, &grant, e);
    if (r == 0 && place.is_assumed)
        r = err_set(e, -EPROTO, "MCP_LOGIN_FAILED",
                    "%.200s has no metadata of an authorization server, which an identity provider needs.", t->url);
    if (r == 0)
        r = exchange(&there, &identity, &grant, &id_jag, e);
    if (r == 0)
        r = present(f, id_jag, &grant, e);
    grant.identity = &identity;
    return r == 0 ? mcp_entry_keep(entry, &grant, e) : r;
}
