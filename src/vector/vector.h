/* Vector spaces: one interface over the embedded engine, pgvector, Chroma and Qdrant (specification, "Vector store"; decision D9).
 *
 * A space is one namespace `sdk_<scope>_<workspace>` of one store. Calls block and are for any worker. Scores are cosine
 * similarities in [-1, 1], best first. Vectors are float32; NaN and infinities are refused, a zero vector is stored and scores 0. Everything
 * returned lives in the caller's arena. An acknowledged upsert is durable, and a batch is stored whole or not at all.
 *
 *     r = vectors->ops->query(vectors, &wait, "sdk_app_default", &q, arena, &hits, e);
 */
#pragma once

#include "base/arena.h"
#include "base/fields.h"
#include "base/limits.h"
#include "net/wait.h"

struct guard;

struct vector_record { const char *id; const float *vector; const char *metadata; /* JSON object text */ };

struct vector_batch { const struct vector_record *items; size_t n; size_t n_dimensions; };

struct vector_query {
    const float *vector;
    size_t n_dimensions;                /* 0: none, the search is for the text alone */
    int64_t top_k;                      /* 1..1000 */
    struct json_value filter;           /* absent: all. Equality on metadata keys; {"key": {"$in": [..]}}, $gt, $gte, $lt, $lte, $ne */
    double min_score;                   /* hits below are left out; -2: none are */
    bool with_vectors;
    /* hybrid search: fused with full text of metadata.text by reciprocal rank. Without a vector: the best by text, whose scores are
     * 61 / (60 + rank). NULL: the vector alone. For stores that has_text. */
    const char *text;
};

/* vector: n_dimensions numbers, or NULL and 0. */
struct vector_hit { const char *id; double score; const char *metadata; const float *vector; size_t n_dimensions; };
struct vector_hits { struct vector_hit *items; size_t n; };

/* What a DELETE means: all, or ids, or those that match the filter. Exactly one is set. */
struct vector_removal { bool all; const char *const *ids; size_t n_ids; struct json_value filter; };

struct vectors;

/* `wait`: until when the whole operation may take, retries and pages among it, and who wants its result. The embedded store does not wait for
 * anybody: there it may be NULL. */
struct vectors_ops {
    const char *name;                   /* "embedded", "pgvector", "chroma", "qdrant" */
    bool has_text;                      /* searches texts too */
    struct vectors *(*close)(struct vectors *v);
    /* Would a query of the namespace first have to load much? Quick itself. May be NULL. */
    bool (*is_slow)(struct vectors *v, const char *ns);
    int (*check)(struct vectors *v, const struct net_wait *wait, struct err *e);     /* can it be reached: register connects before it saves */
    /* -EINVAL DIMENSION_MISMATCH when the namespace holds another dimension; the first batch decides it. */
    int (*upsert)(struct vectors *v, const struct net_wait *wait, const char *ns, const struct vector_batch *b, struct err *e);
    int (*query)(struct vectors *v, const struct net_wait *wait, const char *ns, const struct vector_query *q, struct arena *a, struct vector_hits *ret, struct err *e);
    int (*remove)(struct vectors *v, const struct net_wait *wait, const char *ns, const struct vector_removal *r, int64_t *ret_n, struct err *e);
    int (*count)(struct vectors *v, const struct net_wait *wait, const char *ns, int64_t *ret_n, int64_t *ret_dimensions, struct err *e);
    int (*list)(struct vectors *v, const struct net_wait *wait, const char *ns, int64_t limit, int64_t offset, bool with_vectors, struct arena *a, struct vector_hits *ret, struct err *e);
    /* Ids, metadata and vectors of the namespaces that start with the prefix, on the service's disk. Quick itself. NULL: they are elsewhere. */
    int (*bytes)(struct vectors *v, const char *prefix, int64_t *ret, struct err *e);
    /* Namespaces that start with the prefix, in order. */
    int (*namespaces)(struct vectors *v, const struct net_wait *wait, const char *prefix, struct arena *a, struct field_strings *ret, struct err *e);
};

struct vectors { const struct vectors_ops *ops; };

/* One row a store the person can register. `fields` are what the register form asks (name, label, type, placeholder). */
struct vectors_field { const char *name, *label, *type, *placeholder; bool is_required, is_secret; };
struct vectors_provider {
    const char *name, *label, *description;
    const struct vectors_field *fields; /* ended by name NULL */
    /* NULL: the embedded one of the service. An app named the addresses: the guard, borrowed, says which may be connected to. */
    int (*open)(const char *scope, struct json_value config, const struct guard *guard, struct vectors **ret, struct err *e);
};
extern const struct vectors_provider vectors_providers[];       /* ended by name NULL */
const struct vectors_provider *vectors_provider_find(const char *name);

struct vectors_embedded_config {
    const char *path;                   /* vectors.db */
    int64_t list_above_rows;            /* inverted lists above so many live rows: 250000 */
    double target_recall;               /* 0.97 */
    int64_t memory_bytes;               /* loaded namespaces are evicted above it */
};
int vectors_embedded_open(const struct vectors_embedded_config *c, struct vectors **ret, struct err *e) MUST_CHECK;
