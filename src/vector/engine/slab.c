#include "vector/engine/slab.h"
#include "base/limits.h"
#include "vector/engine/lists.h"
#include "vector/engine/quant.h"
#include "vector/engine/sketch.h"
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    SLAB_MAX_CHUNKS = LIMIT_VECTOR_ROWS / SLAB_CHUNK_ROWS,
    SLAB_PAGE = 4096,
    SLAB_HUGE_PAGE = 2 << 20,
    SLAB_CHUNK_WORDS = SLAB_CHUNK_ROWS / SLAB_BLOCK_ROWS,
};

/* Maps memory separately, so that unmapping returns it to the system. */
static void *map(size_t n)
{
    void *memory = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return memory == MAP_FAILED ? NULL : memory;
}

/* The same as map(), at an address where large pages fit. */
static void *map_aligned(size_t n)
{
    char *memory = map(n + SLAB_HUGE_PAGE);
    size_t before;

    if (!memory)
        return NULL;
    before = (SLAB_HUGE_PAGE - (uintptr_t)memory % SLAB_HUGE_PAGE) % SLAB_HUGE_PAGE;
    if (before > 0)
        munmap(memory, before);
    munmap(memory + before + n, SLAB_HUGE_PAGE - before);
    madvise(memory + before, n, MADV_HUGEPAGE);
    return memory + before;
}

static size_t whole_pages(size_t n)
{
    return (n + SLAB_PAGE - 1) / SLAB_PAGE * SLAB_PAGE;
}

void *slab_map(size_t n, bool is_large)
{
    return is_large && n >= SLAB_HUGE_PAGE ? map_aligned(whole_pages(n)) : map(whole_pages(n));
}

void slab_unmap(void *memory, size_t n)
{
    munmap(memory, whole_pages(n));
}

struct slab *slab_new(size_t n_dimensions, atomic_size_t *account)
{
    static atomic_uint_least64_t n_made;
    struct slab *s = xcalloc(1, sizeof(*s));

    s->n_refs = 1;
    s->serial = atomic_fetch_add(&n_made, 1) + 1;
    s->n_dimensions = n_dimensions;
    s->stride = quant_stride(n_dimensions);
    s->chunks = xcalloc(SLAB_MAX_CHUNKS, sizeof(*s->chunks));
    s->account = account;
    return s;
}

struct slab *slab_ref(struct slab *s)
{
    atomic_fetch_add_explicit(&s->n_refs, 1, memory_order_relaxed);
    return s;
}

/* The memory of a row: codes, scale, number. */
static size_t row_bytes(const struct slab *s)
{
    return s->stride + sizeof(float) + sizeof(int64_t);
}

static size_t chunk_bytes(const struct slab *s)
{
    return SLAB_CHUNK_ROWS * row_bytes(s);
}

struct slab *slab_unref(struct slab *s)
{
    if (!s || atomic_fetch_sub_explicit(&s->n_refs, 1, memory_order_acq_rel) > 1)
        return NULL;
    atomic_fetch_sub(s->account, s->n * row_bytes(s));
    for (size_t i = 0; i < s->n_chunks; i++)
        slab_unmap(s->chunks[i].codes, chunk_bytes(s));
    lists_free(s->lists);
    sketch_set_free(s->sketches);
    free(s->listed_by_row);
    free(s->chunks);
    free(s->dead);
    free(s);
    return NULL;
}

/* Not in large pages: filling one with zeros takes 0.1 ms, but several where the host of a virtual machine has to find
 * its memory first, too long beside queries. Small pages take memory that was in use before. */
static int add_chunk(struct slab *s, struct err *e)
{
    struct slab_chunk *chunk = &s->chunks[s->n_chunks];
    void *memory;

    if (s->n_chunks == SLAB_MAX_CHUNKS)
        return err_set(e, -E2BIG, "TOO_MANY_VECTORS", "a namespace holds at most %d vectors", LIMIT_VECTOR_ROWS);
    memory = slab_map(chunk_bytes(s), false);
    if (!memory)
        return err_set(e, -ENOMEM, "OUT_OF_MEMORY", "there is no memory for more vectors");
    chunk->codes = memory;
    chunk->rows = (void *)(chunk->codes + SLAB_CHUNK_ROWS * s->stride);
    chunk->scales = (void *)(chunk->rows + SLAB_CHUNK_ROWS);
    s->n_chunks++;
    return 0;
}

static int make_room(struct slab *s, size_t at, struct err *e)
{
    return at / SLAB_CHUNK_ROWS == s->n_chunks ? add_chunk(s, e) : 0;
}

