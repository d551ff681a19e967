/* The embedded vector engine behind vectors_embedded_open(): namespaces in memory over vectors.db. For engine*.c alone.
 *
 * Any thread calls. A namespace (struct space) is taken out of the table, used, and put back; one that holds nothing in
 * memory leaves the table when nobody uses it.
 */
#pragma once

#include "vector/keeper.h"
#include "vector/space.h"
#include "vector/vector.h"

enum { ENGINE_BUCKETS = 1024, ENGINE_QUICK_ROWS = 10000 /* loaded in some hundredths of a second */ };

struct engine {
    struct vectors base;                /* first */
    struct vectors_db *db;              /* owned */
    const struct kernel *kernel;
    int64_t list_above_rows, memory_bytes;
    double target_recall;
    pthread_mutex_t lock;               /* of the table */
    struct space *buckets[ENGINE_BUCKETS];      /* owned */
    atomic_size_t bytes;                /* rows in memory of all namespaces */
    struct keeper *keeper;              /* owned; its thread does what nobody waits for */
    struct metric *load_seconds, *n_evictions, *renew_seconds, *n_renewals;     /* told from the start, at zero */
};

static inline struct engine *engine_of(struct vectors *v)
{
    return CONTAINER_OF(v, struct engine, base);
}

struct space *engine_take(struct engine *engine, const char *ns) MUST_CHECK;
void engine_give_back(struct engine *engine, struct space *s);
/* All of the table, taken (give each back, free() the array). */
size_t engine_take_all(struct engine *engine, struct space ***ret);
/* Loads the space unless it is, whatever memory that takes. */
int engine_read_rows(struct engine *engine, struct space *s, struct err *e) MUST_CHECK;
/* The same for one that is asked now; evicts others when that passes the memory limit. */
int engine_load(struct engine *engine, struct space *s, struct err *e) MUST_CHECK;
/* Unloads namespaces that were used least recently until memory is below the limit; `keep` stays. */
void engine_evict(struct engine *engine, const struct space *keep);

int engine_upsert(struct vectors *v, const struct net_wait *wait, const char *ns, const struct vector_batch *b, struct err *e) MUST_CHECK;
int engine_remove(struct vectors *v, const struct net_wait *wait, const char *ns, const struct vector_removal *removal, int64_t *ret_n,
                  struct err *e) MUST_CHECK;
int engine_query(struct vectors *v, const struct net_wait *wait, const char *ns, const struct vector_query *q, struct arena *a, struct vector_hits *ret,
                 struct err *e) MUST_CHECK;
bool engine_is_slow(struct vectors *v, const char *ns);
int engine_count(struct vectors *v, const struct net_wait *wait, const char *ns, int64_t *ret_n, int64_t *ret_dimensions, struct err *e) MUST_CHECK;
int engine_bytes(struct vectors *v, const char *prefix, int64_t *ret, struct err *e) MUST_CHECK;
int engine_list(struct vectors *v, const struct net_wait *wait, const char *ns, int64_t limit, int64_t offset, bool with_vectors, struct arena *a,
                struct vector_hits *ret, struct err *e) MUST_CHECK;
int engine_namespaces(struct vectors *v, const struct net_wait *wait, const char *prefix, struct arena *a, struct field_strings *ret,
                      struct err *e) MUST_CHECK;

/* The file is newer than the view: it holds rows the memory does not, or no longer holds rows it does. Take a new view. */
enum { ENGINE_STALE = -ESTALE };

/* The rows of the view that match the filter, as a mask of view->n bits (zero before); inside vectors_db_begin/end that began
 * after the view. ENGINE_STALE. */
int engine_match(struct engine *engine, struct space *s, const struct slab_view *view, const struct vectors_db_space *of,
                 struct json_value filter, uint64_t *ret_mask, size_t *ret_n, struct err *e) MUST_CHECK;
/* Numbers in the file of all rows that match. */
int engine_match_rows(struct engine *engine, const struct vectors_db_space *of, struct json_value filter,
                      struct buf *ret_rows, struct err *e) MUST_CHECK;
