/* Developer keys: made, shown once, stored hashed (keyed BLAKE2b), revocable with immediate effect. */
#pragma once

#include "identity/identity.h"
#include "base/uuid.h"
#include "store/keys.h"

enum { KEY_TEXT_SIZE = 64 };

/* ret_key gets "hearth_" and 256 random bits as base64url; ret_id the key's id. */
int key_new(struct identity *id, const char *name, const char *actor, char ret_key[KEY_TEXT_SIZE], char ret_id[UUID_SIZE], struct err *e) MUST_CHECK;
int key_revoke(struct identity *id, const char *key_id, const char *actor, struct err *e) MUST_CHECK;  /* -ENOENT KEY_NOT_FOUND */
