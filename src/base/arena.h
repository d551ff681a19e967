/* Memory that lives as long as one request (or one job): allocate freely, free once.
 *
 * Owned by whoever made it; one thread at a time. arena_defer() runs clean-ups in reverse order when it ends.
 * What it takes from the heap is bounded by LIMIT_ARENA_BYTES; passing it aborts only for program-chosen sizes, so sizes
 * from outside are checked against their own limit first.
 *
 *     AUTO(arena_freep) struct arena *a = arena_new();
 *     char *s = arena_printf(a, "%s/%s", dir, name);
 */
#pragma once

#include "base/slice.h"
#include <stdarg.h>

struct arena;

struct arena *arena_new(void) MUST_CHECK;
struct arena *arena_new_sized(size_t first_bytes) MUST_CHECK;       /* for what is many and small */
struct arena *arena_free(struct arena *a);              /* NULL is fine; returns NULL */
void arena_freep(struct arena **a);

/* May n more bytes be had? To be asked before what nothing else bounds is kept: answers of peers, copies for each account. */
bool arena_has_room(const struct arena *a, size_t n);
/* What the arena and all that ends with it hold of the heap, for budgets of memory. 0 for NULL. */
size_t arena_bytes(const struct arena *a);
/* Bytes of all arenas of this process that are large; any thread. */
size_t arena_total(void);
/* n bytes elsewhere end with the arena: they count in arena_bytes(), not against the limit. */
void arena_count(struct arena *a, size_t n);
/* Memory of malloc(), n bytes of it, ends with the arena. */
void arena_adopt(struct arena *a, void *memory, size_t n);
/* Zeroed, aligned for any type. */
void *arena_alloc(struct arena *a, size_t n) __attribute__((malloc, returns_nonnull));
/* Zeroed count * size, overflow checked. */
void *arena_array(struct arena *a, size_t count, size_t size) __attribute__((malloc, returns_nonnull));
#define ARENA_NEW(a, type) ((type *)arena_alloc((a), sizeof(type)))

char *arena_strdup(struct arena *a, const char *s);     /* NULL gives NULL */
char *arena_strndup(struct arena *a, const char *s, size_t n);
char *arena_slicedup(struct arena *a, struct slice s);  /* NUL-terminated copy */
char *arena_printf(struct arena *a, const char *fmt, ...) PRINTF_LIKE(2, 3);
char *arena_vprintf(struct arena *a, const char *fmt, va_list ap) PRINTF_LIKE(2, 0);

/* Calls fn(arg) when the arena is freed, latest first. */
void arena_defer(struct arena *a, void (*fn)(void *arg), void *arg);
