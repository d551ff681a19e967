/* Developer keys in use and registered apps, in memory: who calls must be known on the loop thread too.
 *
 * Small (LIMIT_KEYS, LIMIT_APPS), read at start and again after each change; the store is the truth. Any thread: readers
 * hold a lock for a search in memory only, reloads read the store first and swap afterwards.
 */
#pragma once

#include "base/hash.h"
#include "base/uuid.h"
#include "identity/identity.h"
#include <pthread.h>

struct roster_key {
    unsigned char hash[HASH_BYTES];
    char id[UUID_SIZE];
    char fingerprint[HASH_HEX_SIZE];
    int64_t noted_ms;                   /* clock_mono_ms() of the last use that was noted; 0: none */
};

struct roster_app {
    char *id, *name;                    /* owned */
    bool is_launchable;                 /* Hearth is who starts it */
};

struct roster_found { const char *id, *name; bool is_launchable; };

struct roster {
    pthread_rwlock_t lock;
    pthread_mutex_t reload;             /* one reload at a time, so that the newest reading stays */
    struct roster_key *keys;            /* owned; by hash */
    struct roster_app *apps;            /* owned; by id */
    size_t n_keys, n_apps;
};

void roster_init(struct roster *r);
void roster_clear(struct roster *r);
int roster_load_keys(struct roster *r, struct store *s, struct err *e) MUST_CHECK;
int roster_load_apps(struct roster *r, struct store *s, struct err *e) MUST_CHECK;

/* Id and fingerprint of the key with this hash. ret_is_due: its use should be noted now (at most once a minute a key); NULL: it is not a use. */
bool roster_find_key(struct roster *r, const unsigned char hash[HASH_BYTES], struct roster_key *ret, bool *ret_is_due);
/* ret_is_launchable: Hearth is who starts it. */
bool roster_has_app(struct roster *r, const char *app_id, bool *ret_is_launchable);
/* Strings in the arena. */
bool roster_find_app(struct roster *r, const char *app_id, struct arena *a, struct roster_found *ret);
