/* A store whose peer is asked over HTTP: what Chroma and Qdrant do alike. Queries, lists, removals and counts stand here once; how a peer is asked is in its
 * struct remote_peer.
 *
 *     static const struct vectors_ops ops = { .name = "chroma", …, .query = remote_query, .list = remote_list };
 *
 * Private to src/vector; any thread; calls block.
 */
#pragma once

#include "vector/remote.h"

/* is_there false: there is none of this name. */
struct remote_collection {
    const char *name;
    const char *id;                     /* of a peer that has one beside the name; NULL */
    bool is_there;
    int64_t n_dimensions;               /* 0: not decided yet */
};

/* What of records is read. */
enum remote_parts { REMOTE_IDS, REMOTE_METADATA, REMOTE_VECTORS /* and metadata */ };

struct remote_search {
    const struct vector_query *query;
    const struct vector_filter *filter;
    struct remote_ids among;            /* n 0: all that match as far as the peer can tell */
};

struct remote_store;

/* What is asked of a collection is asked only when it is there. */
struct remote_peer {
    const struct remote_dialect *dialect;
    int (*find)(const struct remote_op *op, struct arena *a, const char *ns, struct remote_collection *ret, struct err *e);
    int (*count)(const struct remote_op *op, struct arena *a, const struct remote_collection *col, int64_t *ret, struct err *e);
    int (*drop)(const struct remote_op *op, struct arena *a, const struct remote_collection *col, struct err *e);
    int (*delete_ids)(const struct remote_op *op, const struct remote_collection *col, const char *const *ids, size_t n, struct err *e);
    /* The n nearest. */
    int (*nearest)(const struct remote_op *op, const struct remote_collection *col, const struct remote_search *search, int64_t n, struct arena *a,
                   struct vector_hits *ret, struct err *e);
    /* Those of the ids that are there, in any order; at most REMOTE_ROWS_A_READ. Vectors have the collection's dimensions. */
    int (*read)(const struct remote_op *op, const struct remote_collection *col, const char *const *ids, size_t n, enum remote_parts parts, struct arena *a,
                struct vector_hits *ret, struct err *e);
    /* The ids of all (filter NULL), or of those that match. */
    int (*collect_ids)(const struct remote_op *op, const struct remote_collection *col, const struct vector_filter *filter, struct remote_ids *ids,
                       struct err *e);
};

struct remote_store { struct vectors vectors; /* first */ struct remote remote; const struct remote_peer *peer; };

struct remote_op remote_op_of(const struct vectors *v, const struct net_wait *wait);

int remote_query(struct vectors *v, const struct net_wait *wait, const char *ns, const struct vector_query *q, struct arena *a, struct vector_hits *ret, struct err *e) MUST_CHECK;
int remote_list(struct vectors *v, const struct net_wait *wait, const char *ns, int64_t limit, int64_t offset, bool with_vectors, struct arena *a, struct vector_hits *ret,
                struct err *e) MUST_CHECK;
int remote_remove(struct vectors *v, const struct net_wait *wait, const char *ns, const struct vector_removal *what, int64_t *ret_n, struct err *e) MUST_CHECK;
int remote_count(struct vectors *v, const struct net_wait *wait, const char *ns, int64_t *ret_n, int64_t *ret_dimensions, struct err *e) MUST_CHECK;
