/* A namespace of vectors: the store of the caller's scope, and `sdk_<scope>_<workspace>` in that store (decisions D3,
 * D9).
 *
 * For one call on one thread; blocks a worker (vector_space_is_far(), vector_space_is_slow() tell how long). Each
 * function of the work checks the caller's grant (vectors.write, vectors.read), the model that the namespace's vectors
 * are of, and the budget of the scope; their errors, beside those of vector/vector.h: -EPERM as models_permit(),
 * -EINVAL EMBEDDING_MODEL_MISMATCH, -EBUSY BUDGET_EXCEEDED, -ECANCELED SHUTTING_DOWN.
 *
 *     AUTO(vector_space_clear) struct vector_space space = { 0 };
 *     r = vector_space_open(call, VECTOR_WORKSPACE_DEFAULT, &space, e);
 *     r = vector_space_query(&space, &query, NULL, &hits, e);
 */
#pragma once

#include "models/models.h"
#include "models/vector_stores.h"

#define VECTOR_WORKSPACE_DEFAULT "default"

struct vector_space {
    const struct models_call *call; /* borrowed */
    struct vector_store *use;       /* owned: vector_space_clear() */
    struct vectors *vectors;        /* borrowed from use */
    const char *ns;                 /* in the call's arena; NULL: only the store */
    struct net_wait wait;           /* for all operations of the call on the store */
};

/* How long, by the setting, and for which caller a call waits for a registered store. */
struct net_wait vector_wait_of(const struct models_call *call);

/* workspace NULL: only the store, for vector_space_workspaces(). -EAGAIN VECTOR_STORE_UNAVAILABLE. */
int vector_space_open(const struct models_call *call, const char *workspace, struct vector_space *ret,
                      struct err *e) MUST_CHECK;
void vector_space_clear(struct vector_space *space);
/* Is the caller's store a registered one, which may be slow or far away? Sends it no request. */
bool vector_space_is_far(const struct models_call *call);
/* Would the first query of this namespace load it? */
bool vector_space_is_slow(const struct models_call *call, const char *workspace);

/* model: what made the vectors; NULL: not given, not checked. All or nothing. */
int vector_space_upsert(const struct vector_space *space, const struct vector_batch *batch, const char *model,
                        struct err *e) MUST_CHECK;
/* Results are in the call's arena, best first. -EINVAL for a text that the registered store cannot search. */
int vector_space_query(const struct vector_space *space, const struct vector_query *query, const char *model,
                       struct vector_hits *ret, struct err *e) MUST_CHECK;
int vector_space_list(const struct vector_space *space, const struct vector_list_request *page, struct vector_hits *ret,
                      struct err *e) MUST_CHECK;
/* What made the namespace's vectors; NULL: unknown. */
int vector_space_model(const struct vector_space *space, const char **ret, struct err *e) MUST_CHECK;
struct vector_space_counts {
    int64_t n, n_dimensions; /* 0, 0: the namespace is not there */
    const char *model;       /* NULL: unknown */
};
int vector_space_count(const struct vector_space *space, struct vector_space_counts *ret, struct err *e) MUST_CHECK;
/* An emptied namespace forgets its model and its dimensions. */
int vector_space_remove(const struct vector_space *space, const struct vector_removal *removal, int64_t *ret_n,
                        struct err *e) MUST_CHECK;
/* The names of the scope's workspaces, without the prefix of their namespaces. */
int vector_space_workspaces(const struct vector_space *space, struct field_strings *ret, struct err *e) MUST_CHECK;
