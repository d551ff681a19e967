/* Memory that lives as long as one request (or one job): allocate freely, free once.
 *
 * Owned by its creator; used by one thread at a time. The clean-ups of arena_defer() run in reverse order when the
 * arena ends. LIMIT_ARENA_BYTES bounds what an arena takes from the heap. Exceeding that limit aborts the program, so
 * sizes from outside must be checked against a limit of their own first.
 *
 *     AUTO(arena_freep) struct arena *a = arena_new();
 *     char *s = arena_printf(a, "%s/%s", dir, name);
 */
#pragma once

#include "base/slice.h"
#include <stdarg.h>

struct arena;

struct arena *arena_new(void) MUST_CHECK;
struct arena *arena_new_sized(size_t first_bytes) MUST_CHECK; /* for many small arenas */
struct arena *arena_free(struct arena *a);                    /* NULL is fine; returns NULL */
void arena_freep(struct arena **a);

/* Whether n more bytes fit. Call this before storing data that has no limit of its own: answers of peers, copies for
 * each account. */
bool arena_has_room(const struct arena *a, size_t n);
/* Heap bytes that the arena and the objects ending with it hold, for memory budgets. 0 for NULL. */
size_t arena_bytes(const struct arena *a);
/* Bytes of all large arenas of this process; any thread. */
size_t arena_total(void);
/* Counts n bytes that are held elsewhere and end with the arena: in arena_bytes(), not against the limit. */
void arena_count(struct arena *a, size_t n);
/* The arena takes ownership of n bytes from malloc() and frees them when it ends. */
void arena_adopt(struct arena *a, void *memory, size_t n);
/* Zeroed, aligned for any type. */
void *arena_alloc(struct arena *a, size_t n) __attribute__((malloc, returns_nonnull));
/* Zeroed count * size, overflow checked. */
void *arena_array(struct arena *a, size_t count, size_t size) __attribute__((malloc, returns_nonnull));
#define ARENA_NEW(a, type) ((type *)arena_alloc((a), sizeof(type)))

char *arena_strdup(struct arena *a, const char *s); /* NULL gives NULL */
char *arena_strndup(struct arena *a, const char *s, size_t n);
char *arena_slicedup(struct arena *a, struct slice s); /* NUL-terminated copy */
char *arena_printf(struct arena *a, const char *fmt, ...) PRINTF_LIKE(2, 3);
char *arena_vprintf(struct arena *a, const char *fmt, va_list ap) PRINTF_LIKE(2, 0);

/* Calls fn(arg) when the arena is freed, latest first. */
void arena_defer(struct arena *a, void (*fn)(void *arg), void *arg);
