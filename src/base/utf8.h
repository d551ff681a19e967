/* UTF-8 (RFC 3629): no overlong forms, no surrogates, nothing above U+10FFFF. Pure functions; any thread. */
#pragma once

#include "base/slice.h"

bool utf8_is_valid(struct slice s);
/* Bytes of the well-formed character at the start of s; 0 when there is none or s is empty. */
size_t utf8_char_bytes(struct slice s);
/* Of the well-formed character of n bytes, as utf8_char_bytes() returned them; here, because texts are walked by it. */
static inline uint32_t utf8_code_point(const char *p, size_t n)
{
    static const unsigned char first_bits[] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
    uint32_t c = (unsigned char)p[0] & first_bits[n];

    for (size_t i = 1; i < n; i++)
        c = c << 6 | ((unsigned char)p[i] & 0x3fu);
    return c;
}
/* Characters (code points) of valid UTF-8. */
size_t utf8_length(struct slice s);
/* The beginning of valid UTF-8: as many whole characters as fit into max bytes. */
struct slice utf8_head(struct slice s, size_t max);
