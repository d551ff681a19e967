/* Tokens that need no person, because one was there before or because none ever is. */
#include "mcp/oauth_private.h"

int mcp_renew_refresh(struct mcp_oauth_entry *entry, const struct mcp_fetch *f, struct mcp_grant *grant, struct err *e)
{
    struct buf form;
    int r;

    buf_init(&form, MCP_FORM_BYTES);
    mcp_form_add(&form, "grant_type", "refresh_token");
    mcp_form_add(&form, "refresh_token", grant->refresh_token);
    r = mcp_token_request(f, &form, grant, e);
    buf_clear(&form);
    if (r == -EACCES) /* revoked or expired: of no use any more */
        grant->access_token = grant->refresh_token = NULL;
    if (r == 0)
        return mcp_entry_keep(entry, grant, e);
    if (r == -EACCES)
        (void)!mcp_entry_keep(entry, grant, NULL);
    return r;
}

int mcp_grant_begin(const struct mcp_fetch *f, const struct mcp_oauth_target *t, const struct mcp_challenge *wanted,
                    const struct mcp_grant *old, const char *redirect_uri, struct mcp_place *place,
                    struct mcp_grant *ret, struct err *e)
{
    const char *before = old->access_token ? old->scope : NULL;
    int r = mcp_discover(f, wanted, old->issuer, place, e);

    if (r < 0)
        return r;
    *ret = (struct mcp_grant){ .url = t->url,
                               .resource = place->resource,
                               .issuer = place->issuer.issuer,
                               .token_endpoint = place->issuer.token_endpoint,
                               .revocation_endpoint = place->issuer.revocation_endpoint };
    ret->scope = t->scope ? t->scope : mcp_scope_union(f->arena, wanted->scope ? wanted->scope : place->scope, before);
    if (place->issuer.has_offline_access && redirect_uri)
        ret->scope = mcp_scope_union(f->arena, ret->scope, "offline_access");
    return mcp_client_identify(f, t, place, old, redirect_uri, ret, e);
}

int mcp_renew_machine(struct mcp_oauth_entry *entry, const struct mcp_fetch *f, const struct mcp_oauth_target *t,
                      const struct mcp_challenge *wanted, const struct mcp_grant *old, struct err *e)
{
    struct mcp_place place;
    struct mcp_grant grant;
    struct buf form;
    int r = mcp_grant_begin(f, t, wanted, old, NULL, &place, &grant, e);

    if (r < 0)
        return r;
    buf_init(&form, MCP_FORM_BYTES);
    mcp_form_add(&form, "grant_type", "client_credentials");
    mcp_form_add(&form, "scope", grant.scope);
    r = mcp_token_request(f, &form, &grant, e);
    buf_clear(&form);
    return r == 0 ? mcp_entry_keep(entry, &grant, e) : r;
}
