/* Private keys for tests, made when they are asked for. */
#pragma once

#include "base/arena.h"

#include <openssl/evp.h>
#include <openssl/pem.h>

/* The key as PEM; with a passphrase, encrypted. */
static inline char *pem_of(struct arena *a, EVP_PKEY *key, const char *passphrase)
{
    BIO *bio = BIO_new(BIO_s_mem());
    char *bytes, *text;
    long n;

    assert_int_equal(PEM_write_bio_PKCS8PrivateKey(bio, key, passphrase ? EVP_aes_128_cbc() : NULL, passphrase,
                                                   passphrase ? (int)strlen(passphrase) : 0, NULL, NULL),
                     1);
    n = BIO_get_mem_data(bio, &bytes);
    text = arena_strndup(a, bytes, (size_t)n);
    BIO_free(bio);
    return text;
}

/* Of a new P-256 key. */
static inline char *new_p256_pem(struct arena *a)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    char *pem = pem_of(a, key, NULL);

    EVP_PKEY_free(key);
    return pem;
}
