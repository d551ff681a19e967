#include "identity/keys.h"

#include "base/json_write.h"
#include "base/limits.h"
#include "identity/audit.h"
#include "identity/state.h"

#define KEY_PREFIX "hearth_"
enum { KEY_RANDOM_BYTES = 32, FINGERPRINT_BYTES = 8, LAST_CHARS = 4 };

int key_new(struct identity *id, const char *name, const char *actor, char ret_key[KEY_TEXT_SIZE],
            char ret_id[UUID_SIZE], struct err *e)
{
    unsigned char hash[HASH_BYTES];
    char key[KEY_TEXT_SIZE] = KEY_PREFIX, key_id[UUID_SIZE], fingerprint[2 * FINGERPRINT_BYTES + 1];
    struct key_row row = {
        .id = key_id, .name = name, .hash = { (char *)hash, sizeof(hash) }, .fingerprint = fingerprint
    };
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
        r = credential_cache_load_keys(&id->cache, id->store, e);
    if (r < 0)
        return r;
    memcpy(ret_key, key, sizeof(key));
    memcpy(ret_id, key_id, sizeof(key_id));
    return 0;
}

const char *key_import_rule(const char *text)
{
    bool is_seen[256] = { false };
    int n_distinct = 0;

    if (strncmp(text, LAUNCH_APP_PREFIX, strlen(LAUNCH_APP_PREFIX)) == 0 ||
        strncmp(text, LAUNCH_TASK_PREFIX, strlen(LAUNCH_TASK_PREFIX)) == 0)
        return "must not begin as the secrets of this service do: " LAUNCH_APP_PREFIX ", " LAUNCH_TASK_PREFIX;
    for (const char *c = text; *c; c++) {
        if (*c <= ' ' || *c > '~')
            return "must be visible characters of ASCII without spaces";
        n_distinct += !is_seen[(unsigned char)*c];
        is_seen[(unsigned char)*c] = true;
    }
    return n_distinct >= LIMIT_KEY_IMPORT_DISTINCT ? NULL : "must have at least 8 different characters";
}

static int audit_import(struct identity *id, const char *actor, const char *key_id, const char *app_id, struct err *e)
{
    struct json_writer w;
    struct buf detail;
    int r;

    buf_init(&detail, LIMIT_BODY_DEFAULT);
    json_write_init(&w, &detail);
    json_begin_object(&w);
    json_add_string(&w, "app_id", app_id);
    json_end(&w);
    r = audit_append(id, actor, "key.import", key_id, buf_str(&detail), e);
    buf_clear(&detail);
    return r;
}

int key_import(struct identity *id, const struct key_import *key, const char *actor, struct arena *a,
               const char **ret_id, struct err *e)
{
    unsigned char hash[HASH_BYTES];
    char fresh_id[UUID_SIZE], fingerprint[2 * FINGERPRINT_BYTES + 1];
    struct key_row row = { .id = fresh_id,
                           .name = key->name,
                           .hash = { (char *)hash, sizeof(hash) },
                           .fingerprint = fingerprint,
                           .app_id = key->app_id };
    struct key_row known = { 0 };
    int r;

    uuid_v4(fresh_id);
    identity_hash(id, key->text, hash);
    hash_hex(hash, FINGERPRINT_BYTES, fingerprint);
    row.last4 = key->text + strlen(key->text) - LAST_CHARS;
    r = store_keys_get_hash(id->store, a, row.hash, &known, NULL);
    if (r < 0 && r != -ENOENT)
        return err_set(e, r, err_code_of(r, "STORE_ERROR"), "The keys could not be read.");
    if (r == 0)
        row.id = known.id;
    r = audit_import(id, actor, row.id, key->app_id, e);
    if (r == 0)
        r = store_keys_import(id->store, &row, e);
    if (r == 0)
        r = credential_cache_load_keys(&id->cache, id->store, e);
    if (r == 0)
        *ret_id = arena_strdup(a, row.id);
    return r;
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
        r = credential_cache_load_keys(&id->cache, id->store, e);
    return r;
}
