/* float32 numbers as bytes, little end first, and as base64 of these bytes (the form of OpenAI's embeddings). Any
 * thread; no state. The text is foreign: its length is checked here, how many numbers are allowed by the caller.
 *
 *     n = floats_in_base64(text);
 *     if (n > LIMIT_DIMENSIONS || !floats_read_base64(text, items, n) || floats_count_finite(items, n) < n)
 *         return -EINVAL;
 */
#pragma once

#include "base/buf.h"

/* How many whole numbers the text stands for, if it is base64. */
size_t floats_in_base64(struct slice text);
/* False unless the text is padded base64 of n numbers exactly. */
bool floats_read_base64(struct slice text, float *ret, size_t n) MUST_CHECK;
/* How many numbers precede the first that is infinite or no number. */
size_t floats_count_finite(const float *items, size_t n);
