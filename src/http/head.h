/* The head of a request (RFC 9112 sections 2 to 6), parsed strictly: everything ambiguous is refused.
 *
 * Pure functions over bytes, for the loop thread. http_head_scan() finds the end of a head that arrives in pieces and
 * refuses an oversized head early; http_head_parse() parses the complete head.
 *
 *     why = http_head_scan(&scan, bytes_so_far, &head_bytes);         head_bytes 0: more is needed
 *     why = http_head_parse(arena, copy_of_head, &scan, &request, &framing);
 */
#pragma once

#include "http/refusal.h"

struct http_head_scan {
    size_t looked_at, line_start;
    size_t n_lines; /* complete lines: the request line and headers */
};

/* How the body is delimited and what the connection must do. */
struct http_framing {
    size_t content_length; /* 0 when there is no body; SIZE_MAX when the number is too large */
    bool is_chunked;
    bool keep_alive, is_http10;
    bool expects_continue;
};

/* bytes always start at the beginning of the head. ret_bytes: length of the head with its empty line, 0 while
 * incomplete. */
enum http_refusal http_head_scan(struct http_head_scan *scan, struct slice bytes, size_t *ret_bytes);

/* text: a NUL-terminated copy of the scanned head in the arena; it is changed in place and the request borrows from it.
 * On a refusal is_head and id may already be set: the answer uses them. */
enum http_refusal http_head_parse(struct arena *a, char *text, const struct http_head_scan *scan,
                                  struct http_request *ret, struct http_framing *ret_framing);
