/* Percent-encoding of URLs (RFC 3986 section 2.1), decoded exactly once. Any thread.
 *
 *     r = percent_decode(arena, segment, false, &name, e);
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"

/* The decoded text, NUL-terminated, in the arena. -EINVAL VALIDATION_ERROR for a percent sign without two hex digits,
 * a NUL, or a result that is not UTF-8. plus_is_space: as in queries and forms. */
int percent_decode(struct arena *a, struct slice in, bool plus_is_space, char **ret, struct err *e) MUST_CHECK;

/* Escapes all but the unreserved characters (RFC 3986 section 2.3), so the result is one segment or one query value. */
void percent_encode(struct buf *out, struct slice in);
