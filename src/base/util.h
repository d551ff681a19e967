/* Macros that every file uses. No state, no allocation; safe from any thread. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>
#include <errno.h>

#define MUST_CHECK __attribute__((warn_unused_result))
#define PRINTF_LIKE(fmt, first) __attribute__((format(printf, fmt, first)))
#define UNUSED __attribute__((unused))
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define CONTAINER_OF(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

/* Scope ownership: AUTO(buf_freep) struct buf *b = buf_new(...); the named function is called with &b when b leaves its
 * scope. */
#define AUTO(cleanup_fn) __attribute__((cleanup(cleanup_fn)))
/* Hands a scoped pointer over: *ret = TAKE(b); */
#define TAKE(p)                                                                                                        \
    ({                                                                                                                 \
        __auto_type take_ = (p);                                                                                       \
        (p) = NULL;                                                                                                    \
        take_;                                                                                                         \
    })

/* AUTO(freep) char *s = strdup(x); */
void freep(void *pointer_to_pointer);

/* Allocates a size that the program itself chose, zeroed; when memory is short, waits briefly (base/memory.h), then
 * prints one message and aborts. */
void *xcalloc(size_t count, size_t size) MUST_CHECK __attribute__((malloc, returns_nonnull));
void *xrealloc(void *old, size_t size) MUST_CHECK __attribute__((returns_nonnull));
char *xstrdup(const char *s) MUST_CHECK __attribute__((malloc, returns_nonnull));

/* Writes a number in plain notation: 1000000000000, not 1e+12. Returns out. */
enum { NUMBER_TEXT_SIZE = 32 };
const char *number_text(char out[NUMBER_TEXT_SIZE], double d);
enum { INT_TEXT_SIZE = 24 };
size_t int_text(char out[INT_TEXT_SIZE], int64_t i); /* with NUL; returns the length */
