/* Developer keys (table api_keys): only a keyed hash of each is stored. Reads on the calling thread, writes through the
 * writer; any thread. Texts of rows live in the arena; times are ISO 8601 and set by the store.
 *
 *     r = store_keys_get(store, arena, id, &key, e);     if (r == -ENOENT) ...there is none...
 */
#pragma once

#include "store/store.h"

struct key_row {
    const char *id; /* uuid */
    const char *name;
    struct slice hash;       /* keyed BLAKE2b of the key; unique */
    const char *last4;       /* shown in listings */
    const char *fingerprint; /* names the data folder */
    const char *created_at, *last_used_at, *revoked_at;
    const char *app_id;   /* the app that the key represents; NULL: a key with all rights */
    const char *app_name; /* set only when read */
};

/* -E2BIG TOO_MANY_KEYS when LIMIT_KEYS keys are in use; -EEXIST for a known id or hash. */
int store_keys_insert(struct store *s, const struct key_row *row, struct err *e) MUST_CHECK;
/* Stores an imported key of row->app_id. An existing key with the same hash that is revoked, or belongs to no app or to
 * the same app, becomes this key and keeps its id; row->id is then unused. -EEXIST ALREADY_EXISTS for a key of another
 * app; -E2BIG TOO_MANY_KEYS. */
int store_keys_import(struct store *s, const struct key_row *row, struct err *e) MUST_CHECK;
/* -ENOENT KEY_NOT_FOUND; also a revoked one. */
int store_keys_get_hash(struct store *s, struct arena *a, struct slice hash, struct key_row *ret,
                        struct err *e) MUST_CHECK;
/* Newest first, including revoked keys. */
int store_keys_list(struct store *s, struct arena *a, struct key_row **ret, size_t *ret_n, struct err *e) MUST_CHECK;
/* -ENOENT KEY_NOT_FOUND; also a revoked one. */
int store_keys_get(struct store *s, struct arena *a, const char *id, struct key_row *ret, struct err *e) MUST_CHECK;
/* -ENOENT for an unknown id; a second revocation changes nothing. */
int store_keys_revoke(struct store *s, const char *id, struct err *e) MUST_CHECK;
/* Records the use. Each call is a commit: callers make at most one each minute for each key. */
int store_keys_touch(struct store *s, const char *id, struct err *e) MUST_CHECK;
