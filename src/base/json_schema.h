/* Does a JSON value keep to a JSON Schema? The part of draft 2020-12 that tools and answers of language models use: type, enum, const,
 * properties, required, additionalProperties, items, minItems, maxItems, minLength, maxLength, minimum, maximum, anyOf, oneOf, allOf and
 * $ref within the schema. What is not known is not checked. Any thread.
 *
 *     r = json_schema_check(schema, value, "", e);
 */
#pragma once

#include "base/json.h"

/* -EINVAL VALIDATION_ERROR: every violation (up to ERR_MAX_FIELDS) with its path below `path`. What takes more than LIMIT_SCHEMA_STEPS is one too. */
int json_schema_check(struct json_value schema, struct json_value v, const char *path, struct err *e) MUST_CHECK;
