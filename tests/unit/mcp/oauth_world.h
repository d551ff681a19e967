/* Servers for the ways to log in without a secret of the person at the authorization server: a key (private_key_jwt),
 * and an identity provider (enterprise-managed-authorization). What a test sets in the world makes them mean harm. */
#pragma once

#include "mcp/oauth.h"

#include "../net/upstream.h"
#include "base/base64.h"
#include "base/clock.h"
#include "base/hash.h"
#include "mcp/oauth_jwt.h"
#include "mcp/oauth_private.h"
#include "net/guard.h"

#include "test_keys.h"

/* An MCP server at /mcp, its authorization server at /as, an identity provider at /idp. Each asks for tokens at
 * /token/as and /token/idp. */
struct world {
    struct rig rig;
    struct guard *guard;
    struct mcp_oauth *oauth;
    struct net_wait wait;
    struct mcp_oauth_target target;
    /* what a test changes; NULL or 0: all is well */
    const char *as_issuer, *as_extra, *as_answer, *as_revocation, *idp_issuer, *idp_extra;
    const char *id_token, *id_jag_header, *id_jag_claims, *exchange_types;
    int as_status, idp_status;
    char forms[64 << 10];            /* requests for tokens: path, authorization and body, one line each */
    atomic_int n_as, n_idp, n_other; /* requests for tokens, and to where a redirect leads */
};

static inline void say(struct http_exchange *x, int status, const char *body)
{
    x->response.status = status;
    buf_add_str(&x->response.body, body);
    http_exchange_send(x);
}

static inline const char *encoded(struct arena *a, const char *json)
{
    struct buf out;

    buf_init(&out, KIB(16));
    base64url_encode(&out, slice_of(json));
    return buf_to_arena(&out, a);
}

static inline const char *jwt_of(struct arena *a, const char *header, const char *claims)
{
    return arena_printf(a, "%s.%s.c2ln", encoded(a, header), encoded(a, claims));
}

static inline int64_t now_s(void)
{
    return clock_wall_ms() / 1000;
}

static inline const char *origin_of(struct world *w, struct arena *a)
{
    return arena_printf(a, "http://127.0.0.1:%u", w->rig.port);
}

/* more: further members, which replace the others by standing before them. */
static inline const char *id_token_of(struct world *w, struct arena *a, const char *more)
{
    return jwt_of(a, "{\"alg\":\"RS256\"}",
                  arena_printf(a,
                               "{%s\"iss\":\"%s/idp\",\"sub\":\"ann\",\"aud\":[\"other\",\"idp-client\"],\"exp\":%lld}",
                               more, origin_of(w, a), (long long)now_s() + 600));
}

static inline const char *id_jag_of(struct world *w, struct arena *a)
{
    const char *origin = origin_of(w, a);

    return jwt_of(
        a, w->id_jag_header ? w->id_jag_header : "{\"typ\":\"oauth-id-jag+jwt\",\"alg\":\"ES256\"}",
        arena_printf(a,
                     "{%s\"iss\":\"%s/idp\",\"aud\":\"%s/as\",\"resource\":\"%s/mcp\",\"client_id\":\"client\","
                     "\"exp\":%lld}",
                     w->id_jag_claims ? w->id_jag_claims : "", origin, origin, origin, (long long)now_s() + 300));
}

static inline const char *idp_answer(struct world *w, struct http_exchange *x)
{
    const char *form = arena_slicedup(x->arena, x->request.body);

    if (w->idp_status)
        return "{\"error\":\"invalid_grant\"}";
    if (strstr(form, "token-exchange"))
        return arena_printf(x->arena, "{\"access_token\":\"%s\",%s}", id_jag_of(w, x->arena),
                            w->exchange_types ? w->exchange_types
                                              : "\"issued_token_type\":\"" MCP_TYPE_ID_JAG "\",\"token_type\":\"N_A\"");
    return arena_printf(x->arena, "{\"access_token\":\"of-idp\",\"refresh_token\":\"idp-refresh\",\"id_token\":\"%s\"}",
                        w->id_token ? w->id_token : id_token_of(w, x->arena, ""));
}

static inline void serve_token(struct world *w, struct http_exchange *x)
{
    const char *authorization = http_header(&x->request, "authorization");
    size_t n = strlen(w->forms);

    snprintf(w->forms + n, sizeof(w->forms) - n, "%s %s %.*s\n", x->request.path, authorization ? authorization : "-",
             (int)x->request.body.n, x->request.body.p);
    if (strcmp(x->request.path, "/token/idp") == 0) {
        atomic_fetch_add(&w->n_idp, 1);
        say(x, w->idp_status ? w->idp_status : 200, idp_answer(w, x));
        return;
    }
    atomic_fetch_add(&w->n_as, 1);
    http_response_header(x, "Location", arena_printf(x->arena, "%s/elsewhere", origin_of(w, x->arena)));
    say(x, w->as_status ? w->as_status : 200, w->as_answer ? w->as_answer : "{\"access_token\":\"t1\"}");
}

