#include "mcp/oauth.h"

#include "base/base64.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/visible.h"
#include "mcp/oauth_private.h"
#include "net/url.h"

#include <stdlib.h>
#include <string.h>

enum {
    STATE_BYTES = 32,
    VERIFIER_BYTES = 48, /* 64 characters (RFC 7636 section 4.1: 43 to 128) */
    TOKEN_TEXT = 80,
    EARLY_MS = 60000, /* so long before its end a token is refreshed */
    SHOWN_BYTES = 300
};

struct mcp_oauth *mcp_oauth_new(const struct mcp_oauth_config *c)
{
    struct mcp_oauth *o = xcalloc(1, sizeof(*o));

    o->config = *c;
    pthread_mutex_init(&o->lock, NULL);
    return o;
}

struct mcp_oauth *mcp_oauth_free(struct mcp_oauth *o)
{
    if (!o)
        return NULL;
    while (o->waiting) {
        struct mcp_oauth_waiting *next = o->waiting->next;

        arena_free(o->waiting->arena); /* the entries end next */
        o->waiting = next;
    }
    while (o->entries) {
        struct mcp_oauth_entry *next = o->entries->next;

        mcp_entry_free(o->entries);
        o->entries = next;
    }
    pthread_mutex_destroy(&o->lock);
    free(o);
    return NULL;
}

const char *mcp_oauth_extension(enum mcp_oauth_way way)
{
    static const char *const names[] = { [MCP_OAUTH_MACHINE] = "io.modelcontextprotocol/oauth-client-credentials",
                                         [MCP_OAUTH_ENTERPRISE] =
                                             "io.modelcontextprotocol/enterprise-managed-authorization" };

    return names[way];
}

/* ---- the authorizer ---- */

static bool is_ending(const struct mcp_grant *grant)
{
    return grant->expires_ms > 0 && grant->expires_ms - EARLY_MS < clock_wall_ms();
}

static void refresh_early(struct mcp_oauth_entry *entry, const struct net_wait *wait, struct arena *a,
                          struct mcp_grant *grant)
{
    struct mcp_oauth_target t;
    struct mcp_fetch f;

    mcp_entry_target(entry, a, &t);
    f = mcp_fetch_of(&entry->oauth->config, &t, wait, a);
    pthread_mutex_lock(&entry->busy);
    mcp_entry_grant(entry, a, grant); /* another thread may have been faster */
    if (grant->refresh_token && is_ending(grant) && mcp_renew_refresh(entry, &f, grant, NULL) < 0)
        mcp_entry_grant(entry, a, grant);
    pthread_mutex_unlock(&entry->busy);
}

static int give_value(void *arg, const struct net_wait *wait, struct arena *a, const char **ret, struct err *e)
{
    struct mcp_oauth_entry *entry = arg;
    struct mcp_grant grant;

    mcp_entry_grant(entry, a, &grant);
    if (grant.access_token && grant.refresh_token && is_ending(&grant))
        refresh_early(entry, wait, a, &grant);
    *ret = grant.access_token ? arena_printf(a, "Bearer %s", grant.access_token) : NULL;
    return 0;
}

static int err_login_required(const struct mcp_oauth_entry *entry, const struct mcp_challenge *wanted, int status,
                              struct err *e)
{
    return err_set(e, -EACCES, "MCP_LOGIN_REQUIRED",
                   status == 401 ? "The MCP server asks for a login%s%.200s: hearth mcp login %s"
                                 : "The MCP server asks for more permissions%s%.200s: hearth mcp login %s",
                   wanted->scope ? " with the scope " : "", wanted->scope ? wanted->scope : "", entry->server);
}

/* The caller holds `busy`. 0: there is a new token. */
static int replace_token(struct mcp_oauth_entry *entry, const struct mcp_refusal *refusal,
                         const struct mcp_challenge *wanted, const struct net_wait *wait, struct arena *a,
                         struct err *e)
{
    struct mcp_oauth_target t;
    struct mcp_grant grant;
    struct mcp_fetch f;

