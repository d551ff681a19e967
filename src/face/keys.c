#include "face/keys.h"

#include "base/base64.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/secret.h"
#include "store/meta.h"

#include <stdio.h>
#include <string.h>

enum { KEY_CHARS = 22, CHECK_CHARS = 8, TOKEN_CHARS = 43 };

static void encode(struct slice bytes, char out[TOKEN_CHARS + 1])
{
    struct buf text;

    buf_init(&text, TOKEN_CHARS);
    base64url_encode(&text, bytes);
    memcpy(out, buf_str(&text), TOKEN_CHARS + 1);
    secret_wipe(text.p, text.n);
    buf_clear(&text);
}

static void derive(struct slice root, const char *purpose, char out[TOKEN_CHARS + 1])
{
    unsigned char hash[HASH_BYTES];

    hash_blake2b(slice_of(purpose), root, hash);
    encode((struct slice){ (const char *)hash, sizeof(hash) }, out);
    secret_wipe(hash, sizeof(hash));
}

/* The checksum lets a program see that a key was cut or mistyped; it is no secret. */
static void make_key(struct slice root, const char *prefix, char out[FACE_KEY_SIZE])
{
    char text[TOKEN_CHARS + 1], check[TOKEN_CHARS + 1];
    unsigned char hash[HASH_BYTES];
    int n;

    derive(root, prefix, text);
    n = snprintf(out, FACE_KEY_SIZE, "%s%.*s", prefix, KEY_CHARS, text);
    hash_sha256((struct slice){ out, (size_t)n }, hash);
    encode((struct slice){ (const char *)hash, sizeof(hash) }, check);
    snprintf(out + n, FACE_KEY_SIZE - (size_t)n, "_%.*s", CHECK_CHARS, check);
    secret_wipe(text, sizeof(text));
}

static void fill(struct face_keys *keys, struct slice root)
{
    make_key(root, "sb_publishable_", keys->publishable);
    make_key(root, "sb_secret_", keys->secret);
    derive(root, "jwt", keys->jwt_secret);
    derive(root, "refresh", keys->refresh_secret);
}

/* A fresh value in its sealed form, as base64. */
static int make_sealed(const struct identity *id, struct arena *a, char **ret, struct err *e)
{
    unsigned char fresh[HASH_BYTES];
    struct buf sealed, text;
    int r;

    buf_init(&sealed, KIB(1));
    buf_init(&text, KIB(2));
    random_bytes(fresh, sizeof(fresh));
    identity_seal(id, (struct slice){ (const char *)fresh, sizeof(fresh) }, &sealed);
    secret_wipe(fresh, sizeof(fresh));
    base64_encode(&text, buf_slice(&sealed));
    r = buf_check(&text, e);
    if (r == 0)
        *ret = buf_to_arena(&text, a);
    buf_clear(&text);
    buf_clear(&sealed);
    return r;
}

static int unseal(const struct identity *id, const char *text, struct arena *a, struct slice *ret, struct err *e)
{
    struct buf sealed;
    int r;

    buf_init(&sealed, KIB(1));
    r = base64_decode(&sealed, slice_of(text));
    if (r < 0)
        r = err_set(e, -EBADMSG, "UNSEAL_FAILED", "The keys of the face are damaged in the store.");
    else
        r = identity_unseal(id, buf_slice(&sealed), a, ret, e);
    buf_clear(&sealed);
    return r;
}

int face_keys_open(struct store *store, const struct identity *id, struct face_keys **ret, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    char *fresh = NULL, *kept = NULL;
    struct face_keys *keys;
    struct slice root = { 0 };
    int r = make_sealed(id, a, &fresh, e);

    if (r == 0)
        r = store_meta_keep(store, a, META_FACE_KEYS, fresh, &kept, e);
    if (r == 0)
        r = unseal(id, kept, a, &root, e);
    if (r < 0)
        return r;
    keys = secret_new(sizeof(*keys));
    if (!keys)
        return err_set(e, -ENOMEM, "OUT_OF_MEMORY", "There is no memory that can be locked for the keys of the face.");
    fill(keys, root);
    secret_wipe((void *)root.p, root.n);
    secret_freeze(keys);
    *ret = keys;
    return 0;
}
