/* Base64 (RFC 4648): standard alphabet with padding, and the URL-safe one without. */
#pragma once

#include "base/buf.h"

void base64_encode(struct buf *out, struct slice bytes);
/* The same text, several times as fast, and the time depends on the bytes: for data, not for secrets. */
void base64_encode_data(struct buf *out, struct slice bytes);
/* -EINVAL for any byte outside the alphabet or wrong padding; -E2BIG when the bytes do not fit (out is overflowed). */
/* Whether the text looks like base64 with its padding; nothing is decoded. */
bool base64_is_padded(const char *text);
int base64_decode(struct buf *out, struct slice text) MUST_CHECK;
/* The same into memory of n bytes, which must be what the text stands for: -EINVAL. Several times as fast, and the time
 * depends on the bytes: for data, not for secrets. */
int base64_decode_into(struct slice text, char *out, size_t n) MUST_CHECK;
/* The URL-safe alphabet without padding; the same errors. */
void base64url_encode(struct buf *out, struct slice bytes);
int base64url_decode(struct buf *out, struct slice text) MUST_CHECK;
