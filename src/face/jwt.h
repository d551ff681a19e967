/* JSON Web Tokens (RFC 7519) signed with HMAC SHA-256 (RFC 7515, alg HS256): who a user of an app is. Pure; any thread.
 *
 *     struct jwt_claims claims;
 *     r = jwt_verify(token, secret, now_s, &claims, e);
 */
#pragma once

#include "base/err.h"
#include "base/limits.h"
#include "base/buf.h"
#include "base/uuid.h"

struct jwt_claims {
    char role[LIMIT_JWT_ROLE + 1];       /* "" when there is none */
    char subject[LIMIT_JWT_SUBJECT + 1]; /* "" when there is none */
    char session[UUID_SIZE];             /* session_id when it is a UUID, else "" */
    int64_t expires_s;                   /* since 1970; 0: never */
};

/* Checks the signature, then exp, nbf and iat against now_s with LIMIT_JWT_SKEW_S. -EINVAL MALFORMED_JWT; -EACCES
 * JWT_SIGNATURE, JWT_EXPIRED, JWT_NOT_YET. */
int jwt_verify(struct slice token, struct slice secret, int64_t now_s, struct jwt_claims *ret,
               struct err *e) MUST_CHECK;
/* Appends the token of these claims (JSON of an object). */
void jwt_sign(struct buf *out, struct slice claims, struct slice secret);
