/* The common part of stores that are reached over HTTP: one call with JSON both ways, vectors of length one, and
 * filters that are checked again here, because the peer decides a filter by its own rules.
 *
 * A store sends its peer a filter that every matching row passes. remote_nearest() keeps the rows that match and
 * requests more until there are enough. Private to src/vector; any thread; calls block.
 */
#pragma once

#include "base/json_write.h"
#include "vector/vector_filter.h"
#include "vector/vector.h"

enum {
    REMOTE_ROWS_A_READ = 1000,    /* in one request that reads by ids or page by page */
    REMOTE_BODY_BYTES = 16 << 20, /* approximate limit of one request that stores: servers take 32 MiB and more */
    REMOTE_CANDIDATES =
        10000, /* most nearest records read for a filter the peer cannot decide; most ids to search among */
    REMOTE_SCAN_ROWS = 200000, /* of the largest namespace that is read whole for such a filter */
};

struct remote {
    const char *label;                    /* "Chroma", for error texts */
    char *url;                            /* owned */
    char *header, *key;                   /* owned; key NULL: none */
    const char *version_header, *version; /* borrowed; sent with every request; NULL: none */
    const struct guard *guard;            /* borrowed */
};

/* One operation on a store: `wait` limits all of its requests together. */
struct remote_op {
    const struct remote *remote;
    const struct net_wait *wait;
};

struct remote_reply {
    int status;
    struct json_value body;
};

/* -EINVAL VALIDATION_ERROR: url is not a valid address. remote_clear() frees the copies, also after a failure. */
int remote_init(struct remote *r, const char *url, const char *header, const char *key, struct err *e) MUST_CHECK;
void remote_clear(struct remote *r);

/* Any status below 500 except a redirect is a reply. body NULL: none. -EAGAIN VECTOR_STORE_UNAVAILABLE: there was no
 * connection; -EIO VECTOR_STORE_FAILED with the reason; -ECANCELED SHUTTING_DOWN. */
int remote_call(const struct remote_op *op, struct arena *a, const char *method, const char *path,
                const struct buf *body, struct remote_reply *ret, struct err *e) MUST_CHECK;
/* A GET whose reply has records and may have LIMIT_STORE_REPLY bytes. Any status of 300 or more is an error. */
int remote_request_records(const struct remote_op *op, struct arena *a, const char *path, struct remote_reply *ret,
                           struct err *e) MUST_CHECK;
/* The same as remote_call(), but any status of 300 or more is an error. */
int remote_request(const struct remote_op *op, struct arena *a, const char *method, const char *path,
                   const struct buf *body, struct remote_reply *ret, struct err *e) MUST_CHECK;
/* Reports a refusal. */
int remote_refused(const struct remote_op *op, const struct remote_reply *reply, struct err *e);

/* ---- vectors ---- */

/* Normalises to length one, also vectors of the largest and smallest numbers. Returns the original length; 0 for a zero
 * vector. */
double remote_unit(const float *vector, size_t n, float *ret);
bool remote_is_zero(const float *vector, size_t n);
/* The normalised vector in the arena; for a zero vector an arbitrary direction, as some peers take no zero vectors. */
const float *remote_direction(struct arena *a, const float *vector, size_t n);

/* The records to store: of records with equal ids only the last. */
size_t remote_last_of_each(struct arena *a, const struct vector_batch *b, const struct vector_record **ret);
/* The number of records to put into one request of at most n_most records and about n_bytes. */
size_t remote_chunk(const struct vector_record *items, size_t n, size_t n_dimensions, size_t n_most, size_t n_bytes);

/* ---- a peer's answers, checked when read: VECTOR_STORE_FAILED names the store and the broken rule ---- */

int remote_fault(const struct remote_op *op, struct err *e, const char *fmt, ...) PRINTF_LIKE(3, 4);
int remote_read_count(const struct remote_op *op, struct json_value v, int64_t *ret, struct err *e) MUST_CHECK;
int remote_read_dimensions(const struct remote_op *op, struct json_value v, int64_t *ret, struct err *e) MUST_CHECK;
/* Checks that v is a list of at most n_most elements; ret: their number. */
int remote_read_list(const struct remote_op *op, const char *name, struct json_value v, size_t n_most, size_t *ret,
                     struct err *e) MUST_CHECK;

/* How a peer's score converts to the cosine similarity. */
enum remote_scale {
    REMOTE_SIMILARITY,
    REMOTE_DISTANCE, /* 1 - similarity */
    REMOTE_NEGATIVE, /* -similarity */
    REMOTE_HALVED,   /* (1 + similarity) / 2 */
};

