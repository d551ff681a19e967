/* Times in header fields of HTTP (RFC 9110 section 5.6.7): "Sun, 06 Nov 1994 08:49:37 GMT". Pure; any thread. */
#pragma once

#include "base/util.h"

/* Since 1970. -EINVAL for NULL and every other text; the obsolete forms are refused too. */
int http_date_parse(const char *text, int64_t *ret_wall_ms) MUST_CHECK;
