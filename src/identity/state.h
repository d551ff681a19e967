/* The members of an open identity. For the files of this folder only; others use identity.h and its neighbours.
 *
 * Locks, in the order they may be held: one of `order` (held while decisions about an app are stored), then the lock of
 * `queue`;
 * `cache` and `last_used` have their own locks, held for memory work only, so the loop thread may take them.
 */
#pragma once

#include "base/hash.h"
#include "base/secret.h"
#include "identity/consent_queue.h"
#include "identity/last_used.h"
#include "identity/confirmations.h"
#include "identity/identity.h"
#include "identity/launch_list.h"
#include "identity/peers.h"
#include "identity/credential_cache.h"
#include "identity/seal.h"
#include "os/peer.h"

#include <stdatomic.h>

struct identity_keys {
    unsigned char hash[HASH_BYTES]; /* key of every stored hash of a developer key, link or session */
    unsigned char seal[SEAL_KEY_BYTES];
};

/* Sessions of the administrator that were found valid; the newest replaces the oldest. */
enum { SEEN_SESSIONS = 32 };
struct seen_session {
    unsigned char hash[HASH_BYTES];
    int64_t until_ms;
};
struct seen_sessions {
    pthread_mutex_t lock;
    struct seen_session sessions[SEEN_SESSIONS];
    size_t n, next;
};

/* Apps share a lock by the hash of their id. */
enum { CONSENT_LOCKS = 64 };

struct identity {
    struct store *store;        /* borrowed */
    struct settings *settings;  /* borrowed */
    char *data_dir;             /* owned */
    struct identity_keys *keys; /* owned, in secret memory */
    struct cache cache;
    struct last_used *last_used; /* owned */
    struct peer_kernel kernel;
    struct launch_list launches;
    struct contacts *contacts; /* owned */
    uid_t uid;                 /* of the service: a system call for each request would be measurable in ping */
    enum peers_mode peers;     /* this and the next member: settings as they were at the start */
    bool needs_secret;
    identity_contact_fn *on_contact; /* set before the first request */
    void *on_contact_arg;
    struct queue queue;
    atomic_bool is_audit_failing;         /* the last use of a permission could not be entered (audit.c) */
    struct confirmations confirmations;   /* of browser sessions */
    struct seen_sessions seen;            /* identity/claim.c */
    pthread_mutex_t order[CONSENT_LOCKS]; /* an app's decisions and questions change together under its lock (consent.c)
                                           */
};

/* The lock of `order` for this app. */
pthread_mutex_t *identity_order(struct identity *id, const char *app_id);
/* The token of an Authorization header, whatever the case of the scheme (RFC 9110 section 11.1); NULL when the scheme
 * is not Bearer. */
const char *identity_bearer(const char *authorization);
int identity_refuse_admin(struct err *e);
/* The credentials identify no caller: -EACCES MISSING_APP_ID when no key came, INVALID_API_KEY when one did. */
int identity_refuse_stranger(const struct credentials *c, struct err *e);
/* Returns r, the failure of the app id that came; when an invalid key came too, -EACCES INVALID_API_KEY, which names
 * both. */
int identity_blame_key(const struct credentials *c, int r, struct err *e);
/* The running program, an app or an agent, that the secret belongs to. */
bool identity_launch_of(struct identity *id, const struct credentials *c, struct launch *ret);
/* Keyed BLAKE2b of a secret: the store keeps this hash instead of the secret. */
void identity_hash(const struct identity *id, const char *secret, unsigned char ret_hash[HASH_BYTES]);
