/* What stores that are asked over HTTP have in common (Chroma, Qdrant): one call with JSON both ways, vectors of length one, and answers
 * that are checked again here, because such a store decides a filter by rules of its own.
 *
 * A store asks its peer for at least those rows that can match (`told` filters are a superset) and remote_nearest() keeps those that
 * do match, asking for more until there are enough. Private to src/vector; any thread; calls block.
 */
#pragma once

#include "base/json_write.h"
#include "vector/vector_filter.h"
#include "vector/vector.h"

enum {
    REMOTE_ROWS_A_READ = 1000,          /* of one request that reads by ids or page by page */
    REMOTE_BODY_BYTES = 16 << 20,       /* about; of one request that stores: servers take 32 MiB and more */
    REMOTE_CANDIDATES = 10000,          /* nearest that are looked at for a filter the peer cannot decide; ids a query may be confined to */
    REMOTE_SCAN_ROWS = 200000,          /* of a namespace that is read whole for such a filter */
};

struct remote {
    const char *label;                  /* "Chroma", for sentences */
    char *url;                          /* owned */
    char *header, *key;                 /* owned; key NULL: none */
    const struct guard *guard;          /* borrowed */
};

/* One operation on a store: `wait` is that of all its requests together. */
struct remote_op { const struct remote *remote; const struct net_wait *wait; };

struct remote_reply { int status; struct json_value body; };

/* -EINVAL VALIDATION_ERROR when the address is none. What was copied is freed by remote_clear(), also after a failure. */
int remote_init(struct remote *r, const char *url, const char *header, const char *key, struct err *e) MUST_CHECK;
void remote_clear(struct remote *r);

/* Any status below 500 but a redirect is a reply. body NULL: none. -EIO VECTOR_STORE_FAILED in words; -ECANCELED SHUTTING_DOWN. */
int remote_call(const struct remote_op *op, struct arena *a, const char *method, const char *path, const struct buf *body, struct remote_reply *ret,
                struct err *e) MUST_CHECK;
/* The same when only success will do. */
int remote_ask(const struct remote_op *op, struct arena *a, const char *method, const char *path, const struct buf *body, struct remote_reply *ret,
               struct err *e) MUST_CHECK;
/* What a refusal says. */
int remote_refused(const struct remote_op *op, const struct remote_reply *reply, struct err *e);

/* ---- vectors ---- */

/* At length one, so that the largest and the smallest numbers have a direction; its length before is returned, 0 of a zero vector. */
double remote_unit(const float *vector, size_t n, float *ret);

/* The records to be stored: of equal ids the last. */
size_t remote_last_of_each(struct arena *a, const struct vector_batch *b, const struct vector_record **ret);
/* How many of them go into one request. */
size_t remote_chunk(const struct vector_record *items, size_t n, size_t n_dimensions, size_t n_most);

/* ---- what a peer says, checked where it is read: VECTOR_STORE_FAILED names store and rule ---- */

int remote_fault(const struct remote_op *op, struct err *e, const char *fmt, ...) PRINTF_LIKE(3, 4);
int remote_read_count(const struct remote_op *op, struct json_value v, int64_t *ret, struct err *e) MUST_CHECK;
int remote_read_dimensions(const struct remote_op *op, struct json_value v, int64_t *ret, struct err *e) MUST_CHECK;
/* A list of at most n_most elements; ret: how many. */
int remote_read_list(const struct remote_op *op, const char *name, struct json_value v, size_t n_most, size_t *ret, struct err *e) MUST_CHECK;

/* A record as it came. metadata: an object, or its text. */
struct remote_raw { struct json_value id, score, metadata, unit, length; const char *id_name; bool is_distance; };
/* n_dimensions 0: its vector is not read. Strings of ret are of raw's document, everything else in the arena. */
int remote_read_record(const struct remote_op *op, struct arena *a, const struct remote_raw *raw, size_t n_dimensions, struct vector_hit *ret,
                       struct err *e) MUST_CHECK;
/* Of one operation: LIMIT_STORE_PAGES at most. */
int remote_count_page(const struct remote_op *op, size_t *n_pages, struct err *e) MUST_CHECK;

/* ---- filters ---- */

/* A number as peers compare it: 64-bit integers and doubles apart. */
struct remote_number { double d; int64_t i; bool is_whole; };
struct remote_number remote_number(struct json_value v);
/* True for those integers that are not changed as a double, so that a double's order is theirs. */
bool remote_is_exact(struct json_value v);
/* No row can match: an empty $in. */
bool remote_is_void(const struct vector_filter *f);
/* An integer that reads back as a double has a point. out: 40 bytes. */
const char *remote_double_text(double d, char *out);

/* How a peer writes a filter. */
struct remote_dialect {
    const char *member, *all;           /* of a request's body, and the key of the list of which all must hold */
    bool (*can_tell)(const struct vector_condition *c);
    void (*add)(struct json_writer *w, const struct vector_condition *c);
};
/* Adds what of the filter can be told, if anything: every row that matches the filter matches that. */
void remote_add_filter(const struct remote_dialect *d, struct json_writer *w, const struct vector_filter *f);
/* Can the whole filter be told? */
bool remote_is_told(const struct remote_dialect *d, const struct vector_filter *f);

/* What the filter says of metadata as JSON text. */
bool remote_is_match(const struct vector_filter *f, const char *metadata, struct arena *a);

/* ---- answers ---- */

/* Asks the peer for its n nearest; hits in a. */
typedef int remote_nearest_fn(void *arg, int64_t n, struct arena *a, struct vector_hits *ret, struct err *e);
/* is_decided: the peer was told the whole filter. -ERANGE without words: too few of REMOTE_CANDIDATES match; then find the ids that do, and ask
 * among those. */
int remote_nearest(const struct vector_query *q, const struct vector_filter *f, bool is_decided, remote_nearest_fn *ask, void *arg, struct arena *a,
                   struct vector_hits *ret, struct err *e) MUST_CHECK;

/* What to say when neither helps. */
int remote_undecided(struct err *e);

/* Ids of a namespace; what is kept of them is in the arena. */
struct remote_ids { struct arena *arena; const char **items; size_t n, cap; };
/* -EMSGSIZE VECTOR_STORE_FAILED when there are more than one request may hold. */
int remote_ids_add(struct remote_ids *ids, const char *id, struct err *e) MUST_CHECK;
/* Those that match; filter NULL: all. */
int remote_ids_add_hits(struct remote_ids *ids, const struct vector_hits *hits, const struct vector_filter *filter, struct arena *scratch,
                        struct err *e) MUST_CHECK;
void remote_ids_sort(struct remote_ids *ids);           /* by bytes, as every store lists */
void remote_ids_unique(struct remote_ids *ids);         /* and sorted */
void remote_hits_sort(struct vector_hits *hits);        /* by id */

/* A name of at most 63 letters, digits, _ and - that no other namespace has: itself, or `hearth_` and a hash of it. */
const char *remote_collection_name(struct arena *a, const char *ns);
