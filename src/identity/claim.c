#include "identity/claim.h"

#include "base/clock.h"
#include "identity/sessions.h"
#include "identity/state.h"

enum { REMEMBERED_MS = 3600 * 1000 };

/* ---- remembered sessions ---- */

static void hash_session(const struct identity *id, const char *cookie, const char *proof,
                         unsigned char ret_hash[HASH_BYTES])
{
    char both[2 * SESSION_TOKEN_SIZE + 2];

    snprintf(both, sizeof(both), "%.*s %.*s", SESSION_TOKEN_SIZE, cookie, SESSION_TOKEN_SIZE, proof);
    identity_hash(id, both, ret_hash);
}

void identity_remember_session(struct identity *id, const char *cookie, const char *proof)
{
    struct seen_session seen = { .until_ms = clock_mono_ms() + REMEMBERED_MS };
    size_t at;

    hash_session(id, cookie, proof, seen.hash);
    pthread_mutex_lock(&id->seen.lock);
    for (at = 0; at < id->seen.n && !hash_equal(id->seen.sessions[at].hash, seen.hash, HASH_BYTES); at++)
        ;
    if (at == id->seen.n)
        at = id->seen.n < SEEN_SESSIONS ? id->seen.n++ : id->seen.next++ % SEEN_SESSIONS;
    id->seen.sessions[at] = seen;
    pthread_mutex_unlock(&id->seen.lock);
}

void identity_forget_sessions(struct identity *id)
{
    pthread_mutex_lock(&id->seen.lock);
    id->seen.n = id->seen.next = 0;
    pthread_mutex_unlock(&id->seen.lock);
}

static bool is_remembered(struct identity *id, const struct credentials *c)
{
    unsigned char hash[HASH_BYTES];
    int64_t now_ms = clock_mono_ms();
    bool is_seen = false;

    hash_session(id, c->session_cookie, c->session_proof, hash);
    pthread_mutex_lock(&id->seen.lock);
    for (size_t i = 0; i < id->seen.n; i++)
        is_seen |= hash_equal(id->seen.sessions[i].hash, hash, HASH_BYTES) && id->seen.sessions[i].until_ms > now_ms;
    pthread_mutex_unlock(&id->seen.lock);
    return is_seen;
}

/* ---- claims ---- */

static bool is_given(const char *text)
{
    return text && *text;
}

static int claim_app(const char *app_id, struct claim *ret)
{
    ret->kind = HOLDER_APP;
    snprintf(ret->id, sizeof(ret->id), "%s", app_id);
    return 0;
}

static bool claim_key(struct identity *id, const char *text, struct claim *ret)
{
    struct cached_key key;
    bool is_launchable;

    if (!is_given(text))
        return false;
    identity_hash(id, text, ret->key_hash);
    if (!credential_cache_find_key(&id->cache, ret->key_hash, &key, NULL))
        return false;
    if (key.app_id[0])
        return credential_cache_has_app(&id->cache, key.app_id, &is_launchable) && claim_app(key.app_id, ret) == 0;
    ret->kind = HOLDER_KEY;
    snprintf(ret->id, sizeof(ret->id), "%s", key.id);
    return true;
}

static bool claim_admin(struct identity *id, const struct credentials *c, struct claim *ret)
{
    bool has_session = is_given(c->session_cookie) && is_given(c->session_proof);

    if (c->is_local_admin || (has_session && is_remembered(id, c) && peers_may_be_admin(id, c->connection)))
        ret->kind = HOLDER_ADMIN;
    else
        ret->is_open = has_session;
    return ret->kind == HOLDER_ADMIN || ret->is_open;
}

/* Refuses a caller that may not use the id. A caller whose program only a worker can determine pays like a stranger at
 * first. */
static int claim_named(struct identity *id, const struct credentials *c, struct claim *ret, struct err *e)
{
    const struct launch_what what = { .app_id = c->x_app_id };
    bool is_launchable;
    int r;

    if (!credential_cache_has_app(&id->cache, c->x_app_id, &is_launchable))
        return err_set(e, -EACCES, "INVALID_APP_ID", "Invalid app ID: %.200s", c->x_app_id);
    if (is_launchable && peers_has_to_wait(id, c->connection, &what))
        return 0;
    r = peers_check(id, c->connection, &what, false, e);
    return r < 0 ? r : claim_app(c->x_app_id, ret);
}

int identity_claim(struct identity *id, const struct credentials *c, bool is_admin_only, struct claim *ret,
                   struct err *e)
{
    struct launch launch;

    *ret = (struct claim){ .kind = HOLDER_NOBODY };
    if (is_admin_only)
        return claim_admin(id, c, ret) ? 0 : identity_refuse_admin(e);
    if (claim_key(id, identity_bearer(c->authorization), ret) || claim_key(id, c->x_api_key, ret))
        return 0;
    if (identity_launch_of(id, c, &launch) && launch.app_id[0])
        return claim_app(launch.app_id, ret);
    if (is_given(c->x_app_id))
        return identity_blame_key(c, claim_named(id, c, ret, e), e);
    return claim_admin(id, c, ret) ? 0 : identity_refuse_stranger(c, e);
}