static inline const char *issuer_metadata(struct world *w, struct arena *a, const char *name, const char *issuer,
                                          const char *extra)
{
    const char *origin = origin_of(w, a);

    return arena_printf(
        a,
        "{\"issuer\":\"%s\",\"authorization_endpoint\":\"%s/authorize\",\"token_endpoint\":\"%s/token/%s\","
        "\"revocation_endpoint\":\"%s\"%s}",
        issuer ? issuer : arena_printf(a, "%s/%s", origin, name), origin, origin, name,
        w->as_revocation ? w->as_revocation : arena_printf(a, "%s/revoke", origin), extra ? extra : "");
}

static inline void serve(void *arg, struct http_exchange *x)
{
    struct world *w = arg;
    const char *path = x->request.path, *origin = origin_of(w, x->arena);

    if (strcmp(path, "/.well-known/oauth-protected-resource/mcp") == 0)
        say(x, 200,
            arena_printf(x->arena, "{\"resource\":\"%s/mcp\",\"authorization_servers\":[\"%s/as\"]}", origin, origin));
    else if (strcmp(path, "/.well-known/oauth-authorization-server/as") == 0)
        say(x, 200, issuer_metadata(w, x->arena, "as", w->as_issuer, w->as_extra));
    else if (strcmp(path, "/idp/.well-known/openid-configuration") == 0)
        say(x, 200, issuer_metadata(w, x->arena, "idp", w->idp_issuer, w->idp_extra));
    else if (strncmp(path, "/token/", 7) == 0 || strcmp(path, "/revoke") == 0)
        serve_token(w, x);
    else {
        atomic_fetch_add(&w->n_other, strcmp(path, "/elsewhere") == 0);
        say(x, 404, "");
    }
}

static inline void world_open(struct world *w, enum mcp_oauth_way way)
{
    memset(w, 0, sizeof(*w));
    w->wait = net_wait_of(WAIT_MS, NULL, NULL);
    assert_int_equal(hash_init(NULL), 0);
    rig_open(&w->rig, serve, w);
    w->guard = guard_new(&(struct guard_config){ 0 });
    w->oauth = mcp_oauth_new(&(struct mcp_oauth_config){ .guard = w->guard, .public_guard = w->guard });
    w->target = (struct mcp_oauth_target){
        .server = "one", .url = rig_url(&w->rig, "/mcp"), .client_id = "client", .way = way
    };
    if (way == MCP_OAUTH_MACHINE) {
        w->target.private_key = new_p256_pem(w->rig.a);
        return;
    }
    w->target.client_secret = "s";
    w->target.identity_provider = rig_url(&w->rig, "/idp");
    w->target.identity_client_id = "idp-client";
}

static inline void world_close(struct world *w)
{
    mcp_oauth_free(w->oauth);
    guard_free(w->guard);
    rig_close(&w->rig);
}

static inline int log_in(struct world *w, struct err *e)
{
    const char *id_token = w->target.way == MCP_OAUTH_ENTERPRISE ? id_token_of(w, w->rig.a, "") : NULL;

    return mcp_oauth_obtain(w->oauth, &w->target, id_token, &w->wait, e);
}

static inline const char *value_of(struct world *w)
{
    struct mcp_authorizer by;
    const char *value = NULL;

    assert_int_equal(mcp_oauth_authorizer(w->oauth, &w->target, &by, NULL), 0);
    assert_int_equal(by.value(by.arg, &w->wait, w->rig.a, &value, NULL), 0);
    return value;
}

static inline int refuse(struct world *w, const char *used, struct err *e)
{
    struct mcp_authorizer by;

    assert_int_equal(mcp_oauth_authorizer(w->oauth, &w->target, &by, NULL), 0);
    return by.refused(by.arg, &(struct mcp_refusal){ 401, "Bearer", used }, &w->wait, e);
}

/* The login fails with this word in the sentence. */
static inline void check_failure(struct world *w, int r, const char *word)
{
    struct err e = { 0 };

    assert_int_equal(log_in(w, &e), r);
    if (!strstr(e.text, word))
        fail_msg("\"%s\" is not in: %s", word, e.text);
    assert_null(value_of(w));
}
