/* Scoring rows in memory against queries. A pass reads each block of rows once for all queries that share it. Any
 * thread.
 *
 *     scan_range(kernel, slab, requests, n_requests, 0, view.n);       each request's `best` now holds its best slots
 */
#pragma once

#include "vector/engine/best.h"
#include "vector/engine/quant.h"
#include "vector/engine/slab.h"

#include <pthread.h>

enum { SCAN_BATCH = 16 };

struct scan_request {
    const struct quant_query *query; /* borrowed */
    const uint64_t *mask;            /* borrowed; one bit for each of n rows; NULL: all rows */
    size_t n;                        /* only the first n rows are scanned */
    struct best *best;               /* borrowed; scores are approximate cosines */
};

void scan_range(const struct kernel *kernel, const struct slab *slab, struct scan_request *const *requests,
                size_t n_requests, size_t from, size_t to);

/* Batches the queries of one namespace: at most as many passes run at the same time as there are processors, and
 * queries that arrive meanwhile share the next pass. */
struct scan_batcher {
    pthread_mutex_t lock;
    struct scan_visit *first, *last; /* waiting */
    size_t n_waiting, n_running, max_running;
    struct metric *pass_queries;
};

void scan_batcher_init(struct scan_batcher *d);
void scan_batcher_clear(struct scan_batcher *d);
/* Scans all rows of the slab up to request->n; returns when the request is done. */
void scan_batcher_run(struct scan_batcher *d, const struct kernel *kernel, const struct slab *slab,
                      struct scan_request *request);
