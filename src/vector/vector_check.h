/* What every vector store asks of a call before it looks at its own state: the limits and rules of docs/vectors.md.
 * All answer -EINVAL VALIDATION_ERROR and name the field as the routes know it. Any thread; no state. */
#pragma once

#include "vector/vector.h"
#include "vector/vector_filter.h"

int vector_check_namespace(const char *ns, struct err *e) MUST_CHECK;
/* Ids, numbers (NaN and infinities are refused), number of dimensions, metadata (a JSON object or NULL) within the limits. */
int vector_check_batch(const struct vector_batch *b, struct err *e) MUST_CHECK;
int vector_check_query(const struct vector_query *q, struct err *e) MUST_CHECK;
/* All that a store without full text asks of a query; ret: its filter, which lives in the arena. */
int vector_check_search(const char *ns, const struct vector_query *q, struct arena *a, struct vector_filter *ret, struct err *e) MUST_CHECK;
int vector_check_removal(const struct vector_removal *r, struct err *e) MUST_CHECK;
int vector_check_page(int64_t limit, int64_t offset, struct err *e) MUST_CHECK;
/* -EINVAL DIMENSION_MISMATCH */
int vector_check_dimensions(const char *ns, int64_t n_held, size_t n_given, struct err *e) MUST_CHECK;

/* ---- what stores say ---- */

/* Is it a namespace that begins with the prefix and goes on behind it? name may be NULL. */
bool vector_check_prefix(const char *name, const char *prefix) MUST_CHECK;
/* Metadata as a store sent it, printed again into the arena: what a store calls JSON need not be any. -EINVAL, without words: it is no JSON object. */
int vector_check_metadata(struct arena *a, struct slice text, const char **ret) MUST_CHECK;
