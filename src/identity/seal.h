/* Secrets at rest: sealed with libsodium's secretbox (XSalsa20-Poly1305) under <data>/master.key (0600, made on first
 * use).
 *
 * The key lies beside the database, not in it: a copied or backed-up database alone opens nothing. Any thread.
 *
 *     seal_bytes(id->keys->seal, slice_of(token), &sealed);
 *     r = seal_open(id->keys->seal, row.token, arena, &token, e);
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"

enum { SEAL_KEY_BYTES = 32 };

/* -EINVAL BAD_MASTER_KEY when the file exists but has another size. */
int seal_load(const char *data_dir, unsigned char ret_key[SEAL_KEY_BYTES], struct err *e) MUST_CHECK;
void seal_bytes(const unsigned char key[SEAL_KEY_BYTES], struct slice plain, struct buf *out);
/* -EBADMSG UNSEAL_FAILED when the bytes were sealed under another key or were changed. */
int seal_open(const unsigned char key[SEAL_KEY_BYTES], struct slice sealed, struct arena *a, struct slice *ret,
              struct err *e) MUST_CHECK;
