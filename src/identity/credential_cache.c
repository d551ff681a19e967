#include "identity/credential_cache.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/limits.h"
#include "store/tables/apps.h"
#include "store/tables/keys.h"
#include <stdatomic.h>

enum { NOTE_EVERY_MS = 60000 };

void credential_cache_init(struct cache *r)
{
    *r = (struct cache){ 0 };
    pthread_rwlock_init(&r->lock, NULL);
}

static void free_apps(struct cached_app *apps, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(apps[i].id);
        free(apps[i].name);
    }
    free(apps);
}

void credential_cache_clear(struct cache *r)
{
    free(r->keys);
    free_apps(r->apps, r->n_apps);
    pthread_rwlock_destroy(&r->lock);
}

static int compare_keys(const void *left, const void *right)
{
    return memcmp(((const struct cached_key *)left)->hash, ((const struct cached_key *)right)->hash, HASH_BYTES);
}

static int compare_apps(const void *left, const void *right)
{
    return strcmp(((const struct cached_app *)left)->id, ((const struct cached_app *)right)->id);
}

static int read_keys(struct store *s, struct cached_key **ret, size_t *ret_n, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct cached_key *keys;
    struct key_row *rows;
    size_t n_rows, n = 0;
    int r;

    r = store_keys_list(s, a, &rows, &n_rows, e);
    if (r < 0)
        return r;
    keys = xcalloc(n_rows + 1, sizeof(*keys));
    for (size_t i = 0; i < n_rows; i++) {
        if (rows[i].revoked_at || rows[i].hash.n != HASH_BYTES)
            continue;
        memcpy(keys[n].hash, rows[i].hash.p, HASH_BYTES);
        snprintf(keys[n].id, sizeof(keys[n].id), "%s", rows[i].id);
        snprintf(keys[n].fingerprint, sizeof(keys[n].fingerprint), "%s", rows[i].fingerprint);
        snprintf(keys[n].app_id, sizeof(keys[n].app_id), "%s", rows[i].app_id ? rows[i].app_id : "");
        n++;
    }
    qsort(keys, n, sizeof(*keys), compare_keys);
    *ret = keys;
    *ret_n = n;
    return 0;
}

int credential_cache_load_keys(struct cache *r, struct store *s, struct err *e)
{
    uint64_t ticket = atomic_fetch_add(&r->n_key_loads, 1) + 1;
    struct cached_key *keys = NULL, *old;
    size_t n = 0;
    int rc = read_keys(s, &keys, &n, e);

    if (rc < 0)
        return rc;
    pthread_rwlock_wrlock(&r->lock);
    old = keys;
    if (ticket > r->keys_ticket) {
        old = r->keys;
        r->keys = keys;
        r->n_keys = n;
        r->keys_ticket = ticket;
    }
    pthread_rwlock_unlock(&r->lock);
    free(old);
    return 0;
}

/* The same rule as app_config_is_launchable() (apps/config.h), on the same text. */
static bool is_launchable(struct arena *a, const struct app_row *row)
{
    struct json_value config = { 0 };

    if (json_parse(a, slice_of(row->config), &config, NULL) < 0)
        return false;
    return json_type(json_get(config, "app_type")) == JSON_STRING ||
           json_string(json_get(json_get(config, "config"), "command")).n > 0;
}

static int read_apps(struct store *s, struct cached_app **ret, size_t *ret_n, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct cached_app *apps;
    struct app_row *rows;
    size_t n;
    int r;

    r = store_apps_list(s, a, &rows, &n, e);
    if (r < 0)
        return r;
    apps = xcalloc(n + 1, sizeof(*apps));
    for (size_t i = 0; i < n; i++) {
        const char *shown = rows[i].display_name && *rows[i].display_name ? rows[i].display_name : rows[i].name;

        apps[i] = (struct cached_app){ .id = xstrdup(rows[i].app_id),
                                       .name = xstrdup(shown),
                                       .is_launchable = is_launchable(a, &rows[i]) };
    }
    qsort(apps, n, sizeof(*apps), compare_apps);
    *ret = apps;
    *ret_n = n;
    return 0;
}

int credential_cache_load_apps(struct cache *r, struct store *s, struct err *e)
{
    uint64_t ticket = atomic_fetch_add(&r->n_app_loads, 1) + 1;
    struct cached_app *apps = NULL, *old;
    size_t n = 0, n_old;
    int rc = read_apps(s, &apps, &n, e);

    if (rc < 0)
        return rc;
    pthread_rwlock_wrlock(&r->lock);
    old = apps;
    n_old = n;
    if (ticket > r->apps_ticket) {
        old = r->apps;
        n_old = r->n_apps;
        r->apps = apps;
        r->n_apps = n;
        r->apps_ticket = ticket;
    }
    pthread_rwlock_unlock(&r->lock);
    free_apps(old, n_old);
    return 0;
}

/* Returns true to one caller a minute. */
static bool take_note(int64_t *noted_ms)
{
    int64_t now = clock_mono_ms(), before = __atomic_load_n(noted_ms, __ATOMIC_RELAXED);

    if (before != 0 && now - before < NOTE_EVERY_MS)
        return false;
    return __atomic_compare_exchange_n(noted_ms, &before, now, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

bool credential_cache_find_key(struct cache *r, const unsigned char hash[HASH_BYTES], struct cached_key *ret,
                               bool *ret_is_due)
{
    struct cached_key wanted = { 0 }, *found;
    bool is_same = false;

    memcpy(wanted.hash, hash, HASH_BYTES);
    pthread_rwlock_rdlock(&r->lock);
    /* The search need not take constant time: it compares a keyed hash, which no outsider can steer. */
    found = r->n_keys ? bsearch(&wanted, r->keys, r->n_keys, sizeof(wanted), compare_keys) : NULL;
    if (found)
        is_same = hash_equal(found->hash, hash, HASH_BYTES);
    if (is_same) {
        if (ret_is_due)
            *ret_is_due = take_note(&found->noted_ms);
        memcpy(ret->id, found->id, sizeof(ret->id));
        memcpy(ret->fingerprint, found->fingerprint, sizeof(ret->fingerprint));
        memcpy(ret->app_id, found->app_id, sizeof(ret->app_id));
    }
    pthread_rwlock_unlock(&r->lock);
    return is_same;
}

bool credential_cache_has_app(struct cache *r, const char *app_id, bool *ret_is_launchable)
{
    const struct cached_app wanted = { .id = (char *)(uintptr_t)app_id }, *found;

    pthread_rwlock_rdlock(&r->lock);
    found = r->n_apps ? bsearch(&wanted, r->apps, r->n_apps, sizeof(wanted), compare_apps) : NULL;
    *ret_is_launchable = found && found->is_launchable;
    pthread_rwlock_unlock(&r->lock);
    return found != NULL;
}

bool credential_cache_find_app(struct cache *r, const char *app_id, struct arena *a, struct cached_app_name *ret)
{
    struct cached_app wanted = { .id = (char *)(uintptr_t)app_id }, *found;

    pthread_rwlock_rdlock(&r->lock);
    found = r->n_apps ? bsearch(&wanted, r->apps, r->n_apps, sizeof(wanted), compare_apps) : NULL;
    if (found)
        *ret =
            (struct cached_app_name){ arena_strdup(a, found->id), arena_strdup(a, found->name), found->is_launchable };
    pthread_rwlock_unlock(&r->lock);
    return found != NULL;
}
