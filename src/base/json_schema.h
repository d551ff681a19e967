/* Checks a JSON value against a JSON Schema. Supports the part of draft 2020-12 that tools and answers of language
 * models use: type, enum, const, properties, required, additionalProperties, items, minItems, maxItems, minLength,
 * maxLength, minimum, maximum, anyOf, oneOf, allOf and $ref within the schema. Unknown keywords are ignored. Any
 * thread.
 *
 *     r = json_schema_check(schema, value, "", e);
 */
#pragma once

#include "base/json.h"

/* -EINVAL VALIDATION_ERROR: every violation (up to ERR_MAX_FIELDS) with its path below `path`. A check that takes more
 * than LIMIT_SCHEMA_STEPS steps is a violation too. */
int json_schema_check(struct json_value schema, struct json_value v, const char *path, struct err *e) MUST_CHECK;
