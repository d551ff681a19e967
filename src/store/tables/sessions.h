/* Sessions of the local administrator and the one-time links that open them (tables sessions, login_links). Only hashes
 * are stored. Any thread.
 *
 *     r = store_login_links_take(store, token_hash, e);        -ENOENT: unknown, used or expired
 *     r = store_sessions_insert(store, &session, e);
 */
#pragma once

#include "store/store.h"

struct session_row {
    struct slice id_hash;    /* unique; of the cookie */
    struct slice proof_hash; /* of the proof belonging to the cookie */
    const char *kind;        /* "admin" */
    const char *created_at;  /* set by the store */
    const char *expires_at;
    const char *revoked_at;
};

/* Deletes expired sessions first; -E2BIG TOO_MANY_SESSIONS beyond LIMIT_SESSIONS. */
int store_sessions_insert(struct store *s, const struct session_row *row, struct err *e) MUST_CHECK;
/* -ENOENT when there is no such session, or it is expired or revoked. */
int store_sessions_find(struct store *s, struct arena *a, struct slice id_hash, struct session_row *ret,
                        struct err *e) MUST_CHECK;
int store_sessions_revoke(struct store *s, struct slice id_hash, struct err *e) MUST_CHECK;

int store_login_links_insert(struct store *s, struct slice token_hash, const char *expires_at,
                             struct err *e) MUST_CHECK;
/* Uses up the link: of two callers only one succeeds. */
int store_login_links_take(struct store *s, struct slice token_hash, struct err *e) MUST_CHECK;
