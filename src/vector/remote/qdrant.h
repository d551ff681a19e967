/* Qdrant: the shared declarations of its files. Private to src/vector.
 *
 * qdrant.c has the store, qdrant_collection.c its requests and collections, qdrant_read.c reading, qdrant_filter.c
 * filters in Qdrant's syntax. A point's id is a UUID made from Hearth's id; the payload has Hearth's id, the
 * namespace, the vector's length and the metadata.
 */
#pragma once

#include "vector/remote/remote_store.h"

#define QDRANT_ID "hearth_id"
#define QDRANT_LENGTH "hearth_length" /* the vector's length before normalisation */
#define QDRANT_NAMESPACE "hearth_namespace"
#define QDRANT_METADATA "metadata"

extern const struct vectors_field qdrant_fields[];
int qdrant_open(const char *scope, struct json_value config, const struct guard *guard, struct vectors **ret,
                struct err *e) MUST_CHECK;

/* Functions of struct remote_peer. */
int qdrant_nearest(const struct remote_op *op, const struct remote_collection *col, const struct remote_search *search,
                   int64_t n, struct arena *a, struct vector_hits *ret, struct err *e) MUST_CHECK;
int qdrant_read(const struct remote_op *op, const struct remote_collection *col,
                const struct remote_read_request *request, struct arena *a, struct vector_hits *ret,
                struct err *e) MUST_CHECK;
int qdrant_collect_ids(const struct remote_op *op, const struct remote_collection *col,
                       const struct vector_filter *filter, struct remote_ids *ids, struct err *e) MUST_CHECK;
int qdrant_find(const struct remote_op *op, struct arena *a, const char *ns, struct remote_collection *ret,
                struct err *e) MUST_CHECK;
int qdrant_count(const struct remote_op *op, struct arena *a, const struct remote_collection *col, int64_t *ret,
                 struct err *e) MUST_CHECK;
int qdrant_drop(const struct remote_op *op, struct arena *a, const struct remote_collection *col,
                struct err *e) MUST_CHECK;

/* Begins the object of a request's body; qdrant_send() ends the object and frees the body. ret: the member `result` of
 * the answer. */
struct qdrant_body {
    struct buf text;
    struct json_writer w;
};
void qdrant_begin(struct qdrant_body *body);
int qdrant_send(const struct remote_op *op, struct arena *a, const char *method, const char *path,
                struct qdrant_body *body, struct json_value *ret, struct err *e) MUST_CHECK;
/* Adds the points' ids, which are made from Hearth's ids. */
void qdrant_add_uuids(struct json_writer *w, const char *name, const char *const *ids, size_t n);
const char *qdrant_path(struct arena *a, const struct remote_collection *col, const char *verb);

int qdrant_make(const struct remote_op *op, struct arena *a, const char *ns, size_t n_dimensions,
                struct remote_collection *ret, struct err *e) MUST_CHECK;

extern const struct remote_dialect qdrant_dialect;
