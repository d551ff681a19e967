/* The functions of the specification's auto-setup, <abbr>_fn_claim_task and its siblings, by name with JSON arguments
 * over any backend, as an app that calls SQL functions expects. A refusal is an answer, not an error. Blocks; any
 * thread.
 *
 *     r = functions_call(backend, "svc_fn_claim_task", arguments, arena, &json, e);
 */
#pragma once

#include "backend/backend.h"

/* -ENOENT FUNCTION_NOT_FOUND */
int functions_call(struct backend *b, const char *function, struct json_value arguments, struct arena *a,
                   char **ret_json, struct err *e) MUST_CHECK;
