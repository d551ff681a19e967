/* Qdrant: what its files share. Private to src/vector.
 *
 * qdrant.c is the store, qdrant_collection.c its requests and collections, qdrant_read.c what is read, qdrant_filter.c filters in its words. A point's id is a
 * UUID made of our id, which stands in its payload with the namespace, the vector's length and the metadata.
 */
#pragma once

#include "vector/remote.h"

#define QDRANT_ID "hearth_id"
#define QDRANT_LENGTH "hearth_length"   /* of the vector before it was brought to one */
#define QDRANT_NAMESPACE "hearth_namespace"
#define QDRANT_METADATA "metadata"

struct qdrant { struct vectors vectors; /* first */ struct remote remote; };

/* is_there false: there is none of this name. */
struct qdrant_collection { const char *name; bool is_there; int64_t n_dimensions; };

extern const struct vectors_field qdrant_fields[];
int qdrant_open(const char *scope, struct json_value config, const struct guard *guard, struct vectors **ret, struct err *e) MUST_CHECK;

int qdrant_query(struct vectors *v, const char *ns, const struct vector_query *q, struct arena *a, struct vector_hits *ret, struct err *e) MUST_CHECK;
int qdrant_list(struct vectors *v, const char *ns, int64_t limit, int64_t offset, bool with_vectors, struct arena *a, struct vector_hits *ret,
                struct err *e) MUST_CHECK;
/* The ids of all, or of those that match the filter; and which of some are there. */
int qdrant_collect_ids(const struct qdrant *q, const struct qdrant_collection *col, const struct vector_filter *filter, struct remote_ids *ids,
                       struct err *e) MUST_CHECK;
int qdrant_find_ids(const struct qdrant *q, const struct qdrant_collection *col, const struct vector_removal *what, struct remote_ids *ids,
                    struct err *e) MUST_CHECK;

/* Begins the object of a request's body; qdrant_send() ends the object and frees the body. ret: the member `result` of the answer. */
struct qdrant_body { struct buf text; struct json_writer w; };
void qdrant_begin(struct qdrant_body *body);
int qdrant_send(const struct qdrant *q, struct arena *a, const char *method, const char *path, struct qdrant_body *body, struct json_value *ret,
                struct err *e) MUST_CHECK;
/* The ids of points that are made of ours. */
void qdrant_add_uuids(struct json_writer *w, const char *name, const char *const *ids, size_t n);
const char *qdrant_path(struct arena *a, const struct qdrant_collection *col, const char *verb);

int qdrant_find(const struct qdrant *q, struct arena *a, const char *name, struct qdrant_collection *ret, struct err *e) MUST_CHECK;
int qdrant_make(const struct qdrant *q, struct arena *a, const char *name, size_t n_dimensions, struct qdrant_collection *ret, struct err *e) MUST_CHECK;
int qdrant_drop(const struct qdrant *q, struct arena *a, const struct qdrant_collection *col, struct err *e) MUST_CHECK;
int qdrant_count_points(const struct qdrant *q, struct arena *a, const struct qdrant_collection *col, int64_t *ret, struct err *e) MUST_CHECK;

/* Adds "filter" when something of it can be told; every row that matches the filter matches it. True: the whole filter was told. */
bool qdrant_add_filter(struct json_writer *w, const struct vector_filter *f);
