#include "models/vector_stores.h"

#include "models/vector_known.h"
#include "base/limits.h"
#include "store/vectors/vector_configs.h"

#include <pthread.h>
#include <stdlib.h>

enum { LIMIT_OPEN = 32 }; /* registered stores that are kept open without being used */

struct entry {
    struct vector_store use;      /* first */
    struct vector_stores *stores; /* borrowed */
    char *scope;                  /* owned */
    int n_refs;                   /* guarded by the lock; the list holds one reference */
    struct entry *next;           /* latest used first */
};

struct vector_stores {
    struct vector_stores_config config;
    pthread_mutex_t lock;
    struct vector_store embedded; /* its vectors may be NULL while lazy */
    struct entry *entries;
    struct known_scopes embedded_scopes;
    unsigned n_registrations; /* how many there were: a store opened from an older registration is not listed */
};

static int open_embedded(struct vector_stores *s, struct err *e)
{
    int r = 0;

    pthread_mutex_lock(&s->lock);
    if (!s->embedded.vectors)
        r = vectors_embedded_open(&s->config.embedded, &s->embedded.vectors, e);
    pthread_mutex_unlock(&s->lock);
    return r;
}

const char *vector_scope_prefix(struct arena *a, const char *scope)
{
    return arena_printf(a, "sdk_%s_", scope);
}

int vector_stores_open(const struct vector_stores_config *c, struct vector_stores **ret, struct err *e)
{
    struct vector_stores *s = xcalloc(1, sizeof(*s));
    int r;

    s->config = *c;
    s->embedded.provider = VECTORS_EMBEDDED;
    pthread_mutex_init(&s->lock, NULL);
    r = c->is_lazy ? 0 : open_embedded(s, e);
    if (r < 0) {
        vector_stores_close(s);
        return r;
    }
    *ret = s;
    return 0;
}

static struct entry *entry_free(struct entry *entry)
{
    entry->use.vectors->ops->close(entry->use.vectors);
    free(entry->scope);
    free(entry);
    return NULL;
}

struct vector_stores *vector_stores_close(struct vector_stores *s)
{
    if (!s)
        return NULL;
    while (s->entries) {
        struct entry *entry = s->entries;

        s->entries = entry->next;
        entry_free(entry);
    }
    known_scopes_clear(&s->embedded_scopes);
    if (s->embedded.vectors)
        s->embedded.vectors->ops->close(s->embedded.vectors);
    pthread_mutex_destroy(&s->lock);
    free(s);
    return NULL;
}

/* ---- the list of open stores; under the lock ---- */

static struct entry **find(struct vector_stores *s, const char *scope)
{
    struct entry **at = &s->entries;

    while (*at && strcmp((*at)->scope, scope) != 0)
        at = &(*at)->next;
    return at;
}

/* Removes an entry from the list; returns the entry if it has no more users, to be freed without the lock. */
static struct entry *unlist(struct entry **at)
{
    struct entry *entry = *at;

    *at = entry->next;
    return --entry->n_refs == 0 ? entry : NULL;
}

static struct entry *unlist_surplus(struct vector_stores *s)
{
    struct entry **at = &s->entries;

    for (int n = 0; *at && n < LIMIT_OPEN; n++)
        at = &(*at)->next;
    return *at ? unlist(at) : NULL;
}

static struct entry *take_listed(struct vector_stores *s, const char *scope)
{
    struct entry **at, *entry;

    pthread_mutex_lock(&s->lock);
    at = find(s, scope);
    entry = *at;
    if (entry) {
        *at = entry->next;
        entry->next = s->entries;
        s->entries = entry;
        entry->n_refs++;
    }
    pthread_mutex_unlock(&s->lock);
    return entry;
}

static void free_both(struct entry *one, struct entry *other)
{
    if (one)
        entry_free(one);
    if (other)
        entry_free(other);
}

static struct entry *entry_new(struct vector_stores *s, const char *scope, const char *provider, struct vectors *v)
{
    struct entry *entry = xcalloc(1, sizeof(*entry));

    *entry = (struct entry){ .use = { v, provider }, .stores = s, .scope = xstrdup(scope), .n_refs = 1 };
    return entry;
}

/* Puts a store at the front; returns an entry to be freed without the lock. */
static struct entry *list_entry(struct vector_stores *s, struct entry *entry)
{
    entry->next = s->entries;
    entry->n_refs++;
    s->entries = entry;
    return unlist_surplus(s);
}

