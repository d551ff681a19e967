#include "identity/keys.h"

#include "base/limits.h"
#include "identity/audit.h"
#include "identity/state.h"

#define KEY_PREFIX "hearth_"
enum { KEY_RANDOM_BYTES = 32, FINGERPRINT_BYTES = 8, LAST_CHARS = 4 };

int key_new(struct identity *id, const char *name, const char *actor, char ret_key[KEY_TEXT_SIZE], char ret_id[UUID_SIZE],
            struct err *e)
{
    unsigned char hash[HASH_BYTES];
    char key[KEY_TEXT_SIZE] = KEY_PREFIX, key_id[UUID_SIZE], fingerprint[2 * FINGERPRINT_BYTES + 1];
    struct key_row row = { .id = key_id, .name = name, .hash = { (char *)hash, sizeof(hash) }, .fingerprint = fingerprint };
    int r;

    random_token(key + strlen(KEY_PREFIX), KEY_RANDOM_BYTES);
    uuid_v4(key_id);
    identity_hash(id, key, hash);
    hash_hex(hash, FINGERPRINT_BYTES, fingerprint);
    row.last4 = key + strlen(key) - LAST_CHARS;
    r = audit_append(id, actor, "key.new", key_id, NULL, e);
    if (r == 0)
        r = store_keys_insert(id->store, &row, e);
    if (r == 0)
        r = roster_load_keys(&id->roster, id->store, e);
    if (r < 0)
        return r;
    memcpy(ret_key, key, sizeof(key));
    memcpy(ret_id, key_id, sizeof(key_id));
    return 0;
}

static int check_known(struct identity *id, const char *key_id, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct key_row row;
    int r = store_keys_get(id->store, a, key_id, &row, e);

    return r == -ENOENT ? err_set(e, r, "KEY_NOT_FOUND", "There is no developer key with the id %.60s.", key_id) : r;
}

int key_revoke(struct identity *id, const char *key_id, const char *actor, struct err *e)
{
    int r;

    r = check_known(id, key_id, e);
    if (r == 0)
        r = audit_append(id, actor, "key.revoke", key_id, NULL, e);
    if (r == 0)
        r = store_keys_revoke(id->store, key_id, e);
    if (r == 0)
        r = roster_load_keys(&id->roster, id->store, e);
    return r;
}
