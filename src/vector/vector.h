/* Vector spaces: one interface over the embedded engine, pgvector, Chroma and Qdrant (specification, "Vector store";
 * decision D9).
 *
 * A space is one namespace `sdk_<scope>_<workspace>` of one store. Calls block; any worker thread may make them. Scores
 * are cosine similarities in [-1, 1], best first. Vectors are float32; NaN and infinities are refused, a zero vector is
 * stored and scores 0. Everything returned lives in the caller's arena. An acknowledged upsert is durable, and a batch
 * is stored whole or not at all.
 *
 *     r = vectors->ops->query(vectors, &wait, "sdk_app_default", &q, arena, &hits, e);
 */
#pragma once

#include "base/arena.h"
#include "base/fields.h"
#include "base/limits.h"
#include "net/wait.h"

struct guard;

struct vector_record {
    const char *id;
    const float *vector;
    const char *metadata; /* JSON object text */
};

struct vector_batch {
    const struct vector_record *items;
    size_t n;
    size_t n_dimensions;
};

struct vector_query {
    const float *vector;
    size_t n_dimensions; /* 0: no vector, search by text alone */
    int64_t top_k;       /* 1..1000 */
    struct json_value
        filter;       /* absent: all. Equality on metadata keys; {"key": {"$in": [..]}}, $gt, $gte, $lt, $lte, $ne */
    double min_score; /* hits with a lower score are left out; -2: keeps all */
    bool with_vectors;
    bool exact; /* every row is scored: the embedded store uses neither lists nor sketches; others ignore it */
    /* hybrid search: the vector ranking fused with full text of metadata.text by reciprocal rank. Without a vector: the
     * best by text, with scores 61 / (60 + rank). NULL: the vector alone. Only for stores with has_text. */
    const char *text;
};

/* vector: n_dimensions numbers, or NULL and 0. */
struct vector_hit {
    const char *id;
    double score;
    const char *metadata;
    const float *vector;
    size_t n_dimensions;
};
struct vector_hits {
    struct vector_hit *items;
    size_t n;
};

/* What a DELETE means: all, or ids, or those that match the filter. Exactly one is set. */
struct vector_removal {
    bool all;
    const char *const *ids;
    size_t n_ids;
    struct json_value filter;
};

/* A page of a namespace, in order of the ids. */
struct vector_list_request {
    int64_t limit; /* 1 to LIMIT_VECTOR_LIST */
    int64_t offset;
    bool with_vectors; /* false: ids and metadata only */
};

#define VECTORS_STRING "string"
#define VECTORS_PASSWORD "password"

struct vectors;

/* `wait`: the deadline of the whole operation, including retries and pages, and its cancellation. It may be NULL for
 * the embedded store, which never waits for a server. */
struct vectors_ops {
    const char *name; /* "embedded", or of vectors_providers[] */
    bool has_text;    /* supports text search */
    struct vectors *(*close)(struct vectors *v);
    /* Would a query of the namespace first have to load many rows? Does not block. May be NULL. */
    bool (*is_slow)(struct vectors *v, const char *ns);
    int (*check)(struct vectors *v, const struct net_wait *wait,
                 struct err *e); /* is the store reachable? A registration checks before it saves */
    /* -EINVAL DIMENSION_MISMATCH when the namespace holds another dimension; the first batch decides it. */
    int (*upsert)(struct vectors *v, const struct net_wait *wait, const char *ns, const struct vector_batch *b,
                  struct err *e);
    int (*query)(struct vectors *v, const struct net_wait *wait, const char *ns, const struct vector_query *q,
                 struct arena *a, struct vector_hits *ret, struct err *e);
    int (*remove)(struct vectors *v, const struct net_wait *wait, const char *ns, const struct vector_removal *r,
                  int64_t *ret_n, struct err *e);
    int (*count)(struct vectors *v, const struct net_wait *wait, const char *ns, int64_t *ret_n,
                 int64_t *ret_dimensions, struct err *e);
    int (*list)(struct vectors *v, const struct net_wait *wait, const char *ns,
                const struct vector_list_request *request, struct arena *a, struct vector_hits *ret, struct err *e);
    /* Ids, metadata and vectors of the namespaces that start with the prefix, on the service's disk. Does not block.
     * NULL: the data is on a remote server. */
    int (*bytes)(struct vectors *v, const char *prefix, int64_t *ret, struct err *e);
    /* Namespaces that start with the prefix, in order. */
    int (*namespaces)(struct vectors *v, const struct net_wait *wait, const char *prefix, struct arena *a,
                      struct field_strings *ret, struct err *e);
};

struct vectors {
    const struct vectors_ops *ops;
};

/* One row for each store the person can register. `fields` are those of the registration form. */
enum vectors_secrecy { VECTORS_PUBLIC, VECTORS_SECRET, VECTORS_ADDRESS /* shown without password and parameters */ };
struct vectors_field {
    const char *name, *label;
    const char *type; /* VECTORS_STRING or VECTORS_PASSWORD */
    const char *placeholder;
    const char *alias; /* another accepted name; NULL: none */
    bool is_required;
    enum vectors_secrecy secrecy;
};
struct vectors_provider {
    const char *name, *label, *description;
    const struct vectors_field *fields; /* ended by name NULL */
    /* NULL: the service's embedded store. As an app chose the addresses, the guard (borrowed) decides which connections
     * are allowed. */
    int (*open)(const char *scope, struct json_value config, const struct guard *guard, struct vectors **ret,
                struct err *e);
};
extern const struct vectors_provider vectors_providers[]; /* ended by name NULL */
const struct vectors_provider *vectors_provider_find(const char *name);
/* The field's value in a configuration, under its name or its alias (ret_name, may be NULL: the name found); absent:
 * not set. */
struct json_value vectors_field_value(const struct vectors_field *f, struct json_value config, const char **ret_name);

struct instance;
struct vectors_embedded_config {
    const char *path;          /* vectors.db */
    const char *side_folder;   /* of side files (vector/engine/side.h), made when it is missing; NULL: none are kept */
    struct instance *instance; /* the instance that owns the file; NULL: none */
    int64_t list_above_rows;   /* above this number of live rows inverted lists are built, those that are sure above a
                                  quarter: 1000000 */
    double target_recall;      /* 0.97 */
    double sketch_deviations;  /* of a sketch's error, by which a row may score above it: 3; 0: no sketches */
    int64_t memory_bytes;      /* above it loaded namespaces are evicted */
};
int vectors_embedded_open(const struct vectors_embedded_config *c, struct vectors **ret, struct err *e) MUST_CHECK;
