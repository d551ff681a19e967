/* Borrowed bytes: pointer and length, not NUL-terminated unless its source says so. By value, never owned. */
#pragma once

#include "base/util.h"
#include <string.h>

struct slice {
    const char *p; /* borrowed; may be NULL when n is 0 */
    size_t n;
};

#define SLICE_LIT(s) ((struct slice){ "" s "", sizeof(s) - 1 })

static inline struct slice slice_of(const char *s)
{
    return (struct slice){ s, s ? strlen(s) : 0 };
}

static inline bool slice_eq(struct slice a, struct slice b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

static inline bool slice_eq_str(struct slice a, const char *s)
{
    return slice_eq(a, slice_of(s));
}
