/* The smallest value that fits a JSON Schema, for the keywords that tools and answers of language models mostly have.
 *
 * Of `enum`, `anyOf`, `oneOf` and a list of types the first counts, of `allOf` too; of an object the required members
 * are written. A schema may have no such value or be beyond this module, so a caller that needs a fitting value checks
 * it. Any thread.
 *
 *     json_example_write(&w, "arguments", schema);
 */
#pragma once

#include "base/json_write.h"

/* Writes one value of any schema, at most EXAMPLE_DEPTH levels deep (deeper values are null); stops early when the
 * buffer is full. */
void json_example_write(struct json_writer *w, const char *name, struct json_value schema);