/* Puts a new registration into force (entry NULL: the embedded store). */
static void list_registered(struct vector_stores *s, const char *scope, struct entry *entry)
{
    struct entry **at, *old, *surplus = NULL;

    pthread_mutex_lock(&s->lock);
    s->n_registrations++;
    known_scopes_remove(&s->embedded_scopes, scope);
    at = find(s, scope);
    old = *at ? unlist(at) : NULL;
    if (entry)
        surplus = list_entry(s, entry);
    pthread_mutex_unlock(&s->lock);
    free_both(old, surplus);
}

/* Lists an opened store, unless a registration happened since or another request listed the scope's store first: then
 * the store serves this request only. */
static void list_opened(struct vector_stores *s, struct entry *entry, unsigned n_registrations)
{
    struct entry *surplus = NULL;

    pthread_mutex_lock(&s->lock);
    if (s->n_registrations == n_registrations && !*find(s, entry->scope))
        surplus = list_entry(s, entry);
    pthread_mutex_unlock(&s->lock);
    free_both(surplus, NULL);
}

/* The same for a scope that has registered nothing. */
static void list_embedded(struct vector_stores *s, const char *scope, unsigned n_registrations)
{
    pthread_mutex_lock(&s->lock);
    if (s->n_registrations == n_registrations)
        known_scopes_add(&s->embedded_scopes, scope);
    pthread_mutex_unlock(&s->lock);
}

static bool is_known_embedded(struct vector_stores *s, const char *scope)
{
    bool is_known;

    pthread_mutex_lock(&s->lock);
    is_known = known_scopes_has(&s->embedded_scopes, scope);
    pthread_mutex_unlock(&s->lock);
    return is_known;
}

static unsigned count_registrations(struct vector_stores *s)
{
    unsigned n;

    pthread_mutex_lock(&s->lock);
    n = s->n_registrations;
    pthread_mutex_unlock(&s->lock);
    return n;
}

void vector_store_unref(struct vector_store *use)
{
    struct entry *entry = (struct entry *)use;
    bool is_last;

    if (!use || strcmp(use->provider, VECTORS_EMBEDDED) == 0)
        return;
    pthread_mutex_lock(&entry->stores->lock);
    is_last = --entry->n_refs == 0;
    pthread_mutex_unlock(&entry->stores->lock);
    if (is_last)
        entry_free(entry);
}

void vector_store_unrefp(struct vector_store **use)
{
    vector_store_unref(*use);
}

/* ---- registrations ---- */

static int open_config(struct vector_stores *s, struct arena *a, struct slice sealed, struct json_value *ret,
                       struct err *e)
{
    struct slice text;
    int r = identity_unseal(s->config.identity, sealed, a, &text, e);

    return r < 0 ? r : json_parse(a, text, ret, e);
}

int vector_stores_registered(struct vector_stores *s, struct arena *a, const char *scope,
                             struct vector_registration *ret, struct err *e)
{
    struct vector_config_row row;
    struct err none = { 0 };
    int r = store_vector_configs_get(s->config.store, a, scope, &row, &none);

    if (r == -ENOENT) {
        *ret = (struct vector_registration){ .provider = VECTORS_EMBEDDED };
        return json_parse(a, SLICE_LIT("{}"), &ret->config, e);
    }
    if (r < 0)
        return err_set(e, r, none.code, "%s", none.text);
    ret->provider = row.provider;
    return open_config(s, a, row.config, &ret->config, e);
}

static int use_embedded(struct vector_stores *s, struct vector_store **ret, struct err *e)
{
    int r = open_embedded(s, e);

    if (r == 0)
        *ret = &s->embedded;
    return r;
}

static int open_registered(struct vector_stores *s, const char *scope, struct arena *a, struct vector_store **ret,
                           struct err *e)
{
    struct vector_registration reg = { 0 };
    const struct vectors_provider *provider;
    struct vectors *v = NULL;
    struct entry *entry;
    unsigned n_registrations = count_registrations(s);
    struct err why = { 0 };
    int r = vector_stores_registered(s, a, scope, &reg, e);

    if (r < 0)
        return r;
    provider = vectors_provider_find(reg.provider);
    if (provider && !provider->open) {
        list_embedded(s, scope, n_registrations);
        return use_embedded(s, ret, e);
    }
    if (!provider)
        return err_set(e, -EAGAIN, "VECTOR_STORE_UNAVAILABLE",
                       "This version knows no vector store named %s: register another one.", reg.provider);
    r = provider->open(scope, reg.config, s->config.guard, &v, &why);
    if (r < 0)
        return err_set(e, -EAGAIN, "VECTOR_STORE_UNAVAILABLE",
                       "The vector store %s that is registered cannot be reached: %s", provider->name, why.text);
    entry = entry_new(s, scope, provider->name, v);
    list_opened(s, entry, n_registrations);
    *ret = &entry->use;
    return 0;
}

