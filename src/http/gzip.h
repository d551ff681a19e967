/* gzip of answers (RFC 1952) and its negotiation (RFC 9110 section 12.5.3). Pure functions; any thread but the
 * loop's. */
#pragma once

#include "base/buf.h"

enum { HTTP_GZIP_FROM_BYTES = 4096 }; /* smaller bodies are sent uncompressed */

/* value: of the Accept-Encoding header; may be NULL. */
bool http_accepts_gzip(const char *value);
/* Adds the compressed bytes to out. False, with out unchanged, when compression would not shorten them. */
bool http_gzip(struct slice in, struct buf *out);
