/* The rows of one namespace in memory: codes, scale and file row of each, in chunks that never move, and which are dead.
 *
 * Shared by reference. Rows are only ever appended: one thread at a time appends beyond n, then publishes under the
 * owner's lock, under which views are taken too. Whoever holds a view reads its rows without a lock.
 * The first n_listed rows may stand in the order of inverted lists; behind them rows rise by their number in the file,
 * and all of those have higher numbers.
 *
 *     r = slab_append(slab, &rows, e);  lock;  slab_publish(slab, n);  unlock;
 */
#pragma once

#include "base/err.h"
#include "vector/kernel.h"
#include <stdatomic.h>

enum { SLAB_CHUNK_ROWS = 16384, SLAB_BLOCK_ROWS = 64 /* of one word of a mask */ };

struct slab_chunk {
    uint8_t *codes;                     /* owned, the allocation; KERNEL_ALIGN */
    float *scales;
    int64_t *rows;
};

struct lists;

struct slab {
    atomic_int n_refs;
    uint64_t serial;                    /* no other slab of the process has it */
    size_t n_dimensions, stride;
    size_t n;                           /* rows published */
    size_t n_dead;
    uint64_t *dead;                     /* owned; a bit a row of all chunks there are */
    struct slab_chunk *chunks;          /* owned; a table of fixed size */
    size_t n_chunks;
    struct lists *lists;                /* owned; NULL: none */
    size_t n_listed;                    /* rows in them */
    uint32_t *listed_by_row;            /* owned; their slots in order of their numbers in the file */
    size_t n_tried;                     /* lists were of no use for so many rows; under the owner's lock */
    atomic_size_t *account;             /* borrowed; the bytes of all slabs */
};

struct slab *slab_new(size_t n_dimensions, atomic_size_t *account) MUST_CHECK;
struct slab *slab_ref(struct slab *s);
struct slab *slab_unref(struct slab *s);                /* NULL is fine; returns NULL */

static inline const uint8_t *slab_codes(const struct slab *s, size_t slot)
{
    return s->chunks[slot / SLAB_CHUNK_ROWS].codes + slot % SLAB_CHUNK_ROWS * s->stride;
}

static inline float slab_scale(const struct slab *s, size_t slot)
{
    return s->chunks[slot / SLAB_CHUNK_ROWS].scales[slot % SLAB_CHUNK_ROWS];
}

static inline int64_t slab_row(const struct slab *s, size_t slot)
{
    return s->chunks[slot / SLAB_CHUNK_ROWS].rows[slot % SLAB_CHUNK_ROWS];
}

/* --- by the one who appends --- */

/* Writes a row at slot `at`, which is n or above and whose predecessors are written. -E2BIG TOO_MANY_VECTORS, -ENOMEM. */
int slab_write(struct slab *s, size_t at, const uint8_t *codes, float scale, int64_t row, struct err *e) MUST_CHECK;

/* --- under the owner's lock --- */

void slab_publish(struct slab *s, size_t n);            /* the slots up to n are rows now */
bool slab_kill(struct slab *s, int64_t row);            /* false: there is none or it is dead */

/* The rows of one moment. */
struct slab_view {
    struct slab *slab;                  /* owned reference; NULL: no rows */
    size_t n, n_live;
    uint64_t *live;                     /* owned; NULL: all are */
};

void slab_view_take(struct slab *s, struct slab_view *ret);            /* s may be NULL */
void slab_view_clear(struct slab_view *v);
/* The slot of a row of the file that is live in the view. */
bool slab_view_find(const struct slab_view *v, int64_t row, size_t *ret_slot);

static inline size_t slab_n_words(size_t n)
{
    return (n + SLAB_BLOCK_ROWS - 1) / SLAB_BLOCK_ROWS;
}

static inline bool slab_view_is_live(const struct slab_view *v, size_t slot)
{
    return !v->live || (v->live[slot / SLAB_BLOCK_ROWS] >> slot % SLAB_BLOCK_ROWS & 1);
}
