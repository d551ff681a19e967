/* UTF-8 (RFC 3629): no overlong forms, no surrogates, nothing above U+10FFFF. Pure functions; any thread. */
#pragma once

#include "base/slice.h"

bool utf8_is_valid(struct slice s);
/* Bytes of the well-formed character at the start of s; 0 when there is none or s is empty. */
size_t utf8_char_bytes(struct slice s);
/* Characters (code points) of valid UTF-8. */
size_t utf8_length(struct slice s);
/* The beginning of valid UTF-8: as many whole characters as fit into max bytes. */
struct slice utf8_head(struct slice s, size_t max);
