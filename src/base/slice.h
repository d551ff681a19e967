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

/* Decimal digits at the start of s. */
static inline size_t slice_digits(struct slice s)
{
    size_t n = 0;

    while (n < s.n && s.p[n] >= '0' && s.p[n] <= '9')
        n++;
    return n;
}

/* White space of JSON (RFC 8259 section 2); NUL is none. */
static inline bool char_is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static inline struct slice slice_skip_blanks(struct slice s)
{
    while (s.n > 0 && char_is_blank(s.p[0]))
        s = (struct slice){ s.p + 1, s.n - 1 };
    return s;
}

static inline struct slice slice_trim(struct slice s)
{
    s = slice_skip_blanks(s);
    while (s.n > 0 && char_is_blank(s.p[s.n - 1]))
        s.n--;
    return s;
}
