/* Chroma: the shared declarations of its files. Private to src/vector.
 *
 * chroma.c has the store, chroma_collection.c its requests and collections, chroma_upsert.c storing, chroma_read.c
 * reading, chroma_where.c filters in Chroma's syntax.
 */
#pragma once

#include "vector/remote/remote_store.h"

#include <stdatomic.h>

#define CHROMA_JSON "hearth_json"     /* the whole metadata as JSON text */
#define CHROMA_LENGTH "hearth_length" /* the vector's length before normalisation */
#define CHROMA_OWN "hearth_"          /* the prefix of this service's keys */

struct chroma {
    struct remote_store store; /* first */
    char *base;                /* owned; "api/v2/tenants/…/databases/…/collections" */
    atomic_int n_batch;        /* records one request may store; 0: not yet known */
};

static inline const struct chroma *chroma_of(const struct remote_op *op)
{
    return CONTAINER_OF(op->remote, const struct chroma, store.remote);
}

extern const struct vectors_field chroma_fields[];
int chroma_open(const char *scope, struct json_value config, const struct guard *guard, struct vectors **ret,
                struct err *e) MUST_CHECK;
int chroma_upsert(struct vectors *v, const struct net_wait *wait, const char *ns, const struct vector_batch *b,
                  struct err *e) MUST_CHECK;

/* Functions of struct remote_peer. */
int chroma_nearest(const struct remote_op *op, const struct remote_collection *col, const struct remote_search *search,
                   int64_t n, struct arena *a, struct vector_hits *ret, struct err *e) MUST_CHECK;
int chroma_read(const struct remote_op *op, const struct remote_collection *col,
                const struct remote_read_request *request, struct arena *a, struct vector_hits *ret,
                struct err *e) MUST_CHECK;
int chroma_collect_ids(const struct remote_op *op, const struct remote_collection *col,
                       const struct vector_filter *filter, struct remote_ids *ids, struct err *e) MUST_CHECK;
int chroma_find(const struct remote_op *op, struct arena *a, const char *ns, struct remote_collection *ret,
                struct err *e) MUST_CHECK;
int chroma_count(const struct remote_op *op, struct arena *a, const struct remote_collection *col, int64_t *ret,
                 struct err *e) MUST_CHECK;
int chroma_drop(const struct remote_op *op, struct arena *a, const struct remote_collection *col,
                struct err *e) MUST_CHECK;

/* Begins the object of a request's body; chroma_send() frees the body. */
void chroma_begin(struct json_writer *w, struct buf *body);
int chroma_send(const struct remote_op *op, struct arena *a, const char *path, struct buf *body,
                struct remote_reply *ret, struct err *e) MUST_CHECK;
const char *chroma_path(const struct remote_op *op, struct arena *a, const struct remote_collection *col,
                        const char *verb);

/* Requests the number of records that one request may store, and sets n_batch. */
int chroma_request_batch(struct chroma *c, const struct remote_op *op, struct arena *a, struct err *e) MUST_CHECK;
int chroma_make(const struct remote_op *op, struct arena *a, const char *ns, struct remote_collection *ret,
                struct err *e) MUST_CHECK;
/* The collection's id, which becomes part of paths. */
int chroma_read_id(const struct remote_op *op, struct json_value collection, struct remote_collection *ret,
                   struct err *e) MUST_CHECK;
const char *chroma_namespace_of(struct json_value collection); /* NULL: not a collection of Hearth */

/* Does Chroma hold a copy of this metadata member for filters? */
bool chroma_holds(struct slice key, struct json_value value);

extern const struct remote_dialect chroma_dialect;
