/* The rows that were best by their codes, scored from their floats in the file: what an answer is made of. One thread.
 *
 *     rerank_init(&x, query, n);  r = rerank_run(&x, db, &view, &of, &best, e);        x.items: best first, no row twice
 */
#pragma once

#include "store/vectors_db.h"
#include "vector/best.h"
#include "vector/slab.h"

struct rerank_item { double score; int64_t row; };

struct rerank {
    const float *query;                 /* borrowed */
    size_t n_dimensions;
    double query_norm, worst_error;     /* the largest difference of a score by codes to the one by floats */
    struct rerank_item *items;          /* owned */
    size_t n;
};

void rerank_init(struct rerank *x, const float *query, size_t n_dimensions);
void rerank_clear(struct rerank *x);
/* Adds the slots of `best`, which it sorts; inside vectors_db_begin/end. ENGINE_STALE (-ESTALE) when the file lacks one. */
int rerank_run(struct rerank *x, struct vectors_db *db, const struct slab_view *view, const struct vectors_db_space *of,
               struct best *best, struct err *e) MUST_CHECK;
/* Adds a row with a score that came from elsewhere, behind those there are. */
void rerank_add(struct rerank *x, int64_t row, double score);
/* How far below the last score of an answer codes may put a row that belongs into it. */
double rerank_margin(const struct rerank *x);
