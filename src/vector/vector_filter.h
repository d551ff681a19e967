/* The filter of a query or deletion on metadata (decision D9): {"documentId": "a", "page": {"$gte": 2, "$lt": 9}}.
 *
 * Every condition must hold. A key is a member of the metadata's top level. Values are strings, numbers, booleans and
 * null; numbers compare as numbers, strings by code point, other types never; null equals a missing key. $ne is the
 * negation of equality, also for a missing key. $gt, $gte, $lt, $lte take a number or a string. Everything of a parsed
 * filter lives in the arena. Any thread.
 *
 *     r = vector_filter_parse(arena, q->filter, &f, e);
 *     if (vector_filter_matches(&f, metadata)) ...
 */
#pragma once

#include "base/json.h"

enum vector_op { VECTOR_EQ, VECTOR_NE, VECTOR_GT, VECTOR_GTE, VECTOR_LT, VECTOR_LTE, VECTOR_IN };

struct vector_condition {
    const char *key;
    enum vector_op op;
    struct json_value value; /* of $in: the array */
};

struct vector_filter {
    struct vector_condition *items;
    size_t n;
}; /* n 0: everything matches */

/* Absent, null and {}: no condition. -EINVAL VALIDATION_ERROR names the key and the rule. */
int vector_filter_parse(struct arena *a, struct json_value filter, struct vector_filter *ret, struct err *e) MUST_CHECK;
/* One condition on the key's value (absent when there is none). */
bool vector_condition_holds(const struct vector_condition *c, struct json_value value);
bool vector_filter_matches(const struct vector_filter *f, struct json_value metadata);