    mcp_entry_target(entry, a, &t);
    mcp_entry_grant(entry, a, &grant);
    f = mcp_fetch_of(&entry->oauth->config, &t, wait, a);
    if (grant.access_token && (!refusal->used || strcmp(refusal->used + strlen("Bearer "), grant.access_token) != 0))
        return 0; /* another thread was faster */
    if (t.way == MCP_OAUTH_MACHINE)
        return mcp_renew_machine(entry, &f, &t, wanted, &grant, e);
    if (t.way == MCP_OAUTH_ENTERPRISE)
        return mcp_renew_enterprise(entry, &f, &t, wanted, &grant, e);
    if (refusal->status == 401 && grant.refresh_token && mcp_renew_refresh(entry, &f, &grant, NULL) == 0)
        return 0;
    return err_login_required(entry, wanted, refusal->status, e);
}

static int take_refusal(void *arg, const struct mcp_refusal *refusal, const struct net_wait *wait, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct mcp_oauth_entry *entry = arg;
    struct mcp_challenge wanted;
    int r;

    mcp_challenge_read(a, refusal->challenge, &wanted);
    if (refusal->status == 403 && (!wanted.error || strcmp(wanted.error, "insufficient_scope") != 0))
        return err_set(e, -EACCES, "MCP_LOGIN_REQUIRED", "The MCP server refuses this login (403).");
    wanted.scope = mcp_scope_union(a, wanted.scope, NULL);
    mcp_entry_want(entry, &wanted);
    pthread_mutex_lock(&entry->busy);
    r = replace_token(entry, refusal, &wanted, wait, a, e);
    pthread_mutex_unlock(&entry->busy);
    if (r == 0)
        mcp_entry_want(entry, NULL);
    return r;
}

static void release_entry(void *arg)
{
    mcp_entry_release(arg);
}

int mcp_oauth_authorizer(struct mcp_oauth *o, const struct mcp_oauth_target *t, struct mcp_authorizer *ret,
                         struct err *e)
{
    struct mcp_oauth_entry *entry = NULL;
    int r = mcp_entry_of(o, t->server, t, &entry, e);

    if (r == 0)
        *ret = (struct mcp_authorizer){ give_value, take_refusal, release_entry, entry };
    return r;
}

/* ---- logins of a person ---- */

/* RFC 7636 section 4.2: base64url of the hash, without padding. */
static const char *challenge_of(struct arena *a, const char *verifier)
{
    unsigned char hash[HASH_BYTES];
    struct buf out;

    hash_sha256(slice_of(verifier), hash);
    buf_init(&out, TOKEN_TEXT);
    base64url_encode(&out, (struct slice){ (const char *)hash, sizeof(hash) });
    return buf_to_arena(&out, a);
}

static char *random_text(struct arena *a, size_t n_bytes)
{
    char *text = arena_alloc(a, 4 * n_bytes / 3 + 4);

    random_token(text, n_bytes);
    return text;
}

/* to: the authorization endpoint. */
static const char *browser_url(struct arena *a, const char *to, const struct mcp_oauth_waiting *w)
{
    struct buf query;

    buf_init(&query, MCP_FORM_BYTES);
    mcp_form_add(&query, "response_type", "code");
    mcp_form_add(&query, "client_id", w->grant.client_id);
    mcp_form_add(&query, "redirect_uri", w->redirect_uri);
    mcp_form_add(&query, "state", w->state);
    mcp_form_add(&query, "code_challenge", challenge_of(a, w->verifier));
    mcp_form_add(&query, "code_challenge_method", "S256");
    mcp_form_add(&query, "nonce", w->nonce);
    mcp_form_add(&query, "resource", w->grant.resource);
    mcp_form_add(&query, "scope", w->grant.scope);
    if (w->grant.scope && strstr(w->grant.scope, "offline_access")) /* OpenID Connect Core section 11 */
        mcp_form_add(&query, "prompt", "consent");
    return arena_printf(a, "%s%s%s", to, strchr(to, '?') ? "&" : "?", buf_to_arena(&query, a));
}

