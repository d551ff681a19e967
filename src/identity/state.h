/* What an open identity holds. For the files of this folder only; others use identity.h and its neighbours.
 *
 * Locks, in the order they may be held: consent.order (held while the store is read or written), then consent.board's own; roster and
 * clerk have locks of their own that are held for memory work only, so the loop thread may take them.
 */
#pragma once

#include "base/hash.h"
#include "base/secret.h"
#include "identity/board.h"
#include "identity/clerk.h"
#include "identity/confirmations.h"
#include "identity/identity.h"
#include "identity/launch_list.h"
#include "identity/peers.h"
#include "identity/roster.h"
#include "identity/seal.h"
#include "os/peer.h"

struct identity_keys {
    unsigned char hash[HASH_BYTES];     /* of every stored hash of a key, link or session */
    unsigned char seal[SEAL_KEY_BYTES];
};

/* Sessions of the administrator that were found valid; the oldest is forgotten for the newest. */
enum { SEEN_SESSIONS = 32 };
struct seen_session { unsigned char hash[HASH_BYTES]; int64_t until_ms; };
struct seen_sessions {
    pthread_mutex_t lock;
    struct seen_session sessions[SEEN_SESSIONS];
    size_t n, next;
};

struct identity {
    struct store *store;                /* borrowed */
    struct settings *settings;          /* borrowed */
    char *data_dir;                     /* owned */
    struct identity_keys *keys;         /* owned, in secret memory */
    struct roster roster;
    struct clerk *clerk;                /* owned */
    struct peer_kernel kernel;
    struct launch_list launches;
    struct contacts *contacts;          /* owned */
    uid_t uid;                          /* of the service: a system call each time would be seen in ping */
    enum peers_mode peers;              /* these two are settings, as they are at the start */
    bool needs_secret;
    identity_contact_fn *on_contact;    /* set before the first request */
    void *on_contact_arg;
    struct board board;
    struct confirmations confirmations;         /* of browser sessions */
    struct seen_sessions seen;          /* identity/claim.c */
    pthread_mutex_t order;              /* what is decided and what is asked change together (consent.c) */
};

/* The token of an Authorization header, whatever the case of the scheme (RFC 9110 section 11.1); NULL when it is another one. */
const char *identity_bearer(const char *authorization);
int identity_refuse_admin(struct err *e);
/* The running program whose secret came, of an app or of an agent. */
bool identity_launch_of(struct identity *id, const struct credentials *c, struct launch *ret);
/* Keyed BLAKE2b of a secret: what the store keeps instead of it. */
void identity_hash(const struct identity *id, const char *secret, unsigned char ret_hash[HASH_BYTES]);
