/* Memory for keys: between guard pages, locked into RAM, left out of core files, wiped when it is freed (libsodium's
 * sodium_malloc). Any thread; call hash_init() first.
 *
 *     struct identity_keys *keys = secret_new(sizeof(*keys));          zeroed
 *     ... read the keys ...
 *     secret_freeze(keys);                                            read-only from here on
 *     keys = secret_free(keys);
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

void *secret_new(size_t n); /* NULL when out of memory */
void secret_freeze(void *p);
void *secret_free(void *p);
/* Whether the memory is locked into RAM; RLIMIT_MEMLOCK may be too small for that. */
bool secret_is_locked(void *p, size_t n);
/* Wipes a copy outside such memory. */
void secret_wipe(void *p, size_t n);
