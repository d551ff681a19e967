/* The keys that apps of the hosted service use on this machine: publishable (anonymous callers), secret (the service
 * role), and the secrets that sign the tokens of users.
 *
 * All come from one value, made at the first use and kept sealed in the store (identity/seal.h). Any worker.
 */
#pragma once

#include "base/slice.h"
#include "identity/identity.h"
#include "store/store.h"

enum { FACE_KEY_SIZE = 64 };

struct face_keys {
    char publishable[FACE_KEY_SIZE]; /* sb_publishable_<22>_<8> */
    char secret[FACE_KEY_SIZE];      /* sb_secret_<22>_<8> */
    char jwt_secret[FACE_KEY_SIZE];
    char refresh_secret[FACE_KEY_SIZE]; /* of refresh tokens; never shown */
};

/* Reads the keys, which are made when missing, into secret memory: *ret ends with secret_free(). -EBADMSG
 * UNSEAL_FAILED. */
int face_keys_open(struct store *store, const struct identity *id, struct face_keys **ret, struct err *e) MUST_CHECK;
