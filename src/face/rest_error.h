/* What PostgREST and PostgreSQL call the errors of a request to /rest/v1 (facts: codes PGRST..., SQLSTATE). Constant;
 * any thread. */
#pragma once

#include "base/err.h"

struct rest_error {
    const char *code;    /* of this service */
    const char *foreign; /* of the original */
    int status;
    const char *message; /* that clients compare; NULL: the error's own text */
};

/* NULL: the original has no such error. */
const struct rest_error *rest_error_of(const char *code);
