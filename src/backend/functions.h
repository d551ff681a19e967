/* The functions of the specification's auto-setup, <abbr>_fn_claim_task and its siblings, by name with JSON arguments
 * over any backend, as an app that calls SQL functions expects. A refusal is an answer, not an error. Blocks; any
 * thread.
 *
 *     const struct function_call call = { "svc_fn_claim_task", arguments };
 *     r = functions_call(backend, &call, arena, &json, e);
 */
#pragma once

#include "backend/backend.h"

struct function_call {
    const char *function;
    struct json_value arguments;
    const char *only_user; /* rows whose user_id differs are not found; NULL: all are */
};

/* The names of the arguments, ended by NULL; NULL for an unknown function. */
const char *const *functions_arguments(const struct backend *b, const char *function);
/* Does the function change rows? */
bool functions_writes(const struct backend *b, const char *function);
/* -ENOENT FUNCTION_NOT_FOUND; -EINVAL VALIDATION_ERROR names the argument. */
int functions_call(struct backend *b, const struct function_call *call, struct arena *a, char **ret_json,
                   struct err *e) MUST_CHECK;