/* A record as received. metadata: an object, or its text. */
struct remote_raw {
    struct json_value id, score, metadata, unit, length;
    const char *id_name;
    enum remote_scale scale;
};
/* n_dimensions 0: the vector is not read. Strings of ret belong to raw's document; everything else is in the arena.
 */
int remote_read_record(const struct remote_op *op, struct arena *a, const struct remote_raw *raw, size_t n_dimensions,
                       struct vector_hit *ret, struct err *e) MUST_CHECK;
/* Counts the pages of one operation: LIMIT_STORE_PAGES at most. */
int remote_count_page(const struct remote_op *op, size_t *n_pages, struct err *e) MUST_CHECK;

/* ---- filters ---- */

/* A number as peers compare it: 64-bit integers and doubles separately. */
struct remote_number {
    double d;
    int64_t i;
    bool is_whole;
};
struct remote_number remote_number(struct json_value v);
/* True for integers that a double represents exactly, so that both have the same order. */
bool remote_is_exact(struct json_value v);
/* Can no row match? That is so with an empty $in. */
bool remote_is_void(const struct vector_filter *f);
/* The text of a double; a whole number gets ".0", so that it is read back as a double. out: 40 bytes. */
const char *remote_double_text(double d, char *out);

/* How a peer writes a filter. */
struct remote_dialect {
    const char *member,
        *all; /* the member of a request's body, and the key of the list of conditions that must all hold */
    bool (*can_express)(const struct vector_condition *c);
    void (*add)(struct json_writer *w, const struct vector_condition *c);
};
/* Adds the conditions that the peer can express, if any: every row that matches the filter matches these conditions. */
void remote_add_filter(const struct remote_dialect *d, struct json_writer *w, const struct vector_filter *f);
/* Can the peer express the whole filter? */
bool remote_is_reported(const struct remote_dialect *d, const struct vector_filter *f);

/* Does metadata, as JSON text, match the filter? */
bool remote_is_match(const struct vector_filter *f, const char *metadata, struct arena *a);

/* ---- answers ---- */

/* Requests the n nearest records from the peer; the hits are in the arena. */
typedef int remote_nearest_fn(void *arg, int64_t n, struct arena *a, struct vector_hits *ret, struct err *e);
struct remote_looking {
    const struct vector_query *query;
    const struct vector_filter *filter;
    bool is_decided; /* the peer decides the whole filter */
    int64_t n_most;  /* the most hits of one request: REMOTE_CANDIDATES or fewer */
    remote_nearest_fn *request;
    void *arg;
};
/* -ERANGE without an error text: too few of n_most hits match; the caller then finds the matching ids and searches
 * among them. */
int remote_nearest(const struct remote_looking *l, struct arena *a, struct vector_hits *ret, struct err *e) MUST_CHECK;

/* The error when neither the search nor the search among matching ids works. */
int remote_undecided(struct err *e);

/* Ids of a namespace; they are stored in the arena. */
struct remote_ids {
    struct arena *arena;
    const char **items;
    size_t n, cap;
};
/* -EMSGSIZE VECTOR_STORE_FAILED: there are more ids than one request may have. */
int remote_ids_add(struct remote_ids *ids, const char *id, struct err *e) MUST_CHECK;
/* Adds the hits that match; filter NULL: all. */
int remote_ids_add_hits(struct remote_ids *ids, const struct vector_hits *hits, const struct vector_filter *filter,
                        struct arena *scratch, struct err *e) MUST_CHECK;
void remote_ids_sort(struct remote_ids *ids);    /* by bytes, the order in which every store lists */
void remote_ids_unique(struct remote_ids *ids);  /* sorts and removes duplicates */
void remote_hits_sort(struct vector_hits *hits); /* by id */

/* A name of at most 63 letters, digits, _ and - that no other namespace has: the namespace itself, or `hearth_` and a
 * hash of the namespace. */
const char *remote_collection_name(struct arena *a, const char *ns);
/* Always a hash: the prefix and 40 hex digits, for peers that allow few characters. */
const char *remote_hashed_name(struct arena *a, const char *ns, const char *prefix);
bool remote_is_hashed_name(const char *name, const char *prefix); /* name may be NULL */
bool remote_is_uuid(const char *text);                            /* text may be NULL */
struct json_value remote_first(struct json_value list);           /* absent: the list is empty */