/* Drops what has expired, and the oldest beyond so many. The caller holds the lock. */
static void drop_old(struct mcp_oauth *o, size_t most)
{
    size_t n = 0;

    for (struct mcp_oauth_waiting **at = &o->waiting; *at;) {
        struct mcp_oauth_waiting *w = *at;

        if (++n > most || w->until_ms < clock_mono_ms()) {
            *at = w->next;
            w->entry->n_users--;
            arena_free(w->arena);
            n--;
        } else {
            at = &w->next;
        }
    }
}

/* is_strict: an authorization server of MCP has to say that it protects its codes (2025-11-25, "Authorization Code
 * Protection"); OpenID Connect asks nobody to say so. */
static int check_issuer_of_people(const struct mcp_issuer_metadata *m, bool is_strict, struct err *e)
{
    if (!m->authorization_endpoint)
        return err_set(e, -EPROTO, "MCP_LOGIN_FAILED", "The authorization server %.200s offers no login for people.",
                       m->issuer);
    if (is_strict && !m->has_s256)
        return err_set(e, -EPROTO, "MCP_LOGIN_FAILED",
                       "The authorization server %.200s does not protect its codes (no PKCE with S256).", m->issuer);
    return 0;
}

static void add_waiting(struct mcp_oauth *o, struct mcp_oauth_waiting *w)
{
    w->until_ms = clock_mono_ms() + LIMIT_MCP_LOGIN_MS;
    pthread_mutex_lock(&o->lock);
    drop_old(o, LIMIT_MCP_LOGINS - 1);
    w->next = o->waiting;
    o->waiting = w;
    pthread_mutex_unlock(&o->lock);
}

static int prepare_at_server(struct mcp_oauth_waiting *w, const struct mcp_fetch *f, struct mcp_issuer_metadata *ret_m,
                             struct mcp_grant *ret, struct err *e)
{
    struct mcp_challenge wanted;
    struct mcp_grant old;
    struct mcp_place place;
    int r;

    mcp_entry_wanted(w->entry, f->arena, &wanted);
    mcp_entry_grant(w->entry, f->arena, &old);
    r = mcp_grant_begin(f, &w->target, &wanted, &old, w->redirect_uri, &place, ret, e);
    if (r < 0)
        return r;
    *ret_m = place.issuer;
    return check_issuer_of_people(ret_m, true, e);
}

static int prepare_at_provider(struct mcp_oauth_waiting *w, const struct mcp_fetch *f,
                               struct mcp_issuer_metadata *ret_m, struct mcp_grant *ret, struct err *e)
{
    const struct mcp_fetch there = mcp_identity_fetch(f, &w->target);
    int r = mcp_identity_begin(&there, &w->target, ret_m, ret, e);

    w->nonce = random_text(w->arena, STATE_BYTES);
    return r < 0 ? r : check_issuer_of_people(ret_m, false, e);
}

/* The record outlives the call: what it needs is copied into its arena. */
static int prepare_login(struct mcp_oauth *o, struct mcp_oauth_waiting *w, const struct net_wait *wait, struct arena *a,
                         struct mcp_issuer_metadata *ret_m, struct err *e)
{
    const struct mcp_fetch f = mcp_fetch_of(&o->config, &w->target, wait, a);
    struct mcp_grant grant;
    int r = w->target.way == MCP_OAUTH_ENTERPRISE ? prepare_at_provider(w, &f, ret_m, &grant, e)
                                                  : prepare_at_server(w, &f, ret_m, &grant, e);

    if (r < 0)
        return r;
    mcp_grant_copy(w->arena, &grant, &w->grant);
    w->sends_iss = ret_m->sends_iss;
    w->state = random_text(w->arena, STATE_BYTES);
    w->verifier = random_text(w->arena, VERIFIER_BYTES);
    return 0;
}

