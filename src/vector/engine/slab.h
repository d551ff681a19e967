/* The rows of one namespace in memory: codes, scale and file row of each, in chunks that never move, and a bitmap of
 * the dead rows.
 *
 * Shared by reference. Rows are only ever appended: one thread at a time appends beyond n, then publishes under the
 * owner's lock, under which views are taken too. A view's owner reads its rows without a lock. The first n_listed rows
 * may be in the order of inverted lists; the rows after them are sorted by their number in the file, and all of these
 * have higher numbers.
 *
 *     r = slab_append(slab, &rows, e);  lock;  slab_publish(slab, n);  unlock;
 */
#pragma once

#include "base/err.h"
#include "vector/engine/kernel.h"
#include <stdatomic.h>

enum { SLAB_CHUNK_ROWS = 16384, SLAB_BLOCK_ROWS = 64 /* of one word of a mask */ };

struct slab_chunk {
    uint8_t *codes; /* owned, the allocation; KERNEL_ALIGN */
    float *scales;
    int64_t *rows;
};

struct lists;
struct sketch_set;

struct slab {
    atomic_int n_refs;
    uint64_t serial; /* unique in the process */
    size_t n_dimensions, stride;
    size_t n; /* rows published */
    size_t n_dead;
    uint64_t *dead;            /* owned; one bit for each row of all chunks */
    struct slab_chunk *chunks; /* owned; a table of fixed size */
    size_t n_chunks;
    struct lists *lists;         /* owned; NULL: none */
    size_t n_listed;             /* rows in them */
    uint32_t *listed_by_row;     /* owned; the slots of the listed rows, sorted by row number */
    struct sketch_set *sketches; /* owned; NULL: none */
    size_t n_sketched;           /* units published; under the owner's lock */
    size_t n_measured;           /* units when the recall was measured; under the owner's lock */
    double sketch_recall;        /* measured; likewise */
    size_t n_tried;              /* the number of rows for which lists were of no use; under the owner's lock */
    atomic_size_t *account;      /* borrowed; the bytes of all slabs */
};

struct slab *slab_new(size_t n_dimensions, atomic_size_t *account) MUST_CHECK;
struct slab *slab_ref(struct slab *s);
struct slab *slab_unref(struct slab *s); /* NULL is fine; returns NULL */

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

/* Zeroed memory in whole pages, which returns to the system; is_large: in large pages. NULL: there is none. */
void *slab_map(size_t n, bool is_large) MUST_CHECK;
void slab_unmap(void *memory, size_t n);

/* --- for the appending thread --- */

/* Writes a row at slot `at`, which is n or above and whose predecessors are written. -E2BIG TOO_MANY_VECTORS, -ENOMEM.
 */
int slab_write(struct slab *s, size_t at, const uint8_t *codes, float scale, int64_t row, struct err *e) MUST_CHECK;

/* The same for n rows from slot `at` on. */
int slab_write_rows(struct slab *s, size_t at, const uint8_t *codes, const float *scales, const int64_t *rows, size_t n,
                    struct err *e) MUST_CHECK;

/* --- in the order of their numbers, also when lists have another order --- */

static inline size_t slab_slot_in_order(const struct slab *s, size_t i)
{
    return i < s->n_listed ? s->listed_by_row[i] : i;
}

size_t slab_n_up_to(const struct slab *s, size_t n, int64_t row); /* of the first n slots: rows not above the row */
/* Finds the slot of a row among the first n, dead or not. */
bool slab_find(const struct slab *s, size_t n, int64_t row, size_t *ret_slot);

/* --- under the owner's lock --- */

void slab_publish(struct slab *s, size_t n); /* the first n slots are now rows */
bool slab_kill(struct slab *s, int64_t row); /* false: no such row, or it is dead */
void slab_kill_slot(struct slab *s, size_t slot);

/* The rows of one moment. */
struct slab_view {
    struct slab *slab; /* owned reference; NULL: no rows */
    size_t n, n_live;
    size_t n_sketched; /* units of sketches */
    uint64_t *live;    /* owned; NULL: all rows are live */
};

void slab_view_take(struct slab *s, struct slab_view *ret); /* s may be NULL */
void slab_view_clear(struct slab_view *v);
/* Finds the slot of a row that is live in the view, by its number in the file. */
bool slab_view_find(const struct slab_view *v, int64_t row, size_t *ret_slot);

static inline size_t slab_n_words(size_t n)
{
    return (n + SLAB_BLOCK_ROWS - 1) / SLAB_BLOCK_ROWS;
}

static inline bool slab_view_is_live(const struct slab_view *v, size_t slot)
{
    return !v->live || (v->live[slot / SLAB_BLOCK_ROWS] >> slot % SLAB_BLOCK_ROWS & 1);
}
