/* The HTTP status of each error code, as a table; also part of the OpenAPI text and docs/errors.md. */
#pragma once

#include "base/err.h"

struct api_error {
    const char *code;
    int status;
    const char *meaning;
};
extern const struct api_error api_errors[]; /* ended by code NULL */

/* Status for a failed handler: by e->code, else by the errno r (-ENOENT 404, -EINVAL 400, ...), else 500. */
int api_error_status(int r, const struct err *e);
/* May the same request succeed later although nothing was changed? Decides whether a client is advised to retry after a
 * 503. */
bool api_error_passes(int r);
