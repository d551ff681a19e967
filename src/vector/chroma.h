/* Chroma: what its files share. Private to src/vector.
 *
 * chroma.c is the store, chroma_collection.c its requests and collections, chroma_upsert.c what is stored, chroma_read.c what is read,
 * chroma_where.c filters in Chroma's words.
 */
#pragma once

#include "vector/remote.h"

#include <stdatomic.h>

#define CHROMA_JSON "hearth_json"       /* the whole metadata as JSON text */
#define CHROMA_LENGTH "hearth_length"   /* of the vector before it was brought to one */
#define CHROMA_OWN "hearth_"            /* keys that begin so are ours */

struct chroma {
    struct vectors vectors;             /* first */
    struct remote remote;
    char *base;                         /* owned; "api/v2/tenants/…/databases/…/collections" */
    atomic_int n_batch;                 /* records one request may store; 0: not asked yet */
};

/* id NULL: it is not there. */
struct chroma_collection { const char *name, *id; int64_t n_dimensions; };

extern const struct vectors_field chroma_fields[];
int chroma_open(const char *scope, struct json_value config, const struct guard *guard, struct vectors **ret, struct err *e) MUST_CHECK;
int chroma_upsert(struct vectors *v, const char *ns, const struct vector_batch *b, struct err *e) MUST_CHECK;

int chroma_query(struct vectors *v, const char *ns, const struct vector_query *q, struct arena *a, struct vector_hits *ret, struct err *e) MUST_CHECK;
int chroma_list(struct vectors *v, const char *ns, int64_t limit, int64_t offset, bool with_vectors, struct arena *a, struct vector_hits *ret,
                struct err *e) MUST_CHECK;
/* The ids of all, or of those that match the filter; and which of some are there. */
int chroma_collect_ids(const struct chroma *c, const struct chroma_collection *col, const struct vector_filter *filter, struct remote_ids *ids,
                       struct err *e) MUST_CHECK;
int chroma_find_ids(const struct chroma *c, const struct chroma_collection *col, const struct vector_removal *what, struct remote_ids *ids,
                    struct err *e) MUST_CHECK;

/* Begins the object of a request's body; chroma_send() frees the body. */
void chroma_begin(struct json_writer *w, struct buf *body);
int chroma_send(const struct chroma *c, struct arena *a, const char *path, struct buf *body, struct remote_reply *ret, struct err *e) MUST_CHECK;
const char *chroma_path(const struct chroma *c, struct arena *a, const struct chroma_collection *col, const char *verb);

int chroma_ask_batch(struct chroma *c, struct arena *a, struct err *e) MUST_CHECK;
int chroma_find(const struct chroma *c, struct arena *a, const char *ns, struct chroma_collection *ret, struct err *e) MUST_CHECK;
int chroma_make(const struct chroma *c, struct arena *a, const char *ns, struct chroma_collection *ret, struct err *e) MUST_CHECK;
int chroma_drop(const struct chroma *c, struct arena *a, const struct chroma_collection *col, struct err *e) MUST_CHECK;
int chroma_count_records(const struct chroma *c, struct arena *a, const struct chroma_collection *col, int64_t *ret, struct err *e) MUST_CHECK;
const char *chroma_namespace_of(struct json_value collection);          /* NULL: not one of ours */

/* Which metadata Chroma holds a copy of to filter by. */
bool chroma_holds(struct slice key, struct json_value value);
/* Adds "where" when something of the filter can be told; every row that matches the filter matches it. True: the whole filter was told. */
bool chroma_add_where(struct json_writer *w, const struct vector_filter *f);
