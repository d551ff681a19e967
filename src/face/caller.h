/* Who calls the face, by the hosted service's rules: the key says which app, a user's token who signed in. Pure; any
 * thread.
 *
 * A caller with the publishable key is `anon` until a token says `authenticated`; the secret key is `service_role`. A
 * key may also be a token signed here, as the older keys of the service are.
 */
#pragma once

#include "face/jwt.h"
#include "face/keys.h"

enum face_role { FACE_ANON, FACE_AUTHENTICATED, FACE_SERVICE };

struct face_caller {
    enum face_role role;
    char subject[LIMIT_JWT_SUBJECT + 1]; /* the user; "" for none */
    char session[UUID_SIZE];             /* of the user's token; "" for none */
    int64_t expires_s;                   /* 0: never */
};

const char *face_role_name(enum face_role role);
/* The caller of a key. -EACCES INVALID_FACE_KEY, or as jwt_verify(). */
int face_caller_of_key(const struct face_keys *keys, const char *key, int64_t now_s, struct face_caller *ret,
                       struct err *e) MUST_CHECK;
/* The caller of a token, which must have role and exp. -EINVAL MALFORMED_JWT, -EACCES as jwt_verify(). */
int face_caller_of_token(const struct face_keys *keys, struct slice token, int64_t now_s, struct face_caller *ret,
                         struct err *e) MUST_CHECK;
/* The caller of an HTTP request: the key, and a token in `Authorization: Bearer` when one came (a key there counts for
 * nothing). authorization may be NULL. */
int face_caller_of_request(const struct face_keys *keys, const char *key, const char *authorization, int64_t now_s,
                           struct face_caller *ret, struct err *e) MUST_CHECK;
/* May the caller see rows of this user? NULL: of no user. */
bool face_may_see(const struct face_caller *c, const char *user_id);
/* May the caller use a private channel? A channel of one user, user:<id> or user:<id>:..., is that user's; every other
 * is for all signed-in users. */
bool face_may_join(const struct face_caller *c, struct slice topic);