int mcp_oauth_begin(struct mcp_oauth *o, const struct mcp_oauth_target *t, const char *redirect_uri,
                    const struct net_wait *wait, struct arena *a, struct mcp_oauth_login *ret, struct err *e)
{
    struct arena *own = arena_new();
    struct mcp_oauth_waiting *w = ARENA_NEW(own, struct mcp_oauth_waiting);
    struct mcp_issuer_metadata m = { 0 };
    struct url at;
    int r;

    w->arena = own;
    w->redirect_uri = arena_strdup(own, redirect_uri);
    mcp_target_copy(own, t, &w->target);
    r = mcp_entry_of(o, t->server, t, &w->entry, e);
    if (r == 0)
        r = prepare_login(o, w, wait, a, &m, e);
    if (r == 0)
        r = url_parse(a, m.authorization_endpoint, &at, e);
    if (r == 0) {
        *ret =
            (struct mcp_oauth_login){ browser_url(a, m.authorization_endpoint, w), arena_strdup(a, w->state), at.host };
        add_waiting(o, w);
    } else {
        mcp_entry_release(w->entry);
        arena_free(own);
    }
    return r;
}

static bool has_state(const struct mcp_oauth_waiting *w, const char *state)
{
    size_t n = strlen(state);

    return strlen(w->state) == n && hash_equal(w->state, state, n);
}

static struct mcp_oauth_waiting *take_waiting(struct mcp_oauth *o, const char *state)
{
    struct mcp_oauth_waiting **at, *found;

    pthread_mutex_lock(&o->lock);
    drop_old(o, LIMIT_MCP_LOGINS);
    at = &o->waiting;
    while (*at && !has_state(*at, state))
        at = &(*at)->next;
    found = *at;
    if (found)
        *at = found->next;
    pthread_mutex_unlock(&o->lock);
    return found;
}

/* RFC 9207 section 2.4, before anything else of the answer is looked at. */
static int check_issuer(const struct mcp_oauth_waiting *w, const char *iss, struct err *e)
{
    if (!iss && !w->sends_iss)
        return 0;
    if (iss && strcmp(iss, w->grant.issuer) == 0)
        return 0;
    return err_set(
        e, -EPROTO, "MCP_LOGIN_FAILED",
        "The answer to this login comes from another authorization server than %.200s: nothing was sent to it.",
        w->grant.issuer);
}

static int err_denied(const struct mcp_oauth_answer *answer, struct arena *a, struct err *e)
{
    struct buf shown;

    buf_init(&shown, 16 * SHOWN_BYTES);
    visible_add(&shown, (struct slice){ answer->error, strnlen(answer->error, SHOWN_BYTES) }, VISIBLE_LINE);
    if (answer->error_description) {
        buf_add_str(&shown, ": ");
        visible_add(&shown,
                    (struct slice){ answer->error_description, strnlen(answer->error_description, SHOWN_BYTES) },
                    VISIBLE_LINE);
    }
    return err_set(e, -EACCES, "MCP_LOGIN_DENIED", "The authorization server refused the login (%.500s).",
                   buf_to_arena(&shown, a));
}

/* Takes the tokens of a code; f: of the server that gave it. */
static int redeem(const struct mcp_fetch *f, const struct mcp_oauth_waiting *w, const char *code,
                  struct mcp_grant *grant, struct err *e)
{
    struct buf form;
    int r;

    buf_init(&form, MCP_FORM_BYTES);
    mcp_form_add(&form, "grant_type", "authorization_code");
    mcp_form_add(&form, "code", code);
    mcp_form_add(&form, "redirect_uri", w->redirect_uri);
    mcp_form_add(&form, "code_verifier", w->verifier);
    r = mcp_token_request(f, &form, grant, e);
    buf_clear(&form);
    return r;
}

