/* Developer keys: made, shown once, stored hashed (keyed BLAKE2b), revocable with immediate effect. */
#pragma once

#include "identity/identity.h"
#include "base/uuid.h"
#include "store/tables/keys.h"

enum { KEY_TEXT_SIZE = 64 };

/* ret_key gets "hearth_" and 256 random bits as base64url; ret_id the key's id. */
int key_new(struct identity *id, const char *name, const char *actor, char ret_key[KEY_TEXT_SIZE],
            char ret_id[UUID_SIZE], struct err *e) MUST_CHECK;
/* An imported key, made elsewhere, is tied to one app: its caller is that app, with that app's grants and nothing else.
 * NULL: the text may be such a key; else the rule that the text breaks. The randomness of the key cannot be checked:
 * whoever knows the key is the app. */
const char *key_import_rule(const char *text);
/* Keeps only the key's hash. A developer key of this service becomes the app's and loses every other right; a revoked
 * key becomes valid again. *ret_id in the arena. -EEXIST ALREADY_EXISTS for a key of another app; -ENOENT
 * APP_NOT_FOUND. */
struct key_import {
    const char *text, *name, *app_id;
};
int key_import(struct identity *id, const struct key_import *key, const char *actor, struct arena *a,
               const char **ret_id, struct err *e) MUST_CHECK;
int key_revoke(struct identity *id, const char *key_id, const char *actor,
               struct err *e) MUST_CHECK; /* -ENOENT KEY_NOT_FOUND */
