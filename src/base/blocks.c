#include "base/blocks.h"

#include "base/util.h"

#include <malloc.h>
#include <pthread.h>
#include <sanitizer/asan_interface.h>
#include <stdatomic.h>
#include <stdlib.h>

struct kept {
    void *block; /* owned; NULL: the place is free */
    size_t n;
    bool is_idle; /* blocks_drop_idle() has seen it */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the places and n_kept */
static struct kept places[BLOCKS_MOST];
static size_t n_kept; /* bytes */
static atomic_bool is_keeping;

void blocks_set_up(void)
{
    atomic_store(&is_keeping, true);
}

/* Leaves the place free. */
static struct kept leave(struct kept *place)
{
    const struct kept was = *place;

    *place = (struct kept){ 0 };
    n_kept -= was.n;
    if (was.block)
        ASAN_UNPOISON_MEMORY_REGION(was.block, was.n);
    return was;
}

static struct kept *smallest_of(size_t n)
{
    struct kept *best = NULL;

    for (struct kept *place = places; place < places + BLOCKS_MOST; place++)
        if (place->block && place->n >= n && place->n - n <= n / 4 && (!best || place->n < best->n))
            best = place;
    return best;
}

void *block_take(size_t n, size_t *ret_n)
{
    struct kept taken = { 0 }, *place;

    if (n < BLOCK_LEAST_BYTES || !atomic_load_explicit(&is_keeping, memory_order_relaxed))
        return NULL;
    pthread_mutex_lock(&lock);
    place = smallest_of(n);
    if (place)
        taken = leave(place);
    pthread_mutex_unlock(&lock);
    if (taken.block)
        *ret_n = taken.n;
    return taken.block;
}

static struct kept *free_place(void)
{
    for (struct kept *place = places; place < places + BLOCKS_MOST; place++)
        if (!place->block)
            return place;
    return NULL;
}

/* False: there is no room for it. */
static bool keep(void *block, size_t n)
{
    struct kept *place;

    pthread_mutex_lock(&lock);
    place = n <= BLOCKS_MOST_BYTES - n_kept ? free_place() : NULL;
    if (place) {
        *place = (struct kept){ block, n, false };
        n_kept += n;
        ASAN_POISON_MEMORY_REGION(block, n);
    }
    pthread_mutex_unlock(&lock);
    return place;
}

void block_free(void *block)
{
    size_t n = block ? malloc_usable_size(block) : 0;

    if (n < BLOCK_LEAST_BYTES || !atomic_load_explicit(&is_keeping, memory_order_relaxed) || !keep(block, n))
        free(block);
}

static bool drop(bool also_fresh)
{
    bool has_dropped = false;

    for (struct kept *place = places; place < places + BLOCKS_MOST; place++) {
        struct kept dropped = { 0 };

        pthread_mutex_lock(&lock);
        if (also_fresh || place->is_idle)
            dropped = leave(place);
        else
            place->is_idle = place->block;
        pthread_mutex_unlock(&lock);
        has_dropped = has_dropped || dropped.block;
        free(dropped.block);
    }
    return has_dropped;
}

void blocks_drop_idle(void)
{
    drop(false);
}

bool blocks_drop(void)
{
    return drop(true);
}