/* A token of the authorization server, with what the entry knows. */
static int obtain(struct mcp_oauth_entry *entry, const struct mcp_fetch *f, const struct mcp_oauth_target *t,
                  struct err *e)
{
    struct mcp_challenge wanted;
    struct mcp_grant old;
    int r;

    mcp_entry_wanted(entry, f->arena, &wanted);
    pthread_mutex_lock(&entry->busy);
    mcp_entry_grant(entry, f->arena, &old);
    r = t->way == MCP_OAUTH_MACHINE ? mcp_renew_machine(entry, f, t, &wanted, &old, e)
                                    : mcp_renew_enterprise(entry, f, t, &wanted, &old, e);
    pthread_mutex_unlock(&entry->busy);
    return r;
}

static int finish_at_provider(struct mcp_oauth_waiting *w, const struct mcp_fetch *f, const char *code, struct err *e)
{
    const struct mcp_fetch there = mcp_identity_fetch(f, &w->target);
    struct mcp_grant identity = w->grant;
    int r = redeem(&there, w, code, &identity, e);

    if (r == 0 && !identity.id_token)
        r = err_set(e, -EPROTO, "MCP_LOGIN_FAILED", "The identity provider %.200s sent no id token.", identity.issuer);
    if (r == 0)
        r = mcp_identity_take(f->arena, identity.id_token, w->nonce, &identity, e);
    if (r == 0)
        r = mcp_identity_keep(w->entry, &w->target, &identity, e);
    return r == 0 ? obtain(w->entry, f, &w->target, e) : r;
}

static int use_code(struct mcp_oauth *o, struct mcp_oauth_waiting *w, const char *code, const struct net_wait *wait,
                    struct arena *a, struct err *e)
{
    const struct mcp_fetch f = mcp_fetch_of(&o->config, &w->target, wait, a);
    struct mcp_grant grant = w->grant;
    int r;

    if (w->nonce) {
        r = finish_at_provider(w, &f, code, e);
    } else {
        r = redeem(&f, w, code, &grant, e);
        if (r == 0)
            r = mcp_entry_keep(w->entry, &grant, e);
    }
    if (r == 0)
        mcp_entry_want(w->entry, NULL);
    return r;
}

static int finish_login(struct mcp_oauth *o, struct mcp_oauth_waiting *w, const struct mcp_oauth_answer *answer,
                        const struct net_wait *wait, struct arena *a, struct err *e)
{
    int r = check_issuer(w, answer->iss, e);

    if (r < 0)
        return r;
    if (answer->error)
        return err_denied(answer, a, e);
    if (!answer->code || !*answer->code || strlen(answer->code) > LIMIT_MCP_TOKEN_BYTES)
        return err_set(e, -EPROTO, "MCP_LOGIN_FAILED", "The authorization server sent no code.");
    return use_code(o, w, answer->code, wait, a, e);
}

int mcp_oauth_finish(struct mcp_oauth *o, const struct mcp_oauth_answer *answer, const struct net_wait *wait,
                     struct arena *a, const char **ret_server, struct err *e)
{
    struct mcp_oauth_waiting *w = answer->state ? take_waiting(o, answer->state) : NULL;
    int r;

    if (!w)
        return err_set(e, -ENOENT, "MCP_LOGIN_UNKNOWN",
                       "This login was finished before, took too long, or was never begun here: begin again.");
    *ret_server = arena_strdup(a, w->entry->server);
    r = finish_login(o, w, answer, wait, a, e);
    mcp_entry_release(w->entry);
    arena_free(w->arena);
    return r;
}

/* ---- logins without a browser ---- */

static int keep_given(struct mcp_oauth_entry *entry, const struct mcp_fetch *f, const struct mcp_oauth_target *t,
                      const char *id_token, struct err *e)
{
    const struct mcp_fetch there = mcp_identity_fetch(f, t);
    struct mcp_issuer_metadata m;
    struct mcp_grant identity;
    int r = mcp_identity_begin(&there, t, &m, &identity, e);

    if (r == 0)
        r = mcp_identity_take(f->arena, id_token, NULL, &identity, e);
    return r == 0 ? mcp_identity_keep(entry, t, &identity, e) : r;
}

