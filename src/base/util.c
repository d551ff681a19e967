#include "base/memory.h"
#include "base/util.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A double represents every whole number up to this value exactly. */
#define EXACT_UP_TO 9007199254740992.0

enum { LARGEST_CACHED = 1032 /* bytes */ };

void freep(void *pointer_to_pointer)
{
    void **slot = pointer_to_pointer;

    free(*slot);
    *slot = NULL;
}

/* The only place below main that ends the program: without memory nothing useful can be done. */
static _Noreturn void out_of_memory(size_t size)
{
    fprintf(stderr, "hearth: out of memory (%zu bytes wanted)\n", size);
    abort();
}

/* glibc's calloc() bypasses the thread's cache of small blocks. */
static void *allocate_zeroed(size_t count, size_t size)
{
    size_t n;
    void *memory;

    if (__builtin_mul_overflow(count, size, &n) || n > LARGEST_CACHED)
        return calloc(count, size);
    memory = malloc(n ? n : 1);
    return memory ? memset(memory, 0, n) : NULL;
}

void *xcalloc(size_t count, size_t size)
{
    unsigned n_tries = 0;
    void *memory;

    do
        memory = allocate_zeroed(count, size);
    while (!memory && memory_wait(&n_tries));
    if (!memory)
        out_of_memory(size);
    return memory;
}

void *xrealloc(void *old, size_t size)
{
    unsigned n_tries = 0;
    void *memory;

    do
        memory = realloc(old, size ? size : 1);
    while (!memory && memory_wait(&n_tries));
    if (!memory)
        out_of_memory(size);
    return memory;
}

char *xstrdup(const char *s)
{
    size_t size = strlen(s) + 1;

    return memcpy(xcalloc(1, size), s, size);
}

size_t int_text(char out[INT_TEXT_SIZE], int64_t i)
{
    char digits[INT_TEXT_SIZE];
    uint64_t rest = i < 0 ? -(uint64_t)i : (uint64_t)i;
    size_t at = sizeof(digits), n;

    do {
        digits[--at] = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest > 0);
    if (i < 0)
        digits[--at] = '-';
    n = sizeof(digits) - at;
    memcpy(out, digits + at, n);
    out[n] = '\0';
    return n;
}

const char *number_text(char out[NUMBER_TEXT_SIZE], double d)
{
    bool is_whole = fabs(d) <= EXACT_UP_TO && d == floor(d);

    snprintf(out, NUMBER_TEXT_SIZE, is_whole ? "%.0f" : "%g", d);
    return out;
}
