/* From the MCP server to its authorization server (2026-07-28, "Authorization Server Discovery"; for servers of
 * 2025-03-26, which have no metadata of the resource, its "Authorization Server Metadata Discovery"). */
#include "mcp/oauth_private.h"

#include <string.h>

enum { NOT_THERE = 1 };

/* 0: a document; NOT_THERE: the server says that there is none. */
static int get_document(const struct mcp_fetch *f, const char *url, struct slice *ret, struct err *e)
{
    struct http_answer answer;
    int r = mcp_fetch_get(f, url, &answer, e);

    if (r < 0)
        return r;
    if (answer.status == 200) {
        *ret = answer.body;
        return 0;
    }
    if (answer.status >= 500)
        return err_set(e, -EPROTO, "MCP_LOGIN_FAILED", "%.200s answered with the HTTP status %d.", url, answer.status);
    return NOT_THERE;
}

static int get_first(const struct mcp_fetch *f, const struct mcp_places *places, struct slice *ret, struct err *e)
{
    int r = NOT_THERE;

    for (size_t i = 0; r == NOT_THERE && i < places->n; i++)
        r = get_document(f, places->urls[i], ret, e);
    return r;
}

/* ---- the resource ---- */

static int find_resource(const struct mcp_fetch *f, const struct mcp_challenge *challenge,
                         struct mcp_resource_metadata *ret, struct err *e)
{
    struct mcp_places places;
    struct slice json = { 0 };
    int r = NOT_THERE;

    if (challenge->resource_metadata) {
        r = get_document(f, challenge->resource_metadata, &json, e);
    } else {
        r = mcp_resource_places(f->arena, f->server_url, &places, e);
        if (r == 0)
            r = get_first(f, &places, &json, e);
    }
    return r == 0 ? mcp_resource_read(f->arena, json, f->server_url, ret, e) : r;
}

/* ---- the authorization server ---- */

static int find_issuer(const struct mcp_fetch *f, const char *issuer, struct mcp_issuer_metadata *ret, struct err *e)
{
    struct mcp_places places;
    struct slice json = { 0 };
    int r = mcp_issuer_places(f->arena, issuer, &places, e);

    if (r == 0)
        r = get_first(f, &places, &json, e);
    if (r == NOT_THERE)
        return err_set(e, -EPROTO, "MCP_LOGIN_FAILED", "The authorization server %.200s has no metadata.", issuer);
    return r == 0 ? mcp_issuer_read(f->arena, json, issuer, ret, e) : r;
}

static int check_endpoints(const struct mcp_fetch *f, const struct mcp_issuer_metadata *m, struct err *e)
{
    const char *const urls[] = { m->authorization_endpoint, m->token_endpoint, m->registration_endpoint,
                                 m->revocation_endpoint };
    int r = 0;

    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(urls); i++)
        if (urls[i])
            r = mcp_fetch_check(f, urls[i], e);
    return r;
}

int mcp_discover_issuer(const struct mcp_fetch *f, const char *issuer, struct mcp_issuer_metadata *ret, struct err *e)
{
    int r = find_issuer(f, issuer, ret, e);

    return r == 0 ? check_endpoints(f, ret, e) : r;
}

static const char *choose_issuer(const struct mcp_resource_metadata *m, const char *preferred)
{
    for (size_t i = 0; preferred && i < m->n_issuers; i++)
        if (strcmp(m->issuers[i], preferred) == 0)
            return m->issuers[i];
    return m->issuers[0];
}

static int use_resource(const struct mcp_fetch *f, const struct mcp_resource_metadata *resource, const char *preferred,
                        struct mcp_place *ret, struct err *e)
{
    ret->resource = resource->resource;
    ret->scope = resource->scope;
    return find_issuer(f, choose_issuer(resource, preferred), &ret->issuer, e);
}

/* ---- servers of 2025-03-26 ---- */

/* The resource names no issuer there: any within the server's origin counts. */
static int read_old(const struct mcp_fetch *f, struct slice json, const char *origin, struct mcp_issuer_metadata *ret,
                    struct err *e)
{
    struct json_value v;
    const char *issuer, *of_issuer;

    if (json_parse(f->arena, json, &v, NULL) == 0 && (issuer = json_cstr(json_get(v, "issuer"))) &&
        mcp_origin(f->arena, issuer, &of_issuer, NULL) == 0 && strcmp(of_issuer, origin) == 0)
        return mcp_issuer_read(f->arena, json, issuer, ret, e);
    return mcp_issuer_read(f->arena, json, origin, ret, e);
}

static int use_origin(const struct mcp_fetch *f, struct mcp_place *ret, struct err *e)
{
    struct mcp_places places;
    const char *origin;
    struct slice json = { 0 };
    int r = mcp_origin(f->arena, f->server_url, &origin, e);

    if (r == 0)
        r = mcp_issuer_places(f->arena, origin, &places, e);
    if (r == 0)
        r = get_first(f, &places, &json, e);
    ret->resource = arena_strndup(f->arena, f->server_url, strcspn(f->server_url, "#"));
    if (r == 0)
        return read_old(f, json, origin, &ret->issuer, e);
    if (r < 0)
        return r;
    ret->is_assumed = true;
    ret->issuer =
        (struct mcp_issuer_metadata){ .issuer = origin,
                                      .authorization_endpoint = arena_printf(f->arena, "%s/authorize", origin),
                                      .token_endpoint = arena_printf(f->arena, "%s/token", origin),
                                      .registration_endpoint = arena_printf(f->arena, "%s/register", origin),
                                      .has_s256 = true };
    return 0;
}

int mcp_discover(const struct mcp_fetch *f, const struct mcp_challenge *challenge, const char *preferred,
                 struct mcp_place *ret, struct err *e)
{
    struct mcp_resource_metadata resource;
    int r = find_resource(f, challenge, &resource, e);

    *ret = (struct mcp_place){ 0 };
    if (r == NOT_THERE)
        r = use_origin(f, ret, e);
    else if (r == 0)
        r = use_resource(f, &resource, preferred, ret, e);
    return r == 0 ? check_endpoints(f, &ret->issuer, e) : r;
}
