/* gzip of answers (RFC 1952) and who wants it (RFC 9110 section 12.5.3). Pure functions; any thread but the loop's. */
#pragma once

#include "base/buf.h"

enum { HTTP_GZIP_FROM_BYTES = 4096 };   /* smaller bodies travel as they are */

/* value of the Accept-Encoding header, may be NULL. */
bool http_accepts_gzip(const char *value);
/* Adds the compressed bytes to out. False, and out unchanged, when that would not make them fewer. */
bool http_gzip(struct slice in, struct buf *out);
