#include "base/hash.h"

#include <assert.h>
#include <sodium.h>
#include <stdlib.h>

struct hash_stream {
    crypto_generichash_state *state; /* points into memory, aligned as the type requires */
    char memory[sizeof(crypto_generichash_state) + 64];
};

int hash_init(struct err *e)
{
    if (sodium_init() < 0)
        return err_set(e, -EIO, "INTERNAL_ERROR", "The cryptographic library could not be started.");
    return 0;
}

void hash_blake2b(struct slice data, struct slice key, unsigned char out[HASH_BYTES])
{
    assert(key.n == 0 || (key.n >= crypto_generichash_KEYBYTES_MIN && key.n <= crypto_generichash_KEYBYTES_MAX));
    crypto_generichash(out, HASH_BYTES, (const unsigned char *)data.p, data.n,
                       key.n ? (const unsigned char *)key.p : NULL, key.n);
}

struct hash_stream *hash_stream_new(void)
{
    struct hash_stream *s = xcalloc(1, sizeof(*s));

    s->state = (void *)(s->memory + (64 - (uintptr_t)s->memory % 64));
    crypto_generichash_init(s->state, NULL, 0, HASH_BYTES);
    return s;
}

void hash_stream_add(struct hash_stream *s, struct slice data)
{
    crypto_generichash_update(s->state, (const unsigned char *)data.p, data.n);
}

struct hash_stream *hash_stream_end(struct hash_stream *s, unsigned char out[HASH_BYTES])
{
    if (s)
        crypto_generichash_final(s->state, out, HASH_BYTES);
    free(s);
    return NULL;
}

void hash_sha256(struct slice data, unsigned char out[HASH_BYTES])
{
    static_assert(HASH_BYTES == crypto_hash_sha256_BYTES, "one size of hash");
    crypto_hash_sha256(out, (const unsigned char *)data.p, data.n);
}

void hash_hmac_sha256(struct slice data, struct slice key, unsigned char out[HASH_BYTES])
{
    crypto_auth_hmacsha256_state state;

    static_assert(HASH_BYTES == crypto_auth_hmacsha256_BYTES, "one size of hash");
    crypto_auth_hmacsha256_init(&state, (const unsigned char *)key.p, key.n);
    crypto_auth_hmacsha256_update(&state, (const unsigned char *)data.p, data.n);
    crypto_auth_hmacsha256_final(&state, out);
    sodium_memzero(&state, sizeof(state));
}

void hash_hex(const unsigned char *bytes, size_t n, char *out)
{
    sodium_bin2hex(out, 2 * n + 1, bytes, n);
}

void hash_unhex(const char *hex, unsigned char out[HASH_BYTES])
{
    int r = sodium_hex2bin(out, HASH_BYTES, hex, 2 * (size_t)HASH_BYTES, NULL, NULL, NULL);

    assert(r == 0);
    (void)r;
}

void hash_text_hex(struct slice data, char out[HASH_HEX_SIZE])
{
    unsigned char hash[HASH_BYTES];

    hash_blake2b(data, (struct slice){ 0 }, hash);
    hash_hex(hash, sizeof(hash), out);
}

/* The constants are those of 64-bit FNV-1a (draft-eastlake-fnv). */
uint64_t hash_fast(struct slice data)
{
    uint64_t hash = 0xcbf29ce484222325u;

    for (size_t i = 0; i < data.n; i++)
        hash = (hash ^ (unsigned char)data.p[i]) * 0x100000001b3u;
    return hash;
}

bool hash_equal(const void *a, const void *b, size_t n)
{
    return sodium_memcmp(a, b, n) == 0;
}

void random_bytes(void *out, size_t n)
{
    randombytes_buf(out, n);
}

void random_token(char *out, size_t n)
{
    enum { STEP = 48 }; /* a multiple of 3: no remainder between steps */
    unsigned char bytes[STEP];

    *out = '\0';
    while (n > 0) {
        size_t now = MIN(n, (size_t)STEP);

        random_bytes(bytes, now);
        sodium_bin2base64(out, sodium_base64_encoded_len(now, sodium_base64_VARIANT_URLSAFE_NO_PADDING), bytes, now,
                          sodium_base64_VARIANT_URLSAFE_NO_PADDING);
        out += strlen(out);
        n -= now;
    }
    sodium_memzero(bytes, sizeof(bytes));
}
