#include "face/caller.h"

#include "base/hash.h"

#include <string.h>
#include <strings.h>

#define BEARER "Bearer "
#define OF_USER "user:"

static const char *const role_names[] = {
    [FACE_ANON] = "anon",
    [FACE_AUTHENTICATED] = "authenticated",
    [FACE_SERVICE] = "service_role",
};

const char *face_role_name(enum face_role role)
{
    return role_names[role];
}

static bool is_key(const char *given, const char *key)
{
    size_t n = strlen(key);

    return strlen(given) == n && hash_equal(given, key, n);
}

int face_caller_of_token(const struct face_keys *keys, struct slice token, int64_t now_s, struct face_caller *ret,
                         struct err *e)
{
    struct jwt_claims claims;
    int r = jwt_verify(token, slice_of(keys->jwt_secret), now_s, &claims, e);

    if (r < 0)
        return r;
    if (!claims.role[0] || claims.expires_s == 0)
        return err_set(e, -EINVAL, "MALFORMED_JWT", "The token must have the claims role and exp.");
    for (enum face_role role = FACE_ANON; role <= FACE_SERVICE; role++) {
        if (strcmp(claims.role, role_names[role]) != 0)
            continue;
        *ret = (struct face_caller){ .role = role, .expires_s = claims.expires_s };
        memcpy(ret->subject, claims.subject, sizeof(ret->subject));
        memcpy(ret->session, claims.session, sizeof(ret->session));
        return 0;
    }
    return err_set(e, -EINVAL, "MALFORMED_JWT",
                   "The role of the token must be anon, authenticated or service_role, not \"%s\".", claims.role);
}

int face_caller_of_key(const struct face_keys *keys, const char *key, int64_t now_s, struct face_caller *ret,
                       struct err *e)
{
    if (!key || !*key)
        return err_set(e, -EACCES, "INVALID_FACE_KEY", "No API key found in request");
    if (is_key(key, keys->publishable) || is_key(key, keys->secret)) {
        *ret = (struct face_caller){ .role = is_key(key, keys->secret) ? FACE_SERVICE : FACE_ANON };
        return 0;
    }
    if (!strchr(key, '.'))
        return err_set(e, -EACCES, "INVALID_FACE_KEY", "Invalid API key");
    return face_caller_of_token(keys, slice_of(key), now_s, ret, e);
}

int face_caller_of_request(const struct face_keys *keys, const char *key, const char *authorization, int64_t now_s,
                           struct face_caller *ret, struct err *e)
{
    const char *token = authorization && strncasecmp(authorization, BEARER, strlen(BEARER)) == 0
                            ? authorization + strlen(BEARER)
                            : NULL;
    int r = face_caller_of_key(keys, key, now_s, ret, e);

    if (r < 0 || !token || strncmp(token, "sb_", 3) == 0 || strcmp(token, key) == 0)
        return r;
    return face_caller_of_token(keys, slice_of(token), now_s, ret, e);
}

bool face_may_see(const struct face_caller *c, const char *user_id)
{
    if (c->role == FACE_SERVICE)
        return true;
    return c->role == FACE_AUTHENTICATED && user_id && c->subject[0] && strcasecmp(c->subject, user_id) == 0;
}

bool face_may_join(const struct face_caller *c, struct slice topic)
{
    const char *end;
    struct slice owner;

    if (c->role != FACE_AUTHENTICATED)
        return c->role == FACE_SERVICE;
    if (topic.n < strlen(OF_USER) || memcmp(topic.p, OF_USER, strlen(OF_USER)) != 0)
        return true;
    owner = (struct slice){ topic.p + strlen(OF_USER), topic.n - strlen(OF_USER) };
    end = owner.n ? memchr(owner.p, ':', owner.n) : NULL;
    owner.n = end ? (size_t)(end - owner.p) : owner.n;
    return c->subject[0] && slice_eq_str(owner, c->subject);
}
