/* Scores the rows that were best by their codes from their floats in the file, for the final answer. One thread.
 *
 *     rerank_init(&x, query, n);  r = rerank_run(&x, db, &view, &of, &best, e);        x.items: best first, no row
 * twice
 */
#pragma once

#include "store/vectors/vectors_db.h"
#include "vector/engine/best.h"
#include "vector/engine/slab.h"

struct rerank_item {
    double score;
    int64_t row;
};

struct rerank {
    const float *query; /* borrowed */
    size_t n_dimensions;
    double query_norm, worst_error; /* the largest difference between a score by codes and by floats */
    struct rerank_item *items;      /* owned */
    size_t n;
};

void rerank_init(struct rerank *x, const float *query, size_t n_dimensions);
void rerank_clear(struct rerank *x);
/* Adds the slots of `best`, which it sorts; inside vectors_db_begin/end. ENGINE_STALE (-ESTALE) when the file lacks a
 * row. */
int rerank_run(struct rerank *x, struct vectors_db *db, const struct slab_view *view, const struct vectors_db_space *of,
               struct best *best, struct err *e) MUST_CHECK;
/* Appends a row with a given score. */
void rerank_add(struct rerank *x, int64_t row, double score);
/* How far below the answer's last score the codes may rank a row that belongs into the answer. */
double rerank_margin(const struct rerank *x);
