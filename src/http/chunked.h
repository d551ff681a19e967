/* The chunked transfer coding of a request body (RFC 9112 section 7.1), decoded as it arrives.
 *
 * Embedded in the connection, zeroed before each body; loop thread. Chunk extensions and trailers are checked and
 * dropped.
 *
 *     while ((used = ...) < bytes.n && !http_chunked_is_done(&state))
 *         why = http_chunked_feed(&state, bytes, &body, &used);
 */
#pragma once

#include "http/refusal.h"

struct http_chunked {
    int step;          /* private: state of the grammar for the next byte */
    size_t left;       /* bytes left in the current chunk; while its size is read, the size so far */
    size_t n_digits;   /* of the size */
    size_t n_extra;    /* bytes of extensions and trailers so far */
    size_t line_bytes; /* of the trailer line */
};

/* Decodes bytes into body, at most to the end of the body. ret_used: bytes consumed; fewer than given only at that end.
 * REFUSE_BODY_BYTES when the maximum of body would be exceeded. */
enum http_refusal http_chunked_feed(struct http_chunked *c, struct slice bytes, struct buf *body, size_t *ret_used);
bool http_chunked_is_done(const struct http_chunked *c);
