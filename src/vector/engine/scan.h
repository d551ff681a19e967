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

struct helpers;
struct sketch_kernel;

struct scan_request {
    const struct quant_query *query; /* borrowed */
    const uint64_t *mask;            /* borrowed; one bit for each of n rows; NULL: all rows */
    size_t n;                        /* only the first n rows are scanned */
    struct best *best;               /* borrowed; scores are approximate cosines */
    struct helpers *helpers;         /* borrowed; of a pass over many rows (split_pass.h); NULL: none */

    /* By sketches (sketch_scan.h): rows that cannot be among the n_wanted best are left out. */
    const struct sketch_kernel *sketch_kernel; /* for n_sketched */
    float deviations;                          /* of the error, by which a row may score above its sketch */
    size_t n_sketched;                         /* units of the view to be passed by their sketches; 0: none */
    bool is_filtered;                          /* the mask is that of a filter */
    size_t n_wanted;                           /* 0: only the floor of `best` is known */
    struct best *nearest;                      /* the n_wanted best, set by the pass; NULL: not kept */
    _Atomic float *common_cut; /* borrowed; known beforehand, raised by every thread of the pass; NULL: none */
    float cut;                 /* result: rows left out score at most this */
    size_t n_passed;           /* result: rows whose sketches were read */
    size_t n_left_out;         /* result: of these, rows of blocks that the coarse parts left out */
    size_t n_scored;           /* result: rows of units with sketches that were scored by their codes */
    size_t n_helpers;          /* result: helpers that took part */
};

void scan_range(const struct kernel *kernel, const struct slab *slab, struct scan_request *const *requests,
                size_t n_requests, size_t from, size_t to);
/* The rows of [from, to) in the block that begins at row `base` that the request wants. */
uint64_t scan_bits(const struct scan_request *request, size_t base, size_t from, size_t to);
/* Asks for the codes of a row that is scored soon. */
void scan_prefetch(const struct slab *slab, size_t slot);
/* One row, whatever the mask. */
void scan_row(const struct kernel *kernel, const struct slab *slab, struct scan_request *request, uint32_t slot);

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
