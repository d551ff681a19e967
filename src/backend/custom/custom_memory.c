/* A table of fixed size in which a newer row may take the place of another: what is forgotten here costs a look at the
 * row, never a promise. */
#include "backend/custom/custom_private.h"
#include "base/hash.h"

#include <stdlib.h>

struct note {
    char *key; /* owned: table and id; NULL: empty */
    struct custom_lease_note note;
};

struct custom_memory {
    pthread_mutex_t lock;
    struct note notes[LIMIT_CUSTOM_NOTES];
};

struct custom_memory *custom_memory_new(void)
{
    struct custom_memory *m = xcalloc(1, sizeof(*m));

    pthread_mutex_init(&m->lock, NULL);
    return m;
}

struct custom_memory *custom_memory_free(struct custom_memory *m)
{
    if (!m)
        return NULL;
    for (size_t i = 0; i < LIMIT_CUSTOM_NOTES; i++)
        free(m->notes[i].key);
    pthread_mutex_destroy(&m->lock);
    free(m);
    return NULL;
}

/* Table names hold no line break outside quotes; with the length in front, two rows never share a key. */
static char *key_of(struct arena *a, const char *table, const char *id)
{
    return arena_printf(a, "%zu %s %s", strlen(table), table, id);
}

static struct note *slot_of(struct custom_memory *m, const char *key)
{
    return &m->notes[hash_fast(slice_of(key)) % LIMIT_CUSTOM_NOTES];
}

bool custom_memory_get(struct custom_memory *m, const char *table, const char *id, struct custom_lease_note *ret)
{
    AUTO(arena_freep) struct arena *a = arena_new_sized(512);
    const char *key = key_of(a, table, id);
    struct note *slot = slot_of(m, key);
    bool has;

    pthread_mutex_lock(&m->lock);
    has = slot->key && strcmp(slot->key, key) == 0;
    *ret = has ? slot->note : (struct custom_lease_note){ 0 };
    pthread_mutex_unlock(&m->lock);
    return has;
}

void custom_memory_put(struct custom_memory *m, const char *table, const char *id, const struct custom_lease_note *note)
{
    AUTO(arena_freep) struct arena *a = arena_new_sized(512);
    const char *key = key_of(a, table, id);
    struct note *slot = slot_of(m, key);

    pthread_mutex_lock(&m->lock);
    if (!slot->key || strcmp(slot->key, key) != 0) {
        free(slot->key);
        slot->key = xstrdup(key);
    }
    slot->note = *note;
    pthread_mutex_unlock(&m->lock);
}
