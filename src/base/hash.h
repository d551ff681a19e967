/* Hashes and random bytes through libsodium. main calls hash_init() once, before any thread starts. */
#pragma once

#include "base/err.h"
#include "base/slice.h"

enum { HASH_BYTES = 32, HASH_HEX_SIZE = 65 };

int hash_init(struct err *e) MUST_CHECK;
/* BLAKE2b-256 (RFC 7693), keyed when key is not empty (16..64 bytes). */
void hash_blake2b(struct slice data, struct slice key, unsigned char out[HASH_BYTES]);
/* The same, unkeyed, over pieces; hash_stream_end() frees the stream. */
struct hash_stream;
struct hash_stream *hash_stream_new(void) MUST_CHECK;
void hash_stream_add(struct hash_stream *s, struct slice data);
struct hash_stream *hash_stream_end(struct hash_stream *s, unsigned char out[HASH_BYTES]);
void hash_sha256(struct slice data, unsigned char out[HASH_BYTES]); /* where a protocol requires it (FIPS 180-4) */
/* HMAC with SHA-256 (RFC 2104), for signatures of others. */
void hash_hmac_sha256(struct slice data, struct slice key, unsigned char out[HASH_BYTES]);
void hash_hex(const unsigned char *bytes, size_t n, char *out);  /* out: 2n + 1 */
void hash_unhex(const char *hex, unsigned char out[HASH_BYTES]); /* of a HASH_HEX_SIZE text of hash_hex() */
void hash_text_hex(struct slice data, char out[HASH_HEX_SIZE]);  /* unkeyed, as hex */
uint64_t hash_fast(struct slice data);                           /* FNV-1a, for tables in memory only */
bool hash_equal(const void *a, const void *b, size_t n);         /* constant time */
void random_bytes(void *out, size_t n);
/* n random bytes as base64url without padding; out holds at least 4 * n / 3 + 3. */
void random_token(char *out, size_t n);
