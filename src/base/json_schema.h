/* Checks JSON values against a JSON Schema: draft 2020-12 (the default) and draft-07, whichever `$schema` names; every
 * assertion and applicator of both. `format`, `content…` and other annotations demand nothing. A `$ref` leads only to
 * places within the schema itself: nothing is ever fetched.
 *
 * A compiled schema lives in the arena and borrows the schema's document; it is read-only, so any thread may check
 * values against it. Reading and checking are bounded by LIMIT_SCHEMA_VALUES, LIMIT_SCHEMA_STEPS and the limits beside
 * them. Numbers are compared exactly: 1.0 equals 1, and integers of 64 bits keep all their digits.
 *
 *     r = json_schema_compile(arena, schema, "tool.inputSchema", &compiled, e);
 *     if (r == 0)
 *         r = json_schema_apply(compiled, arguments, "arguments", e);   "`arguments.city` is required"
 */
#pragma once

#include "base/json.h"

struct json_schema;

/* Whether the schema can be used. -EINVAL VALIDATION_ERROR: every reason (up to ERR_MAX_FIELDS) with its place in the
 * schema below `path`: an unknown dialect or type, a keyword of the wrong shape, a pattern that is no regular
 * expression, a reference to another document or to nothing, a limit. */
int json_schema_compile(struct arena *a, struct json_value schema, const char *path, const struct json_schema **ret,
                        struct err *e) MUST_CHECK;

/* -EINVAL VALIDATION_ERROR: every violation (up to ERR_MAX_FIELDS) with its path below `path`, in words for people and
 * models. A check that reaches one of its limits is a violation too. */
int json_schema_apply(const struct json_schema *schema, struct json_value v, const char *path,
                      struct err *e) MUST_CHECK;

/* Both in one, for a schema that is used once; what is wrong with the schema is reported below "schema". */
int json_schema_check(struct json_value schema, struct json_value v, const char *path, struct err *e) MUST_CHECK;
