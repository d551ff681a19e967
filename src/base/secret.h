/* Memory for keys: between guard pages, locked into RAM, left out of core files, wiped when it is freed (libsodium's sodium_malloc). Any thread;
 * hash_init() comes first.
 *
 *     struct identity_keys *keys = secret_new(sizeof(*keys));          zeroed
 *     ... read the keys ...
 *     secret_freeze(keys);                                            read-only from here on
 *     keys = secret_free(keys);
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

void *secret_new(size_t n);             /* NULL when memory is out */
void secret_freeze(void *p);
void *secret_free(void *p);
/* Is it really in RAM only? The limit RLIMIT_MEMLOCK may be too small. */
bool secret_is_locked(void *p, size_t n);
/* Wipes copies that lay elsewhere. */
void secret_wipe(void *p, size_t n);
