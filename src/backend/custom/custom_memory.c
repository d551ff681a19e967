/* The rows whose notes were put last, LIMIT_CUSTOM_NOTES of them. A further row takes the place of the one whose note
 * was put longest ago: what is forgotten here costs a look at the row, never a promise. */
#include "backend/custom/custom_private.h"
#include "base/hash.h"

#include <stdlib.h>
#include <sys/queue.h>

struct note {
    char *key;         /* owned: table and id */
    struct note *next; /* of the same bucket */
    TAILQ_ENTRY(note) by_age;
    struct custom_lease_note note;
};

struct custom_memory {
    pthread_mutex_t lock;
    struct note notes[LIMIT_CUSTOM_NOTES], *buckets[LIMIT_CUSTOM_NOTES];
    size_t n;                       /* notes in use */
    TAILQ_HEAD(notes, note) by_age; /* the oldest first */
};

struct custom_memory *custom_memory_new(void)
{
    struct custom_memory *m = xcalloc(1, sizeof(*m));

    pthread_mutex_init(&m->lock, NULL);
    TAILQ_INIT(&m->by_age);
    return m;
}

struct custom_memory *custom_memory_free(struct custom_memory *m)
{
    if (!m)
        return NULL;
    for (size_t i = 0; i < m->n; i++)
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

static struct note **find_locked(struct custom_memory *m, const char *key)
{
    struct note **at = &m->buckets[hash_fast(slice_of(key)) % LIMIT_CUSTOM_NOTES];

    while (*at && strcmp((*at)->key, key) != 0)
        at = &(*at)->next;
    return at;
}

bool custom_memory_get(struct custom_memory *m, const char *table, const char *id, struct custom_lease_note *ret)
{
    AUTO(arena_freep) struct arena *a = arena_new_sized(512);
    const char *key = key_of(a, table, id);
    const struct note *note;

    pthread_mutex_lock(&m->lock);
    note = *find_locked(m, key);
    *ret = note ? note->note : (struct custom_lease_note){ 0 };
    pthread_mutex_unlock(&m->lock);
    return note != NULL;
}

/* A place that is free, or that of the oldest note. */
static struct note *take_place_locked(struct custom_memory *m)
{
    struct note *oldest;

    if (m->n < LIMIT_CUSTOM_NOTES)
        return &m->notes[m->n++];
    oldest = TAILQ_FIRST(&m->by_age);
    TAILQ_REMOVE(&m->by_age, oldest, by_age);
    *find_locked(m, oldest->key) = oldest->next;
    free(oldest->key);
    return oldest;
}

static struct note *add_locked(struct custom_memory *m, const char *key)
{
    struct note *note = take_place_locked(m), **at = find_locked(m, key);

    note->key = xstrdup(key);
    note->next = NULL;
    *at = note;
    return note;
}

static void put_locked(struct custom_memory *m, const char *key, const struct custom_lease_note *in)
{
    struct note *note = *find_locked(m, key);

    if (note)
        TAILQ_REMOVE(&m->by_age, note, by_age);
    else
        note = add_locked(m, key);
    TAILQ_INSERT_TAIL(&m->by_age, note, by_age);
    note->note = *in;
}

void custom_memory_put(struct custom_memory *m, const char *table, const char *id, const struct custom_lease_note *in)
{
    AUTO(arena_freep) struct arena *a = arena_new_sized(512);
    const char *key = key_of(a, table, id);

    pthread_mutex_lock(&m->lock);
    put_locked(m, key, in);
    pthread_mutex_unlock(&m->lock);
}

static bool is_as_seen(const struct note *note, const struct custom_lease_note *seen)
{
    const struct custom_lease_note now = note ? note->note : (struct custom_lease_note){ 0 };

    return now.attempt == seen->attempt && now.is_unknown == seen->is_unknown && now.ended == seen->ended &&
           strcmp(now.machine, seen->machine) == 0;
}

bool custom_memory_replace(struct custom_memory *m, const char *table, const char *id,
                           const struct custom_lease_note *seen, const struct custom_lease_note *in)
{
    AUTO(arena_freep) struct arena *a = arena_new_sized(512);
    const char *key = key_of(a, table, id);
    bool is_so;

    pthread_mutex_lock(&m->lock);
    is_so = is_as_seen(*find_locked(m, key), seen);
    if (is_so)
        put_locked(m, key, in);
    pthread_mutex_unlock(&m->lock);
    return is_so;
}
