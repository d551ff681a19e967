/* Developer keys in use and registered apps, in memory: the loop thread too must know the caller.
 *
 * Small (LIMIT_KEYS, LIMIT_APPS), read at start and again after each change; the store is authoritative. Any thread:
 * readers hold a lock for a search in memory only; a reload reads the store without a lock and swaps afterwards. Each
 * load takes a ticket before it reads; the result with the highest ticket stays, which was read last.
 */
#pragma once

#include "base/budget.h"
#include "base/hash.h"
#include "base/uuid.h"
#include "identity/identity.h"
#include <pthread.h>
#include <stdatomic.h>

struct cached_key {
    unsigned char hash[HASH_BYTES];
    char id[UUID_SIZE];
    char fingerprint[HASH_HEX_SIZE];
    char app_id[BUDGET_ID_SIZE]; /* the only app the key may act for; "": not restricted */
    int64_t noted_ms;            /* clock_mono_ms() of the last use that was noted; 0: none was noted */
};

struct cached_app {
    char *id, *name;    /* owned */
    bool is_launchable; /* Hearth starts the app */
};

struct cached_app_name {
    const char *id, *name;
    bool is_launchable;
};

struct cache {
    pthread_rwlock_t lock;
    struct cached_key *keys; /* owned; by hash */
    struct cached_app *apps; /* owned; by id */
    size_t n_keys, n_apps;
    uint64_t keys_ticket, apps_ticket; /* of the lists above */
    atomic_uint_fast64_t n_key_loads, n_app_loads;
};

void credential_cache_init(struct cache *r);
void credential_cache_clear(struct cache *r);
int credential_cache_load_keys(struct cache *r, struct store *s, struct err *e) MUST_CHECK;
int credential_cache_load_apps(struct cache *r, struct store *s, struct err *e) MUST_CHECK;

/* Id, fingerprint and app of the key with this hash. *ret_is_due: the use should be noted now (at most once a minute
 * for a key). ret_is_due NULL: the lookup is not a use. */
bool credential_cache_find_key(struct cache *r, const unsigned char hash[HASH_BYTES], struct cached_key *ret,
                               bool *ret_is_due);
/* *ret_is_launchable: Hearth starts the app. */
bool credential_cache_has_app(struct cache *r, const char *app_id, bool *ret_is_launchable);
/* Strings in the arena. */
bool credential_cache_find_app(struct cache *r, const char *app_id, struct arena *a, struct cached_app_name *ret);
