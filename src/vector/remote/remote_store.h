/* The common part of stores whose peer is a server reached over HTTP: queries, lists, removals, counts and (except for
 * Chroma) storing. The requests to each peer are in its struct remote_peer.
 *
 *     static const struct vectors_ops ops = REMOTE_STORE_OPS("milvus");
 *     static const struct remote_kind kind = { .ops = &ops, .peer = &peer, .label = "Milvus", .header =
 * "authorization", … }; return remote_store_open(&kind, config, guard, ret, e);
 *
 * Private to src/vector; any thread; calls block.
 */
#pragma once

#include "net/http_client.h"
#include "vector/remote/remote.h"

/* is_there false: there is no collection with this name. */
struct remote_collection {
    const char *name;
    const char *id; /* for peers whose collections also have an id; NULL: none */
    bool is_there;
    int64_t n_dimensions; /* 0: not yet set */
};

/* The parts of a record to read. */
enum remote_parts { REMOTE_IDS, REMOTE_METADATA, REMOTE_VECTORS /* and metadata */ };

struct remote_read_request {
    const char *const *ids;
    size_t n; /* of ids; at most REMOTE_ROWS_A_READ */
    enum remote_parts parts;
};

struct remote_search {
    const struct vector_query *query;
    const struct vector_filter *filter;
    struct remote_ids among; /* the ids to search among; n 0: all records that match as far as the peer can decide */
};

/* The records that one request stores. */
struct remote_put {
    const struct remote_collection *collection;
    const char *ns;
    const struct vector_record *items;
    size_t n, n_dimensions;
};

struct remote_store;

/* Functions that take a collection are called only when the collection exists. */
struct remote_peer {
    const struct remote_dialect *dialect;
    /* Is the server of this kind, and does it accept the key? */
    int (*check)(const struct remote_op *op, struct arena *a, struct err *e);
    /* NULL: collections need not be made, and the peer sets the dimensions. */
    int (*make)(const struct remote_op *op, struct arena *a, const char *ns, size_t n_dimensions,
                struct remote_collection *ret, struct err *e);
    int (*put)(const struct remote_op *op, const struct remote_put *put, struct err *e);
    size_t n_put, put_bytes; /* the limits of one request; 0: LIMIT_VECTORS_PER_CALL, REMOTE_BODY_BYTES */
    bool needs_direction;    /* the peer takes no zero vectors */
    int (*find)(const struct remote_op *op, struct arena *a, const char *ns, struct remote_collection *ret,
                struct err *e);
    int (*count)(const struct remote_op *op, struct arena *a, const struct remote_collection *col, int64_t *ret,
                 struct err *e);
    /* An estimate of the collection's size, for peers that need many requests to count; NULL: use count. */
    int (*probe)(const struct remote_op *op, struct arena *a, const struct remote_collection *col, int64_t *ret,
                 struct err *e);
    int (*drop)(const struct remote_op *op, struct arena *a, const struct remote_collection *col, struct err *e);
    int (*delete_ids)(const struct remote_op *op, const struct remote_collection *col, const char *const *ids, size_t n,
                      struct err *e);
    /* The n nearest records. */
    int (*nearest)(const struct remote_op *op, const struct remote_collection *col, const struct remote_search *search,
                   int64_t n, struct arena *a, struct vector_hits *ret, struct err *e);
    int64_t n_nearest; /* the limit of one request; 0: REMOTE_CANDIDATES */
    size_t n_among;    /* the limit of ids to search among in one request; 0: REMOTE_CANDIDATES */
    /* The records of the ids that exist, in any order. Vectors have the collection's dimensions. */
    int (*read)(const struct remote_op *op, const struct remote_collection *col,
                const struct remote_read_request *request, struct arena *a, struct vector_hits *ret, struct err *e);
    /* The ids of all records (filter NULL), or of those that match. */
    int (*collect_ids)(const struct remote_op *op, const struct remote_collection *col,
                       const struct vector_filter *filter, struct remote_ids *ids, struct err *e);
    /* The non-empty namespaces that begin with the prefix, in any order. */
    int (*names)(const struct remote_op *op, const char *prefix, struct remote_ids *names, struct err *e);
};

struct remote_store {
    struct vectors vectors; /* first */
    struct remote remote;
    const struct remote_peer *peer;
    char *space; /* owned; the keyspace or database; NULL: not set */
};

/* What remote_store_open() needs to know about a kind of store; key_field and space_field name members of config. */
struct remote_kind {
    const struct vectors_ops *ops;
    const struct remote_peer *peer;
    const char *label, *header, *key_field, *key_prefix;
    struct http_call_header version;
    const char *space_field, *space_default;
    bool is_space_in_path; /* letters, digits and _ only */
};
int remote_store_open(const struct remote_kind *kind, struct json_value config, const struct guard *guard,
                      struct vectors **ret, struct err *e) MUST_CHECK;

static inline const struct remote_store *remote_store_of(const struct remote_op *op)
{
    return CONTAINER_OF(op->remote, const struct remote_store, remote);
}

struct remote_op remote_op_of(const struct vectors *v, const struct net_wait *wait);

int remote_query(struct vectors *v, const struct net_wait *wait, const char *ns, const struct vector_query *q,
                 struct arena *a, struct vector_hits *ret, struct err *e) MUST_CHECK;
int remote_list(struct vectors *v, const struct net_wait *wait, const char *ns,
                const struct vector_list_request *request, struct arena *a, struct vector_hits *ret,
                struct err *e) MUST_CHECK;
int remote_remove(struct vectors *v, const struct net_wait *wait, const char *ns, const struct vector_removal *what,
                  int64_t *ret_n, struct err *e) MUST_CHECK;
int remote_count(struct vectors *v, const struct net_wait *wait, const char *ns, int64_t *ret_n,
                 int64_t *ret_dimensions, struct err *e) MUST_CHECK;

/* ---- remote_change.c ---- */

struct vectors *remote_close(struct vectors *v);
int remote_check(struct vectors *v, const struct net_wait *wait, struct err *e) MUST_CHECK;
int remote_upsert(struct vectors *v, const struct net_wait *wait, const char *ns, const struct vector_batch *b,
                  struct err *e) MUST_CHECK;
int remote_namespaces(struct vectors *v, const struct net_wait *wait, const char *prefix, struct arena *a,
                      struct field_strings *ret, struct err *e) MUST_CHECK;

#define REMOTE_STORE_OPS(store)                                                                                        \
    {                                                                                                                  \
        .name = store, .close = remote_close, .check = remote_check, .upsert = remote_upsert, .query = remote_query,   \
        .remove = remote_remove, .count = remote_count, .list = remote_list, .namespaces = remote_namespaces,          \
    }

/* A request's body, an open object; remote_send() ends the object and frees the body. A refusal is an error. */
struct remote_body {
    struct buf text;
    struct json_writer w;
};
void remote_begin(struct remote_body *b);
int remote_send(const struct remote_op *op, struct arena *a, const char *method, const char *path,
                struct remote_body *b, struct remote_reply *ret, struct err *e) MUST_CHECK;
