/* Single values of this instance (table meta): master key of the key hashes, machine id, head of the audit log. Any
 * thread.
 *
 *     r = store_meta_keep(store, arena, META_MACHINE_ID, fresh_id, &machine_id, e);     the first ever kept wins
 */
#pragma once

#include "store/store.h"

#define META_KEY_HASH_KEY "identity.key_hash_key" /* hex */
#define META_MACHINE_ID "identity.machine_id"
#define META_MACHINE_HOST "identity.machine_host" /* hash of the machine-id(5) of the host that made the machine id */
#define META_AUDIT_HEAD "audit.head"              /* "<count>:<hash>"; written only by store/tables/audit.c */
#define META_FACE_KEYS "face.keys"                /* sealed, base64; src/face/keys.c */
#define META_AUDIT_BASE "audit.base"              /* the same, of the last entry removed by age */

/* -ENOENT when there is no value. */
int store_meta_get(struct store *s, struct arena *a, const char *key, char **ret, struct err *e) MUST_CHECK;
int store_meta_set(struct store *s, const char *key, const char *value, struct err *e) MUST_CHECK;
/* Returns the stored value; when there is none, stores and returns `fresh`. */
int store_meta_keep(struct store *s, struct arena *a, const char *key, const char *fresh, char **ret,
                    struct err *e) MUST_CHECK;
