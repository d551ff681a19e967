/* Sessions of the users of the face (table face_sessions). A refresh token names its session and a counter, so the
 * store holds no tokens: only the session's newest counter is good. Any thread.
 */
#pragma once

#include "store/store.h"

/* Begins the session `id` of the user, now. Sessions idle for LIMIT_FACE_SESSION_IDLE_DAYS end, and of the user's own
 * those beyond LIMIT_FACE_USER_SESSIONS. */
int store_face_sessions_begin(struct store *s, const char *id, const char *user_id, struct err *e) MUST_CHECK;

/* -ENOENT SESSION_NOT_FOUND when the user has no such session. */
int store_face_sessions_check(struct store *s, const char *id, const char *user_id, struct err *e) MUST_CHECK;

struct face_refresh {
    const char *session_id;
    int64_t counter;     /* of the token that came */
    struct arena *arena; /* of user_id */
    int64_t newest;      /* set on success, as user_id: the counter of the token that is good now */
    const char *user_id;
};
/* Takes a refresh token: raises the session's counter. The token before the newest, within LIMIT_FACE_REUSE_S after it
 * was taken, changes nothing and gives the newest again: its answer was lost, or two tabs refreshed at once. Any older
 * one ends the session (RFC 9700 section 4.14.2). -ENOENT REFRESH_TOKEN_NOT_FOUND, -ESTALE REFRESH_TOKEN_ALREADY_USED.
 */
int store_face_sessions_refresh(struct store *s, struct face_refresh *refresh, struct err *e) MUST_CHECK;

enum face_sessions_ended { FACE_THIS_SESSION, FACE_OTHER_SESSIONS, FACE_ALL_SESSIONS };
int store_face_sessions_end(struct store *s, const char *id, const char *user_id, enum face_sessions_ended which,
                            struct err *e) MUST_CHECK;