int mcp_oauth_obtain(struct mcp_oauth *o, const struct mcp_oauth_target *t, const char *id_token,
                     const struct net_wait *wait, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct mcp_fetch f = mcp_fetch_of(&o->config, t, wait, a);
    struct mcp_oauth_entry *entry = NULL;
    int r;

    if (t->way != (id_token ? MCP_OAUTH_ENTERPRISE : MCP_OAUTH_MACHINE))
        return err_set(e, -EINVAL, "VALIDATION_ERROR",
                       id_token ? "An id_token is for a server with an identity_provider."
                                : "A person logs in at this server, with a browser.");
    r = mcp_entry_of(o, t->server, t, &entry, e);
    if (r == 0 && id_token)
        r = keep_given(entry, &f, t, id_token, e);
    if (r == 0)
        r = obtain(entry, &f, t, e);
    if (r == 0)
        mcp_entry_want(entry, NULL);
    mcp_entry_release(entry);
    return r;
}

/* ---- the end of a login ---- */

static struct mcp_grant registration_of(const struct mcp_grant *grant)
{
    if (!grant->redirect_uri) /* a configured client: nothing was registered */
        return (struct mcp_grant){ 0 };
    return (struct mcp_grant){ .url = grant->url,
                               .issuer = grant->issuer,
                               .client_id = grant->client_id,
                               .client_secret = grant->client_secret,
                               .redirect_uri = grant->redirect_uri,
                               .auth_method = grant->auth_method,
                               .secret_expires_s = grant->secret_expires_s };
}

static void revoke(const struct mcp_fetch *f, const struct mcp_oauth_target *t, const struct mcp_grant *grant)
{
    if (grant->url)
        mcp_token_revoke(f, grant);
    if (grant->identity && t->identity_provider) {
        const struct mcp_fetch there = mcp_identity_fetch(f, t);

        mcp_token_revoke(&there, grant->identity);
    }
}

int mcp_oauth_forget(struct mcp_oauth *o, const struct mcp_oauth_target *t, const struct net_wait *wait, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct mcp_fetch f = mcp_fetch_of(&o->config, t, wait, a);
    struct mcp_oauth_entry *entry = NULL;
    struct mcp_grant grant, rest;
    int r = mcp_entry_of(o, t->server, t, &entry, e);

    if (r < 0)
        return r;
    pthread_mutex_lock(&entry->busy);
    mcp_entry_grant(entry, a, &grant);
    rest = registration_of(&grant);
    r = mcp_entry_keep(entry, &rest, e);
    if (r == 0)
        revoke(&f, t, &grant);
    pthread_mutex_unlock(&entry->busy);
    mcp_entry_release(entry);
    return r;
}

int mcp_oauth_status(struct mcp_oauth *o, const char *server, struct arena *a, struct mcp_oauth_status *ret,
                     struct err *e)
{
    struct mcp_oauth_entry *entry = NULL;
    struct mcp_grant grant;
    int r = mcp_entry_of(o, server, NULL, &entry, e);

    if (r < 0)
        return r;
    mcp_entry_grant(entry, a, &grant);
    *ret = (struct mcp_oauth_status){ .state = MCP_OAUTH_NONE };
    if (grant.access_token)
        *ret = (struct mcp_oauth_status){ .state = MCP_OAUTH_LOGGED_IN,
                                          .issuer = grant.issuer,
                                          .scope = grant.scope,
                                          .expires_ms = grant.expires_ms,
                                          .can_refresh = grant.refresh_token || grant.identity };
    pthread_mutex_lock(&o->lock);
    if (entry->wanted_arena)
        ret->state = MCP_OAUTH_WANTED;
    pthread_mutex_unlock(&o->lock);
    mcp_entry_release(entry);
    return 0;
}
