/* The embedded vector engine that vectors_embedded_open() opens: namespaces in memory over vectors.db. For engine*.c
 * alone.
 *
 * Any thread calls. A caller takes a reference to a namespace (struct space) from the table, uses it and gives it back;
 * a namespace without rows in memory is removed from the table when its last user gives it back.
 */
#pragma once

#include "vector/engine/helpers.h"
#include "vector/engine/keeper.h"
#include "vector/engine/pace.h"
#include "vector/engine/space.h"
#include "vector/vector.h"

enum { ENGINE_BUCKETS = 1024, ENGINE_QUICK_ROWS = 10000 /* loaded in some hundredths of a second */ };

struct engine {
    struct vectors base;   /* first */
    struct vectors_db *db; /* owned */
    struct space_source source;
    const struct kernel *kernel;
    const struct sketch_kernel *sketch_kernel;
    float sketch_deviations; /* 0: no sketches */
    int64_t list_above_rows, memory_bytes;
    double target_recall;
    pthread_mutex_t lock;                  /* of the table */
    struct space *buckets[ENGINE_BUCKETS]; /* owned */
    atomic_size_t bytes;                   /* rows in memory of all namespaces */
    struct keeper *keeper;                 /* owned; its thread does background work */
    struct helpers *helpers;               /* owned; of queries */
    struct pace pace;                      /* of the keeper beside queries */
    struct metric *load_seconds, *n_evictions, *renew_seconds, *n_renewals, *n_sketch_passed, *n_sketch_left_out,
        *n_sketch_scored, *n_float_rows, *n_helped, *n_sides_refused; /* exported from the start, with zero */
};

static inline struct engine *engine_of(struct vectors *v)
{
    return CONTAINER_OF(v, struct engine, base);
}

struct space *engine_take(struct engine *engine, const char *ns) MUST_CHECK;
void engine_give_back(struct engine *engine, struct space *s);
/* Takes every namespace of the table (give each back, free() the array). */
size_t engine_take_all(struct engine *engine, struct space ***ret);
/* Loads the space if it is not loaded, regardless of the memory limit. */
int engine_read_rows(struct engine *engine, struct space *s, struct err *e) MUST_CHECK;
/* The same for a space in use; evicts others when the memory limit is exceeded. */
int engine_load(struct engine *engine, struct space *s, struct err *e) MUST_CHECK;
/* Is there work for the keeper? */
enum space_need engine_need(struct engine *engine, struct space *s);
/* Unloads namespaces that were used least recently until memory is below the limit; `keep` stays. */
void engine_evict(struct engine *engine, const struct space *keep);

int engine_upsert(struct vectors *v, const struct net_wait *wait, const char *ns, const struct vector_batch *b,
                  struct err *e) MUST_CHECK;
int engine_remove(struct vectors *v, const struct net_wait *wait, const char *ns, const struct vector_removal *removal,
                  int64_t *ret_n, struct err *e) MUST_CHECK;
int engine_query(struct vectors *v, const struct net_wait *wait, const char *ns, const struct vector_query *q,
                 struct arena *a, struct vector_hits *ret, struct err *e) MUST_CHECK;
bool engine_is_slow(struct vectors *v, const char *ns);
int engine_count(struct vectors *v, const struct net_wait *wait, const char *ns, int64_t *ret_n,
                 int64_t *ret_dimensions, struct err *e) MUST_CHECK;
int engine_bytes(struct vectors *v, const char *prefix, int64_t *ret, struct err *e) MUST_CHECK;
int engine_list(struct vectors *v, const struct net_wait *wait, const char *ns,
                const struct vector_list_request *request, struct arena *a, struct vector_hits *ret,
                struct err *e) MUST_CHECK;
int engine_namespaces(struct vectors *v, const struct net_wait *wait, const char *prefix, struct arena *a,
                      struct field_strings *ret, struct err *e) MUST_CHECK;

/* The file is newer than the view: it has rows that memory lacks, or lacks rows that memory has. Take a new view. */
enum { ENGINE_STALE = -ESTALE };

struct engine_match_request {
    struct space *space;
    const struct slab_view *view;      /* of the space */
    const struct vectors_db_space *of; /* the space in the file */
    struct json_value filter;
};
/* The rows of the view that match the filter, as a mask of view->n bits (zero before); inside vectors_db_begin/end that
 * began after the view. ENGINE_STALE. */
int engine_match(struct engine *engine, const struct engine_match_request *request, uint64_t *ret_mask, size_t *ret_n,
                 struct err *e) MUST_CHECK;
/* Numbers in the file of all rows that match. */
int engine_match_rows(struct engine *engine, const struct vectors_db_space *of, struct json_value filter,
                      struct buf *ret_rows, struct err *e) MUST_CHECK;
