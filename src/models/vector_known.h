/* The scopes known to have no registered vector store: their requests need not read the table. At most
 * LIMIT_KNOWN_SCOPES; beyond that all are forgotten. Owned by vector_stores.c and used under its lock. */
#pragma once

#include "base/util.h"

enum { LIMIT_KNOWN_SCOPES = 4096, KNOWN_BUCKETS = 1024 };

struct known_scope {
    struct known_scope *next;
    char *scope; /* owned */
};
struct known_scopes {
    struct known_scope *buckets[KNOWN_BUCKETS];
    size_t n;
};

bool known_scopes_has(const struct known_scopes *k, const char *scope);
void known_scopes_add(struct known_scopes *k, const char *scope);
void known_scopes_remove(struct known_scopes *k, const char *scope);
void known_scopes_clear(struct known_scopes *k);