int vector_stores_of(struct vector_stores *s, const char *scope, struct vector_store **ret, struct err *e)
{
    AUTO(arena_freep) struct arena *a = NULL;
    struct entry *entry = take_listed(s, scope);

    if (entry) {
        *ret = &entry->use;
        return 0;
    }
    if (is_known_embedded(s, scope))
        return use_embedded(s, ret, e);
    a = arena_new();
    return open_registered(s, scope, a, ret, e);
}

bool vector_stores_is_registered(struct vector_stores *s, const char *scope)
{
    AUTO(vector_store_unrefp) struct vector_store *use = NULL;
    int r = vector_stores_of(s, scope, &use, NULL);

    return r < 0 || !use || strcmp(use->provider, VECTORS_EMBEDDED) != 0;
}

/* Removes the store's name from the beginning of its error text, because the sentence here already names it. */
static const char *without_name(const struct vectors_provider *provider, const char *text)
{
    size_t n = strcspn(provider->label, " ");

    return strncmp(text, provider->label, n) == 0 && strncmp(text + n, ": ", 2) == 0 ? text + n + 2 : text;
}

static int connect_to(struct vector_stores *s, const struct net_wait *wait, const struct vectors_provider *provider,
                      const char *scope, struct json_value config, struct vectors **ret, struct err *e)
{
    const struct net_wait connecting = net_wait_part(wait, LIMIT_STORE_CHECK_MS);
    struct err why = { 0 };
    struct vectors *v = NULL;
    int r = provider->open(scope, config, s->config.guard, &v, &why);

    if (r == 0)
        r = v->ops->check(v, &connecting, &why);
    if (r < 0) {
        if (v)
            v->ops->close(v);
        if (r == -ECANCELED)
            return err_set(e, r, why.code, "%s", why.text);
        return err_set(e, -EINVAL, "", "Failed to connect to %s: %s", provider->name, without_name(provider, why.text));
    }
    *ret = v;
    return 0;
}

static int save(struct vector_stores *s, struct arena *a, const char *scope, const struct vector_registration *reg,
                struct err *e)
{
    struct buf sealed;
    int r;

    buf_init(&sealed, LIMIT_BODY_DEFAULT);
    identity_seal(s->config.identity, slice_of(json_to_str(a, reg->config)), &sealed);
    r = buf_check(&sealed, e);
    if (r == 0)
        r = store_vector_configs_set(s->config.store,
                                     &(struct vector_config_row){ scope, reg->provider, buf_slice(&sealed) }, e);
    buf_clear(&sealed);
    return r;
}

int vector_stores_register(struct vector_stores *s, const struct net_wait *wait, struct arena *a, const char *scope,
                           const struct vector_registration *reg, struct err *e)
{
    const struct vectors_provider *provider = vectors_provider_find(reg->provider);
    struct vectors *v = NULL;
    struct entry *entry;
    int r = provider->open ? connect_to(s, wait, provider, scope, reg->config, &v, e) : 0;

    if (r == 0)
        r = save(s, a, scope, reg, e);
    if (r < 0) {
        if (v)
            v->ops->close(v);
        return r;
    }
    entry = v ? entry_new(s, scope, provider->name, v) : NULL;
    list_registered(s, scope, entry);
    if (entry)
        vector_store_unref(&entry->use);
    return 0;
}

int vector_stores_bytes(struct vector_stores *s, const char *scope, int64_t *ret, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    int r = open_embedded(s, e);

    return r < 0 ? r : s->embedded.vectors->ops->bytes(s->embedded.vectors, vector_scope_prefix(a, scope), ret, e);
}

int vector_stores_forget(struct vector_stores *s, const char *scope, bool with_vectors, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct vector_removal everything = { .all = true };
    struct field_strings names = { 0 };
    struct vectors *v;
    int64_t n;
    int r;

    list_registered(s, scope, NULL);
    if (!with_vectors)
        return 0;
    r = open_embedded(s, e);
    v = s->embedded.vectors;
    if (r == 0)
        r = v->ops->namespaces(v, NULL, vector_scope_prefix(a, scope), a, &names, e);
    for (size_t i = 0; r == 0 && i < names.n; i++)
        r = v->ops->remove(v, NULL, names.items[i], &everything, &n, e);
    return r;
}
