/* Errors in the form of this service's own clients (specification, "Errors"): {success, error, code}. The default form
 * of all routes. */
#pragma once

#include "api/route.h"

extern const struct error_form error_envelope;
/* Every violated rule, as `errors`. */
void error_write_fields(struct json_writer *w, const struct err *e);
