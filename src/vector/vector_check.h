/* The checks of a call that every vector store makes before it uses its own state: the limits and rules of
 * docs/vectors.md. All return -EINVAL VALIDATION_ERROR and name the field as the routes do. Any thread; no state. */
#pragma once

#include "vector/vector.h"
#include "vector/vector_filter.h"

int vector_check_namespace(const char *ns, struct err *e) MUST_CHECK;
/* Ids, numbers (NaN and infinities are refused), number of dimensions, metadata (a JSON object or NULL) within the
 * limits. */
int vector_check_batch(const struct vector_batch *b, struct err *e) MUST_CHECK;
int vector_check_query(const struct vector_query *q, struct err *e) MUST_CHECK;
/* All checks of a query for a store without full text; ret: the query's filter, allocated in the arena. */
int vector_check_search(const char *ns, const struct vector_query *q, struct arena *a, struct vector_filter *ret,
                        struct err *e) MUST_CHECK;
int vector_check_removal(const struct vector_removal *r, struct err *e) MUST_CHECK;
int vector_check_page(int64_t limit, int64_t offset, struct err *e) MUST_CHECK;
/* -EINVAL DIMENSION_MISMATCH */
int vector_check_dimensions(const char *ns, int64_t n_held, size_t n_given, struct err *e) MUST_CHECK;

/* ---- answers of stores ---- */

/* Is it a namespace that begins with the prefix and is longer? name may be NULL. */
bool vector_check_prefix(const char *name, const char *prefix) MUST_CHECK;
/* Parses metadata as a store sent it and prints it again into the arena, as a store may send invalid JSON. -EINVAL
 * without an error text: not a JSON object. */
int vector_check_metadata(struct arena *a, struct slice text, const char **ret) MUST_CHECK;