int slab_write_rows(struct slab *s, size_t at, const uint8_t *codes, const float *scales, const int64_t *rows, size_t n,
                    struct err *e)
{
    for (size_t done = 0, some; done < n; done += some) {
        size_t slot = (at + done) % SLAB_CHUNK_ROWS;
        struct slab_chunk *chunk;
        int r = make_room(s, at + done, e);

        if (r < 0)
            return r;
        chunk = &s->chunks[(at + done) / SLAB_CHUNK_ROWS];
        some = MIN(n - done, SLAB_CHUNK_ROWS - slot);
        memcpy(chunk->codes + slot * s->stride, codes + done * s->stride, some * s->stride);
        memcpy(chunk->scales + slot, scales + done, some * sizeof(*scales));
        memcpy(chunk->rows + slot, rows + done, some * sizeof(*rows));
    }
    return 0;
}

int slab_write(struct slab *s, size_t at, const uint8_t *codes, float scale, int64_t row, struct err *e)
{
    return slab_write_rows(s, at, codes, &scale, &row, 1, e);
}

void slab_publish(struct slab *s, size_t n)
{
    size_t n_old = (s->n + SLAB_CHUNK_ROWS - 1) / SLAB_CHUNK_ROWS, n_new = (n + SLAB_CHUNK_ROWS - 1) / SLAB_CHUNK_ROWS;

    if (n_new > n_old) {
        s->dead = xrealloc(s->dead, n_new * SLAB_CHUNK_WORDS * sizeof(uint64_t));
        memset(s->dead + n_old * SLAB_CHUNK_WORDS, 0, (n_new - n_old) * SLAB_CHUNK_WORDS * sizeof(uint64_t));
    }
    atomic_fetch_add(s->account, (n - s->n) * row_bytes(s));
    s->n = n;
}

static size_t listed_slot(const struct slab *s, size_t i)
{
    return s->listed_by_row[i];
}

static size_t later_slot(const struct slab *s, size_t i)
{
    return s->n_listed + i;
}

/* Binary search among n slots that slot_of() names in order of their rows. */
static bool search(const struct slab *s, size_t n, size_t (*slot_of)(const struct slab *s, size_t i), int64_t row,
                   size_t *ret)
{
    size_t low = 0, high = n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (slab_row(s, slot_of(s, middle)) < row)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == n || slab_row(s, slot_of(s, low)) != row)
        return false;
    *ret = slot_of(s, low);
    return true;
}

size_t slab_n_up_to(const struct slab *s, size_t n, int64_t row)
{
    size_t low = 0, high = n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (slab_row(s, slab_slot_in_order(s, middle)) <= row)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool slab_find(const struct slab *s, size_t n, int64_t row, size_t *ret)
{
    return search(s, n - s->n_listed, later_slot, row, ret) || search(s, s->n_listed, listed_slot, row, ret);
}

void slab_kill_slot(struct slab *s, size_t slot)
{
    uint64_t bit = UINT64_C(1) << slot % SLAB_BLOCK_ROWS;

    s->n_dead += !(s->dead[slot / SLAB_BLOCK_ROWS] & bit);
    s->dead[slot / SLAB_BLOCK_ROWS] |= bit;
}

bool slab_kill(struct slab *s, int64_t row)
{
    size_t n_before = s->n_dead, slot;

    if (!slab_find(s, s->n, row, &slot))
        return false;
    slab_kill_slot(s, slot);
    return s->n_dead > n_before;
}

void slab_view_take(struct slab *s, struct slab_view *ret)
{
    *ret = (struct slab_view){ 0 };
    if (!s)
        return;
    *ret =
        (struct slab_view){ .slab = slab_ref(s), .n = s->n, .n_live = s->n - s->n_dead, .n_sketched = s->n_sketched };
    if (s->n_dead == 0)
        return;
    ret->live = xcalloc(slab_n_words(s->n), sizeof(uint64_t));
    for (size_t i = 0; i < slab_n_words(s->n); i++)
        ret->live[i] = ~s->dead[i];
}

void slab_view_clear(struct slab_view *v)
{
    slab_unref(v->slab);
    free(v->live);
    *v = (struct slab_view){ 0 };
}

bool slab_view_find(const struct slab_view *v, int64_t row, size_t *ret_slot)
{
    size_t slot;

    if (!v->slab || !slab_find(v->slab, v->n, row, &slot) || !slab_view_is_live(v, slot))
        return false;
    *ret_slot = slot;
    return true;
}
