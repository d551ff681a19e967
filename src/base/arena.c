#include "base/arena.h"
#include "base/blocks.h"
#include "base/limits.h"

#include <assert.h>
#include <sanitizer/asan_interface.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    ARENA_FIRST_BLOCK = 1032, /* the arena with its first chunk: the largest block that glibc's thread cache holds */
    ARENA_LARGEST_CHUNK = 256 << 10,
    ARENA_LARGE = 64 << 10,
    ARENA_ALIGN = alignof(max_align_t),
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer) /* gcc; clang */
    ARENA_RED_ZONE = 16, /* the sanitizer then reports a write past one allocation into the next */
#else
    ARENA_RED_ZONE = 0,
#endif
};

struct chunk {
    struct chunk *older; /* owned */
    size_t used, size;
    alignas(max_align_t) char bytes[];
};

struct defer {
    struct defer *earlier; /* in the arena */
    void (*fn)(void *arg);
    void *arg;
};

struct arena {
    struct chunk *newest; /* owned; the oldest one follows the arena in its block */
    struct defer *latest;
    size_t n_bytes;     /* taken from the heap: chunks but the first, and adopted blocks */
    size_t n_elsewhere; /* held outside the arena by objects that end with it */
    size_t n_reported;  /* the part of both that total_bytes includes */
    size_t next_size;   /* size of the next chunk: all earlier ones together, so the arena doubles */
    struct chunk first;
};

_Static_assert(offsetof(struct arena, first) + sizeof(struct chunk) == sizeof(struct arena),
               "the bytes of the first chunk follow the arena");

/* Bytes of all large arenas. Small arenas are not counted: they are many and hold little. */
static atomic_size_t total_bytes;

static void note_total(struct arena *a)
{
    size_t n = a->n_bytes + a->n_elsewhere;

    if (n < ARENA_LARGE)
        return;
    atomic_fetch_add_explicit(&total_bytes, n - a->n_reported, memory_order_relaxed);
    a->n_reported = n;
}

size_t arena_total(void)
{
    return atomic_load_explicit(&total_bytes, memory_order_relaxed);
}

static _Noreturn void arena_too_large(size_t n)
{
    fprintf(stderr, "hearth: one request wanted more than %d bytes of memory (%zu more)\n", LIMIT_ARENA_BYTES, n);
    abort();
}

static void take(struct arena *a, size_t n)
{
    if (n > LIMIT_ARENA_BYTES - a->n_bytes)
        arena_too_large(n);
    a->n_bytes += n;
    note_total(a);
}

static void *zeroed(size_t n)
{
    size_t n_usable;
    void *block = block_take(n, &n_usable);

    return block ? memset(block, 0, n) : xcalloc(1, n);
}

/* Near the limit the chunk is smaller than next_size. */
static void add_chunk(struct arena *a, size_t at_least)
{
    size_t left = LIMIT_ARENA_BYTES - a->n_bytes, size = MAX(at_least, a->next_size);
    struct chunk *chunk;

    if (size + sizeof(*chunk) > left)
        size = at_least;
    take(a, sizeof(*chunk) + size);
    chunk = zeroed(sizeof(*chunk) + size);
    a->next_size = MIN(a->next_size + size, (size_t)ARENA_LARGEST_CHUNK);
    chunk->size = size;
    chunk->older = a->newest;
    a->newest = chunk;
    ASAN_POISON_MEMORY_REGION(chunk->bytes, size);
}

static struct arena *make(size_t first_bytes)
{
    struct arena *a = xcalloc(1, sizeof(*a) + first_bytes);

    a->next_size = a->first.size = first_bytes;
    a->newest = &a->first;
    ASAN_POISON_MEMORY_REGION(a->first.bytes, first_bytes);
    return a;
}

