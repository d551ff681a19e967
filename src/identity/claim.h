/* Who pays for a request: known from the request's head alone, before its body is read and before the caller's rights
 * are checked.
 *
 * Uses memory and one system query (os/peer.h) only, so the loop may call it. A claim decides only whose budgets count;
 * identity_caller() and identity_admin() establish the caller later on a worker. Sessions are in the database: a
 * session that a worker has found valid is remembered (identity_remember_session()); any other session is an open
 * claim, which pays like a stranger.
 */
#pragma once

#include "base/budget.h"
#include "base/hash.h"
#include "identity/identity.h"

struct claim {
    enum holder_kind kind;              /* HOLDER_NOBODY: a stranger, of this machine or another */
    char id[BUDGET_ID_SIZE];            /* of an app or a key */
    unsigned char key_hash[HASH_BYTES]; /* of the key, for credentials.key_hash */
    bool is_open;                       /* a session that no worker has found valid yet */
};

/* 0; -EACCES MISSING_APP_ID, INVALID_APP_ID, INVALID_API_KEY, or with is_admin_only ADMIN_REQUIRED; -EPERM
 * PEER_NOT_ALLOWED. */
int identity_claim(struct identity *id, const struct credentials *c, bool is_admin_only, struct claim *ret,
                   struct err *e) MUST_CHECK;

/* A worker found that the cookie and the proof belong to a session in force. */
void identity_remember_session(struct identity *id, const char *cookie, const char *proof);
/* A session has ended: all are forgotten, and a worker finds those still in force again. */
void identity_forget_sessions(struct identity *id);
