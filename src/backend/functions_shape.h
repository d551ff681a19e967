/* <abbr>_fn_shape(schema_name, table_name): the columns of a table, as the set-up's function of that name tells them in
 * a hosted project. Blocks; any thread. */
#pragma once

#include "backend/backend.h"

bool functions_shape_is(const struct backend *b, const char *function);
extern const char *const functions_shape_arguments[]; /* ended by NULL */
/* An object {columns: [{name, type, nullable, default, key, unique}], is_work, is_declared, has_full_identity,
 * is_published}; {} for a table that the backend does not know. -EINVAL VALIDATION_ERROR names the argument. */
int functions_shape_call(struct backend *b, struct json_value arguments, struct arena *a, char **ret_json,
                         struct err *e) MUST_CHECK;
