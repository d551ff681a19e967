#include "base/util.h"

#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A double holds every whole number up to here. */
#define EXACT_UP_TO 9007199254740992.0

void freep(void *pointer_to_pointer)
{
    void **slot = pointer_to_pointer;

    free(*slot);
    *slot = NULL;
}

/* The one place below main that ends the program: there is nothing useful left to do without memory. */
static _Noreturn void out_of_memory(size_t size)
{
    fprintf(stderr, "hearth: out of memory (%zu bytes wanted)\n", size);
    abort();
}

void *xcalloc(size_t count, size_t size)
{
    void *memory = calloc(count ? count : 1, size ? size : 1);

    if (!memory)
        out_of_memory(size);
    return memory;
}

void *xrealloc(void *old, size_t size)
{
    void *memory = realloc(old, size ? size : 1);

    if (!memory)
        out_of_memory(size);
    return memory;
}

char *xstrdup(const char *s)
{
    size_t size = strlen(s) + 1;

    return memcpy(xcalloc(1, size), s, size);
}

/* glibc would raise its threshold with each large block that is freed, and keep such blocks from then on. */
void memory_set_up(void)
{
    enum { OWN_PAGES_FROM_BYTES = 256 << 10 };

    mallopt(M_MMAP_THRESHOLD, OWN_PAGES_FROM_BYTES);
}

const char *number_text(char out[NUMBER_TEXT_SIZE], double d)
{
    bool is_whole = fabs(d) <= EXACT_UP_TO && d == floor(d);

    snprintf(out, NUMBER_TEXT_SIZE, is_whole ? "%.0f" : "%g", d);
    return out;
}