struct arena *arena_new_sized(size_t first_bytes)
{
    return make((first_bytes + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN);
}

struct arena *arena_new(void)
{
    return make((ARENA_FIRST_BLOCK - sizeof(struct arena)) / ARENA_ALIGN * ARENA_ALIGN);
}

struct arena *arena_free(struct arena *a)
{
    if (!a)
        return NULL;
    while (a->latest) {
        struct defer *defer = a->latest;

        a->latest = defer->earlier; /* before the call: fn may defer more */
        defer->fn(defer->arg);
    }
    while (a->newest) {
        struct chunk *chunk = a->newest;

        a->newest = chunk->older;
        ASAN_UNPOISON_MEMORY_REGION(chunk->bytes, chunk->size);
        if (chunk != &a->first)
            block_free(chunk);
    }
    if (a->n_reported > 0)
        atomic_fetch_sub_explicit(&total_bytes, a->n_reported, memory_order_relaxed);
    free(a);
    return NULL;
}

void arena_freep(struct arena **a)
{
    *a = arena_free(*a);
}

static size_t step_of(size_t n)
{
    return (MAX(n, (size_t)1) + ARENA_RED_ZONE + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
}

bool arena_has_room(const struct arena *a, size_t n)
{
    const struct chunk *chunk = a->newest;

    if (n > LIMIT_ARENA_BYTES)
        return false;
    return (chunk && step_of(n) <= chunk->size - chunk->used) ||
           step_of(n) + sizeof(*chunk) <= LIMIT_ARENA_BYTES - a->n_bytes;
}

size_t arena_bytes(const struct arena *a)
{
    return a ? sizeof(*a) + a->first.size + a->n_bytes + a->n_elsewhere : 0;
}

void arena_count(struct arena *a, size_t n)
{
    a->n_elsewhere += n;
    note_total(a);
}

void *arena_alloc(struct arena *a, size_t n)
{
    struct chunk *chunk = a->newest;
    size_t step;
    void *memory;

    if (n > LIMIT_ARENA_BYTES)
        arena_too_large(n);
    step = step_of(n);
    if (!chunk || step > chunk->size - chunk->used) {
        add_chunk(a, step);
        chunk = a->newest;
    }
    memory = chunk->bytes + chunk->used;
    chunk->used += step;
    ASAN_UNPOISON_MEMORY_REGION(memory, n);
    return memory;
}

void arena_adopt(struct arena *a, void *memory, size_t n)
{
    take(a, n);
    arena_defer(a, free, memory);
}

void *arena_array(struct arena *a, size_t count, size_t size)
{
    size_t n;

    if (__builtin_mul_overflow(count, size, &n))
        arena_too_large(SIZE_MAX);
    return arena_alloc(a, n);
}

char *arena_strndup(struct arena *a, const char *s, size_t n)
{
    size_t length = strnlen(s, n);

    return memcpy(arena_alloc(a, length + 1), s, length);
}

char *arena_strdup(struct arena *a, const char *s)
{
    return s ? arena_slicedup(a, slice_of(s)) : NULL;
}

char *arena_slicedup(struct arena *a, struct slice s)
{
    char *copy = arena_alloc(a, s.n + 1);

    if (s.n > 0)
        memcpy(copy, s.p, s.n);
    return copy;
}

char *arena_vprintf(struct arena *a, const char *fmt, va_list ap)
{
    va_list again;
    char small[256], *text;
    int n;

    va_copy(again, ap);
    n = vsnprintf(small, sizeof(small), fmt, again);
    va_end(again);
    assert(n >= 0);
    text = arena_alloc(a, (size_t)n + 1);
    if (n < (int)sizeof(small))
        return memcpy(text, small, (size_t)n + 1);
    vsnprintf(text, (size_t)n + 1, fmt, ap);
    return text;
}

char *arena_printf(struct arena *a, const char *fmt, ...)
{
    va_list ap;
    char *text;

    va_start(ap, fmt);
    text = arena_vprintf(a, fmt, ap);
    va_end(ap);
    return text;
}

void arena_defer(struct arena *a, void (*fn)(void *arg), void *arg)
{
    struct defer *defer = ARENA_NEW(a, struct defer);

    *defer = (struct defer){ .earlier = a->latest, .fn = fn, .arg = arg };
    a->latest = defer;
}
