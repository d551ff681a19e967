/* Who pays for a request: known from its head alone, before a body is read and before anybody looks at what the caller may do.
 *
 * Memory and a question to the kernel (os/peer.h) only, for the loop. A claim decides whose budgets count and nothing else; who the caller is, identity_caller() and identity_admin()
 * say on a worker. Sessions are in the database: those that a worker has found valid are remembered (identity_remember_session()), others are
 * open claims, which pay like a stranger.
 */
#pragma once

#include "base/budget.h"
#include "base/hash.h"
#include "identity/identity.h"

struct claim {
    enum holder_kind kind;              /* HOLDER_NOBODY: a stranger, of this machine or another */
    char id[BUDGET_ID_SIZE];            /* of an app or a key */
    unsigned char key_hash[HASH_BYTES]; /* of the key, for credentials.key_hash */
    bool is_open;                       /* a session that has not been seen yet */
};

/* 0; -EACCES MISSING_APP_ID, INVALID_APP_ID, or with is_admin_only ADMIN_REQUIRED; -EPERM PEER_NOT_ALLOWED. */
int identity_claim(struct identity *id, const struct credentials *c, bool is_admin_only, struct claim *ret, struct err *e) MUST_CHECK;

/* A worker found that these belong to a session in force. */
void identity_remember_session(struct identity *id, const char *cookie, const char *proof);
/* A session has ended: those that are in force are found again by the next worker. */
void identity_forget_sessions(struct identity *id);
