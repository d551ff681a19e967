/* Errors as this service's own clients read them (specification, "Errors"): {success, error, code}. The form of all routes that name no other.
 */
#pragma once

#include "api/route.h"

extern const struct error_form error_envelope;
/* Every violated rule, as `errors`. */
void error_write_fields(struct json_writer *w, const struct err *e);
