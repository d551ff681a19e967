/* Scoring rows in memory against queries. A pass reads each block of rows once for all queries that share it. Any thread.
 *
 *     scan_range(kernel, slab, asks, n_asks, 0, view.n);           each ask's best now holds its best slots
 */
#pragma once

#include "vector/best.h"
#include "vector/quant.h"
#include "vector/slab.h"

#include <pthread.h>

enum { SCAN_BATCH = 16 };

struct scan_ask {
    const struct quant_query *query;    /* borrowed */
    const uint64_t *mask;               /* borrowed; a bit a row, of n rows; NULL: all */
    size_t n;                           /* rows beyond it are not looked at */
    struct best *best;                  /* borrowed; scores are cosines, nearly */
};

void scan_range(const struct kernel *kernel, const struct slab *slab, struct scan_ask *const *asks, size_t n_asks,
                size_t from, size_t to);

/* Where queries of one namespace meet: as many passes run at one time as there are processors, and whoever comes while
 * they do shares the next one. */
struct scan_desk {
    pthread_mutex_t lock;
    struct scan_visit *first, *last;    /* waiting */
    size_t n_waiting, n_running, max_running;
    struct metric *pass_queries;
};

void scan_desk_init(struct scan_desk *d);
void scan_desk_clear(struct scan_desk *d);
void scan_desk_limit(struct scan_desk *d, size_t max_running);         /* at first: the number of processors */
/* All rows of the slab up to ask->n; returns when the ask is answered. */
void scan_desk_run(struct scan_desk *d, const struct kernel *kernel, const struct slab *slab, struct scan_ask *ask);
