/* Users of apps of the hosted service: sign-up and sign-in with a password, sessions, refresh tokens
 * (docs/offline-face.md).
 *
 * Users and sessions are in the store; the only state here is how often somebody tried. An access token is a JWT that
 * every part of the face accepts until its end, also when its session has ended meanwhile; only auth_user_of() looks at
 * the session. Calls block; auth_sign_up(), auth_sign_in() and a new password in auth_change() take tens of
 * milliseconds of CPU and wait for their turn: the long pool. Any worker.
 *
 *     r = auth_sign_in(auth, &who, arena, &user, e);
 *     if (r == 0)
 *         r = auth_begin_session(auth, &issuer, &user, arena, &session, e);
 */
#pragma once

#include "face/caller.h"
#include "store/tables/face_sessions.h"
#include "store/tables/face_users.h"

struct face_auth;

struct face_auth *face_auth_new(struct store *store /* borrowed */) MUST_CHECK;
struct face_auth *face_auth_free(struct face_auth *auth);

struct auth_claimant {
    const char *email, *password;
    const char *address;   /* of the sender */
    const char *user_data; /* JSON object; of a sign-up */
};

/* -EINVAL VALIDATION_ERROR, WEAK_PASSWORD; -EBUSY RATE_LIMIT; -EEXIST USER_ALREADY_EXISTS; -EDQUOT TOO_MANY_USERS. */
int auth_sign_up(struct face_auth *auth, const struct auth_claimant *who, struct arena *a, struct face_user_row *ret,
                 struct err *e) MUST_CHECK;
/* -EACCES INVALID_CREDENTIALS, -EBUSY RATE_LIMIT. Neither answer nor time tells whether the address has an account. */
int auth_sign_in(struct face_auth *auth, const struct auth_claimant *who, struct arena *a, struct face_user_row *ret,
                 struct err *e) MUST_CHECK;

struct auth_issuer {
    const struct face_keys *keys;
    const char *url; /* the claim iss */
};
struct auth_session { /* in the arena */
    const char *access_token, *refresh_token;
    int64_t expires_at_s;
};
int auth_begin_session(struct face_auth *auth, const struct auth_issuer *issuer, const struct face_user_row *user,
                       struct arena *a, struct auth_session *ret, struct err *e) MUST_CHECK;
/* As store_face_sessions_refresh(). */
int auth_refresh(struct face_auth *auth, const struct auth_issuer *issuer, const char *refresh_token, struct arena *a,
                 struct face_user_row *ret_user, struct auth_session *ret, struct err *e) MUST_CHECK;

/* The user of an access token. -EACCES NO_AUTHORIZATION when the caller is none; -ENOENT USER_NOT_FOUND,
 * SESSION_NOT_FOUND. A token without session_id, signed by another program, belongs to no session. */
int auth_user_of(struct face_auth *auth, const struct face_caller *caller, struct arena *a, struct face_user_row *ret,
                 struct err *e) MUST_CHECK;
struct auth_change { /* NULL members stay as they are */
    const char *email, *password;
    struct json_value data; /* its members are added to the user's data; null removes one */
};
/* A new password ends the user's other sessions. -EINVAL SAME_PASSWORD and as auth_sign_up(). */
int auth_change(struct face_auth *auth, const struct face_caller *caller, const struct auth_change *change,
                struct arena *a, struct face_user_row *ret, struct err *e) MUST_CHECK;
int auth_sign_out(struct face_auth *auth, const struct face_caller *caller, enum face_sessions_ended which,
                  struct err *e) MUST_CHECK;

/* A user by hand, without limits of attempts: as auth_sign_up(). Needs no struct face_auth. */
int auth_add_user(struct store *store, const struct auth_claimant *who, struct arena *a, struct face_user_row *ret,
                  struct err *e) MUST_CHECK;
/* A new password, which ends all sessions of the user. */
int auth_reset_password(struct store *store, const char *user_id, const char *password, struct err *e) MUST_CHECK;
